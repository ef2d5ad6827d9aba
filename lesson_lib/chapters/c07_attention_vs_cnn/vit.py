"""Two ways to see a picture: a Vision Transformer, whose patches are tokens, and a small convolutional
network beside it.

    patches = Conv2d(c_in, d_model, kernel_size=patch, stride=patch)      a patch's pixels times one matrix: a
                                                                          token
    tokens  = [class token, patches] + learned positions                  through a pre-norm encoder
    logits  = Linear(class token)

The network is conv 3 x 3, batch norm, rectifier, with max pooling between, the mean over all places, and a
linear layer. As in the paper: class token, learned positions in one dimension, pre-norm, GELU. Departures
from it: no dropout, no biases in attention, no pre-training, pictures of tens of pixels, patches of a few
pixels.
Source: Dosovitskiy et al. 2020, arXiv:2010.11929.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.blocks import Encoder, Stacked
from lesson_lib.positions import Learned


class VitOutput(NamedTuple):
    """Logits, and each layer's weights: a list of (b, h, n+1, n+1); token 0 is the class token, then patches
    row by row."""

    logits: Float[Tensor, "b classes"]
    weights: list[Float[Tensor, "b h tokens tokens"]]


class VisionTransformer(nn.Module):
    """Logits (b, n_classes) of square pictures (b, c_in, side, side): patches are tokens, a class token
    gathers the answer.

    Parameters: (c_in · patch² + 1) · d_model for the patches, (n + 2) · d_model for positions and class
    token, an Encoder's, and (d_model + 1) · n_classes. Raises ValueError where side is no multiple of patch,
    d_model none of n_heads, or a count is less than 1.
    """

    def __init__(
        self,
        side: int,
        patch: int,
        n_classes: int,
        *,
        c_in: int = 1,
        d_model: int = 48,
        n_layers: int = 3,
        n_heads: int = 4,
        d_inner: int = 96,
    ) -> None:
        super().__init__()
        require.whole(side=side, patch=patch, n_classes=n_classes, c_in=c_in, d_model=d_model)
        if side % patch:
            raise ValueError(
                f"side must be a multiple of patch, got {side} and {patch}; cut or pad the picture"
            )
        self.side, self.grid = side, (side // patch, side // patch)
        self.patches = nn.Conv2d(c_in, d_model, patch, stride=patch)
        self.class_token = nn.Parameter(torch.zeros(d_model))
        self.positions = Learned(self.grid[0] * self.grid[1] + 1, d_model)
        self.encoder = Encoder(
            n_layers, d_model, n_heads, d_inner, dropout=0.0, norm_first=True, activation=F.gelu
        )
        self.classify = nn.Linear(d_model, n_classes)

    def forward(self, x: Float[Tensor, "b c_in side side"]) -> Float[Tensor, "b classes"]:
        """Logits, from the class token."""
        return self.classify(self.stack(x).output[:, 0])

    def look(self, x: Float[Tensor, "b c_in side side"]) -> VitOutput:
        """The same logits, and where every token looked in each layer and head."""
        stacked = self.stack(x, weights=True)
        return VitOutput(self.classify(stacked.output[:, 0]), stacked.weights)

    def features(self, x: Float[Tensor, "b c_in side side"]) -> Float[Tensor, "b d_model rows columns"]:
        """The patches' tokens as they enter the last layer, each in its place: what the class token reads
        there.

        As they leave it they are read by nobody.
        """
        return self.stack(x, weights=True).stream[-2][:, 1:].mT.unflatten(-1, self.grid)

    def stack(self, x: Float[Tensor, "b c_in side side"], *, weights: bool = False) -> Stacked:
        """What the encoder leaves: all tokens; and each layer's weights and the residual stream if they are
        asked for."""
        _pictures(x, self.patches, self.side)
        tokens = self.patches(x).flatten(2).mT
        tokens = torch.cat([self.class_token.expand(len(x), 1, -1), tokens], 1)
        return self.encoder(tokens + self.positions(tokens.shape[1]), weights=weights)


class ConvNet(nn.Module):
    """Logits (b, n_classes) of pictures (b, c_in, h, w) of any size: a 3 x 3 convolution, batch norm and
    rectifier for each entry of `channels`.

    Between them height and width are halved by max pooling, but at most twice, so that features stand a few
    pixels apart; behind them stands the mean over all places. Parameters: 9 · c · c' + 2 · c' for each layer
    from c to c' channels, and (c + 1) · n_classes.
    Raises ValueError where a count is less than 1, or there are no channels.
    """

    def __init__(self, n_classes: int, channels: tuple[int, ...], *, c_in: int = 1) -> None:
        super().__init__()
        if not isinstance(channels, (tuple, list)) or not channels:
            raise ValueError(
                f"channels must name the width of each layer, such as (16, 32), got {channels!r}"
            )
        require.whole(n_classes=n_classes, c_in=c_in, **{f"channels[{i}]": c for i, c in enumerate(channels)})
        layers: list[nn.Module] = []
        for i, (before, after) in enumerate(zip((c_in, *channels[:-1]), channels, strict=True)):
            conv = nn.Conv2d(before, after, 3, padding=1, bias=False)
            layers += [conv, nn.BatchNorm2d(after), nn.ReLU()]
            if i < min(2, len(channels) - 1):
                layers.append(nn.MaxPool2d(2))
        self.layers = nn.Sequential(*layers)
        self.classify = nn.Linear(channels[-1], n_classes)

    def forward(self, x: Float[Tensor, "b c_in h w"]) -> Float[Tensor, "b classes"]:
        """Logits, from the mean of the last map."""
        return self.classify(self.features(x).mean((-2, -1)))

    def features(self, x: Float[Tensor, "b c_in h w"]) -> Float[Tensor, "b c rows columns"]:
        """The last map: a vector for each place."""
        _pictures(x, self.layers[0])
        return self.layers(x)


def patchify(x: Float[Tensor, "b c h w"], patch: int) -> Float[Tensor, "b n c_p_p"]:
    """The patches of each picture, row by row, each as one row of numbers: channel by channel, and inside of
    a channel row by row.

    A strided convolution is a product with these rows: `patchify(x, p) @ conv.weight.flatten(1).T +
    conv.bias`.
    Raises TypeError for what is no tensor, ValueError for another shape and where height or width is no
    multiple of `patch`.

    >>> patchify(torch.arange(8.0).reshape(1, 1, 2, 4), patch=2).tolist()
    [[[0.0, 1.0, 4.0, 5.0], [2.0, 3.0, 6.0, 7.0]]]
    """
    require.whole(patch=patch)
    _four_axes(x)
    h, w = x.shape[-2:]
    if h % patch or w % patch or not x.numel():
        raise ValueError(
            f"height and width must be multiples of patch = {patch}, got {h} x {w}; cut or pad the picture"
        )
    b, c, rows, columns = len(x), x.shape[1], h // patch, w // patch
    parts = x.reshape(b, c, rows, patch, columns, patch)
    return parts.permute(0, 2, 4, 1, 3, 5).reshape(b, rows * columns, c * patch**2)


def attention_distance(
    weights: Float[Tensor, "b h n m"], grid: tuple[int, int], patch: int
) -> Float[Tensor, " h"]:
    """How far each head looks, in pixels: the distance from a query's patch to a key's, weighted, the mean
    over queries and pictures.

    `weights` are those between patches, `look(x).weights[layer][:, :, 1:, 1:]`; each row is divided by its
    sum, for the class token's share is gone. Between 0 (each patch looks at itself) and the diagonal. `grid`
    is (rows, columns) of patches. Raises ValueError where it does not hold as many patches as there are
    weights, and for weights with another number of axes.
    Source: Dosovitskiy et al. 2020, arXiv:2010.11929, "mean attention distance".
    """
    require.whole(patch=patch)
    if not isinstance(weights, Tensor) or weights.ndim != 4:
        got = tuple(weights.shape) if isinstance(weights, Tensor) else type(weights).__name__
        raise ValueError(
            f"weights must be a tensor (b, h, n, n) of one layer, got {got}; use look(x).weights[0][:, :,"
            " 1:, 1:]"
        )
    if not isinstance(grid, tuple) or len(grid) != 2:
        raise ValueError(f"grid must be (rows, columns) of patches, got {grid!r}; use model.grid")
    rows, columns = grid
    if weights.shape[-2:] != (rows * columns, rows * columns):
        raise ValueError(
            f"a grid of {rows} x {columns} patches needs weights (..., {rows * columns}, {rows * columns}),"
            f" got {tuple(weights.shape)}; leave the class token out: weights[:, :, 1:, 1:]"
        )
    lines = (torch.arange(size, dtype=weights.dtype, device=weights.device) for size in grid)
    places = patch * torch.cartesian_prod(*lines).reshape(-1, 2)
    apart = (places[:, None] - places).norm(dim=-1)
    return ((weights * apart).sum(-1) / weights.sum(-1)).mean((0, 2))


def seen(
    model: VisionTransformer | ConvNet, x: Float[Tensor, "c_in h w"], place: tuple[int, int]
) -> Float[Tensor, "h w"]:
    """How strongly each pixel of one picture moves the features at one place: the norm of their gradient,
    over features and channels.

    `place` is (row, column) in `model.features`: of a patch before the last layer, or of the last map. 0 is a
    pixel that it does not see. The whole Jacobian, one copy of the picture for each feature; in eval mode, so
    that no other picture counts.
    Raises ValueError for another shape, and for a place outside of the map.
    """
    if not isinstance(x, Tensor) or x.ndim != 3:
        got = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"x must be one picture (channels, h, w), got {got}; of a batch take x[0]")
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            _, d, rows, columns = model.features(x[None]).shape
        if not (
            isinstance(place, tuple) and len(place) == 2 and 0 <= place[0] < rows and 0 <= place[1] < columns
        ):
            raise ValueError(
                f"place must be (row, column) in a map of {rows} x {columns}, from 0, got {place!r}"
            )
        copies = x.detach().expand(d, *x.shape).clone().requires_grad_()
        there = model.features(copies)[:, :, place[0], place[1]]
        (gradient,) = torch.autograd.grad(there.diagonal().sum(), copies)
    finally:
        model.train(training)
    return gradient.square().sum((0, 1)).sqrt()


def loss(model: nn.Module, batch: tuple[Float[Tensor, "b c h w"], Int[Tensor, " b"]]) -> Float[Tensor, ""]:
    """Mean cross-entropy of the labels of a batch (pictures, labels)."""
    return F.cross_entropy(model(batch[0]), batch[1])


@torch.no_grad()
def right(model: nn.Module, x: Float[Tensor, "b c h w"], label: Int[Tensor, " b"]) -> Bool[Tensor, " b"]:
    """Which pictures the model names rightly, in eval mode and 500 at a time."""
    model.eval()
    return torch.cat([model(some).argmax(-1) for some in x.split(500)]) == label


def _pictures(x: Any, first: nn.Conv2d, side: int | None = None) -> None:
    _four_axes(x)
    size = ("height", "width") if side is None else (side, side)
    if x.shape[1] != first.in_channels or (side is not None and x.shape[2:] != size) or not x.numel():
        raise ValueError(
            f"x must have shape (b, {first.in_channels}, {size[0]}, {size[1]}), got {tuple(x.shape)}; a"
            " single picture is x[None]"
        )
    if not x.is_floating_point():
        raise TypeError(f"x must be a tensor of floats, got {x.dtype}; use x.float()")


def _four_axes(x: Any) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(
            f"x must be a tensor of pictures (b, channels, height, width), got {type(x).__name__}"
        )
    if x.ndim != 4:
        raise ValueError(
            f"x must have shape (b, channels, height, width), got {tuple(x.shape)}; for grey pictures (b, h,"
            " w) use x[:, None]"
        )
