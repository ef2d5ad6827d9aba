"""Benchmarks run the library as a learner does: without shape checks."""

import jaxtyping
import pytest

from tests.browser.conftest import browser, lab, open_notebook, scratch

__all__ = [
    "browser",
    "lab",
    "open_notebook",
    "scratch",
]  # the widgets are timed in the browser tests' JupyterLab


@pytest.fixture(autouse=True)
def _no_shape_checks():
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
