"""GPTs whose heads share keys: what is trained, and what is counted in the cache."""

import pytest
import torch

from lesson_lib.chapters.c11_efficient_attention.experiments import shared_keys
from lesson_lib.device import to_device
from lesson_lib.experiments import gpt, results
from lesson_lib.models.gpt import GPT

KINDS = [(layer["n_key_heads"], layer["d_inner"]) for layer in shared_keys.RECIPE["layers"]]


@pytest.mark.parametrize("n_key_heads, d_inner", [(2, 256), (1, 304)])
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


def test_means_are_over_seeds_of_the_trained():
    rows = [{"kind": "trained", "n_key_heads": 2, "d_inner": 5, "bits": bits} for bits in (1.0, 4.0)]
    rows += [
        {"kind": "trained", "n_key_heads": 1, "d_inner": 5, "bits": 3.0},
        {"kind": "tried", "n_key_heads": 2, "d_inner": 5, "bits": 9.0},
    ]
    assert shared_keys.means(rows) == {(2, 5): 2.5, (1, 5): 3.0}


# ---- the stored runs


def test_rates_were_chosen_on_validation_and_none_is_the_last_of_its_row():
    for layer in shared_keys.RECIPE["layers"]:
        kind = layer["n_key_heads"], layer["d_inner"]
        rows = [row for row in results("shared_keys")["rows"] if row["seed"] == 0]
        rows = [row for row in rows if (row["n_key_heads"], row["d_inner"]) == kind]
        tried = {row["lr"]: row["validation_bits"] for row in rows}
        assert sorted(tried) == shared_keys.RECIPE["rates"]
        assert min(tried, key=tried.get) == layer["lr"] == shared_keys.RECIPE["rates"][1]
