"""Every exercise: a card, three hints, right answers that pass, slips that are named; and the notebooks say
the same."""

import ast
import re
from itertools import combinations, permutations
from pathlib import Path

import pytest
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from lesson_lib.attention import attend
from lesson_lib.checks import check, judge, store
from lesson_lib.checks.engine import exercises, lessons
from lesson_lib.checks.exercise import Write, edited
from lesson_lib.checks.short_answers import Choice, Number, Open
from lesson_lib.cli.exercise_cells import answer_cell, written_out
from lesson_lib.cli.kinds import chapter_of, fitting
from lesson_lib.cli.sources import ROOT, source_text, split_exercise, targets
from lesson_lib.efficient import attend_part, merge
from lesson_lib.linear import feature_map
from lesson_lib.masks import causal, window
from lesson_lib.positions import rotary
from tests import code_of
from tests.right_answers import RIGHT, WRONG, operations, operations_of_answers

EXERCISES, LESSONS = exercises(), lessons()

SOURCES = Path(__file__).resolve().parents[1] / "notebooks" / "source"
SESSION = {
    "torch": torch, "Bool": Bool, "Float": Float, "Int": Int, "Tensor": Tensor, "permutations": permutations,
    "feature_map": feature_map, "attend": attend, "pad": pad, "F": torch.nn.functional, "MASK": 1,
    "window": window, "causal": causal, "rotary": rotary, "attend_part": attend_part, "merge": merge,
}  # fmt: skip
LESSON_OF = {exercise.name: lesson for lesson, exercises in LESSONS.items() for exercise in exercises}
IN_EXERCISES = [name for name, lesson in LESSON_OF.items() if lesson.startswith("exercises/")]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch, untried):
    monkeypatch.setenv("LESSON_HOME", str(tmp_path))
    monkeypatch.setattr(store, "_unsaved", [])


@pytest.mark.parametrize("name", EXERCISES)
def test_right_answers_pass(name):
    for answer in RIGHT[name]:
        result = check(answer, name)
        if isinstance(EXERCISES[name], Open):
            assert result.state == "written" and "look again" not in result.after, result
        else:
            assert result.passed, result


def test_three_right_answers_or_more_differ_in_an_operation():
    """From the solution and from each other, for every function to write: names and layout are not enough."""
    for name, answers in operations_of_answers():
        if isinstance(EXERCISES[name], Write):
            ways = [operations(ast.parse(EXERCISES[name].text).body[0]), *answers]
            assert len(ways) >= 4, f"{name}: {len(ways) - 1} right answers"
            for one, other in combinations(range(len(ways)), 2):
                assert ways[one] != ways[other], f"{name}: {one} and {other} of (solution, answers) are one"


def test_whole_numbers_in_place_of_real_ones_get_the_repair():
    def stages(n, d, rows):
        return torch.tensor([n * rows * d * d] + n * [rows * d * d])

    assert check(stages, "rnn_stages").diagnosis.endswith(
        "asked for are real numbers; .float() makes them so"
    )
    assert check(lambda *given: stages(*given).float(), "rnn_stages").passed


@pytest.mark.parametrize("name", EXERCISES)
def test_every_slip_is_named(name, no_shape_hook):
    exercise = EXERCISES[name]
    given = WRONG.get(name, exercise.slips.values())
    for slip, answer in zip(exercise.slips, given, strict=True):
        if isinstance(exercise, Write):
            answer = exercise.wrong(slip)
        if isinstance(exercise, Open):  # words are a hint to look again, and no verdict
            result = check(f"Here is what I think about this question in my own words. {answer}", name)
            assert result.state == "written" and slip in result.after["look again"], result
            continue
        result = check(answer, name)
        assert not result.passed and result.diagnosis == slip, result


