"""Notebooks from text: notebooks/source/*.py (jupytext, py:percent) -> notebooks/*.ipynb, executed, in a normal form.

One direction only. An exercise source gives two notebooks: the learner's (notebooks/exercises) and the one with answers
(notebooks/solutions). In such a source,

    ### BEGIN SOLUTION ... ### END SOLUTION    stands in the solution only, without the two marker lines
    ### STUB: code                             stands in the learner's notebook only, as `code`

Normal form: kernelspec python3; a cell's metadata are its tags; its id is a hash of its source (and of how many equal ones stand
before it); execution counts 1..n; no widget state, no standard error; a stored output that nbval finds equal to the new one is kept.
"""

import ast
import hashlib
import os
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ROOT = Path(__file__).resolve().parents[2]
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
WIDGET = "application/vnd.jupyter.widget-view+json"  # a reader without a kernel would see "model not found" in place of the picture
SPEAKERS = {"print", "show", "show_source", "verdict", "check", "hint", "solution", "progress", "picture", "properties", "display"}  # a call of these leaves an output
CELL_TIMEOUT_S = 1200
BEGIN, END, STUB = "### BEGIN SOLUTION", "### END SOLUTION", "### STUB:"


class BuildError(Exception):
    """A notebook that cannot be built, in one sentence that names it, the cell and the repair."""


@dataclass(frozen=True)
class Target:
    """One notebook to build: its name (02_scoring, exercises/02_scoring, solutions/02_scoring), its source, its place."""

    name: str
    source: Path
    path: Path

    @property
    def solved(self) -> bool | None:
        """True for a notebook with answers, False for a learner's, None for a lesson."""
        folder = self.name.rpartition("/")[0]
        return {"exercises": False, "solutions": True}.get(folder)


def targets(names: Sequence[str] = (), *, root: Path = ROOT) -> list[Target]:
    """The notebooks that the sources give, in order; with `names`, those only: 02_scoring, exercises/02_scoring or 02.

    Raises BuildError for a name that fits nothing.
    """
    folder = root / "notebooks"
    every = [Target(p.stem, p, folder / f"{p.stem}.ipynb") for p in sorted((folder / "source").glob("*.py"))]
    for p in sorted((folder / "source" / "exercises").glob("*.py")):
        every += [Target(f"{k}/{p.stem}", p, folder / k / f"{p.stem}.ipynb") for k in ("exercises", "solutions")]
    if not names:
        return every
    chosen = []
    for name in (n.removesuffix(".ipynb").removesuffix(".py").removeprefix("notebooks/") for n in names):
        fits = [t for t in every if name in (t.name, t.source.stem, t.source.stem.split("_")[0])]
        if not fits:
            raise BuildError(f"no notebook is called {name!r}; there are {', '.join(t.name for t in every) or 'none'}")
        chosen += [t for t in fits if t not in chosen]
    return chosen


def split_exercise(text: str, *, solved: bool) -> str:
    """The source of an exercise as the learner gets it, or with the answers.

    Raises BuildError where a region is opened twice, closed without being open, or left open.

    >>> source = "def f(x):\\n    ### BEGIN SOLUTION\\n    return 2 * x\\n    ### END SOLUTION\\n    ### STUB: return None\\n"
    >>> split_exercise(source, solved=True)
    'def f(x):\\n    return 2 * x\\n'
    >>> split_exercise(source, solved=False)
    'def f(x):\\n    return None\\n'
    """
    kept, inside = [], False
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        bare = line.strip()
        if bare in (BEGIN, END):
            if inside == (bare == BEGIN):
                raise BuildError(f"line {number}: {bare!r} {'inside' if inside else 'outside'} a solution; pair {BEGIN} with {END}")
            inside = not inside
        elif bare.startswith(STUB):
            if not solved:
                kept.append(line.replace(f"{STUB} ", "", 1).replace(STUB, "", 1))
        elif solved or not inside:
            kept.append(line)
    if inside:
        raise BuildError(f"{BEGIN!r} is never closed; add {END}")
    return "".join(kept)


