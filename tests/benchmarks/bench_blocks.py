"""EncoderLayer and DecoderLayer against torch's with the same weights, side by side: ratios are reported, not
asserted."""

import pytest
import torch
from torch import nn

from lesson_lib.blocks import DecoderLayer, EncoderLayer
from lesson_lib.masks import causal
from tests.benchmarks.bench_attend import alternate

SHAPES = {  # b, n, d_model, h, d_inner
    "base, n = 128": (4, 128, 512, 8, 2048),
    "base, n = 512": (1, 512, 512, 8, 2048),
    "small": (64, 30, 64, 4, 256),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("training", [False, True], ids=["eval", "training"])
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_layers_against_torch(benchmark, kind, shape, training):
    """Dropout is 0, so that both do the same; in eval mode torch's encoder layer takes its fused fast
    path."""
    b, n, d_model, n_heads, d_inner = SHAPES[shape]
    x, memory = torch.randn(2, b, n, d_model)
    sizes, options = (d_model, n_heads, d_inner), {"dropout": 0.0, "batch_first": True}
    ahead = causal(n)
    if kind == "encoder":
        theirs = nn.TransformerEncoderLayer(*sizes, **options).train(training)
        mine, given = EncoderLayer.from_torch(theirs), (x,)
        my_masks = their_masks = {}
    else:
        theirs = nn.TransformerDecoderLayer(*sizes, **options).train(training)
        mine, given = DecoderLayer.from_torch(theirs), (x, memory)
        my_masks, their_masks = {"mask": ahead}, {"tgt_mask": ~ahead}

    def ours():
        output = mine(*given, **my_masks).output
        return output.sum().backward() if training else output

    def torchs():
        output = theirs(*given, **their_masks)
        return output.sum().backward() if training else output

    with torch.set_grad_enabled(training):
        my_s, their_s = alternate(ours, torchs, repeats=15)
        benchmark.extra_info |= {"ratio to torch": round(my_s / their_s, 3), "ours, ms": round(1e3 * my_s, 2)}
        benchmark.pedantic(ours, rounds=1)
