"""The learner's copies: made where there are none, never overwritten; a JupyterLab on this machine only."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import ClassVar

import pytest

from lesson_lib.cli import lab


def write(path, *sources, outputs=0):
    """A notebook file with these cells."""
    cells = [{"cell_type": "code", "source": [source], "outputs": [{}] * outputs} for source in sources]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")


@pytest.fixture
def course(tmp_path):
    """A repository with one lesson, one exercise and its solution."""
    write(tmp_path / "notebooks" / "00_start_here.ipynb", "hello")
    write(tmp_path / "notebooks" / "exercises" / "02_scoring.ipynb", "try")
    write(tmp_path / "notebooks" / "solutions" / "02_scoring.ipynb", "answer")
    return tmp_path


def test_lessons_and_exercises_are_copied_and_no_solutions(course):
    assert lab.copy_missing(course) == lab.Copies(
        copied=["00_start_here.ipynb", "exercises/02_scoring.ipynb"]
    )
    assert (course / "work" / "exercises" / "02_scoring.ipynb").exists()
    assert not (course / "work" / "solutions").exists()
    assert lab.copy_missing(course) == lab.Copies()


def test_a_learners_edits_stay(course):
    lab.copy_missing(course)
    mine = course / "work" / "00_start_here.ipynb"
    mine.write_text("my own words", encoding="utf-8")
    write(course / "notebooks" / "00_start_here.ipynb", "hello, newer")
    assert lab.copy_missing(course) == lab.Copies(outdated=["00_start_here.ipynb"])
    assert mine.read_text(encoding="utf-8") == "my own words"


def test_a_copy_that_was_only_run_follows_the_course(course):
    lab.copy_missing(course)
    mine = course / "work" / "00_start_here.ipynb"
    write(mine, "hello", outputs=3)
    write(course / "notebooks" / "00_start_here.ipynb", "hello, newer")
    assert lab.copy_missing(course) == lab.Copies(updated=["00_start_here.ipynb"])
    assert mine.read_bytes() == (course / "notebooks" / "00_start_here.ipynb").read_bytes()
    assert lab.copy_missing(course) == lab.Copies() and not list((course / "work").rglob("*.part"))
    write(mine, "hello, mine")
    write(course / "notebooks" / "00_start_here.ipynb", "hello, newest")
    assert lab.copy_missing(course) == lab.Copies(outdated=["00_start_here.ipynb"])


def test_new_outputs_are_no_newer_version(course):
    lab.copy_missing(course)
    write(course / "notebooks" / "00_start_here.ipynb", "hello", outputs=3)
    assert lab.copy_missing(course) == lab.Copies()


def test_what_asks_comes_blank_and_what_tells_as_it_is(course):
    """A stored output below a card would answer it."""
    asks, tells = course / "notebooks" / "02a_soft_look_up.ipynb", course / "notebooks" / "glossary.ipynb"
    write(asks, "predict('share')", "print(0.016)", outputs=1)
    write(tells, "print(0.016)", outputs=1)
    lab.copy_missing(course)
    copies = [json.loads((course / "work" / path.name).read_text(encoding="utf-8")) for path in (asks, tells)]
    assert [[len(cell["outputs"]) for cell in copy["cells"]] for copy in copies] == [[0, 0], [1]]
    assert [cell["source"] for cell in copies[0]["cells"]] == [["predict('share')"], ["print(0.016)"]]
    asks.write_bytes(b"no notebook")
    assert lab.blank(asks.read_bytes()) == b"no notebook"


def test_no_prediction_of_the_course_is_answered_in_a_learner_s_copy():
    for name in (name for name in lab.lessons() if name.endswith(".ipynb")):
        path = lab.ROOT / "notebooks" / name
        stored, copy = json.loads(path.read_bytes()), json.loads(lab.blank(path.read_bytes()))
        code = [cell for cell in copy["cells"] if cell["cell_type"] == "code"]
        asks = any("predict(" in "".join(cell["source"]) for cell in code)
        assert not asks or not any(cell["outputs"] or cell["execution_count"] for cell in code)
        assert [cell["source"] for cell in copy["cells"]] == [cell["source"] for cell in stored["cells"]]


def test_a_lesson_that_was_removed_comes_back(course):
    lab.copy_missing(course)
    (course / "work" / "00_start_here.ipynb").unlink()
    write(course / "notebooks" / "00_start_here.ipynb", "hello, newer")
    assert lab.copy_missing(course) == lab.Copies(copied=["00_start_here.ipynb"])
    assert lab.copy_missing(course) == lab.Copies()


@pytest.mark.parametrize("damage", ["{", "[]"])
def test_a_damaged_record_does_no_harm(course, damage):
    lab.copy_missing(course)
    (course / "work" / lab.RECORD).write_text(damage, encoding="utf-8")
    assert lab.copy_missing(course) == lab.Copies()


def test_untouched_copies_of_what_is_gone_move_away_and_changed_ones_stay(course, capsys):
    write(course / "notebooks" / "01_history.ipynb", "once")
    lab.copy_missing(course)
    ran, changed = course / "work" / "01_history.ipynb", course / "work" / "exercises" / "02_scoring.ipynb"
    write(ran, "once", outputs=2)  # run, and not changed
    write(changed, "my own words")
    write(course / "work" / "mine.ipynb", "once")  # the learner's own, which the course never had
    (course / "notebooks" / "01_history.ipynb").unlink()
    (course / "notebooks" / "exercises" / "02_scoring.ipynb").unlink()
    before = ran.read_text(), changed.read_text()
    done = lab.Copies(aside=["01_history.ipynb"], left=["exercises/02_scoring.ipynb"])
    assert lab.copy_missing(course) == done and not ran.exists()
    moved = course / "work" / "old" / "01_history.ipynb"
    assert (moved.read_text(), changed.read_text()) == before
    assert (course / "work" / "mine.ipynb").exists()
    assert lab.copy_missing(course) == lab.Copies(left=done.left), "named again, and nothing else happens"
    assert lab.main(root=course, copy_only=True) == 0
    assert "work/exercises/02_scoring.ipynb: the course no longer has it" in capsys.readouterr().out
    write(course / "notebooks" / "01_history.ipynb", "anew")
    assert lab.copy_missing(course).copied == ["01_history.ipynb"], "a name that comes back is fresh"
    (course / "notebooks" / "01_history.ipynb").unlink()
    assert lab.copy_missing(course).left[0] == "01_history.ipynb", "what stands there is not overwritten"
    assert moved.read_text() == before[0]


def test_a_copy_that_was_deleted_or_cannot_move_does_no_harm(course, capsys):
    lab.copy_missing(course)
    (course / "work" / "00_start_here.ipynb").unlink()
    (course / "work" / "old").write_text("a file of that name")
    for name in ("00_start_here.ipynb", "exercises/02_scoring.ipynb"):
        (course / "notebooks" / name).unlink()
    write(course / "notebooks" / "02a_look_up.ipynb", "new")
    left = ["exercises/02_scoring.ipynb"]
    assert lab.copy_missing(course) == lab.Copies(copied=["02a_look_up.ipynb"], left=left)
    assert (course / "work" / left[0]).exists()
    (course / "work" / "old").unlink()
    assert lab.main(root=course, copy_only=True) == 0
    assert "1 of the course's former notebooks" in capsys.readouterr().out


def test_jupyterlab_listens_on_this_machine_only_and_keeps_its_token(course):
    words = lab.command(course / "work")
    assert "--ServerApp.ip=127.0.0.1" in words
    assert f"--ServerApp.root_dir={course / 'work'}" in words
    assert "--LabApp.default_url=/lab/tree/00_start_here.ipynb" in words
    assert not any("token" in word or "password" in word for word in words)
    assert "--no-browser" in lab.command(course / "work", browser=False)
    assert "--ServerApp.port=8123" in lab.command(course / "work", port=8123)


def test_the_users_own_settings_are_kept(monkeypatch):
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "/mine")
    first, second = lab.environment()["JUPYTER_CONFIG_PATH"].split(os.pathsep)
    assert (
        (lab.QUIET / "labconfig" / "page_config.json").exists()
        and first == str(lab.QUIET)
        and second == "/mine"
    )


def test_a_taken_port_gets_a_sentence(course, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"Port {port}" in lab.port_problem(port)
        assert lab.main(port=port, root=course) == 1
    assert "leave --port out" in capsys.readouterr().out
    assert not (course / "work").exists()


@pytest.mark.parametrize("port", [0, -1, 70000])
def test_an_impossible_port_gets_a_sentence(port):
    assert "between 1 and 65535" in lab.port_problem(port)


def test_a_folder_without_lessons_gets_a_sentence(tmp_path, capsys):
    assert lab.main(root=tmp_path) == 1
    assert "whole repository" in capsys.readouterr().out


def test_a_work_that_is_a_file_gets_a_sentence(course, capsys):
    (course / "work").write_text("not a folder")
    assert lab.main(root=course, copy_only=True) == 1
    assert "cannot be written" in capsys.readouterr().out


def test_copies_go_where_one_wants_them(course, tmp_path, capsys):
    assert lab.main(root=course, copy_only=True, to=tmp_path / "mine") == 0
    assert (tmp_path / "mine" / "00_start_here.ipynb").exists() and not (course / "work").exists()
    assert f"{tmp_path / 'mine'}/ holds your copies" in capsys.readouterr().out


def test_without_jupyterlab_one_line_says_how_to_get_it(course, capsys, monkeypatch):
    monkeypatch.setattr(lab, "find_spec", lambda name: None)
    assert lab.main(root=course) == 1
    assert capsys.readouterr().out == "JupyterLab is not installed here: pip install 'lesson-lib[lab]'\n"
    assert not (course / "work").exists()


def test_an_ai_that_helps_finds_what_a_tutor_does_and_a_learner_may_change_it(course):
    lab.copy_missing(course)
    told = course / "work" / "AGENTS.md"
    assert "Write no answer" in told.read_text(encoding="utf-8")
    assert (course / "work" / "CLAUDE.md").read_text(encoding="utf-8") == "@AGENTS.md\n"
    told.write_text("Answer in French.", encoding="utf-8")
    lab.copy_missing(course)
    assert told.read_text(encoding="utf-8") == "Answer in French."


class Server(subprocess.Popen):
    """Stands in for JupyterLab: the learner presses Ctrl+C once, and it ends at the second wait."""

    started: ClassVar[list] = []

    def __init__(self, words, env, preexec_fn):
        self.waits = 0
        self.started.append(words)

    def wait(self):
        self.waits += 1
        if self.waits == 1:
            raise KeyboardInterrupt
        return 0

    def poll(self):
        return 0


@pytest.fixture
def started(monkeypatch):
    """The commands of the servers that a terminal has started."""
    monkeypatch.setattr(Server, "started", [])
    monkeypatch.setattr(subprocess, "Popen", Server)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    return Server.started


def test_main_opens_the_notebook_that_is_named(course, capsys, started):
    assert lab.main(root=course, first="02") == 0
    assert started == [lab.command(course / "work", first="exercises/02_scoring.ipynb")]
    assert lab.main(root=course, first="nowhere") == 1 and len(started) == 1
    assert "no notebook 'nowhere'" in capsys.readouterr().out


NAMES = ["00_start_here", "02a_soft_look_up", "12_claims", "glossary", "sources"]
NAMES += ["evidence/02_scoring_evidence", "exercises/02_scoring"]


@pytest.mark.parametrize(
    "asked, meant",
    [
        ("2a", "02a"), ("02A", "02a"), ("source", "sources"), ("Glosary", "glossary"),
        ("exercises/2_scoring", "exercises/02_scoring"),
    ],
)  # fmt: skip
def test_a_name_that_is_nearly_right_is_answered_by_the_right_one(asked, meant):
    assert lab.unknown(asked, NAMES) == f"There is no notebook {asked!r}; did you mean {meant}?"


@pytest.mark.parametrize("asked", ["", "../x"])
def test_another_name_is_answered_by_what_is_accepted(asked):
    sentence = lab.unknown(asked, NAMES)
    for accepted in ("02 ", "02a", "sources", "exercises/02_scoring", "notebooks/"):
        assert accepted in sentence
    assert "\n" not in sentence and len(sentence) < 200 and "did you mean" not in sentence


def test_main_copies_says_so_and_starts_the_server(course, capsys, started):
    assert lab.main(root=course) == 0
    assert "2 new" in capsys.readouterr().out and started == [lab.command(course / "work")]
    write(course / "work" / "00_start_here.ipynb", "my own words")
    for name in ("00_start_here.ipynb", "exercises/02_scoring.ipynb"):
        write(course / "notebooks" / name, "newer")
    assert lab.main(root=course, copy_only=True) == 0
    said = capsys.readouterr().out
    assert "00_start_here.ipynb: you changed it, and the course has a newer version" in said
    assert "0 new, 1 brought up to date" in said and len(started) == 1


# Stands in for JupyterLab: a kernel in a session of its own, which ends when told to, or when its parent has.
SERVER = """
import os, signal, subprocess, sys, time
watch = "import os, time\\nwhile os.getppid() == {0}: time.sleep(.1)".format(os.getpid())
kernel = subprocess.Popen([sys.executable, "-c", watch], start_new_session=True)
def stop(*_):
    kernel.kill(), kernel.wait(), sys.exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN if "hung" in sys.argv else stop)
