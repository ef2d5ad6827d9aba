"""Widgets without a browser: moving a control changes the drawing; the still picture and its sentence are
there."""

import base64
import io
import math
import re

import pytest
import torch
from PIL import Image

from lesson_lib.chapters.c02_scoring.matrices import Matrix, equations
from lesson_lib.chapters.c02_scoring.softmax_explorer import SoftmaxExplorer
from lesson_lib.chapters.c02_scoring.steps_explorer import SevenStepsExplorer
from lesson_lib.chapters.c05_positional_encoding.clocks_explorer import ClockExplorer
from lesson_lib.chapters.c05_positional_encoding.rotation_explorer import RotationExplorer
from lesson_lib.positions import frequencies, rotation, sinusoidal
from lesson_lib.widgets.explorer import number, shade, table
from lesson_lib.widgets.heads import EVERY, HeadExplorer
from tests.explorers import stands_alone

H, N, M = 3, 5, 7  # heads, queries, keys


def some_heads():
    """Three heads over five queries and seven keys: one sharp, one even, one in between; one query of the
    last is blocked."""
    weights = torch.full((H, N, M), 1 / M)
    weights[0] = torch.eye(M)[:N]
    weights[2] = torch.tensor([0.98, 0.02, 0.0, 0.0, 0.0, 0.0, 0.0])
    weights[2, 4] = 0.0
    return HeadExplorer(weights, "abcde", ["itself", "", "first"], keys="tuvwxyz")


ALL = [SevenStepsExplorer, SoftmaxExplorer, some_heads, ClockExplorer, RotationExplorer]


@pytest.mark.parametrize("make", ALL)
def test_a_still_picture_stands_for_it_and_nothing_is_loaded(make):
    assert stands_alone(make)


@pytest.mark.parametrize(
    "make, names",
    [
        (some_heads, ("query", "shown")),
        (ClockExplorer, ("position", "offset")),
        (RotationExplorer, ("position", "offset")),
    ],
)
def test_each_control_alone_moves_the_drawing_to_both_of_its_ends(make, names):
    for name in names:
        w = make()
        control = getattr(w, name)
        ends = (control.min, control.max) if hasattr(control, "min") else (0, H - 1)
        for end in ends:
            before, moved = w.drawing.value, control.value != end
            control.value = end
            assert (w.drawing.value != before) == moved


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


def test_steps_go_forward_and_back_and_stop_at_the_ends():
    w = SevenStepsExplorer()

    def later():
        """How many of the eleven tables are still empty: they keep their room."""
        return w.drawing.value.count("class='ll-later'")

    assert w.step.value == 1 and later() == 10
    w.step.value = 7
    w.forward.click()
    assert w.step.value == 7 and later() == 0
    w.step.value = 2
    w.back.click()
    w.back.click()
    assert w.step.value == 1 and later() == 10
    w.play.value = 4
    assert w.step.value == 4 and later() == 3


def test_a_cell_tells_its_formula_with_numbers():
    w = SevenStepsExplorer()
    w.step.value = 7
    assert "score[1, 2] = 1·4 + 0·4 + 2·0 = 4" in w.drawing.value
    assert "key[2, 1] = 0·0 + 2·1 + 0·0 + 2·1 = 4" in w.drawing.value
    assert "weight[1, 1] = exp(2) / (exp(2) + exp(4) + exp(4)) = 0.0634" in w.drawing.value
    assert 'tabindex="0"' in w.drawing.value


def test_a_cell_marks_the_cells_that_it_is_made_from():
    """Score (1, 2) is made from query 1 and key 2; two widgets on a page do not mark each other's cells."""
    one, two = SevenStepsExplorer(), SevenStepsExplorer()
    one.step.value = two.step.value = 7
    at = ":has(td.scores0-1:is(:hover, :focus)) td."
    assert f".{one.name}{at}queriesr0" in one.drawing.value and f".{one.name}{at}keysr1" in one.drawing.value
    assert f".{two.name}{at}" not in one.drawing.value
    one.query.value = 2
    assert ":has(td.weighted0-1:is(:hover, :focus)) td.weights2-0" in one.drawing.value


