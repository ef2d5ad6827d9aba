"""Right answers to what the parts of chapter 13 ask, in several spellings."""

import torch
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.masks import causal


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
    "what_follows": ("c", "a, after the first w"),
    "one_layer_copies": ("b", "no: it can find the first w, but that token's own row holds w, not a"),
    "two_looks": (_shifted, _by_triangles),
    "prefix_matching": (_by_index, _by_adding),
    "which_head_is_needed": ("c", "fewer than 10"),
    "longer_pieces": ("c", "fewer than 10"),
    "one_length_only": ("c", "fewer than 10"),
}
