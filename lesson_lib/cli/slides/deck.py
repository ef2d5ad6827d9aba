"""A part as slides: each cell that shows something is a slide, and what its text says is said to it.

Text that holds a formula, a list, a table or a drawing is shown whole, so that a proof keeps its inferences;
other text is the speaker's: what follows an output is said to that output, the rest to what comes next. A
cell's tag overrides the choice: `slide` keeps its slide in every plan, `no-slide` drops it.
"""

import html
import re
from collections.abc import Iterable

from nbformat import NotebookNode

from lesson_lib.cli import kinds, plans
from lesson_lib.cli.slides import notes as speaker
from lesson_lib.cli.slides import outputs
from lesson_lib.cli.slides.outputs import HEIGHT, WIDTH, Piece
from lesson_lib.cli.slides.slide import Deck, Section, Slide
from lesson_lib.cli.slides.text import Block, Words, lines_of, width_of
from lesson_lib.cli.sources import PROOF

SHOWN = (
    "formula",
    "table",
    "list",
    "code",
    "drawing",
)  # blocks that bring the text around them onto the slide
TITLE = re.compile(r"\*\*((?:[\"“].+?[\"”][.?!]?)|(?:[^*\s]+(?: [^*\s]+){2,}[.!?]))\*\*\s*(.*)", re.S)
ASIDE = (
    "**Afterwards you can",
    "**Time",
    "**You need",
    "**Sources",
    "**Next",
    "〔",
)  # for readers, not for a room
FORMULAS = 3  # so many in a text are read, not heard
QUIET = re.compile(r"^\s*(?:assert|import|from|_ = |#)|manual_seed")


