"""The figures of lesson 11 draw what they are given: the family, masks, spectra, errors, tiles and rounds in
their order, costs."""

import math
import re
from functools import cache
from itertools import pairwise

import matplotlib.pyplot
import pytest
import torch
from matplotlib import rc_context
from matplotlib.colors import to_rgb
from matplotlib.patches import FancyArrowPatch, Rectangle
from matplotlib.text import Text

from lesson_lib import efficient
from lesson_lib.chapters.c11_efficient_attention import drawing, figures
from lesson_lib.charts.picture import CURVES, STYLE
from lesson_lib.masks import window

KINDS = ("full", "window", "linear", "low rank", "random features")
TASKS = ("pairs", "digits", "text")


def texts(axes):
    return [text.get_text() for text in axes.texts]


def curve(axes, name):
    """Points of the first line with that label."""
    line = next(line for line in axes.lines if line.get_label() == name)
    return list(line.get_xdata()), list(line.get_ydata())


def legend(picture):
    return [text.get_text() for box in picture.figure.legends for text in box.get_texts()]


def boxes(axes, kind=Rectangle):
    return [patch for patch in axes.patches if type(patch) is kind]


def accuracies(kinds=KINDS):
    """The k-th kind has (k + 1) / 10 on all tasks, and two seeds more, a tenth up and down on the
    first task."""
    return {
        kind: {task: [(k + 1) / 10 + (0.1 * up if task == "pairs" else 0) for up in (0, 1,
        -1)] for task in TASKS}
        for k, kind in enumerate(kinds)
    }  # fmt: skip


def ring_rows(repeats=(0.0,)):
    return [
        {"processes": p, "tokens": tokens, "backward": backward,
        "mib": (tokens / p) * (3 if backward else 1) + more, "seconds": 1.0}
        for p in (1, 2, 5) for tokens in (700, 1100) for backward in (False, True) for more in repeats
    ]  # fmt: skip


@cache
def every():
    """A picture of each function."""
    return {
        "seen_patterns": figures.seen_patterns({"window": window(7, 2)}),
        "spectra": figures.spectra({"a": torch.tensor([3.0, 1.0])}),
        "errors": figures.errors({"a": [(2, [0.5, 0.25]), (4, [0.125])]}, xlabel="features", slope=-0.5),
        "tile_order": figures.tile_order(7, 2, causal=True, step=3),
        "ring_rounds": figures.ring_rounds(3),
        "arena_plane": figures.arena_plane(accuracies(), dict.fromkeys(KINDS, 3.0),
        dict.fromkeys(KINDS, 7.0)),
        "arena_bars": figures.arena_bars(accuracies(), dict.fromkeys(TASKS, 0.1)),
        "cache_growth": figures.cache_growth(3, 5, {"all": 7, "one": 1}, [11, 13]),
        "shared_heads": figures.shared_heads(6, [6, 3, 1]),
        "ring_memory": figures.ring_memory(ring_rows()),
        "shared_bits": figures.shared_bits(),
    }  # fmt: skip


def test_every_picture_is_closed_and_has_a_sentence_without_numbers_and_a_caption():
    for name, picture in every().items():
        assert picture.alt.endswith(".") and not re.search(r"\d", picture.alt), name
        assert picture.caption.endswith("."), name
        assert repr(picture) == picture.alt
        width = picture.figure.get_size_inches()[0]
        assert width <= 8.01, name
        sizes = [text.get_fontsize() for axes in picture.figure.axes for text in axes.texts]
        assert all(size >= 9 for size in sizes), name  # legible where a figure is 800 pixels wide
    assert matplotlib.pyplot.get_fignums() == []


def test_sentence_and_caption_are_the_same_whatever_was_measured(no_shape_hook):
    one = figures.arena_plane(accuracies(), dict.fromkeys(KINDS, 3.0), dict.fromkeys(KINDS, 7.0))
    other = figures.arena_plane(accuracies(KINDS[::-1]), dict.fromkeys(KINDS, 5.0), dict.fromkeys(KINDS, 2.0))
    assert (one.alt, one.caption) == (other.alt, other.caption)
    one, other = (figures.spectra({"a": torch.rand(n) + 0.1}) for n in (3, 5))
    assert (one.alt, one.caption) == (other.alt, other.caption)
    one, other = (figures.ring_memory(ring_rows(more)) for more in ([0.0], [5.0, 9.0]))
    assert (one.alt, one.caption) == (other.alt, other.caption)


