"""Every exercise: a card, three hints, right answers that pass, slips that are named; and the notebooks say the same."""

import ast
import inspect
import re
import textwrap
import time
from itertools import permutations
from pathlib import Path

import pytest
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lesson_lib.checks import check, store
from lesson_lib.checks.engine import EXERCISES, LESSONS
from lesson_lib.checks.exercise import Choice, Number, Open, Write
from lesson_lib.checks.inputs import source_of
from lesson_lib.linear import feature_map

SOURCES = Path(__file__).resolve().parents[1] / "notebooks" / "source"
SESSION = {
    "torch": torch,
    "Bool": Bool,
    "Float": Float,
    "Int": Int,
    "Tensor": Tensor,
    "permutations": permutations,
    "feature_map": feature_map,
}
RIGHT = [(name, i) for name, exercise in EXERCISES.items() for i in range(len(exercise.right))]
SLIPS = [(name, slip) for name, exercise in EXERCISES.items() for slip in exercise.slips]
LESSON_OF = {exercise.name: lesson for lesson, exercises in LESSONS.items() for exercise in exercises}
IN_EXERCISES = [name for name, lesson in LESSON_OF.items() if lesson.startswith("exercises/")]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("LESSON_HOME", str(tmp_path))
    monkeypatch.setattr(store, "_unsaved", [])


@pytest.mark.parametrize("name, number", RIGHT)
def test_a_right_answer_passes(name, number):
    start = time.process_time()
    result = check(EXERCISES[name].right[number], name)
    assert result.passed, result
    assert time.process_time() - start < 2  # of the processor: a busy machine does not matter


@pytest.mark.parametrize("name, slip", SLIPS)
def test_every_slip_is_named(name, slip):
    start = time.process_time()
    result = check(EXERCISES[name].slips[slip], name)
    assert not result.passed and result.diagnosis == slip, result
    assert time.process_time() - start < 2  # of the processor: a busy machine does not matter


@pytest.mark.parametrize("name", EXERCISES)
def test_a_card_is_complete(name):
    exercise = EXERCISES[name]
    assert 1 <= exercise.stars <= 3 and 1 <= exercise.minutes <= 20
    assert exercise.title and exercise.why and exercise.remember and exercise.asked
    assert len(exercise.hints) == 3 and all("?" in text for text in exercise.hints)
    assert len(exercise.slips) >= 5 and len(exercise.right) >= 2
    assert all(text[0] == text[0].lower() or text[:2] in ("A ", "A'", "K ", "W_") for text in exercise.slips)


@pytest.mark.parametrize(
    "lesson, least",
    [
        ("exercises/01_history", 7),
        ("exercises/02_scoring", 5),
        ("exercises/03_matrix_form", 4),
        ("exercises/04_multi_head", 5),
        ("exercises/05_positional_encoding", 6),
        ("exercises/06_transformer", 8),
        ("exercises/07_attention_vs_cnn", 7),
        ("exercises/08_attention_vs_rnn", 8),
    ],
)
def test_a_lesson_has_every_kind(lesson, least):
    exercises = LESSONS[lesson]
    assert len(exercises) >= least
    for kind in (Number, Choice, Open, Write):
        assert any(isinstance(exercise, kind) for exercise in exercises)
    written = [exercise for exercise in exercises if isinstance(exercise, Write)]
    assert any(exercise.given for exercise in written) and any(not exercise.given for exercise in written)
    assert all(exercise.picture for exercise in exercises if isinstance(exercise, Choice))


@pytest.mark.parametrize("name", [n for n, e in EXERCISES.items() if isinstance(e, Write)])
def test_the_shown_solution_passes_by_itself(name):
    session = dict(SESSION)
    exec(EXERCISES[name].solution, session)
    assert check(session[name]).passed


@pytest.mark.parametrize("name", [n for n, e in EXERCISES.items() if isinstance(e, Number)])
def test_the_number_is_told_from_every_slip(name):
    exercise = EXERCISES[name]
    assert check(exercise.value, name).passed
    for factor in (0.97, 1.03):
        assert not check(exercise.value * factor, name).passed


