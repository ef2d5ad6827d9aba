"""progress(), export_progress() and reset(): what a learner sees, and that nothing is lost on the way to the
disk."""

import csv
import io
import json
import os
import re
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import timedelta
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lesson_lib.checks import (
    check,
    engine,
    export_progress,
    hint,
    picture,
    predict,
    progress,
    progress_table,
    questions,
    reset,
    store,
    warm_up,
)
from lesson_lib.checks.engine import exercises, lessons
from lesson_lib.checks.export import FIRST, HEADER
from lesson_lib.checks.short_answers import Open
from lesson_lib.cli.kinds import chapter_of
from tests.right_answers import RIGHT

EXERCISES, LESSONS = exercises(), lessons()
COUNTED = [name for name, exercise in EXERCISES.items() if not exercise.prediction]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """An empty home, an engine that remembers nothing, and an empty folder to work in."""
    monkeypatch.setenv("LESSON_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(store, "_unsaved", [])
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


# --- what is shown ---


class Tables(HTMLParser):
    """The tables of a page: caption, and rows of (tag, attributes, text)."""

    def __init__(self, page: str):
        super().__init__()
        self.tables, self.captions, self.links, self._cell = [], [], [], None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self._cell = [tag, dict(attrs), ""]
            self.tables[-1][-1].append(self._cell)
        elif tag == "caption":
            self._cell = ["caption", {}, ""]
            self.captions.append(self._cell)
        elif tag == "a":
            self.links.append(dict(attrs)["href"])

    def handle_data(self, data):
        if self._cell is not None:
            self._cell[2] += data

    def handle_endtag(self, tag):
        if tag in ("th", "td", "caption"):
            self._cell = None


def words(text: str) -> set[str]:
    return set(text.replace(",", " ").split())


def test_a_notebook_and_a_terminal_show_the_same_words():
    check("1", "score_ratio")
    check("e**2", "score_ratio")
    check("1", "weighted_sum")
    shown = progress()
    assert words(unescape(re.sub(r"<[^>]*>", " ", shown._repr_html_()))) == words(repr(shown))


def test_the_table_is_one_for_those_who_cannot_see_it():
    check("e**2", "score_ratio")
    page = Tables(progress()._repr_html_())
    captions = [text for _, _, text in page.captions]
    of_two = ["Notebooks of 02 scoring", "Exercises of 02 scoring"]
    assert captions == ["What returns", "Chapters", *of_two] and len(page.tables) == 4
    for table in page.tables:
        assert {(tag, attributes["scope"]) for tag, attributes, _ in table[0]} == {("th", "col")}
        for (tag, attributes, _), *cells in table[1:]:
            assert (tag, attributes["scope"]) == ("th", "row") and {cell[0] for cell in cells} == {"td"}
    asked = [es for notebook, es in LESSONS.items() if chapter_of(notebook) == "02"]
    chapters = {chapter_of(notebook) for notebook in LESSONS}
    assert [len(table) - 1 for table in page.tables] == [1, len(chapters), len(asked), sum(map(len, asked))]
    for forbidden in ("http", "<script", "<img", "url("):
        assert forbidden not in progress()._repr_html_()


def test_lessons_count_what_is_passed_and_the_minutes_that_are_left():
    name, *others = (exercise.name for exercise in LESSONS["exercises/02_scoring"])
    before = sum(exercise.minutes for exercise in LESSONS["exercises/02_scoring"])
    check(RIGHT[name][0], name)
    check("0", others[0])
    *_, notebooks, _ = Tables(progress()._repr_html_()).tables
    rows = {row[0][2]: [cell[2] for cell in row[1:]] for row in notebooks}
    left = before - EXERCISES[name].minutes
    assert rows["02 scoring"] == [f"1 of {len(others)}", "0 of 1", "", "", str(left), others[0]]
    assert re.search(rf"  02 scoring +1 of {len(others)} +0 of 1 +{left}  {others[0]}\n", repr(progress()))


def test_a_state_is_a_word_and_a_sign():
    check("e**2", "score_ratio")
    check("1", "weighted_sum")
    for text in (repr(progress()), progress()._repr_html_()):
        assert re.search(r"✓ passed \d{4}-\d\d-\d\d, 1 attempt\b", text)
        assert "✗ not yet, 1 attempt" in text and "○ not attempted yet" in text


@pytest.mark.parametrize("folder, up", [(".", ""), ("exercises", "../")])
def test_the_next_notebook_is_linked_where_it_can_be_found(folder, up, monkeypatch):
    assert Tables(progress()._repr_html_()).links == []  # nothing there: words, no dead link
    for notebook in LESSONS:
        Path(f"{notebook}.ipynb").parent.mkdir(exist_ok=True)
        Path(f"{notebook}.ipynb").write_text("{}")
    monkeypatch.chdir(folder)
    links = Tables(progress()._repr_html_()).links
    first, shown = next(iter(LESSONS)), progress()
    chapters = [next(lesson.notebook for lesson in c.lessons if lesson.left) for c in shown.chapters]
    assert links == [f"{up}{name}.ipynb" for name in [first, *chapters, first]]
    assert all(Path(link).is_file() for link in links)


def test_when_all_is_done_it_says_so(home):
    home.mkdir()
    entries = {name: {"attempts": 1, "first_pass": "2026-01-02"} for name in EXERCISES}
    (home / "progress.json").write_text(json.dumps({"version": 1, "exercises": entries}))
    text, opens = repr(progress()), [name for name, e in EXERCISES.items() if isinstance(e, Open)]
    closed = len(COUNTED) - len(opens)
    assert f"exercises: {closed} of {closed} passed, 0 of {len(opens)} judged by you" in text
    assert "next: all exercises are done" in text and "all exercises are done" in progress()._repr_html_()


def give(monkeypatch, chapter, *exercises):
    """Let the chapter ask these."""
    read = questions.read
    monkeypatch.setattr(questions, "read", lambda name: [*exercises] if name == chapter else read(name))


def test_an_exercise_is_listed_under_the_notebook_that_asks_it(monkeypatch):
    """The warm-up stands in lesson 00 itself; any other may stand in a lesson, too."""
    assert next(iter(LESSONS)) == "00_start_here" and "exercises/01_history" in LESSONS
    *others, first = questions.read("c02_scoring")
    give(monkeypatch, "c02_scoring", *others, replace(first, notebook="02_scoring"))
    found = engine.lessons.__wrapped__()
    assert [e.name for e in found["02_scoring"]] == [first.name]
    assert [e.name for e in found["exercises/02_scoring"]] == [e.name for e in others if not e.notebook]


def test_a_part_s_exercises_come_before_those_of_its_chapter(monkeypatch):
    """Wherever they stand in the chapter; and progress() leads to them."""
    *others, last, first = (e for e in questions.read("c02_scoring") if not e.notebook)
    moved = (replace(last, notebook="02b_which_score"), replace(first, notebook="02a_soft_look_up"))
    give(monkeypatch, "c02_scoring", *others, *moved)
    found = engine.lessons.__wrapped__()
    names = ["02a_soft_look_up", "02b_which_score", "exercises/02_scoring"]
    assert [name for name in found if "02" in name] == names
    chapters = [chapter_of(name) for name in found]
    assert chapters == sorted(chapters, key=lambda chapter: (not chapter, chapter))  # pages come last
    monkeypatch.setattr(engine, "lessons", lambda: {name: found[name] for name in names})
    assert f"next: {first.name}, in 02a_soft_look_up.ipynb" in repr(progress())
    assert "02a soft look up" in repr(progress())


def test_it_goes_on_from_what_was_done_last():
    assert f"next: {next(iter(EXERCISES))}, in 00_start_here.ipynb" in repr(progress())
    check("1", "score_ratio")
    assert "last: score_ratio" in repr(progress()) and "next: score_ratio, in exercises/02" in repr(
        progress()
    )
    check("e**2", "score_ratio")
    hint("mix_in_columns")  # a look is nothing that was done
    assert "next: stable_weights, in exercises/02_scoring.ipynb" in repr(progress())
    predict("plus_or_times").commit("a")
    assert "last: plus_or_times, in 02a_soft_look_up.ipynb" in repr(progress())
    following = LESSONS["02a_soft_look_up"]
    after = following[[e.name for e in following].index("plus_or_times") + 1].name
    assert f"next: {after}, in 02a_soft_look_up.ipynb" in repr(progress())
    last = [*EXERCISES][-1]
    check(RIGHT[last][0], last)
    assert f"last: {last}" in repr(progress()) and f"next: {next(iter(EXERCISES))}, " in repr(progress())


def test_predictions_are_counted_by_how_sure_their_writer_was():
    asked = [name for name, exercise in EXERCISES.items() if exercise.prediction]
    assert f"predictions: 0 of {len(asked)} answered\n" in repr(progress())
    predict("plus_or_times").commit("c")
    predict("query_of_zeros").commit(EXERCISES["query_of_zeros"].answer)
    assert f"predictions: 2 of {len(asked)} answered, 2 of 2 right\n" in repr(progress())
    for name, answer in (("ann_share", "a"), ("padding_share", EXERCISES["padding_share"].answer)):
        card = predict(name)
        card.sure.value = True
        card.commit(answer)
    said = (
        f"predictions: 4 of {len(asked)} answered, 3 of 4 right; sure: 1 of 2 right; not sure: 2 of 2 right"
    )
    assert said in repr(progress())
    assert re.search(r"ann_share .*✗ not so, and you were sure", repr(progress()))
    assert re.search(r"plus_or_times .*✓ right \d{4}-\d\d-\d\d  ", repr(progress()))
    assert store.read()[0]["ann_share"]["sure"] is True and "sure" not in store.read()[0]["plus_or_times"]


def test_what_returns_is_shown_by_day(home):
    home.mkdir()
    today = store.date.today()

    def entry(days_ago, row):
        day = (today - timedelta(days=days_ago)).isoformat()
        return {"attempts": 1, "first_pass": day if row else None, "day": day, "row": row}

    asked = [name for name, exercise in EXERCISES.items() if exercise.prediction]
    entries = {name: entry(0, 0) for name in asked[:6]} | {
        "score_ratio": entry(5, 1),
        "zeros_after": entry(1, 2),
    }
    # a function does not return; what is known returns no more
    entries |= {"several_heads": entry(5, 0), "three_attentions": entry(9, 4)}
    (home / "progress.json").write_text(json.dumps({"version": 2, "exercises": entries}))
    text, in_six = repr(progress()), (today + timedelta(days=6)).isoformat()
    assert re.search(r"What returns\n +day +questions +which\n +today +1  score_ratio\n +tomorrow +6  ", text)
    assert " and 2 more\n" in text and re.search(rf"\n +{in_six} +1  zeros_after\n", text)
    assert "today: 1 question to answer again: review() asks them" in text
    assert len(warm_up().cards) == 1


def test_a_terminal_shows_details_of_what_was_begun_and_of_what_is_next():
    check("e**2", "score_ratio")
    found = re.findall(r"^Exercises of (.*)$", repr(progress()), flags=re.M)
    assert found == ["02 scoring"]
    predict("three_attentions").commit("a")
    assert "Exercises of 06 transformer" in repr(progress())
    assert len(progress().chapters) == len({chapter_of(notebook) for notebook in LESSONS})
    assert [c.title for c in progress().chapters][:3] == ["00 start here", "01 history", "02 scoring"]


def test_no_two_notebooks_have_one_title():
    names = ["00_start_here", "02a_soft_look_up", "exercises/02_scoring"]
    names += ["03_matrix_form", "exercises/03_matrix_form"]
    titles = ["00 start here", "02a soft look up", "02 scoring", "03 matrix form (part)", "03 matrix form"]
    assert [progress_table.Lesson(name, ()).title for name in names] == titles
    assert [progress_table.Lesson(name, ()).chapter for name in names] == ["00", "02", "02", "03", "03"]
    assert progress_table.Lesson("sources", ()).chapter == ""


def test_a_pass_on_a_later_day_leaves_the_first_one(monkeypatch):
    class Later(store.date):
        @classmethod
        def today(cls):
            return cls(2999, 1, 2)

    check("e**2", "score_ratio")
    first = store.date.today().isoformat()
    monkeypatch.setattr(store, "date", Later)
    check("e**2", "score_ratio")
    entry = store.read()[0]["score_ratio"]
    assert (entry["attempts"], entry["first_pass"]) == (1, first), "and no attempt is counted after it"


# --- the export ---


def test_an_export_has_a_row_for_each_exercise():
    check("1", "score_ratio")
    check("e**2", "score_ratio")
    check("1", "weighted_sum")
    said = repr(export_progress())
    data = Path("progress.csv").read_bytes()
    assert data.startswith("\ufeff".encode())  # so that no spreadsheet can mistake the encoding
    every = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    assert tuple(every[0]) == HEADER
    assert [row["exercise"] for row in every] == [e.name for asked in LESSONS.values() for e in asked]
    rows = [row for row in every if row["stars"] != "0"]
    assert [row["exercise"] for row in rows] == COUNTED
    day = rows[COUNTED.index("score_ratio")].pop("first_pass")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", day)
    assert rows[COUNTED.index("score_ratio")].pop("day") == day
    exercise = EXERCISES["score_ratio"]
    assert rows[COUNTED.index("score_ratio")] == {
        "lesson": "02 scoring", "exercise": "score_ratio", "stars": str(exercise.stars),
        "minutes": str(exercise.minutes), "state": "passed", "attempts": "2", "first_try": "no", "sure": "",
        "hints": "0", "solution": "", "name": "", "diagnoses": "",
    }  # fmt: skip
    first = rows[0]
    assert (first["state"], first["attempts"], first["first_pass"]) == ("not yet", "1", "")
    assert f"{len(COUNTED)} exercises, 1 of them passed" in said and "progress.csv" in said


def test_an_export_has_predictions_and_the_mistakes_that_were_named():
    slip, wrong = next(iter(EXERCISES["score_ratio"].slips.items()))
    for answer in (wrong, wrong, "e**2"):
        check(answer, "score_ratio")
    hint("stable_weights")
    card = predict("who_learns")
    card.sure.value = True
    card.commit("a")
    said = repr(export_progress(name="blue heron"))
    text = Path("progress.csv").read_text(encoding="utf-8-sig")
    rows = {row["exercise"]: row for row in csv.DictReader(io.StringIO(text, newline=""))}
    assert rows["score_ratio"]["diagnoses"] == slip, "told twice, met once, and kept after the pass"
    assert rows["stable_weights"]["hints"] == "1" and rows["stable_weights"]["first_try"] == ""
    asked = rows["who_learns"]
    assert (asked["stars"], asked["state"], asked["first_try"], asked["sure"]) == (
        "0", "not yet", "no", "yes",
    )  # fmt: skip
    assert {row["name"] for row in rows.values()} == {"blue heron"} and "the name blue heron" in said


@pytest.mark.parametrize("name", [None, "x" * 41, "=HYPERLINK()", "a\nb"])
def test_a_name_that_is_none_is_a_sentence(name):
    said = export_progress(name=name)
    assert said.title == "Not exported" and "blue heron" in repr(said) and os.listdir() == []


def test_an_export_of_the_first_edition_is_replaced():
    Path("mine.csv").write_text(",".join(FIRST) + "\n02 scoring,score_ratio,1,4,passed,2,2025-01-01\n")
    assert export_progress("mine.csv").title == "Exported"
    assert "2025-01-01" not in Path("mine.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("separator", [",", ";"])
def test_an_export_that_a_spreadsheet_saved_again_is_still_ours(separator):
    Path("mine.csv").write_text("\ufeff" + separator.join(f'"{name}"' for name in HEADER), encoding="utf-8")
    assert export_progress("mine.csv").title == "Exported"


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"lesson,exercise,grade\n"])
def test_a_file_that_is_no_export_is_left_alone(content):
    Path("thesis.csv").write_bytes(content)
    said = repr(export_progress("thesis.csv"))
    assert "is not an export" in said and "choose another name" in said
    assert Path("thesis.csv").read_bytes() == content and os.listdir() == ["thesis.csv"]


