"""`make test`, part by part: `python tests/parts.py` runs all, `python tests/parts.py unit notebooks` some.

Each part ends with a line that says how it went; the last lines repeat what failed and add everything up.
The class runs beside the unit tests, and the simulated device beside the browser, since class and browser
wait more than they compute; what runs beside is printed in its turn.
`make test-gpu` runs two of them with `--workers 8 --device cuda --reports FOLDER` (tests/gpu/run.sh).
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[1]
CORE = (
    "attention masks scores positions heads latent linear truncated efficient graphs convolution blocks"
    " recurrent"
).split()


def of_two_chapters(root: Path = ROOT) -> list[str]:
    """The parts of chapters 02 and 12, whatever they are called."""
    return sorted(path.relative_to(root).as_posix() for path in root.glob("notebooks/[01]2*_*.ipynb"))


ON_SIMULATED = [f"tests/test_{name}.py" for name in CORE] + of_two_chapters()
PARTS = {
    "unit": ("unit tests, doctests, import rules, notebooks and their sources", ["-m", "not browser", "-rs"]),
    "notebooks": (
        "every notebook, every output (nbval)",
        ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=1200", "notebooks"],
    ),
    "browser": ("a learner in a browser", ["-m", "browser", "-rs", "tests/browser"]),
    "simulated": (
        "the heart of the library, and two chapters, on a simulated second device",
        [
            "--device",
            "simulated",
            "--nbval",
            "--nbval-current-env",
            "tests/gpu/on_simulated.py",
            *ON_SIMULATED,
        ],
    ),
    "class": ("slides, grading, a server for a class", ["-rs", "tests/class"]),
}
BESIDE = {"unit": "class", "browser": "simulated"}  # a class and a browser wait more than they compute
# On two quiet cores, which this keeps busy: unit tests and class take half of the time, the browser a third.
BUDGET = {"minutes by the clock": 22, "core-minutes of unit and notebooks": 25}
REFERENCE_S = 0.6  # what `reference` took there
TEACHER = ROOT / ".venv-class" / "bin" / "python"  # the class kit has an environment of its own


def command(
    part: str, report: Path, workers: int = 2, device: str | None = None, stop: bool = False
) -> list[str]:
    """The command line of one part; `report` is the XML file that pytest writes, `device` the one that
    computes."""
    python = TEACHER if part == "class" else sys.executable
    line = [str(python), "-m", "pytest", "-q", f"--junitxml={report}", *PARTS[part][1]]
    # a file stays together; with many workers unit tests would wait for the longest of them
    spread = {"browser": "loadgroup", "unit": "worksteal" if workers > 2 else "loadfile"}
    line += ["-n", str(workers), "--dist", spread.get(part, "loadfile")]
    line += ["-x"] if stop else []
    return [*line, "--device", device] if device else line


@dataclass
class PartResult:
    """How a part went: pytest's exit code, counts, names of what failed, what was measured; seconds by the
    clock, and of the processor."""

    code: int
    counts: Counter = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    measured: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    cpu_s: float = 0.0
    took: dict[str, tuple[float, float]] = field(
        default_factory=dict
    )  # of each test: the processor, the clock


def run(part: str, folder: Path, *, printed: Path | None = None, **options) -> PartResult:
    """Run one part; what it prints goes to the file `printed`, where there is one. `options`: as of
    `command`."""
    report, begin = folder / f"{part}.xml", time.perf_counter()
    report.unlink(missing_ok=True)  # an earlier run's, which a crash would leave in place
    with open(printed or os.devnull, "wb") as file:
        code, cpu_s = call(command(part, report, **options), file if printed else None)
    went = PartResult(code, seconds=time.perf_counter() - begin, cpu_s=cpu_s)
    if report.exists():
        for case in ElementTree.parse(report).iter("testcase"):
            tags = {"failure": "failed", "error": "error", "skipped": "skipped"}
            kind = next((tags[child.tag] for child in case if child.tag in tags), "passed")
            went.counts[kind] += 1
            if kind in ("failed", "error"):
                went.failed.append(f"{kind.upper()} {case.get('classname')}::{case.get('name')}")
            noted = {one.get("name"): float(one.get("value")) for one in case.iter("property")}
            name = f"{case.get('classname')}::{case.get('name')}"
            went.took[name] = noted.pop("processor", 0.0), float(case.get("time"))
            went.measured |= noted
    return went


def call(line: list[str], out: IO[bytes] | None = None) -> tuple[int, float]:
    """Exit code of a command, and processor seconds of all that it started and waited for (nan on
    Windows)."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(line, cwd=ROOT, env=environment, stdout=out, stderr=out)
    if not hasattr(os, "wait4"):
        return process.wait(), math.nan
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime


def reference() -> float:
    """The processor's seconds of a fixed loop, half Python, half torch: how slow this machine is now."""
    import torch

    torch.set_num_threads(1)
    x, start = torch.full((256, 256), 1e-3), time.process_time()
    for i in range(1_000):
        x = (x @ x).add_(1e-3)
        sorted({str(j): j * i for j in range(2_000)}.items())
    return time.process_time() - start


