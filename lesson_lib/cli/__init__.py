"""The command line: `python -m lesson_lib COMMAND`.

A command is a module: `options(parser)` declares what it takes, `main(...)` takes it by name. Modules are
imported when their command is called, so that `lab` starts without waiting for torch.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from lesson_lib.places import IS_CLONE

COMMANDS = {  # the command: what it does; where its module has another name, this stands before it
    "doctor": "look at the machine and the installation, and say what to mend",
    "lab": "open the lessons in JupyterLab, in your own copies (folder work/)",
    "capstone": "judge your own Transformer, work/capstone.py, in stages",
    "model": "what a published model on your disk is, layer by layer (config.json and safetensors)",
    "new": "make the files of a new part",
    "ask": "show one question as a learner sees it",
    "build": "build notebooks/*.ipynb from notebooks/source",
    "figures": "draw figures/ again",
    "experiments": "run the long experiments again",
    "ring": "attention over several processes; torchrun starts them (make ring)",
    "slides": "slides of the lessons, for a browser without a network (make slides)",
    "site": "the course as pages for any browser (make site)",
    "script": "a session on paper: each slide with what to say (make script PLAN=half-day)",
    "handouts": "the sheets of a room as one page, and as a PDF (make handouts)",
    "assignments": "the exercises as nbgrader's assignments (make assignments)",
    "collect": "take the assignments of a class server in, for nbgrader (make collect)",
    "report": "a page on what a class has done, from the files of export_progress() in a folder",
    "class": "one JupyterHub for a class, on this machine (make class)",
}
ANYWHERE = ("doctor", "lab", "capstone", "model", "ask", "ring")  # the others need the whole repository
ELSEWHERE = {"class": "lesson_lib.cli.classroom", "experiments": "lesson_lib.experiments"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 where all went well, 1 after a sentence that says what did not."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    top = argparse.ArgumentParser(prog="python -m lesson_lib", description=__doc__.splitlines()[0])
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        if not (IS_CLONE or name in ANYWHERE):
            continue
        parser = commands.add_parser(name, help=summary)
        if name == next(iter(arguments), None):
            module = import_module(ELSEWHERE.get(name, f"lesson_lib.cli.{name}"))
            module.options(parser)
    chosen = vars(top.parse_args(arguments))
    del chosen["command"]
    try:
        return module.main(**chosen)
    except KeyboardInterrupt:
        print("\nStopped.")
        return 130
