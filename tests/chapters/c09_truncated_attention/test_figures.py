"""The figures of lesson 09 draw what they are given: frames and phonemes in seconds, windows and the blocks
that cover them, costs, accuracies."""

import math
from itertools import pairwise

import pytest
import torch

from lesson_lib.attention import attend
from lesson_lib.chapters.c09_truncated_attention import figures
from lesson_lib.charts.picture import CURVES
from lesson_lib.masks import window
from lesson_lib.measure import operations
from lesson_lib.truncated import BLOCK, attend_window

N, BANDS, D = 29, 40, 5
NAMES = ("_", "a", "s", "tʃ")
RADII = (0, 2, 5, None)


def panels(picture):
    """Axes that hold a drawing, without colour bars."""
    return [axes for axes in picture.figure.axes if axes.get_label() != "<colorbar>"]


def texts(axes):
    return [text.get_text() for text in axes.texts]


def curve(axes, name):
    """Points of the first line with that label."""
    line = next(line for line in axes.lines if line.get_label() == name)
    return list(line.get_xdata()), list(line.get_ydata())


def heard():
    frames = torch.randn(N, BANDS)
    labels = torch.zeros(N, dtype=torch.long)
    labels[7:13], labels[13:20] = 1, 3
    return frames, labels


def cost_rows(seeds=(0, 1, 2)):
    """Tables take 2 n² MiB, windows 3 n; a repeat takes one more second than the one before, and a backward
    pass 1,000 times all."""
    return [
        {
            "kind": kind, "seed": seed, "speech_s": s, "n": 100 * s, "backward": backward,
            "cpu_s": (s + seed) * (1000 if backward else 1),
            "mib": (2 * s * s if kind == "table" else 3 * s) * (1000 if backward else 1),
        }
        for kind in ("window", "table") for s in (1, 10, 100) for seed in seeds for backward in (False, True)
    ]  # fmt: skip


def points(kind="point", n_layers=2, seeds=(0, 1, 2)):
    return [
        {
            "kind": kind, "n_layers": n_layers, "radius": radius, "seed": seed,
            "accuracy": (5 + k + seed) / 10 - 0.05 * (2 - n_layers),
            "accuracy_speech": 0.25, "by_kind": {"vowel": k / 10, "stop": seed / 10},
        }
        for k, radius in enumerate(RADII[:3]) for seed in seeds
    ] + [{"kind": kind, "n_layers": n_layers, "radius": None, "seed": 0, "accuracy": 0.6,
    "accuracy_speech": 0.25, "by_kind": {"vowel": 0.1}}]  # fmt: skip


def test_stretches_of_equal_labels_become_one():
    labels = torch.tensor([2, 2, 0, 1, 1, 1, 2])
    assert figures.segments(labels, 7, NAMES) == [(0, 2, "s"), (2, 3, "_"), (3, 6, "a"), (6, 7, "s")]


def test_an_utterance_is_its_frames_with_phonemes_above_in_seconds():
    frames, labels = heard()
    above, below = figures.utterance(frames, labels, NAMES, title="a sentence").figure.axes
    image = below.images[0]
    torch.testing.assert_close(torch.tensor(image.get_array().tolist()), frames.T)
    assert image.origin == "lower" and image.get_extent() == [0, pytest.approx(N / 100), 0, BANDS]
    places = {text.get_text(): text.get_position()[0] for text in above.texts}
    assert places == {"a": pytest.approx(0.10), "tʃ": pytest.approx(0.165)}  # silence is not written
    bounds = [line.get_xdata()[0] for line in above.lines]
    assert bounds == pytest.approx([0, 0.07, 0.13, 0.20])
    assert above.get_title("left") == "a sentence" and above.get_shared_x_axes().joined(above, below)


def test_phonemes_that_are_close_stand_on_several_lines_and_what_has_no_room_is_left_out():
    labels = torch.arange(N * 20) % 2 + 1
    above, _ = figures.utterance(torch.randn(N * 20, BANDS), labels, NAMES).figure.axes
    lines = {}
    for text in above.texts:
        lines.setdefault(text.get_position()[1], []).append(text.get_position()[0])
    total = 0.2 * N
    assert all(b - a >= 0.022 * total for xs in lines.values() for a, b in pairwise(xs))
    assert lines.keys() == {0.5, 1.5, 2.5} and len(above.texts) < N * 20


