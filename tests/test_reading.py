"""How long a part is, what belongs next door, and what a cold reader gets."""

import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from lesson_lib.checks import predict
from lesson_lib.cli import course, sources
from tools import reading

TARGETS = {target.name: target for target in sources.targets()}


def shown(code: str, **data: str):
    mimes = {name.replace("_", "/"): text for name, text in data.items()}
    return new_code_cell(code, outputs=[new_output("display_data", data=mimes)])


def printed(code: str, text: str):
    return new_code_cell(code, outputs=[new_output("stream", text=text)])


PARTS = [t for t in TARGETS.values() if t.kind == "part"]


@pytest.mark.parametrize("target", PARTS, ids=lambda target: target.name)
def test_a_part_of_the_second_edition_has_its_form(target):
    """A chapter takes its names off the list of the first edition's, and brings its parts under this rule."""
    notebook = nbformat.read(target.path, 4)
    assert reading.form(notebook, target.path.stat().st_size) == []
    assert reading.missing(notebook) == []


def test_a_core_part_needs_core_parts_only():
    core = {lesson.name for lesson in course.lessons() if lesson.core}
    assert core >= {"00_start_here", "02a_soft_look_up", "02b_which_score", "03_matrix_form"}
    firsts = {
        t.name: sources.read_source(t).cells[0].source for t in TARGETS.values() if t.kind != "solution"
    }
    assert reading.too_early(firsts, core) == []


def test_a_core_part_that_needs_another_is_named():
    parts = {
        "a": "**You need** [b](b.ipynb) and [c](c.ipynb). **Exercises** [d](d.ipynb)",
        "b": "",
        "c": "",
        "d": "",
    }
    assert reading.too_early(parts, {"a", "c"}) == ["a needs b"]
    assert reading.too_early(parts, {"a", "b", "c"}) == reading.too_early(parts, {"d"}) == []


WHOLE = {  # what a part should have -> how it loses that: (cell, old, new)
    "a title that asks": (0, "so?", "so."),
    "a summary in Chinese": (0, "中文摘要", "摘要"),
    "what the reader can do": (0, "Afterwards you can", "You can"),
    "what it needs": (0, "You need", "Needs"),
    "four predictions": (1, 'predict("d")\n', ""),
    "cells that the learner writes": (2, "turn:f", "turned:f"),
    "a warm-up": (1, "warm_up()\n", ""),
    "imported from lesson_lib": (1, "from lesson_lib.", "from lessons."),
    "In real work": (4, "## 3 · In real work", "## 3 · At work"),
    "two misconceptions": (4, '**"Two."**', "Two."),
    "a take-away": (4, "- one\n", ""),
    "sources": (4, "**Sources.**", "Sources:"),
    "a next part": (4, "**Next**", "Next"),
    "a link to its evidence": (4, "evidence/99_x_evidence", "99_x_evidence"),
    "none of the sources' letters": (4, "one", "one, S2"),
    "the minutes that it takes, 13": (0, "about 13", "about 12"),
}


def whole_part():
    top = (
        "# 99a · Is it so?\n\n**Afterwards you can** add.\n\n"
        "**Time** about 13 minutes. **You need** nothing.\n\n"
        "<details><summary>中文摘要 · Chinese</summary>\n加法。\n</details>"
    )
    code = "from lesson_lib.checks import predict\nwarm_up()\n" + "".join(f'predict("{n}")\n' for n in "abcd")
    end = (
        '## 3 · In real work\n\n**"One."** No. **"Two."** No.\n\n'
        "**To remember.** Add.\n\n- one\n- two\n- three\n\n"
        "**Sources.** A book. [evidence](evidence/99_x_evidence.ipynb)\n\n**Next**: b."
    )
    turns = [new_code_cell("...", metadata={"tags": [f"turn:{name}"]}) for name in "fg"]
    return new_notebook(cells=[new_markdown_cell(top), new_code_cell(code), *turns, new_markdown_cell(end)])


def test_a_whole_part_misses_nothing():
    assert reading.missing(whole_part()) == []


