"""One JupyterLab and one Chromium for all browser tests; a page for each notebook."""

import os

import pytest

from tests.browser import chromium, driver


def why_not() -> str | None:
    """Why the browser tests cannot run here, or None."""
    if os.environ.get("LESSON_BROWSER") == "skip":
        return "LESSON_BROWSER=skip: browser tests skipped"
    if chromium.find() is None:
        return "no Chromium or Chrome was found: browser tests skipped (on Debian: sudo apt-get install chromium)"
    return None


@pytest.fixture(scope="session")
def browser():
    """Chromium, headless. Without one the tests are skipped; in CI they fail, unless LESSON_BROWSER=skip."""
    reason = why_not()
    if reason and os.environ.get("CI") and os.environ.get("LESSON_BROWSER") != "skip":
        pytest.fail(
            f"{reason.split(':')[0]}, and CI is set: install one, or set LESSON_BROWSER=skip", pytrace=False
        )
    if reason:
        pytest.skip(reason)
    with driver.chromium() as started:
        yield started


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


@pytest.fixture
def open_notebook(browser, lab):
    """Open a notebook in a page of its own, 1,400 pixels wide; the network is this machine alone."""
    contexts = []

    def opened(name: str) -> driver.Notebook:
        contexts.append(browser.new_context(viewport={"width": 1400, "height": 1000}))
        contexts[-1].route(
            lambda url: not url.startswith((lab, "data:", "blob:")), lambda route: route.abort()
        )
        return driver.Notebook(contexts[-1].new_page(), lab, name)

    yield opened
    for context in contexts:
        context.close()