class NoPath(os.PathLike):
    def __fspath__(self):
        raise RuntimeError("leave me alone")


@pytest.mark.parametrize(
    "path, expected",
    [
        (3, "got an integer"),
        ("", "an empty one"),
        (NoPath(), "must be the name of a file"),
        (".", "is a folder"),
        ("missing/x.csv", "its folder is not there"),
        ("x" * 300, "could not be written"),
        ("a\0b", "could not be written"),
        ("\ud800", "could not be written"),
    ],
)
def test_a_path_that_is_none_is_a_sentence(path, expected):
    said = export_progress(path)
    assert said.title == "Not exported" and expected in repr(said)
    assert isinstance(said._repr_html_(), str)
    assert os.listdir() == []


@pytest.mark.parametrize("there, place", [(False, "open"), (True, "write"), (True, "replace")])
def test_an_export_to_a_full_disk_leaves_no_half_file(place, there, monkeypatch):
    if there:
        export_progress()
        before = Path("progress.csv").read_bytes()
    check("e**2", "score_ratio")
    with monkeypatch.context() as patch:
        fill(patch, place)
        said = repr(export_progress())
    assert "No space left on device" in said and "nothing was changed" in said
    assert os.listdir() == (["progress.csv"] if there else [])
    assert not there or Path("progress.csv").read_bytes() == before
    assert export_progress().title == "Exported"


