"""Phonemes from 10 ms frames: how far must a frame look? The same network is trained with windows of several
radii, and with the whole utterance.

Whole utterances are trained on, padded, so that no radius sees less in training than it does in the test. All
radii have the same steps, 33 times through the sentences: in the last sixth accuracy on VALIDATION hardly
rises any more (but the rate falls, too). Of all looks at VALIDATION the best weights are kept. The rate is
each radius's best of `rates` on VALIDATION, after a third of the steps. The kinds of rows, all of them with
accuracies on sentences never trained on, spoken by a voice never heard:

    point    two layers
    layer    one layer: there the radius is all that a frame hears
    shorter  two layers, a third of the steps: what would a comparison say that stops too early?
    rate     as `shorter` with a rate that was not chosen, first seed only; rates are chosen by the validation
             accuracy of these two kinds
    live     as `shorter` with half of its steps, as the lesson trains it
    guess    the most frequent label of the training frames, always

`curve` holds, for every look, the step, the loss on training batches since the last look, and the validation
accuracy: `matched` reads from it how good the radii are where they have learnt the training sentences equally
well. The validation voice is in no training sentence, nor is the test's.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lesson_lib import masks, require
from lesson_lib.chapters.c09_truncated_attention import phonemes, speech
from lesson_lib.chapters.c09_truncated_attention.phonemes import Batch, PhonemeRecogniser
from lesson_lib.chapters.c09_truncated_attention.speech import Utterance
from lesson_lib.device import to_device
from lesson_lib.training import History, fit

RADII = (0, 2, 5, 15, 50, None)  # frames of 10 ms on each side; None is the whole utterance
SILENCE = 0
KINDS = {  # of sounds, with the letters that their names begin with; affricates (tʃ, dʒ) count as stops
    "silence": "_", "vowel": "", "stop": "pbtdkɡgʔ", "fricative": "fvθðszʃʒhxç", "nasal": "mnŋ",
    "approximant": "lɹrwjɾɫ",
}  # fmt: skip
RECIPE = {
    "d_model": 48,
    "n_heads": 4,
    "n_layers": 2,
    "batch": 4,  # utterances
    "steps": 1800,
    "every": 60,  # steps between two looks at the validation sentences
    "radii": list(RADII),
    "lr": {"0": 1e-2, "2": 1e-2, "5": 1e-2, "15": 1e-2, "50": 1e-2, "full": 1e-2},
    "rates": [1e-3, 3e-3, 1e-2, 3e-2],
    "shorter": {"steps": 600},
    "live": {"steps": 300, "radii": [0, 5, None]},
    "seeds": [0, 1, 2],
}


class Accuracy(NamedTuple):
    """Shares of frames named rightly: of all, and of those that are not silence."""

    frames: float
    speech: float


def train(
    radius: int | None,
    seed: int = 0,
    *,
    n_layers: int | None = None,
    steps: int | None = None,
    lr: float | None = None,
) -> tuple[PhonemeRecogniser, History]:
    """Train a recogniser whose layers look `radius` frames around (None: everywhere); the score is accuracy
    on VALIDATION.

    In a lesson, `steps=RECIPE["live"]["steps"]` is enough. Raises ValueError for a radius that is none of
    RADII.
    """
    require.one_of(RADII, radius=radius)
    torch.manual_seed(seed)
    with torch.device("cpu"):
        model = PhonemeRecogniser(
            len(speech.LABELS), radius=radius, d_model=RECIPE["d_model"], n_heads=RECIPE["n_heads"],
            n_layers=n_layers or RECIPE["n_layers"],
        )  # fmt: skip
    history = fit(
        model, batches(speech.load("training")), phonemes.loss, steps=steps or RECIPE["steps"],
        lr=lr or RECIPE["lr"][_name(radius)],
        seed_number=seed, validate=lambda model: accuracy(model, "validation").frames, every=RECIPE["every"],
        name=f"radius {_name(radius)}",
    )  # fmt: skip
    return model, history


def batches(utterances: list[Utterance]) -> Callable[[torch.Generator], Batch]:
    """What draws batches of whole utterances, padded."""

    def some(generator: torch.Generator) -> Batch:
        rows = torch.randperm(len(utterances), generator=generator, device="cpu")[: RECIPE["batch"]]
        return phonemes.batch([utterances[row] for row in rows.tolist()])

    return some


def accuracy(model: PhonemeRecogniser, split: str = "test") -> Accuracy:
    """Shares of a split's frames that are named rightly. Raises ValueError for another split."""
    found, labels = _named(model, split)
    right = found == labels
    return Accuracy(_share(right), _share(right[labels != SILENCE]))