def test_nothing_on_the_drawn_pages_leaves_the_page_or_covers_other_text():
    for name, picture in every().items():
        with rc_context(STYLE):
            picture.figure.draw_without_rendering()
        page = picture.figure.bbox
        found = [text for axes in picture.figure.axes for text in axes.texts if text.get_text()]
        ends = [Text.get_window_extent(text) for text in found]
        for text, end in zip(found, ends, strict=True):
            assert page.x0 <= end.x0 and end.x1 <= page.x1, (name, text.get_text())
            assert page.y0 <= end.y0 and end.y1 <= page.y1, (name, text.get_text())
        for i, one in enumerate(ends):
            for j, other in enumerate(ends[:i]):
                across = min(one.x1, other.x1) - max(one.x0, other.x0)
                up = min(one.y1, other.y1) - max(one.y0, other.y0)
                assert min(across, up) < 3, (name, found[i].get_text(), found[j].get_text())


def test_patterns_are_their_masks_with_their_share_above():
    masks = {f"{k}": window(7, k) for k in range(5)}
    shown = [axes for axes in figures.seen_patterns(masks).figure.axes if axes.axison]
    for axes, (name, mask) in zip(shown, masks.items(), strict=True):
        assert axes.images[0].get_array().tolist() == mask.tolist()
        assert axes.get_title() == f"{name}\n{100 * mask.sum().item() / 49:.3g} % of the pairs"
    assert shown[0].get_title().endswith("14.3 % of the pairs")  # 7 of 49


@pytest.mark.parametrize(
    "masks, message",
    [
        ({}, "masks must be a dict .* got none"),
        (torch.ones(3, 3, dtype=torch.bool, device="cpu"), "masks must be a dict .* got Tensor"),
        (
            {"x": torch.ones(3, 5, dtype=torch.bool, device="cpu")},
            r"mask 'x' must be a boolean table \(n, n\), got torch.bool \(3, 5\)",
        ),
        (
            {"x": torch.ones(3, 3, device="cpu")},
            r"got torch.float32 \(3, 3\); masks.window\(n, radius\) makes one",
        ),
        ({"x": None}, "got NoneType"),
        ({str(k): window(3, 1) for k in range(13)}, "masks must be at most 12, .* got 13"),
    ],
)
def test_patterns_say_what_does_not_fit(no_shape_hook, masks, message):
    with pytest.raises(ValueError, match=message):
        figures.seen_patterns(masks)


def test_spectra_are_divided_by_the_first_and_marked_at_nine_tenths_of_the_squares():
    """Squares 9, 1, 0: nine tenths in the first. Squares 4, 4, 1: 8 / 9 are not enough."""
    picture = figures.spectra({"a": torch.tensor([1.0, 3.0, 0.0]), "b": torch.tensor([2.0, 2.0, 1.0])})
    (axes,) = picture.figure.axes
    one, mark, _, other, last, _ = axes.lines
    assert list(one.get_ydata()) == pytest.approx([1, 1 / 3, figures.FLOOR]) and list(one.get_xdata()) == [
        1,
        2,
        3,
    ]
    assert list(other.get_ydata()) == pytest.approx([1, 1, 0.5])
    assert (mark.get_xdata()[0], last.get_xdata()[0], last.get_ydata()[0]) == (1, 3, pytest.approx(0.5))
    assert legend(picture) == ["a: 90 % in the first 1", "b: 90 % in the first 3"]
    assert axes.get_yscale() == "log"
    assert legend(figures.spectra({"alone": torch.ones(7)})) == ["alone: 90 % in the first 7"]


@pytest.mark.parametrize(
    "curves, message",
    [
        (None, "curves must be a dict .* got NoneType"),
        (
            {"a": torch.ones(3, 3, device="cpu")},
            r"one row of singular values, got \(3, 3\); take torch.linalg.svdvals",
        ),
        ({"a": [3.0, 1.0]}, "got list"),
        (
            {"a": torch.zeros(3, device="cpu")},
            "must hold singular values: finite, not negative and not all 0",
        ),
        ({"a": torch.tensor([1.0, -1.0], device="cpu")}, "must hold singular values"),
        ({"a": torch.tensor([1.0, math.nan], device="cpu")}, "must hold singular values"),
    ],
)
def test_spectra_say_what_does_not_fit(no_shape_hook, curves, message):
    with pytest.raises(ValueError, match=message):
        figures.spectra(curves)


