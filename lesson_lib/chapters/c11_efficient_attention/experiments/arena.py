"""A small Long Range Arena: one classifier, five kinds of attention, five tasks; how often is each right, and
what does a step cost?

    pairs      which value stands beside this key? 32 pairs of key and value, one token each; only the pair
               that is asked for matters
    digits     which digit is on the canvas? its pixels row after row, in 17 greys; it lies in one of 3 by 3
               places, so not far from the middle
    text       which package's documentation is it? a passage, character by character; a few words are enough
    listops    what is the value of this expression in brackets?
    connected  does a path join the two ends? pixels row after row

All kinds have the same sizes, batches and steps; the rate is each kind's best of `rates` on VALIDATION after
a third of the steps, first seed. Two tasks have their rates after all steps: of "pairs" nothing is learnt in
the first third, and of "text" the quickest rate is not the best in the end. A window of `radius` in two
layers reaches 2 · `radius` tokens. Of all looks at VALIDATION the best weights are kept. The kinds of rows:

    point    accuracy on the test, for each task of the comparison, kind and seed
    dropped  the same of a task that stays at chance, with some of the kinds, and is no part of the comparison
    rate     accuracy on VALIDATION with each rate, first seed only
    guess    always the most frequent class of the training
    cost     steps per second and MiB at the peak of forward and backward, for one sequence of each length; a
             "seed" is a repeat

`cost` has one kind more: "full, with its table" is the same numbers as "full", whose fused kernel does not
hold the table of n x n weights. Tasks and comparison: Tay et al. 2021, "Long Range Arena", arXiv:2011.04006.
Theirs have 1,000 to 16,000 tokens; the order of the kinds need not be the same there.
"""

import statistics
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lesson_lib import measure, require
from lesson_lib.chapters.c11_efficient_attention import arena, connected, listops, passages
from lesson_lib.chapters.c11_efficient_attention.arena import KINDS, Classifier, Labelled
from lesson_lib.data import digits, recall
from lesson_lib.device import to_device
from lesson_lib.training import History, fit

SPLITS = ("training", "validation", "test")
GREYS = 17  # brightness is stored in sixteenths
WITH_TABLE = "full, with its table"
VALIDATION_SEED, TEST_SEED = 1_000_000, 2_000_000  # of the generators; training's are the seeds themselves
RECIPE = {
    "d_model": 64,
    "n_heads": 4,
    "n_layers": 2,
    "radius": 8,
    "rank": 16,
    "n_features": 64,
    "batch": 32,
    "validation": 512,
    "test": 1024,
    "looks": 5,  # at the validation sequences, evenly over a training
    "steps": {"pairs": 1200, "digits": 510, "text": 300, "listops": 1800, "connected": 600},
    "rate_steps": {"pairs": 1200, "digits": 170, "text": 300, "listops": 600},
    "count": 32,  # pairs
    "canvas": 10,  # pixels of a side, digits
    "characters": 128,
    "expression": 32,  # tokens, listops
    "picture": 8,  # pixels of a side, connected
    "lr": {
        "pairs": {"full": 3e-3, "window": 3e-3, "linear": 1e-2, "low rank": 3e-3, "random features": 1e-3},
        "digits": {"full": 3e-3, "window": 3e-3, "linear": 3e-3, "low rank": 3e-3, "random features": 3e-3},
        "text": {"full": 3e-3, "window": 1e-2, "linear": 3e-3, "low rank": 3e-3, "random features": 3e-3},
        "listops": {"full": 3e-3, "window": 3e-3, "linear": 3e-3, "low rank": 1e-3, "random features": 3e-3},
        "connected": dict.fromkeys(KINDS, 3e-3),  # not chosen: the task was dropped
    },
    "rates": [1e-3, 3e-3, 1e-2, 3e-2],
    "cost": {"sizes": [256, 1024, 4096], "batch": 1, "steps": 5},
    "dropped": {"connected": ["full"]},
    "live": {"task": "pairs", "kinds": ["full", "linear"]},
    "seeds": [0, 1, 2],
}  # fmt: skip