def test_wrong_frames_are_marked_between_truth_and_guess():
    frames, labels = heard()
    guesses = labels.clone()
    guesses[3], guesses[20:22] = 2, 1
    above, _, below, wrong = figures.spoken(frames, labels, {"guessed": guesses}, NAMES).figure.axes
    (bars,) = wrong.collections
    starts = sorted(path.get_extents().x0 for path in bars.get_paths())
    assert starts == pytest.approx([0.03, 0.20, 0.21])
    assert texts(above) == ["a", "tʃ"] and texts(below) == ["s", "a", "tʃ", "a"]
    assert (above.get_ylabel(), below.get_ylabel()) == ("spoken", "guessed")


def test_attention_is_a_bar_for_each_frame_and_a_line_at_the_one_that_looks():
    frames, _ = heard()
    one, two = torch.rand(2, N)
    above, first, second = figures.attention(frames, {"layer 1": one, "layer 2": two}, 11).figure.axes
    for axes, row in ((first, one), (second, two)):
        assert [bar.get_height() for bar in axes.patches] == pytest.approx(row.tolist())
        assert [bar.get_x() + bar.get_width() / 2 for bar in axes.patches[:2]] == pytest.approx(
            [0.005, 0.015]
        )
    for axes in (above, first, second):
        assert axes.lines[0].get_xdata()[0] == pytest.approx(0.115)
    assert first.get_ylabel() == "layer 1"
    assert len(figures.attention(frames, one, 0).figure.axes) == 2


@pytest.mark.parametrize(
    "change, error, message",
    [
        (
            {"frames": None},
            ValueError,
            r"frames must be a tensor \(frames, bands\) of one utterance, got NoneType",
        ),
        ({"frames": torch.randn(2, N, BANDS, device="cpu")}, ValueError, r"got \(2, 29, 40\)"),
        ({"frames": torch.randn(0, BANDS, device="cpu")}, ValueError, r"got \(0, 40\)"),
        ({"labels": [0] * N}, TypeError, "labels must be a tensor of whole numbers, .* got list"),
        (
            {"labels": torch.zeros(N, device="cpu")},
            TypeError,
            r"got torch.float32; of logits take argmax\(-1\)",
        ),
        (
            {"labels": torch.zeros(N + 1, dtype=torch.long, device="cpu")},
            ValueError,
            r"each of the 29 frames, got shape \(30,\)",
        ),
        ({"labels": torch.full((N,), 4, device="cpu")}, ValueError, "labels must be 0 to 3, .* got 4 to 4"),
        ({"labels": torch.full((N,), -1, device="cpu")}, ValueError, "got -1 to -1"),
    ],
)
def test_frames_and_labels_that_do_not_fit_get_a_sentence(no_shape_hook, change, error, message):
    frames, labels = heard()
    given = {"frames": frames, "labels": labels} | change
    with pytest.raises(error, match=message):
        figures.utterance(**given, names=NAMES)
    with pytest.raises(error, match=message):
        figures.spoken(given["frames"], labels, {"guessed": given["labels"]}, NAMES)


@pytest.mark.parametrize(
    "weights, centre, message",
    [
        (
            torch.rand(N, N, device="cpu"),
            3,
            r"weights 'weight' must be one row of 29 weights, got \(29, 29\); take weights",
        ),
        ({"layer 1": None}, 3, "weights 'layer 1' .* got NoneType"),
        (torch.rand(N, device="cpu"), N, "centre must be a whole number from 0 to 28, got 29"),
        (torch.rand(N, device="cpu"), 1.5, "got 1.5"),
        (torch.rand(N, device="cpu"), True, "got True"),
    ],
)
def test_attention_says_what_does_not_fit(no_shape_hook, weights, centre, message):
    with pytest.raises(ValueError, match=message):
        figures.attention(heard()[0], weights, centre)


@pytest.mark.parametrize(
    "n, radius, block",
    [
        (1, 0, 1),
        (29, 0, 32),
        (97, 3, 7),
        (97, 7, 7),
        (97, 11, 5),
        (97, 50, 32),
        (97, 200, 32),
        (1000, 15, 32),
    ],
)
def test_pieces_hold_each_query_once_and_all_that_it_may_see(n, radius, block):
    cut = figures.pieces(n, radius, block)
    assert [piece.start for piece in cut[1:]] == [piece.stop for piece in cut[:-1]]
    assert cut[0].start == 0 and cut[-1].stop == n
    covered = torch.zeros(n, n, dtype=torch.bool)
    for piece in cut:
        covered[piece.start : piece.stop, slice(*piece.keys)] = True
        assert 0 <= piece.keys[0] < piece.keys[1] <= n
    assert not (window(n, radius, device=covered.device) & ~covered).any()
    assert covered.sum() == sum(piece.cells for piece in cut)
    inner = [piece for piece in cut if not piece.end]
    assert len({piece.stop - piece.start for piece in inner}) <= 1  # so that they are computed at once
    assert len({piece.keys[1] - piece.keys[0] for piece in inner}) <= 1


