"""Second problems of chapter 01: other sights, windows and places, and new numbers."""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lesson_lib.checks.exercise import Case, Stage, Write
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.short import Number, fresh


def _whole(numbers: list[int]) -> Tensor:
    return torch.tensor(numbers, device="cpu")


def most_right_2(counts: Float[Tensor, "before words tags"]) -> Float[Tensor, ""]:
    by_word = counts.sum(0)  # (words, tags): the word before is no longer seen
    return by_word.amax(-1).sum() / counts.sum()


LESS_IN_SIGHT = Write(
    name="most_right_2",
    title="Close one eye",
    asked=(
        "counts are now (words before, words, tags); the share that is right at best for a tagger that sees"
        " the word, and NOT the word before it"
    ),
    stages=(
        Stage(
            "saw, behind the and behind I",
            lambda: [{"counts": table([[[4.0, 0.0]], [[1.0, 3.0]]])}],
            "Seen alone, saw is a noun 5 times and a past form 3 times: 5 of 8 can be right.",
        ),
        Stage(
            "two words before, three words",
            lambda: [{"counts": primes(2, 3, 2)}],
            "Which rows look alike, once the word before is hidden?",
        ),
        Stage(
            "seven words before, five words, three tags",
            lambda: [{"counts": drawn(1, 7, 5, 3).abs()}],
            "First add up what looks alike, then take the largest.",
        ),
    ),
    hints=(
        "Two rows differ in the word before alone. Can this tagger give them different tags?",
        "What happens to the counts of rows that look alike?",
        "Which of the three axes is not seen, and what does `.sum(0)` do to it?",
    ),
    solution=most_right_2,
    remember="to hide a part of the sight is to sum over its axis before the largest is taken; the limit never rises",
    slips={
        "that tagger still sees the word before: add up the rows that look alike first": (
            "by_word.amax",
            "counts.amax",
        ),
        "you hid the word itself; this tagger sees the word, and not the word before it": (
            "counts.sum(0)",
            "counts.sum(1)",
        ),
        "you take the largest over the words before; what looks alike is added up": (
            "counts.sum(0)",
            "counts.amax(0)",
        ),
        "that is one tag for all; each word may have a tag of its own": (
            "by_word.amax(-1).sum()",
            "by_word.sum(0).amax()",
        ),
        "that is the number of right ones; divide by the number of all": (" / counts.sum()", ""),
    },
)


def window_mask_2(n: int, size: int) -> Bool[Tensor, "n n"]:
    i = torch.arange(n)
    back = i[:, None] - i[None, :]  # how far word j lies before word i
    return (back >= 0) & (back < size)


BACKWARDS = Write(
    name="window_mask_2",
    title="The window of a model that writes",
    asked=(
        "a table (n, n) for a model that writes: word i may look at `size` words, itself and those right before it,"
        " and at no later word"
    ),
    stages=(
        Stage("size 1: itself", lambda: [{"n": 3, "size": 1}], "Only the diagonal is True."),
        Stage(
            "size 2: itself and the word before",
            lambda: [{"n": 5, "size": 2}],
            "Two in each row but the first; nothing above the diagonal.",
        ),
        Stage(
            "size 3, and more than there are words",
            lambda: [{"n": 7, "size": 3}, {"n": 2, "size": 5}],
            "Row 6 may look at the words 4, 5 and 6.",
        ),
    ),
    hints=(
        "What is i - j for a word that has not been written yet?",
        "With size 2, which values of i - j are open?",
        "Two conditions must hold at once. Which sign joins two tables of True and False?",
    ),
    solution=window_mask_2,
    remember="0 <= i - j < size: models that write count their window this way, with the word itself",
    slips={
        "your window looks to both sides; later words are not written yet": (
            "(back >= 0) & (back < size)",
            "back.abs() < size",
        ),
        "your window holds one word too many: the word itself is one of the `size`": (
            "back < size",
            "back <= size",
        ),
        "your window looks forward: row i is the word that looks": (
            "i[:, None] - i[None, :]",
            "i[None, :] - i[:, None]",
        ),
        "later words are closed, and earlier ones are all open, however far": (" & (back < size)", ""),
        "near enough, but later words are open too: take both conditions": ("(back >= 0) & ", ""),
        "those are blocks; each word has a window of its own, which ends with it": (
            "(back < size)",
            "(i[:, None] // size == i[None, :] // size)",
        ),
        "your table says who may NOT look": ("(back >= 0) & (back < size)", "(back < 0) | (back >= size)"),
    },
)


