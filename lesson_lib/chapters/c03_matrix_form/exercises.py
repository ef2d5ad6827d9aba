"""Exercises of lesson 03, matrix form: how does attention become a few matrix products?

In the learner's order. A slip is a sentence and the wrong answer that it is told to: a number, a letter, or an edit of
the solution's text (old, new).
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.overrides import TorchFunctionMode

from lesson_lib.attention import attend, attend_columns
from lesson_lib.chapters.c03_matrix_form import matrix_form, seconds
from lesson_lib.checks.exchanged import exchanged
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.short import Choice, Number, Open
from lesson_lib.scores import dot

learned = Number(
    name="learned_numbers",
    second=lambda n: seconds.learned_numbers(learned, n),
    title="What is learned?",
    stars=1,
    minutes=4,
    why=(
        "attention has few parameters, and none of them counts tokens: that is why it takes inputs of any"
        " length"
    ),
    asked=(
        "W_q, W_k, W_v and nothing else: d_model = 512, d_k = 64, d_v = 128, n = 100 tokens. How many learned"
        " numbers?"
    ),
    value=512 * 64 * 2 + 512 * 128,
    tolerance=1e-6,
    hints=(
        "Which of Q, K, V, A, A', W_q, W_k, W_v change from input to input, and which stay?",
        "What shape has each matrix that stays?",
        "W_q and W_k are (64, 512). What is W_v, and does n = 100 occur anywhere?",
    ),
    solution="W_q and W_k: 2 * 512 * 64; W_v: 512 * 128; together 131,072. n does not occur.",
    remember="only W_q, W_k, W_v are learned; Q, K, V and the weights are computed anew for every input",
    slips={
        "W_v is missing: values have a matrix of their own": "2 * 512 * 64",
        "A (100 x 100) is computed from the input, not learned": "131072 + 100 * 100",
        "you counted biases; here there are none": "131072 + 64 + 64 + 128",
        "you gave W_v the width of the keys; d_v = 128 is its own": "3 * 512 * 64",
        "the matrices are shared by all tokens: do not multiply by n": "131072 * 100",
        "you added W_o, which mixes several heads; one head has none here": "131072 + 128 * 512",
        "these are the entries of Q, K and V; they are computed, the matrices are learned": (
            "100 * (64 + 64 + 128)"
        ),
    },
    answer="2 * 512 * 64 + 512 * 128",
)


STILL_LOOPS = (
    "the numbers are right, but your function still loops: the more tokens, the more torch operations"
)


class _Operations(TorchFunctionMode):
    """Counts the calls of torch inside a `with`."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return operation(*args, **(kwargs or {}))


def _operations(answer: Callable, n: int) -> int:
    query, key, value = drawn(1, n, 3), drawn(2, n, 3), drawn(3, n, 2)
    with _Operations() as counted:
        answer(query, key, value)
    return counted.count


def _loops(answer: Callable) -> str | None:
    return STILL_LOOPS if _operations(answer, 29) > _operations(answer, 5) else None


def without_loops(
    query: Float[Tensor, "n d_k"],
    key: Float[Tensor, "m d_k"],
    value: Float[Tensor, "m d_v"],
) -> Float[Tensor, "n d_v"]:
    scores = query @ key.mT  # all n * m dot products at once
    return torch.softmax(scores, dim=-1) @ value


def _qkv(query: Tensor, key: Tensor, value: Tensor) -> dict[str, Tensor]:
    return {"query": query, "key": key, "value": value}