@pytest.mark.parametrize("n, radius", [(7, 2), (101, 0), (499, 15), (499, 40), (499, 600)])
def test_pieces_are_those_that_attend_window_computes(n, radius):
    """torch counts the multiplications: queries with keys, weights with values."""
    q = torch.randn(1, n, D, device="cpu")
    counted = operations(lambda: attend_window(q, q, q, radius))
    assert counted == 2 * D * sum(piece.cells for piece in figures.pieces(n, radius, BLOCK))
    assert operations(lambda: attend(q, q, q)) == 2 * D * n * n


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((0, 1), "n must be a whole number >= 1, got 0"),
        ((3, -1), "radius must be a whole number >= 0, got -1"),
        ((3, None), "radius must be .* got None"),
        ((3, 1, 0), "block must be a whole number >= 1, got 0"),
        ((True, 1), "n must be .* got True"),
        ((3, 1.0), "got 1.0"),
    ],
)
def test_pieces_say_what_does_not_fit(no_shape_hook, arguments, message):
    with pytest.raises(ValueError, match=message):
        figures.pieces(*arguments)


def test_blocks_are_drawn_as_boxes_over_the_band():
    picture = figures.blocks(20, 2, 5)
    (axes,) = picture.figure.axes
    boxes = [patch for patch in axes.patches if patch.get_width() > 1]
    found = [(box.get_y(), box.get_height(), box.get_x(), box.get_width()) for box in boxes]
    cut = figures.pieces(20, 2, 5)
    assert found == [
        (piece.start, piece.stop - piece.start, piece.keys[0], piece.keys[1] - piece.keys[0]) for piece in cut
    ]
    assert sum(patch.get_width() < 1 for patch in axes.patches) == int(window(20, 2).sum()) == 94
    assert picture.caption.startswith(
        f"20 tokens, radius 2: {sum(piece.cells for piece in cut)} of 400 scores are computed, 94 of them"
        " count."
    )
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # query 0 on top
    (legend,) = picture.figure.legends
    assert len(legend.get_texts()) == 3
    with pytest.raises(ValueError, match=r"n must be at most 80 tokens, .* got 81; take n=36"):
        figures.blocks(81)


def test_a_band_is_its_mask():
    picture = figures.band({"near": window(7, 2), "far": torch.ones(5, 3, dtype=torch.bool)})
    near, far = picture.figure.axes
    assert near.images[0].get_array().tolist() == window(7, 2).tolist()
    assert far.images[0].get_array().tolist() == [[True] * 3] * 5
    assert (near.get_title(), near.get_xlabel(), near.get_ylabel()) == ("near", "key", "query")
    assert len(figures.band(window(60, 5)).figure.axes) == 1


@pytest.mark.parametrize(
    "mask, message",
    [
        (torch.ones(3, 3, device="cpu"), r"got torch.float32 \(3, 3\); masks.window\(n, radius\) makes one"),
        (torch.ones(3, dtype=torch.bool, device="cpu"), r"got torch.bool \(3,\)"),
        ({"x": None}, "mask 'x' must be a boolean table .* got NoneType"),
    ],
)
def test_a_band_says_what_is_no_mask(no_shape_hook, mask, message):
    with pytest.raises(ValueError, match=message):
        figures.band(mask)


def test_memory_goes_on_with_the_power_of_theory_up_to_an_hour():
    (axes,) = figures.gib(cost_rows(), laptop=64).figure.axes
    assert curve(axes, "table") == ([1, 10, 100], pytest.approx([x / 1024 for x in (2, 200, 20_000)]))
    assert curve(axes, "window") == ([1, 10, 100], pytest.approx([x / 1024 for x in (3, 30, 300)]))
    dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
    ends = {line.get_color(): (line.get_xdata()[-1], line.get_ydata()[-1]) for line in dashed}
    assert ends[CURVES[0]] == (3600, pytest.approx(2 * 3600**2 / 1024))
    assert ends[CURVES[3]] == (3600, pytest.approx(3 * 3600 / 1024))
    crosses = [(*line.get_xdata(), *line.get_ydata()) for line in axes.lines if line.get_marker() == "x"]
    assert len(crosses) == 1 and math.isclose(2 * crosses[0][0] ** 2 / 1024, 64)  # the window never fills it
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert "1 min" in [tick.get_text() for tick in axes.get_xticklabels()] and "a laptop: 64 GiB" in texts(
        axes
    )


