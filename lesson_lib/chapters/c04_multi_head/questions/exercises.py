"""What of the chapter's exercises is code; their words are in exercises.md."""

import random
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, primes
from lesson_lib.checks.questions import Code
from lesson_lib.heads import merge_heads, split_heads
from lesson_lib.scores import dot


def heads_together(heads: Float[Tensor, "*b h n d"]) -> Float[Tensor, "*b n width"]:
    *batch, h, n, d = heads.shape
    return heads.transpose(-2, -3).reshape(*batch, n, h * d)


def _more_heads_together(drawn: Draw) -> list[Case]:
    return [{"heads": drawn(1, 5, 11, 3)}, {"heads": drawn(2, 3, 4, 7, 2)}]


def several_heads(
    query: Float[Tensor, "b n h_d"],
    key: Float[Tensor, "b m h_d"],
    value: Float[Tensor, "b m h_v"],
    w_output: Float[Tensor, "h_v d_model"],
    n_heads: int,
) -> Float[Tensor, "b n d_model"]:
    def split(x):  # (b, n, h * d) to (b, h, n, d)
        return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)

    mixed = attend(split(query), split(key), split(value)).output
    return mixed.transpose(1, 2).flatten(2) @ w_output


def _case(seed: int, b: int, n: int, m: int, h: int, d: int, v: int, out: int, draw: Any = drawn) -> Case:
    shapes = {"query": (b, n, h * d), "key": (b, m, h * d), "value": (b, m, h * v), "w_output": (h * v, out)}
    case = {name: draw(seed + i, *shape) for i, (name, shape) in enumerate(shapes.items())}
    return case | {"n_heads": h}


def _more_several_heads(draw: Draw) -> list[Case]:
    return [_case(1, 3, 5, 7, 2, 3, 4, 11, draw), _case(11, 2, 3, 2, 5, 2, 3, 7, draw)]


def many_heads(
    x: Float[Tensor, "*b n d_model"],
    w_query: Float[Tensor, "d_model h_d_k"],
    w_key: Float[Tensor, "d_model h_d_k"],
    w_value: Float[Tensor, "d_model h_d_v"],
    w_output: Float[Tensor, "h_d_v d_model"],
    n_heads: int,
) -> Float[Tensor, "*b n d_model"]:
    def split(y):  # (..., n, h*d) to (..., h, n, d)
        return y.unflatten(-1, (n_heads, -1)).transpose(-2, -3)

    query, key, value = split(x @ w_query), split(x @ w_key), split(x @ w_value)
    scores = query @ key.mT / query.shape[-1] ** 0.5  # d_k, the width of one head
    mixed = torch.softmax(scores, dim=-1) @ value
    return mixed.transpose(-2, -3).flatten(-2) @ w_output


def _layer(
    seed: int, n: int, d_model: int, n_heads: int, d_k: int, d_v: int, batch: tuple[int, ...] = ()
) -> Case:
    sizes: dict[str, tuple[int, ...]] = {
        "x": (*batch, n, d_model),
        "w_query": (d_model, n_heads * d_k),
        "w_key": (d_model, n_heads * d_k),
        "w_value": (d_model, n_heads * d_v),
        "w_output": (n_heads * d_v, d_model),
    }
    drawn_numbers: dict[str, Any] = {
        name: drawn(seed + i, *size) for i, (name, size) in enumerate(sizes.items())
    }
    return drawn_numbers | {"n_heads": n_heads}


def _head_by_head(
    x: Tensor, w_query: Tensor, w_key: Tensor, w_value: Tensor, w_output: Tensor, n_heads: int
) -> Tensor:
    """Sum over heads of attention times the head's own rows of W_o."""
    columns = [w.chunk(n_heads, dim=-1) for w in (w_query, w_key, w_value)]
    parts = zip(*columns, w_output.chunk(n_heads), strict=True)
    return torch.stack([attend(x @ q, x @ k, x @ v).output @ o for q, k, v, o in parts]).sum(0)


def _more_many_heads(drawn: Draw) -> list[Case]:
    shapes = {
        "x": (11, 5),
        "w_query": (5, 12),
        "w_key": (5, 12),
        "w_value": (5, 8),
        "w_output": (8, 5),
    }
    case = {name: drawn(i, *shape, spread=0.7) for i, (name, shape) in enumerate(shapes.items())}
    return [{**case, "n_heads": 4}]


def silent_head(
    w_output: Float[Tensor, "h_d d_model"], head: int, n_heads: int
) -> Float[Tensor, "h_d d_model"]:
    width = w_output.shape[0] // n_heads
    silent = w_output.clone()
    silent[head * width : (head + 1) * width] = 0
    return silent


def _rows(w_output: Tensor, head: int, n_heads: int) -> Case:
    return {"w_output": w_output, "head": head, "n_heads": n_heads}


def _more_silent_head(drawn: Draw) -> list[Case]:
    return [_rows(drawn(1, 15, 7), 2, 5), _rows(drawn(2, 14, 3), 0, 2)]


def may_look(
    attn_mask: Bool[Tensor, "n m"], key_padding_mask: Bool[Tensor, "b m"]
) -> Bool[Tensor, "b 1 n m"]:
    hidden = attn_mask | key_padding_mask[:, None, None, :]
    return ~hidden


