"""Dates into ISO 8601 by a small Transformer: how well, how fast, where it looks, and what it cannot do.

For each seed one model is trained on single dates, for as long as a lesson can wait, and another, longer, on
one to three dates in a row, mixed. Both are judged on days that were never trained on, and also on more dates
in a row than they were trained on. The rate was chosen by the cross-entropy on VALIDATION days of seed 0, on
single dates ("rate" rows); the decoder layer whose weights count as the alignment by the share of its weights
on the right digits, on validation days too ("alignment" rows). A text counts as right if no character of the
answer is wrong. Days, texts and judgement are those of `experiments.dates`, whose GRU with attention had 500
steps of 16 texts.

Departures from Vaswani et al. 2017, arXiv:1706.03762, beside the size: pre-norm, no dropout, no label
smoothing, Adam with its usual betas, and a cosine in the place of the root behind the warm-up.
"""

import functools
import re
import time
from collections.abc import Mapping, Sequence
from datetime import date
from functools import reduce

import torch
from torch import Tensor

from lesson_lib import summary
from lesson_lib.blocks import DecoderState
from lesson_lib.data import dates as data
from lesson_lib.device import to_device
from lesson_lib.experiments.dates import cross_entropy, judge, map_row, texts
from lesson_lib.models import translator
from lesson_lib.models.translator import START, Batches, TransformerTranslator, Vocabulary, greedy, translate
from lesson_lib.training import History, fit

RECIPE = {
    "model": {"n_layers": 2, "d_model": 64, "n_heads": 4, "d_inner": 256, "dropout": 0.0, "norm_first": True},
    "batch": 64,
    "pool": 8,
    "lr": 6e-3,
    "other_rates": [3e-3, 1.2e-2],
    "tuning_seed": 0,
    "runs": [  # numbers of dates in a row to train on, mixed; steps; numbers of dates to judge on
        [[1], 1000, [1, 2]],
        [[1, 2, 3], 1200, [1, 2, 3, 4]],
    ],
    "width": 4,  # of the beam
    "days": 50,  # test days that are written in every language and style, to tell errors by language
    "map": "mittwoch, 3. märz 2021",
    "timed": [10, 25, 50, 100, 200],  # characters of an answer
    "timed_batch": 16,
    "seeds": [0, 1, 2],
}  # fmt: skip


def make() -> TransformerTranslator:
    """An untrained model."""
    return TransformerTranslator(Vocabulary(data.characters()), **RECIPE["model"])


def train(
    *,
    dates: Sequence[int] = (1,),
    seed: int = 0,
    lr: float = RECIPE["lr"],
    steps: int = RECIPE["runs"][0][1],
    batch: int = RECIPE["batch"],
) -> tuple[TransformerTranslator, History]:
    """Train a model on texts of those numbers of dates in a row, equally many of each, `batch` in a step, and
    keep its last weights."""
    torch.manual_seed(seed)
    model = to_device(make())
    draw = functools.partial(mixed, dates=dates)
    batches = Batches(model.vocabulary, draw, batch=batch, pool=RECIPE["pool"])
    history = fit(model, batches, translator.loss, steps=steps, lr=lr, seed_number=seed, name="translator")
    return model, history