def test_a_progress_that_cannot_be_read_is_not_exported_as_nothing_done(home, monkeypatch):
    check("e**2", "score_ratio")
    monkeypatch.setattr(Path, "read_bytes", lambda self: stop(13, "Permission denied"))
    said = repr(export_progress())
    assert "could not be read (Permission denied)" in said and os.listdir() == []
    assert "could not be read (Permission denied)" in repr(progress())


# --- reset ---


def test_a_reset_exercise_is_as_if_never_tried():
    check("a", "unscaled_picture")
    check(RIGHT["unscaled_picture"][0], "unscaled_picture")
    check("e**2", "score_ratio")
    hint("unscaled_picture")
    said = repr(reset("unscaled_picture"))
    assert re.search(r"forgotten +2 attempts, the pass of \d{4}-\d\d-\d\d, 1 hint\n", said)
    assert "exercises/02_scoring.ipynb" in said
    assert set(store.read()[0]) == {"score_ratio"}
    assert "hint 1 of 3" in repr(hint("unscaled_picture")) and "predict first" in repr(
        picture("unscaled_picture")
    )
    check("c", "unscaled_picture")
    assert store.read()[0]["unscaled_picture"]["attempts"] == 1


def test_what_was_never_tried_cannot_be_reset(home):
    assert "nothing to forget" in repr(reset("score_ratio"))
    assert not home.exists()


