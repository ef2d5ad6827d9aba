"""One head of attention that names a symbol it has read, and nothing beside the head: no positions, no
feed-forward, no residual, no norm. What `models.recaller.Recaller` is with an LSTM, this is with a look."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from lesson_lib.attention import attend
from lesson_lib.data.recall import CHARACTERS, SYMBOLS


class LookBack(nn.Module):
    """Logits (b, symbols) of the symbol that the sequence holds: the last token asks all tokens, once."""

    def __init__(self, d: int = 32) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(CHARACTERS), d)
        self.query = nn.Linear(d, d, bias=False)
        self.key = nn.Linear(d, d, bias=False)
        self.value = nn.Linear(d, d, bias=False)
        self.read = nn.Linear(d, len(SYMBOLS))

    def of_embedded(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b 8"]:
        last = x[:, -1:]
        look = attend(self.query(last), self.key(x), self.value(x))
        return self.read(look.output[:, 0])

    def forward(self, tokens: Int[Tensor, "b n"]) -> Float[Tensor, "b 8"]:
        return self.of_embedded(self.embed(tokens))
