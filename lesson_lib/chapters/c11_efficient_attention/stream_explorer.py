"""Scores that come one after the other and are thrown away: what is kept of them, and what becomes of it
where scores are large."""

import html
from collections.abc import Sequence
from typing import NamedTuple

import ipywidgets
import torch

from lesson_lib.chapters.c11_efficient_attention.drawing import (
    EMPTY,
    IN_HAND,
    MUTED,
    PALE,
    blank_page,
    rounded_box,
)
from lesson_lib.charts.picture import Picture, styled
from lesson_lib.widgets.explorer import Explorer, cell

ADDED = (0, 100, 200)  # to every score; exp(88.8) is more than float32 holds
PLAIN, RELATIVE = "exp(score)", "exp(score - largest)"

STYLE = """
.ll-box .ll-stream td, .ll-box .ll-stream th {padding:3px 12px 3px 0; text-align:left; border:0}
.ll-box .ll-stream td, .ll-box .ll-stream th {white-space:nowrap}
.ll-box .ll-stream .ll-gone {color:#6B6B6B; text-decoration:line-through}
.ll-box .ll-stream tr.ll-last td {font-weight:600}
"""


class Kept(NamedTuple):
    """What is kept after a score: the largest so far, the sum of the exponentials, the weighted values, and
    the output that they give. The largest is 0 where nothing is subtracted."""

    largest: float
    total: float
    mixed: float
    output: float


class StreamExplorer(Explorer):
    """Scores come one at a time, are mixed in and thrown away: choose how many came, what is added to each,
    and whether the largest is subtracted first.

    `exponentials` are exp of the scores, `values` the numbers that they weigh; all in float32, as in a model.
    Raises ValueError where they are not as many, or an exponential is not above 0.
    """

    def __init__(self, exponentials: Sequence[float], values: Sequence[float]) -> None:
        if len(exponentials) != len(values) or not values:
            raise ValueError(
                f"exponentials and values must be as many, at least one, got {len(exponentials)} and"
                f" {len(values)}; give each score its value"
            )
        if min(exponentials) <= 0:
            raise ValueError(
                f"exponentials must be above 0, got {min(exponentials):g}; give exp of the score"
            )
        self.exponentials, self.values = tuple(exponentials), tuple(values)
        wide = {"style": {"description_width": "90px"}, "layout": ipywidgets.Layout(width="330px")}
        self.seen = ipywidgets.IntSlider(value=1, min=1, max=len(values), description="seen", **wide)
        self.added = ipywidgets.SelectionSlider(options=ADDED, value=0, description="added to all", **wide)
        self.by = ipywidgets.ToggleButtons(options=[PLAIN, RELATIVE], value=PLAIN, description="taken")
        super().__init__([self.seen, self.added, self.by])
        self.watch(self.seen, self.added, self.by)

    @property
    def relative(self) -> bool:
        """Whether the largest so far is subtracted."""
        return self.by.value == RELATIVE

    def kept(self) -> list[Kept]:
        """What is kept after each score that came, in float32."""
        scores = torch.tensor(self.exponentials, device="cpu").log() + self.added.value
        top = torch.tensor(-torch.inf if self.relative else 0.0, device="cpu")
        total = mixed = torch.tensor(0.0, device="cpu")
        rows = []
        for score, value in zip(scores[: self.seen.value], self.values, strict=False):
            new = torch.maximum(top, score) if self.relative else top
            shrink, weight = (top - new).exp(), (score - new).exp()
            total, mixed, top = total * shrink + weight, mixed * shrink + weight * value, new
            rows.append(Kept(*(x.item() for x in (top, total, mixed, mixed / total))))
        return rows

    def words(self) -> str:
        """What was seen, and what is kept, as a sentence."""
        last, seen, count = self.kept()[-1], self.seen.value, len(self.values)
        largest = f"largest {_said(last.largest)}, " if self.relative else ""
        return (
            f"{seen} of {count} scores seen. Kept: {largest}sum {_said(last.total)}, weighted values"
            f" {_said(last.mixed)}; output {_said(last.output)}."
        )

    def draw(self) -> str:
        largest = '<th scope="col">largest</th>' if self.relative else ""
        top = (
            f'<th scope="col">score</th><th scope="col">value</th>{largest}<th scope="col">sum</th>'
            '<th scope="col">weighted values</th><th scope="col">output</th>'
        )
        rows = "".join(self._row(i, row) for i, row in enumerate(self.kept()))
        wide = 6 if self.relative else 5
        rows += f'<tr><td colspan="{wide}">?</td></tr>' * (len(self.values) - self.seen.value)
        return (
            f"<style>{STYLE}</style><p role='status'>{html.escape(self.words())}</p>"
            f'<table class="ll-stream ll-under"><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table>'
            "<p>Hover, or Tab, for the formula behind a number. float32, as in a model.</p>"
        )

    def still(self) -> Picture:
        return _cards(self)

    def name_of(self, i: int) -> str:
        """A score as it is written: ln 3, or ln 3 + 100."""
        more = f" + {self.added.value}" if self.added.value else ""
        return f"ln {self.exponentials[i]:g}{more}"

    def _row(self, i: int, row: Kept) -> str:
        last = i == self.seen.value - 1
        gone = "" if last else "ll-gone"
        largest = cell(_said(row.largest), "the larger of the old one and the score") if self.relative else ""
        shrunk = "old sum · exp(old largest - new) + " if self.relative else "old sum + "
        weight = self.by.value
        cells = (
            cell(self.name_of(i), classes=gone) + cell(f"{self.values[i]:g}", classes=gone) + largest
            + cell(_said(row.total), shrunk + weight) + cell(_said(row.mixed), f"{shrunk}{weight} · value")
            + cell(_said(row.output), "weighted values / sum")
        )  # fmt: skip
        mark = ' class="ll-last"' if last else ""
        return f"<tr{mark}>{cells}</tr>"


@styled
def _cards(explorer: StreamExplorer) -> Picture:
    """The scores as cards, those to come without a face, and what is kept."""
    count, seen = len(explorer.values), explorer.seen.value
    figure, page = blank_page(1.7 * count + 2.6, 1.25)
    for i in range(count):
        x = 0.1 + 1.7 * i
        rounded_box(
            page, (x, 0.15), (1.5, 0.95), IN_HAND if i == seen - 1 else PALE if i < seen else EMPTY, "0.4"
        )
        said = f"score {explorer.name_of(i)}\nvalue {explorer.values[i]:g}" if i < seen else "?"
        ink = "white" if i == seen - 1 else MUTED if i >= seen else "black"
        page.text(x + 0.75, 0.62, said, ha="center", va="center", fontsize=10, color=ink)
    last = explorer.kept()[-1]
    said = f"kept: sum {_said(last.total)}\noutput {_said(last.output)}"
    page.text(0.2 + 1.7 * count, 0.62, said, va="center", fontsize=10)
    return Picture(
        figure,
        "Cards for scores with their values; those to come show a question mark. Beside them what is kept.",
        f"The widget as it starts: {explorer.words()}",
    )


def _said(number: float) -> str:
    """A number at two decimals, whole ones bare; inf and nan as they are.

    >>> _said(4.0), _said(17.456), _said(float("nan"))
    ('4', '17.46', 'nan')
    """
    return f"{number:.2f}".removesuffix(".00")
