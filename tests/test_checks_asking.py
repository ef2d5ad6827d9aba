"""predict, warm_up, review, second and judge: what is asked, what is kept, what shows without a kernel."""

import asyncio
import json
import re
from dataclasses import replace
from datetime import date, timedelta

import pytest
import torch

from lesson_lib.checks import (
    check,
    engine,
    hint,
    judge,
    picture,
    predict,
    progress,
    reset,
    review,
    second,
    solution,
    store,
    warm_up,
)
from lesson_lib.checks.card import Card, Rubric, Stack
from lesson_lib.checks.exercise import Write
from lesson_lib.checks.find_inputs import Expose
from lesson_lib.checks.schedule import due
from lesson_lib.checks.short_answers import Choice, Number, Word, near_miss

pytestmark = pytest.mark.on_cpu  # a learner's answers are tried there, whatever the lessons compute on

EXERCISES = engine.exercises()
PART = "02a_soft_look_up"
WHICH = Choice(
    name="which_key",
    notebook=PART,
    asked="which key gets more than `half` of the weight?",
    options={"a": "the first", "b": "the second", "c": "none"},
    answer="b",
    slips={
        "the first has the smaller score": "a",
        "exp pulls scores apart: one can have more than half": "c",
    },
    remember="its score is 2 larger, so it has exp(2) = 7.4 times the weight",
)
HOW_MUCH = Number(
    name="how_much",
    notebook=PART,
    asked="how many times as much?",
    value=7.389,
    answer="exp(2)",
    slips={"that is the difference of the scores": 2},
    remember="the ratio of weights is exp of the difference",
)
CALLED = Word(
    name="called",
    notebook=PART,
    asked="what is the function called?",
    answer="softmax",
    also=("soft max",),
    slips={"argmax takes one alone": "argmax"},
    remember="a soft version of the largest",
)
PREDICTIONS = {e.name: e for e in (WHICH, HOW_MUCH, CALLED)}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """An empty store, and a course that has a part with three predictions, too."""
    monkeypatch.setenv("LESSON_HOME", str(tmp_path))
    monkeypatch.setattr(store, "_unsaved", [])
    monkeypatch.setattr(engine, "exercises", lambda: EXERCISES | PREDICTIONS)
    every = {**engine.lessons(), PART: tuple(PREDICTIONS.values())}
    monkeypatch.setattr(engine, "lessons", lambda: every)
    return tmp_path


def on(day: str, monkeypatch) -> None:
    """The store's and the schedule's today."""

    class Fixed(date):
        @classmethod
        def today(cls):
            return cls.fromisoformat(day)

    for module in (store, __import__("lesson_lib.checks.asking", fromlist=["date"])):
        monkeypatch.setattr(module, "date", Fixed)


def said(card: Card) -> str:
    """What a card says now, without marks of HTML."""
    return re.sub(r"<[^>]*>", "", card.feedback.value)


# --- predictions ---


def test_a_wrong_choice_says_what_it_would_mean_and_why_the_right_one_is_right():
    card = predict("which_key")
    (options,) = card.asking.children
    assert options._options_labels == ("a) the first", "b) the second", "c) none") and said(card) == ""
    options.index = 2
    for words in ("✗ Not so", "your answer: c) none", "exp pulls scores apart", "b) the second", "7.4 times"):
        assert words in said(card)
    assert card.asking.children == () and "role='alert'" in card.feedback.value


def test_a_right_choice_says_why():
    card = predict("which_key")
    card.asking.children[0].index = 1
    assert "✓ Right" in said(card) and "7.4 times" in said(card) and "Not so" not in said(card)


@pytest.mark.parametrize(
    "name, wrong, right, words",
    [
        ("how_much", "2", "e**2", "the difference of the scores"),
        ("called", " ArgMax ", "Soft-Max", "takes one alone"),
    ],
)
def test_a_field_takes_a_number_or_a_word(name, wrong, right, words):
    card = predict(name)
    field, button = card.asking.children[0].children
    field.value = wrong
    button.value = True
    assert "Not so" in said(card) and words in said(card)
    reset(name)
    card = predict(name)
    field = card.asking.children[0].children[0]
    field.value = right
    field._handle_custom_msg({"event": "submit"}, [])  # Enter
    assert "✓ Right" in said(card)


