"""What part 04 asks: five predictions, and two functions that the learner writes."""

from typing import Any

from jaxtyping import Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.chapters.c04_multi_head import seconds
from lesson_lib.checks.exchanged import exchanged
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, primes
from lesson_lib.checks.short import Choice
from lesson_lib.heads import merge_heads, split_heads

PART = "04_multi_head"

four_pairs = Choice(
    name="four_pairs",
    notebook=PART,
    title="Two cuts",
    asked="Choose p for each sentence, and the read-outs, as you like. How many of the four get both right?",
    options={"a": "at most one", "b": "at most two", "c": "at most three", "d": "all four"},
    answer="c",
    remember="two cuts make three pieces, and there are four pairs",
    slips={
        "one cut already tells two pairs apart": "a",
        "each read-out cuts the line of p once; one p may lie right of one cut, left of the other": "b",
        "count the pieces of a line that is cut in two places": "d",
    },
)

view_alone = Choice(
    name="view_alone",
    notebook=PART,
    title="One step too few",
    asked="Three tokens, two heads of width 2: x is (3, 4). What stands in head 0 of x.view(2, 3, 2)?",
    options={
        "a": "the left half of every token",
        "b": "token 0, and half of token 1",
        "c": "the even columns of every token",
        "d": "nothing: it raises an error",
    },
    answer="b",
    remember="a view counts through the numbers in the order of memory",
    slips={
        "that is what it should be; a view never moves a number": "a",
        "a view takes neighbours in memory, and does not skip": "c",
        "2 * 3 * 2 = 3 * 4 numbers: every such shape is accepted": "d",
    },
)