@pytest.mark.parametrize(
    "edit, words",
    [
        (("no such text", ""), "'no such text' stands 0 times in scaled_attention"),
        (("query", "key"), "stands 3 times"),
        (("dim=-1", "dim=-2", "dim=-1", "dim=0"), "'dim=-1' stands 0 times"),
    ],
)
def test_an_edit_needs_a_text_that_stands_there_once(edit, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        edited(EXERCISES["scaled_attention"].solution, edit)


def test_a_slip_that_fits_by_chance_is_not_named():
    """No turn at all is what "you number the tokens yourself" gives, too, as long as there is one token."""
    result = check(lambda x, positions, frequencies: x, "turned")
    assert not result.passed and result.diagnosis not in EXERCISES["turned"].slips
    assert result.step.startswith("1 of 4") and "2.0000 where -1.2000 is right" in result.diagnosis


@pytest.mark.parametrize("name", [name for name, exercise in EXERCISES.items() if exercise.prediction])
def test_a_prediction_is_complete(name):
    """It is asked where it stands, in a part, and has no hints: its right answer comes at once."""
    asked = EXERCISES[name]
    assert asked.notebook and asked.title and asked.asked and asked.remember and not asked.hints
    assert not re.search(r"(^|\s)\*\w", asked.asked), "a card shows the stars of *emphasis*"
    assert len(asked.slips) >= 2 and len(RIGHT[name]) >= 2
    assert all(text[0] == text[0].lower() for text in asked.slips)


@pytest.mark.parametrize("name", [name for name, exercise in EXERCISES.items() if not exercise.prediction])
def test_a_card_is_complete(name):
    exercise = EXERCISES[name]
    least = 3 if name in IN_EXERCISES else 2  # the first answer of all, in lesson 00, takes two minutes
    assert 1 <= exercise.stars <= 3 and least <= exercise.minutes <= 20
    assert exercise.title and exercise.why and exercise.remember and exercise.asked
    assert len(exercise.hints) == 3 and all("?" in text for text in exercise.hints)
    assert len(exercise.slips) >= 5 and len(RIGHT[name]) >= 2
    assert all(text[0] == text[0].lower() or text[:2] in ("A ", "A'", "K ", "W_") for text in exercise.slips)


CHAPTERS_WITH_ALL = [lesson for lesson in LESSONS if re.match(r"exercises/(0|10|11)", lesson)]


@pytest.mark.parametrize("lesson", CHAPTERS_WITH_ALL)
def test_a_chapter_has_every_kind(lesson):
    """In its notebook of exercises and in its parts."""
    notebooks = fitting(chapter_of(lesson), LESSONS)
    exercises = [e for name in notebooks for e in LESSONS[name] if not e.prediction]
    assert len(exercises) >= 7
    for kind in (Number, Choice, Open, Write):
        assert any(isinstance(exercise, kind) for exercise in exercises)
    written = [exercise for exercise in exercises if isinstance(exercise, Write)]
    assert {exercise.repair for exercise in written} == {True, False}
    assert any(exercise.picture for exercise in LESSONS[lesson] if isinstance(exercise, Choice))


@pytest.mark.parametrize("name", [n for n, e in EXERCISES.items() if isinstance(e, Write)])
def test_the_shown_solution_passes_by_itself(name):
    session = dict(SESSION)
    exec(EXERCISES[name].text, session)
    assert check(session[name]).passed
    assert max(map(len, EXERCISES[name].text.splitlines())) <= 88  # it is read at 800 pixels


def test_no_name_is_asked_for_twice():
    """Else one chapter's question would stand in the other's notebook."""
    names = [exercise.name for own in LESSONS.values() for exercise in own]
    assert sorted(names) == sorted(EXERCISES)


@pytest.mark.parametrize("name", [n for n, e in EXERCISES.items() if isinstance(e, Number)])
def test_the_number_is_told_from_every_slip(name):
    exercise = EXERCISES[name]
    assert check(exercise.value, name).passed and check(exercise.answer, name).passed
    for factor in (0.97, 1.03):
        assert not check(exercise.value * factor, name).passed


@pytest.mark.parametrize("name", [n for n, e in EXERCISES.items() if isinstance(e, Choice)])
def test_every_wrong_letter_has_its_sentence(name):
    exercise = EXERCISES[name]
    assert sorted(exercise.slips.values()) == sorted(set(exercise.options) - {exercise.answer})


def test_no_letter_is_a_good_guess():
    right = [e.answer for e in EXERCISES.values() if isinstance(e, Choice) and e.prediction]
    assert max(right.count(letter) for letter in "abc") < 0.4 * len(right)


@pytest.mark.parametrize("name", [n for n, e in EXERCISES.items() if isinstance(e, Open)])
def test_an_open_answer_is_judged_by_its_writer(name):
    exercise = EXERCISES[name]
    points = len(exercise.rubric)
    assert 3 <= points <= 4 and all("?" in point for point in exercise.rubric)
    assert check("short", name).diagnosis.startswith("that is short")
    turned = f"{exercise.solution} All of this is wrong, the opposite holds."
    for text in (exercise.solution, turned):
        result = check(text, name)
        assert (
            result.state == "written" and not result.passed and result.after["model answer"] == exercise.text
        )
    said = judge(name, *["yes"] * (points - 1), "no")
    assert (said.state, said.diagnosis) == ("judged", f"you judged: {points - 1} of {points}")
    assert not said.passed and store.read()[0][name]["first_pass"] is None


def source(lesson, root=ROOT):
    """A source as a notebook is built from it, answers and stubs between their markers."""
    (target,) = targets([lesson], root=root)
    return source_text(target)


def asks(text, name):
    """Whether a cell of a source asks this exercise."""
    verb = "predict" if EXERCISES[name].prediction else "check"
    return re.search(rf"^{verb}\(.*\b{name}\b", text, re.MULTILINE) is not None


@pytest.mark.parametrize("lesson", LESSONS)
def test_questions_stand_in_the_learner_s_order(lesson):
    """The third one in the notebook is the third one in the file."""
    text, names = source(lesson), [exercise.name for exercise in LESSONS[lesson]]
    places = [re.search(rf"^(predict|check)\(.*\b{name}\b", text, re.M).start() for name in names]
    assert places == sorted(places), [name for _, name in sorted(zip(places, names, strict=True))]


def test_some_notebook_checks_it():
    texts = {lesson: source(lesson) for lesson in LESSONS}
    assert [name for name in EXERCISES if not asks(texts[LESSON_OF[name]], name)] == []


@pytest.mark.parametrize("name", IN_EXERCISES)
def test_a_card_has_its_cells(name):
    text, exercise = source(LESSON_OF[name]), EXERCISES[name]
    number = [e.name for e in LESSONS[LESSON_OF[name]]].index(name) + 1
    head = text.index(
        f"# ## {number} · {exercise.title}\n#\n# `{'★' * exercise.stars} · {exercise.minutes} min"
    )
    call = f"\ncheck({name})\n" if isinstance(exercise, Write) else f'\ncheck({name}, "{name}")\n'
    places = [head, text.index(answer_cell(exercise)), text.index(call)]
    if exercise.picture:
        places.append(text.index(f'\npicture("{name}")'))
    places.append(text.index(f'\n# hint("{name}")'))
    assert places == sorted(places)
    if isinstance(exercise, Choice):
        for letter, option in exercise.options.items():
            assert f"# - {letter}) {option}\n" in text[head : places[1]]


@pytest.mark.parametrize("name", IN_EXERCISES)
def test_the_notebooks_two_faces(name):
    """With answers it passes; without, it is "not attempted yet"."""
    outcomes = []
    for solved in (True, False):
        session = dict(SESSION)
        exec(split_exercise(answer_cell(EXERCISES[name]), solved=solved), session)
        outcomes.append(check(session[name], name).state)
    assert outcomes == ["written" if isinstance(EXERCISES[name], Open) else "passed", "open"]


def test_a_card_without_an_exercise_is_told():
    with pytest.raises(KeyError, match='no exercise is called "scoar"'):
        written_out('# %% [markdown] tags=["exercise:scoar"]\n# What?\n')


def test_what_learners_write_is_what_the_library_does():
    from lesson_lib import positions

    asked = code_of("c05_positional_encoding", "exercises")

    places, x, w = torch.arange(3.0, 10.0), torch.randn(2, 7, 6), positions.frequencies(6).float()
    torch.testing.assert_close(asked.waves(places, 6), positions.sinusoidal(10, 6)[3:])
    torch.testing.assert_close(asked.shift_matrix(2.5, w), positions.rotation(2.5, 6))
    torch.testing.assert_close(asked.turned(x, places, w), positions.rotary(x, 3))


def test_what_learners_write_in_lesson_06_is_what_the_library_does():
    from lesson_lib import blocks

    asked = code_of("c06_transformer", "exercises")

    x, norm = torch.randn(2, 5, 7), blocks.LayerNorm(7)
    torch.testing.assert_close(asked.norm_of_tokens(x, norm.weight, norm.bias, norm.eps), norm(x))
    stack = blocks.Encoder(2, 6, 2, 5, dropout=0.0, norm_first=True)
    parts = []
    for layer in stack.layers:
        parts += [lambda y, a=layer.attention: a(y[None], y[None], y[None]).output[0], layer.feed_forward]
    tokens = torch.randn(3, 6)
    made = asked.pre_norm_stack(tokens, tuple(parts), stack.norm)
    torch.testing.assert_close(made, stack(tokens[None]).output[0])


def test_what_learners_write_in_lesson_07_is_what_the_library_does():
    from torch import nn

    from lesson_lib import convolution

    asked = code_of("c07_attention_vs_cnn", "exercises")
    from lesson_lib.chapters.c07_attention_vs_cnn.vit import patchify

    x, conv = torch.randn(1, 2, 5, 7), nn.Conv2d(2, 3, 3, padding=1, bias=False)
    canvas, d = nn.functional.pad(x[0], (1, 1, 1, 1)), convolution.offsets(5, 7, 1)
    for sharpness in (0.3, 40.0):
        layer = convolution.as_attention(conv, sharpness=sharpness)
        made = asked.nine_heads(canvas.flatten(1).T, d, conv.weight, sharpness)
        torch.testing.assert_close(made.T.reshape(1, 3, 5, 7), layer(x))
    torch.testing.assert_close(made.T.reshape(1, 3, 5, 7), conv(x))

    images, patches = torch.randn(2, 3, 4, 6), nn.Conv2d(3, 5, 2, stride=2, bias=False)
    rows = asked.patch_rows(images, 2) @ patches.weight.flatten(1).T
    torch.testing.assert_close(rows, patches(images).flatten(2).mT)
    torch.testing.assert_close(asked.patch_rows(images, 2), patchify(images, 2))


def test_the_field_of_lesson_07_is_what_gradients_say():
    from torch import nn

    layers = nn.Sequential(*(nn.Conv2d(1, 1, 3, stride=s) for s in (1, 2, 1)))
    x = torch.randn(1, 1, 23, 23, requires_grad=True)
    layers(x)[0, 0, 3, 3].backward()
    assert int((x.grad != 0).sum()) == EXERCISES["pixels_seen"].value


def test_what_learners_write_in_lesson_08_is_what_the_library_does():
    from lesson_lib import linear

    asked = code_of("c08_attention_vs_rnn", "exercises")
    from lesson_lib.recurrent import Recurrent, State

    layer, x, state = Recurrent("GRU", 5, 3), torch.randn(2, 5), torch.randn(2, 3)
    weights = [
        getattr(layer.layer, f"{part}_l0") for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    ]
    made = asked.gru_step(x, state, *weights)
    torch.testing.assert_close(made, layer.step(x, State(state)).hidden)

    query, key, value = torch.randn(131, 3), torch.randn(131, 3), torch.randn(131, 2)
    made = asked.fading_attention(query, key, value, 1.0)
    torch.testing.assert_close(made, linear.attend_linear(query, key, value, causal=True))
    outer = linear.feature_map(key)[:, :, None] * value[:, None]  # its states are a recurrence, too
    states = asked.states_at_once(torch.full((131, 6), 0.9), outer.flatten(1)).unflatten(1, (3, 2))
    sums = asked.states_at_once(torch.full((131, 3), 0.9), linear.feature_map(key))
    read = (linear.feature_map(query)[:, None] @ states)[:, 0] / (linear.feature_map(query) * sums).sum(-1)[
        :, None
    ]
    torch.testing.assert_close(asked.fading_attention(query, key, value, 0.9), read)


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

    before = linear.LinearState(torch.tensor([[100.0], [40.0]]), torch.tensor([4.0, 2.0]))
    query, key, value = torch.tensor([0.0, 1.0]), torch.tensor([1.0, 0.0]), torch.tensor([42.0])
    output, _ = linear.step(query, key, value, before)
    assert output.item() == pytest.approx(EXERCISES["from_the_state"].value)

    keys = torch.randn(8, 64)
    _, state = linear.step(keys, keys, keys)
    kept = 2 * 8 * 64 * 1000 / (state.S.numel() + state.z.numel())
    assert kept == pytest.approx(EXERCISES["cache_and_state"].value)


def test_the_ways_of_lesson_08_are_those_of_the_right_letter():
    asked = code_of("c08_attention_vs_rnn", "exercises")

    found = asked.units_on_the_way()
    numbers = [int(part) for part in re.findall(r"\b\d+\b", EXERCISES["way_to_the_last"].options["c"])]
    assert [units[-1] for units in found.values()] == numbers == [8, 6, 18, 1]
    assert all(units == sorted(units) and len(units) == asked.TOKENS for units in found.values())


def test_the_rounds_of_lesson_08_are_counted():
    asked = code_of("c08_attention_vs_rnn", "exercises")

    a, b = torch.rand(64, 1, requires_grad=True), torch.rand(64, 1, requires_grad=True)
    assert asked.longest_chain(asked.states_at_once(a, b)) == 6
    assert asked.longest_chain(asked._one_by_one(a, b)) == 63


def test_what_learners_write_in_lesson_10_is_what_the_library_does():
    from lesson_lib import graphs, masks

    asked = code_of("c10_graph_attention", "exercises")

    for n, radius in ((7, 2), (5, 11), (3, 0), (1, 4)):
        assert torch.equal(masks.from_edges(asked.path_edges(n, radius), n), masks.window(n, radius))

    edges = asked.path_edges(7, 2)
    # one way here and there, and nobody to see for 4
    edges = edges[:, (edges[0] != edges[1]) & (edges[1] != 4)]
    query, key, value = torch.randn(7, 3, 5), torch.randn(7, 3, 5), torch.randn(7, 3, 2)
    output, weights = graphs.attend_edges(query, key, value, edges)
    scores = (query[edges[1]] * key[edges[0]]).sum(-1) / 5**0.5
    torch.testing.assert_close(asked.softmax_over_edges(scores, edges, 7), weights)
    for head in range(3):
        made = asked.sum_of_messages(value[:, head], weights[:, head], edges)
        torch.testing.assert_close(made, output[:, head])
        made = asked.attend_to_known(query[:, head], key[:, head], value[:, head], masks.from_edges(edges, 7))
        torch.testing.assert_close(made, output[:, head])
    assert (output[4] == 0).all()

    there = torch.tensor([[0, 0, 1, 3, 3, 5], [1, 2, 2, 4, 5, 6]])
    edges = graphs.self_loops(torch.cat([there, there.flip(0)], 1), 7)
    linked = masks.from_edges(edges, 7).float()
    gcn = linked.sum(1).rsqrt()[:, None] * linked * linked.sum(1).rsqrt()
    scores = asked.gcn_scores(edges, 7)[:, None]
    made = asked.softmax_over_edges(scores, edges, 7)[:, 0]
    x = torch.randn(7, 2)
    torch.testing.assert_close(asked.sum_of_messages(x, made, edges) * gcn.sum(1, keepdim=True), gcn @ x)


def test_the_node_of_lesson_10_gets_what_attend_gives():
    from lesson_lib.masks import from_edges

    mask = from_edges(torch.tensor([[1, 2, 3, 0], [0, 0, 0, 4]]), 5)
    text = (SOURCES / "exercises/10_graph_attention.py").read_text("utf-8")
    rows = {
        row[0]: row[1:]
        for row in ([c.strip() for c in line.split("|")[1:-1]] for line in re.findall(r"# (\|.*\|)", text))
    }
    exps = torch.tensor([float(cell[3:]) if "ln" in cell else 1.0 for cell in rows["score"]])
    assert rows["score"][1] == "0"
    value = torch.tensor([[float(cell)] for cell in rows["value"]])
    output = attend(value, value, value, score=lambda q, k: exps.log().expand(5, 5), mask=mask).output
    assert output[0].item() == pytest.approx(EXERCISES["three_neighbours"].value)


def test_the_lonely_node_of_lesson_10_is_what_three_programs_say():
    asked = code_of("c10_graph_attention", "exercises")

    found = [weights[-1] for weights in asked.three_programs().values()]
    for row, right in zip(found, (0.2, 0.2, 0.0), strict=True):
        torch.testing.assert_close(row, row.new_full((5,), right))
    among = [(weights[:4] * ~asked.LINKED[:4]).sum(1).min() for weights in asked.three_programs().values()]
    assert among[0] > 0.1 and among[1] == among[2] == 0  # strangers' share


def test_a_mix_of_classes_is_the_worst_case_as_lesson_10_says():
    """Share of nodes told by the best line: on their own features, and on the mean of their neighbours'."""
    from lesson_lib.chapters.c10_graph_attention.graphs import opposites
    from lesson_lib.masks import from_edges

    def told(x, y):
        x = torch.cat([x, x.new_ones(len(x), 1)], 1)
        line = torch.linalg.lstsq(x, 2.0 * y[:, None] - 1).solution
        return ((x @ line)[:, 0] > 0).eq(y == 1).float().mean().item()

    for within, worse in ((0.1, False), (0.5, True), (0.9, False)):
        task = opposites(0, 2000, within=within)
        mask = from_edges(task.edge_index, 2000).float()
        mean = mask @ task.x / mask.sum(1, keepdim=True).clamp(min=1)
        assert (told(mean, task.y) < told(task.x, task.y) - 0.1) == worse
        assert (told(mean, task.y) > told(task.x, task.y) + 0.1) == (not worse)


@pytest.mark.parametrize(
    "name, answer",
    [
        ("path_edges", lambda n, radius: [[0], [0]]),
        ("path_edges", lambda n, radius: "edges"),
        ("path_edges", lambda n, radius: torch.zeros(2, 0, dtype=torch.int64)),
        ("path_edges", lambda n, radius: torch.zeros(7)),
        ("gcn_scores", lambda edge_index, n: edge_index[0].tolist()),
        ("gcn_scores", lambda edge_index, n: edge_index),
        ("gcn_scores", lambda edge_index, n: torch.ones(n)),
    ],
)
def test_an_odd_answer_of_lesson_10_gets_a_sentence(name, answer):
    """Their checks look at answers through glasses, `seen`: these must let everything pass that is no list of
    edges, no scores."""
    result = check(answer, name)
    assert result.state == "failed" and result.diagnosis


def test_what_learners_write_in_lesson_09_is_what_the_library_does():
    from lesson_lib import masks, measure, truncated

    asked = code_of("c09_truncated_attention", "exercises")

    n, radius = 23, 3
    q, k, v = torch.randn(n, 5), torch.randn(n, 5), torch.randn(n, 2)
    expected = truncated.attend_window(q, k, v, radius)
    torch.testing.assert_close(asked.near_blocks(q, k, v, radius), expected)
    torch.testing.assert_close(asked.block_by_block(q, k, v, radius, 7), expected)
    i = torch.arange(n)
    assert torch.equal(asked.dilated_window(i, i, radius, 1), masks.window(n, radius))

    x, layers = torch.randn(n, 2), torch.zeros(n, n, dtype=torch.long)
    for depth in range(8):  # heard is what the output depends on

        def stack(x, depth=depth):
            for _ in range(depth):
                x = truncated.attend_window(x, x, x, radius)
            return x

        layers += measure.sensitivity(stack, x) == 0
    made = asked.layers_until(i.repeat_interleave(n), i.repeat(n), radius, radius)
    assert torch.equal(made.view(n, n), layers)


def test_the_numbers_of_lesson_09_are_what_tensors_and_masks_say():
    asked = code_of("c09_truncated_attention", "exercises")

    table = torch.empty(6, 360_000, 360_000, device="meta")
    assert table.nbytes / 2**30 == pytest.approx(EXERCISES["table_for_an_hour"].value)

    i = torch.arange(120)  # frames of 10 ms; what frame 0 needs, layer by layer
    needed = i == 0
    ahead = (i >= i[:, None]) & (i <= i[:, None] + 3 * 2) & ((i - i[:, None]) % 2 == 0)  # 3 tokens of 20 ms
    for _ in range(6):
        needed = ahead[needed].any(0)
    for _ in range(2):
        needed = ((i >= i[:, None]) & (i <= i[:, None] + 4))[needed].any(0)
    assert 10 * int(needed.nonzero().max()) == EXERCISES["streaming_latency"].value

    found = asked.full_masked_window()
    (full, full_mib), (masked, masked_mib), (near, near_mib) = found.values()
    assert full == masked and all(mib > 1.05 * other for mib, other in zip(masked_mib, full_mib, strict=True))
    assert near[-1] < 0.1 * full[-1] and near_mib[-1] < 0.1 * full_mib[-1]
    assert near[-1] / near[0] < 1.1 * asked.FRAMES[-1] / asked.FRAMES[0]


def test_what_learners_write_in_lesson_11_is_what_the_library_does():
    from lesson_lib import efficient, heads

    asked = code_of("c11_efficient_attention", "exercises")

    n, m, d_k, d_v = 3, 11, 5, 2
    query, key, value = torch.randn(n, d_k), torch.randn(m, d_k), torch.randn(m, d_v)
    one, other = (efficient.attend_part(query, k, v) for k, v in ((key[:4], value[:4]), (key[4:], value[4:])))
    merged = efficient.merge(one, other)
    torch.testing.assert_close(asked.merge_two(*one, *other), tuple(merged))
    torch.testing.assert_close(merged.output, attend(query, key, value).output)
    nobody = efficient.Partial(torch.zeros(n, d_v), torch.full((n,), -torch.inf))
    torch.testing.assert_close(asked.merge_two(*nobody, *one), tuple(one))
    torch.testing.assert_close(asked.merge_two(*nobody, *nobody), tuple(nobody))
    for tile in (1, 4, 11, 17):
        made = asked.one_pass(query @ key.mT / d_k**0.5, value, tile)
        torch.testing.assert_close(made, efficient.attend_tiles(query, key, value, tile=tile))

    layer, x = heads.MultiHeadAttention(12, 6, n_key_heads=2), torch.randn(7, 12)
    layer.w_output.weight.data = torch.eye(12)
    q, k, v = (
        heads.split_heads(w(x), h) for w, h in ((layer.w_query, 6), (layer.w_key, 2), (layer.w_value, 2))
    )
    torch.testing.assert_close(heads.merge_heads(asked.grouped_query(q, k, v)), layer(x, x, x).output)
    referee = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], enable_gqa=True)[0]
    torch.testing.assert_close(asked.grouped_query(q, k, v), referee)

    low = efficient.LowRank(m, 3)
    query = torch.randn(m, d_k)
    made = asked.low_rank(query, key, value, low.mix_keys, low.mix_values)
    torch.testing.assert_close(made, low(query, key, value))


