"""Memory of a kernel after each part, page and evidence, run from top to bottom: what a learner's machine, or
a class server, has to hold for it."""

import os

import nbformat
import psutil
import pytest
from nbclient import NotebookClient

from lesson_lib.cli import kinds, lab

NOTEBOOKS = lab.ROOT / "notebooks"


def held_mib(pid: int) -> tuple[float, float]:
    """PSS (pages shared with other processes divided among them; RSS where the system does not know it) and
    RSS, in MiB."""
    held = psutil.Process(pid).memory_full_info()
    return getattr(held, "pss", held.rss) / 2**20, held.rss / 2**20


@pytest.mark.parametrize("name", kinds.built(lab.ROOT, ("page", "part", "evidence")))
def test_a_kernel_after_a_lesson(name, table, tmp_path, monkeypatch):
    monkeypatch.setenv("LESSON_HOME", os.fspath(tmp_path))
    path = NOTEBOOKS / f"{name}.ipynb"
    folder = {"metadata": {"path": os.fspath(path.parent)}}
    client = NotebookClient(nbformat.read(path, 4), timeout=1200, kernel_name="python3", resources=folder)
    with client.setup_kernel():
        pid = client.km.provisioner.pid
        for number, cell in enumerate(client.nb.cells):
            client.execute_cell(cell, number)
        pss, rss = held_mib(pid)
    table(
        "kernels after a lesson, MiB",
        {"lesson": name, "PSS": f"{pss:.0f}", "RSS": f"{rss:.0f}"},
    )
    assert rss >= pss > 50
