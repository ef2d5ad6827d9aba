"""Widgets that leave a still form behind: in a saved notebook that is opened again, it stands in their place.

JupyterLab saves of a widget the address of its model alone, and shows "model not found" where the kernel is
gone. So a cell has two outputs here: the still form, which the widget hides while it lives; and the widget.
"""

from collections.abc import Sequence
from typing import Any

import ipywidgets
from IPython.display import display

from lesson_lib.device import watched

LEFT = "ll-left"  # the class of what stays: behind it the line about a lost model is not shown
CSS = f"""
.jp-OutputArea-child:has(.{LEFT}) + * > .jp-OutputArea-output:not(:has(*)) {{display:none}}
.{LEFT} img {{max-width:100%; height:auto}} .ll-again {{margin:.4em 0; opacity:.8}}
[data-jp-theme-light=false] :is(.ll-box, .{LEFT} img, .jp-RenderedImage img) {{filter:brightness(.75)}}
"""
AGAIN = "To go on: Run > Run All Cells. Your answers are kept."


def view_of(widget: ipywidgets.Widget) -> dict[str, Any]:
    """The widget as an output: ipywidgets 8 gives that itself, and 7, which hosted notebooks have, does
    not."""
    model = {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
    return {"application/vnd.jupyter.widget-view+json": model, "text/plain": repr(widget)}


class Live(ipywidgets.VBox):
    """A widget with a still form: a subclass defines `bundle()` and `page()`.

    Where nobody watches, a cell's output is the bundle alone.
    """

    def __init__(self, children: Sequence[ipywidgets.Widget] = ()) -> None:
        self._hides = ipywidgets.HTML(layout=ipywidgets.Layout(display="none"))  # a style
        self._stills: list[Any] = []
        super().__init__([*children, self._hides])

    def bundle(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Data and metadata by MIME type, as a notebook without a kernel stores them."""
        raise TypeError(f"{type(self).__name__} must define bundle() -> data, metadata")

    def page(self) -> str:
        """The still form as HTML, for whoever opens the saved notebook again."""
        raise TypeError(f"{type(self).__name__} must define page() -> html")

    @property
    def settled(self) -> bool:
        """Whether nothing more can be done with it, so that its still form is all."""
        return False

    def renew(self) -> None:
        """Show the still form as it is now: something was answered."""
        for still in self._stills:
            still.update(self._still(), raw=True)

    def _still(self) -> dict[str, str]:
        below = "" if self.settled else f"<div class='ll-again'>{AGAIN}</div>"
        page = f"<style>{CSS}</style><div class='{LEFT} {self._mark}'>{self.page()}{below}</div>"
        return {"text/html": page, "text/plain": self.bundle()[0]["text/plain"]}

    @property
    def _mark(self) -> str:
        return f"{LEFT}-{self.model_id}"

    def _ipython_display_(self) -> None:
        if not watched():
            raise NotImplementedError  # IPython then takes the bundle
        self._stills.append(display(self._still(), raw=True, display_id=True))
        self._hides.value = f"<style>{CSS} .{self._mark} {{display:none}}</style>"
        display(view_of(self), raw=True)

    def _repr_mimebundle_(self, **options):
        return self.bundle()
