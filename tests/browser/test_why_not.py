"""Why the browser tests do not run is said, and in CI it is a failure unless it was asked for."""

from types import SimpleNamespace

import pytest

from lesson_lib.cli import chromium
from tests.browser import conftest


def test_a_browser_that_is_not_there_is_named(monkeypatch):
    monkeypatch.delenv("LESSON_BROWSER", raising=False)
    monkeypatch.setattr(chromium, "find", lambda: None)
    assert "sudo apt-get install chromium" in conftest.why_not()
    monkeypatch.setattr(chromium, "find", lambda: "/usr/bin/chromium")
    assert conftest.why_not() is None
    monkeypatch.setenv("LESSON_BROWSER", "skip")
    assert "LESSON_BROWSER=skip" in conftest.why_not()


@pytest.mark.parametrize(
    "settings, ends, said",
    [
        ({"CI": "true", "LESSON_BROWSER": ""}, pytest.fail, "and CI is set"),
        ({"CI": "true", "LESSON_BROWSER": "skip"}, pytest.skip, "LESSON_BROWSER=skip: browser tests skipped"),
        ({"CI": "", "LESSON_BROWSER": ""}, pytest.skip, "browser tests skipped .on Debian"),
    ],
    ids=["CI", "CI, skip", "a person"],
)
def test_without_a_browser(settings, ends, said, monkeypatch):
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(chromium, "find", lambda: None)
    with pytest.raises((pytest.fail.Exception, pytest.skip.Exception), match=said) as caught:
        conftest.stop_without(conftest.why_not())
    assert caught.type is ends.Exception


def test_a_skip_is_seen_whatever_pytest_was_asked_to_show(monkeypatch):
    monkeypatch.setenv("LESSON_BROWSER", "skip")
    lines, skipped = [], SimpleNamespace(nodeid="tests/browser/test_lessons.py::test_x")
    for stats in ({}, {"skipped": [skipped]}):
        conftest.pytest_terminal_summary(SimpleNamespace(stats=stats, write_line=lines.append))
    assert lines == ["LESSON_BROWSER=skip: browser tests skipped"]