def test_weights_by_hand_give_the_sources_outputs():
    w = SevenStepsExplorer()
    w.step.value, w.kind.index = 7, 2
    assert "output[1, 2] = 0 + 4 + 3 = 7" in w.drawing.value
    w.kind.index = 1
    assert "exp(2/√3)" in w.drawing.value


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
    weights, axis = (names["A"], -1) if convention == "rows" else (names["A_prime"], -2)
    assert torch.allclose(weights.sum(axis), torch.ones(n))
    if convention == "rows":
        assert torch.allclose(weights, (names["Q"] @ names["K"].mT / 5**0.5).softmax(-1))


def test_heads_tell_where_they_look():
    w = some_heads()
    assert w.words(0, 2) == "looks at 'v' (place 2) with weight 1.00, no other key"
    assert w.words(1, 0) == "looks at 't' (place 0) with weight 0.14, 6 more share 0.86"
    assert w.words(2, 0) == "looks at 't' (place 0) with weight 0.98, 1 more share 0.02"
    assert w.words(2, 4) == "looks at nothing: this query is allowed no key"
    assert [round(w.effective_keys(h, 0), 4) for h in range(H)] == [1.0, 7.0, 1.103]
    assert w.effective_keys(2, 4) == 0.0
    assert "looks at about 1.1 keys" in w.drawing.value and "looks at about 7.0 keys" in w.drawing.value
    assert "exp(entropy) = exp(−(0.98·ln 0.98 + 0.02·ln 0.02)) = exp(0.10) = 1.1" in w.drawing.value


def test_a_weight_is_never_rounded_to_zero_or_one():
    w = HeadExplorer(torch.tensor([[[0.999, 0.001]]]), ["a"], keys="bc")
    assert w.words(0, 0) == "looks at 'b' (place 0) with weight more than 0.99, 1 more share less than 0.01"


@pytest.mark.parametrize("query", [0, N - 1])
@pytest.mark.parametrize("shown", [EVERY, 0, H - 1])
def test_every_query_of_one_head_and_of_all(query, shown):
    w = some_heads()
    w.shown.value, w.query.value = shown, query
    drawing = w.drawing.value
    assert f"<b>Query {query}, &#x27;{'abcde'[query]}&#x27;</b>, the row" in drawing
    heads = range(H) if shown == EVERY else [shown]
    for head in heads:
        assert w.words(head, query).replace("'", "&#x27;") in drawing
    assert drawing.count('class="ll-query"') == (0 if shown == EVERY else 1)
    assert drawing.count("<svg") == (H if shown == EVERY else 0) and drawing.count("<td><b>") == len(heads)


def test_a_map_has_a_pixel_for_each_weight():
    drawn = re.findall(r'href="data:image/png;base64,([^"]+)"', some_heads().drawing.value)
    first = Image.open(io.BytesIO(base64.b64decode(drawn[0])))
    assert len(drawn) == H and first.size == (M, N)
    pixels = torch.tensor([[sum(first.getpixel((j, i))) for j in range(M)] for i in range(N)])
    assert torch.equal(pixels.argmax(-1), torch.arange(N))  # each query of head 0 looks at its own place


def test_one_head_tells_every_number_and_tab_stops_in_one_row():
    w = some_heads()
    w.shown.value = 2
    assert (
        "query 0, &#x27;a&#x27;, to key 1, &#x27;u&#x27;: weight = exp(score) / sum of exp(scores) of the row"
        " = 0.0200" in w.drawing.value
    )
    # the query's weights, and how many keys it looks at
    assert w.drawing.value.count('tabindex="0"') == M + 1
    assert ">0.98<" in w.drawing.value


def test_the_largest_heads_are_drawn_and_labels_are_escaped():
    w = HeadExplorer(torch.full((12, 24, 24), 1 / 24), ["<i>extraordinary"] * 24, ["a<b"] * 12)
    for w.shown.value in (EVERY, 11):
        assert "<i>" not in w.drawing.value and "a&lt;b" in w.drawing.value
        assert "&lt;i&gt;extrao…" in w.drawing.value
    assert w._repr_mimebundle_()[0]["image/png"]


