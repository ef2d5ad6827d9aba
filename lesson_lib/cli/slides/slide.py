"""A slide, a section of slides, a deck of sections."""

import html
import re
from dataclasses import dataclass, field

from lesson_lib.cli.slides.outputs import HEIGHT, WIDTH, Piece
from lesson_lib.cli.slides.text import lines_of

WORDS = 120  # of what the speaker has to one slide
LARGER = 1.5  # a nearly empty slide has larger text, so many times at most
WRONG = 3  # wrong answers that are worth expecting
EXPECT = "Wrong answers to expect"


@dataclass
class Slide:
    """One slide: what one looks at, what is said to it, and what the speaker needs besides.

    `kind`: shown, question (its answer waits for a key), turn (everybody writes), pause. `worth` decides
    which slides stay where there is no room for all.
    """

    kind: str = "shown"
    title: str = ""
    pieces: list[Piece] = field(default_factory=list)
    worth: int = 0
    code: str = ""  # on demand, key C
    minutes: int = 0  # of a timer
    when: str = ""  # the minute at which one should be here
    where: str = ""  # of a turn: the notebook and the section in which everybody types
    right: str = ""  # of a question: the letter
    said: list[str] = field(default_factory=list)  # sentences as HTML, spoken in this order
    asked: list[str] = field(default_factory=list)  # a prompt of the guide: question, answer, smaller one
    wrong: list[str] = field(default_factory=list)  # what is behind wrong answers
    besides: list[str] = field(default_factory=list)  # misconception, board, what may be cut
    solution: str = ""
    name: str = ""  # of the exercise that is asked
    sketch: str = ""  # what is drawn on the board
    section: str = ""  # the part's section from which it comes
    source: str = ""  # of its cell

    @property
    def height(self) -> float:
        """Estimated pixels of what stands under its heading."""
        extra = max(0, lines_of(len(self.title), 36, WIDTH) - 1) * 46
        return sum(piece.height for piece in self.pieces) + extra

    @property
    def scale(self) -> float:
        """How much larger than usual its text may be: a nearly empty slide is read from further away."""
        if self.has("figure"):
            return 1.0
        widest = max((piece.widest for piece in self.pieces), default=0)
        free = 0.92 * HEIGHT / max(self.height, 1)
        return max(1.0, min(LARGER, free**0.5, (WIDTH - 44) / widest if widest else LARGER))

    def has(self, *kinds: str) -> bool:
        """Whether a piece of one of these kinds stands on it."""
        return any(piece.kind in kinds for piece in self.pieces)

    @property
    def notes(self) -> str:
        """What the speaker reads, as HTML of at most WORDS words: the minute, what is said, what is asked,
        which wrong answers come, and what else there is. Sentences that find no room stand in the part."""
        right = f"Right: {self.right}" if self.right else ""
        head = " · ".join(part for part in (self.when, self.where, right) if part)
        left = WORDS - words(head) - (words(EXPECT) if self.wrong else 0)
        out = [f"<p><b>{head}</b></p>"] if head else []
        reserved = min(50, words("".join(self.asked)) + sum(words(w) for w in self.wrong[:WRONG]))
        spoken = []
        for sentence in self.said:
            if words(sentence) > left - reserved:
                break
            spoken.append(sentence)
            left -= words(sentence)
        out += [f"<p>{' '.join(spoken)}</p>"] if spoken else []
        for label, lines in (
            ("", self.asked),
            (EXPECT, self.wrong[:WRONG]),
            ("", self.besides),
        ):
            kept = []
            for line in lines:
                if words(line) > left:
                    break
                kept.append(line)
                left -= words(line)
            if kept and label:
                out.append(f"<p><b>{label}</b></p><ul>{''.join(f'<li>{line}</li>' for line in kept)}</ul>")
            out += [f"<p>{line}</p>" for line in kept] if not label else []
        out += [f"<pre>{html.escape(text)}</pre>" for text in (self.sketch, self.solution) if text]
        return "\n".join(out)


def words(text: str) -> int:
    """How many words a piece of HTML has.

    >>> words("<b>Ask:</b> how many?"), words("")
    (3, 0)
    """
    return len(re.sub("<.*?>", " ", text).split())


@dataclass
class Section:
    """A column of slides: a section of a part, or a row of a plan."""

    title: str
    slides: list[Slide] = field(default_factory=list)


@dataclass
class Deck:
    """The slides of a part, or of a session."""

    name: str
    title: str = ""
    story: list[Piece] = field(default_factory=list)  # how it begins, under the title
    told: str = ""  # what is said to it
    goals: list[str] = field(default_factory=list)
    minutes: str = ""
    sections: list[Section] = field(default_factory=list)

    @property
    def slides(self) -> list[Slide]:
        """All slides in order, without the title."""
        return [slide for section in self.sections for slide in section.slides]
