"""What part 03 asks: six predictions, and two functions that the learner writes."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.chapters.c03_matrix_form import seconds
from lesson_lib.checks.exchanged import exchanged
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.short import Choice

PART = "03_matrix_form"

table_shape = Choice(
    name="table_shape",
    notebook=PART,
    title="One table, or sixty-four?",
    asked="x is (64, 8, 16): 64 parties of 8 guests. W_q and W_k are (16, 8). Which shape has Q @ K.mT?",
    options={"a": "(8, 8)", "b": "(64, 8, 8)", "c": "(64, 8, 16)", "d": "(512, 512)"},
    answer="b",
    remember="a table for each party, guests by guests; the widths 16 and 8 are summed away",
    slips={
        "that is one party's table; there are 64 of them": "a",
        "16 is the width of x; a score is one number for each pair of guests": "c",
        "that would let guests of different parties ask each other": "d",
    },
)

no_matrices = Choice(
    name="no_matrices",
    notebook=PART,
    title="Without two of the matrices",
    asked="Leave out W_q and W_k: the scores are x @ x.mT. Can the layer learn the task?",
    options={"a": "yes", "b": "yes, but more slowly", "c": "no"},
    answer="c",
    remember="who is listened to is fixed by x; W_v only changes what is heard",
    slips={
        "the matrix W_v changes what is mixed; who is listened to is fixed by x alone": "a",
        "time does not help: training never touches these scores": "b",
    },
)

where_written = Choice(
    name="where_written",
    notebook=PART,
    title="Where is the secret?",
    asked="In which block of M must training write who belongs to whom?",
    options={
        "a": "guest with guest",
        "b": "guest with card",
        "c": "card with guest",
        "d": "card with card",
    },
    answer="a",
    remember="cards are dealt anew at each party, so they cannot tell a partner",
    slips={
        "a partner's card is random, so it cannot tell who the partner is": "b",
        "my own card is random, so it cannot tell whom I look for": "c",
        "both cards are random; they say nothing of partners": "d",
    },
)

zeros_after = Choice(
    name="zeros_after",
    notebook=PART,
    title="Zeros after the softmax",
    asked="Softmax first, zeros afterwards. The last token changes. Do the other rows' weights notice?",
    options={"a": "no", "b": "yes, a little", "c": "yes: they become nan"},
    answer="b",
    remember="softmax had already divided by a sum with the last score in it",
    slips={
        "the weight is 0; but e to the hidden score was in the sum below every other weight of the row": "a",
        "all numbers are finite, and so are the weights": "c",
    },
)

top_left = Choice(
    name="top_left",
    notebook=PART,
    title="One query, five keys",
    asked="Five keys, one query (the last word's), and is_causal=True. What does it see?",
    options={"a": "all five keys", "b": "only the first", "c": "only the fifth", "d": "none"},
    answer="b",
    remember="row 0 of a causal mask sees key 0, and this query is row 0",
    slips={
        "so it should; but torch does not know it is the last word, and counts it as the first query": "a",
        "torch counts queries from the first key, not from the last": "c",
        "every row of a causal mask sees at least column 0": "d",
    },
)

one_by_one = Choice(
    name="one_by_one",
    notebook=PART,
    title="One by one",
    asked=("The layer gets the causal mask: guests see only who came before. Which share is right?"),
    options={"a": "nearly all", "b": "a bit more than half", "c": "one in eight", "d": "none"},
    answer="b",
    remember="half of the partners have come; of the other cards nothing is known",
    slips={
        "the card of a partner who has not come cannot be known": "a",
        "that is right for those whose partner is still missing": "c",
        "the matrices still find every partner who is there": "d",
    },
)


def self_attention(
    x: Float[Tensor, "b n d"],
    w_q: Float[Tensor, "d d_k"],
    w_k: Float[Tensor, "d d_k"],
    w_v: Float[Tensor, "d d_v"],
) -> Float[Tensor, "b n d_v"]:
    query, key, value = x @ w_q, x @ w_k, x @ w_v
    scores = query @ key.mT / query.shape[-1] ** 0.5
    return scores.softmax(-1) @ value


def _tokens(seed: int, b: int, n: int, d: int, d_k: int, d_v: int, drawn: Draw = drawn) -> Case:
    shapes = {"x": (b, n, d), "w_q": (d, d_k), "w_k": (d, d_k), "w_v": (d, d_v)}
    return {name: drawn(seed + i, *shape) for i, (name, shape) in enumerate(shapes.items())}


def _more_self_attention(drawn: Draw) -> list[Case]:
    return [_tokens(1, 5, 7, 11, 3, 2, drawn), _tokens(11, 2, 3, 5, 7, 13, drawn)]


write_self_attention = Write(
    name="self_attention",
    notebook=PART,
    second=lambda n: seconds.self_attention(write_self_attention, n),
    title="Self-attention in five products",
    stars=2,
    minutes=6,
    why="this is the layer that every Transformer is built of",
    asked="queries, keys, values; scores divided by the root of d_k; softmax over the keys; mix the values",
    stages=(
        Stage(
            "one list of one token: the output is x @ w_v",
            lambda: [
                {
                    "x": table([[[1.0, 2.0]]]),
                    "w_q": table([[1.0], [0.0]]),
                    "w_k": table([[0.0], [1.0]]),
                    "w_v": table([[3.0, 0.0, 1.0], [0.0, 5.0, 1.0]]),
                }
            ],
            "With one token its weight is 1, whatever the scores.",
        ),
        Stage(
            "one list of three tokens",
            lambda: [_tokens(21, 1, 3, 5, 2, 7) | {"w_v": primes(5, 7)}],
            "Follow the shapes: Q and K are (1, 3, 2), so what is Q @ K.mT?",
        ),
        Stage(
            "two lists at once",
            lambda: [_tokens(31, 2, 5, 7, 3, 2), _tokens(41, 2, 5, 3, 3, 3)],
            "`.T` turns all axes round; `.mT` swaps the last two and leaves the batch alone.",
        ),
    ),
    hints=(
        "Which three products make queries, keys and values of x?",
        "Which axis of the query is d_k, and how do you get its root?",
        "Weights are (b, n, n), values (b, n, d_v). Which product is (b, n, d_v)?",
    ),
    solution=self_attention,
    hidden=_more_self_attention,
    remember="x @ w_q, x @ w_k, x @ w_v, query @ key.mT, weights @ value: five products, one softmax",
    slips={
        "you forgot to divide the scores by the root of d_k": (" / query.shape[-1] ** 0.5", ""),
        "you divide by d_k; divide by its root": (" ** 0.5", ""),
        "you divide by the root of d, the width of x; it is the width of the queries that counts": (
            "query.shape[-1]",
            "x.shape[-1]",
        ),
        "you divide by the root of n, the number of tokens; d_k is the last axis of the query": (
            "query.shape[-1]",
            "query.shape[-2]",
        ),
        "softmax is missing: you mix the values with the scores themselves": (".softmax(-1)", ""),
        "your softmax runs over the queries (dim=-2); it must run over the keys (dim=-1)": (
            "softmax(-1)",
            "softmax(-2)",
        ),
        "your softmax runs over the batch (dim=0); it must run over the keys (dim=-1)": (
            "softmax(-1)",
            "softmax(0)",
        ),
        "queries and keys have changed places: row i must hold the scores of query i": (
            "query @ key.mT",
            "key @ query.mT",
        ),
        "you mix x itself; mix the values, x @ w_v": ("@ value", "@ x"),
        "keys are made with w_q: they have a matrix of their own": ("x @ w_k", "x @ w_q"),
        "you give back the weights; mix the values with them": (" @ value", ""),
        "your softmax runs over queries and over the batch axis at once; a row must sum to 1": (
            ".softmax(-1)",
            ".flatten(0, 1).softmax(0).view(len(x), x.shape[1], -1)",
        ),
        "one softmax over a whole table: each query needs its own, over the keys": (
            ".softmax(-1)",
            ".flatten(1).softmax(-1).view(len(x), x.shape[1], -1)",
        ),
        "you multiply the scores by the root of d_k; divide by it": ("/ query.shape", "* query.shape"),
        "`/ d_k * 0.5` halves, and so does `/ d_k ** 1 / 2`; the root is `** 0.5`": ("** 0.5", "* 0.5"),
        "x itself stands in for queries and keys; they are x @ w_q and x @ w_k": (
            "x @ w_q, x @ w_k",
            "x, x",
        ),
        **exchanged("scores = query", without="kqv"),
        "(d_k ** 1 / 2) is d_k / 2, since the power comes first; the root is `** 0.5`": ("** 0.5", "* 2"),
        "a relu follows the projections: queries, keys and values may be negative": (
            "x @ w_q, x @ w_k, x @ w_v",
            "(x @ w_q).relu(), (x @ w_k).relu(), (x @ w_v).relu()",
        ),
    },
)


def both_masks(real: Bool[Tensor, "b n"]) -> Bool[Tensor, "b n n"]:
    n = real.shape[-1]
    earlier = torch.ones(n, n, dtype=torch.bool).tril()
    return real[:, None, :] & earlier


def _sentences(*lengths: int) -> Case:
    return {"real": torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]}


def _more_both_masks(drawn: Draw) -> list[Case]:
    return [_sentences(7, 2, 5), {"real": _sentences(7, 2, 5)["real"].flip(-1)}]


write_both_masks = Write(
    name="both_masks",
    notebook=PART,
    second=lambda n: seconds.both_masks(write_both_masks, n),
    title="Two masks in one",
    stars=2,
    minutes=6,
    why="every language model is trained with both at once",
    asked="True where query i of list b may look at key j: the key is a real word, and does not come later",
    stages=(
        Stage(
            "one sentence without padding: the causal mask",
            lambda: [_sentences(3)],
            "`torch.ones(n, n, dtype=torch.bool).tril()` keeps the lower triangle and the diagonal.",
        ),
        Stage(
            "two sentences of different lengths",
            lambda: [_sentences(2, 3)],
            "`real` is (b, n), and one answer for each KEY: where does it need an axis of length 1?",
        ),
        Stage(
            "padding on the left",
            lambda: [{"real": torch.tensor([[False, True, True], [True, True, True]])}],
            "Nothing may rest on where the padding stands: ask `real`.",
        ),
    ),
    hints=(
        "Which of two masks is the same for all sentences, and what is its shape?",
        "`real[:, None, :]` is (b, 1, n): the same keys for every query. And `real[:, :, None]`?",
        "How do two boolean tensors become one that is True where both are?",
    ),
    solution=both_masks,
    hidden=_more_both_masks,
    remember="real[:, None, :] & causal: masks of who MAY look are combined with &",
    slips={
        "padding is hidden, the future is not": (
            "real[:, None, :] & earlier",
            "real[:, None, :].expand(-1, n, -1)",
        ),
        "the future is hidden, padding is not": (
            "real[:, None, :] & earlier",
            "earlier.expand(len(real), -1, -1)",
        ),
        "`|` lets a query look where either mask allows it; both must: `&`": (" & ", " | "),
        "you mark rows, the queries that are real; it is the keys that must be real": (
            "real[:, None, :]",
            "real[:, :, None]",
        ),
        "your triangle is the upper one: each word sees the future and not the past": (".tril()", ".triu()"),
        "a word may look at itself: keep the diagonal": (".tril()", ".tril(-1)"),
        "you give True where looking is forbidden; here True means: may look": (
            "return real[:, None, :] & earlier",
            "return ~(real[:, None, :] & earlier)",
        ),
        "both rows and columns of padding are closed; only keys must be real, a padded query harms nobody": (
            "real[:, None, :] & earlier",
            "real[:, None, :] & real[:, :, None] & earlier",
        ),
        "your triangle reaches one word too far: each word sees the next one, which it must guess": (
            ".tril()",
            ".tril(1)",
        ),
        "padding is seen, and the real words are hidden: turn `real` round, by ~": (
            "real[:, None, :] &",
            "~real[:, None, :] &",
        ),
    },
)

ASKED = (
    table_shape,
    write_self_attention,
    no_matrices,
    where_written,
    zeros_after,
    write_both_masks,
    top_left,
    one_by_one,
)
