"""`make test`, part by part: what is run, what is told, the budget, and what every run of pytest shares."""

import base64
import io
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import nbformat
import pytest
from PIL import Image

from tests import parts

ROOT = Path(__file__).resolve().parents[1]


def test_parts_are_spread_and_told_the_device(tmp_path):
    unit = parts.command("unit", tmp_path / "unit.xml", workers=7, device="cuda")
    assert (
        unit[0] == sys.executable and f"--junitxml={tmp_path / 'unit.xml'}" in unit and "not browser" in unit
    )
    assert unit[-6:] == ["-n", "7", "--dist", "worksteal", "--device", "cuda"]
    notebooks = parts.command("notebooks", tmp_path / "notebooks.xml", workers=5)
    assert notebooks[-4:] == ["-n", "5", "--dist", "loadfile"] and "--device" not in notebooks
    assert {"--nbval", "--nbval-current-env", "--nbval-cell-timeout=1200", "notebooks"} <= set(notebooks)
    browser = parts.command("browser", tmp_path / "browser.xml")
    assert browser[-4:] == ["-n", "2", "--dist", "loadgroup"]
    assert parts.command("browser", tmp_path / "browser.xml", stop=True) == [*browser, "-x"]


def test_parts_keep_a_summary(tmp_path, monkeypatch, capsys):
    ends = {
        "unit": parts.PartResult(0, Counter(passed=3, skipped=1)),
        "notebooks": parts.PartResult(1, Counter(failed=2), ["FAILED a::b"]),
    }
    monkeypatch.setattr(parts, "run", lambda part, folder, **options: ends[part])
    assert parts.main(["unit", "notebooks"], reports=tmp_path / "r") == 1
    summary = json.loads((tmp_path / "r" / "summary.json").read_text(encoding="utf-8"))
    assert all(part.pop("seconds") >= 0 for part in summary.values())
    assert summary == {
        "unit": {"exit_code": 0, "passed": 3, "skipped": 1},
        "notebooks": {"exit_code": 1, "failed": 2},
    }
    assert "FAILED a::b" in capsys.readouterr().out
    assert parts.main(["unit"], reports=tmp_path / "r") == 0
    for stop, ran in (True, {"notebooks"}), (False, {"notebooks", "unit"}):
        assert parts.main(["notebooks", "unit"], reports=tmp_path / "r", stop=stop) == 1
        assert set(json.loads((tmp_path / "r" / "summary.json").read_text(encoding="utf-8"))) == ran


def test_a_command_tells_its_code_its_words_and_the_processors_seconds(tmp_path):
    words = "import sys, time\nwhile time.process_time() < 0.3: pass\nprint('said'); sys.exit(3)"
    inner = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {words!r}]))"
    with open(tmp_path / "said.txt", "wb") as file:
        code, cpu_s = parts.call([sys.executable, "-c", inner], file)
    assert code == 3 and (tmp_path / "said.txt").read_text(encoding="utf-8").strip() == "said"
    assert cpu_s > 0.3 or sys.platform == "win32"


@pytest.mark.parametrize("stop", [False, True])
def test_what_runs_beside_another_part_is_told_in_its_turn(stop, tmp_path, monkeypatch, capsys):
    begun, order = threading.Event(), []

    def run(part, folder, *, printed=None, **options):
        order.append(part)
        if printed:
            printed.write_text(f"words of the {part}\n", encoding="utf-8")
        if part == "class":
            begun.set()
        elif part == "unit" and not stop:
            assert begun.wait(20)  # it does not end before the class has begun
        return parts.PartResult(0, Counter(passed=1))

    monkeypatch.setattr(parts, "run", run)
    monkeypatch.setattr(parts, "why_not", lambda part: "")
    assert parts.main([], reports=tmp_path, stop=stop) == 0
    said = capsys.readouterr().out
    alone = [part for part in order if part not in parts.BESIDE.values()]
    assert alone == ["unit", "notebooks", "browser"]
    assert order.index("class") == 4 if stop else order.index("class") <= 1 < 2 <= order.index("simulated")
    assert said.index("== simulated: passed") < said.index("== class: slides") < said.index("== class: passed")
    assert ("words of the class" in said) == (not stop)


def test_a_report_of_an_earlier_run_is_not_counted(tmp_path, monkeypatch):
    (tmp_path / "unit.xml").write_text("<testsuites><testcase/></testsuites>", encoding="utf-8")
    monkeypatch.setattr(parts, "call", lambda line, out: (3, 0.5))
    went = parts.run("unit", tmp_path)
    assert (went.code, went.counts, went.cpu_s) == (3, Counter(), 0.5)


def test_a_run_above_its_budget_is_told_and_fails_where_that_is_asked(tmp_path, monkeypatch, capsys):
    spent = parts.PartResult(0, Counter(passed=2), cpu_s=26 * 60, took={"a::x": (26.0, 3.0)})
    monkeypatch.setattr(parts, "run", lambda part, folder, **options: spent)
    monkeypatch.setattr(parts, "reference", lambda: parts.REFERENCE_S)
    for budget in (False, True):
        assert parts.main(["notebooks"], reports=tmp_path, budget=budget) == budget
        said = capsys.readouterr().out
        verdict = "FAILED" if budget else "WARNING"
        assert f"{verdict} 26.0 core-minutes of unit and notebooks" in said and "26.0    3.0  a::x" in said
    assert parts.main(["simulated"], reports=tmp_path, budget=True) == 0
    monkeypatch.setattr(parts, "reference", lambda: 1.2 * parts.REFERENCE_S)  # a slower machine has more
    assert parts.main(["notebooks"], reports=tmp_path, budget=True) == 0


