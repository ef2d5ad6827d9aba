"""Linear attention in its forms, side by side: chunks, loop, table, and softmax attention. Ratios are
reported, not asserted."""

import pytest
import torch

from lesson_lib.attention import attend
from lesson_lib.linear import as_rnn, attend_linear, feature_map
from lesson_lib.masks import causal
from lesson_lib.measure import peak_mib
from tests.benchmarks.bench_attend import alternate


@pytest.mark.parametrize("heads", [1, 8])
@pytest.mark.parametrize("n", [1024, 4096])
@pytest.mark.parametrize("backward", [False, True], ids=["forward", "forward+backward"])
def test_chunks_against_the_other_forms(benchmark, heads, n, backward):
    """The goal: chunks take in at least 6 times the tokens per second of the loop, with backward."""
    x = torch.randn(1, heads, n, 64, requires_grad=backward)
    mask = causal(n)

    def by_table(q, k):
        return (feature_map(q) @ feature_map(k).mT).log()

    forms = {
        "chunks": lambda: attend_linear(x, x, x, causal=True),
        "loop": lambda: as_rnn(x, x, x),
        "table": lambda: attend(x, x, x, score=by_table, mask=mask).output,
        "softmax, fused": lambda: attend(x, x, x, mask=mask, weights=False).output,
        "both ways": lambda: attend_linear(x, x, x),
    }

    def run(form):
        output = forms[form]()
        return output.backward(torch.ones_like(output)) if backward else output

    with torch.set_grad_enabled(backward):
        taken = dict(
            zip(forms, alternate(*(lambda f=form: run(f) for form in forms), repeats=3), strict=True)
        )
        benchmark.extra_info |= {
            "chunks to loop, tokens per second": round(taken["loop"] / taken["chunks"], 1),
            "tokens per second": {form: round(n / s) for form, s in taken.items()},
            "peak MiB": {form: round(peak_mib(lambda f=form: run(f)), 1) for form in forms if form != "loop"},
        }
        benchmark.pedantic(lambda: run("chunks"), rounds=1)
