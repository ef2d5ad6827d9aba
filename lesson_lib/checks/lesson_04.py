"""Exercises of lesson 04, multi-head attention: why several heads?"""

from typing import Any

import torch

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Choice, Number, Open
from lesson_lib.checks.lesson_04_code import apart, polarity, together, whole
from lesson_lib.scores import dot

counted = Number(
    name="eight_heads",
    title="Eight heads, how many numbers?",
    stars=1,
    minutes=4,
    why="eight heads do not cost eight times as much; they cost what one of full width costs",
    asked=(
        "d_model = 512, 8 heads with d_k = d_v = 64, W_o, no biases, n = 100 tokens: how many learned numbers"
        " has the layer?"
    ),
    value=4 * 512 * 512,
    tolerance=1e-6,
    hints=(
        "What does ONE head project, from which width to which? How many numbers are in its three matrices?",
        "8 heads side by side give outputs of which width, and which matrix comes behind them?",
        "W_q of all heads together is 512 x (8 * 64). Which of the other three has another size?",
    ),
    solution=(
        "W_q, W_k, W_v of all heads together: 3 * 512 * (8 * 64); W_o: (8 * 64) * 512. In all 4 * 512 * 512 ="
        " 1,048,576, of which the last 262,144 are W_o. One head with d_k = d_v = 512 would have as many."
    ),
    remember=(
        "h heads of width d_model / h have the parameters of one head of width d_model: 4 d_model^2 with W_o"
    ),
    slips={
        "W_o is missing: it mixes the heads' outputs, 512 x 512": "3 * 512 * 512",
        "8 heads of 64 ARE the 512 columns; do not multiply by 8 once more": "8 * 4 * 512 * 512",
        "that is one head without W_o": "3 * 512 * 64",
        "each of the 8 heads has three matrices of 512 x 64: it reads the whole token, and has them for itself": (
            "3 * 512 * 64 + 512 * 512"
        ),
        "you gave W_o one head's width; all 8 heads stand side by side before it: (8 * 64) x 512": (
            "3 * 512 * 512 + 64 * 512"
        ),
        "you counted biases; here there are none": "4 * 512 * 512 + 4 * 512",
        "the matrices are shared by all tokens: do not multiply by n": "4 * 512 * 512 * 100",
    },
    right=(1048576, "8 * 3 * 512 * 64 + 512 * 512", "2**20"),
)


def _three_back_picture() -> Any:
    from lesson_lib import plots

    n = 10
    where = torch.eye(n, device="cpu")
    query = 7 * torch.cat([torch.zeros(3, n, device="cpu"), where[:-3]])  # token i asks for position i - 3
    table = attend(query, where, where, score=dot).weights
    tokens = [str(i) for i in range(1, n + 1)]
    return plots.heatmap(
        table,
        alt=(
            "Heat map of weights, 10 queries by 10 keys: a bright line parallel to the diagonal, three cells"
            " to its left."
        ),
        caption=(
            "Row i is bright in column i - 3. The first three queries have no such key: their weights are"
            " equal."
        ),
        rows=tokens,
        columns=tokens,
        numbers=False,
        limits=(0.0, 1.0),
        color_axis="weight",
    )


three_back = Choice(
    name="three_back",
    title="What does this head look like?",
    stars=1,
    minutes=4,
    why="you will read many maps of heads; which side of the diagonal is the past?",
    asked=(
        "rows are queries, columns are keys, token 1 is on top and on the left; a head looks 3 tokens back."
        " What is bright?"
    ),
    options={
        "a": "a line parallel to the diagonal, below it: row i is bright in column i - 3",
        "b": "a line parallel to the diagonal, above it: row i is bright in column i + 3",
        "c": "column 3",
        "d": "row 3",
        "e": "the diagonal, three times as bright",
        "f": "everything below the diagonal",
    },
    hints=(
        "Which row is the query of token 7, and which column is the key of token 4?",
        "Go on to token 8: which key does it look at, and where is that cell, seen from the one before?",
        (
            "Counting starts in the upper left corner. Is a cell whose column is smaller than its row below"
            " or above the diagonal?"
        ),
    ),
    solution=(
        "a: query i looks at key i - 3, three cells to the left of the diagonal, which is below it. The first"
        " three have no such key."
    ),
    remember=(
        "with queries as rows, what is below the diagonal is the past; a head that looks k back is a line k"
        " cells to the left"
    ),
    slips={
        "b is a head that looks 3 tokens AHEAD: its columns (keys) are larger than its rows (queries)": "b",
        "c is a head in which everybody looks at token 3; here each looks at a token of its own": "c",
        "d is token 3 alone looking at everything; its weights sum to 1, and the other rows have some, too": (
            "d"
        ),
        "e is each token looking at itself; a weight is 1 at most": "e",
        "f is where a causal mask lets a head look; this head looks at one of these cells": "f",
    },
    right=("a", " A) "),
    picture=_three_back_picture,
)

