"""Recurrent Models of Visual Attention (RAM) in miniature: look at a few small places of a picture, one after
the other.

A retina brings a patch that is sharp in the middle and coarse around it. A recurrent core remembers. Two
read-outs say what the picture shows, and where to look next. A crop is made of whole pixels: move its centre
by a hair and nothing changes, or a whole column does. So no gradient reaches the place through the crop;
places are learned from reward alone.

As in the paper: the retina with patches twice as wide from scale to scale; what and where side by side in the
glimpse network; a normal distribution of fixed width about the location network's mean; a loss and a reward
after the last glimpse only, the reward 1 if the answer is right and 0 otherwise; a learned baseline; loss and
REINFORCE simply added. Departures from the paper: a GRU cell as the core (the paper has a rectifier layer,
here `core="rectifier"`); the policy's gradient runs on into core and retina (the paper's REINFORCE equation
has it so, its sentence on classifiers, "the location network is always trained with REINFORCE", may mean the
location network only, here `into_core=False`); the first glimpse is always at the centre (here also
`start="random"`); tanh keeps the mean within REACH; widths of 128; Adam, and batches of 256.
Source: Mnih, Heess, Graves & Kavukcuoglu 2014, arXiv:1406.6247; REINFORCE: Williams 1992.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.data.digits import CLASSES, Placed, centre

POLICIES = ("learned", "random", "centre", "told")
REACH = 2 / 3  # the eye stays within: on a canvas of 24 pixels, wherever a patch of 8 lies wholly on it


class Glimpses(NamedTuple):
    """What a model made of t glimpses at each canvas. The first place is not its choice, so the last two have
    t - 1 columns."""

    logits: Float[Tensor, "b t classes"]  # after each glimpse
    places: Float[Tensor, "b t 2"]  # (x, y) of each glimpse
    log_density: Float[Tensor, "b chosen"]  # of the places chosen, but for a constant
    expected: Float[Tensor, "b chosen"]  # the baseline: the reward that is expected before looking there

    def probabilities(self) -> Float[Tensor, "b t classes"]:
        """Of the digits, after each glimpse."""
        return F.log_softmax(self.logits, -1).exp()


def glimpse(
    canvas: Float[Tensor, "b height width"], place: Float[Tensor, "b 2"], size: int
) -> Float[Tensor, "b {size} {size}"]:
    """Square patches of `size` pixels, one around a place of each canvas; zeros beyond its edges.

    A place is (x, y), x to the right, y down; -1 and 1 are the outer edges of the canvas. So the centre of
    pixel j lies at (2j + 1) / width - 1. The patch starts at the whole pixel nearest to (x + 1) / 2 * width -
    size / 2, of two equally near ones at the right (lower) one. It moves in jumps of a pixel, and has no
    gradient with respect to `place`.
    Raises TypeError or ValueError where an argument does not fit, and where a place is off its canvas.

    >>> canvas = torch.tensor([[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]])
    >>> glimpse(canvas, torch.tensor([[0.0, 2 / 3]]), 3).tolist()
    [[[3.0, 4.0, 5.0], [6.0, 7.0, 8.0], [0.0, 0.0, 0.0]]]
    """
    _check(canvas, place, size)
    edge = (size + 1) // 2
    padded = F.pad(canvas, (edge, edge, edge, edge))
    column, row = (first_pixel(place, canvas.shape[1:], size) + edge).unbind(-1)
    which = torch.arange(len(canvas), device=canvas.device)
    return padded.unfold(1, size, 1).unfold(2, size, 1)[which, row, column]


def first_pixel(
    place: Float[Tensor, "*b 2"], shape: torch.Size | tuple[int, int], size: int
) -> Int[Tensor, "*b 2"]:
    """Column and row of the top left pixel of a patch about a place, on a canvas of that shape (height,
    width).

    Negative, or the last ones, where the patch reaches beyond the canvas.

    >>> first_pixel(torch.tensor([0.0, 0.5]), (24, 24), 8).tolist()
    [8, 14]
    """
    height, width = shape
    return torch.floor((place + 1) / 2 * place.new_tensor([width, height]) - size / 2 + 0.5).long()


def retina(
    canvas: Float[Tensor, "b height width"], place: Float[Tensor, "b 2"], size: int, n_scales: int
) -> Float[Tensor, "b n_scales {size} {size}"]:
    """What the eye sees: patches `size`, 2 `size`, 4 `size` ... wide about one place, each averaged down to
    `size` by `size`.

    Raises ValueError where `size` is odd (patches would not share a centre), and where `n_scales` is less
    than 1.
    """
    if n_scales < 1:
        raise ValueError(f"n_scales must be at least 1, got {n_scales}; 1 is the sharp patch alone")
    if size % 2:
        raise ValueError(f"size must be even, so that all patches share a centre, got {size}")
    widths = [size * 2**k for k in range(n_scales)]
    widest = glimpse(canvas, place, widths[-1])
    margins = [(widths[-1] - width) // 2 for width in widths]
    patches = [widest[:, m : m + w, m : m + w] for m, w in zip(margins, widths, strict=True)]
    return torch.stack([F.avg_pool2d(patch, 2**k) for k, patch in enumerate(patches)], 1)


class Rectifier(nn.Module):
    """The paper's core, relu(W state + x)."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.remember = nn.Linear(d, d)

    def forward(self, x: Float[Tensor, "b d"], state: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
        """The next state."""
        return F.relu(self.remember(state) + x)


class Glimpser(nn.Module):
    """Looks at `n_glimpses` places of each canvas, and says after each what the canvas shows.

    `policy` says who moves the eye: "learned", the location network; "random", chance, evenly within REACH;
    "centre", nobody; "told", somebody who knows where the digit is. All else is the same. While it trains, a
    learned place is drawn from a normal distribution of deviation `std` about the location network's mean; in
    `eval()` it is the mean.
    Raises ValueError for an unknown policy, core or start.
    """

    def __init__(
        self,
        policy: str = "learned",
        *,
        patch: int = 8,
        n_scales: int = 2,
        n_glimpses: int = 4,
        d: int = 128,
        std: float = 0.3,
        core: str = "gru",
        into_core: bool = True,
        start: str = "centre",
    ) -> None:
        super().__init__()
        require.one_of(POLICIES, policy=policy)
        require.one_of(("gru", "rectifier"), core=core)
        require.one_of(("centre", "random"), start=start)
        if n_glimpses < 1:
            raise ValueError(f"n_glimpses must be at least 1, got {n_glimpses}; the first is at the centre")
        self.policy, self.start, self.into_core = policy, start, into_core
        self.patch, self.n_scales, self.n_glimpses, self.std = patch, n_scales, n_glimpses, std
        self.what, self.where = nn.Linear(n_scales * patch**2, d), nn.Linear(2, d)
        self.mix_what, self.mix_where = nn.Linear(d, d), nn.Linear(d, d)
        self.core = nn.GRUCell(d, d) if core == "gru" else Rectifier(d)
        self.classify, self.locate, self.expect = nn.Linear(d, CLASSES), nn.Linear(d, 2), nn.Linear(d, 1)

    def forward(
        self,
        canvas: Float[Tensor, "b height width"],
        told: Float[Tensor, "b 2"] | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> Glimpses:
        """Look at each canvas; `told` are the places for the policy "told". Chance comes from a CPU generator
        (default: torch's).

        Raises ValueError where the policy is "told" and nobody tells.
        """
        if self.policy == "told" and told is None:
            raise ValueError(
                'the policy "told" needs the places of the digits; give told=centre(corner, size)'
            )
        b = len(canvas)
        place = self._chance(canvas, generator) if self.start == "random" else canvas.new_zeros(b, 2)
        state = canvas.new_zeros(b, self.classify.in_features)
        states, places, densities = [], [], []
        for _ in range(self.n_glimpses):
            state = self.core(self.see(canvas, place), state)
            states.append(state)
            places.append(place)
            place, density = self._move(state, told, generator)
            densities.append(density)
        states = torch.stack(states, 1)
        return Glimpses(
            self.classify(states),
            torch.stack(places, 1),
            torch.stack(densities, 1)[:, :-1],  # nobody looks at the last place
            self.expect(states[:, :-1].detach())[..., 0],
        )

    def see(
        self, canvas: Float[Tensor, "b height width"], place: Float[Tensor, "b 2"]
    ) -> Float[Tensor, "b d"]:
        """The glimpse network: what the retina brings, and where it looked."""
        what = F.relu(self.what(retina(canvas, place, self.patch, self.n_scales).flatten(1)))
        where = F.relu(self.where(place))
        return F.relu(self.mix_what(what) + self.mix_where(where))

    def _move(
        self, state: Tensor, told: Tensor | None, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor]:
        """The next place, and the log density of choosing it (0 where nothing is chosen)."""
        if self.policy == "random":
            return self._chance(state, generator), state.new_zeros(len(state))
        if self.policy != "learned":
            place = state.new_zeros(len(state), 2) if self.policy == "centre" else told
            return place, state.new_zeros(len(state))
        mean = REACH * torch.tanh(self.locate(state if self.into_core else state.detach()))
        place = mean.detach()
        if self.training:
            noise = torch.randn(place.shape, generator=generator, device="cpu").to(place.device)
            place = place + self.std * noise
        density = -(place - mean).square().sum(-1) / (2 * self.std**2)
        return place.clamp(-1, 1), density

    def _chance(self, like: Tensor, generator: torch.Generator | None) -> Tensor:
        """Places drawn evenly within REACH."""
        draw = torch.rand(len(like), 2, generator=generator, device="cpu")
        return (REACH * (2 * draw - 1)).to(like.device)


def reinforce(
    log_density: Float[Tensor, "b chosen"],
    reward: Float[Tensor, "b chosen"],
    expected: Float[Tensor, "b chosen"] | float = 0.0,
) -> Float[Tensor, ""]:
    """A number whose gradient is REINFORCE's estimate of the gradient of -E[reward]: -mean((reward -
    expected) log density).

    The number itself means nothing. `expected`, the baseline, changes the estimate's spread but not its mean,
    as long as it was made before the place was drawn.
    Source: Williams 1992; with this baseline, Mnih et al. 2014.
    """
    advantage = reward - expected
    advantage = advantage.detach()
    return -(advantage * log_density).mean()


def rewards(
    looked: Glimpses, label: Tensor, *, reward: str = "right", at: str = "end"
) -> Float[Tensor, "b chosen"]:
    """The reward of each place chosen: of the last guess (`at="end"`), or of the guess that follows it
    (`at="each"`).

    "right" is 1 for a right guess and 0 for a wrong one; "probability" is the probability given to the true
    digit.
    Raises ValueError for another name.
    """
    require.one_of(("right", "probability"), reward=reward)
    require.one_of(("end", "each"), at=at)
    logits = looked.logits.detach()[:, 1:]
    if reward == "right":
        value = (logits.argmax(-1) == label[:, None]).float()
    else:
        log_p = F.log_softmax(logits, -1)
        value = log_p.gather(2, label[:, None, None].expand(-1, log_p.shape[1], 1))[..., 0].exp()
    return value if at == "each" else value[:, -1:].expand(-1, value.shape[1])


def loss(
    model: nn.Module,
    batch: Placed,
    *,
    every_glimpse: bool = False,
    reward: str = "right",
    at: str = "end",
    baseline: bool = True,
) -> Float[Tensor, ""]:
    """Cross-entropy of the last guess (or of every guess), plus REINFORCE and the baseline's squared error
    where places are learned."""
    looked = model(batch.canvas, centre(batch.corner, batch.canvas.shape[-1]))
    guesses = looked.logits if every_glimpse else looked.logits[:, -1:]
    value = F.cross_entropy(guesses.flatten(0, 1), batch.label.repeat_interleave(guesses.shape[1]))
    if model.policy != "learned" or model.n_glimpses == 1:
        return value
    earned = rewards(looked, batch.label, reward=reward, at=at)
    places = reinforce(looked.log_density, earned, looked.expected if baseline else 0.0)
    return value + places + F.mse_loss(looked.expected, earned)


def look(model: nn.Module, batch: Placed, *, generator: torch.Generator | None = None) -> Glimpses:
    """What the model makes of a batch, without gradients."""
    with torch.no_grad():
        return model(batch.canvas, centre(batch.corner, batch.canvas.shape[-1]), generator=generator)


def right(looked: Glimpses, batch: Placed) -> Bool[Tensor, "b t"]:
    """Which guesses are right, after each glimpse."""
    return looked.logits.argmax(-1) == batch.label[:, None]


def _check(canvas: Tensor, place: Tensor, size: int) -> None:
    """Raises where the arguments of `glimpse` do not fit."""
    for name, x, shape in (("canvas", canvas, "(b, height, width)"), ("place", place, "(b, 2)")):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name} must be a tensor {shape}, got {type(x).__name__}")
    if canvas.ndim != 3 or place.shape != (len(canvas), 2):
        raise ValueError(
            f"canvas must be (b, height, width) and place (b, 2), got {tuple(canvas.shape)} and"
            f" {tuple(place.shape)}; one canvas is canvas[None], one place place[None]"
        )
    if not isinstance(size, int) or size < 1:
        raise ValueError(f"size must be a whole number of pixels, at least 1, got {size!r}")
    if not (place.abs() <= 1).all():
        raise ValueError(
            f"place must lie on the canvas, -1 to 1, got {place.min().item():.3g} to"
            f" {place.max().item():.3g}; use place.clamp(-1, 1)"
        )
