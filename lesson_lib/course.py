"""What every part takes from the course, in one line: cards, checks, and how numbers and code are shown.

`from lesson_lib.course import *` stands in a part's folded first cell; what the part is about is imported by
name. Files to carry away can be imported after it wherever the notebook runs: a copy beside the notebook comes
first, then the course's own.
"""

import sys

from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
from lesson_lib.places import ROOT
from lesson_lib.show import show, show_source

__all__ = ["check", "hint", "predict", "show", "show_source", "solution", "warm_up", "yours"]

sys.path += [str(ROOT / "notebooks")]