def test_enter_waits_for_what_the_browser_held_back(home):
    card = predict("how_much")
    field, _ = card.asking.children[0].children
    there, back = card._typed.there, card._typed.back

    async def enter():
        field.value = "7"
        field._handle_custom_msg({"event": "submit"}, [])  # overtakes the rest
        await asyncio.sleep(0)
        assert card.result is None and there.value == 1
        field.value = "e**2"
        back.value = there.value  # comes behind it
        assert card.result.passed

    asyncio.run(enter())
    assert store.read()[0]["how_much"]["attempts"] == 1


def test_enter_is_heard_where_nothing_comes_back(home, monkeypatch):
    monkeypatch.setattr("lesson_lib.checks.card.RoundTrip.PATIENCE_S", 0.0)
    card = predict("called")
    field, button = card.asking.children[0].children
    field.value = "softmax"

    async def press():
        button.value = True
        await asyncio.sleep(0.05)

    asyncio.run(press())
    assert card.result is not None


@pytest.mark.parametrize("name, typed", [("how_much", "about seven"), ("how_much", ""), ("called", "  ")])
def test_what_cannot_be_read_is_asked_back_and_not_kept(name, typed):
    card = predict(name)
    card.commit(typed)
    assert said(card) and card.asking.children and card.result is None and "quotes" not in said(card)
    assert store.read()[0] == {}


def test_an_answer_is_kept_and_given_once(home):
    predict("which_key").commit("a")
    entry = store.read()[0]["which_key"]
    assert (entry["attempts"], entry["first_pass"], entry["answer"]) == (1, None, "a")
    assert entry["slip"] == "the first has the smaller score"
    again = predict("which_key")
    assert "your answer: a) the first" in said(again) and again.asking.children == ()
    again.commit("b")
    check("b", "which_key")
    assert store.read()[0]["which_key"] == entry, "the first answer stands"
    assert "as if never tried" in repr(reset("which_key"))
    assert predict("which_key").asking.children != ()


def test_a_page_without_a_kernel_has_question_and_fold_whatever_was_answered():
    before = predict("which_key")._repr_mimebundle_()[0]
    predict("which_key").commit("a")
    after = predict("which_key")._repr_mimebundle_()[0]
    assert before["text/html"] == after["text/html"] and before["text/plain"] == after["text/plain"]
    page = before["text/html"]
    assert page.index("more than <code>half</code>") < page.index("<details>") < page.index("exp pulls")
    assert "data-question='which_key' data-kind='choice' data-answer='b'" in page
    assert re.findall(r"data-option='(\w)'", page) == ["a", "b", "c"]
    assert re.findall(r"data-wrong='(\w)'", page) == ["a", "c"]
    assert "<script" not in page and "http" not in page and "src=" not in page
    assert "7.4" not in before["text/plain"] and re.search(r"b\) +the second", before["text/plain"])


def test_what_is_written_or_unknown_is_told():
    assert "check(stable_weights) answers" in repr(predict("stable_weights"))
    assert 'did you mean "which_key"' in repr(predict("wich_key"))
    for odd in (None, 3, [], torch.ones(2)):
        assert "say which exercise" in repr(predict(odd))


def test_a_prediction_has_no_hint_and_is_no_exercise_in_the_tables():
    assert "no hint" in repr(hint("which_key"))
    assert "which_key" not in repr(progress()) and PART not in repr(progress())


# --- what returns ---


def test_with_an_empty_store_nothing_is_asked():
    assert warm_up() is None and "Nothing returns today" in repr(review())


@pytest.mark.parametrize(
    "entry, days",
    [
        ({"attempts": 1, "day": "2026-11-01", "row": 0}, 1),
        ({"attempts": 1, "day": "2026-11-01", "row": 1}, 3),
        ({"attempts": 1, "day": "2026-11-01", "row": 2}, 7),
        ({"attempts": 1, "day": "2026-11-01", "row": 3}, 21),
        ({"attempts": 1, "day": "2026-11-01", "row": 4}, None),
        ({"attempts": 1, "first_pass": None}, None),  # the first version's, without a day
    ],
)
def test_a_question_returns_after_1_3_7_and_21_days(entry, days):
    assert due(entry) == (days and date(2026, 11, 1) + timedelta(days=days))


