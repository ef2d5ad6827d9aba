"""A small SAGAN: attention between the places of a feature map, in a generator and in a discriminator of
pictures.

    beta_ij = softmax over j of (query of place i) · (key of place j),    y_i = x_i + gamma · sum over j of
                                                                          beta_ij value_j

The query, key and value of a place are matrices times its channels, which is what a 1 x 1 convolution
computes. There are no positions: permute the places, and the outputs are permuted alike. gamma starts at 0,
so that a network begins with what its convolutions see.

As published: dot products without 1/sqrt(d_k); queries and keys of an eighth of the channels; gamma; spectral
normalisation of all layers of generator and discriminator; batch normalisation in the generator; the hinge
loss; a discriminator that sums over places. Departures: pictures of 8 x 24 pixels, nobody says which class to
make, so batch normalisation is not conditional either; no residual blocks; values are one matrix (the paper's
is a product of two, through fewer channels); noise may lie on a map, see `noise`; and the discriminator also
sees how much the pictures of a batch differ at each place (Karras et al. 2017, arXiv:1710.10196): without
that, every training tried here ended in one picture for all noise.
Source: Zhang, Goodfellow, Metaxas & Odena 2018, arXiv:1805.08318; spectral normalisation: Miyato et al. 2018,
arXiv:1802.05957.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

from lesson_lib import require
from lesson_lib.attention import attend
from lesson_lib.scores import dot

MIDDLES = ("nothing", "attention", "convolution", "wide convolution")
START = (2, 6)  # places of the noise
GRID = (4, 12)  # places of the map in the middle, where attention is
SIZE = (8, 24)  # pixels of a picture
REACH = (
    8  # places from one half of the grid to the same place of the other: how far the wide convolution sees
)


class Mixed(NamedTuple):
    """What a block makes of a feature map; and where each place looked, where it is attention and was
    asked."""

    output: Float[Tensor, "b c h w"]
    weights: Float[Tensor, "b n n"] | None


class GeneratedImages(NamedTuple):
    """Pictures that a generator made, brightness 0 to 1; and where each place of its middle map looked, if it
    was asked."""

    canvas: Float[Tensor, "b height width"]
    weights: Float[Tensor, "b n n"] | None


class Maps(NamedTuple):
    """Pictures, and for each query place where it looked: a map of weights over the places, which sum
    to 1."""

    canvas: Float[Tensor, "b height width"]
    weights: Float[Tensor, "b queries rows columns"]


class SelfAttention2d(nn.Module):
    """Every place of a feature map, plus gamma times what it finds at all places, itself included.

    `d_k` is the width of queries and keys, by default an eighth of the channels, at least 1. Parameters: 2
    d_k (c + 1) + c (c + 1) + 1.
    Raises ValueError where a width is less than 1.
    """

    def __init__(self, channels: int, *, d_k: int | None = None) -> None:
        super().__init__()
        require.whole(channels=channels)
        d_k = max(1, channels // 8) if d_k is None else d_k
        require.whole(d_k=d_k)
        self.query, self.key = nn.Conv2d(channels, d_k, 1), nn.Conv2d(channels, d_k, 1)
        self.value = nn.Conv2d(channels, channels, 1)
        self.gamma = nn.Parameter(torch.zeros(()))

    def forward(self, x: Float[Tensor, "b c h w"], *, weights: bool = False) -> Mixed:
        """`x + gamma · attended`, and the weights (b, h · w, h · w), places row by row, if asked for."""
        _image(x, self.value.in_channels)
        query, key, value = (layer(x).flatten(-2).mT for layer in (self.query, self.key, self.value))
        found = attend(query, key, value, score=dot, weights=weights)
        return Mixed(x + self.gamma * found.output.mT.unflatten(-1, x.shape[-2:]), found.weights)


class Convolved(nn.Module):
    """Every place of a feature map, plus gamma times what two convolutions find around it: SelfAttention2d's
    place, without attention.

    "convolution" looks at 3 x 3 places, "wide convolution" along the row, REACH places to both sides; both
    have about as many parameters as SelfAttention2d has.
    """

    def __init__(self, channels: int, *, wide: bool) -> None:
        super().__init__()
        narrow = max(1, channels // 8)
        if wide:
            self.around = nn.Conv2d(
                channels, channels, (1, 2 * REACH + 1), padding=(0, REACH), groups=channels, bias=False
            )
        else:
            self.around = nn.Conv2d(channels, narrow, 3, padding=1)
        self.mix = nn.Conv2d(self.around.out_channels, channels, 1)
        self.gamma = nn.Parameter(torch.zeros(()))

    def forward(self, x: Float[Tensor, "b c h w"], *, weights: bool = False) -> Mixed:
        """`x + gamma · convolved`; a convolution has no weights to show."""
        return Mixed(x + self.gamma * self.mix(F.relu(self.around(x))), None)


class Generator(nn.Module):
    """Pictures of 8 x 24 pixels from noise: convolutions at 2 x 6, 4 x 12 and 8 x 24 places, with a block in
    the middle.

    `middle` is one of MIDDLES. Each place has a dense layer of its own for its noise, which says which place
    it is.
    Raises ValueError for another middle.
    """

    def __init__(self, middle: str = "attention", *, channels: int = 32, d_z: int = 8) -> None:
        super().__init__()
        require.whole(channels=channels, d_z=d_z)
        _even(channels)
        self.d_z = d_z
        places = START[0] * START[1]
        # a matrix for each place
        self.start = nn.Conv1d(places * d_z, places * 2 * channels, 1, groups=places)
        self.coarse = nn.Sequential(
            nn.BatchNorm2d(2 * channels), nn.ReLU(), _step(2 * channels, 2 * channels)
        )
        self.first = _step(2 * channels, channels)
        self.middle = _middle(middle, channels)
        self.second = _step(channels, channels // 2)
        self.paint = nn.Conv2d(channels // 2, 1, 3, padding=1)
        _normalise(self)

    def forward(self, z: Float[Tensor, "b d_z h w"], *, weights: bool = False) -> GeneratedImages:
        """A picture for each map of noise, (b, d_z, 2, 6); and the weights of the attention, (b, 48, 48), if
        asked for."""
        _noise_shape(z, self.d_z)
        x = self.start(z.flatten(-2).mT.reshape(len(z), -1, 1)).view(len(z), START[0] * START[1], -1)
        x = self.coarse(x.mT.unflatten(-1, START))
        x = self.first(F.interpolate(x, scale_factor=2))
        x, table = _through(self.middle, x, weights)
        x = self.second(F.interpolate(x, scale_factor=2))
        return GeneratedImages(torch.sigmoid(self.paint(x))[:, 0], table)


class Discriminator(nn.Module):
    """A number for each picture, high for one that looks real: convolutions at 8 x 24, 4 x 12 and 2 x 6
    places, summed over places.

    A batch holds real pictures only or made ones only: its spread (the standard deviation over the batch,
    mean over the channels, at each place of the middle) is one more channel. Raises ValueError for another
    middle.
    """

    def __init__(self, middle: str = "attention", *, channels: int = 32) -> None:
        super().__init__()
        require.whole(channels=channels)
        _even(channels)
        self.fine = nn.Conv2d(1, channels // 2, 3, padding=1)
        self.first = nn.Conv2d(channels // 2, channels, 4, stride=2, padding=1)
        self.middle = _middle(middle, channels)
        self.second = nn.Conv2d(channels + 1, 2 * channels, 4, stride=2, padding=1)
        self.judge = nn.Linear(2 * channels, 1)
        _normalise(self)

    def forward(self, canvas: Float[Tensor, "b height width"]) -> Float[Tensor, " b"]:
        """Scores of pictures."""
        x = F.leaky_relu(self.fine(2 * canvas[:, None] - 1), 0.1)
        x, _ = _through(self.middle, F.leaky_relu(self.first(x), 0.1), False)
        spread = x.var(0, unbiased=False).add(1e-8).sqrt().mean(0)  # how much the batch differs at each place
        x = F.leaky_relu(self.second(torch.cat([x, spread.expand(len(x), 1, -1, -1)], 1)), 0.1)
        return self.judge(x.sum((-2, -1)))[:, 0]


def noise(
    batch: int, generator: torch.Generator, *, shared: bool = False, d_z: int = 8
) -> Float[Tensor, "b d_z h w"]:
    """Normal noise (batch, d_z, 2, 6), drawn with a CPU generator, on the CPU.

    Every place has its own noise, so that what two far places agree on must travel from one to the other.
    `shared=True` gives every place the same, as a dense layer behind one vector would: there, all places know
    everything from the start.
    Raises ValueError where a count is less than 1.
    """
    require.whole(batch=batch, d_z=d_z)
    if shared:
        return torch.randn(batch, d_z, 1, 1, generator=generator, device="cpu").repeat(1, 1, *START)
    return torch.randn(batch, d_z, *START, generator=generator, device="cpu")


def discriminator_loss(real: Float[Tensor, " b"], made: Float[Tensor, " b2"]) -> Float[Tensor, ""]:
    """Hinge loss: mean of max(0, 1 - score) of real pictures, plus mean of max(0, 1 + score) of those that
    were made.

    >>> discriminator_loss(torch.tensor([3.0, 0.5]), torch.tensor([-0.25])).item()
    1.0
    """
    return F.relu(1 - real).mean() + F.relu(1 + made).mean()


def generator_loss(made: Float[Tensor, " b"]) -> Float[Tensor, ""]:
    """Minus the mean score of the pictures that were made."""
    return -made.mean()


@torch.no_grad()
def maps(generator: Generator, z: Float[Tensor, "b d_z h w"], places: list[tuple[int, int]]) -> Maps:
    """Pictures from noise, and where each of the `places` (row, column on the grid of 4 x 12) looks; on the
    CPU.

    A place stands for 2 x 2 pixels. Raises ValueError where the generator has no attention, and for a place
    outside of the grid.
    """
    if not isinstance(generator.middle, SelfAttention2d):
        raise ValueError("this generator has no attention to draw; make it with Generator('attention')")
    rows, columns = GRID
    for place in places:
        if len(place) != 2 or not (0 <= place[0] < rows and 0 <= place[1] < columns):
            raise ValueError(
                f"a place is (row, column) on a grid of {rows} x {columns}, counted from 0, got {place}"
            )
    generator.eval()
    canvas, table = generator(z.to(generator.paint.bias.device), weights=True)
    asked = table[:, [row * columns + column for row, column in places]]
    return Maps(canvas.cpu(), asked.unflatten(-1, GRID).cpu())


def _step(c_in: int, c_out: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(c_in, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU())


def _middle(name: str, channels: int) -> nn.Module | None:
    require.one_of(MIDDLES, middle=name)
    if name == "nothing":
        return None
    return (
        SelfAttention2d(channels)
        if name == "attention"
        else Convolved(channels, wide=name == "wide convolution")
    )


def _through(middle: nn.Module | None, x: Tensor, weights: bool) -> Mixed:
    return Mixed(x, None) if middle is None else middle(x, weights=weights)


def _normalise(network: nn.Module) -> None:
    """Divide every layer's matrix by an estimate of its largest singular value."""
    for layer in list(network.modules()):
        if isinstance(layer, (nn.Conv1d, nn.Conv2d, nn.Linear)):
            spectral_norm(layer)


def _even(channels: int) -> None:
    if channels % 2:
        raise ValueError(
            f"channels must be an even number of at least 2, got {channels}; half of them see single pixels"
        )


def _image(x: Tensor, channels: int) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(
            f"x must be a tensor of feature maps, got {type(x).__name__}; make one with torch.tensor(...)"
        )
    if x.ndim != 4 or x.shape[1] != channels or not x.shape[-2] * x.shape[-1]:
        raise ValueError(
            f"x must have shape (b, {channels}, height, width), got {tuple(x.shape)}; a single map is x[None]"
        )


def _noise_shape(z: Tensor, d_z: int) -> None:
    if not isinstance(z, Tensor):
        raise TypeError(f"z must be a tensor of noise, got {type(z).__name__}; draw it with noise(...)")
    if z.shape[1:] != (d_z, *START):
        raise ValueError(
            f"z must have shape (b, {d_z}, {START[0]}, {START[1]}), got {tuple(z.shape)}; draw it with"
            " noise(...)"
        )
