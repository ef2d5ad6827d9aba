"""Taggers that differ in what they see: one word, a window, what came before, everything without order,
everything.

Each turns words (b, n) into scores of tags (b, n, tag). Embedding, width and the layer behind are the same;
what stands between them is the history of the idea. `attention` is two layers of MultiHeadAttention, each
followed by a small network, with the input added back in (why that helps is the subject of lesson 06).
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lesson_lib.data.tagging import PADDING, TAGS, VOCABULARY, Sentences
from lesson_lib.heads import MultiHeadAttention
from lesson_lib.positions import sinusoidal


class Embed(nn.Module):
    """Words (b, n) as rows (b, n, d_model); padding becomes zeros."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.table = nn.Embedding(len(VOCABULARY) + 1, d_model, padding_idx=0)

    def forward(self, words: Int[Tensor, "b n"]) -> Float[Tensor, "b n d_model"]:
        """Rows of the table."""
        return self.table(words + 1)  # PADDING is -1


def read_out(d_in: int, d_hidden: int) -> nn.Sequential:
    """A network with one hidden layer that scores the tags."""
    return nn.Sequential(nn.Linear(d_in, d_hidden), nn.ReLU(), nn.Linear(d_hidden, len(TAGS)))


class Window(nn.Module):
    """Each word with its `radius` neighbours on both sides, side by side; radius 0 is the per-word
    network."""

    def __init__(self, radius: int, d_model: int, d_hidden: int) -> None:
        super().__init__()
        self.radius, self.embed = radius, Embed(d_model)
        self.read = read_out((2 * radius + 1) * d_model, d_hidden)

    def forward(self, words: Int[Tensor, "b n"]) -> Float[Tensor, "b n tag"]:
        """Scores of the tags; beyond the ends of a sentence a neighbour is zeros."""
        x = F.pad(self.embed(words), (0, 0, self.radius, self.radius))
        return self.read(x.unfold(1, 2 * self.radius + 1, 1).flatten(2))


class RecurrentTagger(nn.Module):
    """A GRU that reads from left to right: each word with a summary of all before it. `both_ways` adds one
    from right to left."""

    def __init__(self, d_model: int, d_hidden: int, *, both_ways: bool = False) -> None:
        super().__init__()
        self.embed = Embed(d_model)
        width = d_hidden // 2 if both_ways else d_hidden
        self.core = nn.GRU(d_model, width, batch_first=True, bidirectional=both_ways)
        self.read = read_out(d_hidden, d_hidden)

    def forward(self, words: Int[Tensor, "b n"]) -> Float[Tensor, "b n tag"]:
        """Scores of the tags. From right to left the padding is read first; it is zeros, and learned to be
        nothing."""
        return self.read(self.core(self.embed(words))[0])


class Attention(nn.Module):
    """Two layers of self-attention over all words, with or without their positions."""

    def __init__(self, d_model: int, d_hidden: int, n_heads: int, *, positions: bool) -> None:
        super().__init__()
        self.embed, self.positions = Embed(d_model), positions
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "norm": nn.LayerNorm(d_model),
                    "attention": MultiHeadAttention(d_model, n_heads),
                    "behind": nn.Sequential(
                        nn.LayerNorm(d_model),
                        nn.Linear(d_model, d_hidden),
                        nn.ReLU(),
                        nn.Linear(d_hidden, d_model),
                    ),
                }
            )
            for _ in range(2)
        )
        self.read = read_out(d_model, d_hidden)

    def forward(self, words: Int[Tensor, "b n"]) -> Float[Tensor, "b n tag"]:
        """Scores of the tags."""
        return self.look(words, weights=False)[0]

    def look(
        self, words: Int[Tensor, "b n"], *, weights: bool = True
    ) -> tuple[Float[Tensor, "b n tag"], list[Float[Tensor, "b h n n"] | None]]:
        """Scores of the tags, and each layer's weights."""
        x, maps = self.embed(words), []
        if self.positions:
            x = x + sinusoidal(words.shape[1], x.shape[-1], device=x.device)
        real: Bool[Tensor, "b 1 n"] = (words != PADDING)[:, None]
        for layer in self.layers:
            y = layer["norm"](x)
            output, seen = layer["attention"](y, y, y, mask=real, weights=weights)
            x = x + output
            x = x + layer["behind"](x)
            maps.append(seen)
        return self.read(x), maps


def loss(model: nn.Module, batch: Sentences) -> Tensor:
    """Mean cross-entropy over all words."""
    return F.cross_entropy(model(batch.words).flatten(0, 1), batch.tags.flatten(), ignore_index=PADDING)


def right(model: nn.Module, sentences: Sentences) -> Bool[Tensor, "b n"]:
    """Which words got the right tag; padding counts as wrong, so divide by the number of words."""
    with torch.no_grad():
        return model(sentences.words).argmax(-1) == sentences.tags
