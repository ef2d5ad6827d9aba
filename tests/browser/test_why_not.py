"""Why the browser tests do not run is said, and in CI it is a failure unless it was asked for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lesson_lib.cli import chromium
from tests.browser import conftest

ROOT = Path(__file__).resolve().parents[2]


def test_a_browser_that_is_not_there_is_named(monkeypatch):
    monkeypatch.delenv("LESSON_BROWSER", raising=False)
    monkeypatch.setattr(chromium, "find", lambda: None)
    assert "sudo apt-get install chromium" in conftest.why_not()
    monkeypatch.setattr(chromium, "find", lambda: "/usr/bin/chromium")
    assert conftest.why_not() is None
    monkeypatch.setenv("LESSON_BROWSER", "skip")
    assert "LESSON_BROWSER=skip" in conftest.why_not()


@pytest.mark.parametrize(
    "settings, code, said",
    [
        ({"CI": "true", "LESSON_BROWSER": ""}, 1, "and CI is set"),
        ({"CI": "true", "LESSON_BROWSER": "skip"}, 0, "LESSON_BROWSER=skip: browser tests skipped"),
        ({"CI": "", "LESSON_BROWSER": ""}, 0, "browser tests skipped (on Debian"),
    ],
    ids=["CI", "CI, skip", "a person"],
)
def test_without_a_browser(tmp_path, settings, code, said):
    """The whole run, with a PATH on which no browser is."""
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--confcutdir=tests/browser",  # the library with its shapes checked is not needed here
        "tests/browser/test_lessons.py",
        "-k",
        "opens_by_itself",
    ]
    if any(os.path.exists(path) for path in chromium.PATHS):
        pytest.skip("a browser lies at a fixed place here")
    done = subprocess.run(
        words, cwd=ROOT, env=os.environ | settings | {"PATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert (done.returncode, said in done.stdout) == (code, True), done.stdout
