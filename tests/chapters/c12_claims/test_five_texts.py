"""The five texts: each of their sections has a place that is there, and the path is marked in its parts."""

import json
import re

import nbformat
import pytest

from lesson_lib.chapters.c12_claims import five_texts
from lesson_lib.claims import NOTEBOOKS, sources
from lesson_lib.cli import course
from tools import reading

SECTIONS = five_texts.content()["sections"]
STEPS = five_texts.content()["path"]["steps"]


def minutes(spec):
    """How long a section is felt to be, as the reading tool counts a part."""
    found = five_texts.place(spec)
    if found.notebook == five_texts.HERE:
        return 20  # two outputs by hand, the code beside ours
    notebook = nbformat.read(NOTEBOOKS / f"{found.notebook}.ipynb", 4)
    cells, inside = [], False
    for cell in notebook.cells:
        starts = cell.id == found.cell
        other = cell.cell_type == "markdown" and re.search(r"^## ", cell.source, re.M)
        inside = starts or (inside and not other)
        cells += [cell] if inside else []
    return reading.minutes(nbformat.v4.new_notebook(cells=cells))


@pytest.mark.parametrize("spec", sorted({spec for row in SECTIONS for spec in row["places"]} | set(STEPS)))
def test_each_place_is_a_cell_of_a_built_notebook(spec):
    found = five_texts.place(spec)
    if found.notebook == five_texts.HERE:  # the page itself: its headings come from its source
        source = (NOTEBOOKS / "source" / f"{found.notebook}.py").read_text(encoding="utf-8")
        assert f"## {found.heading}" in source
        return
    cells = json.loads((NOTEBOOKS / f"{found.notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    if spec.endswith("#"):
        assert found.link == f"{found.notebook}.ipynb"
    else:
        (cell,) = [cell for cell in cells if cell["id"] == found.cell]
        assert found.heading == "Opening" or f"## {found.heading}" in "".join(cell["source"])


def test_every_text_has_its_table_and_its_writer():
    letters = [row["letter"] for row in five_texts.content()["texts"]]
    assert letters == list(sources()) and {row["source"] for row in SECTIONS} == set(letters)
    for letter in letters:
        shown = five_texts.map_of(letter)
        assert len(shown.rows) == sum(row["source"] == letter for row in SECTIONS)
        assert repr(shown).splitlines()[0].startswith(letter) and "<a" not in repr(shown)
    assert "feizaipp" in repr(five_texts.who()) and "李宏毅" in five_texts.who()._repr_html_()


def test_links_lead_to_the_cell_and_the_page_itself_has_none():
    html = five_texts.map_of("S4")._repr_html_()
    assert re.search(r'href="02a_soft_look_up\.ipynb#cell-id=\w+"', html)
    assert 'href="evidence/02_scoring_evidence.ipynb"' in html


def test_the_path_takes_the_minutes_that_it_says():
    total = sum(minutes(spec) for spec in STEPS)
    assert abs(total - five_texts.content()["path"]["about"]) <= 10, total


def test_parts_of_the_path_name_their_sections_at_the_top_and_no_others_do():
    wanted = {}
    for spec in STEPS:
        short, _, section = spec.partition("#")
        if short != five_texts.HERE:
            wanted.setdefault(short, []).append(section)
    for path in sorted((NOTEBOOKS / "source").glob("[0-9]*.py")):
        first = course.filled(path.stem, path.read_text(encoding="utf-8")).split("# %%", 2)[1]
        said = re.search(
            r"〔\[(?:Sources|The road of five texts) · 五篇文章之路\]\(sources\.ipynb\):(.*)〕", first
        )
        short = path.stem.partition("_")[0]
        if short not in wanted:
            assert not said, path.stem
            continue
        numbers = re.search(r"第 (.*) 节", said[1]) if said else None
        found = (["Opening"] if said and "开头" in said[1] else []) + (
            numbers[1].split("、") if numbers else []
        )
        assert found == wanted[short], path.stem


@pytest.mark.parametrize(
    "spec, words", [("99z#1", "is 0 notebooks"), ("02a#9", "has no section '9'"), ("", "is 0 notebooks")]
)
def test_a_place_that_is_none_gets_a_sentence(spec, words, no_shape_hook):
    with pytest.raises(ValueError, match=words):
        five_texts.place(spec)


def test_another_letter_gets_a_sentence(no_shape_hook):
    with pytest.raises(ValueError, match="source must be one of S0"):
        five_texts.map_of("S9")
