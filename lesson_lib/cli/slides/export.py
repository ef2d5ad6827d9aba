"""A deck notebook as a page of slides, by nbconvert's own exporter: no code of its cells, no address of the
network."""

from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_notebook

HERE = Path(__file__).parent


def page(deck: NotebookNode) -> str:
    """The HTML of a deck, with its first heading as title; scripts, styles and fonts are those of the folder
    `assets` beside it."""
    from nbconvert import SlidesExporter
    from traitlets.config import Config

    headings = [line for cell in deck.cells for line in cell.source.splitlines() if line.startswith("# ")]
    deck.metadata["title"] = headings[0].removeprefix("# ") if headings else "Slides"
    settings = Config()
    settings.SlidesExporter.exclude_input = True
    settings.SlidesExporter.exclude_output_prompt = True
    settings.SlidesExporter.anchor_link_text = ""
    exporter = SlidesExporter(config=settings, template_name="template", extra_template_basedirs=[str(HERE)])
    made, _ = exporter.from_notebook_node(
        new_notebook(cells=_notes_first(deck.cells), metadata=deck.metadata)
    )
    return made


def _notes_first(cells: list[NotebookNode]) -> list[NotebookNode]:
    """The cells with a slide's notes before its first fragment: else the exporter lays them into it, and the
    speaker sees them with the answer only."""
    ordered: list[NotebookNode] = []
    held: list[NotebookNode] = []
    for cell in cells:
        kind = cell.metadata.get("slideshow", {}).get("slide_type", "")
        if kind == "notes":
            ordered.append(cell)
            continue
        if kind in ("slide", "subslide"):
            ordered, held = ordered + held, []
        (held if held or kind == "fragment" else ordered).append(cell)
    return ordered + held
