"""Second problems of chapter 07: other shapes, another distance, and inputs that catch a mistake."""

import random
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Exercise, Stage, Write
from lesson_lib.checks.expose import catch
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Number, fresh


def _one_row(h: int, w: int, down: int, right: int) -> bool:
    return h == 1


def _straight(h: int, w: int, down: int, right: int) -> bool:
    return right == 0


def _far_off(h: int, w: int, down: int, right: int) -> bool:
    return abs(down) > h or abs(right) >= h * w


def shift_weights(first: Write) -> Exercise:
    """A move that leaves a row at its end."""
    return catch(
        first,
        asked=(
            "somebody moves along the flat numbers, i * w + j + down * w + right, and tests with pictures of"
            " one row, and with moves up and down. Write a picture's size and a move on which it fails"
        ),
        slip="you move along the flat numbers, and at a row's end come into the next row",
        inputs={"h": "2", "w": "3", "down": "0", "right": "1"},
        remember="the pixel after a row's end is the next row's first: flat numbers do not know the edge",
        hints=(
            "Which number has the last pixel of a row, and which pixel has the next number?",
            "Why does that never happen with moves straight up and down?",
            "And why not in a picture of one row?",
        ),
        slips={
            "in one row the next number is off the picture: take two rows": _one_row,
            "straight up or down a row's end is never crossed: move to the side": _straight,
            "so far away both find nothing": _far_off,
        },
    )


def head_vector_2(centre: Float[Tensor, "2"], sharpness: Float[Tensor, "2"]) -> Float[Tensor, "4"]:
    return torch.cat([-sharpness, 2 * sharpness * centre])


def _oblong(centre: Tensor, sharpness: Tensor) -> Case:
    return {"centre": centre, "sharpness": sharpness}


HEAD_OF_TWO = Write(
    name="head_vector_2",
    title="Sharp in one direction",
    asked=(
        "a head that follows lines: with a sharpness for down and one for right, its score is -(s_down (d_down"
        " - c_down)² + s_right (d_right - c_right)²). Write v for r = (d_down², d_right², d_down, d_right)"
    ),
    stages=(
        Stage(
            "centre (0, 1), both sharpnesses 1",
            lambda: [_oblong(table([0.0, 1.0]), table([1.0, 1.0]))],
            "Before both squares stands -1; before d_right stands 2.",
        ),
        Stage(
            "centre (2, -1), sharp downwards, blunt along the row",
            lambda: [_oblong(table([2.0, -1.0]), table([5.0, 0.5]))],
            "Each direction has its own sharpness, before its square and before its middle term.",
        ),
        Stage(
            "a centre between pixels",
            lambda: [_oblong(drawn(1, 2), table([3.0, 0.0]))],
            "With sharpness 0 a direction does not count at all.",
        ),
    ),
    hints=(
        "Multiply out one direction alone. What stands before d_down², and what before d_down?",
        "In which order do the four numbers come?",
        "What do you get if you write -s and 2 s c as two vectors of two numbers?",
    ),
    solution=head_vector_2,
    remember="one number for each square, one for each direction: a row of attention can be a line",
    slips={
        "the sign is turned round: this head looks everywhere but there": (
            "[-sharpness, 2 * sharpness * centre]",
            "[sharpness, -2 * sharpness * centre]",
        ),
        "the middle terms need their own sharpness, too": ("2 * sharpness * centre", "2 * centre"),
        "the middle term has a factor of 2: (a - b)² = a² - 2ab + b²": (
            "2 * sharpness * centre",
            "sharpness * centre",
        ),
        "the squares come first in r": (
            "[-sharpness, 2 * sharpness * centre]",
            "[2 * sharpness * centre, -sharpness]",
        ),
    },
)