def _masks(n: int, lengths: list[int], m: int, first: int = 1) -> Case:
    """torch's two masks: query i may not look beyond key i + first - 1, and sequences end after `lengths`."""
    keys = torch.arange(m, device="cpu")
    queries, ends = torch.arange(n, device="cpu"), torch.tensor(lengths, device="cpu")
    return {
        "attn_mask": keys >= queries[:, None] + first,
        "key_padding_mask": keys >= ends[:, None],
    }


def _more_may_look(drawn: Draw) -> list[Case]:
    return [{"attn_mask": drawn(1, 5, 11) > 0.5, "key_padding_mask": drawn(2, 3, 11) > 1}]


def _three_back_picture() -> Any:
    from lesson_lib import charts

    n = 10
    where = torch.eye(n, device="cpu")
    query = 7 * torch.cat([torch.zeros(3, n, device="cpu"), where[:-3]])  # token i asks for position i - 3
    table = attend(query, where, where, score=dot).weights
    tokens = [str(i) for i in range(1, n + 1)]
    return charts.heatmap(
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


def _eight_heads_numbers(draw: random.Random) -> dict[str, Any]:
    d, heads, width = draw.choice([256, 384, 768]), draw.choice([3, 5, 6]), draw.choice([16, 40, 48])
    tokens = draw.choice([50, 200, 300])
    matrix = d * heads * width
    return locals()


CODE = {
    "eight_heads_2": Code(
        draw=_eight_heads_numbers,
    ),
    "heads_together": Code(
        solution=heads_together,
        cases=(
            lambda: [{"heads": primes(1, 2, 3)}],
            lambda: [{"heads": primes(2, 1, 3)}],
            lambda: [{"heads": primes(2, 2, 2)}],
            lambda: [{"heads": primes(3, 5, 2)}, {"heads": drawn(1, 2, 3, 5, 7)}],
        ),
        reference=lambda heads: merge_heads(heads),
        hidden=_more_heads_together,
    ),
    "heads_together_2": Code(
        wrong=(
            lambda heads: heads.shape[-3] == 1,
            lambda heads: heads.shape[-2] == 1,
            lambda heads: bool((heads == heads.flatten()[0]).all()),
        ),
    ),
    "several_heads": Code(
        solution=several_heads,
        cases=(
            lambda: [_case(21, 1, 2, 1, 1, 2, 3, 2) | {"value": primes(3)[None, None]}],
            lambda: [_case(31, 1, 1, 3, 2, 2, 2, 4)],
            lambda: [_case(41, 1, 3, 3, 3, 2, 2, 5)],
            lambda: [_case(51, 2, 5, 7, 2, 3, 4, 3)],
        ),
        reference=lambda query, key, value, w_output, n_heads: (
            merge_heads(attend(*(split_heads(x, n_heads) for x in (query, key, value))).output) @ w_output
        ),
        hidden=_more_several_heads,
    ),
    "several_heads_2": Code(
        wrong=(
            lambda query, key, value, w_output, n_heads: n_heads == 1,
            lambda query, key, value, w_output, n_heads: query.shape[1] == 1,
            lambda query, key, value, w_output, n_heads: not bool(value.any()),
        ),
    ),
    "many_heads": Code(
        solution=many_heads,
        cases=(
            lambda: [_layer(1, 1, 2, 2, 1, 1)],
            lambda: [_layer(11, 2, 3, 1, 2, 3)],
            lambda: [_layer(21, 2, 2, 2, 1, 1), _layer(31, 2, 2, 2, 1, 1)],
            lambda: [_layer(41, 5, 7, 3, 2, 2)],
            lambda: [_layer(51, 3, 7, 2, 3, 5, (2,)), _layer(61, 4, 7, 2, 3, 3, (2,))],
        ),
        reference=_head_by_head,
        hidden=_more_many_heads,
    ),
    "many_heads_2": Code(
        wrong=(
            lambda x, w_query, w_key, w_value, w_output, n_heads: n_heads == 1,
            lambda x, w_query, w_key, w_value, w_output, n_heads: x.shape[-2] == 1,
        ),
    ),
    "silent_head": Code(
        solution=silent_head,
        cases=(
            lambda: [_rows(primes(2, 3), 0, 2)],
            lambda: [_rows(primes(4, 3), 1, 2)],
            lambda: [_rows(primes(6, 5), 1, 3)],
            lambda: [_rows(drawn(1, 16, 16), 2, 4)],
        ),
        hidden=_more_silent_head,
    ),
    "silent_head_2": Code(
        wrong=(
            lambda w_output, head, n_heads: not bool(w_output.any()),
            lambda w_output, head, n_heads: w_output.numel() == 1,
        ),
    ),
    "may_look": Code(
        solution=may_look,
        cases=(
            lambda: [_masks(3, [3], 3)],
            lambda: [_masks(3, [1, 2], 3, first=3)],
            lambda: [_masks(3, [1, 3], 3)],
            lambda: [_masks(3, [4, 2], 5, first=2)],
        ),
        hidden=_more_may_look,
    ),
    "may_look_2": Code(
        wrong=(
            lambda attn_mask, key_padding_mask: (
                not bool((attn_mask & key_padding_mask[:, None, None, :]).any())
            ),
        ),
    ),
    "three_back": Code(
        picture=_three_back_picture,
    ),
}
