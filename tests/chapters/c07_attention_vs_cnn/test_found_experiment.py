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


def test_an_untrained_model_finds_nothing_and_looks_all_the_same():
    torch.manual_seed(0)
    looked = found.looked(Detr())
    assert looked["box"] == [] and looked["query"] == 0
    assert (detr.scenes("test").kind[looked["scene"]] >= 0).all()
