"""attend against torch's fused kernel, side by side: the ratio is what counts, and it is reported, not
asserted."""

import statistics
import time

import pytest
import torch
import torch.nn.functional as F

from lesson_lib.attention import attend
from lesson_lib.scores import Additive, dot

SHAPES = [(8, 8, 128, 64), (1, 8, 1024, 64), (1, 8, 4096, 64)]


def alternate(*calls, repeats=15):
    """Median processor seconds of each call, taken in turn so that a busy moment hits all alike."""
    taken = [[] for _ in calls]
    for call in calls:
        call()
    for _ in range(repeats):
        for call, seconds in zip(calls, taken, strict=True):
            start = time.process_time()
            call()
            seconds.append(time.process_time() - start)
    return [statistics.median(seconds) for seconds in taken]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("masked", [False, True], ids=["no mask", "causal mask"])
@pytest.mark.parametrize("backward", [False, True], ids=["forward", "forward+backward"])
def test_attend_without_weights_against_torch(benchmark, shape, masked, backward):
    q, k, v = (torch.randn(shape, requires_grad=backward) for _ in range(3))
    mask = torch.ones(shape[-2], shape[-2], dtype=torch.bool).tril() if masked else None

    def ours():
        output = attend(q, k, v, mask=mask, weights=False).output
        return output.sum().backward() if backward else output

    def torchs():
        output = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return output.sum().backward() if backward else output

    def explicit():
        output = attend(q, k, v, mask=mask).output
        return output.sum().backward() if backward else output

    mine, theirs, table = alternate(ours, torchs, explicit, repeats=5 if shape[-2] > 2000 else 15)
    benchmark.extra_info |= {
        "ratio to torch": round(mine / theirs, 3),
        "with weights, ratio to torch": round(table / theirs, 3),
    }
    benchmark.pedantic(ours, rounds=1)


@pytest.mark.parametrize("n", [128, 512])
def test_additive_against_dot(benchmark, n):
    q = torch.randn(1, n, 64)
    score = Additive(64, 64, 64)
    with torch.no_grad():
        additive, plain = alternate(lambda: attend(q, q, q, score=score), lambda: attend(q, q, q, score=dot))
        whole = Additive(64, 64, 64, max_pairs=10**9)
        unchunked = alternate(lambda: attend(q, q, q, score=whole))[0]
        benchmark.extra_info |= {
            "ratio to dot": round(additive / plain, 1),
            "ratio to one piece": round(additive / unchunked, 2),
        }
        benchmark.pedantic(lambda: attend(q, q, q, score=score), rounds=1)
