"""The cost explorer: bytes of real caches, products that attention makes."""

import html

import pytest
import torch

from lesson_lib.attention import attend
from lesson_lib.chapters.c11_efficient_attention import cost_explorer as costs
from lesson_lib.heads import Cache, MultiHeadAttention
from lesson_lib.measure import operations
from tests.explorers import stands_alone

GIB = 2**30


def test_a_still_picture_stands_for_it_and_nothing_is_loaded():
    assert stands_alone(costs.CostExplorer)
    assert costs.CostExplorer().still().caption == costs.CostExplorer().words()


@pytest.mark.parametrize("key_heads", [6, 3, 1])
def test_the_bytes_are_those_of_real_caches(key_heads):
    layers, width, tokens = 2, 5, 11
    held = 0
    for _ in range(layers):
        layer, cache = MultiHeadAttention(6 * width, 6, n_key_heads=key_heads), Cache()
        for new in torch.randn(1, tokens, 6 * width).split(1, dim=1):
            layer(new, new, new, cache=cache)
        held += cache.key.nbytes + cache.value.nbytes
    assert held == costs.cache_bytes(costs.Setting(layers, 6, key_heads, width), tokens, bytes_each=4)


@pytest.mark.parametrize("window", [0, 7])
def test_the_products_are_those_that_attention_makes(window):
    layers, heads, width, tokens = 3, 5, 2, 11
    m = window or tokens
    q, k = torch.randn(heads, 1, width), torch.randn(heads, m, width)
    made = operations(lambda: attend(q, k, k))
    assert layers * made == costs.products(costs.Setting(layers, heads, 1, width, window=window), tokens)


def test_the_products_of_latent_vectors_are_those_that_attention_makes():
    heads, latent, tokens = 5, 7, 11
    q, c = torch.randn(heads, 1, latent + costs.ROTARY), torch.randn(heads, tokens, latent + costs.ROTARY)
    made = operations(lambda: attend(q, c, c[..., :latent]))
    assert made == costs.products(costs.Setting(1, heads, 1, latent=latent), tokens)


def test_models_by_hand():
    assert costs.cache_bytes(costs.PRESETS["Llama 2 7B"], 32768) == 16 * GIB
    assert costs.cache_bytes(costs.PRESETS["Llama 3.1 8B"], 131072) == 16 * GIB
    assert costs.cache_bytes(costs.PRESETS["Mistral 7B v0.1"], 131072) == GIB // 2
    assert costs.cache_bytes(costs.PRESETS["DeepSeek V3"], 1) == 70_272  # the 70 KB a token of its makers
    assert [costs.numbers_kept(setting) for setting in costs.PRESETS.values()] == [8192, 2048, 2048, 576]
    tokens = 4096
    assert costs.products(costs.PRESETS["Llama 2 7B"], tokens) == 32 * 32 * 256 * tokens
    assert costs.products(costs.PRESETS["DeepSeek V3"], tokens) == 61 * 128 * (576 + 512) * tokens


def test_a_window_longer_than_the_text_changes_nothing():
    one, other = costs.Setting(3, 4, 2, 5), costs.Setting(3, 4, 2, 5, window=4096)
    assert costs.cache_bytes(one, 4000) == costs.cache_bytes(other, 4000) < costs.cache_bytes(one, 5000)
    assert costs.cache_bytes(other, 5000) == costs.cache_bytes(other, 4096) == costs.cache_bytes(one, 4096)


def test_every_model_can_be_set_with_the_sliders():
    w = costs.CostExplorer()
    for name, setting in costs.PRESETS.items():
        w.preset.value = name
        assert w.setting == setting and w.preset.value == name


def test_the_task_of_the_part_has_its_answer():
    """Llama 3.1 8B, 131,072 tokens, all layers: below 1 GiB with a window alone."""
    w = costs.CostExplorer("Llama 3.1 8B", tokens=131072)
    below = set()
    for heads in costs.POWERS:
        for latent in costs.LATENTS.values():
            for window in costs.WINDOWS.values():
                w.key_heads.value, w.latent.value, w.window.value = heads, latent, window
                if costs.cache_bytes(w.setting, 131072) < GIB:
                    below.add(window)
    assert below == set(costs.WINDOWS.values()) - {0}
    w.key_heads.value, w.latent.value, w.window.value = 1, 0, 0
    assert costs.cache_bytes(w.setting, 131072) == 2 * GIB
    w.latent.value = 128
    assert costs.cache_bytes(w.setting, 131072) == 1.5 * GIB


def test_a_slider_that_is_moved_makes_it_the_reader_s_own():
    w = costs.CostExplorer("Mistral 7B v0.1")
    w.layers.value = 31
    assert w.preset.value == costs.OWN and w.setting == costs.PRESETS["Mistral 7B v0.1"]._replace(layers=31)
    w.preset.value = "Mistral 7B v0.1"
    assert w.layers.value == 32 and w.preset.value == "Mistral 7B v0.1"


def test_heads_of_keys_are_at_most_as_many_as_heads():
    w = costs.CostExplorer()
    w.heads.value = 8
    assert w.setting.key_heads == 8 and "8 heads at most" in w.words()
    w.key_heads.value = 4
    assert w.setting.key_heads == 4 and "at most" not in w.words()


def test_what_is_kept_is_told_in_words():
    assert (
        costs.CostExplorer().words()
        == "A token leaves 8,192 numbers in each layer: 32 keys and 32 values of 128. After 32,768 tokens"
        " the cache holds 16 GiB. The next token takes 8.6 billion multiplications with it."
    )
    w = costs.CostExplorer("DeepSeek V3", tokens=131072)
    assert "576 numbers in each layer: a latent vector of 512 and a rotary key of 64." in w.words()
    assert "1,113 billion multiplications" in w.words()
    w.latent.value, w.key_heads.value = 0, 1
    assert "1 key and 1 value of 128" in w.words()


def test_the_shapes_and_formulas_behind_the_numbers_are_told():
    w = costs.CostExplorer("Mistral 7B v0.1")
    assert list(w.shapes().values()) == ["(32, 1, 128)", "(8, 4,096, 128)", "(8, 4,096, 128)"]
    w.preset.value = "DeepSeek V3"
    assert list(w.shapes().values()) == ["(128, 1, 576)", "(32,768, 512)", "(32,768, 64)"]
    for name, shape in w.shapes().items():
        drawing = html.unescape(w.drawing.value)
        assert f"{name}</th>" in drawing and f">{shape}<" in drawing
    drawing = html.unescape(costs.CostExplorer().drawing.value)
    assert 'tabindex="0" aria-label="2 · (2 · 32 · 128) · 32 layers · 32,768 tokens"' in drawing
    assert 'aria-label="32 layers · 32 heads · (2 · 128) · 32,768 tokens"' in drawing
    latent = html.unescape(costs.CostExplorer("DeepSeek V3").drawing.value)
    assert 'aria-label="512 + 64"' in latent
    assert "61 layers · 128 heads · (2 · 512 + 64) · 32,768 tokens" in latent
    assert "role='status'" in drawing
