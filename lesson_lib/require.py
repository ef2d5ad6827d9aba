"""What a caller may pass, said once: each function raises in a sentence that names the argument, what it must
be and what it is.

ValueError, and TypeError where a tensor is no tensor or of another dtype.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy
import torch
from torch import Tensor


def whole(*, at_least: int = 1, at_most: float = math.inf, **numbers: Any) -> None:
    """Each of `numbers` is a whole number from `at_least` to `at_most`; True is none.

    >>> whole(n=3, heads=2)
    >>> whole(at_least=0, n=-1)
    Traceback (most recent call last):
    ValueError: n must be a whole number >= 0, got -1
    """
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int) or not at_least <= value <= at_most:
            limits = f">= {at_least}" if at_most == math.inf else f"from {at_least} to {at_most}"
            raise ValueError(f"{name} must be a whole number {limits}, got {described(value)}")


def number(
    *, at_least: float = 0, above: float = -math.inf, at_most: float = math.inf, **numbers: Any
) -> None:
    """Each of `numbers` is a finite number, at least `at_least`, above `above`, at most `at_most`.

    >>> number(above=0, seconds=0.5)
    >>> number(at_most=1, share=1.5)
    Traceback (most recent call last):
    ValueError: share must be a number from 0 to 1, got 1.5
    """
    for name, value in numbers.items():
        real = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not real or not at_least <= value <= at_most or not value > above:
            limits = f"from {at_least} to {at_most}" if at_most < math.inf else f">= {at_least}"
            limits = f"> {above}" if above >= at_least else limits
            raise ValueError(f"{name} must be a number {limits}, got {described(value)}")


def one_of(known: Iterable[Any], **values: Any) -> None:
    """Each of `values` is one of `known`.

    >>> one_of(("train", "test"), split="tset")
    Traceback (most recent call last):
    ValueError: split must be one of train, test, got 'tset'
    """
    known = list(known)
    for name, value in values.items():
        if not any(type(value) is type(each) and value == each for each in known):
            raise ValueError(f"{name} must be one of {', '.join(map(str, known))}, got {described(value)}")


def described(value: Any) -> str:
    """A value as a message quotes it; of a tensor its shape."""
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}; the lengths of a tensor x are x.shape"
    return repr(value)


def attention(
    query: Any,
    key: Any,
    value: Any,
    score_bias: Any,
    mask: Any,
    dropout: Any,
    score: Any,
    *,
    equal_widths: bool,
) -> torch.Size:
    """The arguments of `attend` fit together; returns the shape of the scores."""
    shape = inputs(query, key, value, equal_widths=equal_widths)
    if not callable(score):
        raise TypeError(
            f"score must be a function (query, key) -> scores, got {type(score).__name__}; e.g. scores.dot"
        )
    if isinstance(dropout, bool) or not isinstance(dropout, int | float) or not 0 <= dropout < 1:
        raise ValueError(
            f"dropout must be a share in [0, 1), got {dropout!r}; 0.1 drops a tenth of the weights"
        )
    table(score_bias, "score_bias", shape, query)
    table(mask, "mask", shape, query)
    return shape


def table_of_scores(scores: Any, shape: torch.Size) -> Tensor:
    """What a score function returned is one number for each query and key; returns it."""
    if not isinstance(scores, Tensor) or scores.shape != shape:
        got = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
        raise ValueError(f"score must return one number per query and key, shape {tuple(shape)}, got {got}")
    return scores


def inputs(query: Any, key: Any, value: Any, *, equal_widths: bool = True) -> torch.Size:
    """Queries, keys and values fit together; returns the shape of their scores. A dot product needs equal
    widths."""
    for name, x in {"query": query, "key": key, "value": value}.items():
        if not isinstance(x, Tensor):
            raise TypeError(
                f"{name} must be a tensor, got {type(x).__name__}; make one with torch.tensor(...)"
            )
        if not x.dtype.is_floating_point:
            raise TypeError(
                f"{name} must hold floating-point numbers, got {x.dtype}; convert it with .float()"
            )
        if x.ndim < 2:
            raise ValueError(
                f"{name} must have shape (..., tokens, width), got {tuple(x.shape)}; one token is x[None, :]"
            )
        if x.dtype != query.dtype:
            raise TypeError(
                f"{name} is {x.dtype}, but query is {query.dtype}; convert it with {name}.to(query.dtype)"
            )
        if x.device != query.device:
            raise ValueError(
                f"{name} is on {x.device}, but query is on {query.device}; move it with"
                f" {name}.to(query.device)"
            )
    if equal_widths and query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"query has width {query.shape[-1]} and key {key.shape[-1]}; a dot product needs equal widths d_k"
            " (project them, or use scores.Additive or scores.Bilinear)"
        )
    if query.shape[-1] == 0:
        raise ValueError("query has width 0; a query needs at least one number")
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"key has {key.shape[-2]} tokens and value {value.shape[-2]}; each key needs its own value (axis"
            " -2 is the tokens')"
        )
    try:
        batch = leading(query, key, value)
    except ValueError:
        shapes = ", ".join(str(tuple(x.shape[:-2])) for x in (query, key, value))
        raise ValueError(
            f"the leading axes of query, key and value do not fit together: {shapes}; make them equal"
        ) from None
    return torch.Size((*batch, query.shape[-2], key.shape[-2]))


def leading(*tensors: Tensor) -> torch.Size:
    """The axes before the last two, as they are broadcast together; ValueError where they do not fit.

    numpy's: torch.broadcast_shapes imports sympy when it is called, a second before the first attention.

    >>> leading(torch.zeros(2, 1, 5, 3), torch.zeros(7, 5, 3))
    torch.Size([2, 7])
    """
    return torch.Size(numpy.broadcast_shapes(*(x.shape[:-2] for x in tensors)))


def table(table: Any, name: str, shape: torch.Size, query: Tensor) -> None:
    """`mask` or `score_bias` is None, or a table over scores of that shape."""
    if table is None:
        return
    if not isinstance(table, Tensor):
        raise TypeError(
            f"{name} must be a tensor, got {type(table).__name__}; make one with torch.tensor(...)"
        )
    if name == "mask" and table.dtype != torch.bool:
        repair = (
            "pass it as score_bias"
            if table.dtype.is_floating_point
            else "convert it with .bool() if 1 means 'may look'"
        )
        raise TypeError(f"mask must be boolean (True = may look), got {table.dtype}; {repair}")
    if name == "score_bias" and table.dtype != query.dtype:
        repair = "pass it as mask" if table.dtype == torch.bool else "convert it with .to(query.dtype)"
        raise TypeError(f"score_bias must be {query.dtype} like query, got {table.dtype}; {repair}")
    if table.device != query.device:
        raise ValueError(
            f"{name} is on {table.device}, but query is on {query.device}; move it with .to(query.device)"
        )
    got, want = tuple(table.shape), tuple(shape)
    if table.ndim not in (2, len(shape)):
        raise ValueError(
            f"{name} has {table.ndim} axes {got}, but the scores have shape {want}; give it 2 axes (shared by"
            f" all) or {len(shape)}, with size 1 where shared, e.g. {name}[:, None] for one table per"
            " sequence of a (b, h, n, m) batch"
        )
    if any(have not in (1, size) for have, size in zip(got[::-1], want[::-1], strict=False)):
        turned = (
            " (it would fit transposed: rows are queries, columns are keys)"
            if got[-2:] == want[:-3:-1]
            else ""
        )
        raise ValueError(
            f"{name} of shape {got} does not broadcast to the scores {want}{turned}; its last axes are (n, m)"
        )
