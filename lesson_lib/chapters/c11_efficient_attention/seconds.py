"""Second problems of chapter 11: a causal mask with a global token, features both ways, the cache of another
model."""

import random
from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.checks.exercise import Case, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Number, fresh


def with_global_2(n: int, radius: int, place: int) -> Bool[Tensor, "n n"]:
    i, j = torch.arange(n)[:, None], torch.arange(n)
    return (j <= i) & ((i - j <= radius) | (j == place) | (i == place))


def _of(n: int, radius: int, place: int) -> Case:
    return {"n": n, "radius": radius, "place": place}


GLOBAL_BEFORE = Write(
    name="with_global_2",
    title="Global, and causal",
    asked=(
        "the mask (n, n) of a model that writes: nobody sees later tokens. Of the earlier ones each sees the"
        " `radius` nearest, itself, and token `place`, wherever that stands; token `place` sees all earlier"
        " ones"
    ),
    stages=(
        Stage(
            "five tokens, radius 1, token 0 is global",
            lambda: [_of(5, 1, 0)],
            "Token 3 sees 0, 2 and 3; token 0 sees itself alone.",
        ),
        Stage(
            "token 3 of seven",
            lambda: [_of(7, 1, 3)],
            "Token 3 sees 0 to 3. Tokens 5 and 6 see it, tokens 0 to 2 do not.",
        ),
        Stage("radius 0, the last token", lambda: [_of(6, 0, 5)], "It sees all; before it, each itself."),
    ),
    hints=(
        "With i a column and j a row of numbers, what says that j is not later?",
        "Three reasons to see j: which ones? Are they joined by & or by |?",
        "What do j == place and i == place say?",
    ),
    solution=with_global_2,
    remember="not later, and (near, or the global one, or being the global one)",
    slips={
        "later tokens are seen: j <= i for everybody, the global token too": (
            "(j <= i) & ((i - j <= radius)",
            "(((i - j).abs() <= radius)",
        ),
        "token `place` sees all earlier ones, not its neighbours alone": (" | (i == place)", ""),
        "those behind it see token `place`, however far": (" | (j == place)", ""),
        "the nearest `radius` earlier tokens are seen, and the token itself": (
            "i - j <= radius",
            "i - j < radius",
        ),
    },
)


def random_features_2(x: Float[Tensor, "n d"], directions: Float[Tensor, "m d"]) -> Float[Tensor, "n twice"]:
    y = x / x.shape[-1] ** 0.25
    along = y @ directions.mT
    both = torch.cat([along, -along], -1) - y.square().sum(-1, keepdim=True) / 2
    return both.exp() / (2 * len(directions)) ** 0.5


BOTH_WAYS = Write(
    name="random_features_2",
    title="Each direction both ways",
    asked=(
        "2 m features from m directions: first those of w, then those of -w, exp(±w · y - |y|² / 2), all"
        " divided by √(2 m); y = x / d^(1/4). Shape (n, 2 m)"
    ),
    stages=(
        Stage(
            "one number, one direction",
            lambda: [{"x": table([[1.0]]), "directions": table([[1.0]])}],
            "exp(1/2) and exp(-3/2), both divided by the root of 2: 1.1658 and 0.1578.",
        ),
        Stage(
            "three tokens of width 5, seven directions",
            lambda: [{"x": drawn(5, 3, 5), "directions": drawn(6, 7, 5)}],
            "Fourteen columns.",
        ),
    ),
    hints=(
        "What are the features of -w, once you have y @ directions.mT?",
        "Which function joins two tables side by side?",
        "How many features does a product of two tokens average over?",
    ),
    solution=random_features_2,
    remember="a direction and its opposite: what one overshoots, the other undershoots",
    slips={
        "the features of -w are missing": ("torch.cat([along, -along], -1)", "along"),
        "there are 2 m features: divide by the root of 2 m": ("(2 * len(directions))", "len(directions)"),
        "|y|² / 2 is taken off both halves": (
            "torch.cat([along, -along], -1) - y.square().sum(-1, keepdim=True) / 2",
            "torch.cat([along - y.square().sum(-1, keepdim=True) / 2, -along], -1)",
        ),
        "first all of w, then all of -w": (
            "torch.cat([along, -along], -1)",
            "torch.stack([along, -along], -1).flatten(1)",
        ),
    },
)


def cache_of_groups(first: Number, n: int) -> Number:
    """The size of a cache, for other layers, heads and lengths."""

    def make(draw: random.Random) -> Number:
        layers, queries, keys = draw.choice((16, 24, 48)), draw.choice((16, 32, 64)), draw.choice((2, 4, 8))
        width, tokens = draw.choice((64, 128)), 1024 * draw.choice((16, 32, 64, 256))
        size = f"2 * {layers} * {keys} * {width} * {tokens} * 2 / 2**30"
        value = 2 * layers * keys * width * tokens * 2 / 2**30
        return replace(
            first,
            asked=(
                f"a cache of keys and values: {layers} layers; {queries} query heads that share {keys} key"
                f" heads, each {width} numbers wide, values as well; {tokens:,} tokens; 2 bytes a number: how"
                " many GiB?"
            ),
            answer=size,
            value=value,
            solution=f"2 (key and value) * {layers} layers * {keys} heads * {width} * {tokens} tokens * 2 bytes",
            slips={
                f"{queries} query heads share {keys} heads of keys and values: only those {keys} are kept": (
                    f"{size} * {queries} / {keys}"
                ),
                "half of it: keys AND values are kept, and a number has 2 bytes": f"{size} / 2",
                "that is in GB, units of 10^9 bytes; a GiB is 2^30 bytes": f"{size} * 2**30 / 10**9",
                f"that is one layer; each of the {layers} has a cache of its own": f"{size} / {layers}",
                "queries are asked with once, and not kept": f"{size} * ({queries} + 2 * {keys}) / (2 * {keys})",
                "that is in bytes; a GiB is 2^30 of them": f"{size} * 2**30",
                "that is in MiB; a GiB has 1,024 of them": f"{size} * 2**10",
            },
        )

    return fresh(n, make)
