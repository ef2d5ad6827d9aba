"""How far attention goes: choose the number of tokens, a machine's memory and the number of machines, and see
what fits and how long it takes."""

import html
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import ipywidgets

from lesson_lib.chapters.c11_efficient_attention.scale_figures import (
    FAR,
    human_count,
    human_mib,
    human_seconds,
    machine_picture,
)
from lesson_lib.charts.picture import CURVES, Picture
from lesson_lib.measure import Law, smallest
from lesson_lib.widgets.explorer import Explorer, cell

TOKENS = (*(digit * 10**power for power in range(3, 9) for digit in (1, 2, 5)), 10**9)
GIB = (1, 2, 4, 8, 16, 32, 64, 80, 128, 256, 512, 1024)
MACHINES = (*(digit * 10**power for power in range(5) for digit in (1, 2, 5)), 10**5)
LOW, HIGH = 2.0**-2, 2.0**45  # MiB at the two ends of the bars
WIDTH, HEIGHT = 120, 14  # of a bar, in screen pixels

STYLE = """
.ll-box .ll-told, .ll-box .ll-note {max-width:600px}
.ll-told {min-height:5.5em}
.ll-box .ll-scale th {font-weight:400; text-align:left; padding:2px 10px 2px 0; white-space:nowrap}
.ll-box .ll-scale thead th {font-weight:600}
.ll-box .ll-scale td {border:0; padding:2px 10px 2px 0; white-space:nowrap; text-align:left}
.ll-box .ll-scale tr.ll-ring th, .ll-box .ll-scale tr.ll-ring td {border-top:2px solid #111}
"""


class Fit(NamedTuple):
    """What one kind needs in a machine: MiB, seconds, whether the memory is enough, and whether the numbers
    are far from what was measured."""

    mib: int | float
    seconds: int | float
    fits: bool
    far: bool


