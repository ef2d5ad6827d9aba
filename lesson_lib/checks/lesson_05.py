"""Exercises of lesson 05, positional encoding: how does it know order?"""

import math
from typing import Any

import torch

from lesson_lib.checks.exercise import Choice, Number, Open
from lesson_lib.checks.lesson_05_code import relative, shift, table_of_waves, turn
from lesson_lib.positions import sinusoidal

wave = Number(
    name="wavelength",
    title="How long is a wave?",
    stars=1,
    minutes=5,
    why="the wavelengths say which distances a column can tell apart",
    asked=(
        "sinusoids of width d = 16, base 10000, columns counted from 0: after how many tokens does column 8"
        " repeat?"
    ),
    value=200 * math.pi,
    hints=(
        "Columns 2j and 2j + 1 share a frequency. Which j is column 8's?",
        "w_j = 10000 ** (-2j / 16). What is that for this j? (10000 is 10 ** 4.)",
        "The column is sin(i w_j). For which i has the angle gone round once, that is, by 2 pi?",
    ),
    solution=(
        "column 8 = 2j with j = 4; w_4 = 10000 ** (-8/16) = 1/100; one turn is 2 pi, so i = 2 pi / w_4 = 200"
        " pi = 628.3185"
    ),
    remember="wavelengths grow from 2 pi to nearly 10000 * 2 pi, by the same factor from pair to pair",
    slips={
        "8 is the column, and 2j = 8: you took j = 8": "2 * pi * 10000",
        "your exponent is -j/d; it is -2j/d": "2 * pi * 10",
        "that is 1 / w; once round is 2 pi, not 1": 100,
        "that is the frequency w; asked is the wavelength, 2 pi / w": "1 / 100",
        "that is turns per token, w / (2 pi); asked is tokens per turn": "1 / (200 * pi)",
        "after pi the sine is 0 again, but it goes the other way; once round is 2 pi": "100 * pi",
        "you counted columns from 1, and took the pair before; counted from 0, column 8 is the sine of j = 4": (
            "2 * pi * 10000**(6/16)"
        ),
    },
    right=("200 * pi", 628.3185, "2 * pi * 10000**(8 / 16)"),
)

shaw = Number(
    name="shaw_numbers",
    title="What do distances cost?",
    stars=2,
    minutes=5,
    why="a table of distances does not grow with the text; a table of positions does",
    asked=(
        "Shaw's tables for keys and for values, d_k = d_v = 16, radius 8, texts of 128 tokens: how many"
        " learned numbers?"
    ),
    value=2 * 17 * 16,
    tolerance=1e-6,
    hints=(
        "Which offsets j - i have a row of their own? Write them down for radius 2 first: how many are they?",
        "How wide is a row of the table for the keys? It is added to a key.",
        "There is a second table, for the values. Does 128 occur anywhere?",
    ),
    solution=(
        "offsets -8 ... 8 are 2 * 8 + 1 = 17 rows of 16 numbers, once for keys, once for values: 2 * 17 * 16"
        " = 544. A learned table of 128 positions with d_model = 64 has 128 * 64 = 8,192."
    ),
    remember="radius r makes 2r + 1 rows: r before, r after, and 0; farther tokens share the last rows",
    slips={
        "0 is an offset, too: -8 ... 8 are 17 rows, not 16": "2 * 16 * 16",
        "you counted one direction only; before and after have rows of their own": "2 * 9 * 16",
        "you counted one direction only, and without 0": "2 * 8 * 16",
        "one table for the keys, one for the values": "17 * 16",
        "that is the number of rows of one table; each has 16 numbers": 17,
        "that is without clipping; offsets beyond 8 share a row": "2 * 255 * 16",
        "that is a table of positions; Shaw's has a row per offset": "2 * 128 * 16",
        "a pair (i, j) has no numbers of its own; pairs of one offset share a row": "2 * 128 * 128 * 16",
        "a row has 16 numbers, for a key or for a value; you multiplied the two widths": "17 * 16 * 16",
    },
    right=(544, "2 * (2 * 8 + 1) * 16", "17 * 16 + 17 * 16"),
)


def _nearness_picture() -> Any:
    from lesson_lib import plots

    p = sinusoidal(32, 16, dtype=torch.float64, device=torch.device("cpu"))
    return plots.heatmap(
        p @ p.mT,
        alt=(
            "Heat map of 32 by 32 dot products: stripes along the diagonals, the main diagonal brightest,"
            " both sides alike."
        ),
        caption=(
            "The dot product of codes i and j is the sum of cos((i - j) w_j) over the 8 frequencies: on a"
            " diagonal it is constant."
        ),
        row_axis="position i",
        column_axis="position j",
        color_axis="dot product",
    )


