"""The small arena: what is drawn, trained and measured."""

import pytest
import torch
from torch import nn

from lesson_lib.chapters.c11_efficient_attention import listops
from lesson_lib.chapters.c11_efficient_attention.arena import KINDS, Classifier
from lesson_lib.chapters.c11_efficient_attention.experiments import arena
from lesson_lib.data import digits, recall
from lesson_lib.device import to_device
from lesson_lib.experiments import results


def generator(seed=0):
    return torch.Generator("cpu").manual_seed(seed)


@pytest.fixture
def small(monkeypatch):
    values = {
        "d_model": 12, "n_heads": 3, "batch": 5, "validation": 7, "test": 11, "looks": 2,
    }  # fmt: skip
    for name, value in values.items():
        monkeypatch.setitem(arena.RECIPE, name, value)
    for name in ("steps", "rate_steps"):
        monkeypatch.setitem(arena.RECIPE, name, dict.fromkeys(arena.TASKS, 5 if name == "steps" else 3))


@pytest.mark.parametrize("task", arena.TASKS)
def test_a_batch_fits_what_is_known_of_its_task(task):
    n, n_tokens, n_classes, _ = arena.TASKS[task]
    for split in arena.SPLITS:
        tokens, answer = arena.draw(task, split, 53, generator())
        assert tokens.shape == (53, n) and answer.shape == (53,) and tokens.device.type == "cpu"
        assert (
            tokens.min() >= 0 and tokens.max() < n_tokens and answer.min() >= 0 and answer.max() < n_classes
        )
        assert len(answer.unique()) > 1
    again, other = (arena.draw(task, "test", 53, generator(seed)) for seed in (0, 1))
    assert torch.equal(again.tokens, tokens) and not torch.equal(other.tokens, tokens)


def test_pairs_ask_for_a_value_that_stands_beside_its_key():
    """Keys are numbered by their size, which leaves the answer as it was."""
    tokens, answer = arena.draw("pairs", "training", 17, generator(3))
    before = recall.pairs(generator(3), 17, arena.RECIPE["count"])
    assert torch.equal(answer, before.answer)
    for row, wanted, old in zip(tokens.tolist(), answer.tolist(), before.tokens.tolist(), strict=True):
        *known, question = row
        values = dict(divmod(token, recall.PAIR_VALUES) for token in known)
        assert sorted(values) == list(range(arena.RECIPE["count"]))
        assert values[question - arena.RECIPE["count"] * recall.PAIR_VALUES] == wanted
        order = sorted(range(len(known)), key=lambda i: old[i])
        assert order == sorted(range(len(known)), key=lambda i: known[i])


def test_digits_are_pictures_of_their_split_and_expressions_have_their_value():
    """The canvas is drawn row after row, each pixel a number of sixteenths, and its picture is one of the
    split."""
    for split in arena.SPLITS:
        tokens, answer = arena.draw("digits", split, 7, generator(5))
        placed = digits.draw(split, 7, generator(5), size=arena.RECIPE["canvas"])
        assert torch.equal(tokens.reshape(placed.canvas.shape) / 16, placed.canvas)
        assert torch.equal(answer, placed.label)
    assert not torch.equal(
        arena.draw("digits", "test", 7, generator(5)).tokens,
        arena.draw("digits", "training", 7, generator(5)).tokens,
    )
    tokens, answer = arena.draw("listops", "test", 13, generator(2))
    assert [listops.value(listops.text(row)) for row in tokens] == answer.tolist()


class Knows(nn.Module):
    """Answers pairs by looking them up, all but those whose answer is 0."""

    def forward(self, tokens):
        count = arena.RECIPE["count"]
        keys = tokens[:, :-1] // recall.PAIR_VALUES
        asked = tokens[:, -1:] - count * recall.PAIR_VALUES
        value = (tokens[:, :-1] % recall.PAIR_VALUES)[keys == asked]
        return nn.functional.one_hot(value.where(value > 0, 1), recall.PAIR_VALUES).float()


def test_accuracy_counts_right_answers():
    for split, seed in (("validation", arena.VALIDATION_SEED), ("test", arena.TEST_SEED + 2)):
        answer = arena.draw("pairs", split, arena.RECIPE[split], generator(seed)).answer
        assert arena.accuracy(Knows(), "pairs", seed=2, split=split) == pytest.approx(
            (answer != 0).double().mean().item()
        )
    assert 0.8 < arena.accuracy(Knows(), "pairs") < 0.95
    assert arena.accuracy(Knows(), "pairs") != arena.accuracy(Knows(), "pairs", seed=1)
    same = {arena.accuracy(Knows(), "pairs", seed=seed, split="validation") for seed in range(3)}
    assert len(same) == 1


def test_the_guess_is_the_most_frequent_class_of_the_training(monkeypatch):
    answers = {"training": [1, 1, 2], "test": [1, 0, 2, 2, 1]}
    cpu = {split: torch.tensor(answer, device="cpu") for split, answer in answers.items()}
    monkeypatch.setattr(arena, "draw", lambda task, split, *_: arena.Labelled(None, cpu[split]))
    assert arena.guess("pairs") == pytest.approx(2 / 5)


