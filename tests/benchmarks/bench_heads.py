"""MultiHeadAttention against torch's layer with the same weights, side by side: ratios are reported, not
asserted."""

import pytest
import torch
from torch import nn

from lesson_lib.heads import MultiHeadAttention
from lesson_lib.measure import peak_mib
from tests.benchmarks.bench_attend import alternate

SHAPES = [(8, 128, 512, 8), (1, 1024, 512, 8), (1, 4096, 512, 8)]  # b, n, d_model, h


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("weights", [False, True], ids=["without weights", "with weights"])
@pytest.mark.parametrize("training", [False, True], ids=["eval", "training"])
def test_heads_against_torch(benchmark, shape, weights, training):
    b, n, d_model, n_heads = shape
    theirs = nn.MultiheadAttention(d_model, n_heads, batch_first=True).train(training)
    mine, x = MultiHeadAttention.from_torch(theirs), torch.randn(b, n, d_model)

    def ours():
        output = mine(x, x, x, weights=weights).output
        return output.sum().backward() if training else output

    def torchs():
        output, _ = theirs(x, x, x, need_weights=weights, average_attn_weights=False)
        return output.sum().backward() if training else output

    with torch.set_grad_enabled(training):
        my_s, their_s = alternate(ours, torchs, repeats=5 if n > 2000 else 15)
        benchmark.extra_info |= {
            "ratio to torch": round(my_s / their_s, 3),
            "peak MiB, ours and torch's": [round(peak_mib(call), 1) for call in (ours, torchs)],
        }
        benchmark.pedantic(ours, rounds=1)