class Task(NamedTuple):
    """What the classifier must know of a task: tokens of a sequence, how many there are of tokens and of
    classes, where it is read."""

    n: int
    n_tokens: int
    n_classes: int
    read: str


TASKS = {
    "pairs": Task(RECIPE["count"] + 1, RECIPE["count"] * (recall.PAIR_VALUES + 1), recall.PAIR_VALUES,
    "last"),
    "digits": Task(RECIPE["canvas"] ** 2, GREYS, digits.CLASSES, "mean"),
    "text": Task(RECIPE["characters"], len(passages.CHARACTERS), len(passages.PACKAGES), "mean"),
    "listops": Task(RECIPE["expression"], len(listops.TOKENS), 10, "mean"),
    "connected": Task(RECIPE["picture"] ** 2, connected.KINDS, 2, "mean"),
}  # fmt: skip


def draw(task: str, split: str, batch: int, generator: torch.Generator) -> Labelled:
    """A batch of a task, drawn with a CPU generator, on the CPU.

    Digits and texts of different splits are different pictures and files. The others are made on the spot:
    there, splits differ by the generator's seed.
    Raises ValueError for an unknown task or split.
    """
    require.one_of(TASKS, task=task)
    require.one_of(SPLITS, split=split)
    if task == "pairs":
        return pairs(generator, batch, RECIPE["count"])
    if task == "digits":
        canvas, label, *_ = digits.draw(split, batch, generator, size=RECIPE["canvas"])
        return Labelled((canvas * (GREYS - 1)).round().long().flatten(1), label)
    if task == "text":
        return Labelled(*passages.draw(split, batch, generator, n=RECIPE["characters"]))
    if task == "listops":
        return Labelled(*listops.draw(generator, batch, RECIPE["expression"]))
    return Labelled(*connected.draw(generator, batch, size=RECIPE["picture"]))