def test_errors_are_a_line_through_the_middle_with_a_band_and_a_slope_beside_them():
    curves = {"a": [(64, [0.25, 0.125, 0.5]), (4, [1.0, 3.0, 2.0])], "b": [(4, [0.5]), (64, [0.5])]}
    picture = figures.errors(curves, xlabel="features", slope=-0.5)
    (axes,) = picture.figure.axes
    assert curve(axes, "a") == ([4, 64], [2.0, 0.25])
    corners = {tuple(corner) for corner in axes.collections[0].get_paths()[0].vertices.tolist()}
    assert {(4.0, 1.0), (4.0, 3.0), (64.0, 0.125), (64.0, 0.5)} <= corners
    assert curve(axes, "like 1 / √features") == (
        [4, 64],
        pytest.approx([2.0, 0.5]),
    )  # 16 times as many: a quarter
    dotted = [line for line in axes.lines if line.get_linestyle() == ":"]
    assert [line.get_ydata()[0] for line in dotted] == [1.0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert (axes.get_xlabel(), axes.get_title("left")) == ("features", "relative error")
    assert "exactly 0" not in texts(axes)


def test_an_error_of_zero_stands_below_all_others_on_a_line_of_its_own():
    (axes,) = figures.errors({"a": [(4, [0.5]), (8, [0.0, 0.0])]}, xlabel="rank").figure.axes
    ys = list(axes.lines[1].get_ydata())
    assert ys[0] == 0.5 and 0 < ys[1] < 0.1 and "exactly 0" in texts(axes)
    assert [line.get_ydata()[0] for line in axes.lines if line.get_color() == "0.8"] == [ys[1]]
    low, high = axes.get_ylim()
    assert low < ys[1] and high > 1


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


def test_the_tile_in_hand_stands_out_with_its_rows():
    (page,) = figures.tile_order(7, 3, causal=True, step=3).figure.axes
    numbers = {text.get_text(): text for text in page.texts if text.get_text().isdigit()}
    assert list(numbers) == ["1", "2", "3", "4", "5", "6"]  # of 9 tiles, 3 are never computed
    size = 4.4 / 7
    tiles = [box for box in boxes(page) if box.get_linewidth() == 1.5]
    corners = [(round((box.get_x() - 0.45) / size), round((box.get_y() - 0.75) / size)) for box in tiles]
    assert corners == [(keys.start, queries.start) for queries, keys in figures.tiles(7, 3, causal=True)]
    assert [box.get_facecolor()[:3] == to_rgb(CURVES[1]) for box in tiles] == [
        False,
        False,
        True,
        False,
        False,
        False,
    ]
    cells = [box for box in boxes(page) if box.get_linewidth() == 0.6]
    assert len(cells) == 3 * 7  # top, total and mixed of each row
    colors = [to_rgb(box.get_facecolor()) for box in cells[:7]]
    done, hand, later = (to_rgb(tone) for tone in (drawing.PALE, drawing.IN_HAND, drawing.EMPTY))
    assert colors == [done] * 3 + [hand] * 3 + [later]
    assert "never computed" in texts(page) and "in hand" in texts(page)
    assert {"top", "total", "mixed"} <= set(texts(page))


def test_the_order_alone_has_no_tile_in_hand():
    picture = figures.tile_order(6, 2)
    (page,) = picture.figure.axes
    assert to_rgb(CURVES[1]) not in [to_rgb(box.get_facecolor()) for box in boxes(page)]
    assert "never computed" not in texts(page) and "Hatched" not in picture.caption
    assert sum(text.isdigit() for text in texts(page)) == 9


@pytest.mark.parametrize(
    "arguments, options, message",
    [
        ((0, 1), {}, "n must be a whole number >= 1, got 0"),
        ((7, None), {}, "tile must be a whole number >= 1, got None"),
        ((7, True), {}, "tile must be .* got True"),
        ((100, 2), {}, "tile must cut n into at most 12 pieces, .* got n=100 and tile=2; take tile=9"),
        ((6, 2), {"step": 10}, "step must be a whole number from 1 to 9, got 10"),
        ((6, 2), {"step": 7, "causal": True}, "1 to 6, got 7"),
        ((6, 2), {"step": 0}, "step must be a whole number from 1 to 9, got 0"),
        ((6, 2), {"step": "last"}, "got 'last'"),
    ],
)
def test_tile_order_says_what_does_not_fit(arguments, options, message, no_shape_hook):
    with pytest.raises(ValueError, match=message):
        figures.tile_order(*arguments, **options)


@pytest.mark.parametrize("p", [2, 3, 5])
def test_rounds_hand_the_keys_on_and_fill_the_table_once(p):
    (page,) = figures.ring_rounds(p).figure.axes
    places = sorted(
        (text.get_position()[1], text.get_position()[0], int(text.get_text()[-1]))
        for text in page.texts
        if re.fullmatch(r"keys \d", text.get_text())
    )
    rounds = [[owner for *_, owner in places[turn * p : (turn + 1) * p]] for turn in range(p)]
    assert rounds[0] == list(range(p))
    for before, after in pairwise(rounds):
        assert after == [before[-1], *before[:-1]]  # from each to the next one
    cells = boxes(page)
    assert len(cells) == p**3
    lit = []
    for turn in range(p):
        table = cells[turn * p * p : (turn + 1) * p * p]
        colored = [
            k for k, box in enumerate(table) if to_rgb(box.get_facecolor()) not in ((1, 1, 1), to_rgb("0.78"))
        ]
        assert colored == [rank * p + rounds[turn][rank] for rank in range(p)]
        assert all(to_rgb(table[k].get_facecolor()) == to_rgb(CURVES[k % p]) for k in colored)
        grey = [k for k, box in enumerate(table) if to_rgb(box.get_facecolor()) == to_rgb("0.78")]
        assert sorted(lit) == grey
        lit += colored
    assert sorted(lit) == list(range(p * p))
    assert len(boxes(page, FancyArrowPatch)) == p * (p - 1)  # none after the last round


@pytest.mark.parametrize("processes", [1, 7, None, "3", True, 2.0])
def test_rounds_need_a_ring_that_can_be_drawn(processes, no_shape_hook):
    with pytest.raises(ValueError, match=f"processes must be a whole number from 2 to 6, got {processes!r}"):
        figures.ring_rounds(processes)


def test_the_plane_has_a_circle_for_each_kind():
    table = accuracies()
    speed = {kind: 2.0 + k for k, kind in enumerate(KINDS)}
    mib = {kind: 10.0 * (k + 1) for k, kind in enumerate(KINDS)}
    (axes,) = figures.arena_plane(table, speed, mib).figure.axes
    circles = {c.get_label(): c for c in axes.collections if c.get_label() in KINDS}
    assert list(circles) == list(KINDS)
    for k, kind in enumerate(KINDS):
        assert circles[kind].get_offsets().tolist() == [[2.0 + k, pytest.approx((k + 1) / 10)]]
        assert circles[kind].get_sizes()[0] / circles["full"].get_sizes()[0] == pytest.approx(k + 1)
        assert to_rgb(circles[kind].get_facecolor()[0][:3]) == pytest.approx(to_rgb(CURVES[k]))
        assert f"{kind}\n{10 * (k + 1)} MiB" in texts(axes)
    (bar,) = axes.containers[0].lines[2]
    (_, low), (_, high) = bar.get_segments()[0].tolist()
    # one of three tasks, a tenth up and down
    assert (low, high) == pytest.approx((0.1 - 0.1 / 3, 0.1 + 0.1 / 3))
    assert axes.get_xscale() == "log" and len(axes.get_xticks()) >= 3


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


def test_a_kind_has_the_same_colour_whatever_else_is_drawn():
    some = {"low rank": accuracies()["low rank"], "mine": accuracies()["full"]}
    (axes,) = figures.arena_plane(some, dict.fromkeys(some, 2.0), dict.fromkeys(some, 5.0)).figure.axes
    found = {
        c.get_label(): to_rgb(c.get_facecolor()[0][:3]) for c in axes.collections if c.get_label() in some
    }
    assert found == {"low rank": pytest.approx(to_rgb(CURVES[3])), "mine": pytest.approx(to_rgb(CURVES[5]))}


def test_bars_have_a_mark_for_each_seed_and_a_line_where_guessing_ends():
    guess = dict(zip(TASKS, (0.25, 0.125, 0.5), strict=True))
    panels = figures.arena_bars(accuracies(), guess).figure.axes
    assert [axes.get_title("left") for axes in panels] == list(TASKS)
    for axes, task in zip(panels, TASKS, strict=True):
        dots = [line for line in axes.lines if line.get_linestyle() == "None"]
        assert [list(line.get_xdata()) for line in dots] == [accuracies()[kind][task] for kind in KINDS]
        dotted = [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == ":"]
        assert dotted == [guess[task]]
        means = [line.get_xdata()[0] for line in axes.lines if line.get_linewidth() == 1.8]
        assert means == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])
    assert [tick.get_text() for tick in panels[0].get_yticklabels()] == list(KINDS)
    assert panels[0].get_ylim()[0] > panels[0].get_ylim()[1]  # the first kind on top


