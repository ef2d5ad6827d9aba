"""Attention that costs less beside attend and torch's fused kernel, and layers that generate with fewer heads
of keys. Ratios are reported, not asserted."""

import pytest
import torch
import torch.nn.functional as F

from lesson_lib.attention import attend
from lesson_lib.efficient import LowRank, RandomFeatures, attend_tiles
from lesson_lib.heads import Cache, MultiHeadAttention
from lesson_lib.linear import attend_linear
from lesson_lib.masks import causal
from tests.benchmarks.bench_attend import alternate
from tests.benchmarks.bench_truncated import BOTH, HEADS, D, in_turn, report, tokens, words

CACHED = 4096  # tokens in the cache before the generation that is timed


@BOTH
@pytest.mark.parametrize("n", [1024, 4096])
@pytest.mark.parametrize("is_causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("other", ["attend, table", "attend, fused", "torch's function"])
def test_tiles(benchmark, table, other, is_causal, n, backward):
    """Tiles in Python against the table and against the compiled kernel, which does the same."""
    mask = causal(n) if is_causal else None
    theirs = {
        "attend, table": lambda *x: attend(*x, mask=mask).output,
        "attend, fused": lambda *x: attend(*x, mask=mask, weights=False).output,
        "torch's function": lambda *x: F.scaled_dot_product_attention(*x, is_causal=is_causal),
    }[other]
    x = tokens(n, backward)
    cells = in_turn(lambda *x: attend_tiles(*x, causal=is_causal), theirs, x, backward=backward, repeats=3)
    kind = "causal" if is_causal else "all"
    table(
        f"attend_tiles, (1, {HEADS}, n, {D})",
        {"n": n, "keys": kind, "pass": words(backward), "theirs": other, **cells},
    )
    report(benchmark, cells, lambda: attend_tiles(*x, causal=is_causal))


def test_generation_with_shared_keys(benchmark, table):
    """A layer with a cache, one token after the other, from `CACHED` tokens on; 8 heads of 64."""
    calls, caches, counts = [], [], (HEADS, 2, 1)
    for n_key_heads in counts:
        layer = MultiHeadAttention(HEADS * D, HEADS, n_key_heads=n_key_heads).eval()
        cache, known, new = Cache(), torch.randn(1, CACHED, HEADS * D), torch.randn(1, 1, HEADS * D)
        with torch.no_grad():
            layer(known[:, :1], known, known, cache=cache, weights=False)

        def call(layer=layer, cache=cache, new=new):
            going = Cache()
            going.key, going.value = cache.key, cache.value  # each call starts from the same tokens
            with torch.no_grad():
                for _ in range(8):
                    layer(new, new, new, cache=going, weights=False)

        calls.append(call)
        caches.append(cache)
    for n_key_heads, cache, seconds in zip(counts, caches, alternate(*calls, repeats=7), strict=True):
        mib = sum(x.numel() * x.element_size() for x in (cache.key, cache.value)) / 2**20
        row = {"heads of queries": HEADS, "of keys": n_key_heads, "tokens": CACHED, "cache MiB": f"{mib:.2f}"}
        table(
            f"A layer's next token, d_model = {HEADS * D}",
            {**row, "ms per token": f"{seconds / 8 * 1e3:.2f}"},
        )
        benchmark.extra_info |= {f"ms, {n_key_heads} heads of keys": round(seconds / 8 * 1e3, 3)}
    benchmark.pedantic(calls[-1], rounds=1)


@BOTH
@pytest.mark.parametrize("is_causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("kind", ["low rank", "linear", "random features"])
def test_other_numbers_for_less_work(benchmark, table, kind, is_causal, backward):
    """Against torch's fused kernel at n = 4,096; 64 mixtures, 64 and 128 random features."""
    if kind == "low rank" and is_causal:
        pytest.skip("mixtures have no place of their own, so nothing can be hidden from them")
    n = 4096
    forms = {
        "low rank": {"rank 64": LowRank(n, 64)},
        "linear": {"elu + 1": lambda *x: attend_linear(*x, causal=is_causal)},
        "random features": {f"{m} features": with_features(m, is_causal) for m in (64, 128)},
    }[kind]
    for name, form in forms.items():
        x = tokens(n, backward)
        cells = in_turn(
            form, lambda *x: F.scaled_dot_product_attention(*x, is_causal=is_causal), x, backward=backward
        )
        cells.pop("largest difference")  # other numbers
        row = {
            "n": n,
            "ours": f"{kind}, {name}",
            "keys": "causal" if is_causal else "all",
            "pass": words(backward),
        }
        table(
            f"Other numbers for less work, against torch's fused function, (1, {HEADS}, n, {D})",
            {**row, **cells},
        )
        benchmark.extra_info |= {f"{name}, {column}": cell for column, cell in cells.items()}
    benchmark.pedantic(lambda: form(*x), rounds=1)


def with_features(count, is_causal):
    """Linear attention with that many random features, drawn once."""
    phi = RandomFeatures(D, count)
    return lambda *x: attend_linear(*x, causal=is_causal, phi=phi)
