"""Which parts of a lesson's cells stand on which slide."""

import html
import re

from lesson_lib.cli.slides import notes as speaker
from lesson_lib.cli.slides import outputs
from lesson_lib.cli.slides.code import (
    code_chunks,
    definitions,
    only_prepares,
    signature,
)
from lesson_lib.cli.slides.outputs import CODE_LINES, HEIGHT, WIDTH, Piece
from lesson_lib.cli.slides.slide import Deck, Section, Slide
from lesson_lib.cli.slides.text import Block, Words, lines_of, width_of

SHOWN = ("code", "pre", "figure", "table", "list", "formula", "claim", "checks", "html")  # what one looks at
TITLE = re.compile(r"\*\*((?:[\"“].+?[\"”][.?!]?)|(?:[^*\s]+(?: [^*\s]+){2,}[.!?]))\*\*\s*(.*)", re.S)


class Maker:
    """Reads the cells in order, and fills slide after slide."""

    def __init__(self, name: str) -> None:
        self.words = Words()
        self.deck = Deck(name)
        self.deck.sections.append(Section(speaker.OPENING, speaker.OPENING, [Slide()]))
        self.opening = True
        self.pending: list[str] = []  # paragraphs that wait for what they introduce
        self.folds: list[str] = []  # long code that waits for the slide of its result
        self.part = ""  # what the slides were about before a table with a title of its own
        self.evidence = False  # whether the next cell is a claim that rests on this one
        self.fresh_output = False  # whether an output has just been placed: the next paragraph reads it

    @property
    def section(self) -> Section:
        return self.deck.sections[-1]

    @property
    def slide(self) -> Slide:
        return self.section.slides[-1]

    def text_cell(self, source: str) -> None:
        """Put the blocks of a text cell where they belong."""
        blocks = self.words.blocks(source)
        for i, block in enumerate(blocks):
            if block.kind == "heading":
                self._heading(block)
            elif self.opening and self._opening(block):
                pass
            elif block.kind == "text":
                self._text(block.text, reads=i == 0 and self.fresh_output)
            elif block.kind == "ask":
                self._ask(block)
            elif block.kind == "formula":
                self._formula(block)
            elif block.kind == "code":
                self._put(outputs.code_piece(self.words.inside(block.text)))
            elif block.kind == "list":
                self._list(block)
            elif block.kind == "table":
                self._table(self._parsed(block.text))
            self.fresh_output = False

    def code_cell(self, source: str, found: list, *, for_next: bool = False) -> None:
        """Put a code cell's code and outputs on slides. `for_next`: the next cell shows what it prepares."""
        self.opening = False
        if not found and only_prepares(source):
            return
        self.evidence = for_next
        code = outputs.code_piece(source)
        long = len(source.splitlines()) > CODE_LINES or code.height > 420
        made = list(self._outputs(source, found))
        if not made:
            if long or for_next:
                self.folds.append(source)
            else:
                self._put(code)
            return
        kinds = {p.kind for p in made}
        if kinds <= {"claim"} or source.startswith(("claim(", "verdict(")) or kinds == {"checks"}:
            pass  # the words of a claim or a verdict say what its code computes
        elif long or kinds & {"figure", "table"} or "show_source(" in source:
            if "show_source(" not in source:
                self.folds.append(source)
        elif for_next or code.height + made[0].height + self._waiting() > HEIGHT:
            self.folds.append(source)
        else:
            self._put(code, with_next=made[0].height)
        if self.folds and kinds == {"pre"} and not for_next and (short := definitions(source)):
            code = outputs.code_piece(short)
            if code.height + made[0].height + self._waiting() <= HEIGHT:
                self._put(code, with_next=made[0].height)
        if kinds == {"pre", "figure"} and self.slide.has(*SHOWN):
            self._settle()
            self._next(self._part())
        for piece in made:
            self._put(piece)
        self.fresh_output = not kinds & {"claim"}

    def asked(self, block: Block, notes: list[str]) -> None:
        """Put a question on a slide, its answer behind it, and what the speaker says beside it."""
        self._ask(block)
        self.slide.notes += notes

    def close(self) -> None:
        """Settle what still waits; drop empty slides; a paragraph alone becomes a statement."""
        self._settle()
        if self.folds:
            self.slide.folded += self.folds
        for section in self.deck.sections:
            kept: list[Slide] = []
            for slide in section.slides:
                if not slide.pieces:
                    if kept:
                        kept[-1].notes += slide.notes
                        kept[-1].folded += slide.folded
                    continue
                kept.append(slide)
            section.slides = kept
        self.deck.sections = [s for s in self.deck.sections if s.slides or s.title == speaker.OPENING]

    def _heading(self, block: Block) -> None:
        if block.level == 1:
            self.deck.title = self.words.html(block.text)
            return
        self.opening = False
        self._settle()
        if block.level == 2:
            plain = speaker.plain_heading(
                self.words.html(block.text).replace("<code>", "").replace("</code>", "")
            )
            self.deck.sections.append(
                Section(self.words.html(block.text), html.unescape(re.sub("<.*?>", "", plain)), [Slide()])
            )
            if re.search(r"\bExercises\b", plain):
                self._exercises()
        else:
            self._next(self.words.html(block.text))

    def _opening(self, block: Block) -> bool:
        """Whether a block belongs to the title slide; it is put there."""
        if block.kind == "text" and (said := re.match(r"\*\*The question\.\*\*\s*(.*)", block.text, re.S)):
            sentences = self.words.sentences(said[1])
            asked = [s for s in sentences if s.endswith("?")] or sentences[-1:]
            shown = " ".join(dict.fromkeys([*sentences[:1], *asked[-1:]]))
            self.deck.question = self.words.html(shown)
            self.deck.opening_notes.append(f"<p>{self.words.html(said[1])}</p>")
        elif block.kind == "text" and block.text.startswith("**After this lesson"):
            pass
        elif block.kind == "list" and not self.deck.goals:
            self.deck.goals = [self.words.html(item.rstrip(";.")) for item in block.items]
        elif block.kind == "text" and (said := re.match(r"\*\*Time\*\* (?:about )?(\d+)", block.text)):
            self.deck.minutes = said[1]
            self.deck.opening_notes.append(f"<p>{self.words.html(block.text)}</p>")
        elif block.kind == "text" and block.text.startswith("**Exercises**"):
            pass
        else:
            return False
        return True

    def _text(self, text: str, *, reads: bool) -> None:
        if re.match(r"\*\*Sources\.", text):
            self._settle()
            self.slide.notes.append(f"<p>{self.words.html(text)}</p>")
            return
        if text.startswith("**Next**") and self.slide.has("list"):
            self._reading(text)
            return
        if re.match(r"Open exercises/", text) and self.slide.has("table"):
            self.slide.notes.append(f"<p>{self.words.html(text)}</p>")
            return
        if (title := TITLE.match(text)) and len(self.words.plain(title[1])) <= 110:
            self._settle()
            self._next(self.words.html(title[1]))
            text = title[2]
            if not text:
                return
        elif reads and self.slide.has("figure", "pre", "checks", "table", "code"):
            sentences = self.words.sentences(text)
            introduces = sentences[-1].endswith(":")
            said = sentences[:-1] if introduces else sentences
            if said:
                self._reading(" ".join(said))
            if not introduces:
                return
            text = sentences[-1]
        elif (
            not self.pending
            and self.slide.pieces
            and self.slide.pieces[-1].kind == "formula"
            and text[0].islower()
        ):
            self._reading(text)
            return
        self.pending.append(text)

    def _reading(self, text: str) -> None:
        """What an output shows: its first sentence below the output where there is room, all of it in the
        notes."""
        slide = self.slide
        shown = self.words.short(text, 1)
        letters = len(self.words.plain(shown))
        figure = next((p for p in slide.pieces if p.kind == "figure"), None)
        height = lines_of(letters, 26, WIDTH) * 36 + 14
        room = HEIGHT - slide.height - (min(figure.wanted - figure.height, 160) if figure else 0)
        aside = shown.startswith("(")
        if sum(p.sentences for p in slide.pieces) < 2 and not aside and letters <= 190 and height <= room:
            slide.pieces.append(
                Piece("lead", f'<p class="lead">{self.words.html(shown)}</p>', height, sentences=1)
            )
        slide.notes.append(f"<p>{self.words.html(text)}</p>")

    def _settle(self, context: bool = False) -> list[Piece]:
        """Put the waiting paragraphs on the slide: at most two sentences, or what a question needs; the rest
        is said."""
        if not self.pending:
            return []
        first, last = self.pending[0], self.pending[-1]
        formula = [p for p in self.slide.pieces if p.kind != "lead"]
        if self.slide.has("ask", *[k for k in SHOWN if k != "formula"]) or (
            formula and self.slide.height > 260
        ):
            self._next(self._part())
        if context:
            shown = [self.words.short(last, 3, 260)]
            if len(self.pending) > 1 and len(self.words.plain(last)) < 100:
                shown.insert(0, self.words.short(first, 1))
        elif len(self.pending) == 1:
            sentences = self.words.sentences(last)
            shown = [self.words.short(last, 2)]
            if (
                len(sentences) > 2
                and sentences[-1].endswith(":")
                and len(self.words.plain(sentences[-1])) < 160
            ):
                shown = [sentences[0], sentences[-1]]
        else:
            sentences = self.words.sentences(last)
            shown = [self._first(first), sentences[-1] if sentences[-1].endswith(":") else sentences[0]]
        shown = list(dict.fromkeys(shown))
        before = len(self.slide.pieces)
        for text in shown:
            letters = len(self.words.plain(text))
            px = 24 if letters > 260 else 28
            height = lines_of(letters, px, WIDTH) * px * 1.38 + 14
            made = f'<p class="lead{" long" if px == 24 else ""}">{self.words.html(text)}</p>'
            self.slide.pieces.append(Piece("lead", made, height, sentences=1))
        if " ".join(self.pending) != " ".join(shown):
            self.slide.notes += [f"<p>{self.words.html(text)}</p>" for text in self.pending]
        self.pending = []
        return self.slide.pieces[before:]

    def _first(self, text: str) -> str:
        """The first sentence, with the second where it says little by itself."""
        shown = self.words.short(text, 1)
        return shown if len(self.words.plain(shown)) > 45 else self.words.short(text, 2, 130)

    def _ask(self, block: Block) -> None:
        if block.text == "" and self.pending:
            block.text = self.pending.pop()
        found = not block.text
        block.text = block.text or "What did you find?"
        settled = self._settle(context=True)
        if self.slide.has("ask", *[k for k in SHOWN if k not in ("formula", "list", "table")]):
            self._next(self._part())
        asked, said = self.words.plain(block.text), self.words.plain(block.answer)
        shown_q = block.text if block.label != "Try it" else self.words.short(block.text, 4, 330)
        shown_a = self.words.short(block.answer, 2, 240)
        if block.text.count("\n") or re.search(r"^(?:[-*]|\d\.) ", block.text, re.M):
            question = self.words.html(block.text, block=True)
        else:
            question = f"<p>{self.words.html(shown_q)}</p>"
        size = "long" if len(asked) > 300 else ""
        px = 26 if size else 30
        answer = (
            f'<div class="answer fragment"><p>{self.words.html(shown_a)}</p></div>' if block.answer else ""
        )
        height = lines_of(len(self.words.plain(shown_q)), px, WIDTH - 50) * px * 1.38 + 60
        height += block.text.count("\n") * px * 0.7
        if answer:
            height += lines_of(len(self.words.plain(shown_a)), 26, WIDTH - 60) * 36 + 56
        label = "Do" if block.label == "Do" else block.label or "Think"
        made = f'<div class="ask {size}"><p class="label">{label}</p>{question}{answer}</div>'
        if self.slide.pieces and self.slide.height + height > HEIGHT:
            along = self.slide.has(*SHOWN) and sum(p.height for p in settled) + height <= HEIGHT
            self._next(self._part(), settled if along else None)
        question = next((q for q in reversed(self.words.sentences(block.text)) if q.endswith("?")), "")
        short = self.words.html(question) if len(self.words.plain(question)) <= 120 and not found else ""
        self.slide.pieces.append(Piece("ask", made, height, asked=short))
        if shown_q != block.text:
            self.slide.notes.append(f"<p>{self.words.html(block.text)}</p>")
        if said and shown_a != block.answer:
            self.slide.notes.append(
                f"<p><b>The whole answer.</b> {self.words.html(' '.join(block.answer.split()))}</p>"
            )

    def _formula(self, block: Block) -> None:
        tex = self.words.inside(block.text)
        if width_of(tex) * 17.5 > WIDTH and r"\qquad" in tex and r"\begin" not in tex:
            tex = (
                r"\begin{gathered}"
                + r" \\[6pt] ".join(p.strip() for p in tex.split(r"\qquad"))
                + r"\end{gathered}"
            )
        rows = 1 + len(re.findall(r"\\\\", tex))
        tall = 1.9 if re.search(r"\\(?:d?frac|sum|int|prod|underbrace|underset)", tex) else 1.25
        height = rows * 34 * tall + 34
        self._put(
            Piece(
                "formula",
                f'<div class="formula"><span class="tex" data-display>{html.escape(tex)}</span></div>',
                height,
            )
        )

    def _list(self, block: Block) -> None:
        self._settle()
        items = []
        for item in block.items:
            shown = self.words.short(item, 1)
            items.append((shown, lines_of(len(self.words.plain(shown)), 26, WIDTH - 40) * 36 + 10))
        if any(shown != item for (shown, _), item in zip(items, block.items, strict=True)):
            self.slide.notes.append(self.words.html(block.text, block=True))
        if self.slide.has("ask", *[k for k in SHOWN if k != "formula"]):
            self._next(self._part())
        room = HEIGHT - self.slide.height - 20
        tag = "ol" if block.level else "ul"
        start = 1
        for indices in outputs.dealt([h for _, h in items], room if room > 150 else HEIGHT - 20, HEIGHT - 20):
            chunk = [items[i] for i in indices]
            made = "".join(f"<li>{self.words.html(text)}</li>" for text, _ in chunk)
            opening = f'<{tag} start="{start}">' if tag == "ol" else f"<{tag}>"
            self._put(Piece("list", f"{opening}{made}</{tag}>", sum(h for _, h in chunk) + 20))
            start += len(chunk)

    def _table(self, table: outputs.Table | None) -> None:
        self._settle()
        if table is None:
            return
        if self.slide.has("ask", *[k for k in SHOWN if k != "formula"]):
            self._next(self._part())
        for piece in outputs.table_pieces(table, HEIGHT - self.slide.height):
            self._put(piece)

    def _parsed(self, text: str) -> outputs.Table | None:
        """A markdown table, with what its cells look like when measured."""
        lines = [line for i, line in enumerate(text.strip().splitlines()) if i != 1]
        cells = [[c.strip() for c in re.split(r"(?<!\\)\|", line.strip().strip("|"))] for line in lines]
        if lines and lines[0].startswith("| |"):
            cells[0] = ["", *[c for c in cells[0] if c]]
        return outputs.Table(
            [[self.words.html(c) for c in row] for row in cells],
            [[self.words.plain(c) for c in row] for row in cells],
        )

    def _exercises(self) -> None:
        """The exercises of the lesson as a table, from the checks."""
        found = speaker.exercises_of(self.deck.name)
        if found:
            rows = [["Exercise", "Stars", "Minutes"]]
            rows += [[html.escape(e.title), "★" * e.stars, str(e.minutes)] for e in found]
            self._table(outputs.Table(rows, rows))

    def _outputs(self, source: str, found: list):
        """The pieces that a cell's outputs give; what is only said goes to the notes of the slide."""
        i = 0
        while i < len(found):
            out = found[i]
            i += 1
            if out.output_type == "stream":
                text = out.text.strip("\n")
                if outputs.are_checks(source, text):
                    yield outputs.checks_piece(text)
                else:
                    yield from outputs.pre_pieces(text)
                continue
            if out.output_type == "error":
                yield from outputs.pre_pieces(f"{out.ename}: {out.evalue}")
                continue
            data = out.data
            picture = next((k for k in ("image/png", "image/gif") if k in data), None)
            if picture:
                meta = out.metadata.get(picture, {})
                caption = ""
                if i < len(found) and "text/html" in found[i].get("data", {}):
                    if said := re.fullmatch(
                        r"<p><em>(.*?)</em></p>", found[i].data["text/html"].strip(), re.S
                    ):
                        caption = said[1]
                        i += 1
                alt = meta.get("alt") or data.get("text/plain", "")
                yield outputs.figure_piece(picture, data[picture], alt, meta.get("width"), caption)
            elif "text/html" in data:
                yield from self._html(data)
            elif "text/plain" in data:
                yield from outputs.pre_pieces(data["text/plain"])

    def _html(self, data: dict):
        markup, plain = data["text/html"], data.get("text/plain", "")
        if claim := outputs.CLAIM.match(markup.strip()):
            yield outputs.claim_piece(claim)
        elif "text/latex" in data or 'class="highlight"' in markup:
            lines = plain.rstrip().splitlines()
            room = HEIGHT - self._waiting() - 40
            if len(lines) * 24.3 > room >= len(lines) * 21.6:
                yield outputs.code_piece(plain, 16)
                return
            if len(lines) > 22:
                self.folds.append(plain)
                lines = signature(lines)
            for chunk in code_chunks(lines, 20 if room < 300 else int(room / 24.3)):
                yield outputs.code_piece("\n".join(chunk), 18)
        elif "<audio" in markup:
            player = re.sub(r"<audio", '<audio aria-label="Sound of this cell"', markup.strip(), count=1)
            player = re.sub(r"Your browser[^<]*", "", player)
            yield Piece("html", f'<div class="sound">{player}</div>', 90)
        elif "border-left:.3em" not in markup and (tables := outputs.tables_of(markup)):
            many = sum(len(table.rows) for table in tables) > 20
            for i, table in enumerate(tables):
                yield from outputs.table_pieces(table, HEIGHT - (0 if i else self._waiting()), short=many)
        elif said := re.fullmatch(r"<p><em>(.*?)</em></p>", markup.strip(), re.S):
            height = lines_of(len(said[1]), 22, WIDTH) * 31 + 14
            yield Piece("html", f'<p class="caption">{said[1]}</p>', height)
        else:
            yield from outputs.pre_pieces(plain)

    def _waiting(self) -> float:
        """Pixels that the waiting paragraphs will take, or the question that is repeated on the next
        slide."""
        if not self.pending:
            return 80.0 if self.slide.has("ask") else 0.0
        letters = min(sum(len(self.words.plain(t)) for t in self.pending), 320)
        return lines_of(letters, 28, WIDTH) * 39 + 28

    def _put(self, piece: Piece, with_next: float = 0.0) -> None:
        """Put what is looked at on this slide if there is room, else on the next one."""
        settled = self._settle()
        if piece.title and piece.title != self.slide.part:
            if not any(p.title for p in self.slide.pieces):
                self.part = self.slide.part
            self._next(piece.title, settled)
        slide = self.slide
        part = slide.part if piece.title else self._part()
        looked_at = slide.has(*SHOWN)
        height = piece.height + with_next
        if piece.kind == "figure":
            height = min(max(piece.wanted, piece.height), 430) if looked_at else piece.height
        alone = {
            "table": ("formula",),
            "claim": ("claim", "pre", "checks"),
            "figure": ("formula", "code", "pre", "html", "checks"),
        }
        apart = looked_at and not slide.has(*alone.get(piece.kind, SHOWN))
        apart = apart or (
            slide.has("claim") and piece.kind != "claim" and not (self.evidence and piece.kind == "pre")
        )
        apart = apart or (slide.has("figure") and piece.kind == "figure")
        if piece.kind == "checks" and slide.has("figure") and not slide.beside:
            figure = next(p for p in slide.pieces if p.kind == "figure")
            height += min(figure.wanted - figure.height, 180)  # the picture comes first
        if slide.has("ask") or apart or (looked_at and slide.height + height > HEIGHT):
            if piece.kind == "checks" and piece.html.count("<li>") < 3 and not slide.has("ask"):
                slide.notes.append(f"<p>The notebook checks:</p>{piece.html}")  # not worth a slide of its own
                return
            asked = next((p.asked for p in slide.pieces if p.kind == "ask"), "")
            self._next(part, settled)
            if asked:
                height = lines_of(len(re.sub("<.*?>", "", asked)), 24, WIDTH) * 33 + 14
                self.slide.pieces.append(
                    Piece("lead", f'<p class="lead asked">{asked}</p>', height, sentences=1)
                )
        elif (
            slide.pieces
            and not looked_at
            and slide.height + height > HEIGHT
            and piece.kind not in ("figure",)
        ):
            self._next(part)
        self.slide.pieces.append(piece)
        if piece.notes:
            self.slide.notes.append(piece.notes)
        self.slide.folded += self.folds
        self.folds = []

    def _part(self) -> str:
        """What the next slide is about: behind a table with a title of its own what came before it
        goes on."""
        return self.part if any(piece.title for piece in self.slide.pieces) else self.slide.part

    def _next(self, part: str, taking: list[Piece] | None = None) -> None:
        """A new slide below, unless this one is still empty; what is in `taking` moves along."""
        taking = taking or []
        self.slide.pieces = [p for p in self.slide.pieces if not any(p is t for t in taking)]
        if self.slide.pieces:
            self.section.slides.append(Slide(part))
        else:
            self.slide.part = part
        self.slide.pieces += taking
