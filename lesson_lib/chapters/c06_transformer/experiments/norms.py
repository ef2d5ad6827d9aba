"""LayerNorm beside BatchNorm over batch sizes, and norms behind or before the sub-layers over depth, on one
small task.

The task is the tagging of lesson 01, with one Transformer encoder. All sentences of a batch have the same
length, so that no padding enters BatchNorm's means. "batch" rows: both norms, two post-norm layers, batches
of 2 to 128 sentences, the same number of steps. "depth" rows: LayerNorm, 2 to 12 layers, post-norm and
pre-norm, with and without a warm-up of the learning rate; with it the rate rises for a tenth of the steps and
then falls with the root of the step, as published, without it, it starts at its largest value. Every rate is
trained on every seed; the rate to report is chosen by the VALIDATION sentences, seed by seed. Accuracy is the
share of right tags among the words of the classes `saw`, `watch` and `cut`, whose tag their neighbours
decide.
"""

from collections.abc import Callable
from functools import cache
from itertools import product
from operator import itemgetter

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lesson_lib import require, summary
from lesson_lib.blocks import BatchNorm, Encoder, LayerNorm, TokenEmbedding
from lesson_lib.data.tagging import AMBIGUOUS, CLASSES, PADDING, TAGS, VOCABULARY, Sentences
from lesson_lib.data.tagging import draw as draw_sentences
from lesson_lib.device import to_device
from lesson_lib.models import tagger
from lesson_lib.training import History, fit, warmup

RECIPE = {
    "sentences": {"training": 10_000, "validation": 2_000, "test": 4_000},
    "data_seed": 0,
    "d_model": 32,
    "n_heads": 4,
    "d_inner": 64,
    "batch": {
        "norms": ["layer", "batch"], "sizes": [2, 4, 8, 16, 32, 64, 128], "layers": 2, "steps": 1000,
        "rates": [3e-3, 1e-2, 3e-2],
    },
    "depth": {"layers": [2, 6, 12], "size": 32, "steps": 400, "rates": [3e-4, 1e-3, 3e-3, 1e-2, 3e-2]},
    "seeds": [0, 1, 2],
}  # fmt: skip
NORMS = {"layer": LayerNorm, "batch": BatchNorm}


class Tagger(nn.Module):
    """Scores of the tags from a Transformer encoder; `options` are Encoder's."""

    def __init__(self, n_layers: int, **options) -> None:
        super().__init__()
        d_model = RECIPE["d_model"]
        self.embed = TokenEmbedding(len(VOCABULARY), d_model, dropout=0.0)
        self.encoder = Encoder(
            n_layers, d_model, RECIPE["n_heads"], RECIPE["d_inner"], dropout=0.0, **options
        )
        self.read = nn.Linear(d_model, len(TAGS))

    def forward(self, words: Int[Tensor, "b n"]) -> Float[Tensor, "b n tag"]:
        """Scores of the tags; words that are PADDING are hidden from the others."""
        real = words != PADDING
        x = self.embed(words.clamp(min=0))
        return self.read(self.encoder(x, mask=None if real.all() else real[:, None]).output)


@cache
def sentences(split: str) -> Sentences:
    """The sentences of a split, sorted by length; the same ones for every model and seed."""
    seed = RECIPE["data_seed"] + ["training", "validation", "test"].index(split)
    drawn = draw_sentences(torch.Generator("cpu").manual_seed(seed), RECIPE["sentences"][split], split)
    order = (drawn.words != PADDING).sum(1).argsort(stable=True)
    return Sentences(*(table[order] for table in drawn))


def batches(size: int) -> Callable[[torch.Generator], Sentences]:
    """A function that draws batches of `size` training sentences of one length, for `fit`."""
    given = sentences("training")
    lengths = (given.words != PADDING).sum(1)

    def draw(generator: torch.Generator) -> Sentences:
        chosen = int(torch.randint(len(lengths), (1,), generator=generator, device="cpu"))
        n = int(lengths[chosen])
        alike = (lengths == n).nonzero()[:, 0]
        rows = alike[torch.randint(len(alike), (size,), generator=generator, device="cpu")]
        return Sentences(*(table[rows, :n] for table in given))

    return draw


def accuracy(model: nn.Module, split: str) -> float:
    """Share of right tags among the ambiguous words of a split."""
    given = to_device(sentences(split))
    numbers = torch.tensor([CLASSES.index(name) for name in AMBIGUOUS], device=given.classes.device)
    return tagger.right(model, given)[torch.isin(given.classes, numbers)].float().mean().item()


def rate(step: int, warm: int, *, rise: bool) -> float:
    """Factor on the learning rate, at most 1: the published schedule; without `rise` it starts at 1 and falls
    from step `warm` on."""
    return warmup(step, 1, warm) * warm**0.5 if rise else min(1.0, (warm / step) ** 0.5)


def train(
    n_layers: int,
    *,
    size: int,
    steps: int,
    lr: float,
    norm: str = "layer",
    norm_first: bool = False,
    rise: bool = True,
    seed: int = 0,
) -> tuple[nn.Module, History | None]:
    """Train one tagger and return it with its history; None in its place where the loss became infinite.

    Raises ValueError for a norm that is neither "layer" nor "batch".
    """
    require.one_of(NORMS, norm=norm)
    torch.manual_seed(seed)
    model = to_device(Tagger(n_layers, norm=NORMS[norm], norm_first=norm_first))
    try:
        history = fit(
            model, batches(size), tagger.loss, steps=steps, lr=lr, seed_number=seed,
            schedule=lambda step: rate(step, max(1, steps // 10), rise=rise),
            name=f"{n_layers} layers, {norm}",
        )  # fmt: skip
    except ValueError:
        return model.eval(), None
    return model, history


def run(seed: int) -> list[dict]:
    """A row for each norm, batch size and rate, and for each depth, place of the norm, warm-up and rate."""
    rows, b, d = [], RECIPE["batch"], RECIPE["depth"]
    for lr, norm, size in product(b["rates"], b["norms"], b["sizes"]):
        setting = {"norm": norm, "size": size}
        rows.append(_row("batch", setting, b["layers"], steps=b["steps"], lr=lr, seed=seed))
    for lr, n_layers, norm_first, rise in product(d["rates"], d["layers"], (False, True), (True, False)):
        setting = {"norm_first": norm_first, "rise": rise}
        rows.append(_row("depth", setting, n_layers, size=d["size"], steps=d["steps"], lr=lr, seed=seed))
    return rows


def _row(kind: str, setting: dict, n_layers: int, **options) -> dict:
    model, history = train(n_layers, **setting, **options)
    return {
        "kind": kind, "layers": n_layers, **setting, "lr": options["lr"], "seed": options["seed"],
        "validation": accuracy(model, "validation"), "accuracy": accuracy(model, "test"),
        "cpu_s": None if history is None else history.cpu_s,
    }  # fmt: skip


def best(rows: list[dict], kind: str, keys: tuple[str, ...]) -> dict[tuple, list[float]]:
    """{values of `keys`: test accuracies, one per seed, sorted}, each at the rate that is best on that seed's
    VALIDATION sentences."""
    rows = [row for row in rows if row["kind"] == kind]
    found: dict[tuple, list[float]] = {}
    for row in summary.best(rows, (*keys, "seed"), by=itemgetter("validation")):
        found.setdefault(tuple(row[key] for key in keys), []).append(row["accuracy"])
    return {setting: sorted(values) for setting, values in found.items()}
