"""The figures of lesson 09: wrong frames, windows and the pieces that cover them, memory beyond the runs."""

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


def texts(axes):
    return [text.get_text() for text in axes.texts]


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


def test_stretches_of_equal_labels_become_one():
    labels = torch.tensor([2, 2, 0, 1, 1, 1, 2])
    assert figures.segments(labels, NAMES) == [(0, 2, "s"), (2, 3, "_"), (3, 6, "a"), (6, 7, "s")]


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


@pytest.mark.parametrize("n, radius, block", [
    (1, 0, 1), (29, 0, 32), (97, 3, 7), (97, 7, 7), (97, 11, 5), (97, 50, 32), (97, 200, 32), (1000, 15, 32),
])  # fmt: skip
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


def test_the_caption_counts_what_is_computed_and_what_counts():
    assert figures.blocks(20, 2, 5).caption.startswith(
        f"20 tokens, radius 2: the table has 400 scores. The boxes have 180, and {window(20, 2).sum()}"
    )
    with pytest.raises(ValueError, match="multiple of block = 5, got 21"):
        figures.blocks(21, 2, 5)


def test_memory_goes_on_with_the_power_of_theory_up_to_an_hour():
    (axes,) = figures.gib(cost_rows(), laptop=64).figure.axes
    ends = {
        line.get_color(): (line.get_xdata()[-1], 1024 * line.get_ydata()[-1])
        for line in axes.lines if line.get_linestyle() == "--"
    }  # fmt: skip
    assert ends[CURVES[0]] == (3600, pytest.approx(2 * 3600**2))
    assert ends[CURVES[3]] == (3600, pytest.approx(3 * 3600))
    (full,) = (line.get_xdata()[0] for line in axes.lines if line.get_marker() == "x")
    assert full == pytest.approx((64 * 1024 / 2) ** 0.5)  # the window never fills it


def test_dots_of_seeds_stand_over_their_radius_and_the_line_goes_through_their_means():
    curves = {"one": {5: [0.5, 0.7], 0: [0.1], None: [0.4]}, "two": {0: [], 2: [0.25]}}
    _, axes, radii = figures.over_radius(curves)
    line, dots, _, other, *_ = axes.lines
    assert radii == [0, 2, 5, None]
    assert list(line.get_xdata()) == pytest.approx([-0.035, 1.965, 2.965])
    assert list(line.get_ydata()) == pytest.approx([0.1, 0.6, 0.4])
    assert list(dots.get_ydata()) == [0.1, 0.5, 0.7, 0.4] and list(other.get_ydata()) == [0.25]


def test_a_kind_has_the_same_colour_whatever_else_is_drawn():
    alone = [row for row in cost_rows() if row["kind"] == "window"]
    for rows in (alone, cost_rows()):
        axes = figures.costs(rows).figure.axes[0]
        assert next(line for line in axes.lines if line.get_label() == "window").get_color() == CURVES[3]


def test_receptive_fields_are_divided_by_their_maximum_and_say_how_far_they_reach():
    row = torch.zeros(11)
    row[3:6] = torch.tensor([2.0, 4.0, 1.0])
    first, second = panels(figures.fields({1: row, 2: torch.ones(11)}, centre=4))
    shown = torch.tensor(first.images[0].get_array().filled(torch.nan).tolist(), device="cpu")[0]
    assert shown[3:6].tolist() == [0.5, 1.0, 0.25] and shown.isnan().sum() == 8
    assert texts(first) == ["−1 … +1"] and texts(second) == ["−4 … +6"]


def panels(picture):
    """Axes that hold a drawing, without colour bars."""
    return [axes for axes in picture.figure.axes if axes.get_label() != "<colorbar>"]
