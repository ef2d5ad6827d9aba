"""Pictures: alt text, caption, closed figures, honest errors, the same bytes every time."""

import base64
import inspect
import sys
from pathlib import Path

import pytest
import torch
from matplotlib import pyplot
from matplotlib.colors import LogNorm

from lesson_lib.chapters.c02_scoring.matrices import equations, products, seven_steps
from lesson_lib.charts import CURVES, Picture, heatmap, lines, marks
from lesson_lib.charts.basic import ink
from lesson_lib.charts.picture import canvas, figure
from lesson_lib.cli.figures import write_all
from lesson_lib.trace import example
from lesson_lib.trace import seven_steps as trace

FIGURES = Path(__file__).parents[1] / "figures"
MATRICES = {"W_key": example()["w_key"], "W_query": example()["w_query"], "W_value": example()["w_value"]}


def test_a_picture_shows_as_png_with_alt_text_and_a_caption_under_it(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, **options: shown.append((data, options)))
    heatmap(torch.rand(3, 5), alt="A table.", caption="Read it < twice.")._ipython_display_()
    (image, options), (caption, _) = shown
    assert base64.b64decode(image["image/png"]).startswith(b"\x89PNG")
    assert image["text/plain"] == "A table." == options["metadata"]["image/png"]["alt"]
    assert caption == {"text/html": "<p><em>Read it &lt; twice.</em></p>", "text/plain": "Read it < twice."}


@pytest.mark.parametrize("alt", ["", "no full stop", None, 3])
def test_a_picture_without_a_sentence_is_refused(alt, no_shape_hook):
    with pytest.raises(ValueError, match="alt must be a sentence"):
        Picture(canvas()[0], alt)


def test_no_figure_stays_open():
    heatmap(torch.rand(2, 2), alt="A table.").png()
    assert pyplot.get_fignums() == []


def test_heatmap_writes_numbers_into_small_tables_only_and_never_minus_zero():
    small = heatmap(torch.tensor([[-0.001, 1.0]]), alt="A table.").svg().decode()
    assert ">0.00<" in small and ">1.00<" in small and "-0.00" not in small
    assert ">0.50<" not in heatmap(torch.full((9, 9), 0.5), alt="A table.").svg().decode()


def test_numbers_read_on_every_cell():
    assert ink(0.0) == "white" and ink(1.0) == "black"


@pytest.mark.parametrize("table", [torch.rand(3), torch.rand(2, 3, 5), torch.rand(0, 3), [[1.0]]])
def test_heatmap_of_something_else_gets_a_sentence(table, no_shape_hook):
    with pytest.raises(ValueError, match="two axes"):
        heatmap({"t": table}, alt="A table.")


def test_heatmap_with_too_few_names_gets_a_sentence():
    with pytest.raises(ValueError, match="3 ticks need 3 names, got 2"):
        heatmap(torch.rand(3, 3), alt="A table.", rows=["a", "b"])


@pytest.mark.parametrize("shape", [(2, 3), (3, 3), (30, 9), (2, 40)])
@pytest.mark.parametrize("names", [[""], ["a", "b", "c"]])
def test_a_heatmap_leaves_no_white_around_it(shape, names):
    figure = heatmap({name: torch.rand(shape) for name in names}, alt="Tables.", numbers=False).figure
    figure.draw_without_rendering()
    white = figure.get_size_inches() - figure.get_tightbbox().size
    assert (white < 0.3).all(), f"inches of white beside and above the tables: {white}"


def test_curves_differ_by_more_than_colour():
    picture = lines(
        {"y": {"one": ([1, 2], [1, 2]), "two": ([1, 2], [0, 1], [1, 2], [2, 3])}},
        alt="Two curves.",
        x_axis="x",
    )
    one, two = picture.figure.axes[0].get_lines()
    assert (
        one.get_color() != two.get_color()
        and one.get_marker() != two.get_marker()
        and one.get_linestyle() != two.get_linestyle()
    )
    assert len(picture.figure.axes[0].collections) == 1  # the band from lowest to highest


def test_a_curve_keeps_the_look_that_it_had_in_an_earlier_picture():
    curves = {"one": ([1], [1]), "two": ([1], [2])}
    before = lines({"y": curves}, alt="Two curves.", x_axis="x").figure.axes[0].get_lines()[1]
    picture = lines({"y": {"two": curves["two"]}}, alt="A curve.", x_axis="x", known=list(curves))
    (after,) = picture.figure.axes[0].get_lines()
    assert (after.get_color(), after.get_marker()) == (before.get_color(), before.get_marker())


def test_a_curve_of_unequal_lengths_gets_a_sentence():
    with pytest.raises(ValueError, match="'one' of panel 'y' has 2 xs"):
        lines({"y": {"one": ([1, 2], [1])}}, alt="A curve.", x_axis="x")


def test_colours_are_distinct():
    assert len(set(CURVES)) == len(CURVES) == 8


