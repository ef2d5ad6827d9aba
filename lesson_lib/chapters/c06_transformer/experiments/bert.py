"""A small BERT on the grammar of agreement: what it guesses, which head looks at the subject, and whether
that head matters.

The masked words of test sentences are guessed by the model and by counting, and so is the number of each
masked verb: right where its true form gets more probability than its form of the other number. The probe
reads the weights of the masked verb. The interference asks what they are for: the subject is hidden from one
head, or the head's weights are made uniform, and the number is guessed again. The rate is the one of `rates`
with the lowest cross-entropy on VALIDATION, the mean over the seeds: the lowest of them. Source of the
measure of agreement: Linzen, Dupoux & Goldberg 2016, arXiv:1611.01368.
"""

import math
from contextlib import ExitStack
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lesson_lib.chapters.c06_transformer import agreement as data
from lesson_lib.chapters.c06_transformer import bert
from lesson_lib.chapters.c06_transformer.agreement import MASK, Sentences
from lesson_lib.chapters.c06_transformer.bert import Bert, Counts, Hidden
from lesson_lib.device import to_device
from lesson_lib.training import History, fit

RECIPE = {
    "sentences": {"training": 20_000, "validation": 1_000, "test": 4_000},
    "data_seed": 0,
    "n_layers": 2,
    "d_model": 48,
    "n_heads": 2,
    "d_inner": 192,
    "dropout": 0.0,
    "batch": 64,
    "steps": 1800,
    "lr": 1e-2,
    "rates": [1e-2, 1.5e-2, 2e-2],
    "count_passes": 5,  # how often the training sentences are hidden anew for the guesses by counting
    "prior": 10.0,
    "seeds": [0, 1, 2],
}
SIGHTS = ("nothing", "left", "both")
WAYS = ("verb", "all", "uniform", "control")
AT_ONCE = 500  # sentences that are judged together


@cache
def sentences(split: str) -> Sentences:
    """The sentences of a split, shortest first, the same ones for every seed."""
    number = RECIPE["data_seed"] + list(data.SPLITS).index(split)
    drawn = data.draw(torch.Generator("cpu").manual_seed(number), RECIPE["sentences"][split], split)
    return drawn.take(drawn.lengths.argsort(stable=True))


@cache
def hidden(split: str) -> Hidden:
    """The sentences of a split with 15 % of their words hidden, always the same ones."""
    words, lengths, *_ = sentences(split)
    return bert.hide(words, lengths, torch.Generator("cpu").manual_seed(RECIPE["data_seed"] + 10))


@cache
def counts() -> Counts:
    """The guesses by counting, on the training sentences that the model learns from."""
    words, lengths, *_ = sentences("training")
    again = RECIPE["count_passes"]
    generator = torch.Generator("cpu").manual_seed(RECIPE["data_seed"] + 20)
    batch = bert.hide(words.repeat(again, 1), lengths.repeat(again), generator)
    return Counts(batch, prior=RECIPE["prior"])


def draw(generator: torch.Generator) -> Hidden:
    """A batch of training sentences of about one length, words hidden anew."""
    return bert.hide(*some(generator), generator)


