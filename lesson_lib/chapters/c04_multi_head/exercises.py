"""Exercises of lesson 04, multi-head attention: why several heads?

In the learner's order. A slip is a sentence and the wrong answer that it is told to: a number, a letter, or an edit of
the solution's text (old, new).
"""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.chapters.c04_multi_head import multi_head, seconds
from lesson_lib.checks.exchanged import exchanged
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, primes
from lesson_lib.checks.short import Choice, Number, Open
from lesson_lib.heads import merge_heads
from lesson_lib.scores import dot

counted = Number(
    name="eight_heads",
    second=lambda n: seconds.eight_heads(counted, n),
    title="Eight heads, how many numbers?",
    stars=1,
    minutes=4,
    why="eight heads do not cost eight times as much; they cost what one of full width costs",
    asked=(
        "d_model = 512, 8 heads with d_k = d_v = 64, W_o, no biases, n = 100 tokens: how many learned numbers"
        " has the layer?"
    ),
    value=4 * 512 * 512,
    tolerance=1e-6,
    hints=(
        "What does ONE head project, from which width to which? How many numbers are in its three matrices?",
        "8 heads side by side give outputs of which width, and which matrix comes behind them?",
        "W_q of all heads together is 512 x (8 * 64). Which of the other three has another size?",
    ),
    solution=(
        "W_q, W_k, W_v of all heads together: 3 * 512 * (8 * 64); W_o: (8 * 64) * 512. In all 4 * 512 * 512 ="
        " 1,048,576, of which the last 262,144 are W_o. One head with d_k = d_v = 512 would have as many."
    ),
    remember=(
        "h heads of width d_model / h have the parameters of one head of width d_model: 4 d_model^2 with W_o"
    ),
    slips={
        "W_o is missing: it mixes the heads' outputs, 512 x 512": "3 * 512 * 512",
        "8 heads of 64 ARE the 512 columns; do not multiply by 8 once more": "8 * 4 * 512 * 512",
        "that is one head without W_o": "3 * 512 * 64",
        "each of the 8 heads has three matrices of 512 x 64: it reads the whole token, and has them for itself": (
            "3 * 512 * 64 + 512 * 512"
        ),
        "you gave W_o one head's width; all 8 heads stand side by side before it: (8 * 64) x 512": (
            "3 * 512 * 512 + 64 * 512"
        ),
        "you counted biases; here there are none": "4 * 512 * 512 + 4 * 512",
        "the matrices are shared by all tokens: do not multiply by n": "4 * 512 * 512 * 100",
        "the weights of 100 tokens are computed, not learned: only matrices count": "4 * 512**2 + 8 * 100**2",
    },
    answer="8 * 3 * 512 * 64 + 512 * 512",
)


def heads_together(heads: Float[Tensor, "*b h n d"]) -> Float[Tensor, "*b n width"]:
    *batch, h, n, d = heads.shape
    return heads.transpose(-2, -3).reshape(*batch, n, h * d)


def _more_heads_together(drawn: Draw) -> list[Case]:
    return [{"heads": drawn(1, 5, 11, 3)}, {"heads": drawn(2, 3, 4, 7, 2)}]