def test_the_numbers_of_lesson_11_are_what_tensors_say():
    from lesson_lib.heads import Cache, MultiHeadAttention

    with torch.device("meta"):
        layer, cache = MultiHeadAttention(32 * 128, 32, n_key_heads=8).half(), Cache()
        x = torch.empty(3, 32 * 128, dtype=torch.half)
        layer(x, x, x, cache=cache, weights=False)
    per_token = (cache.key.nbytes + cache.value.nbytes) / 3
    assert 32 * per_token * 131_072 / 2**30 == EXERCISES["cache_of_groups"].value

    share = 2**20 // EXERCISES["ring_machines"].value
    own = [torch.empty(share, 512, device="meta") for _ in ("query", "key", "value", "output")]
    blocks = [torch.cat(own[1:3], -1) for _ in ("here", "coming")]
    assert sum(x.nbytes for x in own + blocks) == 2**30


def test_the_methods_of_lesson_11_are_those_of_the_right_letter():
    asked = code_of("c11_efficient_attention", "exercises")

    found = asked.what_they_can()
    letters = dict(zip("TWLRE", ("tiles", "window", "low rank", "random features", "edges"), strict=True))
    assert list(found) == list(letters.values())
    named = EXERCISES["which_method"].options[EXERCISES["which_method"].answer].split("; ")
    for question, said in enumerate(named):
        assert [letter for letter, name in letters.items() if found[name][question]] == re.findall(
            r"\b[A-Z]\b", said
        )
    assert len(named) == len(asked.QUESTIONS)