why = Open(
    name="why_two_heads",
    title="One number, two questions",
    stars=3,
    minutes=8,
    why="a short proof, and a good reason for a second head",
    asked=(
        "only two symbols, x and y: why can ONE head with linear read-outs not name both the token at i-1 and"
        " that at i-3?"
    ),
    hints=(
        (
            "The values are v_x or v_y, nothing else. Where can a weighted mean of them lie, and how many"
            " numbers say where?"
        ),
        (
            "Let p be the total weight on x. A linear read-out that names x or y: what does it do to the axis"
            " of p?"
        ),
        "Two cuts divide a line into how many pieces, and how many answers are there: xx, xy, yx, yy?",
    ),
    solution=(
        "With two symbols every output of one head is p v_x + (1 - p) v_y: it lies on the segment between two"
        " values, and one number p, the total weight on x, says where. A linear read-out cuts this line at"
        " one threshold. Two read-outs are two thresholds, which make three pieces, but there are four"
        " answers: xx, xy, yx and yy. A second head gives a second number."
    ),
    remember=(
        "one head hands on one weighted mean; two questions at once need two means, or something behind it"
        " that is not linear"
    ),
    wrong={
        "one head can look at several tokens, half and half; what cannot be done is to tell them apart afterwards": (
            r"(look|attend)s? (only )?(at|to) (only )?(one|a single) (token|key|position)|only one"
            r" (token|position)|"
            r"one (token|position|place|key) (only|at a time)|attend to two \w+ at once"
        ),
        "width does not help: with two symbols the outputs lie on one line, however wide the values are": (
            r"\bwider\b|too narrow|too small|too few dimensions|capacity"
        ),
        "it is no matter of training: there are no weights that do it": (
            r"(more|longer|better|enough) training|train\w* (longer|more)|gradient|converge|local minimum"
        ),
        "several heads of smaller width cost as much as one, and are no faster": (
            r"\bfaster\b|\bcheaper\b|parallel|\bspeed"
        ),
        "several heads have as many parameters as one of the full width": (
            r"(more|fewer|enough|extra) parameters"
        ),
        "no distance is too far: a head may look at any token": r"too far|out of reach|long distance",
    },
    points={
        "where do the outputs of one head lie, if there are two values only?": (
            r"segment|line\b|between|one number|single number|\bp\b|weighted (mean|average|sum)|mean"
            r" of|average of|convex|one[- ]dimension"
        ),
        "what is a linear read-out, on that line?": (
            r"threshold|\bcuts?\b|monoton|half[- ]?(line|space)|\brises?\b|increas|falls?\b|boundary|same"
            r" (way|direction)|opposite"
        ),
        "which answers must it tell apart, and how many pieces are there for them?": (
            r"\bfour\b|\b4\b|three (pieces|parts|intervals|regions)|\bxx\b|\bxy\b|\(x, ?[xy]\)"
        ),
    },
    slips={
        "one head can look at several tokens, half and half; what cannot be done is to tell them apart afterwards": (
            "A head can look at only one token at a time."
        ),
        "width does not help: with two symbols the outputs lie on one line, however wide the values are": (
            "The values of the head are too small; it would need wider ones."
        ),
        "it is no matter of training: there are no weights that do it": (
            "The gradient cannot find the weights."
        ),
        "several heads of smaller width cost as much as one, and are no faster": (
            "Two heads are faster than one."
        ),
        "several heads have as many parameters as one of the full width": (
            "One head has fewer parameters than two."
        ),
        "no distance is too far: a head may look at any token": "Token i-3 is too far away for one head.",
    },
    right=(
        (
            "The output is a point on the segment from v_x to v_y, one number p. Each read-out is a threshold"
            " on p, two of them give three intervals, and we need four answers."
        ),
        (
            "xx and yy force both read-outs to rise the same way along the line between v_x and v_y, but xy"
            " and yx must be told apart by read-outs that go opposite ways."
        ),
    ),
)

EXERCISES = (counted, apart, together, whole, polarity, three_back, why)
