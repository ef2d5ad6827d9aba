"""What a learner may type in any notebook of the course, whatever its first cell imports, and what is said
below a cell that failed.

`import lesson_lib` in a kernel puts these verbs where no name of theirs stands. Without it `reset("...")`
would reach IPython's own %reset, which asks whether to delete all variables.
"""

import json
import os
import re
import sys
from collections.abc import Callable
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

CHECKS = "lesson_lib.checks"
VERBS = {  # the verb: where it is defined
    "check": CHECKS,
    "export_progress": CHECKS,
    "hint": CHECKS,
    "judge": CHECKS,
    "no_time": "lesson_lib.training",
    "predict": CHECKS,
    "progress": CHECKS,
    "properties": CHECKS,
    "reset": CHECKS,
    "review": CHECKS,
    "second": CHECKS,
    "solution": CHECKS,
    "warm_up": CHECKS,
    "yours": CHECKS,
}
PROOF_FAILED = (
    "This cell checks numbers of the text above in the course's own run. In yours they are others: a cell"
    " that you changed, or a training that was stopped, does that, and nothing is broken. To see them as the"
    " text has them: Run > Restart Kernel and Run All Cells."
)
_half_done: list[bool] = []  # one entry where a cell was stopped before its end
_unread: dict[str, str] = {}  # functions whose cell, run last, was no Python


def install() -> None:
    """Put the verbs into the notebook that imports the course, hidden from %who; nothing happens elsewhere.

    They are imported when they are called: the doctor runs in a kernel that may have no torch.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return
    for name, module in VERBS.items():
        if name not in shell.user_ns:
            shell.user_ns[name] = shell.user_ns_hidden[name] = _verb(name, module)
    if _after not in shell.events.callbacks["post_run_cell"]:
        shell.events.register("post_run_cell", _after)


def unread(name: str) -> str | None:
    """Why the cell in which the learner wrote this function last could not be read; None where it could."""
    return _unread.get(name)


def say(sentence: str) -> None:
    """Show a sentence below the running cell: in a notebook as HTML, whose lines break between words."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if hasattr(shell, "kernel"):
        from IPython.display import display

        page = f"<div role='status'>{escape(sentence)}</div>"
        display({"text/plain": sentence, "text/html": page}, raw=True)
    else:
        print(sentence)


def half_done(stopped: bool) -> None:
    """Remember that a cell was stopped before its end, or that one ran to it."""
    _half_done[:] = [True] * stopped


def _after(cell: Any) -> None:
    """Note which functions a cell could not define, and explain an assertion of the course's that failed."""
    source = cell.info.raw_cell or ""
    for name in re.findall(r"^(?:async )?def (\w+)", source, re.M):
        _unread.pop(name, None)
        if isinstance(error := cell.error_before_exec, SyntaxError):
            _unread[name] = f"{type(error).__name__}, line {error.lineno}: {error.msg}"
    error = cell.error_in_exec
    if isinstance(error, AssertionError | NameError) and source.strip() in _proofs():
        say(PROOF_FAILED)
    elif isinstance(error, NameError) and _half_done:
        say(f"A cell above was stopped (■) before it had made {error.name}: run that cell again, to its end.")


def _proofs() -> set[str]:
    """The cells of the open notebook that are tagged "proof"."""
    try:
        cells = json.loads(Path(os.environ["JPY_SESSION_NAME"]).read_text(encoding="utf-8"))["cells"]
    except (KeyError, OSError, ValueError):  # a front end that does not tell which notebook is open
        return set()
    tagged = (cell for cell in cells if "proof" in cell.get("metadata", {}).get("tags", ()))
    return {"".join(cell["source"]).strip() for cell in tagged}


def _verb(name: str, module: str) -> Callable[..., Any]:
    def verb(*given: Any, **named: Any) -> Any:
        return getattr(import_module(module), name)(*given, **named)

    verb.__name__ = verb.__qualname__ = name
    verb.__doc__ = f"`{module}.{name}`; help({module}.{name}) tells what it takes."
    return verb