@pytest.mark.parametrize("name", ["02", "chapter 02"])
def test_a_chapter_is_reset_when_its_learner_is_sure(name):
    check("1", "score_ratio")
    check("e**2", "score_ratio")
    hint("scaled_attention")
    predict("ann_share").commit("a")
    predict("three_attentions").commit("a")
    before = store.read()[0]
    said = repr(reset(name))
    assert "nothing was reset yet" in said and re.search("would forget +3 attempts, 1 pass, 1 hint\n", said)
    assert "02b_which_score.ipynb, exercises/02_scoring.ipynb" in said and "sure=True" in said
    assert store.read()[0] == before and "reset yet" in repr(reset(name, sure="yes"))
    said = repr(reset(name, sure=True))
    assert (
        "as if never tried" in said and "3 attempts" in said and set(store.read()[0]) == {"three_attentions"}
    )
    assert "nothing to forget in 02a_soft_look_up.ipynb" in repr(reset(name, sure=True))


@pytest.mark.parametrize("name", ["02a", "02a_soft_look_up.ipynb"])
def test_a_part_is_reset_alone(name):
    predict("ann_share").commit("a")
    check("e**2", "score_ratio")
    reset(name, sure=True)
    assert set(store.read()[0]) == {"score_ratio"}
    reset("exercises/02_scoring", sure=True)
    assert store.read()[0] == {}


