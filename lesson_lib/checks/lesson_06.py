"""Exercises of lesson 06, the Transformer: how do the parts make the whole?"""

from typing import Any

from lesson_lib.blocks import standardize
from lesson_lib.checks.exercise import Choice, Number, Open
from lesson_lib.checks.inputs import drawn
from lesson_lib.checks.lesson_06_code import forced, greedy, narrowed, normed, reordered

counted = Number(
    name="decoder_numbers",
    title="One look more: what does it cost?",
    stars=2,
    minutes=7,
    why="whoever can count a layer can count every model: the rest is multiplication",
    asked=(
        "ONE decoder layer, d_model = 10, d_inner = 60, 2 heads, no biases in attention, biases in the"
        " feed-forward network: how many learned numbers?"
    ),
    value=2 * 4 * 10 * 10 + 2 * 10 * 60 + 60 + 10 + 3 * 2 * 10,
    tolerance=1e-6,
    hints=(
        (
            "Which three sub-layers has a decoder layer? Which of them are attention, and which four matrices"
            " does each attention have?"
        ),
        (
            "The feed-forward network goes from 10 to 60 and back to 10. How many numbers has each matrix,"
            " and how long is each bias?"
        ),
        "How many norms are there, one per sub-layer? Each has a weight and a bias: how long are they?",
    ),
    solution=(
        "two attentions of 4 * 10 * 10 each: 800; the feed-forward network 10 * 60 + 60 and 60 * 10 + 10:"
        " 1270; three norms with weight and bias, 3 * 2 * 10 = 60. In all 2130, and the heads' number does"
        " not matter."
    ),
    remember=(
        "a decoder layer has 8 d_model^2 + 2 d_model d_inner + d_inner + 7 d_model numbers, an encoder layer"
        " 4 d_model^2 and a norm less"
    ),
    slips={
        "that is an encoder layer; a decoder layer also looks at the encoder's output, and has three norms": (
            "4*100 + 2*600 + 70 + 2*20"
        ),
        "a decoder layer has two attentions: one to its own words, one to the encoder's output": (
            "4*100 + 2*600 + 70 + 3*20"
        ),
        "three sub-layers, three norms: you counted two": "8*100 + 2*600 + 70 + 2*20",
        "one norm per sub-layer: you counted one in all": "8*100 + 2*600 + 70 + 20",
        "the norms are missing: each has a weight and a bias": "8*100 + 2*600 + 70",
        "a norm has a bias, too: 2 * d_model numbers": "8*100 + 2*600 + 70 + 3*10",
        "the feed-forward network has biases: 60 inside, 10 at its end": "8*100 + 2*600 + 3*20",
        "you counted the bias inside, 60, and forgot the one at the end, 10": "8*100 + 2*600 + 60 + 3*20",
        "both biases of the feed-forward network are not 60 long: the last one is as wide as a token": (
            "8*100 + 2*600 + 120 + 3*20"
        ),
        "the feed-forward network has two matrices, there and back": "8*100 + 600 + 70 + 3*20",
        "W_o is missing in both attentions: four matrices each": "6*100 + 2*600 + 70 + 3*20",
        "the heads share the width: two heads of width 5 have as many numbers as one of width 10": (
            "16*100 + 2*600 + 70 + 3*20"
        ),
        "attention has no biases here": "8*100 + 8*10 + 2*600 + 70 + 3*20",
        "that is six layers; asked is one": "6*2130",
    },
    right=(
        2130,
        "2 * 4 * 10**2 + (10*60 + 60) + (60*10 + 10) + 3 * (10 + 10)",
        "8*10^2 + 2*10*60 + 60 + 7*10",
    ),
)

SUBLAYERS = 24


def _streams() -> tuple[list[float], list[float]]:
    """The size of the numbers after 0, 1 ... sub-layers, with pre-norm and with post-norm."""
    before = after = standardize(drawn(1, 8, 512).double(), -1, eps=0.0)
    sizes = ([1.0], [1.0])
    for k in range(SUBLAYERS):
        made = standardize(drawn(k + 2, 8, 512).double(), -1, eps=0.0)
        before, after = before + made, standardize(after + made, -1, eps=0.0)
        for x, column in zip((before, after), sizes, strict=True):
            column.append(float(x.square().mean().sqrt()))
    return sizes