@pytest.mark.parametrize("step", range(1, 8))
def test_seven_steps_show_what_is_known_so_far(step):
    text = seven_steps(trace(**example()), MATRICES, upto=step).svg().decode()
    known = {"keys": 3, "scores": 4, "weights": 5, "outputs": 7}
    for name, first in known.items():
        assert (f"{first}  {name}" in text) == (step >= first)


def test_seven_steps_out_of_range_get_a_sentence():
    with pytest.raises(ValueError, match=r"1 \.\.\. 7, got 8"):
        seven_steps(trace(**example()), MATRICES, upto=8)
    with pytest.raises(ValueError, match=r"query must be 0 \.\.\. 2, got 3"):
        seven_steps(trace(**example()), MATRICES, query=3)


@pytest.mark.parametrize("sizes", [(6, 10, 4, 5), (16, 16, 16, 16), (1, 16, 1, 16), (16, 1, 16, 1)])
@pytest.mark.parametrize("convention", ["rows", "columns"])
@pytest.mark.parametrize("count", range(1, 7))
def test_products_fit_into_one_figure(convention, sizes, count):
    picture = products(list(equations(convention, *sizes).values())[:count], alt="Products.")
    width, height = picture.figure.get_size_inches()
    assert width == 7.5 and height <= 4.3
    axes = picture.figure.axes[0]
    right, bottom = axes.get_xlim()[1], axes.get_ylim()[0]
    assert all(box.get_x() + box.get_width() <= right and box.get_y() >= bottom for box in axes.patches)


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> dict[str, bytes]:
    """What `make figures` writes: name, content."""
    with torch.device("cpu"):  # as they are computed everywhere
        return {path.name: path.read_bytes() for path in write_all(tmp_path_factory.mktemp("figures"))}


@pytest.mark.skipif(
    sys.platform != "linux", reason="text is laid out a hair differently elsewhere; Linux holds the figures"
)
def test_the_figures_folder_is_what_the_code_draws(written):
    stored = {path.name: path.read_bytes() for path in FIGURES.iterdir()}
    assert written.keys() == stored.keys(), "make figures"
    assert [name for name in written if name.endswith(".svg") and written[name] != stored[name]] == [], (
        "make figures"
    )


def tick_names(axis):
    return {
        tick: text.get_text() for tick, text in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
    }


@pytest.mark.parametrize("low, high", [(1e-250, 1.0), (1e-12, 1e-3), (0.5, 0.9), (1.0, 1.0), (1e-200, 5e8)])
def test_a_logarithmic_axis_has_room_and_few_ticks_and_a_line_for_exactly_zero(low, high):
    axes = canvas()[1][0][0]
    marks.logarithmic_with_zero(axes, [low, high])
    assert axes.get_ylim()[0] < low <= high < axes.get_ylim()[1] and 2 <= len(axes.get_yticks()) <= 10
    assert "exactly 0" not in tick_names(axes.yaxis).values()
    zero = marks.logarithmic_with_zero(axes, [0.0, low, high])
    assert axes.get_ylim()[0] < zero < low and tick_names(axes.yaxis)[zero] == "exactly 0"


@pytest.mark.parametrize(
    "ends, ticks",
    [
        ((0.9, 30), ["1", "2", "5", "10", "20"]),
        ((1, 2e4), ["1", "10", "100", "1,000", "10,000"]),
        ((0.25, 0.55), ["0.3", "0.4", "0.5"]),
    ],
)
def test_plain_ticks_are_neither_few_nor_many(ends, ticks):
    axes = canvas()[1][0][0]
    axes.set_xscale("log")
    marks.plain_ticks(axes, *ends)
    assert list(tick_names(axes.xaxis).values()) == ticks


def test_shares_that_are_exactly_zero_are_left_open_over_hatching():
    axes = canvas()[1][0][0]
    image = marks.draw_shares(axes, torch.tensor([[0.5, 0.0], [1e-9, 1.0]], device="cpu"), LogNorm(1e-9, 1))
    assert image.get_array().mask.tolist() == [[False, True], [False, False]]
    assert axes.patches[0].get_hatch() and image.get_cmap().get_bad()[3] == 0


def test_a_figure_function_draws_into_one_panel_or_returns_its_own():
    @figure("A line.", "One.", width=3.0, height=2.0, title="line", x="n", y="s", legend=1)
    def panel(axes, values):
        axes.plot(values, label="it")

    @figure("Two panels.")
    def own(count):
        return canvas(1, count)[0]

    picture = panel([1, 2])
    (axes,) = picture.figure.axes
    assert (picture.alt, picture.caption, *picture.figure.get_size_inches()) == ("A line.", "One.", 3, 2)
    assert (axes.get_title("left"), axes.get_xlabel(), axes.get_ylabel()) == ("line", "n", "s")
    assert [text.get_text() for text in picture.figure.legends[0].get_texts()] == ["it"]
    assert own(2).alt == "Two panels." and len(own(count=2).figure.axes) == 2
    assert [*inspect.signature(panel).parameters] == ["values"]
    assert inspect.signature(own).return_annotation is Picture
