"""What must hold for every widget, whichever chapter it belongs to."""

import html
from collections.abc import Callable

from lesson_lib.widgets import Explorer


def stands_alone(make: Callable[[], Explorer]) -> str:
    """A still picture with its words stands for the widget where no kernel runs; nothing is loaded from a
    network; two of a kind do not share a name. Returns those words."""
    one = make()
    data, metadata = one._repr_mimebundle_()
    assert data["image/png"].startswith("iVBOR") and data["text/plain"].endswith(".")
    assert data["text/plain"] == metadata["image/png"]["alt"]
    assert data["image/png"] in one.page() and html.escape(data["text/plain"], quote=True) in one.page()
    drawing = one.drawing.value
    assert "http" not in drawing and "src=" not in drawing and "<script" not in drawing
    assert make().name != one.name
    return data["text/plain"]
