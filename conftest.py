"""What every pytest run shares, `pytest --nbval notebooks` too: the environment the notebooks were built in.

One thread, so that sums add up in one order; no progress bars; nothing of the user's: neither progress nor
IPython's start-up files. `--device` says what computes, for tests and notebooks alike.
"""

import os
import tempfile
import warnings
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

_EMPTY = tempfile.TemporaryDirectory(prefix="lesson_tests_", ignore_cleanup_errors=True)

os.environ |= {
    "OMP_NUM_THREADS": "1",
    "LESSON_PROGRESS": "off",
    "LESSON_HOME": os.path.join(_EMPTY.name, "home"),
    "IPYTHONDIR": os.path.join(_EMPTY.name, "ipython"),
}
for shortened in ("LESSON_STEPS", "LESSON_STORED"):  # the stored outputs come from full trainings
    os.environ.pop(shortened, None)
os.environ.pop("MPLBACKEND", None)  # kernels choose their own

ROOT = Path(__file__).parent
BEGUN = pytest.StashKey[float]()  # of a test: the processor's seconds before it

collect_ignore_glob = ["work/*", "notebooks/source/*"]


def pytest_addoption(parser):
    parser.addoption(
        "--device",
        choices=["auto", "cpu", "cuda", "mps", "simulated"],
        help=(
            "what the lessons compute on (default: LESSON_DEVICE, else cuda where there is one); simulated:"
            " tests/gpu/simulated.py"
        ),
    )


def pytest_configure(config):
    if config.getoption("nbval", default=False) or config.getoption("nbval_lax", default=False):
        from nbval import kernel, plugin

        kernel.start_new_kernel = started_again(kernel.start_new_kernel)
        plugin.IPyNbCell.compare_outputs = with_pictures(plugin.IPyNbCell.compare_outputs)
    if chosen := config.getoption("--device"):
        os.environ["LESSON_DEVICE"] = chosen
    if chosen == "simulated":
        from tests.gpu import simulated

        simulated.install()
        # kernels of notebooks are processes of their own, and begin with IPython's start-up files
        startup = Path(os.environ["IPYTHONDIR"], "profile_default", "startup")
        startup.mkdir(parents=True)
        lines = [
            "import sys",
            f"sys.path.insert(0, {str(ROOT)!r})",
            "from tests.gpu import simulated",
            "simulated.install()",
            "del sys, simulated",
        ]
        (startup / "00-simulated.py").write_text("\n".join(lines), encoding="utf-8")
        # programs that a test or a notebook starts know no such device, and compute on the CPU
        begun = Path(_EMPTY.name, "begun")
        begun.mkdir(exist_ok=True)
        line = "import os; os.environ['LESSON_DEVICE'] = 'cpu'\n"
        (begun / "sitecustomize.py").write_text(line, encoding="utf-8")
        path = [str(begun), os.environ.get("PYTHONPATH")]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))


def started_again(start):
    """`start`, once more where a kernel does not answer: with many workers two kernels can be given the same
    port, and one of them waits in vain. What its second start raises is raised."""

    def begin(*args, **kwargs):
        try:
            return start(*args, **kwargs)
        except RuntimeError as error:
            warnings.warn(f"a notebook's kernel was started again: {error}", stacklevel=2)
            return start(*args, **kwargs)

    return begin


@cache
def as_pinned(package: str) -> bool:
    """Whether that package is installed in the version that requirements.txt, if there is one, names."""
    pins = ROOT / "requirements.txt"
    line = f"{package}=={metadata.version(package)}"
    return not pins.exists() or line in pins.read_text(encoding="utf-8").splitlines()


def with_pictures(compare):
    """`compare`, of a cell's outputs with the stored ones; and their pictures look alike, which nbval leaves
    out."""

    def same(cell, new, stored, *args, **kwargs):
        if not as_pinned("matplotlib"):  # another version draws other letters
            return compare(cell, new, stored, (*cell.parent.skip_compare, "image/gif"))
        if not compare(cell, new, stored, *args, **kwargs):
            return False
        if {"measured", "trained"} & set(cell.cell.metadata.get("tags", ())):
            return True  # seconds, or a training's last digits: other processors draw something else
        from lesson_lib.cli.outputs import looks_alike, pngs

        if all(map(looks_alike, pngs(stored), pngs(new))):
            return True
        cell.comparison_traceback.append("its picture has changed: build the notebook again, and look at it")
        return False

    return same


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Note where a test begins."""
    item.stash[BEGUN] = sum(os.times()[:4])
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """The processor's seconds of a test, with its fixtures and the processes that it started and waited for,
    go to the report (tests/parts.py)."""
    if call.when == "teardown":
        item.user_properties.append(("processor", round(sum(os.times()[:4]) - item.stash[BEGUN], 2)))
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """An empty LESSON_HOME for each notebook: its kernel starts with the first cell, right after this."""
    notebook = item.parent
    if type(notebook).__name__ == "IPyNbFile" and notebook.kernel is None:
        os.environ["LESSON_HOME"] = tempfile.mkdtemp(dir=_EMPTY.name)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item, nextitem):
    """The processor's seconds of a notebook, its kernel's and its kernel's children's, and what its kernel
    holds at the end (PSS: shared pages count in part) go to the report (tests/parts.py)."""
    notebook = item.parent
    if type(notebook).__name__ != "IPyNbFile" or (nextitem is not None and nextitem.parent is notebook):
        return
    import psutil

    try:
        kernel = psutil.Process(notebook.kernel.km.provisioner.pid)
        spent, held = kernel.cpu_times(), kernel.memory_full_info()
    except (AttributeError, psutil.Error):  # no kernel: its death is a failure of its own
        return
    place = notebook.path.relative_to(ROOT).as_posix()
    item.user_properties.append((f"CPU s: {place}", round(sum(spent[:4]), 1)))
    item.user_properties.append((f"MiB: {place}", round(getattr(held, "pss", held.rss) / 2**20)))
