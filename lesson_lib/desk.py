"""What a learner may type in any notebook of the course, whatever its first cell imports.

`import lesson_lib` in a kernel puts these verbs where no name of theirs stands. Without it `reset("...")`
would reach IPython's own %reset, which asks whether to delete all variables.
"""

import sys
from collections.abc import Callable
from importlib import import_module
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


def _verb(name: str, module: str) -> Callable[..., Any]:
    def verb(*given: Any, **named: Any) -> Any:
        return getattr(import_module(module), name)(*given, **named)

    verb.__name__ = verb.__qualname__ = name
    verb.__doc__ = f"`{module}.{name}`; help({module}.{name}) tells what it takes."
    return verb
