"""What of the questions in 07b_data_or_prior.md is code."""

import torch
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.questions import Code


def cut_patches(picture, side):
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


def class_answer(patches, class_token):
    first = class_token.expand(len(patches), 1, -1)
    tokens = torch.cat([first, patches], dim=1)  # (b, 1 + n, d)
    return attend(tokens, tokens, tokens).output[:, 0]


def _asked(patches: Tensor, class_token: Tensor) -> Case:
    return {"patches": patches, "class_token": class_token}


def _more_class_answer(drawn: Draw) -> list[Case]:
    return [_asked(drawn(1, 3, 5, 7), drawn(2, 7)), _asked(drawn(3, 2, 3, 2), drawn(4, 2))]


def cut_patches_2(patches, width):
    side = round(patches.shape[1] ** 0.5)
    squares = patches.reshape(-1, width // side, side, side)  # rows and columns of patches
    return squares.transpose(1, 2).reshape(-1, width)


def _cut(patches: Tensor, width: int) -> Case:
    return {"patches": patches, "width": width}


def class_answer_2(patches, class_token, real):
    first = class_token.expand(len(patches), 1, -1)
    tokens = torch.cat([first, patches], dim=1)
    may_look = torch.cat([real.new_ones(len(real), 1), real], dim=1)  # the class token is always real
    return attend(tokens, tokens, tokens, mask=may_look[:, None]).output[:, 0]


def _padded(patches: Tensor, class_token: Tensor, real: list[list[bool]]) -> Case:
    return {"patches": patches, "class_token": class_token, "real": torch.tensor(real, device="cpu")}


CODE = {
    "cut_patches": Code(
        solution=cut_patches,
        cases=(
            lambda: [_picture(table([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]), 2)],
            lambda: [_picture(primes(3, 3), 3)],
            lambda: [_picture(primes(4, 6), 2)],
            lambda: [_picture(drawn(1, 6, 9), 3)],
        ),
        hidden=_more_cut_patches,
    ),
    "cut_patches_2": Code(
        solution=cut_patches_2,
        cases=(
            lambda: [_cut(table([[0, 1, 4, 5], [2, 3, 6, 7]]), 4)],
            lambda: [_cut(table([[3, 1, 4, 1, 5, 9, 2, 6, 8]]), 3)],
            lambda: [_cut(drawn(1, 6, 4), 6)],
        ),
    ),
    "class_answer": Code(
        solution=class_answer,
        cases=(
            lambda: [_asked(table([[[2.0, 4.0]]]), table([0.0, 0.0]))],
            lambda: [_asked(drawn(1, 1, 3, 2), drawn(2, 2))],
            lambda: [_asked(drawn(3, 2, 5, 3), drawn(4, 3))],
        ),
        hidden=_more_class_answer,
    ),
    "class_answer_2": Code(
        solution=class_answer_2,
        cases=(
            lambda: [_padded(table([[[2.0, 4.0], [9.0, 9.0]]]), table([0.0, 0.0]), [[True, False]])],
            lambda: [_padded(drawn(1, 1, 3, 2), drawn(2, 2), [[True, True, True]])],
            lambda: [_padded(drawn(3, 2, 3, 5), drawn(4, 5), [[True] * 3, [True, False, False]])],
        ),
    ),
}
