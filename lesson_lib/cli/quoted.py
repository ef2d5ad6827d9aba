"""Numbers in sentences, bound to what cells print: a source marks them, `The output, «37.2», is mostly Cy's`.

The marks stand in the source alone, around the number; a percent sign stands behind them. A marked number
holds where one of the nearest cells above says it, or where the text above has already quoted it from there.
A cell says what it prints, in streams, texts, tables and captions; a cell tagged `proof` says the numbers of
its source, too, since the build asserts them. Pictures, their alt texts, questions and other cards say nothing.
"""

import ast
import html
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from nbformat import NotebookNode

NEAREST = 5  # cells above a sentence that say numbers
NUMBER = re.compile(
    r"(?<![\w.])(?:(?<!\))[-−])?(?:(?:\d{1,3}(?:(?:,|\{,\})\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:e[-+]\d+)?|\.\d+)"
)
MARKED = re.compile(r"«([^«»]*)(»?)")
# What could be a quote, and is not marked: a number with a point or a percent sign, outside of code and links.
LOOSE = re.compile(r"(?<![\w.])[-−]?(?:\d*\.\d+(?!\d|\.\d)|\d+(?=\s?\\?%))")
ELSEWHERE = re.compile(r"^```.*?^```\s*$|`[^`\n]*`|\]\([^)]*\)|«[^«»]*»", re.DOTALL | re.MULTILINE)
CARD = re.compile(r'll-ask|border-left:|class="highlight"|<audio')
END = re.compile(r"[.!?](?=[\s*])|\n\s*\n|\n(?=[|>-])")


@dataclass(frozen=True)
class Quote:
    """A number in a sentence: whether its source marks it, and whether a cell above says it."""

    number: str
    sentence: str
    marked: bool
    holds: bool


def plain(text: str) -> str:
    """A text as its notebook has it, without the marks.

    >>> plain("The output, «37.2», is mostly Cy's 40.")
    "The output, 37.2, is mostly Cy's 40."
    """
    return re.sub("[«»]", "", text)


def value(number: str) -> Decimal:
    """What a number as it is written is worth: 1,024 or −.95; NaN where it is none."""
    bare = re.sub(r"\{,\}|,", "", number.replace("−", "-"))
    return Decimal(bare if NUMBER.fullmatch(number.strip()) else "NaN")


def rounds_to(printed: str, number: str, *, percent: bool = False) -> bool:
    """Whether a printed number, rounded to as many decimals, is the quoted one; or, with `percent`, a hundred
    times the printed one.

    >>> rounds_to("0.6652", ".67"), rounds_to("0.6652", "66.5", percent=True), rounds_to("0.6652", "66.6")
    (True, True, False)
    """
    quoted, said = value(number), value(printed)
    if quoted.is_nan():
        return False
    half = Decimal(5).scaleb(quoted.as_tuple().exponent - 1)
    return any(abs(quoted - known) <= half for known in ([said, 100 * said] if percent else [said]))


def said_by(cell: NotebookNode) -> list[str]:
    """The numbers that a cell of code says."""
    texts = [ast.unparse(ast.parse(cell.source))] if "proof" in cell.metadata.get("tags", ()) else []
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        page = data.get("text/html", "")
        if not CARD.search(page) and not any(mime.startswith("image/") for mime in data):
            texts.append(html.unescape(re.sub(r"<[^>]+>", " ", page)) or data.get("text/plain", ""))
        texts.append(output.get("text", ""))
    return [number for text in texts for number in NUMBER.findall(text)]


def quotes(sources: Sequence[str], cells: Sequence[NotebookNode]) -> Iterator[Quote]:
    """The numbers in a notebook's texts: those marked, and those that may have been forgotten. `sources` are its
    cells' texts with the marks, `cells` the same ones as they were run."""
    near: deque[list[str]] = deque(maxlen=NEAREST)
    quoted: set[str] = set()
    for text, cell in zip(sources, cells, strict=True):
        if cell.cell_type == "code":
            if said := said_by(cell):
                near.append(said)
            continue
        bare = ELSEWHERE.sub(lambda found: " " * len(found[0]), text)
        for found in [*MARKED.finditer(text), *LOOSE.finditer(bare)]:
            marked = found[0].startswith("«")
            number = found[1] if marked else found[0]
            percent = bool(re.match(r"\s?\\?%", text[found.end() :]))
            ways = {number} if marked else {number, number.lstrip("-−")}
            holds = any(rounds_to(s, n, percent=percent) for said in near for s in said for n in ways)
            if marked and holds:
                quoted.add(number)
            yield Quote(number, sentence(text, found.start()), marked, holds or number in quoted)


def sentence(text: str, place: int) -> str:
    """The sentence around a place of a text, without the marks.

    >>> sentence("One. The output is «37.2»: it is mostly Cy's. Three.", 20)
    'The output is 37.2:'
    """
    ends = [0, *(found.end() for found in END.finditer(text)), len(text)]
    start, stop = max(end for end in ends if end <= place), min(end for end in ends if end > place)
    return " ".join(plain(text[start:stop]).split())


def faults(sources: Sequence[str], cells: Sequence[NotebookNode]) -> list[str]:
    """A sentence for each marked number that no cell above says."""
    return [
        f"the nearest cells above print no {quote.number!r} for {quote.sentence!r}; correct the sentence, or print"
        " the number"
        for quote in quotes(sources, cells)
        if quote.marked and not quote.holds
    ]


def forgotten(sources: Sequence[str], cells: Sequence[NotebookNode]) -> list[str]:
    """A line for each number that a cell above prints and that its source does not mark."""
    return [f"{q.number}: {q.sentence}" for q in quotes(sources, cells) if not q.marked and q.holds]
