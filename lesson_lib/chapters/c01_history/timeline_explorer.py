"""The milestones to walk through: each with its problem, its idea, what it could not do yet, and where the
course runs it."""

import html

import ipywidgets

from lesson_lib import require
from lesson_lib.chapters.c01_history.timeline_figures import SHADES, rows, timeline
from lesson_lib.charts.picture import Picture
from lesson_lib.data.milestones import MILESTONES, THREADS, Milestone
from lesson_lib.widgets.explorer import Explorer

LESSONS = {
    "01": "01 history", "02": "02 scoring", "03": "03 matrix form", "04": "04 multi-head",
    "05": "05 positional encoding",
    "06": "06 transformer", "07": "07 attention and CNN", "08": "08 attention and RNN",
    "09": "09 truncated attention",
    "10": "10 graph attention", "11": "11 efficient attention",
}  # fmt: skip


class TimelineExplorer(Explorer):
    """The timeline, one entry open at a time; arrow keys on the slider go through the years."""

    def __init__(self, start: str = "Bahdanau's attention") -> None:
        names = [m.name for m in MILESTONES]
        require.one_of(names, start=start)
        self.entry = ipywidgets.SelectionSlider(
            options=[(f"{m.year}: {m.name}", m) for m in MILESTONES],
            index=names.index(start),
            description="entry",
            readout=False,  # the card names the entry
            layout=ipywidgets.Layout(width="600px", max_width="100%"),
        )
        super().__init__([self.entry])
        self.watch(self.entry)

    def draw(self) -> str:
        chosen = self.entry.value
        head = "".join(
            f'<th scope="col" style="border-bottom:3px solid {SHADES[thread]}">{html.escape(thread)}</th>'
            for thread in THREADS
        )
        body = "".join(
            "<tr><th"
            f' scope="row">{year}</th>{"".join(f"<td>{_names(cell, chosen)}</td>" for cell in columns)}</tr>'
            for year, columns in rows()
        )
        return (
            f"<style>{_style(self.name)}</style>{_card(chosen)}"
            f'<table class="ll-years"><tr><th scope="col">year</th>{head}</tr>{body}</table>'
        )

    def still(self) -> Picture:
        return timeline()


def _names(cell: list[Milestone], chosen: Milestone) -> str:
    return "".join(
        "<div"
        f' class="{"ll-now" if m is chosen else ""}"{" aria-current=true" if m is chosen else ""}>'
        f"{html.escape(m.name)}</div>"
        for m in cell
    )


def _card(m: Milestone) -> str:
    lines = {
        "Problem": m.problem, "Idea": m.idea, "Not yet": m.not_yet,
        "Runs in": "; ".join(LESSONS[number] for number in m.lessons), "Source": m.source,
    }  # fmt: skip
    if m.taken_up_by:
        lines["Taken up"] = "; ".join(m.taken_up_by)
    listed = "".join(f"<dt>{name}</dt><dd>{html.escape(text)}</dd>" for name, text in lines.items())
    return (
        f'<div class="ll-card" style="border-left:6px solid {SHADES[m.thread]}"><b>{m.year} ·'
        f" {html.escape(m.name)}</b><p><code>{html.escape(m.formula)}</code></p><dl>{listed}</dl></div>"
    )


def _style(name: str) -> str:
    box = f".{name}"
    return (
        f"{box} .ll-card {{padding:4px 12px; margin-bottom:10px; min-height:11.5em}} {box} .ll-card p"
        f" {{margin:4px 0}}{box} dl {{display:grid; grid-template-columns:5.5em 1fr; gap:2px 8px; margin:0}}"
        f" {box} dt {{font-weight:600; white-space:nowrap}} {box} dd {{margin:0}}{box} .ll-years"
        f" {{table-layout:fixed; width:100%; max-width:760px; font-size:12px}}{box} .ll-years th"
        f" {{text-align:left; padding:2px 6px; color:#111}} {box} .ll-years th:first-child {{width:3em}}{box}"
        " .ll-years td {text-align:left; padding:2px 6px; border:0; border-top:1px solid #ddd;"
        f" vertical-align:top}}{box} .ll-years td div {{padding:1px 3px; margin:1px 0}}"
    )