def test_three_of_what_is_due_return_and_the_rest_in_review(monkeypatch):
    on("2026-11-01", monkeypatch)
    for name, answer in (("which_key", "b"), ("how_much", 2), ("called", "argmax"), ("score_ratio", 2)):
        check(answer, name)
    check("e**2", "score_ratio")
    check(lambda scores: scores, "stable_weights")  # code does not return
    assert warm_up() is None
    on("2026-11-02", monkeypatch)
    due_now = [card.exercise.name for card in warm_up().cards]
    assert due_now == ["called", "how_much", "score_ratio_2"], "the miss, and the pass after a miss"
    on("2026-11-04", monkeypatch)
    assert len(warm_up().cards) == 3 and len(review().cards) == 4 and len(review(1).cards) == 1
    assert isinstance(warm_up(), Stack) and f"From {PART}" in warm_up().page()


def test_a_return_moves_on_or_begins_anew(monkeypatch):
    on("2026-11-01", monkeypatch)
    check("b", "which_key")
    check(2, "how_much")
    on("2026-11-04", monkeypatch)
    for card in warm_up().cards:
        card.commit(card.exercise.answer if card.exercise is WHICH else 2)
    entries = store.read()[0]
    assert (entries["which_key"]["row"], entries["how_much"]["row"]) == (2, 0)
    assert entries["which_key"]["attempts"] == 1, "a return is no attempt"
    assert [e["day"] for e in (entries["which_key"], entries["how_much"])] == ["2026-11-04"] * 2
    on("2026-11-05", monkeypatch)
    assert [card.exercise.name for card in review().cards] == ["how_much"]


def test_a_question_with_a_generator_returns_with_other_numbers(monkeypatch):
    on("2026-11-01", monkeypatch)
    check("e**2", "score_ratio")
    on("2026-11-04", monkeypatch)
    (card,) = warm_up().cards
    assert card.exercise.asked != EXERCISES["score_ratio"].asked and card.commit(card.exercise.answer).passed
    assert warm_up().cards if isinstance(warm_up(), Stack) else store.read()[0]["score_ratio"]["row"] == 2


@pytest.mark.parametrize("most", [0, "ten", None])
def test_a_review_of_no_number_of_questions_is_told(most):
    assert "most is a number of questions" in repr(review(most))


# --- second problems ---


def test_a_second_problem_comes_after_the_first():
    assert "the first problem first" in repr(second("score_ratio"))
    assert "has none; these have" in repr(second("which_key"))
    assert "progress() lists the names" in repr(second("nothing_like_it"))
    check("e**2", "score_ratio")
    one, two = second("score_ratio"), second("score_ratio")
    assert one.exercise.asked != two.exercise.asked
    assert check(two.exercise.answer, "score_ratio_2").passed, "the one that was posed last is judged"
    assert not check(one.exercise.answer, "score_ratio_2").passed
    assert set(store.read()[0]) == {"score_ratio"} and store.read()[0]["score_ratio"]["attempts"] == 1


def test_after_the_solution_a_pass_needs_the_second_problem():
    solution("score_ratio")
    result = check("e**2", "score_ratio")
    assert result.passed and "that one makes the pass" in result.after["again"]
    assert "not yet, 1 attempt, solution seen first" in repr(progress())
    posed = second("score_ratio")
    assert not posed.commit("1e9").passed and store.read()[0]["score_ratio"]["first_pass"] is None
    second("score_ratio").commit(EXERCISES["score_ratio"].second(2).answer)
    assert store.read()[0]["score_ratio"]["first_pass"] == date.today().isoformat()
    assert re.search(r"✓ passed \S+, 1 attempt, solution seen first", repr(progress()))


def test_after_the_solution_an_exercise_without_a_second_problem_passes_and_says_so():
    solution("bright_picture")
    assert check(EXERCISES["bright_picture"].answer, "bright_picture").passed
    assert re.search(r"bright_picture .*✓ passed .*solution seen first", repr(progress()))


