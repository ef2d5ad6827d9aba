"""What an explorer draws, recorded beforehand for pages without a kernel.

A notebook's cells run up to its explorers, as its build runs them. Then each slider and choice is moved, and
every drawing is written down: the tags and texts once, each state as a row of their numbers, compressed. A
player in the page (site/_static/player.js) shows them. What is recorded is kept in a folder of this user, by
a hash of the code that makes it, so that only what changed is run again.
"""

import base64
import hashlib
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import product
from pathlib import Path
from typing import Any

import ipywidgets
import nbformat
from nbformat import NotebookNode

LARGEST = 600 * 1024  # bytes of one recording: three on a page stay below 2 MB
MAKES = re.compile(r"\b([A-Z]\w*(?:Explorer|Player))\(")
LEFT_OUT = (ipywidgets.Text, ipywidgets.Button, ipywidgets.FileUpload, ipywidgets.Audio)


def folder() -> Path:
    """Where recordings are kept between runs."""
    from platformdirs import user_cache_path

    return user_cache_path("attention-course") / "states"


def explorers(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells that show an explorer: they make one, and a still picture is stored."""
    return [
        cell
        for cell in notebook.cells
        if cell.cell_type == "code" and MAKES.search(cell.source) and any(map(is_still, cell.outputs))
    ]


def is_still(output: NotebookNode) -> bool:
    """Whether an output is a picture."""
    return "image/png" in output.get("data", {})


def key(notebook: NotebookNode, root: Path) -> str:
    """A hash of what makes a notebook's recordings: its code up to the last explorer, the explorers, this
    file."""
    cells = explorers(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    sources = [cell.source for cell in code[: code.index(cells[-1]) + 1]]
    made = {name for cell in cells for name in MAKES.findall(cell.source)}
    for path in sorted((root / "lesson_lib").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if made & set(re.findall(r"^class (\w+)", text, re.M)) or path.name in ("explorer.py", "states.py"):
            sources.append(text)
    return hashlib.sha256("\0".join(sources).encode()).hexdigest()[:16]


def recorded(names: Sequence[str], root: Path, kept: Path) -> tuple[dict[str, list[Path]], list[str]]:
    """The recordings of these notebooks: cell id -> one file for each explorer that it shows. Missing ones
    are made, two notebooks at a time. Also a sentence for each notebook whose cells did not run."""
    kept.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[Path]] = {}
    lacking = []
    for name in names:
        notebook = nbformat.read(root / "notebooks" / f"{name}.ipynb", 4)
        if explorers(notebook):
            stem = f"{name.replace('/', '-')}.{key(notebook, root)}"
            if (kept / f"{stem}.json").exists():
                found |= _files(kept, stem)
            else:
                lacking.append((name, stem))
    troubles = []
    if lacking:
        from tqdm.auto import tqdm

        with ThreadPoolExecutor(2) as pool, tempfile.TemporaryDirectory() as home:
            runs = {pool.submit(_run, name, stem, root, kept, home): (name, stem) for name, stem in lacking}
            bar = tqdm(as_completed(runs), total=len(runs), desc="explorers", disable=_quiet())
            for done in bar:
                name, stem = runs[done]
                if trouble := done.result():
                    troubles.append(f"{name}: its explorers stay pictures, since a cell ends in: {trouble}")
                else:
                    found |= _files(kept, stem)
    return found, troubles


def _quiet() -> bool:
    return os.environ.get("LESSON_PROGRESS") == "off"


def _files(kept: Path, stem: str) -> dict[str, list[Path]]:
    listed = json.loads((kept / f"{stem}.json").read_text(encoding="utf-8"))
    return {cell: [kept / file for file in files] for cell, files in listed.items()}


def _run(name: str, stem: str, root: Path, kept: Path, home: str) -> str:
    """Record one notebook's explorers in a process of its own; '' or the last line of what went wrong."""
    words = [sys.executable, "-m", "lesson_lib.cli.site.states", str(root), name, stem, str(kept)]
    settled = {
        "LESSON_HOME": f"{home}/{stem}", "LESSON_BUILD": "1", "LESSON_PROGRESS": "off",
        "LESSON_DEVICE": "cpu", "IPYTHONDIR": home, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg",
        "PYTHONPATH": os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }  # fmt: skip
    inherited = {k: v for k, v in os.environ.items() if k != "LESSON_STEPS"}
    done = subprocess.run(
        words, cwd=root / "notebooks", env=inherited | settled, capture_output=True, encoding="utf-8"
    )
    if done.returncode:
        return (done.stderr.strip() or "no words").splitlines()[-1]
    for old in kept.glob(f"{name.replace('/', '-')}.*"):  # of another hash
        if not old.name.startswith(stem):
            old.unlink(missing_ok=True)
    return ""


def make(root: Path, name: str, stem: str, kept: Path) -> None:
    """Run a notebook's cells up to its last explorer, and write what each explorer draws; the list of the
    files comes last."""
    from IPython.core.interactiveshell import InteractiveShell

    from lesson_lib.widgets.explorer import Explorer

    notebook = nbformat.read(root / "notebooks" / f"{name}.ipynb", 4)
    cells = explorers(notebook)
    shown: list[Explorer] = []
    Explorer._repr_mimebundle_ = lambda self, **options: shown.append(self) or {}
    shell = InteractiveShell.instance()
    listed: dict[str, list[str]] = {}
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        out, sys.stdout = sys.stdout, nowhere
        for cell in notebook.cells:
            if cell.cell_type != "code":
                continue
            shown.clear()
            shell.run_cell(cell.source).raise_error()
            if cell not in cells:
                continue
            stills = sum(map(is_still, cell.outputs))
            if len(shown) != stills:
                raise ValueError(f"cell {cell.id} shows {len(shown)} explorers, and {stills} are stored")
            for number, explorer in enumerate(shown):
                file = f"{stem}.{cell.id}-{number}.js"
                written = pack(record(explorer), f"{cell.id}-{number}")
                (kept / file).write_text(written, encoding="utf-8")
                listed.setdefault(cell.id, []).append(file)
            if cell is cells[-1]:
                break
        sys.stdout = out
    (kept / f"{stem}.json").write_text(json.dumps(listed), encoding="utf-8")


# One explorer


def record(explorer: Any) -> dict[str, Any]:
    """Render every reachable state of an explorer (long sliders thinned) into a tree by leading control.

    `controls`: name and kind of each, in order. A control that changes what others offer leads (an example
    that changes how long a text is): `tree` branches at each value of a leading control, and a leaf holds
    what the others offer, and the number of its first state; states follow in the order of
    itertools.product.
    """
    every_control = explorer.children[0].children
    lacks = [c for c in every_control if isinstance(c, LEFT_OUT) or _words(c) in explorer.fixed]
    controls = [c for c in every_control if c not in lacks and not isinstance(c, ipywidgets.Play)]
    if isinstance(getattr(explorer, "play", None), ipywidgets.Play):  # and steps back and forward with it
        lacks = [c for c in lacks if c not in (getattr(explorer, "back", 0), getattr(explorer, "forward", 0))]
    every = [values_of(c) for c in controls]
    start = [c.value for c in controls]
    leading = [c for c in controls if _leads(c, controls)]
    _restore(controls, start)
    others = [c for c in controls if c not in leading]
    places = [_place(v, x) for v, x in zip(every, start, strict=True)]
    whole = [c in leading or isinstance(c, ipywidgets.ToggleButtons) for c in controls]
    strides = strides_of([*map(len, every)], places, whole, explorer.most_states)
    stride = dict(zip(map(id, controls), strides, strict=True))
    first = dict(zip(map(id, controls), start, strict=True))
    drawings: list[str] = []

    def branch(rest: Sequence[Any]) -> dict[str, Any]:
        if not rest:
            return leaf()
        control, *rest = rest
        values = values_of(control)
        node = {
            "labels": [label for label, _ in values],
            "at": _place(values, first[id(control)]),
            "next": [],
        }
        for _, value in values:
            control.value = value
            node["next"].append(branch(rest))
        return node

    def leaf() -> dict[str, Any]:
        kept = []
        for control in others:
            values = values_of(control)
            at = _place(values, first[id(control)]) if first[id(control)] in [v for _, v in values] else 0
            kept.append([values[i] for i in thinned(len(values), at, stride[id(control)])])
        found = {"labels": [[label for label, _ in v] for v in kept], "first": len(drawings)}
        found["at"] = [
            next((i for i, (_, x) in enumerate(v) if x == first[id(c)]), 0)
            for c, v in zip(others, kept, strict=True)
        ]
        for state in product(*kept):
            for control, (_, value) in zip(others, state, strict=True):
                control.value = value
            explorer.settle()
            drawings.append(explorer.drawing.value)
        return found

    tree = branch(leading)
    _restore(controls, start)
    return {
        "controls": [
            {"name": c.description, "kind": kind_of(c), "leads": c in leading} for c in controls
        ],
        "plays": _plays(explorer, controls),
        "lacks": [_lacking(c) for c in lacks if _words(c)],
        "thinned": any(s > 1 for s in strides),
        "tree": tree,
        "drawings": drawings,
    }  # fmt: skip


def values_of(control: Any) -> list[tuple[str, Any]]:
    """What a control can be set to, each with its words."""
    if hasattr(control, "_options_full"):
        return [(str(label), value) for label, value in control._options_full]
    if isinstance(control, ipywidgets.FloatLogSlider):
        count = round((control.max - control.min) / control.step)
        powers = [control.base ** (control.min + i * control.step) for i in range(count + 1)]
        powers = [control.value if math.isclose(p, control.value) else p for p in powers]
        return [(f"{p:.3g}", p) for p in powers]
    if isinstance(control, ipywidgets.FloatSlider):
        count = round((control.max - control.min) / control.step)
        steps = [round(control.min + i * control.step, 10) for i in range(count + 1)]
        return [(f"{x:g}", x) for x in steps]
    if isinstance(control, ipywidgets.IntSlider):
        return [(str(x), x) for x in range(control.min, control.max + 1, control.step)]
    raise TypeError(f"{type(control).__name__} cannot be recorded: teach values_of its values")


def kind_of(control: Any) -> str:
    """How a page offers it: "choice" (a button for each value) or "slider"."""
    return "choice" if isinstance(control, ipywidgets.ToggleButtons) else "slider"


def thinned(count: int, at: int, stride: int) -> list[int]:
    """The places that stay of so many: every `stride`-th from where it starts, and both ends.

    >>> thinned(10, 4, 3)
    [0, 1, 4, 7, 9]
    """
    return [i for i in range(count) if (i - at) % stride == 0 or i in (0, count - 1)]


def strides_of(counts: Sequence[int], starts: Sequence[int], whole: Sequence[bool], most: int) -> list[int]:
    """How many values to go on by, for each control: the longest are thinned until the states are few enough.

    >>> strides_of([101, 101], [50, 50], [False, False], 800)
    [4, 4]
    >>> strides_of([7, 3, 3], [6, 0, 0], [False, True, True], 800)
    [1, 1, 1]
    """
    strides = [1] * len(counts)

    def left(i: int) -> int:
        return len(thinned(counts[i], starts[i], strides[i]))

    while math.prod(map(left, range(len(counts)))) > most:
        free = [i for i in range(len(counts)) if not whole[i] and left(i) > 3]
        if not free:
            break
        strides[max(free, key=left)] *= 2
    return strides


def _leads(control: Any, controls: Sequence[Any]) -> bool:
    """Whether another of its values changes what a control beside it offers."""
    others = [c for c in controls if c is not control]

    def offered() -> list[list[str]]:
        return [[label for label, _ in values_of(c)] for c in others]

    before, value = offered(), control.value
    changed = False
    for _, other in values_of(control):
        control.value = other
        changed = changed or offered() != before
    control.value = value
    return changed


def _restore(controls: Iterable[Any], values: Iterable[Any]) -> None:
    for control, value in zip(controls, values, strict=True):
        control.value = value


def _lacking(control: Any) -> str:
    return "texts of your own" if isinstance(control, ipywidgets.Text) else f"“{_words(control)}”"


def _words(control: Any) -> str:
    return getattr(control, "description", "")  # an Audio has none


def _place(values: Sequence[tuple[str, Any]], value: Any) -> int:
    return next((i for i, (_, v) in enumerate(values) if v == value), 0)


def _plays(explorer: Any, controls: Sequence[Any]) -> int | None:
    """The number of the slider that a play button moves."""
    play = [c for c in explorer.children[0].children if isinstance(c, ipywidgets.Play)]
    return controls.index(explorer.step) if play else None


# One file


def pack(recording: dict[str, Any], name: str) -> str:
    """A script that hands the recording to the page's player under this name."""
    numbers: dict[str, int] = {}
    rows = [
        [numbers.setdefault(token, len(numbers)) for token in tokens(drawing)]
        for drawing in recording["drawings"]
    ]
    told = {**recording, "tokens": list(numbers), "drawings": rows}
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    data = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    script = f'recorded("{name}", "{data}");\n'
    if len(script) > LARGEST:
        raise ValueError(f"{name} has {len(script):,} bytes, over {LARGEST:,}: record fewer states of it")
    return script


def unpack(script: str) -> dict[str, Any]:
    """What `pack` wrote, with each drawing as HTML."""
    data = re.fullmatch(r'recorded\("[\w-]+", "([\w+/=]+)"\);\n', script)[1]
    told = json.loads(zlib.decompress(base64.b64decode(data)))
    told["drawings"] = ["".join(told["tokens"][i] for i in row) for row in told["drawings"]]
    return told


def tokens(drawing: str) -> list[str]:
    """Tags and texts, in order.

    >>> tokens("<b>two</b>, 3")
    ['<b>', 'two', '</b>', ', 3']
    """
    return re.findall(r"<[^>]*>|[^<]+|<", drawing)


if __name__ == "__main__":
    make(Path(sys.argv[1]), sys.argv[2], sys.argv[3], Path(sys.argv[4]))