def test_six_tasks_stand_in_two_rows():
    table = {"full": {f"task {k}": [0.5] for k in range(7)}}
    shown = figures.arena_bars(table, dict.fromkeys(table["full"], 0.5)).figure.axes
    assert [axes.axison for axes in shown] == [True] * 7 + [False]


def test_the_cache_is_two_tables_for_each_layer_and_key_head():
    """2 · 3 layers · 7 heads · 64 numbers · 2048 tokens · 4 bytes = 2^20 · 21 bytes."""
    points = {"few": [(1024, 2**-9)]}
    picture = figures.cache_growth(3, 64, {"all": 7, "few": 1}, [2048, 1024, 4096], 4, measured=points)
    (axes,) = picture.figure.axes
    assert curve(axes, "all") == ([1024, 2048, 4096], pytest.approx([10.5 / 1024, 21 / 1024, 42 / 1024]))
    assert curve(axes, "few")[1] == pytest.approx([1.5 / 1024, 3 / 1024, 6 / 1024])
    marks = [line.get_xydata().tolist() for line in axes.lines if line.get_linestyle() == "None"]
    assert marks == [[[1024, 2**-9]]]
    assert (
        "Marks" in picture.caption and "Marks" not in figures.cache_growth(3, 64, {"all": 7}, [2, 5]).caption
    )
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1 Ki", "2 Ki", "4 Ki"]
    labels = dict(zip(axes.get_yticks(), (tick.get_text() for tick in axes.get_yticklabels()), strict=True))
    assert labels[2.0**-7] == "8 MiB"


