"""What of the chapter's exercises is code; their words are in exercises.md."""

import random
from collections.abc import Callable
from itertools import permutations
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import conv2d, interpolate

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.questions import Code
from lesson_lib.convolution import offsets, receptive_field
from lesson_lib.scores import dot


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


def _sharp(pixels: Tensor, d: Tensor, kernel: Tensor, sharpness: float) -> bool:
    return sharpness >= 16


def _alike(pixels: Tensor, d: Tensor, kernel: Tensor, sharpness: float) -> bool:
    return bool((pixels == pixels[:1]).all())


def _one_picture(images: Tensor, patch: int) -> bool:
    return len(images) == 1


def _one_patch(images: Tensor, patch: int) -> bool:
    return tuple(images.shape[-2:]) == (patch, patch)


def _same_pictures(images: Tensor, patch: int) -> bool:
    return bool((images == images[:1]).all())


def _no_gamma(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, gamma: float) -> bool:
    return gamma == 0


def _one_place(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, gamma: float) -> bool:
    return x[0, 0].numel() == 1


def _equal_scores(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, gamma: float) -> bool:
    return not (w_q.any() and w_k.any())


def _no_spare_query(cost: Tensor) -> bool:
    return cost.shape[0] == cost.shape[1]


def _first_are_cheapest(cost: Tensor) -> bool:
    few = len(cost)
    return bool(cost[:, :few].max() <= cost[:, few:].min())


def _pixels_seen_numbers(draw: random.Random) -> dict[str, Any]:
    kernels, strided = [draw.choice([3, 5, 7]) for _ in range(3)], draw.choice([0, 1])
    side, step, told = 1, 1, []
    for layer, kernel in enumerate(kernels):
        side += (kernel - 1) * step
        told.append(f"{kernel} x {kernel}")
        step *= 2 if layer == strided else 1
    plain = 1 + sum(kernel - 1 for kernel in kernels)
    doubled = 1 + sum((kernel - 1) * (2 if layer >= strided else 1) for layer, kernel in enumerate(kernels))
    return locals()


CODE = {
    "pixels_seen_2": Code(
        draw=_pixels_seen_numbers,
    ),
    "nine_heads": Code(
        solution=nine_heads,
        cases=(
            lambda: [_scene(COUNTED, table([[ABOVE]]), 50.0)],
            lambda: [
                _scene(COUNTED, primes(1, 1, 3, 3), 50.0),
                _scene(drawn(1, 2, 3, 4), primes(2, 2, 3, 3), 50.0),
            ],
            lambda: [_scene(COUNTED, table([[ABOVE]]), 0.5)],
            lambda: [
                _scene(drawn(2, 3, 4, 5), drawn(3, 2, 3, 3, 3), 0.2),
                _scene(drawn(4, 3, 4, 5), drawn(5, 2, 3, 3, 3), 3.0),
            ],
        ),
        reference=_heads(),
        hidden=_more_nine_heads,
    ),
    "nine_heads_2": Code(
        wrong=(
            _sharp,
            _alike,
        ),
    ),
    "patch_rows": Code(
        solution=patch_rows,
        cases=(
            lambda: [{"images": _counting(1, 1, 4, 4), "patch": 2}],
            lambda: [{"images": _counting(1, 1, 4, 6), "patch": 2}],
            lambda: [{"images": primes(1, 2, 2, 6), "patch": 2}],
            lambda: [
                {"images": drawn(1, 2, 3, 6, 9), "patch": 3},
                {"images": drawn(2, 2, 3, 4, 5), "patch": 1},
            ],
        ),
        reference=_unfolded,
        hidden=_more_patch_rows,
    ),
    "patch_rows_2": Code(
        wrong=(
            _one_picture,
            _one_patch,
            _same_pictures,
        ),
    ),
    "token_view": Code(
        picture=_fields_picture,
    ),
    "sagan_block": Code(
        solution=sagan_block,
        cases=(
            lambda: [{**TWO_PIXELS, "gamma": 1.0}],
            lambda: [{**TWO_PIXELS, "gamma": 0.0}, {**TWO_PIXELS, "gamma": 0.5}],
            lambda: [_features(1, 1, 3, 2, 3, d_k=2, gamma=0.7)],
            lambda: [_features(5, 2, 3, 2, 2, d_k=2, gamma=1.5), _features(9, 2, 3, 2, 3, d_k=3, gamma=0.8)],
        ),
        reference=_block_by_attend,
        hidden=_more_sagan_block,
    ),
    "sagan_block_2": Code(
        wrong=(
            _no_gamma,
            _one_place,
            _equal_scores,
        ),
    ),
    "cheapest_match": Code(
        solution=cheapest_match,
        cases=(
            _costs([[3.0, 1.0], [2.0, 8.0]]),
            _costs([[1.0, 2.0], [2.0, 9.0]]),
            _costs(
                [[7.0, 3.0, 4.0, 9.0], [8.0, 1.0, 6.0, 5.0]], [[9.0, 8.0, 7.0, 2.0], [6.0, 9.0, 1.0, 8.0]]
            ),
            lambda: [
                {"cost": table([[1, 3, 5], [2, 9, 4], [6, 4, 10]])},
                {"cost": drawn(52, 3, 5)},
            ],
        ),
        wrong=(
            _one_by_one,
            _cheapest_pair_first,
        ),
        reference=_cheapest,
        hidden=_more_cheapest_match,
    ),
    "cheapest_match_2": Code(
        wrong=(
            _no_spare_query,
            _first_are_cheapest,
        ),
    ),
}