@pytest.mark.parametrize(
    "weights, labels, words",
    [
        (torch.ones(3, 3) / 3, {}, r"\(heads, queries, keys\) of one sequence, got \(3, 3\)"),
        (torch.ones(13, 3, 3) / 3, {}, "at most 12 heads can be drawn, got 13"),
        (torch.ones(1, 3, 3), {}, "row sums from 3 to 3"),
        (torch.full((1, 3, 3), torch.nan), {}, "must be >= 0"),
        (torch.ones(1, 2, 2) / 2, {}, "2 queries need 2 tokens, got 3"),
        (torch.ones(1, 3, 2) / 2, {}, r"give the keys' labels too"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_heads_that_cannot_be_drawn_get_a_sentence(no_shape_hook, weights, labels, words):
    with pytest.raises(ValueError, match=words):
        HeadExplorer(weights, "abc", **labels)


PLACES = [(0, 0), (3, 5), (100, -50), (0, -50)]
D = 6


@pytest.mark.parametrize("i, delta", PLACES)
@pytest.mark.parametrize("make", [ClockExplorer, RotationExplorer])
def test_codes_are_those_of_sinusoidal_and_before_the_first_token_the_formula_goes_on(make, i, delta):
    w = make(D)
    w.position.value, w.offset.value = i, delta
    code = w.places[i + delta]
    if i + delta >= 0:
        assert torch.equal(code, sinusoidal(151, D, dtype=torch.float64)[i + delta])
    turned = rotation(float(i + delta), D, dtype=torch.float64) @ sinusoidal(1, D, dtype=torch.float64)[0]
    torch.testing.assert_close(code, turned)
    assert ("No token stands at" in w.drawing.value) == (i + delta < 0)
    for column, value in enumerate(code.tolist()):
        name = ("sin", "cos")[column % 2]
        assert f"p[{i + delta}, {column}] = {name}({i + delta} · w_{column // 2})" in w.drawing.value
        assert f"= {number(value, 4)}<" in w.drawing.value
    assert "-0.00<" not in w.drawing.value


def hands(drawing):
    """The ends of the hands, seen from the middle of each clock: of position i, and of position i + δ."""
    middle = [
        float(x) for x in re.search(r'<circle cx="(\d+)" cy="(\d+)" r="(\d+)" fill="#fff"', drawing).groups()
    ]
    ends = re.findall(r'<path d="M\d+ \d+L([\d.]+) ([\d.]+)"', drawing)
    points = [((float(x) - middle[0]) / middle[2], (middle[1] - float(y)) / middle[2]) for x, y in ends]
    return points[::2], points[1::2]


@pytest.mark.parametrize("i, delta", PLACES)
def test_a_hand_ends_at_the_cosine_to_the_right_and_the_sine_upwards(i, delta):
    w = ClockExplorer(D)
    w.position.value, w.offset.value = i, delta
    for place, ends in zip((i, i + delta), hands(w.drawing.value), strict=True):
        expected = [(cos, sin) for sin, cos in w.places[place].unflatten(0, (-1, 2)).tolist()]
        torch.testing.assert_close(torch.tensor(ends), torch.tensor(expected), atol=0.002, rtol=0)


@pytest.mark.parametrize("i, delta", PLACES)
@pytest.mark.parametrize("d", [2, D])
def test_the_matrix_turns_the_code_and_the_dot_product_knows_no_position(d, i, delta):
    w = RotationExplorer(d)
    w.position.value, w.offset.value = i, delta
    assert w.largest_difference() < 1e-12 and "largest difference below 1e-12" in w.drawing.value
    expected = (delta * frequencies(d)).cos().sum().item()
    assert math.isclose(w.dot_product(), expected, abs_tol=1e-12)
    assert f"p[{i}] · p[{i + delta}] = {expected + 0.0:.4f}</b>" in w.drawing.value
    for j, value in enumerate((delta * frequencies(d)).sin().tolist()):
        assert f"R[{2 * j}, {2 * j + 1}] = sin(δ · w_{j})" in w.drawing.value
        assert f"= {number(-value, 4)}<" in w.drawing.value


@pytest.mark.on_cpu
def test_a_difference_that_is_more_than_rounding_is_written():
    w = RotationExplorer(4, base=3e-25)  # a frequency of 2e12: float64 holds few digits of the angle
    assert w.largest_difference() > 1e-9 and "largest difference below" not in w.drawing.value
    assert f"largest difference {w.largest_difference():.1e}" in w.drawing.value


def test_numbers_and_tables():
    assert number(3.0) == "3" and number(-0.001) == "0.00" and number(2.345, 1) == "2.3"
    text = table([[1.0, 2.0]], "scores", tips=[["a < b", "c"]])
    assert "scores (1, 2)" in text and "a &lt; b" in text
    assert "(1, 2)" not in table([[1.0, 2.0]], "scores", shape=False)
    assert shade(0.5) in table([[0.0, 1.0]], "scores", limits=(-1, 1))
