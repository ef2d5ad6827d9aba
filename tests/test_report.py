"""The view of a class: what thirty simulated learners have done, on one page."""

import csv
import io
import random
import re
from datetime import date
from html.parser import HTMLParser

import pytest

from lesson_lib.checks.engine import exercises, lessons
from lesson_lib.checks.export import FIRST, HEADER
from lesson_lib.cli import main, report

EXERCISES = exercises()
MISSED = "score_ratio"  # nearly everybody meets its first mistake


def written(path, states: dict[str, dict[str, str]], name: str = "", separator: str = ",") -> None:
    """A file as export_progress() writes it; `states`: exercise -> what differs from an untried one."""
    text = io.StringIO()
    rows = csv.DictWriter(text, HEADER, delimiter=separator)
    rows.writeheader()
    for notebook, asked in lessons().items():
        for e in asked:
            row = dict.fromkeys(HEADER, "") | {"lesson": notebook, "exercise": e.name, "stars": str(e.stars)}
            row |= {"minutes": str(e.minutes), "state": "not attempted yet", "attempts": "0", "hints": "0"}
            rows.writerow(row | {"name": name} | states.get(e.name, {}))
    path.write_text("\ufeff" + text.getvalue(), encoding="utf-8")


def right(attempts: int = 1, **more: str) -> dict[str, str]:
    first = "yes" if attempts == 1 else "no"
    return {"state": "passed", "attempts": str(attempts), "first_try": first} | more


def wrong(name: str, **more: str) -> dict[str, str]:
    slip = next(iter(EXERCISES[name].slips))
    return {"state": "not yet", "attempts": "2", "first_try": "no", "diagnoses": slip} | more


@pytest.fixture(scope="module")
def class_of_thirty(tmp_path_factory):
    """A folder with thirty files, two of them with a name."""
    folder, draw = tmp_path_factory.mktemp("class"), random.Random(0)
    parts = [name for name in lessons() if re.match(r"\d\d", name)]
    for number in range(30):
        states = {}
        for notebook in parts[: draw.randint(2, 9)]:
            for e in lessons()[notebook]:
                chance = draw.random()
                states[e.name] = right() if chance < 0.8 else right(3) if chance < 0.9 else wrong(e.name)
        states[MISSED] = wrong(MISSED, sure="yes") if number % 10 else right()
        written(folder / f"file_{number:02}.csv", states, {0: "blue heron", 1: "<b>bold</b>"}.get(number, ""))
    (folder / "grades.csv").write_text("student,grade\nanna,1\n")
    return folder


