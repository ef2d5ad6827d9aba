"""Second problems of 06d and 06e, the encoder alone and the decoder alone."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from lesson_lib.checks.exercise import Case, Exercise, Stage, Write
from lesson_lib.checks.expose import catch


def hide_words(first: Write) -> Exercise:
    """Inputs on which hiding every chosen word shows."""
    return catch(
        first,
        "somebody turns every chosen word into [mask]. Write one sentence on which that shows",
        "every chosen word becomes [mask]; a tenth gets another word, a tenth stays",
        {
            "words": "torch.tensor([[5, 6]])",
            "chosen": "torch.tensor([[True, False]])",
            "fate": "torch.tensor([[0.95, 0.5]])",
            "other": "torch.tensor([[8, 9]])",
        },
        remember="a test with low fates only never meets the other two cases",
        hints=(
            "What becomes of a chosen word with a fate below 0.8, in the right function and in this one?",
            "Which fates does the right function treat differently?",
            "Must the word with that fate be chosen?",
        ),
        slips={
            "no word is chosen, and so none changes": lambda words, chosen, fate, other: not chosen.any(),
            "the fate of every chosen word is below 0.8, and both functions write [mask]": (
                lambda words, chosen, fate, other: bool((fate[chosen] < 0.8).all())
            ),
        },
    )


def hidden_loss(first: Write) -> Exercise:
    """Inputs on which a loss over all places shows."""
    return catch(
        first,
        "somebody averages over all places. Write logits of three words at two places on which that shows",
        "every place counts in yours; only the chosen ones may",
        {
            "logits": "torch.tensor([[[0.0, 0.0, 0.0], [9.0, 0.0, 0.0]]])",
            "words": "torch.tensor([[1, 0]])",
            "chosen": "torch.tensor([[True, False]])",
        },
        remember="where the visible words are easy, a mean over all places looks better than the guesses are",
        hints=(
            "Which places does the wrong mean take in as well?",
            "What must be different at those places, so that the mean moves?",
            "What if the place that is not chosen has a large logit for its true word?",
        ),
        slips={
            "every place is chosen, so both means are over the same places": (
                lambda logits, words, chosen: bool(chosen.all())
            ),
            "all logits are equal, and every place has the same loss": (
                lambda logits, words, chosen: bool((logits == logits.flatten()[0]).all())
            ),
        },
    )


def hidden_from_gap_2(
    subject: Int[Tensor, " b"],
    lengths: Int[Tensor, " b"],
    n: int,
) -> Bool[Tensor, "b n n"]:
    place = torch.arange(n)
    real = (place < lengths[:, None])[:, None, :]
    shown = (place != subject[:, None])[:, None, :]
    return (real & shown).expand(-1, n, -1)


def _sentences(subject: list[int], lengths: list[int], n: int) -> Case:
    given = {"subject": subject, "lengths": lengths}
    return {name: torch.tensor(places, device="cpu") for name, places in given.items()} | {"n": n}


FROM_ALL = Write(
    name="hidden_from_gap_2",
    title="Hidden from every word",
    asked=(
        "now as a mask, where True means may look: in each sentence of `lengths` words, padded to n, no query"
        " may see the subject or the padding; (b, n, n)"
    ),
    stages=(
        Stage(
            "three words, the subject is word 1",
            lambda: [_sentences([1], [3], 3)],
            "Column 1 is False in every row, the others are True.",
        ),
        Stage(
            "a sentence of two words, padded to four",
            lambda: [_sentences([0], [2], 4)],
            "Columns 2 and 3 are padding, and False as well.",
        ),
        Stage(
            "two sentences",
            lambda: [_sentences([2, 4], [5, 7], 7)],
            "Every row of a sentence's table is the same.",
        ),
    ),
    hints=(
        "Which columns are False in every row?",
        "Which shape has torch.arange(n) != subject[:, None], and where does the axis of the queries go?",
        "What does expand do with an axis of length 1?",
    ),
    solution=hidden_from_gap_2,
    remember="a column that is False in every row is a word that nobody sees",
    slips={
        "rows and columns have changed places: in yours the subject sees nothing": (
            ".expand(-1, n, -1)",
            ".expand(-1, n, -1).mT",
        ),
        "padding may still be seen": ("real & shown", "shown"),
        "the subject may still be seen": ("real & shown", "real"),
        "True means may look here": ("(real & shown)", "(~(real & shown))"),
    },
)


def next_loss(first: Write) -> Exercise:
    """Inputs on which a loss that is not shifted shows."""
    return catch(
        first,
        "somebody forgot to shift. Write logits of two characters at two places on which that shows",
        "nothing is shifted: each place is asked for the token that it has just read",
        {"logits": "torch.tensor([[[5.0, 0.0], [5.0, 0.0]]])", "tokens": "torch.tensor([[0, 1]])"},
        remember="a model that copies looks perfect to a loss that is not shifted",
        hints=(
            "Of which token does the right loss ask the first place, and of which the wrong one?",
            "What if the two tokens are the same?",
            "Which logits make one of the two tokens much likelier than the other?",
        ),
        slips={
            "all logits are equal, and every guess is as good": (
                lambda logits, tokens: bool((logits == logits.flatten()[0]).all())
            ),
            "all tokens are the same, and a copy is the right guess": (
                lambda logits, tokens: bool((tokens == tokens.flatten()[0]).all())
            ),
        },
    )


def tempered(first: Write) -> Exercise:
    """Inputs on which multiplying by the temperature shows."""
    return catch(
        first,
        "somebody multiplies by the temperature. Write logits of two characters and a temperature on which"
        " that shows",
        "you multiply by the temperature; it divides",
        {"logits": "torch.tensor([1.0, 0.0])", "temperature": "2.0"},
        remember="a test at temperature 1 tests no temperature",
        hints=(
            "For which temperature is dividing the same as multiplying?",
            "Which logits look the same at every temperature?",
            "Is a row with different logits, at temperature 2, flatter or steeper in the wrong function?",
        ),
        slips={
            "at temperature 1 both do the same": lambda logits, temperature: temperature == 1,
            "equal logits stay equal at every temperature": (
                lambda logits, temperature: bool((logits == logits.flatten()[0]).all())
            ),
        },
    )
