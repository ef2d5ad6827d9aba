"""Does what the course asserts hold on other processors? Every asserted quantity, with its margin, in each
setting.

    python -m tools.machines                                       # all notebooks, and all tests that train
    python -m tools.machines notebooks/08a_remembering.ipynb       # one notebook, or one file of tests
    python -m tools.machines --capability default avx2 --threads 1

A training adds thousands of sums; another instruction set adds them in another order, and the last digits
decide which way it goes. A setting is an instruction set (torch's `default`, `avx2` and, where the processor
has it, `avx512`; oneDNN and MKL are held to the same) and a number of threads. Notebooks run as in `make
test`: a stored output that differs is a failure.

A kernel, or pytest for tests, notes each comparison of numbers in an `assert`, in `verdict(...)` and in
`claim(...)`: its two sides, and how far the comparison is from turning false, as a share of the larger side.
What differs between the settings is printed, the narrowest first; all of it stands in build/machines.tsv.

MKL chooses its products by the processor's maker, too: what an Intel processor with AVX-512 computes is seen
on such a processor only.
"""

import argparse
import ast
import json
import operator
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "build" / "machines.tsv"
LIBRARIES = {  # the capability: what holds oneDNN and MKL to it
    "default": {"ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"},
    "avx2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
    "avx512": {},
}
COMPARED: dict[type, tuple[str, Callable]] = {
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
}
SIGNS = dict(COMPARED.values())
JUDGES = ("verdict", "claim")
NUMBER = r"-?\d+\.?\d*(?:e[-+]?\d+)?"


@dataclass(frozen=True)
class Setting:
    """An instruction set and a number of threads: '1 x avx2'."""

    capability: str
    threads: int

    def __str__(self) -> str:
        return f"{self.threads} x {self.capability}"

    @property
    def environment(self) -> dict[str, str]:
        """What a process of this setting is started with."""
        libraries = LIBRARIES.get(self.capability, {})
        # threads that wait for each other must not burn a core that another process needs
        return {"ATEN_CPU_CAPABILITY": self.capability, "OMP_WAIT_POLICY": "passive", **libraries}


@dataclass(frozen=True)
class Seen:
    """One comparison in one setting: where, its text, and the two numbers for which it is narrowest."""

    where: str
    text: str
    sign: str
    left: float
    right: float

    @property
    def margin(self) -> float:
        """How far from turning false, as a share of the larger side; negative where it is false.

        >>> Seen("a notebook", "share > 0.75", ">", 1.0, 0.75).margin
        0.25
        """
        way = 1 if self.sign in (">", ">=") else -1
        largest = max(abs(self.left), abs(self.right))
        return way * (self.left - self.right) / largest if largest else 0.0


# In a kernel


