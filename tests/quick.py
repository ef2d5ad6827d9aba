"""`make test-quick`, about three minutes: what is likely to see a mistake in what changed since main.

ruff; the rules of imports; every doctest; the tests of the core, and of modules, questions, texts that
changed; the notebooks that changed. `make test` runs everything.
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.parts import CORE, ROOT

LIBRARY = re.compile(r"lesson_lib/(.+?)(?:/__init__)?\.py")
WIDE = 12  # files of tests: a module that more import is tested by those that are called like it


def changed(since: str = "main", root: Path = ROOT) -> list[str]:
    """The files that differ from where this branch left `since`, or from the last commit where it is `since`;
    new ones too."""

    def git(*words: str) -> list[str]:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    (start,) = git("merge-base", "HEAD", since)
    names = git("diff", "--name-only", "--diff-filter=d", start)
    return sorted({*names, *git("ls-files", "--others", "--exclude-standard")})


def tests_of(files: Iterable[str], root: Path = ROOT) -> list[str]:
    """The core's tests, and those of these files: the tests among them, and the tests that import a module
    among them."""
    texts = {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(root.glob("tests/**/test_*.py"))
        if path.relative_to(root).parts[1] not in ("browser", "class")
    }
    found = {f"tests/test_{name}.py" for name in CORE}
    for file in files:
        if file in texts:
            found.add(file)
        if module := LIBRARY.fullmatch(file):
            package, _, name = f"lesson_lib/{module[1]}".replace("/", ".").rpartition(".")
            imports = re.compile(rf"{re.escape(package)}(?:\.{name}\b| import [^\n]*\b{name}\b)")
            those = {test for test, text in texts.items() if imports.search(text)}
            own = {test for test in those if name in Path(test).stem}
            found |= own if len(those) > WIDE and own else set(sorted(those, key=len)[:WIDE])
        if "/questions/" in file:
            found.add("tests/test_questions.py")
        if file.endswith(".md") or file == "course.toml":
            found |= {"tests/test_links.py", "tests/test_readme.py", "tests/test_course.py"}
    return sorted(found & texts.keys())


def commands(files: list[str]) -> dict[str, list[str]]:
    """What is run, each under its name."""
    pytest = [sys.executable, "-m", "pytest", "-q", "-n", "2"]
    notebooks = [file for file in files if file.startswith("notebooks/") and file.endswith(".ipynb")]
    units = ["lesson_lib", "tests/test_floors.py", *tests_of(files)]
    ruff = [sys.executable, "-m", "ruff"]
    every = {
        "ruff check": [*ruff, "check", "."],
        "ruff format": [*ruff, "format", "--check", "lesson_lib", "tests", "tools"],
        "doctests, rules of imports, tests of the core and of what changed": [
            *pytest, *units, "-m", "not browser and not slow", "--dist", "worksteal",
        ],
    }  # fmt: skip
    if notebooks:
        every[f"{len(notebooks)} changed notebooks"] = [
            *pytest, "--nbval", "--nbval-current-env", "--dist", "loadfile", *notebooks,
        ]  # fmt: skip
    return every


def main() -> int:
    """Run them one after the other, to the end; 1 where one of them failed."""
    failed = []
    for name, line in commands(changed()).items():
        print(f"\n== {name}", flush=True)
        if subprocess.run(line, cwd=ROOT).returncode:
            failed.append(name)
    print(f"\n== {'FAILED: ' + '; '.join(failed) if failed else 'passed (make test runs everything)'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