def test_a_reset_function_is_the_course_s_again():
    right = EXERCISES["slopes"].solution
    assert check(right, "slopes").passed and engine._PASSED["slopes"] is right
    reset("02", sure=True)
    assert "slopes" not in engine._PASSED


def test_a_reset_without_a_name_forgets_nothing():
    check("e**2", "score_ratio")
    assert "say which" in repr(reset()) and "say which" in repr(reset(None))
    for name in ("*", "", "all", 3, [], list(EXERCISES), print):
        assert "progress() lists the names" in repr(reset(name))
    assert 'did you mean "score_ratio"?' in repr(reset("score_rato"))
    assert store.read()[0]["score_ratio"]["attempts"] == 1


def test_a_reset_on_a_full_disk_is_done_later(home, monkeypatch):
    check("e**2", "score_ratio")
    with monkeypatch.context() as patch:
        fill(patch, "write")
        said = repr(reset("score_ratio"))
        assert "1 attempt, the pass" in said and "could not be saved (No space left on device)" in said
        assert "score_ratio" not in store.read()[0]
    check(1, "weighted_sum")
    assert set(json.loads((home / "progress.json").read_text())["exercises"]) == {"weighted_sum"}


# --- the file ---


def stop(number: int, words: str):
    raise OSError(number, words)