class ScaleExplorer(Explorer):
    """Tokens, memory and machines: choose them, and see which kinds of attention fit into one machine, and
    what ring attention makes of all.

    `laws` are {kind: (law of seconds, law of MiB)}, as `experiments.laws.machine_laws` gives them; `ring` is
    (tokens, machines) -> MiB in each of them, such as `experiments.laws.ring_mib`. `longest` are the longest
    lengths measured, {kind: n}; ten times beyond, numbers are marked with ≈. `exact` names the kind whose
    seconds the machines of a ring share: "tiles", as that is what each of them computes with. The time of
    sending is left out.
    Raises TypeError or ValueError where an argument does not fit.
    """

    def __init__(
        self,
        laws: Mapping[str, tuple[Law, Law]],
        ring: Callable[[int, int], int | float],
        *,
        longest: Mapping[str, int],
        exact: str = "tiles",
    ) -> None:
        self.laws, self.longest = _laws(laws), _longest(longest, laws)
        if not callable(ring):
            raise TypeError(
                f"ring must be a function (tokens, machines) -> MiB, got {type(ring).__name__}; take"
                " experiments.laws.ring_mib"
            )
        if not isinstance(exact, str) or exact not in self.laws:
            raise ValueError(f"exact must be one of the kinds {', '.join(self.laws)}, got {exact!r}")
        self.ring, self.exact = ring, exact
        self.tokens = _slider("tokens", {human_count(n): n for n in TOKENS}, 1_000_000)
        self.memory = _slider("memory", {_gib(gib): gib for gib in GIB}, 80)
        self.machines = _slider("machines", {f"{count:,}": count for count in MACHINES}, 10)
        super().__init__([self.tokens, self.memory, self.machines])
        self.watch(self.tokens, self.memory, self.machines)

    @property
    def memory_mib(self) -> float:
        """The memory of one machine."""
        return 1024.0 * self.memory.value

    def alone(self) -> dict[str, Fit]:
        """What each kind needs in one machine that has all tokens."""
        n = self.tokens.value
        found = {}
        for kind, (seconds, mib) in self.laws.items():
            held = mib.at(n)
            found[kind] = Fit(held, seconds.at(n), held <= self.memory_mib, n > FAR * self.longest[kind])
        return found

    def shared(self) -> Fit:
        """What ring attention needs in each of the chosen machines, and the seconds of the busiest, without
        sending."""
        n, machines = self.tokens.value, self.machines.value
        held, share = self.ring(n, machines), math.ceil(n / machines) / n
        seconds = self.laws[self.exact][0].at(n) * share
        return Fit(held, seconds, held <= self.memory_mib, n > FAR * self.longest[self.exact])

    def needed(self) -> int | None:
        """The smallest number of machines whose memory is enough for a ring; None where there is none."""
        n = self.tokens.value
        return smallest(lambda machines: self.ring(n, machines) <= self.memory_mib, most=n)

    def words(self) -> str:
        """What fits, and what a ring makes of it, as sentences."""
        alone, ring, needed = self.alone(), self.shared(), self.needed()
        fitting = [kind for kind, fit in alone.items() if fit.fits]
        rest = [f"{kind} ({human_mib(fit.mib)})" for kind, fit in alone.items() if not fit.fits]
        where = f"{human_count(self.tokens.value)} tokens, one machine of {_gib(self.memory.value)}"
        if not rest:
            said = f"{where}: all kinds fit."
        elif not fitting:
            said = (
                f"{where}: nothing fits; the least is {min(alone, key=lambda kind: alone[kind].mib)} with"
                f" {human_mib(min(fit.mib for fit in alone.values()))}."
            )
        else:
            said = (
                f"{where}: {_and(fitting)} fit{'s' if len(fitting) == 1 else ''}; {_and(rest)}"
                f" do{'es' if len(rest) == 1 else ''} not."
            )
        count = self.machines.value
        verdict = "fits" if ring.fits else "does not fit"
        holds = (
            f"A ring of {count:,} machine{'s' if count > 1 else ''} holds {human_mib(ring.mib)} in each,"
            f" which {verdict}"
        )
        if needed is None:
            least = "no number of machines is enough"
        else:
            least = "1 is enough" if needed == 1 else f"{needed:,} are needed"
        takes = f"Exact attention takes {human_seconds(ring.seconds)} there" + (
            f", {human_seconds(alone[self.exact].seconds)} on one" if count > 1 else ""
        )
        return f"{said} {holds}; {least}. {takes}, without sending."

    def draw(self) -> str:
        alone, ring = self.alone(), self.shared()
        rows = "".join(self._row(kind, fit, self._tips(kind)) for kind, fit in alone.items())
        count, needed = self.machines.value, self.needed()
        least = "for no number" if needed is None else f"from {needed:,} on"
        tips = (
            (
                f"ring(n = {self.tokens.value:,}, machines = {count:,}): own tokens, and two blocks of keys"
                " and values"
            ),
            f"seconds of {self.exact}, divided by the machines; sending is left out",
        )
        rows += self._row(f"ring of {count:,}", ring, tips, classes="ll-ring", more=f" ({least})")
        top = (
            '<th scope="col">attention</th><th scope="col" colspan="2">memory; the line:'
            f' {_gib(self.memory.value)}</th><th scope="col">fits?</th><th scope="col">time</th>'
        )
        return (
            f"<style>{STYLE}</style><p role='status' class='ll-told'>{html.escape(self.words())}</p>"
            f'<table class="ll-scale ll-under"><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table>'
            f"<p class='ll-note'>≈: more than {FAR} times the longest length that was measured. Bars are on a"
            f" logarithmic axis, from {human_mib(LOW)} to "
            f"{human_mib(HIGH)}. One layer, 8 heads of width 64, one processor thread in each machine. Hover,"
            " or Tab, for the law behind a number.</p>"
        )

    def still(self) -> Picture:
        count = self.machines.value
        held = {kind: fit.mib for kind, fit in self.alone().items()} | {
            f"ring of {count:,}": self.shared().mib
        }
        picture = machine_picture(held, self.memory_mib, title=f"{human_count(self.tokens.value)} tokens")
        return Picture(picture.figure, f"The scale explorer as it starts: {picture.alt}", self.words())

    def _tips(self, kind: str) -> tuple[str, str]:
        seconds, mib = self.laws[kind]
        return f"{kind}, MiB with its inputs: {mib}", f"{kind}, seconds: {seconds}"

    def _row(self, name: str, fit: Fit, tips: tuple[str, str], *, classes: str = "", more: str = "") -> str:
        about = "≈ " if fit.far else ""
        verdict = ("fits" if fit.fits else "does not fit") + more
        mark = f' class="{classes}"' if classes else ""
        return (
            f"<tr{mark}><th"
            f' scope="row">{html.escape(name)}</th><td>{self._bar(fit)}</td>'
            f"{cell(about + human_mib(fit.mib), tips[0])}"
            f"<td>{verdict}</td>{cell(about + human_seconds(fit.seconds), tips[1])}</tr>"
        )

    def _bar(self, fit: Fit) -> str:
        """How much it holds, and where the machine ends."""
        long, line = _across(fit.mib), _across(self.memory_mib)
        fill = CURVES[0] if fit.fits else CURVES[1]
        return (
            f'<svg aria-hidden="true" width="{WIDTH}" height="{HEIGHT}" style="display:block"><rect'
            f' width="{WIDTH}" height="{HEIGHT}" fill="#F1F1F1"/><rect class="ll-bar" width="{long:.1f}"'
            f' height="{HEIGHT}" fill="{fill}"/><path d="M{line:.1f} 0v{HEIGHT}" stroke="#111"'
            ' stroke-width="2"/></svg>'
        )


def _slider(name: str, options: Mapping[str, int], value: int) -> ipywidgets.SelectionSlider:
    return ipywidgets.SelectionSlider(
        options=list(options.items()),
        value=value,
        description=name,
        style={"description_width": "70px"},
        layout=ipywidgets.Layout(width="370px"),
    )


def _laws(laws: Any) -> dict[str, tuple[Law, Law]]:
    repair = "take experiments.laws.machine_laws(rows)"
    if not isinstance(laws, Mapping):
        raise TypeError(
            f"laws must be {{kind: (law of seconds, law of MiB)}}, got {type(laws).__name__}; {repair}"
        )
    if not laws:
        raise ValueError(f"laws must hold at least one kind, got none; {repair}")
    for kind, pair in laws.items():
        if not isinstance(pair, tuple) or len(pair) != 2 or not all(isinstance(law, Law) for law in pair):
            raise TypeError(f"laws[{kind!r}] must be a law of seconds and one of MiB, got {pair!r}; {repair}")
    return dict(laws)


def _longest(longest: Any, laws: Mapping[str, Any]) -> dict[str, int]:
    repair = "take experiments.laws.RECIPE['longest']"
    if not isinstance(longest, Mapping):
        raise TypeError(f"longest must be {{kind: tokens}}, got {type(longest).__name__}; {repair}")
    for kind in laws:
        n = longest.get(kind)
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise ValueError(f"longest[{kind!r}] must be a number of tokens >= 1, got {n!r}; {repair}")
    return dict(longest)


def _across(mib: int | float) -> float:
    """How long the bar of so many MiB is."""
    return WIDTH * min(1.0, max(0.0, math.log(mib / LOW) / math.log(HIGH / LOW)))


def _gib(gib: int) -> str:
    return human_mib(1024 * gib).replace(".0", "")


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
