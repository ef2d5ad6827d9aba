"""One classifier of sequences for the small arena: the same network with another attention inside.

    tokens -> embedding + sinusoidal positions -> pre-norm encoder layers -> read-out: the tokens' mean, or
    the last token -> logits

KINDS: "full" is `attend`, "window" sees `radius` tokens around, "linear" is elu + 1, "low rank" mixes keys
and values down to `rank`, "random features" draws `n_features` of them; OFFERED has one more, "window and
global", a window whose first token sees all and is seen by all. Positions, widths, layers and
read-out are the same for all; "low rank" alone has parameters of its own. All sequences of a task have the
same length; where a text is shorter, filler is a token as any other, seen by all kinds alike. Tasks and
comparison: Tay et al. 2021, "Long Range Arena", arXiv:2011.04006; all sizes here are smaller.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.attention import Attended, attend
from lesson_lib.blocks import EncoderLayer, LayerNorm, TokenEmbedding
from lesson_lib.efficient import LowRank, RandomFeatures, TableFree
from lesson_lib.linear import attend_linear
from lesson_lib.masks import window
from lesson_lib.truncated import WindowAttention

KINDS = ("full", "window", "linear", "low rank", "random features")
OFFERED = (*KINDS, "window and global")
READS = ("mean", "last")


class Labelled(NamedTuple):
    """Sequences of token numbers, and the class of each."""

    tokens: Int[Tensor, "b n"]
    answer: Int[Tensor, " b"]


class Classifier(nn.Module):
    """Logits (b, n_classes) of sequences of `n` tokens, numbers below n_tokens.

    `read` is where the answer is read: at "mean" of all tokens, or at the "last" one. Raises ValueError for a
    kind that is none of OFFERED and where sizes do not fit.
    """

    def __init__(
        self,
        kind: str,
        *,
        n: int,
        n_tokens: int,
        n_classes: int,
        read: str = "mean",
        n_layers: int = 2,
        d_model: int = 64,
        n_heads: int = 4,
        radius: int = 16,
        rank: int = 32,
        n_features: int = 64,
    ) -> None:
        super().__init__()
        require.one_of(READS, read=read)
        require.whole(
            n=n, n_tokens=n_tokens, n_classes=n_classes, n_layers=n_layers, d_model=d_model, n_heads=n_heads,
            rank=rank, n_features=n_features,
        )  # fmt: skip
        self.kind, self.read = kind, read
        self.embedding = TokenEmbedding(n_tokens, d_model, dropout=0.0)
        sizes = {"n": n, "d_k": d_model // n_heads, "radius": radius, "rank": rank, "n_features": n_features}
        self.layers = nn.ModuleList(
            EncoderLayer(
                d_model,
                n_heads,
                2 * d_model,
                dropout=0.0,
                norm_first=True,
                attention=attention(kind, **sizes),
            )
            for _ in range(n_layers)
        )
        self.norm, self.out = LayerNorm(d_model), nn.Linear(d_model, n_classes)

    def forward(self, tokens: Int[Tensor, "b n"]) -> Float[Tensor, "b n_classes"]:
        """Logits of the classes. Raises ValueError for sequences without tokens."""
        x = self.embedding(tokens)
        if x.shape[1] == 0:
            raise ValueError(
                f"tokens must have at least one token a sequence, got shape {tuple(tokens.shape)}"
            )
        for layer in self.layers:
            x = layer(x).output
        x = self.norm(x)
        return self.out(x.mean(1) if self.read == "mean" else x[:, -1])


def attention(kind: str, *, n: int, d_k: int, radius: int, rank: int, n_features: int) -> Any:
    """A new attention of that kind for MultiHeadAttention; of the sizes, it takes those that it needs."""
    makers = {
        "full": lambda: attend,
        "window": lambda: WindowAttention(radius),
        "linear": lambda: TableFree(attend_linear),
        "low rank": lambda: TableFree(LowRank(n, rank)),
        "random features": lambda: TableFree(Features(d_k, n_features)),
        "window and global": lambda: WindowAndGlobal(radius),
    }
    require.one_of(makers, kind=kind)
    return makers[kind]()


def window_and_global(
    n: int, radius: int, n_global: int, *, device: torch.device | None = None
) -> Bool[Tensor, "n n"]:
    """Mask of a window in which the first `n_global` tokens see all, and are seen by all.

    Raises ValueError where a number is negative.
    Source: Beltagy, Peters & Cohan 2020, "Longformer", arXiv:2004.05150, section 3.1.

    >>> window_and_global(4, radius=0, n_global=1).int().tolist()
    [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]]
    """
    require.whole(at_least=0, n_global=n_global)
    mask = window(n, radius, device=device)
    mask[:, :n_global] = True
    mask[:n_global] = True
    return mask


class WindowAndGlobal(nn.Module):
    """A function (query, key, value) for MultiHeadAttention: a window, and `n_global` tokens that see all and
    are seen by all.

    Its mask is drawn over the full table, so it saves nothing. Raises ValueError for a mask of the caller's.
    """

    def __init__(self, radius: int, n_global: int = 1) -> None:
        super().__init__()
        require.whole(at_least=0, radius=radius, n_global=n_global)
        self.radius, self.n_global = radius, n_global

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = None, **options: Any
    ) -> Attended:
        """Outputs and weights, as `attend` has them."""
        if mask is not None:
            raise ValueError("this attention makes its own mask, got another; leave it out")
        seen = window_and_global(query.shape[-2], self.radius, self.n_global, device=query.device)
        return attend(query, key, value, mask=seen, **options)


class Features(nn.Module):
    """Attention with random features, `attend_linear` on them: one draw, the same in each layer and model,
    kept with its weights."""

    def __init__(self, d_k: int, n_features: int) -> None:
        super().__init__()
        self.phi = RandomFeatures(d_k, n_features)

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Outputs."""
        return attend_linear(query, key, value, phi=self.phi)


def loss(model: nn.Module, batch: Labelled) -> Float[Tensor, ""]:
    """Mean cross-entropy of the right classes."""
    return F.cross_entropy(model(batch.tokens), batch.answer)
