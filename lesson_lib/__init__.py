"""Self-attention as one function, `attend`, and everything the lessons build on it.

Start at `lesson_lib/attention.py`; it is short. Each lesson uses the same function with another score, mask or position term.

Letters on the axes, in every signature of the library:

    b        batch (any number of leading axes where a signature says *b)
    h        heads
    n        query tokens
    m        key tokens (m = n in self-attention)
    d_model  width of a token in the model
    d_k      width of queries and keys
    d_v      width of values and outputs

Tokens are rows: a sequence is (n, d). A boolean mask says True = may look.

Floors: a module imports from lower floors only, never from its own (`FLOORS` below; tests/test_floors.py holds it).

Lesson -> modules:

    00 start_here   device, show, checks
    01 history      data (tagging, digits, dates), models (tagger, glimpse, translator), recurrent, experiments (the same three)
    02 scoring      scores, attention, trace, experiments (look_up, devices)
    03 matrix_form  attention (attend_columns), trace, masks, experiments (devices)
    04 multi_head   heads, experiments (two_relations)
    05 positional_encoding   positions, heads, experiments (order)
    06 transformer  blocks, data (dates, agreement, topics), models (translator, bert, gpt, ngrams), experiments (norms, translation, bert, gpt)
    07 attention_vs_cnn   convolution, data (scenes, digits), models (vit, sagan, detr), experiments (fields, vit, sagan, detr)
    08 attention_vs_rnn   recurrent, linear, measure, data (recall), models (recaller), experiments (paths, costs, devices, recall)
    09 truncated_attention   truncated, masks (window), measure, data (speech, recall), models (phonemes), experiments (lengths, devices, phonemes, beyond)
    10 graph_attention   graphs, masks (from_edges), scores (GraphScore), data (graphs), models (nodes), experiments (club, devices)
    11 efficient_attention   efficient, ring, heads (n_key_heads), linear, data (listops, recall, passages, connected), models (arena), experiments (arena, shared_keys, ring, laws, devices)
    12 claims       claims (page, errata), checks (properties)
"""

FLOORS = {
    "scores": 0,
    "masks": 0,
    "positions": 0,
    "device": 0,
    "show": 0,
    "attention": 1,
    "trace": 2,
    "heads": 2,
    "linear": 2,
    "truncated": 2,
    "efficient": 2,
    "blocks": 3,
    "convolution": 3,
    "graphs": 3,
    "recurrent": 3,
    "ring": 3,
    "data": 4,
    "models": 5,
    "training": 6,
    "measure": 6,
    "plots": 6,
    "experiments": 7,
    "checks": 7,
    "claims": 7,
    "widgets": 7,
    "cli": 8,
    "__main__": 9,
}

__version__ = "0.1.0"