def one_place_2(n: int, m: int, lengths: Int[Tensor, " b"]) -> Bool[Tensor, "b n m"]:
    last = torch.arange(m) == lengths[:, None] - 1  # (b, m)
    return last[:, None, :].expand(-1, n, -1)


LAST_REAL_PLACE = Write(
    name="one_place_2",
    title="One vector, in a padded batch",
    asked=(
        "a batch of b texts, padded at the end to m places; text t has `lengths[t]` real ones. A table (b, n, m):"
        " each of n queries may look at the last REAL place of its text, and at no other"
    ),
    stages=(
        Stage(
            "one text of two places, padded to three",
            lambda: [{"n": 1, "m": 3, "lengths": _whole([2])}],
            "False, True, False: the third place is padding.",
        ),
        Stage(
            "three texts, two queries",
            lambda: [{"n": 2, "m": 5, "lengths": _whole([4, 1, 3])}],
            "Each text has a column of its own; both of its queries see the same.",
        ),
        Stage(
            "one of them fills all places",
            lambda: [{"n": 3, "m": 7, "lengths": _whole([7, 2])}],
            "The last of seven places has the number 6.",
        ),
    ),
    hints=(
        "Places count from 0. Which number has the last real place of a text of length 3?",
        "`torch.arange(m)` is (m,), `lengths[:, None]` is (b, 1). Which shape has their comparison?",
        "Where does the axis of the queries go, and how often is the row repeated along it?",
    ),
    solution=one_place_2,
    remember="in a padded batch the last place is padding for most texts: -1 is not where a text ends",
    slips={
        "you open the last of the m places, which is padding in a shorter text": (
            "lengths[:, None] - 1",
            "m - 1 + 0 * lengths[:, None]",
        ),
        "off by one: places count from 0, so this is the first padded place": (" - 1", ""),
        "you open every real place: that is attention with a padding mask": ("== lengths", "<= lengths"),
        "your open place is the first; a reader from left to right has the whole text behind the last": (
            "lengths[:, None] - 1",
            "0 * lengths[:, None]",
        ),
        "your table says who may NOT look": ("==", "!="),
        "the axis of the queries is missing: (b, n, m)": (
            "last[:, None, :].expand(-1, n, -1)",
            "last",
        ),
    },
)


def additive_step_2(
    states: Float[Tensor, "n d_state"],
    keys: Float[Tensor, "m d_hidden"],
    read: Float[Tensor, "m d_read"],
    w_query: Float[Tensor, "d_state d_hidden"],
    v: Float[Tensor, " d_hidden"],
) -> Float[Tensor, "n d_read"]:
    hidden = torch.tanh((states @ w_query)[:, None] + keys)  # (n, m, d_hidden)
    weights = torch.softmax(hidden @ v, dim=-1)
    return weights @ read


def _translating(seed: int, n: int, m: int, d_state: int, d_read: int, d_hidden: int) -> Case:
    return {
        "states": drawn(seed, n, d_state),
        "keys": drawn(seed + 1, m, d_hidden),
        "read": drawn(seed + 2, m, d_read, spread=3.0),
        "w_query": drawn(seed + 3, d_state, d_hidden),
        "v": drawn(seed + 4, d_hidden, spread=2.0),
    }


