"""The figures of lesson 08 draw what they are given: middles and bands of repeats, exact zeros in a place of
their own."""

import math

import pytest
import torch

from lesson_lib.chapters.c08_attention_vs_rnn import figures
from lesson_lib.charts.picture import CURVES, MARKERS
from lesson_lib.data.recall import SYMBOLS
from lesson_lib.linear import feature_map

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


def test_costs_are_drawn_on_log_axes_with_the_middle_of_the_repeats_and_their_band():
    operations, seconds = figures.grow(costs(seeds=(0, 7, 2)), "n", ("operations", "seconds")).figure.axes
    assert curve(operations, "RNN") == ([4, 16, 64], [12, 48, 192])
    assert curve(operations, "attention") == ([4, 16, 64], [32, 512, 8192])
    assert curve(seconds, "RNN") == ([4, 16, 64], [6, 18, 66])  # the middle of 4, 11 and 6
    corners = seconds.collections[0].get_paths()[0].vertices.tolist()
    assert [4.0, 4.0] in corners and [4.0, 11.0] in corners
    assert (operations.get_xscale(), operations.get_yscale()) == ("log", "log")
    assert (operations.get_title("left"), seconds.get_title("left")) == ("multiplications", "seconds")
    assert operations.get_xlabel() == "tokens n"


def test_thin_lines_rise_as_the_first_and_the_second_power():
    (axes,) = figures.grow(costs(), "n", ["operations"]).figure.axes
    first, second = (list(line.get_ydata()) for line in axes.lines[-2:])
    assert first == [12, 48, 192]  # from the lowest point on the left
    assert second == [32, 512, 8192]  # to the highest point on the right
    assert texts(axes) == ["n", "n²"]


def test_growth_takes_its_own_part_and_axis_from_all_rows():
    stored = [row | {"part": "exact", "over": "n"} for row in costs()]
    other = [row | {"over": "d", "n": 512, "d": row["n"], "operations": 1e9} for row in stored]
    rows = [*stored, *other, {"part": "threads", "kind": "RNN", "seconds": 1e9}, {"part": "generation"}]
    (axes,) = figures.grow(rows, "n", ["operations"]).figure.axes
    assert curve(axes, "RNN") == ([4, 16, 64], [12, 48, 192])
    (axes,) = figures.grow(rows, "d", ["operations"]).figure.axes
    assert curve(axes, "RNN") == ([4, 16, 64], [1e9] * 3) and axes.get_xlabel() == "width d"


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


def test_tables_stand_side_by_side_with_a_row_for_each_layer():
    theory = {"RNN": {"cost": "2 n d²", "path": "n"}, "attention": {"cost": "2 n² d", "path": "1"}}
    measured = {"RNN": {"power": [1.04, 0.98, 1.0]}, "attention": {"power": [2.0, 2.001, 1.999]}}
    (axes,) = figures.table({"theory": theory, "measured": measured}).figure.axes
    places = {text.get_text(): text.get_position() for text in axes.texts}
    assert places["2 n d²"][1] == places["0.98 … 1.04"][1] == places["RNN"][1] == 0
    assert places["2 n² d"][1] == places["2.00"][1] == 1  # repeats that agree are one number
    assert places["RNN"][0] < places["2 n d²"][0] < places["n"][0] < places["0.98 … 1.04"][0]
    assert places["theory"][1] < places["cost"][1] == places["power"][1] < 0  # the y axis points down
    assert places["cost"][0] < places["theory"][0] < places["path"][0]
    assert axes.get_ylim()[0] > axes.get_ylim()[1]


@pytest.mark.parametrize(
    "cell, text",
    [
        ("n", "n"),
        (64, "64"),
        (1.987, "1.99"),
        ([3, 3, 3], "3"),
        ((2, 5), "2 … 5"),
        ([1.1], "1.10"),
        (None, "None"),
    ],
)
def test_a_cell_is_written_as_text(cell, text):
    (axes,) = figures.table({"measured": {"RNN": {"power": cell}}}).figure.axes
    assert text in texts(axes)


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