def test_a_solution_looked_at_after_the_pass_is_nothing_to_keep():
    check("e**2", "score_ratio")
    solution("score_ratio")
    assert "solution" not in store.read()[0]["score_ratio"]


GENERATED = [e for e in EXERCISES.values() if e.second is not None and isinstance(e.second(1), Number)]
REWRITTEN = [e for e in EXERCISES.values() if e.second is not None and isinstance(e.second(1), Write)]
POSED = [exercise.second(n) for exercise in EXERCISES.values() if exercise.second for n in (1, 2)]
EXPOSED = list({posed.name: posed for posed in POSED if isinstance(posed, Expose)}.values())


@pytest.mark.parametrize("exercise", GENERATED, ids=lambda e: e.name)
def test_generated_numbers_are_right_and_told_from_their_slips(exercise):
    seen = set()
    for n in range(1, 51):
        made = engine.second_of(exercise, n)
        seen.add(made.asked)
        assert made.judge(made.answer, print).passed and made.judge(made.value, print).passed, made.asked
        for slip, wrong in made.slips.items():
            result = made.judge(wrong, print)
            assert not result.passed and result.diagnosis == slip, (made.asked, slip)
    assert len(seen) > 20


@pytest.mark.parametrize("exercise", REWRITTEN, ids=lambda e: e.name)
def test_a_second_function_has_its_solution_and_its_slips(exercise):
    posed = engine.second_of(exercise, 1)
    assert posed.judge(posed.solution, lambda *_: None).passed
    for slip in posed.slips:
        result = posed.judge(posed.wrong(slip), lambda *_: None)
        assert not result.passed and result.diagnosis == slip, result
    assert posed.solution.__name__ == posed.name and posed.start.endswith("    return ...")
    first = posed.judge(exercise.solution, lambda *_: None)
    assert not first.passed, "the first solution is none here: something is to be learned"


@pytest.mark.parametrize("posed", EXPOSED, ids=lambda e: e.name)
def test_a_wrong_function_is_caught_by_the_inputs_of_the_solution(posed):
    session = {"torch": torch}
    exec(posed.solution, session)
    assert posed.judge(session[posed.name], lambda *_: None).passed
    assert posed.of.judge(posed.of.wrong(posed.slip), lambda *_: None).diagnosis == posed.slip
    assert (
        posed.of.wrong_text(posed.slip).partition("(")[2] in posed.start
        and f"{posed.name} = {{" in posed.start
    )
    assert f"def wrong_{posed.of.name}(" in posed.start, "the learner's own function keeps its name"


