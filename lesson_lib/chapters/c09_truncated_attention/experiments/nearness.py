"""Beside the windows of `phonemes`: convolutions that reach as far, networks that have learned nothing, and
other voices.

Data, steps and choice of the best weights are those of `experiments.phonemes`, if nothing else is said. Rows:

    rate         validation accuracy of a convolution after `shorter` steps, first seed
    convolution  a convolution in the place of attention, trained and judged as a window is
    untrained    the share of the weights within 15 frames in full attention that has learned nothing
    hidden       a network that learned from whole sentences, asked with the keys outside of each radius of
                 `hide` hidden from it
    voice        each of the fourteen voices in turn is left out of all other sentences, on which a network
                 learns for `shorter` steps; its accuracy on that voice. The last weights count
    heard        the voices of the training are heard, `kept` sentences of each are not; `shorter` steps
"""

from typing import Any

import torch

from lesson_lib.chapters.c09_truncated_attention import nearness, phonemes, speech
from lesson_lib.chapters.c09_truncated_attention.experiments import phonemes as windows
from lesson_lib.chapters.c09_truncated_attention.phonemes import PhonemeRecogniser
from lesson_lib.chapters.c09_truncated_attention.speech import Utterance
from lesson_lib.device import to_device
from lesson_lib.training import fit

RECIPE = {
    **{name: windows.RECIPE[name] for name in ("d_model", "n_heads", "n_layers", "batch", "steps", "every")},
    "shorter": 600,
    "convolutions": [["depthwise", 5], ["depthwise", 15], ["dense", 5], ["dense", 15]],
    "rates": [1e-3, 3e-3, 1e-2, 3e-2, 1e-1],
    "lr": {"depthwise 5": 3e-2, "depthwise 15": 1e-2, "dense 5": 3e-2, "dense 15": 3e-2, "attention": 1e-2},
    "radii": [15, None],
    "hide": [5, 15, 50],
    "kept": 3,
    "seeds": [0, 1, 2],
}
SIZES = {name: RECIPE[name] for name in ("d_model", "n_heads", "n_layers")}


def start(kind: str, radius: int | None, seed: int = 0) -> PhonemeRecogniser:
    """The untrained network: `kind` is "attention", or one of `nearness.KINDS`."""
    torch.manual_seed(seed)
    with torch.device("cpu"):
        if kind == "attention":
            return PhonemeRecogniser(len(speech.LABELS), radius=radius, **SIZES)
        return nearness.convolutional(len(speech.LABELS), radius=radius, kind=kind, **SIZES)


def train(
    model: PhonemeRecogniser, sentences: list[Utterance], *, steps: int, lr: float, seed: int, choose: bool
) -> PhonemeRecogniser:
    """The network, trained on these sentences; `choose` keeps the weights that did best on VALIDATION."""
    looks = {}
    if choose:
        looks = {
            "validate": lambda model: windows.accuracy(model, "validation").frames,
            "every": RECIPE["every"],
        }
    fit(model, windows.batches(sentences), phonemes.loss, steps=steps, lr=lr, seed_number=seed, **looks)
    return model.eval()


@torch.no_grad()
def right(model: PhonemeRecogniser, sentences: list[Utterance]) -> float:
    """The share of all frames that are named rightly."""
    some = to_device(phonemes.batch(sentences))
    found = model(some.frames, mask=some.mask).argmax(-1)
    real = some.labels != phonemes.FILLER
    return (found == some.labels)[real].double().mean().item()


def run(seed: int) -> list[dict[str, Any]]:
    """All rows of a seed; those of kind "rate" and "voice" with the first seed only."""
    rows = [_untrained(seed), *_hidden(seed)]
    if seed == RECIPE["seeds"][0]:
        rows += _rates(seed) + _voices()
    rows += [_convolution(kind, radius, seed) for kind, radius in RECIPE["convolutions"]]
    return rows + [_heard(radius, seed) for radius in RECIPE["radii"]]


