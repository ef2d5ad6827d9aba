"""Exercises of lesson 03, matrix form: how does attention become a few matrix products?"""

from typing import Any

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Choice, Number, Open
from lesson_lib.checks.inputs import drawn
from lesson_lib.checks.lesson_03_code import columns, mixing, product
from lesson_lib.scores import dot

learned = Number(
    name="learned_numbers",
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
    right=(131072, "512 * (64 + 64 + 128)", "2 * 512 * 64 + 512 * 128"),
)


def _bright_picture() -> Any:
    from lesson_lib import plots

    query, key = drawn(41, 5, 3).abs() + 0.5, drawn(42, 5, 3).abs() * 0.3
    key[2] = 1.2
    table = attend(query, key, key, score=dot).weights
    tokens = [str(i) for i in range(1, 6)]
    return plots.heatmap(
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
    title="Which way is bright?",
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
    right=("a", "A)"),
    picture=_bright_picture,
)

cost = Number(
    name="regrouped_cost",
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
        "that is n, or (n/d)^2; one d stays on each side": 4096,
        "you counted two products on the left and one on the right; both sides have two": 128,
        "you counted one product on the left and two on the right; both sides have two": 32,
        "that is the difference n - d; asked is how many times": "4096 - 64",
    },
    right=(64, "4096 / 64", "(2 * 4096**2 * 64) / (2 * 4096 * 64**2)"),
)

why = Open(
    name="why_not_regroup",
    title="What the softmax forbids",
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
    wrong={
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
        "the scale is a number; it can move through products freely": r"sqrt|√|\bdivi[ds]",
        "rounding has nothing to do with it: it is wrong in exact arithmetic, too": r"\bround|precision",
    },
    points={
        "which property of softmax forbids it?": (
            r"non-?\s?linear|not (a )?linear|isn't linear|whole row|entire row|each row|every score|all (the"
            r" )?scores"
        ),
        "what may be moved in a pure matrix product?": (
            r"bracket|regroup|associat|order|k\^?t ?@? ?v|first|pure product|chain"
        ),
        "what would you put in the place of exp(q . k)?": (
            r"feature|phi|kernel|linear attention|without (the )?softmax|no"
            r" softmax|remov|omit|drop|leav|replac|lineari"
        ),
    },
    slips={
        "matrix products ARE associative; that is why it works without softmax": (
            "Here associativity of the product fails."
        ),
        "the order of factors is kept; nothing is commuted here": (
            "Matrices commute only if they are diagonal."
        ),
        "the shapes fit: (n, d_k) by (d_k, m) by (m, d_v) in both groupings": "The shapes would mismatch.",
        "it is not about speed: softmax costs little, it forbids the regrouping": (
            "Because softmax is too slow."
        ),
        "the scale is a number; it can move through products freely": "Because of the division by sqrt(d).",
        "rounding has nothing to do with it: it is wrong in exact arithmetic, too": (
            "It would lose precision."
        ),
    },
    right=(
        (
            "Softmax is not linear, it needs a whole row of scores first; with a product of features phi(q)"
            " phi(k) in place of exp the brackets could be moved."
        ),
        (
            "Only a pure chain of products is associative. The softmax in between depends on all scores of a"
            " row; replacing it by a kernel feature map gives linear attention."
        ),
    ),
)

EXERCISES = (learned, product, mixing, columns, bright, cost, why)
