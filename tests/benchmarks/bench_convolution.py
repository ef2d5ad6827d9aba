"""A convolution as attention against nn.Conv2d, side by side: the same numbers, and what the detour costs.
Ratios are reported, not asserted."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from lesson_lib.convolution import as_attention, with_few_heads
from lesson_lib.measure import peak_mib
from tests.benchmarks.bench_attend import alternate


@pytest.mark.parametrize("side", [8, 12, 16, 24])
@pytest.mark.parametrize("backward", [False, True], ids=["forward", "forward+backward"])
def test_attention_against_a_convolution(benchmark, side, backward):
    """A kernel of 3 x 3, 8 channels: attention scores all pixels for each pixel and head, side⁴; the
    convolution visits 9 for each."""
    conv = nn.Conv2d(8, 8, 3, padding=1)
    heads, x = as_attention(conv), torch.randn(4, 8, side, side)

    def run(layer):
        output = layer(x)
        return output.sum().backward() if backward else output

    with torch.set_grad_enabled(backward):
        slow_s, fast_s = alternate(lambda: run(heads), lambda: run(conv), repeats=5 if side > 16 else 15)
        benchmark.extra_info |= {
            "ratio to torch's convolution": round(slow_s / fast_s),
            "attention, ms": round(1e3 * slow_s, 2),
            "convolution, ms": round(1e3 * fast_s, 3),
            "peak MiB, attention and convolution": [
                round(peak_mib(lambda layer=layer: run(layer)), 2) for layer in (heads, conv)
            ],
        }
        benchmark.pedantic(lambda: run(heads), rounds=1)


@pytest.mark.parametrize("side", [8, 24])
def test_two_heads_against_nine(benchmark, side):
    """One channel in and out: two heads do what nine do."""
    conv, x = nn.Conv2d(1, 1, 3, padding=1), torch.randn(4, 1, side, side)
    nine, two = as_attention(conv), with_few_heads(conv)
    with torch.no_grad():
        assert_close(two(x), nine(x), atol=1e-4, rtol=0)
        nine_s, two_s, fast_s = alternate(lambda: nine(x), lambda: two(x), lambda: conv(x))
        benchmark.extra_info |= {
            "two heads, ratio to nine": round(two_s / nine_s, 2),
            "two heads, ratio to torch's convolution": round(two_s / fast_s),
        }
        benchmark.pedantic(lambda: two(x), rounds=1)