together = Write(
    name="heads_together",
    second=lambda n: seconds.heads_together(together, n),
    title="The way back: a repair",
    stars=1,
    minutes=5,
    why="shapes are right, numbers are not: no error message will ever tell you",
    asked=(
        "repair the function: heads (..., h, n, d) side by side again, (..., n, h*d), each token's first head"
        " first"
    ),
    repair=True,
    stages=(
        Stage(
            "one head: nothing to join",
            lambda: [{"heads": primes(1, 2, 3)}],
            "With one head, only the axis of length 1 goes.",
        ),
        Stage(
            "two heads, one token",
            lambda: [{"heads": primes(2, 1, 3)}],
            "The token's row is its part from head 1, then its part from head 2.",
        ),
        Stage(
            "two heads, two tokens of width 2",
            lambda: [{"heads": primes(2, 2, 2)}],
            "Row 1 of the result belongs to token 1: which numbers of each head are token 1's?",
        ),
        Stage(
            "three heads, five tokens, two sequences",
            lambda: [{"heads": primes(3, 5, 2)}, {"heads": drawn(1, 2, 3, 5, 7)}],
            "Which two axes must be neighbours before they can become one?",
        ),
    ),
    reference=lambda heads: merge_heads(heads),
    hints=(
        (
            "reshape never moves a number: it reads them in order and cuts anew. In which order do they lie"
            " in (h, n, d)?"
        ),
        (
            "To become one axis of length h*d, the axes h and d must be neighbours. Which axis stands between"
            " them?"
        ),
        "Which transpose was used on the way out, and what undoes it?",
    ),
    solution=heads_together,
    remember="first move the axis back, (n, h, d), then reshape; only neighbouring axes can become one",
    slips={
        "this is still the function as it was given": (
            "return heads.transpose(-2, -3).reshape(*batch, n, h * d)",
            "return heads.reshape(*batch, n, h * d)",
        ),
        "view cannot join axes after a transpose, since the numbers do not lie in that order in memory; reshape copies them": (
            ("reshape", "view")
        ),
        "the columns of the heads alternate; W_o expects all of head 1, then all of head 2": (
            ".transpose(-2, -3)",
            ".movedim(-3, -1)",
        ),
        "you exchange tokens and columns of each head; exchange heads and tokens": (
            ".transpose(-2, -3)",
            ".mT",
        ),
        "you add the heads up; they are put side by side, and W_o decides how to mix them": (
            "heads.transpose(-2, -3).reshape(*batch, n, h * d)",
            "heads.sum(-3)",
        ),
        "you stack the heads below each other; a token appears h times": (
            "heads.transpose(-2, -3).reshape(*batch, n, h * d)",
            "heads.flatten(-3, -2)",
        ),
        "you take the mean of the heads; they are put side by side": (
            "heads.transpose(-2, -3).reshape(*batch, n, h * d)",
            "heads.mean(-3)",
        ),
        "the last head comes first": (".transpose(-2, -3)", ".flip(-3).transpose(-2, -3)"),
        "each head is a row here; each token is to be a row": (
            "heads.transpose(-2, -3).reshape(*batch, n, h * d)",
            "heads.flatten(-2)",
        ),
        "you exchange axes after joining; then heads and tokens are mixed up already: exchange first": (
            "heads.transpose(-2, -3).reshape(*batch, n, h * d)",
            "heads.reshape(*batch, h * d, n).transpose(-1, -2)",
        ),
        "you count axes from the front, transpose(1, 2): that fits one number of axes in front; count from the end, -2 and -3": (
            "transpose(-2, -3)",
            "transpose(1, 2)",
        ),
        "heads and tokens are exchanged, and the heads are not joined yet: flatten the last two axes": (
            ".reshape(*batch, n, h * d)",
            "",
        ),
    },
    hidden=_more_heads_together,
)


def many_heads(
    x: Float[Tensor, "*b n d_model"],
    w_query: Float[Tensor, "d_model h_d_k"],
    w_key: Float[Tensor, "d_model h_d_k"],
    w_value: Float[Tensor, "d_model h_d_v"],
    w_output: Float[Tensor, "h_d_v d_model"],
    n_heads: int,
) -> Float[Tensor, "*b n d_model"]:
    def split(y):  # (..., n, h*d) to (..., h, n, d)
        return y.unflatten(-1, (n_heads, -1)).transpose(-2, -3)

    query, key, value = split(x @ w_query), split(x @ w_key), split(x @ w_value)
    scores = query @ key.mT / query.shape[-1] ** 0.5  # d_k, the width of one head
    mixed = torch.softmax(scores, dim=-1) @ value
    return mixed.transpose(-2, -3).flatten(-2) @ w_output


def _layer(
    seed: int, n: int, d_model: int, n_heads: int, d_k: int, d_v: int, batch: tuple[int, ...] = ()
) -> Case:
    sizes: dict[str, tuple[int, ...]] = {
        "x": (*batch, n, d_model),
        "w_query": (d_model, n_heads * d_k),
        "w_key": (d_model, n_heads * d_k),
        "w_value": (d_model, n_heads * d_v),
        "w_output": (n_heads * d_v, d_model),
    }
    drawn_numbers: dict[str, Any] = {
        name: drawn(seed + i, *size) for i, (name, size) in enumerate(sizes.items())
    }
    return drawn_numbers | {"n_heads": n_heads}


def _head_by_head(
    x: Tensor, w_query: Tensor, w_key: Tensor, w_value: Tensor, w_output: Tensor, n_heads: int
) -> Tensor:
    """Sum over heads of attention times the head's own rows of W_o."""
    columns = [w.chunk(n_heads, dim=-1) for w in (w_query, w_key, w_value)]
    parts = zip(*columns, w_output.chunk(n_heads), strict=True)
    return torch.stack([attend(x @ q, x @ k, x @ v).output @ o for q, k, v, o in parts]).sum(0)


