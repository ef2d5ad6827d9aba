"""A model opened on one text, whatever the model: every layer and head as a small map, one of them large, and
what the layers make of a token."""

import html
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets
from torch import Tensor
from torch.nn.functional import adaptive_max_pool2d, cosine_similarity

from lesson_lib.charts.opened import Part, machine, parts
from lesson_lib.charts.picture import CURVES, Picture
from lesson_lib.widgets.explorer import Explorer, cell, pixels

LARGEST = 120  # tokens that can be drawn
LETTERS = 8  # of a token that are written; the rest becomes an ellipsis
ROOM, LEAST = 586, 16  # pixels across the overview, and of a small map at least
MARGIN, APART, HEADS, TITLE = 48, 16, 34, 130  # pixels for layers' names, between parts, heads', parts' names
BAR, FOOT, WIDE = 56, 70, 390  # pixels: a weight of 1, the bars' feet, and across a map of few tokens
MARK = CURVES[1]

STYLE = """
.ll-machine text {font:12px ui-monospace, "DejaVu Sans Mono", monospace; fill:#111}
.ll-machine .ll-here {font-weight:700; fill:#A63D00}
.ll-machine .ll-axis {font:11px system-ui, sans-serif; fill:#444}
.ll-machine .ll-title {font:600 13px system-ui, sans-serif}
.ll-machine .ll-share {paint-order:stroke; stroke:#fff; stroke-width:3px}
.ll-box .ll-stream td, .ll-box .ll-stream th {padding:3px 7px; text-align:right; font-weight:400; height:20px}
.ll-box .ll-stream thead th {color:#444; border-bottom:1px solid #999; vertical-align:bottom}
.ll-box .ll-stream tbody th {white-space:nowrap}
.ll-box .ll-stream td {border:0; min-width:0}
.ll-box .ll-stream tr.ll-chosen th {color:#A63D00; font-weight:700}
.ll-box .ll-long {display:inline-block; height:11px; background:#0072B2; vertical-align:-1px}
.ll-box .ll-room {float:left; width:44px; margin-right:8px; text-align:left}
"""


