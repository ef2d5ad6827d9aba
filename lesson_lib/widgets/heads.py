"""Several heads over one sequence: where each of them looks, as small maps and in words."""

import html
import math
from collections.abc import Sequence

import ipywidgets
from matplotlib import colormaps
from matplotlib.colors import to_hex
from torch import Tensor

from lesson_lib.charts.grid import heads
from lesson_lib.charts.picture import CURVES, HEAT, Picture
from lesson_lib.widgets.explorer import Explorer, cell, pixels, shade

MAX_HEADS, MAX_TOKENS = 12, 24
EVERY = "all"  # of the heads; a choice of None would be no choice, and light no button
LABEL = 10  # letters of a token that are written; the rest becomes an ellipsis
MARK = CURVES[1]

STYLE = """
.ll-box .ll-words .ll-tip {top:auto; bottom:100%}
.ll-maps {display:flex; flex-wrap:wrap; gap:10px; align-items:flex-end; margin:6px 0 10px}
.ll-box .ll-words td {text-align:left; padding:2px 10px 2px 0; border:0}
.ll-box .ll-words td:last-child, .ll-box .ll-words td:first-child {white-space:nowrap}
.ll-box .ll-big th {font-weight:400; padding:2px 5px; text-align:right; white-space:nowrap}
.ll-box .ll-big thead th {text-align:center; vertical-align:bottom}
.ll-box .ll-big .ll-up {writing-mode:vertical-rl; transform:rotate(180deg); display:inline-block}
.ll-box .ll-big td {min-width:26px; height:22px; text-align:center; padding:1px 3px}
.ll-box .ll-big td:focus {box-shadow:inset 0 0 0 2px #fff}
.ll-box .ll-dense thead th {padding:2px 0; line-height:1}
.ll-box .ll-dense td {min-width:16px; height:18px; padding:0}
.ll-box .ll-big tbody tr.ll-query th {color:#A63D00; font-weight:700}
.ll-box .ll-big tr.ll-query td {border-top:3px solid #D55E00; border-bottom:3px solid #D55E00}
.ll-box .ll-big tr.ll-query td:nth-child(2) {border-left:3px solid #D55E00}
.ll-box .ll-big tr.ll-query td:last-child {border-right:3px solid #D55E00}
"""


