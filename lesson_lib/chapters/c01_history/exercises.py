"""Exercises of lesson 01, history: where did attention come from?

In the learner's order. A slip is a sentence and the wrong answer that it is told to: a number, a letter, or an edit of
the solution's text (old, new).
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.chapters.c01_history import looking_back, seconds, two_saws, where_to_look
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import table
from lesson_lib.checks.short import Choice, Number, Open

counted = Number(
    name="word_before",
    second=lambda n: seconds.word_before(counted, n),
    title="How good can it get?",
    stars=1,
    minutes=4,
    why="whoever knows the limit of what a model sees does not train in vain",
    asked=(
        "the table counts 25 words: the best share of right tags for a tagger that sees a word and the word"
        " before it?"
    ),
    value=21 / 25,
    hints=(
        (
            "First a tagger that sees the word alone: which tag does it give to each `saw`, and which to each"
            " `cut`?"
        ),
        (
            "Now it sees two words. Which rows of the table can it tell apart, and which tag is best in each"
            " of them?"
        ),
        "In `man saw` 4 of 6 are right. Add up what is right in all six rows: what do you divide it by?",
    ),
    solution=(
        "the largest count of each row: 2 + 6 + 4 + 2 + 3 + 4 = 21 of 25, 0.84. With the word alone `saw` is"
        " a past form 10 times of 14 and `cut` a base form 7 times of 11: 17 of 25, 0.68."
    ),
    remember=(
        "the limit belongs to what is seen, not to the network; who sees more can be better, and never has a"
        " lower limit"
    ),
    slips={
        "that is the limit of the word alone, a good first step; now each row of the table may have a tag of its own": (
            "17 / 25"
        ),
        "that is one tag for all 25 words; each row may have a tag of its own": "12 / 25",
        "that sees the word before, and not the word itself": "19 / 25",
        "you took the mean of the six rows' shares; a row with 6 words counts more than one with 2": (
            "(1 + 1 + 4/6 + 1 + 3/4 + 4/5) / 6"
        ),
        "only the rows with a single tag count here; in the others the most frequent tag is right now and then, too": (
            "10 / 25"
        ),
        "that is the number of right answers; divide it by 25": 21,
        "that is the share of wrong answers": "4 / 25",
        "you counted rows; count the words in them": "3 / 6",
    },
    answer="(2 + 6 + 4 + 2 + 3 + 4) / 25",
)


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


shares = Write(
    name="best_share",
    second=lambda n: seconds.NEW_TEXT,
    title="The limit, by counting",
    stars=2,
    minutes=7,
    why="with a limit beside it, a tagger's score tells whether it learned badly or saw too little",
    asked=(
        "token i looks like seen[i] and has the tag tags[i]: the best share of right tags for a tagger that"
        " sees only seen[i]; a tensor with one number, as torch.tensor(0.75)"
    ),
    stages=(
        Stage(
            "one sight",
            lambda: [_tokens([0, 0, 0], [2, 1, 1])],
            "All three tokens look alike, so they get one tag. Which is best, and how often is it right?",
        ),
        Stage(
            "two sights, three tokens each",
            lambda: [_tokens([0, 0, 0, 1, 1, 1], [2, 2, 0, 1, 0, 1])],
            "Each sight may have a tag of its own.",
        ),
        Stage(
            "a frequent sight and a rare one",
            lambda: [_tokens([0, 0, 0, 0, 0, 1], [0, 1, 2, 0, 1, 1])],
            "Every TOKEN counts once; a frequent sight counts more than a rare one.",
        ),
        Stage(
            "sights in any order, with any numbers",
            lambda: [
                _tokens([12, 7, 12, 7, 7, 90, 12, 7], [3, 1, 0, 1, 0, 2, 3, 3]),
                _tokens([5, 3, 5, 3, 5, 3, 41], [0, 1, 1, 0, 2, 1, 3]),
            ],
            "Numbers of sights only say which tokens look alike; they need not be 0, 1, 2.",
        ),
    ),
    hints=(
        (
            "Two tokens look the same. Can a tagger give them different tags? What is the best it can do for"
            " all tokens of one sight?"
        ),
        (
            "`tags[seen == 7]` holds the tags of all tokens that look like 7. How do you count which one is"
            " most frequent?"
        ),
        (
            "Add the largest count of every sight. By what do you divide: the number of sights, or the number"
            " of tokens?"
        ),
    ),
    solution=best_share,
    remember=(
        "per sight the largest count, all added up, over the number of tokens: no tagger with that sight does"
        " better"
    ),
    slips={
        "that is one tag for everything; a tagger may choose a tag for each sight": (
            "for sight in seen.unique():\n        right += tags[seen == sight]",
            "right = tags",
        ),
        "you take the mean of the sights' shares; a frequent sight counts more: add the counts, divide once at the end": (
            ".max()",
            ".max() / (seen == sight).sum()",
            "len(tags)",
            "len(seen.unique())",
        ),
        "you count different pairs of sight and tag, not how often each occurs": (
            "right = 0",
            "seen, tags = torch.stack([seen, tags]).unique(dim=1)\n    right = 0",
        ),
        "that is the number of right answers; divide it by the number of tokens": (" / len(tags)", ""),
        "only sights with a single tag count here; for the others the most frequent tag is right now and then, too": (
            ".max()",
            ".max() * (len(tags[seen == sight].unique()) == 1)",
        ),
        "that is the share of wrong answers": ("right / len", "1 - right / len"),
        "you group by tag and take its most frequent sight; the tagger is given the sight and looks for the tag": (
            "seen.unique()",
            "tags.unique()",
            "tags[seen == sight]",
            "seen[tags == sight]",
        ),
        "that tagger draws tags as often as they occur; always saying the most frequent one is right more often": (
            ".max()",
            ".square().sum() / (seen == sight).sum()",
        ),
        "each sight counts once (table[seen, tags] += 1 does that); count how often its top tag occurs": (
            "right = 0",
            "table = torch.zeros(int(seen.max()) + 1, int(tags.max()) + 1)\n    table[seen, tags] += 1\n    return table.amax(1).sum() / len(tags)\n    right = 0",
        ),
        "you keep the first tag of each sight; keep the most frequent one": (
            ".max()",
            "[tags[seen == sight][0]]",
        ),
        "you divide by the number of sights; divide by the number of tokens": (
            "len(tags)",
            "len(seen.unique())",
        ),
        "you take the RAREST tag of each sight; the most frequent one is right most often": (
            ".max()",
            ".min()",
        ),
    },
    hidden=_more_best_share,
)


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


regression = Write(
    name="kernel_regression",
    second=lambda n: seconds.LEAVE_ONE_OUT,
    title="Attention in 1964",
    stars=2,
    minutes=6,
    why="score, softmax, weighted mean: the three steps of this course, fifty years before the name",
    asked=(
        "for each x the weighted mean of ys, shape (n,); weights: softmax over the m keys xs of -(x - xs)^2 /"
        " (2 sigma^2)"
    ),
    stages=(
        Stage(
            "one measured point: everywhere its y",
            lambda: [_measured([2.0, -1.0], [1.0], [7.0], 1.0)],
            "With a single key its weight is 1, however far it is.",
        ),
        Stage(
            "one x, two measured points, sigma = 1",
            lambda: [_measured([0.0], [0.5, 2.0], [2.0, 30.0], 1.0)],
            "The nearer point counts for more; the weights sum to 1.",
        ),
        Stage(
            "two x, three measured points, sigma = 1",
            lambda: [_measured([0.0, 1.5], [-1.0, 0.5, 2.0], [2.0, 30.0, 500.0], 1.0)],
            "Each x is a query, with weights of its own over all three points.",
        ),
        Stage(
            "a wide kernel, sigma = 2, and a narrow one, sigma = 0.5",
            lambda: [
                _measured([0.0, 1.5], [-1.0, 0.5, 2.0], [2.0, 30.0, 500.0], 2.0),
                _measured([0.0, 1.5, -0.7], [-1.0, 0.5, 2.0, 0.1, -0.6], [2.0, 30.0, 500.0, 7.0, 11.0], 0.5),
            ],
            "With sigma = 1 it is right, otherwise not: where does sigma stand, and to which power?",
        ),
    ),
    reference=_attended,
    hints=(
        (
            "Every x meets every xs. Which shape has the table of differences, and what does `x[:, None] -"
            " xs` give?"
        ),
        (
            "One row of the table belongs to one x. Over which axis do its exponentials have to be divided by"
            " their sum?"
        ),
        (
            "weights is (n, m), ys is (m,). Which product gives one number for each x? And does Python read /"
            " 2 * s**2 as you do?"
        ),
    ),
    solution=kernel_regression,
    remember=(
        "query x, keys xs, values ys: a score of nearness, softmax over the keys, the weighted mean of the"
        " values"
    ),
    slips={
        "x and xs are subtracted place by place; every x must meet every xs: x[:, None] - xs": (
            "x[:, None]",
            "x",
            "weights @ ys",
            "(weights * ys).sum()",
        ),
        "the minus is missing: far points get the large weights": ("-((", "(("),
        "your softmax runs over the queries x (dim=0); the weights of ONE x must sum to 1 over the keys": (
            "sum(-1",
            "sum(0",
        ),
        "sigma is not squared": ("sigma**2", "sigma"),
        "the 2 of 2 sigma^2 is missing": ("(2 * sigma**2)", "sigma**2"),
        "/ 2 * sigma**2 divides by 2, then multiplies by sigma^2; write / (2 * sigma**2)": (
            "(2 * sigma**2)",
            "2 * sigma**2",
        ),
        "the exponentials are not divided by their sum: the weights do not sum to 1": (
            " / exponentials.sum(-1, keepdim=True)",
            "",
        ),
        "exp is missing: you divide the scores by their sum": (".exp()", ""),
        "the difference is not squared: this score is -|x - xs| / (2 sigma^2)": (
            "((x[:, None] - xs) ** 2)",
            "(x[:, None] - xs).abs()",
        ),
        "the difference keeps its sign: a point far on one side wins; square it": (" ** 2", ""),
        "you give back the weights; multiply them with ys": ("weights @ ys", "weights"),
        "you take the nearest point's y (argmax); all points count, the near ones for more": (
            "weights @ ys",
            "ys[scores.argmax(-1)]",
        ),
        "that is the plain mean of ys: x does not count": ("weights @ ys", "ys.mean().expand(len(x))"),
        "you mix the places xs; the values are ys": ("@ ys", "@ xs"),
        "you multiply by the sum of the exponentials; divide by it, so that the weights of an x sum to 1": (
            "exponentials / exponentials",
            "exponentials * exponentials",
        ),
        "xs and ys have changed places: x is compared with the places xs, and the values ys are mixed": (
            "scores = ",
            "xs, ys = ys, xs\n    scores = ",
        ),
        "one sum for the whole table; each x divides by a sum of its own": ("sum(-1, keepdim=True)", "sum()"),
        "x and xs have changed places: each x asks, so a row of weights belongs to an x": (
            "scores = ",
            "x, xs = xs, x\n    scores = ",
        ),
    },
    hidden=_more_kernel_regression,
)


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


policy = Write(
    name="reinforce",
    second=lambda n: seconds.WITHOUT_NOISE,
    title="A lucky glimpse",
    stars=3,
    minutes=8,
    why=(
        "looking at ONE place has no gradient; this estimate is how RAM learns all the same, and the price is"
        " noise"
    ),
    asked=(
        "[mean, variance] of the estimate (reward - baseline) * d log p(choice) / dp; left with probability"
        " p, right with 1 - p"
    ),
    stages=(
        Stage(
            "p = 0.5, only left is rewarded, no baseline",
            lambda: [_policy(0.5, 1.0, 0.0, 0.0)],
            "Left gives the estimate 1 / 0.5 = 2, right gives 0; each comes half of the time.",
        ),
        Stage(
            "p = 0.2, only left is rewarded, no baseline",
            lambda: [_policy(0.2, 1.0, 0.0, 0.0)],
            "Each estimate counts as often as it comes: p of the time, and 1 - p of the time.",
        ),
        Stage(
            "right is rewarded, too",
            lambda: [_policy(0.2, 1.0, 3.0, 0.0)],
            "The choice right has probability 1 - p. What is d log(1 - p) / dp?",
        ),
        Stage(
            "with a baseline",
            lambda: [_policy(0.2, 1.0, 0.0, 0.2), _policy(0.3, 2.0, 5.0, 4.0)],
            "The baseline is subtracted from EVERY reward before it is multiplied.",
        ),
    ),
    reference=_by_gradient,
    hints=(
        "There are two draws only, left and right. What is the estimate for each of them, as a number?",
        (
            "The mean is p times one plus 1 - p times the other. What remains of p * (1 / p), and where does"
            " the baseline go?"
        ),
        (
            "The variance is the mean of the squares minus the square of the mean. Have you both, and the"
            " minus of d log(1 - p) / dp?"
        ),
    ),
    solution=reinforce,
    remember=(
        "the mean is the true derivative, reward_left - reward_right, whatever the baseline; the baseline"
        " changes the noise alone"
    ),
    slips={
        "you take the plain mean of the two estimates; left comes with probability p, right with 1 - p": (
            "p * left + (1 - p) * right",
            "(left + right) / 2",
            "p * left**2 + (1 - p) * right**2",
            "(left**2 + right**2) / 2",
        ),
        "the sign of right: d log(1 - p) / dp is -1 / (1 - p)": ("-(reward_right", "(reward_right"),
        "right has probability 1 - p: its derivative is -1 / (1 - p), not -1 / p": (
            "baseline) / (1 - p)",
            "baseline) / p",
        ),
        "the square of the mean is not subtracted: the variance is the mean of the squares minus it": (
            " - mean**2",
            "",
        ),
        "that is the standard deviation; asked is the variance": (
            "[mean, variance]",
            "[mean, variance**0.5]",
        ),
        "the two are exchanged: first the mean, then the variance": ("[mean, variance]", "[variance, mean]"),
        "the baseline is not used": (
            "(reward_left - baseline)",
            "reward_left",
            "(reward_right - baseline)",
            "reward_right",
        ),
        "the baseline is subtracted from the reward on the left only": (
            "(reward_right - baseline)",
            "reward_right",
        ),
        "you add the baseline; subtract it": (
            "reward_left - baseline",
            "reward_left + baseline",
            "reward_right - baseline",
            "reward_right + baseline",
        ),
        "the log is missing: you multiply by dp / dp = 1 and d(1 - p) / dp = -1": (
            "baseline) / p",
            "baseline)",
            "baseline) / (1 - p)",
            "baseline)",
        ),
        "you multiply by log p itself; its derivative is asked for": (
            "baseline) / p",
            "baseline) * torch.tensor(p).log()",
            "-(reward_right - baseline) / (1 - p)",
            "(reward_right - baseline) * torch.tensor(1 - p).log()",
        ),
        "these are the moments of the reward; asked are those of the estimate of its derivative": (
            "baseline) / p",
            "baseline)",
            "-(reward_right - baseline) / (1 - p)",
            "reward_right - baseline",
        ),
    },
    hidden=_more_reinforce,
)


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
            " written character, and its weights sum to 1; a column shows who looked at a character that was read."
        ),
        rows=WRITTEN,
        columns=READ,
        row_axis="written",
        column_axis="read",
        limits=(0.0, 1.0),
    )


alignment = Choice(
    name="read_alignment",
    title="Who looked where? Read a table",
    stars=1,
    minutes=4,
    why="you will read many such tables; first find out which axis asks",
    asked=(
        "rows: written characters, columns: read ones. Which character is a mixture of two, and of which two?"
    ),
    options={
        "a": "the written 5: a mixture of the M and the y that were read",
        "b": "the M that was read: a mixture of the written 0 and 5",
        "c": "the written dash: a mixture of the space and the 7 that were read",
        "d": "the written 0: a mixture of the M and the a that were read",
        "e": "the written 7: a mixture of the 1 and the 7 that were read",
        "f": "none of them: softmax takes the largest score",
    },
    hints=(
        "The weights of one query sum to 1. Do the rows of this table sum to 1, or the columns?",
        (
            "Who asks: the characters that are written, or those that were read? So along which direction do"
            " you read a mixture?"
        ),
        "Which row has two large numbers that together are nearly all of it?",
    ),
    solution=(
        "a: the row of 5 sums to 1, and 0.46 + 0.46 = 0.92 of it lies on M and y. Two cells make a mixture"
        " only within a row; the column of M says that both 0 and 5 looked at it, and sums to 1.49."
    ),
    remember=(
        "rows ask, and sum to 1: read a mixture along a row; down a column you find all who looked at one"
        " place"
    ),
    slips={
        "b reads down a column: it says that 0 and 5 both looked at M; a mixture is made along a row, which sums to 1": (
            "b"
        ),
        "c leaves out too much: space and 7 have 0.40 together; this row is spread over all six": "c",
        "d gives a small weight too much: M alone has 0.86 of that row, a has 0.05": "d",
        "e gives a small weight too much: the 7 that was read has 0.93 of that row, the 1 has 0.04": "e",
        "f is argmax; softmax mixes all, and in one row two have 0.46 each": "f",
    },
    answer="a",
    picture=_alignment_picture,
)


why = Open(
    name="what_they_miss",
    title="What neither can see, in your own words",
    stars=2,
    minutes=5,
    why="three architectures, told apart by one question: which words may this output depend on?",
    asked=(
        "in two or three sentences: what does a window not see of `cut`, what has an RNN not read at `saw`,"
        " and what of attention?"
    ),
    hints=(
        (
            "Which word makes `cut` a base form, and how many words before it does it stand? How far does the"
            " window reach?"
        ),
        (
            "An RNN stands at `saw` in `the garden saw`. Which word tells a noun from a past form, and has it"
            " been read?"
        ),
        (
            "Attention scores a word against which words, and how many steps lie between a word and the"
            " farthest of them?"
        ),
    ),
    solution=(
        "The auxiliary `did` makes `cut` a base form; it stands ten words before it, and the window of two"
        " words does not reach so far. An RNN can carry `did` along in its state, but at `saw` it has not"
        " read the next word, and only that word tells a noun from a past form (a second RNN, from right to"
        " left, would have read it). Attention scores every word against all words of the sentence, before"
        " and after, in one step; it must be told their positions."
    ),
    remember=(
        "a window misses what is far, an RNN from left to right what is still to come; attention sees all,"
        " and must be told the order"
    ),
    slips={
        "an RNN is no window: its state can carry a word over any distance; what it cannot know is what comes later": (
            r"(rnn|recurrent)[^,]{0,30}\b(is|as|like)\b (just |only |simply |merely )?an? (\w+ )?window|"
            r"(rnn|recurrent)[^,]{0,25}\b(only|just)\b[^,]{0,20}(neighbou?rs?|nearby|near|last"
            r" (few|two|three))"
        ),
        "no training helps: what is not in sight cannot be learned, it can only be guessed": (
            r"(more|longer|better|enough) training|train\w* (longer|more)|more (data|examples|parameters)"
        ),
        "that is about time; asked is what each can know": r"\bslow|\bfast|parallel|\bspeed",
        "that is about how hard it is to learn; asked is what it cannot know at all": r"gradient",
        "attention mixes all words; it takes no single one": (
            r"(picks|chooses|selects|takes|looks at) (only |just )?(one|a single|the best|the most)( \w+)?"
            r" (words?|tokens?)"
        ),
        "attention by itself sees a bag of words; positions must be added before it knows the order": (
            r"^\s*(self-)?attention (knows|keeps|reads|understands|learns) (about )?(the )?(word"
            r" )?order(?!.*\bposition)"
        ),
    },
    points=(
        "which word decides on `cut`, and why does the window not hold it?",
        "what has an RNN not read when it stands at `saw`?",
        "which words may attention look at?",
    ),
)


EXERCISES = (
    *two_saws.ASKED,
    *looking_back.ASKED,
    *where_to_look.ASKED,
    counted,
    shares,
    regression,
    policy,
    alignment,
    why,
)