def carried_names(numbers: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What belongs to the parameters of a Transformer, under the names of notebooks/carry/transformer.py."""
    shorter = (("embedding.", ""), ("forward.w_in", "forward.0"), ("forward.w_out", "forward.2"))
    return {reduce(lambda name, pair: name.replace(*pair), shorter, name): x for name, x in numbers.items()}


def single(generator: torch.Generator, count: int) -> list[data.Pair]:
    """`count` pairs of training days, a date each."""
    return mixed(generator, count, dates=(1,))


def mixed(generator: torch.Generator, count: int, *, dates: Sequence[int]) -> list[data.Pair]:
    """`count` pairs of training days, about equally many of each number of dates in a row."""
    shares = [count // len(dates) + (i < count % len(dates)) for i in range(len(dates))]
    return [
        pair for share, n in zip(shares, dates, strict=True) for pair in data.draw(generator, share, dates=n)
    ]


def run(seed: int) -> list[dict]:
    """Rows "trained", "test", "language" and "alignment"; of the tuning seed also "rate", "map" and
    "speed"."""
    rows, tuning = [], seed == RECIPE["tuning_seed"]
    for dates, steps, judged in RECIPE["runs"]:
        model, history = train(dates=dates, seed=seed, steps=steps)
        made = [_trained(model, history) | {"steps": steps}]
        made += [_test(model, count, width=1) for count in judged]
        made += [_test(model, count, RECIPE["width"]) for count in dates]
        if dates == [1]:
            made += by_language(model) + alignments(model)
        if dates == [1] and tuning:
            made += [map_row(model, RECIPE["map"], seed)]
        rows += [row | {"trained_on": dates} for row in made]
    if tuning:
        rows += [_rate(seed, lr) for lr in RECIPE["other_rates"]] + [timing(n) for n in RECIPE["timed"]]
    return [row | {"seed": seed} for row in rows]


def _trained(model: TransformerTranslator, history: History) -> dict:
    return {
        "kind": "trained", "lr": RECIPE["lr"], "cpu_s": history.cpu_s,
        "parameters": sum(p.numel() for p in model.parameters()),
        "validation_loss": cross_entropy(model, texts(1, "validation")),
    }  # fmt: skip


def _rate(seed: int, lr: float) -> dict:
    model, history = train(seed=seed, lr=lr, steps=RECIPE["runs"][0][1])
    return _trained(model, history) | {"kind": "rate", "lr": lr}


def _test(model: TransformerTranslator, dates: int, width: int) -> dict:
    """Exact match on that many dates in a row; answers may be ten characters longer than right ones."""
    start = time.process_time()
    judged = judge(model, dates, width=width, longest=11 * dates + 10)
    return {"kind": "test", "dates": dates, "width": width, **judged, "cpu_s": time.process_time() - start}


def by_language(model: TransformerTranslator) -> list[dict]:
    """A row for each language: how many texts of test days, in all styles, the model gets wrong; and up to
    three of them."""
    rows, days = [], [date.fromordinal(n) for n in data.days("test")[: RECIPE["days"]].tolist()]
    for locale in data.LOCALES:
        pairs = [
            data.Pair(data.written(day, locale, style), day.isoformat())
            for day in days
            for style in data.STYLES
        ]
        made = translate(model, [pair.source for pair in pairs])
        wrong = [[*pair, one.text] for pair, one in zip(pairs, made, strict=True) if one.text != pair.target]
        row = {"kind": "language", "language": data.language(locale), "texts": len(pairs)}
        rows.append(row | {"wrong": len(wrong), "examples": wrong[:3]})
    return rows


def alignments(model: TransformerTranslator) -> list[dict]:
    """A row for each decoder layer: the share of its weights that lies on the input's year while the model
    writes the year, on its day while it writes the day. Over right answers to single dates of validation
    days; months, which may be words, are left out.
    """
    pairs, chosen, rows = texts(1, "validation"), model.aligned, []
    for layer in range(len(model.transformer.decoder.layers)):
        model.aligned = layer
        made = translate(model, [pair.source for pair in pairs])
        right = [(pair, one) for pair, one in zip(pairs, made, strict=True) if one.text == pair.target]
        shares = torch.tensor([_on_digits(pair, one.weights) for pair, one in right], device="cpu")
        year, day = shares.mean(0).tolist() if right else (0.0, 0.0)
        rows.append(
            {"kind": "alignment", "layer": layer, "texts": len(right), "on_year": round(year, 4),
            "on_day": round(day, 4)}
        )  # fmt: skip
    model.aligned = chosen
    return rows


def _on_digits(pair: data.Pair, weights: torch.Tensor) -> tuple[float, float]:
    year, _, day = pair.target.split("-")
    first = pair.source.index(year)
    # where a month is a number it stands behind the day
    at = re.search(rf"(?<![0-9])0?{int(day)}(?![0-9])", pair.source)
    return (
        weights[:4, first : first + 4].sum(1).mean().item(),
        weights[8:, at.start() : at.end()].sum(1).mean().item(),
    )


def timing(n: int) -> dict:
    """Seconds of processor time for answers of n characters with the key/value cache, and without: everything
    said so far goes through the decoder again. The model is untrained, the encoder's output is kept in both.
    """
    torch.manual_seed(0)
    model = to_device(make()).eval()
    with torch.no_grad():
        model.transformer.embedding.table[translator.END] = 0.0  # as good as never said
    source, lengths = to_device(model.vocabulary.encode([RECIPE["map"]] * RECIPE["timed_batch"]))
    start = time.process_time()
    cached = greedy(model, source, lengths, n).tokens
    middle = time.process_time()
    whole = uncached(model, source, lengths, n)
    end = time.process_time()
    same = cached.shape[1] == n and torch.equal(cached, whole)
    return {
        "kind": "speed",
        "characters": n,
        "cached_s": middle - start,
        "uncached_s": end - middle,
        "same": same,
    }


@torch.no_grad()
def uncached(
    model: TransformerTranslator, source: torch.Tensor, lengths: torch.Tensor, n: int
) -> torch.Tensor:
    """The first n tokens of greedy answers, made without what a cache would have kept."""
    first, said = model.start(source, lengths), torch.full_like(source[:, :1], START)
    for _ in range(n):
        fresh = DecoderState(first.memory, first.mask, model.transformer.decoder.caches())
        logits = model.transformer.step(said, fresh).logits[:, -1]
        said = torch.cat([said, logits[:, translator.END :].argmax(-1, keepdim=True) + translator.END], 1)
    return said[:, 1:]


def by_dates(rows: list[dict], width: int = 1) -> dict[str, tuple[list, list, list, list]]:
    """{"trained on 1": (numbers of dates, lowest, median, highest exact match over the seeds)} of the test
    rows with that beam width."""
    found: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        if (row["kind"], row.get("width")) == ("test", width):
            label = (
                "trained on"
                f" {' to '.join(str(n) for n in sorted({row['trained_on'][0], row['trained_on'][-1]}))}"
            )
            found.setdefault(label, {}).setdefault(row["dates"], []).append(row["exact"])
    return {label: summary.band(values) for label, values in found.items()}
