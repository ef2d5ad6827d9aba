"""The ledger to search: choose a verdict and a source, type words, and read the rows that are left."""

import html
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets

from lesson_lib.chapters.c12_claims.ledger_figures import tally
from lesson_lib.charts.picture import Picture
from lesson_lib.claims import VERDICTS
from lesson_lib.widgets.explorer import Explorer

EVERY = "all"
LINK = re.compile(r"<a href=[^>]*>(.*?)</a>")  # in a widget a link would leave JupyterLab


class LedgerExplorer(Explorer):
    """The rows of a ledger with a chosen verdict, of a chosen source, with the words that are typed.

    `page` is (verdict or None, source or None, words) -> rows that show as HTML and count themselves, as
    `lesson_lib.claims.page` gives them; `verdicts` are the verdicts to choose from, `sources` {letter: what
    it is}. Raises TypeError where `page` is no function, ValueError where there is nothing to choose from.
    """

    def __init__(
        self, page: Callable[..., Any], *, verdicts: Sequence[str], sources: Mapping[str, str]
    ) -> None:
        if not callable(page):
            raise TypeError(
                "page must be a function (verdict, source, words) -> rows, such as claims.page, got"
                f" {type(page).__name__}"
            )
        if not verdicts or not sources:
            raise ValueError("verdicts and sources must each name at least one to choose from")
        self.page, self.names = page, dict(sources)
        self.verdict = ipywidgets.SelectionSlider(options=[EVERY, *verdicts], description="verdict")
        self.source = ipywidgets.SelectionSlider(options=[EVERY, *sources], description="source")
        self.words = ipywidgets.Text(description="words", placeholder="softmax mask ...")
        self.words.continuous_update = False  # with Enter or Tab, not with every letter
        super().__init__([self.verdict, self.source, self.words])
        self.watch(self.verdict, self.source, self.words)

    def draw(self) -> str:
        verdict, source = (None if box.value == EVERY else box.value for box in (self.verdict, self.source))
        found = self.page(verdict, source, self.words.value)
        told = ", ".join(f"{count} {name}" for name, count in found.counts().items())
        origin = f"{source}: {self.names[source]}. " if source else ""
        count = f"{len(found.rows)} claim{'s' * (len(found.rows) != 1)}"
        rows = LINK.sub(r"\1", found._repr_html_())
        narrow = (
            f".{self.name} .ll-ledgers {{max-height:440px; overflow-y:auto}}"
            f" .{self.name} .ll-ledgers :is(th, caption) {{padding:3px 6px}}"  # as a cell has it
        )
        return (
            f"<style>{narrow}</style><p"
            f' role="status">{html.escape(origin)}<b>{count}</b>{": " + told if told else ""}</p><div'
            f' class="ll-ledgers" tabindex="0">{rows}</div>'
        )

    def still(self) -> Picture:
        counts = {key: self.page(None, key, "").counts() for key in self.names}
        every = {source: {v: n.get(v, 0) for v in VERDICTS[:4]} for source, n in counts.items()}
        return tally(
            every,
            alt="A bar for each source: how many of its claims have each verdict.",
            axis="claims; one that two texts make counts twice",
        )