def _stream_picture() -> Any:
    from lesson_lib import plots

    before, after = _streams()
    counts = list(range(SUBLAYERS + 1))
    return plots.lines(
        {"size of the numbers in x": {"pre-norm": (counts, before), "post-norm": (counts, after)}},
        alt=(
            "Two curves over 24 sub-layers: pre-norm rises quickly, then ever more slowly; post-norm is a"
            " flat line."
        ),
        caption=(
            "Each sub-layer adds a row of variance 1. With pre-norm variances add up, 1 + k after k"
            " sub-layers, and the size is their root. With post-norm each sum is made standard again."
        ),
        x_axis="sub-layers passed",
        y_limits=(0.0, None),
    )


stream = Choice(
    name="stream_curve",
    title="How large does it get?",
    stars=2,
    minutes=5,
    why="it says why pre-norm needs one norm more at its end, and why its late layers seem to do little",
    asked=(
        "24 sub-layers, each makes rows of mean 0 and variance 1, unrelated to x: how large are the numbers"
        " of x, with pre-norm and with post-norm?"
    ),
    options={
        "a": "pre-norm: up like a square root, from 1 to about 5; post-norm: flat at 1",
        "b": "pre-norm: up in a straight line, from 1 to about 25; post-norm: flat at 1",
        "c": "both flat at 1: each has a norm at every sub-layer",
        "d": "post-norm: up like a square root, from 1 to about 5; pre-norm: flat at 1",
        "e": "pre-norm: it doubles with every sub-layer; post-norm: flat at 1",
        "f": "pre-norm: flat at 1; post-norm: down towards 0",
    },
    hints=(
        (
            "Write both down: x + sublayer(norm(x)) and norm(x + sublayer(x)). In which of them does x itself"
            " pass through a norm?"
        ),
        "Two unrelated rows are added. What happens to their variances?",
        "After k additions of variance 1, to an x of variance 1: what is the variance, and what is its root?",
    ),
    solution=(
        "a: with pre-norm x itself is never made standard, and unrelated variances add: 1 + k after k"
        " sub-layers, size sqrt(1 + k), which is 5 after 24. With post-norm the norm acts on the sum, so x"
        " leaves each sub-layer with variance 1."
    ),
    remember=(
        "pre-norm normalizes what a sub-layer READS, post-norm what it leaves: so pre-norm's stream grows,"
        " and a last norm must follow"
    ),
    slips={
        "b adds sizes; what adds up for unrelated rows is the variances, and the size is their root": "b",
        "c forgets where pre-norm has its norm: on what the sub-layer reads; x itself goes round it": "c",
        "d has the two exchanged: post-norm means that the norm comes after the sum, and acts on x": "d",
        "e would need sub-layers whose outputs grow with x; they read norm(x), which does not grow": "e",
        "f forgets that a norm makes the variance 1, neither more nor less; nothing shrinks to 0": "f",
    },
    right=("a", " (A)"),
    picture=_stream_picture,
)

