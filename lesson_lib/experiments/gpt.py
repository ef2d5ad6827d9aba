"""Python's manual, continued: a small GPT of half a minute, a larger one of minutes, and n-gram models, on
topics that none has seen.

Bits per character (perplexity is 2 to their power) on the test topics, each character given those before it:
at most n - 1 of them for an n-gram model, half of the context to all of it for a GPT. N-grams are counted on
the same training topics; their discounts, the short GPT's rate, and whether its positions are rotary or
learned, are chosen on the VALIDATION topics, with one seed. The long GPT's rate was not tuned; of its
weights, those of the report with the fewest bits on the validation topics are kept.
"""

import time
from typing import Any

import torch

from lesson_lib.data import topics
from lesson_lib.device import to_device
from lesson_lib.models import gpt
from lesson_lib.models.gpt import GPT, bits, generate
from lesson_lib.models.ngrams import NGrams
from lesson_lib.training import History, fit

RECIPE = {
    "short": {
        "sizes": {"n_layers": 2, "d_model": 64, "n_heads": 4, "context": 64, "dropout": 0.0,
        "positions": "rotary"},
        "batch": 8, "steps": 2600, "lr": 8e-3,
    },
    "long": {
        "sizes": {"n_layers": 3, "d_model": 96, "n_heads": 4, "context": 128, "dropout": 0.1,
        "positions": "rotary"},
        "batch": 8, "steps": 4000, "lr": 5e-3,
    },
    "tuning_seed": 0,
    # beside the short one's rate and positions
    "tried": [[4e-3, "rotary"], [1.6e-2, "rotary"], [4e-3, "learned"], [8e-3, "learned"],
    [1.6e-2, "learned"]],
    "n": [1, 2, 3, 4, 5, 6, 7, 8],
    "discounts": [0.5, 0.6, 0.7, 0.8, 0.9, 0.95],
    "samples": {"text": "The ", "length": 300,
    "settings": [[0, None], [0.5, None], [0.8, None], [1.0, None], [1.0, 5], [1.5, None]]},
    "lengths": [200, 500, 1000],  # characters generated with and without the cache
    "seeds": [0, 1, 2],
    "long_seeds": [0],
}  # fmt: skip


def train(
    seed: int = 0, *, size: str = "short", lr: float | None = None, positions: str | None = None
) -> tuple[GPT, History]:
    """Train a GPT on the training topics: the "short" one (what a lesson does live), or the "long" one, which
    takes minutes.

    `lr` and `positions` are the recipe's unless given. Raises ValueError for another size.
    """
    if size not in ("short", "long"):
        raise ValueError(f"size must be 'short' or 'long', got {size!r}")
    recipe = RECIPE[size]
    torch.manual_seed(seed)
    sizes = recipe["sizes"] | ({} if positions is None else {"positions": positions})
    model = to_device(GPT(topics.CHARACTERS, **sizes))
    history = fit(
        model,
        lambda generator: topics.draw(generator, recipe["batch"], model.context),
        gpt.loss,
        steps=recipe["steps"],
        lr=lr or recipe["lr"],
        validate=(lambda judged: -bits_per_character(judged, "validation")) if size == "long" else None,
        seed_number=seed,
        name=f"GPT, {size}",
    )
    return model, history


def bits_per_character(model: GPT | NGrams, split: str = "test") -> float:
    """Mean surprise of the characters of a split's topics; 2 to its power is the perplexity."""
    tokens = topics.stream(split)
    surprises = model.bits(tokens) if isinstance(model, NGrams) else bits(model, tokens)
    return surprises.mean().item()


def n_gram(n: int) -> NGrams:
    """The n-gram model of the training topics whose discount is the best on the validation topics."""
    tokens = topics.stream("training")
    models = (NGrams(tokens, n, n_tokens=len(topics.CHARACTERS), discount=d) for d in RECIPE["discounts"])
    return min(models, key=lambda model: bits_per_character(model, "validation"))


def run(seed: int) -> list[dict]:
    """Rows of kind "trained" for every seed; on the tuning seed also those of other rates and positions,
    "n-gram", "sample" and "cost"."""
    rows, models = [], {}
    for size in ("short", "long") if seed in RECIPE["long_seeds"] else ("short",):
        row, models[size] = _trained(seed, size)
        rows.append(row)
    if seed != RECIPE["tuning_seed"]:
        return rows
    rows += tuning(seed) + [_counted(n, seed) for n in RECIPE["n"]]
    for size, model in models.items():
        rows += [_sample(model, size, seed, *setting) for setting in RECIPE["samples"]["settings"]]
        rows += [_cost(model, size, seed, n, cached) for n in RECIPE["lengths"] for cached in (True, False)]
    return rows


def tuning(seed: int) -> list[dict]:
    """Rows of the short GPT for the other rates and positions that were tried; kind "tried"."""
    return [
        _trained(seed, "short", lr=lr, positions=positions)[0] | {"kind": "tried"}
        for lr, positions in RECIPE["tried"]
    ]


def _judged(model: GPT | NGrams) -> dict[str, float]:
    test = bits_per_character(model)
    return {
        "validation_bits": round(bits_per_character(model, "validation"), 4),
        "bits": round(test, 4),
        "perplexity": round(2**test, 4),
    }


def _trained(seed: int, size: str, **options: Any) -> tuple[dict, GPT]:
    model, history = train(seed, size=size, **options)
    recipe = RECIPE[size]
    row = {
        "kind": "trained", "seed": seed, "size": size, "lr": recipe["lr"],
        "positions": recipe["sizes"]["positions"],
        **options, **_judged(model), "cpu_s": round(history.cpu_s, 1),
        "parameters": sum(p.numel() for p in model.parameters()), "loss": history.column("loss"),
    }  # fmt: skip
    return row, model


def _counted(n: int, seed: int) -> dict:
    start = time.process_time()
    model = n_gram(n)
    row = {"kind": "n-gram", "seed": seed, "n": n, "discount": model.discount, **_judged(model)}
    return row | {"cpu_s": round(time.process_time() - start, 1)}


def _sample(model: GPT, size: str, seed: int, temperature: float | int, top_k: int | None) -> dict:
    asked = RECIPE["samples"]
    continuation = generate(model, asked["text"], asked["length"], temperature=temperature, top_k=top_k)
    row = {"kind": "sample", "seed": seed, "size": size, "temperature": temperature, "top_k": top_k}
    return row | {"text": asked["text"], "made": continuation}


def _cost(model: GPT, size: str, seed: int, length: int, cached: bool) -> dict:
    """Processor seconds of a generation, and how many rows (characters of a window) went through the
    layers."""
    rows = []
    hook = model.encoder.register_forward_pre_hook(lambda _, inputs: rows.append(inputs[0].shape[1]))
    start = time.process_time()
    generate(model, RECIPE["samples"]["text"], length, cached=cached)
    spent = time.process_time() - start
    hook.remove()
    row = {"kind": "cost", "seed": seed, "size": size, "length": length, "cached": cached}
    return row | {"rows": sum(rows), "cpu_s": round(spent, 2)}
