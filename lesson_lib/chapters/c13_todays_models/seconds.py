"""Second problems of chapter 13, in the learner's order."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Stage, Write
from lesson_lib.checks.inputs import drawn
from lesson_lib.masks import causal
from lesson_lib.positions import rotary


def prefix_matching_2(table: Float[Tensor, "n n"], length: int) -> Float[Tensor, ""]:
    last = range(2 * length, 3 * length)
    both = [table[i, i - length + 1] + table[i, i - 2 * length + 1] for i in last]
    return torch.stack(both).mean()


def _thrice(seed: int, length: int) -> Case:
    rows = drawn(seed, 3 * length, 3 * length).abs() + 0.1
    return {"table": rows / rows.sum(1, keepdim=True), "length": length}


THREE_TIMES = Write(
    name="prefix_matching_2",
    title="A piece said three times",
    asked=(
        "the piece is said three times, n = 3 * length. Return the mean weight that the tokens of the LAST"
        " third give to those after their two earlier copies, both together"
    ),
    stages=(
        Stage("a piece of 2", lambda: [_thrice(1, 2)], "Tokens 4 and 5; the copies stand 2 and 4 before."),
        Stage("longer pieces", lambda: [_thrice(5, 3), _thrice(7, 5)], "Two places for each token."),
    ),
    hints=(
        "Where are the two earlier copies of token i?",
        "Which two entries of row i are added?",
        "Over which tokens does the mean run?",
    ),
    solution=prefix_matching_2,
    remember="each copy is `length` tokens before the next",
    slips={
        "only the nearer copy is counted": (" + table[i, i - 2 * length + 1]", ""),
        "only the farther copy is counted": ("table[i, i - length + 1] + ", ""),
        "those are the copies themselves; asked for are the tokens after them": (
            "i - length + 1] + table[i, i - 2 * length + 1]",
            "i - length] + table[i, i - 2 * length]",
        ),
        "the last third begins at 2 * length": ("range(2 * length, 3 * length)", "range(length, 2 * length)"),
        "the mean, not the sum": (".mean()", ".sum()"),
    },
)


def two_looks_2(x: Float[Tensor, "n d"], sharp: float) -> Float[Tensor, "n d"]:
    i = torch.arange(len(x))
    before = attend(x, x, x, mask=i[:, None] - i == 1).output
    return attend(sharp * x, x, before, mask=i[:, None] > i).output


def _signs(numbers: list[int], d: int) -> Case:
    return {"x": torch.eye(d, device="cpu")[numbers], "sharp": 3.0}


WHAT_STOOD_BEFORE = Write(
    name="two_looks_2",
    title="What stood before?",
    asked=(
        "now fetch the sign that stood BEFORE the earlier copies: queries sharp · x, keys x, values what the"
        " first look gave; a token looks at earlier ones only, not at itself"
    ),
    stages=(
        Stage("the signs 2 1 0 1", lambda: [_signs([2, 1, 0, 1], 3)], "Before the first 1 stood 2."),
        Stage(
            "more signs",
            lambda: [_signs([3, 1, 4, 3, 1, 4, 0], 5), _signs([0, 2, 0, 2, 2], 4)],
            "The first token may look at nothing: zeros.",
        ),
    ),
    hints=(
        "Which of the two tables holds what a token IS, and which what stood before it?",
        "What is compared now, and what is handed over?",
        "How do you take a token itself out of a causal mask?",
    ),
    solution=two_looks_2,
    remember="compare what tokens are, hand over what stood before them",
    slips={
        "that fetches the sign itself: the values are what the first look gave": (
            "sharp * x, x, before",
            "sharp * x, x, x",
        ),
        "that asks for what comes after: the keys are the signs themselves": (
            "sharp * x, x, before",
            "sharp * x, before, x",
        ),
        "a token finds itself: take it out of the mask": ("i[:, None] > i", "i[:, None] >= i"),
        "later tokens are looked at, too": ("i[:, None] > i", "i[:, None] != i"),
        "the first look fetches the token after": ("i[:, None] - i == 1", "i - i[:, None] == 1"),
    },
)


def normed_2(query: Float[Tensor, "n d"], key: Float[Tensor, "m d"]) -> Float[Tensor, "n m"]:
    q = query / query.norm(dim=-1, keepdim=True)
    k = key / key.norm(dim=-1, keepdim=True)
    return q @ k.T


def _pair(seed: int, n: int, m: int, d: int) -> Case:
    return {"query": 3 * drawn(seed, n, d), "key": drawn(seed + 1, m, d)}


COSINE = Write(
    name="normed_2",
    title="The cosine as a score",
    asked=(
        "the older form: divide each query and each key by its length, the root of the SUM of squares, and"
        " return their products (n, m). No gain, no root of d"
    ),
    stages=(
        Stage("one query, two keys", lambda: [_pair(1, 1, 2, 4)], "A score is the cosine: from -1 to 1."),
        Stage("more of both", lambda: [_pair(3, 3, 5, 6), _pair(5, 4, 2, 3)], "Each row has its own length."),
    ),
    hints=(
        "How long is a row? Over which axis are its squares summed?",
        "What does keepdim=True keep?",
        "Which of the two is transposed in q @ k?",
    ),
    solution=normed_2,
    remember="rows of length 1 have products between -1 and 1",
    slips={
        "keys are divided by their length, too": ("key / key.norm(dim=-1, keepdim=True)", "key"),
        "queries are divided by their length, too": ("query / query.norm(dim=-1, keepdim=True)", "query"),
        "no division by the root of the width": ("return q @ k.T", "return q @ k.T / len(query.T) ** 0.5"),
        "divide each row, not each column": (
            "query / query.norm(dim=-1, keepdim=True)",
            "query / query.norm(dim=0, keepdim=True)",
        ),
        "the root of the sum, not the sum": (
            "key / key.norm(dim=-1, keepdim=True)",
            "key / key.norm(dim=-1, keepdim=True) ** 2",
        ),
    },
)


def capped_2(logits: Float[Tensor, "*b n"], cap: float, seen: float) -> Float[Tensor, "*b n"]:
    return cap * (logits / (seen * cap)).tanh()


def _logits(seed: int, n: int, cap: float, seen: float) -> Case:
    return {"logits": 9 * drawn(seed, 2, n), "cap": cap, "seen": seen}


CAPPED_LOGITS = Write(
    name="capped_2",
    title="Logits, with a temperature",
    asked=(
        "a model's logits (..., n): divide them by the temperature `seen` first, then hold them between -cap"
        " and cap as before"
    ),
    stages=(
        Stage("a temperature of 1", lambda: [_logits(1, 4, 5.0, 1.0)], "As in the part."),
        Stage(
            "others",
            lambda: [_logits(3, 5, 30.0, 2.0), _logits(5, 3, 2.0, 0.5)],
            "First the temperature, then the cap.",
        ),
    ),
    hints=(
        "Which comes first?",
        "What stands inside tanh, once the temperature has been divided by?",
        "What does the cap multiply?",
    ),
    solution=capped_2,
    remember="what comes first stands innermost",
    slips={
        "the temperature divides what goes into tanh, not what comes out": (
            "cap * (logits / (seen * cap)).tanh()",
            "cap * (logits / cap).tanh() / seen",
        ),
        "a temperature divides": ("(seen * cap)", "cap * seen"),
        "the cap multiplies what tanh gives": ("cap * (logits", "(logits"),
        "divide by the cap before tanh": ("(seen * cap)", "seen"),
        "the temperature is missing": ("(seen * cap)", "cap"),
    },
)


def with_sink_2(weights: Float[Tensor, "n m"], given: Float[Tensor, " n"]) -> Float[Tensor, "n m"]:
    return weights * (1 - given)[:, None]


def _given(seed: int, n: int, m: int) -> Case:
    rows = drawn(seed, n, m).abs() + 0.1
    share = drawn(seed + 1, n).abs()
    return {"weights": rows / rows.sum(1, keepdim=True), "given": share / (1 + share)}


SINK_AFTERWARDS = Write(
    name="with_sink_2",
    title="A sink, afterwards",
    asked=(
        "weights (n, m) were computed WITHOUT a sink; of query i the share given[i] is to go to a sink. Return"
        " the weights (n, m) that are left for the real keys"
    ),
    stages=(
        Stage("one query", lambda: [_given(1, 1, 3)], "All weights of a row shrink by the same factor."),
        Stage("several", lambda: [_given(3, 4, 5), _given(5, 3, 3)], "given[i] belongs to row i."),
    ),
    hints=(
        "What is left for all keys of a row together?",
        "In which proportion do they share it?",
        "Which axis does given[:, None] add?",
    ),
    solution=with_sink_2,
    remember="a sink scales each row of weights by what it leaves",
    slips={
        "what is LEFT: 1 - given": ("(1 - given)", "given"),
        "given belongs to the rows, not to the columns": ("[:, None]", "[: weights.shape[1]].mean()"),
        "the keys share it in proportion, so multiply": (
            "weights * (1 - given)[:, None]",
            "weights - given[:, None] / weights.shape[1]",
        ),
        "the real keys get less now, not more": ("weights * (1 - given)", "weights / (1 - given)"),
        "nothing went to the sink": (" * (1 - given)[:, None]", " * 1"),
    },
)


def head_weights_2(
    x: Float[Tensor, "n d"],
    w_query: Float[Tensor, "h_dk d"],
    w_key: Float[Tensor, "h_dk d"],
    head: int,
    d_k: int,
    window: int,
) -> Float[Tensor, "n n"]:
    own = slice(head * d_k, (head + 1) * d_k)
    q, k = rotary(x @ w_query[own].mT), rotary(x @ w_key[own].mT)
    return attend(q, k, k, mask=causal(len(x), window=window)).weights


def _head(seed: int, n: int, heads: int, head: int, window: int) -> Case:
    return {
        "x": drawn(seed, n, 6), "w_query": drawn(seed + 1, heads * 4, 6),
        "w_key": drawn(seed + 2, heads * 4, 6), "head": head, "d_k": 4, "window": window,
    }  # fmt: skip


HEAD_IN_WINDOW = Write(
    name="head_weights_2",
    title="A head of another family",
    asked=(
        "here every head has keys of its own, the columns 2j and 2j + 1 turn together (rotary's usual"
        " pairing), and a token looks at `window` tokens, itself among them. Return the weights of `head`"
    ),
    stages=(
        Stage("a wide window", lambda: [_head(1, 3, 1, 0, 9)], "As before, with another pairing."),
        Stage(
            "a window of two", lambda: [_head(5, 5, 3, 2, 2), _head(9, 4, 2, 0, 1)], "Two tokens are seen."
        ),
    ),
    hints=(
        "Which rows of the two matrices belong to the head?",
        "Which pairing has rotary if you name none?",
        "causal(len(x), window=?): what does it count?",
    ),
    solution=head_weights_2,
    remember="families differ in pairs, groups and windows: read the page first",
    slips={
        "the window is missing": (", window=window))", "))"),
        "one token too many is looked at": ("window=window)", "window=window + 1)"),
        "here columns 2j and 2j + 1 turn together": (
            "rotary(x @ w_query[own].mT), rotary(x @ w_key[own].mT)",
            'rotary(x @ w_query[own].mT, pairing="half-split"), rotary(x @ w_key[own].mT, pairing="half-split")',
        ),
        "nothing is turned": (
            "rotary(x @ w_query[own].mT), rotary(x @ w_key[own].mT)",
            "x @ w_query[own].mT, x @ w_key[own].mT",
        ),
        "that is head 0": ("slice(head * d_k, (head + 1) * d_k)", "slice(0, d_k)"),
    },
)


def read_early_2(
    before: Float[Tensor, "n d"],
    after: Float[Tensor, "n d"],
    gain: Float[Tensor, " d"],
    table: Float[Tensor, "n_tokens d"],
) -> Float[Tensor, "n n_tokens"]:
    early, late = (F.rms_norm(x, x.shape[-1:], gain, eps=1e-6) @ table.mT for x in (before, after))
    return late - early


def _two(seed: int, n: int, d: int, n_tokens: int) -> Case:
    return {
        "before": 2 * drawn(seed, n, d), "after": 3 * drawn(seed + 1, n, d),
        "gain": drawn(seed + 2, d).abs() + 0.5, "table": drawn(seed + 3, n_tokens, d),
    }  # fmt: skip


FROM_TO = Write(
    name="read_early_2",
    title="What a layer changes",
    asked=(
        "rows before and after a layer: by how much does the layer raise each token's logit? Read out both,"
        " after minus before"
    ),
    stages=(
        Stage("one row", lambda: [_two(1, 1, 4, 3)], "Each is normed by itself."),
        Stage("more rows", lambda: [_two(5, 4, 6, 5)], "A number for each row and token."),
    ),
    hints=(
        "How many times is read out?",
        "Is the norm of a difference the difference of the norms?",
        "Which of the two is taken away?",
    ),
    solution=read_early_2,
    remember="the norm is no sum: read out both, then subtract",
    slips={
        "the difference is normed; norm both first": (
            "return late - early", "return F.rms_norm(after - before, gain.shape, gain, eps=1e-6) @ table.mT",
        ),
        "before minus after": ("late - early", "early - late"),
        "that is what is read out after the layer": ("late - early", "late"),
        "the last norm is missing": ("F.rms_norm(x, x.shape[-1:], gain, eps=1e-6)", "x"),
        "the gain is missing": ("gain, eps", "eps"),
    },
)  # fmt: skip
