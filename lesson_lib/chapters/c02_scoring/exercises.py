"""Exercises of lesson 02, scoring: how relevant is this to that?

In the learner's order. A slip is a sentence and the wrong answer that it is told to: a number, a letter, or an edit of
the solution's text (old, new).
"""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.chapters.c02_scoring import seconds, soft_look_up, which_score
from lesson_lib.checks.exchanged import exchanged
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.short import Choice, Number, Open
from lesson_lib.scores import dot

score_ratio = Number(
    name="score_ratio",
    second=lambda n: seconds.score_ratio(score_ratio, n),
    title="Two points more",
    stars=1,
    minutes=4,
    why="how far does a lead of two points carry? Every table of weights is read so",
    asked=(
        "token 3's scores are [4, 12, 10]; key 2's weight is how many times key 3's? (no 1/sqrt(d), as in the"
        " example)"
    ),
    value=math.exp(2),
    hints=(
        (
            "Each weight is exp(score) over one sum. Which part of that fraction do two keys of the same row"
            " share?"
        ),
        "What remains of weight 2 / weight 3 when the common sum cancels?",
        "exp(a) / exp(b) is exp of what? Put a = 12 and b = 10.",
    ),
    solution="exp(12) / exp(10) = exp(12 - 10) = exp(2) = 7.3891",
    remember=(
        "the ratio of two weights is exp(difference of their scores); a common shift of all scores changes"
        " nothing"
    ),
    slips={
        "you divided the scores (12/10); softmax compares exp(score), so their difference counts": 1.2,
        "that is the difference of the scores; the ratio of the weights is exp of it": 2,
        "upside down: that is key 3's weight over key 2's": "exp(-2)",
        "that is key 2's share of the whole row; asked is key 2 against key 3 alone": 0.88054,
        "you divided the scores by sqrt(3) first; the worked example has no 1/sqrt(d)": "exp(2 / sqrt(3))",
        "you took exp of the ratio 12/10; take exp of the difference": "exp(1.2)",
        "powers of 2: softmax uses powers of e": 4,
        "that is exp(12) alone; divide it by exp(10)": "exp(12)",
    },
    answer="exp(12) / exp(10)",
)


def stable_weights(scores: Float[Tensor, "*b n m"]) -> Float[Tensor, "*b n m"]:
    largest = scores.amax(-1, keepdim=True)
    exponentials = (scores - largest).exp()  # at most 1: no overflow
    return exponentials / exponentials.sum(-1, keepdim=True)


def _more_stable_weights(drawn: Draw) -> list[Case]:
    return [{"scores": 50 * drawn(1, 5, 11)}, {"scores": drawn(2, 3, 2, 7) + 200}]


