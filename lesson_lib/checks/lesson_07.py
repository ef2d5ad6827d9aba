"""Exercises of lesson 07, attention against convolution: is a CNN a special case?"""

from typing import Any

from torch import Tensor
from torch.nn.functional import conv2d, interpolate

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Choice, Number, Open
from lesson_lib.checks.inputs import drawn
from lesson_lib.checks.lesson_07_code import match_a_set, nine, patches, sagan
from lesson_lib.convolution import receptive_field

seen = Number(
    name="pixels_seen",
    title="What does one number see?",
    stars=1,
    minutes=5,
    why="it is the first thing to know about a CNN: nothing outside of this square can change the number",
    asked=(
        "three convolutions of 3 x 3, one behind the other, the SECOND with stride 2: how many input pixels"
        " can change one output pixel?"
    ),
    value=81,
    tolerance=1e-6,
    hints=(
        (
            "Go backwards, in one dimension. How many neighbouring pixels of the second layer's output does"
            " one pixel of the last layer read?"
        ),
        (
            "With stride 2, two neighbours of the second layer's output have their middles 2 pixels apart."
            " How many pixels in front of it do three neighbours read together?"
        ),
        (
            "The first convolution adds one pixel on each side. What is the side of the square now, and how"
            " many pixels has the square?"
        ),
    ),
    solution=(
        "backwards, in one dimension: the last layer reads 3 neighbours. With stride 2 their middles stand 2"
        " apart, and each reads 3: 2 * 2 + 3 = 7. The first layer adds one on each side: 9. In two dimensions"
        " 9 * 9 = 81."
    ),
    remember=(
        "each 3 x 3 convolution adds 2 to the side of the field; behind a stride of 2, the layers that follow"
        " add 4"
    ),
    slips={
        "9 is the side of the square, or what one layer alone sees; asked are the pixels of the whole square": (
            9
        ),
        "that is without the stride (behind it, one step is two input pixels), or without the first layer": (
            "7 * 7"
        ),
        "that is a side, not a number of pixels, and it lacks the stride or the first layer": 7,
        "a stride of 2 widens the steps of the layers BEHIND it; the second layer itself still adds 2": (
            "11 * 11"
        ),
        "you doubled the step of every layer; only those behind the stride take steps of two input pixels": (
            "13 * 13"
        ),
        "a stride doubles steps, it does not double the whole side": "14 * 14",
        "you doubled at every layer, as if each had stride 2": "15 * 15",
        "that is what a pixel behind the second layer sees; there is a third": "5 * 5",
        "three kernels of 9 pixels overlap, and reach farther: find the side of the square first": "3 * 9",
        "fields of neighbours overlap: they do not multiply": "9 * 9 * 9",
    },
    right=(81, "9 * 9", "(2 * (2 * 1 + 1) + 3) ** 2", "(1 + 2 + 2 + 4)^2"),
)

SIDE, PATCH = 20, 4


def _convolved(x: Tensor) -> Tensor:
    """Two convolutions of 3 x 3."""
    return conv2d(conv2d(x, drawn(1, 5, 1, 3, 3), padding=1), drawn(2, 3, 5, 3, 3), padding=1)


def _tokens(x: Tensor) -> Tensor:
    """The token of each patch, (b, 7, rows, columns): a strided convolution."""
    return conv2d(x, drawn(3, 7, 1, PATCH, PATCH, spread=0.3), stride=PATCH)


def _attended(tokens: Tensor) -> Tensor:
    """Behind one layer of self-attention, with its residual."""
    rows = tokens.flatten(2).mT
    return tokens + attend(rows, rows, rows).output.mT.reshape(tokens.shape)


def _shown(tokens: Tensor) -> Tensor:
    """As a picture, in which each pixel holds its patch's token."""
    return interpolate(tokens, scale_factor=PATCH)


