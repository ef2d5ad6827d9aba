"""The seven steps as a film: play, back, forward; every cell tells its formula with its numbers."""

import ipywidgets
import torch
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.chapters.c02_scoring import matrices
from lesson_lib.charts.picture import Picture
from lesson_lib.scores import scaled_dot
from lesson_lib.trace import SevenSteps, example, seven_steps
from lesson_lib.widgets.explorer import Explorer, number, table

BY_HAND = [[0.0, 0.5, 0.5], [0.0, 1.0, 0.0], [0.0, 0.9, 0.1]]  # the sources' hand-made weights

SIGN = {
    step: f"{sign} " for step, sign in enumerate("①②③④⑤⑥⑦", 1)
}  # of a step, before what it makes: a bare number reads like a count

LATER = """
.ll-later td {visibility:hidden} .ll-later table {outline:1px dashed #bbb}
.ll-box .ll-later caption {font-weight:400; color:#666}
"""  # what comes has its room already: the film keeps its height


class SevenStepsExplorer(Explorer):
    """The worked example step by step. Hover over a cell, or move to it with Tab, to read how its number came
    about."""

    def __init__(self) -> None:
        self.given = example()
        self.play = ipywidgets.Play(value=1, min=1, max=7, interval=2500, description="play")
        self.step = ipywidgets.IntSlider(1, min=1, max=7, description="step")
        self.back = ipywidgets.Button(
            description="back", icon="step-backward", layout=ipywidgets.Layout(width="90px")
        )
        self.forward = ipywidgets.Button(
            description="forward", icon="step-forward", layout=ipywidgets.Layout(width="90px")
        )
        self.query = ipywidgets.ToggleButtons(
            options=[("1", 0), ("2", 1), ("3", 2)],
            value=1,
            description="query",
            style={"button_width": "40px"},
        )
        self.kind = ipywidgets.ToggleButtons(
            options=["softmax", "softmax of scores / √3", "rounded by hand"],
            description="weights",
            tooltips=["as computed", "with the scale 1/sqrt(d)", "as the sources do"],
            style={"button_width": "auto"},
        )
        self.back.on_click(lambda _: setattr(self.step, "value", max(1, self.step.value - 1)))
        self.forward.on_click(lambda _: setattr(self.step, "value", min(7, self.step.value + 1)))
        super().__init__([self.play, self.back, self.forward, self.step, self.query, self.kind])
        self.play.observe(lambda change: setattr(self.step, "value", change["new"]), names="value")
        self.watch(self.step, self.query, self.kind)

    def steps(self) -> SevenSteps:
        """The steps with the chosen kind of weights."""
        if self.kind.index == 2:
            return seven_steps(**self.given, weights=torch.tensor(BY_HAND))
        exact = seven_steps(**self.given)
        if self.kind.index == 0:
            return exact
        return seven_steps(
            **self.given, weights=attend(exact.queries, exact.keys, exact.values, score=scaled_dot).weights
        )

    def draw(self) -> str:
        s, upto, i = self.steps(), self.step.value, self.query.value
        rows = [
            [(1, "inputs", s.inputs, None)] + [(2, name, self.given[name], None) for name in ("w_key",
            "w_query", "w_value")],
            [(3, name, getattr(s, name),
            _products(s.inputs, self.given[w], f"{name[:-1] if name != 'queries' else 'query'}"))
             for name, w in (("keys", "w_key"), ("queries", "w_query"), ("values", "w_value"))],
            [(4, "scores", s.scores, _products(s.queries, s.keys.mT, "score")),
            (5, "weights", s.weights, self._weight_tips(s)),
             (6, f"weighted values of query {i + 1}", s.weighted_values[i], _weighted(s, i)),
             (7, "outputs", s.outputs, _sums(s))],
        ]  # fmt: skip
        shown = [
            "".join(
                (table(t.tolist(), SIGN[step] + name, key=name.split()[0], tips=tips, now=step == upto))
                if step <= upto
                else f"<div class='ll-later' aria-hidden='true'>{table(t.tolist(), SIGN[step] + name)}</div>"
                for step, name, t, tips in row
            )
            for row in rows
        ]
        text = matrices.STEP_TEXTS[upto].format(query=i + 1)
        if upto == 5 and self.kind.index:
            text = f"5. weights: {self.kind.value}"
        body = "".join(f'<div class="ll-row ll-under">{row}</div>' for row in shown)
        room = f".{self.name} .ll-row:last-child {{margin-bottom:3.4em}}"  # for the formula below it
        room += LATER
        return f"<style>{room} {_origins(self.name, i)}</style><p><b>{text}</b></p>{body}"

    def still(self) -> Picture:
        weights = {name.replace("w_", "W_"): self.given[name] for name in ("w_key", "w_query", "w_value")}
        return matrices.seven_steps(seven_steps(**self.given), weights, query=self.query.value)

    def _weight_tips(self, s: SevenSteps) -> list[list[str]]:
        if self.kind.index == 2:
            return [
                [f"weight[{i + 1}, {j + 1}] = {number(w)}, set by hand" for j, w in enumerate(row)]
                for i, row in enumerate(s.weights.tolist())
            ]
        over = "" if self.kind.index == 0 else "/√3"
        return [
            [
                f"weight[{i + 1}, {j + 1}] = exp({number(row[j])}{over}) /"
                f" ({' + '.join(f'exp({number(v)}{over})' for v in row)}) = {s.weights[i, j].item():.4f}"
                for j in range(len(row))
            ]
            for i, row in enumerate(s.scores.tolist())
        ]