def heads_apart(
    x: Float[Tensor, "*b n width"],
    n_heads: int,
) -> Float[Tensor, "*b h n d"]:
    *batch, n, width = x.shape
    blocks = x.reshape(*batch, n, n_heads, width // n_heads)
    return blocks.transpose(-2, -3)  # heads before tokens


def _counted(x: Tensor, n_heads: int) -> Case:
    return {"x": x, "n_heads": n_heads}


def _more_heads_apart(drawn: Draw) -> list[Case]:
    return [
        {"x": drawn(1, 11, 12), "n_heads": 4},
        {"x": drawn(2, 3, 7, 15), "n_heads": 3},
    ]


write_heads_apart = Write(
    name="heads_apart",
    notebook=PART,
    second=lambda n: seconds.heads_apart(n),
    title="One width, many heads",
    stars=2,
    minutes=8,
    why="one reshape too few, and heads see strange tokens: it runs, it even trains, and it is wrong",
    asked=(
        "cut the width of x (..., n, h*d) into h neighbouring blocks of d columns, one per head: (..., h,"
        " n, d)"
    ),
    stages=(
        Stage(
            "one token, two heads",
            lambda: [_counted(primes(1, 6), 2)],
            "The first head takes the first 3 columns, the second the next 3.",
        ),
        Stage(
            "three tokens, three heads: every order of n and h fits",
            lambda: [_counted(primes(3, 6), 3)],
            "Each head holds its own columns of EVERY token, one row per token.",
        ),
        Stage(
            "five tokens, two heads of width 3",
            lambda: [_counted(primes(5, 6), 2)],
            "The axes are asked for in the order heads, tokens, columns.",
        ),
        Stage(
            "a batch of two sequences",
            lambda: [_counted(primes(2, 3, 10), 5), _counted(drawn(1, 2, 3, 5, 14), 7)],
            "One sequence is right, a batch is not: count axes from the right, -1, -2, -3.",
        ),
    ),
    reference=split_heads,
    hints=(
        (
            "Take one token, a row of h*d numbers. Into which shape do you reshape this row, so that row k"
            " belongs to head k?"
        ),
        (
            "Now for all tokens: reshape cuts the last axis only, (n, h*d) to (n, h, d). Which two axes still"
            " stand in the wrong order?"
        ),
        (
            "Which `transpose` exchanges tokens and heads, if you count axes from the right, so that a batch"
            " axis may stand in front?"
        ),
    ),
    solution=heads_apart,
    remember=(
        "cut the width where it is (reshape), then move the axis (transpose); one reshape alone mixes heads"
        " with tokens"
    ),
    slips={
        "you reshape straight to (h, n, d), so a head gets all columns of few tokens: first cut the width": (
            "n, n_heads, width // n_heads)",
            "n_heads, n, width // n_heads)",
            ".transpose(-2, -3)",
            "",
        ),
        "the axes are still (n, h, d): exchange tokens and heads": (".transpose(-2, -3)", ""),
        "each head gets every h-th column; its columns are neighbours": (
            (
                "n, n_heads, width // n_heads",
                "n, width // n_heads, n_heads",
                ".transpose(-2, -3)",
                ".movedim(-1, -3)",
            )
        ),
        "you exchange heads and columns; exchange tokens and heads": (".transpose(-2, -3)", ".mT"),
        "you moved the right axis, but tokens stand last: (h, d, n); each row is to be a token": (
            (".transpose(-2, -3)", ".movedim(-3, -1)")
        ),
        "n_heads is the number of heads; you took it for the width of one": (
            ("n_heads, width // n_heads", "width // n_heads, n_heads")
        ),
        "you count axes from the left: in a batch, axis 0 counts sequences": (("(-2, -3)", "(0, 1)")),
        "every head gets the whole width; each has a block of its own": (
            "x.reshape(*batch, n, n_heads, width // n_heads)",
            "torch.stack([x] * n_heads, -2)",
        ),
        "you transpose before the reshape: that cuts the axis of the tokens": (
            "x.reshape(*batch, n, n_heads,",
            "x.mT.reshape(*batch, n_heads, n,",
            ".transpose(-2, -3)",
            "",
        ),
        "you count axes from the front, which fits one number of axes in front: take -2 and -3": (
            "transpose(-2, -3)",
            "transpose(1, 2)",
        ),
        "the heads stand in front of the batch; they belong right before the tokens": (
            "blocks.transpose(-2, -3)",
            "blocks.movedim(-2, 0)",
        ),
    },
    hidden=_more_heads_apart,
)


by_hand = Choice(
    name="by_hand",
    notebook=PART,
    title="Move a weight",
    asked="In the head that walks, move the weight from animal to street by hand. Which answers change?",
    options={"a": "what is it", "b": "who acted", "c": "both", "d": "none: the sentence is the same"},
    answer="a",
    remember="each answer follows the weights of its own head",
    slips={
        "who acted is read from the other head, which we leave alone": "b",
        "each answer has its own head; one of them is as it was": "c",
        "the read-outs see mixtures only, and one mixture is another now": "d",
    },
)

who_asks = Choice(
    name="who_asks",
    notebook=PART,
    title="Let it ask",
    asked="Let 'it' ask. Put wide for tired. How do its weights on animal and street change?",
    options={
        "a": "they move to the street",
        "b": "a little, not enough",
        "c": "not at all",
    },
    answer="c",
    remember="the query comes from 'it', the keys from the nouns; the last word is in none of them",
    slips={
        "to move, the query or a key must know the last word; which of them does?": "a",
        "query and keys are the same numbers as before, so the scores are, too": "b",
    },
)

torch_says = Choice(
    name="torch_says",
    notebook=PART,
    title="True means the opposite",
    asked="nn.MultiheadAttention gets our causal mask, True = may look. What does a token see?",
    options={"a": "the past and itself", "b": "the future only", "c": "everything", "d": "itself only"},
    answer="b",
    remember="in this layer True means hidden",
    slips={
        "so it is here, and in torch's function; torch's layer reads the mask the other way": "a",
        "it does hide what is True": "c",
        "the diagonal is True in our mask, so it is hidden as well": "d",
    },
)


def several_heads(
    query: Float[Tensor, "b n h_d"],
    key: Float[Tensor, "b m h_d"],
    value: Float[Tensor, "b m h_v"],
    w_output: Float[Tensor, "h_v d_model"],
    n_heads: int,
) -> Float[Tensor, "b n d_model"]:
    def split(x):  # (b, n, h * d) to (b, h, n, d)
        return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)

    mixed = attend(split(query), split(key), split(value)).output
    return mixed.transpose(1, 2).flatten(2) @ w_output


def _case(seed: int, b: int, n: int, m: int, h: int, d: int, v: int, out: int, draw: Any = drawn) -> Case:
    shapes = {"query": (b, n, h * d), "key": (b, m, h * d), "value": (b, m, h * v), "w_output": (h * v, out)}
    case = {name: draw(seed + i, *shape) for i, (name, shape) in enumerate(shapes.items())}
    return case | {"n_heads": h}


def _more_several_heads(draw: Draw) -> list[Case]:
    return [_case(1, 3, 5, 7, 2, 3, 4, 11, draw), _case(11, 2, 3, 2, 5, 2, 3, 7, draw)]


