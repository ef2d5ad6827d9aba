"""The markdown of a lesson's text cells: blocks, sentences, and HTML with formulas and code kept whole."""

import html
import math
import re
import textwrap
from dataclasses import dataclass, field
from functools import cache

import mistune

KEPT = re.compile("\ue000(\\d+)\ue001")  # a formula or a piece of code, put aside while sentences are cut
GUARDED = re.compile(
    r"(?<=\n\n)(?P<indented>(?:^ {4}\S[^\n]*\n)+)|^```(?P<language>\w*)\n(?P<fence>.*?)^```$"
    r"|(?P<code>`+)(?P<inside>.+?)(?P=code)"
    r"|\$\$(?P<display>.+?)\$\$|\$(?P<tex>[^$\n](?:[^$]*?[^$\s])?)\$",
    re.S | re.M,
)
TO_NOTEBOOK = re.compile(r"\[([^\]]*)\]\([^)\s]*\.ipynb[^)]*\)")
FOLD = re.compile(r"<details>\s*<summary>(.*?)</summary>(.*?)</details>", re.S)
BREAK = re.compile(
    r"(?<=[.!?:;])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bcf\.)(?<!\bal\.)(?<!\bvs\.)((?:\*{1,2}|[\"”)])*)\s+(?=[^\sa-z;])"
)


@dataclass
class Block:
    """A piece of a text cell: `kind` is heading, text, list, table, formula, code, drawing (in letters) or
    ask (a question whose answer is folded)."""

    kind: str
    text: str
    level: int = 0
    items: list[str] = field(default_factory=list)
    label: str = ""
    answer: str = ""


