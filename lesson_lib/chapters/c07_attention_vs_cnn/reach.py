"""What part 07c asks: four predictions, and two functions that the learner writes."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.chapters.c07_attention_vs_cnn import seconds
from lesson_lib.checks.exchanged import exchanged
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.short import Choice

PART = "07c_reach"


def place_attention(
    x: Float[Tensor, "b c h w"],
    w_q: Float[Tensor, "d c"],
    w_k: Float[Tensor, "d c"],
    w_v: Float[Tensor, "c c"],
    gamma: float,
) -> Float[Tensor, "b c h w"]:
    places = x.flatten(2).mT  # (b, h * w, c)
    found = attend(places @ w_q.T, places @ w_k.T, places @ w_v.T).output
    return x + gamma * found.mT.reshape(x.shape)


def _map(seed: int, b: int, c: int, h: int, w: int, d: int, gamma: float, draw=drawn) -> Case:
    return {
        "x": draw(seed, b, c, h, w),
        "w_q": draw(seed + 1, d, c),
        "w_k": draw(seed + 2, d, c),
        "w_v": draw(seed + 3, c, c),
        "gamma": gamma,
    }


def _two_places(gamma: float) -> Case:
    one = table([[1.0]])
    return {"x": table([[[[2.0, 6.0]]]]), "w_q": 0 * one, "w_k": one, "w_v": one, "gamma": gamma}


def _more_place_attention(drawn: Draw) -> list[Case]:
    return [_map(1, 3, 5, 2, 7, 2, 0.7, drawn), _map(11, 2, 2, 5, 3, 3, -1.3, drawn)]


write_place_attention = Write(
    name="place_attention",
    notebook=PART,
    second=lambda n: seconds.KEYS_OF_A_COARSER_MAP,
    title="Attention between places",
    stars=2,
    minutes=6,
    why="the block that was put into GANs first, and into the networks that draw pictures today",
    asked=(
        "each place of the map, a vector of c channels, attends to all places, by the usual score of"
        " `attend`: query, key and value of a place are a matrix times its vector. Give back x + gamma * what"
        " was found, as a map"
    ),
    stages=(
        Stage(
            "one channel, two places (2, 6), queries 0, gamma 0.5",
            lambda: [_two_places(0.5)],
            "All scores are 0, so both places find the mean, 4: 2 + 0.5 * 4 and 6 + 0.5 * 4.",
        ),
        Stage(
            "one channel, two rows of three places",
            lambda: [_map(21, 1, 1, 2, 3, 1, 1.0)],
            "A place is a row of `x.flatten(2).mT`: (b, h * w, c).",
        ),
        Stage(
            "three channels: does each place keep its own?",
            lambda: [_map(31, 1, 3, 2, 3, 2, 0.7)],
            "On the way back: channels first (.mT), then rows and columns of the map.",
        ),
        Stage(
            "two maps, and a negative gamma",
            lambda: [_map(41, 2, 3, 3, 2, 2, -0.4), _map(51, 2, 3, 2, 3, 3, 0.6)],
            "Each map attends to itself alone; gamma may have either sign.",
        ),
    ),
    hints=(
        "attend wants tokens as rows. What is `x.flatten(2)`, and what is its .mT?",
        "The matrices are (out, in), as torch keeps them. How do you multiply rows with them?",
        "What was found is (b, n, c). Which axis must come first, before it can be laid on the map?",
    ),
    solution=place_attention,
    hidden=_more_place_attention,
    remember="flatten, .mT, attend, .mT, reshape; and x itself stays in the sum",
    slips={
        "x itself is gone: the block adds to it": ("x + gamma", "gamma"),
        "gamma scales what was found, and x stays whole": (
            "x + gamma * found.mT.reshape(x.shape)",
            "gamma * (x + found.mT.reshape(x.shape))",
        ),
        "gamma is missing": ("gamma * ", ""),
        "rows of your tokens are no places: flatten(2), then .mT": (
            "x.flatten(2).mT",
            "x.reshape(len(x), -1, x.shape[1])",
        ),
        "on the way back channels and places are mixed: .mT before the reshape": (
            "found.mT.reshape",
            "found.reshape",
        ),
        "query and key have changed places: w_q asks": ("w_q.T, places @ w_k.T", "w_k.T, places @ w_q.T"),
        "your scores are plain dot products; the usual score of `attend` divides them by the root of d": (
            "places @ w_q.T",
            "places @ w_q.T * len(w_q) ** 0.5",
        ),
        "the values are the places themselves; w_v is missing": ("places @ w_v.T", "places"),
        "the value matrix is turned round: rows times w_v.T": ("places @ w_v.T", "places @ w_v"),
        "channels look at channels: places must be the rows": (
            "places = x.flatten(2).mT  # (b, h * w, c)\n"
            "    found = attend(places @ w_q.T, places @ w_k.T, places @ w_v.T).output",
            "places = x.flatten(2).mT\n"
            "    found = attend(places.mT, places.mT, (places @ w_v.T).mT).output.mT",
        ),
        "your softmax runs over the places that ask; it must run over those that are looked at": (
            "found = attend(places @ w_q.T, places @ w_k.T, places @ w_v.T).output",
            "scores = places @ w_q.T @ (places @ w_k.T).mT / len(w_q) ** 0.5\n"
            "    found = scores.softmax(-2) @ (places @ w_v.T)",
        ),
        **exchanged("found = attend", "w_q w_k w_v", without="kqv"),
    },
)

which_widths = Choice(
    name="which_widths",
    notebook=PART,
    title="How wide?",
    asked=(
        "A kernel 3, 9 or 17 wide runs along the rows of the middle map, which has two columns for each of"
        " noise. With which do the picture's first and last column share noise?"
    ),
    options={"a": "17 alone", "b": "9 and 17", "c": "all three"},
    answer="b",
    remember="9 wide sees four places to either side: two columns of noise more",
    slips={
        "the ends see noise 0 to 2 and 3 to 5 already, and 9 wide adds two columns to each: they meet": "a",
        "3 wide sees one place to either side: half a column of noise": "c",
    },
)

gamma_moves = Choice(
    name="gamma_moves",
    notebook=PART,
    title="A block that is switched off",
    asked="Gamma starts at 0. What inside the block can the very first step of training change?",
    options={
        "a": "nothing: whatever is multiplied by 0 has no gradient",
        "b": "gamma alone",
        "c": "the query, key and value matrices alone",
        "d": "all of them",
    },
    answer="b",
    remember="gamma's gradient is multiplied by what attention would add, the matrices' gradients by gamma",
    slips={
        "by what is gamma itself multiplied?": "a",
        "their gradients pass through the product with gamma, which is 0": "c",
        "on their way to the matrices the gradients pass gamma": "d",
    },
)

who_agrees = Choice(
    name="who_agrees",
    notebook=PART,
    title="Who can agree?",
    asked="In the middle stands attention, or a convolution 17 places wide, or nothing. Whose ends agree?",
    options={
        "a": "with attention alone",
        "b": "with attention, and with the wide convolution",
        "c": "with all three, after enough steps",
        "d": "with none",
    },
    answer="b",
    remember="what is needed is a way from one end to the other; whose it is does not matter",
    slips={
        "17 places wide, it is a way to the other end, too; the task needs no more than that": "a",
        "what do the first and the last column share? More steps do not lead from one to the other": "c",
        "48 places look at each other: the news can travel": "d",
    },
)


def set_loss_of_kinds(
    logits: Float[Tensor, "q kinds_and_none"],
    kind: Int[Tensor, " objects"],
    query: Int[Tensor, " objects"],
) -> Float[Tensor, ""]:
    wanted = torch.full_like(logits[:, 0], logits.shape[1] - 1, dtype=torch.long)
    wanted[query] = kind
    return torch.nn.functional.cross_entropy(logits, wanted)


def _guesses(logits: Tensor, kind: list[int], query: list[int]) -> Case:
    numbers = {"kind": kind, "query": query}
    return {"logits": logits} | {name: torch.tensor(row, device="cpu") for name, row in numbers.items()}


def _more_set_loss(drawn: Draw) -> list[Case]:
    return [_guesses(drawn(1, 7, 4), [2, 0, 1], [6, 2, 3]), _guesses(drawn(2, 3, 6), [4, 4], [0, 2])]


write_set_loss = Write(
    name="set_loss_of_kinds",
    notebook=PART,
    second=lambda n: seconds.WITH_WEIGHTS,
    title="The loss of a set",
    stars=2,
    minutes=6,
    why="objects have no order, so a loss must first be told who answers for what",
    asked=(
        "`query[k]` answers for object k, whose kind is `kind[k]`; all other queries are to say 'no object',"
        " the last column. The mean cross-entropy over all queries"
    ),
    stages=(
        Stage(
            "one query, one object of kind 0",
            lambda: [_guesses(table([[2.0, 0.0, 0.0]]), [0], [0])],
            "-log softmax([2, 0, 0])[0] = 0.2395.",
        ),
        Stage(
            "three queries, one object, and query 1 answers for it",
            lambda: [_guesses(primes(3, 3) / 50, [0], [1])],
            "Queries 0 and 2 are to say the last column, 'no object'.",
        ),
        Stage(
            "three queries, two objects, crosswise",
            lambda: [_guesses(drawn(1, 3, 4), [2, 1], [2, 0])],
            "Object 0, of kind 2, belongs to query 2; object 1, of kind 1, to query 0.",
        ),
        Stage(
            "five queries, three objects, two of one kind",
            lambda: [_guesses(drawn(2, 5, 5), [3, 0, 3], [4, 0, 1])],
            "`wanted` has an entry for each QUERY.",
        ),
    ),
    hints=(
        "cross_entropy wants a class for each row. Which class has a query without an object?",
        "Begin with 'no object' everywhere. Which entries do you overwrite, and with what?",
        "What does wanted[query] = kind do, if query is [2, 0] and kind is [2, 1]?",
    ),
    solution=set_loss_of_kinds,
    hidden=_more_set_loss,
    remember="fill with 'no object', overwrite the matched ones, then an ordinary cross-entropy",
    slips={
        "you give object k to query k, whoever was matched: use `query`": (
            "wanted[query] = kind",
            "wanted[: len(kind)] = kind",
        ),
        "only the matched queries are counted; the others must learn to say 'no object'": (
            "cross_entropy(logits, wanted)",
            "cross_entropy(logits[query], kind)",
        ),
        "'no object' is the LAST column": ("logits.shape[1] - 1", "0"),
        "you take the mean over the objects; every query counts": (
            "cross_entropy(logits, wanted)",
            'cross_entropy(logits, wanted, reduction="sum") / len(kind)',
        ),
        "you add the queries up; the mean is asked for": (
            "cross_entropy(logits, wanted)",
            'cross_entropy(logits, wanted, reduction="sum")',
        ),
        "kind and query have changed places: wanted[query] = kind": (
            "wanted[query] = kind",
            "wanted[kind] = query",
        ),
        "the objects are sorted by query, their kinds are not: they must move together": (
            "wanted[query] = kind",
            "wanted[query.sort().values] = kind",
        ),
        "cross_entropy takes logits; it applies the softmax itself, so yours is the second": (
            "cross_entropy(logits,",
            "cross_entropy(logits.softmax(-1),",
        ),
    },
)

without_matching = Choice(
    name="without_matching",
    notebook=PART,
    title="Without the matching",
    asked="Now object number k of the list always goes to query number k. The lists have no order. It finds",
    options={
        "a": "as much as before: training gets used to it",
        "b": "objects that stand alone, and hardly any others",
        "c": "nothing at all",
    },
    answer="b",
    remember="a list of one has an order; a list of two has none that the picture shows",
    slips={
        "which of two shapes is first? Nothing in the picture says so": "a",
        "in a scene with one object, is there anything that query 0 cannot know?": "c",
    },
)

ASKED = (
    which_widths,
    write_place_attention,
    gamma_moves,
    who_agrees,
    write_set_loss,
    without_matching,
)
