"""The judge of the capstone: files that cannot be read, the report, the training, the page, the command."""

import os
from pathlib import Path

import pytest

from lesson_lib import cli
from lesson_lib.chapters.c14_capstone import judge
from lesson_lib.checks.result import Note

REFERENCE = Path(__file__).with_name("reference.py").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LESSON_PROGRESS", "off")
    return tmp_path


def test_the_file_is_made_once_and_never_touched_again():
    assert "is made" in repr(judge.begin())
    text = Path("capstone.py").read_text(encoding="utf-8")
    assert text == judge.EMPTY.read_text(encoding="utf-8")
    Path("capstone.py").write_text("# mine", encoding="utf-8")
    assert "is there already" in repr(judge.begin()) and Path("capstone.py").read_text() == "# mine"
    assert "could not be made" in repr(judge.begin("missing/capstone.py"))


@pytest.mark.parametrize("number", range(1, 6))
def test_an_empty_file_fails_every_test_with_a_sentence(number):
    judge.begin()
    report = judge.stage(number)
    assert all(report.found.values()) and "not yet" in repr(report)
    for said in report.found.values():
        assert "None" in said or "written" in said, said


@pytest.mark.parametrize("number", [0, 6, "1", None, True, 1.5])
def test_a_stage_that_is_none_is_a_sentence(number):
    assert "there are stages 1 to 5" in repr(judge.stage(number))


@pytest.mark.parametrize(
    "text, words",
    [
        (None, "there is no capstone.py here; begin() makes one"),
        ("def f(:", "is no Python in line 1"),
        ("x = 1\nx.mean()\n", "capstone.py stops with AttributeError in line 2"),
        ("from lesson_lib.attention import attend\n", "imports from lesson_lib"),
        ("import torch, lesson_lib\n", "imports from lesson_lib"),
        ("import nothing_like_it\n", "No module named"),
        ("raise SystemExit\n", "asks Python to exit"),
        ("\0", "capstone.py is no Python"),
    ],
)
def test_a_file_that_cannot_be_judged_is_a_sentence(text, words):
    if text is not None:
        Path("capstone.py").write_text(text, encoding="utf-8")
    for said in (judge.stage(1), judge.train(), judge.page()):
        assert isinstance(said, Note) and words in " ".join(repr(said).split())
    assert not Path("capstone.html").exists()


def test_what_is_missing_in_the_file_is_named():
    Path("capstone.py").write_text("def attention(query, key, value, mask=None):\n    return value\n")
    assert judge.stage(2).found == {"Heads": "is missing in your file"}


@pytest.mark.parametrize(
    "body, words",
    [
        ("raise ValueError('no')", "stops with ValueError in line 2 of `sinusoids`"),
        ("return [[0.0] * d] * n", "gives a list"),
        ("return torch.zeros(n)", "gives shape (2,); asked for is (2, 4)"),
        ("while True: pass", "your function"),
    ],
)
def test_whatever_a_function_does_is_a_sentence(body, words, monkeypatch):
    monkeypatch.setattr(judge, "DEADLINE_S", 1.0)
    text = f"import torch\ndef sinusoids(n, d):\n    {body}\ndef rotate(x):\n    return x\n"
    Path("capstone.py").write_text(text, encoding="utf-8")
    assert words in judge.stage(3).found["sinusoids"]


def test_a_changed_file_is_read_anew():
    judge.begin()
    assert not judge.stage(3)
    Path("capstone.py").write_text(REFERENCE, encoding="utf-8")
    assert judge.stage(3) and "✓ Stage 3, positions: passed" in repr(judge.stage(3))
    assert "✓ holds" in judge.stage(3)._repr_html_()


def test_a_few_steps_of_training_are_told_and_not_enough(monkeypatch):
    monkeypatch.setenv("LESSON_STEPS", "quick")
    Path("capstone.py").write_text(REFERENCE, encoding="utf-8")
    report = judge.train()
    assert not report and "of the test dates are right; 0.9 are asked for" in repr(report)
    assert report.more["parameters"] == "236,928" and "nn.Embedding" in report.more["think"]


