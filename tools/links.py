"""Links of pages and notebooks: files that must be there, and addresses on the web that must answer.

The tests look at files. `python -m tools.links` asks the web, once a week in the workflow: it prints each
address that does not answer with the page that names it, and ends with 1 where there is one.
"""

import re
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[1]
WAIT_S = 30
NO_BROWSER_NEEDED = {"User-Agent": "Mozilla/5.0 (link check)"}  # some sites answer no script that says so


def text_of(page: Path) -> str:
    """What a page says: a notebook's text cells, or a file without its blocks of code."""
    if page.suffix != ".ipynb":
        return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    return "\n".join(cell.source for cell in nbformat.read(page, 4).cells if cell.cell_type == "markdown")


def broken(text: str, folder: Path) -> list[str]:
    """Links to files that are not there, seen from `folder`."""
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)]
    return [link for link in links if link and "://" not in link and not (folder / link).exists()]


def addresses(text: str) -> set[str]:
    """The addresses on the web that a text names.

    >>> sorted(addresses("[a](https://example.org/a_(b)) and <https://example.org>, see https://example.org/c."))
    ['https://example.org', 'https://example.org/a_(b)', 'https://example.org/c']
    """
    found = re.findall(r"https?://(?:\([^\s()<>]*\)|[^\s()<>`\"'\]])+", text)
    return {address.rstrip(".,;:") for address in found if "127.0.0.1" not in address}


def pages(root: Path = ROOT) -> list[Path]:
    """What readers see: pages at the top, of the class kit and of the guide, and every notebook."""
    found = [*root.glob("*.md"), *root.glob("class/*.md"), *root.glob("notebooks/instructor/**/*.md")]
    return sorted(found) + sorted(root.glob("notebooks/*.ipynb")) + sorted(root.glob("notebooks/*/*.ipynb"))


def answer(address: str) -> str:
    """'' where the address answers, else why not."""
    try:
        request = urllib.request.Request(address, headers=NO_BROWSER_NEEDED)
        with urllib.request.urlopen(request, timeout=WAIT_S):
            return ""
    except (OSError, urllib.error.HTTPError) as error:
        return str(error)


def main(root: Path = ROOT) -> int:
    """Ask every address once; print what does not answer."""
    named = {}
    for page in pages(root):
        for address in addresses(text_of(page)):
            named.setdefault(address, []).append(page.relative_to(root).as_posix())
    with ThreadPoolExecutor(8) as pool:
        answers = dict(zip(named, pool.map(answer, named), strict=True))
    for address, reason in answers.items():
        if reason:
            print(f"{address} ({', '.join(named[address])}): {reason}")
    silent = sum(map(bool, answers.values()))
    print(f"{len(named)} addresses, {silent} without an answer")
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