def _more_many_heads(drawn: Draw) -> list[Case]:
    shapes = {
        "x": (11, 5),
        "w_query": (5, 12),
        "w_key": (5, 12),
        "w_value": (5, 8),
        "w_output": (8, 5),
    }
    case = {name: drawn(i, *shape, spread=0.7) for i, (name, shape) in enumerate(shapes.items())}
    return [{**case, "n_heads": 4}]


whole = Write(
    name="many_heads",
    second=lambda n: seconds.many_heads(whole, n),
    title="The whole layer",
    stars=3,
    minutes=12,
    why="the layer as it stands in every library: whoever has written each step finds the one that is wrong",
    asked=(
        "project, split into heads, attend in each head with 1/sqrt(d_k), put the heads side by side,"
        " multiply by w_output"
    ),
    stages=(
        Stage(
            "one token, two heads: the output is x W_v W_o",
            lambda: [_layer(1, 1, 2, 2, 1, 1)],
            "With one token every weight is 1, in every head.",
        ),
        Stage(
            "one head, two tokens",
            lambda: [_layer(11, 2, 3, 1, 2, 3)],
            "With one head this is attention as you know it, and W_o behind it.",
        ),
        Stage(
            "two heads of width 1, two tokens: every reshape fits",
            lambda: [_layer(21, 2, 2, 2, 1, 1), _layer(31, 2, 2, 2, 1, 1)],
            "One head is right, two are not: how do you split, and how do you join?",
        ),
        Stage(
            "three heads of width 2, five tokens",
            lambda: [_layer(41, 5, 7, 3, 2, 2)],
            "Here d_model = 7, the heads together are 6 wide, and d_k = 2: which of them is under the root?",
        ),
        Stage(
            "a batch of two sequences, d_v = 5 and d_k = 3",
            lambda: [_layer(51, 3, 7, 2, 3, 5, (2,)), _layer(61, 4, 7, 2, 3, 3, (2,))],
            "One sequence is right, a batch is not: count axes from the right.",
        ),
    ),
    reference=_head_by_head,
    hints=(
        (
            "Four matrices, three of them before the attention. What shape has `x @ w_query`, and what shape"
            " does each head need?"
        ),
        (
            "With axes (..., h, n, d), do `@`, `.mT` and softmax over the last axis need to know that there"
            " are heads?"
        ),
        (
            "How wide is ONE head's query, what joins the heads, and which matrix is still unused when they"
            " are joined?"
        ),
    ),
    solution=many_heads,
    remember=(
        "project, split, attend in every head at once, join, W_o; the root is that of one head's width d_k"
    ),
    slips={
        "W_o is missing: the heads stand side by side, and nothing has mixed them": (" @ w_output", ""),
        "you divide by sqrt(d_model); the scores of a head have d_k terms": (
            "query.shape[-1]",
            "x.shape[-1]",
        ),
        "you divide by the root of all heads' width together; a head's scores have d_k terms": (
            ("query.shape[-1]", "w_query.shape[-1]")
        ),
        "you forgot to divide by sqrt(d_k)": (" / query.shape[-1] ** 0.5", ""),
        "you divide by d_k; divide by its square root": (" ** 0.5", ""),
        "your softmax runs over queries (dim=-2); it must run over keys (dim=-1)": ("dim=-1", "dim=-2"),
        "your softmax runs over the heads; each head has weights of its own over the keys": (
            "dim=-1",
            "dim=-3",
        ),
        "one softmax over the keys of all heads together; each head's weights sum to 1": (
            "torch.softmax(scores, dim=-1)",
            "scores.movedim(-3, -2).flatten(-2).softmax(-1).unflatten(-1, (n_heads, -1)).movedim(-2, -3)",
        ),
        "you split and join by reshape alone, so heads are mixed with tokens; transpose between": (
            "y.unflatten(-1, (n_heads, -1)).transpose(-2, -3)",
            "y.reshape(*y.shape[:-2], n_heads, y.shape[-2], -1)",
            "mixed.transpose(-2, -3).flatten(-2)",
            "mixed.reshape(*x.shape[:-1], -1)",
        ),
        "you split by reshape alone, (n, h*d) to (h, n, d): a head gets whole tokens; cut the width, then transpose": (
            "y.unflatten(-1, (n_heads, -1)).transpose(-2, -3)",
            "y.reshape(*y.shape[:-2], n_heads, y.shape[-2], -1)",
        ),
        "the split is right, the way back is not: transpose before you reshape": (
            "mixed.transpose(-2, -3).flatten(-2)",
            "mixed.reshape(*x.shape[:-1], -1)",
        ),
        "the columns of the heads alternate when you join them; W_o expects head 1, then head 2": (
            "mixed.transpose(-2, -3)",
            "mixed.movedim(-3, -1)",
        ),
        "n_heads is not used: this is one head as wide as all of them": ("(n_heads, -1)", "(1, -1)"),
        "you add up the heads' outputs; put them side by side, (n, h*d_v), as W_o has a row for each of these columns": (
            "mixed.transpose(-2, -3).flatten(-2)",
            "mixed.sum(-3)",
        ),
        "the heads are not joined: W_o needs (n, h*d_v), you hand it (h, n, d_v)": (
            "mixed.transpose(-2, -3).flatten(-2)",
            "mixed",
        ),
        "the heads are not split: this is one head of the full width": (
            "y.unflatten(-1, (n_heads, -1)).transpose(-2, -3)",
            "y",
            "query.shape[-1] ** 0.5",
            "(query.shape[-1] // n_heads) ** 0.5",
            "mixed.transpose(-2, -3).flatten(-2)",
            "mixed",
        ),
        "inside each token heads look at heads: exchange heads and tokens before the scores": (
            "(n_heads, -1)).transpose(-2, -3)",
            "(n_heads, -1))",
            "mixed.transpose(-2, -3).flatten",
            "mixed.flatten",
        ),
        "you divide by the root of the value's width; the scores of a head have d_k terms": (
            "query.shape[-1] ** 0.5",
            "value.shape[-1] ** 0.5",
        ),
        "queries and keys are exchanged: a row belongs to a query": ("query @ key.mT", "key @ query.mT"),
        "all heads share the mean of their weights; each keeps its own": (
            "torch.softmax(scores, dim=-1)",
            "torch.softmax(scores, dim=-1).mean(-3, keepdim=True)",
        ),
        "you add x; the residual belongs to the layer around attention": ("return mixed", "return x + mixed"),
        "you divide by the root of n_heads, the number of heads; it is the root of a head's width, d_k": (
            "query.shape[-1] ** 0.5",
            "n_heads**0.5",
        ),
        "`/ d_k * 0.5` halves, and so does `/ d_k ** 1 / 2`; the root is `** 0.5`": ("** 0.5", "* 0.5"),
        "you multiply by sqrt(d_k); divide by it": ("/ query.shape[-1]", "* query.shape[-1]"),
        "softmax is missing: you mix the values with the raw scores": (
            "torch.softmax(scores, dim=-1)",
            "scores",
        ),
        "the last head comes first; W_o expects head 1, then head 2": (
            "return mixed",
            "return mixed.flip(-3)",
        ),
        "each head gets every h-th column; its columns are neighbours: unflatten(-1, (n_heads, -1))": (
            "(n_heads, -1)).transpose(-2, -3)",
            "(-1, n_heads)).movedim(-1, -3)",
        ),
        "a relu follows W_o: what is negative is lost": (
            "return mixed.transpose(-2, -3).flatten(-2) @ w_output",
            "return (mixed.transpose(-2, -3).flatten(-2) @ w_output).relu()",
        ),
        **exchanged("scores = query", without="kqv"),
        "(d_k ** 1 / 2) is d_k / 2, since the power comes first; the root is `** 0.5`": ("** 0.5", "* 2"),
        "a relu follows the three projections: queries, keys and values may be negative": (
            "return y.unflatten",
            "return y.relu().unflatten",
        ),
    },
    hidden=_more_many_heads,
)