@pytest.mark.parametrize(
    "change, message",
    [
        ({"layers": 0}, "layers must be a whole number >= 1, got 0"),
        ({"d_head": "64"}, "d_head must be .* got '64'"),
        ({"bytes_each": True}, "bytes_each must be .* got True"),
        ({"key_heads": {}}, "key_heads must be a dict .* got none"),
        ({"key_heads": {"all": 0}}, r"key_heads\['all'\] must be a whole number >= 1, got 0"),
        ({"tokens": 7}, "tokens must be at least two numbers of tokens, got 7"),
        ({"tokens": [7]}, r"at least two numbers of tokens, got \[7\]"),
        ({"tokens": [7, 1.5]}, "tokens must be a whole number >= 1, got 1.5"),
    ],
)
def test_the_cache_says_what_does_not_fit(change, message, no_shape_hook):
    given = {"layers": 2, "d_head": 3, "key_heads": {"all": 5}, "tokens": [7, 11]} | change
    with pytest.raises(ValueError, match=message):
        figures.cache_growth(**given)


def test_each_query_head_is_joined_to_the_keys_that_it_uses():
    panels = figures.shared_heads(6, [6, 2, 1]).figure.axes
    for axes, count in zip(panels, (6, 2, 1), strict=True):
        ends = {line.get_xdata()[0]: line.get_xdata()[1] for line in axes.lines}
        keys = [(k + 0.5) * 6 / count - 0.5 for k in range(count)]
        assert ends == {head: keys[head * count // 6] for head in range(6)}
        assert len(boxes(axes)) == 6 + 2 * count
        assert axes.get_xlabel() == f"{2 * count} of 12 arrays kept"
    assert [axes.get_title().split("\n")[0] for axes in panels] == [
        "multi-head",
        "grouped-query",
        "multi-query",
    ]
    assert len(figures.shared_heads(4, 2).figure.axes) == 1


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((1, 1), "n_heads must be a whole number from 2 to 16, got 1"),
        ((17, 1), "n_heads must be a whole number from 2 to 16"),
        ((6, 4), r"n_key_heads must divide n_heads=6, got 4; take one of \[1, 2, 3, 6\]"),
        ((6, [6, 0]), "n_key_heads must be a whole number >= 1, got 0"),
        ((6, True), "got True"),
        ((6, None), "a list of 1 to 4 of them, got None"),
        ((6, "3"), "got '3'"),
        ((6, []), r"got \[\]"),
    ],
)
def test_heads_say_what_does_not_fit(arguments, message, no_shape_hook):
    with pytest.raises(ValueError, match=message):
        figures.shared_heads(*arguments)


