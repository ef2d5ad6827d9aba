"""The DETR experiment: its scenes are split, and its rows count what they say."""

import pytest
import torch

from lesson_lib.chapters.c07_attention_vs_cnn.detr import Detections, match, truth
from lesson_lib.chapters.c07_attention_vs_cnn.experiments import detr
from lesson_lib.chapters.c07_attention_vs_cnn.scenes import KINDS, NONE


@pytest.fixture(autouse=True)
def _few_scenes(monkeypatch):
    monkeypatch.setitem(detr.RECIPE, "scenes", {"validation": 11, "test": 13})
    monkeypatch.setitem(detr.RECIPE, "batch", 5)
    detr.scenes.cache_clear()
    yield
    detr.scenes.cache_clear()


def right(scenes, blind=()):
    """A Detections that knows the truth; the queries in `blind` say "no object"."""
    kind, boxes = truth(scenes)[1:]
    wanted = kind.where(kind != NONE, len(KINDS))
    wanted = torch.nn.functional.pad(wanted, (0, 2), value=len(KINDS))
    wanted[:, list(blind)] = len(KINDS)
    logits = 9.0 * torch.nn.functional.one_hot(wanted, len(KINDS) + 1)
    return Detections(logits, torch.nn.functional.pad(boxes, (0, 0, 0, 2), value=0.25))


def test_splits_differ_and_are_always_the_same():
    validation, test = detr.scenes("validation"), detr.scenes("test")
    assert len(validation.canvas) == 11 and len(test.canvas) == 13
    assert not torch.equal(validation.box[:11], test.box[:11])
    detr.scenes.cache_clear()
    assert torch.equal(detr.scenes("test").canvas, test.canvas)
    drawn = detr.draw(torch.Generator("cpu").manual_seed(0))
    assert drawn.canvas.shape == (5, 1, 24, 24) and drawn.canvas.device.type == "cpu"
    assert not {0, 1, 2} & set(detr.RECIPE["data_seeds"].values())
    with pytest.raises(ValueError, match="split must be one of validation, test, got 'training'"):
        detr.scenes("training")


def test_systems_differ_in_what_they_say_and_nothing_else():
    sizes = {name: sum(p.numel() for p in detr.make(name).parameters()) for name in detr.RECIPE["systems"]}
    layer = 4 * 48**2 + 2 * 48 * 96 + 96 + 5 * 48
    assert sizes["DETR"] == sizes["no matching"] == sizes["no encoder"] + layer + 2 * 48
    with pytest.raises(ValueError, match="system must be one of DETR, no matching, no encoder, got 'yolo'"):
        detr.make("yolo")


def test_the_ablation_takes_the_matching_away_and_no_other_does(monkeypatch):
    calls = []
    monkeypatch.setattr(detr.detr, "match", lambda *given: calls.append(1) or match(*given))
    for system, wanted in (("DETR", 4), ("no encoder", 4), ("no matching", 0)):
        calls.clear()
        detr.train(system=system, steps=2)
        assert len(calls) == wanted, "two steps, two layers"


def test_find_judges_in_parts_what_the_model_finds_at_once(monkeypatch):
    model, _ = detr.train(steps=1)
    given = detr.scenes("test")
    whole = detr.find(model, given)
    monkeypatch.setattr(detr, "AT_ONCE", 3)
    parts = detr.find(model, given)
    assert len(whole.earlier) == 1 and whole.logits.shape == (13, 5, 5)
    torch.testing.assert_close(parts.boxes, whole.boxes)
    torch.testing.assert_close(parts.earlier[0].logits, whole.earlier[0].logits)


def test_rows_by_the_number_of_objects_count_those_scenes_alone():
    given = detr.scenes("test")
    counts = (given.kind != NONE).sum(1)
    perfect = detr.by_objects(right(given), given)
    assert [row["objects"] for row in perfect] == counts.unique().tolist()
    assert [row["scenes"] for row in perfect] == [int((counts == n).sum()) for n in counts.unique().tolist()]
    assert all((row["recall"], row["precision"]) == (1, 1) for row in perfect)
    for row in detr.by_objects(right(given, blind=[0]), given):
        n = row["objects"]
        assert row["recall"] == pytest.approx((n - 1) / n, abs=1e-4) and row["precision"] == (n > 1)


def test_queries_keep_their_places_in_pixels(monkeypatch):
    monkeypatch.setitem(detr.RECIPE, "kept", 7)
    given = detr.scenes("test")
    rows = detr.by_query(right(given, blind=[1]))
    counts = (given.kind != NONE).sum(1)
    assert [row["found"] for row in rows] == [13, 0, int((counts > 2).sum()), 0, 0]
    assert rows[0]["sure"] == [1] * 7 and rows[2]["sure"] == (counts[:7] > 2).int().tolist()
    middle = (given.box[:7, 0, ::2].float().mean(1)).tolist()
    assert rows[0]["x"] == pytest.approx(middle) and rows[3]["y"] == [6.0] * 7
