"""Questions as cards, in which an answer is committed, and others in which an open answer is judged.

Where a kernel runs, a card has buttons or a field. Where none does (a page, slides, paper), the same output
shows the question with a fold. Its markup is
`<div class="ll-ask" data-question=NAME data-kind=choice|number|word data-answer=...>`, each option a
`<li data-option=LETTER>`, each meaning of a wrong answer a `<li data-wrong=...>`: a page's script finds there
all that the card needs.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from typing import Any

import ipywidgets
from IPython.display import display

from lesson_lib.checks.exercise import Exercise
from lesson_lib.checks.result import COLOURS, SIGNS, Result, table_text
from lesson_lib.checks.short_answers import Choice, Number
from lesson_lib.device import watched
from lesson_lib.live import CSS as LIVE_CSS
from lesson_lib.live import LEFT, Live, view_of

CSS = """
.ll-ask {border-left:.3em solid var(--jp-brand-color1, #1565c0); padding:.2em .8em; margin:.2em 0}
.ll-ask ol, .ll-ask ul {margin:.3em 0 .3em 1.6em; padding:0; list-style-type:none}
.ll-ask details {margin:.3em 0} .ll-ask summary {cursor:pointer}
"""
CARD_CSS = """
.ll-card {padding-left:.8em; overflow:visible} .ll-card .widget-checkbox, .ll-card .widget-checkbox label {padding:0}
.ll-card.ll-question {border-left:.3em solid var(--jp-brand-color1, #1565c0)}
.ll-card .widget-html-content {line-height:1.5; white-space:normal; overflow-wrap:break-word; font-size:var(--jp-content-font-size1, 14px);
  color:var(--jp-content-font-color1, inherit)}
.ll-card .ll-options, .ll-card .ll-options > div {display:block; width:auto; height:auto; max-width:100%; overflow:visible}
.ll-card .ll-options button {display:block; height:auto; width:fit-content; min-width:10em; max-width:100%; text-align:left; white-space:normal;
  line-height:1.5; padding:.35em .8em; margin:.25em 0; font-size:var(--jp-content-font-size1, 14px); overflow:visible; text-overflow:clip}
.ll-card .widget-vbox {overflow:visible} .ll-card.ll-card button:focus-visible {outline:3px solid var(--jp-brand-color1, #1565c0); outline-offset:1px}
.ll-card .ll-options:has(.mod-active) button {pointer-events:none}
.ll-card .ll-options:has(.mod-active) button:not(.mod-active) {opacity:.5}
.ll-card .widget-html-content table {font-size:var(--jp-ui-font-size1, 13px); line-height:1.3}
.ll-card .ll-verb {width:auto; padding:0 1em}
.ll-card .ll-options:has(.mod-active)::after, .ll-card .ll-verbs:has(.ll-verb.mod-active)::after {
  content:"Noted. It is answered as soon as the kernel is free."; opacity:0; animation:ll-noted 0s .4s forwards; padding:.2em .8em}
@keyframes ll-noted {to {opacity:1}}
"""  # noqa: E501
SURE = "I am sure (say so before you choose)"
FOLD = "Commit to an answer; then unfold"


class Verb(ipywidgets.ToggleButton):
    """A button that does something. The browser marks it at once, even while the kernel is busy; it is let go
    when the thing is done."""

    def __init__(self, label: str, do: Callable[[], Any]) -> None:
        super().__init__(description=label, tooltip="")
        self.add_class("ll-verb")
        self.do = do
        self.observe(self._pressed, names="value")

    def _pressed(self, change: Mapping) -> None:
        if change["new"]:
            try:
                self.do()
            finally:
                self.value = False


def verbs(*buttons: ipywidgets.Widget) -> ipywidgets.HBox:
    """A row of buttons, with a line for what was pressed while the kernel is busy."""
    row = ipywidgets.HBox(list(buttons), layout=ipywidgets.Layout(flex_flow="row wrap"))
    row.add_class("ll-verbs")
    return row


class _Shown(Live):
    """A card: a widget for a kernel, and constant words and HTML for wherever none runs."""

    words: str
    fold: str

    def __init__(self, children: Sequence[ipywidgets.Widget]) -> None:
        super().__init__([ipywidgets.HTML(f"<style>{CSS}{CARD_CSS}</style>"), *children])
        self.add_class("ll-card")

    def __repr__(self) -> str:
        return self.words

    def bundle(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The question as text, and as HTML with its answer in a fold."""
        return {"text/plain": self.words, "text/html": self.fold}, {}

    def page(self) -> str:
        """The card as it stands: asked, or answered."""
        return self.fold


class Card(_Shown):
    """A question, and what came of it. `commit(answer)` judges an answer and keeps it, once.

    `keep` gives the result of an answer, and of whether its writer is sure of it, and a sentence where it
    could not be saved; `committed` is the answer that was given on an earlier day. With `asks_sure` there is
    a box for being sure. `again` makes the card of a second problem, for a button below the answer.
    """

    def __init__(
        self,
        exercise: Exercise,
        keep: Callable[[Any, bool], Result],
        *,
        head: str = "Predict",
        committed: str | None = None,
        asks_sure: bool = False,
        again: Callable[[], "Card"] | None = None,
    ) -> None:
        self.exercise, self.keep, self.head, self.again = exercise, keep, head, again
        self.result: Result | None = None
        self.words, self.fold = question_text(exercise, head), question_page(exercise, head)
        self.sure = ipywidgets.Checkbox(description=SURE, indent=False)
        self.asking = ipywidgets.VBox(self._controls(), layout=ipywidgets.Layout(overflow="visible"))
        self.feedback = ipywidgets.HTML()
        doubt = [self.sure] if asks_sure else []
        super().__init__([ipywidgets.HTML(_asked(exercise, head)), *doubt, self.asking, self.feedback])
        self.add_class("ll-question")
        if committed is not None:
            self._tell(exercise.judge(committed, lambda *_: None), committed)

    def commit(self, answer: Any) -> Result:
        """The result of an answer. The first that can be read is kept; after it the card is settled."""
        if self.result is not None:
            return self.result
        result = self.keep(answer, self.sure.value)
        if result.state in ("passed", "failed"):
            self._tell(result, str(answer))
            self.renew()
        else:
            diagnosis = result.diagnosis.replace(" in quotes", "")  # what is typed into a field needs none
            self.feedback.value = _status(f"<div>{escape(diagnosis)}</div>")
        return result

    @property
    def settled(self) -> bool:
        """Whether it is answered."""
        return self.result is not None

    def page(self) -> str:
        """The question, and once it is answered what came of it."""
        asked = _asked(self.exercise, self.head)
        if self.result is None:
            return f"<style>{CSS}</style>{_framed(asked + _options(self.exercise))}"
        return f"<style>{CSS}</style>{_framed(asked)}{self.feedback.value}"

    def _controls(self) -> list[ipywidgets.Widget]:
        if isinstance(self.exercise, Choice):
            pairs = [(f"{letter}) {_plain(text)}", letter) for letter, text in self.exercise.options.items()]
            options = ipywidgets.ToggleButtons(options=pairs, value=None, style={"button_width": "auto"})
            options.add_class("ll-options")
            options.observe(lambda change: change["new"] and self.commit(change["new"]), names="value")
            return [options]
        field = ipywidgets.Text(placeholder="your answer", layout=ipywidgets.Layout(width="16em"))
        field.tooltip = _plain(self.exercise.asked)

        self._typed = RoundTrip()

        def commit(*_: Any) -> None:
            self._typed.before(lambda: self.commit(field.value))

        # Enter; leaving the field commits nothing
        field.on_msg(lambda _, content, __: content.get("event") == "submit" and commit())
        return [verbs(field, Verb("Commit", commit))]

    def _tell(self, result: Result, answer: str) -> None:
        self.result = result
        self.asking.children = ()
        self.children = [child for child in self.children if child is not self.sure]
        verdict = _verdict(self.exercise, result, answer)
        if self.sure.value:
            verdict += (
                f"<div>You were sure{'.' if result.passed else ', so this one is worth remembering.'}</div>"
            )
        self.feedback.value = _status(verdict, COLOURS[result.state])
        if self.again is not None:
            self.children = [*self.children, verbs(Verb("Once more, with something else", self._once_more))]

    def _once_more(self) -> None:
        assert self.again is not None
        self.children = [*self.children[:-1], self.again()]


@dataclass(frozen=True, eq=False, repr=False)
class Offered(Result):
    """A result with what a learner may want next, as buttons: what stands on each, and what shows when it is
    pressed. `following` is HTML: what to do after a pass."""

    offers: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    following: str = ""

    def _ipython_display_(self) -> None:
        Offers(self).show()


class Offers(ipywidgets.VBox):
    """A result with buttons below it: what a button gives shows there, another result in its place."""

    def __init__(self, result: Offered) -> None:
        self.result, self.feedback = result, ipywidgets.HTML()
        super().__init__()
        self.add_class("ll-card")
        self._table: Any = None
        self._offer()

    def show(self) -> None:
        """The output of a cell. Raises NotImplementedError where nobody can press a button."""
        if not watched():
            raise NotImplementedError
        self._table = display(self._page(), raw=True, display_id=True)
        display(view_of(self), raw=True)

    def _page(self) -> dict[str, str]:
        below = f"<div class='ll-again'>{self.result.following}</div>" if self.result.following else ""
        page = f"<style>{LIVE_CSS}</style><div class='{LEFT}'>{self.result._repr_html_()}{below}</div>"
        return {"text/html": page, "text/plain": repr(self.result)}

    def _offer(self) -> None:
        row = verbs(*(Verb(label, partial(self._give, do)) for label, do in self.result.offers.items()))
        self.feedback.value = ""
        self.children = [ipywidgets.HTML(f"<style>{CSS}{CARD_CSS}</style>"), row, self.feedback]

    def _give(self, do: Callable[[], Any]) -> None:
        given = do()
        if isinstance(given, Offered):
            self.result = given
            self._table.update(self._page(), raw=True)
            self._offer()
        elif isinstance(given, ipywidgets.Widget):
            self.children = [*self.children[:2], given]
        else:
            self.feedback.value = f"<div role='status'>{given._repr_html_()}</div>"
            self.children = [*self.children[:2], self.feedback]


@dataclass(frozen=True, eq=False, repr=False)
class Written(Result):
    """An open answer, which its writer judges: in a notebook with yes and no for each of `points`, which
    `keep` is given."""

    points: tuple[str, ...] = ()
    keep: Callable[..., Result] | None = None

    def _ipython_display_(self) -> None:
        Rubric(self, self.points, self.keep)._ipython_display_()

    def _repr_mimebundle_(self, **options):
        return Rubric(self, self.points, self.keep).bundle()


class Rubric(_Shown):
    """The points by which the writer of an open answer judges it: yes or no to each, which `keep` is
    given."""

    def __init__(self, result: Result, points: Sequence[str], keep: Callable[..., Any]) -> None:
        self.words, self.fold = repr(result), result._repr_html_()
        self.choices = [
            ipywidgets.ToggleButtons(options=["yes", "no"], value=None, tooltips=[point, point])
            for point in points
        ]
        for choice, point in zip(self.choices, points, strict=True):
            choice.aria_label = point
            choice.style.button_width = "5em"
            choice.observe(self._judged, names="value")
        rows = [
            ipywidgets.VBox([ipywidgets.HTML(f"<div>{number}. {marked(point)}</div>"), choice])
            for number, (choice, point) in enumerate(zip(self.choices, points, strict=True), 1)
        ]
        self.keep, self.feedback = keep, ipywidgets.HTML()
        asked = {k: text for k, text in result.after.items() if k != "next" and text not in points}
        shown = replace(result, after=asked)._repr_html_()
        super().__init__([ipywidgets.HTML(shown), *rows, self.feedback])

    def _judged(self, _change: Mapping) -> None:
        answers = [choice.value for choice in self.choices]
        if None not in answers:
            self.feedback.value = _status(f"<div>{escape(self.keep(*answers).diagnosis)}</div>")
            self.renew()

    def page(self) -> str:
        """The answer beside the model answer, and how it was judged."""
        return self.fold + self.feedback.value


class Stack(_Shown):
    """Cards, one below the other."""

    def __init__(self, title: str, cards: Sequence[Card]) -> None:
        self.cards = tuple(cards)
        self.words = "\n\n".join([title, *(card.words for card in cards)])
        self.title = f"<div><b>{escape(title)}</b></div>"
        self.fold = self.title + "".join(card.fold for card in cards)
        super().__init__([ipywidgets.HTML(self.title), *cards])
        for card in cards:
            card.renew = self.renew

    def page(self) -> str:
        """The cards as they stand."""
        return self.title + "".join(card.page() for card in self.cards)


class RoundTrip:
    """Do something when all has come that the browser had to send.

    While the kernel is busy the browser holds back what is typed, and Enter overtakes it. So a number goes to
    the browser, which links it to another one that comes back: behind what was held back.
    """

    PATIENCE_S = 10.0  # for a browser that links nothing

    def __init__(self) -> None:
        self.there, self.back = ipywidgets.IntText(), ipywidgets.IntText()
        self._link = ipywidgets.jsdlink((self.there, "value"), (self.back, "value"))
        self._waiting: dict[int, Callable[[], Any]] = {}
        self.back.observe(lambda change: self._came(change["new"]), names="value")

    def before(self, do: Callable[[], Any]) -> None:
        """Make the trip, then do it, once."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # no kernel: nothing is on its way
            do()
            return
        number = self.there.value + 1
        self._waiting[number] = do
        loop.call_later(self.PATIENCE_S, self._came, number)
        self.there.value = number

    def _came(self, number: int) -> None:
        for one in sorted(n for n in self._waiting if n <= number):
            self._waiting.pop(one)()


def question_text(exercise: Exercise, head: str) -> str:
    """The question as text, without its answer."""
    rows = {"asked": exercise.asked}
    if isinstance(exercise, Choice):
        rows |= {f"{letter})": option for letter, option in exercise.options.items()}
    return table_text(f"{head.upper()}  {exercise.name}", rows)


def question_page(exercise: Exercise, head: str) -> str:
    """The question as HTML with a fold: the right answer and why, and what each wrong one would mean."""
    kind, answer = _kind(exercise), getattr(exercise, "answer", "")
    mistakes = "".join(
        f"<li data-wrong='{escape(str(wrong), quote=True)}'>{escape(_wrong(wrong))}: {marked(slip)}</li>"
        for slip, wrong in exercise.slips.items()
    )
    return (
        f"<style>{CSS}</style>"
        f"<div class='ll-ask' data-question='{escape(exercise.name)}' data-kind='{kind}'"
        f" data-answer='{escape(answer, quote=True)}'>{_asked(exercise, head)}{_options(exercise)}"
        f"<details><summary>{FOLD}</summary><div><b>{marked(exercise.right)}</b>: {marked(exercise.remember)}"
        f"</div><ul>{mistakes}</ul></details></div>"
    )


def marked(text: str) -> str:
    """A text as HTML, `code` between ticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _asked(exercise: Exercise, head: str) -> str:
    return f"<div><b>{escape(head)}.</b> {marked(exercise.asked)}</div>"


def _options(exercise: Exercise) -> str:
    """The options of a choice as a list; '' for a question that has none."""
    if not isinstance(exercise, Choice):
        return ""
    items = (
        f"<li data-option='{escape(letter)}'>{escape(letter)}) {marked(option)}</li>"
        for letter, option in exercise.options.items()
    )
    return f"<ol>{''.join(items)}</ol>"


def _framed(page: str) -> str:
    return f"<div class='ll-ask'>{page}</div>"


def _status(page: str, colour: str = COLOURS["open"]) -> str:
    """HTML of a status message, which a screen reader reads out, too."""
    return f"<div class='ll-ask' role='alert' style='border-left-color:{colour}'>{page}</div>"


def _verdict(exercise: Exercise, result: Result, answer: str) -> str:
    """Right or not, what a wrong answer would mean, and why the right one is right."""
    given = f"{answer}) {exercise.options[answer]}" if _is_option(exercise, answer) else answer
    yours = f"your answer: <b>{marked(given)}</b>"
    why = f"<div><b>{marked(exercise.right)}</b>: {marked(exercise.remember)}</div>"
    if result.passed:
        return f"<div><b>{SIGNS['passed']} Right</b></div>{why}"
    diagnosis = f"<div>{marked(result.diagnosis)}</div>"
    return f"<div><b>{SIGNS['failed']} Not so</b>, {yours}</div>{diagnosis}{why}"


def _is_option(exercise: Exercise, answer: str) -> bool:
    return isinstance(exercise, Choice) and answer in exercise.options


def _kind(exercise: Exercise) -> str:
    return "choice" if isinstance(exercise, Choice) else "number" if isinstance(exercise, Number) else "word"


def _wrong(answer: Any) -> str:
    return f"{answer})" if isinstance(answer, str) and len(answer) == 1 and answer.isalpha() else str(answer)


def _plain(text: str) -> str:
    return text.replace("`", "")
