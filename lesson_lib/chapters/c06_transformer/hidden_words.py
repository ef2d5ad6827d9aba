"""What part 06d asks: four predictions, and three functions that the learner writes."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lesson_lib.chapters.c06_transformer import seconds_alone as seconds
from lesson_lib.chapters.c06_transformer.agreement import MASK
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Choice

PART = "06d_bert"

two_neighbours = Choice(
    name="two_neighbours",
    notebook=PART,
    title="Two neighbours",
    asked=(
        "Somebody counts which word stands between which two neighbours. Between 'cabinet' and 'old' the"
        " count prefers:"
    ),
    options={"a": "is", "b": "are", "c": "both alike"},
    answer="a",
    remember="often the word before a verb is its subject; here it is not",
    slips={
        "that needs the word keys, and the count has only the two neighbours": "b",
        "cabinet is singular, and often it is itself the subject": "c",
    },
)

how_many_masks = Choice(
    name="how_many_masks",
    notebook=PART,
    title="How many masks?",
    asked="Of 1,000 words, how many show as [mask], and for how many does the loss ask?",
    options={"a": "150 and 150", "b": "120 and 120", "c": "120 and 150"},
    answer="c",
    remember="80 % of 150 show as [mask]; all 150 are asked for",
    slips={
        "only 80 % of the chosen words become [mask]": "a",
        "a chosen word that stays or is replaced is asked for, too": "b",
    },
)

blind_one_head = Choice(
    name="blind_one_head",
    notebook=PART,
    title="Blind it",
    asked=(
        "Hide the subject from the gap in layer 1, head 1 alone. Right verbs of 100 misleading sentences:"
    ),
    options={"a": "about 100", "b": "about 50", "c": "about 10"},
    answer="c",
    remember="the nouns that are left all have the wrong number",
    slips={
        "that holds if another head carries the number as well": "a",
        "a coin gets 50; does the model now guess, or does it trust the nouns that are left?": "b",
    },
)

third_seed = Choice(
    name="third_seed",
    notebook=PART,
    title="Seed 2",
    asked="Seed 2: hide the subject from the gap in all four heads at once. Right verbs of 100:",
    options={"a": "about 10", "b": "about 50", "c": "about 95"},
    answer="c",
    remember="the gap hardly needs to see the subject",
    slips={
        "so it was in seed 0; here the gap can hear of the subject from words that have seen it": "a",
        "a guess gets that; can no other word tell the gap the number?": "b",
    },
)


def hide_words(
    words: Int[Tensor, "b n"],
    chosen: Bool[Tensor, "b n"],
    fate: Float[Tensor, "b n"],
    other: Int[Tensor, "b n"],
) -> Int[Tensor, "b n"]:
    hidden = torch.where(fate < 0.8, MASK, torch.where(fate < 0.9, other, words))
    return torch.where(chosen, hidden, words)


def _whole(rows: list) -> Tensor:
    return torch.tensor(rows, device="cpu")


def _fated(words: list, chosen: list, fate: list, other: list) -> Case:
    return {
        "words": _whole(words),
        "chosen": _whole(chosen).bool(),
        "fate": table(fate),
        "other": _whole(other),
    }


def _more_hide_words(drawn: Draw) -> list[Case]:
    ranks = [drawn(seed, 3, 11).flatten().argsort().argsort().view(3, 11) for seed in (1, 2, 3, 4)]
    words, chosen, fate, other = ranks
    return [{"words": words + 2, "chosen": chosen % 2 == 0, "fate": (fate + 0.5) / 33, "other": other + 40}]


write_hide_words = Write(
    name="hide_words",
    notebook=PART,
    second=lambda n: seconds.hide_words(write_hide_words),
    title="Hide words",
    stars=2,
    minutes=6,
    why="this line turns any text into questions with known answers",
    asked=(
        "where `chosen`: [mask], the word MASK, if fate < 0.8; the word of `other` if fate is from 0.8 to"
        " 0.9; else the word itself. Words that are not chosen stay."
    ),
    stages=(
        Stage(
            "two chosen words become [mask], word 1",
            lambda: [_fated([[5, 6, 7]], [[1, 0, 1]], [[0.1, 0.5, 0.7]], [[9, 9, 9]])],
            "Only chosen words change, and a fate below 0.8 means MASK.",
        ),
        Stage(
            "another word",
            lambda: [_fated([[5, 6, 7]], [[1, 1, 0]], [[0.85, 0.2, 0.85]], [[8, 9, 10]])],
            "A fate from 0.8 to 0.9 takes the word of `other` in the same place.",
        ),
        Stage(
            "a chosen word that stays",
            lambda: [_fated([[5, 6, 7]], [[1, 1, 1]], [[0.95, 0.85, 0.3]], [[8, 9, 10]])],
            "From 0.9 on a chosen word stays as it is.",
        ),
        Stage(
            "a batch",
            lambda: [
                _fated(
                    [[5, 6, 7, 8, 9], [10, 11, 12, 13, 14]],
                    [[1, 1, 0, 1, 0], [0, 1, 1, 0, 1]],
                    [[0.79, 0.81, 0.1, 0.91, 0.85], [0.3, 0.89, 0.5, 0.95, 0.99]],
                    [[20, 21, 22, 23, 24], [25, 26, 27, 28, 29]],
                )
            ],
            "Each place has a fate of its own.",
        ),
    ),
    hints=(
        "What does torch.where(condition, a, b) give, place by place?",
        "There are three fates. Which torch.where inside another tells three cases apart?",
        "Which condition decides at the very end whether anything changes at all?",
    ),
    solution=hide_words,
    hidden=_more_hide_words,
    remember="the model is asked for every chosen word, and cannot tell which visible words were chosen",
    slips={
        "you change words that were not chosen": ("torch.where(chosen, hidden, words)", "hidden"),
        "every chosen word becomes [mask]; a tenth gets another word, a tenth stays": (
            "torch.where(fate < 0.8, MASK, torch.where(fate < 0.9, other, words))",
            "torch.full_like(words, MASK)",
        ),
        "the other word and the word itself have changed places": ("other, words))", "words, other))"),
        "the second border is 0.9, since the second tenth begins at 0.8": ("fate < 0.9", "fate < 0.1"),
        "most fates are below 0.8, and these become [mask]": ("fate < 0.8", "fate >= 0.8"),
        "you write 0, which is padding; [mask] is MASK, word 1": ("MASK, torch", "0, torch"),
        "below 0.8, too, the word of `other` stands in yours: it is for 0.8 to 0.9, [mask] for all below": (
            "torch.where(fate < 0.8, MASK, torch.where(fate < 0.9, other, words))",
            "torch.where(fate < 0.9, other, words)",
        ),
    },
)


def hidden_loss(
    logits: Float[Tensor, "b n n_words"],
    words: Int[Tensor, "b n"],
    chosen: Bool[Tensor, "b n"],
) -> Float[Tensor, ""]:
    return F.cross_entropy(logits[chosen], words[chosen])


def _asked(logits: Tensor, words: list, chosen: list) -> Case:
    return {"logits": logits, "words": _whole(words), "chosen": _whole(chosen).bool()}


def _more_hidden_loss(drawn: Draw) -> list[Case]:
    words = drawn(2, 2, 7).flatten().argsort().view(2, 7) % 5
    return [{"logits": drawn(1, 2, 7, 5), "words": words, "chosen": (words + torch.arange(7)) % 3 == 0}]


write_hidden_loss = Write(
    name="hidden_loss",
    notebook=PART,
    second=lambda n: seconds.hidden_loss(write_hidden_loss),
    title="The loss over chosen places",
    stars=1,
    minutes=4,
    why="a loss over all places teaches mostly to copy, and its small numbers look like success",
    asked="the mean cross-entropy of the true words at the chosen places, and at no other place",
    stages=(
        Stage(
            "two places, one chosen",
            lambda: [_asked(table([[[0.0, 2.0, 0.0], [3.0, 0.0, 1.0]]]), [[1, 2]], [[0, 1]])],
            "The chosen place has the logits 3, 0, 1 and the true word 2.",
        ),
        Stage(
            "three places, two chosen: their mean",
            lambda: [_asked(drawn(1, 1, 3, 5), [[4, 0, 2]], [[1, 0, 1]])],
            "Two numbers, and half of their sum.",
        ),
        Stage(
            "a batch, with different counts of chosen places",
            lambda: [
                _asked(
                    drawn(2, 2, 5, 3), [[0, 1, 2, 0, 1], [2, 2, 1, 0, 0]], [[1, 0, 0, 0, 0], [1, 1, 1, 0, 1]]
                )
            ],
            "Each chosen place counts once, in whichever sentence it stands.",
        ),
    ),
    hints=(
        "Which shape has logits[chosen], and which rows are in it?",
        "F.cross_entropy wants a row of logits and a word for each. Which words belong to these rows?",
        "Does F.cross_entropy sum or average, if you ask for nothing?",
    ),
    solution=hidden_loss,
    hidden=_more_hidden_loss,
    remember="logits[chosen] and words[chosen]: questions and answers, nothing else",
    slips={
        "every place counts in yours; only the chosen ones may": (
            "logits[chosen], words[chosen]",
            "logits.flatten(0, 1), words.flatten()",
        ),
        "you ask for the places that were not chosen": (
            "logits[chosen], words[chosen]",
            "logits[~chosen], words[~chosen]",
        ),
        "you sum; the loss is a mean": ("words[chosen])", 'words[chosen], reduction="sum")'),
        "you divide by the number of all places; divide by the number of chosen ones": (
            "words[chosen])",
            'words[chosen], reduction="sum") / chosen.numel()',
        ),
        "your loss has the wrong sign: it is minus the logarithm of a probability": (
            "return F",
            "return -F",
        ),
        "you take a mean of each sentence first; take one mean over all chosen places": (
            "return F.cross_entropy(logits[chosen], words[chosen])",
            'each = F.cross_entropy(logits.mT, words, reduction="none") * chosen\n'
            "    return (each.sum(1) / chosen.sum(1)).mean()",
        ),
        "the softmax is done twice in yours: F.cross_entropy takes logits, and does it itself": (
            "logits[chosen],",
            "logits[chosen].softmax(-1),",
        ),
        "you shift, as for the next word; here a place is asked for its own word, so nothing is shifted": (
            "logits[chosen], words[chosen]",
            "logits[:, :-1][chosen[:, 1:]], words[:, 1:][chosen[:, 1:]]",
        ),
        "the place before is asked for the chosen word: logits and words belong to one place": (
            "logits[chosen], ",
            "logits.roll(1, 1)[chosen], ",
        ),
        "the place behind is asked for the chosen word: logits and words belong to one place": (
            "logits[chosen], ",
            "logits.roll(-1, 1)[chosen], ",
        ),
    },
)


def hidden_from_gap(
    gap: Int[Tensor, " b"],
    subject: Int[Tensor, " b"],
    n: int,
) -> Bool[Tensor, "b n n"]:
    place = torch.arange(n)
    asks = (place == gap[:, None])[:, :, None]
    seen = (place == subject[:, None])[:, None, :]
    return ~(asks & seen)


def _gaps(gap: list[int], subject: list[int], n: int) -> Case:
    return {"gap": _whole(gap), "subject": _whole(subject), "n": n}


def _more_hidden_from_gap(drawn: Draw) -> list[Case]:
    places = drawn(1, 13).argsort()
    return [{"gap": places[:5], "subject": places[5:10], "n": 13}]


write_hidden_from_gap = Write(
    name="hidden_from_gap",
    notebook=PART,
    second=lambda n: seconds.FROM_ALL,
    title="One look, forbidden",
    stars=2,
    minutes=6,
    why="a test of one look must change that look and nothing else",
    asked=(
        "a mask for each sentence, True = may look: False where the query stands at its `gap` and the key at"
        " its `subject`"
    ),
    stages=(
        Stage(
            "three words: the gap is word 2, the subject word 0",
            lambda: [_gaps([2], [0], 3)],
            "Rows are queries, columns keys: row 2, column 0.",
        ),
        Stage(
            "two sentences",
            lambda: [_gaps([3, 1], [1, 4], 5)],
            "Each sentence has a table of its own, with one False in it.",
        ),
        Stage(
            "five sentences of seven words",
            lambda: [_gaps([6, 2, 3, 0, 5], [1, 0, 4, 6, 5], 7)],
            "Compare torch.arange(n) with the places of all sentences at once: which axes do you need?",
        ),
    ),
    hints=(
        "torch.arange(n) == gap is True at one place. Which axis must it run along, rows or columns?",
        "Which shapes must the two comparisons have, so that & makes (b, n, n) of them?",
        "Where does None go in gap[:, None], to keep the sentences on the first axis?",
    ),
    solution=hidden_from_gap,
    hidden=_more_hidden_from_gap,
    remember="a row of the table belongs to the word that asks, a column to the word that is looked at",
    slips={
        "rows and columns have changed places: the subject may not see the gap in yours": (
            "return ~(asks & seen)",
            "return ~(asks & seen).mT",
        ),
        "you hide the subject from every word; only the gap may not see it": (
            "asks & seen",
            "seen.expand(-1, n, -1)",
        ),
        "the gap sees nothing at all in yours; hide one column of its row": (
            "asks & seen",
            "asks.expand(-1, -1, n)",
        ),
        "a row and a column are hidden; their crossing alone is meant": ("asks & seen", "asks | seen"),
        "your table says what is hidden; True means may look": ("~(asks & seen)", "asks & seen"),
        "in yours each table hides the pairs of all sentences: index it by its own number, not by a colon": (
            "asks & seen",
            "(asks & seen).any(0).expand(len(gap), -1, -1)",
        ),
    },
)

ASKED = (
    two_neighbours,
    how_many_masks,
    write_hide_words,
    write_hidden_loss,
    blind_one_head,
    write_hidden_from_gap,
    third_seed,
)
