"""GPTs whose heads share keys: the recipe, what is counted in the cache, and the stored runs that lesson 11
tells."""

import pytest
import torch

from lesson_lib.chapters.c11_efficient_attention.experiments import shared_keys
from lesson_lib.device import to_device
from lesson_lib.experiments import gpt, results
from lesson_lib.models.gpt import GPT

KINDS = [(layer["n_key_heads"], layer["d_inner"]) for layer in shared_keys.RECIPE["layers"]]


def stored(name="bits", *, kind="trained", **wanted):
    """A column of the stored rows of that kind, seed by seed."""
    rows = [
        row
        for row in results("shared_keys")["rows"]
        if row["kind"] == kind and all(row[key] == value for key, value in wanted.items())
    ]
    assert rows
    return [row[name] for row in rows]


def mean(numbers):
    return sum(numbers) / len(numbers)


def test_the_recipe_is_the_short_gpts():
    short = gpt.RECIPE["short"]
    recipe = shared_keys.RECIPE["gpt"]
    assert recipe == {"sizes": short["sizes"], "batch": short["batch"], "steps": short["steps"]}
    assert KINDS == [(4, 256), (2, 256), (1, 256), (1, 304)] and recipe["sizes"]["n_heads"] == 4
    assert len(shared_keys.RECIPE["seeds"]) >= 3


@pytest.mark.parametrize("n_key_heads, d_inner", KINDS)
def test_a_quick_training(monkeypatch, n_key_heads, d_inner):
    monkeypatch.setenv("LESSON_STEPS", "quick")
    model, history = shared_keys.train(n_key_heads, d_inner=d_inner, seed=1)
    assert history.rows[-1]["step"] == 20 and history.column("loss")[-1] < history.column("loss")[0]
    layers = model.encoder.layers
    assert {layer.attention.n_key_heads for layer in layers} == {n_key_heads}
    assert {layer.feed_forward.w_in.out_features for layer in layers} == {d_inner}
    assert {layer.feed_forward.activation for layer in layers} == {torch.nn.functional.gelu}
    assert not model.training


def test_four_heads_of_keys_are_the_gpt_of_lesson_06(monkeypatch):
    monkeypatch.setenv("LESSON_STEPS", "quick")
    (one, _), (other, _) = shared_keys.train(4, seed=1), gpt.train(1)
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("n_key_heads", [3, 1])
def test_the_caches_bytes_are_those_of_a_full_context(n_key_heads):
    """2 layers, keys and values, 13 tokens, a third of the width per head, 4 bytes."""
    model = to_device(GPT("T\nab", n_layers=2, d_model=24, n_heads=3, n_key_heads=n_key_heads, context=13))
    assert shared_keys.cache_bytes(model.eval()) == 2 * 2 * 13 * n_key_heads * 8 * 4
    assert shared_keys.cache_bytes(model.double()) == 2 * 2 * 13 * n_key_heads * 8 * 8
    assert not model.encoder._forward_pre_hooks, "the hook is taken off"


def test_a_run_is_every_layer_and_on_the_tuning_seed_every_rate(monkeypatch):
    monkeypatch.setattr(
        shared_keys, "row", lambda *layer,
        kind: dict(zip(("heads", "inner", "lr", "seed"), layer, strict=True)) | {"kind": kind}
    )  # fmt: skip
    first, second = shared_keys.run(0), shared_keys.run(1)
    assert [(row["heads"], row["inner"]) for row in second] == KINDS
    assert [row["seed"] for row in second] == [1] * 4 and {row["kind"] for row in second} == {"trained"}
    assert len(first) == 4 * 3 and [row["kind"] for row in first].count("trained") == 4
    for row in first:
        chosen = {
            (layer["n_key_heads"], layer["d_inner"]): layer["lr"] for layer in shared_keys.RECIPE["layers"]
        }
        assert (row["kind"] == "trained") == (row["lr"] == chosen[row["heads"], row["inner"]])


