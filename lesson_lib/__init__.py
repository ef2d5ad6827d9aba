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

Floors: a module imports from lower floors only, never from its own (importlinter in pyproject.toml).

The mathematics lies flat in this folder. What serves one chapter lies in lesson_lib/chapters/, a folder for
each; what serves several lies in charts, widgets, data, models, checks and experiments.
"""

from typing import Any

from lesson_lib import desk

__version__ = "1.0.0.dev0"

desk.install()


def __getattr__(name: str) -> Any:
    """`from lesson_lib import attend`, which imports torch only then."""
    if name == "attend":
        from lesson_lib.attention import attend

        return attend
    raise AttributeError(f"module 'lesson_lib' has no attribute {name!r}")
