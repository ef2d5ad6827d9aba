"""What part 06e asks: five predictions, and two functions that the learner writes."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.chapters.c06_transformer import seconds_alone as seconds
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Choice

PART = "06e_gpt"

questions_at_once = Choice(
    name="questions_at_once",
    notebook=PART,
    title="How many questions?",
    asked="A passage of 64 characters goes through the stack once. How many guesses can the loss judge?",
    options={"a": "1, the last", "b": "63", "c": "64"},
    answer="b",
    remember="every place but the last has a next character in the passage, and none sees it",
    slips={
        "under the causal mask every place guesses without seeing what comes": "a",
        "which character of the passage follows the last one?": "c",
    },
)

no_positions = Choice(
    name="no_positions",
    notebook=PART,
    title="Without positions",
    asked=(
        "Rotary positions give 2.2 bits. Take all positions away; only the causal mask tells places apart."
        " The bits become:"
    ),
    options={"a": "about 2.2", "b": "about 2.3", "c": "about 3.5"},
    answer="c",
    remember="spelling is order, and a mask tells little of it",
    slips={
        "which letter stands before the last one? Nothing but the mask says so": "a",
        "a mask says which letters came before, not in which order: to layer 0 they are one heap": "b",
    },
)

which_heat = Choice(
    name="which_heat",
    notebook=PART,
    title="Which heat?",
    asked="Which temperature makes the second likeliest character the likeliest?",
    options={"a": "one below 1", "b": "one above 1", "c": "none"},
    answer="c",
    remember="dividing by a positive number keeps the order",
    slips={
        "below 1 the first gains on the second": "a",
        "above 1 the second comes nearer; does it ever pass?": "b",
    },
)

at_zero = Choice(
    name="at_zero",
    notebook=PART,
    title="At temperature 0",
    asked="At temperature 0 it always takes the likeliest character. What does it write?",
    options={"a": "its best text", "b": "the same words again and again", "c": "only blanks"},
    answer="b",
    remember="it mostly hears its last few characters; once they return, so does the next choice",
    slips={
        "the likeliest next step does not make the likeliest text": "a",
        "this text has few blanks in a row": "c",
    },
)

one_query = Choice(
    name="one_query",
    notebook=PART,
    title="One query, five keys",
    asked=(
        "The newest of five tokens is the only query, beside five keys. With is_causal=True, torch lets it"
        " see:"
    ),
    options={"a": "all five keys", "b": "the first key only", "c": "the last key only"},
    answer="b",
    remember="torch counts queries and keys from the start: query 0 sees key 0",
    slips={
        "so it should be; torch does not know that four queries came before": "a",
        "torch lays the triangle's corner at the first query and the first key": "c",
    },
)


def next_loss(
    logits: Float[Tensor, "b n characters"],
    tokens: Int[Tensor, "b n"],
) -> Float[Tensor, ""]:
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def _window(logits: Tensor, tokens: list[list[int]]) -> Case:
    return {"logits": logits, "tokens": torch.tensor(tokens, device="cpu")}


def _more_next_loss(drawn: Draw) -> list[Case]:
    tokens = drawn(2, 3, 7).flatten().argsort().view(3, 7) % 5
    return [{"logits": drawn(1, 3, 7, 5), "tokens": tokens}]


write_next_loss = Write(
    name="next_loss",
    notebook=PART,
    second=lambda n: seconds.next_loss(write_next_loss),
    title="The loss of a language model",
    stars=2,
    minutes=5,
    why="one place off, and the model learns to copy its input, with a loss near 0 and no error",
    asked=(
        "logits[:, i] were computed from tokens 0 to i and guess token i + 1; give the mean cross-entropy of"
        " all guesses that can be judged"
    ),
    stages=(
        Stage(
            "two tokens: one guess",
            lambda: [_window(table([[[0.0, 3.0, 1.0], [2.0, 0.0, 0.0]]]), [[0, 2]])],
            "The first place guesses token 2, the second has nothing to be judged by.",
        ),
        Stage(
            "five tokens: the mean of four",
            lambda: [_window(drawn(1, 1, 5, 3), [[0, 1, 2, 0, 1]])],
            "Which places have a next token, and which tokens are next to some place?",
        ),
        Stage(
            "a batch of two passages",
            lambda: [_window(drawn(2, 2, 4, 5), [[0, 1, 2, 3], [4, 4, 0, 2]])],
            "Shift along the tokens, not along the batch.",
        ),
    ),
    hints=(
        "Which place's logits have no answer, and which token is nobody's answer?",
        "Cut one place off the logits and one token off the tokens: which ends?",
        "F.cross_entropy wants (questions, characters) and (questions,). How do you flatten both alike?",
    ),
    solution=next_loss,
    hidden=_more_next_loss,
    remember="logits without the last place, tokens without the first",
    slips={
        "nothing is shifted: each place is asked for the token that it has just read": (
            "logits[:, :-1].flatten(0, 1), tokens[:, 1:]",
            "logits.flatten(0, 1), tokens",
        ),
        "you shift the wrong way: each place is asked for the token before it": (
            "logits[:, :-1].flatten(0, 1), tokens[:, 1:]",
            "logits[:, 1:].flatten(0, 1), tokens[:, :-1]",
        ),
        "you judge the last guess alone; every place but the last has a next token": (
            "logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()",
            "logits[:, -2], tokens[:, -1]",
        ),
        "you flatten before you shift: the end of one passage is asked for the start of the next": (
            "logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()",
            "logits.flatten(0, 1)[:-1], tokens.flatten()[1:]",
        ),
        "you sum; the loss is a mean": ("1:].flatten())", '1:].flatten(), reduction="sum")'),
        "your loss has the wrong sign: it is minus the logarithm of a probability": ("return F", "return -F"),
        "shifted twice: place i is asked for token i + 2, the next but one; once is enough": (
            "logits[:, :-1].flatten(0, 1), tokens[:, 1:]",
            "logits[:, :-2].flatten(0, 1), tokens[:, 2:]",
        ),
        "both are cut at their end, so nothing is shifted: tokens lose their FIRST": (
            "tokens[:, 1:]",
            "tokens[:, :-1]",
        ),
        "both are cut at their beginning, so nothing is shifted: logits lose their LAST place": (
            "logits[:, :-1]",
            "logits[:, 1:]",
        ),
        "roll goes round: the last place is asked for the first token, and has no next one": (
            "logits[:, :-1].flatten(0, 1), tokens[:, 1:]",
            "logits.flatten(0, 1), tokens.roll(-1, 1)",
        ),
        "you shift between passages: axis 0 counts passages, axis 1 tokens": (
            "logits[:, :-1].flatten(0, 1), tokens[:, 1:]",
            "logits[:-1].flatten(0, 1), tokens[1:]",
        ),
        "the softmax is done twice in yours: F.cross_entropy takes logits, and does it itself": (
            "logits[:, :-1].flatten",
            "logits[:, :-1].softmax(-1).flatten",
        ),
        "token 0 is left out, as if it were padding; here it is a character as any other": (
            "1:].flatten())",
            "1:].flatten(), ignore_index=0)",
        ),
    },
)


def tempered(
    logits: Float[Tensor, "*b characters"],
    temperature: float,
) -> Float[Tensor, "*b characters"]:
    if temperature == 0:
        return F.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype)
    return (logits / temperature).softmax(-1)


def _heated(logits: Tensor, temperature: float) -> Case:
    return {"logits": logits, "temperature": temperature}


def _more_tempered(drawn: Draw) -> list[Case]:
    return [_heated(drawn(1, 3, 7), 0.7), _heated(drawn(2, 2, 5), 0.0), _heated(drawn(3, 11), 1.9)]


write_tempered = Write(
    name="tempered",
    notebook=PART,
    second=lambda n: seconds.tempered(write_tempered),
    title="Temperature",
    stars=1,
    minutes=5,
    why="every chat program has this slider, and few who turn it know the line behind it",
    asked=(
        "probabilities of the next character: softmax of logits / temperature over the last axis; at"
        " temperature 0 the likeliest character has 1"
    ),
    stages=(
        Stage(
            "two characters, temperature 1",
            lambda: [_heated(table([2.0, 0.0]), 1.0)],
            "At temperature 1 nothing is changed: softmax of 2 and 0.",
        ),
        Stage(
            "the same two, colder and hotter",
            lambda: [_heated(table([2.0, 0.0]), 0.5), _heated(table([2.0, 0.0]), 2.0)],
            "At 0.5 the logits become 4 and 0, at 2 they become 1 and 0.",
        ),
        Stage(
            "temperature 0",
            lambda: [_heated(table([1.0, 3.0, 2.0]), 0.0)],
            "Nobody can divide by 0; there the likeliest character gets 1, the others 0.",
        ),
        Stage(
            "two rows",
            lambda: [_heated(drawn(1, 2, 3), 0.5), _heated(drawn(2, 2, 3), 0.0)],
            "Each row sums to 1, and has a likeliest character of its own.",
        ),
    ),
    hints=(
        "What becomes of the logits before the softmax?",
        "Which case needs an if?",
        "What do F.one_hot and argmax(-1) make together, and which type of number does one_hot give?",
    ),
    solution=tempered,
    hidden=_more_tempered,
    remember="divide the logits, then softmax; 0 means the likeliest, always",
    slips={
        "you multiply by the temperature; it divides": ("logits / temperature", "logits * temperature"),
        "you leave the temperature out": ("(logits / temperature)", "logits"),
        "you divide the probabilities; they no longer sum to 1": (
            "(logits / temperature).softmax(-1)",
            "logits.softmax(-1) / temperature",
        ),
        "your softmax runs over the rows; it must run over the characters": ("softmax(-1)", "softmax(0)"),
        "at temperature 0 you divide by 0; that case needs a line of its own": (
            "temperature == 0",
            "temperature < 0",
        ),
        "you take one maximum over all rows; at temperature 0 each row has its own: argmax(-1)": (
            "F.one_hot(logits.argmax(-1), logits.shape[-1])",
            "F.one_hot(logits.argmax(), logits.numel()).view(logits.shape)",
        ),
        "at temperature 0 you give 1 to the UNlikeliest character": ("argmax", "argmin"),
        "these are logarithms of probabilities (log_softmax)": (".softmax(-1)", ".log_softmax(-1)"),
    },
)

ASKED = (
    questions_at_once,
    write_next_loss,
    no_positions,
    which_heat,
    write_tempered,
    at_zero,
    one_query,
)
