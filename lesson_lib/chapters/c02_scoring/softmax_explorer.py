"""Softmax under your fingers: scale the scores, shift them, type your own."""

import html
import math

import ipywidgets
import torch

from lesson_lib.attention import attend
from lesson_lib.charts import bars
from lesson_lib.charts.picture import CURVES, Picture
from lesson_lib.scores import dot
from lesson_lib.widgets.explorer import Explorer, number


class SoftmaxExplorer(Explorer):
    """Scores and their weights side by side; multiply the scores (1 / temperature), add a constant, or type
    others. `names` says whose scores they are.

    Raises ValueError where fewer than 2 scores are given, or other names than scores.
    """

    def __init__(self, scores: tuple[float, ...] = (2.0, 4.0, 4.0), names: tuple[str, ...] = ()) -> None:
        if len(scores) < 2:
            raise ValueError(f"a softmax over fewer than 2 scores is always 1; got {list(scores)}")
        if names and len(names) != len(scores):
            raise ValueError(f"names must be one for each of {len(scores)} scores, got {list(names)}")
        self.start, self.names = tuple(scores), tuple(names)
        wide = {"style": {"description_width": "initial"}, "layout": ipywidgets.Layout(width="340px")}
        self.scores = ipywidgets.Text(
            ", ".join(number(s) for s in scores), description="scores", continuous_update=False, **wide
        )
        self.scale = ipywidgets.FloatLogSlider(
            1.0,
            base=10,
            min=-2,
            max=2,
            step=0.1,
            description="times (1 / temperature)",
            readout_format=".2f",
            **wide | {"layout": ipywidgets.Layout(width="420px")},
        )
        self.shift = ipywidgets.FloatSlider(
            0.0, min=-100, max=100, step=1, description="plus", readout_format=".0f", **wide
        )
        super().__init__([self.scores, self.scale, self.shift])
        self.watch(self.scores, self.scale, self.shift)

    def weights(self) -> tuple[list[float], list[float]]:
        """The changed scores and their weights; raises ValueError where the typed text is no list of
        numbers."""
        try:
            typed = [float(part) for part in self.scores.value.replace(";", ",").split(",") if part.strip()]
        except ValueError:
            raise ValueError(
                f"{self.scores.value!r} is no list of numbers; type for example 2, 4, 4"
            ) from None
        if not 2 <= len(typed) <= 12:
            raise ValueError(f"type 2 to 12 scores, separated by commas; got {len(typed)}")
        if any(math.isnan(score) or score == math.inf for score in typed):
            raise ValueError("a score is a finite number, or -inf, which hides; inf - inf would be nan")
        if not any(map(math.isfinite, typed)):
            raise ValueError("all scores are -inf, so nobody is left who could take a share")
        changed = torch.tensor(typed, dtype=torch.float64) * self.scale.value + self.shift.value
        one = torch.ones(1, 1, dtype=torch.float64)
        return (
            changed.tolist(),
            attend(one, changed[:, None], changed[:, None], score=dot).weights[0].tolist(),
        )

    def name_of(self, i: int) -> str:
        """Whose the i-th score is; those that are typed beyond the names are keys."""
        return self.names[i] if i < len(self.names) else f"key {i + 1}"

    def draw(self) -> str:
        scores, weights = self.weights()
        rows = "".join(
            f"<tr><td>{html.escape(self.name_of(i))}</td><td>{number(s)}</td><td>{w:.4f}</td><td"
            " style='text-align:left;min-width:260px'><div"
            f" style='height:16px;width:{260 * w:.1f}px;background:{CURVES[0]}'></div></td></tr>"
            for i, (s, w) in enumerate(zip(scores, weights, strict=True))
        )
        head = "<tr><th></th><th>score</th><th>weight</th><th></th></tr>"
        return (
            f"<table>{head}{rows}</table><p>The weights sum to {sum(weights):.4f}; the largest is"
            f" {max(weights):.4f}.</p>"
        )

    def still(self) -> Picture:
        _, weights = self.weights()
        return bars(
            {
                f"{self.name_of(i)}\nscore {number(s)}": w
                for i, (s, w) in enumerate(zip(self.start, weights, strict=True))
            },
            alt=(
                "The softmax explorer as it starts: a bar of weight for each of the scores"
                f" {', '.join(map(number, self.start))}."
            ),
            y_axis="weight",
            limits=(0, 1),
        )
