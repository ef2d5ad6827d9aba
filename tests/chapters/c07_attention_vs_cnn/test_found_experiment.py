"""What the small DETR says scene by scene; its trainings are those of the experiment "detr"."""

import torch

from lesson_lib.chapters.c07_attention_vs_cnn.detr import Detr
from lesson_lib.chapters.c07_attention_vs_cnn.experiments import detr, found
from lesson_lib.experiments import results


def test_stored_scores_are_those_of_the_experiment_detr():
    stored = {row["seed"]: row["test"] for row in results("detr")["rows"] if row["system"] == "DETR"}
    for row in results("found")["rows"]:
        assert row["test"] == stored[row["seed"]]
        assert row["chance"]["recall"] < 0.02 < 0.9 < row["test"]["recall"]
        assert len(row["scenes"]) == found.RECIPE["scenes"]
        for one in (one for each in row["scenes"] for one in each):
            assert 0.5 < one["confidence"] <= 1 and 0 <= one["query"] < detr.RECIPE["n_queries"]


def test_weights_of_a_query_sum_to_one_in_every_head():
    for row in results("found")["rows"]:
        heads = torch.tensor(row["looked"]["weights"])
        assert heads.shape == (4, 6, 6)
        torch.testing.assert_close(heads.sum((1, 2)), torch.ones(4), atol=0.02, rtol=0)  # three digits kept


def test_an_untrained_model_finds_nothing_and_looks_all_the_same():
    torch.manual_seed(0)
    looked = found.looked(Detr())
    assert looked["box"] == [] and looked["query"] == 0
    assert (detr.scenes("test").kind[looked["scene"]] >= 0).all()


def test_a_run_has_one_row_with_scores_and_their_level_of_chance(monkeypatch):
    monkeypatch.setitem(detr.RECIPE, "scenes", {"validation": 11, "test": 13})
    monkeypatch.setattr(detr, "train", lambda seed: (Detr(), type("History", (), {"cpu_s": 0.0})))
    detr.scenes.cache_clear()
    (row,) = found.run(1)
    detr.scenes.cache_clear()
    assert row["seed"] == 1 and row["test"].keys() == row["chance"].keys() == {"recall", "precision", "iou"}
