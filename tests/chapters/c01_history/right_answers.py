"""Right answers to the exercises of lesson 01, in many spellings; wrong ones to the open question."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import pad

from lesson_lib.chapters.c01_history.exercises import _by_gradient
from lesson_lib.chapters.c01_history.looking_back import _by_the_library
from lesson_lib.chapters.c01_history.where_to_look import _by_autograd, _pixel_by_pixel


def _counts(seen: Tensor, tags: Tensor) -> Tensor:
    """How often each sight has each tag: a row per sight, a column per tag that occurs."""
    rows, columns = seen.unique(return_inverse=True)[1], tags.unique(return_inverse=True)[1]
    counts = torch.zeros(int(rows.max()) + 1, int(columns.max()) + 1, device=seen.device)
    return counts.index_put((rows, columns), torch.ones_like(rows, dtype=torch.float32), accumulate=True)


def _from_counts(share: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda seen, tags: share(_counts(seen, tags))


RIGHT = {
    "same_word": ("c", "no"),
    "best_on_cut": ("d", "attention"),
    "without_order": ("b", "between one word and window 1"),
    "did_away": ("a", "that of cut alone"),
    "padding_counts": ("24 / 36", 2 / 3),
    "most_right": (
        lambda counts: torch.stack([row.max() for row in counts]).sum() / counts.sum(),
        lambda c: (c.sum(-1) / c.sum()) @ (c.max(dim=1).values / c.sum(-1)),
    ),
    "window_mask": (
        lambda n, radius: torch.ones(n, n, dtype=torch.bool).tril(radius).triu(-radius),
        lambda n, radius: torch.tensor([[abs(i - j) <= radius for j in range(n)] for i in range(n)]),
    ),
    "which_letters": ("b", "märz"),
    "all_the_same": ("b", "are all the same"),
    "wholly_right": ("c", "hardly any"),
    "what_it_shows": ("c", "C"),
    "june_or_july": ("c", "the l"),
    "one_place": (
        lambda n, m: (torch.arange(m) == m - 1).expand(n, m),
        lambda n, m: torch.tensor([[j + 1 == m for j in range(m)] for _ in range(n)]),
    ),
    "how_often_33": ("a", "never"),
    "estimate_left": (5, "1 / 0.2"),
    "who_moves_the_eye": ("a", "learned, random, centre"),
    "small_batches": ("b", "random"),
    "which_sample": ("b", "0"),
    "nudge": (
        _by_autograd,
        lambda place, mean, std, reward, baseline: (
            torch.einsum("b,bk->bk", reward - baseline, place - mean) / (std * std)
        ),
    ),
    "best_share": (
        _from_counts(lambda c: c.amax(1).sum() / c.sum()),
        lambda seen, tags: (
            torch.stack([t == tags[seen == s].mode().values for s, t in zip(seen, tags, strict=True)])
            .float()
            .mean()
        ),
    ),
    "kernel_regression": (
        lambda x, xs, ys, sigma: torch.softmax(-0.5 * ((x[:, None] - xs) / sigma) ** 2, dim=-1) @ ys,
        lambda x, xs, ys, sigma: torch.stack(
            [(w := (-((one - xs) ** 2) / (2 * sigma**2)).exp()) @ ys / w.sum() for one in x]
        ),
    ),
    "crop": (
        _pixel_by_pixel,
        lambda canvas, row, column, size: pad(canvas, (size,) * 4)[
            row + size - size // 2 : row + size + size // 2 + 1,
            column + size - size // 2 : column + size + size // 2 + 1,
        ],
    ),
    "reinforce": (
        _by_gradient,
        lambda p, reward_left, reward_right, baseline: torch.tensor(
            [
                reward_left - reward_right,
                p * (1 - p) * ((reward_left - baseline) / p + (reward_right - baseline) / (1 - p)) ** 2,
            ]
        ),
    ),
    "additive_step": (
        _by_the_library,
        lambda state, read, w_query, w_key, v: (
            torch.stack([torch.tanh(state @ w_query + row @ w_key) @ v for row in read]).softmax(0)[:, None]
            * read
        ).sum(0),
    ),
    "word_before": (0.84, "21 / 25", "84 %"),
    "read_alignment": ("a", "A)"),
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