CAUGHT = {
    "best_continuations_2": [{"total": torch.tensor([-0.5]), "logs": torch.tensor([[-0.1, -2.5]])}],
    "stable_weights_2": [{"scores": torch.tensor([[500.0, 501.0]])}],
    "nine_heads_2": [
        {"pixels": torch.eye(2), "d": torch.zeros(1, 2, 2), "kernel": torch.ones(1, 2, 3, 3)}
        | {"sharpness": 50.0, "d": torch.tensor([[[0.0, 0.0], [0.0, 1.0]]])},
        {"pixels": torch.ones(2, 1), "d": torch.tensor([[[0.0, 0.0], [0.0, 1.0]]])}
        | {"kernel": torch.ones(1, 1, 3, 3), "sharpness": 0.5},
    ],
    "patch_rows_2": [{"images": torch.rand(1, 1, 4, 4), "patch": 2},
     {"images": torch.rand(2, 1, 2, 2), "patch": 2}, {"images": torch.ones(2, 1, 4, 4), "patch": 2}],
    "sagan_block_2": [
        {name: torch.ones(1, 1) for name in ("w_q", "w_k", "w_v")}
        | {"x": torch.tensor([[[[1.0, 2.0]]]]), "gamma": 0.0},
        {name: torch.ones(1, 1) for name in ("w_q", "w_k", "w_v")}
        | {"x": torch.ones(1, 1, 1, 1), "gamma": 1.0},
        {name: torch.zeros(1, 1) for name in ("w_q", "w_k", "w_v")}
        | {"x": torch.tensor([[[[1.0, 2.0]]]]), "gamma": 1.0},
    ],
    "cheapest_match_2": [{"cost": torch.tensor([[1.0, 2.0], [2.0, 9.0]])},
     {"cost": torch.tensor([[1.0, 2.0, 3.0]])}],
    "gru_step_2": [
        {"x": torch.ones(1, 1), "W": torch.ones(3, 1), "U": torch.ones(3, 1), "state": torch.zeros(1, 1)}
        | {"b": torch.zeros(3), "c": torch.zeros(3)},
        {"x": torch.zeros(1, 1), "W": torch.zeros(3, 1), "U": torch.ones(3, 1), "state": torch.ones(1, 1)}
        | {"b": torch.tensor([0.0, 50.0, 0.0]), "c": torch.zeros(3)},
    ],
    "sum_of_messages_2": [
        {"value": torch.zeros(2, 1), "weights": torch.ones(1), "edge_index": torch.tensor([[0], [1]])},
        {"value": torch.tensor([[3.0], [5.0]]), "weights": torch.ones(2)}
        | {"edge_index": torch.tensor([[0, 1], [1, 0]])},
    ],
    "attend_to_known_2": [
        {name: torch.ones(2, 1) for name in ("query", "key")}
        | {"value": torch.tensor([[2.0], [8.0]]), "knows": torch.ones(2, 2, dtype=torch.bool)},
        {name: torch.ones(2, 1) for name in ("query", "key", "value")}
        | {"knows": torch.eye(2, dtype=torch.bool)},
    ],
    "rnn_stages_2": [{"n": 1, "d": 3, "rows": 4}, {"n": 3, "d": 0, "rows": 1}],
    "shift_weights_2": [{"h": 1, "w": 3, "down": 0, "right": 1}, {"h": 3, "w": 2, "down": 1, "right": 0},
     {"h": 2, "w": 2, "down": 5, "right": 5}],
    "scaled_attention_2": [{"query": torch.ones(1, 2), "key": torch.eye(2), "value": torch.eye(2)},
     {"query": torch.ones(1, 2), "key": torch.ones(1, 2), "value": torch.ones(1, 3)},
     {"query": torch.zeros(1, 2), "key": torch.eye(2), "value": torch.ones(2, 3)},
     {"query": torch.ones(1, 2), "key": torch.tensor([[1.0, 0], [3, 0]]), "value": torch.ones(2, 3)}],
    "soft_look_up_2": [{"query": torch.zeros(2, 2), "key": torch.eye(2), "value": torch.ones(2, 3)},
     {"query": torch.ones(1, 2), "key": torch.eye(2), "value": torch.zeros(2, 3)}],
    "without_padding_2": [{"scores": torch.ones(1, 1, 2), "real": torch.tensor([[True, True]])},
     {"scores": 30 * torch.ones(1, 1, 2), "real": torch.tensor([[True, False]])}],
    "scaled_scores_2": [{"query": torch.ones(1, 2), "key": torch.eye(2)},
     {"query": torch.zeros(1, 2), "key": torch.ones(3, 2)}],
    "additive_scores_2": [
        {"query": torch.zeros(1, 2), "key": torch.ones(1, 2), "w_query": torch.eye(2), "w_key": torch.eye(2)}
        | {"v": torch.ones(2)},
        {"query": torch.ones(1, 2), "key": torch.ones(1, 2), "w_query": torch.eye(2), "w_key": torch.eye(2)}
        | {"v": torch.zeros(2)},
    ],
    "without_loops_2": [{"query": torch.ones(1, 2), "key": torch.eye(2), "value": torch.ones(2, 3)},
     {"query": torch.ones(2, 2), "key": torch.eye(2), "value": torch.zeros(2, 3)}],
    "mix_in_columns_2": [{"V": torch.ones(3, 2), "A_prime": torch.full((2, 2), 0.5)},
     {"V": torch.zeros(3, 2), "A_prime": torch.tensor([[0.9, 0.5], [0.1, 0.5]])}],
    "attention_in_columns_2": [
        {"I": torch.ones(2, 1), "W_q": torch.ones(3, 2), "W_k": torch.ones(3, 2), "W_v": torch.ones(5, 2)},
        {"I": torch.ones(2, 3), "W_q": torch.zeros(3, 2), "W_k": torch.ones(3, 2), "W_v": torch.ones(5, 2)},
    ],
    "self_attention_2": [
        {"x": torch.eye(2)[None], "w_q": torch.eye(2), "w_k": torch.eye(2), "w_v": torch.eye(2)},
        {"x": torch.ones(1, 1, 2), "w_q": torch.ones(2, 1), "w_k": torch.ones(2, 1), "w_v": torch.eye(2)},
    ],
    "both_masks_2": [{"real": torch.ones(1, 3, dtype=torch.bool)},
     {"real": torch.zeros(1, 1, dtype=torch.bool)}],
    "offset_rows_2": [{"query_positions": torch.arange(2), "key_positions": torch.arange(3), "radius": 1},
     {"query_positions": torch.tensor([5]), "key_positions": torch.tensor([3, 4]), "radius": 0}],
    "several_heads_2": [
        {"query": torch.eye(2)[None], "key": torch.eye(2)[None], "value": torch.eye(2)[None],
         "w_output": torch.eye(2), "n_heads": 1},
        {"query": torch.ones(1, 1, 2), "key": torch.ones(1, 2, 2), "value": torch.eye(2)[None],
         "w_output": torch.eye(2), "n_heads": 2},
        {"query": torch.ones(1, 2, 2), "key": torch.ones(1, 2, 2), "value": torch.zeros(1, 2, 2),
         "w_output": torch.eye(2), "n_heads": 2},
    ],
    "heads_together_2": [{"heads": torch.arange(4.0).view(1, 2, 2)},
     {"heads": torch.arange(4.0).view(2, 1, 2)}, {"heads": torch.ones(2, 2, 1)}],
    "many_heads_2": [
        {"x": torch.tensor([[0.0], [1.0]]), "w_query": torch.ones(1, 2), "w_key": torch.ones(1, 2),
         "w_value": torch.ones(1, 2), "w_output": torch.ones(2, 1), "n_heads": 1},
        {"x": torch.ones(1, 1), "w_query": torch.ones(1, 2), "w_key": torch.ones(1, 2),
         "w_value": torch.ones(1, 2), "w_output": torch.ones(2, 1), "n_heads": 2},
    ],
    "silent_head_2": [{"w_output": torch.zeros(2, 2), "head": 0, "n_heads": 2},
     {"w_output": torch.ones(1, 1), "head": 0, "n_heads": 1}],
    "may_look_2": [{"attn_mask": torch.tensor([[False, True]]),
     "key_padding_mask": torch.tensor([[True, False]])}],
    "put_back_2": [{"outputs": torch.eye(2), "order": torch.tensor([1, 0])},
     {"outputs": torch.ones(3, 2), "order": torch.tensor([1, 2, 0])}],
    "alibi_bias_2": [{"n": 1, "slope": 0.5}, {"n": 3, "slope": 0.0}],
    "squeezed_2": [{"n": 3, "trained": 4}],
    "waves_2": [{"positions": torch.arange(3.0), "d": 2}],
    "shift_matrix_2": [{"delta": 2.0, "frequencies": torch.ones(1)},
     {"delta": 0.0, "frequencies": torch.tensor([1.0, 0.1])}],
    "hide_words_2": [
        {
            "words": torch.tensor([[5]]),
            "chosen": torch.tensor([[chosen]]),
            "fate": torch.tensor([[fate]]),
            "other": torch.tensor([[6]]),
        }
        for chosen, fate in ((False, 0.95), (True, 0.5))
    ],
    "next_loss_2": [{"logits": torch.zeros(1, 2, 2), "tokens": torch.tensor([[0, 1]])},
     {"logits": torch.tensor([[[1.0, 0.0], [1.0, 0.0]]]), "tokens": torch.tensor([[1, 1]])}],
    "tempered_2": [{"logits": torch.tensor([1.0, 0.0]), "temperature": 1.0},
     {"logits": torch.tensor([1.0, 1.0]), "temperature": 2.0}],
    "hidden_loss_2": [
        {
            "logits": torch.tensor([[[0.0, last], [0.0, 0.0]]]),
            "words": torch.tensor([[0, 1]]),
            "chosen": torch.tensor([[True, chosen]]),
        }
        for last, chosen in ((1.0, True), (0.0, False))
    ],
}  # fmt: skip


