"""Part-of-speech tagging with "I saw a saw": what a tagger sees decides what it can reach.

Every system trains on the same 10,000 sentences. Beside its share of right tags on sentences never seen
stands the limit that the grammar sets to anything that sees as much, over all words and over each ambiguous
class.
"""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.data import tagging
from lesson_lib.data.tagging import CLASSES, Sentences
from lesson_lib.device import to_device
from lesson_lib.models import tagger
from lesson_lib.training import History, fit

RECIPE = {
    "systems": [
        "one word", "window 1", "window 2", "window 3", "window 5", "window 7", "recurrent",
        "recurrent, both ways",
        "attention, no positions", "attention",
    ],
    "sentences": {"training": 10_000, "validation": 2_000, "test": 4_000},
    "data_seed": 0,
    "d_model": 32,
    "d_hidden": 64,
    "heads": 4,
    "batch": 64,
    "steps": 1200,
    "rates": [3e-3, 1e-2, 3e-2],
    "seeds": [0, 1, 2],
}  # fmt: skip
AMONG = {"all words": CLASSES, "saw": ("saw",), "watch": ("watch",), "cut": ("cut",)}


def sight(system: str) -> Callable[[Tensor], Tensor]:
    """What that system sees; raises ValueError for an unknown system."""
    require.one_of(RECIPE["systems"], system=system)
    if system.startswith("window"):
        return tagging.window(int(system.split()[1]))
    return {
        "one word": tagging.window(0), "recurrent": tagging.before, "attention, no positions": tagging.bag,
    }.get(system, tagging.whole)  # fmt: skip


def make(system: str) -> nn.Module:
    """The untrained model of that name; raises ValueError for an unknown system."""
    require.one_of(RECIPE["systems"], system=system)
    d_model, d_hidden = RECIPE["d_model"], RECIPE["d_hidden"]
    if system == "one word" or system.startswith("window"):
        return tagger.Window(0 if system == "one word" else int(system.split()[1]), d_model, d_hidden)
    if system.startswith("recurrent"):
        return tagger.RecurrentTagger(d_model, d_hidden, both_ways=system.endswith("both ways"))
    return tagger.Attention(d_model, d_hidden, RECIPE["heads"], positions=system == "attention")


@cache
def sentences(split: str) -> Sentences:
    """The sentences of a split, the same ones for every system and seed."""
    seed = RECIPE["data_seed"] + list(tagging.SPLITS).index(split)
    return tagging.draw(torch.Generator().manual_seed(seed), RECIPE["sentences"][split], split)


def draw(generator: torch.Generator) -> Sentences:
    """A batch of the training sentences."""
    rows = torch.randint(
        RECIPE["sentences"]["training"], (RECIPE["batch"],), generator=generator, device="cpu"
    )
    return Sentences(*(table[rows] for table in sentences("training")))


def accuracy(model: nn.Module, split: str) -> dict[str, float]:
    """Share of right tags among all words and among each ambiguous class, on a split."""
    given = to_device(sentences(split))
    correct = tagger.right(model, given)
    shares = {}
    for name, among in AMONG.items():
        counted = torch.isin(
            given.classes, torch.tensor([CLASSES.index(c) for c in among], device=given.classes.device)
        )
        shares[name] = correct[counted].float().mean().item()
    return shares


@torch.no_grad()
def base_forms(model: nn.Module, *, distance: int) -> tuple[int, dict[str, float]]:
    """Of the test sentences that begin with an auxiliary and have a word like cut, a base form, at least that
    many words behind it: how many such words there are, and the share of them that is tagged as a base form,
    as written and after each of three changes.

    Raises ValueError where `distance` is less than 1.
    """
    require.whole(distance=distance)
    given = to_device(sentences("test"))
    like_cut = (given.classes == CLASSES.index("cut")) & (given.tags == tagging.TAGS.index("base"))
    like_cut[:, :distance] = False
    far = like_cut & (given.tags[:, :1] == tagging.TAGS.index("auxiliary"))
    rows = far.any(1)
    words, there = given.words[rows], far[rows]
    others = torch.tensor([tagging.VOCABULARY.index(word) for word in tagging.WORDS["will"]])
    replaced = words.clone()
    replaced[:, 0] = others.roll(1).to(words)[(words[:, :1] == others.to(words)).int().argmax(-1)]
    changed = {
        "as written": (words, there),
        "another auxiliary": (replaced, there),
        "second word deleted": (torch.cat([words[:, :1], words[:, 2:]], 1), there[:, 1:]),
        "auxiliary deleted": (words[:, 1:], there[:, 1:]),
    }
    base = tagging.TAGS.index("base")
    return int(there.sum()), {
        name: (model(read).argmax(-1)[at] == base).float().mean().item()
        for name, (read, at) in changed.items()
    }


def train(
    system: str, *, lr: float, seed: int = 0, steps: int = RECIPE["steps"]
) -> tuple[nn.Module, History]:
    """Train one model; its history's score is the share of right tags on the validation split."""
    torch.manual_seed(seed)
    model = to_device(make(system))
    history = fit(
        model, draw, tagger.loss, steps=steps, lr=lr, seed_number=seed, name=system,
        validate=lambda m: accuracy(m, "validation")["all words"],
    )  # fmt: skip
    return model, history


@cache
def limits(system: str) -> dict[str, float]:
    """What the grammar allows a system that sees as much, among all words and among each ambiguous class."""
    return {name: tagging.limit(sight(system), among) for name, among in AMONG.items()}


def run(seed: int) -> list[dict[str, float | str | int]]:
    """One row for each system, at the learning rate that is best on the validation split."""
    rows = []
    for system in RECIPE["systems"]:
        trained = [(lr, *train(system, lr=lr, seed=seed)) for lr in RECIPE["rates"]]
        lr, model, history = max(trained, key=lambda one: max(one[2].column("score")))
        rows.append(
            {
                "seed": seed, "system": system, "lr": lr, "cpu_s": history.cpu_s,
                "parameters": sum(p.numel() for p in model.parameters()),
                "right": accuracy(model, "test"), "limit": limits(system),
            }
        )  # fmt: skip
    return rows
