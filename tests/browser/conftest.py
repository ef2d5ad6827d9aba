"""One JupyterLab and one Chromium for all browser tests; a page for each notebook."""

import os

import pytest

from lesson_lib.cli import chromium
from tests.browser import driver


def why_not() -> str | None:
    """Why the browser tests cannot run here, or None."""
    if os.environ.get("LESSON_BROWSER") == "skip":
        return "LESSON_BROWSER=skip: browser tests skipped"
    if chromium.find() is None:
        return (
            "no Chromium or Chrome was found: browser tests skipped (on Debian: sudo apt-get install"
            " chromium)"
        )
    return None


def in_notebook(*names: str):
    """Run the test in each of these notebooks; all tests of a notebook go to one process, where it
    runs once."""
    return pytest.mark.parametrize("notebook", names, indirect=True, ids=names)


def stop_without(reason: str | None) -> None:
    """Without a browser the tests are skipped; in CI they fail, unless LESSON_BROWSER=skip."""
    if reason and os.environ.get("CI") and os.environ.get("LESSON_BROWSER") != "skip":
        pytest.fail(
            f"{reason.split(':')[0]}, and CI is set: install one, or set LESSON_BROWSER=skip", pytrace=False
        )
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def browser():
    """Chromium, headless."""
    stop_without(why_not())
    with driver.chromium() as started:
        yield started


def pytest_collection_modifyitems(items):
    """The tests of one notebook follow each other, so that it is opened and run once."""
    specs = [
        getattr(item, "callspec", None) if "bench" in getattr(item, "fixturenames", ()) else None
        for item in items
    ]
    names = [spec and spec.params.get("notebook") for spec in specs]
    first = {name: place for place, name in reversed(list(enumerate(names)))}
    order = sorted(range(len(items)), key=lambda place: first[names[place]] if names[place] else place)
    items[:] = [items[place] for place in order]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With `--dist loadgroup`, the tests of one notebook go to one process. (xdist 3.8.0's own groups are
    none with pytest 9.2.)"""
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByNotebook(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            notebook = nodeid.partition("[")[2]
            return notebook if notebook.endswith(".ipynb]") else nodeid.partition("::")[0]

    return ByNotebook(config, log)


def pytest_terminal_summary(terminalreporter):
    """A skip is seen, whatever pytest was asked to show."""
    reason = why_not()
    if reason and any(
        "tests/browser/" in report.nodeid for report in terminalreporter.stats.get("skipped", [])
    ):
        terminalreporter.write_line(reason)


@pytest.fixture(scope="session")
def scratch(tmp_path_factory):
    """The folder of the server's settings, workspaces and progress, and of the learner's copies."""
    return tmp_path_factory.mktemp("jupyterlab")


@pytest.fixture(scope="session")
def lab(browser, scratch):
    """The address of a JupyterLab in a learner's folder."""
    with driver.server(driver.copies(scratch), scratch) as address:
        yield address


@pytest.fixture(scope="session")
def bench(browser, lab):
    """Where one notebook at a time lies open, run from top to bottom; the next one takes its place."""
    held = driver.Bench(browser, lab)
    yield held
    held.clear()


@pytest.fixture
def notebook(request, bench):
    """The notebook that `in_notebook` names; it ran once for all tests of it, and its page is 1,400 pixels
    wide again."""
    return bench.take(request.param)
