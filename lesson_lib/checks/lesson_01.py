"""Exercises of lesson 01, history: where did attention come from?"""

from typing import Any

from lesson_lib.checks.exercise import Choice, Number, Open
from lesson_lib.checks.inputs import table
from lesson_lib.checks.lesson_01_code import glimpse, policy, regression, shares, step

counted = Number(
    name="word_before",
    title="How good can it get?",
    stars=1,
    minutes=4,
    why="whoever knows the limit of what a model sees does not train in vain",
    asked=(
        "the table counts 25 words: the best share of right tags for a tagger that sees a word and the word"
        " before it?"
    ),
    value=21 / 25,
    hints=(
        (
            "First a tagger that sees the word alone: which tag does it give to each `saw`, and which to each"
            " `cut`?"
        ),
        (
            "Now it sees two words. Which rows of the table can it tell apart, and which tag is best in each"
            " of them?"
        ),
        "In `man saw` 4 of 6 are right. Add up what is right in all six rows: what do you divide it by?",
    ),
    solution=(
        "the largest count of each row: 2 + 6 + 4 + 2 + 3 + 4 = 21 of 25, 0.84. With the word alone `saw` is"
        " a past form 10 times of 14 and `cut` a base form 7 times of 11: 17 of 25, 0.68."
    ),
    remember=(
        "the limit belongs to what is seen, not to the network; who sees more can be better, and never has a"
        " lower limit"
    ),
    slips={
        "that is the limit of the word alone, a good first step; now each row of the table may have a tag of its own": (
            "17 / 25"
        ),
        "that is one tag for all 25 words; each row may have a tag of its own": "12 / 25",
        "that sees the word before, and not the word itself": "19 / 25",
        "you took the mean of the six rows' shares; a row with 6 words counts more than one with 2": (
            "(1 + 1 + 4/6 + 1 + 3/4 + 4/5) / 6"
        ),
        "only the rows with a single tag count here; in the others the most frequent tag is right now and then, too": (
            "10 / 25"
        ),
        "that is the number of right answers; divide it by 25": 21,
        "that is the share of wrong answers": "4 / 25",
        "you counted rows; count the words in them": "3 / 6",
    },
    right=(0.84, "21 / 25", "84 %"),
)

WRITTEN, READ = ("0", "5", "-", "1", "7"), ("1", "7", "space", "M", "a", "y")
ALIGNMENT = (
    (0.01, 0.02, 0.03, 0.86, 0.05, 0.03),
    (0.01, 0.02, 0.01, 0.46, 0.04, 0.46),
    (0.15, 0.18, 0.22, 0.15, 0.14, 0.16),
    (0.94, 0.03, 0.01, 0.01, 0.00, 0.01),
    (0.04, 0.93, 0.01, 0.01, 0.00, 0.01),
)


def _alignment_picture() -> Any:
    from lesson_lib import plots

    return plots.heatmap(
        table(ALIGNMENT),
        alt=(
            "Heat map of weights, 5 written by 6 read characters: one bright cell in the rows 0, 1 and 7, two"
            " of middle brightness in the row 5, and a row without a bright cell for the dash."
        ),
        caption=(
            "A row is one written character, and its weights sum to 1. A column shows who looked at a"
            " character that was read."
        ),
        rows=WRITTEN,
        columns=READ,
        row_axis="written",
        column_axis="read",
        limits=(0.0, 1.0),
    )


alignment = Choice(
    name="read_alignment",
    title="Who looked where?",
    stars=1,
    minutes=4,
    why="you will read many such tables; first find out which axis asks",
    asked=(
        "rows: written characters, columns: read ones. Which character is a mixture of two, and of which two?"
    ),
    options={
        "a": "the written 5: a mixture of the M and the y that were read",
        "b": "the M that was read: a mixture of the written 0 and 5",
        "c": "the written dash: a mixture of the space and the 7 that were read",
        "d": "the written 0: a mixture of the M and the a that were read",
        "e": "the written 7: a mixture of the 1 and the 7 that were read",
        "f": "none of them: softmax takes the largest score",
    },
    hints=(
        "The weights of one query sum to 1. Do the rows of this table sum to 1, or the columns?",
        (
            "Who asks: the characters that are written, or those that were read? So along which direction do"
            " you read a mixture?"
        ),
        "Which row has two large numbers that together are nearly all of it?",
    ),
    solution=(
        "a: the row of 5 sums to 1, and 0.46 + 0.46 = 0.92 of it lies on M and y. Two cells make a mixture"
        " only within a row; the column of M says that both 0 and 5 looked at it, and sums to 1.49."
    ),
    remember=(
        "rows ask, and sum to 1: read a mixture along a row; down a column you find all who looked at one"
        " place"
    ),
    slips={
        "b reads down a column: it says that 0 and 5 both looked at M; a mixture is made along a row, which sums to 1": (
            "b"
        ),
        "c leaves out too much: space and 7 have 0.40 together; this row is spread over all six": "c",
        "d gives a small weight too much: M alone has 0.86 of that row, a has 0.05": "d",
        "e gives a small weight too much: the 7 that was read has 0.93 of that row, the 1 has 0.04": "e",
        "f is argmax; softmax mixes all, and in one row two have 0.46 each": "f",
    },
    right=("a", "A)"),
    picture=_alignment_picture,
)

