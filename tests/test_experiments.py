"""Experiments: their data are right, their stored results belong to the recipe in the code."""

import json

import pytest
import torch

from lesson_lib import experiments
from lesson_lib.experiments import look_up


@pytest.mark.parametrize("name", experiments.names())
def test_stored_results_belong_to_the_recipe_and_hold_every_seed(name):
    stored = experiments.results(name)
    assert {row["seed"] for row in stored["rows"]} == set(stored["recipe"]["seeds"])
    assert len(stored["recipe"]["seeds"]) >= 3 and stored["date"] and stored["machine"]


def test_a_changed_recipe_is_refused(monkeypatch):
    monkeypatch.setitem(look_up.RECIPE, "steps", 7)
    with pytest.raises(ValueError, match="has changed in steps since its results were made"):
        experiments.results("look_up")


def test_unknown_and_missing_results_get_a_sentence(monkeypatch, tmp_path):
    with pytest.raises(ValueError, match="no experiment 'lookup'; choose from: look_up"):
        experiments.results("lookup")
    monkeypatch.setattr(experiments, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match="no results of 'look_up' yet"):
        experiments.results("look_up")


def test_running_writes_recipe_rows_date_and_machine(monkeypatch, tmp_path):
    monkeypatch.setattr(experiments, "FOLDER", tmp_path)
    monkeypatch.setattr(look_up, "run", lambda seed: [{"seed": seed, "value": 1.0}])
    experiments.main(["look_up"])
    stored = json.loads((tmp_path / "look_up.json").read_text(encoding="utf-8"))
    assert stored["rows"] == [{"seed": seed, "value": 1.0} for seed in look_up.RECIPE["seeds"]]
    assert stored["recipe"]["pairs"] == 16 and "thread" in stored["machine"]


def test_a_look_up_asks_for_a_symbol_of_its_list_and_wants_its_answer():
    asked, symbols, answers, right = look_up.draw(torch.Generator().manual_seed(3), batch=50)
    assert all(len(set(row)) == 16 for row in symbols.tolist())
    for a, row, values, wanted in zip(
        asked.tolist(), symbols.tolist(), answers.tolist(), right.tolist(), strict=True
    ):
        assert values[row.index(a)] == wanted


def test_a_look_up_learns_and_its_splits_differ():
    model, history = look_up.train("scaled dot", 64, lr=1e-2)
    assert history.column("score")[-1] >= look_up.RECIPE["stop_at"]
    assert look_up.accuracy(model, look_up.TEST_SEED) > 0.85
    one, two = (
        look_up.draw(torch.Generator().manual_seed(s), 9)[1]
        for s in (look_up.VALIDATION_SEED, look_up.TEST_SEED)
    )
    assert not torch.equal(one, two)


def test_an_untrained_look_up_has_the_spread_that_its_score_promises():
    torch.manual_seed(0)
    assert look_up.spread(look_up.LookUp("dot", 256).to(torch.get_default_device())) == pytest.approx(
        16, rel=0.1
    )
    assert look_up.spread(look_up.LookUp("scaled dot", 256).to(torch.get_default_device())) == pytest.approx(
        1, rel=0.1
    )


def test_an_unknown_score_gets_a_sentence():
    with pytest.raises(
        ValueError, match="score must be one of dot, scaled dot, additive, bilinear, got 'cosine'"
    ):
        look_up.make_score("cosine", 4)


def test_the_learning_rate_is_chosen_on_the_validation_split():
    def row(lr, steps, validation, test):
        return {
            "score": "dot",
            "d": 4,
            "seed": 0,
            "lr": lr,
            "steps": steps,
            "validation": validation,
            "test": test,
        }

    slow, fast, never = row(1, 900, 0.96, 0.99), row(2, 300, 0.95, 0.90), row(3, 1000, 0.94, 1.0)
    assert look_up.best_rows([slow, never, fast]) == [fast]
    assert look_up.best_rows([never, row(4, 1000, 0.93, 1.0)]) == [never]