def test_what_a_notebook_took_is_in_the_report(tmp_path):
    report = tmp_path / "report.xml"
    words = ["--nbval", "--nbval-current-env", f"--junitxml={report}", "-q", "-p", "no:cacheprovider"]
    name = "notebooks/exercises/02_scoring.ipynb"
    line = [sys.executable, "-m", "pytest", *words, name]
    inherited = {k: v for k, v in os.environ.items() if k != "LESSON_DEVICE"}  # a simulated one is not there
    subprocess.run(line, cwd=ROOT, check=True, capture_output=True, env=inherited)
    found = {p.get("name"): float(p.get("value")) for p in ElementTree.parse(report).iter("property")}
    assert set(found) == {f"CPU s: {name}", f"MiB: {name}", "processor"}
    assert found[f"CPU s: {name}"] > 1 and 50 < found[f"MiB: {name}"] < 2000


def project(folder, *names):
    """A folder with the settings of every pytest run, and notebooks of one small cell."""
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    book = {"cells": [{"cell_type": "code", "source": "1", "outputs": [], "metadata": {}, "id": "a"}]}
    book |= {"metadata": {"kernelspec": {"name": "python3"}}, "nbformat": 4, "nbformat_minor": 5}
    book["cells"][0]["execution_count"] = 1
    for name in names:
        path = folder / "notebooks" / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(book), encoding="utf-8")


NO_ANSWER = """
from nbval import kernel

starts, start = [], kernel.start_new_kernel

def start_new_kernel(*args, **kwargs):
    starts.append(1)
    if len(starts) <= {failures}:
        raise RuntimeError("Kernel didn't respond in 60 seconds")
    return start(*args, **kwargs)

kernel.start_new_kernel = start_new_kernel
"""


@pytest.mark.parametrize("failures, passes", [(1, True), (2, False)])
def test_a_kernel_that_does_not_answer_is_started_once_more(tmp_path, failures, passes):
    project(tmp_path, "one")
    (tmp_path / "notebooks" / "conftest.py").write_text(NO_ANSWER.format(failures=failures), encoding="utf-8")
    words = ["-o", "addopts=", "-p", "no:cacheprovider", "--nbval-lax", "--nbval-current-env", "notebooks"]
    line = [sys.executable, "-m", "pytest", "-q", *words]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True)
    assert ("1 passed" in done.stdout, done.returncode == 0) == (passes, passes), done.stdout
    assert "a notebook's kernel was started again: Kernel didn't respond" in done.stdout


@pytest.mark.parametrize("tags, new, code", [([], 0, 0), ([], 1, 1), (["trained"], 1, 0)])
def test_a_picture_that_changed_fails_its_cell(tmp_path, tags, new, code):
    shades = []
    for shade in ("white", "black"):
        file = io.BytesIO()
        Image.new("RGB", (64, 64), shade).save(file, format="PNG")
        shades.append(base64.b64encode(file.getvalue()).decode())
    show = "from IPython.display import display; display({{'image/png': {!r}, 'text/plain': 'A.'}}, raw=True)"
    data = {"image/png": shades[0], "text/plain": "A."}
    cell = nbformat.v4.new_code_cell(show.format(shades[new]), execution_count=1, metadata={"tags": tags})
    cell.outputs = [nbformat.v4.new_output("display_data", data)]
    project(tmp_path)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "a.ipynb")
    words = ["-o", "addopts=", "-p", "no:cacheprovider", "--nbval", "--nbval-current-env", "a.ipynb"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, "its picture has changed" in done.stdout) == (code, bool(code)), done.stdout


def test_notebooks_of_every_kind_are_collected_and_no_sources(tmp_path):
    names = ["02a_soft_look_up", "glossary", "evidence/02_scoring_evidence", "exercises/02_scoring"]
    project(tmp_path, *names, "solutions/02_scoring", "source/02a_soft_look_up", "source/evidence/02_x")
    words = ["--collect-only", "-q", "-p", "no:cacheprovider", *parts.PARTS["notebooks"][1]]
    line = [sys.executable, "-m", "pytest", "-o", "addopts=", *words]
    done = subprocess.run(line, cwd=tmp_path, check=True, capture_output=True, text=True)
    found = set(re.findall(r"notebooks/(\S+)\.ipynb::", done.stdout))
    assert found == {*names, "solutions/02_scoring"}, done.stdout


def test_two_chapters_run_on_the_simulated_device_whatever_their_parts_are_called(tmp_path):
    names = ["02_scoring", "02a_soft_look_up", "03_matrix_form", "12_claims", "evidence/02_scoring_evidence"]
    for name in names:
        path = tmp_path / "notebooks" / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    wanted = [f"notebooks/{name}.ipynb" for name in ("02_scoring", "02a_soft_look_up", "12_claims")]
    assert parts.of_two_chapters(tmp_path) == wanted
    chosen = [word for word in parts.PARTS["simulated"][1] if word.startswith("notebooks/")]
    assert chosen == parts.of_two_chapters() and {word[10:12] for word in chosen} == {"02", "12"}