why = Open(
    name="what_they_miss",
    title="What neither can see",
    stars=2,
    minutes=5,
    why="three architectures, told apart by one question: which words may this output depend on?",
    asked=(
        "in two or three sentences: what does a window not see of `cut`, what has an RNN not read at `saw`,"
        " and what of attention?"
    ),
    hints=(
        (
            "Which word makes `cut` a base form, and how many words before it does it stand? How far does the"
            " window reach?"
        ),
        (
            "An RNN stands at `saw` in `the garden saw`. Which word tells a noun from a past form, and has it"
            " been read?"
        ),
        (
            "Attention scores a word against which words, and how many steps lie between a word and the"
            " farthest of them?"
        ),
    ),
    solution=(
        "The auxiliary `did` makes `cut` a base form; it stands ten words before it, and the window of two"
        " words does not reach so far. An RNN can carry `did` along in its state, but at `saw` it has not"
        " read the next word, and only that word tells a noun from a past form (a second RNN, from right to"
        " left, would have read it). Attention scores every word against all words of the sentence, before"
        " and after, in one step; it must be told their positions."
    ),
    remember=(
        "a window misses what is far, an RNN from left to right what is still to come; attention sees all,"
        " and must be told the order"
    ),
    wrong={
        "an RNN is no window: its state can carry a word over any distance; what it cannot know is what comes later": (
            r"(rnn|recurrent)[^,]{0,30}\b(is|as|like)\b (just |only |simply |merely )?an? (\w+ )?window|"
            r"(rnn|recurrent)[^,]{0,25}\b(only|just)\b[^,]{0,20}(neighbou?rs?|nearby|near|last"
            r" (few|two|three))"
        ),
        "no training helps: what is not in sight cannot be learned, it can only be guessed": (
            r"(more|longer|better|enough) training|train\w* (longer|more)|more (data|examples|parameters)"
        ),
        "that is about time; asked is what each can know": r"\bslow|\bfast|parallel|\bspeed",
        "that is about how hard it is to learn; asked is what it cannot know at all": r"gradient",
        "attention mixes all words; it takes no single one": (
            r"(picks|chooses|selects|takes|looks at) (only |just )?(one|a single|the best|the most)( \w+)?"
            r" (words?|tokens?)"
        ),
        "attention by itself sees a bag of words; positions must be added before it knows the order": (
            r"^\s*(self-)?attention (knows|keeps|reads|understands|learns) (about )?(the )?(word"
            r" )?order(?!.*\bposition)"
        ),
    },
    points={
        "which word decides on `cut`, and why does the window not hold it?": (
            r"\bdid\b|auxiliar|\bfar\b|farther|further|outside|reach|beyond|distan|remote|neighbou?r|narrow|\bsmall|\bshort|\bonly"
            r" (the )?(two|2|near)"
        ),
        "what has an RNN not read when it stands at `saw`?": (
            r"\blater|\bafter|\bnext\b|follow|future|ahead|not (yet )?(been )?(read|seen)|to the right|to"
            r" come|comes? behind|\bthe past\b|"
            r"(rnn|recurrent)[^.;]{0,60}(n't |not |cannot |only (the )?(left|previous|earlier))"
        ),
        "which words may attention look at?": (
            r"\b(all|every|any|each|whole|entire|both)\b( \w+){0,2}"
            r" (words?|tokens?|pairs?|sentence|places?|positions?|distances?|sides|directions)"
            r"|everything|anywhere|everywhere|\bboth (ways|directions|sides)|before and after"
        ),
    },
    slips={
        "an RNN is no window: its state can carry a word over any distance; what it cannot know is what comes later": (
            "An RNN is just a long window."
        ),
        "no training helps: what is not in sight cannot be learned, it can only be guessed": (
            "With more training the window would learn it."
        ),
        "that is about time; asked is what each can know": "The RNN is slower than attention.",
        "that is about how hard it is to learn; asked is what it cannot know at all": (
            "In the RNN the gradient vanishes over ten words."
        ),
        "attention mixes all words; it takes no single one": "Attention picks the most relevant word.",
        "attention by itself sees a bag of words; positions must be added before it knows the order": (
            "Attention knows the order of the words."
        ),
    },
    right=(
        (
            "The window is too small: did is ten words away from cut. The RNN has not read the word after"
            " saw. Attention looks at all words at once, wherever they stand."
        ),
        (
            "For cut the auxiliary lies outside the window; for saw the deciding word comes later than an RNN"
            " has read. With attention every word may use any word of the sentence."
        ),
    ),
)

EXERCISES = (counted, shares, regression, glimpse, policy, step, alignment, why)
