"""Planted faults: small bugs, one at a time, and whether the tests that should see each of them do.

    python -m tools.faults --list
    python -m tools.faults [NAME ...] [--part browser] [--json FILE]    plant each, run the tests that it
                                                                        names
    python -m tools.faults --clean                                      the same tests without any fault: they
                                                                        must be green
    python -m tools.faults --draw 5 --whole                             five at random (its seed is printed,
                                                                        and --seed takes it), each through the
                                                                        whole run until it is seen

The faults stand in `faults.toml`. Each is planted in a scratch copy of the files that git tracks, so nothing
here is changed. The copy has environments of its own, a few links, in which its `lesson_lib` comes before the
installed one: for the tests, and for the kernels, servers and commands that they start. Ends with 1 where a
fault was not seen, or a test was red without one.
"""

import argparse
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.parts import PARTS

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_name("faults.toml")
ENVIRONMENTS = (".venv", ".venv-class")
WHOLE = "tests/parts.py --stop"
PATIENCE_S = 1800  # for the tests that a fault names; a whole run has no end but its own
SEEN, NOT_SEEN, NO_VERDICT = "seen", "NOT SEEN", "NO VERDICT"
GREEN, RED = "green", "RED"


@dataclass(frozen=True)
class Fault:
    """A bug as an edit of one file: `old`, which stands there once, becomes `new`.

    `tests`, of them those that `only` (pytest's -k) chooses, should see it. `proposal`: none sees it yet, and
    what would.
    """

    name: str
    part: str
    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    only: str = ""
    proposal: str = ""


@dataclass(frozen=True)
class RunResult:
    """How a run ended: pytest's exit code (None: no end in time), its seconds, what it said."""

    code: int | None
    seconds: float
    output: str

    @property
    def failed(self) -> list[str]:
        """The tests that failed, as the last lines name them."""
        lines = (line.split(" - ")[0].split(maxsplit=1) for line in self.output.splitlines())
        return [line[1] for line in lines if len(line) == 2 and line[0] in ("FAILED", "ERROR")]


def listed(path: Path = LIST) -> list[Fault]:
    """The faults of the list, in its order. Raises TypeError where one lacks a field, or has one too many."""
    rows = tomllib.loads(path.read_text("utf-8"))
    return [Fault(name, **row | {"tests": tuple(row["tests"])}) for name, row in rows.items()]


def planted(fault: Fault, text: str) -> str:
    """The text of its file with the fault. Raises ValueError where `old` does not stand there exactly
    once."""
    count = text.count(fault.old)
    if count != 1:
        raise ValueError(
            f"{fault.name}: `old` stands {count} times in {fault.file}, not once; whoever rewrites the text"
            " rewrites the fault in tools/faults.toml"
        )
    return text.replace(fault.old, fault.new)


def plant(fault: Fault, tree: Path) -> None:
    """Change its file in that tree. Raises as `planted` does, and leaves the file as it was then."""
    path = tree / fault.file
    path.write_bytes(planted(fault, path.read_bytes().decode("utf-8")).encode("utf-8"))


def tracked(root: Path) -> list[str]:
    """The files that git tracks below `root`."""
    found = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True)
    return [name for name in found.stdout.decode("utf-8").split("\0") if (root / name).is_file()]


@contextmanager
def copied(root: Path) -> Iterator[Path]:
    """A scratch copy of the tracked files with environments of its own, open to every account; gone
    afterwards."""
    with tempfile.TemporaryDirectory(prefix="lesson_faults_", ignore_cleanup_errors=True) as scratch:
        tree = Path(scratch).resolve()
        tree.chmod(0o755)  # a class's students are other accounts
        for name in tracked(root):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, tree / name)
        for name in ENVIRONMENTS:
            if (root / name).exists():
                link_environment(root / name, tree / name, tree)
        yield tree


