"""What a code cell shows on slides: its code, and its outputs as pieces with a height."""

import base64
import html
import io
import itertools
import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from lesson_lib.cli.slides.text import lines_of

WIDTH, HEIGHT = 1160, 548  # pixels for what stands under a slide's heading
LETTER = 0.602  # the width of a letter of code, in font sizes
SOURCE = 25  # lines of a source on one slide
FIGURE = 560  # pixels of height for a figure with its caption
LEAST = 1.44  # the smallest words of a picture have 9 points, 12.5 pixels in the notebook: 18 on a slide
CAPTION = re.compile(r"<p><em>(.*?)</em></p>", re.S)
PRE_LINES = 17
SMALL = 15  # rows of a table that stands on one slide
BLANK = 14  # rows of a file between the parts of a picture
OWN = 0.45  # of a slide's height that a part of a picture takes at least
ENLARGED = 1.8  # a picture is shown at most that many times as large as in the notebook


@dataclass
class Piece:
    """One thing on a slide: its HTML, its estimated height in pixels, and what the speaker needs with it."""

    kind: str  # lead, list, formula, table, ask, code, pre, figure, html
    html: str
    height: float
    title: str = ""  # of a table: what its slide is called
    alt: str = ""  # of a figure: what it shows
    told: str = ""  # of a figure: a caption for which there is no room
    widest: float = 0.0  # of pre and code: the pixels of the longest line


@dataclass
class Table:
    """Rows of cells as HTML, the first one the header; `plain` has the same cells as they are measured."""

    rows: list[list[str]]
    plain: list[list[str]]
    title: str = ""


def code_piece(source: str, px: int = 0, *, python: bool = True) -> Piece:
    """The code of a cell, highlighted, or a drawing in letters; without `px` as large as its longest line
    allows."""
    lines = source.rstrip().splitlines()
    longest = max(map(len, lines), default=0)
    px = px or (20 if longest <= 90 and len(lines) <= 10 else 18 if longest <= 100 else 16)
    rows = sum(max(1, math.ceil(len(line) * px * LETTER / (WIDTH - 40))) for line in lines)
    made = f'<pre class="code p{px}">{highlighted(source) if python else html.escape(source)}</pre>'
    return Piece("code", made, rows * px * 1.35 + 38, widest=longest * px * LETTER)


