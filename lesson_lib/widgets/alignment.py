"""Where a translator looked: type an input, walk along the output, see the weights over the input's
characters."""

import html
import re
from collections.abc import Sequence

import ipywidgets

from lesson_lib.charts.alignment import LARGEST, alignment_map, visible
from lesson_lib.charts.picture import CURVES, Picture
from lesson_lib.data.dates import SEPARATOR, Reading, language, readings
from lesson_lib.models.translator import TransformerTranslator, Translation, Translator, translate
from lesson_lib.widgets.explorer import Explorer, pixels

LONGEST_OUTPUT = 40
BAR, LEFT = 64, 40  # pixels: the height of a weight of 1, and the room for the output's characters
MARK = CURVES[1]
DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")

STYLE = """
.ll-align text {font:12px ui-monospace, "DejaVu Sans Mono", monospace; fill:#111}
.ll-align .ll-here {font-weight:700; fill:#A63D00}
.ll-align .ll-axis {font:11px system-ui, sans-serif; fill:#555}
"""


class AlignmentExplorer(Explorer):
    """A translator's alignment: pick or type an input, choose an output character, see where the decoder
    looked for it.

    `model` is a Translator or a TransformerTranslator, trained on dates; `examples` are inputs to pick from,
    the first one starts. The model translates once for each new input; moving along the output only draws. A
    sentence says whether the answer is right. Characters count from 0. Raises TypeError where the model is
    neither of the two or an example no text, ValueError without examples, and for a model whose decoder
    returns no weights.
    """

    def __init__(self, model: Translator | TransformerTranslator, examples: Sequence[str]) -> None:
        if not isinstance(model, Translator | TransformerTranslator):
            raise TypeError(
                "model must be a trained models.translator.Translator or TransformerTranslator, "
                f"got {type(model).__name__}"
            )
        examples = [examples] if isinstance(examples, str) else list(examples or ())
        if not examples:
            raise ValueError("examples must hold at least one input to start with, such as '3. märz 2021'")
        if not all(isinstance(example, str) for example in examples):
            raise TypeError(f"examples must be texts, got {examples[:2]}; of a pair take pair.source")
        self.model, self.start = model, examples[0]
        wide = {"style": {"description_width": "initial"}, "layout": ipywidgets.Layout(width="440px")}
        self.example = ipywidgets.ToggleButtons(
            options=examples,
            description="pick an input",
            style={"button_width": "auto", "description_width": "initial"},
        )
        self.text = ipywidgets.Text(
            self.start, description="or type one, then Enter", continuous_update=False, **wide
        )
        self.at = ipywidgets.IntSlider(0, min=0, max=0, description="output character", **wide)
        self._translate()
        if self.trouble:
            raise ValueError(f"the first example cannot be shown: {self.trouble}")
        super().__init__([self.example, self.text, self.at])
        self.example.observe(self._picked, names="value")
        self.text.observe(self._typed, names="value")
        self.watch(self.at)

    def words(self, at: int) -> str:
        """Where the decoder looked for one output character, as a sentence."""
        weights = self.translation.weights[at].tolist()
        first, *more = sorted(range(len(weights)), key=lambda j: -weights[j])[:4]
        named = [f"{_named(self.source[j], j)}: {weights[j]:.2f}" for j in more if weights[j] >= 0.02]
        then = f", then at {'; '.join(named)}" if named else ""
        return (
            f"Output character {at}, {self.translation.text[at]!r}, looks most at"
            f" {_named(self.source[first], first)}, weight {weights[first]:.2f}{then}."
        )

    def draw(self) -> str:
        if self.trouble:
            raise ValueError(self.trouble)
        at = self.at.value
        cut = (
            f" (cut after {LONGEST_OUTPUT} characters)"
            if len(self.translation.text) == LONGEST_OUTPUT
            else ""
        )
        return (
            f"<style>{STYLE}</style><p><b>{html.escape(self.source)} →"
            f" {html.escape(self.translation.text)}</b>{cut}<br>"
            f'<span class="ll-judged">{html.escape(self.judged)}</span></p>'
            f"<p role='status'>{html.escape(self.words(at))}</p>{self._svg(at)}"
            "<p>Top: the weights of the chosen output character, a bar for each character of the input; they"
            " sum to 1. Below: the "
            "weights of all output characters, bright is large; the chosen row is framed.</p>"
        )

    def still(self) -> Picture:
        return alignment_map(
            self.translation.weights,
            self.source,
            self.translation.text,
            alt=(
                "The alignment explorer as it starts: weights of a translation, a row for each output"
                " character and a column for each input character."
            ),
        )

    def _picked(self, change: dict) -> None:
        if change["new"] is not None:
            self.text.value = change["new"]

    def _typed(self, _change: dict) -> None:
        if self.text.value != self.example.value:
            with self.example.hold_trait_notifications():
                self.example.value = self.text.value if self.text.value in self.example.options else None
        self._translate()
        self.refresh({})

    def _translate(self) -> None:
        """Translate the text that was typed; `trouble` says why that cannot be, or is empty."""
        text = " ".join(self.text.value.lower().split())
        try:
            if len(text) > LARGEST:
                raise ValueError(f"type at most {LARGEST} characters; these are {len(text)}")
            (translation,) = translate(self.model, [text], longest=LONGEST_OUTPUT)
        except ValueError as error:
            self.trouble = str(error)
            return
        self.trouble = "" if translation.text else f"the model makes nothing of {text!r}"
        if translation.weights is None:
            self.trouble = "this model's decoder does not look at the input: it returns no weights"
        if not self.trouble:
            self.source, self.translation = text, Translation(translation.text, translation.weights.double())
            self.judged = judged(text, translation.text)
            self._image = pixels(self.translation.weights)
            self.at.max = len(translation.text) - 1

    def _svg(self, at: int) -> str:
        source, target, weights = (
            visible(self.source),
            visible(self.translation.text),
            self.translation.weights[at].tolist(),
        )
        unit = max(9, min(20, 860 // len(source)))  # pixels of a column
        high = min(unit, 14)
        top, width, height = BAR + 24, unit * len(source), high * len(target)
        parts = [
            f'<text class="ll-axis" x="{LEFT - 8}" y="10" text-anchor="end">1</text>'
            f'<text class="ll-axis" x="0" y="{top - 8}">input</text>'
        ]
        for j, (character, weight) in enumerate(zip(source, weights, strict=True)):
            x, tall = LEFT + unit * j, BAR * weight
            title = html.escape(f"{_named(self.source[j], j)}: weight {weight:.4f}")
            parts.append(
                f"<g><title>{title}</title>"
                f'<rect x="{x}" y="0" width="{unit}" height="{top}" fill="#fff"/>'
                f'<rect x="{x + 1}" y="{BAR - tall:.1f}" width="{unit - 2}" height="{tall:.1f}"'
                f' fill="{CURVES[0]}"/>'
                f'<text x="{x + unit / 2}" y="{top - 8}"'
                f' text-anchor="middle"{_here(weight >= 0.1)}>{html.escape(character)}</text></g>'
            )
        parts.append(
            f'<image href="{self._image}" x="{LEFT}" y="{top}" width="{width}" height="{height}"'
            ' preserveAspectRatio="none" style="image-rendering:pixelated"/>'
        )
        for i, character in enumerate(target):
            y = top + high * (i + 1) - 3
            parts.append(
                f'<text x="{LEFT - 8}" y="{y}"'
                f' text-anchor="end"{_here(i == at)}>{html.escape(character)}</text>'
            )
        parts.append(
            f'<rect x="{LEFT - 1}" y="{top + high * at - 1}" width="{width + 2}" height="{high + 2}"'
            f' fill="none" stroke="{MARK}" stroke-width="2"/><path d="M{LEFT} {BAR}h{width}M{LEFT}'
            f' 0.5h{width}" stroke="#999"/>'
        )
        return (
            f'<svg class="ll-align" role="img" aria-label="{html.escape(self.words(at))}"'
            f' width="{LEFT + width + 4}" height="{top + height + 4}">{"".join(parts)}</svg>'
        )


def judged(text: str, answer: str) -> str:
    """Whether an answer is right, as a sentence: which languages write the day so, or that none does and the
    model has guessed.

    >>> judged("3. märz 2021", "2021-03-03"), judged("3. märz 2021", "2021-03-30")
    ('German, long: right.', 'German, long: wrong, it means 2021-03-03.')
    """
    means, given = readings(text), answer.split(SEPARATOR)
    if not all(means):
        shown = answer if DATE.fullmatch(answer) else "a day"
        which = f"{shown} like this" if len(means) == 1 else f"a day like part {means.index([]) + 1} of this"
        return f"None of the fifteen languages writes {which}; the model has guessed."
    written_by = "; ".join(map(_who, means))
    right = [one[0].day.isoformat() for one in means]
    return (
        f"{written_by}: right."
        if given == right
        else f"{written_by}: wrong, it means {SEPARATOR.join(right)}."
    )


def _who(one: list[Reading]) -> str:
    """'German, long', or 'French, medium and long, or Swedish, medium and long'."""
    styles: dict[str, list[str]] = {}
    for reading in one:
        styles.setdefault(language(reading.locale), []).append(reading.style)
    return ", or ".join(f"{name}, {' and '.join(some)}" for name, some in styles.items())


def _here(chosen: bool) -> str:
    return ' class="ll-here"' if chosen else ""


def _named(character: str, position: int) -> str:
    return f"{character!r} (place {position})"