def test_recall_draws_every_seed_beside_the_middle_and_a_line_at_chance():
    rows = recalls() + recalls(kind="middle", systems=["poison"]) + [{"kind": "rate"}]
    left, right = figures.recall(rows).figure.axes
    xs, ys = curve(left, "RNN")
    assert ys == pytest.approx([0.5] * 3)  # the middle of 0.2, 0.5 and 0.8
    # a little to the left
    assert xs == pytest.approx([distance / math.sqrt(1.035) for distance in DISTANCES])
    dots = left.lines[1]
    assert sorted(dots.get_ydata()) == pytest.approx([0.2] * 3 + [0.5] * 3 + [0.8] * 3)
    assert dots.get_linestyle() == "None" and (dots.get_color(), dots.get_marker()) == (CURVES[0], MARKERS[0])
    assert curve(right, "attention")[1] == [1e-3] * 3 and right.get_yscale() == "log"
    chance = next(tick for tick in left.get_yticks() if tick not in (0, 0.25, 0.5, 0.75, 1))
    assert chance == 1 / len(SYMBOLS)
    assert [tick.get_text() for tick in left.get_xticklabels()] == ["10", "25", "50"]


def test_recall_draws_the_kind_and_the_gradient_that_are_asked_for():
    rows = recalls(gradient=1e30) + recalls(kind="middle", gradient=1e-5)
    picture = figures.recall(rows, "middle", "gradient_after")
    right = picture.figure.axes[1]
    assert curve(right, "RNN")[1] == pytest.approx([1e-4] * 3)
    assert right.get_title("left") == "gradient at the symbol, after training"
    assert "in the middle" in picture.caption and "Exactly 0" not in picture.caption


def test_what_is_exactly_zero_stands_on_a_line_of_its_own_below_the_axis():
    picture = figures.recall(
        recalls(systems=["RNN"], gradient=0.0) + recalls(systems=["LSTM"], gradient=1e-7)
    )
    right = picture.figure.axes[1]
    zero = curve(right, "RNN")[1][0]
    assert right.get_ylim()[0] < zero < 1e-7 < right.get_ylim()[1]
    labels = dict(zip(right.get_yticks(), [tick.get_text() for tick in right.get_yticklabels()], strict=True))
    assert labels[zero] == "exactly 0" and min(labels) == zero
    assert picture.caption.endswith("Exactly 0: less than the number format can hold.")
    right = figures.recall(recalls()).figure.axes[1]
    assert "exactly 0" not in [tick.get_text() for tick in right.get_yticklabels()]


@pytest.mark.parametrize("low, high", [(1e-250, 1.0), (1e-12, 1e-3), (0.5, 0.9), (1.0, 1.0), (1e-200, 5e8)])
def test_a_logarithmic_axis_has_room_and_few_ticks(low, high):
    axes = figures.canvas()[1][0][0]
    figures.logarithmic_axis(axes, [low, high])
    assert axes.get_ylim()[0] < low <= high < axes.get_ylim()[1] and 2 <= len(axes.get_yticks()) <= 10


def test_aids_stand_beside_the_training_without_one():
    rows = (
        recalls(systems=["RNN", "LSTM", "attention"])
        + recalls(kind="aid", aid="longer", systems=["RNN", "LSTM"])
        + recalls(kind="middle", systems=["RNN"], gradient=1e9)
    )
    rows = [row for row in rows if row["kind"] != "aid" or row["distance"] > 10]
    left, right = figures.aids(rows).figure.axes
    assert (left.get_title("left"), right.get_title("left")) == ("RNN", "LSTM")
    assert len(curve(left, "none")[0]) == len(curve(left, "longer")[0]) == 2  # 10 has no aids, so no "none"
    assert curve(right, "longer")[1] == pytest.approx([0.5] * 2)


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


def test_a_sensitivity_map_is_divided_by_its_maximum_and_leaves_exact_zeros_open():
    table = torch.tensor([[4.0, 0.0, 0.0], [2.0, 8.0, 0.0]])
    other = torch.ones(2, 3)
    left, right = panels(figures.sensitivities({"RNN": table, "attention": other}))
    expected = torch.tensor([[0.5, torch.nan, torch.nan], [0.25, 1.0, torch.nan]], device="cpu")
    torch.testing.assert_close(drawn(left).float(), expected, equal_nan=True)
    assert (drawn(right) == 1).all()
    (ground,) = left.patches  # under the open cells: hatched, so that it is seen without colour
    assert ground.get_hatch() and ground.get_zorder() < left.images[0].get_zorder()
    assert (*ground.get_xy(), ground.get_width(), ground.get_height()) == (-0.5, -0.5, 3, 2)
    assert left.images[0].get_cmap().get_bad()[3] == 0
    assert left.images[0].norm is right.images[0].norm and left.images[0].norm.vmax == 1
    assert (left.get_xlabel(), left.get_ylabel()) == ("input", "output")


