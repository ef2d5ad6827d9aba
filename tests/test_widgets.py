"""Widgets without a browser: moving a control changes the drawing; the still picture and its sentence are there."""

import pytest

from lesson_lib.plots.matrices import equations
from lesson_lib.widgets import Explorer, SevenStepsExplorer, ShapeExplorer, SoftmaxExplorer
from lesson_lib.widgets.explorer import number, table

ALL = [SevenStepsExplorer, ShapeExplorer, SoftmaxExplorer]


@pytest.mark.parametrize("make", ALL)
def test_a_still_picture_stands_for_the_widget(make):
    data, metadata = make()._repr_mimebundle_()
    assert data["image/png"].startswith("iVBOR")
    assert data["text/plain"] == metadata["image/png"]["alt"] and data["text/plain"].endswith(".")
    assert "application/vnd.jupyter.widget-view+json" in data


@pytest.mark.parametrize("make", ALL)
def test_nothing_is_loaded_from_a_network(make):
    drawing = make().drawing.value
    assert "http" not in drawing and "src=" not in drawing and "<script" not in drawing


@pytest.mark.parametrize("make", ALL)
def test_two_widgets_have_different_names(make):
    assert make().name != make().name


def test_softmax_moves():
    w = SoftmaxExplorer()
    assert "0.0634" in w.drawing.value and "0.4683" in w.drawing.value
    w.shift.value = 100
    assert "0.0634" in w.drawing.value and "104" in w.drawing.value  # a shift changes no weight
    w.scale.value = 10.0
    assert "0.0000" in w.drawing.value and "0.5000" in w.drawing.value


@pytest.mark.parametrize("text, words", [("two, 4", "no list of numbers"), ("4", "2 to 12"), ("", "2 to 12")])
def test_softmax_answers_odd_input_with_a_sentence(text, words):
    w = SoftmaxExplorer()
    w.scores.value = text
    assert words in w.drawing.value and "role='alert'" in w.drawing.value


def test_softmax_over_one_score_is_refused():
    with pytest.raises(ValueError, match="always 1"):
        SoftmaxExplorer((1.0,))


def test_steps_go_forward_and_back_and_stop_at_the_ends():
    w = SevenStepsExplorer()
    assert "7 outputs" in w.drawing.value
    w.forward.click()
    assert w.step.value == 7
    w.step.value = 2
    w.back.click()
    w.back.click()
    assert w.step.value == 1 and "3 keys" not in w.drawing.value
    w.play.value = 4
    assert w.step.value == 4 and "4 scores" in w.drawing.value and "5 weights" not in w.drawing.value


def test_a_cell_tells_its_formula_with_numbers():
    w = SevenStepsExplorer()
    assert "score[1, 2] = 1·4 + 0·4 + 2·0 = 4" in w.drawing.value
    assert "key[2, 1] = 0·0 + 2·1 + 0·0 + 2·1 = 4" in w.drawing.value
    assert "weight[1, 1] = exp(2) / (exp(2) + exp(4) + exp(4)) = 0.0634" in w.drawing.value
    assert 'tabindex="0"' in w.drawing.value


def test_weights_by_hand_give_the_sources_outputs():
    w = SevenStepsExplorer()
    w.kind.index = 2
    assert "output[1, 2] = 0 + 4 + 3 = 7" in w.drawing.value
    w.kind.index = 1
    assert "exp(2/√3)" in w.drawing.value


def test_shapes_switch_between_rows_and_columns():
    w = ShapeExplorer()
    assert "Q = X @ W_q" in w.drawing.value and "X 6×10" in w.drawing.value
    w.convention.value = "columns"
    assert "A = K.mT @ Q" in w.drawing.value and "I 10×6" in w.drawing.value
    w.sizes["n"].value = 3
    assert "I 10×3" in w.drawing.value


@pytest.mark.parametrize("convention", ["rows", "columns"])
def test_every_product_fits(convention):
    for line in equations(convention, 2, 3, 5, 7).values():
        result, _, left, _, right = line
        assert left[2] == right[1] and (result[1], result[2]) == (left[1], right[2])


def test_an_unknown_convention_gets_a_sentence():
    with pytest.raises(ValueError, match="'rows' or 'columns', got 'diagonal'"):
        equations("diagonal", 1, 1, 1, 1)


def test_numbers_and_tables():
    assert number(3.0) == "3" and number(-0.001) == "0.00" and number(2.345, 1) == "2.3"
    text = table([[1.0, 2.0]], "scores", tips=[["a < b", "c"]])
    assert "scores (1, 2)" in text and "a &lt; b" in text


def test_a_widget_without_a_drawing_is_named():
    with pytest.raises(TypeError, match=r"must define draw\(\)"):
        Explorer([])