def test_memory_in_the_ring_has_a_curve_for_each_case_and_the_line_it_should_follow():
    picture = figures.ring_memory(ring_rows([0.0, 8.0, 2.0]))
    (axes,) = picture.figure.axes
    assert curve(axes, "700 tokens, forward") == ([1, 2, 5], [702, 352, 142])
    assert curve(axes, "1,100 tokens, backward too") == ([1, 2, 5], [3302, 1652, 662])
    dashed = [list(line.get_ydata()) for line in axes.lines if line.get_color() == "0.4"]
    assert len(dashed) == 4  # through the marks of two processes
    assert [704, 352, 140.8] in [pytest.approx(ys) for ys in dashed]
    assert len(legend(picture)) == 5 and legend(picture)[-1] == "falls as 1 / processes"
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "2", "5"]
    corners = {tuple(corner) for corner in axes.collections[0].get_paths()[0].vertices.tolist()}
    assert {(1.0, 700.0), (1.0, 708.0)} <= corners


def test_bits_of_shared_keys_are_those_that_were_stored():
    from lesson_lib.chapters.c11_efficient_attention.experiments import shared_keys
    from lesson_lib.experiments import results

    rows = results("shared_keys")["rows"]
    picture = figures.shared_bits()
    (axes,) = picture.figure.axes
    kib, bits = curve(axes, "same layers")
    assert sorted(set(kib)) == [16, 32, 64] and len(kib) == 9
    trained = [row["bits"] for row in rows if row["kind"] == "trained" and row["d_inner"] == 256]
    assert sorted(bits) == sorted(trained)
    wider, its_bits = curve(axes, "feed-forward layers widened")
    assert len(its_bits) == 3 and all(16 < x < 20 for x in wider)
    (line,) = [line for line in axes.lines if line.get_linestyle() == "-"]
    means = shared_keys.means(rows)
    assert list(line.get_ydata()) == pytest.approx([means[heads, 256] for heads in (1, 2, 4)])
    assert [tick.get_text() for tick in axes.get_xticklabels()][-1] == "16 KiB\n1 head of keys"
    assert legend(picture) == ["same layers", "feed-forward layers widened"]


def test_what_part_11b_says_of_shared_keys():
    """Half the cache costs 1.2 % more bits, a quarter 1.6 %; the two overlap."""
    from lesson_lib.chapters.c11_efficient_attention.experiments import shared_keys
    from lesson_lib.experiments import results

    rows = results("shared_keys")["rows"]
    means = shared_keys.means(rows)
    more = [100 * (means[heads, 256] / means[4, 256] - 1) for heads in (2, 1)]
    assert [round(share, 1) for share in more] == [1.2, 1.6]
    assert round(100 * (means[1, 304] / means[4, 256] - 1), 1) == 1.4  # with wider layers
    of = {
        heads: [row["bits"] for row in rows if row["kind"] == "trained" and row["n_key_heads"] == heads]
        for heads in (4, 2, 1)
    }
    assert max(of[4]) < min(of[2] + of[1]) and min(of[1]) < max(of[2])