def highlighted(source: str) -> str:
    """Python as HTML with a class for each kind of word."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return highlight(source.rstrip(), PythonLexer(), HtmlFormatter(nowrap=True)).rstrip("\n")


def pre_pieces(text: str) -> list[Piece]:
    """Printed text, in pieces that fit on a slide each; of very long text the first two, with a line that
    says so."""
    lines = text.rstrip("\n").splitlines()
    longest = max(map(len, lines), default=0)
    px = 20 if longest <= 92 or len(lines) <= 4 else 18 if longest <= 102 else 16
    fit = (WIDTH - 44) / (px * LETTER)
    if PRE_LINES < len(lines) <= 2 * PRE_LINES and longest <= 44:
        return [_in_columns(lines, longest)]
    chunks, room = [[]], 0
    for line in lines:
        rows = max(1, math.ceil(len(line) / fit))
        if room + rows > PRE_LINES:
            chunks.append([])
            room = 0
        chunks[-1].append(line)
        room += rows
    if len(chunks) == 2:
        half = _cut(lines)
        if len(lines) - PRE_LINES <= half <= PRE_LINES and len(chunks[1]) < PRE_LINES:
            chunks = [lines[:half], lines[half:]]
    left_out = sum(len(c) for c in chunks[2:])
    if left_out:
        chunks = chunks[:2]
        chunks[1].append(f"... {left_out} more lines in the notebook")
    made = []
    for chunk in chunks:
        rows = sum(max(1, math.ceil(len(line) / fit)) for line in chunk)
        body = html.escape("\n".join(chunk))
        wide = max(map(len, chunk)) * px * LETTER
        made.append(Piece("pre", f'<pre class="out p{px}">{body}</pre>', rows * px * 1.3 + 36, widest=wide))
    return made


def _in_columns(lines: list[str], longest: int) -> Piece:
    """Narrow text in two columns beside each other."""
    cut = _cut(lines)
    columns = [html.escape("\n".join(part)) for part in (lines[:cut], lines[cut:])]
    made = "".join(f'<pre class="out p20">{column}</pre>' for column in columns)
    height = max(cut, len(lines) - cut) * 26 + 36
    return Piece("pre", f'<div class="columns">{made}</div>', height, widest=2 * longest * 20 * LETTER + 90)


def _cut(lines: list[str]) -> int:
    """Where lines are cut in two: near the middle, in front of a line that is not indented."""
    middle = len(lines) / 2
    starts = [i for i, line in enumerate(lines) if i and line.strip() and not line[0].isspace()]
    return min(starts or [math.ceil(middle)], key=lambda i: (abs(i - middle), i))


def pieces(found: list) -> Iterator[Piece]:
    """What the outputs of a cell show."""
    i = 0
    while i < len(found):
        out = found[i]
        i += 1
        data = out.get("data", {})
        picture = next((kind for kind in ("image/png", "image/gif") if kind in data), None)
        markup, plain = data.get("text/html", ""), data.get("text/plain", "")
        if out.output_type == "stream":
            yield from pre_pieces(out.text.strip("\n"))
        elif out.output_type == "error":
            yield from pre_pieces(f"{out.ename}: {out.evalue}")
        elif picture:
            meta, caption = out.metadata.get(picture, {}), ""
            following = found[i].get("data", {}).get("text/html", "") if i < len(found) else ""
            if said := CAPTION.fullmatch(following.strip()):
                caption = said[1]
                i += 1
            alt = meta.get("alt") or plain
            yield from figure_pieces(picture, data[picture], alt, meta.get("width"), caption)
        elif "text/latex" in data or 'class="highlight"' in markup:  # a source that is shown
            lines = plain.rstrip().splitlines()
            for start in range(0, len(lines), SOURCE):
                yield code_piece("\n".join(lines[start : start + SOURCE]), 18 if len(lines) <= 21 else 16)
        elif "<audio" in markup:
            player = re.sub(r"<audio", '<audio aria-label="Sound of this cell"', markup.strip(), count=1)
            player = re.sub(r"Your browser[^<]*", "", player)
            yield Piece("html", f'<div class="sound">{player}</div>', 90)
        elif "border-left:.3em" not in markup and (tables := tables_of(markup)):
            many = sum(len(table.rows) for table in tables) > 20
            for table in tables:
                yield from table_pieces(table, HEIGHT, short=many)
        elif said := CAPTION.fullmatch(markup.strip()):
            tall = lines_of(len(said[1]), 22, WIDTH) * 31 + 14
            yield Piece("html", f'<p class="caption">{said[1]}</p>', tall)
        elif plain:
            yield from pre_pieces(plain)


def figure_pieces(kind: str, data: str, alt: str, width: int | None, caption: str) -> list[Piece]:
    """A picture with its alt text and caption; `width` in pixels as in the notebook. One that is so tall that
    its words would be smaller than 18 pixels gives its caption to the speaker, or is shown in parts."""
    from PIL import Image

    image = Image.open(io.BytesIO(base64.b64decode(data)))
    natural = width or image.width
    below = lines_of(len(re.sub("<.*?>", "", caption)), 20, WIDTH) * 27 + 8 if caption else 0
    fits = FIGURE / LEAST * image.width / natural  # rows of the file that a slide holds without a caption
    if kind == "image/png" and image.height > fits * (FIGURE - below) / FIGURE:
        image, data = _tightened(image), ""
    told = ""
    if below and image.height > fits * (FIGURE - below) / FIGURE and image.height <= fits:
        caption, told, below = "", caption, 0
    most = int(fits * (FIGURE - below) / FIGURE)
    parts = image.height > most and kind == "image/png"
    edges = _parts(image.convert("L"), most) if parts else [(0, image.height)]
    made = []
    for number, (top, end) in enumerate(edges, 1):
        words = alt
        if len(edges) > 1 or not data:
            file = io.BytesIO()
            image.crop((0, top, image.width, end)).save(file, format="PNG", optimize=True)
            data = base64.b64encode(file.getvalue()).decode()
        if len(edges) > 1:
            words = f"Part {number} of {len(edges)}. {alt}"
        zoom = min(ENLARGED, WIDTH / natural, (FIGURE - below) * image.width / natural / (end - top))
        wide, tall = natural * zoom, natural * zoom * (end - top) / image.width
        img = (
            f'<img src="data:{kind};base64,{"".join(data.split())}" alt="{html.escape(words, quote=True)}"'
            f' style="max-width:{wide:.0f}px;max-height:{tall:.0f}px" data-zoom="{zoom:.2f}"'
            f' width="{image.width}" height="{end - top}">'
        )
        under = f"<figcaption>{caption}</figcaption>" if caption else ""
        made.append(Piece("figure", f"<figure>{img}{under}</figure>", tall + below, alt=words, told=told))
    return made


def _tightened(image):
    """The picture without blank rows above and below it, and with few more than BLANK between its parts."""
    grey = image.convert("L")
    lines = [grey.crop((0, y, grey.width, y + 1)).getextrema() for y in range(grey.height)]
    kept: list[int] = []
    for blank, rows in itertools.groupby(range(grey.height), lambda y: lines[y][1] - lines[y][0] < 6):
        band = list(rows)
        outside = band[0] == 0 or band[-1] == grey.height - 1
        enough = 4 if outside else BLANK + max(0, len(band) - BLANK) // 6  # wide ones stay wider
        kept += band[:enough] if blank else band
    made = image.copy().crop((0, 0, image.width, len(kept)))
    start = 0
    for _, run in itertools.groupby(enumerate(kept), lambda pair: pair[1] - pair[0]):
        rows = [row for _, row in run]
        made.paste(image.crop((0, rows[0], image.width, rows[-1] + 1)), (0, start))
        start += len(rows)
    return made


def _parts(image, most: int) -> list[tuple[int, int]]:
    """The first and last rows of the parts of a grey picture, none taller than `most`: cut in the middle of
    blank bands where each part is large enough to be a picture of its own; else parts that overlap, so that
    what one cuts the next has whole."""
    lines = [image.crop((0, y, image.width, y + 1)).getextrema() for y in range(image.height)]
    contrast = [high - low for low, high in lines]
    cuts = [0]
    while image.height - cuts[-1] > most:
        left = math.ceil((image.height - cuts[-1]) / most)
        reach = range(cuts[-1] + max(most // 3, image.height - cuts[-1] - (left - 1) * most), cuts[-1] + most)
        bands = [list(band) for blank, band in itertools.groupby(reach, lambda y: contrast[y] < 6) if blank]
        widest = max(bands, key=len, default=[])
        if len(widest) <= 4:
            break
        cuts.append(widest[len(widest) // 2])
    parts = list(itertools.pairwise([*cuts, image.height]))
    if all(OWN * most <= end - top <= most for top, end in parts):
        return parts
    many = math.ceil(image.height / most)
    tops = [round(i * (image.height - most) / (many - 1)) for i in range(many)]
    near = [
        range(max(0, top - most // 20), top + 1) if 0 < i < many - 1 else (top,) for i, top in enumerate(tops)
    ]
    tops = [min(rows, key=contrast.__getitem__) for rows in near]
    return [(top, top + most) for top in tops]


def tables_of(markup: str) -> list[Table]:
    """The tables of an HTML output in order, without their styles; a table without a header takes the one
    before it."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(markup, "html.parser")
    for tag in soup(["style", "script", "button"]):
        tag.decompose()
    made: list[Table] = []
    for found in soup.find_all("table"):
        if found.find_parent("table"):
            continue
        caption = found.find("caption")
        title = caption.get_text(" ", strip=True) if caption else ""
        for tag in found.find_all(True):
            tag.attrs = {}
            if tag.name in ("a", "span", "div", "p"):
                tag.unwrap()
        cells = [row.find_all(["th", "td"]) for row in found.find_all("tr")]
        cells = [row for row in cells if row]
        if not cells:
            continue
        rows = [[cell.decode_contents().strip() for cell in row] for row in cells]
        plain = [[cell.get_text(" ", strip=True) for cell in row] for row in cells]
        headed = all(cell.name == "th" for cell in cells[0])
        if not headed and made and len(made[-1].rows[0]) == len(rows[0]):
            made[-1].rows += rows
            made[-1].plain += plain
        else:
            made.append(Table(rows, plain, title))
    if len(made) == 1 and len(made[0].rows) <= SMALL:
        made[0].title = ""  # captions tell several tables apart, or the slides of a long one
    return made


