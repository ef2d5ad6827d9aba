"""What part 11c shows of stored runs: the memory of a ring's processes, and how far attention goes."""

from typing import Any

from lesson_lib.chapters.c11_efficient_attention import machines_figures
from lesson_lib.chapters.c11_efficient_attention.experiments import laws
from lesson_lib.charts.picture import Picture
from lesson_lib.experiments import results

TOKENS = 8192


def memory_of_each() -> Picture:
    """`ring_memory` of the stored experiment "ring", 8,192 tokens without a causal mask."""
    rows = results("ring")["rows"]
    return machines_figures.ring_memory([r for r in rows if not r["causal"] and r["tokens"] == TOKENS])


def scales() -> dict[str, Any]:
    """What `ScaleExplorer` takes, from the laws of the stored runs."""
    rows = results("laws")["rows"]
    longest = {kind: max(at) for kind, at in laws.points(rows).items()}
    return {"laws": laws.machine_laws(rows), "ring": laws.ring_mib, "longest": longest}
