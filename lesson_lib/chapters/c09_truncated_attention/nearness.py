"""The recogniser of phonemes with convolutions in the place of attention: the same reach, the same layers
around it."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.attention import Attended
from lesson_lib.chapters.c09_truncated_attention.phonemes import PhonemeRecogniser

KINDS = ("depthwise", "dense")


class NearbySum(nn.Module):
    """A weighted sum of the 2 · radius + 1 nearest tokens, with the same weights everywhere; called as a
    layer calls attention.

    "depthwise" has a weight for each channel and neighbour, between two projections: 2 · d · (d + 1) +
    (2 · radius + 2) · d parameters. "dense" is a whole convolution: (2 · radius + 1) · d² + d.
    Raises ValueError for another kind, and for a radius that is no whole number >= 0.
    """

    def __init__(self, d_model: int, radius: int, kind: str = "depthwise") -> None:
        super().__init__()
        require.one_of(KINDS, kind=kind)
        require.whole(d_model=d_model)
        require.whole(at_least=0, radius=radius)
        groups = d_model if kind == "depthwise" else 1
        self.enter = nn.Linear(d_model, d_model) if kind == "depthwise" else nn.Identity()
        self.sum = nn.Conv1d(d_model, d_model, 2 * radius + 1, padding=radius, groups=groups)
        self.leave = nn.Linear(d_model, d_model) if kind == "depthwise" else nn.Identity()

    def forward(
        self,
        query: Float[Tensor, "b n d"],
        key: Float[Tensor, "b n d"],
        value: Float[Tensor, "b n d"],
        *,
        mask: Bool[Tensor, "b 1 n"] | None = None,
        **_: Any,
    ) -> Attended:
        """The sums of the values; queries and keys have no part in it. Filler counts as zeros."""
        x = self.enter(value)
        if mask is not None:
            x = x * mask.mT
        return Attended(self.leave(self.sum(x.mT).mT), None)


def convolutional(n_labels: int, *, radius: int, kind: str, **sizes: int) -> PhonemeRecogniser:
    """A PhonemeRecogniser whose layers have a NearbySum where the others have attention.

    Raises ValueError as both do.
    """
    model = PhonemeRecogniser(n_labels, radius=radius, **sizes)
    for layer in model.encoder.layers:
        d_model = model.listen.out_features
        layer.attention = NearbySum(d_model, radius, kind)
    return model


@torch.no_grad()
def even(n: int, radius: int) -> float:
    """The share of even weights over n frames that lies within `radius`: what a frame that looks everywhere
    alike would have near."""
    require.whole(n=n)
    require.whole(at_least=0, radius=radius)
    return sum(min(n, i + radius + 1) - max(0, i - radius) for i in range(n)) / n**2
