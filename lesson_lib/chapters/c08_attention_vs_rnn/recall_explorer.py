"""Networks that recall a symbol: draw a sequence of any length, and see what each of them answers, how often
it is right, what moves its answer."""

import html
import math
from collections.abc import Mapping
from typing import NamedTuple

import ipywidgets
import torch
from torch.nn import functional

from lesson_lib.charts.basic import lines
from lesson_lib.charts.picture import CURVES, Picture, color
from lesson_lib.data.recall import SYMBOLS, Recall, draw, text
from lesson_lib.models.recaller import Recaller, gradients
from lesson_lib.widgets.explorer import Explorer

FARTHEST, SEQUENCES = 200, 20
MOST, TOKENS = 200, 4800  # behind an accuracy stand at most so many sequences, of no more tokens in all
LOW, HIGH = -20, 2  # powers of ten on the gradients' axis
WIDTH, HEIGHT, LEFT = 560, 190, 46  # screen pixels of the curves
LINE = 68  # characters in a line of the sequence
DASHES = ["", "7 4", "2 3", "9 3 2 3", "4 2"]
SEED = 8_008  # of the sequences, so that no training has drawn the same stream

STYLE = """
.ll-told {min-height:2.7em}
.ll-box .ll-sequence {font:13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; color:#666; white-space:pre; margin:6px 0}
.ll-box .ll-sequence b {color:#111; outline:2px solid #111; padding:0 2px; margin:0 2px}
.ll-box .ll-sequence i {color:#111; font-style:normal; outline:2px dashed #111; padding:0 2px; margin:0 2px}
.ll-box .ll-answers th {font-weight:600; text-align:left; padding:2px 12px 2px 0; vertical-align:bottom}
.ll-box .ll-answers tbody th {font-weight:400; white-space:nowrap}
.ll-box .ll-answers td {border:0; text-align:left; white-space:nowrap; padding:2px 12px 2px 0}
.ll-box .ll-answers svg {vertical-align:middle; margin-right:6px}
"""  # noqa: E501


class Answer(NamedTuple):
    """What a network says: its answer with the probability, that of the right symbol, and what moves it, a
    number for each token."""

    symbol: int
    probability: float
    right: float
    gradients: list[float]


