"""Heads that share their keys: what it costs a GPT in bits per character, and what it saves in the cache.

The short GPT of `experiments.gpt`, its data, batches, steps and judge, with 4 heads of queries and 4, 2 or 1
of keys and values. Fewer heads of keys mean fewer parameters too, so a fourth layer gives them back: one head
of keys, and a feed-forward network wider by as many numbers as were saved, to within 0.1 %. Each layer's rate
is the best of three on the VALIDATION topics, with one seed. Bytes of the cache are counted in the Cache
objects of all layers once the context is full.
"""

import torch
import torch.nn.functional as F

from lesson_lib.blocks import FeedForward
from lesson_lib.data import topics
from lesson_lib.device import to_device
from lesson_lib.experiments import gpt as short
from lesson_lib.models import gpt
from lesson_lib.models.gpt import GPT, generate
from lesson_lib.training import History, fit

RECIPE = {
    "gpt": {key: short.RECIPE["short"][key] for key in ("sizes", "batch", "steps")},
    "layers": [
        {"n_key_heads": 4, "d_inner": 256, "lr": 8e-3},
        {"n_key_heads": 2, "d_inner": 256, "lr": 8e-3},
        {"n_key_heads": 1, "d_inner": 256, "lr": 8e-3},
        {"n_key_heads": 1, "d_inner": 304, "lr": 8e-3},
    ],
    "rates": [4e-3, 8e-3, 1.6e-2],
    "tuning_seed": 0,
    "seeds": [0, 1, 2],
}  # fmt: skip


def train(n_key_heads: int, *, d_inner: int = 256, lr: float = 8e-3, seed: int = 0) -> tuple[GPT, History]:
    """A trained GPT whose 4 heads share `n_key_heads` heads of keys and values, and its history; `d_inner` is
    its feed-forward networks' width."""
    recipe = RECIPE["gpt"]
    torch.manual_seed(seed)
    model = GPT(topics.CHARACTERS, **recipe["sizes"], n_key_heads=n_key_heads)
    d_model = recipe["sizes"]["d_model"]
    if d_inner != 4 * d_model:
        for layer in model.encoder.layers:
            layer.feed_forward = FeedForward(d_model, d_inner, activation=F.gelu)
    history = fit(
        to_device(model),
        lambda generator: topics.draw(generator, recipe["batch"], model.context),
        gpt.loss,
        steps=recipe["steps"],
        lr=lr,
        seed_number=seed,
        name=f"GPT, {n_key_heads} of 4 heads of keys",
    )
    return model, history


def cache_bytes(model: GPT) -> int:
    """Bytes of keys and values in the caches of all layers, when a generation has filled the context."""
    kept = []
    hook = model.encoder.register_forward_pre_hook(
        lambda _, __, options: kept.append(options["caches"]), with_kwargs=True
    )
    # the last character is drawn when as many are known as the context holds
    generate(model, "T", model.context)
    hook.remove()
    tables = [table for cache in kept[-1] for table in (cache.key, cache.value)]
    return sum(table.numel() * table.element_size() for table in tables)


def run(seed: int) -> list[dict]:
    """A row of kind "trained" for each layer; on the tuning seed also one of kind "tried" for each of the
    other rates."""
    rows = []
    for layer in RECIPE["layers"]:
        rates = RECIPE["rates"] if seed == RECIPE["tuning_seed"] else [layer["lr"]]
        for lr in rates:
            kind = "trained" if lr == layer["lr"] else "tried"
            rows.append(row(layer["n_key_heads"], layer["d_inner"], lr, seed, kind=kind))
    return rows


def row(n_key_heads: int, d_inner: int, lr: float, seed: int, *, kind: str = "trained") -> dict:
    """One training, judged."""
    model, history = train(n_key_heads, d_inner=d_inner, lr=lr, seed=seed)
    test = short.bits_per_character(model)
    return {
        "kind": kind, "n_key_heads": n_key_heads, "d_inner": d_inner, "lr": lr, "seed": seed,
        "validation_bits": round(short.bits_per_character(model, "validation"), 4), "bits": round(test, 4),
        "perplexity": round(2**test, 4), "parameters": sum(p.numel() for p in model.parameters()),
        "cache_bytes": cache_bytes(model),
        "cpu_s": round(history.cpu_s, 1), "loss": history.column("loss"),
    }  # fmt: skip


def means(rows: list[dict], name: str = "bits") -> dict[tuple[int, int], float]:
    """{(n_key_heads, d_inner): mean of a column over the seeds}, of the rows of kind "trained"."""
    found: dict[tuple[int, int], list[float]] = {}
    for one in rows:
        if one["kind"] == "trained":
            found.setdefault((one["n_key_heads"], one["d_inner"]), []).append(one[name])
    return {layer: sum(values) / len(values) for layer, values in found.items()}