def test_what_a_file_prints_is_shown():
    text = "def sinusoids(n, d):\n    print('rows', n)\ndef rotate(x):\n    return x\n"
    Path("capstone.py").write_text(text, encoding="utf-8")
    assert "rows 2" in judge.stage(3).more["printed"]


def test_a_translator_that_does_not_run_is_told_in_training():
    judge.begin()
    assert "your function stops with" in judge.train().found["runs"]


def test_the_page_says_what_passed_and_no_name():
    Path("capstone.py").write_text(REFERENCE, encoding="utf-8")
    said = repr(judge.page(trained=False))
    assert "Capstone: 5 of 6 passed" in said and "left out" in said
    page = Path("capstone.html").read_text(encoding="utf-8")
    assert page.count("✓ holds") == 15 and "Training on dates" not in page
    assert "http" not in page and "<script" not in page and "mark " in page
    mark = page.partition("mark ")[2][:12]
    Path("capstone.py").write_text(REFERENCE + "# more\n", encoding="utf-8")
    judge.page(trained=False)
    assert mark not in Path("capstone.html").read_text(encoding="utf-8")
    assert "cannot be written" in repr(judge.page(to="missing/capstone.html", trained=False))


def test_in_a_terminal_the_command_speaks_of_a_terminal(capsys, monkeypatch, folder):
    monkeypatch.setattr("lesson_lib.places.work", lambda: folder / "work")
    assert cli.main(["capstone"]) == 0
    made = capsys.readouterr().out
    assert cli.main(["capstone"]) == 0
    told = capsys.readouterr().out
    for said in (made, told):
        assert "make capstone ARGS='--stage 1'" in said and "notebook" not in said and "stage(1)" not in said
    assert made.startswith(f"work{os.sep}capstone.py is made") and "editor" in made


def test_the_first_unfinished_stage_alone_is_told_in_full(capsys, folder):
    path = folder / "mine.py"
    text = REFERENCE.replace("def sinusoids", "def sines")
    path.write_text(text, encoding="utf-8")
    assert cli.main(["capstone", str(path)]) == 0
    told = capsys.readouterr().out.splitlines()
    heads = [line for line in told if line.startswith(("✓ Stage", "✗ Stage"))]
    assert len(heads) == 5 and [line.split(": ")[1] for line in heads[:3]] == ["passed", "passed", "not yet"]
    place = told.index(heads[2])
    assert "is missing in your file" in told[place + 1] and told[:place] == heads[:2]
    assert f"capstone {path} --stage 3" in told[-2] and "come once all five stages pass" in told[-1]
    path.write_text(text.replace("class Heads", "class Head"), encoding="utf-8")
    assert cli.main(["capstone", str(path)]) == 0
    again = capsys.readouterr().out
    assert again.count("is missing in your file") == 1 and "✗ Stage 3, positions: not yet\n✗ Stage 4" in again


def test_the_command_makes_judges_and_writes_the_page(capsys, monkeypatch, folder):
    monkeypatch.setenv("LESSON_STEPS", "quick")
    path = folder / "mine" / "capstone.py"
    assert cli.main(["capstone", str(path)]) == 0 and path.exists()
    assert "judges it" in capsys.readouterr().out
    assert cli.main(["capstone", str(path), "--stage", "1"]) == 0
    assert "Stage 1, attention: not yet" in capsys.readouterr().out
    assert cli.main(["capstone", str(path)]) == 0
    assert "come once all five stages pass" in capsys.readouterr().out
    path.write_text(REFERENCE, encoding="utf-8")
    assert cli.main(["capstone", str(path)]) == 0
    said = capsys.readouterr().out
    assert "Training on dates: not yet" in said and "Capstone: 5 of 6 passed" in said
    assert "Training on dates" in path.with_suffix(".html").read_text(encoding="utf-8")
    assert cli.main(["capstone", str(path), "--no-training"]) == 0
    assert "5 of 6" in capsys.readouterr().out and path.with_suffix(".html").exists()
    path.write_text("def f(:", encoding="utf-8")
    assert cli.main(["capstone", str(path)]) == 1
    with pytest.raises(SystemExit):
        cli.main(["capstone", "--stage", "6"])
