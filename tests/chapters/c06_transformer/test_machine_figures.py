"""The diagram of the whole machine: the names of the blocks, norms and arrows in their places."""

from lesson_lib.chapters.c06_transformer.machine_figures import transformer_diagram


def norms_of(picture):
    """Middles of the boxes that are called norm."""
    return [text.get_position() for text in picture.figure.axes[0].texts if text.get_text() == "norm"]


def test_the_diagram_says_what_the_blocks_are_called():
    texts = {text.get_text() for text in transformer_diagram().figure.axes[0].texts}
    assert {"embedding", "attention", "cross_attention", "feed_forward", "norm", "logits", "table"} <= texts
    assert {"EncoderLayer 1", "DecoderLayer 1", "layer 2", "layer n_layers"} <= texts
    from lesson_lib import blocks

    decoder = blocks.DecoderLayer(8, 2, 16)
    assert all(hasattr(decoder, name) for name in ("attention", "cross_attention", "feed_forward", "norms"))
    assert hasattr(blocks.TokenEmbedding(3, 8), "table")


def test_the_switch_moves_the_norms_into_the_branches_and_adds_the_last_ones():
    after, first = (norms_of(transformer_diagram(norm_first=switch)) for switch in (False, True))
    assert len(after) == 2 + 3 and len(first) == 2 + 3 + 2
    rails = sorted({y for _, y in after})
    assert len(rails) == 2, "post-norm: all norms on the two streams"
    assert sum(y in rails for _, y in first) == 2, "pre-norm: only the two last norms are on them"
    plus = [t for t in transformer_diagram().figure.axes[0].texts if t.get_text() == "+"]
    assert len(plus) == 5 and {t.get_position()[1] for t in plus} == set(rails)
