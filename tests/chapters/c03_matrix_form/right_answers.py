"""Right answers to the exercises of lesson 03, in many spellings; wrong ones to the open question."""

import torch
from torch import Tensor

from tests import code_of

asked = code_of("c03_matrix_form")


def _mixed(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    scores = torch.baddbmm(query.new_zeros(1), query, key.mT, beta=0, alpha=query.shape[-1] ** -0.5)
    return scores.softmax(-1).bmm(value)


def _in_rows(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return torch.nn.functional.scaled_dot_product_attention(query, key, value, scale=1.0)


RIGHT = {
    "self_attention": (
        lambda x, w_q, w_k, w_v: torch.nn.functional.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v),
        lambda x, w_q, w_k, w_v: (
            torch.einsum("bnd,dk,ek,bme->bnm", x, w_q, w_k, x).div(w_k.shape[1] ** 0.5).softmax(2) @ (x @ w_v)
        ),
        lambda x, w_q, w_k, w_v: _mixed(
            *(x @ torch.cat([w_q, w_k, w_v], 1)).split([w.shape[1] for w in (w_q, w_k, w_v)], dim=-1)
        ),
    ),
    "influence": (
        lambda f, x, other: torch.stack(
            [
                (f(torch.cat((x[:, :j], other[:, j : j + 1], x[:, j + 1 :]), 1)) - f(x))
                .abs()
                .flatten(2)
                .amax(-1)
                .amax(0)
                for j in range(x.shape[1])
            ],
            dim=1,
        ),
        lambda f, x, other: (
            torch.stack(
                [
                    (f(torch.where(here[:, None], other, x)) - f(x)).abs().amax(dim=2).max(dim=0).values
                    for here in torch.eye(x.shape[1]).bool()
                ]
            ).T
        ),
        lambda f, x, other: torch.tensor(
            [
                [
                    (f(x + (other - x) * (torch.arange(x.shape[1]) == j)[:, None]) - f(x))[:, i]
                    .abs()
                    .max()
                    .item()
                    for j in range(x.shape[1])
                ]
                for i in range(x.shape[1])
            ]
        ),
    ),
    "both_masks": (
        lambda real: torch.ones(real.shape[1], real.shape[1]).tril().bool().logical_and(real.unsqueeze(1)),
        lambda real: (torch.arange(real.shape[1])[:, None] >= torch.arange(real.shape[1])) * real[:, None],
        lambda real: real.unsqueeze(1).expand(-1, real.shape[1], -1).tril(),
    ),
    "without_loops": (
        lambda query, key, value: torch.nn.functional.scaled_dot_product_attention(
            query, key, value, scale=1.0
        ),
        lambda q, k, v: torch.einsum("nm,md->nd", torch.softmax(torch.einsum("nd,md->nm", q, k), dim=1), v),
        lambda q, k, v: (e := (q @ k.T - (q @ k.T).max()).exp()) @ v / e.sum(1, keepdim=True),
    ),
    "mix_in_columns": (
        lambda V, A_prime: (A_prime.mT @ V.mT).mT,
        lambda V, A_prime: torch.einsum("dk,kq->dq", V, A_prime),
        lambda V, A_prime: torch.stack([(V * a).sum(1) for a in A_prime.T], dim=1),
    ),
    "attention_in_columns": (
        lambda I, W_q, W_k, W_v: asked.without_loops((W_q @ I).mT, (W_k @ I).mT, (W_v @ I).mT).mT,  # noqa: E741
        lambda I, W_q, W_k, W_v: torch.einsum(  # noqa: E741
            "vi,iq->vq", W_v @ I, torch.softmax(torch.einsum("kj,ki->ji", W_k @ I, W_q @ I), dim=0)
        ),
        lambda I, W_q, W_k, W_v: (  # noqa: E741
            _in_rows(*(torch.cat([W_q, W_k, W_v]) @ I).T.split((len(W_q), len(W_k), len(W_v)), 1)).T
        ),
    ),
    "why_not_regroup": (
        (
            "Softmax is not linear, it needs a whole row of scores first; with a product of features phi(q)"
            " phi(k) in place of exp the brackets could be moved."
        ),
        (
            "Only a pure chain of products is associative. The softmax in between depends on all scores of a"
            " row; replacing it by a kernel feature map gives linear attention."
        ),
    ),
}

# in the order of the slips
WRONG = {
    "why_not_regroup": (
        "Here associativity of the product fails.",
        "Matrices commute only if they are diagonal.",
        "The shapes would mismatch.",
        "Because softmax is too slow.",
        "Because of the division by sqrt(d).",
        "It would lose precision.",
    ),
}