def _fields_picture() -> Any:
    from lesson_lib import plots

    layers = {
        "behind two convolutions": _convolved,
        "token of the middle patch": lambda x: _shown(_tokens(x)),
        "after one attention": lambda x: _shown(_attended(_tokens(x))),
    }
    fields = {
        name: (receptive_field(layer, drawn(4, 1, 1, SIDE, SIDE), (10, 10)) > 0).float()
        for name, layer in layers.items()
    }
    return plots.heatmap(
        fields,
        alt="Three maps of a picture: a small square, a square patch, and the whole picture is bright.",
        caption=(
            "Bright is what can change the number or the token, by the gradient at each input pixel. The"
            " patches start at multiples of 4."
        ),
        row_axis="pixel, down",
        column_axis="pixel, right",
        color_axis="1 = is seen",
        limits=(0.0, 1.0),
    )


view = Choice(
    name="token_view",
    title="What does a patch know?",
    stars=1,
    minutes=5,
    why="it is the difference between the two families in one picture: how far one layer reaches",
    asked=(
        "20 x 20 pixels, patches of 4 x 4. Which pixels can change a pixel behind two 3 x 3 convolutions; the"
        " middle patch's token before attention; and that token after ONE attention over all tokens?"
    ),
    options={
        "a": "5 × 5 pixels; its own patch, 4 × 4; all 20 × 20",
        "b": "5 × 5 pixels; its own patch, 4 × 4; its own patch and the eight around it, 12 × 12",
        "c": "5 × 5 pixels; all 20 × 20; all 20 × 20",
        "d": "9 × 9 pixels; its own patch, 4 × 4; all 20 × 20",
        "e": "5 × 5 pixels; its own patch, 4 × 4; still its own patch, 4 × 4",
        "f": "5 × 5 pixels; one pixel; its own patch, 4 × 4",
    },
    hints=(
        (
            "You have counted a receptive field before: what does a second 3 x 3 convolution add to the first"
            " one's 3?"
        ),
        "A token is made of one patch by a matrix. Which pixels are in the patch?",
        "After the softmax, can the weight of any token be exactly 0? Of whose values is the mix made, then?",
    ),
    solution=(
        "a: two convolutions of 3 x 3 see 3 + 2 = 5 pixels a side. A token is a matrix times its own patch."
        " Attention mixes the values of ALL tokens, each with a weight above 0, so after one layer every"
        " pixel of the picture counts, even if some hardly do."
    ),
    remember=(
        "a convolution's field grows layer by layer; attention's is the whole picture after one layer, and"
        " its weights say where it really looks"
    ),
    slips={
        "b describes a convolution over patches; attention has no neighbourhood, all tokens are mixed": "b",
        "c gives the token too much: it is a matrix times its own patch, and no other pixel is in there": "c",
        "d multiplies 3 by 3; a second convolution adds one pixel on each side, 3 + 2": "d",
        "e forgets that attention mixes the values of the others into it, not only weighs them": "e",
        "f makes a token of one pixel; it is made of all 16 pixels of its patch, by a matrix": "f",
    },
    right=("a", " (A)"),
    picture=_fields_picture,
)