def too_much(spent: dict[str, float], slow: float = 1.0) -> list[str]:
    """A sentence for each sum that is above its budget on a machine that takes `slow` times as long.

    >>> too_much({"minutes by the clock": 25.5, "core-minutes of unit and notebooks": 24.0})
    ['25.5 minutes by the clock, and 22 are the budget']
    >>> too_much({"minutes by the clock": 25.5}, slow=1.3)
    []
    """
    return [
        f"{minutes:.1f} {what}, and {round(BUDGET[what] * slow, 1):g} are the budget"
        for what, minutes in spent.items()
        if minutes > BUDGET[what] * slow
    ]


def table(measured: dict[str, float]) -> str:
    """What was measured, a line each, and the sum of the processor's seconds.

    >>> print(table({"CPU s: a.ipynb": 7.0, "MiB: a.ipynb": 311.0, "CPU s: b.ipynb": 11.5}))
       7.0  CPU s: a.ipynb
      11.5  CPU s: b.ipynb
     311.0  MiB: a.ipynb
      18.5  CPU s: together
    """
    rows = sorted(measured.items())
    spent = [value for name, value in rows if name.startswith("CPU s: ")]
    rows += [("CPU s: together", sum(spent))] if spent else []
    return "\n".join(f"{value:6.1f}  {name}" for name, value in rows)


def slowest(took: dict[str, tuple[float, float]], count: int = 20) -> str:
    """The tests that took the most of the processor, a line each: its seconds, the clock's, the name.

    >>> print(slowest({"a::x": (0.5, 0.6), "a::y": (20.25, 31.0), "b::z": (3.0, 3.1)}, count=2))
      20.2   31.0  a::y
       3.0    3.1  b::z
    """
    rows = sorted(took.items(), key=lambda row: row[1], reverse=True)[:count]
    return "\n".join(f"{cpu:6.1f} {wall:6.1f}  {name}" for name, (cpu, wall) in rows)


def why_not(part: str) -> str:
    """A sentence where a part cannot be run here and need not be, else ''. Under CI=true every part is
    needed."""
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


def main(parts: list[str], reports: Path | None = None, budget: bool = False, **options) -> int:
    """Run the parts; 0 where all of them passed. `reports`: a folder for each part's XML file, and for
    summary.json. With `budget` a whole run that takes more than BUDGET fails; without it that is told."""
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        print(f"no part is called {unknown[0]!r}; there are {', '.join(PARTS)}")
        return 1
    start, total, failed, lines, summary = time.perf_counter(), Counter(), [], [], {}
    tests: dict[str, tuple[float, float]] = {}
    cores = 0.0
    beside: dict[str, Future[PartResult]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="lesson_reports_", ignore_cleanup_errors=True) as scratch,
        ThreadPoolExecutor(1) as other,
    ):
        folder = Path(reports or scratch).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        for part in parts or PARTS:
            print(f"\n== {part}: {PARTS[part][0]}", flush=True)
            if reason := why_not(part):
                lines.append(f"== {part}: SKIPPED ({reason})")
                print(lines[-1], flush=True)
                continue
            second = BESIDE.get(part)
            if second in (parts or PARTS) and not why_not(second) and not options.get("stop"):
                printed = folder / f"{second}.txt"
                beside[second] = other.submit(run, second, folder, printed=printed, **options)
            went = beside[part].result() if part in beside else run(part, folder, **options)
            if part in beside:
                print((folder / f"{part}.txt").read_text(encoding="utf-8", errors="replace"))
            if went.measured:
                print(table(went.measured))
            total += went.counts
            failed += went.failed
            tests |= went.took
            summary[part] = {"exit_code": went.code, "seconds": round(went.seconds, 1), **went.counts}
            cores += went.cpu_s / 60 * (part in ("unit", "notebooks"))
            verdict = "passed" if went.code == 0 else f"FAILED (exit code {went.code})"
            took = f"{went.seconds:.0f} s, {went.cpu_s:.0f} s of the processor"
            lines.append(f"== {part}: {verdict}; {in_words(went.counts)} in {took}")
            print(lines[-1], flush=True)
            if went.code and options.get("stop"):
                break
        (folder / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    print(f"\n== the slowest: seconds of the processor, and by the clock\n{slowest(tests)}")
    minutes, slow = (time.perf_counter() - start) / 60, max(1.0, reference() / REFERENCE_S)
    spent = dict(zip(BUDGET, (minutes, cores), strict=True))
    print("; ".join(f"{value:.1f} {what}" for what, value in spent.items()), f"(machine: {slow:.2f})")
    over = too_much(spent, slow)
    failed += [f"{'FAILED' if budget else 'WARNING'} {sentence}" for sentence in over]
    print("\n" + "\n".join([*failed, *lines]))
    print(f"{'=' * 16} {in_words(total)} in {time.perf_counter() - start:.2f}s {'=' * 16}")
    return 1 if any(part["exit_code"] for part in summary.values()) or (budget and over) else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Run the parts of `make test`; all of them where none is named."
    )
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument(
        "--workers", type=int, default=2, help="processes for the unit tests and the notebooks (2)"
    )
    parser.add_argument("--device", help="cpu, cuda or mps: what computes (else LESSON_DEVICE)")
    parser.add_argument(
        "--budget", action="store_true", help="fail where the run takes more than its budget, too"
    )
    parser.add_argument("--stop", action="store_true", help="end with the first test that fails")
    parser.add_argument(
        "--reports", type=Path, help="folder for the XML files and summary.json, which are kept there"
    )
    sys.exit(main(**vars(parser.parse_args())))
