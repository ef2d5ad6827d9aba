"""What part 13c asks: five predictions, and two functions that the learner writes."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.chapters.c13_todays_models import seconds
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Choice
from lesson_lib.masks import causal
from lesson_lib.positions import rotary

PART = "13c_open_a_model"


def head_weights(
    x: Float[Tensor, "n d"],
    w_query: Float[Tensor, "h_dk d"],
    w_key: Float[Tensor, "g_dk d"],
    head: int,
    d_k: int,
) -> Float[Tensor, "n n"]:
    shared = len(w_query) // len(w_key)
    own, others = head * d_k, head // shared * d_k
    q = x @ w_query[own : own + d_k].mT
    k = x @ w_key[others : others + d_k].mT
    q, k = rotary(q, pairing="half-split"), rotary(k, pairing="half-split")
    return attend(q, k, k, mask=causal(len(x))).weights


def _all_heads(x: Tensor, w_query: Tensor, w_key: Tensor, head: int, d_k: int) -> Tensor:
    q, k = ((x @ w.mT).unflatten(-1, (-1, d_k)).transpose(0, 1) for w in (w_query, w_key))
    k = k.repeat_interleave(len(q) // len(k), 0)
    q, k = (rotary(t, pairing="half-split") for t in (q, k))
    return attend(q, k, k, mask=causal(len(x))).weights[head]


def _file(seed: int, n: int, h: int, g: int, head: int, d: int = 6, d_k: int = 4, draw: Draw = drawn) -> Case:
    return {
        "x": draw(seed, n, d), "w_query": draw(seed + 1, h * d_k, d), "w_key": draw(seed + 2, g * d_k, d),
        "head": head, "d_k": d_k,
    }  # fmt: skip


write_head = Write(
    name="head_weights",
    notebook=PART,
    second=lambda n: seconds.HEAD_IN_WINDOW,
    title="A head from its file",
    stars=3,
    minutes=8,
    why="whoever can do this once can read any model's file",
    asked=(
        "x (n, d): normed rows; w_query (heads · d_k, d) and w_key (key heads · d_k, d) as in the file: head"
        " i owns rows i · d_k to (i + 1) · d_k. Heads that share a key head are neighbours. Return the"
        " weights (n, n) of `head`: take its rows, turn queries and keys (rotary, half-split), look back only"
    ),
    stages=(
        Stage(
            "one head, two tokens",
            lambda: [_file(1, 2, 1, 1, 0)],
            "The first token sees itself alone: a weight of 1.",
        ),
        Stage(
            "four heads with keys of their own",
            lambda: [_file(11, 4, 4, 4, 2), _file(15, 5, 4, 4, 0)],
            "Head 2 owns the rows 2 · d_k to 3 · d_k of both matrices.",
        ),
        Stage(
            "four heads share two, six share one",
            lambda: [_file(21, 5, 4, 2, 3), _file(25, 4, 4, 2, 1), _file(31, 4, 6, 1, 4)],
            "With four heads and two of keys, heads 0 and 1 share the first, 2 and 3 the second.",
        ),
    ),
    reference=_all_heads,
    hints=(
        "How many heads share a head of keys, by the lengths of the two matrices? Which one is head 3's?",
        "Which rows of w_query make the queries of this head? A matrix (out, in): is it x @ w or x @ w.mT?",
        'rotary(q, pairing="half-split") and the same for k; which mask looks back only, and which field of'
        " attend's answer is asked for?",
    ),
    solution=head_weights,
    hidden=lambda draw: [_file(41, 5, 6, 3, 4, draw=draw), _file(51, 4, 8, 2, 5, d=4, d_k=2, draw=draw)],
    remember="take a head's rows of both matrices, turn, and it is attend",
    slips={
        "published files turn the columns j and j + d_k/2 together: pairing='half-split', for both": (
            'rotary(q, pairing="half-split"), rotary(k, pairing="half-split")', "rotary(q), rotary(k)",
        ),
        "queries and keys are not turned": (
            'rotary(q, pairing="half-split"), rotary(k, pairing="half-split")', "q, k",
        ),
        "a token looks ahead: mask=causal(len(x))": ("(q, k, k, mask=causal(len(x)))", "(q, k, k)"),
        "the heads share in turn, 0 1 0 1; neighbours share: head // shared": (
            "head // shared * d_k", "head % (len(w_key) // d_k) * d_k",
        ),
        "all heads look at the first head of keys": ("head // shared * d_k", "0"),
        "these are the weights of head 0": ("head * d_k, head // shared * d_k", "0, 0"),
        "queries and keys are exchanged": ("attend(q, k, k", "attend(k, q, q"),
        "you turn the columns of all heads as one row; cut this head's out first, then turn them": (
            "x @ w_query[own : own + d_k].mT",
            'rotary(x @ w_query.mT, pairing="half-split")[:, own : own + d_k]',
            "x @ w_key[others : others + d_k].mT",
            'rotary(x @ w_key.mT, pairing="half-split")[:, others : others + d_k]',
            '    q, k = rotary(q, pairing="half-split"), rotary(k, pairing="half-split")\n', "",
        ),
        "your mask leaves the token itself out; it sees itself and all before it: causal(len(x))": (
            "causal(len(x))", "causal(len(x)).tril(-1)",
        ),
        "the queries are turned, the keys are not": (', rotary(k, pairing="half-split")', ", k"),
        "the keys are turned, the queries are not": ('rotary(q, pairing="half-split"), ', "q, "),
        "the mask is the other way round: True means may look": (
            "mask=causal(len(x))",
            "mask=~causal(len(x))",
        ),
        "a token sees those behind it only: the triangle is the upper one": (
            "mask=causal(len(x))",
            "mask=causal(len(x)).mT",
        ),
        "the scores are not divided by the root of d_k": ("attend(q, k, k", "attend(q * d_k**0.5, k, k"),
        "a head owns neighbouring rows; you take every h-th one": (
            "w_query[own : own + d_k]",
            "w_query[head :: len(w_query) // d_k]",
        ),
        "the scores are divided by the root of the number of heads; it is the root of d_k": (
            "attend(q, k, k",
            "attend(q * (d_k / (len(w_query) // d_k)) ** 0.5, k, k",
        ),
    },
)  # fmt: skip

never_seen = Choice(
    name="never_seen_name",
    notebook=PART,
    title="A name that nobody wrote",
    asked=(
        "'A Wibkat is a class. The Wibk': no Wibkat stood in its training. Which share does it give to a?"
    ),
    options={"a": "about .01, one of 97", "b": "about .2: a vowel fits", "c": "over .9"},
    answer="c",
    remember="what stands in the text can be copied, seen before or not",
    slips={
        "is there anything in this text that helps, though nothing in the training did?": "a",
        "with another name in the first sentence a gets less than that; what does this one say?": "b",
    },
)


def read_early(
    x: Float[Tensor, "n d"],
    gain: Float[Tensor, " d"],
    table: Float[Tensor, "n_tokens d"],
) -> Float[Tensor, "n n_tokens"]:
    return F.rms_norm(x, x.shape[-1:], gain, eps=1e-6) @ table.mT


def _read_by_hand(x: Tensor, gain: Tensor, table: Tensor) -> Tensor:
    normed = x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * gain
    return torch.einsum("nd,td->nt", normed, table)


def _rows(seed: int, n: int, d: int, n_tokens: int, by: float = 3.0, draw: Draw = drawn) -> Case:
    gain = draw(seed + 1, d).abs() + 0.5
    return {"x": by * draw(seed, n, d), "gain": gain, "table": draw(seed + 2, n_tokens, d)}


write_lens = Write(
    name="read_early",
    notebook=PART,
    second=lambda n: seconds.FROM_TO,
    title="Read out early",
    stars=2,
    minutes=5,
    why="two lines show what a layer would say",
    asked=(
        "x (n, d): rows behind some layer; gain (d) of the last norm; table (n_tokens, d) of the read-out."
        " Return the logits (n, n_tokens) that the rows would give if the model ended here: the norm (13a's:"
        " root of the mean square, 1e-6, gain), then products with the rows of the table"
    ),
    stages=(
        Stage(
            "one row, 3 and 4, two tokens",
            lambda: [{
                "x": table([[3, 4]]), "gain": torch.ones(2, device="cpu"), "table": table([[1, 0], [0, 1]]),
            }],
            "3 and 4 divided by the root of 12.5.",
        ),
        Stage(
            "a gain for each column, seven tokens",
            lambda: [_rows(3, 1, 4, 7), _rows(5, 3, 4, 7)],
            "Norm, gain, table, in this order.",
        ),
        Stage(
            "more rows, and short ones",
            lambda: [_rows(7, 5, 6, 3), _rows(9, 2, 4, 3, by=1e-3)],
            "A row of logits for each row of x; 1e-6 joins the mean of the squares.",
        ),
    ),
    reference=_read_by_hand,
    hints=(
        "What does the model do between its last layer and the logits?",
        "F.rms_norm(x, x.shape[-1:], ?, eps=1e-6): what stands there?",
        "A logit is the product of a row with a token's row of the table. Which side is transposed?",
    ),
    solution=read_early,
    hidden=lambda draw: [_rows(21, 4, 6, 5, draw=draw), _rows(31, 2, 8, 9, draw=draw)],
    remember="last norm, then the table: at any layer",
    slips={
        "the last norm is missing": ("F.rms_norm(x, x.shape[-1:], gain, eps=1e-6)", "x"),
        "the gain is missing": ("gain, eps", "eps"),
        "this norm takes no mean away: rms_norm": (
            "F.rms_norm(x, x.shape[-1:], gain, eps=1e-6)", "F.layer_norm(x, x.shape[-1:], gain, eps=1e-6)",
        ),
        "these are shares; asked are the logits before the softmax": ("@ table.mT", "@ table.mT).softmax(-1)",
        "return F", "return (F"),
        "the gain is added; it multiplies": (
            "F.rms_norm(x, x.shape[-1:], gain, eps=1e-6)", "(F.rms_norm(x, x.shape[-1:], eps=1e-6) + gain)",
        ),
        "you multiply by 1 + gain; here the gain itself is the factor": ("gain, eps", "1 + gain, eps"),
    },
)  # fmt: skip

which_layer = Choice(
    name="which_layer",
    notebook=PART,
    title="When is it decided?",
    asked=(
        "The row of the last k is read out as it comes in and behind each layer. Where does the a first get"
        " more than half?"
    ),
    options={
        "a": "as it comes in",
        "b": "behind layer 0",
        "c": "behind layer 1",
        "d": "behind layer 2",
        "e": "behind layer 3",
    },
    answer="d",
    remember="layer 2 fetches it",
    slips={
        "what does a row hold before any layer has looked around?": "a",
        "to copy takes two looks, one after the other: after the first, what can the row know?": "b",
        "by then each row knows who stood before it; who has asked for it?": "c",
        "it grows by no even steps: one look of layer 2 fetches the a, layer 3 only sharpens": "e",
    },
)


cut_the_brightest = Choice(
    name="cut_the_brightest",
    notebook=PART,
    title="Cut the brightest head",
    asked=(
        "Head 1 of layer 2 gives .99 of its weight to the a of Wibkat, and the model gives the a a share of"
        " 1.00. Now that head adds nothing. What is left of the share?"
    ),
    options={"a": "less than .1", "b": "about half", "c": "nearly .9"},
    answer="c",
    remember="a share near 1 falls late: look at the logits, too",
    slips={
        "is it the only head of its layer that looks there? Look at its neighbours": "a",
        "does a share fall by as much as its logit?": "b",
    },
)

how_many_cuts = Choice(
    name="how_many_cuts",
    notebook=PART,
    title="How many cuts?",
    asked=(
        "How many of the three bright heads of layer 2 must be cut together, so that less than .2 of the"
        " share is left?"
    ),
    options={"a": "two", "b": "all three", "c": "not even three are enough"},
    answer="a",
    remember="one can be missed, two cannot",
    slips={
        "one cut takes half of the lead; what if a second one takes as much, or more?": "b",
        "one cut takes half of the lead: what can be left after three?": "c",
    },
)

row_to_carry = Choice(
    name="row_to_carry",
    notebook=PART,
    title="Which row carries it?",
    asked=("Behind layer 1, one row of the text with Wibkot replaces ours. Which one makes the model say o?"),
    options={
        "a": "that of the last k",
        "b": "that of the o",
        "c": "none: one row is too little",
    },
    answer="b",
    remember="behind layer 1 the answer still stands where it was written",
    slips={
        "behind which layer did the a appear in the last row?": "a",
        "how many rows does the head of layer 2 look at?": "c",
    },
)

ASKED = (
    write_head,
    never_seen,
    write_lens,
    which_layer,
    cut_the_brightest,
    how_many_cuts,
    row_to_carry,
)