def test_a_row_is_a_training_and_its_judge(monkeypatch):
    monkeypatch.setenv("LESSON_STEPS", "quick")
    judged = {}

    def judge(model, split="test"):
        judged[split] = model
        return {"validation": 1.5, "test": 2.0}[split]

    monkeypatch.setattr(gpt, "bits_per_character", judge)
    row = shared_keys.row(2, 256, 8e-3, 1, kind="tried")
    _, history = shared_keys.train(2, lr=8e-3, seed=1)
    assert (row["kind"], row["n_key_heads"], row["d_inner"], row["lr"], row["seed"]) == (
        "tried",
        2,
        256,
        8e-3,
        1,
    )
    assert (row["validation_bits"], row["bits"], row["perplexity"]) == (1.5, 2.0, 4.0)
    assert (
        judged["test"] is judged["validation"] and judged["test"].encoder.layers[0].attention.n_key_heads == 2
    )
    assert row["loss"] == history.column("loss") and row["parameters"] == 97536


def test_means_are_over_seeds_of_the_trained():
    rows = [{"kind": "trained", "n_key_heads": 2, "d_inner": 5, "bits": bits} for bits in (1.0, 4.0)]
    rows += [
        {"kind": "trained", "n_key_heads": 1, "d_inner": 5, "bits": 3.0},
        {"kind": "tried", "n_key_heads": 2, "d_inner": 5, "bits": 9.0},
    ]
    assert shared_keys.means(rows) == {(2, 5): 2.5, (1, 5): 3.0}


# ---- the stored runs


def test_every_row_is_there():
    rows = results("shared_keys")["rows"]
    for n_key_heads, d_inner in KINDS:
        of_kind = [row for row in rows if (row["n_key_heads"], row["d_inner"]) == (n_key_heads, d_inner)]
        trained = [row for row in of_kind if row["kind"] == "trained"]
        assert [row["seed"] for row in trained] == shared_keys.RECIPE["seeds"]
        assert len(of_kind) == len(trained) + 2


def test_rates_were_chosen_on_validation_and_none_is_the_last_of_its_row():
    for layer in shared_keys.RECIPE["layers"]:
        tried = {
            row["lr"]: row["validation_bits"]
            for row in results("shared_keys")["rows"]
            if row["seed"] == 0 and (row["n_key_heads"], row["d_inner"]) == (layer["n_key_heads"],
            layer["d_inner"])
        }  # fmt: skip
        assert sorted(tried) == shared_keys.RECIPE["rates"]
        assert min(tried, key=tried.get) == layer["lr"] == shared_keys.RECIPE["rates"][1]


def test_the_cache_shrinks_exactly_as_the_heads_of_keys_do():
    """65,536 bytes: 2 layers, keys and values, 64 characters of 64 numbers of 4 bytes."""
    full = set(stored("cache_bytes", n_key_heads=4))
    assert full == {65_536} == {2 * 2 * 64 * 64 * 4}
    for n_key_heads, d_inner in KINDS:
        found = set(stored("cache_bytes", n_key_heads=n_key_heads, d_inner=d_inner))
        assert found == {65_536 * n_key_heads // 4}


def test_parameters():
    counts = {kind: set(stored("parameters", n_key_heads=kind[0], d_inner=kind[1])) for kind in KINDS}
    assert counts == {(4, 256): {105_728}, (2, 256): {97_536}, (1, 256): {93_440}, (1, 304): {105_824}}
    assert 105_824 / 105_728 < 1.001


def test_sharing_costs_about_a_hundredth_of_the_bits_and_a_wider_network_does_not_give_them_back():
    """On the test topics; in every seed each kind that shares is behind every GPT that does not."""
    bits = shared_keys.means(results("shared_keys")["rows"])
    for kind in KINDS[1:]:
        assert 1.005 < bits[kind] / bits[4, 256] < 1.03
        assert min(stored(n_key_heads=kind[0], d_inner=kind[1])) > max(stored(n_key_heads=4))
    assert abs(bits[1, 304] - bits[1, 256]) < 0.02


def test_which_kind_shares_best_is_not_known():
    """Two heads, one, and one with a wider network: their means lie nearer to each other than the seeds of
    one kind do."""
    bits = shared_keys.means(results("shared_keys")["rows"])
    means = [bits[kind] for kind in KINDS[1:]]
    seeds = stored(n_key_heads=1, d_inner=256)
    assert max(means) - min(means) < max(seeds) - min(seeds)


def test_a_rate_twice_too_small_or_too_large_costs_more():
    """On the validation topics, where all kinds are within half a hundredth of each other."""
    bits = shared_keys.means(results("shared_keys")["rows"], "validation_bits")
    assert max(bits.values()) / min(bits.values()) < 1.006
    wrong = stored("validation_bits", kind="tried", n_key_heads=4)
    assert len(wrong) == 2 and min(wrong) > max(bits.values()) + 0.02
