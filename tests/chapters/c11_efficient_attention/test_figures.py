"""The figures of lesson 11: tiles and rounds in their order, and what is marked."""

import pytest
import torch
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from lesson_lib import efficient
from lesson_lib.chapters.c11_efficient_attention import figures
from lesson_lib.charts.picture import CURVES


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
