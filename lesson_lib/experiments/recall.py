"""Recall over a distance: recurrent networks and attention are trained alike, a model for each distance, and
asked at all distances.

Steps, batches and data are the same for all systems; the rate is each system's best of `rates` on VALIDATION,
over a few distances (of equals the middle one). The kinds of rows:

    rate     accuracy on VALIDATION with each rate: how the rates were chosen
    point    a model for each system and distance, after the same few steps
    middle   the same, with as much filler before the symbol as behind it: to begin reading at the other end
             is no help any more;
             without aids, and for the RNN and the LSTM with all three
    aid      further chances for the recurrent networks; attention has one of them, for what it does at other
             distances

The aids ask whether a network CANNOT or DID NOT learn: "longer", up to ten times the steps; "start", weights
that keep what was there (`models.recaller.start_to_keep`); "curriculum", distances that lengthen from 1 to
the one that is asked; "all three". A long training ends as soon as all VALIDATION sequences are answered
rightly. All rows hold accuracies on test sequences, at the model's own distance and at all others: `asked`,
`kept` (were its answers renamed) and `moved` (the symbol stands in the middle, or else no more). At distance
5 many test sequences were trained on; that helps nobody, since filler says nothing. Gradients are in float64:
in float32 the smallest would be 0.
"""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.data.recall import SYMBOLS, Recall, draw
from lesson_lib.device import to_device
from lesson_lib.models import recaller
from lesson_lib.models.recaller import SYSTEMS, Recaller
from lesson_lib.training import History, fit

RECIPE = {
    "d_model": 32,
    "n_heads": 4,
    "batch": 32,
    "steps": 400,
    "every": 40,  # steps between two looks at the validation sequences
    "distances": [5, 10, 25, 50, 100, 200],
    "middle": [5, 10, 25, 50],
    "aided_middle": [25, 50],
    "aids": {
        "none": {},
        "longer": {"steps": 4000},
        "start": {"start": True},
        "curriculum": {"curriculum": True},
        "all three": {"steps": 4000, "start": True, "curriculum": True},
    },
    "aided": {
        "longer": [10, 25, 50, 100],
        "start": [10, 25, 50, 100, 200],
        "curriculum": [10, 25, 50, 100, 200],
        "all three": [10, 25, 50, 100, 200],
    },
    "lr": {
        "RNN": {"none": 1e-2, "longer": 1e-2, "start": 3e-3, "curriculum": 1e-2, "all three": 3e-3},
        "LSTM": {"none": 1e-2, "longer": 3e-3, "start": 3e-3, "curriculum": 3e-3, "all three": 3e-3},
        "BiRNN": {"none": 1e-2},
        "BiRNN, both ends": {"none": 3e-3},
        "attention": {"none": 3e-3, "curriculum": 3e-3},
    },
    "rates": [1e-3, 3e-3, 1e-2],
    "pilot": {  # distances at which rates are compared
        "none": [5, 10, 25, 50],
        "longer": [25],
        "start": [10, 25, 50],
        "curriculum": [25, 50],
        "all three": [25, 50],
    },
    "validation": 256,
    "test": 1000,
    "judged": 64,  # sequences for gradients and weights
    "known": 0.9,  # of the validation sequences: `known_at` is the first look at which as many were right
    "seeds": [0, 1, 2],
}
AIDS = tuple(RECIPE["aids"])
SPLIT_SEEDS = {"validation": 10_000, "test": 20_000}


def start(system: str, distance: int, seed: int = 0, *, aid: str = "none") -> Recaller:
    """The untrained model that `train` begins with, on the lessons' device. Raises ValueError as `train`
    does."""
    options = _aid(system, aid)
    torch.manual_seed(seed)
    with torch.device("cpu"):
        model = Recaller(system, d_model=RECIPE["d_model"], n_heads=RECIPE["n_heads"])
        if options.get("start"):
            recaller.start_to_keep(model, distance)
    return to_device(model).eval()