def by_kind(model: PhonemeRecogniser) -> dict[str, float]:
    """The share of right test frames for each kind of sound: of KINDS, those that occur."""
    found, labels = _named(model, "test")
    kinds = [kind_of(name) for name in speech.LABELS]
    of_kind = {
        kind: torch.isin(labels,
        torch.tensor([i for i, one in enumerate(kinds) if one == kind], device=labels.device))
        for kind in KINDS if kind in kinds
    }  # fmt: skip
    return {kind: _share((found == labels)[rows]) for kind, rows in of_kind.items() if rows.any()}


def kind_of(name: str) -> str:
    """Which of KINDS a phoneme is, by its first letter; what is no consonant is a vowel."""
    return next((kind for kind, letters in KINDS.items() if name[:1] in letters), "vowel")


@torch.no_grad()
def mean_loss(model: PhonemeRecogniser, split: str) -> float:
    """Cross-entropy per frame of a split, for how well sentences are learnt: smaller on those of the
    training."""
    parts = [
        (phonemes.loss(model, some), int((some.labels != phonemes.FILLER).sum())) for some in _padded(split)
    ]
    return sum(float(one) * frames for one, frames in parts) / sum(frames for _, frames in parts)


def guess() -> tuple[str, Accuracy]:
    """The most frequent label of the training frames, and how often it is right on the test sentences: what a
    recogniser must beat.

    In its second share stands the most frequent phoneme of speech, on frames that are not silence.
    """
    counts = torch.cat([one.labels for one in speech.load("training")]).bincount(minlength=len(speech.LABELS))
    labels = torch.cat([one.labels for one in speech.load("test")])
    most, spoken = int(counts.argmax()), labels[labels != SILENCE]
    counts[SILENCE] = 0
    return speech.LABELS[most], Accuracy(_share(labels == most), _share(spoken == int(counts.argmax())))


@torch.no_grad()
def near(model: PhonemeRecogniser, radius: int, count: int = 8) -> list[float]:
    """For each layer, the share of its weights that lies within `radius` frames, over the first utterances of
    the validation split."""
    shares = []
    for one in speech.load("validation")[:count]:
        tables = model.look(to_device(one.frames[None])).weights
        band = masks.window(len(one.frames), radius, device=tables[0].device)
        shares.append([float((table * band).sum(-1).mean()) for table in tables])
    return torch.tensor(shares, device="cpu").mean(0).tolist()


def run(seed: int) -> list[dict[str, Any]]:
    """All rows of a seed; those of kind "rate" and "guess" with the first seed only."""
    guessed = [_guessed(seed)] if seed == RECIPE["seeds"][0] else []
    return guessed + [point(**setting, seed=seed) for setting in points(seed)]


def points(seed: int) -> list[dict[str, Any]]:
    """What `point` is called with for the rows of one seed; with the first seed, all rates are tried."""
    wanted: list[dict[str, Any]] = []
    for radius in RADII:
        chosen = RECIPE["lr"][_name(radius)]
        same = {"radius": radius, "n_layers": RECIPE["n_layers"], "steps": RECIPE["steps"], "lr": chosen}
        wanted.append({"kind": "point", **same})
        wanted.append({"kind": "layer", **same, "n_layers": 1})
        wanted.append({"kind": "shorter", **same, **RECIPE["shorter"]})
        if seed == RECIPE["seeds"][0]:
            others = [lr for lr in RECIPE["rates"] if lr != chosen]
            wanted += [{"kind": "rate", **same, **RECIPE["shorter"], "lr": lr} for lr in others]
        if radius in RECIPE["live"]["radii"]:
            wanted.append({"kind": "live", **same, "steps": RECIPE["live"]["steps"]})
    return wanted