nearness = Choice(
    name="code_products",
    title="Codes against codes",
    stars=2,
    minutes=5,
    why="one picture shows what sinusoids know about distance, and what they do not know about direction",
    asked=(
        "P holds the sinusoidal codes of positions 0 ... 31, a row each, d = 16: what does P P^T look like?"
    ),
    options={
        "a": (
            "stripes along the diagonals: each diagonal has one value, the main one is brightest, both sides"
            " are alike"
        ),
        "b": "stripes along the diagonals: what is below the main one is bright, what is above is dark",
        "c": "brighter and brighter towards the lower right: late positions have large codes",
        "d": "a bright main diagonal; everything else is exactly 0",
        "e": "vertical stripes: each column has one value",
        "f": "horizontal stripes: each row has one value",
    },
    hints=(
        (
            "The dot product of codes i and j is a sum over the frequencies of sin sin + cos cos. What is sin"
            " a sin b + cos a cos b?"
        ),
        "It is cos((i - j) w), so what do all pairs with the same i - j have in common?",
        "What becomes of cos((i - j) w) if you exchange i and j, and where is a cosine largest?",
    ),
    solution=(
        "a: p_i . p_j is the sum of cos((i - j) w) over the 8 frequencies. It depends on i - j alone, is"
        " largest, 8, at i = j, and does not change when i and j are exchanged."
    ),
    remember=(
        "p_i . p_j knows how far, not which way; a projection (W_q, W_k) between them makes it know the"
        " direction, too"
    ),
    slips={
        "b would need to know before from after; cos(i - j) and cos(j - i) are the same": "b",
        "c would need codes that grow; sin^2 + cos^2 = 1 for every frequency, so all have the same length": (
            "c"
        ),
        "d would need codes at right angles to each other; neighbours have much in common": "d",
        "e would need a position that all others resemble; every position resembles its own neighbours": "e",
        "f would make one position like all others; every position resembles its own neighbours": "f",
    },
    right=("a", "(A)"),
    picture=_nearness_picture,
)

why = Open(
    name="why_no_order",
    title="Why does it not know order?",
    stars=2,
    minutes=6,
    why="it is the reason for this whole lesson: nothing in attention knows where a token stands",
    asked=(
        "in two or three sentences: why does shuffling the tokens only shuffle the outputs of self-attention,"
        " and what changes that?"
    ),
    hints=(
        "Which operations see one token alone, and which ones see several?",
        (
            "The softmax and the weighted mean are sums over keys. What happens to a sum when its terms"
            " change places?"
        ),
        "What must be added to a token, to a score or to a mask, so that 'i comes before j' leaves a trace?",
    ),
    solution=(
        "Queries, keys and values are made of each token alone, with the same matrices everywhere. A score"
        " belongs to a pair of tokens, and the softmax and the weighted mean are sums over the keys, which do"
        " not depend on the order of their terms. So every token takes its output along to its new place."
        " This changes when the positions enter: as codes added to the tokens, as a turn of queries and keys,"
        " as a term in the score, or through a causal mask, which is tied to places and not to tokens."
    ),
    remember=(
        "without positions self-attention is equivariant: shuffle the input, and the output is shuffled"
        " likewise, nothing else"
    ),
    wrong={
        "equivariant, not invariant: the outputs change places together with the tokens": r"\binvarian",
        "softmax is innocent: without it a shuffle would pass through just the same": (
            r"softmax (loses|destroys|forgets|removes|ignores|throws)"
        ),
        "W_q, W_k, W_v are the same for every token: they can know what a token is, and not where": (
            r"(w_q|w_k|w_v|matri\w+|projections?)"
            r" (learns?|stores?|knows?|contains?|encodes?)\b.*(order|position|place)"
        ),
        "training does not help: whatever the weights are, a shuffle passes through": (
            r"(after|with|by|more|enough) training|training (on|makes|teaches|lets)|learns? the order"
        ),
        "these act on each token alone, so a shuffle passes through them, too": (
            r"residual|layer ?norm|feed-?forward|\bmlp\b|more layers|deeper"
        ),
        "a mask of fillers moves along with its tokens; what breaks it is a mask tied to places, such as a causal one": (
            r"padding"
        ),
    },
    points={
        "what do the softmax and the mean over keys care about the order of their terms?": (
            r"\bsum|order of|\bset\b|pair|permut|commut|symmetric|equivarian|whatever order|any order"
        ),
        "how is each query, key and value made: from what, and with which matrices?": (
            r"same (matri|weight|projection|function|w_)|each token|every token|token alone|own"
            r" token|shared|token by token|by itself|pair of tokens|"
            r"content|only on the|from (that|its|one) token|\bx ?w|p s p|nothing in|permut\w+ (the )?rows"
        ),
        "what must come in to change it?": (
            r"position|sinus|\bcode|rotary|rotat|causal|offset|distance|place.*(added|known|mask)"
        ),
    },
    slips={
        "equivariant, not invariant: the outputs change places together with the tokens": (
            "Self-attention is permutation invariant."
        ),
        "softmax is innocent: without it a shuffle would pass through just the same": (
            "The softmax loses the order."
        ),
        "W_q, W_k, W_v are the same for every token: they can know what a token is, and not where": (
            "The matrices learn the order of the tokens."
        ),
        "training does not help: whatever the weights are, a shuffle passes through": (
            "After training on ordered text it knows the order."
        ),
        "these act on each token alone, so a shuffle passes through them, too": (
            "The residual connection changes that."
        ),
        "a mask of fillers moves along with its tokens; what breaks it is a mask tied to places, such as a causal one": (
            "A padding mask breaks it."
        ),
    },
    right=(
        (
            "Every token is projected with the same matrices, and each output is a sum over all keys, which"
            " has no order; adding position codes to the tokens changes that."
        ),
        (
            "Scores belong to pairs of tokens, and each token keeps its own query, key and value wherever it"
            " stands. A causal mask or rotary positions tie the scores to places."
        ),
    ),
)

EXERCISES = (wave, table_of_waves, shift, nearness, shaw, relative, turn, why)