def train(
    system: str, distance: int, seed: int = 0, *, before: int = 0, aid: str = "none", lr: float | None = None
) -> tuple[Recaller, History]:
    """Train one of SYSTEMS to name the symbol that stood `distance` tokens ago, behind `before` filler; the
    score is accuracy on VALIDATION.

    `aid` is one of AIDS, for the systems that have them in RECIPE["lr"]. Raises ValueError for another system
    or aid.
    """
    options, model = _aid(system, aid), start(system, distance, seed, aid=aid)
    steps = options.get("steps", RECIPE["steps"])
    history = fit(
        model, batches(distance, before, steps if options.get("curriculum") else 0), recaller.loss,
        steps=steps, lr=lr or RECIPE["lr"][system][aid], seed_number=seed,
        validate=lambda model: accuracy(model, distance, split="validation", before=before),
        every=RECIPE["every"],
        stop_at=1.0 if "steps" in options else None, name=f"{system}, distance {distance}",
    )  # fmt: skip
    return model, history


def batches(distance: int, before: int, lengthening: int = 0) -> Callable[[torch.Generator], Recall]:
    """What draws batches of that distance. With `lengthening`, the distance is anything from 1 to a bound,
    which reaches `distance` at half of that many steps."""
    done = 0

    def some(generator: torch.Generator) -> Recall:
        nonlocal done
        done += 1
        bound = min(distance, 1 + 2 * done * distance // lengthening) if lengthening else distance
        far = int(torch.randint(bound, (), generator=generator, device="cpu")) + 1 if lengthening else bound
        return draw(generator, RECIPE["batch"], far, before=before)

    return some


def accuracy(
    model: nn.Module, distance: int, *, seed: int = 0, split: str = "test", before: int = 0
) -> float:
    """The share of right answers on a split's sequences, which are always the same for a seed. Raises
    ValueError for another split."""
    predicted, answer = _asked(model, distance, seed, split, before)
    return (predicted == answer).double().mean().item()


def renamed_accuracy(model: nn.Module, distance: int, *, seed: int = 0, before: int = 0) -> float:
    """Accuracy on test sequences after each predicted symbol is replaced by the right symbol that most often
    went with it on validation sequences.

    So a model that confuses names, but always the same ones, still scores. Chance is 1 of 8, as for
    `accuracy`.
    """
    predicted, answer = _asked(model, distance, seed, "validation", before)
    together = torch.zeros(len(SYMBOLS), len(SYMBOLS), device=predicted.device)
    together.index_put_(
        (predicted, answer), torch.ones_like(predicted, dtype=together.dtype), accumulate=True
    )
    predicted, answer = _asked(model, distance, seed, "test", before)
    return (together.argmax(1)[predicted] == answer).double().mean().item()


@torch.no_grad()
def _asked(model: nn.Module, distance: int, seed: int, split: str, before: int) -> tuple[Tensor, Tensor]:
    require.one_of(SPLIT_SEEDS, split=split)
    generator = torch.Generator("cpu").manual_seed(SPLIT_SEEDS[split] + seed)
    tokens, answer = to_device(draw(generator, RECIPE[split], distance, before=before))
    model.eval()
    return torch.cat([model(some).argmax(-1) for some in tokens.split(100)]), answer


def gradients(model: nn.Module, distance: int, *, before: int = 0) -> list[float]:
    """For each token, how strongly it moves the right answer's logit (`models.recaller.gradients`), in
    float64, on validation sequences."""
    generator = torch.Generator("cpu").manual_seed(SPLIT_SEEDS["validation"])
    batch = to_device(draw(generator, RECIPE["judged"], distance, before=before))
    return recaller.gradients(copy.deepcopy(model).double(), batch).tolist()


def looked(model: Recaller, distance: int, *, before: int = 0) -> float | None:
    """The weight that the question puts on the symbol, averaged, in the head that puts most there. None where
    there is no attention."""
    generator = torch.Generator("cpu").manual_seed(SPLIT_SEEDS["validation"])
    tokens = to_device(draw(generator, RECIPE["judged"], distance, before=before).tokens)
    with torch.no_grad():
        weights = model.look(tokens).weights
    return None if weights is None else weights[:, :, before].mean(0).max().item()


def run(seed: int) -> list[dict[str, Any]]:
    """All rows of a seed; those of kind "rate" with the first seed only."""
    torch.set_flush_denormal(True)  # gradients of 1e-40 would make the processor ten times slower
    try:
        rated = [pilot(**setting) for setting in rates()] if seed == RECIPE["seeds"][0] else []
        return rated + [point(**setting, seed=seed) for setting in points()]
    finally:
        torch.set_flush_denormal(False)


def points() -> list[dict[str, Any]]:
    """What `point` is called with for the rows of one seed."""
    wanted = [("point", system, d, 0, "none") for system in SYSTEMS for d in RECIPE["distances"]]
    wanted += [("middle", system, d, d, "none") for system in SYSTEMS for d in RECIPE["middle"]]
    wanted += [
        ("aid", system, d, 0, aid)
        for system in SYSTEMS for aid in RECIPE["lr"][system] for d in RECIPE["aided"].get(aid, [])
    ]  # fmt: skip
    wanted += [
        ("middle", system, d, d, "all three")
        for system in SYSTEMS if "all three" in RECIPE["lr"][system] for d in RECIPE["aided_middle"]
    ]  # fmt: skip
    names = ("kind", "system", "distance", "before", "aid")
    return [dict(zip(names, one, strict=True)) for one in wanted]


def rates() -> list[dict[str, Any]]:
    """What `pilot` is called with."""
    return [
        {"system": system, "aid": aid, "distance": distance, "lr": lr}
        for system in SYSTEMS
        for aid in RECIPE["lr"][system]
        for distance in RECIPE["pilot"][aid]
        for lr in RECIPE["rates"]
    ]


def point(kind: str, system: str, distance: int, before: int, aid: str, seed: int) -> dict[str, Any]:
    """A model is trained, judged at its own distance and at all others, and asked where the symbol
    has moved."""
    untrained = start(system, distance, seed, aid=aid)
    model, history = train(system, distance, seed, before=before, aid=aid)

    def asked(distance: int, before: int) -> float:
        return round(accuracy(model, distance, seed=seed, before=before), 4)

    others = [(d, d if before else 0) for d in RECIPE["distances"]]
    known = [row["step"] for row in history.rows if row["score"] >= RECIPE["known"]]
    row = {
        "kind": kind, "seed": seed, "system": system, "distance": distance, "before": before, "aid": aid,
        "lr": RECIPE["lr"][system][aid], "steps": history.rows[-1]["step"],
        "known_at": min(known, default=None),
        "accuracy": asked(distance, before), "validation_accuracy": round(max(history.column("score")), 4),
        "asked": {str(d): asked(d, b) for d, b in others},
        "kept": {str(d): round(renamed_accuracy(model, d, seed=seed, before=b), 4) for d, b in others},
        "moved": asked(distance, 0 if before else distance),
        "gradient": _short(gradients(untrained, distance, before=before)[before]),
        "gradient_after": _short(gradients(model, distance, before=before)[before]),
        "cpu_s": round(history.cpu_s, 2), "parameters": sum(p.numel() for p in model.parameters()),
    }  # fmt: skip
    if system == "attention":
        row["looked"] = {
            str(d): _short(looked(model, d, before=d if before else 0)) for d in RECIPE["distances"]
        }
    return row


def pilot(system: str, aid: str, distance: int, lr: float) -> dict[str, Any]:
    """A row of kind "rate", with the first seed."""
    seed = RECIPE["seeds"][0]
    history = train(system, distance, seed, aid=aid, lr=lr)[1]
    return {
        "kind": "rate", "seed": seed, "system": system, "distance": distance, "before": 0, "aid": aid,
        "lr": lr,
        "steps": history.rows[-1]["step"], "validation_accuracy": round(max(history.column("score")), 4),
        "cpu_s": round(history.cpu_s, 2),
    }  # fmt: skip


def _short(number: float) -> float:
    return float(f"{number:.4g}")


def _aid(system: str, aid: str) -> dict[str, Any]:
    require.one_of(SYSTEMS, system=system)
    require.one_of(RECIPE["lr"][system], aid=aid)
    return RECIPE["aids"][aid]
