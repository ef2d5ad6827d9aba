"""Numbers in sentences, bound to what cells print: a source marks them, `The output, «37.2», is mostly Cy's`.

The marks stand in the source alone, around the number; a percent sign stands behind them. A marked number
holds where one of the nearest cells above prints or asserts it, or where the text above has quoted it from
there. Printed is what stands in streams, texts, tables and captions; pictures, their alt texts, questions and
other cards say nothing. Another one's number that a cell above prints, too, stands in single marks: ‹0.28›.
"""

import ast
import html
import re
from collections import deque
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from nbformat import NotebookNode

NEAREST = 5  # cells above a sentence that print or assert numbers
NUMBER = re.compile(
    r"(?<![\w.])(?:(?<!\))[-−])?"
    r"(?:(?:\d{1,3}(?:(?:,|\{,\})\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:e[-+]\d+)?|\.\d+)(?:\s?%)?"
)
MARKED = re.compile(r"«([^«»]*)»?")
# What looks like a quote: two digits or more, a point or a percent sign, not computed here (= 0.28), no code.
LOOSE = re.compile(r"(?<![\w.])(?<!= )(?:0?\.\d{2,}|[1-9]\d*\.\d+|[1-9]\d+(?=\s?\\?%))(?!\d|\.\d)")
ELSEWHERE = re.compile(r"^```.*?^```\s*$|`[^`\n]*`|\]\([^)]*\)|«[^«»]*»|‹[^‹›]*›", re.DOTALL | re.MULTILINE)
CARD = re.compile(r'll-ask|border-left:|class="highlight"|<audio')
END = re.compile(r"[.!?](?=[\s*])|\n\s*\n|\n(?=[|>-])|\|\n")


class Quote(NamedTuple):
    """A number in a sentence: whether its source marks it, and whether a cell above says it."""

    number: str
    sentence: str
    marked: bool
    holds: bool


def plain(text: str) -> str:
    """A text as its notebook has it, without the marks.

    >>> plain("The output, «37.2», is mostly Cy's ‹40›.")
    "The output, 37.2, is mostly Cy's 40."
    """
    return re.sub("[«»‹›]", "", text)


def value(number: str) -> Decimal:
    """What a number is worth as it is written, 1,024 or −.95; NaN where it is none. The noughts at the end of
    186,000 are no digits."""
    if not NUMBER.fullmatch(number):
        return Decimal("NaN")
    worth = Decimal(re.sub(r"[{,}%\s]", "", number.replace("−", "-")))
    return worth.normalize() if "," in number else worth


def rounds_to(printed: str, number: str, *, percent: bool = False) -> bool:
    """Whether a printed number, rounded to as many decimals, is the quoted one; or, with `percent`, a hundred
    times the printed one.

    >>> rounds_to("0.6652", ".67"), rounds_to("0.6652", "66.5", percent=True), rounds_to("0.6652", ".66")
    (True, True, False)
    """
    quoted, known = value(number), value(printed)
    if quoted.is_nan():
        return False
    half = Decimal(5).scaleb(quoted.as_tuple().exponent - 1)
    return any(abs(quoted - worth) <= half for worth in ([known, 100 * known] if percent else [known]))


def printed_by(cell: NotebookNode) -> list[str]:
    """The numbers that a cell of code prints, each with its percent sign."""
    texts = []
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        page = data.get("text/html", "")
        if not CARD.search(page) and not any(mime.startswith("image/") for mime in data):
            texts.append(html.unescape(re.sub(r"<[^>]+>", " ", page)) or data.get("text/plain", ""))
        texts.append(output.get("text", ""))
    return [number for text in texts for number in NUMBER.findall(text)]


def asserted_by(cell: NotebookNode) -> list[str]:
    """The numbers in a cell's assertions."""
    tree = ast.parse(re.sub(r"^\s*[%!].*$", "", cell.source, flags=re.M))
    named = (
        node for node in ast.walk(tree) if getattr(getattr(node, "func", None), "id", "")[:6] == "assert"
    )
    plainly = (node for node in ast.walk(tree) if isinstance(node, ast.Assert))
    return [number for node in (*plainly, *named) for number in NUMBER.findall(ast.unparse(node))]


def quotes(sources: Sequence[str], cells: Sequence[NotebookNode]) -> Iterator[Quote]:
    """The numbers in a notebook's texts that are marked, and those that look like quotes. `sources` are its
    cells' texts with the marks, `cells` the same ones as they were run."""
    near: deque[tuple[list[str], list[str]]] = deque(maxlen=NEAREST)
    bound: set[str] = set()
    for text, cell in zip(sources, cells, strict=True):
        if cell.cell_type == "code":
            said = printed_by(cell), asserted_by(cell)
            near.extend([said] if any(said) else [])
            continue
        printed = [number for numbers, _ in near for number in numbers]
        anyhow = printed + [number for _, numbers in near for number in numbers]
        likely = [number.lstrip("-−") for number in printed if re.search(r"[.%]", number)]
        prose = ELSEWHERE.sub(lambda other: " " * len(other[0]), text)
        for found in (*MARKED.finditer(text), *LOOSE.finditer(prose)):
            marked = found[0].startswith("«")
            number = found[1] if marked else found[0]
            percent = re.match(r"\s?\\?%", text[found.end() :]) is not None
            holds = any(rounds_to(n, number, percent=percent) for n in (anyhow if marked else likely))
            if marked and holds:
                bound.add(number)
            held = number in bound if marked else holds and value(number) not in (0, 1, 100)
            around = " ".join(plain(sentence(text, found.start())).split())
            yield Quote(number, around, marked, held)


def sentence(text: str, place: int) -> str:
    """The sentence of a text that stands around a place, or its row of a table.

    >>> sentence("One. The output is 37.2, mostly Cy's. Three.", 20)
    " The output is 37.2, mostly Cy's."
    """
    ends = [0, *(found.end() for found in END.finditer(text)), len(text)]
    return text[max(end for end in ends if end <= place) : min(end for end in ends if end > place)]


def faults(sources: Sequence[str], cells: Sequence[NotebookNode]) -> list[str]:
    """A sentence for each marked number that no cell above says."""
    return [
        f"the cells above print no {number!r} for {said!r}; correct the sentence, or print it there"
        for number, said, marked, holds in quotes(sources, cells)
        if marked and not holds
    ]


def forgotten(sources: Sequence[str], cells: Sequence[NotebookNode]) -> list[str]:
    """A sentence for each number that a cell above prints and that its source does not mark."""
    return [
        f"a cell above prints {number!r} of {said!r}; mark it «{number}», or ‹{number}› if it is another's"
        for number, said, marked, holds in quotes(sources, cells)
        if holds and not marked
    ]