def cut_patches_2(patches: Float[Tensor, "n numbers"], width: int) -> Float[Tensor, "h w"]:
    side = round(patches.shape[1] ** 0.5)
    squares = patches.reshape(-1, width // side, side, side)  # rows and columns of patches
    return squares.transpose(1, 2).reshape(-1, width)


def _cut(patches: Tensor, width: int) -> Case:
    return {"patches": patches, "width": width}


PUT_TOGETHER = Write(
    name="cut_patches_2",
    title="Put it together again",
    asked=(
        "the way back: rows of side * side numbers, the patches of a grey picture row by row, become the"
        " picture again; `width` is its number of columns"
    ),
    stages=(
        Stage(
            "two patches of 2 x 2, side by side",
            lambda: [_cut(table([[0, 1, 4, 5], [2, 3, 6, 7]]), 4)],
            "The first line is 0 1 2 3: two numbers of the first patch, two of the second.",
        ),
        Stage(
            "one patch",
            lambda: [_cut(table([[3, 1, 4, 1, 5, 9, 2, 6, 8]]), 3)],
            "The patch is the picture.",
        ),
        Stage(
            "two rows of three patches",
            lambda: [_cut(drawn(1, 6, 4), 6)],
            "Patches 0, 1, 2 stand in the upper row.",
        ),
    ),
    hints=(
        "How many patches stand side by side?",
        "Reshape to (rows of patches, columns of patches, side, side). Which two axes must become neighbours, so"
        " that a line of the picture is one run of numbers?",
        "A line of the picture goes through all patches of a row: line inside the patch first, then the patch.",
    ),
    solution=cut_patches_2,
    remember="what one transpose has moved, the same transpose brings back",
    slips={
        "a reshape alone lays each patch out as lines of the picture": (
            "squares.transpose(1, 2).reshape(-1, width)",
            "patches.reshape(-1, width)",
        ),
        "inside each patch, lines and columns have changed places": (
            "squares.transpose(1, 2)",
            "squares.mT.transpose(1, 2)",
        ),
        "all patches stand below each other: a row of patches has width // side of them": (
            "squares.transpose(1, 2).reshape(-1, width)",
            "squares.reshape(-1, side)",
        ),
    },
)


def class_answer_2(
    patches: Float[Tensor, "b n d"],
    class_token: Float[Tensor, " d"],
    real: Bool[Tensor, "b n"],
) -> Float[Tensor, "b d"]:
    first = class_token.expand(len(patches), 1, -1)
    tokens = torch.cat([first, patches], dim=1)
    may_look = torch.cat([real.new_ones(len(real), 1), real], dim=1)  # the class token is always real
    return attend(tokens, tokens, tokens, mask=may_look[:, None]).output[:, 0]


def _padded(patches: Tensor, class_token: Tensor, real: list[list[bool]]) -> Case:
    return {"patches": patches, "class_token": class_token, "real": torch.tensor(real, device="cpu")}


PADDED_PATCHES = Write(
    name="class_answer_2",
    title="Pictures of different sizes",
    asked=(
        "a batch of pictures with different numbers of patches; `real` is False where a patch is padding. The"
        " class token's output, in which padding has no part"
    ),
    stages=(
        Stage(
            "a class token of zeros, one real patch, one of padding",
            lambda: [_padded(table([[[2.0, 4.0], [9.0, 9.0]]]), table([0.0, 0.0]), [[True, False]])],
            "Half itself, half the real patch: (1, 2).",
        ),
        Stage(
            "no padding: as before",
            lambda: [_padded(drawn(1, 1, 3, 2), drawn(2, 2), [[True, True, True]])],
            "With all patches real it is your first function.",
        ),
        Stage(
            "two pictures, three patches and one",
            lambda: [_padded(drawn(3, 2, 3, 5), drawn(4, 5), [[True] * 3, [True, False, False]])],
            "Each picture has a row of its own in the mask: (b, 1, 1 + n) for all queries.",
        ),
    ),
    hints=(
        "The tokens are one more than the patches. What is the mask of the class token itself?",
        "Which shape must a mask have beside scores of (b, 1 + n, 1 + n), if it is the same for all queries?",
        "torch.cat puts a column of True in front of `real`: along which axis?",
    ),
    solution=class_answer_2,
    remember="a token more is a column more in the mask",
    slips={
        "padding is looked at: attend needs the mask": (", mask=may_look[:, None]", ""),
        "the mask is turned round: True = may look": (
            "mask=may_look[:, None]",
            "mask=~may_look[:, None] | (torch.arange(tokens.shape[1], device=real.device) == 0)",
        ),
        "the class token may look at itself, too": (
            "real.new_ones(len(real), 1)",
            "~real.any(1, keepdim=True)",
        ),
        "padding set to zero still takes its share of the weight: hide it": (
            "tokens = torch.cat([first, patches], dim=1)",
            "tokens = torch.cat([first, patches * real[..., None]], dim=1)",
            ", mask=may_look[:, None]",
            "",
        ),
    },
)


def place_attention_2(
    x: Float[Tensor, "b c h w"],
    coarse: Float[Tensor, "b c h2 w2"],
    w_v: Float[Tensor, "c c"],
    gamma: float,
) -> Float[Tensor, "b c h w"]:
    places, others = x.flatten(2).mT, coarse.flatten(2).mT
    found = attend(places, others, others @ w_v.T).output
    return x + gamma * found.mT.reshape(x.shape)


def _coarser(seed: int, b: int, c: int, fine: tuple[int, int], coarse: tuple[int, int], gamma: float) -> Case:
    return {
        "x": drawn(seed, b, c, *fine),
        "coarse": drawn(seed + 1, b, c, *coarse),
        "w_v": drawn(seed + 2, c, c),
        "gamma": gamma,
    }


KEYS_OF_A_COARSER_MAP = Write(
    name="place_attention_2",
    title="Keys from a coarser map",
    asked=(
        "to save memory, each place of x asks the places of a coarser map of the same picture: queries are x's"
        " places, keys the coarse places, values the coarse places times w_v, scores as `attend` has them. Give back x"
        " + gamma * found"
    ),
    stages=(
        Stage(
            "two places ask one",
            lambda: [
                {
                    "x": table([[[[2.0, 6.0]]]]),
                    "coarse": table([[[[3.0]]]]),
                    "w_v": table([[2.0]]),
                    "gamma": 0.5,
                }
            ],
            "Both find 2 * 3 = 6, and get half of it: 5 and 9.",
        ),
        Stage(
            "two rows of three ask one row of two",
            lambda: [_coarser(1, 1, 3, (2, 3), (1, 2), 1.0)],
            "The table of weights is (b, 6, 2); what is found is one vector for each of the six places.",
        ),
        Stage(
            "two pictures",
            lambda: [_coarser(11, 2, 2, (3, 4), (2, 1), -0.7)],
            "Each picture asks its own coarse map.",
        ),
    ),
    hints=(
        "How many queries are there, and how many keys?",
        "Which of the three, query, key, value, come from the coarse map?",
        "What was found has as many rows as there are queries: which map's shape does it take?",
    ),
    solution=place_attention_2,
    remember="queries decide the shape of the output, keys and values what can be found: cross-attention",
    slips={
        "the keys come from the coarse map as well; yours are the places of x": (
            "attend(places, others, others @ w_v.T)",
            "attend(places, places, places @ w_v.T)",
        ),
        "the values are without w_v": ("others @ w_v.T", "others"),
        "x itself is gone: the block adds to it": ("x + gamma", "gamma"),
        "on the way back channels and places are mixed: .mT before the reshape": (
            "found.mT.reshape",
            "found.reshape",
        ),
    },
)


def set_loss_of_kinds_2(
    logits: Float[Tensor, "q kinds_and_none"],
    kind: Int[Tensor, " objects"],
    query: Int[Tensor, " objects"],
    no_object: float,
) -> Float[Tensor, ""]:
    wanted = torch.full_like(logits[:, 0], logits.shape[1] - 1, dtype=torch.long)
    wanted[query] = kind
    counts = torch.ones_like(logits[0])
    counts[-1] = no_object
    return torch.nn.functional.cross_entropy(logits, wanted, counts)


def _counted(logits: Tensor, kind: list[int], query: list[int], no_object: float) -> Case:
    numbers = {"kind": kind, "query": query}
    tensors = {name: torch.tensor(row, device="cpu") for name, row in numbers.items()}
    return {"logits": logits} | tensors | {"no_object": no_object}


WITH_WEIGHTS = Write(
    name="set_loss_of_kinds_2",
    title="Most queries find nothing",
    asked=(
        "with 100 queries and 5 objects 'no object' would drown the rest: a query without an object counts"
        " `no_object` (DETR takes 0.1), each other query 1. The weighted mean, as cross_entropy gives it with its"
        " argument `weight`"
    ),
    stages=(
        Stage(
            "one query with its object: the weight has nothing to weigh",
            lambda: [_counted(table([[2.0, 0.0, 0.0]]), [0], [0], 0.1)],
            "0.2395, as before.",
        ),
        Stage(
            "three queries, one object",
            lambda: [_counted(drawn(1, 3, 3), [0], [1], 0.1)],
            "Give cross_entropy a weight for each class; the last is no_object.",
        ),
        Stage(
            "five queries, three objects",
            lambda: [_counted(drawn(2, 5, 5), [3, 0, 3], [4, 0, 1], 0.4)],
            "cross_entropy divides by the sum of the weights, not by the number of queries.",
        ),
    ),
    hints=(
        "What shape has the argument `weight` of cross_entropy: a number for each query, or for each class?",
        "Which class has the weight no_object?",
        "Does your mean divide by 1 + 0.1 + 0.1, or by 3?",
    ),
    solution=set_loss_of_kinds_2,
    remember="a weight for a class is one argument; without it a detector learns to say 'nothing' first",
    slips={
        "'no object' still counts as much as the rest": (", counts)", ")"),
        "the weight belongs to the last class, 'no object'": ("counts[-1]", "counts[0]"),
        "divide by the sum of the weights, not by the number of queries": (
            "cross_entropy(logits, wanted, counts)",
            'cross_entropy(logits, wanted, counts, reduction="sum") / len(logits)',
        ),
        "no_object multiplies the whole loss; it is the weight of one class": (
            "cross_entropy(logits, wanted, counts)",
            "cross_entropy(logits, wanted) * no_object",
        ),
    },
)


def pixels_seen(first: Number, n: int) -> Number:
    """Other kernels, and the stride in another layer."""

    def make(draw: random.Random) -> Number:
        kernels, strided = [draw.choice([3, 5, 7]) for _ in range(3)], draw.choice([0, 1])
        side, step, told = 1, 1, []
        for layer, kernel in enumerate(kernels):
            side += (kernel - 1) * step
            told.append(f"{kernel} x {kernel}")
            step *= 2 if layer == strided else 1
        plain = 1 + sum(kernel - 1 for kernel in kernels)
        doubled = 1 + sum(
            (kernel - 1) * (2 if layer >= strided else 1) for layer, kernel in enumerate(kernels)
        )
        return replace(
            first,
            asked=(
                f"three convolutions of {', '.join(told)}, one behind the other, the"
                f" {('FIRST', 'SECOND')[strided]} with stride 2: how many input pixels can change one output"
                " pixel?"
            ),
            value=side**2,
            answer=f"{side} ** 2",
            solution=(
                "Each layer adds its kernel's side minus 1, times the step of its inputs: 1 before the stride, 2"
                f" behind it. The side is {side}, the square has {side**2} pixels."
            ),
            slips={
                "that is the side of the square; asked are its pixels": side,
                "that is without the stride: behind it, one step is two input pixels": plain**2,
                "the strided layer itself still takes steps of one input pixel; those behind it take two": doubled**2,
                "a stride doubles the steps of the layers behind it, not the whole side": (2 * plain) ** 2,
            },
        )  # fmt: skip

    return fresh(n, make)


def _sharp(pixels: Tensor, d: Tensor, kernel: Tensor, sharpness: float) -> bool:
    return sharpness >= 16


def _alike(pixels: Tensor, d: Tensor, kernel: Tensor, sharpness: float) -> bool:
    return bool((pixels == pixels[:1]).all())


def nine_heads(first: Write, _n: int) -> Exercise:
    """A head that is not sharp."""
    return catch(
        first,
        asked=(
            "somebody replaces the softmax: each head takes the nearest pixel alone. All his tests compare with"
            " torch's conv2d, at sharpness 50, and pass. Write inputs on which he is wrong"
        ),
        slip="each head takes the nearest pixel alone; that is the limit of a sharp head, and a blunt one mixes",
        inputs={
            "pixels": "torch.tensor([[1.0], [3.0]])",
            "d": "torch.tensor([[[0.0, 0.0], [0.0, 1.0]]])",
            "kernel": "torch.ones(1, 1, 3, 3)",
            "sharpness": "0.5",
        },
        remember="softmax comes near a choice and never is one: a head that learns must start blunt",
        hints=(
            "How much weight has the second nearest pixel at sharpness 50, and at 0.5?",
            "Which pixels must differ, so that a mixture is seen?",
            "One pixel that asks, and two that are looked at: what are the offsets d of these two?",
        ),
        slips={
            "so sharp a head takes one pixel alone, or nearly: make it blunt": _sharp,
            "all pixels are alike, so a mixture of them is one of them": _alike,
        },
    )


def _one_picture(images: Tensor, patch: int) -> bool:
    return len(images) == 1


def _one_patch(images: Tensor, patch: int) -> bool:
    return tuple(images.shape[-2:]) == (patch, patch)


def _same_pictures(images: Tensor, patch: int) -> bool:
    return bool((images == images[:1]).all())


def patch_rows(first: Write, _n: int) -> Exercise:
    """A batch whose pictures are mixed up."""
    return catch(
        first,
        asked=(
            "somebody brings the axes in a wrong order, and patches of different pictures change places. He tests"
            " with one picture. Write a batch on which it is seen"
        ),
        slip="pictures of the batch are mixed up: the first axis must stay the first",
        inputs={"images": "torch.arange(16.0).reshape(2, 1, 2, 4)", "patch": "2"},
        remember="test with two pictures that differ: a batch of one hides every mistake of the first axis",
        hints=(
            "Which axis is the batch, and what happens to it if it has length 1?",
            "How many patches must a picture have, so that they can change places with another picture's?",
            "Would you notice it if both pictures were the same?",
        ),
        slips={
            "one picture cannot be mixed with another: take two": _one_picture,
            "one patch in each picture keeps its place: take two patches at least": _one_patch,
            "both pictures are alike, so nobody sees that they were mixed": _same_pictures,
        },
    )


def _no_gamma(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, gamma: float) -> bool:
    return gamma == 0


def _one_place(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, gamma: float) -> bool:
    return x[0, 0].numel() == 1


def _equal_scores(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, gamma: float) -> bool:
    return not (w_q.any() and w_k.any())


def sagan_block(first: Write, _n: int) -> Exercise:
    """Inputs on which the axis of the softmax is seen."""
    return catch(
        first,
        asked=(
            "the function that you have repaired passed its author's tests: gamma was 0, as at the start of the"
            " training. Write inputs on which it fails"
        ),
        slip="this is still the function as it was given",
        inputs={
            "x": "torch.tensor([[[[1.0, 2.0]]]])",
            "w_q": "torch.ones(1, 1)",
            "w_k": "torch.ones(1, 1)",
            "w_v": "torch.ones(1, 1)",
            "gamma": "1.0",
        },
        remember="a block that begins as 'nothing' hides its mistakes at the start: test it switched on",
        hints=(
            "What does the block give with gamma = 0, whatever the weights are?",
            "How many pixels are needed, so that rows and columns of the table differ?",
            "If all scores are equal, over which axis can the softmax run?",
        ),
        slips={
            "gamma is 0: the block is switched off, and its mistake with it": _no_gamma,
            "one pixel has one weight, 1, over either axis": _one_place,
            "all scores are 0: both axes give even weights": _equal_scores,
        },
    )


def _no_spare_query(cost: Tensor) -> bool:
    return cost.shape[0] == cost.shape[1]


def _first_are_cheapest(cost: Tensor) -> bool:
    few = len(cost)
    return bool(cost[:, :few].max() <= cost[:, few:].min())


def cheapest_match(first: Write, _n: int) -> Exercise:
    """A later query that is the cheapest."""
    return catch(
        first,
        asked=(
            "somebody tries the first queries only, as many as there are objects. Nobody notices in scenes that are"
            " full. Write costs on which he overlooks the best match"
        ),
        slip="only the first queries are tried, as many as there are objects; all queries may be chosen",
        inputs={"cost": "torch.tensor([[5.0, 1.0]])"},
        remember="there are more queries than objects in nearly every picture: test with spare ones",
        hints=(
            "How many queries does he try, if there is one object?",
            "Which query must be the best, so that he overlooks it?",
            "Write one object and two queries: what do they cost?",
        ),
        slips={
            "as many queries as objects: there is none to overlook": _no_spare_query,
            "the first queries are the cheapest here, so he is right": _first_are_cheapest,
        },
    )
