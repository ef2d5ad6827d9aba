"""Look into an opened model, and change what happens inside: what the layers would say, which heads matter,
which token carries what.

    with cut(model, [(1, 0)]): ...           head 0 of layer 1 says nothing
    with patched(model, 2, {5: row}): ...    behind layer 2, token 5 holds that row in place of its own
    lens(model, read)                        the logits that each layer's states would give at once
    opened(model, text)                      a text's weights and rows, for the explorers

A bright map says where a head looks, and not what depends on it: only a change inside, and its control, says
that. Layers and heads count from 0. What is changed is put back when the block ends, whatever happens in it.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib import require
from lesson_lib.device import to_device
from lesson_lib.models.pretrained.model import Model, Read


@contextmanager
def cut(model: Model, heads: Iterable[tuple[int, int]]) -> Iterator[Model]:
    """Inside, these (layer, head) add nothing: their outputs are 0 before w_output mixes the heads.

    Raises ValueError for a layer or a head that the model has not.
    """
    by_layer: dict[int, list[int]] = {}
    for one in heads:
        if not isinstance(one, tuple) or len(one) != 2:
            raise ValueError(f"heads must be pairs (layer, head), such as [(1, 0)], got {one!r}")
        layer, head = one
        _within(layer, model, "layer", len(model.layers))
        _within(head, model, "head", model.options.n_heads)
        by_layer.setdefault(layer, []).append(head)

    def silence(silent: list[int]) -> Any:
        def hook(_module: Any, given: tuple[Tensor]) -> tuple[Tensor]:
            outputs = given[0].unflatten(-1, (model.options.n_heads, -1)).clone()
            outputs[..., silent, :] = 0
            return (outputs.flatten(-2),)

        return hook

    hooks = [
        model.layers[layer].attention.w_output.register_forward_pre_hook(silence(silent))
        for layer, silent in by_layer.items()
    ]
    try:
        yield model
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def patched(model: Model, layer: int, rows: Mapping[int, Float[Tensor, "*b d_model"]]) -> Iterator[Model]:
    """Inside, the residual stream behind that layer holds `rows` at these tokens, taken from another text,
    for example `read.stream[layer + 1][:, token]`.

    Raises ValueError for a layer or a token that is not there, and a row of another width.
    """
    _within(layer, model, "layer", len(model.layers))
    for token, row in rows.items():
        require.whole(at_least=0, token=token)
        if not isinstance(row, Tensor) or row.shape[-1] != model.options.d_model:
            got = tuple(row.shape) if isinstance(row, Tensor) else type(row).__name__
            raise ValueError(f"a row has {model.options.d_model} numbers, got {got}")

    def hook(_module: Any, _given: Any, made: tuple[Tensor, Any]) -> tuple[Tensor, Any]:
        x = made[0].clone()
        for token, row in rows.items():
            if token >= x.shape[1]:
                raise ValueError(f"token {token} is not there; this text has {x.shape[1]}")
            x[:, token] = row
        return x, made[1]

    handle = model.layers[layer].register_forward_hook(hook)
    try:
        yield model
    finally:
        handle.remove()


@torch.no_grad()
def lens(model: Model, read: Read) -> Float[Tensor, "layers_and_one b n tokens"]:
    """The logits that the last norm and the read-out make of the residual stream as it comes in and behind
    each layer; the last of them are the model's own.

    `read` is `model(tokens, weights=True)`. Raises ValueError where it kept no stream, or the model reads out
    no tokens. Source: nostalgebraist 2020, "interpreting GPT: the logit lens".
    """
    if read.stream is None:
        raise ValueError("this text was read without its stream; read it with model(tokens, weights=True)")
    if model.read_out is None or model.options.n_classes:
        raise ValueError(f"a {model.options.family} like this one gives no logits of tokens")
    return torch.stack([model.read_out(model.norm(x), model.embedding) for x in read.stream])


class Opened(NamedTuple):
    """One text from inside: a piece of it for each token, each layer's weights (1, h, n, n), the rows as they
    come in and behind each layer (1, n, d_model), and what each row would say if it were read out there: the
    likeliest token. `says` is None where the model reads out no tokens."""

    pieces: list[str]
    weights: list[Tensor]
    stream: list[Tensor]
    says: list[list[str]] | None


@torch.no_grad()
def opened(model: Model, given: str | Tensor) -> Opened:
    """What a model does with one text, with numbers of tokens (n), or with one image (channels, side, side).

    Without a tokenizer a text is numbers, `"3 17 5"`. `widgets.machine` and `widgets.heads` draw it.
    Raises TypeError for another model or input, ValueError for what the tokenizer does not know.
    """
    if not isinstance(model, Model):
        raise TypeError(f"model must be one that open_model or new_model gives, got {type(model).__name__}")
    if isinstance(given, str):
        given = _numbers(model, given)
    if not isinstance(given, Tensor):
        raise TypeError(f"give a text, numbers of tokens, or one image, got {type(given).__name__}")
    read = model(to_device(given)[None], weights=True)
    if model.options.image:
        across = model.options.image[1] // model.options.image[2]
        pieces = ["class", *(f"{i},{j}" for i in range(across) for j in range(across))]
    else:
        pieces = model.pieces(given.cpu())
    says = None
    if model.read_out is not None and not model.options.n_classes:
        says = [model.pieces(row.cpu()) for row in lens(model, read)[:, 0].argmax(-1)]
    return Opened(pieces, read.weights, read.stream, says)


def _numbers(model: Model, text: str) -> Tensor:
    if not isinstance(model.text, str) and model.text is not None:
        return model.numbers(text)
    words = text.replace(",", " ").split()
    if not words or not all(word.isdecimal() for word in words):
        raise ValueError(
            f"this model came without a tokenizer: give it numbers of tokens, such as '3 17 5', not {text!r}"
        )
    return torch.tensor([int(word) for word in words])


def _within(number: Any, model: Model, name: str, count: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < count:
        raise ValueError(
            f"{name} must lie between 0 and {count - 1} in this {model.options.family}, got {number!r}"
        )