def point(kind: str, radius: int | None, n_layers: int, steps: int, lr: float, seed: int) -> dict[str, Any]:
    """A model is trained and judged."""
    model, history = train(radius, seed, n_layers=n_layers, steps=steps, lr=lr)
    best = max(history.rows, key=lambda row: row["score"])
    frames, spoken = accuracy(model)
    return {
        "kind": kind, "seed": seed, "radius": radius, "n_layers": n_layers, "lr": lr, "steps": steps,
        "best_step": best["step"],
        "accuracy": round(frames, 4), "accuracy_speech": round(spoken, 4),
        "accuracy_validation": round(best["score"], 4),
        "loss_train": round(mean_loss(model, "training"), 4), "loss_test": round(mean_loss(model, "test"), 4),
        "by_kind": {name: round(share, 3) for name, share in by_kind(model).items()},
        "near": [round(share, 3) for share in near(model, 15)],
        "curve": [[row["step"], round(row["loss"], 4), round(row["score"], 4)] for row in history.rows],
        "cpu_s": round(history.cpu_s, 1), "parameters": sum(p.numel() for p in model.parameters()),
    }  # fmt: skip


def saturates(rows: list[dict[str, Any]], *, kind: str = "point") -> int | None:
    """The smallest radius whose test accuracy, the mean over seeds, lies within one point (0.01) of the best
    radius's; None is the whole utterance."""
    means = {}
    for radius in RADII:
        found = [row["accuracy"] for row in rows if row["kind"] == kind and row["radius"] == radius]
        means[radius] = sum(found) / len(found)
    return next(radius for radius in RADII if means[radius] > max(means.values()) - 0.01)


def matched(rows: list[dict[str, Any]], level: float) -> dict[int | None, list[float]]:
    """For each radius, the validation accuracies (a seed each) at the first look where the loss on training
    batches was no more than `level`.

    A training that never came so far is left out. So differences in how far training went are taken out of
    the comparison.
    """
    found: dict[int | None, list[float]] = {radius: [] for radius in RADII}
    for row in rows:
        if row["kind"] == "point":
            found[row["radius"]] += [score for _, loss, score in row["curve"] if loss <= level][:1]
    return found


def _guessed(seed: int) -> dict[str, Any]:
    label, (frames, spoken) = guess()
    return {
        "kind": "guess",
        "seed": seed,
        "label": label,
        "accuracy": round(frames, 4),
        "accuracy_speech": round(spoken, 4),
    }


@torch.no_grad()
def _named(model: PhonemeRecogniser, split: str) -> tuple[Tensor, Tensor]:
    """The label that the model gives each frame of a split, and the right one; filler left out."""
    model.eval()
    pairs = [(model(some.frames, mask=some.mask).argmax(-1), some.labels) for some in _padded(split)]
    real = [labels != phonemes.FILLER for _, labels in pairs]
    return tuple(
        torch.cat([one[rows] for one, rows in zip(each, real, strict=True)])
        for each in zip(*pairs, strict=True)
    )


@functools.cache
def _padded(split: str) -> list[Batch]:
    """All utterances of a split in batches of about equal length, so that there is little filler."""
    ordered = sorted(speech.load(split), key=lambda one: len(one.labels))
    return [to_device(phonemes.batch(ordered[i : i + 12])) for i in range(0, len(ordered), 12)]


def _share(right: Tensor) -> float:
    return right.double().mean().item()


def _name(radius: int | None) -> str:
    return "full" if radius is None else str(radius)