stable = Write(
    name="stable_weights",
    second=lambda n: seconds.stable_weights(stable, n),
    title="Scores of a thousand",
    stars=2,
    minutes=8,
    why="exp(89) is inf in float32, and inf/inf is nan; one line prevents it, and attend has it too",
    asked=(
        "turn scores (n, m) into weights: each row from 0 up, summing to 1, finite for scores of 1,000,"
        " -1,000 and -inf"
    ),
    stages=(
        Stage(
            "one row, small scores",
            lambda: [{"scores": table([[1.0, 2.0, 4.0]])}],
            "Each weight is exp(score) over the sum of the row's exp(score).",
        ),
        Stage(
            "two rows, each with a sum of its own",
            lambda: [{"scores": table([[0.0, 1.0, 3.0], [2.0, -1.0, 0.5]])}],
            "One row is right, two are not: along which axis do you sum?",
        ),
        Stage(
            "scores of 1,000 and of -1,000",
            lambda: [
                {"scores": table([[1000.0, 1001.0, 999.0]])},
                {"scores": table([[-1000.0, -1002.0, -1001.0]])},
            ],
            "Which number can you subtract from a whole row without changing its weights?",
        ),
        Stage(
            "rows far apart, and one large score in a row",
            lambda: [
                {"scores": table([[500.0, 501.0], [-500.0, -502.0]])},
                {"scores": table([[0.0, 0.0, 700.0]])},
            ],
            "Each row needs a shift of its own, and after it no score may be large.",
        ),
        Stage(
            "a blocked key (-inf), and two sequences at once",
            lambda: [{"scores": table([[1.0, -math.inf, 2.0]])}, {"scores": drawn(3, 2, 5, 3)}],
            "A score of -inf must give the weight 0; leading axes must stay.",
        ),
    ),
    hints=(
        "Add 7 to each score of a row. What happens to each weight, and why?",
        "If any shift is allowed: after which shift is the largest exponential exactly 1?",
        (
            "`scores.amax(-1, keepdim=True)` is each row's maximum, still (n, 1). Where do you subtract it,"
            " where do you sum?"
        ),
    ),
    solution=stable_weights,
    remember="subtract each row's maximum before exp: the weights stay, the overflow goes",
    slips={
        "exp is missing: you divide the scores by their sum": ("(scores - largest).exp()", "scores"),
        "your sums run over queries (dim=-2); they must run over keys (dim=-1)": ("sum(-1", "sum(-2"),
        "your softmax runs along the columns, maximum and sum; a row must sum to 1: dim=-1 for both": (
            "amax(-1",
            "amax(-2",
            "sum(-1",
            "sum(-2",
        ),
        "you did not divide by the row's sum": (" / exponentials.sum(-1, keepdim=True)", ""),
        "exp of the scores as they are: it overflows to inf, or vanishes to 0/0; subtract each row's maximum first": (
            "(scores - largest)",
            "scores",
        ),
        "you subtract the largest score of the whole table; a row far below it becomes 0/0": (
            "scores.amax(-1, keepdim=True)",
            "scores.max()",
        ),
        "you divide by the row's maximum; that changes the differences, and with them the weights": (
            "scores - largest",
            "scores / largest",
        ),
        "you subtract the row's mean; one score far above the mean still overflows": (
            "scores.amax",
            "scores.mean",
        ),
        "you cut large scores off (clamp); differences above the cut are lost": (
            "(scores - largest)",
            "scores.clamp(-80, 80)",
        ),
        "you multiply by the row's sum; divide by it": (
            "exponentials / exponentials",
            "exponentials * exponentials",
        ),
        "one sum for the whole table: each row divides by a sum of its own": (
            "sum(-1, keepdim=True)",
            "sum()",
        ),
    },
    hidden=_more_stable_weights,
)


def scaled_attention(
    query: Float[Tensor, "*b n d_k"],
    key: Float[Tensor, "*b m d_k"],
    value: Float[Tensor, "*b m d_v"],
) -> Float[Tensor, "*b n d_v"]:
    scores = query @ key.mT / query.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return weights @ value


def _qkv(query: Any, key: Any, value: Any) -> dict[str, Tensor]:
    return {"query": query, "key": key, "value": value}


def _more_scaled_attention(drawn: Draw) -> list[Case]:
    shapes = {"query": (3, 11, 7), "key": (3, 13, 7), "value": (3, 13, 5)}
    return [{name: drawn(i, *shape) for i, (name, shape) in enumerate(shapes.items())}]


