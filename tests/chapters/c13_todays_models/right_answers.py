"""Right answers to what the parts of chapter 13 ask, in several spellings."""

import torch
import torch.nn.functional as F
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.masks import causal


def _normed_by_norm(x: Tensor, gain: Tensor) -> Tensor:
    return x * (x.pow(2).mean(dim=-1, keepdim=True) + 1e-6).rsqrt() * gain


def _normed_by_torch(x: Tensor, gain: Tensor) -> Tensor:
    return F.rms_norm(x, (x.shape[-1],), gain, eps=1e-6)


def _capped_by_hand(scores: Tensor, cap: float) -> Tensor:
    return torch.tanh(scores / cap) * cap


def _capped_by_exp(scores: Tensor, cap: float) -> Tensor:
    grown = torch.exp(2 * scores / cap)
    return cap - 2 * cap / (grown + 1)


def _sink_by_pad(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, sink: float) -> Tensor:
    bias = torch.full((len(q), len(k) + 1), 0.0, device=q.device)
    bias[:, len(k)] += sink
    more = F.pad(mask, (0, 1), value=True)
    return attend(q, F.pad(k, (0, 0, 0, 1)), F.pad(v, (0, 0, 0, 1)), mask=more, score_bias=bias).output


def _sink_in_the_bias(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, sink: float) -> Tensor:
    hidden = torch.zeros(mask.shape, device=q.device).masked_fill(~mask, -torch.inf)
    column = torch.full((len(q), 1), sink, device=q.device)
    keys, values = (torch.cat((x, x.new_zeros(1, x.shape[1]))) for x in (k, v))
    return attend(q, keys, values, score_bias=torch.cat((hidden, column), 1)).output


def _by_index(table: Tensor, length: int) -> Tensor:
    i = torch.arange(length, 2 * length, device=table.device)
    return table[i, i - length + 1].mean()


def _by_adding(table: Tensor, length: int) -> Tensor:
    total = 0.0
    for i in range(length, len(table)):
        total += float(table[i, i + 1 - length])
    return torch.tensor(total / length, device=table.device)


def _shifted(x: Tensor, sharp: float) -> Tensor:
    may = torch.eye(len(x), device=x.device).bool().roll(1, 0)
    may[0] = False
    before = attend(x, x, x, mask=may).output
    return attend(sharp * x, before, x, mask=causal(len(x), device=x.device)).output


def _by_triangles(x: Tensor, sharp: float) -> Tensor:
    n = len(x)
    ones = torch.ones(n, n, device=x.device, dtype=torch.bool)
    before = attend(x, x, x, mask=ones.tril(-1) & ones.triu(-1)).output
    return attend(x * sharp, before, x, mask=ones.tril()).output


RIGHT = {
    "window_of_128": ("b", "127"),
    "cache_with_windows": ("3.003", "12 * (131072 + 128) * 2048 / 2^30"),
    "ten_times_longer": ("b", "a hundred times as large"),
    "normed": (_normed_by_norm, _normed_by_torch),
    "capped": (_capped_by_hand, _capped_by_exp),
    "loud_start": ("c", "the one with QK-norm alone"),
    "five_and_a_sink": ("b", "5/6, about .83"),
    "with_sink": (_sink_by_pad, _sink_in_the_bias),
    "what_follows": ("c", "a, after the first w"),
    "one_layer_copies": ("b", "no: it can find the first w, but that token's own row holds w, not a"),
    "two_looks": (_shifted, _by_triangles),
    "prefix_matching": (_by_index, _by_adding),
    "which_head_is_needed": ("c", "fewer than 10"),
    "longer_pieces": ("c", "fewer than 10"),
    "one_length_only": ("c", "fewer than 10"),
}
