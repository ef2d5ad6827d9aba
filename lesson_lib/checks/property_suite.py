"""The suite of properties that every attention function must have: what is asked, and how it is reported."""

from dataclasses import dataclass, field
from typing import Any

import torch

from lesson_lib import require
from lesson_lib.checks import property_chunks, runner
from lesson_lib.checks.property_probes import PROBES, Probe, Stop, start
from lesson_lib.checks.result import COLOURS, SIGNS, WORDS, table_html, table_text
from lesson_lib.checks.values import described, is_a, kind


@dataclass(frozen=True, eq=False)
class Properties:
    """The outcome: `.passed`, `.diagnosis` (the most telling fault in one sentence), and every finding by
    probe."""

    findings: dict[str, str]
    warnings: tuple[str, ...] = ()
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """True where no probe found a fault."""
        return not any(self.findings.values())

    @property
    def diagnosis(self) -> str:
        """The most telling fault; probes are ordered from the most specific to the most general."""
        faults = [self.findings[name] for name in TELLING if self.findings.get(name)]
        faults += [text for name, text in self.findings.items() if text and name not in TELLING]
        return faults[0] if faults else f"all {len(self.findings)} properties hold"

    def __bool__(self) -> bool:
        return self.passed

    @property
    def _rows(self) -> dict[str, str]:
        marks = {True: f"{SIGNS['failed']} ", False: f"{SIGNS['passed']} holds"}
        rows = {name: marks[bool(text)] + text for name, text in self.findings.items()}
        rows |= {f"warning {i + 1}" if i else "warning": text for i, text in enumerate(self.warnings)}
        return rows | {"diagnosis": self.diagnosis} | self.notes

    def __repr__(self) -> str:
        return table_text(
            f"{WORDS['passed' if self.passed else 'failed']}  properties of attention", self._rows
        )

    def _repr_html_(self) -> str:
        state = "passed" if self.passed else "failed"
        return table_html(
            f"<b>{SIGNS[state]} {WORDS[state]}</b> &nbsp;properties of attention", self._rows, COLOURS[state]
        )


# Where several probes fail, the first of these names the cause; the others are its consequences.
TELLING = (
    "no in-place writes",
    "runs",
    "same inputs, same output",
    "sequences stay apart",
    "query, key and value",
    "mask depends on nothing else",
    "mask polarity",
    "rows sum to 1",
    "mask before softmax",
    "scale",
    "permutation equivariance",
    "scores of -1e30",
)


def properties(
    attention_fn: Any,
    *,
    scale: bool = True,
    causal: bool = False,
    window: int | None = None,
    cache: Any = None,
    width: int = 12,
) -> Properties:
    """What holds and what fails for `attention_fn(query, key, value, mask=None) -> output or (output,
    weights)`.

    Queries are (2, 3, 5), keys and values (2, 7, 5), the mask is boolean (3, 7), True = may look; where a
    batch is refused, the same is tried with one sequence. A query that may look at nothing must give exactly
    0 and a finite gradient, as torch's fused kernel does (nn.MultiheadAttention, too, with
    need_weights=False). `scale=True` demands scores q.k / sqrt(d_k) where the scores are dot products at all;
    `scale=False` leaves the factor free. Nothing raises, and the random state is left as it was.

    Two kinds of attention look back by themselves, and for them **in chunks = all at once** is tried:

        causal=True   attention_fn(query, key, value), whose n queries are the last of the m keys
        cache=Cache   attention_fn(tokens, cache) -> output, tokens (2, n, width); `cache()` makes an empty
        one

    `window` says how many tokens each may look at, itself among them (default: all).

    >>> from lesson_lib.attention import attend
    >>> from lesson_lib.masks import causal as mask
    >>> properties(attend).passed
    True
    >>> right = lambda q, k, v: attend(q, k, v, mask=mask(k.shape[-2], queries=q.shape[-2]))
    >>> properties(right, causal=True).passed
    True
    """
    if not callable(attention_fn) or is_a(attention_fn, type):
        what = described(attention_fn)
        return Properties(
            {"runs": f"properties() asks for a function (query, key, value, mask=None), got {what}"}
        )
    if changed := runner.replaced():
        return Properties({"runs": f"{changed} is not the original in this session; restart the kernel"})
    probe, notes = _probe(attention_fn, causal, window, cache, width), runner.Notes()
    if isinstance(probe, str):
        return Properties({"runs": probe})
    with runner.undisturbed():
        try:
            outcome = runner.within(2 * runner.DEADLINE_S, lambda: _examine(probe, scale), notes)
        except runner.Verdict:  # an answer that is judged calls this
            raise
        except TimeoutError as reason:
            outcome = {"runs": str(reason)}, ()
        except Exception as error:
            outcome = {"runs": f"a probe itself stumbled ({kind(error)}); please report it"}, ()
    return Properties(*outcome, notes.rows)


def _probe(
    function: Any, causal: bool, window: int | None, cache: Any, width: int
) -> Probe | property_chunks.Steps | str:
    """The object that calls the function, a Probe or Steps; a sentence where the options do not fit."""
    try:
        require.whole(width=width)
        if window is not None:
            require.whole(window=window)
    except ValueError as error:
        return str(error)
    if cache is None and not causal:
        return "window= needs causal=True, or cache=" if window is not None else Probe(function)
    if cache is None:
        return property_chunks.Steps(property_chunks.Growing(function), list, 3 * width, window)
    if not callable(cache):
        return f"cache= asks for what makes an empty cache, such as the class Cache; got {described(cache)}"
    return property_chunks.Steps(function, cache, width, window)


def _examine(probe: Probe | property_chunks.Steps, scale: bool) -> tuple[dict[str, str], tuple[str, ...]]:
    """Findings and warnings."""
    try:
        if isinstance(probe, property_chunks.Steps):
            with torch.no_grad():
                property_chunks.examine(probe)
        else:
            start(probe)
            for examine in PROBES:
                examine(probe, scale)
    except Stop as reason:
        probe.findings["runs"] = str(reason)
    return probe.findings, tuple(getattr(probe, "warnings", ()))