attention = Write(
    name="scaled_attention",
    second=lambda n: seconds.scaled_attention(attention, n),
    title="Attention in three lines",
    stars=2,
    minutes=10,
    why="this is the function of the whole course; you will meet it again and again",
    asked="mix the values: softmax(query key^T / sqrt(d_k)) value, one output row per query",
    stages=(
        Stage(
            "one query, one key: the output is the value itself",
            lambda: [_qkv(table([[3.0, 1.0]]), table([[2.0, 5.0]]), table([[2.0, 30.0, 500.0]]))],
            "With a single key, its weight is 1, whatever the score.",
        ),
        Stage(
            "one query, three keys, width 1 (so sqrt(d_k) is 1)",
            lambda: [
                _qkv(
                    table([[2.0]]),
                    table([[0.5], [1.5], [1.0]]),
                    table([[2.0, 30.0], [7.0, -50.0], [110.0, 11.0]]),
                )
            ],
            "The weights are softmax of the scores over the keys.",
        ),
        Stage(
            "two queries, three keys, width 1",
            lambda: [_qkv(table([[2.0], [-1.0]]), table([[0.5], [1.5], [1.0]]), primes(3, 2))],
            "The first query alone is right, two are not: each row needs a softmax of its own.",
        ),
        Stage(
            "the scale: width 5",
            lambda: [
                _qkv(drawn(1, 1, 5), drawn(2, 2, 5), primes(2, 3)),
                _qkv(drawn(1, 2, 5), drawn(2, 3, 5), primes(3, 7)),
                _qkv(drawn(6, 3, 5), drawn(7, 3, 5), drawn(8, 3, 5)),
            ],
            "With width 1 it is right, with width 5 it is not: by what do you divide?",
        ),
        Stage(
            "a batch of two sequences",
            lambda: [
                _qkv(drawn(6, 2, 5, 3), drawn(7, 2, 5, 3), drawn(8, 2, 5, 3)),
                _qkv(drawn(3, 2, 3, 5), drawn(4, 2, 7, 5), drawn(5, 2, 7, 2, spread=9.0)),
            ],
            "One sequence is right, a batch is not: .T and dim=0 or 1 count axes from the left; .mT and"
            " dim=-1 from the right.",
        ),
    ),
    reference=lambda query, key, value: attend(query, key, value).output,
    hints=(
        (
            "The scores are one number per (query, key) pair, (n, m). Which product of (n, d_k) and (m, d_k)"
            " has that shape?"
        ),
        "Along which axis must the weights of ONE query sum to 1? Which `dim` is that?",
        (
            "By which number do you divide, where does it come from (`query.shape[...]`), and what mixes the"
            " value rows?"
        ),
    ),
    solution=scaled_attention,
    remember="scores (n, m) -> divide by sqrt(d_k) -> softmax over keys -> times values (m, d_v)",
    slips={
        "you forgot to divide by sqrt(d_k)": (" / query.shape[-1] ** 0.5", ""),
        "your softmax runs over queries (dim=-2); it must run over keys (dim=-1)": ("dim=-1", "dim=-2"),
        "you divide by d_k; divide by its square root": (" ** 0.5", ""),
        "you multiply by sqrt(d_k); divide by it": ("/ query.shape", "* query.shape"),
        "you divide by the root of the value's width; d_k is the width of query and key": (
            "query.shape[-1]",
            "value.shape[-1]",
        ),
        "you divide by the root of the number of keys; d_k is the width of query and key": (
            "query.shape[-1]",
            "key.shape[-2]",
        ),
        "you give back the weights; multiply them with the values": ("weights @ value", "weights"),
        "softmax is missing: you mix the values with the raw scores": (
            "torch.softmax(scores, dim=-1)",
            "scores",
        ),
        "you divide after the softmax; the scale belongs to the scores": (
            " / query.shape[-1] ** 0.5",
            "",
            "dim=-1)",
            "dim=-1) / query.shape[-1] ** 0.5",
        ),
        "you take the best key only (argmax); attention mixes all values": (
            "torch.softmax(scores, dim=-1)",
            "(scores == scores.amax(-1, keepdim=True)).float()",
        ),
        "you divide by the root of the number of queries; d_k is the width of query and key": (
            "query.shape[-1]",
            "query.shape[-2]",
        ),
        "your softmax runs over the first axis (dim=0), in a batch over the sequences; it must run over keys (dim=-1)": (
            "dim=-1",
            "dim=0",
        ),
        "one softmax over the whole table: each query needs its own": (
            "torch.softmax(scores, dim=-1)",
            "scores.flatten(-2).softmax(-1).view_as(scores)",
        ),
        "exp is there, but it is not divided by its sum over the row: a row of weights sums to 1": (
            "torch.softmax(scores, dim=-1)",
            "scores.exp()",
        ),
        "`/ d_k * 0.5` halves, and so does `/ d_k ** 1 / 2`; the root is `** 0.5`": ("** 0.5", "* 0.5"),
        **exchanged("scores = query"),
        "(d_k ** 1 / 2) is d_k / 2, since the power comes first; the root is `** 0.5`": ("** 0.5", "* 2"),
    },
    hidden=_more_scaled_attention,
)