def train(
    task: str, kind: str, seed: int = 0, *, lr: float | None = None, steps: int | None = None
) -> tuple[Classifier, History]:
    """Train a classifier with that kind of attention; the score is accuracy on VALIDATION. Raises ValueError
    for an unknown task or kind."""
    require.one_of(TASKS, task=task)
    require.one_of(KINDS, kind=kind)
    torch.manual_seed(seed)
    with torch.device("cpu"):
        model = Classifier(kind, **TASKS[task]._asdict(), **_sizes())
    steps = steps or RECIPE["steps"][task]
    history = fit(
        model, lambda generator: draw(task, "training", RECIPE["batch"], generator), arena.loss,
        steps=steps, lr=lr or RECIPE["lr"][task][kind], seed_number=seed,
        validate=lambda model: accuracy(model, task, split="validation"),
        every=max(1, steps // RECIPE["looks"]),
        name=f"{task}, {kind}",
    )  # fmt: skip
    return model, history


@torch.no_grad()
def accuracy(model: nn.Module, task: str, *, seed: int = 0, split: str = "test") -> float:
    """The share of sequences classified rightly; of the test, another sample for each seed; VALIDATION is
    always the same.

    Raises ValueError for an unknown task, and for a split that is none of "validation" and "test".
    """
    require.one_of(SPLITS[1:], split=split)
    number = VALIDATION_SEED if split == "validation" else TEST_SEED + seed
    tokens, answer = draw(task, split, RECIPE[split], torch.Generator("cpu").manual_seed(number))
    found = [model(to_device(some)).argmax(-1).cpu() for some in tokens.split(RECIPE["batch"])]
    return (torch.cat(found) == answer).double().mean().item()


def guess(task: str, seed: int = 0) -> float:
    """Test accuracy of whoever always says the class that is the most frequent one in training."""
    known = draw(task, "training", RECIPE["test"], torch.Generator("cpu").manual_seed(seed)).answer
    wanted = draw(task, "test", RECIPE["test"], torch.Generator("cpu").manual_seed(TEST_SEED + seed)).answer
    return (wanted == known.bincount().argmax()).double().mean().item()


def table(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Mean test accuracy over the seeds, by kind and task, of the rows of kind "point"."""
    rows = [row for row in rows if row["kind"] == "point"]
    return {
        kind: {task: _mean(rows, "accuracy", task=task,
        attention=kind) for task in TASKS if any(r["task"] == task for r in rows)}
        for kind in KINDS
    }  # fmt: skip


def best_rate(rows: Iterable[dict[str, Any]], task: str, kind: str) -> float:
    """The rate of the row of kind "rate" with the highest accuracy on VALIDATION; of equals, the middle one
    (of four, the second) if it is among them.

    What is less than 0.05 above the guess counts as the guess: there, one rate learns no more than another.
    """
    rows = [row for row in rows if row.get("task") == task]
    floor = max(row["accuracy"] for row in rows if row["kind"] == "guess") + 0.05
    scores = {
        row["lr"]: max(row["validation_accuracy"], floor)
        for row in rows
        if row["kind"] == "rate" and row["attention"] == kind
    }
    best = [lr for lr, score in scores.items() if score == max(scores.values())]
    middle = sorted(scores)[(len(scores) - 1) // 2]
    return middle if middle in best else best[0]


def costs(rows: Iterable[dict[str, Any]]) -> dict[str, dict[int, tuple[float, float]]]:
    """Steps per processor-second (of the repeats, the median) and MiB at the peak, by kind and by number of
    tokens, of the rows of kind "cost"."""
    rows = [row for row in rows if row["kind"] == "cost"]
    found: dict[str, dict[int, tuple[float, float]]] = {}
    for row in rows:
        same = [r for r in rows if (r["attention"], r["n"]) == (row["attention"], row["n"])]
        found.setdefault(row["attention"], {})[row["n"]] = (
            statistics.median(r["steps_per_s"] for r in same),
            statistics.median(r["mib"] for r in same),
        )
    return found


def run(seed: int) -> list[dict[str, Any]]:
    """All rows of a seed; those of kind "rate" with the first seed only."""
    return [make(**setting) for setting in settings(seed)]


def settings(seed: int) -> list[dict[str, Any]]:
    """What is run for one seed: the kind of "row", and what its function is called with."""
    first = seed == RECIPE["seeds"][0]
    wanted: list[dict[str, Any]] = []
    for task in TASKS:
        wanted.append({"row": "guess", "task": task, "seed": seed})
        if task in RECIPE["dropped"]:
            wanted += [
                {"row": "dropped", "task": task, "attention": kind, "seed": seed}
                for kind in RECIPE["dropped"][task]
            ]
            continue
        for kind in KINDS:
            if first:
                wanted += [
                    {"row": "rate", "task": task, "attention": kind, "lr": lr} for lr in RECIPE["rates"]
                ]
            wanted.append({"row": "point", "task": task, "attention": kind, "seed": seed})
    return wanted + [
        {"row": "cost", "attention": kind, "n": n, "seed": seed}
        for kind in (*KINDS, WITH_TABLE) for n in RECIPE["cost"]["sizes"]
    ]  # fmt: skip


def make(row: str, **setting: Any) -> dict[str, Any]:
    """One row of a kind, as `settings` asks for it."""
    makers = {"point": point, "dropped": point, "rate": rate, "guess": guessed, "cost": cost}
    return {"kind": row} | makers[row](**setting)


def point(task: str, attention: str, seed: int) -> dict[str, Any]:
    """A row of kind "point" or "dropped": a model is trained, and judged on the test."""
    model, history = train(task, attention, seed)
    best = max(history.rows, key=lambda row: row["score"])
    return {
        "task": task, "attention": attention, "seed": seed, "lr": RECIPE["lr"][task][attention],
        "steps": history.rows[-1]["step"], "best_step": best["step"],
        "accuracy": round(accuracy(model, task, seed=seed), 4),
        "validation_accuracy": round(best["score"], 4),
        "loss": round(history.rows[-1]["loss"], 4), "cpu_s": round(history.cpu_s, 1),
        "steps_per_s": round(history.rows[-1]["step"] / history.cpu_s, 1),
        "parameters": sum(p.numel() for p in model.parameters()),
    }  # fmt: skip


def rate(task: str, attention: str, lr: float) -> dict[str, Any]:
    """A row of kind "rate", with the first seed. Where the loss is not finite any more, the accuracy is 0:
    such a rate is never chosen."""
    seed, steps = RECIPE["seeds"][0], RECIPE["rate_steps"][task]
    start = time.process_time()
    try:
        score = max(train(task, attention, seed, lr=lr, steps=steps)[1].column("score"))
    except ValueError as error:
        if "the loss is" not in str(error):
            raise
        score = 0.0
    return {
        "task": task, "attention": attention, "seed": seed, "lr": lr, "steps": steps,
        "validation_accuracy": round(score, 4), "cpu_s": round(time.process_time() - start, 1),
    }  # fmt: skip


def guessed(task: str, seed: int) -> dict[str, Any]:
    """A row of kind "guess"."""
    return {"task": task, "seed": seed, "accuracy": round(guess(task, seed), 4)}


def cost(attention: str, n: int, seed: int) -> dict[str, Any]:
    """A row of kind "cost": steps of training (forward, backward, Adam) per second, and the peak of forward
    and backward.

    Seconds are `measure.clock`'s: of the processor, on CUDA by the clock. Sequences are random tokens.
    """
    task = Task(n, 256, 2, "mean")
    torch.manual_seed(seed)
    held = attention == WITH_TABLE
    with torch.device("cpu"):
        model = Classifier("full" if held else attention, **task._asdict(), **_sizes())
        tokens = torch.randint(task.n_tokens, (RECIPE["cost"]["batch"], n))
        answer = torch.randint(task.n_classes, (RECIPE["cost"]["batch"],))
    model, (tokens, answer) = to_device(model), to_device((tokens, answer))
    optimizer = torch.optim.Adam(model.parameters())

    def gradients() -> None:
        nn.functional.cross_entropy(_logits(model, tokens, held), answer).backward()

    def step() -> None:
        optimizer.zero_grad()
        gradients()
        optimizer.step()

    step()  # makes the optimiser's memory
    mib = measure.peak_mib(gradients)
    seconds = measure.seconds(step, repeats=RECIPE["cost"]["steps"])
    return {
        "attention": attention, "n": n, "seed": seed,
        "steps_per_s": float(f"{1 / seconds:.4g}"), "mib": round(mib, 2),
    }  # fmt: skip


def _logits(model: Classifier, tokens: Tensor, held: bool) -> Tensor:
    """The model's logits, each layer's table of weights computed and held until all is done, where `held`."""
    if not held:
        return model(tokens)
    x, tables = model.embedding(tokens), []
    for layer in model.layers:
        x, weights = layer(x, weights=True)
        tables.append(weights)
    return model.out(model.norm(x).mean(1))


def pairs(generator: torch.Generator, batch: int, count: int) -> Labelled:
    """`recall.pairs` with its keys numbered anew in each sequence, 0 ... count - 1 by their size: with 128
    keys a training takes much longer. A pair's number is key · 8 + value, a question's count · 8 + key."""
    tokens, answer = recall.pairs(generator, batch, count)
    first = recall.PAIR_KEYS * recall.PAIR_VALUES
    keys, values = tokens[:, :-1] // recall.PAIR_VALUES, tokens[:, :-1] % recall.PAIR_VALUES
    number = keys.argsort(1).argsort(1)
    asked = number[keys == tokens[:, -1:] - first]
    question = count * recall.PAIR_VALUES + asked
    return Labelled(torch.cat([number * recall.PAIR_VALUES + values, question[:, None]], 1), answer)


def _sizes() -> dict[str, int]:
    return {name: RECIPE[name] for name in ("d_model", "n_heads", "n_layers", "radius", "rank", "n_features")}


def _mean(rows: list[dict[str, Any]], name: str, **wanted: Any) -> float:
    return statistics.fmean(
        row[name] for row in rows if all(row[key] == value for key, value in wanted.items())
    )