def test_a_sensitivity_map_can_have_its_tokens_as_ticks():
    (axes,) = panels(figures.sensitivities({"RNN": torch.ones(3, 3)}, tokens=list("Bg?")))
    for ticks in (axes.get_xticklabels(), axes.get_yticklabels()):
        assert [tick.get_text() for tick in ticks] == ["B", "g", "?"]


@pytest.mark.parametrize(
    "table, message",
    [
        (None, r"must be a tensor \(outputs, inputs\), got NoneType; take measure.sensitivity"),
        ([[1.0]], r"got list"),
        (torch.ones(2, 3, 5), r"got \(2, 3, 5\)"),
        (torch.ones(0, 3), r"got \(0, 3\)"),
        (torch.zeros(2, 3), "finite, not negative and not all 0"),
        (torch.full((2, 3), torch.nan), "finite, not negative and not all 0"),
        (-torch.ones(2, 3), "finite, not negative and not all 0"),
    ],
)
def test_what_is_no_sensitivity_map_gets_a_sentence(table, message, no_shape_hook):
    with pytest.raises(ValueError, match=message):
        figures.sensitivities({"RNN": table})


def test_forgetting_counts_tokens_back_from_the_question():
    picture = figures.forgetting(
        {"RNN": [0.0, 1e-4, 1e-2, 1.0], "attention": torch.full((4,), 0.5).tolist()}, 3
    )
    (axes,) = picture.figure.axes
    xs, ys = curve(axes, "RNN")
    assert xs == [3, 2, 1, 0] and ys[1:] == [1e-4, 1e-2, 1.0] and 0 < ys[0] < 1e-4
    assert axes.xaxis_inverted() and "Exactly 0" in picture.caption
    # the symbol
    assert [line.get_xdata()[0] for line in axes.lines if list(line.get_xdata()) == [3, 3]] == [3]
    assert texts(axes) == ["the symbol"]


@pytest.mark.parametrize("distance", [0, 4, 200])
def test_forgetting_needs_a_norm_for_the_symbol(distance):
    with pytest.raises(
        ValueError, match=f"distance must be from 1 to 3, as 'RNN' has read 4 tokens, got {distance}"
    ):
        figures.forgetting({"RNN": [1.0] * 4}, distance)


def test_generation_draws_seconds_and_numbers_over_the_tokens():
    rows = [
        {"part": "generation", "seed": seed, "system": system, "token": 2**i,
        "seconds": 1e-5 * (i + 1 + seed), "numbers": 128 * 2**i}
        for system in ("LSTM", "softmax attention") for i in range(13) for seed in (0, 3, 1)
    ]  # fmt: skip
    seconds, numbers = figures.generation([*rows, {"part": "threads"}]).figure.axes
    assert curve(seconds, "LSTM")[0] == [2**i for i in range(13)]
    assert curve(seconds, "LSTM")[1] == pytest.approx([1e-5 * (i + 2) for i in range(13)])
    assert curve(numbers, "softmax attention")[1] == [128 * 2**i for i in range(13)]
    assert len(seconds.get_xticks()) <= 8 and seconds.get_xticks()[0] == 1


def test_threads_are_compared_for_each_layer_and_batch():
    repeats = thread_rows() + [row | {"seconds": 100.0} for row in thread_rows()] + thread_rows()
    (axes,) = figures.threads([*repeats, {"part": "generation"}]).figure.axes
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["LSTM, batch 1", "attention, batch 11"]
    assert texts(axes) == ["1.20 times as fast", "2.00 times as fast"]  # of the middles
    assert curve(axes, "1 thread") == ([6, 100, 6, 8, 100, 8], [0, 0, 0, 1, 1, 1])
    assert curve(axes, "2 threads")[0] == [5, 100, 5, 4, 100, 4]
    one, two = axes.lines[-2:]
    assert one.get_marker() != two.get_marker() and two.get_markerfacecolor() == "none"
    assert axes.yaxis_inverted()


def test_states_have_a_column_for_each_token_and_a_row_for_each_unit():
    hidden = torch.rand(N, D) - 0.5
    above, below = panels(
        figures.states({"RNN": hidden, "LSTM": torch.zeros(N, M)}, list("Bgadad?"), limit=0.5)
    )
    torch.testing.assert_close(drawn(above).float(), hidden.T.cpu())
    assert drawn(below).shape == (M, N) and above.images[0].get_clim() == (-0.5, 0.5)
    assert [tick.get_text() for tick in below.get_xticklabels()] == list("Bgadad?")


