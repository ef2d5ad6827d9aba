"""The experiment on dates with a Transformer: its data, its counts, and how its rate was chosen."""

from types import SimpleNamespace

import pytest
import torch

from lesson_lib import experiments
from lesson_lib.chapters.c06_transformer.experiments import translation
from lesson_lib.data import dates as data
from lesson_lib.data.dates import Pair
from lesson_lib.device import to_device
from lesson_lib.models.translator import greedy


@pytest.fixture
def tiny(monkeypatch):
    """A model that is made and trained in no time."""
    sizes = {"n_layers": 2, "d_model": 8, "n_heads": 2, "d_inner": 5}
    monkeypatch.setitem(translation.RECIPE, "model", translation.RECIPE["model"] | sizes)
    monkeypatch.setitem(translation.RECIPE, "batch", 7)


@pytest.mark.parametrize("numbers, shares", [([1], [20]), ([1, 2, 3], [7, 7, 6]), ([2, 5], [10, 10])])
def test_numbers_of_dates_are_mixed_equally(numbers, shares):
    pairs = translation.mixed(torch.Generator("cpu").manual_seed(0), 20, dates=numbers)
    counts = [pair.target.count(data.SEPARATOR) + 1 for pair in pairs]
    assert [counts.count(n) for n in numbers] == shares and len(pairs) == 20
    assert pairs == translation.mixed(torch.Generator("cpu").manual_seed(0), 20, dates=numbers)


def test_parameters_are_counted_by_hand():
    d, inner, n_tokens = 64, 256, len(translation.make().vocabulary)
    encoder_layer = 4 * d**2 + 2 * d * inner + inner + 5 * d
    decoder_layer = 8 * d**2 + 2 * d * inner + inner + 7 * d
    by_hand = 2 * (encoder_layer + decoder_layer) + 2 * 2 * d + n_tokens * d
    assert sum(p.numel() for p in translation.make().parameters()) == by_hand == 236_928


def test_errors_are_told_by_language(monkeypatch, no_shape_hook):
    """A translator that knows no Czech, and is wrong on one day in all other languages."""
    monkeypatch.setitem(translation.RECIPE, "days", 2)
    bad = data.days("test")[1].item()
    asked = []

    def translate(model, sources):
        asked.append(sources)
        days = [reading[0].day for (reading,) in map(data.readings, sources)]
        wrong = [len(asked) == 1 or day.toordinal() == bad for day in days]
        return [
            SimpleNamespace(text="?" if no else day.isoformat()) for day, no in zip(days, wrong, strict=True)
        ]

    monkeypatch.setattr(translation, "translate", translate)
    rows = translation.by_language(None)
    assert [row["language"] for row in rows] == [data.language(locale) for locale in data.LOCALES]
    assert [row["wrong"] for row in rows] == [6] + 14 * [3] and {row["texts"] for row in rows} == {6}
    for row in rows:
        assert len(row["examples"]) == 3
        for source, right, said in row["examples"]:
            days = {reading.day.isoformat() for reading in data.readings(source)[0]}
            assert said == "?" and days == {right}


def test_the_alignment_is_judged_by_the_weights_on_year_and_day(monkeypatch, no_shape_hook):
    pairs = [Pair("3. 3. 2021", "2021-03-03"), Pair("märz 13, 2013", "2013-03-13")]
    even = [torch.full((10, len(pair.source)), 1 / len(pair.source)) for pair in pairs]
    sharp = torch.zeros(10, 10)
    sharp[:3, 6], sharp[3, 9] = 0.5, 1.0  # the year is written: half of the weight on its digits, then all
    sharp[8, 0] = sharp[9, 3] = 1.0  # the day is written: once on the day, once on the month
    assert translation._on_digits(pairs[0], even[0]) == pytest.approx((4 / 10, 1 / 10))
    assert translation._on_digits(pairs[1], even[1]) == pytest.approx((4 / 13, 2 / 13))
    assert translation._on_digits(pairs[0], sharp) == pytest.approx((5 / 8, 1 / 2))

    model = SimpleNamespace(
        aligned=1, transformer=SimpleNamespace(decoder=SimpleNamespace(layers=[None, None]))
    )
    tables = {0: [sharp, even[1]], 1: even}

    def translate(model, sources):
        said = ["2021-03-03", "2013-03-13" if model.aligned else "2013-03-12"]
        return [SimpleNamespace(text=t, weights=w) for t, w in zip(said, tables[model.aligned], strict=True)]

    monkeypatch.setattr(translation, "texts", lambda count, split: {"validation": pairs}[split])
    monkeypatch.setattr(translation, "translate", translate)
    rows = translation.alignments(model)
    assert model.aligned == 1
    assert rows == [
        {"kind": "alignment", "layer": 0, "texts": 1, "on_year": 0.625, "on_day": 0.5},
        {"kind": "alignment", "layer": 1, "texts": 2, "on_year": 0.3538, "on_day": 0.1269},
    ]


def test_with_and_without_a_cache_the_answers_are_the_same(tiny):
    torch.manual_seed(0)
    model = to_device(translation.make()).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.mul_(4 if ".w_" in name else 1)
    source, lengths = to_device(model.vocabulary.encode(["3. märz 2021", "mar 3, 1987; 12 mai 2001"]))
    found = greedy(model, source, lengths, 8).tokens
    assert torch.equal(translation.uncached(model, source, lengths, 8)[:, : found.shape[1]], found)
    row = translation.timing(6)
    assert row["same"] and row["characters"] == 6 and min(row["cached_s"], row["uncached_s"]) >= 0


def test_curves_hold_lowest_middle_and_highest_of_the_seeds():
    rows = [
        {"kind": "test", "trained_on": on, "dates": n, "width": width, "exact": exact + width}
        for on, n, width in (([1], 1, 1), ([1, 2, 3], 1, 1), ([1, 2, 3], 4, 1), ([1], 1, 4))
        for exact in (0.5, 0.9, 0.7)
    ]
    band = [1.5], [1.7], [1.9]
    assert translation.by_dates([*rows, {"kind": "map"}]) == {
        "trained on 1": ([1], *band), "trained on 1 to 3": ([1, 4], *(2 * each for each in band)),
    }  # fmt: skip
    assert translation.by_dates(rows, width=4) == {"trained on 1": ([1], [4.5], [4.7], [4.9])}


def stored(kind):
    return [row for row in experiments.results("translation")["rows"] if row["kind"] == kind]


def test_rate_and_layer_were_chosen_on_validation():
    (chosen,) = [row for row in stored("trained") if (row["seed"], row["trained_on"]) == (0, [1])]
    others = stored("rate")
    assert min(row["lr"] for row in others) < chosen["lr"] < max(row["lr"] for row in others)
    assert chosen["validation_loss"] < min(row["validation_loss"] for row in others)
    sums = [0.0, 0.0]
    for row in stored("alignment"):
        sums[row["layer"]] += row["on_year"] + row["on_day"]
    assert sums.index(max(sums)) == translation.make().aligned