def read_source(target: Target) -> NotebookNode:
    """The notebook that a source describes, before it is executed: cells with their tags and ids, no outputs."""
    import jupytext

    text = target.source.read_text(encoding="utf-8")
    if target.solved is not None:
        text = split_exercise(text, solved=target.solved)
    elif BEGIN in text or STUB in text:
        raise BuildError(f"{target.source.name} is a lesson and has a solution region; exercises live in source/exercises")
    cells = [c for c in jupytext.reads(text, fmt="py:percent").cells if c.source.strip()]
    seen: Counter[str] = Counter()
    made = []
    for cell in cells:
        make = {"code": new_code_cell, "markdown": new_markdown_cell}.get(cell.cell_type)
        if make is None:
            raise BuildError(f"{target.source.name} has a {cell.cell_type} cell; write code (# %%) or text (# %% [markdown])")
        key = f"{cell.cell_type}\n{cell.source}"
        name = hashlib.sha256(f"{key}\n{seen[key]}".encode()).hexdigest()[:12]
        seen[key] += 1
        tags = cell.metadata.get("tags")
        made.append(make(source=cell.source, id=name, metadata={"tags": list(tags)} if tags else {}))
    if not made:
        raise BuildError(f"{target.source.name} has no cells; a cell starts with a line '# %%'")
    return new_notebook(cells=made, metadata=METADATA)


def normal_outputs(outputs: Sequence[NotebookNode], count: int) -> list[NotebookNode]:
    """The outputs as they are stored: streams of one name joined, no widget views, no tracebacks with paths."""
    made: list[NotebookNode] = []
    streams: dict[str, NotebookNode] = {}
    for output in outputs:
        output = nbformat.from_dict(dict(output))
        if output.output_type == "stream":
            if output.name in streams:
                streams[output.name].text += output.text
                continue
            streams[output.name] = output
        elif output.output_type == "error":
            output.traceback = [f"{output.ename}: {output.evalue}"]
        else:
            output.data = {mime: value for mime, value in sorted(output.data.items()) if mime != WIDGET}
            if output.output_type == "execute_result":
                output.execution_count = count
        made.append(output)
    return made


def seen_by_nbval(outputs: Sequence[NotebookNode]) -> dict[str, list]:
    """What nbval compares of a cell's outputs: every text by its kind; no pictures, no metadata, no counts."""
    seen = defaultdict(list)
    for output in outputs:
        if output.output_type == "stream":
            seen[output.name].append(output.text)
        elif output.output_type == "error":
            seen["ename"].append(output.ename)
            seen["evalue"].append(output.evalue)
        else:
            for mime, value in output.data.items():
                if mime not in ("image/png", "image/jpeg", WIDGET):
                    seen[mime].append(value)
    return dict(seen)


def may_keep(stored: Sequence[NotebookNode], new: Sequence[NotebookNode], *, ignored: bool = False) -> bool:
    """True where the stored outputs may stay: nbval finds them equal, and they are of the same kinds with the same alt texts."""

    def frame(outputs: Sequence[NotebookNode]) -> list:
        return [(o.output_type, sorted(o.get("data", ())), dict(o.get("metadata", {}))) for o in outputs]

    return frame(stored) == frame(new) and (ignored or seen_by_nbval(stored) == seen_by_nbval(new))


