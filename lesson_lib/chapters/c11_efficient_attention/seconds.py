"""A second problem of lesson 11: the cache of another model."""

import random
from dataclasses import replace

from lesson_lib.checks.short import Number, fresh


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