def dealt(heights: list[float], first: float, full: float) -> list[list[int]]:
    """Indices of rows, dealt out to as few slides as they need, and evenly; the first slide has less room
    than the others.

    >>> dealt([10, 10, 10, 10], 100, 100), dealt([10, 10, 10, 10], 30, 30), dealt([], 10, 10)
    ([[0, 1, 2, 3]], [[0, 1], [2, 3]], [])
    """

    def greedy(limit: float) -> list[list[int]]:
        made: list[list[int]] = []
        used = 0.0
        for i, height in enumerate(heights):
            if not made or used + height > min(limit, first if len(made) == 1 else full):
                made.append([])
                used = 0.0
            made[-1].append(i)
            used += height
        return made

    fewest, limit = len(greedy(full)), full
    while limit > 20 and len(greedy(limit - 10)) == fewest:
        limit -= 10
    return greedy(limit)


def _widths(natural: list[float], letters: list[int], least: list[float], width: float) -> list[float]:
    """Widths of columns: narrow ones as wide as they need, the others by how much text they hold."""
    if sum(natural) <= width:
        return natural
    fixed: dict[int, float] = {}
    while True:
        free = width - sum(fixed.values())
        rest = [c for c in range(len(natural)) if c not in fixed]
        weight = {c: letters[c] ** 0.5 for c in rest}
        share = {c: free * weight[c] / sum(weight.values()) for c in rest}
        c = next((c for c in rest if natural[c] < share[c] or least[c] > share[c]), None)
        if c is None or len(rest) == 1:
            return [fixed.get(c, share.get(c, 0.0)) for c in range(len(natural))]
        fixed[c] = min(natural[c], max(share[c], least[c]))