without = Open(
    name="why_no_convolution",
    title="Three pixels are enough",
    stars=2,
    minutes=7,
    why="it says what attention lacks, and so what must be added before it can be a convolution",
    asked=(
        "in two or three sentences: pixels 1 0 0, and a convolution that brings each pixel's left neighbour"
        " makes 0 1 0 of them. Why can no self-attention without positions do that, with any weights and any"
        " number of heads?"
    ),
    hints=(
        (
            "The second and the third pixel are both 0. What do their queries, keys and values look like,"
            " beside each other?"
        ),
        (
            "If two pixels ask the same question of the same three pixels, what do they get? And what does"
            " the convolution give them?"
        ),
        "Say that one head cannot tell them apart. What about the sum of nine such heads, or of a thousand?",
    ),
    solution=(
        "The second and the third pixel are equal, so they have the same query, and they ask the same three"
        " pixels: each head gives both of them the same output, whatever its weights. A sum of such heads"
        " does so, too, however many there are. But the convolution gives them 1 and 0, because it knows"
        " which neighbour is on the left. What is missing is a score that depends on where the pixels stand."
    ),
    remember=(
        "without positions equal pixels get equal outputs, in every head; a convolution tells them apart by"
        " their neighbours, so scores must know positions"
    ),
    wrong={
        "equivariant, not invariant: if pixels change places, their outputs do so, too": r"\binvarian",
        "more heads do not help: what no head can tell apart, a sum of heads cannot, either": (
            r"\b(more|enough|nine|many|several|9) heads"
            r" (could|can|would|will|help|suffice|solve|learn|do)|too few heads"
        ),
        "training does not help: whatever the weights are, equal pixels get equal outputs": (
            r"(after|with|by|more|enough) training|training (on|makes|teaches|lets)|\blearns?"
            r" (the|to|where|which)|trained long"
        ),
        "looking at all pixels is no obstacle: a sharp weight picks one of them; the question is which one": (
            r"\bglobal\b|too (much|many|far|wide)|convolution (only )?(at|sees|looks at|reads) (only |just"
            r" )?(three|3|two|2|nine|9|one|a few)\b"
        ),
        "softmax is innocent: this convolution needs one weight near 1 and none below 0, and value matrices may have any sign": (
            r"softmax.*(positive|negative)|(positive|negative) weights"
        ),
        "the edge is no obstacle, attention could have a border of zeros as well": (
            r"\bpadding\b|\bborder|\bedges?\b"
        ),
        "it is not a matter of size: attention may have as many parameters as it likes": (
            r"(few|more|enough|many) (parameters|weights)|capacity|weight sharing|shares? (its )?weights|too"
            r" small"
        ),
    },
    points={
        "compare the second and the third pixel: what does attention have to tell them apart, or what happens when they change places?": (
            r"\bsame\b|\bequal|identical|\balike|equivarian|permut|shuffl|\bswap|exchang|(change|trade)s?"
            r" places|\border\b|\bset\b|cannot tell|can't tell"
        ),
        "what does the convolution know that attention does not?": (
            r"neighbou?r|\bleft\b|\bwhere\b|position|offset|next"
            r" to|beside|distance|direction|\bgrid\b|location"
        ),
        "and with several heads: what does each of them give, and what does their sum?": r"\bheads?\b",
    },
    slips={
        "equivariant, not invariant: if pixels change places, their outputs do so, too": (
            "Self-attention is permutation invariant."
        ),
        "more heads do not help: what no head can tell apart, a sum of heads cannot, either": (
            "One head is too weak, but nine heads could do it."
        ),
        "training does not help: whatever the weights are, equal pixels get equal outputs": (
            "After training on pictures it knows the neighbours."
        ),
        "looking at all pixels is no obstacle: a sharp weight picks one of them; the question is which one": (
            "Because attention looks at all pixels and a convolution at three."
        ),
        "softmax is innocent: this convolution needs one weight near 1 and none below 0, and value matrices may have any sign": (
            "The softmax makes all weights positive."
        ),
        "the edge is no obstacle, attention could have a border of zeros as well": (
            "The convolution uses padding."
        ),
        "it is not a matter of size: attention may have as many parameters as it likes": (
            "The attention has too few parameters."
        ),
    },
    right=(
        (
            "Both dark pixels ask the same query of the same keys, so every head gives them equal outputs,"
            " and so does the sum; the convolution gives them 1 and 0, since it knows what is to the left."
        ),
        (
            "Self-attention without positions is permutation equivariant, each head and hence their sum. A"
            " convolution is not: swap the second pixel and the first one, and the neighbours change."
        ),
        (
            "Attention treats the pixels as a set. Identical pixels get identical outputs in all heads, but"
            " the left neighbour of pixel 2 is bright and that of pixel 3 is dark."
        ),
    ),
)

EXERCISES = (seen, nine, patches, view, sagan, match_a_set, without)
