"""A convolution as attention over pixels: each head looks at one place relative to its own, and brings one
tap of the kernel.

    score of head k, from pixel i to pixel j     v_k · r_(j - i),  r_d = (|d|², d_y, d_x),
                                                 v_k = -sharpness · (1, -2 y_k, -2 x_k)

That is -sharpness · |d - (y_k, x_k)|² up to a number that is the same for all j, so a sharp head k looks at
the pixel that stands (y_k, x_k) further, and nowhere else. Its value is the kernel's tap for that place, a
matrix (c_out, c_in); the heads' outputs are added up. Keys stand on a canvas with a border of zeros, as the
convolution's padding does, so that the picture's edge is exact too.
Source: Cordonnier, Loukas & Jaggi 2019, arXiv:1911.03584 (Theorem 1, and its quadratic encoding of relative
positions).
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.attention import Attended, attend
from lesson_lib.scores import dot


class PixelAttention(nn.Module):
    """Self-attention over the pixels of (b, c_in, h, w), in which scores come from relative positions alone;
    out comes (b, c_out, h, w).

    `logits(d)` gives each head's scores (heads, n, m) of offsets d (n, m, 2) in pixels, down and right; -inf
    is never looked at. `values` (heads, c_out, c_in) is what each head makes of a pixel (its W_v and W_o in
    one); `border` pixels of zeros surround the picture. Weights of 0 are tiny numbers here: a pixel of inf
    spoils all outputs, not only those near it. Values and bias can be trained, and the scores where `logits`
    is a module such as `Near`.
    """

    def __init__(
        self,
        logits: Callable[[Tensor], Tensor],
        values: Float[Tensor, "heads c_out c_in"],
        bias: Float[Tensor, " c_out"] | None,
        *,
        border: int,
    ) -> None:
        super().__init__()
        self.logits, self.border = logits, border
        self.values = nn.Parameter(values)
        self.bias = None if bias is None else nn.Parameter(bias)

    def forward(self, x: Float[Tensor, "b c_in h w"]) -> Float[Tensor, "b c_out h w"]:
        """What the heads bring to each pixel, added up."""
        summed = self.heads(x).output.sum(1).mT.unflatten(-1, x.shape[-2:])
        return summed if self.bias is None else summed + self.bias[:, None, None]

    def heads(self, x: Float[Tensor, "b c_in h w"], *, weights: bool = False) -> Attended:
        """Outputs (b, heads, h · w, c_out) of the heads, and their weights (b, heads, h · w, pixels of the
        canvas) if asked for."""
        _check_image(x, self.values)
        p, (h, w) = self.border, x.shape[-2:]
        canvas = F.pad(x, (p, p, p, p)).flatten(-2).mT[:, None]  # (b, 1, m, c_in)
        scores = self.logits(offsets(h, w, p, dtype=x.dtype, device=x.device))
        seen = scores > -torch.inf
        empty = x.new_zeros(*scores.shape[:2], 1)  # no content: positions are all that is asked for
        # all pictures have the same weights: their values stand side by side
        made = (canvas @ self.values.mT).movedim(0, -2)
        found = attend(
            empty, x.new_zeros(len(scores), canvas.shape[-2], 1), made.flatten(-2),
            score=dot, score_bias=scores.masked_fill(~seen, 0.0), mask=seen, weights=weights,
        )  # fmt: skip
        output = found.output.unflatten(-1, made.shape[-2:]).movedim(-2, 0)
        return Attended(output, found.weights.expand(len(x), -1, -1, -1) if weights else None)


class Near(nn.Module):
    """Scores of heads that each look around a place: `-sharpness · |d - centre|²`, but for a number that is
    the same for all d.

    As a product of two vectors of three numbers, `r_d = (|d|², d_y, d_x)` and `-sharpness · (1, -2 y, -2 x)`.
    Centres and sharpness are parameters: heads can be put somewhere, or learn where to look.
    """

    def __init__(self, centres: Float[Tensor, "heads 2"], sharpness: Float[Tensor, " heads"]) -> None:
        super().__init__()
        self.centres, self.sharpness = nn.Parameter(centres), nn.Parameter(sharpness)

    def forward(self, d: Float[Tensor, "n m 2"]) -> Float[Tensor, "heads n m"]:
        """A score of each head for each offset."""
        encoding = torch.cat([d.square().sum(-1, keepdim=True), d], -1)  # r_d
        v = -self.sharpness[:, None] * torch.cat(
            [torch.ones_like(self.centres[:, :1]), -2 * self.centres], -1
        )
        return (encoding @ v.T).movedim(-1, 0)


def offsets(
    h: int, w: int, border: int = 0, *, dtype: torch.dtype | None = None, device: torch.device | None = None
) -> Float[Tensor, "n m 2"]:
    """How far, down and right, each pixel of a canvas with that border lies from each pixel of the picture
    inside it.

    >>> offsets(1, 2)[0].tolist()
    [[0.0, 0.0], [0.0, 1.0]]
    """

    def grid(start: int, down: int, right: int) -> Tensor:
        lines = (torch.arange(start, start + size, dtype=dtype, device=device) for size in (down, right))
        return torch.cartesian_prod(*lines).to(dtype or torch.get_default_dtype()).reshape(-1, 2)

    return grid(-border, h + 2 * border, w + 2 * border) - grid(0, h, w)[:, None]


def as_attention(conv: nn.Conv2d, *, sharpness: float | int | None = None) -> PixelAttention:
    """The attention layer that computes what `conv` does: a head for each of the kernel's K · K taps.

    The sharper, the nearer; by default the weight on the nearest wrong pixel is the square of the smallest
    number that still counts (`sharpness = -2 ln eps`: 32 in float32, 72 in float64). Raises TypeError for
    another layer, ValueError where the kernel is not square and odd, the stride not 1, the padding not K // 2
    zeros, and for dilation, groups, or a sharpness that is not positive.
    """
    taps = _taps(conv)
    sharpness = -2 * math.log(torch.finfo(taps.dtype).eps) if sharpness is None else sharpness
    require.number(above=0, sharpness=sharpness)
    places = _places(conv)
    near = Near(places, places.new_full((len(places),), sharpness))
    return PixelAttention(near, taps, _bias(conv), border=conv.kernel_size[0] // 2)


def with_few_heads(conv: nn.Conv2d) -> PixelAttention:
    """The same convolution with r + 1 heads, or K · K if those are fewer; r is the rank of the taps: the
    table (K · K, c_out · c_in).

    A head may spread its weight over several places: any shares that are not negative and sum to 1. A term of
    the table's singular value decomposition, shares times one matrix, has shares of both signs. So each term
    gets a constant added, until none is negative, and one more head, which looks everywhere alike, takes all
    the constants off. A kernel with one channel in and out (r = 1) needs two heads, or one where all its taps
    have one sign. Scores are a number for each offset here (a table, not the quadratic encoding).
    Raises as `as_attention` does.
    """
    taps, places = _taps(conv), _places(conv)
    left, strength, right = torch.linalg.svd(taps.flatten(1), full_matrices=False)
    tiny = torch.finfo(taps.dtype).eps * max(taps.flatten(1).shape)  # as torch.linalg.matrix_rank counts
    even = taps.new_full((len(taps),), 1 / len(taps))
    constant, shares, values = torch.zeros_like(taps[0]), [], []
    for column, size, row in zip(left.T, strength, right, strict=True):
        if size <= tiny * strength.max() or not size:
            continue
        matrix = size * row.reshape(taps.shape[1:])
        if column.sum() < 0:
            column, matrix = -column, -matrix
        if column.min() < -tiny:
            constant = constant + column.min() * len(taps) * matrix
            column = column - column.min()
        column = column.clamp(min=0)
        shares.append(column / column.sum())
        values.append(column.sum() * matrix)
    if constant.any() or not shares:  # no share at all: a kernel of zeros
        shares, values = [*shares, even], [*values, constant]
    if len(shares) > len(taps):  # nothing saved: a head for each tap
        shares, values = list(torch.eye(len(taps)).to(taps)), list(taps)
    table, values = torch.stack(shares).log(), torch.stack(values)

    def logits(d: Float[Tensor, "n m 2"]) -> Float[Tensor, "heads n m"]:
        here = (d[..., None, :] == places.to(d)).all(-1)  # (n, m, taps)
        found = torch.full((len(table), *d.shape[:2]), -torch.inf, dtype=d.dtype, device=d.device)
        for tap in range(len(places)):
            found = torch.where(here[..., tap], table.to(d)[:, tap, None, None], found)
        return found

    return PixelAttention(logits, values, _bias(conv), border=conv.kernel_size[0] // 2)


def receptive_field(
    layer: Callable[[Tensor], Tensor], x: Float[Tensor, "b c_in h w"], pixel: tuple[int, int]
) -> Float[Tensor, "h w"]:
    """How strongly each input pixel moves the output at one pixel: the norm of the gradient, over all
    channels and pictures.

    0 is a pixel that the output does not see. `layer` keeps height and width. An output's channels are summed
    with random signs, so that they do not cancel out.
    Raises TypeError for what is no tensor, ValueError for a pixel outside of the picture, and where the
    output has another height or width.
    """
    if not isinstance(x, Tensor) or x.ndim != 4:
        got = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
        raise TypeError(f"x must be a tensor of pictures (b, channels, height, width), got {got}")
    h, w = x.shape[-2:]
    whole = isinstance(pixel, tuple) and [type(place) for place in pixel] == [int, int]
    if not (whole and 0 <= pixel[0] < h and 0 <= pixel[1] < w):
        raise ValueError(
            f"pixel must be (down, right) in the picture of {h} x {w}, counted from 0, got {pixel!r}"
        )
    down, right = pixel
    x = x.detach().clone().requires_grad_()
    output = layer(x)
    if output.shape[-2:] != (h, w):
        raise ValueError(f"layer must keep the size {h} x {w}, got {tuple(output.shape)}; pad it")
    there = output[..., down, right]
    signs = torch.randn(there.shape, generator=torch.Generator("cpu").manual_seed(0), device="cpu").to(there)
    if not there.requires_grad:  # the layer does not look at its input
        return x.new_zeros(h, w)
    (gradient,) = torch.autograd.grad((there * signs).sum(), x, materialize_grads=True)
    return gradient.square().sum((0, 1)).sqrt()


def _taps(conv: nn.Conv2d) -> Float[Tensor, "taps c_out c_in"]:
    """The kernel's matrices, row by row of the kernel, after a look at the layer."""
    if not isinstance(conv, nn.Conv2d):
        raise TypeError(f"conv must be a torch.nn.Conv2d, got {type(conv).__name__}")
    k, other = conv.kernel_size[0], conv.kernel_size[1]
    if k != other or not k % 2:
        raise ValueError(
            f"the kernel must be square and odd, so that it has a middle, got {k} x {other}; use"
            " kernel_size=3"
        )
    expected = {"stride": (1, 1), "dilation": (1, 1), "groups": 1, "padding_mode": "zeros"}
    for name, value in expected.items():
        if getattr(conv, name) != value:
            raise ValueError(f"conv must have {name}={value!r}, got {getattr(conv, name)!r}")
    if conv.padding not in ("same", (k // 2, k // 2)):
        raise ValueError(f"conv must have padding={k // 2} for its kernel of {k} x {k}, got {conv.padding!r}")
    return conv.weight.detach().clone().flatten(2).movedim(-1, 0)


def _places(conv: nn.Conv2d) -> Float[Tensor, "taps 2"]:
    """Where each tap looks, down and right of the middle."""
    reach = torch.arange(conv.kernel_size[0], device=conv.weight.device) - conv.kernel_size[0] // 2
    return torch.cartesian_prod(reach, reach).reshape(-1, 2).to(conv.weight)


def _bias(conv: nn.Conv2d) -> Float[Tensor, " c_out"] | None:
    return None if conv.bias is None else conv.bias.detach().clone()


def _check_image(x: Tensor, values: Tensor) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(
            f"x must be a tensor of images, got {type(x).__name__}; make one with torch.tensor(...)"
        )
    if x.ndim != 4 or x.shape[1] != values.shape[-1] or not x[0, 0].numel():
        raise ValueError(
            f"x must have shape (b, {values.shape[-1]}, height, width), got {tuple(x.shape)}; a single image"
            " is x[None]"
        )
    if (x.dtype, x.device) != (values.dtype, values.device):
        raise ValueError(
            f"x is {x.dtype} on {x.device}, the layer {values.dtype} on {values.device}; convert one:"
            " x.to(layer.values)"
        )