@pytest.mark.parametrize("what", WHOLE)
def test_what_a_part_misses_is_named(what):
    notebook, (place, old, new) = whole_part(), WHOLE[what]
    cell = notebook.cells[place]
    if old.startswith("turn:"):
        cell.metadata["tags"] = [new]
    else:
        assert old in cell.source
        cell.source = cell.source.replace(old, new, 1)
    told = reading.missing(notebook)
    assert len(told) == 1 and what in told[0], told


def labels(text: str) -> list[str]:
    """What stands outside of a text's Chinese, but names it: labels of folds, and of lines in 〔 〕."""
    return re.findall(r"<summary>.*?</summary>|〔[^〕]*〕", text)


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)
def test_no_label_is_in_chinese_alone(target):
    """Where no font has the signs, or nobody reads them, a word says what is there."""
    for label in labels(target.source.read_text(encoding="utf-8")):
        assert reading.count(reading.plain(label)) >= 1, label


def test_a_label_in_chinese_alone_is_seen():
    found = labels("<summary>中文</summary> 〔[路](sources.ipynb):开头〕 〔Sources · [路](a.ipynb)〕")
    assert [reading.count(reading.plain(label)) for label in found] == [0, 0, 1]


def test_the_first_page_takes_ten_minutes():
    assert reading.words(nbformat.read(TARGETS["00_start_here"].path, 4)) <= 500


def test_words_are_counted_wherever_a_learner_reads_them():
    fold = "<details><summary>Why?</summary>\n\nIt **holds** [always](https://a.b/c).\n</details>"
    notebook = new_notebook(
        cells=[
            new_markdown_cell("# One two\n\n$x + y$ three, `four` five-six"),
            new_markdown_cell(fold),
            shown("draw()", text_html="<p><em>A caption here</em></p>", text_plain="A caption here"),
            printed("show(x)", "0.5000 0.5000\nx (2, 2)\n"),
            printed("say()", "This is a printed sentence\n"),
            shown("check(f)", text_html="<div><table><tr><td>PASSED</td></tr></table></div>"),
        ]
    )
    assert reading.words(notebook) == 5 + 4 + 3 + 0 + 5 + 0


def test_of_a_card_the_question_and_the_right_answer_are_read():
    card = predict("unscaled_picture")
    read = reading.prose(new_output("display_data", data={"text/html": card.fold, "text/plain": card.words}))
    assert (
        "what do the weights look like?" in read and "picks one key" in read and "a bright diagonal" in read
    )
    assert "no common favourite" not in read, "a wrong answer's meaning is read by those who chose it"


def test_code_is_counted_with_the_source_that_is_shown():
    source = "def f(x):\n\n    return x"
    cells = [
        new_code_cell("# a note\nx = 1\n\ny = 2"),
        shown("show_source(f)", text_latex="..", text_plain=source),
    ]
    assert reading.code_lines(new_notebook(cells=cells)) == 2 + 1 + 2


TOO_MUCH = {
    "words": [new_markdown_cell("word " * 1301)],
    "lines of code": [new_code_cell("x = 1\n" * 201)],
    "cells": [new_markdown_cell("a") for _ in range(51)],
    "verdict() stands in evidence": [new_code_cell("verdict('so', x == 1)")],
    "claim() stands in evidence": [new_code_cell("claim('a-1', {'so': x == 1})")],
    "results() stands in evidence": [new_code_cell("rows = experiments.results('scores')['rows']")],
}


@pytest.mark.parametrize("fault, cells", TOO_MUCH.items(), ids=TOO_MUCH)
def test_what_is_too_much_is_named(fault, cells):
    (told,) = reading.form(new_notebook(cells=cells), 1024)
    assert fault in told


def test_a_part_that_is_too_large_is_named_and_a_short_one_is_fine():
    short = new_notebook(cells=[new_markdown_cell("# Why?"), new_code_cell("%time 1\nassert 1 == 1")])
    assert reading.form(short, 600 * 1024) == []
    assert reading.form(short, 600 * 1024 + 1) == ["601 KiB, at most 600"]


