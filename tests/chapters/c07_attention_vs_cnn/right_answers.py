"""Right answers to the exercises of lesson 07, in many spellings; wrong ones to the open question."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import pad

from lesson_lib.attention import attend
from lesson_lib.chapters.c07_attention_vs_cnn.vit import patchify
from lesson_lib.convolution import offsets
from lesson_lib.scores import dot
from tests import code_of

code = code_of("c07_attention_vs_cnn")


def _block(
    weights: code.Table = code._softmax,
    mixed: Callable[[Tensor, Tensor], Tensor] = lambda value, weights: value @ weights.mT,
    out: Callable[[Tensor, Tensor, float], Tensor] = lambda x, attended, gamma: x + gamma * attended,
    scores: Callable[[Tensor, Tensor], Tensor] = lambda query, key: query.mT @ key,
) -> Callable[..., Tensor]:
    """The block with any of its steps replaced."""

    def block(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, gamma: float) -> Tensor:
        pixels = x.flatten(2)
        table_ = weights(scores(w_q @ pixels, w_k @ pixels))
        return out(x, mixed(w_v @ pixels, table_).unflatten(2, x.shape[2:]), gamma)

    return block


def _as_products(pixels: Tensor, d: Tensor, kernel: Tensor, sharpness: float) -> Tensor:
    """By the quadratic encoding: each score is a product of two vectors of three numbers."""
    centres = code._centres(kernel)
    encoding = torch.cat([d.square().sum(-1, keepdim=True), d], -1)
    asked = torch.cat([torch.ones_like(centres[:, :1]), -2 * centres], -1)
    weights = (-sharpness * encoding @ asked.T).softmax(1)  # (n, m, 9)
    return sum(weights[..., k].mm(pixels).mm(kernel[:, :, k // 3, k % 3].T) for k in range(9))


def _by_attend(pixels: Tensor, d: Tensor, kernel: Tensor, sharpness: float) -> Tensor:
    bias = -sharpness * code._squares(d, code._centres(kernel))
    empty = pixels.new_zeros(9, len(d), 1), pixels.new_zeros(9, len(pixels), 1)
    return attend(*empty, pixels @ code._taps(kernel).mT, score=dot, score_bias=bias).output.sum(0)


def _slice_by_slice(images: Tensor, patch: int) -> Tensor:
    rows = []
    for top in range(0, images.shape[2], patch):
        for left in range(0, images.shape[3], patch):
            rows.append(images[:, :, top : top + patch, left : left + patch].flatten(1))
    return torch.stack(rows, 1)


def _by_convolution(images: Tensor, patch: int) -> Tensor:
    """A strided convolution whose kernels are the rows of a unit matrix."""
    width = images.shape[1] * patch**2
    kernels = torch.eye(width, dtype=images.dtype, device=images.device)
    kernels = kernels.unflatten(1, (images.shape[1], patch, patch))
    return torch.nn.functional.conv2d(images, kernels, stride=patch).flatten(2).mT


def _block_of_columns(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, gamma: float) -> Tensor:
    """The other repair: a column per query, so that the softmax runs down the columns."""
    pixels = x.flatten(2)
    table_ = ((w_k @ pixels).mT @ (w_q @ pixels)).softmax(1)
    return x + gamma * (w_v @ pixels @ table_).view_as(x)


def _block_of_convolutions(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, gamma: float) -> Tensor:
    query, key, value = (
        torch.nn.functional.conv2d(x, w[:, :, None, None]).flatten(2) for w in (w_q, w_k, w_v)
    )
    weights = torch.einsum("bdi,bdj->bij", query, key).softmax(-1)
    return x + gamma * torch.einsum("bij,bcj->bci", weights, value).reshape(x.shape)


def _query_by_query(logits: Tensor, kind: Tensor, query: Tensor) -> Tensor:
    answers = dict(zip(query.tolist(), kind.tolist(), strict=True))
    losses = [-row.log_softmax(-1)[answers.get(k, -1)] for k, row in enumerate(logits)]
    return torch.stack(losses).mean()


def _hungarian(cost: Tensor) -> Tensor:
    from scipy.optimize import linear_sum_assignment  # here, since few checks need it

    return torch.as_tensor(linear_sum_assignment(cost.numpy())[1], device=cost.device)


def _recursively(cost: Tensor) -> Tensor:
    """The last object tries each query; the others share out the rest."""

    def cheapest(row: int, free: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
        if row == len(cost):
            return 0.0, ()
        tries = []
        for j in free:
            rest, way = cheapest(row + 1, tuple(k for k in free if k != j))
            tries.append((float(cost[row, j]) + rest, (j, *way)))
        return min(tries)

    return torch.tensor(cheapest(0, tuple(range(cost.shape[1])))[1], device=cost.device)


def _by_offsets(h: int, w: int, down: int, right: int) -> Tensor:
    return (offsets(h, w) == torch.tensor([down, right])).all(-1).float()


def _by_two_moves(h: int, w: int, down: int, right: int) -> Tensor:
    """A move down and a move to the right, as one product of Kronecker."""
    moves = (
        torch.diag(torch.ones(max(0, n - abs(far))), far)[:n, :n] if abs(far) < n else torch.zeros(n, n)
        for n, far in ((h, down), (w, right))
    )
    return torch.kron(*moves)


def _by_numbers(h: int, w: int, down: int, right: int) -> Tensor:
    """The number of the pixel that is looked at, one-hot, where it lies on the picture."""
    row, column = torch.arange(h * w) // w + down, torch.arange(h * w) % w + right
    there = (row >= 0) & (row < h) & (column >= 0) & (column < w)
    place = torch.where(there, row * w + column, 0)
    return torch.nn.functional.one_hot(place, h * w).float().masked_fill(~there[:, None], 0.0)


def _none_but(logits: Tensor, kind: Tensor, query: Tensor) -> Tensor:
    """As if all said 'no object', and then mended for those that answer."""
    lost = logits.logsumexp(1) - logits[:, -1]
    mended = torch.nn.functional.cross_entropy(logits[query], kind, reduction="sum")
    return (lost.sum() - lost[query].sum() + mended) / len(logits)


def _one_query(patches: Tensor, class_token: Tensor) -> Tensor:
    """Only the class token asks."""
    tokens = torch.cat([class_token.repeat(len(patches), 1, 1), patches], 1)
    weights = (tokens @ class_token / len(class_token) ** 0.5).softmax(-1)
    return torch.einsum("bn,bnd->bd", weights, tokens)


RIGHT = {
    "place_attention": (
        lambda x, w_q, w_k, w_v, gamma: code._block_by_attend(x, w_q / len(w_q) ** 0.5, w_k, w_v, gamma),
        lambda x, w_q, w_k, w_v, gamma: (
            x
            + gamma
            * torch.nn.functional.scaled_dot_product_attention(
                *((w @ x.flatten(2)).mT for w in (w_q, w_k, w_v))
            ).mT.view_as(x)
        ),
        lambda x, w_q, w_k, w_v, gamma: _block_of_columns(x, w_q * len(w_k) ** -0.5, w_k, w_v, gamma),
    ),
    "set_loss_of_kinds": (
        _query_by_query,
        lambda logits, kind, query: (
            -logits.log_softmax(-1)[
                torch.arange(len(logits)),
                (torch.zeros(len(logits), dtype=torch.long) + logits.shape[1] - 1).scatter(0, query, kind),
            ].mean()
        ),
        _none_but,
    ),
    "cut_patches": (
        lambda picture, side: code._unfolded(picture[None, None], side)[0],
        lambda picture, side: patchify(picture[None, None], side)[0],
        lambda picture, side: picture.unfold(0, side, side).unfold(1, side, side).reshape(-1, side**2),
        lambda picture, side: (
            picture.view(len(picture) // side, side, -1, side).permute(0, 2, 1, 3).flatten(2).flatten(0, 1)
        ),
    ),
    "class_answer": (
        lambda patches, class_token: torch.stack(
            [
                attend(
                    class_token[None], torch.stack([class_token, *some]), torch.stack([class_token, *some])
                ).output[0]
                for some in patches
            ]
        ),
        lambda patches, class_token: torch.nn.functional.scaled_dot_product_attention(
            *[
                torch.nn.functional.pad(patches, (0, 0, 1, 0)).index_fill(1, torch.tensor([0]), 0.0)
                + torch.nn.functional.pad(class_token[None, None], (0, 0, 0, patches.shape[1]))
            ]
            * 3
        )[:, 0],
        _one_query,
    ),
    "shift_weights": (_by_offsets, _by_two_moves, _by_numbers),
    "goal_query": (
        lambda goal, sharpness: torch.tensor(
            [-sharpness, *(2 * sharpness * place for place in goal.tolist())]
        ),
        lambda goal, sharpness: sharpness * torch.cat([-torch.ones(1), 2 * goal]),
        lambda goal, sharpness: pad(2 * sharpness * goal, (1, 0), value=-sharpness),
    ),
    "nine_heads": (code._heads(), _as_products, _by_attend),
    "patch_rows": (code._unfolded, _slice_by_slice, _by_convolution),
    "sagan_block": (_block(), code._block_by_attend, _block_of_columns, _block_of_convolutions),
    "cheapest_match": (_hungarian, code._cheapest, _recursively),
    "why_no_convolution": (
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
}

# in the order of the slips
WRONG = {
    "why_no_convolution": (
        "Self-attention is permutation invariant.",
        "One head is too weak, but nine heads could do it.",
        "After training on pictures it knows the neighbours.",
        "Because attention looks at all pixels and a convolution at three.",
        "The softmax makes all weights positive.",
        "The convolution uses padding.",
        "The attention has too few parameters.",
    ),
}