def unbroken(text: str) -> list[str]:
    """The pieces of a text in which no line breaks: its words, without Chinese letters, which part anywhere.

    >>> unbroken("the 注意力 of RAM模型")
    ['the', 'of', 'RAM']
    """
    return "".join(" " if room_of(letter) > 1 else letter for letter in text).split()


def room_of(text: str) -> int:
    """How many Latin letters take as much room as the text; a Chinese one takes that of two.

    >>> room_of("a b"), room_of("注意力")
    (3, 6)
    """
    return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text)


def shortened(table: Table) -> Table:
    """The table with long cells cut to their first line or sentence: for tables that are looked up, not
    read."""
    rows, plain = [], []
    for row, text in zip(table.rows, table.plain, strict=True):
        lines = [
            " ".join(html.unescape(re.sub(r"<[^>]+>", " ", re.split(r"<br ?/?>", r)[0])).split()) for r in row
        ]
        first = [
            re.split(r"(?<=[.;]) (?=[A-Z])", line)[0] if room_of(t) > 130 else t
            for line, t in zip(lines, text, strict=True)
        ]
        cut = [f != t for f, t in zip(first, text, strict=True)]
        rows.append([html.escape(f) + " …" if c else r for r, f, c in zip(row, first, cut, strict=True)])
        plain.append(first)
    return Table(rows, plain, table.title)


def table_pieces(table: Table, room: float, *, short: bool = False, full: float = HEIGHT) -> list[Piece]:
    """A table on as many slides as it needs, its header on each; `room` is what the first slide has left.

    With `short` its long cells are cut to a sentence.
    """
    if short:
        table = shortened(table)
    n = max(len(row) for row in table.rows)
    rows = [row + [""] * (n - len(row)) for row in table.rows]
    plain = [row + [""] * (n - len(row)) for row in table.plain]
    px = 24 if len(rows) <= 8 and n <= 5 else 20
    longest_word = [
        max((len(w) for r in plain for w in unbroken(r[c])), default=1) * px * 0.76 + 28 for c in range(n)
    ]
    natural = [max(max(len(r[c]) for r in plain) * px * 0.58 + 28, w) for c, w in enumerate(longest_word)]
    width = min(WIDTH, sum(natural))
    parts = _widths(natural, [sum(len(r[c]) for r in plain) for c in range(n)], longest_word, width)

    def height(row: list[str]) -> float:
        lines = max(
            lines_of(room_of(c), px, max(part - 24, 20)) + c.count("\n")
            for c, part in zip(row, parts, strict=True)
        )
        return lines * px * 1.3 + 15

    head, tall = height(plain[0]), [height(row) for row in plain[1:]]
    first = room - head if room > head + sum(tall[:2]) else full - head
    chunks = dealt(tall, first, full - head)
    columns = "".join(f'<col style="width:{100 * part / width:.1f}%">' for part in parts)
    made = []
    for chunk in chunks:
        body = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in rows[i + 1]) + "</tr>" for i in chunk)
        top = "".join(f"<th>{c}</th>" for c in rows[0])
        made.append(
            Piece(
                "table",
                f'<table class="p{px}" style="width:calc({width:.0f}px * var(--s,'
                f' 1))"><colgroup>{columns}</colgroup>'
                f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>",
                head + sum(tall[i] for i in chunk) + 16,
                title=table.title,
            )
        )
    return made