def looks_alike(stored: str, new: str) -> bool:
    """True where two PNGs (base64) have one size and look the same, but for a different rounding in the drawing of a letter."""
    import base64
    import io

    import numpy as np
    from PIL import Image

    one, two = (Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB") for png in (stored, new))
    if one.size != two.size:
        return False
    distance = np.abs(np.asarray(one, dtype=np.int16) - np.asarray(two, dtype=np.int16)).max(axis=-1)
    return bool((distance > 24).mean() < 0.002)


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
        settled = {"LESSON_HOME": empty, "IPYTHONDIR": empty, "LESSON_DEVICE": "cpu", "LESSON_PROGRESS": "off", "OMP_NUM_THREADS": "1"}
        inherited = {k: v for k, v in os.environ.items() if k not in ("LESSON_STEPS", "MPLBACKEND")}
        with client.setup_kernel(env=inherited | settled):
            for number, (i, cell) in enumerate(code, 1):
                _say(f"  {target.name}: cell {number} of {len(code)}", passing=True)
                where = f"{target.name}, code cell {number} ({cell.source.strip().splitlines()[0][:60]!r})"
                try:
                    client.execute_cell(cell, i, execution_count=number)
                except CellTimeoutError:
                    raise BuildError(f"{where} ran for {CELL_TIMEOUT_S} s and was stopped") from None
                except CellExecutionError as error:
                    raise BuildError(f"{where} ends in an error:\n{error.traceback}") from None
                except DeadKernelError:
                    raise BuildError(f"{where}: the kernel died") from None
                for output in cell.outputs:
                    if output.get("name") == "stderr":
                        raise BuildError(f"{where} writes to standard error:\n{output.text}")


def build(target: Target, *, fresh: bool = False) -> list[str]:
    """Execute one source and write its notebook; returns remarks. Stored outputs that nbval finds equal are kept, unless `fresh`."""
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
        if may_keep(before, cell.outputs, ignored="nbval-ignore-output" in cell.metadata.get("tags", ())):
            if not all(looks_alike(a, b) for a, b in zip(_pngs(before), _pngs(cell.outputs), strict=True)):
                remarks.append(f"{target.name}, code cell {number}: the new picture looks different; the stored one is kept (--fresh takes the new one)")
            cell.outputs = before
    _write(target.path, text_of(notebook))
    return remarks


def text_of(notebook: NotebookNode) -> str:
    """The notebook as it is written to its file."""
    nbformat.validate(notebook)
    return nbformat.writes(notebook, sort_keys=True).rstrip("\n") + "\n"


def differences(target: Target) -> Iterator[str]:
    """What is wrong with a built notebook: it differs from its source, is not in the normal form, or lacks an output."""
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
        found = nbformat.reads(raw, as_version=4)
    except Exception as error:
        yield f"it is no notebook ({type(error).__name__})"
        return
    pairs = list(zip(found.cells, wanted.cells, strict=False))
    for number, (have, want) in enumerate(pairs, 1):
        for what in ("cell_type", "source", "id", "metadata"):
            if have.get(what) != want[what]:
                yield f"cell {number} differs from its source in its {what} ({want.source.strip().splitlines()[0][:60]!r})"
                return
    if len(found.cells) != len(wanted.cells):
        yield f"it has {len(found.cells)} cells, its source {len(wanted.cells)}"
        return
    for number, cell in enumerate((c for c in found.cells if c.cell_type == "code"), 1):
        if cell.execution_count != number:
            yield f"code cell {number} has the execution count {cell.execution_count}"
        if not cell.outputs and speaks(cell.source):
            yield f"code cell {number} has no stored output, although it prints or shows something"
        cell.outputs = normal_outputs(cell.outputs, number)
    found.metadata = nbformat.from_dict(METADATA)
    if text_of(found) != raw:
        yield "it is not in the normal form"


def speaks(source: str) -> bool:
    """True where a cell calls, outside of functions, something that leaves an output: print, show, check ...

    >>> speaks("x = 2\\nshow(x)"), speaks("def f():\\n    print(2)")
    (True, False)
    """
    statements = ast.parse(re.sub(r"^\s*[%!].*$", "", source, flags=re.M)).body
    calls = [s.value for s in statements if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)]
    return any(getattr(call.func, "id", getattr(call.func, "attr", "")) in SPEAKERS for call in calls)


def strays(root: Path = ROOT) -> list[str]:
    """Notebooks without a source, as paths from the repository's root."""
    known = {t.path for t in targets(root=root)}
    folders = [root / "notebooks", root / "notebooks" / "exercises", root / "notebooks" / "solutions"]
    return [p.relative_to(root).as_posix() for folder in folders for p in sorted(folder.glob("*.ipynb")) if p not in known]


def check(names: Sequence[str] = (), *, root: Path = ROOT) -> int:
    """0 where every notebook is what its source gives, else 1 after the list of those that are not. Runs nothing."""
    try:
        chosen = targets(names, root=root)
    except BuildError as error:
        print(error)
        return 1
    wrong = [f"{t.path.relative_to(root).as_posix()}: {what}" for t in chosen for what in differences(t)]
    if not names:
        wrong += [f"{path}: it has no source in notebooks/source" for path in strays(root)]
    for line in wrong:
        print(line)
    print("repair: make notebooks" if wrong else f"{len(chosen)} notebooks are what their sources give")
    return 1 if wrong else 0


def main(names: Sequence[str] = (), *, fresh: bool = False, root: Path = ROOT) -> int:
    """Build the notebooks, one after the other; 0 where all were built, 1 after a sentence for each that was not."""
    try:
        chosen = targets(names, root=root)
    except BuildError as error:
        print(error)
        return 1
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


def _pngs(outputs: Sequence[NotebookNode]) -> list[str]:
    return [o.data["image/png"] for o in outputs if "image/png" in o.get("data", {})]


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
