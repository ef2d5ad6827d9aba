"""What of the chapter's exercises is code; their words are in exercises.md."""

import random
from collections.abc import Callable, Mapping
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import table
from lesson_lib.checks.questions import Code


def best_share(seen: Int[Tensor, " n"], tags: Int[Tensor, " n"]) -> Float[Tensor, ""]:
    right = 0
    for sight in seen.unique():
        right += tags[seen == sight].bincount().max()  # its most frequent tag
    return right / len(tags)


def _tokens(seen: list[int], tags: list[int]) -> Case:
    return {"seen": torch.tensor(seen, device="cpu"), "tags": torch.tensor(tags, device="cpu")}


def _whole(numbers):
    return (numbers.abs() * 2).long()


def _more_best_share(drawn: Draw) -> list[Case]:
    return [{"seen": 3 * _whole(drawn(1, 23)), "tags": _whole(drawn(2, 23))}]


def kernel_regression(
    x: Float[Tensor, " n"],
    xs: Float[Tensor, " m"],
    ys: Float[Tensor, " m"],
    sigma: float,
) -> Float[Tensor, " n"]:
    scores = -((x[:, None] - xs) ** 2) / (2 * sigma**2)  # (n, m): queries x, keys xs
    exponentials = scores.exp()
    weights = exponentials / exponentials.sum(-1, keepdim=True)
    return weights @ ys


def _measured(x: list[float], xs: list[float], ys: list[float], sigma: float) -> Case:
    return {"x": table(x), "xs": table(xs), "ys": table(ys), "sigma": sigma}


def _attended(x: Tensor, xs: Tensor, ys: Tensor, sigma: float) -> Tensor:
    """The same by the library's attention; rows are points, one number wide."""
    return attend(
        x[:, None],
        xs[:, None],
        ys[:, None],
        score=lambda query, key: -((query - key.mT) ** 2) / (2 * sigma**2),
    ).output[:, 0]


def _more_kernel_regression(drawn: Draw) -> list[Case]:
    return [{"x": drawn(1, 7), "xs": drawn(2, 11), "ys": drawn(3, 11), "sigma": 1.5}]


def reinforce(
    p: float,
    reward_left: float,
    reward_right: float,
    baseline: float,
) -> Float[Tensor, "2"]:
    left = (reward_left - baseline) / p  # d log p / dp = 1 / p
    right = -(reward_right - baseline) / (1 - p)  # d log(1 - p) / dp = -1 / (1 - p)
    mean = p * left + (1 - p) * right
    variance = p * left**2 + (1 - p) * right**2 - mean**2
    return torch.tensor([mean, variance])


def _policy(p: float, reward_left: float, reward_right: float, baseline: float) -> Case:
    return {"p": p, "reward_left": reward_left, "reward_right": reward_right, "baseline": baseline}


def _by_gradient(p: float, reward_left: float, reward_right: float, baseline: float) -> Tensor:
    """Moments of the estimates, whose factors are torch's own gradients of log p and log(1 - p)."""
    probability = torch.tensor(p, requires_grad=True)
    estimates = [
        (reward - baseline) * torch.autograd.grad(chance.log(), probability)[0]
        for reward, chance in ((reward_left, probability), (reward_right, 1 - probability))
    ]
    chances, values = torch.tensor([p, 1 - p]), torch.stack(estimates)
    mean = chances @ values
    return torch.stack([mean, chances @ (values - mean) ** 2])


def _more_reinforce(drawn: Draw) -> list[Case]:
    p, left, right, baseline = drawn(1, 4).tolist()
    p = min(max(abs(p) % 1, 0.1), 0.9)
    names = ("p", "reward_left", "reward_right", "baseline")
    return [dict(zip(names, (p, left, right, baseline), strict=True))]


WRITTEN, READ = ("0", "5", "-", "1", "7"), ("1", "7", "space", "M", "a", "y")


ALIGNMENT = (
    (0.01, 0.02, 0.03, 0.86, 0.05, 0.03),
    (0.01, 0.02, 0.01, 0.46, 0.04, 0.46),
    (0.15, 0.18, 0.22, 0.15, 0.14, 0.16),
    (0.94, 0.03, 0.01, 0.01, 0.00, 0.01),
    (0.04, 0.93, 0.01, 0.01, 0.00, 0.01),
)