def _one_state_at_a_time(states: Tensor, keys: Tensor, read: Tensor, w_query: Tensor, v: Tensor) -> Tensor:
    contexts = []
    for state in states:
        weights = torch.softmax(torch.tanh(state @ w_query + keys) @ v, dim=-1)
        contexts.append((weights[:, None] * read).sum(0))
    return torch.stack(contexts)


ALL_STATES = Write(
    name="additive_step_2",
    title="Keys first, then all states at once",
    asked=(
        "while a text is translated, its keys stay: `keys` = read @ w_key is computed once and given to you. For n"
        " states at once: score_ij = v . tanh(states_i W_query + keys_j), the contexts (n, d_read)"
    ),
    stages=(
        Stage(
            "one state, three places",
            lambda: [_translating(1, 1, 3, 2, 2, 3)],
            "It is your first function, with the keys already projected.",
        ),
        Stage(
            "two states, three places, one hidden unit",
            lambda: [_translating(11, 2, 3, 2, 2, 1)],
            "Every state meets every key: the hidden layer has three axes, (n, m, d_hidden).",
        ),
        Stage(
            "five states, seven places, another width everywhere",
            lambda: [_translating(21, 5, 7, 2, 11, 3)],
            "Each state has weights of its own over the seven places.",
        ),
    ),
    reference=_one_state_at_a_time,
    hints=(
        "`states @ w_query` is (n, d_hidden), `keys` is (m, d_hidden). Which shape has a vector for each pair?",
        "Where does a None belong, so that a plain + makes (n, m, d_hidden)?",
        "The scores are (n, m). Along which axis do the weights of one state sum to 1?",
    ),
    solution=additive_step_2,
    remember="what is read is projected once; any number of queries is then scored against the same keys",
    slips={
        "states and keys are added row by row; every state must meet every key: [:, None]": (
            "(states @ w_query)[:, None]",
            "(states @ w_query)",
        ),
        "your softmax runs over the states; the weights of ONE state sum to 1 over the places": (
            "dim=-1",
            "dim=0",
        ),
        "one softmax over the whole table: each state needs its own": (
            "torch.softmax(hidden @ v, dim=-1)",
            "torch.softmax((hidden @ v).flatten(), dim=-1).view(len(states), -1)",
        ),
        "tanh is missing: a state then shifts all its scores alike, and softmax does not see it": (
            "torch.tanh",
            "",
        ),
        "you take tanh of each side before adding; add first": (
            "torch.tanh((states @ w_query)[:, None] + keys)",
            "torch.tanh(states @ w_query)[:, None] + torch.tanh(keys)",
        ),
        "you mix the keys; mix what was read": ("weights @ read", "weights @ keys"),
        "you give back the weights; mix what was read with them": ("weights @ read", "weights"),
        "softmax is missing: you mix with the raw scores": (
            "torch.softmax(hidden @ v, dim=-1)",
            "hidden @ v",
        ),
    },
)


def nudge_2(
    scores: Float[Tensor, "b k"],
    choice: Int[Tensor, " b"],
    reward: Float[Tensor, " b"],
    baseline: Float[Tensor, " b"],
) -> Float[Tensor, "b k"]:
    chosen = torch.nn.functional.one_hot(choice, scores.shape[-1])
    advantage = reward - baseline
    return advantage[:, None] * (chosen - torch.softmax(scores, dim=-1))


def _chosen(scores: Tensor, choice: list[int], reward: Tensor, baseline: Tensor) -> Case:
    return {"scores": scores, "choice": _whole(choice), "reward": reward, "baseline": baseline}


def _by_autograd(scores: Tensor, choice: Tensor, reward: Tensor, baseline: Tensor) -> Tensor:
    about = scores.clone().requires_grad_()
    log_p = torch.log_softmax(about, dim=-1).gather(1, choice[:, None])[:, 0]
    (gradient,) = torch.autograd.grad(((reward - baseline) * log_p).sum(), about)
    return gradient