def test_the_future_is_in_every_mixture_as_lesson_11_says():
    from lesson_lib.efficient import LowRank
    from lesson_lib.measure import sensitivity

    low, x = LowRank(8, 3), torch.randn(8, 4)
    mask = torch.ones(8, 3, dtype=torch.bool).tril()
    seen = sensitivity(lambda x: attend(x, low.mix_keys @ x, low.mix_values @ x, mask=mask).output, x)
    assert (seen[:, 5] > 0).all()


@pytest.mark.parametrize("highest", ["scores.amax(1, keepdim=True)", "scores[:, :].logsumexp(1, True)"])
def test_a_pass_that_reads_all_keys_at_once_is_told_so(highest):
    """The sums go tile by tile, the maximum does not; and one that has no such line passes."""
    text = EXERCISES["one_pass"].text
    for line, state in (
        ("new = torch.maximum(top, part.amax(1, keepdim=True))", "passed"),
        (f"new = {highest}", "failed"),
    ):
        session = dict(SESSION)
        exec(text.replace("new = torch.maximum(top, part.amax(1, keepdim=True))", line), session)
        result = check(session["one_pass"])
        assert result.state == state
    assert "ALL keys at once" in result.diagnosis


merged = EXERCISES["merge_two"].solution


def _two_passes(scores: Tensor, value: Tensor, tile: int) -> Tensor:
    """The maxima of all tiles first; each tile is read twice."""
    top = torch.stack([s.amax(1) for s in scores.split(tile, 1)]).amax(0)[:, None]
    total = sum((s - top).exp().sum(1, keepdim=True) for s in scores.split(tile, 1))
    mixed = sum((s - top).exp() @ v for s, v in zip(scores.split(tile, 1), value.split(tile), strict=True))
    return mixed / total


