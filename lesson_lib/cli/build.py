"""Notebooks from text: notebooks/source/*.py (jupytext, py:percent) -> notebooks/*.ipynb, executed.

One direction only. An exercise source gives two notebooks: the learner's (notebooks/exercises) and the one
with answers (notebooks/solutions). In such a source,

    ### BEGIN SOLUTION ... ### END SOLUTION    stands in the solution only, without the two marker lines
    ### STUB: code                             stands in the learner's notebook only, as `code`

Normal form: kernelspec python3; a cell's metadata are its tags, and what folds a `proof`; its id is a hash of
its source (and of how many equal ones stand before it); execution counts 1..n; no widget state, no standard
error; a stored output that nbval finds equal to the new one is kept.
"""

import argparse
import ast
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from lesson_lib.cli import course, quoted
from lesson_lib.cli.outputs import looks_alike, may_keep, normal_outputs, pngs
from lesson_lib.cli.sources import METADATA, ROOT, BuildError, Target, read_source, strays, targets

# A call of one of these leaves an output.
SPEAKERS = set(
    "check display hint picture print progress properties show show_source solution verdict".split()
)
CELL_TIMEOUT_S = 1200


def execute(notebook: NotebookNode, target: Target) -> None:
    """Run the notebook's cells in a fresh kernel, in place: on the CPU, one thread, an empty LESSON_HOME.

    Raises BuildError at the first cell that ends in an error or writes to standard error.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT_S,
        kernel_name="python3",
        store_widget_state=False,
        record_timing=False,
        extra_arguments=["--log-level=40"],
        resources={"metadata": {"path": str(target.path.parent)}},
    )
    code = [(i, cell) for i, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    with tempfile.TemporaryDirectory(prefix="lesson_home_", ignore_cleanup_errors=True) as empty:
        settled = {
            "LESSON_HOME": empty,
            "LESSON_BUILD": "1",
            "IPYTHONDIR": empty,
            "LESSON_DEVICE": "cpu",
            "LESSON_PROGRESS": "off",
            "OMP_NUM_THREADS": "1",
        }
        shorter = [("LESSON_STORED", "1"), ("LESSON_STEPS", "quick")]
        inherited = {k: v for k, v in os.environ.items() if k != "MPLBACKEND" and (k, v) not in shorter}
        with client.setup_kernel(env=inherited | settled):
            for number, (i, cell) in enumerate(code, 1):
                _say(f"  {target.name}: cell {number} of {len(code)}", passing=True)
                where = f"{target.name}, code cell {number} ({cell.source.strip().splitlines()[0][:60]!r})"
                try:
                    client.execute_cell(cell, i, execution_count=number)
                except CellTimeoutError:
                    raise BuildError(f"{where} ran for {CELL_TIMEOUT_S} s and was stopped") from None
                except CellExecutionError as error:
                    plain = re.sub(r"\x1b\[[0-9;]*m", "", error.traceback)
                    raise BuildError(f"{where} ends in an error:\n{plain}") from None
                except DeadKernelError:
                    raise BuildError(f"{where}: the kernel died") from None
                for output in cell.outputs:
                    if output.get("name") == "stderr":
                        raise BuildError(f"{where} writes to standard error:\n{output.text}")


def build(target: Target, *, fresh: bool = False) -> list[str]:
    """Execute one source and write its notebook; returns remarks. `fresh`: keep no stored output.

    A picture that looks the same is kept as it is stored, and so is one of a cell tagged `measured`, whose
    seconds differ each time.
    """
    notebook = read_source(target)
    target.path.parent.mkdir(parents=True, exist_ok=True)
    execute(notebook, target)
    stored = {c.id: c for c in _stored_cells(target.path) if c.cell_type == "code"}
    remarks = []
    for number, cell in enumerate((c for c in notebook.cells if c.cell_type == "code"), 1):
        cell.execution_count = number
        cell.metadata.pop("execution", None)
        cell.outputs = normal_outputs(cell.outputs, number)
        old = stored.get(cell.id)
        if fresh or old is None:
            continue
        before = normal_outputs(old.outputs, number)
        tags = cell.metadata.get("tags", ())
        if not may_keep(before, cell.outputs, ignored="nbval-ignore-output" in tags):
            continue
        if "measured" in tags or all(map(looks_alike, pngs(before), pngs(cell.outputs))):
            cell.outputs = before
        else:
            remarks.append(f"{target.name}, code cell {number}: its picture changed")
    for fault in quoted.faults(marked_texts(target), notebook.cells):
        raise BuildError(f"{target.name}: {fault}")
    _write(target.path, text_of(notebook))
    return remarks


def marked_texts(target: Target) -> list[str]:
    """The texts of a source's cells, with the marks of numbers that cells print."""
    return [cell.source for cell in read_source(target, marked=True).cells]


def text_of(notebook: NotebookNode) -> str:
    """The notebook as it is written to its file."""
    nbformat.validate(notebook)
    return nbformat.writes(notebook, sort_keys=True).rstrip("\n") + "\n"