def test_a_reader_gets_cells_prints_pictures_and_questions_as_text():
    card = predict("unscaled_picture")
    notebook = new_notebook(
        cells=[
            new_markdown_cell("# Why?"),
            printed("show(2)", "2\n"),
            shown("draw()", image_png="AAAA", text_plain="A line that rises."),
            shown("predict(..)", text_html=card.fold, text_plain=card.words),
        ]
    )
    text = reading.as_text(notebook)
    for part in (
        "=== cell 1: markdown\n# Why?",
        "--- shown\n2",
        "[picture] A line that rises.",
        "a bright diagonal",
    ):
        assert part in text
    assert "AAAA" not in text and "<div" not in text


def test_the_page_of_terms_knows_the_parts_before_and_no_other(tmp_path):
    folder = tmp_path / "notebooks" / "source"
    folder.mkdir(parents=True)
    part = "# %% [markdown]\n# # {0}\n#\n# A **{1}** is that. **Time** 5. **{1}** again.\n\n# %%\n{2}\n\n"
    part += "# %% [markdown]\n# ## What to remember\n#\n# {0} is done.\n"
    use = "from lesson_lib.attention import attend"
    (folder / "01a_one.py").write_text(part.format("One", "soft look-up", use), encoding="utf-8")
    (folder / "02a_two.py").write_text(part.format("Two", "score", use + "\n" + use), encoding="utf-8")
    (folder / "02b_three.py").write_text(part.format("Three", "root", "x = 1"), encoding="utf-8")
    page = reading.page_of_terms("02b_three", tmp_path)
    order = [
        "== 01a_one",
        "-- terms\nsoft look-up: A soft look-up is that.",
        "-- functions\nattend: Mix the values",
    ]
    assert [page.index(text) for text in order] == sorted(page.index(text) for text in order)
    assert page.index("One is done.") < page.index("== 02a_two") < page.index("Two is done.")
    assert page.count("attend:") == 1 == page.count("soft look-up: ")
    assert "Time" not in page and "root" not in page and "Three is" not in page
    assert "==" not in reading.page_of_terms("01a_one", tmp_path)


def test_what_is_imported_has_its_first_sentence_once():
    codes = ["from lesson_lib.masks import causal, window\nfrom lesson_lib.cli import doctor", "%time 1"]
    codes += ["import torch\nfrom lesson_lib.claims import VERDICTS\nfrom lesson_lib.masks import causal"]
    first, *others = reading.introduced(codes, {"window"})
    assert (
        first
        == "causal: Mask that lets each token look at itself and at earlier tokens, never at later ones."
    )
    assert others[0].startswith("doctor: `python -m lesson_lib doctor`") and others[1:] == ["VERDICTS"]


def defined(*texts, glossary=""):
    return list(reading.terms(texts, set(), reading.glossary([glossary])))


@pytest.mark.parametrize(
    "text, told",
    [
        ("One. A *query* is what you look for. Two.", ["query: A query is what you look for."]),
        ("Each carries a *key*, and a *value*, too.", ["key: Each carries a key, and a value, too.",
         "value: Each carries a key, and a value, too."]),
        ("They are called *heads*.", ["heads: They are called heads."]),
        ("*Kernel regression* is an average.", ["Kernel regression: Kernel regression is an average."]),
        ("| word | what |\n|---|---|\n| **score** | how well |\n", ["score: score how well"]),
        ("It is *not* so. The *next* word is *every* word.", []),
        ("**The question.** What? **After this lesson you can** do it.", []),
        ("```python\n# a **power** is **two**\n```\n", []),
    ],
)  # fmt: skip
def test_a_term_stands_with_the_sentence_that_defines_it(text, told):
    assert defined(text) == told


def test_a_term_is_told_once_and_as_the_glossary_has_it():
    rows = "| English | 中文 | in short |\n|---|---|---|\n| key, lock | 键, 锁 | what a query meets |\n"
    texts = ("A **Key** is it. A **score** counts.", "The **key** again, and a **lock**.")
    assert defined(*texts, glossary=rows) == [
        "Key: what a query meets",
        "score: A score counts.",
        "lock: what a query meets",
    ]