def _origins(name: str, query: int) -> str:
    """CSS that marks, for the cell under the pointer or in focus, the cells that its number is made from."""
    rules = []
    for i in range(3):
        for j in range(3):
            made_from = {
                f"keys{i}-{j}": [f"inputsr{i}", f"w_keyc{j}"],
                f"queries{i}-{j}": [f"inputsr{i}", f"w_queryc{j}"],
                f"values{i}-{j}": [f"inputsr{i}", f"w_valuec{j}"],
                f"scores{i}-{j}": [f"queriesr{i}", f"keysr{j}"],
                f"weights{i}-{j}": [f"scoresr{i}"],
                f"weighted{i}-{j}": [f"weights{query}-{i}", f"values{i}-{j}"],
                f"outputs{i}-{j}": [f"weightsr{i}", f"valuesc{j}"],
            }
            for cell, origins in made_from.items():
                at = f".{name}:has(td.{cell}:is(:hover, :focus))"
                rules.append(", ".join(f"{at} td.{origin}" for origin in origins))
    return ", ".join(rules) + " {box-shadow: inset 0 0 0 3px #D55E00}"


def _products(left: Tensor, right: Tensor, name: str) -> list[list[str]]:
    """Formula of every cell of left @ right, with its numbers."""
    columns = right.mT.tolist()
    return [
        [
            f"{name}[{i + 1}, {j + 1}] ="
            f" {' + '.join(f'{number(a)}·{number(b)}' for a, b in zip(row, column, strict=True))} ="
            f" {number(sum(a * b for a, b in zip(row, column, strict=True)))}"
            for j, column in enumerate(columns)
        ]
        for i, row in enumerate(left.tolist())
    ]


def _weighted(s: SevenSteps, query: int) -> list[list[str]]:
    return [
        [
            f"weight[{query + 1}, {j + 1}] · value[{j + 1}, {c + 1}] = {s.weights[query, j]:.4f} ·"
            f" {number(v)}"
            for c, v in enumerate(row)
        ]
        for j, row in enumerate(s.values.tolist())
    ]


def _sums(s: SevenSteps) -> list[list[str]]:
    parts = s.weighted_values.tolist()
    return [
        [
            f"output[{i + 1}, {c + 1}] ="
            f" {' + '.join(number(parts[i][j][c], 4) for j in range(len(parts[i])))} = {number(value, 4)}"
            for c, value in enumerate(row)
        ]
        for i, row in enumerate(s.outputs.tolist())
    ]
