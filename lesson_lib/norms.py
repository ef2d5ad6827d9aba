"""Norms: each token standardized by itself, or each column over the tokens of a batch."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lesson_lib import require


def standardize(x: Float[Tensor, "..."], axes: int | tuple[int, ...], eps: float) -> Float[Tensor, "..."]:
    """x minus its mean, over the root of its variance plus eps; mean and variance run over `axes`, and the
    variance divides by the count.

    `(x - mean) / sqrt(variance + eps)`. Which axes is all that LayerNorm and BatchNorm differ in while they
    train.

    >>> standardize(torch.tensor([1.0, 3.0]), -1, eps=0.0).tolist()
    [-1.0, 1.0]
    """
    centred = x - x.mean(axes, keepdim=True)
    return centred * (centred.square().mean(axes, keepdim=True) + eps).rsqrt()


class LayerNorm(nn.Module):
    """Each token standardized over its own d_model numbers, then scaled and shifted by a learned `weight` and
    `bias`.

    Other tokens, the batch, training or not: none of them matters. Parameters: 2 · d_model.
    Source: Ba, Kiros & Hinton 2016, arXiv:1607.06450.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        require.whole(d_model=d_model)
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "*b d_model"]) -> Float[Tensor, "*b d_model"]:
        """As wide as x, token by token."""
        check_width(x, len(self.weight))
        return torch.addcmul(self.bias, standardize(x, -1, self.eps), self.weight)


class BatchNorm(nn.Module):
    """Each of the d_model columns standardized over all tokens of all sequences of the batch; the neighbour
    of LayerNorm.

    While it trains, what a token becomes depends on the others in its batch, padding included. It keeps
    running means of what it saw, and in eval mode uses those in the place of the batch's: `running = (1 -
    momentum) · running + momentum · batch` (variances divided by count - 1).
    Raises ValueError where it trains on a single token: its variance says nothing.
    Source: Ioffe & Szegedy 2015, arXiv:1502.03167.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        require.whole(d_model=d_model)
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.register_buffer("running_mean", torch.zeros(d_model))
        self.register_buffer("running_var", torch.ones(d_model))

    def forward(self, x: Float[Tensor, "*b d_model"]) -> Float[Tensor, "*b d_model"]:
        """As wide as x; in training mode the running means move."""
        check_width(x, len(self.weight))
        if not self.training:
            normal = (x - self.running_mean) * (self.running_var + self.eps).rsqrt()
            return torch.addcmul(self.bias, normal, self.weight)
        axes = tuple(range(x.ndim - 1))
        if x[..., 0].numel() < 2:
            raise ValueError(
                f"a BatchNorm that trains needs at least 2 tokens in a batch, got shape {tuple(x.shape)}; "
                "use more, call .eval(), or use LayerNorm"
            )
        with torch.no_grad():
            self.running_mean.lerp_(x.mean(axes), self.momentum)
            self.running_var.lerp_(x.var(axes), self.momentum)
        return torch.addcmul(self.bias, standardize(x, axes, self.eps), self.weight)


def check_width(x: Any, d_model: int) -> None:
    """Raises where x is no tensor of floats (..., d_model): a width of 1 would be stretched silently."""
    if not isinstance(x, Tensor) or not x.is_floating_point():
        got = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise TypeError(
            f"x must be a tensor of floats (..., {d_model}), got {got}; use torch.tensor(...).float()"
        )
    if not x.ndim or x.shape[-1] != d_model:
        raise ValueError(
            f"x must have shape (..., {d_model}), got {tuple(x.shape)}; this module was made with"
            f" d_model={d_model}"
        )