print(os.getpid(), kernel.pid, flush=True)
while True:
    time.sleep(1)
"""
LAB = """
import os, signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored under nohup
from lesson_lib import cli
from lesson_lib.cli import lab
lab.ROOT, lab.DEADLINE_S = Path(sys.argv[1]), 0.5 if "hung" in sys.argv else 30
lab.main.__kwdefaults__["root"] = lab.ROOT
lab.command = lambda *_, **__: [sys.executable, "-c", *sys.argv[2:]]
if "early" in sys.argv:  # while the server starts
    lab.environment = lambda: os.kill(os.getpid(), signal.SIGHUP) or os.environ
sys.exit(cli.main(["lab"]))
"""


def lives(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")  # in a container nobody may collect what has ended
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


@pytest.mark.skipif(os.name != "posix", reason="Windows has no signals: kernels watch their server there")
@pytest.mark.parametrize("way", ["SIGINT", "SIGTERM hung", "SIGHUP of the terminal", "SIGHUP early"])
def test_whatever_ends_the_lab_ends_its_server_and_kernels(course, way):
    words = [sys.executable, "-c", LAB, str(course), SERVER, *way.split()[1:]]
    number = getattr(signal, way.split()[0])
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as started:
        line = next((line for line in started.stdout if line.split()[0].isdigit()), "")
        processes = [started.pid, *map(int, line.split())]
        try:
            if "early" not in way:
                (os.killpg if "terminal" in way else os.kill)(started.pid, number)
            assert started.wait(timeout=20) == 128 + number
            end = time.monotonic() + 10  # a kernel looks for its parent now and then
            while any(map(lives, processes)) and time.monotonic() < end:
                time.sleep(0.1)
            assert not any(map(lives, processes))
        finally:
            for process in filter(lives, processes):
                os.kill(process, signal.SIGKILL)


def test_a_file_to_carry_away_is_copied_renewed_and_kept_where_it_was_changed(course):
    source, copy = (folder / "carry" / "attention.py" for folder in (course / "notebooks", course / "work"))
    source.parent.mkdir()
    for text, done in (("x = 1\n", "copied"), ("x = 2\n", "updated")):
        source.write_text(text, encoding="utf-8")
        assert getattr(lab.copy_missing(course), done)[-1:] == ["carry/attention.py"]
        assert copy.read_text(encoding="utf-8") == text
    copy.write_text("mine = 3\n", encoding="utf-8")
    source.write_text("x = 4\n", encoding="utf-8")
    assert lab.copy_missing(course) == lab.Copies(outdated=["carry/attention.py"])
    assert copy.read_text(encoding="utf-8") == "mine = 3\n"