class DistanceExplorer(Explorer):
    """Networks asked for a symbol over a distance: choose how many tokens lie between, and which sequence.

    `models` are {name: Recaller}. Each is shown the drawn sequence: its answer, the probability, and, for
    each token, the norm of the gradient of the right symbol's logit (`models.recaller.gradients`); its
    accuracy is that on other sequences of the same length, the same ones for all networks. Raises TypeError
    where `models` is no mapping of Recallers, ValueError where it holds none, or more than five.
    """

    most_states = 200

    def __init__(self, models: Mapping[str, Recaller]) -> None:
        self.models = _checked(models)
        self._accuracies: dict[int, dict[str, float]] = {}
        wide = {"style": {"description_width": "70px"}, "layout": ipywidgets.Layout(width="420px")}
        self.distance = ipywidgets.IntSlider(10, min=1, max=FARTHEST, description="distance", **wide)
        self.sequence = ipywidgets.IntSlider(0, min=0, max=SEQUENCES - 1, description="sequence", **wide)
        super().__init__([self.distance, self.sequence])
        self.watch(self.distance, self.sequence)

    def drawn(self) -> Recall:
        """The chosen sequence, a batch of one, on the CPU."""
        return _draw(1 + self.sequence.value, 1, self.distance.value)

    def answers(self) -> dict[str, Answer]:
        """What each network says to the chosen sequence."""
        return {name: _ask(model, self.drawn()) for name, model in self.models.items()}

    def accuracies(self) -> dict[str, float]:
        """How often each network is right, on `sequences()` others at the chosen distance."""
        distance = self.distance.value
        if distance not in self._accuracies:
            batch = _draw(0, self.sequences(), distance)
            self._accuracies[distance] = {
                name: _accuracy(model, batch) for name, model in self.models.items()
            }
        return self._accuracies[distance]

    def sequences(self) -> int:
        """How many sequences an accuracy is made of: fewer where they are long, so that the slider is
        answered at once."""
        return min(MOST, TOKENS // (self.distance.value + 1))

    def words(self) -> str:
        """Who is right, as a sentence."""
        return _words(self.answers(), self.drawn(), self.distance.value)

    def draw(self) -> str:
        batch, answers = self.drawn(), self.answers()
        said = html.escape(_words(answers, batch, self.distance.value))
        return (
            f"<style>{STYLE}</style><p role='status'"
            f" class='ll-told'>{said}</p>{_sequence(batch)}{self._table(answers, batch)}<p><b>What moves the"
            " answer:</b> how much the right symbol's logit changes with each token (norm of the gradient,"
            f" each line of the grid 10,000 times the one below)</p>{_curves(answers)}<p>Framed: the"
            f" symbol; framed with dashes: the question. Chance is 1 of {len(SYMBOLS)}. Curves at the"
            f" bottom line are below 10<sup>{LOW}</sup>, or 0: as far as 32 bits can tell, the answer does"
            " not depend on those tokens.</p>"
        )

    def still(self) -> Picture:
        batch, answers = self.drawn(), self.answers()
        curves = {
            name: (list(range(len(answer.gradients))), [max(value, 10.0**LOW) for value in answer.gradients])
            for name, answer in answers.items()
        }
        return lines(
            {"norm of the gradient of the right symbol's logit": curves},
            alt=(
                "How much each network's answer changes with each token of a sequence, a curve for each"
                " network, on a logarithmic axis."
            ),
            caption=f"{text(batch.tokens[0])}   {_words(answers, batch, self.distance.value)}",
            x_axis="token",
            log="y",
            y_limits=(10.0**LOW, 10.0**HIGH),
            points=False,
            height=3.4,
        )

    def _table(self, answers: Mapping[str, Answer], batch: Recall) -> str:
        right, rows = batch.answer.item(), []
        for k, (name, answer) in enumerate(answers.items()):
            mark = "✓" if answer.symbol == right else "✗"
            share = self.accuracies()[name]
            rows.append(
                f'<tr><th scope="row">{_sample(k)}{html.escape(name)}</th><td>{mark}'
                f" <b>{SYMBOLS[answer.symbol]}</b>, {answer.probability:.2f}</td>"
                f"<td>{answer.right:.2f}</td><td>{_bar(share)}{share:.2f}</td><td>{_power(answer.gradients[0])}</td></tr>"
            )
        heads = (
            "network",
            "answers, with probability",
            f"{SYMBOLS[right]} gets",
            f"right, of {self.sequences()} others",
            "gradient at the symbol",
        )
        top = "".join(f'<th scope="col">{head}</th>' for head in heads)
        return (
            f'<table class="ll-answers"><thead><tr>{top}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
        )


def _checked(models: Mapping[str, Recaller]) -> dict[str, Recaller]:
    if not isinstance(models, Mapping) or not all(isinstance(model, Recaller) for model in models.values()):
        got = (
            [type(m).__name__ for m in models.values()]
            if isinstance(models, Mapping)
            else type(models).__name__
        )
        raise TypeError(f"models must be a mapping {{name: models.recaller.Recaller}}, got {got}")
    if not 1 <= len(models) <= len(DASHES):
        raise ValueError(
            f"models must be 1 to {len(DASHES)} networks, so that curves can be told apart, got {len(models)}"
        )
    return dict(models)


def _draw(number: int, batch: int, distance: int) -> Recall:
    """Sequences that depend on the number and the distance alone; number 0 are those behind the
    accuracies."""
    generator = torch.Generator("cpu").manual_seed(SEED + 1000 * number + distance)
    return draw(generator, batch, distance)


def _there(model: Recaller, batch: Recall) -> Recall:
    """The batch on the model's device."""
    device = model.read.weight.device
    return Recall(batch.tokens.to(device), batch.answer.to(device))


def _ask(model: Recaller, batch: Recall) -> Answer:
    batch = _there(model, batch)
    with torch.no_grad():
        shares = functional.log_softmax(model(batch.tokens)[0], -1).exp().cpu()
    symbol = shares.argmax().item()
    moved = gradients(model, batch).tolist()
    return Answer(symbol, shares[symbol].item(), shares[batch.answer.item()].item(), moved)


def _accuracy(model: Recaller, batch: Recall) -> float:
    batch = _there(model, batch)
    with torch.no_grad():
        return (model(batch.tokens).argmax(-1) == batch.answer).double().mean().item()


def _words(answers: Mapping[str, Answer], batch: Recall, distance: int) -> str:
    right = batch.answer.item()
    good = [name for name, answer in answers.items() if answer.symbol == right]
    bad = [name for name, answer in answers.items() if answer.symbol != right]
    told = " ".join(
        f"{what}: {', '.join(names)}." for what, names in (("Right", good), ("Wrong", bad)) if names
    )
    return (
        f"The symbol was {SYMBOLS[right]}, the question stands {distance} token{'s' if distance > 1 else ''}"
        f" behind it. {told}"
    )


def _sequence(batch: Recall) -> str:
    """The sequence in lines, its symbol and its question framed."""
    letters = list(text(batch.tokens[0]))
    letters[0], letters[-1] = f"<b>{letters[0]}</b>", f"<i>{letters[-1]}</i>"
    rows = ["".join(letters[k : k + LINE]) for k in range(0, len(letters), LINE)]
    label = f"a sequence of {len(letters)} tokens: a symbol, filler, a question"
    return f'<div class="ll-sequence" role="img" aria-label="{label}">{"<br>".join(rows)}</div>'


def _curves(answers: Mapping[str, Answer]) -> str:
    """The gradients over the tokens, on a logarithmic axis that is the same at every distance."""
    n = len(next(iter(answers.values())).gradients)
    parts = []
    for power in range(LOW, HIGH, 4):
        y = _high(10.0**power)
        parts.append(
            f'<path d="M{LEFT} {y:.1f}h{WIDTH}" stroke="#ddd"/><text x="{LEFT - 6}" y="{y + 4:.1f}"'
            f' text-anchor="end">10<tspan dy="-4" font-size="8">{power}</tspan></text>'
        )
    every = next(step for step in (1, 2, 5, 10, 20, 50) if n / step <= 10)
    for i in range(0, n, every):
        x = _across(i, n)
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT + 16}" text-anchor="middle">{i}</text>')
    parts.append(f'<text x="{LEFT + WIDTH / 2}" y="{HEIGHT + 32}" text-anchor="middle">token</text>')
    for k, (name, answer) in enumerate(answers.items()):
        points = " ".join(
            f"{_across(i, n):.1f},{_high(value):.1f}" for i, value in enumerate(answer.gradients)
        )
        parts.append(
            f'<polyline points="{points}" fill="none"'
            f" {_stroke(k)}><title>{html.escape(name)}</title></polyline>"
        )
    return (
        '<svg role="img" aria-label="norm of the gradient over the tokens, a curve for each network" '
        f'viewBox="0 0 {LEFT + WIDTH + 12} {HEIGHT + 38}" width="{LEFT + WIDTH + 12}" '
        f'style="display:block;max-width:100%;height:auto" font-size="11" fill="#444">{"".join(parts)}</svg>'
    )


