"""A number in a sentence is what a cell above prints: it is marked, and the build fails where they part."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from lesson_lib.cli import build, kinds, quoted, sources

PARTS = [t for t in sources.targets(among=("part", "page")) if kinds.number_of(t.name) != ""]


def printed(text, code="show()"):
    return new_code_cell(code, outputs=[new_output("stream", text=text)])


def shown(**data):
    mimes = {name.replace("_", "/"): text for name, text in data.items()}
    return new_code_cell("show()", outputs=[new_output("display_data", data=mimes)])


def told(text, *cells):
    """Of a text behind cells: faults, and what was forgotten."""
    every = [*cells, new_markdown_cell(text)]
    texts = [cell.source for cell in every]
    return quoted.faults(texts, every), quoted.forgotten(texts, every)


HOLDS = [
    ("mostly Cy's, «37.2».", printed("[37.1834]")),
    ("«66.5»\u00a0%, «67» %", printed("share 0.6652")),
    ("«66.5»%, or $«66.5»\\%$", printed("66.52 %")),
    ("«.95» and «0.95»", printed("0.9451\n0.95")),
    ("falls to «−4.94»", printed("ahead = -4.9359")),
    ("some «186,000» tokens", printed("n = 185,611 tokens")),
    ("$«1{,}024»$ numbers", printed("1024")),
    ("of «75» rows", printed("-", code="assert counts == [75, 16]")),
    ("within «0.01»", printed("-", code="assert_close(x, y, atol=0.01)")),
    ("stopped at «95» %", shown(text_html="<p><em>Stopped at 95 %.</em></p>", text_plain="")),
    ("«2.5» is the mean", shown(text_html="<table><tr><td>2.4958</td></tr></table>")),
    ("«7»", shown(text_plain="7")),
]
FAILS = {
    "another number": ("it is «37.2»", printed("36.9")),
    "no number any more": ("it is «37.2»", printed("done")),
    "nothing is printed before": ("it is «37.2»",),
    "another sign": ("falls to «−4.94»", printed("4.94")),
    "one digit more than is printed": ("it is «37.24»", printed("37.2")),
    "no percentage": ("«66.5» of them", printed("0.665")),
    "in a picture's alt text": ("it is «37.2»", shown(image_png="", text_plain="37.2")),
    "on a card": ("it is «37.2»", shown(text_html="<div class='ll-ask'>37.2</div>", text_plain="37.2")),
    "in code": ("it is «37.2»", printed("done", code="x = 37.2")),
    "too far above": ("it is «37.2»", printed("37.2"), *[printed("1")] * quoted.NEAREST),
    "a mark without a number": ("it is «large»", printed("37.2")),
    "a mark that is not closed": ("it is «37.2", printed("38")),
}


@pytest.mark.parametrize("text, cell", HOLDS, ids=[text for text, _ in HOLDS])
def test_a_number_holds_where_a_cell_above_says_it(text, cell):
    assert told(text, cell) == ([], [])


@pytest.mark.parametrize("case", FAILS.values(), ids=FAILS)
def test_a_number_that_no_cell_says_is_named(case):
    ((fault,), _) = told(*case)
    assert quoted.plain(case[0]) in fault and "correct the sentence" in fault


def test_a_bound_number_may_be_repeated_further_below():
    far = [printed("1")] * quoted.NEAREST
    assert told("so «37.2»", printed("37.2"), new_markdown_cell("it is «37.2»."), *far) == ([], [])


@pytest.mark.parametrize(
    "text", ["It is 37.2.", "Some 37.2 % of it.", "$y$ is $37.2$", "| 37.2 |", "from −37.2"]
)
def test_a_number_that_was_forgotten_is_named(text):
    _, (line,) = told(text, printed("-37.1834\n"))
    assert "«37.2»" in line and "‹37.2›" in line


@pytest.mark.parametrize(
    "text",
    ["«37.2»", "‹37.2›", "`37.2`", "$30 + 7.2 = 37.2$", "arXiv:1037.2", "[a](37.2)", "37", "1.0", "38.1"],
)
def test_what_is_no_quote_needs_no_mark(text):
    assert told(text, printed("37.1834 1.0 8 %\n")) == ([], [])


@pytest.mark.parametrize("target", PARTS, ids=lambda target: target.name)
def test_no_number_of_a_part_was_forgotten(target):
    assert quoted.forgotten(build.marked_texts(target), nbformat.read(target.path, 4).cells) == []


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A repository whose one cell prints what `said` holds, without a kernel."""

    def execute(notebook, target):
        notebook.cells[0].outputs = [new_output("stream", text=said[0])]

    monkeypatch.setattr(build, "execute", execute)
    source = tmp_path / "notebooks" / "source" / "02a_x.py"
    source.parent.mkdir(parents=True)
    source.write_text("# %%\nprint(x)\n\n# %% [markdown]\n# It is «37.2». Is it?\n", encoding="utf-8")
    said = ["37.1834\n"]
    return tmp_path, said


def test_a_notebook_holds_no_marks_and_its_ids_do_not_know_them(course):
    root, _ = course
    assert build.main(root=root) == 0 == build.check(root=root)
    source, path = root / "notebooks" / "source" / "02a_x.py", root / "notebooks" / "02a_x.ipynb"
    assert "It is 37.2. Is it?" in path.read_text(encoding="utf-8")
    source.write_text(quoted.plain(source.read_text(encoding="utf-8")), encoding="utf-8")
    assert build.check(root=root) == 0


def test_a_build_fails_where_the_number_changed_and_leaves_the_old_notebook(course, capsys):
    root, said = course
    assert build.main(root=root) == 0
    said[0] = "36.9\n"
    assert build.main(root=root) == 1
    assert (
        "02a_x: NOT BUILT. 02a_x: the cells above print no '37.2' for 'It is 37.2.'"
        in capsys.readouterr().out
    )
    assert build.check(root=root) == 0


def test_check_reads_the_stored_outputs(course, capsys):
    root, _ = course
    assert build.main(root=root) == 0
    path = root / "notebooks" / "02a_x.ipynb"
    path.write_text(path.read_text(encoding="utf-8").replace("37.1834", "36.9"), encoding="utf-8")
    assert build.check(root=root) == 1
    assert "02a_x.ipynb: the cells above print no '37.2'" in capsys.readouterr().out
