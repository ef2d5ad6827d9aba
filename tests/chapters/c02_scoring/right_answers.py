"""Right answers to the exercises of lesson 02, in many spellings; wrong ones to the open question."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor


class _Layer(torch.nn.Module):
    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = torch.matmul(query, key.transpose(-2, -1)) / torch.sqrt(torch.tensor(query.size(-1)))
        return F.dropout(F.softmax(scores, dim=-1), 0.0) @ value


RIGHT = {
    "soft_look_up": (
        lambda query, key, value: (value.T @ torch.softmax(key @ query.T, 0)).T,
        lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=1.0),
        lambda q, k, v: torch.stack([torch.softmax(k @ row, 0) @ v for row in q]),
        lambda q, k, v: (e := (q @ k.T).exp()) @ v / e.sum(1, keepdim=True),
    ),
    "without_padding": (
        lambda scores, real: (scores + torch.where(real, 0.0, -torch.inf).unsqueeze(1)).softmax(-1),
        lambda scores, real: torch.softmax(torch.where(real[:, None], scores, float("-inf")), 2),
        lambda scores, real: (w := scores.softmax(-1) * real[:, None]) / w.sum(-1, keepdim=True),
        lambda scores, real: F.softmax(scores.masked_fill(real.logical_not().unsqueeze(1), -1e9), dim=2),
    ),
    "slopes": (
        lambda weights: torch.diag_embed(weights) - torch.outer(weights, weights),
        lambda w: torch.stack([w[i] * (torch.eye(len(w))[i] - w) for i in range(len(w))]),
        lambda w: torch.eye(len(w)).sub(w).mul(w[:, None]),
    ),
    "scaled_scores": (
        lambda q, k: torch.einsum("nd,md->nm", q, k) * q.shape[1] ** -0.5,
        lambda query, key: torch.stack([(key * q).sum(1) for q in query]) / torch.tensor(key.shape[1]).sqrt(),
        lambda q, k: F.linear(q * q.shape[1] ** -0.25, k * q.shape[1] ** -0.25),
    ),
    "short_start": (
        lambda v: v / v.shape[1] ** (1 / 4),
        lambda v: v * v.size(-1) ** -0.25,
        lambda v: v / torch.tensor(float(v.shape[-1])).sqrt().sqrt(),
        lambda v: torch.stack([row / math.sqrt(math.sqrt(len(row))) for row in v]),
    ),
    "stable_weights": (
        lambda scores: (scores - torch.logsumexp(scores, -1, keepdim=True)).exp(),
        lambda scores: torch.softmax(scores, dim=-1),
        lambda scores: scores.double().log_softmax(-1).exp(),
        lambda scores: (e := torch.exp(scores - torch.max(scores, -1, keepdim=True)[0])).div(
            e.sum(-1)[..., None]
        ),
    ),
    "scaled_attention": (
        lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v),
        lambda q, k, v: torch.einsum(
            "...nm,...md->...nd",
            torch.softmax(torch.einsum("...nd,...md->...nm", q / q.shape[-1] ** 0.5, k), -1),
            v,
        ),
        lambda q, k, v: (v.mT @ (k @ q.mT).div(math.sqrt(k.size(-1))).softmax(-2)).mT,
        _Layer(),
    ),
    "additive_scores": (
        lambda q, k, wq, wk, v: torch.stack([torch.tanh(row + k @ wk) @ v for row in q @ wq]),
        lambda q, k, wq, wk, v: torch.einsum(
            "nmh,h->nm", torch.tanh((q @ wq).unsqueeze(1) + (k @ wk).unsqueeze(0)), v
        ),
        lambda q, k, wq, wk, v: F.linear(torch.tanh((q @ wq).unsqueeze(1) + k @ wk), v[None]).squeeze(-1),
    ),
    "why_the_root": (
        (
            "The variance of the score grows with d_k, so large widths give one-hot weights without gradient;"
            " dividing by d_k would make them uniform."
        ),
        (
            "Its standard deviation is sqrt(d_k). Without the division softmax saturates; with d_k itself the"
            " scores would be too small and all keys get equal weight."
        ),
    ),
}

# in the order of the slips
WRONG = {
    "why_the_root": (
        "We divide by the root so that the rows sum to 1.",
        "It prevents overflow of exp.",
        "Softmax needs inputs between 0 and 1.",
        "It makes attention faster.",
        "It turns the dot product into the cosine of the angle.",
        "It corrects for the number of keys in the sum.",
    ),
}