@pytest.mark.parametrize("name", [n for n, e in EXERCISES.items() if isinstance(e, Choice)])
def test_every_wrong_letter_has_its_sentence(name):
    exercise = EXERCISES[name]
    wrong = set(exercise.options) - {answer.strip(" ().").lower() for answer in exercise.right}
    assert sorted(exercise.slips.values()) == sorted(wrong)


@pytest.mark.parametrize("name", [n for n, e in EXERCISES.items() if isinstance(e, Open)])
def test_an_open_answer_needs_each_point(name):
    exercise = EXERCISES[name]
    assert check(exercise.solution, name).passed  # the model answer satisfies its own check
    assert check("short", name).diagnosis.startswith("that is short")
    blank = "this text has quite enough words but says really very little on what you wanted from it here"
    assert check(blank, name).diagnosis.startswith("one thing is missing")
    assert set(exercise.wrong) == set(exercise.slips)


def cells(lesson):
    return (SOURCES / f"{lesson}.py").read_text(encoding="utf-8").split("\n# %%")


def answered(name):
    """The code cell of an exercise's source that holds its answer."""
    found = [
        c for c in cells(LESSON_OF[name]) if "### BEGIN SOLUTION" in c and re.search(rf"\b{name}\b( =|\()", c)
    ]
    assert len(found) == 1, f"{name} needs one cell with a solution region"
    return found[0].split("\n", 1)[1]


@pytest.mark.parametrize("name", EXERCISES)
def test_some_notebook_checks_it(name):
    assert re.search(
        rf"^check\(.*\b{name}\b", (SOURCES / f"{LESSON_OF[name]}.py").read_text("utf-8"), re.MULTILINE
    )


@pytest.mark.parametrize("name", IN_EXERCISES)
def test_the_notebook_asks_and_checks(name):
    text = "\n# %%".join(cells(LESSON_OF[name]))
    exercise = EXERCISES[name]
    call = f"\ncheck({name})\n" if isinstance(exercise, Write) else f'\ncheck({name}, "{name}")\n'
    assert call in text and f'# hint("{name}")' in text and f'# solution("{name}")' in text
    assert f"{'★' * exercise.stars} · {exercise.minutes} min · " in text
    assert ("\npicture(" in text) == any(e.picture for e in LESSONS[LESSON_OF[name]])
    if isinstance(exercise, Choice):
        for letter, option in exercise.options.items():
            assert f"# - {letter}) {option}\n" in text


@pytest.mark.parametrize("name", IN_EXERCISES)
def test_the_notebooks_two_faces(name):
    """With answers it passes; without, it is "not attempted yet"."""
    lines = answered(name).splitlines()
    begin, end = ([line.strip() for line in lines].index(f"### {w} SOLUTION") for w in ("BEGIN", "END"))
    solved = [line for line in lines if not line.strip().startswith("###")]
    stubbed = [line for i, line in enumerate(lines) if not begin <= i <= end]
    stubbed = [re.sub(r"### STUB: ?", "", line) for line in stubbed]
    outcomes = []
    for text in (solved, stubbed):
        session = dict(SESSION)
        exec("\n".join(text), session)
        outcomes.append(check(session[name], name).state)
    assert outcomes == ["passed", "open"]
    if isinstance(EXERCISES[name], Write):
        own = ast.unparse(ast.parse("\n".join(solved)))
        assert own == ast.unparse(ast.parse(EXERCISES[name].solution)), (
            "solution() shows another text than the notebook"
        )


def test_source_of_gives_the_text_of_a_function():
    def f(x):
        return x

    assert source_of(f) == textwrap.dedent(inspect.getsource(f)).rstrip()


def test_what_learners_write_is_what_the_library_does():
    from lesson_lib import positions
    from lesson_lib.checks import lesson_05_code as written

    places, x, w = torch.arange(3.0, 10.0), torch.randn(2, 7, 6), positions.frequencies(6).float()
    torch.testing.assert_close(written.waves(places, 6), positions.sinusoidal(10, 6)[3:])
    torch.testing.assert_close(written.shift_matrix(2.5, w), positions.rotation(2.5, 6))
    torch.testing.assert_close(written.turned(x, places, w), positions.rotary(x, 3))


