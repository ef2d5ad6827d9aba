"""Pictures of tensors: tensors in, a closed figure with alt text and caption out.

`picture` holds the one class and the house style, `charts` the general kinds, then a file per lesson that
needs its own, and `files` writes the figures of README and lessons to disk.
"""

from lesson_lib.plots.charts import bars, heatmap, lines
from lesson_lib.plots.picture import CURVES, HEAT, Picture

__all__ = ["CURVES", "HEAT", "Picture", "bars", "heatmap", "lines"]
