"""Things to move: ipywidgets over `attend`, each with a still picture for readers without a kernel.

Every widget is moved by keyboard as well as by mouse, shows its formulas on hover or focus, and needs no
network. `explorer` is what all of them are built on. One that serves a single chapter lies there,
lesson_lib/chapters/*/NAME_explorer.py; here are those of several.
"""

from lesson_lib.widgets.alignment import AlignmentExplorer
from lesson_lib.widgets.explorer import Explorer
from lesson_lib.widgets.heads import HeadExplorer
from lesson_lib.widgets.machine import MachineExplorer

__all__ = ["AlignmentExplorer", "Explorer", "HeadExplorer", "MachineExplorer"]
