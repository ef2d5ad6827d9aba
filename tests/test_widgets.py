"""Widgets without a browser: moving a control changes the drawing; the still picture and its sentence are there."""

import pytest
import torch

from lesson_lib.plots.matrices import EDGE, Matrix, equations
from lesson_lib.widgets import Explorer, SevenStepsExplorer, ShapeExplorer, SoftmaxExplorer
from lesson_lib.widgets.explorer import CSS, number, table

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


def test_a_cell_marks_the_cells_that_it_is_made_from():
    """Score (1, 2) is made from query 1 and key 2; two widgets on a page do not mark each other's cells."""
    one, two = SevenStepsExplorer(), SevenStepsExplorer()
    at = ":has(td.scores0-1:is(:hover, :focus)) td."
    assert f".{one.name}{at}queriesr0" in one.drawing.value and f".{one.name}{at}keysr1" in one.drawing.value
    assert f".{two.name}{at}" not in one.drawing.value
    one.query.value = 2
    assert ":has(td.weighted0-1:is(:hover, :focus)) td.weights2-0" in one.drawing.value


def test_weights_by_hand_give_the_sources_outputs():
    w = SevenStepsExplorer()
    w.kind.index = 2
    assert "output[1, 2] = 0 + 4 + 3 = 7" in w.drawing.value
    w.kind.index = 1
    assert "exp(2/√3)" in w.drawing.value


def test_shapes_start_in_columns_and_switch_to_rows():
    w = ShapeExplorer()
    assert "Q = W_q.mT @ I" in w.drawing.value and "I 10×6" in w.drawing.value and "columns" in w.still().alt
    w.sizes["n"].value = 3
    assert "I 10×3" in w.drawing.value
    w.convention.value = "rows"
    assert "A = Q @ K.mT" in w.drawing.value and "X 3×10" in w.drawing.value and "rows" in w.still().alt


@pytest.mark.parametrize("convention", ["rows", "columns"])
def test_only_edges_that_count_tokens_are_orange(convention):
    w = ShapeExplorer(n=5, d_model=5, d_k=5, d_v=5)  # every width is as long as the sequence
    w.convention.value = convention
    matrices = [part for line in w.equations().values() for part in line if isinstance(part, Matrix)]
    tokens = [side for matrix in matrices for side in (matrix.rows, matrix.columns) if side.axis == "n"]
    assert w.drawing.value.count(EDGE) - CSS.count(EDGE) == len(tokens) < 2 * len(matrices)


@pytest.mark.parametrize("convention", ["rows", "columns"])
def test_every_line_of_code_runs_and_has_the_shapes_drawn(convention):
    n, sizes = 2, {"W_q": (3, 5), "W_k": (3, 5), "W_v": (3, 7)}
    names = {name: torch.rand(size) for name, size in sizes.items()}
    names |= {"X": torch.rand(n, 3), "I": torch.rand(3, n)}
    for code, line in equations(convention, n, 3, 5, 7).items():
        exec(code, names)
        for name, rows, columns in (part for part in line if isinstance(part, Matrix)):
            made = names[name.replace("′", "_prime").removesuffix("ᵀ")]
            made = made.mT if name.endswith("ᵀ") else made
            assert made.shape == (rows.size, columns.size), f"{name} in {code}"
    assert torch.allclose(names["A_prime"].sum(-1 if convention == "rows" else -2), torch.ones(n))


@pytest.mark.parametrize("convention", ["rows", "columns"])
def test_axes_that_meet_in_a_product_are_the_same(convention):
    for line in equations(convention, 2, 3, 5, 7).values():
        if "@" in line:
            result, _, left, _, right = line
            assert left.columns == right.rows and (result.rows, result.columns) == (left.rows, right.columns)


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
