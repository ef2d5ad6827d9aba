"""What every part takes from the course, in one line: cards, checks, and how numbers and code are shown.

`from lesson_lib.course import *` stands in a part's folded first cell; what the part is about is imported by
name. After it, `carry` can be imported wherever the notebook runs: the copy beside it, else the course's own.
"""

import sys

from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
from lesson_lib.places import ROOT
from lesson_lib.show import show, show_source

__all__ = ["check", "hint", "predict", "show", "show_source", "solution", "warm_up", "yours"]

sys.path += [str(ROOT / "notebooks")]