class Page(HTMLParser):
    """Rows of the tables, items of lists, and addresses of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.rows, self.items, self.addresses, self.said = [], [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self.inside = "cell"
        elif tag == "li":
            self.items.append("")
            self.inside = "item"
        self.addresses += [value for key, value in attrs if key in ("href", "src")]

    inside = ""

    def handle_endtag(self, tag):
        if tag in ("td", "th", "li"):
            self.inside = ""

    def handle_data(self, data):
        if self.inside == "cell":
            self.rows[-1][-1] += data.strip()
        elif self.inside == "item":
            self.items[-1] += " ".join(data.split()) + " "


@pytest.fixture(scope="module")
def page(class_of_thirty) -> Page:
    learners, _ = report.read(class_of_thirty)
    site = class_of_thirty / "site"
    for name in ("exercises/02_scoring", "instructor/02_scoring"):
        (site / name).parent.mkdir(parents=True)
        (site / f"{name}.html").touch()
    return Page(report.page(learners, folder=class_of_thirty, site=site))


def test_what_most_missed_comes_first_with_its_diagnosis_and_its_pages(page):
    first = page.items[0]
    slip = next(iter(EXERCISES[MISSED].slips))
    asked = " ".join(re.sub("[`*]", "", EXERCISES[MISSED].asked).split())
    assert first.startswith(asked) and MISSED in first
    assert "10 % of 30 right at first, 27 sure and wrong" in first
    assert f"27 met: “{re.sub('[`*]', '', slip)}”" in first
    section, guide = (address for address in page.addresses if "02_scoring" in address)
    assert section.startswith("site/exercises/02_scoring.html#") and section[-1] != "#"
    assert guide == "site/instructor/02_scoring.html#misconceptions"


def test_each_exercise_has_a_line_and_each_learner_a_row(page):
    line = next(row for row in page.rows if row and row[0] == MISSED)
    assert line[1:7] == ["30", "10 %", "27", "0", "0", "27"]
    heads = [row for row in page.rows if row and row[0] == "learner"]
    assert sum(row[0] == "blue heron" for row in page.rows if row) == len(heads) > 1
    assert sum(len(row) - 1 for row in heads) == sum(
        len(row) == 8 and row[1].isdecimal() for row in page.rows
    )


def test_nothing_of_the_page_is_loaded_and_names_are_text(page, class_of_thirty):
    assert not [address for address in page.addresses if "//" in address]
    text = report.page(report.read(class_of_thirty)[0], folder=class_of_thirty)
    assert "<b>bold" not in text and "&lt;b&gt;bold" in text and "learner 3" in text


def test_the_command_writes_the_page_and_counts_what_is_left_out(class_of_thirty, tmp_path, capsys):
    assert main(["report", str(class_of_thirty), "--to", str(tmp_path / "class.html")]) == 0
    said = capsys.readouterr().out
    assert "30 learners" in said and "1 other CSV files are left out" in said
    assert (tmp_path / "class.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_file_that_a_spreadsheet_saved_again_is_read(tmp_path):
    written(tmp_path / "one.csv", {MISSED: right(2)}, separator=";")
    (learner,) = report.read(tmp_path)[0]
    assert learner.rows[MISSED].state == "later" and learner.rows[MISSED].attempts == 2


def test_a_real_export_is_read(tmp_path, monkeypatch):
    from lesson_lib.checks import check, export_progress, store

    monkeypatch.setenv("LESSON_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(store, "_unsaved", [])
    slip, answer = next(iter(EXERCISES[MISSED].slips.items()))
    check(answer, MISSED)
    check("e**2", MISSED)
    export_progress(tmp_path / "mine.csv", name="me")
    (learner,) = report.read(tmp_path)[0]
    today = date.today().isoformat()
    assert learner.name == "me" and learner.rows[MISSED] == report.Row("later", 2, 0, False, (slip,), today)
    assert report.lines([learner], today) and not report.lines([learner], "2999-01-01")
    assert "1 learners have tried nothing since then" in report.page(
        [learner], folder=tmp_path, since="2999-01-01"
    )
    assert "0 learners have tried nothing since then" in report.page([learner], folder=tmp_path, since=today)
    assert report.main(tmp_path, since="yesterday") == 1


@pytest.mark.parametrize(
    "fields, state",
    [
        ({}, "open"),
        (right(), "first"),
        (right(4), "later"),
        (right(2, solution="yes"), "seen"),
        (wrong(MISSED), "failed"),
        ({"state": "judged by you", "attempts": "1", "first_try": "no"}, "later"),
    ],
)
def test_states(tmp_path, fields, state):
    written(tmp_path / "one.csv", {MISSED: fields})
    assert report.read(tmp_path)[0][0].rows[MISSED].state == state


def test_odd_files_and_folders_are_sentences(tmp_path, capsys):
    assert main(["report", str(tmp_path / "missing")]) == 1
    assert "is no folder" in capsys.readouterr().err
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "b.csv").write_text(",".join(FIRST) + "\n")
    assert main(["report", str(tmp_path)]) == 1
    assert "an older course made it; ask for a new export_progress()" in capsys.readouterr().err
    written(tmp_path / "c.csv", {MISSED: {"attempts": "many", "hints": "", "diagnoses": "=HYPERLINK(1)"}})
    (learner,), said = report.read(tmp_path)
    assert learner.rows[MISSED] == report.Row("open", 0, 0, False, ())
    assert said == [
        "b.csv is left out: an older course made it; ask for a new export_progress()",
        "1 other CSV files are left out",
    ]


def test_few_who_tried_say_nothing(tmp_path):
    for number in range(2):
        written(tmp_path / f"{number}.csv", {MISSED: wrong(MISSED)})
    learners, _ = report.read(tmp_path)
    assert report.to_treat(report.lines(learners)) == []
    assert "Nothing stands out" in report.page(learners, folder=tmp_path)