differs = Open(
    name="why_training_differs",
    title="Training and writing",
    stars=2,
    minutes=7,
    why="a model with a perfect training loss can still lose its way in its own sentence",
    asked=(
        "in two or three sentences: which earlier words does a decoder read while it trains, which while it"
        " writes, and what can go wrong?"
    ),
    hints=(
        (
            "In training the whole right sentence lies on the table. Which words does position 5 read, and"
            " who wrote them?"
        ),
        (
            "While writing there is no right sentence. Who wrote the words before position 5 now, and when"
            " could they be written?"
        ),
        (
            "Suppose that word 3 is a mistake. What does position 4 read, and did it ever read such a thing"
            " in training?"
        ),
    ),
    solution=(
        "In training the decoder reads the right words before each position (teacher forcing). They are all"
        " known, so behind a causal mask every position is computed at once. When it writes, it reads its own"
        " words, which come into being one after the other. If one of them is a mistake, everything after it"
        " is built on a beginning that it never met in training, and errors can add up."
    ),
    remember=(
        "teacher forcing: the right words before, all positions at once; writing: its own words before, one"
        " at a time, mistakes included"
    ),
    wrong={
        "the causal mask holds in training, too: no position reads later words, nor the one it must guess": (
            r"(?<!cannot )(sees?|looks? at|knows?|reads?|attends? to|peeks? at) (at )?(the )?"
            r"(future|next word|later words|following words|coming words|word (that )?it (must|has"
            r" to|should))"
        ),
        "nothing is learned while it writes: its weights stay as they are": (
            r"(?<!while it )(?<!while the model )(?<!while the decoder )(learns?|updates?|adapts?|weights?"
            r" chang\w+|trains?)\b[^,]*(?<!and )\b(while|when|as) "
            r"(it |the decoder )?(is )?(writ|translat|generat)|"
            r"keeps? learning"
        ),
        "the encoder does the same both times; the question is what the decoder reads": (
            r"\bencoder\b.*(differ|only (in|during|while)|another|switched off)"
        ),
        "dropout is off when any network is used; the question is which words the decoder reads": r"dropout",
        "a beam looks for a better sentence; in each of its lines the decoder still reads words of its own": (
            r"\bbeam"
        ),
        "it goes wrong even with sentences that it has trained on: it is not about new ones": (
            r"over-?fit|memori[sz]|unseen (words|sentences|data)|new (sentences|data)|too little"
            r" data|vocabulary"
        ),
    },
    points={
        "which words does it read before each position while it trains: who wrote them?": (
            r"\bright\b|\bgold|\btrue\b|correct|target|teacher|reference|\breal\b|\bgiven\b|ground"
        ),
        "which words does it read while it writes: who wrote those?": (
            r"\bown\b|\bit(self)? (has"
            r" )?(wrote|written|chose|chosen|guess|predict|produced|generated)|(generated|predicted|guessed)"
            r" (words?|tokens?)|previous (outputs?|predictions?|guesses)|previously"
        ),
        "what can be computed at once, and what must come one after the other?": (
            r"at once|parallel|one (pass|step)|at a time|one (by|after)|(word|token|step) by|after (the|each)"
            r" other|\bloop|in turn|sequential"
        ),
        "what becomes of one mistake?": (
            r"mistake|error|\bwrong|astray|never (met|saw|seen|read|learn|train)|drift|accumul|add"
            r" up|compound|unlike"
        ),
    },
    slips={
        "the causal mask holds in training, too: no position reads later words, nor the one it must guess": (
            "In training the decoder sees the future words."
        ),
        "nothing is learned while it writes: its weights stay as they are": (
            "The decoder learns from its errors while it writes."
        ),
        "the encoder does the same both times; the question is what the decoder reads": (
            "The encoder works in a different way when the model writes."
        ),
        "dropout is off when any network is used; the question is which words the decoder reads": (
            "In training there is dropout."
        ),
        "a beam looks for a better sentence; in each of its lines the decoder still reads words of its own": (
            "It uses beam search to write."
        ),
        "it goes wrong even with sentences that it has trained on: it is not about new ones": (
            "It overfits to the training sentences."
        ),
    },
    right=(
        (
            "Teacher forcing puts the correct words before every position, so all losses are computed in"
            " parallel. Later the model reads words that it chose, one at a time, and after a wrong one it is"
            " somewhere it has never been."
        ),
        (
            "While it trains it reads the right words and while it writes its own. In training all places are"
            " computed at once, in writing one after the other, so one mistake is read by all that follow."
        ),
        (
            "While training it reads the target, shifted by one, in one pass with a causal mask. While"
            " writing it reads its own output in a loop, and an early error is read by all later steps."
        ),
    ),
)

EXERCISES = (counted, normed, reordered, stream, forced, greedy, narrowed, differs)
