"""A text and how a GPT goes on: type a beginning, bend the probabilities of the next character, have it
write."""

import html
import textwrap

import ipywidgets

from lesson_lib.charts.picture import CURVES, Picture, bare, canvas, styled
from lesson_lib.models.gpt import GPT, distribution, generate, next_logits
from lesson_lib.widgets.explorer import Explorer

LONGEST = 500  # characters of a beginning
SHOWN = 8  # characters in the list of probabilities
BAR = 260  # pixels of a probability of 1

CSS = """
.ll-cont pre {white-space:pre-wrap; overflow-wrap:anywhere; font:13px/1.45 ui-monospace, "DejaVu Sans Mono", monospace; color:#111;
  border-left:3px solid #999; padding:4px 10px; margin:6px 0}
.ll-cont pre b {text-decoration:underline; text-underline-offset:3px; color:#0B4F8A}
.ll-cont th {text-align:left; padding:2px 6px}
"""  # noqa: E501


class ContinuationExplorer(Explorer):
    """A GPT continues what you type; temperature and top-k bend the probabilities of each next character.

    The sliders for temperature and top-k redraw the probabilities at once; the text keeps the settings it was
    made with until "write" makes a new one, with a new seed. Typing a beginning or changing the length writes
    too. `start` is the first beginning; an empty one starts behind a newline.
    Raises TypeError where the model is no GPT or start no text, ValueError where start holds a character that
    the model does not know.
    """

    most_states = 200
    fixed = ("characters to write",)

    def __init__(self, model: GPT, start: str = "The ") -> None:
        if not isinstance(model, GPT):
            raise TypeError(f"model must be a trained models.gpt.GPT, got {type(model).__name__}")
        if not isinstance(start, str):
            raise TypeError(f"start must be a text to continue, got {type(start).__name__}")
        self.model, self.seed, count = model, 0, len(model.characters)
        wide = {"style": {"description_width": "initial"}, "layout": ipywidgets.Layout(width="440px")}
        self.text = ipywidgets.Text(
            start, description="a beginning, then Enter", continuous_update=False, **wide
        )
        self.temperature = ipywidgets.FloatSlider(
            1.0, min=0, max=2, step=0.05, description="temperature", readout_format=".2f", **wide
        )
        self.top_k = ipywidgets.IntSlider(count, min=1, max=count, description="top-k", **wide)
        self.length = ipywidgets.IntSlider(
            100, min=20, max=300, step=20, description="characters to write", continuous_update=False, **wide
        )
        self.again = ipywidgets.Button(description="write", tooltip="write again, with a new seed")
        self._write()
        if self.trouble:
            raise ValueError(f"start cannot be continued: {self.trouble}")
        super().__init__([self.text, self.temperature, self.top_k, self.length, self.again])
        self.watch(self.temperature, self.top_k)
        for control in (self.text, self.length):
            control.observe(self._changed, names="value")
        self.again.on_click(self._again)

    def likeliest(self) -> list[tuple[str, float]]:
        """The likeliest characters after the beginning, at most 8, with their probabilities for the sliders'
        values."""
        shares = distribution(self.logits, self.temperature.value, self.top_k.value).tolist()
        pairs = sorted(zip(self.model.characters, shares, strict=True), key=lambda pair: -pair[1])
        return [pair for pair in pairs[:SHOWN] if pair[1] > 0]

    def words(self) -> str:
        """How the text was made, and what to press where the sliders say something else now."""
        temperature, top_k, seed = self.made_with
        told = f"Made at {_settings(temperature, top_k)}, seed {seed}."
        now = self.temperature.value, self.top_k.value
        return told if now == (temperature, top_k) else f'{told} Press "write" for one at {_settings(*now)}.'

    def draw(self) -> str:
        if self.trouble:
            return f"<p role='alert'>{html.escape(self.trouble)}</p>"
        pairs = self.likeliest()
        rows = "".join(
            f"<tr><td>{html.escape(_visible(character))}</td><td>{share:.3f}</td><td"
            f" style='text-align:left;min-width:{BAR}px'><div"
            f" style='height:14px;width:{BAR * share:.1f}px;background:{CURVES[0]}'></div></td></tr>"
            for character, share in pairs
        )
        rest = max(0.0, 1 - sum(share for _, share in pairs))
        return (
            f"<style>{CSS}</style><div class='ll-cont'><p role='status'>{html.escape(self.words())}</p>"
            f"<pre><b>{html.escape(self.beginning)}</b>{html.escape(self.made)}</pre>"
            "<p>Bold and underlined: your beginning. The rest is the model's.</p>"
            "<table><caption>Probabilities of the first character after your beginning</caption>"
            f"<tr><th>character</th><th>probability</th><th></th></tr>{rows}</table>"
            f"<p>All others together: {rest:.3f}.</p></div>"
        )

    @styled
    def still(self) -> Picture:
        pairs = self.likeliest()[::-1]
        columns = 84
        lines = [
            part
            for line in (self.beginning + self.made).split("\n")
            for part in textwrap.wrap(line, columns, drop_whitespace=False) or [""]
        ][:10]
        figure, grid = canvas(
            2, 1, width=7.5, height=2.6 + 0.19 * len(lines), height_ratios=[0.19 * len(lines) + 0.2, 2.2]
        )
        (top,), (below,) = grid
        bare(top)
        told = self.beginning if len(self.beginning) <= 40 else f"…{self.beginning[-39:]}"
        top.set_title(f"{told!r} and what the model wrote behind it", loc="left", parse_math=False)
        text = "\n".join(lines)
        top.text(
            0,
            1,
            text,
            va="top",
            family="DejaVu Sans Mono",
            size=8.5,
            transform=top.transAxes,
            parse_math=False,
        )
        names = [_visible(character) for character, _ in pairs]
        drawn = below.barh(range(len(pairs)), [share for _, share in pairs], color=CURVES[0], height=0.7)
        below.bar_label(drawn, fmt="%.2f", padding=3)
        below.set_yticks(range(len(pairs)), names, parse_math=False)
        below.set_xlim(0, 1.05)
        below.set_title("probability of the first character after it", loc="left")
        return Picture(
            figure,
            "The continuation explorer as it starts: a beginning, the text that the model wrote behind it,"
            " and a bar for each of the likeliest next characters.",
        )

    def settle(self) -> None:
        """A recording writes with every setting."""
        self._write()
        self.refresh()

    def _changed(self, _change: dict) -> None:
        self._write()
        self.refresh()

    def _again(self, _button: ipywidgets.Button) -> None:
        self.seed += 1
        self._write()
        self.refresh()

    def _write(self) -> None:
        """Have the model continue what was typed; `trouble` says why that cannot be, or is empty."""
        text, settings = self.text.value, (self.temperature.value, self.top_k.value)
        try:
            if len(text) > LONGEST:
                raise ValueError(f"type at most {LONGEST} characters; these are {len(text)}")
            logits = next_logits(self.model, text)
        except ValueError as error:
            self.trouble = str(error)
            return
        self.trouble, self.beginning, self.logits = "", text, logits
        temperature, top_k = settings
        self.made = generate(
            self.model, text, self.length.value, temperature=temperature, top_k=top_k, seed=self.seed
        )
        self.made_with = (*settings, self.seed)


def _settings(temperature: float | int, top_k: int) -> str:
    return f"temperature {temperature:.2f} and top-k {top_k}"


def _visible(character: str) -> str:
    return {" ": "␣ (blank)", "\n": "⏎ (newline)"}.get(character, character)
