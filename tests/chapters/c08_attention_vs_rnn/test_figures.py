"""The figures of lesson 08: which rows they take, what they compare, and what is cut into what."""

import pytest
import torch

from lesson_lib.chapters.c08_attention_vs_rnn import figures
from lesson_lib.charts.picture import CURVES

N, M, D = 7, 5, 3
DISTANCES = (10, 25, 50)


def panels(picture):
    """Axes that hold a drawing, without colour bars."""
    return [axes for axes in picture.figure.axes if axes.get_label() != "<colorbar>"]


def curve(axes, name):
    """Points of the line with that label."""
    (line,) = (line for line in axes.lines if line.get_label() == name)
    return list(line.get_xdata()), list(line.get_ydata())


def texts(axes):
    return [text.get_text() for text in axes.texts]


def drawn(axes):
    """A map's cells, nan where it has none."""
    return torch.tensor(axes.images[0].get_array().filled(torch.nan).tolist(), device="cpu")


def costs(kinds=("RNN", "attention"), seeds=(0,)):
    """Rows over n: RNN costs 3 n, attention 2 n²; a repeat takes one more second than the one before."""
    return [
        {
            "seed": seed, "kind": kind, "n": n, "d": 64, "operations": 3 * n if kind == "RNN" else 2 * n * n,
            "seconds": n + seed, "mib": n / 2,
        }
        for seed in seeds for kind in kinds for n in (4, 16, 64)
    ]  # fmt: skip


def recalls(kind="point", aid="none", systems=("RNN", "attention"), seeds=(2, 0, 1), gradient=1e-3):
    return [
        {
            "kind": kind, "aid": aid, "system": system, "distance": distance, "seed": seed,
            "accuracy": 0.2 + 0.3 * seed, "gradient": gradient, "gradient_after": 10 * gradient,
            "asked": {str(other): 0.1 * seed + other / 100 for other in DISTANCES},
        }
        for system in systems for distance in DISTANCES for seed in seeds
    ]  # fmt: skip


def thread_rows(**changes):
    rows = [
        {"kind": kind, "batch": batch, "threads": count, "seconds": seconds}
        for kind, batch, few, many in (("LSTM", 1, 6.0, 5.0), ("attention", 11, 8.0, 4.0))
        for count, seconds in ((1, few), (2, many))
    ]
    return [row | changes for row in rows]


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
        assert [curve(panel, "RNN")[1] for panel in axes] == [[12, 48, 192], seconds, mib]


@pytest.mark.parametrize(
    "cell, text", [("n", "n"), (1.987, "1.99"), ([3, 3, 3], "3"), ((2, 5), "2 … 5"), ([1.1], "1.10")]
)
def test_a_cell_is_written_as_text(cell, text):
    assert figures._cell(cell) == text


def test_no_text_of_a_wide_table_runs_into_another():
    numbers = {"in n": (1.01, 1.12), "in d": (1.9, 1.97)}
    layers = ("convolution", "attention with its table")
    blocks = {
        "theory": {
            name: {"multiplications": "4 n d² + 2 n² d", "steps": "1", "path": "n"} for name in layers
        },
        "a long title": {name: {"x": "1"} for name in layers},
        "seconds": dict.fromkeys(layers, numbers),
    }
    figure = figures.table(blocks).figure
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    for i, one in enumerate(boxes):
        assert figure.bbox.x0 <= one.x0 and one.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= one.y0 and one.y1 <= figure.bbox.y1
        assert not any(one.overlaps(other) for other in boxes[i + 1 :])


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
    assert looks[0].keys() == {"none", "longer", "start"} and looks[1].keys() == {
        "none",
        "start",
        "curriculum",
    }
    assert looks[0]["start"] == looks[1]["start"] and looks[0]["none"] == looks[1]["none"]
    assert len({*looks[0].values(), *looks[1].values()}) == 4
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["none", "longer", "start", "curriculum"]
    assert [mark.get_color() for mark in legend.legend_handles] == CURVES[:4]


def test_other_distances_are_a_table_of_trained_by_asked():
    rows = [row | {"asked": {"10": row["distance"] / 100, "50": 0.1 * row["seed"]}} for row in recalls()]
    (axes,) = panels(figures.asked(rows, ["attention"]))
    torch.testing.assert_close(
        drawn(axes).float(), torch.tensor([[0.1, 0.1], [0.25, 0.1], [0.5, 0.1]], device="cpu")
    )
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["10", "25", "50"]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["10", "50"]
    assert axes.get_ylabel() == "distance trained" and axes.get_xlabel() == "distance asked"
    rows = [row | {"kept": {"50": 1.0}} for row in rows if row["system"] == "RNN" or row["distance"] > 10]
    # of trainings that both systems have had
    axes = panels(figures.asked(rows, ["RNN", "attention"], "kept"))[0]
    assert drawn(axes).tolist() == [[1.0], [1.0]]


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
    covered = len(near) + 4 * 4 + 8 * 4
    assert covered == 12 * 13 // 2  # all that is causal, once