@pytest.mark.parametrize("posed", EXPOSED, ids=lambda e: e.name)
def test_inputs_that_catch_nothing_are_told_why(posed):
    cases = [  # they are made before a test's device is
        {name: x.cpu() if isinstance(x, torch.Tensor) else x for name, x in case.items()}
        for case in CAUGHT[posed.name]
    ]
    found = [posed.judge(case, lambda *_: None) for case in cases]
    assert [(r.state, r.diagnosis) for r in found] == [("failed", slip) for slip in posed.slips]


@pytest.mark.parametrize(
    "answer, words",
    [
        ({"score": torch.ones(1, 2)}, "give the inputs by their names"),
        ({"scores": None}, "scores is still missing"),
        ({"scores": [1.0, 2.0]}, "scores is to be a tensor, you wrote a list of 2"),
        ({"scores": torch.ones(200, 200)}, "the fewer, the better"),
        ({"scores": torch.tensor([[torch.inf, 1.0]])}, "holds a number that is not finite"),
        ({"scores": torch.tensor(3.0)}, "the right function cannot take these inputs"),
    ],
)
def test_inputs_that_are_none_are_asked_back(answer, words):
    posed = EXERCISES["stable_weights"].second(2)
    result = posed.judge(answer, lambda *_: None)
    assert result.state == "unjudged" and words in result.diagnosis


