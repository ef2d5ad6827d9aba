"""Exercises of lesson 07, attention against convolution: is a CNN a special case?

In the learner's order. A slip is a sentence and the wrong answer that it is told to: a number, a letter, or an edit of
the solution's text (old, new).
"""

from collections.abc import Callable
from itertools import permutations
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import conv2d, interpolate

from lesson_lib.attention import attend
from lesson_lib.chapters.c07_attention_vs_cnn import convolution, data_or_prior, reach, seconds
from lesson_lib.checks.exchanged import exchanged
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.short import Choice, Number, Open
from lesson_lib.convolution import offsets, receptive_field
from lesson_lib.scores import dot

seen = Number(
    name="pixels_seen",
    second=lambda n: seconds.pixels_seen(seen, n),
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
        "you gave the third layer one pixel for the stride; its two steps are two pixels each, so it adds 4": "8 * 8",
        "three kernels of 9 pixels overlap, and reach farther: find the side of the square first": "3 * 9",
        "fields of neighbours overlap: they do not multiply": "9 * 9 * 9",
    },
    answer="(2 * (2 * 1 + 1) + 3) ** 2",
)


def nine_heads(
    pixels: Float[Tensor, "m c_in"],
    d: Float[Tensor, "n m 2"],
    kernel: Float[Tensor, "c_out c_in 3 3"],
    sharpness: float,
) -> Float[Tensor, "n c_out"]:
    made = 0
    for y in range(3):
        for x in range(3):
            centre = d.new_tensor([y - 1, x - 1])
            distance = (d - centre).square().sum(dim=-1)  # (n, m), squared
            weights = torch.softmax(-sharpness * distance, dim=-1)
            made = made + weights @ pixels @ kernel[:, :, y, x].T
    return made


Table = Callable[[Tensor], Tensor]


def _centres(kernel: Tensor) -> Tensor:
    """Where each tap looks (9, 2), row by row of the kernel."""
    return torch.cartesian_prod(*2 * [torch.arange(-1.0, 2.0, dtype=kernel.dtype, device=kernel.device)])


def _taps(kernel: Tensor) -> Tensor:
    return kernel.flatten(2).movedim(-1, 0)


def _squares(d: Tensor, centres: Tensor) -> Tensor:
    """Squared distances (9, n, m)."""
    return (d - centres[:, None, None]).square().sum(-1)


def _softmax(scores: Tensor) -> Tensor:
    return scores.softmax(-1)


def _heads(
    *,
    centres: Table = _centres,
    taps: Table = _taps,
    far: Callable[[Tensor, Tensor], Tensor] = _squares,
    score: Callable[[Tensor, float], Tensor] = lambda far, sharpness: -sharpness * far,
    shares: Table = _softmax,
) -> Callable[..., Tensor]:
    """The nine heads, with any of their parts replaced."""

    def layer(pixels: Tensor, d: Tensor, kernel: Tensor, sharpness: float) -> Tensor:
        weights = shares(score(far(d, centres(kernel)), sharpness))  # (9, n, m)
        return torch.einsum("knm,mi,koi->no", weights, pixels, taps(kernel))

    return layer


def _scene(canvas: Tensor, kernel: Tensor, sharpness: float) -> Case:
    """A case from a canvas (c_in, h + 2, w + 2): the picture inside it asks, all of the canvas is
    looked at."""
    h, w = canvas.shape[-2] - 2, canvas.shape[-1] - 2
    d = offsets(h, w, 1, dtype=torch.float32, device=torch.device("cpu"))
    return {"pixels": canvas.flatten(1).T, "d": d, "kernel": kernel, "sharpness": sharpness}


ABOVE = [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]  # brings the pixel above


COUNTED = table([[[1, 2, 3], [4, 5, 6], [7, 8, 9]]])


def _more_nine_heads(drawn: Draw) -> list[Case]:
    places = torch.cartesian_prod(torch.arange(6.0), torch.arange(5.0))  # with the border
    inner = torch.cartesian_prod(torch.arange(1.0, 5.0), torch.arange(1.0, 4.0))
    return [
        {
            "pixels": drawn(1, 30, 5),
            "d": places[None] - inner[:, None],
            "kernel": drawn(2, 3, 5, 3, 3),
            "sharpness": sharpness,
        }
        for sharpness in (0.4, 30.0)
    ]