def _row_by_row(scores: Tensor, value: Tensor, tile: int) -> Tensor:
    """One pass for each query, one query after the other."""
    solution = EXERCISES["one_pass"].solution
    return torch.cat([solution(scores[i : i + 1], value, tile) for i in range(len(scores))])


def test_a_second_pass_is_told_and_one_for_each_query_is_none():
    result = check(_two_passes, "one_pass")
    assert result.state == "failed" and "read again after a later one" in result.diagnosis
    assert check(_row_by_row, "one_pass").passed


@pytest.mark.parametrize(
    "answer, words",
    [
        (lambda a, x, b, y: (a, x, b), "a tuple of 3"),
        (lambda a, x, b, y: (x, a), "in this order: return output, log_sum"),
        (lambda a, x, b, y: (a, x[:, None]), "two tensors"),
        (lambda a, x, b, y: (a.numpy(), x.numpy()), "a numpy array"),
        (lambda a, x, b, y: (a, None), "a tuple of 2"),
        (lambda a, x, b, y: {"output": a}, "a dictionary"),
        (lambda a, x, b, y: (a.double(), x), "numbers differ"),  # float64 is fine, the numbers are not
        (lambda *given: torch.cat([x.reshape(len(x), -1) for x in merged(*given)], 1), "one tensor"),
        (lambda a, x, b, y: (a, x - torch.inf), "holds inf"),
        (lambda a, x, b, y: ((a + b) / 2, x + y), "that is the plain mean of both outputs"),  # both are wrong
    ],
)  # fmt: skip
def test_an_odd_merge_of_lesson_11_gets_a_sentence(answer, words):
    result = check(answer, "merge_two")
    assert result.state == "failed" and words in result.diagnosis
    assert isinstance(repr(result), str) and result._repr_html_()


