"""What every part takes from the course, in one line: cards, checks, and how numbers and code are shown.

`from lesson_lib.course import *` stands in a part's folded first cell; what the part is about is imported by
name.
"""

from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
from lesson_lib.show import show, show_source

__all__ = ["check", "hint", "predict", "show", "show_source", "solution", "warm_up", "yours"]