PLACES_ON_A_LIST = Write(
    name="nudge_2",
    title="Places on a list",
    asked=(
        "the eye now chooses among k places: p = softmax(scores), and `choice` is the place drawn. (b, k):"
        " (reward - baseline) · d log p(choice) / d scores"
    ),
    stages=(
        Stage(
            "two places, equal scores, the first was rewarded",
            lambda: [_chosen(table([[0.0, 0.0]]), [0], table([1.0]), table([0.0]))],
            "log p(0) = s0 - log(exp s0 + exp s1); its slopes are 1 - 0.5 and -0.5.",
        ),
        Stage(
            "three places, less than expected",
            lambda: [_chosen(table([[1.0, 0.0, -1.0]]), [2], table([0.0]), table([0.5]))],
            "The score of the drawn place falls, and those of the others rise.",
        ),
        Stage(
            "five draws among three places",
            lambda: [_chosen(drawn(1, 5, 3), [2, 0, 1, 1, 2], drawn(2, 5), drawn(3, 5))],
            "Each row sums to 0: what one score wins, the others lose.",
        ),
    ),
    reference=_by_autograd,
    hints=(
        "log p(c) = s_c - log of the sum of all exp(s). What is the slope of the first term in each score?",
        "The slope of log sum exp(s) in score j is a number that you know. Which?",
        "`torch.nn.functional.one_hot(choice, k)` is (b, k). What is to be subtracted from it?",
    ),
    solution=nudge_2,
    remember="(reward - baseline) · (one-hot - p): the same step trains a chat model, which chooses among words",
    slips={
        "you move the score of the drawn place alone; the others lose what it wins: subtract p": (
            "(chosen - torch.softmax(scores, dim=-1))",
            "chosen",
        ),
        "that is the slope in the probability p; asked is the slope in the scores": (
            "(chosen - torch.softmax(scores, dim=-1))",
            "chosen / torch.softmax(scores, dim=-1)",
        ),
        "the sign is turned round: a rewarded draw should become likelier": (
            "chosen - torch.softmax(scores, dim=-1)",
            "torch.softmax(scores, dim=-1) - chosen",
        ),
        "that is the slope of p; the slope of log p is that divided by p(choice)": (
            "(chosen - torch.softmax(scores, dim=-1))",
            "(chosen - (p := torch.softmax(scores, dim=-1))) * (p * chosen).sum(-1, keepdim=True)",
        ),
        "you subtract the scores; subtract the probabilities": (
            "torch.softmax(scores, dim=-1)",
            "scores",
        ),
        "the baseline is missing": ("reward - baseline", "reward"),
        "the reward is missing: every draw pulls alike": ("advantage[:, None] * (", "("),
        "your softmax runs over the draws; the k places of one draw share its probability": (
            "dim=-1",
            "dim=0",
        ),
    },
)


def crop_2(
    canvas: Float[Tensor, "height width"], row: int, column: int, size: int
) -> Float[Tensor, "size size"]:
    rows = (row + torch.arange(size)) % canvas.shape[0]
    columns = (column + torch.arange(size)) % canvas.shape[1]
    return canvas[rows[:, None], columns]


def _patch(height: int, width: int, row: int, column: int, size: int) -> Case:
    return {"canvas": primes(height, width), "row": row, "column": column, "size": size}


def _walking(canvas: Tensor, row: int, column: int, size: int) -> Tensor:
    height, width = canvas.shape
    patch = canvas.new_zeros(size, size)
    for i in range(size):
        for j in range(size):
            patch[i, j] = canvas[(row + i) % height, (column + j) % width]
    return patch