def silent_head(
    w_output: Float[Tensor, "h_d d_model"], head: int, n_heads: int
) -> Float[Tensor, "h_d d_model"]:
    width = w_output.shape[0] // n_heads
    silent = w_output.clone()
    silent[head * width : (head + 1) * width] = 0
    return silent


def _rows(w_output: Tensor, head: int, n_heads: int) -> Case:
    return {"w_output": w_output, "head": head, "n_heads": n_heads}


def _more_silent_head(drawn: Draw) -> list[Case]:
    return [_rows(drawn(1, 15, 7), 2, 5), _rows(drawn(2, 14, 3), 0, 2)]


silence = Write(
    name="silent_head",
    title="Silence a head",
    stars=2,
    minutes=6,
    why="the first experiment that people do on a trained layer: which heads would be missed?",
    asked=(
        "W_o, (h*d, d_model), as it would be if head number `head` (from 0) said nothing; leave the one that you"
        " were given as it is"
    ),
    second=lambda n: seconds.silent_head(silence, n),
    stages=(
        Stage(
            "two heads of width 1: the first falls silent",
            lambda: [_rows(primes(2, 3), 0, 2)],
            "The heads stand side by side before W_o: which rows of W_o meet head 0?",
        ),
        Stage(
            "two heads of width 2, the second",
            lambda: [_rows(primes(4, 3), 1, 2)],
            "A head has as many rows as it is wide. Where does head 1 begin?",
        ),
        Stage(
            "three heads of width 2, in a model of width 5",
            lambda: [_rows(primes(6, 5), 1, 3)],
            "The width of one head is the number of ROWS, divided by the number of heads.",
        ),
        Stage(
            "four heads of width 4, in a model of width 16",
            lambda: [_rows(drawn(1, 16, 16), 2, 4)],
            "Rows and columns are as many here: only one of them belongs to the heads.",
        ),
    ),
    hints=(
        "output = [head_0, head_1, ...] @ W_o: which numbers of W_o are multiplied with head 1?",
        "If W_o has 12 rows and there are 3 heads, which rows belong to head 1?",
        "What keeps the matrix that you were given from being changed with yours?",
    ),
    solution=silent_head,
    remember="a head's voice is its own block of rows of W_o; its map stays as bright as it was",
    slips={
        "you set columns to 0, so every head is silent in a part of the output; a head has ROWS of W_o": (
            "silent[head * width : (head + 1) * width] = 0",
            "silent[:, head * width : (head + 1) * width] = 0",
        ),
        "you set a block of COLUMNS to 0, a share of d_model; a head owns shape[0] // n_heads ROWS of W_o": (
            "w_output.shape[0]",
            "w_output.shape[1]",
            "silent[head * width : (head + 1) * width] = 0",
            "silent[:, head * width : (head + 1) * width] = 0",
        ),
        "only this head is left; it is the one to be silent": (
            "silent[head * width : (head + 1) * width] = 0",
            "silent[: head * width] = 0\n    silent[(head + 1) * width :] = 0",
        ),
        "you silence one row; a head has as many rows as it is wide": (
            "silent[head * width : (head + 1) * width] = 0",
            "silent[head] = 0",
        ),
        "you count heads from 1 here; they count from 0": (
            "silent[head * width : (head + 1) * width] = 0",
            "silent[(head - 1) * width : head * width] = 0",
        ),
        "you take every h-th row; a head's rows are neighbours": (
            "silent[head * width : (head + 1) * width] = 0",
            "silent[head::n_heads] = 0",
        ),
        "the width of a head is the number of rows divided by the heads; you divided the columns": (
            "w_output.shape[0]",
            "w_output.shape[1]",
        ),
        "you took the rows away; set them to 0, so that the shape stays": (
            "silent[head * width : (head + 1) * width] = 0\n    return silent",
            "return torch.cat([silent[: head * width], silent[(head + 1) * width :]])",
        ),
    },
    hidden=_more_silent_head,
)