def fill(patch, place: str) -> None:
    """A disk that is full: nothing can be opened for writing, written, made safe or put in its place."""

    def full(*args, **kwargs):
        stop(28, "No space left on device")

    class Full(io.StringIO):
        write = full

    real = open

    def opened(path, mode="r", **more):
        if "w" not in mode:
            return real(path, mode, **more)
        if place == "open":
            full()
        real(path, mode, **more).close()  # the name still fits
        return Full()

    if place in ("open", "write"):
        patch.setattr(store, "open", opened, raising=False)
    else:
        patch.setattr(store.os, place, full)


@pytest.mark.parametrize("place", ["open", "write", "fsync", "replace"])
def test_a_full_disk_costs_a_sentence_and_no_attempt(place, home, monkeypatch):
    check(1, "score_ratio")
    before = (home / "progress.json").read_bytes()
    with monkeypatch.context() as patch:
        fill(patch, place)
        for count, answer in enumerate((1, "e**2"), 2):
            said = repr(check(answer, "score_ratio"))
            assert "could not be saved (No space left on device)" in said
            assert f"{count} attempts" in repr(progress())  # it is still known
            assert "could not be saved" in repr(progress())
        assert (home / "progress.json").read_bytes() == before
        assert sorted(os.listdir(home)) == FILES  # neither scrap nor lock
    assert "progress" not in check(7, "weighted_sum").after  # there is room again
    saved = json.loads((home / "progress.json").read_text())["exercises"]
    assert saved["score_ratio"]["attempts"] == 3 and saved["score_ratio"]["first_pass"]
    assert saved["weighted_sum"]["attempts"] == 1 and store._unsaved == []


FILES = ["progress-copy.json", "progress.json"]


@pytest.mark.parametrize("damage", [b"", b"{", b'{"exercises": {"score_ratio": 7}}', b"\xff"])
def test_what_a_damaged_file_has_lost_comes_from_the_last_good_copy(damage, home):
    check(1, "score_ratio")
    check("e**2", "score_ratio")
    good = store.read()[0]
    (home / "progress.json").write_bytes(damage)
    said = repr(progress())
    assert "progress-damaged-1.json" in said and "the rest from its last good copy" in said
    assert store.read() == (good, "") and "last: score_ratio" in said
    assert (home / "progress-damaged-1.json").read_bytes() == damage
    check(1, "weighted_sum")
    assert set(json.loads((home / "progress-copy.json").read_text())["exercises"]) == {
        "score_ratio",
        "weighted_sum",
    }


def test_what_is_good_in_a_damaged_file_is_newer_than_its_copy(home):
    check(1, "score_ratio")
    newer = {"attempts": 7, "first_pass": None}
    text = json.dumps({"version": 2, "exercises": {"score_ratio": newer, "b": 7}})
    (home / "progress.json").write_text(text)
    assert store.read()[0]["score_ratio"] == newer


def test_a_damaged_copy_is_no_help_and_no_harm(home):
    check(1, "score_ratio")
    for name in FILES:
        (home / name).write_text("{")
    assert "the rest" not in repr(progress()) and store.read()[0] == {}
    check(1, "score_ratio")
    assert store.read()[0]["score_ratio"]["attempts"] == 1


def test_a_file_that_was_taken_away_is_a_new_beginning(home):
    check(1, "score_ratio")
    (home / "progress.json").unlink()
    assert store.read() == ({}, "")


def test_looking_at_the_progress_saves_what_could_not_be_saved(home, monkeypatch):
    with monkeypatch.context() as patch:
        fill(patch, "fsync")
        check("e**2", "score_ratio")
    assert "progress file" not in repr(progress())
    assert json.loads((home / "progress.json").read_text())["exercises"]["score_ratio"]["attempts"] == 1


