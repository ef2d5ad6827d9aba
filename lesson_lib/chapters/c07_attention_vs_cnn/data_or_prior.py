"""What part 07b asks: four predictions, and two functions that the learner writes."""

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.chapters.c07_attention_vs_cnn import seconds
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.short import Choice

PART = "07b_data_or_prior"

patch_table = Choice(
    name="patch_table",
    notebook=PART,
    title="Why patches",
    asked=(
        "A photograph has 224 x 224 pixels. Squares of 16 x 16 pixels become the tokens. How many times fewer"
        " weights has the table?"
    ),
    options={"a": "16", "b": "256", "c": "65,536"},
    answer="c",
    remember="256 times fewer rows, and 256 times fewer columns",
    slips={
        "16 is the side of a patch; how many pixels does it hold?": "a",
        "there are 256 times fewer tokens, and the table has a row and a column for each": "b",
    },
)


def cut_patches(picture: Float[Tensor, "h w"], side: int) -> Float[Tensor, "n numbers"]:
    rows = []
    for top in range(0, picture.shape[0], side):
        for left in range(0, picture.shape[1], side):
            square = picture[top : top + side, left : left + side]
            rows.append(square.flatten())
    return torch.stack(rows)


def _picture(picture: Tensor, side: int) -> Case:
    return {"picture": picture, "side": side}


def _more_cut_patches(drawn: Draw) -> list[Case]:
    return [_picture(drawn(1, 6, 15), 3), _picture(drawn(2, 10, 4), 2)]


write_cut_patches = Write(
    name="cut_patches",
    notebook=PART,
    second=lambda n: seconds.PUT_TOGETHER,
    title="Cut the picture",
    stars=2,
    minutes=5,
    why="every model that sees begins like this, and one reshape alone does it wrongly",
    asked=(
        "cut a grey picture (h, w) into squares of side x side pixels, row by row like reading; each square"
        " becomes one row of side * side numbers, again row by row"
    ),
    stages=(
        Stage(
            "four rows of four, side 2",
            lambda: [_picture(table([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]), 2)],
            "The first row is 0, 1, 4, 5: two pixels of the first line, two of the second.",
        ),
        Stage(
            "one patch is the whole picture",
            lambda: [_picture(primes(3, 3), 3)],
            "One row with all pixels.",
        ),
        Stage(
            "four rows of six, side 2: more patches across than down",
            lambda: [_picture(primes(4, 6), 2)],
            "The second patch stands to the right of the first.",
        ),
        Stage(
            "six rows of nine, side 3",
            lambda: [_picture(drawn(1, 6, 9), 3)],
            "Six patches of nine numbers.",
        ),
    ),
    hints=(
        "At which rows and at which columns do the patches begin?",
        "How do you cut the square that begins at (top, left)?",
        "In which order must the two loops stand, so that the patches go row by row?",
    ),
    solution=cut_patches,
    hidden=_more_cut_patches,
    remember="rows of patches, then columns of patches; inside a patch rows, then columns",
    slips={
        "a reshape cuts the lines of the picture into runs; a patch takes a piece of several lines": (
            "    return torch.stack(rows)",
            "    return picture.reshape(-1, side * side)",
        ),
        "your patches go column by column; the second one stands to the right of the first": (
            "    for top in range(0, picture.shape[0], side):\n"
            "        for left in range(0, picture.shape[1], side):",
            "    for left in range(0, picture.shape[1], side):\n"
            "        for top in range(0, picture.shape[0], side):",
        ),
        "inside a patch you go down the columns; go along the lines": (
            "square.flatten()",
            "square.T.flatten()",
        ),
        "your squares overlap: take steps of `side` pixels": (
            "range(0, picture.shape[0], side)",
            "range(0, picture.shape[0] - side + 1)",
            "range(0, picture.shape[1], side)",
            "range(0, picture.shape[1] - side + 1)",
        ),
        "height and width have changed places": (
            "picture.shape[0], side",
            "picture.shape[1], side",
            "range(0, picture.shape[1], side):\n            square",
            "range(0, picture.shape[0], side):\n            square",
        ),
        "you average over each patch; a token keeps all its pixels": (
            "square.flatten()",
            "square.mean().expand(side * side)",
        ),
    },
)


def class_answer(
    patches: Float[Tensor, "b n d"],
    class_token: Float[Tensor, " d"],
) -> Float[Tensor, "b d"]:
    first = class_token.expand(len(patches), 1, -1)
    tokens = torch.cat([first, patches], dim=1)  # (b, 1 + n, d)
    return attend(tokens, tokens, tokens).output[:, 0]


def _asked(patches: Tensor, class_token: Tensor) -> Case:
    return {"patches": patches, "class_token": class_token}


