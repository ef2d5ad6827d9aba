"""Right answers to the exercises of lesson 01, in many spellings; wrong ones to the open question."""

from collections import Counter
from collections.abc import Callable

import torch
from torch import Tensor

from tests import code_of

asked = code_of("c01_history")


def _counts(seen: Tensor, tags: Tensor) -> Tensor:
    """How often each sight has each tag: a row per sight, a column per tag that occurs."""
    rows, columns = seen.unique(return_inverse=True)[1], tags.unique(return_inverse=True)[1]
    counts = torch.zeros(int(rows.max()) + 1, int(columns.max()) + 1, device=seen.device)
    return counts.index_put((rows, columns), torch.ones_like(rows, dtype=torch.float32), accumulate=True)


def _from_counts(share: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda seen, tags: share(_counts(seen, tags))


def _moments(p: float, reward_left: float, reward_right: float, baseline: float) -> Tensor:
    """The variance as the mean square of what is left of the mean."""
    share = torch.tensor([p, 1 - p])
    draws = (torch.tensor([reward_left, reward_right]) - baseline) * torch.tensor([1.0, -1.0]) / share
    mean = (share * draws).sum()
    return torch.stack([mean, share @ (draws - mean).square()])


def _joined(state: Tensor, read: Tensor, w_query: Tensor, w_key: Tensor, v: Tensor) -> Tensor:
    """One matrix for state and place, side by side."""
    pairs = torch.cat([state.expand(len(read), -1), read], dim=1)
    scores = torch.cat([w_query, w_key]).T.matmul(pairs[..., None])[..., 0].tanh().mul(v).sum(-1)
    return torch.einsum("m,md->d", scores.softmax(0), read)


RIGHT = {
    "most_right": (
        lambda counts: torch.stack([row.max() for row in counts]).sum() / counts.sum(),
        lambda c: (c.sum(-1) / c.sum()) @ (c.max(dim=1).values / c.sum(-1)),
        lambda counts: counts.gather(1, counts.argmax(1, keepdim=True)).double().sum() / counts.sum(),
    ),
    "window_mask": (
        lambda n, radius: torch.ones(n, n, dtype=torch.bool).tril(radius).triu(-radius),
        lambda n, radius: torch.tensor([[abs(i - j) <= radius for j in range(n)] for i in range(n)]),
        lambda n, radius: (
            (torch.arange(n)[:, None] <= torch.arange(n) + radius)
            & (torch.arange(n) <= torch.arange(n)[:, None] + radius)
        ),
    ),
    "changed_tags": (
        lambda before, after, gone: torch.tensor(
            [i for i in range(len(before)) if i != gone and before[i] != after[i - (i > gone)]],
            dtype=torch.long,
        ),
        lambda before, after, gone: (
            torch.cat([after[:gone], before[gone : gone + 1], after[gone:]]).ne(before).nonzero().flatten()
        ),
        lambda before, after, gone: torch.cat(
            [
                torch.where(before[:gone] - after[:gone] != 0)[0],
                torch.where(before[gone + 1 :] - after[gone:] != 0)[0] + gone + 1,
            ]
        ),
    ),
    "one_place": (
        lambda n, m: (torch.arange(m) == m - 1).expand(n, m),
        lambda n, m: torch.tensor([[j + 1 == m for j in range(m)] for _ in range(n)]),
        lambda n, m: torch.cat([torch.zeros(n, m - 1), torch.ones(n, 1)], dim=1).bool(),
    ),
    "nudge": (
        asked._by_autograd,
        lambda place, mean, std, reward, baseline: (
            torch.einsum("b,bk->bk", reward - baseline, place - mean) / (std * std)
        ),
        lambda place, mean, std, reward, baseline: (
            ((reward - baseline) * (place.T - mean.T)).T / torch.tensor(std).square()
        ),
    ),
    "best_share": (
        _from_counts(lambda c: c.amax(1).sum() / c.sum()),
        lambda seen, tags: (
            torch.stack([t == tags[seen == s].mode().values for s, t in zip(seen, tags, strict=True)])
            .float()
            .mean()
        ),
        lambda seen, tags: (
            (torch.nn.functional.one_hot(seen).T @ torch.nn.functional.one_hot(tags)).max(1)[0].sum()
            / len(tags)
        ),
        lambda seen, tags: torch.tensor(
            sum(max(Counter(tags[seen == s].tolist()).values()) for s in set(seen.tolist())) / len(tags)
        ),
    ),
    "kernel_regression": (
        lambda x, xs, ys, sigma: torch.softmax(-0.5 * ((x[:, None] - xs) / sigma) ** 2, dim=-1) @ ys,
        lambda x, xs, ys, sigma: torch.stack(
            [(w := (-((one - xs) ** 2) / (2 * sigma**2)).exp()) @ ys / w.sum() for one in x]
        ),
        lambda x, xs, ys, sigma: torch.distributions.Normal(xs, sigma).log_prob(x[:, None]).softmax(1).mv(ys),
    ),
    "policy_loss": (
        lambda log_p, reward, expected: torch.mul(expected - reward, log_p).mean(),
        lambda log_p, reward, expected: (
            -torch.einsum("bt,bt->", reward, log_p) / log_p.numel() + (expected * log_p).mean()
        ),
        lambda log_p, reward, expected: -((reward - expected).flatten() @ log_p.flatten() / reward.numel()),
    ),
    "reinforce": (
        asked._by_gradient,
        lambda p, reward_left, reward_right, baseline: torch.tensor(
            [
                reward_left - reward_right,
                p * (1 - p) * ((reward_left - baseline) / p + (reward_right - baseline) / (1 - p)) ** 2,
            ]
        ),
        _moments,
    ),
    "additive_step": (
        asked._by_the_library,
        lambda state, read, w_query, w_key, v: (
            torch.stack([torch.tanh(state @ w_query + row @ w_key) @ v for row in read]).softmax(0)[:, None]
            * read
        ).sum(0),
        _joined,
    ),
    "what_they_miss": (
        (
            "The window is too small: did is ten words away from cut. The RNN has not read the word after"
            " saw. Attention looks at all words at once, wherever they stand."
        ),
        (
            "For cut the auxiliary lies outside the window; for saw the deciding word comes later than an RNN"
            " has read. With attention every word may use any word of the sentence."
        ),
    ),
}

# in the order of the slips
WRONG = {
    "what_they_miss": (
        "An RNN is just a long window.",
        "With more training the window would learn it.",
        "The RNN is slower than attention.",
        "In the RNN the gradient vanishes over ten words.",
        "Attention picks the most relevant word.",
        "Attention knows the order of the words.",
    ),
}