def test_a_folder_that_is_read_only_costs_a_sentence(home, monkeypatch):
    check(1, "score_ratio")
    real = os.open

    def refused(path, flags, *more, **named):
        return stop(13, "Permission denied") if flags & os.O_CREAT else real(path, flags, *more, **named)

    with monkeypatch.context() as patch:
        patch.setattr(store.os, "open", refused)
        assert "could not be saved (Permission denied)" in repr(check(1, "score_ratio"))
        assert "2 attempts" in repr(progress())
    check(1, "score_ratio")
    assert json.loads((home / "progress.json").read_text())["exercises"]["score_ratio"]["attempts"] == 3


def test_looking_at_a_damaged_file_keeps_what_is_good_in_it(home):
    home.mkdir()
    damage = '{"exercises": {"score_ratio": {"attempts": 2, "first_pass": null}, "b": 7}}'
    (home / "progress.json").write_text(damage)
    assert "progress-damaged-1.json" in repr(progress()) and "2 attempts" in repr(progress())
    assert (home / "progress-damaged-1.json").read_text() == damage
    check("e**2", "score_ratio")
    entries, said = store.read()
    today = store.date.today().isoformat()
    assert (set(entries), said) == ({"score_ratio"}, "")
    assert (entries["score_ratio"]["attempts"], entries["score_ratio"]["first_pass"]) == (3, today)


@pytest.mark.parametrize("place", ["fsync", "replace"])
def test_a_damaged_file_on_a_full_disk_stays(place, home, monkeypatch):
    home.mkdir()
    damage = b'{"exercises": {"score_ratio": {"attempts": 2, "first_pass": null}, "b": 7}}'
    (home / "progress.json").write_bytes(damage)
    with monkeypatch.context() as patch:
        if place == "replace":  # it can be renamed, and then the new one cannot be put in its place
            patch.setattr(store, "_replace", lambda fresh, path: stop(28, "No space left on device"))
        else:
            fill(patch, place)
        assert "could not be saved" in repr(check(1, "score_ratio"))
        assert (home / "progress.json").read_bytes() == damage and os.listdir(home) == ["progress.json"]
    assert "damaged-1" in repr(check(1, "score_ratio"))
    assert store.read()[0]["score_ratio"]["attempts"] == 4


@pytest.mark.parametrize("entry", [{"attempts": 2}, {"attempts": 2, "first_pass": None, "more": [1]}])
def test_entries_of_the_first_version_go_on_working(entry, home):
    home.mkdir()
    (home / "progress.json").write_text(
        json.dumps({"version": 1, "exercises": {"score_ratio": entry, "gone": entry}})
    )
    assert "✗ not yet, 2 attempts" in repr(progress())
    result = check("e**2", "score_ratio")
    assert "progress" not in result.after and "3 attempts" in repr(progress())
    assert store.read()[0]["gone"] == entry  # an exercise that this version does not have
    assert export_progress().title == "Exported" and "gone" not in Path("progress.csv").read_text()


@pytest.mark.parametrize("version", [None, 1, 17])
def test_what_another_version_wrote_outlives_this_one(version, home):
    """Older and newer files: every entry stays, and so does what only the other version knows."""
    home.mkdir()
    entry = {"attempts": 2, "first_pass": None, "rubric": ["yes", "no"]}
    more = {"predictions": {"which_scores": "b"}} | ({} if version is None else {"version": version})
    (home / "progress.json").write_text(
        json.dumps(more | {"exercises": {"score_ratio": entry, "gone": entry}})
    )
    assert "progress" not in check(1, "score_ratio").after
    content = json.loads((home / "progress.json").read_text())
    found = content.pop("exercises")
    assert found["gone"] == entry and found["score_ratio"] | entry | {"attempts": 3} == found["score_ratio"]
    assert content == more | {"version": max(version or 0, store.VERSION), "last": "score_ratio"}
    assert sorted(os.listdir(home)) == FILES, "and nothing was set aside as damaged"