@pytest.mark.parametrize("condition, state", [("j >= 0", "failed"), ("i >= 0", "open"), ("j < n", "failed")])
def test_a_repair_of_near_blocks_that_changes_nothing_is_called_so(condition, state):
    text = EXERCISES["near_blocks"].text.replace("(0 <= j) & (j < n)", f"({condition})")
    session = dict(SESSION)
    exec(text, session)
    result = check(session["near_blocks"])
    assert result.state == state and ("as it was given" in result.diagnosis) == (state == "open")


def test_the_tables_of_lesson_01_are_those_that_are_judged():
    asked = code_of("c01_history", "exercises")

    text = (SOURCES / "exercises/01_history.py").read_text("utf-8")
    rows = [[cell.strip(" *") for cell in line[3:-1].split("|")] for line in re.findall(r"# \|.*\|", text)]
    start = next(i for i, row in enumerate(rows) if tuple(row[1:]) == asked.READ)
    shown = rows[start + 2 : start + 2 + len(asked.WRITTEN)]
    assert [row[0] for row in shown] == list(asked.WRITTEN)
    assert [[float(cell) for cell in row[1:]] for row in shown] == [list(row) for row in asked.ALIGNMENT]
    torch.testing.assert_close(torch.tensor(asked.ALIGNMENT).sum(1), torch.ones(len(asked.WRITTEN)))

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
        assert asked.best_share(seen, tags).item() == pytest.approx(share)
    assert check(asked.best_share(seen, tags), "word_before").diagnosis.startswith(
        "that sees the word before"
    )


