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


EDITION = {lesson.name: lesson.edition for lesson in course.lessons()}


@pytest.mark.parametrize("target", PARTS, ids=lambda target: target.name)
def test_a_part_has_the_form_of_its_edition(target):
    notebook, edition = nbformat.read(target.path, 4), EDITION[target.name]
    assert reading.form(notebook, target.path.stat().st_size, edition) == []
    assert reading.missing(notebook, edition) == []
    ideas = sources.ideas(target)
    assert (reading.unfit(notebook, ideas) if edition == 3 else list(ideas)) == []


def test_a_core_part_needs_core_parts_only():
    core = {lesson.name for lesson in course.lessons() if lesson.core}
    assert core >= {"00_start_here", "02a_soft_look_up", "02b_which_score", "03_matrix_form"}
    firsts = {
        t.name: sources.read_source(t).cells[0].source for t in TARGETS.values() if t.kind != "solution"
    }
    assert reading.too_early(firsts, core) == []


WHOLE = {  # what a part should have -> how it loses that: (cell, old, new); some of sixteen
    "four predictions": (1, 'predict("d")\n', ""),
    "cells that the learner writes": (2, "turn:f", "turned:f"),
    "two misconceptions": (4, '**"Two."**', "Two."),
    "the minutes that it takes, from 13 to 45": (0, "about 13", "about 12"),
}


IDEA = {"says": "sums", "motive": "A sum is asked", "shown": "3 + 4", "action": 'predict("sum")'}


@pytest.mark.parametrize(
    "ideas, told",
    [
        ({"sum": IDEA}, []),
        ({}, ["0 ideas, at most 12"]),
        ({f"sum {i}": IDEA for i in range(13)}, ["13 ideas, at most 12"]),
        ({"sum": IDEA | {"shown": "3 + 5"}}, ["sum: no cell has the words of its number or picture"]),
    ],
)
def test_a_list_of_ideas_names_cells(ideas, told):
    cells = [new_markdown_cell("A sum\nis asked: $3 + 4$."), new_code_cell('predict("sum")')]
    assert reading.unfit(new_notebook(cells=cells), ideas) == told


@pytest.mark.parametrize(
    "block, told",
    [
        ("# [sum]\n# says = 3 +\n", "no TOML"),
        ('# [sum]\n# says = "sums"\n', "'sum' needs says, motive, shown and action"),
    ],
)
def test_a_list_of_ideas_that_cannot_be_read_is_named(tmp_path, block, told):
    path = tmp_path / "99a_x.py"
    path.write_text(f"# /// ideas\n{block}# ///\n\n# %%\nx = 1\n", encoding="utf-8")
    target = sources.Target("99a_x", path, path.with_suffix(".ipynb"))
    assert sources.cells_of(sources.source_text(target), path.name)[0].source == "x = 1"
    with pytest.raises(sources.BuildError, match=told):
        sources.ideas(target)


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


@pytest.mark.parametrize("what", WHOLE)
def test_what_a_part_misses_is_named(what):
    assert reading.missing(whole_part()) == []
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


def test_no_label_is_in_chinese_alone():
    """Where no font has the signs, or nobody reads them, a word says what is there."""
    for target in TARGETS.values():
        for label in labels(target.source.read_text(encoding="utf-8")):
            assert reading.count(reading.plain(label)) >= 1, (target.name, label)


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


TOO_MUCH = {
    "words": [new_markdown_cell("word " * (reading.WORDS[2] + 1))],
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


def test_both_texts_are_written_for_a_part_of_the_course(tmp_path, capsys):
    assert reading.main(["03", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "03_matrix_form.txt",
        "03_matrix_form_terms.txt",
    ]
    assert "03_matrix_form: " in capsys.readouterr().out
