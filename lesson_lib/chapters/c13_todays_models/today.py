"""What part 13a asks: five predictions, and three functions that the learner writes."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.chapters.c13_todays_models import seconds
from lesson_lib.checks.exchanged import exchanged
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Choice, Number

TODAY = "13a_today"

window_counts = Choice(
    name="window_of_128",
    notebook=TODAY,
    title="Count the window",
    asked="gpt-oss's file says sliding_window: 128. How many tokens BEFORE itself does a token look at?",
    options={"a": "128", "b": "127", "c": "129"},
    answer="b",
    remember="128 keys are looked at, and the token's own is one of them",
    slips={
        "a token looks at itself, too: is its own key one of the 128?": "a",
        "128 keys in all: the own one and how many others?": "c",
    },
)


cache_of_gpt_oss = Number(
    name="cache_with_windows",
    notebook=TODAY,
    title="What a text costs",
    asked=(
        "After 131,072 tokens 12 layers keep 128 of them, 12 keep all; each is 1,024 numbers of 2 bytes."
        " How many GiB (2^30 bytes) are kept?"
    ),
    answer="12 * (131072 + 128) * 1024 * 2 / 2^30",
    value=12 * (131072 + 128) * 1024 * 2 / 2**30,
    tolerance=2e-3,
    remember="half of the layers cost next to nothing",
    slips={
        "either all 24 layers keep all here, or all is doubled: the 1,024 numbers are keys and values": (
            "24 * 131072 * 1024 * 2 / 2^30"
        ),
        "each number has 2 bytes": "12 * (131072 + 128) * 1024 / 2^30",
        "that is one layer of each kind; there are 12": "(131072 + 128) * 1024 * 2 / 2^30",
        "12 layers keep all their tokens, too": "12 * 128 * 1024 * 2 / 2^30",
        "that is in GB, units of 10^9 bytes": "12 * (131072 + 128) * 1024 * 2 / 10^9",
        "that is in MiB: 1,024 of them are a GiB": "12 * (131072 + 128) * 1024 * 2 / 2^20",
    },
)

ten_times = Choice(
    name="ten_times_longer",
    notebook=TODAY,
    title="Longer queries, longer keys",
    asked="In training, queries and keys have become ten times as long. What happened to the scores?",
    options={
        "a": "ten times as large",
        "b": "a hundred times as large",
        "c": "nothing: they are divided by the root of the width",
    },
    answer="b",
    remember="a score is a product of both lengths",
    slips={
        "by how much does q · k grow if q alone is ten times as long? Now k, too": "a",
        "the width is what it was; which number would have to grow with the lengths?": "c",
    },
)


def normed(
    x: Float[Tensor, "*n d"],
    gain: Float[Tensor, " d"],
) -> Float[Tensor, "*n d"]:
    return gain * x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()


def _normed_by_torch(x: Tensor, gain: Tensor) -> Tensor:
    return torch.nn.functional.rms_norm(x, x.shape[-1:], gain, eps=1e-6)


def _rows(seed: int, *shape: int, draw: Draw = drawn, by: float = 1.0) -> Case:
    return {"x": by * draw(seed, *shape), "gain": draw(seed + 1, shape[-1]).abs() + 0.5}


write_normed = Write(
    name="normed",
    notebook=TODAY,
    second=lambda n: seconds.COSINE,
    title="QK-norm",
    stars=2,
    minutes=5,
    why="it decides how loud a score can get",
    asked=(
        "each row of x (..., n, d), a query or a key, divided by the root of the mean of its squares, then"
        " its columns multiplied by gain (d). Add 1e-6 to the mean: a row of zeros stays zeros"
    ),
    stages=(
        Stage(
            "one row, 3 and 4: the mean of the squares is 12.5",
            lambda: [{"x": table([[3, 4]]), "gain": torch.ones(2, device="cpu")}],
            "3 / 3.54 and 4 / 3.54, so .85 and 1.13.",
        ),
        Stage(
            "a gain for each column",
            lambda: [{"x": table([[3, 4], [30, 40]]), "gain": torch.tensor([1.0, 2.0], device="cpu")}],
            "Both rows become the same, however long they were.",
        ),
        Stage(
            "heads and texts in front; short rows, and rows of zeros",
            lambda: [_rows(3, 2, 5, 8), _rows(5, 2, 4, 3, 6), *(_rows(7, 3, 4, by=x) for x in (1e-3, 0.0))],
            "The mean runs over the last axis alone.",
        ),
    ),
    reference=_normed_by_torch,
    hints=(
        "Over which axis is the mean taken, if each row has its own?",
        "The mean has one axis less than x. What does keepdim=True keep?",
        "gain * x / (? + 1e-6).sqrt(): which mean stands there?",
    ),
    solution=normed,
    hidden=lambda draw: [_rows(21, 3, 5, draw=draw), _rows(31, 2, 2, 4, draw=draw)],
    remember="divide by the root of the mean square, row by row; then each column has its gain",
    slips={
        "that divides by the length, the root of the SUM of squares; asked for is the mean": (
            ".mean(-1, keepdim=True)", ".sum(-1, keepdim=True)",
        ),
        "the mean of the squares needs its root": (".sqrt()", ""),
        "the mean runs over the columns of a row, axis -1": (
            ".mean(-1, keepdim=True)", ".mean(-2, keepdim=True)",
        ),
        "each row has a mean of its own: .mean(-1, keepdim=True)": (".mean(-1, keepdim=True)", ".mean()"),
        "the mean of the squares, not of the numbers": ("x.square()", "x.abs()"),
        "the gain is missing": ("gain * x", "x"),
        "you subtract the row's mean; this norm only divides by the root of the mean square": (
            "    return", "    x = x - x.mean(-1, keepdim=True)\n    return",
        ),
        "you multiply by the gain before the norm, so it is in the mean square; it comes after": (
            "return gain * x", "x = gain * x\n    return x",
        ),
        "you multiply by 1 + gain; here the gain itself is the factor": (
            "gain * x",
            "(1 + gain) * x",
        ),
        "you multiply by the root; divide by it": ("x / (", "x * ("),
        "1e-6 stands outside the root: it joins the mean of the squares": (
            "+ 1e-6).sqrt()",
            ").sqrt() + 1e-6",
        ),
    },
)  # fmt: skip


def capped(
    scores: Float[Tensor, "*n m"],
    cap: float,
) -> Float[Tensor, "*n m"]:
    return cap * (scores / cap).tanh()


def _capped_by_exp(scores: Tensor, cap: float) -> Tensor:
    return cap * (2 * (2 * scores / cap).sigmoid() - 1)


def _loud(seed: int, n: int, m: int, cap: float, by: float = 9.0, draw: Draw = drawn) -> Case:
    return {"scores": by * draw(seed, n, m), "cap": cap}


write_capped = Write(
    name="capped",
    notebook=TODAY,
    second=lambda n: seconds.CAPPED_LOGITS,
    title="A soft cap",
    stars=1,
    minutes=3,
    why="Gemma 2's way to keep scores small",
    asked="scores (..., n, m), held between -cap and cap: cap · tanh(score / cap)",
    stages=(
        Stage(
            "scores of 1, -1 and 0 under a cap of 2: 2 · tanh(.5)",
            lambda: [{"scores": table([[1, -1, 0]]), "cap": 2.0}],
            ".92, -.92 and 0.",
        ),
        Stage(
            "loud scores, and soft ones",
            lambda: [_loud(2, 3, 4, 5.0), _loud(4, 2, 5, 50.0, by=0.5)],
            "Loud ones end just below the cap; soft ones stay nearly what they were.",
        ),
    ),
    reference=_capped_by_exp,
    hints=(
        "What does tanh do to a number far above 1?",
        "By what must a score be divided, so that the cap itself is 1 for tanh?",
        "cap * (? / ?).tanh(): what stands there?",
    ),
    solution=capped,
    hidden=lambda draw: [_loud(11, 3, 5, 9.0, draw=draw), _loud(13, 4, 2, 12.0, draw=draw)],
    remember="cap · tanh(score / cap): soft scores stay, loud ones stop",
    slips={
        "tanh alone stops at 1: multiply by the cap": ("cap * (scores / cap)", "(scores / cap)"),
        "divide by the cap before tanh": ("(scores / cap)", "scores"),
        "that is a hard cap; tanh bends softly": (
            "cap * (scores / cap).tanh()", "scores.clamp(-cap, cap)",
        ),
        "scores below 0 stay below 0": ("(scores / cap).tanh()", "(scores / cap).tanh().abs()"),
        "tanh bends at 1, so it takes score / cap, not score · cap": ("scores / cap", "scores * cap"),
        "that is a sigmoid, from 0 to 1; tanh goes from -1 to 1, so a score of 0 stays 0": (
            ".tanh()",
            ".sigmoid()",
        ),
        "the score itself stands in front of tanh; it is the cap that multiplies": (
            "cap * (scores",
            "scores * (scores",
        ),
        "you divide by the cap once more in the end: multiply by it": (
            "cap * (scores / cap).tanh()",
            "(scores / cap).tanh() / cap",
        ),
    },
)  # fmt: skip

loud_start = Choice(
    name="loud_start",
    notebook=TODAY,
    title="A loud start",
    asked=(
        "W_q and W_k start 4 times as large, so scores 16 times. Three models: plain, with a cap of 50, with"
        " QK-norm. Which learn in 800 steps?"
    ),
    options={
        "a": "all: training brings the lengths down",
        "b": "the capped one and the one with QK-norm",
        "c": "the one with QK-norm alone",
    },
    answer="c",
    remember="between -50 and 50 one key can still get everything",
    slips={
        "02b: where one key has all the weight, how large are the slopes that could change it?": "a",
        "how much weight has a score of 30 beside one of 40?": "b",
    },
)

sink_share = Choice(
    name="five_and_a_sink",
    notebook=TODAY,
    title="Five keys and a sink",
    asked=(
        "A query fits none of five keys: all scores are 0. A sixth score, the sink's, is 0, too, and its"
        " value is a row of zeros. How much weight do the five tokens get, together?"
    ),
    options={
        "a": "1: weights always add up to 1",
        "b": "5/6, about .83",
        "c": "0: nothing fits",
    },
    answer="b",
    remember="the sink takes its share, and gives nothing back",
    slips={
        "all six add up to 1; how much of it went to the sink?": "a",
        "exp(0) is 1 for each of the six: what share has one of them?": "c",
    },
)


def with_sink(
    q: Float[Tensor, "n d"],
    k: Float[Tensor, "m d"],
    v: Float[Tensor, "m d_v"],
    mask: Bool[Tensor, "n m"],
    sink: float,
) -> Float[Tensor, "n d_v"]:
    keys = torch.cat((k, torch.zeros_like(k[:1])))
    values = torch.cat((v, torch.zeros_like(v[:1])))
    seen = F.pad(mask, (0, 1), value=True)
    bias = torch.zeros(seen.shape)
    bias[:, -1] = sink
    return attend(q, keys, values, mask=seen, score_bias=bias).output


def _by_the_sum(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, sink: float) -> Tensor:
    terms = (q @ k.mT * q.shape[-1] ** -0.5).exp() * mask
    return terms @ v / (terms.sum(-1, keepdim=True) + torch.tensor(sink).exp())


def _sunk(seed: int, n: int, m: int, d: int, sink: float, draw: Draw = drawn) -> Case:
    q, k, v = draw(seed, n, d), draw(seed + 1, m, d), draw(seed + 2, m, 3)
    return {"q": q, "k": k, "v": v, "mask": draw(seed + 3, n, m) > -0.7, "sink": sink}


def _five(sink: float) -> Case:
    mask = torch.ones(1, 5, dtype=torch.bool, device="cpu")
    return {"q": table([[0, 0]]), "k": table([[1, 2]] * 5), "v": table([[6]] * 5), "mask": mask, "sink": sink}


write_sink = Write(
    name="with_sink",
    notebook=TODAY,
    second=lambda n: seconds.SINK_AFTERWARDS,
    title="A sink",
    stars=3,
    minutes=8,
    why="a head that finds nothing can say nothing",
    asked=(
        "q (n, d), k (m, d), v (m, d_v), mask (n, m), True = may look. Append one key of zeros and one value"
        " of zeros, which every query may look at. Its score is to be the number `sink`: score_bias (n, m +"
        " 1) is added to the scores. Call attend once, return its output"
    ),
    stages=(
        Stage(
            "five keys that fit nothing, values of 6, a sink of 0: 5/6 of 6",
            lambda: [_five(0.0)],
            "All six scores are 0, so each key has 1/6: 5 · 1/6 · 6 = 5.",
        ),
        Stage(
            "a loud sink, and one that nobody hears",
            lambda: [_sunk(2, 3, 4, 4, 30.0), _sunk(2, 3, 4, 4, -30.0)],
            "A sink of 30 takes nearly everything, one of -30 leaves attend as it was.",
        ),
        Stage(
            "any numbers",
            lambda: [_sunk(6, 2, 5, 3, 1.5), _sunk(9, 4, 2, 8, -0.5), _sunk(13, 4, 4, 3, 0.5)],
            "A key of zeros scores 0 with any query; the bias makes it `sink`.",
        ),
    ),
    reference=_by_the_sum,
    hints=(
        "Which score has a key of zeros, whatever the query?",
        "What must be added to that score, and what to the others? May everybody look at it?",
        "bias = torch.zeros(n, m + 1), and the mask needs a column more, too: which values stand in the last"
        " column of each?",
    ),
    solution=with_sink,
    hidden=lambda draw: [_sunk(21, 3, 4, 5, 0.7, draw), _sunk(31, 2, 6, 2, -1.2, draw)],
    remember="one key more, of zeros; its score is the sink, its value gives nothing",
    slips={
        "no bias, or the same for all scores, changes nothing: `sink` belongs to the last column alone": (
            "bias[:, -1] = sink", "pass",
        ),
        "the sink stands in the last column; the first is a real token's": ("bias[:, -1]", "bias[:, 0]"),
        "the bias belongs to every query: a whole column": ("bias[:, -1]", "bias[-1, -1]"),
        "the sink takes nothing here: True in the last column, and the others' weights stay as they are": (
            "value=True", "value=False",
        ),
        "hidden keys are looked at: give attend the mask": ("mask=seen, ", ""),
        "the sink's value is a row of zeros: it gives nothing": (
            "torch.cat((v, torch.zeros_like(v[:1])))", "torch.cat((v, v[-1:]))",
        ),
        "the sink's key is a row of zeros, else its score depends on the query": (
            "torch.cat((k, torch.zeros_like(k[:1])))", "torch.cat((k, k[-1:]))",
        ),
        "`sink` stands in the key, so its score depends on the query: a key of zeros, a bias of `sink`": (
            "torch.zeros_like(k[:1])", "torch.full_like(k[:1], sink)", "bias[:, -1] = sink", "pass",
        ),
        "the bias is added to the score as it is, without exp or log": (
            "= sink", "= torch.tensor(sink).exp()",
        ),
        "the mask has the opposite polarity: True = may look": ("F.pad(mask,", "F.pad(~mask,"),
        "the sink's sign is turned round: a larger `sink` must take more": ("= sink", "= -sink"),
        **exchanged("keys = torch.cat", "q k v"),
        "the sink is a score already: do not divide it by the root of the width": (
            "= sink",
            "= sink / q.shape[-1] ** 0.5",
        ),
    },
)  # fmt: skip

ASKED = (
    window_counts,
    cache_of_gpt_oss,
    ten_times,
    write_normed,
    write_capped,
    loud_start,
    sink_share,
    write_sink,
)
