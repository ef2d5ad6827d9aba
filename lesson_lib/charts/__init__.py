"""Pictures of tensors: tensors in, a closed figure with alt text and caption out.

`picture` holds the one class and the house style, `marks` ticks and notes, `basic` the general kinds; then
what several chapters draw.
What one chapter draws lies with it, lesson_lib/chapters/*/figures.py.
"""

from lesson_lib.charts.basic import bars, heatmap, lines
from lesson_lib.charts.picture import CURVES, HEAT, Picture

__all__ = ["CURVES", "HEAT", "Picture", "bars", "heatmap", "lines"]
