"""Benchmarks run the library as a learner does: without shape checks."""

import jaxtyping
import pytest
import torch

from lesson_lib.device import device
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
    # A default device is a mode, and under a mode torch's layers leave their fast path.
    torch.set_default_device(None)
    yield
    torch.set_default_device(device())
    jaxtyping.config.update("jaxtyping_disable", False)