def _more_class_answer(drawn: Draw) -> list[Case]:
    return [_asked(drawn(1, 3, 5, 7), drawn(2, 7)), _asked(drawn(3, 2, 3, 2), drawn(4, 2))]


write_class_answer = Write(
    name="class_answer",
    notebook=PART,
    second=lambda n: seconds.PADDED_PATCHES,
    title="The class token's way",
    stars=2,
    minutes=5,
    why="one vector must speak for the whole picture; this is how it gets to know the picture",
    asked=(
        "put the class token in front of the patches, let all tokens attend to all (queries, keys and values"
        " are the tokens themselves), and give back the class token's output"
    ),
    stages=(
        Stage(
            "a class token of zeros, one patch (2, 4)",
            lambda: [_asked(table([[[2.0, 4.0]]]), table([0.0, 0.0]))],
            "Both scores are 0, so it takes half of itself and half of the patch: (1, 2).",
        ),
        Stage(
            "one picture, three patches",
            lambda: [_asked(drawn(1, 1, 3, 2), drawn(2, 2))],
            "Four tokens stand in the list, and the class token looks at all four, itself included.",
        ),
        Stage(
            "two pictures",
            lambda: [_asked(drawn(3, 2, 5, 3), drawn(4, 3))],
            "Every picture begins with the same class token: class_token.expand(len(patches), 1, -1).",
        ),
    ),
    hints=(
        "The class token is (d,), the patches are (b, n, d). Which shape must it get for torch.cat?",
        "How many tokens does each list have, and which row is the class token's?",
        "`attend(tokens, tokens, tokens).output` is (b, 1 + n, d). What do you cut out of it?",
    ),
    solution=class_answer,
    hidden=_more_class_answer,
    remember="one token more, at place 0; it asks the patches, and only its output is read",
    slips={
        "this is the mean over all outputs; read the class token's alone": ("[:, 0]", ".mean(1)"),
        "the class token stands in front; you read the last patch": ("[:, 0]", "[:, -1]"),
        "you read the outputs of the patches; the class token's is in front of them": (
            "[:, 0]",
            "[:, 1:].mean(1)",
        ),
        "the class token stands behind the patches, and row 0 is the first patch": (
            "[first, patches]",
            "[patches, first]",
        ),
        "the class token must be among the keys, too: it looks at itself as well": (
            "attend(tokens, tokens, tokens)",
            "attend(first, patches, patches)",
        ),
        "all outputs come back; only the class token's is asked for": (".output[:, 0]", ".output"),
        "you add the class token to every patch; it is a token of its own": (
            "torch.cat([first, patches], dim=1)",
            "first + patches",
        ),
        "nobody has looked yet: these are the class tokens as they went in": (
            "attend(tokens, tokens, tokens).output[:, 0]",
            "tokens[:, 0]",
        ),
    },
)

thousand_pairs = Choice(
    name="thousand_pairs",
    notebook=PART,
    title="A thousand pictures",
    asked="Both learn the same 1,000 pictures, and at last know nearly all. On new pictures, who is right?",
    options={
        "a": "both, nearly always",
        "b": "the CNN nearly always, the ViT less often",
        "c": "the ViT nearly always, the CNN less often",
        "d": "nobody: both guess",
    },
    answer="b",
    remember="the CNN has the same kernels at all places; the ViT must learn that places do not matter",
    slips={
        "the ViT has met few of all pairs of places, and nothing tells it that places do not matter": "a",
        "which of the two treats all places nearly alike from the start?": "c",
        "1,000 pictures show a cross some 1,000 times, and that is enough for one of the two": "d",
    },
)

two_curves = Choice(
    name="two_curves",
    notebook=PART,
    title="The curves cross",
    asked="What does this figure show about 25,000 pictures?",
    options={
        "a": "with so many, the ViT is the better model",
        "b": "a CNN can make no use of so many",
        "c": "nothing yet about the models",
    },
    answer="c",
    remember="two curves may differ in more than the model: how long was each trained?",
    slips={
        "do the two curves differ in the model alone? What do the curves' names leave out?": "a",
        "it cannot, or it was not given the time?": "b",
    },
)

shuffled_rule = Choice(
    name="shuffled_rule",
    notebook=PART,
    title="A prior that is wrong",
    asked=(
        "Before the learners see a picture, its pixels are shuffled, always in the same way; the right answer"
        " stays as it was. How many pictures does the kernel need?"
    ),
    options={"a": "one, as before", "b": "36, like the matrix", "c": "no number is enough"},
    answer="c",
    remember="its nine numbers sit on the wrong pixels, and no data can move them",
    slips={
        "its neighbours are no neighbours any more": "a",
        "the matrix may tie any pixel to any other; what may the kernel do?": "b",
    },
)

ASKED = (
    patch_table,
    write_cut_patches,
    write_class_answer,
    thousand_pairs,
    two_curves,
    shuffled_rule,
)
