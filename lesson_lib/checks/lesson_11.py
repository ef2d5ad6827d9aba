"""Exercises of lesson 11, efficient attention: the same numbers for less memory, and other numbers for less
work."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Choice, Number, Open
from lesson_lib.checks.inputs import drawn
from lesson_lib.checks.lesson_11_code import grouped, mixtures, running, two
from lesson_lib.device import to_device
from lesson_lib.efficient import LowRank, RandomFeatures, attend_tiles
from lesson_lib.graphs import attend_edges
from lesson_lib.linear import attend_linear
from lesson_lib.masks import window
from lesson_lib.measure import sensitivity
from lesson_lib.truncated import attend_window

cache = Number(
    name="cache_of_groups",
    title="What a long conversation keeps",
    stars=1,
    minutes=4,
    why=(
        "at generation this cache, not the model, fills the memory; it decides how many people can talk to"
        " one machine"
    ),
    asked=(
        "a cache of keys and values: 32 layers; 32 query heads that share 8 key heads, each 128 numbers wide,"
        " values as well; 131,072 tokens; 2 bytes a number: how many GiB?"
    ),
    value=16,
    hints=(
        (
            "What is kept of a token that was read: its query, its key, its value? Which of them are asked"
            " for again?"
        ),
        (
            "How many numbers is that for one token in one layer: how many heads, how wide, and of what two"
            " things?"
        ),
        "Times the layers, times the tokens, times the bytes of a number. How many bytes has a GiB?",
    ),
    solution=(
        "a token leaves 2 (key and value) * 8 heads * 128 = 2,048 numbers in each of 32 layers: 65,536"
        " numbers, 128 KiB. Times 131,072 tokens that is 2^34 bytes, 16 GiB. With a key head for each query"
        " head it would be 64 GiB, with one for all 2 GiB."
    ),
    remember=(
        "cache = 2 x layers x KEY heads x width x tokens x bytes: queries are not kept, so fewer key heads"
        " make it smaller, and nothing else has to change"
    ),
    slips={
        "32 query heads share 8 heads of keys and values: only those 8 are kept": (
            "2 * 32 * 32 * 128 * 131072 * 2 / 2**30"
        ),
        "half of it: keys AND values are kept, and a number has 2 bytes": "32 * 8 * 128 * 131072 * 2 / 2**30",
        "twice as much: a number has 2 bytes here; or did you count 32 heads, and of keys and values only one?": (
            "2 * 32 * 8 * 128 * 131072 * 4 / 2**30"
        ),
        "that is in GB, units of 10^9 bytes; a GiB is 2^30 = 1.074e9 bytes": (
            "2 * 32 * 8 * 128 * 131072 * 2 / 10**9"
        ),
        "that is one layer; each of the 32 has a cache of its own": "2 * 8 * 128 * 131072 * 2 / 2**30",
        "you counted one head of keys and values; there are 8, each 128 wide": (
            "2 * 32 * 128 * 131072 * 2 / 2**30"
        ),
        "that is one head of keys in one layer": "128 * 131072 * 2 / 2**30",
        "8 heads of keys and 32 of values; the values' heads are shared, too": (
            "32 * (8 + 32) * 128 * 131072 * 2 / 2**30"
        ),
        "queries are asked with once, and not kept: keys and values of 8 heads alone": (
            "32 * (32 + 8 + 8) * 128 * 131072 * 2 / 2**30"
        ),
        "that is in bits; a byte has 8 of them": "8 * 2 * 32 * 8 * 128 * 131072 * 2 / 2**30",
        "that is in bytes; a GiB is 2^30 of them": "2 * 32 * 8 * 128 * 131072 * 2",
        "that is in KiB; a GiB has 1,024^2 of them": "2 * 32 * 8 * 128 * 131072 * 2 / 2**10",
        "that is in MiB; a GiB has 1,024 of them": "2 * 32 * 8 * 128 * 131072 * 2 / 2**20",
        "these are numbers in units of 2^30 and keys alone; asked are bytes of keys and values": (
            "32 * 8 * 128 * 131072 / 2**30"
        ),
        "no table of all pairs is kept: a number for each token, not for each pair of tokens": (
            "32 * 32 * 131072**2 * 2 / 2**30"
        ),
        "that is one token; there are 131,072": "2 * 32 * 8 * 128 * 2 / 2**30",
    },
    right=("2 * 32 * 8 * 128 * 131072 * 2 / 2**30", 16, "128 * 131072 / 1024^2"),
)

TOKENS, LONGER = 16, 24
QUESTIONS = ("exact", "causal", "longer", "told")


def what_they_can() -> dict[str, tuple[bool, bool, bool, bool]]:
    """The answers to QUESTIONS, found by running each method: on tokens drawn at random, on their gradients,
    on a longer input, by its parameters."""
    low, phi = to_device(LowRank(TOKENS, 5)), to_device(RandomFeatures(4, 8))

    def edges(x: Tensor, causal: bool) -> Tensor:
        linked = window(len(x), 2, device=x.device)
        linked = linked.tril() if causal else linked
        at = linked.nonzero().T.flip(0)
        return attend_edges(x[:, None], x[:, None], x[:, None], at).output[:, 0]

    methods: dict[str, tuple[Callable[[Tensor, bool], Tensor], Any]] = {
        "tiles": (lambda x, causal: attend_tiles(x, x, x, causal=causal, tile=5), attend_tiles),
        "window": (lambda x, causal: attend_window(x, x, x, 3, causal=causal), attend_window),
        "low rank": (lambda x, causal: low(x, x, x), low.forward),
        "random features": (lambda x, causal: attend_linear(x, x, x, causal=causal, phi=phi), attend_linear),
        "edges": (edges, attend_edges),
    }
    x, longer = to_device(drawn(1, TOKENS, 4)), to_device(drawn(2, LONGER, 4))

    def accepts(method: Callable[[Tensor, bool], Tensor]) -> bool:
        try:
            return len(method(longer, False)) == LONGER
        except ValueError:
            return False

    found = {}
    for name, (method, function) in methods.items():
        with torch.no_grad():
            exact = torch.allclose(method(x, False), attend(x, x, x).output, rtol=1e-4, atol=1e-5)
            longer_too = accepts(method)
        seen = sensitivity(lambda batch, method=method: method(batch[0], True)[None], x)
        causal = not seen.triu(1).any().item()
        found[name] = (exact, causal, longer_too, "edge_index" in inspect.signature(function).parameters)
    return found


def _methods_picture() -> Any:
    from lesson_lib import plots

    found = what_they_can()
    return plots.heatmap(
        torch.tensor(list(found.values()), dtype=torch.float32, device="cpu"),
        alt=(
            "A table of five methods and four questions; 1 is yes. Exact: tiles alone. Causal and longer: all"
            " but low rank. Must be told who: edges alone."
        ),
        caption=(
            f"1 = yes; each was run. Exact: the outputs of attend, on {TOKENS} random tokens. Causal: no"
            f" output depends on a later token. Longer: made for {TOKENS} tokens, run on {LONGER}. Told: it"
            " has an argument for who is connected."
        ),
        rows=list(found),
        columns=QUESTIONS,
        row_axis="method",
        column_axis="question",
        decimals=0,
        limits=(0.0, 1.0),
    )


which = Choice(
    name="which_method",
    title="Which method can do what?",
    stars=2,
    minutes=6,
    why="whoever picks a method by its cost alone finds out about its limits when the model is trained",
    asked=(
        "T tiles, W a window of radius 64, L low rank with E and F learnt, R random features, E attention"
        " along a list of edges; thousands of tokens. Which of them (1) give full attention's outputs to"
        " rounding, whatever the tokens; (2) can be made causal at the same price; (3) take a longer sequence"
        " than in training without new weights; (4) must be told who is connected?"
    ),
    options={
        "a": "(1) T, R; (2) T, W, R, E; (3) T, W, R, E; (4) E",
        "b": "(1) T; (2) T, W, L, R, E; (3) T, W, R, E; (4) E",
        "c": "(1) none; (2) T, W, R, E; (3) T, W, R, E; (4) E",
        "d": "(1) T; (2) T, W, R, E; (3) T, W, L, R, E; (4) E",
        "e": "(1) T; (2) T, W, R, E; (3) T, W, R, E; (4) E",
        "f": "(1) T; (2) T, W, E; (3) T, W, R, E; (4) E",
        "g": "(1) T; (2) T, W, R, E; (3) T, W, R, E; (4) W, E",
    },
    hints=(
        (
            "A running softmax leaves nothing out. What does each of the other four leave out, or draw at"
            " random?"
        ),
        (
            "In low rank every mixture holds every token, the last one too. What can a mask hide there? And"
            " which column of E would token n + 1 get?"
        ),
        (
            "Random features turn the sum over keys into a sum that runs from left to right. Where may that"
            " sum stop, for a query in the middle? And who tells a window which tokens are near?"
        ),
    ),
    solution=(
        "e: tiles compute the same numbers in another order. Random features are right on average over the"
        " draw, one draw is not. A causal low rank is impossible, since every mixture holds later tokens, and"
        " so is a longer one, since the columns of E and F are places. Random features are causal with a"
        " running sum, a window by a mask, edges by leading forwards only. Only edges come from outside; a"
        " window needs nothing but the places."
    ),
    remember=(
        "exact: tiles (and rings of them) alone. Low rank mixes all places into each key, so it is neither"
        " causal nor longer than it was trained; the others are"
    ),
    slips={
        "random features are right on average over many draws; a model has one draw, and its error stays": (
            "a"
        ),
        "each mixture of low rank holds all tokens, later ones too, and no mask can take them out again": "b",
        "tiles leave nothing out: the running softmax gives the same outputs, to rounding, for any tokens": (
            "c"
        ),
        "both E and F have a column for each place of the training; there is none for the tokens behind": "d",
        "random features can: the sum over keys runs from left to right, and each query reads it where it stands": (
            "f"
        ),
        "a window follows from the places alone; it is edges that someone has to know": "g",
    },
    right=("e", " (E)"),
    picture=_methods_picture,
)

machines = Number(
    name="ring_machines",
    title="How many machines for a million tokens?",
    stars=2,
    minutes=6,
    why="whether a sequence fits is a division that you can do before you rent anything",
    asked=(
        "a ring shares n = 2^20 tokens out; a machine holds for each of ITS tokens a query, a key, a value,"
        " an output, and two visiting blocks of keys and values, the one it works with and the one that"
        " comes: vectors of 512 numbers of 4 bytes. Each machine has 1 GiB free for that: how many machines?"
    ),
    value=16,
    hints=(
        (
            "How many vectors is that for one token: four of its own, and how many in two blocks of keys AND"
            " values?"
        ),
        (
            "How many bytes are 512 numbers? So how many KiB does a token take, and how many tokens fit into"
            " 1 GiB?"
        ),
        (
            "Every machine holds only its own share of the tokens, and blocks as large as that share. So by"
            " what do you divide 2^20?"
        ),
    ),
    solution=(
        "4 + 2 * 2 = 8 vectors of 2 KiB: 16 KiB a token. 1 GiB holds 2^30 / 2^14 = 65,536 tokens, and 2^20 /"
        " 65,536 = 16 machines. No table is anywhere: one of n^2 numbers would be 4,096 GiB."
    ),
    remember=(
        "in a ring memory falls as 1 / machines: bytes per token x tokens / bytes per machine. The work is"
        " still n²: the machines share that, too"
    ),
    slips={
        "the ring computes tile by tile: no table of n^2 numbers is ever held": "4 * 2**40 / 2**30",
        "that table of n^2 numbers is shared out by rows, but it is never held: a ring works tile by tile": (
            "2**20 / sqrt(2**28)"
        ),
        "the block that comes while this one is worked with takes room, too: two blocks, 8 vectors a token": (
            "(4 + 2) * 2048 * 2**20 / 2**30"
        ),
        "half of it: the two visiting blocks were forgotten, or a number has 4 bytes, not 2": (
            "4 * 2048 * 2**20 / 2**30"
        ),
        "a block holds keys AND values, so two blocks are 4 vectors a token, not 2; that makes 8 and not more": (
            "(4 + 8) * 2048 * 2**20 / 2**30"
        ),
        "three blocks are too many: its own keys and values, one that it works with, one that comes: 3 + 4 + the output = 8 vectors": (
            "(4 + 6) * 2048 * 2**20 / 2**30"
        ),
        "the output of a token is a vector, too: 8 in all": "7 * 2048 * 2**20 / 2**30",
        "that is in GB: 1 GiB is 2^30 bytes, and 2^20 tokens of 2^14 bytes are 2^34": (
            "8 * 2048 * 2**20 / 10**9"
        ),
        "with GB in place of GiB you get 17.2, rounded up 18: 1 GiB is 2^30 bytes": 18,
        "machines share the tokens out: one that holds all keys and values gains nothing from the others": 1,
        "that is how many tokens fit into one machine; how many machines share 2^20?": "2**30 / 2**14",
        "that is one vector a token; there are 8": "2048 * 2**20 / 2**30",
        "a million numbers of 4 bytes: but a token has 8 vectors of 512 numbers": "4 * 2**20 / 2**30",
        "a vector has 512 numbers of 4 bytes, so 2 KiB; you left the 4 bytes out": "8 * 512 * 2**20 / 2**30",
        "a number has 4 bytes, not 8": "8 * 512 * 8 * 2**20 / 2**30",
        "that is the number of KiB a token takes, times 1,024": "8 * 512 * 4",
    },
    right=("8 * 512 * 4 * 2**20 / 2**30", 16, "2**20 / (2**30 / 2**14)"),
)

leak = Open(
    name="leaky_mixtures",
    title="The future in every mixture",
    stars=3,
    minutes=10,
    why="such a model has a wonderful loss in training and writes nonsense, and no test of shapes finds it",
    asked=(
        "in two to four sentences: a language model with low-rank layers, attend(q, E k, F v), n = 8 tokens,"
        " rank 3, a triangle of a mask over the table (8, 3). Token 5 is changed: which outputs change? Why"
        " can no mask over the mixtures mend it, and what would you take instead?"
    ),
    hints=(
        (
            "Mixture r is the sum over j of E[r, j] k_j. In how many of the 3 mixtures is token 5? And in how"
            " many outputs are those mixtures?"
        ),
        "Suppose a mask hides from token 2 whatever holds token 5. How many mixtures are left for it?",
        (
            "What must be true of the sum that token 2 sees? Which methods of this lesson add up in that"
            " order, or never mix tokens before they are hidden?"
        ),
    ),
    solution=(
        "All eight outputs change, those of tokens 0 to 4 as well: E and F sum over all places, so every"
        " mixture contains the key and the value of token 5. A mask can only hide a whole mixture, and there"
        " is none without the future in it; one that hides them all leaves nothing to look at. In training"
        " the model copies the next token from the mixtures, and at generation it is not there. Take a method"
        " that never mixes what comes later with what was earlier: tiles with a causal mask (exact), a causal"
        " window, or random features, whose running sum stops at the query."
    ),
    remember=(
        "what is mixed before it is hidden cannot be hidden: causal attention needs keys that are still"
        " apart, or sums that run from left to right"
    ),
    wrong={
        "not only later outputs: token 5 is in every mixture, and every query looks at mixtures, token 0's too": (
            r"\bonly (?!hid|mask|remov|cover)(\w+ ){0,4}(5|6|7|five|after|later|behind|following)\b|"
            r"\b(outputs?|tokens?|output of token) (5|five)('s outputs?)?( to|,| and|-|–)"
            r" ?(6|7|six|seven|later|those (after|behind|that))"
        ),
        "column r of that table is a mixture and no place: a triangle over it hides whole mixtures, and each one still holds every token": (
            r"(triang\w+|causal|right|proper|correct|better) mask (would |does |will |that |which"
            r" )?(hides|hide|helps|help|fixes|fix|prevents?|blocks?|solves?|repairs?|mends?|suffices)|"
            r"\b(use|add|apply|need|take|put) (a |the )?(real |proper |better |right |correct"
            r" )?(causal|triangular) mask(?! (in|of|with|on|over) (\w+"
            r" ){0,3}(tile|window|full|exact|attend))(?=$|,| to| over| on| so| here)"
        ),
        "training does not teach it to look away: the next token in a mixture lowers the loss, so the model learns to use it": (
            r"(learns?|trained|training (\w+ ){0,3}(teach|make)\w*) (\w+ ){0,3}(ignore|look away|not"
            r" to|zeros?\b|avoid)"
        ),
        "the rank does not matter: with one mixture or with eight, each sums over all places": (
            r"(larger|higher|greater|bigger|smaller|lower|more|increase|raise|reduce) (\w+ ){0,2}rank"
        ),
        "it is no lack of data: with endless data the future is still in every mixture": (
            r"overfit|regulari[sz]|dropout|more data|more training"
        ),
        "positions do not matter here: that token 5 comes later is known, but its key is already in the sum": (
            r"position(al)? (encod|embed)\w*|rotary"
        ),
        "the leak is not small: a mixture hands the next token over, and the model reads it there": (
            r"(negligible|hardly|barely|slightly|a little|tiny|too small to)"
        ),
    },
    points={
        "which of the eight outputs change?": (
            r"\ball\b|\bevery\b|\beach (output|query|token|row)|\beight\b|\b8"
            r" outputs|(earlier|previous|before|first) (\w+ ){0,2}(outputs?|tokens?|ones|too|as well)|0"
            r" (to|-|–) ?[47]|whole output|none stays"
        ),
        "why does no mask help? What is in a mixture, and what can a mask hide?": (
            r"\bmixed\b|\bblend|\bcombin|\bsummed\b|separat|mix\w* (\w+"
            r" ){0,4}(contain|hold|has|have|include|sum|made|depend|know|carr|is"
            r" a|are)|(contain|hold|sum|include|depend)\w* (\w+ ){0,4}(all|every|future|later|token"
            r" 5|each)|sums? over|whole mixture|"
            r"(hide|mask|remove|separate|take|undo)\w* (\w+ ){0,5}(mixture|column|row|apart|out)|already"
            r" (mixed|in|summed|added)|combination of all|before (it|they|anything) (is|are|was|were)"
            r" (hidden|masked)"
        ),
        "what would you take instead, that can be causal?": (
            r"tile|flash|\bexact\b|full attention|window|\blocal\b|truncat|linear|random"
            r" feature|performer|running|cumulative|cumsum|prefix|recurren|\bstate\b|block|segment|chunk|\bedges?\b|graph|ring|zeros?"
            r" in e|triangular e|e triangular|"
            r"only (\w+ ){0,4}(past|earlier|before)"
        ),
    },
    slips={
        "not only later outputs: token 5 is in every mixture, and every query looks at mixtures, token 0's too": (
            "Only the outputs of tokens 5, 6 and 7 change, as in any causal model."
        ),
        "column r of that table is a mixture and no place: a triangle over it hides whole mixtures, and each one still holds every token": (
            "All change, but a triangular mask hides the later tokens, one just has to cut it to three"
            " columns."
        ),
        "training does not teach it to look away: the next token in a mixture lowers the loss, so the model learns to use it": (
            "All outputs change, but the model learns to ignore the future."
        ),
        "the rank does not matter: with one mixture or with eight, each sums over all places": (
            "All outputs change; I would take a larger rank, so that the tokens stay apart."
        ),
        "it is no lack of data: with endless data the future is still in every mixture": (
            "All of them change a bit, and dropout would help against it."
        ),
        "positions do not matter here: that token 5 comes later is known, but its key is already in the sum": (
            "All outputs change because there is a positional encoding missing."
        ),
        "the leak is not small: a mixture hands the next token over, and the model reads it there": (
            "The earlier outputs hardly change."
        ),
    },
    right=(
        (
            "All 8 outputs change. Every mixture contains every token, and a mask can hide a whole mixture"
            " only. I would use linear attention with running sums instead."
        ),
        (
            "Even the outputs before token 5 change, every one of them, since E k sums over all places. Once"
            " it is summed, nothing can be hidden. Take exact attention in tiles with a causal mask."
        ),
        (
            "Each output depends on all three mixtures and each mixture is a combination of all tokens;"
            " masking removes whole mixtures and so everything. A causal window keeps the keys apart."
        ),
        (
            "All outputs change, because token 5 is already mixed into what they look at, and one cannot take"
            " it out again. Use random features or a local window."
        ),
    ),
)

EXERCISES = (cache, two, running, grouped, mixtures, which, machines, leak)
