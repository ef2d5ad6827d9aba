"""Right answers to what part 12 asks, in several spellings."""

from collections.abc import Callable

import torch
from torch import Tensor

from lesson_lib.attention import attend


def _times_the_mask(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    return (query @ key.T / query.shape[1] ** 0.5 * mask).softmax(1) @ value


def _by_where(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    scores = torch.einsum("nd,md->nm", query, key) * query.shape[1] ** -0.5
    return torch.where(mask, scores, torch.zeros_like(scores)).softmax(dim=1) @ value


def _by_largest(x: Tensor, w_query: Tensor, w_key: Tensor) -> Tensor:
    weights = attend(x @ w_query, x @ w_key, x).weights
    return (weights.diagonal() == weights.amax(1)).float().mean()


def _one_by_one(x: Tensor, w_query: Tensor, w_key: Tensor) -> Tensor:
    scores = (x @ w_query) @ (x @ w_key).T
    own = [int(row.argmax()) == i for i, row in enumerate(scores)]
    return torch.tensor(sum(own) / len(own), device=x.device)


def _by_shares(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """exp(0) is 1."""
    shares = torch.where(mask, (query @ key.T / query.shape[1] ** 0.5).exp(), 1.0)
    return shares @ value / shares.sum(1, keepdim=True)


def _assigned(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    scores = torch.matmul(query, key.transpose(0, 1)) / query.size(-1) ** 0.5
    scores[~mask] = 0
    return torch.nn.functional.softmax(scores, dim=-1) @ value


def _regrouped(x: Tensor, w_query: Tensor, w_key: Tensor) -> Tensor:
    """Both matrices are one; the place of each largest score, by topk."""
    scores = x @ (w_query @ w_key.T) @ x.T
    return (scores.topk(1).indices[:, 0] == torch.arange(len(x))).sum() / len(x)


def _by_norm(
    attention: Callable[..., Tensor], query: Tensor, key: Tensor, value: Tensor, mask: Tensor
) -> Tensor:
    last = torch.nn.functional.one_hot(torch.tensor(len(key) - 1), len(key)).to(key)[:, None]
    after = attention(query, key + 3 * last, value + 3 * last, mask)
    return torch.linalg.vector_norm(after - attention(query, key, value, mask), ord=torch.inf)


def _both_ways(
    attention: Callable[..., Tensor], query: Tensor, key: Tensor, value: Tensor, mask: Tensor
) -> Tensor:
    before = attention(query, key, value, mask)
    key, value = key.clone(), value.clone()
    key[-1], value[-1] = key[-1] + 3, value[-1] + 3
    gap = attention(query, key, value, mask) - before
    return max(gap.max(), -gap.min())


def _by_index(
    attention: Callable[..., Tensor], query: Tensor, key: Tensor, value: Tensor, mask: Tensor
) -> Tensor:
    where = torch.tensor([len(key) - 1])
    three = [torch.full((1, x.shape[1]), 3.0).to(x) for x in (key, value)]
    louder = [x.index_add(0, where.to(x.device), t) for x, t in zip((key, value), three, strict=True)]
    return (attention(query, key, value, mask) - attention(query, *louder, mask)).abs().amax()


RIGHT = {
    "moved_by_hidden": (_by_norm, _both_ways, _by_index),
    "to_the_letter": (_times_the_mask, _by_where, _by_shares, _assigned),
    "share_on_itself": (_by_largest, _one_by_one, _regrouped),
}
