"""Benchmarks run the library as a learner does: without shape checks. Those against other libraries print
tables, at the end."""

import os

import jaxtyping
import pytest
import torch

from lesson_lib.device import device
from tests.browser.conftest import bench, browser, lab, notebook, scratch

# the widgets are timed in the browser tests' JupyterLab
__all__ = [
    "bench",
    "browser",
    "lab",
    "notebook",
    "scratch",
]


@pytest.fixture(autouse=True)
def _no_shape_checks():
    jaxtyping.config.update("jaxtyping_disable", True)
    # A default device is a mode, and under a mode torch's layers leave their fast path.
    torch.set_default_device(None)
    yield
    torch.set_default_device(device())
    jaxtyping.config.update("jaxtyping_disable", False)


TABLES: dict[str, list[dict]] = {}  # rows under their titles, {column: cell}


@pytest.fixture
def table():
    """`table(title, row)` keeps a row, {column: cell}, for a table at the end. One thread, so that processor
    time is the work's."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield lambda title, row: TABLES.setdefault(title, []).append({**row, "load": f"{os.getloadavg()[0]:.1f}"})
    torch.set_num_threads(before)


def pytest_terminal_summary(terminalreporter):
    """All tables, their columns in line. "load" is the machine's when the row was measured."""
    for title, rows in TABLES.items():
        terminalreporter.section(f"{title}; one thread, processor time")
        lines = [[*rows[0]], *([*row.values()] for row in rows)]
        widths = [max(len(str(line[i])) for line in lines) for i in range(len(lines[0]))]
        for line in lines:
            terminalreporter.write_line(
                "  ".join(str(cell).rjust(width) for cell, width in zip(line, widths, strict=True))
            )
