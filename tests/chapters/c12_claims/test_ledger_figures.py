"""The ledger's picture: the pieces of a bar add up."""

from lesson_lib.chapters.c12_claims.ledger_figures import tally

GROUPS = {"first": {"holds": 3, "corrected": 2}, "second": {"corrected": 7}, "third": {"holds": 0, "odd": 5}}


def test_each_piece_starts_where_the_last_one_ends():
    axes = tally(GROUPS, alt="Bars.").figure.axes[0]
    ends = {}
    for container in axes.containers:
        for name, piece in zip(GROUPS, container.patches, strict=True):
            assert piece.get_width() == GROUPS[name].get(container.get_label(), 0)
            assert piece.get_x() == ends.get(name, 0)
            ends[name] = piece.get_x() + piece.get_width()
    assert ends == {"first": 5, "second": 7, "third": 5}
    assert sorted(t.get_text() for t in axes.texts if t.get_visible()) == ["2", "3", "5", "7"]