def _across(token: int, n: int) -> float:
    return LEFT + 6 + (WIDTH - 12) * token / (n - 1)


def _high(value: float) -> float:
    """Screen pixels from the top; what is too small lies on the bottom line."""
    power = math.log10(value) if value > 0 else LOW
    return HEIGHT - HEIGHT * (min(HIGH, max(LOW, power)) - LOW) / (HIGH - LOW)


def _stroke(k: int) -> str:
    return f'stroke="{color(k)}" stroke-width="2" stroke-dasharray="{DASHES[k]}"'


def _sample(k: int) -> str:
    """A piece of a network's curve, for the legend."""
    return f'<svg width="34" height="10" aria-hidden="true"><path d="M0 5h34" {_stroke(k)}/></svg>'


def _bar(share: float) -> str:
    """A share as a bar, with chance marked."""
    chance = 60 / len(SYMBOLS)
    return (
        '<svg width="62" height="12" aria-hidden="true"><rect width="61" height="11" x="0.5" y="0.5"'
        f' fill="#f3f3f3"/><rect width="{60 * share:.1f}" height="11" x="0.5" y="0.5"'
        f' fill="{CURVES[5]}"/><path d="M{chance + 0.5} 0v12" stroke="#111"/></svg>'
    )


def _power(value: float) -> str:
    """A number with one digit and its power of ten."""
    return f"{value:.0e}" if value >= 10.0**LOW else f"below 1e{LOW}"