def _looped(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return torch.stack([torch.softmax(key @ row, dim=0) @ value for row in query])


def _more_without_loops(drawn: Draw) -> list[Case]:
    shapes = {"query": (11, 5), "key": (13, 5), "value": (13, 3)}
    return [{name: drawn(i, *shape) for i, (name, shape) in enumerate(shapes.items())}]


product = Write(
    name="without_loops",
    second=lambda n: seconds.without_loops(product, n),
    title="Three loops, two products",
    stars=2,
    minutes=8,
    why="the same arithmetic, without Python in between: all tokens are computed in parallel",
    asked=(
        "outputs[i] = sum over j of softmax_j(query_i . key_j) value_j, for all i, without a loop (no"
        " 1/sqrt(d) here)"
    ),
    stages=(
        Stage(
            "one query, one key",
            lambda: [_qkv(table([[3.0, 1.0]]), table([[2.0, 5.0]]), table([[2.0, 30.0, 500.0]]))],
            "With a single key, its weight is 1: the output is the value.",
        ),
        Stage(
            "one query, three keys",
            lambda: [_qkv(table([[1.0, 0.5]]), drawn(2, 3, 2), primes(3, 2))],
            "The weights of one query are softmax of its scores over the keys.",
        ),
        Stage(
            "two queries, three keys",
            lambda: [_qkv(drawn(4, 2, 2), drawn(5, 3, 2), primes(3, 5))],
            "One query is right, two are not: every row needs a softmax of its own.",
        ),
        Stage(
            "as many queries as keys, and more of everything",
            lambda: [
                _qkv(drawn(6, 3, 3), drawn(7, 3, 3), primes(3, 3)),
                _qkv(drawn(8, 5, 3), drawn(9, 7, 3), primes(7, 2)),
            ],
            "Which axis counts queries, and which keys? Sizes that are equal by chance hide the answer.",
        ),
    ),
    reference=lambda query, key, value: attend(query, key, value, score=dot).output,
    extra=_loops,
    hints=(
        (
            "The innermost loop adds up query[i, c] * key[j, c] over c. Which product of two matrices has"
            " these sums as entries?"
        ),
        "The table of scores is (n, m). What does `.mT` do to key, and along which axis does softmax run?",
        (
            "The last loop adds up weights[i, j] * value[j] over j. Is that `weights @ value` or `value @"
            " weights`?"
        ),
    ),
    solution=without_loops,
    remember=(
        "n * m dot products are one product, query @ key.mT; n weighted sums are another, weights @ value"
    ),
    slips={
        "your softmax runs over queries (dim=0); it must run over keys (dim=-1)": ("dim=-1", "dim=0"),
        "you divide by sqrt(d_k); the loops here do not": ("key.mT", "key.mT / query.shape[-1] ** 0.5"),
        "one softmax over the whole table: each query needs its own": (
            "torch.softmax(scores, dim=-1)",
            "scores.flatten().softmax(0).view_as(scores)",
        ),
        "softmax is missing: these are scores, not weights": ("torch.softmax(scores, dim=-1)", "scores"),
        "exp is there, but it is not divided by its sum over the row: a row of weights sums to 1": (
            "torch.softmax(scores, dim=-1)",
            "scores.exp()",
        ),
        "your outputs stand in columns, (d_v, n); each output is a row": (
            "torch.softmax(scores, dim=-1) @ value",
            "(torch.softmax(scores, dim=-1) @ value).mT",
        ),
        "you give back the weights; mix the values with them": (" @ value", ""),
        "every output is the same average of the values: the scores are not used": (
            ("torch.softmax(scores, dim=-1) @ value", "value.mean(0, keepdim=True).expand(len(query), -1)")
        ),
        STILL_LOOPS: _looped,
        "you divide the scores by their sum; softmax takes e to each score first": (
            "torch.softmax(scores, dim=-1)",
            "(scores / scores.sum(-1, keepdim=True))",
        ),
        **exchanged("scores = query"),
    },
    hidden=_more_without_loops,
)


def mix_in_columns(
    V: Float[Tensor, "d_v n"],
    A_prime: Float[Tensor, "n n"],
) -> Float[Tensor, "d_v n"]:
    return V @ A_prime


def _columns_that_sum_to_one(seed: int, n: int) -> Tensor:
    parts = drawn(seed, n, n).abs() + 0.1
    return parts / parts.sum(0)


def _more_mix_in_columns(drawn: Draw) -> list[Case]:
    return [{"V": drawn(1, n, 11), "A_prime": drawn(2, 11, 11).softmax(0)} for n in (5, 11)]


mixing = Write(
    name="mix_in_columns",
    second=lambda n: seconds.mix_in_columns(mixing, n),
    title="The order that runs: a repair",
    stars=1,
    minutes=5,
    why="with d_v = n the wrong order raises no error; only the numbers know",
    asked=(
        "repair the function: tokens are columns, and column i of the result mixes the columns of V by column"
        " i of A'"
    ),
    repair=True,
    stages=(
        Stage(
            "two tokens of width 2: every order runs",
            lambda: [{"V": table([[2.0, 30.0], [7.0, 500.0]]), "A_prime": table([[0.75, 0.5], [0.25, 0.5]])}],
            "Output 1 is 0.75 of V's first column and 0.25 of its second.",
        ),
        Stage(
            "two tokens of width 3: only one order fits",
            lambda: [{"V": primes(3, 2), "A_prime": table([[0.75, 0.5], [0.25, 0.5]])}],
            "V is (d_v, n) and A' is (n, n): which of the two must stand on the left?",
        ),
        Stage(
            "five tokens",
            lambda: [{"V": primes(3, 5), "A_prime": _columns_that_sum_to_one(3, 5)}],
            "Columns of A' sum to 1; rows do not.",
        ),
    ),
    hints=(
        "In a product M @ N, what does column i of the result mix: columns of M, or rows of N?",
        "So which of V and A' must stand on the left, if columns of V are to be mixed?",
        (
            "Check it by hand: V = [[2, 30], [7, 500]], weights (0.75, 0.25). Which order gives (9, 130.25)"
            " as first column?"
        ),
    ),
    solution=mix_in_columns,
    remember=(
        "columns: O = V A'; rows: O = A V. A product on the right mixes columns, on the left it mixes rows"
    ),
    slips={
        "this is still the function as it was given": ("return V @ A_prime", "return A_prime @ V"),
        "A' is transposed here: its columns are the tokens' weights already": (
            "V @ A_prime",
            "V @ A_prime.mT",
        ),
        "A' is transposed and on the left: it mixes rows of V": ("V @ A_prime", "A_prime.mT @ V"),
        "A' holds weights already, each column sums to 1; no second softmax": (
            "V @ A_prime",
            "V @ A_prime.softmax(0)",
        ),
        "the numbers are right, but tokens stand in rows; leave them in columns": (
            "V @ A_prime",
            "(V @ A_prime).mT",
        ),
        "the product of V^T and A' mixes features into tokens; V is (d_v, n) and stays so": (
            "V @ A_prime",
            "V.mT @ A_prime",
        ),
        "that is an entry-by-entry product (*); asked is the matrix product (@)": (
            "V @ A_prime",
            "V * A_prime",
        ),
        "A' stands left of V^T: it weighs by its rows, and tokens come out as rows": (
            "V @ A_prime",
            "A_prime @ V.mT",
        ),
    },
    hidden=_more_mix_in_columns,
)


def attention_in_columns(
    I: Float[Tensor, "d_model n"],
    W_q: Float[Tensor, "d_k d_model"],
    W_k: Float[Tensor, "d_k d_model"],
    W_v: Float[Tensor, "d_v d_model"],
) -> Float[Tensor, "d_v n"]:
    Q, K, V = W_q @ I, W_k @ I, W_v @ I
    A = K.mT @ Q  # A[j, i]: key j for query i
    return V @ torch.softmax(A, dim=-2)


def _lecture(seed: int, d_model: int, n: int, d_k: int, d_v: int) -> dict[str, Tensor]:
    sizes = {"I": (d_model, n), "W_q": (d_k, d_model), "W_k": (d_k, d_model), "W_v": (d_v, d_model)}
    return {name: drawn(seed + i, *shape, spread=0.8) for i, (name, shape) in enumerate(sizes.items())}


def _more_attention_in_columns(drawn: Draw) -> list[Case]:
    shapes = {"I": (7, 11), "W_q": (3, 7), "W_k": (3, 7), "W_v": (5, 7)}
    return [{name: drawn(i, *shape, spread=0.8) for i, (name, shape) in enumerate(shapes.items())}]


columns = Write(
    name="attention_in_columns",
    second=lambda n: seconds.attention_in_columns(columns, n),
    title="The lecture's letters",
    stars=3,
    minutes=12,
    why="half of what is written on attention uses columns; reading it, you translate in your head",
    asked=(
        "self-attention with tokens as columns: Q = W_q I, K = W_k I, V = W_v I, A = K^T Q, softmax, O = V A'"
        " (no 1/sqrt(d))"
    ),
    stages=(
        Stage(
            "one token: the output is W_v I",
            lambda: [_lecture(1, 2, 1, 3, 5)],
            "With one token the only weight is 1. Do the matrices stand on the left of I?",
        ),
        Stage(
            "two tokens, queries and keys of width 1",
            lambda: [_lecture(11, 2, 2, 1, 3)],
            "Each COLUMN of A belongs to one query. Along which axis must it sum to 1?",
        ),
        Stage(
            "three tokens, width 2, d_v = n",
            lambda: [_lecture(21, 5, 3, 2, 3)],
            "Here d_v = n: every order of V and A' runs, one is right.",
        ),
        Stage(
            "seven tokens",
            lambda: [_lecture(31, 5, 7, 2, 3), _lecture(41, 3, 5, 3, 3)],
            "Compare the shape of every matrix with the lecture's.",
        ),
    ),
    reference=lambda I, W_q, W_k, W_v: attend_columns(I, W_q, W_k, W_v).O,
    hints=(
        "Q is (d_k, n): query i is column i. What is entry (j, i) of K^T Q?",
        "All scores of ONE query: are they in a row or in a column of A? Which `dim` of softmax is that?",
        "V is (d_v, n), and column i of O is to mix V's columns. On which side does A' stand?",
    ),
    solution=attention_in_columns,
    remember=(
        "columns are rows transposed: A = K^T Q = (Q_rows K_rows^T)^T, softmax runs down each column, O ="
        " V A'"
    ),
    slips={
        "your softmax runs along rows (dim=-1); a query's scores stand in a column (dim=-2)": (
            "dim=-2",
            "dim=-1",
        ),
        "A = Q^T K puts query i into row i; then columns belong to keys. A = K^T Q is asked": (
            "K.mT @ Q",
            "Q.mT @ K",
        ),
        "you divide by sqrt(d_k); the lecture does not": ("K.mT @ Q", "K.mT @ Q / len(Q) ** 0.5"),
        "A' on the left mixes the rows of V; O = V A'": (
            "V @ torch.softmax(A, dim=-2)",
            "torch.softmax(A, dim=-2) @ V",
        ),
        "A' is transposed in the last product; its columns are the weights already": (
            "dim=-2)",
            "dim=-2).mT",
        ),
        "your outputs are rows; leave tokens in columns, (d_v, n)": (
            "V @ torch.softmax(A, dim=-2)",
            "(V @ torch.softmax(A, dim=-2)).mT",
        ),
        "softmax is missing: V is mixed with the raw scores": ("torch.softmax(A, dim=-2)", "A"),
        "K is used in place of V: each token has three vectors, and V is what is mixed": (
            "return V",
            "return K",
        ),
        "one softmax over the whole table: each query needs its own, down its column": (
            "torch.softmax(A, dim=-2)",
            "A.flatten().softmax(0).view_as(A)",
        ),
        "you divide the scores by their sum; softmax takes e to each score first": (
            "torch.softmax(A, dim=-2)",
            "(A / A.sum(-2, keepdim=True))",
        ),
        **exchanged("A = K", "Q K V", without="kqv qkk"),
    },
    hidden=_more_attention_in_columns,
)


def _bright_picture() -> Any:
    from lesson_lib import charts

    query, key = drawn(41, 5, 3).abs() + 0.5, drawn(42, 5, 3).abs() * 0.3
    key[2] = 1.2
    table = attend(query, key, key, score=dot).weights
    tokens = [str(i) for i in range(1, 6)]
    return charts.heatmap(
        table.mT,
        alt="Heat map of A', 5 keys by 5 queries: row 3 is bright, all other rows are dark.",
        caption="A' of the column convention: rows are keys. Every query looks at key 3, so row 3 is bright.",
        rows=tokens,
        columns=tokens,
        row_axis="keys",
        column_axis="queries",
        limits=(0.0, 1.0),
    )


bright = Choice(
    name="bright_picture",
    title="Which way is bright? Predict the picture",
    stars=1,
    minutes=4,
    why="before you read an attention map, you must know which axis is the query",
    asked=(
        "tokens are columns, A' = softmax(K^T Q); key 3 is long, and every query points its way. What does A'"
        " look like?"
    ),
    options={
        "a": "row 3 is bright",
        "b": "column 3 is bright",
        "c": "the diagonal is bright",
        "d": "only the cell (3, 3) is bright",
        "e": "all cells are equal",
        "f": "row 3 and column 3 are bright",
    },
    hints=(
        "Entry (j, i) of K^T Q is key j times query i. So what do the rows of A' stand for?",
        "If every query puts its weight on key 3: in which row is that weight, in each of the columns?",
        "And in the row convention, softmax(Q K^T): what would be bright there?",
    ),
    solution="a: rows of A' are keys, so the weight that every query gives to key 3 stands in row 3.",
    remember=(
        "row convention: rows are queries, a popular key is a bright column; column convention: a bright row"
    ),
    slips={
        "b is the row convention, softmax(Q K^T), where rows are queries; here the rows are keys": "b",
        "c would need each query to prefer its own key; here all prefer key 3": "c",
        "d is one query's weight; the other queries look at key 3, too": "d",
        "e would need equal scores; key 3's are larger": "e",
        "f would need query 3 to look at every key; its weights sum to 1, and key 3 has them": "f",
    },
    answer="a",
    picture=_bright_picture,
)


cost = Number(
    name="regrouped_cost",
    second=lambda n: seconds.regrouped_cost(cost, n),
    title="The same product, cheaper",
    stars=2,
    minutes=6,
    why="the whole family of linear attention lives on this one pair of brackets",
    asked=(
        "without softmax (Q K^T) V = Q (K^T V). n = 4,096, d_k = d_v = 64: how many times more"
        " multiplications on the left?"
    ),
    value=64,
    tolerance=1e-4,
    hints=(
        (
            "A product of (a, b) and (b, c) takes a * b * c multiplications. What are the shapes of Q, K^T"
            " and V?"
        ),
        "Left: (4096, 64) by (64, 4096), then (4096, 4096) by (4096, 64). How many is that?",
        "Right: (64, 4096) by (4096, 64), then (4096, 64) by (64, 64). Divide: what cancels?",
    ),
    solution="left 2 n^2 d, right 2 n d^2: the ratio is n / d = 4096 / 64 = 64",
    remember=(
        "(Q K^T) V costs 2 n^2 d, Q (K^T V) costs 2 n d^2: brackets decide, where no softmax stands between"
    ),
    slips={
        "the results are equal, the costs are not: a product of (a, b) and (b, c) takes a * b * c": 1,
        "upside down: that is right over left": "1 / 64",
        "either n alone, or the sizes of the tables; an entry of n^2 costs d, one of d^2 costs n": 4096,
        "you counted two products on the left and one on the right; both sides have two": 128,
        "you counted one product on the left and two on the right; both sides have two": 32,
        "that is the difference n - d; asked is how many times": "4096 - 64",
        "that is how many more, the difference; asked is how many times as many: divide": (
            "2 * 4096**2 * 64 - 2 * 4096 * 64**2"
        ),
    },
    answer="(2 * 4096**2 * 64) / (2 * 4096 * 64**2)",
)


why = Open(
    name="why_not_regroup",
    title="What the softmax forbids, in your own words",
    stars=2,
    minutes=6,
    why="it explains in one move why attention is quadratic, and what linear attention gives up",
    asked=(
        "in two or three sentences: why can softmax(Q K^T) V not be regrouped as Q (K^T V), and what would"
        " allow it?"
    ),
    hints=(
        (
            "Which rule lets you move the brackets in a product of three matrices? What stands between the"
            " two products here?"
        ),
        "To compute one weight, which scores does softmax need?",
        (
            "If the weight of a pair were a product of something of the query and something of the key: what"
            " could you do then?"
        ),
    ),
    solution=(
        "Brackets may be moved in a pure product of matrices. Softmax is not linear: each weight depends on"
        " the whole row of scores, so Q K^T has to be computed, row by row, before V comes in. If exp(q . k)"
        " is replaced by a product of features, phi(q) . phi(k), then K and V can be summed up first and the"
        " cost grows with n instead of n^2: that is linear attention."
    ),
    remember=(
        "softmax stands between the two products: it is what makes attention quadratic, and not just a chain"
        " of products"
    ),
    slips={
        "matrix products ARE associative; that is why it works without softmax": (
            r"associativ.*(fail|does)|\bassociative only"
        ),
        "the order of factors is kept; nothing is commuted here": r"commut",
        "the shapes fit: (n, d_k) by (d_k, m) by (m, d_v) in both groupings": (
            r"shapes? .*(fit|match|mismatch|differ)"
        ),
        "it is not about speed: softmax costs little, it forbids the regrouping": (
            r"softmax is (too )?(slow|expensive)"
        ),
        "the scale is a number; it can move through products freely": (
            r"sqrt|√|\bdivi[ds]\w* by (the )?(root|scale|d_k)"
        ),
        "rounding has nothing to do with it: it is wrong in exact arithmetic, too": r"\bround|precision",
    },
    points=(
        "which property of softmax forbids it?",
        "what may be moved in a pure matrix product?",
        "what would you put in the place of exp(q . k)?",
    ),
)


EXERCISES = (learned, product, mixing, columns, bright, cost, why, *matrix_form.ASKED)
