"""How well a notebook's text stands out from what lies behind it. The browser measures: contrast.js says
what, and what not."""

from pathlib import Path

from tests.browser.driver import PANEL, THEMES, Notebook

MEASURE = f"({(Path(__file__).parent / 'contrast.js').read_text(encoding='utf-8')})"
LEAST = 3.0  # WCAG's bound for large letters and for signs; for small letters we aim at its 4.5


def readings(notebook: Notebook) -> list[dict]:
    """Each text in the notebook's markdown and outputs, the faintest first: cell, text, ratio, colour,
    ground."""
    found = notebook.page.evaluate(f"() => {MEASURE}({PANEL}.node)")
    return sorted(found, key=lambda reading: reading["ratio"])


def in_both_themes(notebook: Notebook) -> dict[str, list[dict]]:
    """The readings by theme. The theme that the page wears comes first, so that it is changed only once."""
    found = {}
    for theme in sorted(THEMES, key=lambda theme: theme != notebook.theme()):
        notebook.wear(theme)
        found[theme] = readings(notebook)
    return found


def faint(found: dict[str, list[dict]]) -> list[str]:
    """A line for each reading below the least contrast; `found` as `in_both_themes` gives it."""
    return [
        f"{theme}, cell {r['cell']}: {r['text']!r} is {r['colour']} on {r['ground']}, contrast"
        f" {r['ratio']:.2f}"
        for theme, rows in found.items()
        for r in rows
        if r["ratio"] < LEAST
    ]