WITHOUT_EDGES = Write(
    name="crop_2",
    title="A world without edges",
    asked=(
        "the size x size patch whose upper left CORNER is (row, column), on a canvas that closes: behind the last"
        " row comes the first, behind the last column the first"
    ),
    stages=(
        Stage(
            "size 2, inside",
            lambda: [_patch(3, 5, 0, 1, 2)],
            "The upper left number of the patch is canvas[row, column]; size may be even.",
        ),
        Stage(
            "beyond the last row, and beyond the last column",
            lambda: [_patch(3, 5, 2, 1, 2), _patch(3, 5, 0, 4, 2)],
            "Row 3 of three rows is row 0 again.",
        ),
        Stage(
            "a corner outside the canvas",
            lambda: [_patch(5, 3, -1, 7, 3), _patch(3, 7, 8, -2, 3)],
            "Row -1 is the last row, and column 7 of three is column 1.",
        ),
        Stage(
            "a patch larger than the canvas",
            lambda: [_patch(2, 3, 1, 1, 5)],
            "Whoever walks on meets the same numbers again.",
        ),
    ),
    reference=_walking,
    hints=(
        "Which rows does a patch of size 3 hold that begins at row 4? And which are they, if there are five?",
        "What does `%` make of -1, and of the number of rows?",
        "`canvas[rows, columns]` pairs them one by one. What makes every row meet every column?",
    ),
    solution=crop_2,
    remember="what lies beyond the edge is a decision: zeros, the nearest pixel, or the other side, by `%`",
    slips={
        "(row, column) is the centre of your patch; here it is the upper left corner": (
            "(row + torch.arange(size))",
            "(row - size // 2 + torch.arange(size))",
            "(column + torch.arange(size))",
            "(column - size // 2 + torch.arange(size))",
        ),
        "you repeat the pixels of the edge; here the other side follows": (
            "(row + torch.arange(size)) % canvas.shape[0]",
            "(row + torch.arange(size)).clamp(0, canvas.shape[0] - 1)",
            "(column + torch.arange(size)) % canvas.shape[1]",
            "(column + torch.arange(size)).clamp(0, canvas.shape[1] - 1)",
        ),
        "a slice ends at the edge, and comes back too small": (
            "rows = (row + torch.arange(size)) % canvas.shape[0]\n",
            "",
            "    columns = (column + torch.arange(size)) % canvas.shape[1]\n",
            "",
            "canvas[rows[:, None], columns]",
            "canvas[row : row + size, column : column + size]",
        ),
        "rows and columns are paired one by one: that is the diagonal of the patch": ("[:, None]", ""),
        "row and column are exchanged: the first axis of the canvas counts rows": (
            "(row + torch",
            "(column + torch",
            "columns = (column +",
            "columns = (row +",
        ),
        "height and width are exchanged: rows come again after shape[0]": (
            "canvas.shape[0]",
            "canvas.shape[-1]",
            "canvas.shape[1]",
            "canvas.shape[0]",
        ),
        "the patch is transposed: its rows are the canvas's columns": ("columns]", "columns].mT"),
    },
)


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
    return dict(zip(names, map(_whole, (seen, tags, new_seen, new_tags)), strict=True))


