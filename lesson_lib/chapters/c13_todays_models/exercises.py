"""What part 13b asks: five predictions, and two functions that the learner writes, in the learner's order.

`today` has what 13a asks, `open_a_model` 13c; `traps` and `wild_...` are the exercises'.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.chapters.c13_todays_models import (
    open_a_model,
    seconds,
    today,
    traps,
    wild_beams,
    wild_caches,
    wild_tiles,
)
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Choice

PART = "13b_induction"

what_follows = Choice(
    name="what_follows",
    notebook=PART,
    title="The next sign",
    asked="k f w a c m k f w. The signs were drawn at random. Which one would you bet on now?",
    options={
        "a": "none: random signs cannot be guessed",
        "b": "f, before the first w",
        "c": "a, after the first w",
        "d": "k, where it all began",
    },
    answer="c",
    remember="look for the same sign earlier in the text, and read what came after it",
    slips={
        "the first six could not be guessed; do the last three look random?": "a",
        "what came after w the first time, what before it?": "b",
        "k began again three signs ago; what has come after w so far?": "d",
    },
)

one_layer = Choice(
    name="one_layer_copies",
    notebook=PART,
    title="Is one layer enough?",
    asked=(
        "One layer, one head. The last w may look at all signs before it. Can it fetch the a that came"
        " after the first w?"
    ),
    options={
        "a": "yes: a query asks for w, and the value of the first w is a",
        "b": "no: it can find the first w, but that token's own row holds w, not a",
        "c": "no: it cannot find the first w",
    },
    answer="b",
    remember="in the first layer keys and values are made of single tokens; none knows its neighbour",
    slips={
        "from what is a value made in the first layer: from its own token, or from the next one?": "a",
        "a query and a key made of the same token can fit: 02a's look-up; what does it fetch?": "c",
    },
)


def two_looks(x: Float[Tensor, "n d"], sharp: float) -> Float[Tensor, "n d"]:
    i = torch.arange(len(x))
    before = attend(x, x, x, mask=i[:, None] - i == 1).output
    return attend(sharp * x, before, x, mask=i[:, None] >= i).output


def _token_by_token(x: Tensor, sharp: float) -> Tensor:
    rows = []
    for i in range(len(x)):
        keys = torch.cat((torch.zeros_like(x[:1]), x[:i]))
        rows.append(attend(sharp * x[i : i + 1], keys, x[: i + 1]).output)
    return torch.cat(rows)


def _signs(numbers: list[int], d: int, sharp: float = 100.0) -> Case:
    return {"x": torch.eye(d, device="cpu")[numbers], "sharp": sharp}


def _random_signs(seed: int, n: int, d: int, draw: Draw = drawn) -> Case:
    return {"x": torch.eye(d, device="cpu")[(draw(seed, n) * 10).long() % d], "sharp": 3.0}


write_two_looks = Write(
    name="two_looks",
    notebook=PART,
    second=lambda n: seconds.WHAT_STOOD_BEFORE,
    title="Two looks by hand",
    stars=3,
    minutes=8,
    why="it is what training will find",
    asked=(
        "x (n, d): a row for each sign, 1 at its number, else 0. First look: each token gets the row of the"
        " token before it; the first one, which may look at nothing, zeros. Second look: queries are sharp · x,"
        " keys what the first look gave, values x; nobody looks ahead. Return the second look's output. Call"
        " attend twice, and give each its mask"
    ),
    stages=(
        Stage(
            "the signs 0 1 2 0: after the last comes 1",
            lambda: [_signs([0, 1, 2, 0], 4)],
            "The last 0 finds the key of place 1, whose token before was 0, and takes its value, sign 1.",
        ),
        Stage(
            "a piece of three said twice",
            lambda: [_signs([3, 1, 4, 3, 1, 4], 5)],
            "After the second 3 comes 1, after the second 1 comes 4. What was never seen gives a mean.",
        ),
        Stage(
            "a sign twice in a row",
            lambda: [_signs([2, 2, 0, 2], 3), _signs([1], 3)],
            "The second 2 may find itself: the token before it was 2, too.",
        ),
        Stage("many signs", lambda: [_random_signs(5, 9, 4), _random_signs(8, 12, 6)], "The same two calls."),
    ),
    reference=_token_by_token,
    hints=(
        "Which mask lets token i look at token i - 1 alone? With one key allowed, what are the weights?",
        "In the second look a token asks for its own sign. Whose KEY holds that sign: the copy's, or the one"
        " after it?",
        "attend(sharp * x, ?, ?, mask=?): what is compared, what is handed over, and who may look at whom?",
    ),
    solution=two_looks,
    hidden=lambda draw: [_random_signs(41, 7, 5, draw), _random_signs(51, 10, 3, draw)],
    remember="first everybody learns who stood before; then one asks: before whom did my own sign stand?",
    slips={
        "keys are the tokens themselves, so each finds its own sign; the keys are what the first look gave": (
            "sharp * x, before, x", "sharp * x, x, x",
        ),
        "the values are the tokens before, so each gets its own sign back; the values are x": (
            "sharp * x, before, x", "sharp * x, before, before",
        ),
        "the second look sees ahead: mask=i[:, None] >= i": (
            "before, x, mask=i[:, None] >= i", "before, x",
        ),
        "the first look fetches the token after; i - j == 1 is the one before": (
            "i[:, None] - i == 1", "i - i[:, None] == 1",
        ),
        "the first look takes all earlier tokens; only the one before": (
            "i[:, None] - i == 1", "i[:, None] - i >= 1",
        ),
        "the first look mixes all tokens so far, the own one too; let each see only the one before it": (
            "i[:, None] - i == 1", "i[:, None] - i >= 0",
        ),
        "keys and values of the second look are exchanged: the keys are what the first gave, the values x": (
            "sharp * x, before, x", "sharp * x, x, before",
        ),
        "the queries are not multiplied by sharp": ("sharp * x", "x"),
        "queries and keys are exchanged": ("sharp * x, before, x", "sharp * before, x, x"),
        "that is what the first look gave; a second one follows": (
            "return attend(sharp * x, before, x, mask=i[:, None] >= i).output", "return before",
        ),
        "the first look fetches the token two before; i - j == 1 is the one before": (
            "i[:, None] - i == 1",
            "i[:, None] - i == 2",
        ),
        "the second look leaves the token itself out: mask=i[:, None] >= i": (
            "mask=i[:, None] >= i",
            "mask=i[:, None] > i",
        ),
        "the second look sees only what is ahead: mask=i[:, None] >= i": (
            "mask=i[:, None] >= i",
            "mask=i[:, None] <= i",
        ),
    },
)  # fmt: skip


def prefix_matching(table: Float[Tensor, "n n"], length: int) -> Float[Tensor, ""]:
    return table.diagonal(1 - length)[1:].mean()


def _by_loop(table: Tensor, length: int) -> Tensor:
    found = [table[i, i - length + 1] for i in range(length, len(table))]
    return torch.stack(found).mean()


def _score_case(seed: int, length: int, draw: Draw = drawn) -> Case:
    rows = draw(seed, 2 * length, 2 * length).abs() + 0.1
    return {"table": rows / rows.sum(1, keepdim=True), "length": length}


def _only(length: int, back: int) -> Case:
    """All weight lies `back` places before the query."""
    n = 2 * length
    i = torch.arange(n, device="cpu")
    return {"table": (i[:, None] - i == back).float(), "length": length}


write_score = Write(
    name="prefix_matching",
    notebook=PART,
    second=lambda n: seconds.THREE_TIMES,
    title="Who looks at what came after?",
    stars=2,
    minutes=6,
    why="so people find candidates among thousands of heads",
    asked=(
        "a table of weights (n, n), rows are queries, of a text that is a piece of `length` signs said twice."
        " Token i of the second half, i = length ... n - 1, had its first copy at i - length. Return the mean"
        " weight that these tokens give to the one after their first copy"
    ),
    stages=(
        Stage(
            "a piece of 2: of its tokens 2 and 3, the weights at places 1 and 2",
            lambda: [{"table": table([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.2, 0.6, 0.2, 0],
            [0.1, 0.3, 0.4, 0.2]]), "length": 2}],
            "Token 2 gives 0.6 to place 1, token 3 gives 0.4 to place 2: 0.5.",
        ),
        Stage(
            "a head that always looks right, and one that looks at the copy itself",
            lambda: [_only(5, 4), _only(5, 5), _only(3, 1)],
            "The token after the copy is length - 1 places back: 1 for the first, 0 for the second.",
        ),
        Stage(
            "any weights",
            lambda: [_score_case(3, 4), _score_case(9, 7)],
            "`length` tokens are asked, the first of them at place `length`.",
        ),
    ),
    reference=_by_loop,
    hints=(
        "Token i's first copy stands at i - length. Where does the one after it stand?",
        "Which diagonal is that, counted from the main one: table.diagonal(?)?",
        "That diagonal begins with token length - 1, still in the first half. Which entries are asked for?",
    ),
    solution=prefix_matching,
    hidden=lambda draw: [_score_case(21, 5, draw), _score_case(31, 3, draw)],
    remember="the one after the first copy is `length` - 1 places back",
    slips={
        "that is the weight on the first copy itself; asked for is the token after it": (
            "diagonal(1 - length)[1:]", "diagonal(-length)",
        ),
        "that is the token before the first copy": ("diagonal(1 - length)[1:]", "diagonal(-1 - length)"),
        "token length - 1 belongs to the first half: leave the diagonal's first entry out": ("[1:]", ""),
        "rows are queries: diagonals below the main one have negative numbers": (
            "diagonal(1 - length)", "diagonal(length - 1)",
        ),
        "that is the token before each one": ("diagonal(1 - length)[1:]", "diagonal(-1)"),
        "the mean, not the sum": (".mean()", ".sum()"),
        "that is the second token after the first copy; asked for is the one after it": (
            "diagonal(1 - length)[1:]",
            "diagonal(2 - length)[2:]",
        ),
    },
)  # fmt: skip


which_cut = Choice(
    name="which_head_is_needed",
    notebook=PART,
    title="Cut one head",
    asked=(
        "All are right. Now layer 0's head adds nothing; it never looked at the sign to be copied. How many"
        " of 100 are right?"
    ),
    options={
        "a": "all: the head of layer 1 does the copying",
        "b": "about 50: half of the heads",
        "c": "fewer than 10",
    },
    answer="c",
    remember="layer 1's head finds its place through what the other head wrote",
    slips={
        "by which sign does layer 1's head know the right place? Who wrote that there?": "a",
        "if the place cannot be found, which half could still be right?": "b",
    },
)

longer = Choice(
    name="longer_pieces",
    notebook=PART,
    title="Longer than ever",
    asked=(
        "Trained on pieces of 6 to 24 signs, it copies without a fault. How many of 100 are right in pieces"
        " of 48?"
    ),
    options={
        "a": "all: a rule has no length",
        "b": "about 80",
        "c": "fewer than 10",
    },
    answer="c",
    remember="the right key was never more than 23 places back in training",
    slips={
        "how far back was the right key in training, at most, and how far is it now?": "a",
        "at 36 it is less than half; does it get better farther out?": "b",
    },
)

one_length = Choice(
    name="one_length_only",
    notebook=PART,
    title="All pieces have 24 signs",
    asked=(
        "Another training, with pieces of 24 signs only: all right, the prefix matching score is 1.00. How"
        " many of 100 are right in pieces of 18?"
    ),
    options={
        "a": "about as many",
        "b": "some fewer: two thirds",
        "c": "fewer than 10",
    },
    answer="c",
    remember="it looks 23 places back; here the answer is 17 back",
    slips={
        "is there another way to be right at 24 than to look for the same sign?": "a",
        "if it always looks 23 places back, what does it find here?": "b",
    },
)


EXERCISES = (
    *today.ASKED,
    what_follows,
    one_layer,
    write_two_looks,
    write_score,
    which_cut,
    longer,
    one_length,
    *open_a_model.ASKED,
    traps.five_traps,
    *wild_caches.ASKED,
    wild_beams.beams,
    *wild_tiles.ASKED,
)