class Words:
    """Text cells of one lesson. Formulas and code are put aside, and come back in `html`, so that nothing
    cuts them."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, str]] = []

    def blocks(self, source: str) -> list[Block]:
        """The blocks of a text cell, in order."""
        text = GUARDED.sub(self._keep, TO_NOTEBOOK.sub(r"\1", source))
        found: list[Block] = []
        for piece in _pieces(text):
            found += self._block(piece, found)
        return found

    def html(self, text: str, *, block: bool = False) -> str:
        """HTML of a text that `blocks` gave; without `block`, without the paragraph around it."""
        made = _markdown()(text).strip()
        if not block:
            made = re.sub(r"^<p>(.*)</p>$", r"\1", made, flags=re.S)
        return KEPT.sub(lambda m: _kept_html(*self.kept[int(m[1])]), made)

    def inline(self, text: str) -> str:
        """HTML of a line that did not come from `blocks`; a number that it begins with is no item of a list.

        >>> Words().inline("16."), Words().inline("4. The *whole* row")
        ('16.', '4. The <em>whole</em> row')
        """
        line = re.sub(r"^(\d+)\.(?= |$)", r"\1\\.", " ".join(text.split()))
        return self.html(GUARDED.sub(self._keep, TO_NOTEBOOK.sub(r"\1", line)))

    def page(self, text: str) -> str:
        """HTML of a whole text, as it is printed: a link is its words."""
        return self.html(GUARDED.sub(self._keep, re.sub(r"\[([^\]]*)\]\([^)\s]*\)", r"\1", text)), block=True)

    def plain(self, text: str) -> str:
        """The text as it is read, for measuring: without markup, a formula by about as many letters as it is
        wide."""
        made = KEPT.sub(lambda m: _kept_plain(*self.kept[int(m[1])]), text)
        return " ".join(re.sub(r"<[^>]+>|\*\*|(?<!\w)\*|\*(?!\w)", "", made).split())

    def formulas(self, blocks: list[Block]) -> int:
        """How many formulas stand in the text of these blocks."""
        marks = [int(m[1]) for block in blocks for m in KEPT.finditer(block.text)]
        return sum(self.kept[mark][0] in ("tex", "display") for mark in marks)

    def inside(self, text: str) -> str:
        """The formula, or the code, that a block of that kind holds."""
        return self.kept[int(KEPT.fullmatch(text.strip())[1])][1]

    def sentences(self, text: str) -> list[str]:
        """The sentences of a paragraph; brackets, quotes and bold text are never left open.

        >>> Words().sentences('One. (Two. And a half.) **Three.** Four, see Lee et al. 2021: five.')
        ['One.', '(Two. And a half.)', '**Three.** Four, see Lee et al. 2021: five.']
        """
        parts, start = [], 0
        flat = " ".join(text.split())
        for cut in BREAK.finditer(flat):
            before = flat[start : cut.end(1)].strip()
            whole = before.count("(") <= before.count(")") and before.replace("**", "").count("*") % 2 == 0
            if before.endswith((":", ";")) or not whole or before.count("**") % 2 or before.count('"') % 2:
                continue
            if re.fullmatch(r"\*+[^*]{1,40}[.:]\*+", before):  # a word in front of the sentence: **Problem.**
                continue
            parts.append(before)
            start = cut.end()
        return [*parts, flat[start:].strip()] if flat[start:].strip() else parts

    def _keep(self, match: re.Match) -> str:
        kind = next(k for k in ("indented", "fence", "inside", "display", "tex") if match[k] is not None)
        text = match[kind].strip("\n") if kind in ("indented", "fence") else match[kind].strip()
        if kind == "indented" or (kind == "fence" and not match["language"]):
            kind, text = "drawing", textwrap.dedent(text)
        self.kept.append((kind, text))
        mark = f"\ue000{len(self.kept) - 1}\ue001"
        whole = kind in ("fence", "drawing", "display")
        return f"\n\n{mark}\n\n" if whole and not _in_quote(match) else mark

    def _block(self, piece: str, before: list[Block]) -> list[Block]:
        if heading := re.fullmatch(r"(#{1,4}) (.*)", piece.strip()):
            return [Block("heading", heading[2].strip(), level=len(heading[1]))]
        if piece.startswith(">"):
            return [self._ask(re.sub(r"^> ?", "", piece, flags=re.M))]
        if fold := FOLD.fullmatch(piece.strip()):
            asked = before.pop().text if before and before[-1].kind == "text" else ""
            return [Block("ask", asked, label="Try it", answer=_dedent(fold[2]))]
        if alone := KEPT.fullmatch(piece.strip()):
            kind = {"display": "formula", "fence": "code", "drawing": "drawing"}.get(
                self.kept[int(alone[1])][0]
            )
            if kind:
                return [Block(kind, piece.strip())]
        if re.match(r"\|.*\|\s*\n\|[ :|-]+\|", piece):
            return [Block("table", piece)]
        if re.match(r"(?:[-*]|\d+\.) ", piece):
            items = re.split(r"^(?:[-*]|\d+\.) +", piece, flags=re.M)[1:]
            return [
                Block(
                    "list", piece, items=[" ".join(i.split()) for i in items], level=int(piece[0].isdigit())
                )
            ]
        return [Block("text", " ".join(piece.split()))]

    def _ask(self, text: str) -> Block:
        label = re.match(r"\s*\*\*(.{2,20}?)\.?\*\*\s*", text)
        rest = text[label.end() :] if label else text
        fold = FOLD.search(rest)
        answer = _dedent(fold[2]) if fold else ""
        asked = FOLD.sub("", rest).strip()
        return Block("ask", asked, label=label[1] if label else "", answer=answer)


def lines_of(letters: int, px: float, width: float) -> int:
    """Lines that so many letters need at a font size, with room for a wide font."""
    return max(1, math.ceil(letters * px * 0.53 / width))


def _pieces(text: str) -> list[str]:
    """Paragraphs, lists, tables, quotes, folds and headings of a text cell."""
    pieces: list[str] = []
    inside = False
    for line in text.splitlines():
        quoted, empty = line.startswith(">"), not line.strip()
        fresh = not pieces or not pieces[-1]
        if inside:
            pieces[-1] += "\n" + line
        elif empty:
            if not fresh:
                pieces.append("")
        elif re.match(r"#{1,4} ", line):
            pieces += [line, ""]
        elif fresh or quoted != pieces[-1].startswith(">") or _starts_list(line, pieces[-1]):
            pieces.append(line)
        else:
            pieces[-1] += "\n" + line
        if not quoted:
            inside = (inside or "<details>" in line) and "</details>" not in line
    return [p for p in pieces if p.strip()]


def _starts_list(line: str, before: str) -> bool:
    return bool(re.match(r"[-*] ", line)) and not re.match(r"(?:[-*]|\d+\.) ", before)


def _in_quote(match: re.Match) -> bool:
    start = match.string.rfind("\n", 0, match.start()) + 1
    return match.string[start : match.start()].startswith(">")


def _dedent(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())


@cache
def _markdown():
    return mistune.create_markdown(escape=False, plugins=["table"])


def _kept_html(kind: str, text: str) -> str:
    if kind in ("inside", "fence", "drawing"):
        return f"<code>{html.escape(text)}</code>"
    return f'<span class="tex"{" data-display" if kind == "display" else ""}>{html.escape(text)}</span>'


def _kept_plain(kind: str, text: str) -> str:
    return text + "xx" if kind in ("inside", "fence", "drawing") else "x" * width_of(text)


def width_of(tex: str) -> int:
    """About how many letters wide a formula is.

    >>> width_of(r"\\frac{a}{b} + c^2")
    6
    """
    text = re.sub(
        r"\\(?:text|operatorname|mathrm|mathbf|bigl?|bigr?|left|right|underbrace|begin|end|tfrac|frac|sqrt)\b",
        "",
        tex,
    )
    text = re.sub(r"\\qquad", "xxxx", text).replace(r"\quad", "xx")
    text = re.sub(r"\\(?:sin|cos|log|exp|min|max)\b", "xxx", text)
    text = re.sub(r"\\[a-zA-Z]+|\\.", "x", text)
    return len(re.sub(r"[{}^_&\s]", "", text)) + tex.count("+") + tex.count("=")