def may_look(
    attn_mask: Bool[Tensor, "n m"], key_padding_mask: Bool[Tensor, "b m"]
) -> Bool[Tensor, "b 1 n m"]:
    hidden = attn_mask | key_padding_mask[:, None, None, :]
    return ~hidden


def _masks(n: int, lengths: list[int], m: int, first: int = 1) -> Case:
    """torch's two masks: query i may not look beyond key i + first - 1, and sequences end after `lengths`."""
    keys = torch.arange(m, device="cpu")
    queries, ends = torch.arange(n, device="cpu"), torch.tensor(lengths, device="cpu")
    return {
        "attn_mask": keys >= queries[:, None] + first,
        "key_padding_mask": keys >= ends[:, None],
    }


def _more_may_look(drawn: Draw) -> list[Case]:
    return [{"attn_mask": drawn(1, 5, 11) > 0.5, "key_padding_mask": drawn(2, 3, 11) > 1}]


polarity = Write(
    name="may_look",
    second=lambda n: seconds.may_look(polarity, n),
    title="True means the opposite",
    stars=2,
    minutes=6,
    why="two meanings of True; taken for each other, a model looks at its padding and at nothing else",
    asked=(
        "from torch's masks, in which True HIDES, make one mask (b, 1, n, m) in which True = may look, for"
        " all heads"
    ),
    stages=(
        Stage(
            "a causal mask, no padding",
            lambda: [_masks(3, [3], 3)],
            "A query may look at itself and at what stands before it.",
        ),
        Stage(
            "padding alone: a sequence of 1 token, and one of 2",
            lambda: [_masks(3, [1, 2], 3, first=3)],
            "A filler is hidden from every query: its whole COLUMN is False.",
        ),
        Stage(
            "both at once",
            lambda: [_masks(3, [1, 3], 3)],
            "A key is open to a query where neither mask hides it.",
        ),
        Stage(
            "two sequences, three queries, five keys",
            lambda: [_masks(3, [4, 2], 5, first=2)],
            "Padding is (b, m), one row per sequence. Where do the axes of heads and of queries go?",
        ),
    ),
    hints=(
        "Where does torch put True in a causal mask: where a query may look, or where it may not?",
        "A key is hidden if EITHER mask hides it. What does that make of 'may look': and, or or?",
        (
            "The scores are (b, h, n, m). Where do you need axes of length 1 in `key_padding_mask`, which is"
            " (b, m)?"
        ),
    ),
    solution=may_look,
    remember=(
        "torch: True hides; here: True may look. Hidden = one or the other; may look = neither: ~(a | b) = ~a"
        " & ~b"
    ),
    slips={
        "this is torch's meaning still: True hides there, True lets look here; invert it": (
            "~hidden",
            "hidden",
        ),
        "a key is open here as soon as ONE mask allows it; both must allow it: ~a & ~p, which is ~(a | p)": (
            ("attn_mask |", "attn_mask &")
        ),
        "you inverted attn_mask only; key_padding_mask has torch's meaning, too": ("| key", "| ~key"),
        "you inverted key_padding_mask only; attn_mask has torch's meaning, too": (
            "= attn_mask",
            "= ~attn_mask",
        ),
        "padding hides whole queries (rows) here; it must hide keys: the last axis, [:, None, None, :]": (
            ("[:, None, None, :]", "[:, None, :, None]")
        ),
        "the axis of the heads is missing: (b, n, m) needs a 1 for the heads, (b, 1, n, m)": (
            "[:, None, None, :]",
            "[:, None, :]",
        ),
        "the 1 stands for the queries, not for the heads: make padding (b, 1, 1, m) before you combine": (
            ("[:, None, None, :]", "[:, None, :]", "~hidden", "~hidden[:, :, None]")
        ),
        "key_padding_mask is not used: queries look at the fillers": (
            (
                "attn_mask | key_padding_mask[:, None, None, :]",
                "attn_mask.expand(len(key_padding_mask), 1, *attn_mask.shape)",
            )
        ),
        "attn_mask is not used: queries look ahead": (
            "attn_mask | key_padding_mask[:, None, None, :]",
            "key_padding_mask[:, None, None, :].expand(-1, 1, *attn_mask.shape)",
        ),
        "a & p hides a key only where both masks hide it; one is enough: ~(a | p)": (
            "attn_mask |",
            "attn_mask &",
            "~hidden",
            "hidden",
        ),
        "what both masks hide is open again: ^ means one of the two; use |": (
            "attn_mask | key",
            "attn_mask ^ key",
        ),
        "you build a causal mask of your own; use the attn_mask that is given": (
            "attn_mask | key",
            "torch.ones_like(attn_mask).triu(1) | key",
        ),
    },
    hidden=_more_may_look,
)