def _untrained(seed: int) -> dict[str, Any]:
    model = to_device(start("attention", None, seed)).eval()
    shares = windows.near(model, 15)
    return {"kind": "untrained", "seed": seed, "near": [round(share, 3) for share in shares]}


def _hidden(seed: int) -> list[dict[str, Any]]:
    model, _ = windows.train(None, seed)
    rows = [{"kind": "hidden", "seed": seed, "radius": None, "accuracy": windows.accuracy(model).frames}]
    for radius in RECIPE["hide"]:
        blinkered = start("attention", radius, seed)
        blinkered.load_state_dict(model.state_dict())
        found = windows.accuracy(to_device(blinkered).eval()).frames
        rows.append({"kind": "hidden", "seed": seed, "radius": radius, "accuracy": found})
    return [row | {"accuracy": round(row["accuracy"], 4)} for row in rows]


def _rates(seed: int) -> list[dict[str, Any]]:
    rows = []
    for kind, radius in RECIPE["convolutions"]:
        for lr in RECIPE["rates"]:
            model = start(kind, radius, seed)
            train(
                model, speech.load("training"), steps=RECIPE["shorter"], lr=lr, seed=seed, choose=True
            )  # fmt: skip
            score = windows.accuracy(model, "validation").frames
            row = {"kind": "rate", "seed": seed, "system": kind, "radius": radius, "lr": lr}
            rows.append(row | {"accuracy_validation": round(score, 4)})
    return rows


def _convolution(kind: str, radius: int, seed: int) -> dict[str, Any]:
    lr = RECIPE["lr"][f"{kind} {radius}"]
    model = start(kind, radius, seed)
    train(model, speech.load("training"), steps=RECIPE["steps"], lr=lr, seed=seed, choose=True)
    return {
        "kind": "convolution", "seed": seed, "system": kind, "radius": radius, "lr": lr,
        "accuracy": round(windows.accuracy(model).frames, 4),
        "accuracy_validation": round(windows.accuracy(model, "validation").frames, 4),
        "loss_train": round(windows.mean_loss(model, "training"), 4),
        "parameters": sum(p.numel() for p in model.parameters()),
    }  # fmt: skip


def _voices() -> list[dict[str, Any]]:
    """A voice is left out, and the seed is its number."""
    everything = [one for split in speech.SPLITS for one in speech.load(split)]
    rows = []
    for seed, voice in enumerate(sorted({one.voice for one in everything})):
        others = [one for one in everything if one.voice != voice]
        mine = [one for one in everything if one.voice == voice]
        for radius in RECIPE["radii"]:
            model = train(
                start("attention", radius, seed), others, steps=RECIPE["shorter"],
                lr=RECIPE["lr"]["attention"], seed=seed, choose=False,
            )  # fmt: skip
            row = {
                "kind": "voice",
                "seed": RECIPE["seeds"][0],
                "start": seed,
                "voice": voice,
                "radius": radius,
            }
            rows.append(row | {"accuracy": round(right(model, mine), 4)})
    return rows


def _heard(radius: int | None, seed: int) -> dict[str, Any]:
    """Some sentences of every voice are kept out of the training."""
    seen: dict[str, int] = {}
    kept, others = [], []
    for one in speech.load("training"):
        seen[one.voice] = seen.get(one.voice, 0) + 1
        (kept if seen[one.voice] <= RECIPE["kept"] else others).append(one)
    model = train(
        start("attention", radius, seed), others, steps=RECIPE["shorter"],
        lr=RECIPE["lr"]["attention"], seed=seed, choose=False,
    )  # fmt: skip
    return {
        "kind": "heard", "seed": seed, "radius": radius,
        "new_sentences": round(right(model, kept), 4),
        "new_voice": round(right(model, speech.load("test")), 4),
        "validation_voice": round(right(model, speech.load("validation")), 4),
    }  # fmt: skip
