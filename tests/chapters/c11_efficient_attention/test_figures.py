"""The figures of lesson 11: tiles and rounds in their order, what is marked, and texts that cover nothing."""

import math

import pytest
import torch
from matplotlib import rc_context
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from lesson_lib import efficient
from lesson_lib.chapters.c11_efficient_attention import figures
from lesson_lib.charts.picture import CURVES, STYLE
from lesson_lib.masks import window

KINDS = ("full", "window", "linear", "low rank", "random features")


def legend(picture):
    return [text.get_text() for box in picture.figure.legends for text in box.get_texts()]


def ring_rows(repeats=(0.0,)):
    return [
        {"processes": p, "tokens": tokens, "backward": backward,
        "mib": (tokens / p) * (3 if backward else 1) + more, "seconds": 1.0}
        for p in (1, 2, 5) for tokens in (700, 1100) for backward in (False, True) for more in repeats
    ]  # fmt: skip


def test_nine_tenths_of_the_squares_are_marked():
    """Squares 9, 1, 0: nine tenths in the first. Squares 4, 4, 1: 8 / 9 are not enough."""
    picture = figures.spectra({"a": torch.tensor([1.0, 3.0, 0.0]), "b": torch.tensor([2.0, 2.0, 1.0])})
    assert legend(picture) == ["a: 90 % in the first 1", "b: 90 % in the first 3"]


def test_a_slope_begins_at_the_highest_median_and_a_zero_lies_below_all_others():
    curves = {"a": [(64, [0.25, 0.125, 0.5]), (4, [1.0, 3.0, 2.0])], "b": [(4, [0.5]), (64, [0.0])]}
    (axes,) = figures.errors(curves, xlabel="features", slope=-0.5).figure.axes
    lines = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
    assert lines["like 1 / √features"] == pytest.approx([2.0, 0.5])  # 16 times as many: a quarter
    assert lines["a"] == [2.0, 0.25] and axes.get_ylim()[0] < lines["b"][1] < 0.1


@pytest.mark.parametrize("p", [2, 3, 5])
def test_rounds_hand_the_keys_on_and_fill_the_table_once(p):
    (page,) = figures.ring_rounds(p).figure.axes
    grounds = [to_rgb(box.get_facecolor()) for box in page.patches if type(box) is Rectangle]
    for owner in range(p):  # each block is coloured in one round, and grey from then on
        for rank in range(p):
            of_rounds = grounds[rank * p + owner :: p * p]
            turn = (rank - owner) % p
            assert of_rounds[turn] == to_rgb(CURVES[owner])
            assert set(of_rounds[:turn]) <= {(1, 1, 1)} and set(of_rounds[turn + 1 :]) <= {to_rgb("0.78")}


def test_the_ring_should_fall_as_one_over_its_processes_from_two_on():
    (axes,) = figures.ring_memory(ring_rows([0.0, 8.0, 2.0])).figure.axes
    dashed = [list(line.get_ydata()) for line in axes.lines if line.get_color() == "0.4"]
    assert len(dashed) == 4 and [704, 352, 140.8] in [pytest.approx(ys) for ys in dashed]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n, tile", [(1, 1), (7, 7), (7, 11), (13, 3), (29, 5)])
def test_tiles_are_those_that_attend_tiles_computes_in_its_order(monkeypatch, n, tile, causal):
    seen, scores = [], efficient._scores
    monkeypatch.setattr(
        efficient, "_scores", lambda q, k, rows, columns, ahead: (
            seen.append((rows.start, rows.stop, columns.start, columns.stop)),
            scores(q, k, rows, columns, ahead)
        )[1],
    )  # fmt: skip
    x = torch.randn(n, 2)
    efficient.attend_tiles(x, x, x, causal=causal, tile=tile)
    cut = figures.tiles(n, tile, causal=causal)
    wanted = [(q.start, q.stop, k.start, min(k.stop, q.stop) if causal else k.stop) for q, k in cut]
    assert seen == wanted  # of a causal tile, keys behind the last query are cut off


def accuracies():
    """The k-th kind has (k + 1) / 10 on all tasks, two seeds more a tenth up and down on the first task."""
    ups = {"pairs": (0, 0.1, -0.1), "digits": (0, 0, 0), "text": (0, 0, 0)}
    return {
        kind: {task: [(k + 1) / 10 + up for up in ups[task]] for task in ups} for k, kind in enumerate(KINDS)
    }


def every():
    """Pages on which a text stands where it was computed to stand."""
    return {
        "seen_patterns": figures.seen_patterns({"window": window(7, 2)}),
        "tile_order": figures.tile_order(7, 2, causal=True, step=3),
        "ring_rounds": figures.ring_rounds(3),
        "errors": figures.errors({"a": [(2, [0.5, 0.25]), (4, [0.125])]}, xlabel="features", slope=-0.5),
        "arena_plane": figures.arena_plane(
            accuracies(), dict.fromkeys(KINDS, 3.0), dict.fromkeys(KINDS, 7.0)
        ),
    }


def test_nothing_on_the_drawn_pages_leaves_the_page_or_covers_other_text():
    for name, picture in every().items():
        with rc_context(STYLE):
            picture.figure.draw_without_rendering()
        page = picture.figure.bbox
        shown = [text for axes in picture.figure.axes for text in axes.texts if text.get_text()]
        ends = [Text.get_window_extent(text) for text in shown]
        for text, end in zip(shown, ends, strict=True):
            assert page.x0 <= end.x0 and end.x1 <= page.x1, (name, text.get_text())
            assert page.y0 <= end.y0 and end.y1 <= page.y1, (name, text.get_text())
        for i, one in enumerate(ends):
            for j, other in enumerate(ends[:i]):
                across = min(one.x1, other.x1) - max(one.x0, other.x0)
                up = min(one.y1, other.y1) - max(one.y0, other.y0)
                assert min(across, up) < 3, (name, shown[i].get_text(), shown[j].get_text())


@pytest.mark.parametrize("spread", [0.02, 0.3, 1.0])
def test_names_in_the_plane_cover_neither_each_other_nor_another_circle(spread):
    speed = {kind: 10 * (1 + spread * k) for k, kind in enumerate(KINDS)}
    (axes,) = figures.arena_plane(accuracies(), speed, dict.fromkeys(KINDS, 9.0)).figure.axes
    axes.figure.draw_without_rendering()
    boxes = [Text.get_window_extent(text) for text in axes.texts]  # without the line to the circle
    scale = axes.figure.dpi / 72
    for circle in (c for c in axes.collections if c.get_label() in KINDS):
        x, y = axes.transData.transform(circle.get_offsets())[0]
        reach = math.sqrt(circle.get_sizes()[0] / math.pi) * scale
        for box in boxes:
            near = min(max(x, box.x0), box.x1), min(max(y, box.y0), box.y1)
            assert math.dist((x, y), near) > reach - 2
    for i, one in enumerate(boxes):
        assert not any(one.overlaps(other) for other in boxes[:i])
