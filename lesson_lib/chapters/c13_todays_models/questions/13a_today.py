"""What of the questions in 13a_today.md is code."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code


def normed(x, gain):
    return gain * x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()


def _normed_by_torch(x: Tensor, gain: Tensor) -> Tensor:
    return torch.nn.functional.rms_norm(x, x.shape[-1:], gain, eps=1e-6)


def _rows(seed: int, *shape: int, draw: Draw = drawn, by: float = 1.0) -> Case:
    return {"x": by * draw(seed, *shape), "gain": draw(seed + 1, shape[-1]).abs() + 0.5}


def with_sink(q, k, v, mask, sink):
    keys = torch.cat((k, torch.zeros_like(k[:1])))
    values = torch.cat((v, torch.zeros_like(v[:1])))
    seen = F.pad(mask, (0, 1), value=True)
    bias = torch.zeros(seen.shape)
    bias[:, -1] = sink
    return attend(q, keys, values, mask=seen, score_bias=bias).output


def _by_the_sum(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, sink: float) -> Tensor:
    terms = (q @ k.mT * q.shape[-1] ** -0.5).exp() * mask
    return terms @ v / (terms.sum(-1, keepdim=True) + torch.tensor(sink).exp())


def _sunk(seed: int, n: int, m: int, d: int, sink: float, draw: Draw = drawn) -> Case:
    q, k, v = draw(seed, n, d), draw(seed + 1, m, d), draw(seed + 2, m, 3)
    return {"q": q, "k": k, "v": v, "mask": draw(seed + 3, n, m) > -0.7, "sink": sink}


def _five(sink: float) -> Case:
    mask = torch.ones(1, 5, dtype=torch.bool, device="cpu")
    return {"q": table([[0, 0]]), "k": table([[1, 2]] * 5), "v": table([[6]] * 5), "mask": mask, "sink": sink}


def normed_2(query: Float[Tensor, "n d"], key: Float[Tensor, "m d"]) -> Float[Tensor, "n m"]:
    q = query / query.norm(dim=-1, keepdim=True)
    k = key / key.norm(dim=-1, keepdim=True)
    return q @ k.T


def _pair(seed: int, n: int, m: int, d: int) -> Case:
    return {"query": 3 * drawn(seed, n, d), "key": drawn(seed + 1, m, d)}


def with_sink_2(weights: Float[Tensor, "n m"], given: Float[Tensor, " n"]) -> Float[Tensor, "n m"]:
    return weights * (1 - given)[:, None]


def _given(seed: int, n: int, m: int) -> Case:
    rows = drawn(seed, n, m).abs() + 0.1
    share = drawn(seed + 1, n).abs()
    return {"weights": rows / rows.sum(1, keepdim=True), "given": share / (1 + share)}


CODE = {
    "normed": Code(
        solution=normed,
        cases=(
            lambda: [{"x": table([[3, 4]]), "gain": torch.ones(2, device="cpu")}],
            lambda: [{"x": table([[3, 4], [30, 40]]), "gain": torch.tensor([1.0, 2.0], device="cpu")}],
            lambda: [_rows(3, 2, 5, 8), _rows(5, 2, 4, 3, 6), *(_rows(7, 3, 4, by=x) for x in (1e-3, 0.0))],
        ),
        reference=_normed_by_torch,
        hidden=lambda draw: [_rows(21, 3, 5, draw=draw), _rows(31, 2, 2, 4, draw=draw)],
    ),
    "normed_2": Code(
        solution=normed_2,
        cases=(
            lambda: [_pair(1, 1, 2, 4)],
            lambda: [_pair(3, 3, 5, 6), _pair(5, 4, 2, 3)],
        ),
    ),
    "with_sink": Code(
        solution=with_sink,
        cases=(
            lambda: [_five(0.0)],
            lambda: [_sunk(2, 3, 4, 4, 30.0), _sunk(2, 3, 4, 4, -30.0)],
            lambda: [_sunk(6, 2, 5, 3, 1.5), _sunk(9, 4, 2, 8, -0.5), _sunk(13, 4, 4, 3, 0.5)],
        ),
        reference=_by_the_sum,
        hidden=lambda draw: [_sunk(21, 3, 4, 5, 0.7, draw), _sunk(31, 2, 6, 2, -1.2, draw)],
    ),
    "with_sink_2": Code(
        solution=with_sink_2,
        cases=(
            lambda: [_given(1, 1, 3)],
            lambda: [_given(3, 4, 5), _given(5, 3, 3)],
        ),
    ),
}