def test_what_learners_write_in_lesson_06_is_what_the_library_does():
    from lesson_lib import blocks
    from lesson_lib.checks import lesson_06_code as written

    x, norm = torch.randn(2, 5, 7), blocks.LayerNorm(7)
    torch.testing.assert_close(written.norm_of_tokens(x, norm.weight, norm.bias, norm.eps), norm(x))
    stack = blocks.Encoder(2, 6, 2, 5, dropout=0.0, norm_first=True)
    parts = []
    for layer in stack.layers:
        parts += [lambda y, a=layer.attention: a(y[None], y[None], y[None]).output[0], layer.feed_forward]
    tokens = torch.randn(3, 6)
    made = written.pre_norm_stack(tokens, tuple(parts), stack.norm)
    torch.testing.assert_close(made, stack(tokens[None]).output[0])


def test_what_learners_write_in_lesson_07_is_what_the_library_does():
    from torch import nn

    from lesson_lib import convolution
    from lesson_lib.checks import lesson_07_code as written
    from lesson_lib.models.vit import patchify

    x, conv = torch.randn(1, 2, 5, 7), nn.Conv2d(2, 3, 3, padding=1, bias=False)
    canvas, d = nn.functional.pad(x[0], (1, 1, 1, 1)), convolution.offsets(5, 7, 1)
    for sharpness in (0.3, 40.0):
        layer = convolution.as_attention(conv, sharpness=sharpness)
        made = written.nine_heads(canvas.flatten(1).T, d, conv.weight, sharpness)
        torch.testing.assert_close(made.T.reshape(1, 3, 5, 7), layer(x))
    torch.testing.assert_close(made.T.reshape(1, 3, 5, 7), conv(x))

    images, patches = torch.randn(2, 3, 4, 6), nn.Conv2d(3, 5, 2, stride=2, bias=False)
    rows = written.patch_rows(images, 2) @ patches.weight.flatten(1).T
    torch.testing.assert_close(rows, patches(images).flatten(2).mT)
    torch.testing.assert_close(written.patch_rows(images, 2), patchify(images, 2))


def test_the_field_of_lesson_07_is_what_gradients_say():
    from torch import nn

    layers = nn.Sequential(*(nn.Conv2d(1, 1, 3, stride=s) for s in (1, 2, 1)))
    x = torch.randn(1, 1, 23, 23, requires_grad=True)
    layers(x)[0, 0, 3, 3].backward()
    assert int((x.grad != 0).sum()) == EXERCISES["pixels_seen"].value


def test_what_learners_write_in_lesson_08_is_what_the_library_does():
    from lesson_lib import linear
    from lesson_lib.checks import lesson_08_code as written
    from lesson_lib.recurrent import Recurrent, State

    layer, x, state = Recurrent("GRU", 5, 3), torch.randn(2, 5), torch.randn(2, 3)
    weights = [
        getattr(layer.layer, f"{part}_l0") for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    ]
    made = written.gru_step(x, state, *weights)
    torch.testing.assert_close(made, layer.step(x, State(state)).hidden)

    query, key, value = torch.randn(131, 3), torch.randn(131, 3), torch.randn(131, 2)
    made = written.fading_attention(query, key, value, 1.0)
    torch.testing.assert_close(made, linear.attend_linear(query, key, value, causal=True))
    outer = linear.feature_map(key)[:, :, None] * value[:, None]  # its states are a recurrence, too
    states = written.states_at_once(torch.full((131, 6), 0.9), outer.flatten(1)).unflatten(1, (3, 2))
    sums = written.states_at_once(torch.full((131, 3), 0.9), linear.feature_map(key))
    read = (linear.feature_map(query)[:, None] @ states)[:, 0] / (linear.feature_map(query) * sums).sum(-1)[
        :, None
    ]
    torch.testing.assert_close(written.fading_attention(query, key, value, 0.9), read)