nine = Write(
    name="nine_heads",
    second=lambda n: seconds.nine_heads(nine, n),
    title="Nine heads are a convolution",
    stars=3,
    minutes=15,
    why="this is the proof, in ten lines, that attention can do what a 3 x 3 convolution does",
    asked=(
        "a head for each tap of the kernel: weights softmax(-sharpness |d - centre|^2) over the canvas,"
        " centres from (-1, -1) to (1, 1); value matrix kernel[:, :, row, column]; all heads added up"
    ),
    stages=(
        Stage(
            "one pixel asks, sharpness 50; a kernel that brings the pixel above",
            lambda: [_scene(COUNTED, table([[ABOVE]]), 50.0)],
            "The canvas is 1 2 3 / 4 5 6 / 7 8 9, the pixel that asks is the 5, and above it stands the 2.",
        ),
        Stage(
            "the same with all nine taps; then two channels in, two out",
            lambda: [
                _scene(COUNTED, primes(1, 1, 3, 3), 50.0),
                _scene(drawn(1, 2, 3, 4), primes(2, 2, 3, 3), 50.0),
            ],
            "So sharp, this is torch's conv2d: each tap times the pixel in its direction, all added up.",
        ),
        Stage(
            "blunt heads, sharpness 0.5",
            lambda: [_scene(COUNTED, table([[ABOVE]]), 0.5)],
            "A blunt head looks around its centre, too; its weights still sum to 1, over all pixels of the"
            " canvas.",
        ),
        Stage(
            "a picture of 2 x 3, three channels in and two out, blunt and sharp",
            lambda: [
                _scene(drawn(2, 3, 4, 5), drawn(3, 2, 3, 3, 3), 0.2),
                _scene(drawn(4, 3, 4, 5), drawn(5, 2, 3, 3, 3), 3.0),
            ],
            "Each head has a softmax and a value matrix (c_out, c_in) of its own; pixels are rows, so the"
            " matrix is transposed.",
        ),
    ),
    reference=_heads(),
    hints=(
        (
            "Take the one tap in the first row and the second column of the kernel. Which pixel does a"
            " convolution multiply it with, and what is d for that pixel?"
        ),
        (
            "For one head: (d - centre) has the shape (n, m, 2). What must become of it to be one score for"
            " each pair of pixels, highest at the centre?"
        ),
        (
            "`weights` is (n, m), `pixels` (m, c_in), one tap `kernel[:, :, y, x]` is (c_out, c_in). In which"
            " order do they multiply, and what must be turned?"
        ),
    ),
    solution=nine_heads,
    remember=(
        "one head per tap: its position scores say where to look, its value matrix is the tap, and the heads"
        " are added up"
    ),
    slips={
        "the kernel stands on its head: its first row, first column belong to the pixel above and left; conv2d turns nothing round": (
            "kernel[:, :, y, x]",
            "kernel[:, :, 2 - y, 2 - x]",
        ),
        "down and right are exchanged: d holds how far down first, then how far right": (
            "[y - 1, x - 1]",
            "[x - 1, y - 1]",
        ),
        "your centres run from 0 to 2; the middle tap, kernel[:, :, 1, 1], belongs to d = (0, 0)": (
            "[y - 1, x - 1]",
            "[y, x]",
        ),
        "all heads look at their own pixel: subtract the head's centre from d": ("(d - centre)", "d"),
        "a minus is missing: the farther from its centre, the lower the score": (
            "-sharpness * distance",
            "sharpness * distance",
        ),
        "the sharpness is not used": ("-sharpness * distance", "-distance"),
        "you divide by the sharpness; multiply: sharp heads need large differences": (
            "-sharpness * distance",
            "-distance / sharpness",
        ),
        "the distance must be squared: |d - centre|^2, without a root": (
            "-sharpness * distance",
            "-sharpness * distance.sqrt()",
        ),
        "|d - centre|^2 has -2 y d_y - 2 x d_x in the middle: without the 2 you look half as far": (
            "(d - centre).square().sum(dim=-1)",
            "d.square().sum(dim=-1) - (d * centre).sum(dim=-1)",
        ),
        "you add up how far it is down and right without squares, so one direction makes up for the other": (
            ("(d - centre).square()", "(d - centre)")
        ),
        "your softmax runs over the pixels that ask; it must run over those that are looked at (dim=-1)": (
            ("distance, dim=-1", "distance, dim=0")
        ),
        "one softmax over all heads: they compete; each head has weights of its own, which sum to 1": (
            "made = 0",
            "made, total = 0, 0",
            "torch.softmax(-sharpness * distance, dim=-1)",
            "torch.exp(-sharpness * distance)",
            "made = made + weights",
            "total = total + weights.sum(dim=-1, keepdim=True)\n            made = made + weights",
            "return made",
            "return made / total",
        ),
        "your softmax runs over the heads; each head has its own softmax, over the pixels it looks at": (
            (
                "made = 0",
                "made = 0\n    centres = [d.new_tensor([y - 1, x - 1]) for y in range(3) for x in range(3)]\n    scores = torch.stack([-sharpness * (d - c).square().sum(dim=-1) for c in centres])",
                "torch.softmax(-sharpness * distance, dim=-1)",
                "torch.softmax(scores, dim=0)[3 * y + x]",
            )
        ),
        "there is no softmax: exp alone does not make weights that sum to 1": (
            "torch.softmax(-sharpness * distance, dim=-1)",
            "torch.exp(-sharpness * distance)",
        ),
        "each head takes the nearest pixel alone; that is the limit of a sharp head, and a blunt one mixes": (
            (
                "torch.softmax(-sharpness * distance, dim=-1)",
                "torch.zeros_like(distance).scatter(-1, distance.argmin(-1, keepdim=True), 1.0)",
            )
        ),
        "you take the mean of the heads; a convolution adds them up": ("return made", "return made / 9"),
        "the value matrix is transposed: kernel[:, :, y, x] is (c_out, c_in), and pixels are rows": (
            "[:, :, y, x].T",
            "[:, :, y, x]",
        ),
        "every head brings all taps; each has one value matrix, its own tap": (
            "kernel[:, :, y, x]",
            "kernel.sum(dim=(2, 3))",
        ),
    },
    hidden=_more_nine_heads,
)