def test_inputs_that_were_not_begun_are_no_answer_yet():
    posed = EXERCISES["stable_weights"].second(2)
    assert posed.judge({"scores": ...}, lambda *_: None).state == "open"
    begun = {"query": torch.ones(1, 2), "key": ..., "value": ..., "mask": ...}
    result = EXERCISES["what_it_lets_through"].judge(begun, lambda *_: None)
    assert result.state == "unjudged" and "key is still missing" in result.diagnosis


def test_inputs_may_come_without_names():
    posed = EXERCISES["stable_weights"].second(2)
    scores = torch.tensor([[0.0, 0.0, 300.0]])
    for answer in (scores, (scores,), [scores]):
        assert posed.judge(answer, lambda *_: None).passed


# --- open answers ---


def test_words_are_judged_by_buttons_or_by_a_call():
    text = EXERCISES["why_the_root"].solution
    result = check(text, "why_the_root")
    data = result._repr_mimebundle_()[0]
    assert "WRITTEN" in data["text/plain"] and "why_the_root" in data["text/html"]
    rubric = Rubric(result, result.points, result.keep)
    for choice, answer in zip(rubric.choices, ("yes", "no", "yes", "yes"), strict=True):
        choice.value = answer
    assert "you judged: 3 of 4" in rubric.feedback.value
    assert store.read()[0]["why_the_root"]["judged"] == [3, 4]
    assert "you judged: 3 of 4" in repr(check(text, "why_the_root"))
    assert judge("why_the_root", True, False, False, "N").diagnosis == "you judged: 1 of 4"
    assert "◇ judged by you: 1 of 4" in repr(progress()) and "1 of 11 judged by you" in repr(progress())
    assert "how you judged it" in repr(reset("why_the_root"))


@pytest.mark.parametrize("answers", [(), ("yes",) * 5, ([], {}, None, 2.0)])
def test_a_judgement_is_yes_or_no_to_each_point(answers):
    result = judge("why_the_root", *answers)
    assert result.state == "unjudged" and 'say "yes" or "no" to each of the 4 points' in result.diagnosis
    assert store.read()[0] == {}


def test_only_open_answers_are_judged_by_their_writer():
    assert "judged by its check" in repr(judge("score_ratio", "yes"))
    assert "progress() lists the names" in repr(judge("nobody", "yes"))


# --- what a check keeps ---