write_several_heads = Write(
    name="several_heads",
    notebook=PART,
    second=lambda n: seconds.several_heads(write_several_heads, n),
    title="Several heads at once",
    stars=2,
    minutes=6,
    why="five lines, and you have written the layer that every Transformer calls",
    asked="split query, key and value into heads, attend, join each token's heads, multiply by w_output",
    stages=(
        Stage(
            "one head, one key: the output is value @ w_output",
            lambda: [_case(21, 1, 2, 1, 1, 2, 3, 2) | {"value": primes(3)[None, None]}],
            "With one key its weight is 1, and with one head there is nothing to cut.",
        ),
        Stage(
            "two heads, one token",
            lambda: [_case(31, 1, 1, 3, 2, 2, 2, 4)],
            "Each head has its own weights over the three keys.",
        ),
        Stage(
            "three heads, three tokens: every order of the axes fits",
            lambda: [_case(41, 1, 3, 3, 3, 2, 2, 5)],
            "On the way back swap the axes first, then flatten the last two.",
        ),
        Stage(
            "two lists, five queries, seven keys, values wider than keys",
            lambda: [_case(51, 2, 5, 7, 2, 3, 4, 3)],
            "Let `n_heads` decide where to cut: unflatten(-1, (n_heads, -1)).",
        ),
    ),
    reference=lambda query, key, value, w_output, n_heads: (
        merge_heads(attend(*(split_heads(x, n_heads) for x in (query, key, value))).output) @ w_output
    ),
    hints=(
        "You have cut one tensor into heads before. Which three need it here?",
        "`attend` takes leading axes as they are. What shape has its output, and where do the heads stand?",
        "Which two axes must be neighbours, before h and d can become one?",
    ),
    solution=several_heads,
    hidden=_more_several_heads,
    remember="split three, attend once, swap back, flatten, W_o",
    slips={
        "W_o is missing: the heads stand side by side, and nothing has mixed them": (" @ w_output", ""),
        "the heads are not split: this is one head of the full width": (
            "return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)",
            "return x[:, None]",
        ),
        "you split by a view alone, which mixes heads with tokens: cut the width, then swap": (
            "x.unflatten(-1, (n_heads, -1)).transpose(1, 2)",
            "x.reshape(len(x), n_heads, x.shape[1], -1)",
        ),
        "the split is right, the way back is not: swap heads and tokens before you flatten": (
            "mixed.transpose(1, 2).flatten(2)",
            "mixed.reshape(len(query), query.shape[1], -1)",
        ),
        "you add the heads up; put them side by side, as w_output has a row for each of their columns": (
            "mixed.transpose(1, 2).flatten(2)",
            "mixed.sum(1)",
        ),
        "the columns of the heads alternate; w_output expects all of head 0 first": (
            "mixed.transpose(1, 2).flatten(2)",
            "mixed.movedim(1, -1).flatten(2)",
        ),
        "query and key have changed places: each query needs a row of weights": (
            "split(query), split(key)",
            "split(key), split(query)",
        ),
        "inside each token heads look at heads: swap heads and tokens before you attend": (
            "(n_heads, -1)).transpose(1, 2)",
            "(n_heads, -1))",
            "mixed.transpose(1, 2).flatten(2)",
            "mixed.flatten(2)",
        ),
        "each head gets every h-th column; its columns are neighbours": (
            "x.unflatten(-1, (n_heads, -1)).transpose(1, 2)",
            "x.unflatten(-1, (-1, n_heads)).movedim(-1, 1)",
        ),
        "your scores are divided by the root of the full width; a head has a width of its own, d": (
            "attend(split(query)",
            "attend(split(query) / n_heads**0.5",
        ),
        "you transpose w_output; it is (h_v, d_model) already, unlike the weight of nn.Linear": (
            "@ w_output",
            "@ w_output.mT",
        ),
        "the last head comes first; w_output expects head 0 first": (
            "mixed.transpose(1, 2)",
            "mixed.flip(1).transpose(1, 2)",
        ),
        "your scores are divided by the root of n_heads; take the root of a head's width, d": (
            "attend(split(query)",
            "attend(split(query) * (query.shape[-1] // n_heads / n_heads) ** 0.5",
        ),
        "your scores are not divided by the root of a head's width": (
            "attend(split(query)",
            "attend(split(query) * (query.shape[-1] // n_heads) ** 0.5",
        ),
        "your softmax runs over the queries (dim=-2); it must run over the keys (dim=-1)": (
            "attend(split(query), split(key), split(value)).output",
            "((split(query) @ split(key).mT / (query.shape[-1] // n_heads) ** 0.5).softmax(-2)"
            " @ split(value))",
        ),
        "a relu follows w_output: what is negative is lost": (
            "return mixed.transpose(1, 2).flatten(2) @ w_output",
            "return (mixed.transpose(1, 2).flatten(2) @ w_output).relu()",
        ),
        **exchanged("mixed = attend", without="kqv"),
    },
)

ASKED = (
    four_pairs,
    write_heads_apart,
    view_alone,
    write_several_heads,
    by_hand,
    who_asks,
    torch_says,
)
