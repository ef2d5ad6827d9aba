"""What every pytest run shares, `pytest --nbval notebooks` too: the environment the notebooks were built in.

One thread, so that sums add up in one order; no progress bars; nothing of the user's: neither progress nor
IPython's start-up files.
"""

import os
import tempfile

import pytest

_EMPTY = tempfile.TemporaryDirectory(prefix="lesson_tests_", ignore_cleanup_errors=True)

os.environ |= {
    "OMP_NUM_THREADS": "1",
    "LESSON_PROGRESS": "off",
    "LESSON_HOME": os.path.join(_EMPTY.name, "home"),
    "IPYTHONDIR": os.path.join(_EMPTY.name, "ipython"),
}
os.environ.pop("LESSON_STEPS", None)  # the stored outputs come from full trainings
os.environ.pop("MPLBACKEND", None)  # kernels choose their own

collect_ignore_glob = ["work/*", "notebooks/source/*"]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """An empty LESSON_HOME for each notebook: its kernel starts with the first cell, right after this."""
    notebook = item.parent
    if type(notebook).__name__ == "IPyNbFile" and notebook.kernel is None:
        os.environ["LESSON_HOME"] = tempfile.mkdtemp(dir=_EMPTY.name)