def differences(target: Target) -> Iterator[str]:
    """What is wrong with a built notebook: it differs from its source, is no normal form, lacks an output, or
    one of them links to a cell that another page no longer has."""
    if not target.path.exists():
        yield "it is not built"
        return
    try:
        wanted = read_source(target)
    except BuildError as error:
        yield str(error)
        return
    raw = target.path.read_text(encoding="utf-8")
    try:
        notebook = nbformat.reads(raw, as_version=4)
    except Exception as error:
        yield f"it is no notebook ({type(error).__name__})"
        return
    pairs = list(zip(notebook.cells, wanted.cells, strict=False))
    for number, (have, want) in enumerate(pairs, 1):
        for what in ("cell_type", "source", "id", "metadata"):
            if have.get(what) != want[what]:
                yield (
                    f"cell {number} differs from its source in its {what}"
                    f" ({want.source.strip().splitlines()[0][:60]!r})"
                )
                return
    if len(notebook.cells) != len(wanted.cells):
        yield f"it has {len(notebook.cells)} cells, its source {len(wanted.cells)}"
        return
    for number, cell in enumerate((c for c in notebook.cells if c.cell_type == "code"), 1):
        if cell.execution_count != number:
            yield f"code cell {number} has the execution count {cell.execution_count}"
        if not cell.outputs and speaks(cell.source):
            yield f"code cell {number} has no stored output, although it prints or shows something"
        cell.outputs = normal_outputs(cell.outputs, number)
    yield from quoted.faults(marked_texts(target), notebook.cells)
    notebook.metadata = nbformat.from_dict(METADATA)
    if text_of(notebook) != raw:
        yield "it is not in the normal form"
    yield from (f"an output links to {where}: no such cell" for where in _lost(raw, target.path.parent))


def _lost(raw: str, folder: Path) -> Iterator[str]:
    """Cells of other notebooks that are linked to, and are not there: a cell's id changes with its source."""
    links = sorted(set(re.findall(r'href=\\?"([^"#\\]+\.ipynb)#cell-id=([^"\\]+)', raw)))
    for page in dict.fromkeys(page for page, _ in links):
        try:
            content = (folder / page).read_text(encoding="utf-8")
        except OSError:
            content = ""
        yield from (f"{page}#{cell}" for of, cell in links if of == page and f'"id": "{cell}"' not in content)


def speaks(source: str) -> bool:
    """True where a cell calls, outside of functions, something that leaves an output: print, show, check ...

    >>> speaks("x = 2\\nshow(x)"), speaks("def f():\\n    print(2)")
    (True, False)
    """
    statements = ast.parse(re.sub(r"^\s*[%!].*$", "", source, flags=re.M)).body
    calls = [s.value for s in statements if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)]
    return any(getattr(call.func, "id", getattr(call.func, "attr", "")) in SPEAKERS for call in calls)


def check(names: Sequence[str] = (), *, root: Path = ROOT) -> int:
    """0 where every notebook is what its source gives, else 1 after the list of the others. Runs nothing."""
    try:
        chosen = targets(names, root=root)
    except BuildError as error:
        print(error)
        return 1
    wrong = [f"{t.path.relative_to(root).as_posix()}: {what}" for t in chosen for what in differences(t)]
    if not names:
        wrong += [f"{path}: it has no source in notebooks/source" for path in strays(root)]
        wrong += [f"{path.relative_to(root)}: not as course.toml has it" for path in _lists(root)]
    for line in wrong:
        print(line)
    print("repair: make notebooks" if wrong else f"{len(chosen)} notebooks are what their sources give")
    return 1 if wrong else 0


def _lists(root: Path) -> dict[Path, str]:
    """The pages whose lists of lessons are not what course.toml gives, with what they should be."""
    if not (root / "course.toml").exists():
        return {}
    return {path: text for path, text in course.lists(root).items() if path.read_text("utf-8") != text}


def options(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the options of `main`."""
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="02 (a chapter), 02a (a part), a full name (default: all)"
    )
    parser.add_argument(
        "--check",
        dest="checks",
        action="store_true",
        help="build nothing; fail where a notebook differs from its source",
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="take every new picture, also where the text beside it is the same",
    )


def main(names: Sequence[str] = (), *, fresh: bool = False, checks: bool = False, root: Path = ROOT) -> int:
    """Build the notebooks one after the other; 0 where all were built, 1 after a sentence for each other.
    With `checks` they are looked at alone."""
    if checks:
        return check(names, root=root)
    try:
        chosen = targets(names, root=root)
    except BuildError as error:
        print(error)
        return 1
    for path, text in _lists(root).items():
        path.write_text(text, encoding="utf-8", newline="\n")
    failed = 0
    for number, target in enumerate(chosen, 1):
        start = time.perf_counter()
        try:
            remarks = build(target, fresh=fresh)
        except BuildError as error:
            failed += 1
            _say(f"[{number}/{len(chosen)}] {target.name}: NOT BUILT. {error}")
            continue
        size = target.path.stat().st_size / 1024
        _say(f"[{number}/{len(chosen)}] {target.name}: {time.perf_counter() - start:.0f} s, {size:.0f} KiB")
        for remark in remarks:
            _say(f"  {remark}")
    return 1 if failed else 0


def _stored_cells(path: Path) -> list[NotebookNode]:
    try:
        return nbformat.read(path, as_version=4).cells
    except Exception:  # nothing there yet, or nothing that can be read: there is nothing to keep
        return []


def _write(path: Path, text: str) -> None:
    """Write at once or not at all, so that an interrupted build leaves the old notebook."""
    part = path.with_suffix(".part")
    part.write_text(text, encoding="utf-8", newline="\n")
    os.replace(part, path)


def _say(line: str, *, passing: bool = False) -> None:
    """A line of progress; a passing one is overwritten by the next, and shown on a terminal only."""
    tty = sys.stdout.isatty()
    if passing and not tty:
        return
    print(f"\r\033[K{line}" if tty else line, end="" if passing else "\n", flush=True)
