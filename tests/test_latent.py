"""Latent keys: expanded and absorbed are the same, in chunks and at once, and the cache keeps one narrow
row."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.device import device
from lesson_lib.heads import Cache, merge_heads, split_heads
from lesson_lib.latent import LatentAttention
from lesson_lib.masks import causal, padding
from lesson_lib.positions import rotary

B, N, D = 2, 11, 20
CLOSE = {"atol": 2e-5, "rtol": 2e-5}
WIDTHS = {"d_k": 6, "d_turned": 4, "d_v": 7, "d_latent": 9}


def made(d_query=None, n_heads=3, **options):
    layer = LatentAttention(D, n_heads, **WIDTHS, d_query=d_query, **options)
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)
    return layer.to(device())


def test_by_hand():
    """Keys and values of each head from the same row; a part of the key is shared and turned."""
    layer, x = made(), torch.randn(B, N, D)
    c = layer.norm(layer.w_latent(x))
    key = torch.cat(
        [split_heads(layer.w_key(c), 3), rotary(layer.w_turned(x))[:, None].expand(B, 3, N, 4)], -1
    )
    query = split_heads(layer.w_query(x), 3)
    query = torch.cat([query[..., :6], rotary(query[..., 6:])], -1)
    expected = attend(query, key, split_heads(layer.w_value(c), 3), mask=causal(N))
    got = layer(x, mask=causal(N))
    assert_close(got.weights, expected.weights, **CLOSE)
    assert_close(got.output, layer.w_output(merge_heads(expected.output)), **CLOSE)


@pytest.mark.parametrize("d_query", [None, 8])
@pytest.mark.parametrize("mask", [None, "causal", "padding"])
def test_absorbed_is_expanded(d_query, mask):
    layer, x = made(d_query), torch.randn(B, N, D)
    mask = {"causal": causal(N), "padding": padding(torch.tensor([N, 4]), N)}.get(mask)
    expanded, absorbed = layer(x, mask=mask), layer(x, mask=mask, absorbed=True)
    assert_close(absorbed.weights, expanded.weights, **CLOSE)
    assert_close(absorbed.output, expanded.output, **CLOSE)
    for form in (False, True):
        lean = layer(x, mask=mask, absorbed=form, weights=False)
        assert lean.weights is None
        assert_close(lean.output, expanded.output, **CLOSE)


def test_gradients_agree():
    layer, x = made(8), torch.randn(B, N, D)
    found = {}
    for absorbed in (False, True):
        layer.zero_grad()
        layer(x, mask=causal(N), absorbed=absorbed).output.square().sum().backward()
        found[absorbed] = {name: p.grad.clone() for name, p in layer.named_parameters()}
    for name, grad in found[False].items():
        assert_close(found[True][name], grad, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("absorbed", [False, True])
@pytest.mark.parametrize("pieces", [[1] * N, [4, 1, 6]], ids=str)
def test_in_chunks_is_all_at_once(absorbed, pieces):
    layer, x = made(), torch.randn(B, N, D)
    cache, outputs = Cache(), []
    for part in x.split(pieces, 1):
        mask = causal(len(cache) + part.shape[1], queries=part.shape[1])
        outputs.append(layer(part, mask=mask, cache=cache, absorbed=absorbed).output)
    assert_close(torch.cat(outputs, 1), layer(x, mask=causal(N)).output, **CLOSE)


@pytest.mark.parametrize("n_heads", [1, 3, 8])
def test_the_cache_keeps_one_row_for_all_heads(n_heads):
    layer, cache = made(n_heads=n_heads), Cache()
    layer(torch.randn(B, N, D), mask=causal(N), cache=cache)
    assert cache.key.shape == (B, 1, N, WIDTHS["d_latent"]) and cache.value.shape == (
        B, 1, N, WIDTHS["d_turned"],
    )  # fmt: skip


def test_masks_of_every_rank():
    layer, x = made(), torch.randn(B, N, D)
    expected = layer(x, mask=causal(N)).output
    for mask in (causal(N).expand(B, N, N), causal(N).expand(B, 3, N, N)):
        for absorbed in (False, True):
            assert_close(layer(x, mask=mask, absorbed=absorbed).output, expected, **CLOSE)


def test_bad_tokens_are_answered_with_a_sentence(no_shape_hook):
    with pytest.raises(ValueError, match="made with d_model=20"):
        made()(torch.randn(B, N, 5))
    with pytest.raises(TypeError, match="must be a tensor of floats"):
        made()([[1.0]])


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({"d_turned": 3}, "d_turned must be even"),
        ({"d_turned": 0}, "d_turned must be a whole number >= 2"),
        ({"d_latent": 0}, "d_latent must be a whole number"),
        ({"d_k": 2.5}, "d_k must be a whole number"),
    ],
)
def test_bad_widths_are_answered_with_a_sentence(no_shape_hook, wrong, said):
    with pytest.raises(ValueError, match=said):
        LatentAttention(D, 3, **WIDTHS | wrong)