def test_an_entry_of_a_newer_version_is_kept_and_no_damage(home):
    home.mkdir()
    strange = {"tries": [{"day": "2026-11-01"}]}
    text = json.dumps({"version": 3, "exercises": {"score_ratio": strange, "softmax_by_hand": strange}})
    (home / "progress.json").write_text(text)
    assert "damaged" not in repr(progress()) and (home / "progress.json").read_text() == text
    assert "progress" not in check(1, "score_ratio").after
    found = json.loads((home / "progress.json").read_text())
    assert found["exercises"]["softmax_by_hand"] == strange and found["version"] == 3
    kept = found["exercises"]["score_ratio"]
    assert kept | strange | {"attempts": 1, "first_pass": None} == kept


def test_a_day_that_is_none_is_damage_and_gets_into_no_spreadsheet(home):
    home.mkdir()
    entry = {"attempts": 2, "first_pass": "=HYPERLINK(1)"}
    (home / "progress.json").write_text(json.dumps({"version": 1, "exercises": {"score_ratio": entry}}))
    assert "damaged" in repr(export_progress()) and "HYPERLINK" not in Path("progress.csv").read_text()


# --- several kernels ---

KERNEL = """
import sys, time
from importlib import import_module
from pathlib import Path
from lesson_lib.checks import store
store.LOCK_WAIT_S = 60.0  # a slow disk is not what is tested here
Path(sys.argv[1] + ".ready").touch()
end = time.monotonic() + 300
# importing takes longer than recording: all start together
while not Path("go").exists() and time.monotonic() < end:
    time.sleep(0.001)
for number in range(int(sys.argv[2])):
    {body}
"""


def kernels(home, times, **bodies):
    """Run each body so many times in a kernel of its own, all at once; returns their exit statuses."""
    running = []
    for name, body in bodies.items():
        command = [sys.executable, "-c", KERNEL.format(body=body), name, str(times)]
        running.append(subprocess.Popen(command, env=os.environ | {"LESSON_HOME": str(home)}))
    while not all(Path(f"{name}.ready").exists() for name in bodies):
        assert all(process.poll() is None for process in running)
        time.sleep(0.01)
    Path("go").touch()
    return [process.wait(300) for process in running]


def test_many_checks_in_several_kernels_lose_no_count(home):
    record = (
        "assert store.record(store.Event(sys.argv[1], 'answer', number == 39)) == '';"
        " assert store.record(store.Event('both', 'answer', False)) == ''"
    )
    assert kernels(home, 40, a=record, b=record) == [0, 0]
    entries, said = store.read()
    assert {name: entry["attempts"] for name, entry in entries.items()} == {"a": 40, "b": 40, "both": 80}
    assert said == "" and all(entries[name]["first_pass"] for name in "ab")
    assert sorted(os.listdir(home)) == FILES


def test_a_reset_in_one_kernel_loses_nothing_of_another(home):
    writes = "assert store.record(store.Event('kept', 'answer', False)) == ''"
    both = (
        "store.record(store.Event('gone', 'answer', True)); assert set(store.forget('gone')[0]) == {'gone'}"
    )
    assert kernels(home, 40, writer=writes, other=both) == [0, 0]
    entries, said = store.read()
    assert (entries["kept"]["attempts"], set(entries), said) == (40, {"kept"}, "")


def test_a_kernel_that_slept_while_another_took_over_does_not_undo_its_work(home, monkeypatch):
    store.record(store.Event("a", "answer", False))
    real, slept = os.fsync, []

    def sleep(descriptor):  # with the lock held for so long that another kernel counts it as left behind
        real(descriptor)
        if not slept:
            slept.append(True)
            os.utime(home / "progress.lock", (0, 0))
            assert kernels(home, 1, other="assert store.record(store.Event('b', 'answer', False)) == ''") == [
                0
            ]

    with monkeypatch.context() as patch:
        patch.setattr(store.os, "fsync", sleep)
        assert "another kernel took over" in store.record(store.Event("a", "answer", False))
    store.record(store.Event("c", "answer", False))
    assert {name: entry["attempts"] for name, entry in store.read()[0].items()} == {"a": 2, "b": 1, "c": 1}


def test_threads_of_one_kernel_lose_no_count(home):
    threads = [
        threading.Thread(target=lambda: [store.record(store.Event("a", "answer", False)) for _ in range(20)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert store.read()[0]["a"]["attempts"] == 80 and store._unsaved == []
