"""Look into an opened model, and change what happens inside: what the layers would say, which heads matter,
which token carries what.

    with cut(model, [(1, 0)]): ...           head 0 of layer 1 says nothing
    with patched(model, 2, {5: row}): ...    behind layer 2, token 5 holds that row in place of its own
    lens(model, read)                        the logits that each layer's states would give at once
    opened(model, text)                      a text's weights and rows, for the explorers
    without_each(model, text)                the share that the answer keeps without each head
    exchanged(model, text, other)            the share of the other text's answer, row by row carried over

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
from lesson_lib.models.pretrained.model import Model, ModelOutput


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
def lens(model: Model, read: ModelOutput) -> Float[Tensor, "layers_and_one b n tokens"]:
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
    given = _input(model, given)
    read = model(given, weights=True)
    if model.options.image:
        across = model.options.image[1] // model.options.image[2]
        pieces = ["class", *(f"{i},{j}" for i in range(across) for j in range(across))]
    else:
        pieces = model.pieces(given[0].cpu())
    says = None
    if model.read_out is not None and not model.options.n_classes:
        says = [model.pieces(row.cpu()) for row in lens(model, read)[:, 0].argmax(-1)]
    return Opened(pieces, read.weights, read.stream, says)


@torch.no_grad()
def without_each(model: Model, given: str | Tensor, answer: int | None = None) -> Float[Tensor, "layers h"]:
    """The share that the answer at the last place (for an image: the class) has when a head is cut, for every
    head by itself; on the CPU. `answer` is a token's or a class' number, without it the likeliest one.

    Takes what `opened` takes, and raises as it does; ValueError where the model reads out nothing.
    """
    given = _input(model, given)
    answer = int(_shares(model, given).argmax()) if answer is None else answer
    table = torch.zeros(len(model.layers), model.options.n_heads, device="cpu")
    for layer, row in enumerate(table):
        for head in range(len(row)):
            with cut(model, [(layer, head)]):
                row[head] = _shares(model, given)[answer]
    return table


@torch.no_grad()
def exchanged(model: Model, given: str | Tensor, other: str | Tensor) -> Float[Tensor, "layers n"]:
    """The share that the OTHER input's answer gets in this one, when behind a layer one token's row is
    replaced by that of the other; for every layer and token. On the CPU.

    Raises as `opened` does; ValueError where both inputs have not the same number of tokens, or the same
    answer.
    """
    given, other = _input(model, given), _input(model, other)
    if given.shape != other.shape:
        raise ValueError(
            f"both must have the same number of tokens, got {given.shape[-1]} and {other.shape[-1]}: only"
            " then does a row of one stand where the other has it"
        )
    answer = int(_shares(model, other).argmax())
    if answer == int(_shares(model, given).argmax()):
        raise ValueError("both texts have the same answer; change one token of the other text")
    stream = model(other, weights=True).stream
    table = torch.zeros(len(model.layers), stream[0].shape[1], device="cpu")
    for layer, row in enumerate(table):
        for token in range(len(row)):
            with patched(model, layer, {token: stream[layer + 1][:, token]}):
                row[token] = _shares(model, given)[answer]
    return table


def _shares(model: Model, given: Tensor) -> Tensor:
    """The shares of all tokens at the last place, or of all classes."""
    logits = model(given).logits
    if logits is None:
        raise ValueError(f"a {model.options.family} like this one reads out nothing, so it has no answer")
    scores = logits[0, -1] if logits.ndim == 3 else logits[0]
    return (scores - scores.logsumexp(-1)).exp().cpu()


def _input(model: Model, given: str | Tensor) -> Tensor:
    """One text, one row of numbers, or one image as a batch of one, where the model is."""
    if not isinstance(model, Model):
        raise TypeError(f"model must be one that open_model or new_model gives, got {type(model).__name__}")
    if isinstance(given, str):
        given = _numbers(model, given)
    if not isinstance(given, Tensor):
        raise TypeError(f"give a text, numbers of tokens, or one image, got {type(given).__name__}")
    return to_device(given)[None]


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
