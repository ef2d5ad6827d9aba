"""The translator of `translation`, trained on single dates, with one attention head silent at a time.

A silent head's columns of W_o are 0. The share of test dates with no wrong character is counted twice: with
the right characters before each place ("told"), and with the model's own ("written").
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from lesson_lib.chapters.c06_transformer.experiments import translation
from lesson_lib.data.dates import Pair
from lesson_lib.device import to_device
from lesson_lib.experiments import dates
from lesson_lib.heads import MultiHeadAttention
from lesson_lib.models.translator import PAD, TransformerTranslator, translate

RECIPE = {
    "model": translation.RECIPE["model"],
    "steps": translation.RECIPE["runs"][0][1],
    "lr": translation.RECIPE["lr"],
    "texts": 500,
    "seeds": [0, 1, 2],
}


def parts(model: TransformerTranslator) -> dict[str, MultiHeadAttention]:
    """{"encoder, layer 1": its attention, ...}: the attentions, layer by layer."""
    found, inner = {}, model.transformer
    for i, (reads, writes) in enumerate(zip(inner.encoder.layers, inner.decoder.layers, strict=True), 1):
        found[f"encoder, layer {i}"] = reads.attention
        found[f"decoder's own, layer {i}"] = writes.attention
        found[f"to the encoder, layer {i}"] = writes.cross_attention
    return found


@contextmanager
def silent(attention: MultiHeadAttention, head: int) -> Iterator[None]:
    """Inside, W_o does not read that head."""
    weight, width = attention.w_output.weight.data, attention.d_v
    kept = weight.clone()
    weight[:, head * width : (head + 1) * width] = 0
    try:
        yield
    finally:
        weight.copy_(kept)


@torch.no_grad()
def told(model: TransformerTranslator, pairs: list[Pair]) -> float:
    """Share of texts right at every place, each place given the right characters before it."""
    batch = to_device(model.vocabulary.batch(pairs))
    logits = model(batch.source, batch.lengths, batch.target[:, :-1]).logits
    asked = batch.target[:, 1:]
    wrong = (logits.argmax(-1) != asked) & (asked != PAD)
    return 1 - wrong.any(1).double().mean().item()


def written(model: TransformerTranslator, pairs: list[Pair]) -> float:
    """Share of texts right where the model reads what it has written."""
    made = translate(model, [pair.source for pair in pairs])
    return sum(one.text == pair.target for one, pair in zip(made, pairs, strict=True)) / len(pairs)


def run(seed: int) -> list[dict[str, Any]]:
    """A row for the whole model (head None), and one for each head of each attention."""
    model, _ = translation.train(seed=seed)
    model.eval()
    pairs = dates.texts(1, "test")[: RECIPE["texts"]]

    def row(part: str, head: int | None) -> dict[str, Any]:
        shares = {"told": told(model, pairs), "written": written(model, pairs)}
        return {"seed": seed, "part": part, "head": head, **shares}

    rows = [row("none", None)]
    for part, attention in parts(model).items():
        for head in range(attention.n_heads):
            with silent(attention, head):
                rows.append(row(part, head))
    return rows