@pytest.mark.parametrize(
    "hidden, tokens, got",
    [
        ({"RNN": torch.ones(N, D), "LSTM": torch.ones(M, D)}, None, r"\[5, 7\]"),
        ({"RNN": torch.ones(N, D)}, list("Bg?"), r"\[3, 7\]"),
        ({}, None, r"\[\]"),
    ],
)
def test_states_of_one_sequence_have_as_many_tokens(hidden, tokens, got):
    with pytest.raises(ValueError, match=f"must have the same number of tokens, got {got}"):
        figures.states(hidden, tokens)


def test_rank_shows_that_features_end_and_the_exponential_goes_on():
    q, k = torch.randn(2, 13, D, dtype=torch.float64)
    tables = {"features": feature_map(q) @ feature_map(k).T, "exponential": (q @ k.T).exp()}
    (axes,) = figures.rank(tables, D).figure.axes
    xs, features = curve(axes, "features")
    assert xs == list(range(1, 14)) and features[0] == 1
    assert min(features[:D]) > 1e-3 and max(features[D:]) < 1e-12
    assert curve(axes, "exponential")[1][D] > 1e-4
    assert axes.lines[-1].get_xdata()[0] == D + 0.5 and axes.get_yscale() == "log"


def test_chunks_cut_the_causal_table_into_near_cells_and_far_boxes():
    (axes,) = figures.chunks(12, 4).figure.axes
    patches = [(*p.get_xy(), p.get_width(), p.get_height(), p.get_hatch()) for p in axes.patches]
    near = {(j, i) for j, i, w, h, hatch in patches if not hatch}
    assert near == {(j, i) for i in range(12) for j in range(i + 1) if i // 4 == j // 4}
    assert [p[:4] for p in patches if p[4]] == [(0, 4, 4, 4), (0, 8, 8, 4)]
    assert texts(axes)[:2] == ["state of\nkeys 0 … 3", "state of\nkeys 0 … 7"]
    covered = len(near) + 4 * 4 + 8 * 4
    assert covered == 12 * 13 // 2  # all that is causal, once


@pytest.mark.parametrize("n, chunk", [(16, 5), (16, 16), (16, 1), (64, 8), (16, 0), (18, 9)])
def test_chunks_must_fit(n, chunk):
    with pytest.raises(
        ValueError, match=f"chunk must cut n into 2 to 6 chunks .* got n={n} and chunk={chunk}; take"
    ):
        figures.chunks(n, chunk)


@pytest.mark.parametrize(
    "picture",
    [
        lambda: figures.grow(costs(kinds="abcdefgh"), "n"),
        lambda: figures.table({"theory": {"RNN": {"path": "n"}}}),
        lambda: figures.recall(recalls()),
        lambda: figures.aids(recalls() + recalls("aid", "longer")),
        lambda: figures.asked(recalls(), ["RNN", "attention"]),
        lambda: figures.sensitivities({name: torch.rand(N, N) for name in "abcd"}),
        lambda: figures.forgetting({"RNN": [1.0, 0.0]}, 1),
        lambda: figures.generation([{"system": "LSTM", "token": 1, "seconds": 1e-4, "numbers": 128}]),
        lambda: figures.threads(thread_rows()),
        lambda: figures.states({"RNN": torch.rand(N, D)}),
        lambda: figures.rank({"features": torch.rand(N, N)}, D),
        lambda: figures.chunks(),
    ],
)  # fmt: skip
def test_a_figure_is_narrow_enough_and_says_what_it_shows(picture):
    made = picture()
    assert made.figure.get_size_inches()[0] <= 8.0
    assert len(made.alt) > 40 and made.alt.endswith(".") and not any(c.isdigit() for c in made.alt)
    assert made.caption.endswith(".")
    made.figure.draw_without_rendering()


def test_gap_counts_common_tokens_from_zero():
    (axes,) = panels(figures.gap({"RNN": [2.0, 0.5, 0.125], "LSTM": [2.0, 1.0, 0.5]}))
    assert curve(axes, "RNN") == ([0, 1, 2], [2.0, 0.5, 0.125])
    assert axes.get_yscale() == "log"


def test_live_seconds_draws_what_was_measured():
    (axes,) = panels(figures.live_seconds([64, 256], {"RNN": [0.001, 0.004], "attention": [0.002, 0.032]}))
    assert curve(axes, "attention") == ([64, 256], [0.002, 0.032])
    assert axes.get_xscale() == axes.get_yscale() == "log"
