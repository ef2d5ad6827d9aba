"""What the figures of lesson 06 compute."""

import pytest

from lesson_lib.chapters.c06_transformer import figures
from lesson_lib.experiments import results


def rows(name, kind):
    return [row for row in results(name)["rows"] if row["kind"] == kind]


def test_the_root_line_meets_the_last_point_and_halves_over_four_times_the_batch():
    (axes,) = figures.company([2, 8, 32], [0.5, 0.3, 0.1]).figure.axes
    assert list(axes.lines[1].get_ydata()) == pytest.approx([0.4, 0.2, 0.1])


def test_errors_are_added_up_over_seeds_most_first():
    given = [
        {"language": name, "wrong": wrong, "texts": 7}
        for name, wrong in (("A", 1), ("B", 2), ("A", 0), ("B", 3))
    ]
    picture = figures.errors_by_language(given)
    (axes,) = picture.figure.axes
    assert [bar.get_height() for bar in axes.patches] == [5, 1] and "14 texts" in picture.caption
    assert [label.get_text() for label in axes.get_xticklabels()] == ["B", "A"]


def test_shares_are_ranked_over_the_seeds_for_each_number_of_attractors():
    given = [{"agreement": {"model": {"all": [(0, 9, 0.5 + s), (2, 4, 0.1 * s)]}}} for s in (0, 2, 1)]
    assert figures.by_attractors(given, "model", "all") == ([0, 2], [0.5, 0], [1.5, 0.1], [2.5, 0.2])


# --- what the lesson says of the stored runs ---
