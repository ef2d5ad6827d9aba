"""The figures of lesson 08: which rows they take, what they compare, and what is cut into what."""

import pytest

from lesson_lib.chapters.c08_attention_vs_rnn import figures
from lesson_lib.charts.picture import CURVES

DISTANCES = (10, 25, 50)


def curve(axes, name):
    """Heights of the line with that label."""
    (line,) = (line for line in axes.lines if line.get_label() == name)
    return list(line.get_ydata())


def texts(axes):
    return [text.get_text() for text in axes.texts]


def costs(kinds=("RNN", "attention"), seeds=(0,)):
    """Rows over n: RNN costs 3 n, attention 2 n²; a repeat takes one more second than the one before."""
    return [
        {
            "seed": seed, "kind": kind, "n": n, "d": 64, "operations": 3 * n if kind == "RNN" else 2 * n * n,
            "seconds": n + seed, "mib": n / 2,
        }
        for seed in seeds for kind in kinds for n in (4, 16, 64)
    ]  # fmt: skip


def recalls(kind="point", aid="none", systems=("RNN", "attention")):
    return [
        {"kind": kind, "aid": aid, "system": system, "distance": distance, "seed": seed, "accuracy": 0.5}
        for system in systems for distance in DISTANCES for seed in (2, 0, 1)
    ]  # fmt: skip


def thread_rows():
    return [
        {"kind": kind, "batch": batch, "threads": count, "seconds": seconds}
        for kind, batch, few, many in (("LSTM", 1, 6.0, 5.0), ("attention", 11, 8.0, 4.0))
        for count, seconds in ((1, few), (2, many))
    ]


def test_thin_lines_rise_as_the_first_and_the_second_power():
    (axes,) = figures.grow(costs(), "n", ["operations"]).figure.axes
    first, second = (list(line.get_ydata()) for line in axes.lines[-2:])
    assert first == [12, 48, 192]  # from the lowest point on the left
    assert second == [32, 512, 8192]  # to the highest point on the right
    assert texts(axes) == ["n", "n²"]


def test_growth_takes_the_pass_that_is_asked_for():
    exact = [
        {key: row[key] for key in ("kind", "n", "d", "operations", "mib")} | {"mib_backward": 5 * row["n"]}
        for row in costs()
    ]
    taken = [
        {"kind": row["kind"], "n": row["n"], "d": 64, "seconds": (1 + backward) * row["seconds"],
        "backward": backward}
        for backward in (False, True) for row in costs(seeds=(0, 1, 2))
    ]  # fmt: skip
    for backward, seconds, mib in ((False, [5, 17, 65], [2, 8, 32]), (True, [10, 34, 130], [20, 80, 320])):
        axes = figures.grow(exact + taken, "n", backward=backward).figure.axes
        assert [curve(panel, "RNN") for panel in axes] == [[12, 48, 192], seconds, mib]


@pytest.mark.parametrize(
    "cell, text", [("n", "n"), (1.987, "1.99"), ([3, 3, 3], "3"), ((2, 5), "2 … 5"), ([1.1], "1.10")]
)
def test_a_cell_is_written_as_text(cell, text):
    assert figures._cell(cell) == text


def test_other_distances_are_a_table_of_trained_by_asked_by_the_middle_of_the_seeds():
    rows = [row | {"asked": {"10": row["distance"], "50": row["seed"]}} for row in recalls()]
    (axes,) = figures.asked(rows, ["attention"]).figure.axes
    assert axes.images[0].get_array().tolist() == [[10, 1], [25, 1], [50, 1]]
    rows = [row | {"kept": {"50": 1.0}} for row in rows if row["system"] == "RNN" or row["distance"] > 10]
    axes = figures.asked(rows, ["RNN", "attention"], "kept").figure.axes[0]
    assert axes.images[0].get_array().tolist() == [[1.0], [1.0]]  # of trainings that both systems have had


def test_the_medians_of_the_repeats_are_compared():
    repeats = thread_rows() + [row | {"seconds": 100.0} for row in thread_rows()] + thread_rows()
    (axes,) = figures.threads([*repeats, {"part": "generation"}]).figure.axes
    assert texts(axes) == ["1.20 times as fast", "2.00 times as fast"]


def test_chunks_cut_the_causal_table_into_near_cells_and_far_boxes():
    (axes,) = figures.chunks(12, 4).figure.axes
    patches = [(*p.get_xy(), p.get_width(), p.get_height(), p.get_hatch()) for p in axes.patches]
    near = {(j, i) for j, i, w, h, hatch in patches if not hatch}
    assert near == {(j, i) for i in range(12) for j in range(i + 1) if i // 4 == j // 4}
    assert [p[:4] for p in patches if p[4]] == [(0, 4, 4, 4), (0, 8, 8, 4)]
    assert texts(axes)[:2] == ["state of\nkeys 0 … 3", "state of\nkeys 0 … 7"]
    assert len(near) + 4 * 4 + 8 * 4 == 12 * 13 // 2  # all that is causal, once


def test_an_aid_looks_the_same_in_all_panels():
    rows = [
        *recalls(systems=["RNN", "LSTM"]),
        *recalls(kind="aid", aid="longer", systems=["RNN"]),
        *recalls(kind="aid", aid="start", systems=["RNN", "LSTM"]),
        *recalls(kind="aid", aid="curriculum", systems=["LSTM"]),
    ]
    figure = figures.aids(rows).figure
    looks = [
        {
            line.get_label(): (line.get_color(), line.get_marker())
            for line in axes.lines
            if line.get_label()[0] != "_"
        }
        for axes in figure.axes
    ]
    assert looks[0].keys() == {"none", "longer", "start"}
    assert looks[1].keys() == {"none", "start", "curriculum"}
    assert all(looks[0][name] == looks[1][name] for name in ("none", "start"))
    assert [mark.get_color() for mark in figure.legends[0].legend_handles] == CURVES[:4]