def test_the_glossary_is_read_from_the_course_s_pages(tmp_path):
    folder = tmp_path / "notebooks" / "source"
    folder.mkdir(parents=True)
    rows = "# | English | 中文 | in short |\n# |---|---|---|\n# | key | 键 | what a query meets |\n"
    (folder / "glossary.py").write_text(f"# %% [markdown]\n{rows}", encoding="utf-8")
    (folder / "01a_one.py").write_text("# %% [markdown]\n# A **key**.\n", encoding="utf-8")
    (folder / "01b_two.py").write_text("# %% [markdown]\n# No more.\n", encoding="utf-8")
    assert "key: what a query meets" in reading.page_of_terms("01b_two", tmp_path)
    assert "==" not in reading.page_of_terms("glossary", tmp_path), "a page has no parts before it"


@pytest.mark.parametrize(
    "text",
    [
        "# One\n\n## 9 · Summary\n\n- It is **so**.\n\n**Sources.** Ada 1843.\n\n**Next**: two.",
        "# One\n\n## What to remember\nIt is so.\n\n## Then\nMore.",
        "# One\n\n**Take-away.** It is so.\n\n**Next** two.",
        "# One\n\n**To remember.** It is so.\n\n**Sources.** Ada 1843.",
    ],
)
def test_of_a_part_s_end_the_take_away_stays(text):
    assert reading.plain(reading.conclusion(text)).strip(" -\n") == "It is so."


def test_code_shown_as_text_is_code_and_no_prose():
    notebook = new_notebook(
        cells=[new_markdown_cell("Call it:\n\n```python\n# so\nx = attend(q)\n```\nDone.")]
    )
    assert (reading.words(notebook), reading.code_lines(notebook)) == (3, 1)


TABLES = {
    "numbers": ("<td>12</td><td>0.5</td><td>width</td>", 0),
    "words": ("<td>it holds</td><td>12</td><td>for two widths</td>", 5),
}


@pytest.mark.parametrize("cells, count", TABLES.values(), ids=TABLES)
def test_a_table_of_numbers_is_not_read_and_one_of_words_is(cells, count):
    page = f"<table><tr><th>head</th></tr><tr>{cells}</tr></table><p>Below it.</p>"
    told = reading.words(new_notebook(cells=[shown("table()", text_html=page, text_plain="x")]))
    assert told == 2 + count + (count > 0)


@pytest.mark.parametrize(
    "code, count", [("check(f)", 0), ("hint('f')", 0), ("warm_up()", 6), ("recheck(f)", 6)]
)
def test_of_all_cards_those_of_checks_alone_are_not_read(code, count):
    page = "<div>Nothing returns today, my friend.</div>"
    assert reading.words(new_notebook(cells=[shown(code, text_html=page)])) == max(0, count - 1)


def test_a_sentence_that_is_a_value_is_read_and_a_picture_s_alt_text_is_not():
    cells = [shown("why", text_plain="'this is a whole sentence'"), shown("x", text_plain="tensor(3.)")]
    cells.append(shown("draw()", image_gif="AAAA", text_plain="A line that rises and falls."))
    assert reading.words(new_notebook(cells=cells)) == 5
    assert "[picture] A line that rises" in reading.as_text(new_notebook(cells=cells))


def test_a_name_that_is_no_part_and_a_part_that_is_not_built_are_told(tmp_path, capsys, monkeypatch):
    assert reading.main(["99", str(tmp_path)]) == 1
    assert "no notebook is called '99'; there are 00_start_here" in capsys.readouterr().out
    target = sources.Target("02a_x", tmp_path / "02a_x.py", tmp_path / "02a_x.ipynb")
    monkeypatch.setattr(sources, "targets", lambda *_, **__: [target])
    assert reading.main(["02a", str(tmp_path)]) == 1
    assert capsys.readouterr().out == "02a_x is not built; run: make notebooks ARGS=02a_x\n"


def test_both_texts_are_written_for_a_part_of_the_course(tmp_path, capsys):
    assert reading.main(["03", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "03_matrix_form.txt",
        "03_matrix_form_terms.txt",
    ]
    assert "03_matrix_form: " in capsys.readouterr().out