def test_the_costs_and_states_of_lesson_08_are_what_torch_counts():
    from lesson_lib import linear, measure
    from lesson_lib.heads import MultiHeadAttention
    from lesson_lib.recurrent import Recurrent

    n, d = EXERCISES["lstm_meets_attention"].value, 48
    x, attention = torch.randn(1, n, d), MultiHeadAttention(d, 3)
    lstm = Recurrent("LSTM", d, d, both_ways=True)
    by_attention, by_lstm = (
        measure.operations(call) for call in (lambda: attention(x, x, x), lambda: lstm(x))
    )
    assert by_attention == by_lstm == 16 * n * d * d

    before = linear.State(torch.tensor([[100.0], [40.0]]), torch.tensor([4.0, 2.0]))
    query, key, value = torch.tensor([0.0, 1.0]), torch.tensor([1.0, 0.0]), torch.tensor([42.0])
    output, _ = linear.step(query, key, value, before)
    assert output.item() == pytest.approx(EXERCISES["from_the_state"].value)

    keys = torch.randn(8, 64)
    _, state = linear.step(keys, keys, keys)
    kept = 2 * 8 * 64 * 1000 / (state.S.numel() + state.z.numel())
    assert kept == pytest.approx(EXERCISES["cache_and_state"].value)


def test_the_ways_of_lesson_08_are_those_of_the_right_letter():
    from lesson_lib.checks.lesson_08 import TOKENS, units_on_the_way

    found = units_on_the_way()
    numbers = [int(part) for part in re.findall(r"\b\d+\b", EXERCISES["way_to_the_last"].options["c"])]
    assert [units[-1] for units in found.values()] == numbers == [8, 6, 18, 1]
    assert all(units == sorted(units) and len(units) == TOKENS for units in found.values())


def test_the_rounds_of_lesson_08_are_counted():
    from lesson_lib.checks import lesson_08_code as written

    a, b = torch.rand(64, 1, requires_grad=True), torch.rand(64, 1, requires_grad=True)
    assert written.longest_chain(written.states_at_once(a, b)) == 6
    assert written.longest_chain(written._one_by_one(a, b)) == 63


def test_the_tables_of_lesson_01_are_those_that_are_judged():
    from lesson_lib.checks.lesson_01 import ALIGNMENT, READ, WRITTEN
    from lesson_lib.checks.lesson_01_code import best_share

    text = (SOURCES / "exercises/01_history.py").read_text("utf-8")
    rows = [[cell.strip(" *") for cell in line[3:-1].split("|")] for line in re.findall(r"# \|.*\|", text)]
    start = next(i for i, row in enumerate(rows) if tuple(row[1:]) == READ)
    shown = rows[start + 2 : start + 2 + len(WRITTEN)]
    assert [row[0] for row in shown] == list(WRITTEN)
    assert [[float(cell) for cell in row[1:]] for row in shown] == [list(row) for row in ALIGNMENT]
    torch.testing.assert_close(torch.tensor(ALIGNMENT).sum(1), torch.ones(len(WRITTEN)))

    counts = [row for row in rows if row[1] in ("saw", "cut")]
    pairs = [(row[:2], tag) for row in counts for tag in range(3) for _ in range(int(row[2 + tag]))]
    tags = torch.tensor([tag for _, tag in pairs])
    for sight, share in (
        (lambda pair: pair, 21 / 25),
        (lambda pair: pair[1:], 17 / 25),
        (lambda pair: pair[:1], 19 / 25),
    ):
        looks = [" ".join(sight(pair)) for pair, _ in pairs]
        seen = torch.tensor([sorted(set(looks)).index(look) for look in looks])
        assert best_share(seen, tags).item() == pytest.approx(share)
    assert check(best_share(seen, tags), "word_before").diagnosis.startswith("that sees the word before")


@pytest.mark.parametrize("turned", [False, True])
def test_a_repair_of_the_wrong_line_is_not_called_untouched(turned):
    """Where the first inputs are zeros it looks like the function as it was given."""

    def gru_step(x, state, W, U, b, c):
        new_r, new_z, new_n = (x @ W.T + b).chunk(3, dim=-1)
        old_r, old_z, old_n = (state @ U.T + c).chunk(3, dim=-1)
        r, z = torch.sigmoid(new_r + old_r), torch.sigmoid(new_z + old_z)
        n = torch.tanh(r * new_n + old_n) if turned else torch.tanh(new_n + r * old_n)
        return (1 - z) * state + z * n

    result = check(gru_step)
    assert (result.state == "failed") == turned
    assert ("as it was given" in result.diagnosis) == (not turned)