NEW_TEXT = Write(
    name="best_share_2",
    title="The same tagger, a new text",
    asked=(
        "a tagger gives each sight the tag that was most frequent for it in the text (seen, tags), and a sight that"
        " never occurred there the most frequent tag of that text. Its share of right tags in a NEW text; a tensor"
    ),
    stages=(
        Stage(
            "one sight",
            lambda: [_texts([0, 0, 0], [1, 1, 2], [0, 0, 0, 0], [2, 1, 2, 1])],
            "It learned tag 1, which is right for two of the four new tokens.",
        ),
        Stage(
            "two sights",
            lambda: [_texts([5, 5, 5, 3, 3], [0, 0, 1, 2, 2], [3, 5, 5, 3, 5, 5, 5], [2, 1, 1, 1, 0, 1, 2])],
            "The tags are learned in the first text, and counted in the second.",
        ),
        Stage(
            "a sight that is new",
            lambda: [_texts([5, 5, 3, 3, 3], [0, 0, 2, 2, 2], [7, 5, 7, 3, 7, 5, 3], [2, 0, 2, 0, 0, 0, 2])],
            "For a sight that never occurred, all tags of the first text are counted.",
        ),
    ),
    hints=(
        "Which of the two texts may the tagger have seen when it chooses its tags?",
        "`bincount()` counts each tag. Which tag has the largest count?",
        "What is `tags[seen == sight]` for a sight that never occurred, and what do you count instead?",
    ),
    solution=best_share_2,
    remember="a share counted on the text that was learned is a limit; what a tagger can do shows on a new text",
    slips={
        "you choose the tags with the new text: that is its limit, and no tagger knows it before": (
            "known = tags[seen == sight]",
            "known = new_tags[new_seen == sight]",
        ),
        "that is the limit of the first text; asked is the share in the new one": (
            "right += (new_tags[new_seen == sight] == guess).sum()",
            "right += known.bincount(minlength=1).max()",
            "len(new_tags)",
            "len(tags)",
        ),
        "a new sight gets tag 0; it gets the most frequent tag of the first text": (
            "(known if len(known) else tags).bincount()",
            "known.bincount(minlength=1)",
        ),
        "that is one tag for everything; a sight that is known has its own": (
            "(known if len(known) else tags)",
            "tags",
        ),
        "new sights are left out of your share; every token of the new text counts": (
            "len(new_tags)",
            "torch.isin(new_seen, seen).sum()",
            "(new_tags[new_seen == sight] == guess).sum()",
            "(new_tags[new_seen == sight] == guess).sum() * (len(known) > 0)",
        ),
        "you count a new sight as wrong; it gets the most frequent tag of the first text": (
            "(new_tags[new_seen == sight] == guess).sum()",
            "(new_tags[new_seen == sight] == guess).sum() * (len(known) > 0)",
        ),
        "that is the number of right answers; divide it by the number of new tokens": (
            " / len(new_tags)",
            "",
        ),
    },
)


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


LEAVE_ONE_OUT = Write(
    name="kernel_regression_2",
    title="Guess each point from the others",
    asked=(
        "which sigma is good? Guess each y_i from all OTHER measured points, with the same kernel: (m,), the weights"
        " of each guess sum to 1"
    ),
    stages=(
        Stage(
            "two points: each gets the other's y",
            lambda: [_points([0.0, 1.0], [2.0, 30.0], 1.0)],
            "With one other point its weight is 1.",
        ),
        Stage(
            "three points, sigma = 1",
            lambda: [_points([-1.0, 0.5, 2.0], [2.0, 30.0, 500.0], 1.0)],
            "The weight of the point itself is 0, and the two others share 1.",
        ),
        Stage(
            "five points, sigma = 0.5",
            lambda: [_points([-1.0, 0.5, 2.0, 0.1, -0.6], [2.0, 30.0, 500.0, 7.0, 11.0], 0.5)],
            "As in the first problem: / (2 sigma^2).",
        ),
    ),
    reference=_one_left_out,
    hints=(
        "Queries and keys are the same points now. Where in the (m, m) table does a point meet itself?",
        "Which score has exp(score) = 0? Is 0 such a score?",
        "In which order: first close the diagonal, or first divide by the sum?",
    ),
    solution=kernel_regression_2,
    remember=(
        "a closed diagonal is a mask: with it a small sigma no longer looks perfect, and the error of the guesses can"
        " choose sigma"
    ),
    slips={
        "each point sees itself, and a score of 0 does not hide it: exp(0) = 1 is the largest; make the weight 0": (
            "kernel = kernel.fill_diagonal_(0)  # a point does not see itself\n    ",
            "",
        ),
        "you close the diagonal after the division: the weights no longer sum to 1": (
            "kernel = kernel.fill_diagonal_(0)  # a point does not see itself\n    ",
            "",
            "keepdim=True)",
            "keepdim=True) * (1 - torch.eye(len(xs)))",
        ),
        "you divide by the sums of the columns; each guess needs the sum of its own row": (
            "sum(-1",
            "sum(0",
        ),
        "the weights are not divided by their sum": (" / kernel.sum(-1, keepdim=True)", ""),
        "that is the plain mean of the others: how near they are does not count": (
            "    kernel = kernel.fill",
            "    kernel = torch.ones_like(kernel)\n    kernel = kernel.fill",
        ),
        "you take the nearest other point (argmax); all of them count": (
            "weights @ ys",
            "ys[weights.argmax(-1)]",
        ),
        "you mix the places xs; the values are ys": ("@ ys", "@ xs"),
    },
)