@pytest.mark.parametrize("kind", ["full", "low rank"])
def test_training_makes_the_network_of_its_task_and_is_the_same_twice(small, kind):
    model, history = arena.train("pairs", kind, 1)
    assert isinstance(model, Classifier) and (model.kind, model.read, len(model.layers)) == (kind, "last", 2)
    assert history.column("step") == [2, 4, 5] and not model.training
    assert max(history.column("score")) == arena.accuracy(model, "pairs", split="validation")
    again, other = (arena.train("pairs", kind, seed)[0] for seed in (1, 2))
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    assert not torch.equal(model.out.weight, other.out.weight)


def test_a_rate_at_which_the_loss_breaks_scores_0(small, monkeypatch):
    monkeypatch.setattr(arena.arena, "loss", lambda model, batch: model(batch.tokens).sum() * torch.nan)
    row = arena.make("rate", task="pairs", attention="linear", lr=0.5)
    assert (row["validation_accuracy"], row["steps"], row["lr"]) == (0, 3, 0.5)
    monkeypatch.setattr(arena, "fit", lambda *args, **options: recall.pairs(generator(), 0, 1))
    with pytest.raises(ValueError, match="batch must be"):
        arena.make("rate", task="pairs", attention="linear", lr=0.5)


def test_the_held_table_adds_its_numbers_and_changes_none(small):
    torch.manual_seed(0)
    with torch.device("cpu"):
        model = Classifier("full", n=41, n_tokens=7, n_classes=3, d_model=12, n_heads=3)
    tokens = to_device(torch.randint(7, (2, 41), generator=generator(), device="cpu"))
    model = to_device(model)
    torch.testing.assert_close(arena._logits(model, tokens, True), model(tokens))
    plain, held = (
        arena.make("cost", attention=kind, n=211, seed=0)["mib"] for kind in ("full", arena.WITH_TABLE)
    )
    assert held - plain > 2 * 3 * 211**2 * 4 / 2**20  # two layers, three heads, four bytes


def point(attention, task, accuracy, **more):
    return {"kind": "point", "attention": attention, "task": task, "accuracy": accuracy} | more


def test_the_table_holds_means_and_costs_are_medians():
    rows = [point(kind, "pairs", 0.5) for kind in KINDS] + [point("linear", "pairs", 0.9), {"kind": "rate"}]
    assert arena.table(rows) == {
        kind: {"pairs": pytest.approx(0.7 if kind == "linear" else 0.5)} for kind in KINDS
    }
    rows = [
        {"kind": "cost", "attention": "full", "n": 5, "steps_per_s": speed, "mib": mib}
        for speed, mib in ((1.0, 4.0), (3.0, 4.0), (2.0, 5.0))
    ]
    assert arena.costs([*rows, {"kind": "guess"}]) == {"full": {5: (2.0, 4.0)}}


def test_the_best_rate():
    def rows(*scores):
        rated = [
            {"kind": "rate", "task": "text", "attention": "full", "lr": lr, "validation_accuracy": score}
            for lr, score in zip((1, 2, 3), scores, strict=True)
        ]
        return [{"kind": "guess", "task": "text", "accuracy": 0.3}, {"kind": "cost"}, *rated]

    assert arena.best_rate(rows(0.5, 0.6, 0.7), "text", "full") == 3
    assert arena.best_rate(rows(0.7, 0.6, 0.7), "text", "full") == 1
    assert arena.best_rate(rows(0.7, 0.7, 0.7), "text", "full") == 2
    assert arena.best_rate(rows(0.34, 0.1, 0.2), "text", "full") == 2  # all of them guess
    assert arena.best_rate(rows(0.36, 0.1, 0.2), "text", "full") == 1


def test_the_rates_are_the_best_on_validation():
    rows = results("arena")["rows"]
    for task in arena.TASKS.keys() - arena.RECIPE["dropped"]:
        for kind in KINDS:
            assert arena.RECIPE["lr"][task][kind] == arena.best_rate(rows, task, kind), (task, kind)


def test_unknown_names_get_a_sentence(no_shape_hook):
    with pytest.raises(ValueError, match="task must be one of pairs, digits, text, listops, connected, got"):
        arena.draw("images", "test", 2, generator())
    with pytest.raises(ValueError, match="kind must be one of full, window, linear, low rank"):
        arena.train("pairs", "sparse")
    with pytest.raises(ValueError, match="split must be one of validation, test, got 'training'"):
        arena.accuracy(nn.Identity(), "pairs", split="training")


def test_each_kind_learns_at_its_own_rate(small, monkeypatch, no_shape_hook):
    asked = []
    monkeypatch.setattr(arena, "fit", lambda *args, lr, steps, **options: asked.append((lr, steps)))
    monkeypatch.setitem(arena.RECIPE["lr"], "digits", {"full": 1.0, "linear": 2.0})
    for kind in ("full", "linear"):
        arena.train("digits", kind)
    arena.train("digits", "full", lr=0.5, steps=9)
    assert asked == [(1.0, 5), (2.0, 5), (0.5, 9)]