def test_costs_are_a_panel_of_seconds_and_one_of_memory_with_the_middle_of_the_repeats():
    seconds, mib = figures.costs(cost_rows(seeds=(0, 7, 2)), reach_s=0.31).figure.axes
    assert curve(seconds, "window") == ([1, 10, 100], [3, 12, 102])
    assert curve(mib, "table") == ([1, 10, 100], [2, 200, 20_000])
    corners = seconds.collections[0].get_paths()[0].vertices.tolist()
    assert [1.0, 1.0] in corners and [1.0, 8.0] in corners
    assert [line.get_xdata()[0] for line in seconds.lines if line.get_linestyle() == "--"] == [0.31]
    assert "0.31 s" in texts(seconds)[0]
    seconds, mib = figures.costs(cost_rows(), backward=True).figure.axes
    assert curve(mib, "window")[1] == [3000, 30_000, 300_000] and texts(mib) == []


def test_a_kind_has_the_same_colour_whatever_else_is_drawn():
    alone = [row for row in cost_rows() if row["kind"] == "window"]
    for rows in (alone, cost_rows()):
        axes = figures.costs(rows).figure.axes[0]
        assert next(line for line in axes.lines if line.get_label() == "window").get_color() == CURVES[3]


def test_accuracy_is_a_dot_for_each_seed_and_a_line_through_their_means():
    rows = [
        *points(),
        *points("layer", 1),
        *points("rate"),
        {"kind": "guess", "accuracy": 0.125, "accuracy_speech": 0.0625},
    ]
    (axes,) = figures.accuracy(rows, saturates=5).figure.axes
    lines = [line for line in axes.lines if len(line.get_xdata()) > 2]
    assert len(lines) == 4  # two curves, each with its dots: rows of other rates are left out
    assert list(lines[0].get_ydata()) == pytest.approx([0.6, 0.7, 0.8, 0.6])
    assert list(lines[0].get_xdata()) == pytest.approx([-0.035, 0.965, 1.965, 2.965])
    assert sorted(lines[1].get_ydata()) == pytest.approx([0.5, 0.6, 0.6, 0.6, 0.7, 0.7, 0.7, 0.8, 0.8, 0.9])
    assert list(lines[2].get_ydata()) == pytest.approx([0.55, 0.65, 0.75, 0.6])
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0", "2", "5", "full"]
    dashed = [line for line in axes.lines if line.get_linestyle() == "--" and line.get_color() == "0.3"]
    assert dashed[0].get_xdata()[0] == 2
    assert 0.125 in [y for line in axes.lines for y in line.get_ydata()] and "guessing" in texts(axes)
    (legend,) = axes.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["two layers", "one layer"]


def test_accuracy_may_be_that_of_speech_alone_and_saturate_nowhere():
    (axes,) = figures.accuracy(points(), saturates=None, column="accuracy_speech").figure.axes
    assert {y for line in axes.lines if len(line.get_xdata()) > 2 for y in line.get_ydata()} == {0.25}
    assert axes.get_title("left") == "share of frames that are not silence guessed rightly"
    assert 3 in [line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 2]  # full


def test_each_kind_of_sound_has_its_own_curve():
    (axes,) = figures.by_kind(points()).figure.axes
    vowel, _, _, stop, *_ = axes.lines
    assert list(vowel.get_ydata()) == pytest.approx([0, 0.1, 0.2, 0.1])
    assert list(stop.get_ydata()) == pytest.approx([0.1] * 3)  # full has no stops here


def test_a_radius_that_never_learnt_so_much_has_no_dot():
    (axes,) = figures.matched(
        {"loss 1": {0: [], 2: [0.5, 0.7], None: [0.4]}, "loss 2": {0: [0.25]}}
    ).figure.axes
    line, dots, _, *other = axes.lines
    assert list(line.get_ydata()) == pytest.approx([0.6, 0.4]) and list(dots.get_ydata()) == [0.5, 0.7, 0.4]
    assert list(other[1].get_ydata()) == [0.25]


