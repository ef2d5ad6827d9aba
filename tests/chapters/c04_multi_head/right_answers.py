"""Right answers to the exercises of lesson 04, in many spellings; wrong ones to the open question."""

import torch
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.heads import masks_from_torch, merge_heads, split_heads
from tests import code_of

asked = code_of("c04_multi_head")


def _blocks(x: Tensor, n_heads: int) -> Tensor:
    return x.unflatten(-1, (n_heads, -1))


RIGHT = {
    "several_heads": (
        lambda q, k, v, w_output, h: sum(
            attend(*parts).output @ block
            for *parts, block in zip(*(x.chunk(h, -1) for x in (q, k, v)), w_output.chunk(h), strict=True)
        ),
        lambda q, k, v, w_output, h: (
            merge_heads(
                torch.nn.functional.scaled_dot_product_attention(*(split_heads(x, h) for x in (q, k, v)))
            )
            @ w_output
        ),
        lambda q, k, v, w_output, h: torch.einsum(
            "bhnm,bmhd,hdo->bno",
            (
                torch.einsum("bnhd,bmhd->bhnm", _blocks(q, h), _blocks(k, h)) / (k.shape[2] // h) ** 0.5
            ).softmax(-1),
            _blocks(v, h),
            w_output.unflatten(0, (h, -1)),
        ),
    ),
    "heads_apart": (
        lambda x, n_heads: torch.stack(x.chunk(n_heads, dim=-1), dim=-3),
        lambda x, n_heads: _blocks(x, n_heads).movedim(-2, -3),
        lambda x, n_heads: x.mT.unflatten(-2, (n_heads, -1)).mT,
    ),
    "looks_at": (
        lambda weights, target: torch.einsum("bhm,bm->bh", weights, target.float()).mean(0),
        lambda weights, target: (weights.movedim(1, 2)[target]).mean(0),
        lambda weights, target: torch.where(target[:, None], weights, 0.0).sum((0, 2)) / len(weights),
    ),
    "heads_together": (
        lambda heads: torch.cat(heads.unbind(-3), dim=-1),
        merge_heads,
        lambda heads: heads.movedim(-3, -2).contiguous().view(*heads.shape[:-3], heads.shape[-2], -1),
    ),
    "many_heads": (
        asked._head_by_head,
        lambda x, wq, wk, wv, wo, h: (
            merge_heads(
                torch.nn.functional.scaled_dot_product_attention(
                    split_heads(x @ wq, h), split_heads(x @ wk, h), split_heads(x @ wv, h)
                )
            )
            @ wo
        ),
        lambda x, wq, wk, wv, wo, h: (
            torch.cat(
                [
                    attend(*parts).output
                    for parts in zip(*((x @ w).chunk(h, -1) for w in (wq, wk, wv)), strict=True)
                ],
                dim=-1,
            )
            @ wo
        ),
    ),
    "silent_head": (
        lambda w, head, h: w * (torch.arange(len(w)) // (len(w) // h) != head)[:, None],
        lambda w, head, h: torch.cat([block * (i != head) for i, block in enumerate(w.chunk(h))]),
        lambda w, head, h: w.unflatten(0, (h, -1)).index_fill(0, torch.tensor(head), 0.0).flatten(0, 1),
    ),
    "may_look": (
        lambda attn_mask, key_padding_mask: ~attn_mask & ~key_padding_mask[:, None, None, :],
        lambda a, p: masks_from_torch(a, p)["mask"][:, None],
        lambda a, p: torch.logical_or(a[None, None], p[:, None, None]).logical_not(),
        lambda a, p: ~torch.stack([a | row for row in p]).unsqueeze(1),
    ),
    "why_two_heads": (
        (
            "The output is a point on the segment from v_x to v_y, one number p. Each read-out is a threshold"
            " on p, two of them give three intervals, and we need four answers."
        ),
        (
            "xx and yy force both read-outs to rise the same way along the line between v_x and v_y, but xy"
            " and yx must be told apart by read-outs that go opposite ways."
        ),
    ),
}

# in the order of the slips
WRONG = {
    "why_two_heads": (
        "A head can look at only one token at a time.",
        "The values of the head are too small; it would need wider ones.",
        "The gradient cannot find the weights.",
        "Two heads are faster than one.",
        "One head has fewer parameters than two.",
        "Token i-3 is too far away for one head.",
    ),
}
