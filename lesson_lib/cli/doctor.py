"""`python -m lesson_lib doctor`: a look at machine and installation, a sentence each, with a repair where
needed."""

import argparse
import importlib.util
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from lesson_lib import places
from lesson_lib.cli import lab, preflight
from lesson_lib.places import ROOT

NO_RUNTIME = (126, 1114)  # Windows: a library that torch's c10.dll needs is missing, or does not start
VISUAL_C = (
    "torch needs Microsoft's Visual C++ runtime, which this Windows lacks or has too old: winget install"
    " Microsoft.VCRedist.2015+.x64 (or vc_redist.x64.exe from Microsoft's pages), then restart Windows"
)


@dataclass(frozen=True)
class Finding:
    """One line of the report: fine or not, what was seen, and what to do where it is not fine."""

    fine: bool
    text: str
    repair: str = ""

    def __str__(self) -> str:
        return f"{'ok  ' if self.fine else 'MEND'}  {self.text}" + (
            f"\n      {self.repair}" if self.repair else ""
        )


def python() -> Finding:
    """Is this Python one of those that the course runs on, and in an environment of its own?"""
    version = ".".join(map(str, sys.version_info[:3]))
    if problem := preflight.python_problem(sys.version_info, preflight.other_pythons()):
        return Finding(False, f"Python {version}", problem)
    if problem := preflight.mac_problem(sys.platform, platform.machine()):
        return Finding(False, f"Python {version}", problem)
    own = (
        "" if sys.prefix != sys.base_prefix else " (not in an environment of its own; make setup makes .venv)"
    )
    return Finding(True, f"Python {version}{own}")


def packages(root: Path = ROOT) -> Finding:
    """Are the pinned packages installed, in the pinned versions or, as `uv run` takes them, newer ones?"""
    from packaging.requirements import Requirement  # matplotlib needs it, too
    from packaging.version import Version

    lines = (root / "requirements.txt").read_text(encoding="utf-8").splitlines()
    wrong, newer = [], []
    for pin in (Requirement(line) for line in lines if "==" in line and not line.startswith("#")):
        if pin.marker and not pin.marker.evaluate():
            continue  # for another system, or another Python
        wanted = str(pin.specifier).removeprefix("==")
        try:
            installed = metadata.version(pin.name)
        except metadata.PackageNotFoundError:
            wrong.append(f"{pin.name} none in place of {wanted}")
            continue
        if Version(installed) < Version(wanted):
            wrong.append(f"{pin.name} {installed} in place of {wanted}")
        elif Version(Version(installed).public) > Version(wanted):
            newer.append(f"{pin.name} {installed}")
    if wrong:
        return Finding(
            False, "packages: " + ", ".join(wrong), "make setup (or: pip install -r requirements.txt)"
        )
    also = f"; newer than the course was tested with: {', '.join(newer)}" if newer else ""
    return Finding(True, f"packages: all pinned versions are installed{also}")


def torch() -> Finding:
    """Does torch compute?"""
    try:
        module = importlib.import_module("torch")
        four = float((module.ones(2, 2) @ module.ones(2, 2)).sum()) / 2
    except Exception as error:
        repair = "make setup; if it stays, remove .venv first"
        if getattr(error, "winerror", None) in NO_RUNTIME:
            repair = VISUAL_C
        return Finding(False, f"torch does not work ({type(error).__name__}: {error})", repair)
    return Finding(four == 4, f"torch {module.__version__} computes, with {module.get_num_threads()} threads")


def device() -> Finding:
    """Which device do the lessons use?"""
    try:
        from lesson_lib.device import device as chosen

        return Finding(
            True,
            f"the lessons compute on: {chosen().type}"
            f" (LESSON_DEVICE={os.environ.get('LESSON_DEVICE', 'auto')})",
        )
    except Exception as error:
        return Finding(False, f"no device: {error}", "unset LESSON_DEVICE, or set it to cpu")


def disk() -> Finding:
    """Is there room for what the lessons write?"""
    free = preflight.free_gib(str(ROOT))
    return Finding(
        free > 0.5,
        f"{free:.1f} GB are free on the disk",
        "" if free > 0.5 else "free half a gigabyte at least",
    )


def home() -> Finding:
    """Can progress and trained weights be kept?"""
    try:
        from lesson_lib.device import home as home_folder

        folder = home_folder()
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        if not existing.is_dir() or not os.access(existing, os.W_OK):
            raise PermissionError(f"{existing} is not a folder that you can write to")
    except Exception as error:
        return Finding(
            False, f"progress cannot be kept: {error}", "set LESSON_HOME to a folder that you can write to"
        )
    if os.environ.get("LESSON_HOME"):
        return Finding(True, "progress is kept in the folder that LESSON_HOME names")
    shown = (
        f"~/{folder.relative_to(Path.home()).as_posix()}" if folder.is_relative_to(Path.home()) else folder
    )
    return Finding(True, f"progress is kept in {shown}")


def jupyterlab() -> Finding:
    """Is JupyterLab there, and the widgets' side in it?"""
    missing = [
        name
        for name in ("jupyterlab", "ipywidgets", "jupyterlab_widgets", "ipykernel")
        if not _installed(name)
    ]
    if missing:
        return Finding(
            False,
            f"missing for the lessons: {', '.join(missing)}",
            "make setup" if places.IS_CLONE else "pip install 'lesson-lib[lab]'",
        )
    return Finding(True, f"JupyterLab {metadata.version('jupyterlab')} with widgets")


def notebooks(root: Path = ROOT) -> Finding:
    """Are the lessons there, and the learner's copies?"""
    names = lab.lessons(root)
    if not names:
        return Finding(
            False,
            "there are no lessons in notebooks/",
            "fetch the whole repository, and run the command in it",
        )
    missing = [name for name in names if not (places.work(root) / name).exists()]
    note = f"; {len(missing)} come with the next start of {places.command('lab')}" if missing else ""
    return Finding(True, f"{len(names) - len(missing)} of {len(names)} files are copied to work/{note}")


CHECKS: tuple[Callable[[], Finding], ...] = (
    python,
    packages,
    torch,
    device,
    disk,
    home,
    jupyterlab,
    notebooks,
)
WITH_TORCH = (device, home)


def options(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the options of `main`."""
    del parser  # it takes none


def main(*, brief: bool = False) -> int:
    """Print one finding after the other, `brief` only those to mend; 0 where all are fine."""
    findings, skipped = [], ()
    for look in CHECKS:
        if look in skipped or (look is packages and not places.IS_CLONE):  # pip keeps to a package's ranges
            continue  # torch's fault would be named once more, with another repair
        findings.append(look())
        if look is torch and not findings[-1].fine:
            skipped = WITH_TORCH
        if not (brief and findings[-1].fine):
            print(findings[-1], flush=True)
    bad = sum(not finding.fine for finding in findings)
    print(f"{bad} to mend." if bad else "All is fine." if brief else f"All is fine: {places.command('lab')}")
    return 1 if bad else 0


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:
        return False