def deck(name: str, notebook: NotebookNode, guide: speaker.Guide | None = None) -> Deck:
    """The slides of a built part or page. `guide`: what its instructor's file says."""
    made = Deck(name)
    opening = next(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    _title(made, opening)
    for heading, cells in plans.sections_of(notebook).items():
        found = slides_of(heading, cells[1:] if heading == plans.OPENING else cells)
        for slide in found:
            slide.title = slide.title or number_and_title(made)[1]
        made.sections.append(Section(heading, found))
    if guide:
        begin = 0
        for section in made.sections:
            speaker.add(section, guide)
            lasts = int(guide.minutes.get(speaker.plain_heading(section.title), 0))
            for i, slide in enumerate(section.slides):
                slide.section = section.title
                if slide.kind == "turn":
                    place = f"{number_and_title(made)[0]}, {section.title}"
                    slide.where = f"notebook {place}"
                slide.when = f"minute {begin + lasts * i // len(section.slides)}"
            begin += lasts
        speaker.add_boards([slide for slide in made.slides if slide.kind == "shown"], guide)
        speaker.add_spoken(made.slides, guide)
        made.told = guide.spoken.get("story", "")
    made.sections = [section for section in made.sections if section.slides]
    return made


def _title(made: Deck, source: str) -> None:
    maker = _Maker(plans.OPENING)
    words = maker.words
    for block in words.blocks(re.sub(r"<details>.*?</details>", "", source, flags=re.S)):
        if block.kind == "heading" and block.level == 1:
            made.title = words.html(block.text)
        elif block.kind == "text" and block.text.startswith("**Afterwards you can**"):
            goals = block.text.removeprefix("**Afterwards you can**").strip().rstrip(".")
            made.goals = [words.html(goal.strip()) for goal in goals.split(";")]
        elif block.kind == "text" and (said := re.match(r"\*\*Time\*\* (?:about )?(\d+)", block.text)):
            made.minutes = said[1]
        elif not made.goals and not block.text.startswith(ASIDE):
            made.story += maker.piece(block)


def slides_of(heading: str, cells: Iterable[NotebookNode]) -> list[Slide]:
    """The slides of one section."""
    maker = _Maker(heading)
    for cell in cells:
        tags = cell.metadata.get("tags", ())
        first = len(maker.slides)
        if cell.cell_type == "markdown":
            maker.text(cell.source)
        else:
            maker.code(cell.source, tags, cell.get("outputs", []))
        for slide in maker.slides[first:]:
            slide.source = cell.source
        if "no-slide" in tags:
            del maker.slides[first:]
        elif "slide" in tags:
            for slide in maker.slides[first:]:
                slide.worth = 10
    return maker.close()


class _Maker:
    """Takes the cells of a section in order."""

    def __init__(self, heading: str) -> None:
        self.title = re.sub(r"^\d+ · ", "", heading) if heading != plans.OPENING else ""
        self.heading = self.title
        self.words = Words()
        self.slides: list[Slide] = []
        self.waiting: list[str] = []  # sentences for the next slide
        self.reads = False  # whether an output has just been shown: text now reads it
        self.stub = ""  # what a learner's turn begins with
        self.heard = ""  # the text of cells that have not been shown

    def text(self, source: str) -> None:
        """Show a text cell, or keep it to be said."""
        source = re.sub(r"<details><summary>中文.*?</details>", "", source, flags=re.S)
        blocks = [b for b in self.words.blocks(source) if not (b.kind == "heading" and b.level < 3)]
        if any(block.kind in SHOWN for block in blocks) or self.words.formulas(blocks) >= FORMULAS:
            self._shown(blocks)
        else:
            for i, block in enumerate(blocks):
                self._said(block, reads=self.reads and i == 0)
            self.heard += source
        self.reads = False

    def _said(self, block: Block, *, reads: bool) -> None:
        if block.kind == "heading":
            self.title = self.words.html(block.text)
        elif block.kind == "ask":
            self._fold(block)
        elif not block.text.startswith(ASIDE):
            text = block.text
            if (title := TITLE.match(text)) and len(self.words.plain(title[1])) <= 90:
                self.title = self.words.html(title[1])
                text, reads = title[2], False
            said = [self.words.html(sentence) for sentence in self.words.sentences(text)]
            if reads and self.slides and not text.rstrip().endswith((":", "?")):
                self.slides[-1].said += said
            else:
                self.waiting += said

    def _fold(self, block: Block) -> None:
        """A question whose answer is folded in the part."""
        asked = block.text or " ".join(self.waiting[-2:])
        shown = f"<p>{self.words.html(asked)}</p>"
        self._add("question", [self._asks(shown, self.words.html(block.answer), "Do")], worth=3)

    def _shown(self, blocks: list[Block]) -> None:
        """Text with what it introduces, on as many slides as it needs."""
        pieces: list[Piece] = []
        later: list[str] = []
        if blocks[-1].kind == "text" and blocks[-1].text.endswith(":"):  # it introduces what comes next
            *own, introduces = self.words.sentences(blocks[-1].text)
            blocks[-1].text, later = " ".join(own), [self.words.html(introduces)]
        for block in blocks:
            if block.kind == "heading":
                self.title = self.words.html(block.text)
            elif block.kind == "text" and block.text.startswith(ASIDE):
                continue
            else:
                pieces += self.piece(block)
        formulas = sum(piece.kind == "formula" for piece in pieces)
        for chunk in chunks(pieces):
            self._add("shown", chunk, worth=8 if formulas else 5)
        self.waiting += later

    def piece(self, block: Block) -> list[Piece]:
        """What a block of text looks like on a slide."""
        if block.kind == "formula":
            return [self._formula(self.words.inside(block.text))]
        if block.kind == "code":
            return [outputs.code_piece(self.words.inside(block.text))]
        if block.kind == "drawing":
            return [outputs.code_piece(self.words.inside(block.text), python=False)]
        if block.kind == "table":
            return outputs.table_pieces(self._parsed(block.text), HEIGHT)
        if block.kind == "list":
            tag = "ol" if block.level else "ul"
            rows = "".join(f"<li>{self.words.html(item)}</li>" for item in block.items)
            tall = sum(
                lines_of(len(self.words.plain(item)), 26, WIDTH - 40) * 36 + 10 for item in block.items
            )
            return [Piece("list", f"<{tag}>{rows}</{tag}>", tall + 20)]
        if block.kind == "ask":  # a quotation that opens a part
            rows = [" ".join(row.split()) for row in block.text.split("\n\n")]
            tall = sum(lines_of(len(self.words.plain(row)), 26, WIDTH) * 36 + 14 for row in rows)
            return [
                Piece("lead", "".join(f'<p class="lead">{self.words.html(row)}</p>' for row in rows), tall)
            ]
        letters, text = len(self.words.plain(block.text)), " ".join(block.text.split())
        made = f'<p class="lead">{self.words.html(text)}</p>'
        return [Piece("lead", made, lines_of(letters, 26, WIDTH) * 36 + 14)] if block.text else []

    def code(self, source: str, tags: Iterable[str], found: list[NotebookNode]) -> None:
        """Show what a code cell asks, or what it shows; a proof of the build's is no slide."""
        if PROOF in tags:
            return
        if any(tag.startswith("turn:") for tag in tags):
            self.stub = source
            return
        if asked := speaker.asked_in(source):
            self._asked(asked)
            return
        lines = [line for line in source.splitlines() if line.strip()]
        if "warm_up(" in source or (not found and all(QUIET.search(line) for line in lines)):
            return
        self._outputs(source, found)

    def _asked(self, asked: speaker.Asked) -> None:
        answer = Words().html(asked.answer)
        if asked.kind == "turn":
            body = f"<p>{self.words.inline(asked.text[:1].upper() + asked.text[1:])}</p>"
            pieces = [self._asks(body, "", "Your turn")]
            pieces += [outputs.code_piece(self.stub)] if self.stub else []
            self._add("turn", pieces, worth=9, title=self.words.inline(asked.title))
            self.slides[-1].minutes, self.slides[-1].solution = asked.minutes, asked.solution
        else:
            body = self.words.inline(asked.text)
            options = "".join(f"<li>{self.words.inline(text)}</li>" for text in asked.options.values())
            body = f"<p>{body}</p>" + (f'<ol class="options">{options}</ol>' if options else "")
            self._add("question", [self._asks(body, answer, "Predict")], worth=6)
            self.slides[-1].right = asked.right
            if tells(self.slides[-1].title, asked.options.values()):
                self.slides[-1].title = ""  # the part's own
        self.slides[-1].wrong = [self.words.inline(slip) for slip in asked.wrong]
        self.slides[-1].name = asked.name
        self.stub = ""

    def _outputs(self, source: str, found: list[NotebookNode]) -> None:
        """A cell's code beside what it prints; a picture alone, with its code on demand."""
        code = outputs.code_piece(source)
        shown = list(outputs.pieces(found))
        figures = [piece for piece in shown if piece.kind == "figure"]
        if not shown:
            self._add("shown", [code], worth=2)
        elif figures or "show_source(" in source:
            for piece in shown:
                self._add("shown", [piece], worth=7 if figures else 4, code=source)
        else:
            first, *rest = shown
            if code.height + first.height <= HEIGHT:
                self._add("shown", [code, first], worth=4)
            else:
                self._add("shown", [first], worth=4, code=source)
            for piece in rest:
                self._add("shown", [piece], worth=4, code=source)
        self.reads = True

    def _add(self, kind: str, pieces: list[Piece], *, worth: int, code: str = "", title: str = "") -> None:
        own = next((piece.title for piece in pieces if piece.title), "")
        said = self.waiting or [
            piece.alt for piece in pieces if piece.alt and not piece.alt.startswith("Part ")
        ]
        told = [piece.told for piece in pieces if piece.told]
        slide = Slide(kind, title or own or self.title or "", pieces, worth, code, said=said + told)
        self.slides.append(slide)
        self.waiting, self.title = [], self.heading

    def _asks(self, question: str, answer: str, label: str) -> Piece:
        letters = len(re.sub("<.*?>", "", question))
        px = 26 if letters > 300 else 30
        tall = lines_of(letters, px, WIDTH - 50) * px * 1.38 + 60 + question.count("<li>") * px * 0.9
        after = f'<div class="answer fragment"><p>{answer}</p></div>' if answer else ""
        tall += lines_of(len(re.sub("<.*?>", "", answer)), 26, WIDTH - 60) * 36 + 56 if answer else 0
        size = " long" if px == 26 else ""
        return Piece(
            "ask", f'<div class="ask{size}"><p class="label">{label}</p>{question}{after}</div>', tall
        )

    def _formula(self, tex: str) -> Piece:
        if width_of(tex) * 17.5 > WIDTH and r"\qquad" in tex and r"\begin" not in tex:
            rows = r" \\[6pt] ".join(part.strip() for part in tex.split(r"\qquad") if part.strip())
            tex = rf"\begin{{gathered}}{rows}\end{{gathered}}"
        rows = 1 + len(re.findall(r"\\\\", tex))
        tall = 1.9 if re.search(r"\\(?:d?frac|sum|int|prod|underbrace|underset)", tex) else 1.25
        made = f'<div class="formula"><span class="tex" data-display>{html.escape(tex)}</span></div>'
        return Piece("formula", made, rows * 34 * tall + 34)

    def _parsed(self, text: str) -> outputs.Table:
        """A markdown table, with what its cells look like when measured."""
        lines = [line for i, line in enumerate(text.strip().splitlines()) if i != 1]
        cells = [[c.strip() for c in re.split(r"(?<!\\)\|", line.strip().strip("|"))] for line in lines]
        if lines and lines[0].startswith("| |"):
            cells[0] = ["", *[c for c in cells[0] if c]]
        return outputs.Table(
            [[self.words.html(c) for c in row] for row in cells],
            [[html.unescape(self.words.plain(c)).strip() for c in row] for row in cells],
        )

    def close(self) -> list[Slide]:
        """The slides; text that nothing followed is said to the last of them, or shown."""
        if self.waiting and self.slides:
            self.slides[-1].said += self.waiting
        elif self.waiting:
            text = " ".join(self.waiting)
            letters = len(re.sub("<.*?>", "", text))
            made = Piece("lead", f'<p class="lead">{text}</p>', lines_of(letters, 28, WIDTH) * 39 + 14)
            self.slides = [Slide("shown", self.heading, [made], 3, source=self.heard)]
        return self.slides


def first_table(text: str) -> list[Piece]:
    """The first table of a page, below the text that stands before it."""
    maker = _Maker("")
    blocks = maker.words.blocks(text)
    place = next(i for i, block in enumerate(blocks) if block.kind == "table")
    made = maker.words.html(blocks[place].text, block=True).replace("<table>", '<table class="p20 sheet">')
    tall = 36 * (blocks[place].text.strip().count("\n") + 1)
    return [*maker.piece(blocks[place - 1]), Piece("table", made, tall)]


def chunks(pieces: list[Piece]) -> list[list[Piece]]:
    """Pieces on as few slides as they need; text stays with the formula, list or table that follows it."""
    made: list[list[Piece]] = [[]]
    for i, piece in enumerate(pieces):
        following = pieces[i + 1].height if piece.kind == "lead" and i + 1 < len(pieces) else 0.0
        tall = sum(p.height for p in made[-1]) + piece.height
        if made[-1] and (tall > HEIGHT or (tall + following > HEIGHT and following < HEIGHT / 2)):
            made.append([])
        made[-1].append(piece)
    return [chunk for chunk in made if chunk]


def tells(heading: str, options: Iterable[str]) -> bool:
    """Whether a heading speaks of what is to be predicted.

    >>> tells("Scores grow with the width", ["stays", "grows to 16 times"]), tells("Hide it", ["no", "yes"])
    (True, False)
    """
    said, asked = (set(re.findall(r"\b\w{4}", text.lower())) for text in (heading, " ".join(options)))
    return bool(said & asked - {"with", "that", "what", "from", "than", "each", "when", "have", "does"})


def number_and_title(made: Deck) -> tuple[str, str]:
    """The number and the title, of '03 · Matrix form: how ...'."""
    number, dot, title = made.title.partition(" · ")
    return (number, title) if dot else (kinds.number_of(made.name), made.title or made.name)