def reinforce_2(p: float, reward_left: float, reward_right: float) -> Float[Tensor, ""]:
    return torch.tensor((1 - p) * reward_left + p * reward_right)


def _rewards(p: float, reward_left: float, reward_right: float) -> Case:
    return {"p": p, "reward_left": reward_left, "reward_right": reward_right}


WITHOUT_NOISE = Write(
    name="reinforce_2",
    title="A baseline without noise",
    asked=(
        "with one baseline both draws give the SAME estimate, and its variance is 0: which baseline is it, for given"
        " p and rewards? A tensor with one number"
    ),
    stages=(
        Stage(
            "p = 0.5: half way between the rewards",
            lambda: [_rewards(0.5, 1.0, 0.0)],
            "With 0.5 left gives 0.5 / 0.5 = 1, and right gives 0.5 / 0.5 = 1.",
        ),
        Stage(
            "p = 0.2, only left is rewarded",
            lambda: [_rewards(0.2, 1.0, 0.0)],
            "Both estimates must be the true derivative: (1 - b) / 0.2 = 1.",
        ),
        Stage(
            "both are rewarded",
            lambda: [_rewards(0.2, 1.0, 3.0), _rewards(0.7, 5.0, 2.0)],
            "(reward_left - b) / p = -(reward_right - b) / (1 - p): what is b?",
        ),
    ),
    hints=(
        "The mean of the two estimates is reward_left - reward_right. If both are the same, how large is each?",
        "The estimate on the left is (reward_left - b) / p. Which b makes it reward_left - reward_right?",
        "Try p = 0.2 with the rewards 1 and 0: is b nearer to the likely reward, or to the rare one?",
    ),
    solution=reinforce_2,
    remember=(
        "b = (1 - p) · left + p · right: each reward counts with the OTHER one's probability; the mean reward, the"
        " usual baseline, is the same only at p = 1/2"
    ),
    slips={
        "that is the mean reward, the usual baseline; try it at p = 0.2: the two estimates still differ": (
            "(1 - p) * reward_left + p * reward_right",
            "p * reward_left + (1 - p) * reward_right",
        ),
        "that is half way between the rewards, which is right at p = 0.5 alone": (
            "(1 - p) * reward_left + p * reward_right",
            "(reward_left + reward_right) / 2",
        ),
        "that is the true derivative, which both estimates become; asked is the baseline": (
            "(1 - p) * reward_left + p * reward_right",
            "reward_left - reward_right",
        ),
        "the sign of right: its estimate is -(reward_right - b) / (1 - p)": (
            "(1 - p) * reward_left + p * reward_right",
            "((1 - p) * reward_left - p * reward_right) / (1 - 2 * p)",
        ),
    },
)


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