def additive_scores(
    query: Float[Tensor, "n d_q"],
    key: Float[Tensor, "m d_k"],
    w_query: Float[Tensor, "d_q d_hidden"],
    w_key: Float[Tensor, "d_k d_hidden"],
    v: Float[Tensor, " d_hidden"],
) -> Float[Tensor, "n m"]:
    of_queries, of_keys = query @ w_query, key @ w_key
    pairs = of_queries[:, None, :] + of_keys[None, :, :]  # (n, m, d_hidden)
    return torch.tanh(pairs) @ v


def _additive_case(seed: int, n: int, m: int, d_q: int, d_k: int, d_hidden: int) -> dict[str, Tensor]:
    return {
        "query": drawn(seed, n, d_q),
        "key": drawn(seed + 1, m, d_k),
        "w_query": drawn(seed + 2, d_q, d_hidden),
        "w_key": drawn(seed + 3, d_k, d_hidden),
        "v": table([1.0, 10.0, 100.0][:d_hidden]),
    }


def _more_additive_scores(drawn: Draw) -> list[Case]:
    shapes = {
        "query": (11, 3),
        "key": (13, 5),
        "w_query": (3, 7),
        "w_key": (5, 7),
        "v": (7,),
    }
    return [{name: drawn(i, *shape) for i, (name, shape) in enumerate(shapes.items())}]


repair = Write(
    name="additive_scores",
    second=lambda n: seconds.additive_scores(repair, n),
    title="Every query with every key: a repair",
    stars=2,
    minutes=8,
    why="a wrong sum runs whenever n = m, and no error message comes",
    asked=(
        "repair the function: score[i, j] = v . tanh(query_i W_query + key_j W_key), for all i and j, shape"
        " (n, m)"
    ),
    repair=True,
    stages=(
        Stage(
            "one query, one key: a table of one number",
            lambda: [_additive_case(11, 1, 1, 2, 2, 1)],
            "One pair, one number, in a table with one row and one column.",
        ),
        Stage(
            "one pair, a wider hidden layer",
            lambda: [_additive_case(21, 1, 1, 2, 2, 3)],
            "The order is: two projections, their sum, tanh, then v.",
        ),
        Stage(
            "two queries, three keys",
            lambda: [_additive_case(31, 2, 3, 2, 2, 2)],
            "Rows are queries, columns are keys, and each pair meets once.",
        ),
        Stage(
            "queries and keys of different width",
            lambda: [_additive_case(41, 3, 5, 2, 7, 3)],
            "Each side has its own matrix, so the widths need not agree.",
        ),
    ),
    hints=(
        (
            "`query @ w_query` is (n, d_hidden) and `key @ w_key` is (m, d_hidden). Which pairs does a plain"
            " + add up?"
        ),
        "What shape must the sum have to hold every pair? Where does each side need an axis of length 1?",
        (
            "x[:, None, :] has shape (n, 1, d_hidden). What does the other side need, and which axis does `@"
            " v` use up?"
        ),
    ),
    solution=additive_scores,
    remember=(
        "[:, None, :] + [None, :, :] pairs everything with everything: (n, m, d_hidden) numbers, which is"
        " what it costs. The plain sum gave n numbers, the second for query 2 with key 2 only"
    ),
    slips={
        "this is still the function as it was given": (
            "of_queries, of_keys = query @ w_query, key @ w_key",
            "hidden = torch.tanh(query @ w_query + key @ w_key)",
            "    pairs = of_queries[:, None, :] + of_keys[None, :, :]  # (n, m, d_hidden)\n",
            "",
            "torch.tanh(pairs)",
            "hidden",
        ),
        "your table is (m, n): rows are keys; rows must be queries": (
            "of_queries[:, None, :]",
            "of_queries[None, :, :]",
            "of_keys[None, :, :]",
            "of_keys[:, None, :]",
        ),
        "tanh is missing; without it the score is a sum of two numbers that ignore each other": (
            "torch.tanh(pairs)",
            "pairs",
        ),
        "tanh comes last here; it belongs between the sum and v": (
            "torch.tanh(pairs) @ v",
            "torch.tanh(pairs @ v)",
        ),
        "you take tanh of each side before adding; add first": (
            "query @ w_query, key @ w_key",
            "torch.tanh(query @ w_query), torch.tanh(key @ w_key)",
            "torch.tanh(pairs)",
            "pairs",
        ),
        "you multiply the two sides; the additive score adds them": (" + of_keys", " * of_keys"),
        "v is missing: you sum the hidden units, as if v were all ones": (" @ v", ".sum(-1)"),
        "these are weights; asked are the scores, before softmax": (
            "torch.tanh(pairs) @ v",
            "(torch.tanh(pairs) @ v).softmax(-1)",
        ),
        "relu in place of tanh: what is negative is lost": ("torch.tanh(pairs)", "torch.relu(pairs)"),
        "a sigmoid in place of tanh: it is never negative": ("torch.tanh(pairs)", "torch.sigmoid(pairs)"),
        "the matrices are exchanged: w_query belongs to the queries, w_key to the keys": (
            "query @ w_query, key @ w_key",
            "query @ w_key, key @ w_query",
        ),
    },
    hidden=_more_additive_scores,
)