def link_environment(environment: Path, copy: Path, tree: Path) -> None:
    """Make `copy` an environment with the packages of `environment`, in which what lies in `tree` is imported
    first, by `python -I` too."""
    packages = next(environment.glob("lib/python*/site-packages"))
    own = copy / packages.relative_to(environment)
    own.mkdir(parents=True)
    lines = [str(tree), f"import site; site.addsitedir({str(packages)!r})"]
    (own / "faults.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for entry in environment.iterdir():
        if entry.name == "pyvenv.cfg":
            shutil.copy2(entry, copy)
        elif entry.name not in ("lib", "lib64"):
            (copy / entry.name).symlink_to(entry)


def python(tree: Path, part: str) -> Path:
    """The interpreter for that part's tests; outside of our environments the one that runs this."""
    own = tree / (".venv-class" if part == "class" else ".venv") / "bin" / "python"
    return own if own.exists() else Path(sys.executable)


def command(tree: Path, part: str, tests: Sequence[str], only: str = "") -> list[str]:
    """The command line of some tests: pytest, with what tests/parts.py gives it for that part."""
    flags = [word for word in PARTS[part][1] if not (ROOT / word).exists()]
    line = [str(python(tree, part)), "-m", "pytest", *flags, "-q", "--tb=line", "-rfE"]
    return [*line, *(["-k", only] if only else []), *tests]


def run(line: Sequence[str], tree: Path, patience_s: float | None = PATIENCE_S) -> RunResult:
    """Run a command in that tree, its `lesson_lib` before any other; it ends, its children with it, when time
    is up."""
    path = os.pathsep.join(filter(None, [str(tree), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    begun = time.perf_counter()
    with tempfile.TemporaryFile() as output:  # no pipe, which a child that lives on would keep open
        process = subprocess.Popen(
            line, cwd=tree, env=environment, stdout=output, stderr=output, start_new_session=True
        )
        try:
            code = process.wait(patience_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        return RunResult(code, time.perf_counter() - begun, output.read().decode("utf-8", "replace"))


def verdict(ran: RunResult) -> str:
    """What a run says of a fault: it is seen where a test failed, not where all passed; all else is no
    answer."""
    if ran.code == 1 and ran.failed:
        return SEEN
    return NOT_SEEN if ran.code == 0 and " passed" in ran.output else NO_VERDICT


def try_fault(fault: Fault, root: Path = ROOT, whole: str = "") -> tuple[str, RunResult]:
    """Plant a fault in a copy of `root`, and run its tests there until one fails, or Python with the words of
    `whole`."""
    with copied(root) as tree:
        plant(fault, tree)
        if whole:
            # it would see every fault: by its text, which is there no more
            (tree / "tests" / "test_faults.py").unlink(missing_ok=True)
            ran = run([str(python(tree, "unit")), *shlex.split(whole)], tree, None)
        else:
            ran = run([*command(tree, fault.part, fault.tests, fault.only), "-x"], tree)
    return verdict(ran), ran


def try_clean(faults: Sequence[Fault], root: Path = ROOT) -> Iterator[tuple[list[Fault], str, RunResult]]:
    """The tests of these faults on an untouched copy of `root`, each once: the faults of a part, with `only`
    and without, green or not."""
    groups: dict[tuple[str, bool], list[Fault]] = {}
    for fault in faults:
        groups.setdefault((fault.part, bool(fault.only)), []).append(fault)
    with copied(root) as tree:
        for (part, _), same in groups.items():
            tests = dict.fromkeys(test for fault in same for test in fault.tests)
            only = " or ".join(dict.fromkeys(f"({fault.only})" for fault in same if fault.only))
            ran = run(command(tree, part, [*tests], only), tree)
            found = verdict(ran)
            yield same, {NOT_SEEN: GREEN, SEEN: RED}.get(found, found), ran


ROW = "{:34} {:10} {:12} {:>8}  {}"


def say(faults: Sequence[Fault], found: str, ran: RunResult) -> dict:
    """Print a line of the table for each fault, and more where a person should look; returns the row for
    --json."""
    first = ran.failed[0].rpartition("/")[2] if ran.failed else ""
    for fault in faults:
        print(ROW.format(fault.name, fault.part, found, f"{ran.seconds:.1f}", first), flush=True)
        if found == NOT_SEEN and fault.proposal:
            print(f"    proposal: {fault.proposal}", flush=True)
    if found in (NO_VERDICT, RED):
        print("    " + "\n    ".join([*ran.output.splitlines()[-12:], f"exit code: {ran.code}"]), flush=True)
    about = {"names": [fault.name for fault in faults], "part": faults[0].part, "found": found}
    return about | {"seconds": round(ran.seconds, 1), "exit_code": ran.code, "failed": ran.failed}


def chosen(names: Sequence[str], part: str | None, draw: int | None, seed: int) -> list[Fault]:
    """The faults with these names (all without names), of that part, or so many of them drawn by lot. Raises
    ValueError for an unknown name."""
    every = listed()
    if unknown := sorted(set(names) - {fault.name for fault in every}):
        raise ValueError(f"no fault is called {unknown[0]!r}; --list names them all")
    found = [f for f in every if f.name in (names or [f.name]) and f.part == (part or f.part)]
    return random.Random(seed).sample(found, min(draw, len(found))) if draw else found


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Do what the command line asks; 0 where every fault was seen, or every test was green without one."""
    options = parsed(arguments)
    try:
        faults = chosen(options.names, options.part, options.draw, options.seed)
    except ValueError as error:
        print(error)
        return 1
    if options.list:
        for fault in faults:
            print(f"{fault.name:34} {fault.part:10} {fault.what}")
        return 0
    if options.draw:
        print(f"drawn with --seed {options.seed}")
    print(ROW.format("fault", "part", "found", "seconds", "first test that failed"), flush=True)
    rows = []
    if options.clean:
        rows += [say(*found) for found in try_clean(faults, root)]
    else:
        rows += [say([fault], *try_fault(fault, root, options.whole)) for fault in faults]
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    wrong = [row for row in rows if row["found"] not in (SEEN, GREEN)]
    print(f"{len(rows) - len(wrong)} of {len(rows)} {'green' if options.clean else 'seen'}")
    return 1 if wrong else 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description="Plant faults, and see whether the tests see them.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="faults of tools/faults.toml; all without a name"
    )
    parser.add_argument("--part", choices=PARTS, help="faults of that part only")
    parser.add_argument("--list", action="store_true", help="print names and what they are, run nothing")
    parser.add_argument("--draw", type=int, metavar="N", help="so many of them, drawn at random")
    parser.add_argument("--seed", type=int, default=random.randrange(10_000), help="of the draw (any)")
    parser.add_argument(
        "--clean", action="store_true", help="run the tests without the faults: they must be green"
    )
    whole = f"run the whole of the tests for each, or Python with these words (default: {WHOLE!r})"
    parser.add_argument("--whole", nargs="?", const=WHOLE, default="", metavar="WORDS", help=whole)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table there, too")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