def _alignment_picture() -> Any:
    from lesson_lib import charts

    return charts.heatmap(
        table(ALIGNMENT),
        alt=(
            "Heat map of weights, 5 written by 6 read characters: one bright cell in the rows 0, 1 and 7, two"
            " of middle brightness in the row 5, and a row without a bright cell for the dash."
        ),
        caption=(
            "The same table: the number of bright cells in each row is what you were asked for. A row is one"
            " written character, and its weights sum to 1; a column shows who looked at a character that was"
            " read."
        ),
        rows=WRITTEN,
        columns=READ,
        row_axis="written",
        column_axis="read",
        limits=(0.0, 1.0),
    )


def whole(numbers: list[int]) -> Tensor:
    return torch.tensor(numbers, device="cpu")


def best_share_2(
    seen: Int[Tensor, " n"],
    tags: Int[Tensor, " n"],
    new_seen: Int[Tensor, " m"],
    new_tags: Int[Tensor, " m"],
) -> Float[Tensor, ""]:
    right = 0
    for sight in new_seen.unique():
        known = tags[seen == sight]
        guess = (known if len(known) else tags).bincount().argmax()
        right += (new_tags[new_seen == sight] == guess).sum()
    return right / len(new_tags)


def _texts(seen: list[int], tags: list[int], new_seen: list[int], new_tags: list[int]) -> Case:
    names = ("seen", "tags", "new_seen", "new_tags")
    return dict(zip(names, map(whole, (seen, tags, new_seen, new_tags)), strict=True))


def kernel_regression_2(
    xs: Float[Tensor, " m"], ys: Float[Tensor, " m"], sigma: float
) -> Float[Tensor, " m"]:
    kernel = (-((xs[:, None] - xs) ** 2) / (2 * sigma**2)).exp()
    kernel = kernel.fill_diagonal_(0)  # a point does not see itself
    weights = kernel / kernel.sum(-1, keepdim=True)
    return weights @ ys


def _points(xs: list[float], ys: list[float], sigma: float) -> Case:
    return {"xs": table(xs), "ys": table(ys), "sigma": sigma}


def _one_left_out(xs: Tensor, ys: Tensor, sigma: float) -> Tensor:
    guesses = []
    for i in range(len(xs)):
        others = torch.arange(len(xs), device=xs.device) != i
        kernel = torch.exp(-((xs[i] - xs[others]) ** 2) / (2 * sigma**2))
        guesses.append((kernel * ys[others]).sum() / kernel.sum())
    return torch.stack(guesses)


def reinforce_2(p: float, reward_left: float, reward_right: float) -> Float[Tensor, ""]:
    return torch.tensor((1 - p) * reward_left + p * reward_right)


def _rewards(p: float, reward_left: float, reward_right: float) -> Case:
    return {"p": p, "reward_left": reward_left, "reward_right": reward_right}


Rows = Mapping[tuple[str, str], tuple[int, ...]]  # (word before, word): how often it has each tag


SIGHTS: Mapping[str, Callable[[str, str], str]] = {
    "a word and the word before it": lambda before, word: f"{before} {word}",
    "the word alone": lambda before, word: word,
    "the word before it, and not the word": lambda before, word: before,
}


def _by_sight(rows: Rows, sight: str) -> dict[str, list[int]]:
    """The counts of each tag, added up for rows that look alike."""
    found: dict[str, list[int]] = {}
    for pair, counts in rows.items():
        name = SIGHTS[sight](*pair)
        found[name] = [a + b for a, b in zip(found.get(name, [0, 0, 0]), counts, strict=True)]
    return found


def _word_before_numbers(draw: random.Random) -> dict[str, Any]:
    a, b, c, d, e, f, g, h, k = (draw.randint(1, 6) for _ in range(9))
    rows = {
        ("the", "saw"): (a, 0, 0), ("I", "saw"): (0, b, 0), ("man", "saw"): (c, d, 0),
        ("the", "cut"): (e, 0, 0), ("I", "cut"): (0, f, g), ("house", "cut"): (0, h, k),
    }  # fmt: skip
    sight = draw.choice(list(SIGHTS))
    seen = list(_by_sight(rows, sight).values())
    best = {other: sum(max(counts) for counts in _by_sight(rows, other).values()) for other in SIGHTS}
    total, largest = sum(map(sum, seen)), " + ".join(str(max(counts)) for counts in seen)
    told = "; ".join(f"{before} {word} {counts}" for (before, word), counts in rows.items())
    alone = sum(sum(counts) for counts in seen if sum(counts) == max(counts))
    one = max(map(sum, zip(*rows.values(), strict=True)))
    wrong_1 = sum(max(counts) / sum(counts) for counts in seen) / len(seen)
    (other_1, right_1), (other_2, right_2) = ((o, right) for o, right in best.items() if o != sight)
    return locals()