def test_receptive_fields_are_divided_by_their_maximum_and_exact_zeros_stay_open():
    row = torch.zeros(11)
    row[3:6] = torch.tensor([2.0, 4.0, 1.0])
    picture = figures.fields({1: row, 2: torch.ones(11)}, centre=4)
    first, second = panels(picture)
    drawn = torch.tensor(first.images[0].get_array().filled(torch.nan).tolist(), device="cpu")[0]
    assert drawn[3:6].tolist() == [0.5, 1.0, 0.25] and drawn.isnan().sum() == 8
    assert texts(first) == ["−1 … +1"] and texts(second) == ["−4 … +6"]
    assert [axes.get_yticklabels()[0].get_text() for axes in (first, second)] == ["1 layer", "2 layers"]
    assert first.lines[0].get_xdata()[0] == 4
    assert panels(figures.fields({1: row}))[0].lines[0].get_xdata()[0] == 5  # the middle


@pytest.mark.parametrize(
    "moved, message",
    [
        ({1: torch.ones(3), 2: torch.ones(5)}, r"same number of inputs, got \[3, 5\]"),
        ({1: torch.ones(3, 3)}, r"row of 1 layers must be one number for each input, got \(3, 3\)"),
        ({1: None}, "got NoneType; take measure.sensitivity"),
        ({2: torch.zeros(3)}, "row of 2 layers must hold norms: finite, not negative and not all 0"),
        ({2: torch.tensor([1.0, -1.0])}, "must hold norms"),
        ({2: torch.tensor([1.0, math.inf])}, "must hold norms"),
        ({}, r"same number of inputs, got \[\]"),
    ],
)
def test_receptive_fields_say_what_does_not_fit(no_shape_hook, moved, message):
    with pytest.raises(ValueError, match=message):
        figures.fields(moved)


def recalls(kind="point"):
    """Beyond the reach no gradient, and other accuracies."""
    return [
        {
            "kind": kind, "radius": radius, "layers": layers, "distance": distance, "seed": seed,
            "accuracy": 0.25 * seed,
            "gradient": float(distance <= radius * layers),
            "gradient_after": float(distance <= radius * layers),
        }
        for radius in (2, 3) for layers in (1, 2) for distance in (2, 3, 5) for seed in (1, 2, 4)
        if (radius, layers, distance) != (2, 1, 5)
    ] + [{"kind": "full", "radius": None, "layers": 1, "distance": 5, "seed": 0, "accuracy": 1.0,
    "gradient": 1.0, "gradient_after": 1.0}]  # fmt: skip


def test_recall_beyond_the_reach_is_cut_off_by_a_line():
    (axes,) = figures.beyond([*recalls(), {"kind": "rate", "lr": 1e-3}, *recalls("plain")]).figure.axes
    labels = [tick.get_text() for tick in axes.get_yticklabels()]
    assert labels == ["1 × 2 = 2", "1 × 3 = 3", "2 × 2 = 4", "2 × 3 = 6", "1 × full"]
    assert [line.get_xdata()[0] for line in axes.lines] == [1, 2, 2, 3]  # distances within reach
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["2", "3", "5"]
    cells = {
        (int(text.get_position()[0]), int(text.get_position()[1])): text.get_text() for text in axes.texts
    }
    assert len(cells) == 12 and (2, 0) not in cells  # what was not trained has no number
    starred = {place for place, text in cells.items() if text == "0.50 *"}
    assert starred == {(1, 0), (2, 1), (2, 2)} and cells[(2, 4)] == "1.00"
    assert {text for place, text in cells.items() if place not in starred} == {"0.50", "1.00"}


def test_a_gradient_after_training_takes_the_star_away():
    rows = recalls("plain")
    rows[3]["gradient_after"] = 1e-9  # of one seed
    (axes,) = figures.beyond(rows, "plain").figure.axes
    assert sum(text.get_text().endswith("*") for text in axes.texts) == 2


def test_no_figure_is_wider_than_the_page_and_each_is_a_sentence():
    frames, labels = heard()
    pictures = [
        figures.utterance(frames, labels, NAMES),
        figures.spoken(frames, labels, {"one": labels, "two": labels}, NAMES),
        figures.attention(frames, torch.rand(N), 3), figures.gib(cost_rows()), figures.costs(cost_rows()),
        figures.band({"a": window(60, 3), "b": window(60, 9), "c": window(60, 30)}), figures.blocks(),
        figures.accuracy(points(), saturates=2), figures.by_kind(points()),
        figures.fields({1: torch.ones(41)}),
    ]  # fmt: skip
    for picture in pictures:
        assert picture.figure.get_size_inches()[0] <= 8
        assert picture.alt.endswith(".") and not any(sign.isdigit() for sign in picture.alt)
    assert pictures[0].png().startswith(b"\x89PNG")