def _unscaled_picture() -> Any:
    from lesson_lib import charts

    query, key = drawn(6, 6, 256), drawn(8, 8, 256)
    value = torch.ones_like(key)
    tables = {
        "weights of q . k": attend(query, key, value, score=dot).weights,
        "weights of q . k / sqrt(256)": attend(query, key, value).weights,
    }
    return charts.heatmap(
        tables,
        alt=(
            "Two heat maps of 6 queries by 8 keys. Left, unscaled: one bright cell in each row. Right,"
            " scaled: a mixture."
        ),
        caption=(
            "Left, plain dot products choose (in one row two scores are close: 0.16 and 0.80). Right, the"
            " same queries and keys of width 256, with scores divided by 16: they mix."
        ),
        limits=(0.0, 1.0),
    )


guess = Choice(
    name="unscaled_picture",
    title="What does width do? Predict the picture",
    stars=1,
    minutes=4,
    why="the picture of saturation: you will recognise it in a model that does not learn",
    asked="6 random queries, 8 random keys, d = 256, plain dot products: what do the weights look like?",
    options={
        "a": "every cell about 1/8",
        "b": "one bright cell in each row, its column left to chance; the others nearly 0",
        "c": "a bright diagonal",
        "d": "one bright column: all queries prefer the same key",
        "e": "one bright cell in each column, so that columns sum to 1",
        "f": "many cells at exactly 0, the rest equal",
    },
    hints=(
        "A score is a sum of 256 products of independent numbers. How large is it, typically?",
        "If scores in a row differ by 16 or so: what is exp(16)?",
        (
            "Is any query related to any particular key here? What does that say about WHERE the bright cells"
            " are?"
        ),
    ),
    solution=(
        "b: scores have a standard deviation of sqrt(256) = 16; softmax turns such gaps into a choice of one"
        " key."
    ),
    remember="unscaled scores grow with sqrt(d); softmax of large scores picks one key and hardly mixes",
    slips={
        "a would need scores that hardly differ; here their standard deviation is sqrt(256) = 16": "a",
        "c would need query i to resemble key i; they were drawn independently": "c",
        "d would need one key with a large score for all queries; random directions have no common favourite": (
            "d"
        ),
        "e sums over the wrong axis: each ROW, one query, sums to 1": "e",
        "f cannot be: exp is never exactly 0 for scores this close, and unequal scores give unequal weights": (
            "f"
        ),
    },
    answer="b",
    picture=_unscaled_picture,
)


