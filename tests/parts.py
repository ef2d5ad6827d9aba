"""`make test`, part by part: `python tests/parts.py` runs all, `python tests/parts.py unit notebooks` some.

Each part ends with a line that says how it went; the last lines repeat what failed and add everything up.
"""

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARTS = {
    "unit": (
        "unit tests, doctests, floors, notebook twins",
        ["-m", "not browser", "-n", "2", "--dist", "loadfile"],
    ),
    "notebooks": (
        "every notebook, every output (nbval)",
        [
            "--nbval",
            "--nbval-current-env",
            "--nbval-cell-timeout=1200",
            "notebooks",
            "-n",
            "2",
            "--dist",
            "loadfile",
        ],
    ),
    "browser": ("a learner in a browser", ["-m", "browser", "-rs", "-s", "tests/browser"]),
    "class": ("slides, grading, a server for a class", ["-rs", "-s", "tests/class"]),
}
TEACHER = ROOT / ".venv-class" / "bin" / "python"  # the class kit has an environment of its own


def run(part: str, folder: Path) -> tuple[int, Counter, list[str]]:
    """Run one part; returns pytest's exit code, the counts, and the names of what failed."""
    report = folder / f"{part}.xml"
    python = TEACHER if part == "class" else sys.executable
    arguments = [str(python), "-m", "pytest", "-q", f"--junitxml={report}", *PARTS[part][1]]
    code = subprocess.call(arguments, cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"})
    counts, failed = Counter(), []
    if report.exists():
        for case in ElementTree.parse(report).iter("testcase"):
            tags = {"failure": "failed", "error": "error", "skipped": "skipped"}
            kind = next((tags[child.tag] for child in case if child.tag in tags), "passed")
            counts[kind] += 1
            if kind in ("failed", "error"):
                failed.append(f"{kind.upper()} {case.get('classname')}::{case.get('name')}")
    return code, counts, failed


def why_not(part: str) -> str:
    """A sentence where a part cannot be run here and need not be, else ''. Under CI=true every part is needed."""
    if part != "class":
        return ""
    if os.environ.get("LESSON_CLASS") == "skip":
        return "LESSON_CLASS=skip"
    if os.environ.get("CI") != "true" and not TEACHER.exists():
        return "there is no .venv-class; make setup-class makes it"
    return ""


def in_words(counts: Counter) -> str:
    """'3 failed, 40 passed, 1 skipped'.

    >>> in_words(Counter(passed=2, failed=1))
    '1 failed, 2 passed'
    """
    kinds = [f"{counts[kind]} {kind}" for kind in ("failed", "passed", "skipped", "error") if counts[kind]]
    return ", ".join(kinds) or "no tests ran"


def main(parts: list[str]) -> int:
    """Run the parts; 0 where all of them passed."""
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        print(f"no part is called {unknown[0]!r}; there are {', '.join(PARTS)}")
        return 1
    start, total, failed, lines, bad = time.perf_counter(), Counter(), [], [], 0
    with tempfile.TemporaryDirectory(prefix="lesson_reports_", ignore_cleanup_errors=True) as folder:
        for part in parts or PARTS:
            begin = time.perf_counter()
            print(f"\n== {part}: {PARTS[part][0]}", flush=True)
            if reason := why_not(part):
                lines.append(f"== {part}: SKIPPED ({reason})")
                print(lines[-1], flush=True)
                continue
            code, counts, names = run(part, Path(folder))
            total += counts
            failed += names
            bad += code != 0
            verdict = "passed" if code == 0 else f"FAILED (pytest's exit code {code})"
            lines.append(f"== {part}: {verdict}; {in_words(counts)} in {time.perf_counter() - begin:.0f} s")
            print(lines[-1], flush=True)
    print("\n" + "\n".join([*failed, *lines]))
    print(f"{'=' * 16} {in_words(total)} in {time.perf_counter() - start:.2f}s {'=' * 16}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