class HeadExplorer(Explorer):
    """Where each head looks: choose a query; see all heads side by side, or one with its numbers.

    `weights` is (h, n, m), of one sequence; `tokens` label queries and keys (`keys` label the keys where they
    are others); `names` say what a head is for. With `sinks` rows may sum to less than 1: the rest went to a
    sink. Heads and tokens count from 0. Raises ValueError for another shape, more than 12 heads or 24 tokens,
    numbers that are no weights, and too few or too many labels.
    """

    def __init__(
        self,
        weights: Tensor,
        tokens: Sequence[str],
        names: Sequence[str] | None = None,
        *,
        keys: Sequence[str] | None = None,
        sinks: bool = False,
    ) -> None:
        self.weights = _weights(weights, sinks)
        n_heads, n, m = self.weights.shape
        self.tokens = _labels(tokens, n, "tokens", "queries")
        if keys is None and m != n:
            raise ValueError(f"{n} queries look at {m} keys: give the keys' labels too, keys=[...]")
        self.key_labels = _labels(
            tokens if keys is None else keys, m, "tokens" if keys is None else "keys", "keys"
        )
        self.names = (
            ["" for _ in range(n_heads)] if names is None else _labels(names, n_heads, "names", "heads")
        )
        self._table = self.weights.tolist()
        self._images = [pixels(table) for table in self.weights]
        self.query = ipywidgets.IntSlider(
            0, min=0, max=n - 1, description="query", layout=ipywidgets.Layout(width="300px")
        )
        self.shown = ipywidgets.ToggleButtons(
            options=[(EVERY, EVERY), *((str(h), h) for h in range(n_heads))],
            description="heads",
            tooltips=["all heads", *(self.title(h) for h in range(n_heads))],
            style={"button_width": "auto"},
        )
        super().__init__([self.query, self.shown])
        self.watch(self.query, self.shown)

    def title(self, head: int) -> str:
        """A head's number and name, such as 'head 0: previous token'."""
        number, name = f"head {head}", self.names[head]
        return number if name in ("", number) else f"{number}: {name}"

    def draw(self) -> str:
        query = self.query.value
        some = range(len(self._table)) if self.shown.value == EVERY else [self.shown.value]
        maps = self._small(query) if self.shown.value == EVERY else self._big(some[0], query)
        lines = "".join(self._words(head, query) for head in some)
        asks = html.escape(f"Query {query}, {_quoted(self.tokens[query])}")
        scale = ", ".join(to_hex(colormaps[HEAT](share)) for share in (0, 0.25, 0.5, 0.75, 1.0))
        bar = (
            "<span style='display:inline-block;width:70px;height:11px;background:linear-gradient(90deg,"
            f" {scale})'></span>"
        )
        return (
            f"<style>{STYLE}</style><p>Rows are queries, columns are keys; colour is weight: 0 {bar}"
            f" 1.</p>{maps}<p><b>{asks}</b>, the row in the orange frame:</p><div class='ll-under'><table"
            f" class='ll-words'>{lines}</table></div>"
        )

    def still(self) -> Picture:
        return heads(
            {self.title(h): table for h, table in enumerate(self.weights)},
            alt=(
                "The head explorer as it starts: one heat map of weights per head, rows are queries and"
                " columns are keys."
            ),
            rows=[_short(token) for token in self.tokens],
            columns=[_short(key) for key in self.key_labels],
        )

    def words(self, head: int, query: int) -> str:
        """Where one head looks, as a sentence."""
        row = self._table[head][query]
        allowed = sum(w > 0 for w in row)
        if not allowed:
            return "looks at nothing: this query is allowed no key"
        largest = max(row)
        at = row.index(largest)
        more = f"{allowed - 1} more share {_share(sum(row) - largest)}" if allowed > 1 else "no other key"
        return f"looks at {_quoted(self.key_labels[at])} (place {at}) with weight {_share(largest)}, {more}"

    def effective_keys(self, head: int, query: int) -> float:
        """How many keys, evenly looked at, would be as undecided: exp of the entropy; 0 where no key is
        allowed."""
        row = self._table[head][query]
        return math.exp(-sum(w * math.log(w) for w in row if w > 0)) if any(row) else 0.0

    def _words(self, head: int, query: int) -> str:
        row = sorted((w for w in self._table[head][query] if w > 0), reverse=True)
        cells = (
            f"<td><b>{html.escape(self.title(head))}</b></td><td>{html.escape(self.words(head, query))}</td>"
        )
        if not row:
            return f"<tr>{cells}<td></td></tr>"
        count = self.effective_keys(head, query)
        terms = " + ".join(f"{w:.2g}·ln {w:.2g}" for w in row[:3]) + (" + …" if len(row) > 3 else "")
        tip = f"exp(entropy) = exp(−({terms})) = exp({abs(math.log(count)):.2f}) = {count:.1f}"
        return f"<tr>{cells}{cell(f'looks at about {count:.1f} keys', tip)}</tr>"

    def _small(self, query: int) -> str:
        """All heads, a small map each, the query's row in a frame."""
        n, m = len(self.tokens), len(self.key_labels)
        room = 150 if len(self._images) <= 3 else 106  # pixels: four maps side by side on a narrow page
        unit = min(24, max(10 if max(n, m) <= 14 else 5, room // max(n, m)))
        every = unit >= 10  # room for all labels; else only for the key that the query looks at most
        rows, columns = [_short(t) for t in self.tokens], [_short(k) for k in self.key_labels]
        longest = max(map(len, columns))
        flat = 7 * longest + 4 <= unit or (longest == 1 and unit >= 10)
        left = (
            10 + max(8 * max(map(len, rows)), 0 if flat else round(5.2 * longest - unit / 2)) if every else 4
        )
        below = 18 if flat or not every else 12 + round(5.2 * longest)
        width, height = left + m * unit + 4, n * unit + below + 4
        frame = (
            f'<rect x="{left - 1}" y="{2 + query * unit}" width="{m * unit + 2}" height="{unit + 2}"'
            f' fill="none" stroke="{MARK}" stroke-width="{3 if every else 2}"/>'
        )
        parts = []
        for head, image in enumerate(self._images):
            names = []
            for i in range(n) if every else ():
                position = f'x="{left - 6}" y="{7 + (i + 0.5) * unit:.1f}" text-anchor="end"'
                names.append(f"<text {position} {_bold(i == query)}>{html.escape(rows[i])}</text>")
            weights = self._table[head][query]
            for j in range(m) if every else [weights.index(max(weights))] if any(weights) else []:
                x, y = left + (j + 0.5) * unit, 3 + n * unit + (14 if flat or not every else 11)
                if every and not flat:
                    position = (
                        f'x="{x + 4:.1f}" y="{y}" text-anchor="end" transform="rotate(-45 {x + 4:.1f} {y})"'
                    )
                else:  # a single label stays inside the map
                    anchor = "middle" if every else ("start", "middle", "end")[3 * j // m]
                    position = f'x="{x:.1f}" y="{y}" text-anchor="{anchor}"'
                names.append(f"<text {position}>{html.escape(columns[j])}</text>")
            label = html.escape(f"{self.title(head)}: query {query} {self.words(head, query)}")
            parts.append(
                f'<div style="width:{width}px"><b>{html.escape(self.title(head))}</b><br><svg role="img"'
                f' aria-label="{label}" width="{width}" height="{height}"'
                f' font-size="{12 if unit > 11 else 11}" fill="#111"><image href="{image}" x="{left}" y="3"'
                f' width="{m * unit}" height="{n * unit}" preserveAspectRatio="none"'
                f' style="image-rendering:pixelated"/>{frame}{"".join(names)}</svg></div>'
            )
        return f'<div class="ll-maps">{"".join(parts)}</div>'

    def _big(self, head: int, query: int) -> str:
        """One head as a table; its numbers are written where there is room, and told on hover or focus."""
        columns = [html.escape(_short(key)) for key in self.key_labels]
        upright = max(map(len, self.key_labels)) > 4
        top = "".join(
            f'<th scope="col">{f"<span class=ll-up>{c}</span>" if upright else c}</th>' for c in columns
        )
        written = len(columns) <= 14
        rows = []
        for i, weights in enumerate(self._table[head]):
            cells = "".join(
                cell(
                    f"{w:.2f}" if written else "",
                    f"query {i}, {_quoted(self.tokens[i])}, to key {j}, {_quoted(self.key_labels[j])}:"
                    " weight = " + (f"exp(score) / sum of exp(scores) of the row = {w:.4f}" if w else "0"),
                    style=shade(w),
                    stop=i == query,  # Tab stops in one row only, so that a large table is no trap
                )
                for j, w in enumerate(weights)
            )
            chosen = ' class="ll-query"' if i == query else ""
            rows.append(f'<tr{chosen}><th scope="row">{html.escape(_short(self.tokens[i]))}</th>{cells}</tr>')
        caption = f"<caption>{html.escape(self.title(head))}</caption>"
        return (
            '<div class="ll-under"><table'
            f' class="ll-big{"" if written else " ll-dense"}">{caption}'
            f"<thead><tr><th></th>{top}</tr></thead><tbody>"
            f"{''.join(rows)}</tbody></table></div>"
        )


def _bold(chosen: bool) -> str:
    return 'font-weight="700" fill="#A63D00"' if chosen else ""


def _short(label: str) -> str:
    return label if len(label) <= LABEL else f"{label[: LABEL - 1]}…"


def _quoted(label: str) -> str:
    return f"'{label}'"


def _share(weight: float) -> str:
    """A weight with two digits; never a rounded 0 or 1."""
    if 0 < weight < 0.005:
        return "less than 0.01"
    return "more than 0.99" if 0.995 <= weight < 1 - 1e-9 else f"{weight:.2f}"


def _labels(labels: Sequence[str], count: int, name: str, of: str) -> list[str]:
    labels = [str(label) for label in labels]
    if len(labels) != count:
        raise ValueError(f"{count} {of} need {count} {name}, got {len(labels)}: {labels}")
    return labels


def _weights(weights: Tensor, sinks: bool) -> Tensor:
    """The weights in float64 on the processor, once they are known to be weights of a size that can
    be drawn."""
    if not isinstance(weights, Tensor) or weights.ndim != 3 or weights.numel() == 0:
        got = tuple(weights.shape) if isinstance(weights, Tensor) else type(weights).__name__
        raise ValueError(
            f"weights must be a tensor (heads, queries, keys) of one sequence, got {got}; "
            "pick a sequence with weights[0], or add a head with weights[None]"
        )
    n_heads, n, m = weights.shape
    if n_heads > MAX_HEADS:
        raise ValueError(
            f"at most {MAX_HEADS} heads can be drawn, got {n_heads}; pick some: weights[:{MAX_HEADS}]"
        )
    if max(n, m) > MAX_TOKENS:
        raise ValueError(
            f"at most {MAX_TOKENS} tokens can be drawn, got {n} queries and {m} keys; pick some: weights[:,"
            f" :{MAX_TOKENS}, :{MAX_TOKENS}]"
        )
    weights = weights.detach().double().cpu()
    sums = weights.sum(-1)
    whole = sums < 1.02 if sinks else ((sums - 1).abs() < 0.02) | (sums == 0)
    if not (weights >= 0).all() or not whole.all():
        raise ValueError(
            "weights must be >= 0 and each row must sum to 1 (or be all zeros, where no key is allowed), got"
            f" numbers from {weights.min().item():.4g} to {weights.max().item():.4g} and row sums from"
            f" {sums.min().item():.4g} to {sums.max().item():.4g}; scores become weights by softmax over the"
            " keys"
        )
    return weights