CODE = {
    "word_before_2": Code(
        draw=_word_before_numbers,
    ),
    "best_share": Code(
        solution=best_share,
        cases=(
            lambda: [_tokens([0, 0, 0], [2, 1, 1])],
            lambda: [_tokens([0, 0, 0, 1, 1, 1], [2, 2, 0, 1, 0, 1])],
            lambda: [_tokens([0, 0, 0, 0, 0, 1], [0, 1, 2, 0, 1, 1])],
            lambda: [
                _tokens([12, 7, 12, 7, 7, 90, 12, 7], [3, 1, 0, 1, 0, 2, 3, 3]),
                _tokens([5, 3, 5, 3, 5, 3, 41], [0, 1, 1, 0, 2, 1, 3]),
            ],
        ),
        hidden=_more_best_share,
    ),
    "best_share_2": Code(
        solution=best_share_2,
        cases=(
            lambda: [_texts([0, 0, 0], [1, 1, 2], [0, 0, 0, 0], [2, 1, 2, 1])],
            lambda: [_texts([5, 5, 5, 3, 3], [0, 0, 1, 2, 2], [3, 5, 5, 3, 5, 5, 5], [2, 1, 1, 1, 0, 1, 2])],
            lambda: [_texts([5, 5, 3, 3, 3], [0, 0, 2, 2, 2], [7, 5, 7, 3, 7, 5, 3], [2, 0, 2, 0, 0, 0, 2])],
        ),
    ),
    "kernel_regression": Code(
        solution=kernel_regression,
        cases=(
            lambda: [_measured([2.0, -1.0], [1.0], [7.0], 1.0)],
            lambda: [_measured([0.0], [0.5, 2.0], [2.0, 30.0], 1.0)],
            lambda: [_measured([0.0, 1.5], [-1.0, 0.5, 2.0], [2.0, 30.0, 500.0], 1.0)],
            lambda: [
                _measured([0.0, 1.5], [-1.0, 0.5, 2.0], [2.0, 30.0, 500.0], 2.0),
                _measured([0.0, 1.5, -0.7], [-1.0, 0.5, 2.0, 0.1, -0.6], [2.0, 30.0, 500.0, 7.0, 11.0], 0.5),
            ],
        ),
        reference=_attended,
        hidden=_more_kernel_regression,
    ),
    "kernel_regression_2": Code(
        solution=kernel_regression_2,
        cases=(
            lambda: [_points([0.0, 1.0], [2.0, 30.0], 1.0)],
            lambda: [_points([-1.0, 0.5, 2.0], [2.0, 30.0, 500.0], 1.0)],
            lambda: [_points([-1.0, 0.5, 2.0, 0.1, -0.6], [2.0, 30.0, 500.0, 7.0, 11.0], 0.5)],
        ),
        reference=_one_left_out,
    ),
    "reinforce": Code(
        solution=reinforce,
        cases=(
            lambda: [_policy(0.5, 1.0, 0.0, 0.0)],
            lambda: [_policy(0.2, 1.0, 0.0, 0.0)],
            lambda: [_policy(0.2, 1.0, 3.0, 0.0)],
            lambda: [_policy(0.2, 1.0, 0.0, 0.2), _policy(0.3, 2.0, 5.0, 4.0)],
        ),
        reference=_by_gradient,
        hidden=_more_reinforce,
    ),
    "reinforce_2": Code(
        solution=reinforce_2,
        cases=(
            lambda: [_rewards(0.5, 1.0, 0.0)],
            lambda: [_rewards(0.2, 1.0, 0.0)],
            lambda: [_rewards(0.2, 1.0, 3.0), _rewards(0.7, 5.0, 2.0)],
        ),
    ),
    "read_alignment": Code(
        picture=_alignment_picture,
    ),
}