def _three_back_picture() -> Any:
    from lesson_lib import charts

    n = 10
    where = torch.eye(n, device="cpu")
    query = 7 * torch.cat([torch.zeros(3, n, device="cpu"), where[:-3]])  # token i asks for position i - 3
    table = attend(query, where, where, score=dot).weights
    tokens = [str(i) for i in range(1, n + 1)]
    return charts.heatmap(
        table,
        alt=(
            "Heat map of weights, 10 queries by 10 keys: a bright line parallel to the diagonal, three cells"
            " to its left."
        ),
        caption=(
            "Row i is bright in column i - 3. The first three queries have no such key: their weights are"
            " equal."
        ),
        rows=tokens,
        columns=tokens,
        numbers=False,
        limits=(0.0, 1.0),
        color_axis="weight",
    )


three_back = Choice(
    name="three_back",
    title="What does this head look like? Predict the picture",
    stars=1,
    minutes=4,
    why="you will read many maps of heads; which side of the diagonal is the past?",
    asked=(
        "rows are queries, columns are keys, token 1 is on top and on the left; a head looks 3 tokens back."
        " What is bright?"
    ),
    options={
        "a": "a line parallel to the diagonal, below it: row i is bright in column i - 3",
        "b": "a line parallel to the diagonal, above it: row i is bright in column i + 3",
        "c": "column 3",
        "d": "row 3",
        "e": "the diagonal, three times as bright",
        "f": "everything below the diagonal",
    },
    hints=(
        "Which row is the query of token 7, and which column is the key of token 4?",
        "Go on to token 8: which key does it look at, and where is that cell, seen from the one before?",
        (
            "Counting starts in the upper left corner. Is a cell whose column is smaller than its row below"
            " or above the diagonal?"
        ),
    ),
    solution=(
        "a: query i looks at key i - 3, three cells to the left of the diagonal, which is below it. The first"
        " three have no such key."
    ),
    remember=(
        "with queries as rows, what is below the diagonal is the past; a head that looks k back is a line k"
        " cells to the left"
    ),
    slips={
        "b is a head that looks 3 tokens AHEAD: its columns (keys) are larger than its rows (queries)": "b",
        "c is a head in which everybody looks at token 3; here each looks at a token of its own": "c",
        "d is token 3 alone looking at everything; its weights sum to 1, and the other rows have some, too": (
            "d"
        ),
        "e is each token looking at itself; a weight is 1 at most": "e",
        "f is where a causal mask lets a head look; this head looks at one of these cells": "f",
    },
    answer="a",
    picture=_three_back_picture,
)