def word_before(first: Number, n: int) -> Number:
    """The limit of a tagger, for other counts and another sight."""

    def make(draw: random.Random) -> Number:
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
        return replace(
            first,
            asked=(
                f"{total} words, counted as (noun, past form, base form): {told}. What is the best share of right"
                f" tags for a tagger that sees {sight}?"
            ),
            answer=f"({largest}) / {total}",
            value=best[sight] / total,
            hints=(
                "Which of the six rows look alike to this tagger?",
                "Add up the counts of rows that look alike. Which tag is best in each sum?",
                "How many words are right in all, and by what do you divide them?",
            ),
            solution=(
                f"rows that look alike are added up; the largest counts of what it can tell apart: {largest} ="
                f" {best[sight]} of {total}"
            ),
            slips={
                **{
                    f"that is the limit for {other}": f"{right} / {total}"
                    for other, right in best.items()
                    if other != sight
                },
                f"that is one tag for all {total} words; each sight may have a tag of its own": f"{one} / {total}",
                "you took the mean of the shares; a frequent sight counts more than a rare one": (
                    sum(max(counts) / sum(counts) for counts in seen) / len(seen)
                ),
                "only what has a single tag counts here; elsewhere the most frequent tag is right now and then, too": (
                    f"{alone} / {total}"
                ),
                f"that is the number of right answers; divide it by {total}": best[sight],
                "that is the share of wrong answers": f"{total - best[sight]} / {total}",
            },
        )

    return fresh(n, make)


def padding_counts(first: Number, n: int) -> Number:
    """The share over all cells where the padding is right and some words are not."""

    def make(draw: random.Random) -> Number:
        longest = draw.randint(8, 20)
        lengths = [longest, draw.randint(2, longest - 2), draw.randint(2, longest - 2)]
        words, cells = sum(lengths), 3 * longest
        right, padding = draw.randint(words // 3, words - 3), cells - words
        return replace(
            first,
            asked=(
                f"Three sentences of {lengths[0]}, {lengths[1]} and {lengths[2]} words, padded to {longest}. {right}"
                f" words are tagged rightly, and so is every padding. Over all {cells} cells, which share is right?"
            ),
            answer=f"({right} + {padding}) / {cells}",
            value=(right + padding) / cells,
            remember=(
                f"{right + padding} of {cells} cells, but {right} of {words} words: padding that is easy to tag"
                " makes a tagger look better"
            ),
            slips={
                f"that is the share of the words, {right} of {words}; the padded cells are counted, too": (
                    right / words
                ),
                "you counted the padding as wrong; here it is tagged rightly": right / cells,
                "that is the share of the padding": padding / cells,
                f"that is padding against words; count right cells over all {cells}": padding / words,
                f"you counted every word as right; {right} of {words} are": 1,
            },
        )

    return fresh(n, make)


def estimate_left(first: Number, n: int) -> Number:
    """One draw's estimate, for another p, another reward, and the other side."""

    def make(draw: random.Random) -> Number:
        p, reward = draw.choice([1, 2, 3, 4, 6, 7, 8, 9]) / 10, draw.randint(2, 7)
        side, chance, sign = draw.choice([("left", p, 1), ("right", round(1 - p, 1), -1)])
        log = "log p" if side == "left" else "log (1 - p)"
        minus = "-" if sign < 0 else ""
        return replace(
            first,
            asked=(
                f"Left has the probability p = {p}. The draw was {side}, with the reward {reward}; the other side has"
                f" none. What is reward · d {log} / dp?"
            ),
            answer=f"{minus}{reward} / {chance}",
            value=sign * reward / chance,
            remember=(
                f"{minus}{reward} / {chance} with the probability {chance}, else 0: the mean is {minus}{reward},"
                " which is true"
            ),
            slips={
                "that is the true derivative, the mean of the estimates; one draw gives more, or nothing": (
                    sign * reward
                ),
                f"your sign is turned round: a larger p makes {side} {'likelier' if side == 'left' else 'rarer'}": (
                    -sign * reward / chance
                ),
                f"that divides by the other side's probability; {side} has {chance}": (
                    sign * reward / (1 - chance)
                ),
                f"you multiplied by {chance}; the derivative of a logarithm divides": sign * reward * chance,
                f"that is reward · {log}; the derivative of {log} is asked for": reward * math.log(chance),
            },
        )

    return fresh(n, make)
