"""The ledger after the sources: each row is whole, its cell is in the evidence, and it is found again here,
without the notebook."""

from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c13_todays_models import published, writer
from lesson_lib.chapters.c13_todays_models.cache_explorer import NO_WINDOWS, kept_mib
from lesson_lib.claims import MEANS, address, after_the_sources, claim, ledger, page
from lesson_lib.experiments import results
from lesson_lib.heads import SinkAttention
from lesson_lib.models.pretrained import cut, lens, open_model, opened, without_each

ROWS = after_the_sources()
SOURCE = Path(__file__).parents[3] / "notebooks" / "source" / "evidence" / "13_todays_models_evidence.py"
TEXT, A, LAST = "A Wibkat is a class. The Wibk", 7, 29


@pytest.fixture(scope="module")
def model():
    return open_model(writer.FOLDER)


@pytest.mark.parametrize("key", ROWS)
def test_a_row_is_whole_and_has_its_cell(key):
    row = ROWS[key]
    assert row.verdict in ("holds", "with a condition", "corrected") and row.because and row.where
    assert set(row.decided_by.split(" and ")) <= set(MEANS)
    assert row.lesson == "evidence/13_todays_models_evidence"
    assert f'tags=["claim:{key}"]' in SOURCE.read_text("utf-8")
    assert "#cell-id=" in address(key)
    path, _, name = row.test.partition("::")
    assert path.endswith(Path(__file__).name) and callable(globals()[name])


def test_the_two_ledgers_share_no_row():
    assert not set(ROWS) & set(ledger()) and list(ROWS) == [f"after-{i}" for i in range(1, len(ROWS) + 1)]
    shown = page(after=True)
    assert [row.id for row in shown.rows] == list(ROWS) and "Olsson" in shown._repr_html_()
    assert not [row for row in page().rows if row.id in ROWS]
    assert [row.id for row in page("with a condition", after=True).rows] == [
        "after-2",
        "after-3",
        "after-5",
        "after-7",
    ]
    with pytest.raises(ValueError, match="source must be one of"):
        page(source="S1", after=True)
    assert "HOLDS" in repr(claim("after-9", {"a finding": True}))


def of_kind(name, **fields):
    return [row for row in results(name)["rows"] if all(row[key] == value for key, value in fields.items())]


def test_after_1():
    two, one = (of_kind("copying", n_layers=n, shortest=6) for n in (2, 1))
    assert min(row["accuracy"][str(n)] for row in two for n in (6, 12, 18, 24)) > 0.99
    assert max(share for row in one for share in row["accuracy"].values()) < 0.22
    assert max(max(row["cut"]) for row in two) < 0.09


def test_after_2():
    fooled = of_kind("copying", n_layers=2, shortest=24)
    assert all(row["matching"][1] > 0.995 and row["accuracy"]["18"] < 0.075 for row in fooled)


def test_after_3():
    slow = of_kind("loud_starts", kind="QK-norm", loud=16)
    assert all((row["accuracy"] > 0.99) == (row["steps"] == 3200) for row in slow)
    assert max(row["accuracy"] for row in of_kind("loud_starts", kind="plain", loud=4)) < 0.07


def test_after_4(model):
    """Random signs: before anything repeats, layer 2 rests on the start token; afterwards on the copy."""
    generator = torch.Generator("cpu").manual_seed(1)
    signs = writer.said_twice(generator, 16, shortest=24, longest=24)
    with torch.no_grad():
        (table,) = model(signs.to(model.norm.weight.device), weights=True).weights[2:3]
    rests, finds = table[:, :, 5:25, 0].mean((0, 2)), table.diagonal(-23, -2, -1)[..., 2:].mean((0, 2))
    assert rests.min() > 0.2 and finds.min() > 0.7
    assert table[:, :, 26:, 0].mean() < 0.1


def test_after_5(model):
    (row,) = of_kind("writer", kind="manual and copies", seed=0)
    cheap = sorted(row["heads"], key=lambda head: head["bits"])
    assert sum(head["bits"] < row["bits"] + 0.1 for head in cheap) == 14
    with cut(model, [(head["layer"], head["head"]) for head in cheap[:8]]):
        assert writer.copied(model, 24) < 0.05


def test_after_6(model):
    seen, left = opened(model, TEXT), without_each(model, TEXT)
    assert seen.weights[2][0, 1, LAST, A] > 0.98 and left[2, 1] > 0.85
    assert seen.weights[1][0, 3, LAST, A] < 0.01 and left[1, 3] < 0.1


def test_after_7(model):
    with torch.no_grad():
        read = model(model.numbers(TEXT)[None].to(model.norm.weight.device), weights=True)
    said = [model.pieces(row[None].cpu())[0] for row in lens(model, read)[:, 0, -1].argmax(-1)]
    assert said[3:] == ["a", "a"] and "a" not in said[:3]


def test_after_8():
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 2, 3, 5, 8)
    layer = SinkAttention(3)
    with torch.no_grad():
        layer.sinks.copy_(torch.tensor([0.5, -1.0, 2.0]))
        scores = torch.cat((query @ key.mT / 8**0.5, layer.sinks[:, None, None].expand(2, 3, 5, 1)), -1)
        shares = (scores - scores.logsumexp(-1, keepdim=True)).exp()[..., :-1]
        assert_close(layer(query, key, value).output, shares @ value)
        assert not torch.allclose(attend(query, key, value).output, shares @ value, atol=1e-2)


def test_after_9():
    kept = {
        name: kept_mib(published.read(name), 131_072, NO_WINDOWS) / kept_mib(published.read(name), 131_072)
        for name in published.CONFIGS
    }
    assert kept["Mistral 7B v0.1"] == 32 and 5.9 < kept["Gemma 3 27B"] < 6 and 1.9 < kept["gpt-oss 20B"] < 2
