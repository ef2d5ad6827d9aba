"""`make test`, part by part: `python tests/parts.py` runs all, `python tests/parts.py unit notebooks` some.

Each part ends with a line that says how it went; the last lines repeat what failed and add everything up.
`make test-gpu` runs two of them with `--workers 8 --device cuda --reports FOLDER` (tests/gpu/run.sh).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORE = "attention masks scores positions heads linear truncated efficient graphs convolution blocks recurrent".split()
ON_SIMULATED = [f"tests/test_{name}.py" for name in CORE] + [
    f"notebooks/{name}.ipynb" for name in ("02_scoring", "12_claims")
]
PARTS = {
    "unit": ("unit tests, doctests, floors, notebook twins", ["-m", "not browser", "-rs"]),
    "notebooks": (
        "every notebook, every output (nbval)",
        ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=1200", "notebooks"],
    ),
    "simulated": (
        "the heart of the library, and two lessons, on a simulated second device",
        [
            "--device",
            "simulated",
            "--nbval",
            "--nbval-current-env",
            "tests/gpu/on_simulated.py",
            *ON_SIMULATED,
        ],
    ),
    "browser": ("a learner in a browser", ["-m", "browser", "-rs", "tests/browser"]),
    "class": ("slides, grading, a server for a class", ["-rs", "tests/class"]),
}
CPU_S = 1200  # of all notebooks together: DESIGN.md's 20 core-minutes
TEACHER = ROOT / ".venv-class" / "bin" / "python"  # the class kit has an environment of its own


def command(
    part: str, report: Path, workers: int = 2, device: str | None = None, stop: bool = False
) -> list[str]:
    """The command line of one part; `report` is the XML file that pytest writes, `device` the one that computes."""
    python = TEACHER if part == "class" else sys.executable
    line = [str(python), "-m", "pytest", "-q", f"--junitxml={report}", *PARTS[part][1]]
    line += ["-n", str(workers), "--dist", "loadgroup" if part == "browser" else "loadfile"]
    line += ["-x"] if stop else []
    return [*line, "--device", device] if device else line


def run(part: str, folder: Path, **options) -> tuple[int, Counter, list[str], dict[str, float]]:
    """Run one part; returns pytest's exit code, the counts, the names of what failed, and what was measured.

    `options`: as of `command`.
    """
    report = folder / f"{part}.xml"
    report.unlink(missing_ok=True)  # an earlier run's, which a crash would leave in place
    line = command(part, report, **options)
    code = subprocess.call(line, cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"})
    counts, failed, measured = Counter(), [], {}
    if report.exists():
        for case in ElementTree.parse(report).iter("testcase"):
            tags = {"failure": "failed", "error": "error", "skipped": "skipped"}
            kind = next((tags[child.tag] for child in case if child.tag in tags), "passed")
            counts[kind] += 1
            if kind in ("failed", "error"):
                failed.append(f"{kind.upper()} {case.get('classname')}::{case.get('name')}")
            measured |= {one.get("name"): float(one.get("value")) for one in case.iter("property")}
    return code, counts, failed, measured


def processor_s() -> float:
    """Processor seconds of everything that has been started here and has ended."""
    times = os.times()
    return times.children_user + times.children_system


def too_much(measured: dict[str, float]) -> str:
    """A sentence where the notebooks together took more of the processor than CPU_S, else ''.

    >>> too_much({"CPU s: notebooks/a.ipynb": 700.0, "CPU s: notebooks/b.ipynb": 501.0})
    'the notebooks took 1201 s of the processor together, and 1200 are the limit: make the longest ones shorter'
    """
    spent = sum(value for name, value in measured.items() if name.startswith("CPU s: "))
    if spent <= CPU_S:
        return ""
    return f"the notebooks took {spent:.0f} s of the processor together, and {CPU_S} are the limit: make the longest ones shorter"


def table(measured: dict[str, float]) -> str:
    """What was measured, a line each, and the sum of the processor's seconds.

    >>> print(table({"CPU s: a.ipynb": 7.0, "CPU s: b.ipynb": 11.5}))
       7.0  CPU s: a.ipynb
      11.5  CPU s: b.ipynb
      18.5  CPU s: together
    """
    rows = sorted(measured.items())
    spent = [value for name, value in rows if name.startswith("CPU s: ")]
    rows += [("CPU s: together", sum(spent))] if spent else []
    return "\n".join(f"{value:6.1f}  {name}" for name, value in rows)


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


def main(parts: list[str], reports: Path | None = None, **options) -> int:
    """Run the parts; 0 where all of them passed. `reports`: a folder for each part's XML file, and for summary.json."""
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        print(f"no part is called {unknown[0]!r}; there are {', '.join(PARTS)}")
        return 1
    start, total, failed, lines, summary = time.perf_counter(), Counter(), [], [], {}
    with tempfile.TemporaryDirectory(prefix="lesson_reports_", ignore_cleanup_errors=True) as scratch:
        folder = Path(reports or scratch).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        for part in parts or PARTS:
            begin, spent = time.perf_counter(), processor_s()
            print(f"\n== {part}: {PARTS[part][0]}", flush=True)
            if reason := why_not(part):
                lines.append(f"== {part}: SKIPPED ({reason})")
                print(lines[-1], flush=True)
                continue
            code, counts, names, measured = run(part, folder, **options)
            if measured:
                print(table(measured))
            if part == "notebooks" and (sentence := too_much(measured)):
                code, names = code or 1, [*names, f"FAILED {sentence}"]
            total += counts
            failed += names
            seconds = time.perf_counter() - begin
            summary[part] = {"exit_code": code, "seconds": round(seconds, 1), **counts}
            verdict = "passed" if code == 0 else f"FAILED (exit code {code})"
            busy = f"{processor_s() - spent:.0f} s of the processor"
            lines.append(f"== {part}: {verdict}; {in_words(counts)} in {seconds:.0f} s ({busy})")
            print(lines[-1], flush=True)
            if code and options.get("stop"):
                break
        (folder / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    print("\n" + "\n".join([*failed, *lines]))
    print(f"{'=' * 16} {in_words(total)} in {time.perf_counter() - start:.2f}s {'=' * 16}")
    return 1 if any(part["exit_code"] for part in summary.values()) else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Run the parts of `make test`; all of them where none is named."
    )
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument(
        "--workers", type=int, default=2, help="processes for the unit tests and the notebooks (2)"
    )
    parser.add_argument("--device", help="cpu, cuda or mps: what computes (else LESSON_DEVICE)")
    parser.add_argument("--stop", action="store_true", help="end with the first test that fails")
    parser.add_argument(
        "--reports", type=Path, help="folder for the XML files and summary.json, which are kept there"
    )
    sys.exit(main(**vars(parser.parse_args())))
