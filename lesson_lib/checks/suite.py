"""The suite of properties that every attention function must have: what is asked, and how it is reported."""

from dataclasses import dataclass, field
from typing import Any

from lesson_lib.checks import runner
from lesson_lib.checks.probes import PROBES, Probe, Stop, start
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
        found = [self.findings[name] for name in TELLING if self.findings.get(name)]
        found += [text for name, text in self.findings.items() if text and name not in TELLING]
        return found[0] if found else f"all {len(self.findings)} properties hold"

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
    "mask depends on nothing else",
    "mask polarity",
    "rows sum to 1",
    "mask before softmax",
    "scale",
    "permutation equivariance",
    "scores of -1e30",
)


def properties(attention_fn: Any, *, scale: bool = True) -> Properties:
    """What holds and what fails for `attention_fn(query, key, value, mask=None) -> output or (output,
    weights)`.

    Queries are (2, 3, 5), keys and values (2, 7, 5), the mask is boolean (3, 7), True = may look; where a
    batch is refused, the same is tried with one sequence. A query that may look at nothing must give exactly
    0 and a finite gradient, as torch's fused kernel does (nn.MultiheadAttention, too, with
    need_weights=False). `scale=True` demands scores q.k / sqrt(d_k) where the scores are dot products at all;
    `scale=False` leaves the factor free. Nothing raises, and the random state is left as it was.

    >>> from lesson_lib.attention import attend
    >>> properties(attend).passed
    True
    """
    if not callable(attention_fn) or is_a(attention_fn, type):
        what = described(attention_fn)
        return Properties(
            {"runs": f"properties() asks for a function (query, key, value, mask=None), got {what}"}
        )
    if changed := runner.replaced():
        return Properties({"runs": f"{changed} is not the original in this session; restart the kernel"})
    probe, notes = Probe(attention_fn), runner.Notes()
    with runner.undisturbed():
        try:
            runner.within(2 * runner.DEADLINE_S, lambda: _examine(probe, scale), notes)
        except runner.Verdict:  # an answer that is judged calls this
            raise
        except (TimeoutError, Stop) as reason:
            probe.findings["runs"] = str(reason)
        except Exception as error:
            probe.findings["runs"] = f"a probe itself stumbled ({kind(error)}); please report it"
    return Properties(probe.findings, tuple(probe.warnings), notes.rows)


def _examine(probe: Probe, scale: bool) -> None:
    start(probe)
    for examine in PROBES:
        examine(probe, scale)