def test_hints_begin_where_the_last_answer_failed_and_outlive_a_kernel(home):
    check(lambda query, key, value: (query @ key.mT).softmax(-1) @ value, "scaled_attention")  # no scale
    entry = store.read()[0]["scaled_attention"]
    assert (entry["slip"], entry["stage"]) == ("you forgot to divide by sqrt(d_k)", 3)
    first = hint("scaled_attention")
    assert first.rows["think"] == EXERCISES["scaled_attention"].hints[2], "the third is about the scale"
    assert first.rows["last time"] == entry["slip"] and "hint 1 of 3" in first.title
    assert hint("scaled_attention").rows["think"] == EXERCISES["scaled_attention"].hints[0]
    assert json.loads((home / "progress.json").read_text())["exercises"]["scaled_attention"]["hints"] == [
        3,
        1,
    ]
    assert hint("scaled_attention").rows["think"] == EXERCISES["scaled_attention"].hints[1]
    last = hint("scaled_attention")
    assert last.rows["think"] == EXERCISES["scaled_attention"].hints[1] and "solution" in last.rows["next"]


def test_a_picture_is_shown_to_whoever_has_chosen_on_another_day(home):
    assert "predict first" in repr(picture("unscaled_picture"))
    entry = {"attempts": 1, "first_pass": None, "day": "2026-11-01"}
    (home / "progress.json").write_text(json.dumps({"version": 2, "exercises": {"unscaled_picture": entry}}))
    assert "predict first" not in repr(picture("unscaled_picture"))


def test_after_a_pass_no_attempt_is_counted():
    for answer in (1, "e**2", 1, "e**2"):
        check(answer, "score_ratio")
    assert store.read()[0]["score_ratio"]["attempts"] == 2


@pytest.mark.parametrize("field, value", [("row", "3"), ("hints", 2), ("day", "soon"), ("slip", ["x"])])
def test_a_field_of_the_wrong_kind_is_damage(field, value, home):
    entry = {"attempts": 1, "first_pass": None, field: value}
    (home / "progress.json").write_text(json.dumps({"version": 2, "exercises": {"score_ratio": entry}}))
    assert "damaged" in repr(progress())


# --- what is typed ---


@pytest.mark.parametrize("typed", [" B ) ", "(b)", "b.", "option b", "b) the one", "The second"])
def test_a_letter_is_read_however_it_is_written(typed):
    assert WHICH.judge(typed, print).passed


@pytest.mark.parametrize("typed", ["", "d", "a or b", "b.c", 2, ["b"], "a second"])
def test_what_is_no_letter_is_asked_back_and_counts_nothing(typed):
    result = check(typed, "which_key")
    assert result.state == "unjudged" and "choose one letter of a, b, c" in result.diagnosis
    assert store.read()[0] == {}


THOUSANDS = replace(HOW_MUCH, answer="2**17", value=131072.0, slips={})


@pytest.mark.parametrize(
    "exercise, typed, state",
    [
        (THOUSANDS, "131,072", "passed"), (THOUSANDS, "131,073.5", "passed"),
        (THOUSANDS, "131,070,000", "unjudged"), (HOW_MUCH, "7,389", "passed"), (HOW_MUCH, "7,5", "unjudged"),
        (HOW_MUCH, "seven", "unjudged"),
    ],
)  # fmt: skip
def test_a_comma_is_read_where_one_meaning_is_right_and_else_asked_back(exercise, typed, state):
    result = exercise.judge(typed, print)
    assert result.state == state, result
    if "," in typed and state == "unjudged":
        assert "part thousands or decimals? Write" in result.diagnosis


@pytest.mark.parametrize(
    "right, number, words",
    [
        (16, 17, "one off"), (16, 32, "twice"), (16, 8, "half"), (16, -16, "sign"), (16, 4, "root"),
        (16, 256, "square"), (0.25, 25, "percentage"), (25.5, 0.255, "share"),
        (7.3891, 0.13534, "upside down"), (7.3891, 7.4, "four digits"), (7.3891, 73.891, "decimal point"),
        (16, 20, ""), (16, 16.1, ""), (0, 3, ""), (3, 0, ""),
    ],
)  # fmt: skip
def test_a_near_miss_of_the_usual_kinds_is_named(right, number, words):
    said = near_miss(number, right)
    assert words in said and bool(said) == bool(words)