def patch_rows(
    images: Float[Tensor, "b c h w"],
    patch: int,
) -> Float[Tensor, "b n d_patch"]:
    b, c, h, w = images.shape
    cut = images.reshape(b, c, h // patch, patch, w // patch, patch)
    cut = cut.permute(0, 2, 4, 1, 3, 5)  # (b, down, right, c, patch, patch)
    return cut.flatten(3).flatten(1, 2)


def _unfolded(images: Tensor, patch: int) -> Tensor:
    return torch.nn.functional.unfold(images, patch, stride=patch).mT


def _counting(*shape: int) -> Tensor:
    return table(range(torch.Size(shape).numel())).reshape(shape)


def _more_patch_rows(drawn: Draw) -> list[Case]:
    return [
        {"images": drawn(1, 3, 2, 8, 12), "patch": 4},
        {"images": drawn(2, 1, 5, 10, 5), "patch": 5},
    ]


patches = Write(
    name="patch_rows",
    second=lambda n: seconds.patch_rows(patches, n),
    title="A picture becomes a sequence",
    stars=2,
    minutes=10,
    why="a reshape alone has the right shape and gives no error, and the model reads stripes for patches",
    asked=(
        "images (b, c, h, w) to (b, n, c * patch * patch): a row per patch, patches row by row; inside a"
        " patch the first channel row by row, then the next one"
    ),
    stages=(
        Stage(
            "one channel, 4 x 4 pixels that are counted, patches of 2 x 2",
            lambda: [{"images": _counting(1, 1, 4, 4), "patch": 2}],
            "The first patch holds 0, 1 and, from the next line of the picture, 4, 5; the second one 2, 3,"
            " 6, 7.",
        ),
        Stage(
            "a picture wider than high",
            lambda: [{"images": _counting(1, 1, 4, 6), "patch": 2}],
            "Six patches: three in the first line of patches, then three in the second.",
        ),
        Stage(
            "two channels",
            lambda: [{"images": primes(1, 2, 2, 6), "patch": 2}],
            "A row holds the whole patch of channel 0 first, then that of channel 1.",
        ),
        Stage(
            "two pictures with three channels; patches of 3 x 3, and of one pixel",
            lambda: [
                {"images": drawn(1, 2, 3, 6, 9), "patch": 3},
                {"images": drawn(2, 2, 3, 4, 5), "patch": 1},
            ],
            "In this order a strided convolution is a product with its flattened kernels: rows @"
            " conv.weight.flatten(1).T.",
        ),
    ),
    reference=_unfolded,
    hints=(
        (
            "The height h is h // patch patches of patch pixels each. How do you split ONE axis into two with"
            " reshape, and which of the two comes first?"
        ),
        (
            "After splitting height and width there are six axes: (b, c, down, patch, right, patch). In which"
            " order must they stand, so that a patch is in one piece?"
        ),
        "permute puts the axes in order. Which of them are then merged into n, and which into one row?",
    ),
    solution=patch_rows,
    remember=(
        "split each side into (patches, pixels), bring the two patch counts to the front, then flatten:"
        " reshape never moves a number"
    ),
    slips={
        "a reshape alone cuts the list of pixels into runs; a patch has pieces of several lines of the picture": (
            "cut.flatten(3).flatten(1, 2)",
            "images.reshape(b, -1, c * patch * patch)",
        ),
        "the channels come last inside your patches; asked is channel by channel, as a convolution's kernel has them": (
            "1, 3, 5",
            "3, 5, 1",
        ),
        "your patches go column by column; asked is row by row": ("2, 4, 1", "4, 2, 1"),
        "inside a patch you go column by column; asked is row by row": ("3, 5)", "5, 3)"),
        "you take the number of patches down for the number across, too; a picture need not be square": (
            "w // patch",
            "h // patch",
        ),
        "rows and columns are exchanged twice: among the patches and inside them": (
            "2, 4, 1, 3, 5",
            "4, 2, 1, 5, 3",
        ),
        "you take pixels that lie `patch` steps apart: the axis splits into (h // patch, patch), in this order": (
            (
                "h // patch, patch, w // patch, patch",
                "patch, h // patch, patch, w // patch",
                "(0, 2, 4, 1, 3, 5",
                "(0, 3, 5, 1, 2, 4",
            )
        ),
        "the last two axes are exchanged: a patch must be a row (unfold makes columns; .mT turns them)": (
            ("cut.flatten(3).flatten(1, 2)", "cut.flatten(3).flatten(1, 2).mT")
        ),
        "your patches overlap: go on by `patch` pixels, not by one": (
            "cut.flatten(3).flatten(1, 2)",
            "torch.nn.functional.unfold(images, patch).mT",
        ),
        "every channel makes patches of its own; a patch holds all channels": (
            "2, 4, 1, 3, 5",
            "1, 2, 4, 3, 5",
            "flatten(3).flatten(1, 2)",
            "flatten(4).flatten(1, 3)",
        ),
        "a row holds pieces of one channel only: bring both patch counts in front of the channels, then reshape": (
            "2, 4, 1, 3, 5",
            "1, 2, 4, 3, 5",
            "cut.flatten(3).flatten(1, 2)",
            "cut.reshape(b, -1, c * patch * patch)",
        ),
        "the channels still have an axis of their own; a patch is one row, with all its channels": (
            ("2, 4, 1, 3, 5", "1, 2, 4, 3, 5", "flatten(3).flatten(1, 2)", "flatten(4).flatten(2, 3)")
        ),
        "you keep the mean of each patch; asked are all its numbers": ("flatten(3)", "mean((4, 5))"),
        "pictures of the batch are mixed up: the first axis must stay the first": (
            "0, 2, 4, 1",
            "2, 4, 0, 1",
            "cut.flatten(3).flatten(1, 2)",
            "cut.reshape(b, -1, c * patch * patch)",
        ),
        "the patches are right, and still lie in their grid: flatten down and right into one axis, n": (
            (".flatten(1, 2)", "")
        ),
        "the patches are right, and not flattened: each must be one row of c * patch * patch numbers": (
            (".flatten(3)", "")
        ),
    },
    hidden=_more_patch_rows,
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
    from lesson_lib import charts

    layers = {
        "behind two convolutions": _convolved,
        "token of the middle patch": lambda x: _shown(_tokens(x)),
        "after one attention": lambda x: _shown(_attended(_tokens(x))),
    }
    fields = {
        name: (receptive_field(layer, drawn(4, 1, 1, SIDE, SIDE), (10, 10)) > 0).float()
        for name, layer in layers.items()
    }
    return charts.heatmap(
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
    title="What does a patch know? Predict the picture",
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
    answer="a",
    picture=_fields_picture,
)


def sagan_block(
    x: Float[Tensor, "b c h w"],
    w_q: Float[Tensor, "d_k c"],
    w_k: Float[Tensor, "d_k c"],
    w_v: Float[Tensor, "c c"],
    gamma: float,
) -> Float[Tensor, "b c h w"]:
    pixels = x.flatten(2)  # (b, c, n): here a pixel is a column
    query, key, value = w_q @ pixels, w_k @ pixels, w_v @ pixels
    weights = torch.softmax(query.mT @ key, dim=2)  # (b, n, n)
    attended = value @ weights.mT  # (b, c, n)
    return x + gamma * attended.unflatten(2, x.shape[2:])


def _block_by_attend(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, gamma: float) -> Tensor:
    rows = x.flatten(2).mT
    attended = attend(rows @ w_q.T, rows @ w_k.T, rows @ w_v.T, score=dot).output
    return x + gamma * attended.mT.reshape(x.shape)


LOG_3 = 1.0986123


TWO_PIXELS = {  # (1, 0) and (0, 1), side by side
    "x": table([[[[1.0, 0.0]], [[0.0, 1.0]]]]),
    "w_q": table([[1.0, 0.0]]),
    "w_k": table([[0.0, LOG_3]]),
    "w_v": table([[4.0, 8.0], [0.0, 0.0]]),
}


def _features(seed: int, *shape: int, d_k: int, gamma: float) -> Case:
    c = shape[1]
    return {
        "x": drawn(seed, *shape),
        "w_q": drawn(seed + 1, d_k, c),
        "w_k": drawn(seed + 2, d_k, c),
        "w_v": drawn(seed + 3, c, c),
        "gamma": gamma,
    }


def _more_sagan_block(drawn: Draw) -> list[Case]:
    shapes = {"x": (2, 5, 4, 3), "w_q": (3, 5), "w_k": (3, 5), "w_v": (5, 5)}
    case = {name: drawn(i, *shape, spread=0.7) for i, (name, shape) in enumerate(shapes.items())}
    return [{**case, "gamma": -1.3}]


sagan = Write(
    name="sagan_block",
    second=lambda n: seconds.sagan_block(sagan, n),
    title="A square table hides it: a repair",
    stars=2,
    minutes=8,
    why="the table of weights is square, so the mistake passes every check of shapes, and nothing complains",
    asked=(
        "repair: each pixel's query asks all keys, its weights sum to 1 over the pixels it looks at, and it"
        " gets its own numbers plus gamma times the mix of the values"
    ),
    repair=True,
    stages=(
        Stage(
            "two pixels, (1, 0) and (0, 1), gamma 1; their scores are (0, log 3) and (0, 0)",
            lambda: [{**TWO_PIXELS, "gamma": 1.0}],
            "The values are (4, 0) and (8, 0). The first pixel weighs them 1/4 and 3/4 and gets 7, the second"
            " 1/2 and 1/2 and gets 6.",
        ),
        Stage(
            "the same with gamma 0, and with gamma 0.5",
            lambda: [{**TWO_PIXELS, "gamma": 0.0}, {**TWO_PIXELS, "gamma": 0.5}],
            "gamma scales what comes from attention, and nothing else: with 0 the block changes nothing.",
        ),
        Stage(
            "2 x 3 pixels, three channels, queries and keys of two numbers",
            lambda: [_features(1, 1, 3, 2, 3, d_k=2, gamma=0.7)],
            "In the table of scores, which axis belongs to the pixel that asks, which to the one that is"
            " looked at?",
        ),
        Stage(
            "two pictures",
            lambda: [_features(5, 2, 3, 2, 2, d_k=2, gamma=1.5), _features(9, 2, 3, 2, 3, d_k=3, gamma=0.8)],
            "Each picture attends to itself alone.",
        ),
    ),
    reference=_block_by_attend,
    hints=(
        (
            "query.mT is (b, n, d_k), key is (b, d_k, n). In the entry [b, i, j] of their product: which of i"
            " and j asks, which is looked at?"
        ),
        "Print weights.sum(dim=1) and weights.sum(dim=2) for two pixels. Which of them must be 1?",
        (
            "value @ weights.mT puts into column i the sum over j of value j times weights[i, j]. Along which"
            " of the axes 0, 1, 2 must the softmax run?"
        ),
    ),
    solution=sagan_block,
    remember=(
        "the softmax runs over the pixels that are looked at; a square table hides the mistake, its sums"
        " show it"
    ),
    slips={
        "this is still the function as it was given": (
            "weights = torch.softmax(query.mT @ key, dim=2)  # (b, n, n)\n    attended = value @ weights.mT  # (b, c, n)\n    return x + gamma * attended.unflatten(2, x.shape[2:])",
            "weights = torch.softmax(query.mT @ key, dim=1)  # (b, n, n)\n    attended = value @ weights.mT  # (b, c, n)\n    return x + gamma * attended.unflatten(2, x.shape[2:])",
        ),
        "your softmax runs over the pictures of the batch (dim=0); it must run over the pixels that are looked at": (
            "dim=2",
            "dim=0",
        ),
        "query and key have changed places: the keys ask now. With learned matrices that is the same block, but here w_q asks": (
            "dim=2",
            "dim=1",
            "weights.mT",
            "weights",
        ),
        "the softmax is right; now the mix is turned round: weights has a row per query, and values are columns": (
            "weights.mT",
            "weights",
        ),
        "one softmax over the whole table; each pixel has weights of its own, which sum to 1": (
            "torch.softmax(query.mT @ key, dim=2)",
            "torch.softmax((query.mT @ key).flatten(1), dim=1).unflatten(1, (-1, key.shape[2]))",
        ),
        "both axes are normalised, one after the other; only one of them sums to 1 in the end": (
            "torch.softmax(query.mT @ key, dim=2)",
            "torch.softmax(query.mT @ key, dim=2).softmax(1)",
        ),
        "both axes are normalised, one after the other; one softmax is enough": (
            "torch.softmax(query.mT @ key, dim=2)",
            "torch.softmax(query.mT @ key, dim=1).softmax(2)",
        ),
        "the softmax is right; this block does not scale its scores, leave out sqrt(d_k)": (
            "query.mT @ key,",
            "query.mT @ key / len(w_q) ** 0.5,",
        ),
        "there is no softmax: the scores are no weights": (
            "torch.softmax(query.mT @ key, dim=2)",
            "query.mT @ key",
        ),
        "the residual is gone: x itself must be in the sum": ("x + gamma", "gamma"),
        "x comes back as it was: add gamma times what attention brings": (
            " + gamma * attended.unflatten(2, x.shape[2:])",
            "",
        ),
        "gamma stands before the whole sum: it scales what attention brings, and x itself stays": (
            "x + gamma * attended.unflatten(2, x.shape[2:])",
            "gamma * (x + attended.unflatten(2, x.shape[2:]))",
        ),
        "gamma is gone: it decides how much of the attention comes in": ("gamma * ", ""),
        "gamma scales the attention alone; x stays whole": ("return x +", "return (1 - gamma) * x +"),
        "gamma stands on the wrong side: it belongs to what attention brings, not to x": (
            "x + gamma * attended",
            "gamma * x + attended",
        ),
        "a reshape has mixed channels and pixels: flatten(2) makes columns of pixels, .mT makes rows of them": (
            (
                "x.flatten(2)",
                "x.reshape(len(x), -1, x.shape[1]).mT",
                "attended.unflatten(2, x.shape[2:])",
                "attended.mT.reshape(x.shape)",
            )
        ),
        **exchanged("weights = torch", without="kqv"),
    },
    hidden=_more_sagan_block,
)


def cheapest_match(
    cost: Float[Tensor, "objects queries"],
) -> Int[Tensor, " objects"]:
    objects, queries = cost.shape
    every = list(permutations(range(queries), objects))
    ways = torch.tensor(every, device=cost.device)  # (ways, objects)
    each = torch.arange(objects, device=cost.device)
    totals = cost[each, ways].sum(dim=-1)
    return ways[totals.argmin()]


def _by_trying(best: Callable[..., tuple], total: Callable[[list[float]], float] = sum) -> Table:
    """The best of all ways to give each object a query of its own."""

    def chosen(cost: Tensor) -> Tensor:
        rows = cost.tolist()
        ways = permutations(range(cost.shape[1]), len(rows))
        way = best(ways, key=lambda way: total([row[j] for row, j in zip(rows, way, strict=True)]))
        return torch.tensor(way, device=cost.device)

    return chosen


_cheapest = _by_trying(min)


def _one_by_one(cost: Tensor) -> Tensor:
    """Greedy: the first object takes its best query, the next one the best of what is left."""
    left, chosen = cost.clone(), []
    for row in range(len(cost)):
        chosen.append(left[row].argmin())
        left[:, chosen[-1]] = torch.inf
    return torch.stack(chosen)


def _cheapest_pair_first(cost: Tensor) -> Tensor:
    left, chosen = cost.clone(), torch.zeros_like(cost[:, 0]).long()
    for _ in cost:
        row, column = divmod(int(left.argmin()), cost.shape[1])
        chosen[row] = column
        left[row], left[:, column] = torch.inf, torch.inf
    return chosen


def _costs(*tables: list) -> Callable[[], list[Case]]:
    return lambda: [{"cost": table(rows)} for rows in tables]


def _more_cheapest_match(drawn: Draw) -> list[Case]:
    return [{"cost": drawn(1, 4, 4)}, {"cost": drawn(2, 4, 6)}]


match_a_set = Write(
    name="cheapest_match",
    second=lambda n: seconds.cheapest_match(match_a_set, n),
    title="Who answers for which object?",
    stars=2,
    minutes=10,
    why=(
        "a detector answers with a set; before its loss can be computed, somebody must say which answer"
        " belongs to which object"
    ),
    asked=(
        "cost (objects, queries), never fewer queries than objects: give each object a query of its own, so"
        " that the sum of the costs is the smallest; the result names each object's query"
    ),
    stages=(
        Stage(
            "two objects, two queries, and each object has a favourite of its own",
            _costs([[3.0, 1.0], [2.0, 8.0]]),
            "Object 0 takes query 1, object 1 takes query 0: the result is (1, 0).",
        ),
        Stage(
            "both objects like query 0 best",
            _costs([[1.0, 2.0], [2.0, 9.0]]),
            "If object 0 takes query 0, it costs 1 + 9 = 10. The other way round it costs 2 + 2 = 4.",
        ),
        Stage(
            "two objects, four queries: two of them go to nobody",
            _costs(
                [[7.0, 3.0, 4.0, 9.0], [8.0, 1.0, 6.0, 5.0]], [[9.0, 8.0, 7.0, 2.0], [6.0, 9.0, 1.0, 8.0]]
            ),
            "All queries may be chosen, the last ones, too; the result has one number per object.",
        ),
        Stage(
            "three objects, three queries, then five; costs may be negative",
            lambda: [
                {"cost": table([[1, 3, 5], [2, 9, 4], [6, 4, 10]])},
                {"cost": drawn(52, 3, 5)},
            ],
            "Compare ALL ways to give three objects three different queries, by the sum of their costs.",
        ),
    ),
    reference=_cheapest,
    hints=(
        (
            "How many ways are there to give 2 objects different queries out of 3? Write them down as pairs"
            " of queries: what does permutations(range(3), 2) give?"
        ),
        "For one way, such as (2, 0): which two numbers of the table do you add?",
        (
            "cost[torch.arange(objects), ways] takes these numbers for all ways at once. Which axis do you"
            " sum over, and which method finds the place of the smallest sum?"
        ),
    ),
    solution=cheapest_match,
    remember=(
        "the match is decided for all objects at once, by the smallest sum; DETR uses the Hungarian"
        " algorithm, which need not try all ways"
    ),
    slips={
        "each object takes its favourite, so two objects can have one query; every object needs a query of its own": (
            "ways[totals.argmin()]",
            "cost.argmin(1)",
        ),
        "you are greedy: the first object takes its favourite, and the others pay for it; compare whole ways": (
            _one_by_one
        ),
        "you are greedy: the cheapest pair first; a later pair can cost more than was saved": (
            _cheapest_pair_first
        ),
        "you look for the largest sum; these are costs": ("argmin", "argmax"),
        "your queries stand in rising order only; object 0 may take a later query than object 1": (
            "permutations(range(queries), objects)",
            "(way for way in permutations(range(queries), objects) if list(way) == sorted(way))",
        ),
        "you ask each query for its object; asked is, for each object, its query": (
            "ways[totals.argmin()]",
            "each.new_full((queries,), -1).scatter(0, ways[totals.argmin()], each)",
        ),
        "you take the smallest of each column (dim=0); objects are rows, and each needs a query of its own": (
            ("ways[totals.argmin()]", "cost.argmin(0)")
        ),
        "only the first queries are tried, as many as there are objects; all queries may be chosen": (
            ("range(queries)", "range(objects)")
        ),
        "these are the rows that scipy gives back, the objects themselves; the queries are its second result": (
            "ways[totals.argmin()]",
            "each",
        ),
        "you make the highest single cost small; asked is the smallest sum": (
            ".sum(dim=-1)",
            ".amax(dim=-1)",
        ),
        "this is the sum of the costs; asked is which query each object gets": (
            ("ways[totals.argmin()]", "totals.min()")
        ),
        "these are the costs of the pairs; asked is which query each object gets": (
            "ways[totals.argmin()]",
            "cost[each, ways[totals.argmin()]]",
        ),
        "a table of ones and zeros is one way to say it; asked is one number per object, its query": (
            ("ways[totals.argmin()]", "torch.nn.functional.one_hot(ways[totals.argmin()], queries)")
        ),
        "pairs (object, query) are one way to say it; asked is one number per object, its query": (
            ("ways[totals.argmin()]", "torch.stack([each, ways[totals.argmin()]], 1)")
        ),
        "you count queries from 1; the first is query 0": (
            "ways[totals.argmin()]",
            "ways[totals.argmin()] + 1",
        ),
    },
    hidden=_more_cheapest_match,
)


without = Open(
    name="why_no_convolution",
    title="Three pixels are enough, in your own words",
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
    slips={
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
            r"softmax.*(positive|negative)|(positive|negative) weights|\bblur|softmax .*\bexactly (0|1)\b"
        ),
        "the edge is no obstacle, attention could have a border of zeros as well": (
            r"\bpadding\b|\bborder|\bedges?\b"
        ),
        "it is not a matter of size: attention may have as many parameters as it likes": (
            r"(few|more|enough|many) (parameters|weights)|capacity|weight sharing|shares? (its )?weights|too"
            r" small"
        ),
    },
    points=(
        "compare the second and the third pixel: what does attention have to tell them apart, or what happens when they change places?",
        "what does the convolution know that attention does not?",
        "and with several heads: what does each of them give, and what does their sum?",
    ),
)


EXERCISES = (
    *convolution.ASKED,
    *data_or_prior.ASKED,
    *reach.ASKED,
    seen,
    nine,
    patches,
    view,
    sagan,
    match_a_set,
    without,
)
