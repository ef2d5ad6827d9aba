"""A slide, a section of slides, a deck of sections."""

import re
from dataclasses import dataclass, field

from lesson_lib.cli.slides.outputs import HEIGHT, WIDTH, Piece
from lesson_lib.cli.slides.text import lines_of

LEFT, RIGHT = 420, 690  # pixels of text and of a picture where they stand side by side


@dataclass
class Slide:
    """One slide: its part's title (may be empty), what stands on it, code on demand, the speaker's text."""

    part: str = ""
    pieces: list[Piece] = field(default_factory=list)
    folded: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def height(self) -> float:
        """Estimated pixels of what stands on it."""
        extra = max(0, lines_of(len(self.part), 34, WIDTH) - 1) * 44
        return sum(p.height for p in self.pieces) + extra

    @property
    def beside(self) -> bool:
        """Whether its picture stands beside its text, not below it."""
        figure = next((p for p in self.pieces if p.kind == "figure"), None)
        others = [p for p in self.pieces if p.kind != "figure"]
        letters = sum(len(re.sub("<.*?>", "", p.html)) for p in others)
        if not figure or not others or letters > 420:
            return False
        if any(p.kind not in ("lead", "checks", "pre") or p.widest > LEFT - 30 for p in others):
            return False
        wanted = figure.wanted - figure.below
        below = min(wanted, HEIGHT - sum(p.height for p in others) - figure.below)
        return min(wanted, HEIGHT - 60, RIGHT / figure.ratio) > 1.08 * below

    @property
    def scale(self) -> float:
        """How much larger than usual its text may be: a nearly empty slide is read from further away."""
        if self.has("figure"):
            return 1.0
        widest = max((p.widest for p in self.pieces), default=0)
        free = 0.92 * HEIGHT / max(self.height, 1)
        return max(1.0, min(1.3, free**0.5, (WIDTH - 44) / widest if widest else 1.3))

    def has(self, *kinds: str) -> bool:
        """Whether a piece of one of these kinds stands on it."""
        return any(p.kind in kinds for p in self.pieces)


@dataclass
class Section:
    """A section of the lesson: a column of slides."""

    title: str
    heading: str
    slides: list[Slide] = field(default_factory=list)


@dataclass
class Deck:
    """The slides of one lesson."""

    name: str
    title: str = ""
    question: str = ""
    goals: list[str] = field(default_factory=list)
    minutes: str = ""
    opening_notes: list[str] = field(default_factory=list)  # of the title slide
    sections: list[Section] = field(default_factory=list)