def some(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Words and lengths of a batch of training sentences of about one length."""
    last = RECIPE["sentences"]["training"] - RECIPE["batch"]
    first = int(torch.randint(last + 1, (1,), generator=generator, device="cpu"))
    rows = torch.arange(first, first + RECIPE["batch"], device="cpu")
    words, lengths, *_ = sentences("training").take(rows)
    return words, lengths


def make() -> Bert:
    """The untrained model."""
    names = ("n_layers", "d_model", "n_heads", "d_inner", "dropout")
    return Bert(**{name: RECIPE[name] for name in names})


def train(seed: int = 0, *, lr: float = RECIPE["lr"], steps: int = RECIPE["steps"]) -> tuple[Bert, History]:
    """Train one model. Its history's score is exp(-cross-entropy) of the words hidden in validation
    sentences, "agreement" their verbs'."""
    torch.manual_seed(seed)
    model, agreed = to_device(make()), []

    def validate(model: Bert) -> float:
        agreed.append(agreement(model, sentences("validation"))["all"])
        return math.exp(-guessed(model, "validation")["cross_entropy"])

    history = fit(
        model, draw, bert.loss, steps=steps, lr=lr, validate=validate, seed_number=seed, name="BERT"
    )
    for row, share in zip(history.rows, agreed, strict=False):
        row["agreement"] = share
    return model, history


@torch.no_grad()
def logits(guesser: Bert | str, seen: Tensor, lengths: Tensor) -> Tensor:
    """Logits (b, n, words) on the CPU, of a model or of the guess by counting with that sight ("nothing",
    "left", "both")."""
    if isinstance(guesser, str):
        return counts().logits(seen, guesser)
    made = []
    for some in range(0, len(seen), AT_ONCE):
        part, its = seen[some : some + AT_ONCE], lengths[some : some + AT_ONCE]
        longest = int(its.max())
        made.append(F.pad(guesser(*to_device((part[:, :longest], its))), (0, 0, 0, seen.shape[1] - longest)))
    return torch.cat(made).cpu()


def guessed(guesser: Bert | str, split: str = "test") -> dict[str, float]:
    """How well the words hidden in a split are guessed where [mask] stands: "accuracy", and "cross_entropy"
    in nats."""
    batch = hidden(split)
    asked = batch.chosen & (batch.seen == MASK)
    scores, words = logits(guesser, batch.seen, batch.lengths)[asked], batch.words[asked]
    accuracy = (scores.argmax(-1) == words).double().mean().item()
    return {"accuracy": accuracy, "cross_entropy": F.cross_entropy(scores, words).item()}


def at_verb(guesser: Bert | str, given: Sentences) -> Tensor:
    """Logits (b, words) of the masked verbs."""
    scores = logits(guesser, given.masked(), given.lengths)
    return scores[torch.arange(len(scores), device="cpu"), given.verb]


def agrees(scores: Tensor, given: Sentences) -> Tensor:
    """For each sentence 1 where the masked verb's true form is likelier than its other form, 0 where less,
    1/2 where equal."""
    true, other = (scores.gather(1, word[:, None])[:, 0] for word in (given.right(), given.other))
    return (1 + (true - other).sign()) / 2


def agreement(guesser: Bert | str, given: Sentences | None = None) -> dict[str, Any]:
    """The share of test verbs (or the given ones) in the right number: "all", "misleading", and by number of
    attractors.

    "by_attractors" and "misleading_by_attractors" hold [attractors, sentences, share]; "cross_entropy" is
    that of the verbs themselves, whose limits are those of `data.verb_limits`.
    """
    given = sentences("test") if given is None else given
    scores = at_verb(guesser, given)
    right, misleads = agrees(scores, given), given.misleading
    return {
        "all": right.mean().item(),
        "misleading": right[misleads].mean().item(),
        "by_attractors": _by(given.attractors, right),
        "misleading_by_attractors": _by(given.attractors[misleads], right[misleads]),
        "cross_entropy": F.cross_entropy(scores, given.right()).item(),
    }


def _by(kinds: Tensor, right: Tensor) -> list[list[float]]:
    return [
        [kind, int((kinds == kind).sum()), right[kinds == kind].mean().item()]
        for kind in kinds.unique().tolist()
    ]


def probed(split: str = "test") -> Sentences:
    """The sentences of a split with at least one attractor, whose heads are probed."""
    given = sentences(split)
    return given.take(given.attractors > 0)


@torch.no_grad()
def looks(model: Bert, given: Sentences) -> Tensor:
    """Where the masked verb of each sentence looks: weights (layers, heads, b, n), on the CPU."""
    made = []
    for some in range(0, len(given.words), AT_ONCE):
        part = Sentences(*(table[some : some + AT_ONCE] for table in given))
        tables = model.stack(*to_device((part.masked(), part.lengths)), weights=True).weights
        rows = torch.arange(len(part.words), device="cpu")
        made.append(torch.stack([table.cpu()[rows, :, part.verb] for table in tables]).transpose(1, 2))
    return torch.cat(made, 2)


def probe(model: Bert, given: Sentences | None = None) -> list[dict[str, Any]]:
    """A row per head: the weight of the masked verb on the subject, and how often the subject has the largest
    one, on `probed` sentences.

    "weight" and "largest" stand beside "even" (1/n, what each would be without a preference) and "offset":
    how often the head's own favourite distance, chosen on these very sentences, happens to hit the subject; a
    head that goes by place alone gets no more.
    """
    given = probed() if given is None else given
    tables, rows = looks(model, given), []
    for layer, of_layer in enumerate(tables):
        for head, table in enumerate(of_layer):
            favourite = table.argmax(-1)
            distance = (favourite - given.verb).mode().values
            rows.append(
                {
                    "layer": layer, "head": head,
                    "weight": table.gather(1, given.subject[:, None]).mean().item(),
                    "largest": (favourite == given.subject).double().mean().item(),
                    "even": (1 / given.lengths).mean().item(),
                    "offset": (given.verb + distance == given.subject).double().mean().item(),
                }
            )  # fmt: skip
    return rows


def best_offset(given: Sentences | None = None) -> float:
    """How often the one best distance from the verb hits the subject: the most that looking by distance alone
    can do."""
    given = probed() if given is None else given
    distances = given.verb - given.subject
    return (distances == distances.mode().values).double().mean().item()


def blind(given: Sentences, how: str) -> Tensor:
    """Which queries may not see which keys (b, n, n); the ways are those of `interfere`.

    "verb": the masked verb may not see the subject; "all": no word may; "control": no word may see the one
    before the verb.
    """
    n = given.words.shape[1]
    places = torch.arange(n, device="cpu")
    key = given.verb - 1 if how == "control" else given.subject
    table = (places == key[:, None])[:, None].expand(-1, n, -1)
    return table & (places == given.verb[:, None])[:, :, None] if how == "verb" else table


def interfere(model: Bert, given: Sentences | None = None) -> list[dict[str, Any]]:
    """A row per head, per layer (head None) and for all (layer None too): agreement on `probed` sentences
    after each interference.

    "before" is the model as it is; "verb" hides the subject from the masked verb in that head, "all" hides it
    from every word there, "uniform" makes the head's weights even, "control" hides the word before the verb
    (an attractor, or the verb of its clause) in the place of the subject. Each is [share of all, share of the
    misleading ones].
    """
    given = probed() if given is None else given
    layers, heads = range(RECIPE["n_layers"]), range(RECIPE["n_heads"])
    places = [(layer, head) for layer in layers for head in heads]
    places += [(layer, None) for layer in layers] + [(None, None)]
    before = _two(agrees(at_verb(model, given), given), given)
    return [
        {"layer": layer, "head": head, "before": before}
        | {how: _two(_interfered(model, given, layer, head, how), given) for how in WAYS}
        for layer, head in places
    ]


def _two(right: Tensor, given: Sentences) -> list[float]:
    return [right.mean().item(), right[given.misleading].mean().item()]


def _interfered(model: Bert, given: Sentences, layer: int | None, head: int | None, how: str) -> Tensor:
    """`agrees` in parts of one width, each with a mask of its own."""
    made = []
    for some in range(0, len(given.words), AT_ONCE):
        part = given.take(torch.arange(some, min(some + AT_ONCE, len(given.words)), device="cpu"))
        hide = None if how == "uniform" else to_device(blind(part, how))
        with ExitStack() as stack:
            for one in range(RECIPE["n_layers"]) if layer is None else (layer,):
                stack.enter_context(bert.changed(model, one, head, blind=hide))
            made.append(agrees(at_verb(model, part), part))
    return torch.cat(made)


def run(seed: int) -> list[dict[str, Any]]:
    """Rows of kind "rate" (each rate on validation), "trained" (the chosen one on test), "probe" and
    "interference" (a row per head)."""
    rows: list[dict[str, Any]] = []
    for lr in RECIPE["rates"]:
        model, history = train(seed, lr=lr)
        row = {
            "kind": "rate", "lr": lr, "validation_loss": guessed(model, "validation")["cross_entropy"],
            "validation_agreement": agreement(model, sentences("validation"))["all"], "cpu_s": history.cpu_s,
        }  # fmt: skip
        rows.append(row)
        if lr != RECIPE["lr"]:
            continue
        everyone = {"model": model} | {sight: sight for sight in SIGHTS}
        trained = {
            "kind": "trained", "lr": lr, "cpu_s": history.cpu_s,
            "parameters": sum(p.numel() for p in model.parameters()),
            "guessed": {name: guessed(one) for name, one in everyone.items()},
            "agreement": {name: agreement(one) for name, one in everyone.items()},
            "rules": data.rules(sentences("test")), "verb_limits": data.verb_limits(),
            "best_offset": best_offset(), "curve": history.rows,
        }  # fmt: skip
        rows.append(trained)
        rows += [{"kind": "probe"} | one for one in probe(model)]
        rows += [{"kind": "interference"} | one for one in interfere(model)]
    return [{"seed": seed} | row for row in rows]


def best_rate(rows: list[dict[str, Any]]) -> float:
    """The rate with the lowest cross-entropy on VALIDATION, the mean over the seeds."""
    losses: dict[float, list[float]] = {}
    for row in rows:
        if row["kind"] == "rate":
            losses.setdefault(row["lr"], []).append(row["validation_loss"])
    return min(losses, key=lambda lr: sum(losses[lr]) / len(losses[lr]))