def _written_by_hand(text: str, folder) -> dict:
    """What a cell with that text defines, with a source that can be read, as in a notebook."""
    path = folder / "cell.py"
    path.write_text(text, encoding="utf-8")
    session = dict(SESSION)
    exec(compile(text, str(path), "exec"), session)
    return session


@pytest.mark.parametrize("turned", [False, True])
def test_a_repair_of_the_wrong_line_is_not_called_untouched(turned, tmp_path):
    """Where the first inputs are zeros it looks like the function as it was given."""
    text = EXERCISES["gru_step"].start
    line = "n = torch.tanh(r * new_n + old_n)" if turned else "n = torch.tanh(new_n + r * old_n)  # so?"
    text = text.replace("n = torch.tanh(new_n + r * old_n)", line)
    result = check(_written_by_hand(text, tmp_path)["gru_step"])
    assert result.state == ("failed" if turned else "open")
    assert ("as it was given" in result.diagnosis) == (not turned)


def test_a_repair_that_changes_no_result_is_an_attempt(tmp_path):
    """Code is compared as well as results: masked_fill(..., 0.0) does what the given line does."""
    given = EXERCISES["attend_to_known"].start
    text = given.replace("scores * knows", "scores.masked_fill(~knows, 0.0)")
    result = check(_written_by_hand(text, tmp_path)["attend_to_known"])
    assert result.state == "failed" and "what you changed changes no result yet" in result.diagnosis, text


def test_a_mistake_that_fails_where_the_answer_is_right_is_not_named():
    """One highest score for the whole graph gives 0/0 at a low node, and looks there like other mistakes; but
    where scores are small it is right, and they are not."""

    def softmax_over_edges(scores, edge_index, n):
        weights = (scores - scores.max()).exp()
        total = torch.zeros(n, scores.shape[1]).index_add(0, edge_index[1], weights)
        return torch.nan_to_num(weights / total[edge_index[1]])

    result = check(softmax_over_edges)
    assert not result.passed and "your softmax runs over all edges" not in result.diagnosis, result


def test_a_mistake_that_is_made_once_is_not_named():
    """One of the inputs shows it; but it would show on others, too, where the answer is right."""
    unscaled = EXERCISES["scaled_attention"].wrong("you forgot to divide by sqrt(d_k)")

    def answer(query, key, value):
        return unscaled(query, key, value) if len(query) == 1 else attend(query, key, value).output

    result = check(answer, "scaled_attention")
    assert not result.passed and result.diagnosis not in EXERCISES["scaled_attention"].slips, result
