"""One, two, three dates in a row into ISO 8601: the input in one vector, or a decoder that looks back at it?

Systems: attention with Bahdanau's additive score, attention with the scaled dot product, a fixed vector. The
fixed vector is 1.5 times as wide as the states that the others look at, and its model has the most
parameters. It also gets more steps than the others, to tell apart what it cannot do and what it is slow to
learn. Rates are chosen for each system and number of steps, on two dates in a row, by the cross-entropy on
VALIDATION days of one seed. A text counts as right if no character of the answer is wrong.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lesson_lib import require, summary
from lesson_lib.data import dates as data
from lesson_lib.device import to_device
from lesson_lib.models import translator
from lesson_lib.models.translator import Batches, Translator, Vocabulary, translate
from lesson_lib.recurrent import AttentionDecoder, FixedVectorDecoder, TwoWayEncoder
from lesson_lib.scores import Additive, scaled_dot
from lesson_lib.training import History, fit

RECIPE = {
    "d_token": 48,
    "d_half": {"additive": 64, "scaled dot": 64, "fixed vector": 96},  # half of the encoder's states
    "d_state": 128,
    "d_score": 64,
    "batch": 16,
    "pool": 16,
    "settings": [  # system, steps, numbers of dates in a row, and the steps for which its rate was chosen
        ["additive", 500, [1, 2, 3], 500],
        ["scaled dot", 500, [1, 2, 3], 500],
        ["fixed vector", 500, [1, 2, 3], 500],
        ["fixed vector", 1000, [1, 2, 3], 1000],
        ["fixed vector", 4000, [3], 1000],
    ],
    "rates": [2.5e-3, 5e-3, 1e-2, 2e-2],
    "tuning_seed": 0,
    "tuning_dates": 2,
    "texts": 1000,
    "bin": 10,  # characters of the input, where accuracy is told by length
    "map": {"system": "additive", "dates": 1, "steps": 500, "seed": 0, "text": "mittwoch, 3. märz 2021"},
    "seeds": [0, 1, 2],
}
VALIDATION_SEED, TEST_SEED = 10_000, 20_000  # generators of the texts; the days are of different splits too


def make(system: str, locales: tuple[str, ...] = data.LOCALES) -> Translator:
    """An untrained model: "additive", "scaled dot" or "fixed vector", with the characters of these languages;
    raises ValueError for another name."""
    require.one_of(RECIPE["d_half"], system=system)
    d_token, d_state = RECIPE["d_token"], RECIPE["d_state"]
    encoder = TwoWayEncoder(d_token, RECIPE["d_half"][system])
    d_memory = encoder.d_memory
    if system == "fixed vector":
        decoder = FixedVectorDecoder(d_token, d_memory, d_state)
    else:
        score = scaled_dot if system == "scaled dot" else Additive(d_state, d_memory, RECIPE["d_score"])
        decoder = AttentionDecoder(d_token, d_memory, d_state, score=score)
    return Translator(Vocabulary(data.characters(locales)), encoder, decoder, d_token=d_token)


def texts(dates: int, split: str) -> list[data.Pair]:
    """The pairs that judge: days of the split "validation" or "test", the same every time; ValueError for
    another split."""
    seeds = {"validation": VALIDATION_SEED, "test": TEST_SEED}
    if split not in seeds:
        raise ValueError(f"split must be validation or test, got {split!r}; training days judge nothing")
    return data.draw(
        torch.Generator("cpu").manual_seed(seeds[split] + dates), RECIPE["texts"], dates=dates, split=split
    )


def train(
    system: str,
    *,
    dates: int = 1,
    lr: float,
    seed: int = 0,
    steps: int = 500,
    locales: tuple[str, ...] = data.LOCALES,
) -> tuple[Translator, History]:
    """Train one model on that many dates in a row, and keep its last weights."""
    torch.manual_seed(seed)
    model = to_device(make(system, locales))
    draw = functools.partial(data.draw, dates=dates, locales=locales)
    batches = Batches(model.vocabulary, draw, batch=RECIPE["batch"], pool=RECIPE["pool"])
    name = f"{system}, {dates} date{'s' if dates > 1 else ''}"
    history = fit(model, batches, translator.loss, steps=steps, lr=lr, seed_number=seed, name=name)
    return model, history


class Pieces(NamedTuple):
    """What a trained machine that looks back consists of, for one text at a time."""

    begin: Callable[[str], tuple[Tensor, Tensor]]  # the encoder's states, the decoder's first
    w_query: Tensor  # (d_state, d_hidden)
    w_key: Tensor  # (d_read, d_hidden)
    v: Tensor  # (d_hidden,)
    embed: Callable[[str], Tensor]  # a character's row; also of "start"
    core: Callable[[Tensor, Tensor], Tensor]  # the new state
    best: Callable[[Tensor], str]  # the character whose score is largest; also "end"


def pieces(model: Translator) -> Pieces:
    """The pieces of a `Translator` whose decoder is an `AttentionDecoder` with the additive score."""
    names = ["padding", "start", "end", *model.vocabulary.characters]
    decoder, score = model.decoder, model.decoder.score

    def begin(text: str) -> tuple[Tensor, Tensor]:
        begun = model.start(*to_device(model.vocabulary.encode([text])))
        return begun.encoded.states[0], begun.decoder[0]

    return Pieces(
        begin,
        score.w_query.weight.T,
        score.w_key.weight.T,
        score.v,
        lambda name: model.embed_target.weight[names.index(name)],
        decoder.core,
        lambda row: names[int(model.read(row).argmax())],
    )


@torch.no_grad()
def cross_entropy(model: nn.Module, pairs: Sequence[data.Pair]) -> float:
    """Mean cross-entropy of a character, over pairs with one number of dates."""
    ordered = sorted(pairs, key=lambda pair: len(pair.source))
    parts = [ordered[i : i + 250] for i in range(0, len(ordered), 250)]
    losses = [len(part) * translator.loss(model, to_device(model.vocabulary.batch(part))) for part in parts]
    return float(sum(losses)) / len(ordered)


def judge(model: nn.Module, dates: int, split: str = "test", **options: int) -> dict[str, Any]:
    """What the model gets right on that many dates in a row: "exact", "single dates" and "by_length". Options
    are those of `translate`.

    "exact" is the share of texts without a wrong character, "single dates" the share of dates, each in its
    place. "by_length" holds, for inputs of every `bin` characters, [first length, number of texts, share of
    them without a wrong character].
    """
    pairs = texts(dates, split)
    outputs = [
        translation.text for translation in translate(model, [pair.source for pair in pairs], **options)
    ]
    single, bins = 0, {}
    for text, pair in zip(outputs, pairs, strict=True):
        given = text.split(data.SEPARATOR)
        single += sum(a == b for a, b in zip(given, pair.target.split(data.SEPARATOR), strict=False))
        low = len(pair.source) // RECIPE["bin"] * RECIPE["bin"]
        bins.setdefault(low, []).append(text == pair.target)
    shares = [[low, len(hits), round(sum(hits) / len(hits), 4)] for low, hits in sorted(bins.items())]
    exact = sum(map(sum, bins.values())) / len(pairs)
    return {"exact": exact, "single dates": single / (len(pairs) * dates), "by_length": shares}


def run(seed: int) -> list[dict]:
    """A row for each system, number of steps and number of dates; on the seed that tunes, one for each rate
    and one map too.

    The other seeds train with the rates that are best on the tuning seed's validation days.
    """
    tuned = _grid()
    rates = {(row["system"], row["steps"]): row["lr"] for row in best_rows(tuned)}
    rows, shown = [], RECIPE["map"]
    for system, steps, counts, tuned_steps in RECIPE["settings"]:
        for dates in counts:
            if (seed, dates) == (RECIPE["tuning_seed"], RECIPE["tuning_dates"]):
                rows += [row for row in tuned if (row["system"], row["steps"]) == (system, steps)]
                continue
            setting = {"system": system, "dates": dates, "steps": steps, "seed": seed}
            row, model = _trained(**setting, lr=rates[system, tuned_steps])
            rows.append(row)
            if setting.items() <= shown.items():
                rows.append(map_row(model, shown["text"], seed))
    return rows


def best_rows(rows: list[dict]) -> list[dict]:
    """Of the rates of one system, number of steps, of dates, and seed, the one with the lowest cross-entropy
    on VALIDATION."""
    trained = [row for row in rows if row["kind"] == "trained"]
    return summary.best(trained, ("system", "steps", "dates", "seed"), by=lambda row: -row["validation_loss"])


def by_dates(rows: list[dict], column: str = "exact") -> dict[tuple[str, int], tuple[list, list, list, list]]:
    """{(system, steps): (numbers of dates, lowest, median, highest value of the column over the seeds)} of
    `best_rows`."""
    return summary.bands(best_rows(rows), ("system", "steps"), "dates", column)


def over_length(rows: list[dict], steps: int) -> dict[int, dict[str, tuple[list, list, list, list]]]:
    """{dates: {system: (input lengths, lowest, median, highest exact match over the seeds)}} of `best_rows`
    with that many steps.

    A bin is told by the middle of its lengths; bins with fewer than 30 texts are left out.
    """
    groups: dict[int, dict[str, dict[float, list[float]]]] = {}
    for row in best_rows(rows):
        if row["steps"] == steps:
            values = groups.setdefault(row["dates"], {}).setdefault(row["system"], {})
            for low, count, share in row["by_length"]:
                if count >= 30:
                    values.setdefault(low + (RECIPE["bin"] - 1) / 2, []).append(share)
    return {
        dates: {name: summary.band(values) for name, values in groups[dates].items()}
        for dates in sorted(groups)
    }


def map_row(model: nn.Module, text: str, seed: int) -> dict:
    """An alignment as a row; a line of weights per output character, so that the file stays readable."""
    (translation,) = translate(model, [text])
    lines = [" ".join(f"{weight:.3f}" for weight in row) for row in translation.weights.tolist()]
    return {"kind": "map", "seed": seed, "source": text, "target": translation.text, "weights": lines}


@functools.cache
def _grid() -> list[dict]:
    """Every system, number of steps and rate on the tuning seed and dates; cached, since every seed asks for
    its choice."""
    dates, seed = RECIPE["tuning_dates"], RECIPE["tuning_seed"]
    return [
        _trained(system=system, dates=dates, steps=steps, seed=seed, lr=lr)[0]
        for system, steps, counts, _ in RECIPE["settings"]
        for lr in RECIPE["rates"]
        if dates in counts
    ]


def _trained(*, system: str, dates: int, steps: int, seed: int, lr: float) -> tuple[dict, Translator]:
    model, history = train(system, dates=dates, lr=lr, seed=seed, steps=steps)
    row = {
        "kind": "trained", "seed": seed, "system": system, "dates": dates, "steps": steps, "lr": lr,
        "validation_loss": cross_entropy(model, texts(dates, "validation")), **judge(model, dates),
        "cpu_s": history.cpu_s, "parameters": sum(p.numel() for p in model.parameters()),
    }  # fmt: skip
    return row, model