class Noted(ast.NodeTransformer):
    """Comparisons of size in an `assert`, in `verdict(...)` and in `claim(...)` become calls of `noted`."""

    def __init__(self) -> None:
        self.judged = 0

    def _inside(self, node: ast.AST) -> ast.AST:
        self.judged += 1
        self.generic_visit(node)
        self.judged -= 1
        return node

    visit_Assert = _inside

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id in JUDGES:
            return self._inside(node)
        self.generic_visit(node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        text = ast.unparse(node)
        self.generic_visit(node)
        if not self.judged or not all(type(op) in COMPARED for op in node.ops):
            return node
        signs = [ast.Constant(COMPARED[type(op)][0]) for op in node.ops]
        arguments = [ast.Constant(text), ast.List(signs, ast.Load()), node.left, *node.comparators]
        call = ast.Call(ast.Name("_noted_comparison", ast.Load()), arguments, [])
        return ast.fix_missing_locations(ast.copy_location(call, node))


def noted(text: str, signs: list[str], *sides: Any) -> Any:
    """The truth of the comparison, which is written down where its sides are numbers, or tensors of them."""
    truth: Any = True
    for sign, left, right in zip(signs, sides, sides[1:], strict=False):
        one = SIGNS[sign](left, right)
        truth = one if truth is True else truth and one
        for pair in _narrowest(sign, left, right):
            _write(text=text, sign=sign, left=pair[0], right=pair[1])
    return truth


def _narrowest(sign: str, left: Any, right: Any) -> Iterable[tuple[float, float]]:
    """The pair of numbers that is nearest to turning the comparison, if these are numbers."""
    try:
        import torch

        sides = (torch.as_tensor(side, dtype=torch.float64, device="cpu").detach() for side in (left, right))
        pairs = torch.broadcast_tensors(*sides)
    except (TypeError, ValueError, RuntimeError):
        return
    gap = (pairs[0] - pairs[1]) * (1 if sign in (">", ">=") else -1)
    if gap.numel():
        at = gap.flatten().argmin()
        yield tuple(side.flatten()[at].item() for side in pairs)


def _write(**row: Any) -> None:
    line = json.dumps({"where": os.environ["LESSON_MACHINES_AT"], **row}) + "\n"
    with open(os.environ["LESSON_MACHINES_TO"], "a", encoding="utf-8") as file:
        file.write(line)


def watch_kernel() -> None:
    """Called by IPython when it starts: its cells' comparisons are noted from now on."""
    from IPython import get_ipython

    shell = get_ipython()
    shell.user_ns_hidden["_noted_comparison"] = shell.user_ns["_noted_comparison"] = noted
    shell.ast_transformers.append(Noted())


# In pytest, as `-p tools.machines`


def pytest_sessionstart(session) -> None:
    """Kernels and this process take the setting's threads; conftest.py has said one."""
    threads = os.environ["OMP_NUM_THREADS"] = os.environ["LESSON_MACHINES_THREADS"]
    start = Path(os.environ["IPYTHONDIR"], "profile_default", "startup")
    start.mkdir(parents=True, exist_ok=True)
    lines = ["import sys", f"sys.path.insert(0, {str(ROOT)!r})", "from tools.machines import watch_kernel",
             "watch_kernel()", "del sys, watch_kernel"]  # fmt: skip
    (start / "10-machines.py").write_text("\n".join(lines), encoding="utf-8")
    if "torch" in sys.modules:  # unit tests
        import torch
        from torch.optim.optimizer import register_optimizer_step_post_hook

        torch.set_num_threads(int(threads))
        register_optimizer_step_post_hook(lambda *step: _TRAINED.add(_AT[-1]))


_AT, _TRAINED = [""], set()  # the test that runs; those that have made a step of training


def pytest_runtest_setup(item) -> None:
    """What is noted from now on belongs to this notebook, or to this test."""
    name = item.parent.path.relative_to(ROOT).as_posix() if item.path.suffix == ".ipynb" else item.nodeid
    os.environ["LESSON_MACHINES_AT"] = name
    _AT.append(name)


def pytest_assertion_pass(item, lineno, orig, expl) -> None:
    """An assertion of a test that holds; one that does not is a failure, and named as such."""
    first = re.match(rf"\(?({NUMBER}) ([<>]=?) ({NUMBER})(?![\w.])", expl)
    if first:
        _write(text=orig, sign=first[2], left=float(first[1]), right=float(first[3]))


def pytest_runtest_teardown(item) -> None:
    """Whether the test trains."""
    if item.nodeid in _TRAINED:
        _write(trains=True)


def pytest_runtest_logreport(report) -> None:
    """What fails, with the last line of why."""
    if report.failed:
        os.environ["LESSON_MACHINES_AT"] = report.nodeid
        _write(failed=_why(report.longreprtext))


def _why(text: str) -> str:
    lines = [re.sub(r"\x1b\[\d*m", "", line).strip() for line in text.splitlines()]
    telling = [line for line in lines if "==" in line or line.startswith(("E ", "assert", "verdict"))]
    return (telling or [line for line in lines if line] or ["no reason given"])[0][:200]


# The tool


def settings(capabilities: Iterable[str] | None = None, threads: Iterable[int] = (1, 2)) -> list[Setting]:
    """Those that this processor has; a capability that it lacks is left out."""
    import torch

    here = torch.backends.cpu.get_cpu_capability().lower()
    if here in LIBRARIES:
        known = list(LIBRARIES)[: list(LIBRARIES).index(here) + 1]
    else:  # of another make, or older than avx2
        known = ["default"] if here.startswith(("default", "no")) else ["default", here]
    return [Setting(one, n) for one in capabilities or known if one in known for n in threads]


def run(setting: Setting, names: list[str], to: Path, workers: int = 2) -> None:
    """Run notebooks or tests in this setting; what is noted is added to the file `to`, a line each.

    Raises RuntimeError where pytest itself stumbles.
    """
    line = [sys.executable, "-m", "pytest", "-q", "-p", "tools.machines", "-p", "no:cacheprovider"]
    line += ["-n", str(workers), "--dist", "loadfile"] if workers > 1 else []
    environment = os.environ | setting.environment
    environment |= {"LESSON_MACHINES_TO": str(to), "LESSON_MACHINES_THREADS": str(setting.threads)}
    if _are_notebooks(names):
        line += ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=2400"]
    else:
        line += ["-o", "enable_assertion_pass_hook=true", "-m", "not browser"]
        environment["PYTHONPYCACHEPREFIX"] = str(to.parent / "compiled")  # assertions are compiled otherwise
    said = Path(f"{to}.txt")  # dots and tracebacks: what failed is named in the end
    with said.open("a") as file:
        code = subprocess.run([*line, *names], cwd=ROOT, env=environment, stdout=file).returncode
    if code not in (0, 1):  # 1: something failed
        raise RuntimeError(f"pytest ended with {code}:\n{said.read_text()[-2000:]}")


def _are_notebooks(names: list[str]) -> bool:
    return all(name.endswith(".ipynb") or name == "notebooks" for name in names)


def read(file: Path) -> tuple[dict[tuple[str, str], Seen], dict[str, str], list[str]]:
    """What was seen, the narrowest of each place and text; what failed, and why; the tests that train."""
    seen: dict[tuple[str, str], Seen] = {}
    failed, trains = {}, []
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        row = json.loads(line)
        if "failed" in row:
            failed[row["where"]] = row["failed"]
        elif "trains" in row:
            trains.append(row["where"])
        else:
            one = Seen(**row)
            key = (one.where, one.text)
            if key not in seen or one.margin < seen[key].margin:
                seen[key] = one
    return seen, failed, trains


def table(
    by_setting: dict[str, dict[tuple[str, str], Seen]], *, all_of_them: bool = False
) -> list[list[str]]:
    """A head and a row for each quantity: place, assertion, narrowest margin, left side in each setting.

    Only what differs between the settings, unless `all_of_them`; the narrowest first.
    """
    found: dict[tuple[str, str], dict[str, Seen]] = defaultdict(dict)
    for setting, seen in by_setting.items():
        for key, one in seen.items():
            found[key][setting] = one
    rows = []
    for (where, text), ones in found.items():
        if all_of_them or len({(one.left, one.right) for one in ones.values()}) > 1:
            worst = min(one.margin for one in ones.values())
            sides = [
                f"{ones[s].left:.5g} {ones[s].sign} {ones[s].right:.5g}" if s in ones else ""
                for s in by_setting
            ]
            rows.append((worst, [where, text, f"{worst:.3f}", *sides]))
    head = ["where", "asserted", "margin", *by_setting]
    return [head, *(row for _, row in sorted(rows, key=lambda row: row[0]))]


def main(arguments: list[str] | None = None) -> int:
    """Run the settings, print and keep the table; 1 where something fails in one of them."""
    parser = argparse.ArgumentParser(prog="python -m tools.machines", description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", help="notebooks, or files of tests (default: all)")
    parser.add_argument(
        "--capability", nargs="+", metavar="SET", help="default avx2 avx512 (all that are here)"
    )
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], help="default: 1 2")
    parser.add_argument("--workers", type=int, default=2, help="cores to use (2)")
    parser.add_argument("--below", type=float, default=1.0, help="print margins below this share only (1)")
    given = parser.parse_args(arguments)
    names = given.names or ["notebooks", "tests"]
    notebooks = [name for name in names if _are_notebooks([name])]
    tests = [name for name in names if name not in notebooks]
    everything, failures = {}, {}
    with tempfile.TemporaryDirectory() as scratch:
        for number, setting in enumerate(settings(given.capability, given.threads)):
            to = Path(scratch, f"{number}.jsonl")
            for some in filter(None, (notebooks, tests)):
                print(f"== {setting}: {some[0]}{f' and {len(some) - 1} more' * (len(some) > 1)}", flush=True)
                run(setting, some, to, max(1, given.workers // setting.threads))
            everything[str(setting)], failures[str(setting)], trains = read(to)
            if tests and not number:  # the first setting shows which of them train; the others run these
                tests = sorted(set(trains))
                print(f"   {len(tests)} tests train", flush=True)
    rows = table(everything, all_of_them=True)
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text("\n".join("\t".join(row) for row in rows) + "\n", encoding="utf-8")
    _, *differing = table(everything)
    for where, text, margin, *sides in differing:
        if float(margin) < given.below:
            print(f"{margin:>7}  {where}: {text}")
            print("\n".join(f"{'':9}{name}: {side}" for name, side in zip(everything, sides, strict=True)))
    for setting, failed in failures.items():
        print(f"== {setting}: {len(everything[setting])} quantities, {len(failed)} failures")
        for where, why in failed.items():
            print(f"   {where}: {why}")
    print(f"All {len(rows) - 1} quantities: {TABLE.relative_to(ROOT)}")
    return 1 if any(failures.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
