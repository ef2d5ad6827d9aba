"""Pictures: alt text, caption, closed figures, honest errors, the same bytes every time."""

import base64
import sys
from pathlib import Path

import pytest
import torch
from matplotlib import pyplot

from lesson_lib.plots import CURVES, Picture, bars, heatmap, lines
from lesson_lib.plots.charts import ink
from lesson_lib.plots.files import all_pictures, film, write_all
from lesson_lib.plots.matrices import equations, products, seven_steps
from lesson_lib.plots.picture import canvas
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
def test_a_picture_without_a_sentence_is_refused(alt):
    with pytest.raises(ValueError, match="alt must be a sentence"):
        Picture(canvas()[0], alt)


def test_no_figure_stays_open():
    heatmap(torch.rand(2, 2), alt="A table.").png()
    assert pyplot.get_fignums() == []


def test_heatmap_writes_numbers_into_small_tables_only_and_never_minus_zero():
    small = heatmap(torch.tensor([[-0.001, 1.0]]), alt="A table.").svg().decode()
    assert ">0.00<" in small and ">1.00<" in small and "-0.00" not in small
    assert ">0.50<" not in heatmap(torch.full((9, 9), 0.5), alt="A table.").svg().decode()


def test_heatmap_takes_a_tensor_that_needs_a_gradient_and_a_constant_one():
    heatmap(torch.ones(2, 3, requires_grad=True), alt="A table.").png()


def test_numbers_read_on_every_cell():
    assert ink(0.0) == "white" and ink(1.0) == "black"


@pytest.mark.parametrize("table", [torch.rand(3), torch.rand(2, 3, 5), torch.rand(0, 3), [[1.0]]])
def test_heatmap_of_something_else_gets_a_sentence(table):
    with pytest.raises(ValueError, match="two axes"):
        heatmap({"t": table}, alt="A table.")


def test_heatmap_with_too_few_names_gets_a_sentence():
    with pytest.raises(ValueError, match="3 ticks need 3 names, got 2"):
        heatmap(torch.rand(3, 3), alt="A table.", rows=["a", "b"])


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


def test_a_curve_of_unequal_lengths_gets_a_sentence():
    with pytest.raises(ValueError, match="'one' of panel 'y' has 2 xs"):
        lines({"y": {"one": ([1, 2], [1])}}, alt="A curve.", x_axis="x")


def test_bars_write_their_values_and_marks():
    text = bars({"a": 0.25, "b": 0.75}, alt="Two bars.", y_axis="share", marks={"chance": 0.5}).svg().decode()
    assert ">0.25<" in text and ">chance<" in text


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


@pytest.mark.parametrize("convention", ["rows", "columns"])
def test_products_are_drawn_to_scale(convention):
    line = equations(convention, 2, 3, 5, 7)["A = Q @ K.mT" if convention == "rows" else "A = K.mT @ Q"]
    picture = products([line], alt="A product.", tokens=2)
    boxes = [(p.get_height(), p.get_width()) for p in picture.figure.axes[0].patches]
    assert boxes == [(part[1], part[2]) for part in line if not isinstance(part, str)]


def test_figures_are_the_same_bytes_every_time():
    assert all_pictures()["rows"].svg() == all_pictures()["rows"].svg()
    assert film() == film()


@pytest.mark.skipif(
    sys.platform != "linux", reason="text is laid out a hair differently elsewhere; Linux holds the figures"
)
def test_the_figures_folder_is_what_the_code_draws(tmp_path):
    written = {path.name: path.read_bytes() for path in write_all(tmp_path)}
    stored = {path.name: path.read_bytes() for path in FIGURES.iterdir()}
    assert written.keys() == stored.keys(), "make figures"
    assert [name for name in written if name.endswith(".svg") and written[name] != stored[name]] == [], (
        "make figures"
    )
