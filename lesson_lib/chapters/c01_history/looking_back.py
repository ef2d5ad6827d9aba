"""What part 01b asks: five predictions, and two functions that the learner writes."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.chapters.c01_history import seconds
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn
from lesson_lib.checks.short import Choice
from lesson_lib.scores import Additive

PART = "01b_looking_back"

which_letters = Choice(
    name="which_letters",
    notebook=PART,
    title="Which characters do you need?",
    asked="You have written 2021- and must write the month, 03. Which characters do you look at?",
    options={"a": "3.", "b": "märz", "c": "2021", "d": "all of them"},
    answer="b",
    remember="for each piece of the answer you look at another place: that is the idea of this part",
    slips={
        "that is the day; the month is written as a word here": "a",
        "the year is written already": "c",
        "you could; but märz alone tells the month": "d",
    },
)

all_the_same = Choice(
    name="all_the_same",
    notebook=PART,
    title="Four questions, one open place",
    asked="Four queries differ, and the mask lets each see the last place only. Their outputs ...",
    options={"a": "differ, since the queries do", "b": "are all the same", "c": "are all zero"},
    answer="b",
    remember="with one place open its weight is 1, whatever is asked",
    slips={
        "a query decides how the weight is divided; with one place there is nothing to divide": "a",
        "hidden places get the weight 0, and the open one gets all of it": "c",
    },
)

wholly_right = Choice(
    name="wholly_right",
    notebook=PART,
    title="Two dates in a row",
    asked="After 400 steps each: how many of 1,000 new texts does one vector get wholly right?",
    options={"a": "nearly all, as with attention", "b": "about half", "c": "hardly any"},
    answer="c",
    remember="after 400 steps it has hardly begun",
    slips={
        "every part of the answer has to come through the same vector, and that is hard to learn": "a",
        "room is not what is short, steps are: with one date it gets 82 % right, with two hardly any": "b",
    },
)

what_it_shows = Choice(
    name="what_it_shows",
    notebook=PART,
    title="What does that show?",
    asked="The vector holds 192 numbers. What have these 400 steps shown?",
    options={
        "a": "192 numbers are too few for two dates",
        "b": "one vector cannot translate",
        "c": "only that 400 steps are too few for it",
    },
    answer="c",
    remember="cannot and has not yet look the same; more steps tell them apart",
    slips={
        "then more steps would not help; nobody has tried that yet": "a",
        "with one date it is right in 82 % after as many steps": "b",
    },
)

june_or_july = Choice(
    name="june_or_july",
    notebook=PART,
    title="June or July?",
    asked="Which character of july is the first that tells it from june?",
    options={"a": "the j", "b": "the u", "c": "the l", "d": "the y"},
    answer="c",
    remember="jun and jul differ there; the states beside it know it, too, since the encoder reads both ways",
    slips={
        "january, june and july begin with it": "a",
        "june and july both have it": "b",
        "it comes later; the l has told it already": "d",
    },
)


def one_place(n: int, m: int) -> Bool[Tensor, "n m"]:
    mask = torch.zeros(n, m, dtype=torch.bool)
    mask[:, -1] = True
    return mask


def _more_one_place(drawn: Draw) -> list[Case]:
    return [{"n": 5, "m": 11}, {"n": 7, "m": 2}]


write_one_place = Write(
    name="one_place",
    notebook=PART,
    second=lambda n: seconds.LAST_REAL_PLACE,
    title="One vector is a mask",
    stars=1,
    minutes=4,
    why="two machines that look different are one function with two masks",
    asked="a table (n, m): each of n queries may look at the last of m places, and at no other",
    stages=(
        Stage("one query, three places", lambda: [{"n": 1, "m": 3}], "False, False, True."),
        Stage("four queries, seven places", lambda: [{"n": 4, "m": 7}], "The same row for every query."),
        Stage("one place", lambda: [{"n": 2, "m": 1}], "The only place is the last one."),
    ),
    hints=(
        "Which function of torch makes a table of False?",
        "Which index is the last column, whatever m is?",
        "`mask[:, -1] = True`: what do the two parts of the index mean?",
    ),
    solution=one_place,
    hidden=_more_one_place,
    remember="one column of True: every query gets the same place",
    slips={
        "your open place is the first; a reader from left to right has the whole text behind the last": (
            "mask[:, -1]",
            "mask[:, 0]",
        ),
        "your table says who may NOT look": (
            "mask = torch.zeros(n, m, dtype=torch.bool)\n    mask[:, -1] = True",
            "mask = torch.ones(n, m, dtype=torch.bool)\n    mask[:, -1] = False",
        ),
        "you open the last row: one query sees all, the others nothing": ("mask[:, -1]", "mask[-1]"),
        "everything is open: that is attention": ("torch.zeros(", "torch.ones("),
        "every query sees a place of its own here; all of them see the last": (
            "mask[:, -1] = True\n    return mask",
            "return torch.eye(n, m, dtype=torch.bool)",
        ),
        "nothing is open: True is missing": ("mask[:, -1] = True", "mask[:, -1] = False"),
        "that is the causal mask: here every query sees the last place, whatever its own": (
            "mask[:, -1] = True\n    return mask",
            "return torch.ones(n, m, dtype=torch.bool).tril()",
        ),
    },
)


def additive_step(
    state: Float[Tensor, " d_state"],
    read: Float[Tensor, "m d_read"],
    w_query: Float[Tensor, "d_state d_hidden"],
    w_key: Float[Tensor, "d_read d_hidden"],
    v: Float[Tensor, " d_hidden"],
) -> Float[Tensor, " d_read"]:
    scores = torch.tanh(state @ w_query + read @ w_key) @ v  # (m,): one per place
    weights = torch.softmax(scores, dim=-1)
    return weights @ read


def _decoder(seed: int, m: int, d_state: int, d_read: int, d_hidden: int) -> Case:
    return {
        "state": drawn(seed, d_state),
        "read": drawn(seed + 1, m, d_read, spread=3.0),
        "w_query": drawn(seed + 2, d_state, d_hidden),
        "w_key": drawn(seed + 3, d_read, d_hidden),
        "v": drawn(seed + 4, d_hidden, spread=2.0),
    }


def _by_the_library(state: Tensor, read: Tensor, w_query: Tensor, w_key: Tensor, v: Tensor) -> Tensor:
    score = Additive(len(state), read.shape[-1], len(v)).to(state)
    with torch.no_grad():
        for own, given in ((score.w_query.weight, w_query.mT), (score.w_key.weight, w_key.mT), (score.v, v)):
            own.copy_(given)
        return attend(state[None], read, read, score=score).output[0]


def _more_additive_step(drawn: Draw) -> list[Case]:
    shapes = {
        "state": (5,),
        "read": (11, 3),
        "w_query": (5, 7),
        "w_key": (3, 7),
        "v": (7,),
    }
    return [{name: drawn(i, *shape) for i, (name, shape) in enumerate(shapes.items())}]


write_additive_step = Write(
    name="additive_step",
    notebook=PART,
    second=lambda n: seconds.ALL_STATES,
    title="One step of Bahdanau's decoder",
    stars=2,
    minutes=7,
    why="the line that replaced the fixed vector in 2014; the query is the decoder's state",
    asked=(
        "score_j = v . tanh(state W_query + read_j W_key); softmax over the m places; the weighted mean of"
        " read, shape (d_read,)"
    ),
    stages=(
        Stage(
            "one place was read: the context is what stands there",
            lambda: [_decoder(1, 1, 2, 2, 3)],
            "With one place its weight is 1.",
        ),
        Stage(
            "two places, one hidden unit",
            lambda: [_decoder(11, 2, 2, 2, 1)],
            "The order is: two projections, their sum, tanh, v, softmax, and then the mean.",
        ),
        Stage(
            "three places, three hidden units",
            lambda: [_decoder(21, 3, 2, 2, 3)],
            "v turns the hidden units of a place into ONE score.",
        ),
        Stage(
            "seven places; state, rows that were read, and hidden layer of different width",
            lambda: [_decoder(31, 7, 2, 5, 3)],
            "The context is a mean of rows of `read`, so it is as wide as they are.",
        ),
    ),
    reference=_by_the_library,
    hints=(
        (
            "`state @ w_query` is (d_hidden,), `read @ w_key` is (m, d_hidden). What does a plain + do with"
            " these two shapes?"
        ),
        "After tanh you have (m, d_hidden) and need one score per place, (m,). Which vector does that?",
        "The m weights sum to 1. Which rows do they mix: those that were read, or the projected ones?",
    ),
    solution=additive_step,
    remember=(
        "query = the decoder's state, keys = values = what was read; each written character gets a context of"
        " its own"
    ),
    slips={
        "tanh is missing; the state then shifts all scores alike, and softmax does not see it": (
            "torch.tanh",
            "",
        ),
        "tanh comes after v here; it belongs between the sum and v": (
            "tanh(state",
            "tanh((state",
            "@ v",
            "@ v)",
        ),
        "the state makes no difference: unused, or with a tanh of its own; add both, then tanh": (
            "state @ w_query + ",
            "",
        ),
        "you multiply the two sides; the additive score adds them": ("+ read @ w_key", "* (read @ w_key)"),
        "softmax is missing: you mix with the raw scores": ("torch.softmax(scores, dim=-1)", "scores"),
        "you mix the projected keys; mix what was read": ("weights @ read", "weights @ (read @ w_key)"),
        "you give back the weights; mix what was read with them": ("weights @ read", "weights"),
        "these are the scores; softmax and the weighted mean are still to come": ("weights @ read", "scores"),
        "you divide the scores by a root; the additive score has none, tanh keeps it small": (
            "@ v",
            "@ v / len(v) ** 0.5",
        ),
        "v is missing: you sum the hidden units, as if v were all ones": (" @ v", ".sum(-1)"),
        "the matrices are exchanged: w_query belongs to the state, w_key to what was read": (
            "state @ w_query + read @ w_key",
            "state @ w_key + read @ w_query",
        ),
        "that is the plain mean of what was read: all places count alike": ("weights @ read", "read.mean(0)"),
        "you take the best place only (argmax); Bahdanau mixes all": (
            "weights @ read",
            "read[weights.argmax()]",
        ),
        "you sum the rows that were read; each counts as much as its weight says": (
            "weights @ read",
            "read.sum(0)",
        ),
        "your softmax runs over the hidden units; v first makes one score of them, softmax is over places": (
            "@ v",
            "",
            "torch.softmax(scores, dim=-1)",
            "torch.softmax(scores, dim=-1) @ v",
        ),
        "relu in place of tanh: what is negative is lost, and what is large is not held": (
            "torch.tanh(state",
            "torch.relu(state",
        ),
        "a sigmoid in place of tanh: it is never negative; tanh goes from -1 to 1": (
            "torch.tanh(state",
            "torch.sigmoid(state",
        ),
        "exp is missing: you divide the scores by their sum; softmax takes e to each score first": (
            "torch.softmax(scores, dim=-1)",
            "scores / scores.sum()",
        ),
    },
    hidden=_more_additive_step,
)

ASKED = (
    which_letters,
    write_one_place,
    all_the_same,
    write_additive_step,
    wholly_right,
    what_it_shows,
    june_or_july,
)
