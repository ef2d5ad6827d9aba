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

Lesson -> modules:

    00 start_here   device, show, checks
    01 history      data (tagging, digits, dates), models (tagger, glimpse, translator), recurrent,
                    experiments (the same three)
    02 scoring      scores, attention, trace, experiments (look_up, devices)
    03 matrix_form  attention (attend_columns), trace, masks, experiments (devices)
    04 multi_head   heads, experiments (two_relations)
    05 positional_encoding   positions, heads, experiments (order)
    06 transformer  blocks, data (dates, agreement, topics), models (translator, bert, gpt, ngrams),
                    experiments (norms, translation, bert, gpt)
    07 attention_vs_cnn   convolution, data (scenes, digits), models (vit, sagan, detr), experiments (fields,
                          vit, sagan, detr)
    08 attention_vs_rnn   recurrent, linear, measure, data (recall), models (recaller), experiments (paths,
                          costs, devices, recall)
    09 truncated_attention   truncated, masks (window), measure, data (speech, recall), models (phonemes),
                             experiments (lengths, devices, phonemes, beyond)
    10 graph_attention   graphs, masks (from_edges), scores (GraphScore), data (graphs), models (nodes),
                         experiments (club, devices)
    11 efficient_attention   efficient, ring, heads (n_key_heads), linear, data (listops, recall, passages,
                             connected), models (arena), experiments (arena, shared_keys, ring, laws, devices)
    12 claims       claims (page, errata), checks (properties)
"""

from typing import Any

FLOORS = {
    "require": 0,
    "summary": 0,
    "fused": 1,
    "scores": 1,
    "masks": 1,
    "positions": 1,
    "device": 1,
    "show": 1,
    "attention": 2,
    "trace": 3,
    "heads": 3,
    "linear": 3,
    "truncated": 3,
    "efficient": 3,
    "blocks": 4,
    "convolution": 4,
    "graphs": 4,
    "recurrent": 4,
    "ring": 4,
    "data": 5,
    "models": 6,
    "training": 7,
    "measure": 7,
    "plots": 7,
    "experiments": 8,
    "checks": 8,
    "claims": 8,
    "widgets": 8,
    "cli": 9,
    "__main__": 10,
}

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`from lesson_lib import attend`, which imports torch only then."""
    if name == "attend":
        from lesson_lib.attention import attend

        return attend
    raise AttributeError(f"module 'lesson_lib' has no attribute {name!r}")
