"""Self-attention as one function, `attend`, and everything the lessons build on it.

Start at `lesson_lib/attention.py`; it is short. Each lesson uses the same function with another score, mask
or position term.

Letters on the axes, in every signature of the library:

    b        batch (any number of leading axes where a signature says *b)
    h        heads
    n        query tokens
    m        key tokens (m = n in self-attention)
    d_model  width of a token in the model
    d_k      width of queries and keys
    d_v      width of values and outputs

Tokens are rows: a sequence is (n, d). A boolean mask says True = may look.

Floors: a module imports from lower floors only, never from its own (`FLOORS` below; tests/test_floors.py
holds it).

The mathematics lies flat in this folder. What serves one chapter lies in lesson_lib/chapters/, a folder for
each (its `__init__` says which shared modules a chapter uses); what serves several lies in charts, widgets,
data, models, checks and experiments.
"""

from typing import Any

from lesson_lib import desk

FLOORS = {
    "desk": 0,
    "require": 0,
    "summary": 0,
    "fused": 1,
    "scores": 1,
    "masks": 1,
    "positions": 1,
    "device": 1,
    "show": 1,
    "attention": 2,
    "live": 2,
    "scalings": 2,
    "trace": 3,
    "heads": 3,
    "linear": 3,
    "truncated": 3,
    "efficient": 3,
    "norms": 3,
    "blocks": 4,
    "convolution": 4,
    "graphs": 4,
    "latent": 4,
    "recurrent": 4,
    "ring": 4,
    "data": 5,
    "models": 6,
    "training": 7,
    "measure": 7,
    "charts": 7,
    "experiments": 8,
    "checks": 8,
    "claims": 8,
    "widgets": 8,
    "chapters": 9,
    "cli": 10,
    "__main__": 11,
}

__version__ = "0.1.0"

desk.install()


def __getattr__(name: str) -> Any:
    """`from lesson_lib import attend`, which imports torch only then."""
    if name == "attend":
        from lesson_lib.attention import attend

        return attend
    raise AttributeError(f"module 'lesson_lib' has no attribute {name!r}")