variance = Number(
    name="score_variance",
    second=lambda n: seconds.score_variance(variance, n),
    title="When √d is not enough",
    stars=3,
    minutes=8,
    why="the usual argument for 1/√d assumes mean 0; here you see what the assumption is worth",
    asked=(
        "parts of q and k are independent with mean 2 and variance 1, d = 16: what is the variance of q . k?"
    ),
    value=144,
    hints=(
        "q . k is a sum of 16 independent products. What is the variance of a sum of independent terms?",
        (
            "For one product x y: the variance is E[x^2 y^2] - (E[x y])^2. What is E[x^2] when the mean is 2"
            " and the variance 1?"
        ),
        (
            "E[x^2] = variance + mean^2 = 5, for y alike, and they are independent. What is 5 * 5 - 4 * 4, 16"
            " times?"
        ),
    ),
    solution="one product: E[x^2] E[y^2] - (E[x] E[y])^2 = 5 * 5 - 4 * 4 = 9; the sum of 16: 16 * 9 = 144",
    remember=(
        "var(q . k) = d only for parts of mean 0 and variance 1; a mean adds variance (and an offset that"
        " all scores share, which softmax does not see)"
    ),
    slips={
        "16 holds for mean 0; with mean 2 each product varies more": 16,
        "9 is right for one product; q . k sums 16 of them": 9,
        "you left out the square of the mean: E[x^2] E[y^2] - (E[x] E[y])^2": 400,
        "you added the variances of x and y; they are multiplied, and means come in, too": 32,
        "that is the standard deviation; asked is the variance": "sqrt(144)",
        "you multiplied by d^2; variances of independent terms add up: d times": "16 * 16 * 9",
        "that is after dividing by sqrt(16); asked is q . k itself": "144 / 4",
    },
    answer="16 * (5 * 5 - 4 * 4)",
)


why = Open(
    name="why_the_root",
    title="Why the root? In your own words",
    stars=2,
    minutes=6,
    why="many give another reason; can you tell them apart?",
    asked="in two or three sentences: why divide by sqrt(d_k), and why not by d_k itself?",
    hints=(
        "How does the typical size of q . k depend on d_k, for parts of mean 0 and variance 1?",
        "What do very large scores do to softmax, and to its gradient?",
        "After dividing by d_k, how large are the scores at d_k = 1,024, and what do the weights become?",
    ),
    solution=(
        "For independent parts of mean 0 and variance 1 the variance of q . k is d_k, so its standard"
        " deviation grows as sqrt(d_k). Large scores saturate softmax: one weight near 1, and almost no"
        " gradient. Dividing by sqrt(d_k) keeps the scores at a spread of 1 for every width; dividing by d_k"
        " would shrink them to 1/sqrt(d_k), and the weights of a wide model would start nearly uniform."
    ),
    remember=(
        "sqrt(d_k) is the standard deviation of the score where parts have mean 0 and variance 1: dividing by it"
        " makes the width irrelevant"
    ),
    slips={
        "rows sum to 1 without it: that is softmax's own doing": (
            r"\b(so"
            r" that|so|make|makes|because|ensures?|guarantees?)\b.{0,30}\b(rows?|weights?).*(sum|add).*(1|one)\b"
        ),
        "overflow is prevented by subtracting the maximum, whatever the scale": r"overflow",
        "softmax takes any real number; nothing has to lie between 0 and 1": (
            r"between 0 and 1|need.*positive"
        ),
        "it costs time rather than saving it: the number of operations does not fall": (
            r"\bfaster\b|\bcheaper\b|speeds? up"
        ),
        "it does not normalise the vectors: their length still counts, as it does not in a cosine": (
            r"cosine|unit length|unit vector"
        ),
        "it does not depend on the number of keys or the length of the sequence": (
            r"number of (keys|tokens)|sequence length"
        ),
    },
    points=(
        "how large does q . k get as d_k grows (its variance, or standard deviation)?",
        "what do large scores do to softmax, or to its gradient?",
        "what would dividing by d_k itself do?",
    ),
)


EXERCISES = (
    *soft_look_up.ASKED,
    *which_score.ASKED,
    score_ratio,
    stable,
    attention,
    repair,
    guess,
    variance,
    why,
)