why = Open(
    name="why_two_heads",
    title="One number, two questions, in your own words",
    stars=3,
    minutes=8,
    why="a short proof, and a good reason for a second head",
    asked=(
        "only two symbols, x and y, and values that do not tell places: why can ONE head with linear read-outs"
        " not name both the token at i-1 and that at i-3?"
    ),
    hints=(
        (
            "The values are v_x or v_y, nothing else. Where can a weighted mean of them lie, and how many"
            " numbers say where?"
        ),
        (
            "Let p be the total weight on x. A linear read-out that names x or y: what does it do to the axis"
            " of p?"
        ),
        "Two cuts divide a line into how many pieces, and how many answers are there: xx, xy, yx, yy?",
    ),
    solution=(
        "With two symbols every output of one head is p v_x + (1 - p) v_y: it lies on the segment between two"
        " values, and one number p, the total weight on x, says where. A linear read-out cuts this line at"
        " one threshold. Two read-outs are two thresholds, which make three pieces, but there are four"
        " answers: xx, xy, yx and yy. A second head gives a second number."
    ),
    remember=(
        "one head hands on one weighted mean; two questions at once need two means, or something behind it"
        " that is not linear"
    ),
    slips={
        "one head can look at several tokens, half and half; what cannot be done is to tell them apart afterwards": (
            r"(look|attend)s? (only )?(at|to) (only )?(one|a single) (token|key|position)|only one"
            r" (token|position)|"
            r"one (token|position|place|key) (only|at a time)|attend to two \w+ at once"
        ),
        "width does not help: with two symbols the outputs lie on one line, however wide the values are": (
            r"\bwider\b|too narrow|too small|too few dimensions|capacity"
        ),
        "it is no matter of training: there are no weights that do it": (
            r"(more|longer|better|enough) training|train\w* (longer|more)|gradient|converge|local minimum"
        ),
        "several heads of smaller width cost as much as one, and are no faster": (
            r"\bfaster\b|\bcheaper\b|parallel|\bspeed"
        ),
        "several heads have as many parameters as one of the full width": (
            r"(more|fewer|enough|extra) parameters"
        ),
        "no distance is too far: a head may look at any token": r"too far|out of reach|long distance",
    },
    points=(
        "where do the outputs of one head lie, if there are two values only?",
        "what is a linear read-out, on that line?",
        "which answers must it tell apart, and how many pieces are there for them?",
    ),
)


EXERCISES = (*multi_head.ASKED, counted, together, whole, silence, polarity, three_back, why)