class MachineExplorer(Explorer):
    """A model opened layer by layer: choose a part, a layer, a head and a query; see its weights, the token's
    residual stream, and what that would say if it were read out there.

    `open_text(text)` opens a model on a text: `lambda text: opened(model, text)`, with the `opened` of
    models.pretrained, or of models.translator. `examples` are texts to pick from, and the first one starts.
    Where open_text raises ValueError or TypeError, its sentence shows, and the last picture stays. The model
    runs once for each new text; every other choice only draws. Heads and tokens count from 0; layers from 1
    in the translator, as in its paper, and from 0 in an opened model, as in its files.
    Raises TypeError where open_text cannot be called or an example is no text, ValueError without examples,
    and where the first one cannot be opened.
    """

    def __init__(self, open_text: Callable[[str], Any], examples: Sequence[str]) -> None:
        if not callable(open_text):
            raise TypeError(
                "open_text must be a function from a text to an opened machine, got"
                f" {type(open_text).__name__}; try lambda text: opened(model, text)"
            )
        examples = [examples] if isinstance(examples, str) else list(examples or ())
        if not examples:
            raise ValueError("examples must hold at least one text to start with, such as '3. märz 2021'")
        if not all(isinstance(example, str) for example in examples):
            raise TypeError(f"examples must be texts, got {examples[:2]}; of a pair take pair.source")
        self.open_text, self._fitting = open_text, False
        self._controls(examples)
        self._open()
        if not self.trouble and self._part().stack == "Model":
            self.at.value = self.at.max  # there the next token is made
        if self.trouble:
            raise ValueError(f"the first example cannot be shown: {self.trouble}")
        super().__init__([self.example, self.text, self.part, self.layer, self.head, self.at])
        self.example.observe(self._picked, names="value")
        self.text.observe(self._typed, names="value")
        self.part.observe(self._parted, names="value")
        self.watch(self.layer, self.head, self.at)

    def words(self) -> str:
        """Where the chosen query of the chosen head looks, as a sentence."""
        row, keys = self._row(), self._keys()
        ranked = sorted((j for j, weight in enumerate(row) if weight > 0), key=lambda j: -row[j])
        query, *after = self._queries()[self.at.value :]
        makes = (
            f" (from it comes the next, {after[0]!r})" if after and self._part().stack == "Decoder" else ""
        )
        asks = f"{_capital(self._title())}: query {self.at.value}, {query!r}{makes}"
        if not ranked:
            return f"{asks} is allowed no key."
        first, *more = (
            f"{keys[j]!r} (place {j}) with weight {_share(row[j])}"
            for j in ranked[:4]
            if row[j] >= 0.02 or j == ranked[0]
        )
        return f"{asks}, looks most at {first}{', then at ' if more else ''}{'; '.join(more)}."

    def changes(self) -> list[tuple[float, float | None, float | None]]:
        """The chosen token's residual stream: its norm as it comes in and behind each layer, the norm of what
        the layer changed, the cosine to before."""
        stream = self._stream()[:, self.at.value]
        norms, steps = stream.norm(dim=-1).tolist(), (stream[1:] - stream[:-1]).norm(dim=-1).tolist()
        cosines = cosine_similarity(stream[1:], stream[:-1], dim=-1).tolist()
        return list(zip(norms, [None, *steps], [None, *cosines], strict=True))

    def draw(self) -> str:
        alert = ""
        if self.trouble:
            stays = "The picture is still that of the last text that could be opened."
            alert = f"<p role='alert'><b>{html.escape(_capital(self.trouble).rstrip('.'))}.</b> {stays}</p>"
        title = self.opened_text
        if "own" in self.part_by_key and len(self.part_by_key) > 1:
            title += f" → {''.join(t for t in self.part_by_key['own'].queries if len(t) == 1)}"
        arrow, stack = html.escape(title), self._part().stack.lower()
        side = "" if stack == "model" else f" {stack}"
        lacks = "" if self._weights().sum(-1).min() > 0.98 else ", or to less where a sink takes the rest"
        says = " The last column: the likeliest token if the row were read out there." if self._says() else ""
        return (
            f"<style>{STYLE}</style>{alert}<p><b>{arrow}</b></p>{self._overview()}<p>Every map: rows are"
            " queries, columns are keys, bright is a large weight. The orange frame marks the one"
            f" below.</p><p role='status'>{html.escape(self.words())}</p><div"
            f" class='ll-row'><div>{self._map()}</div><div>{self._table()}</div></div><p>The map: rows are"
            f" queries, columns are keys, each row sums to 1{lacks}; the bars above are the framed row. The"
            f" table: the row of {self._stream().shape[-1]} numbers that stands for this{side} token, how"
            f" long it is, and how much each layer changes it.{says}</p>"
        )

    def still(self) -> Picture:
        return machine(self.opened)

    def _controls(self, examples: list[str]) -> None:
        wide = {"style": {"description_width": "initial"}, "layout": ipywidgets.Layout(width="370px")}
        third = {"style": {"description_width": "initial"}, "layout": ipywidgets.Layout(width="225px")}
        buttons = {"style": {"button_width": "auto", "description_width": "initial"}}
        self.example = ipywidgets.ToggleButtons(options=examples, description="pick an input", **buttons)
        self.text = ipywidgets.Text(
            examples[0], description="or type one, then Enter", continuous_update=False, **wide
        )
        self.part = ipywidgets.ToggleButtons(options=["own"], description="part", **buttons)
        self.layer = ipywidgets.IntSlider(0, min=0, max=0, description="layer", **third)
        self.head = ipywidgets.IntSlider(0, min=0, max=0, description="head", **third)
        self.at = ipywidgets.IntSlider(
            0,
            min=0,
            max=0,
            description="token (query)",
            **third | {"layout": ipywidgets.Layout(width="300px")},
        )

    def _picked(self, change: dict) -> None:
        self.text.value = change["new"]

    def _typed(self, _change: dict) -> None:
        self._open()
        self.refresh()

    def _parted(self, _change: dict) -> None:
        self._fit()
        self.refresh()

    def refresh(self, change: dict | None = None) -> None:
        """Draw the current state; nothing while the sliders are being fitted to another part or text."""
        if not self._fitting:
            super().refresh(change)

    def _open(self) -> None:
        """Open the machine on the text that was typed; `trouble` says why that cannot be, or is empty."""
        try:
            opened = self.open_text(self.text.value)
            part_by_key = {part.key: part for part in parts(opened)}
            longest = max(len(part.queries) for part in part_by_key.values())
            if longest > LARGEST:
                raise ValueError(f"at most {LARGEST} tokens can be drawn; these are {longest}")
        except (ValueError, TypeError) as error:
            self.trouble = str(error)
            return
        self.trouble, self.opened, self.part_by_key = "", opened, part_by_key
        self.opened_text = self.text.value
        self._side = self._side_of_a_map()
        self._mosaics = {key: pixels(_mosaic(part.weights, self._side)) for key, part in part_by_key.items()}
        self._fit()

    def _fit(self) -> None:
        """Let the buttons and sliders offer what this model and the chosen part have."""
        self._fitting = True
        try:
            offered = [(part.name, key) for key, part in self.part_by_key.items()]
            if list(self.part.options) != offered:
                self.part.options = offered
                self.part.layout.display = None if len(offered) > 1 else "none"
            n_layers, n_heads, n, _ = self._part().weights.shape
            first = self._part().first
            if first > self.layer.max:
                self.layer.max, self.layer.min = first + n_layers - 1, first
            else:
                self.layer.min, self.layer.max = first, first + n_layers - 1
            self.head.max, self.at.max = n_heads - 1, n - 1
        finally:
            self._fitting = False

    def _part(self) -> Part:
        return self.part_by_key[self.part.value]

    def _weights(self) -> Tensor:
        part = self._part()
        return part.weights[self.layer.value - part.first, self.head.value]

    def _row(self) -> list[float]:
        return self._weights()[self.at.value].tolist()

    def _queries(self) -> list[str]:
        return self._part().queries

    def _keys(self) -> list[str]:
        return self._part().keys

    def _stream(self) -> Tensor:
        return self._part().stream

    def _says(self) -> list[list[str]] | None:
        return self._part().says

    def _title(self) -> str:
        name = f"{self._part().name}, " if len(self.part_by_key) > 1 else ""
        return f"{name}layer {self.layer.value}, head {self.head.value}"

    def _side_of_a_map(self) -> int:
        """Pixels of a small map, so that all parts stand side by side."""
        across = sum(part.weights.shape[1] for part in self.part_by_key.values())
        return max(LEAST, min(56, (ROOM - MARGIN - (len(self.part_by_key) - 1) * APART) // across))

    def _overview(self) -> str:
        """All layers and heads of all parts, a small map each, the chosen one in a frame."""
        side, x, shapes, body = self._side, MARGIN, [], []
        first = self._part().first
        for part, one in self.part_by_key.items():
            name = one.name
            n_layers, n_heads, *_ = one.weights.shape
            shapes.append((n_layers, n_heads))
            wide, tall = n_heads * side, n_layers * side
            body.append(
                f'<text class="ll-title" x="{x}" y="12">{name}</text><image href="{self._mosaics[part]}"'
                f' x="{x}" y="{HEADS}" width="{wide}" height="{tall}" preserveAspectRatio="none"'
                ' style="image-rendering:pixelated"/>'
            )
            cuts = [f"M{x + k * side} {HEADS}v{tall}" for k in range(n_heads + 1)]
            cuts += [f"M{x} {HEADS + k * side}h{wide}" for k in range(n_layers + 1)]
            body.append(f'<path d="{"".join(cuts)}" stroke="#fff" stroke-width="3"/>')
            for head in range(n_heads):
                here = (
                    ' class="ll-axis ll-here"'
                    if part == self.part.value and head == self.head.value
                    else ' class="ll-axis"'
                )
                label = f"head {head}" if side >= 40 else head
                body.append(
                    f'<text{here} x="{x + (head + 0.5) * side}" y="{HEADS - 5}"'
                    f' text-anchor="middle">{label}</text>'
                )
                for layer in range(n_layers):
                    position = (
                        f'x="{x + head * side}" y="{HEADS + layer * side}" width="{side}" height="{side}"'
                    )
                    title = f"{name}, layer {layer + first}, head {head}"
                    body.append(
                        f'<rect {position} fill="#fff" fill-opacity="0"><title>{title}</title></rect>'
                    )
            if part == self.part.value:
                position = f'x="{x + self.head.value * side}" y="{HEADS + (self.layer.value - first) * side}"'
                frame = (
                    f'<rect class="ll-frame" {position} width="{side}" height="{side}" fill="none"'
                    f' stroke="{MARK}" stroke-width="3"/>'
                )
            x += max(wide, TITLE) + APART
        most = max(n_layers for n_layers, _ in shapes)
        for layer in range(most):
            here = ' class="ll-axis ll-here"' if layer == self.layer.value - first else ' class="ll-axis"'
            body.append(
                f'<text{here} x="{MARGIN - 6}" y="{HEADS + (layer + 0.5) * side + 4}" text-anchor="end">layer'
                f" {layer + first}</text>"
            )
        count = sum(n_layers * n_heads for n_layers, n_heads in shapes)
        label = (
            f"Overview of {count} maps of weights, a row per layer and a column per head; chosen:"
            f" {self._title()}."
        )
        return (
            f'<svg class="ll-machine" role="img" aria-label="{label}" width="{x - APART + 3}"'
            f' height="{HEADS + most * side + 3}">'
            f"{''.join(body)}{frame}</svg>"
        )

    def _map(self) -> str:
        """The chosen head: the chosen query's weights as bars, the tokens, and all weights below."""
        at, row = self.at.value, self._row()
        queries, keys = [_short(t) for t in self._queries()], [_short(t) for t in self._keys()]
        n, m = len(queries), len(keys)
        unit, high = max(9, min(20, WIDE // m)), max(11, min(18, WIDE // n))
        left = 24 + round(7.3 * max(map(len, queries)))
        longest = max(map(len, keys))
        top = FOOT + (20 if longest == 1 else 12 + round(7.3 * longest))
        width, height = unit * m, high * n
        written = _apart(row, unit)
        body = [
            f'<text class="ll-axis" x="{left - 6}" y="{FOOT - BAR + 4}" text-anchor="end">1</text><text'
            f' class="ll-axis" x="{left - 6}" y="{FOOT + 3}" text-anchor="end">0</text><text class="ll-axis"'
            f' x="{left - 6}" y="{top - 5}" text-anchor="end">key</text><text class="ll-axis" x="11"'
            f' y="{top + height / 2}" text-anchor="middle" transform="rotate(-90 11'
            f' {top + height / 2})">query</text><path d="M{left} {FOOT}h{width}" stroke="#666"/><path'
            f' d="M{left} {FOOT - BAR}h{width}" stroke="#ccc"/>'
        ]
        for j, (key, weight) in enumerate(zip(keys, row, strict=True)):
            x, tall = left + unit * j, BAR * weight
            title = html.escape(f"key {j}, {self._keys()[j]!r}: weight {weight:.4f}")
            middle = x + unit / 2
            position = f'x="{middle}" y="{top - 5}" text-anchor="middle"'
            if len(key) > 1:  # written upwards
                position = f'x="{middle + 4}" y="{top - 5}" transform="rotate(-90 {middle + 4} {top - 5})"'
            share = (
                f'<text class="ll-axis ll-share" x="{middle}" y="{FOOT - tall - 3:.1f}"'
                f' text-anchor="middle">{_share(weight)}</text>'
                if j in written
                else ""
            )
            body.append(
                f'<g><title>{title}</title><rect x="{x}" y="0" width="{unit}" height="{top}" fill="#fff"'
                f' fill-opacity="0"/><rect class="ll-bar" x="{x + 1}" y="{FOOT - tall:.1f}"'
                f' width="{unit - 2}" height="{tall:.1f}" fill="{CURVES[0]}"/>{share}<text'
                f" {position}{_here(weight >= 0.1)}>{html.escape(key)}</text></g>"
            )
        body.append(
            f'<image href="{pixels(self._weights())}" x="{left}" y="{top}" width="{width}" height="{height}"'
            ' preserveAspectRatio="none" style="image-rendering:pixelated"/>'
        )
        for i, query in enumerate(queries):
            y = top + high * (i + 0.5) + 4
            body.append(
                f'<text x="{left - 6}" y="{y}" text-anchor="end"'
                f' style="font-size:{min(12, high)}px"{_here(i == at)}>{html.escape(query)}</text>'
            )
        body.append(
            f'<rect class="ll-frame" x="{left - 1}" y="{top + high * at - 1}" width="{width + 2}"'
            f' height="{high + 2}" fill="none" stroke="{MARK}" stroke-width="2"/>'
        )
        return (
            f'<svg class="ll-machine" role="img" aria-label="{html.escape(self.words())}"'
            f' width="{left + width + 14}" height="{top + height + 4}">{"".join(body)}</svg>'
        )

    def _table(self) -> str:
        """What the layers make of the chosen token, a line for each of them."""
        changes, says, first = self.changes(), self._says(), self._part().first
        most = max(norm for norm, *_ in changes) or 1.0
        rows = []
        for depth, (norm, step, cosine) in enumerate(changes):
            layer = depth - 1 + first  # that left these rows
            name = f"after layer {layer}"
            before = f"after layer {layer - 1}" if depth > 1 else "as it comes in"
            stop = depth > 0 and layer == self.layer.value
            long = (
                "<span class='ll-room'><span class='ll-long'"
                f" style='width:{44 * norm / most:.1f}px'></span></span>"
            )
            cells = cell(
                f"{long}{norm:.2f}",
                f"norm = √(sum of {self._stream().shape[-1]} squares) = {norm:.4f}",
                stop=stop,
            )
            if step is None or cosine is None:
                cells += "<td>–</td><td>–</td>"
            else:
                cells += cell(f"{step:.2f}", f"change = norm of ({name} − {before}) = {step:.4f}", stop=stop)
                cells += cell(
                    f"{cosine:.2f}",
                    f"cosine = {name} · {before} / product of their norms = {cosine:.4f}",
                    stop=stop,
                )
            if says:
                cells += cell(html.escape(repr(says[depth][self.at.value])), f"read out {name}", stop=stop)
            chosen = ' class="ll-chosen"' if stop else ""
            rows.append(f'<tr{chosen}><th scope="row">{layer if depth else "in"}</th>{cells}</tr>')
        token = html.escape(f"{self._queries()[self.at.value]!r} (place {self.at.value})")
        column = "<th scope='col'>would<br>say</th>" if says else ""
        return (
            "<div class='ll-under'><table class='ll-stream'><caption>Residual stream of"
            f" {token}</caption><thead><tr><th scope='col'>after<br>layer</th><th scope='col'>norm</th><th"
            " scope='col'>change</th><th scope='col'>cosine<br>to"
            f" before</th>{column}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        )


def _mosaic(weights: Tensor, side: int) -> Tensor:
    """All maps (layers, h, n, m) as one table, each at most `side` pixels long and wide: a pixel is as bright
    as the brightest weight in it."""
    n, m = weights.shape[-2:]
    small = adaptive_max_pool2d(weights, (min(n, side), min(m, side)))
    return small.transpose(1, 2).flatten(2).flatten(0, 1)


def _apart(row: list[float], unit: int) -> set[int]:
    """The places of the largest weights that have room for a number over their bars, at most four."""
    written: list[int] = []
    for j in sorted(range(len(row)), key=lambda j: -row[j])[:4]:
        if row[j] >= 0.05 and all(abs(j - other) * unit >= 28 for other in written):
            written.append(j)
    return set(written)


def _share(weight: float) -> str:
    """A weight with two digits; never a rounded 1."""
    return "over 0.99" if 0.995 <= weight < 1 - 1e-9 else f"{weight:.2f}"


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


def _short(token: str) -> str:
    shown = "␣" if token == " " else token
    return shown if len(shown) <= LETTERS else f"{shown[: LETTERS - 1]}…"


def _here(chosen: bool) -> str:
    return ' class="ll-here"' if chosen else ""
