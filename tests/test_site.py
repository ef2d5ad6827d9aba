"""The site's sources: links, anchors, folds, pictures; no Sphinx needed. Its pages are driven in
tests/browser/test_site.py."""

import base64
import math
import re
import shutil
import subprocess
import zipfile

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from lesson_lib.checks.engine import exercises
from lesson_lib.cli import kinds, site
from lesson_lib.cli.site import on_paper, pages

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAAAAABX3VL4AAAADklEQVR4nGNsYGBiYAAAApIAhPd8o1gAAAAASUVORK5CYII="


@pytest.fixture
def source(tmp_path):
    (tmp_path / "_extra" / "pictures").mkdir(parents=True)
    return tmp_path


def page_of(source, *cells, name="02a_soft_look_up", wanted=(), states=()):
    """The cells of a page but for its first text and how to run it."""
    every = [new_markdown_cell("# Title"), *cells]
    laid = site.Layout(["02a_soft_look_up", "02b_which_score", "03_matrix_form"], states=dict(states))
    _, *made, run_it = site.of_notebook(new_notebook(cells=every), name, set(wanted), source, laid).cells
    assert f'notebooks/{name}.ipynb" download' in run_it.source
    return made


def test_the_way_is_the_readmes_with_every_part_and_its_minutes():
    way = site.lessons()
    parts = kinds.built(site.ROOT, ("part",))
    assert {one.name for one in way} == {*parts, "00_start_here", "14_capstone"}
    assert all(one.minutes >= 10 for one in way) and 12 <= sum(one.core for one in way) < len(way)
    (first,) = (one for one in way if one.number == "02a")
    assert first.core and first.asks == "How much do I listen to each of three answers?"


def test_a_picture_is_a_file_with_its_alt_text(source):
    cell = new_code_cell("draw()", outputs=[new_output(
        "display_data", data={"image/png": PNG, "text/plain": "A <square>."},
        metadata={"image/png": {"alt": "A <square>.", "width": 2}},
    )])  # fmt: skip
    (cell,) = page_of(source, cell, name="evidence/02_scoring_evidence")
    made = cell.outputs[0].data["text/html"]
    (file,) = (source / "_extra" / "pictures").iterdir()
    assert file.read_bytes() == base64.b64decode(PNG)
    assert (
        f'src="../pictures/{file.name}"' in made and 'alt="A &lt;square&gt;."' in made and 'width="2"' in made
    )
    assert "aspect-ratio: 2 / 2" in made, "room for it before it is loaded"


def test_a_link_to_a_cell_leads_to_its_anchor(source):
    said = "<a href='evidence/02_scoring_evidence.ipynb#cell-id=abc'>e</a>"
    said += ' <a href="03_matrix_form.ipynb">m</a>'
    linking = new_code_cell(
        "x", outputs=[new_output("execute_result", data={"text/html": said, "text/plain": ""})]
    )
    target = new_markdown_cell("Here.", id="abc")
    cells = page_of(source, linking, target, wanted=["abc"])
    assert cells[0].outputs[0].data["text/html"] == (
        "<a href='evidence/02_scoring_evidence.html#abc'>e</a> <a href=\"03_matrix_form.html\">m</a>"
    )
    assert [c.source for c in cells[1:]] == ['<span id="abc"></span>', "Here."]


def test_what_a_cell_asks_stands_without_its_code_and_imports_are_folded(source):
    asked = new_code_cell('predict("ann_share")', outputs=[new_output("stream", text="PREDICT")])
    setup = new_code_cell("import torch\n\nwarm_up()", outputs=[new_output("stream", text="Nothing returns")])
    code = new_code_cell("x = 1", metadata={"tags": ["slide"]})
    cells = page_of(source, asked, setup, code)
    assert [cell.metadata.tags for cell in cells] == [["remove-input"], ["hide-input"], ["slide"]]
    assert cells[0].outputs and not cells[1].outputs, "in a page nothing returns after days"


def test_a_live_drawing_keeps_its_picture_for_pages_without_scripts(source):
    still = new_output("display_data", data={"image/png": PNG, "text/plain": "Bars."})
    (cell,) = page_of(
        source, new_code_cell('SoftmaxExplorer((1.0, 3.0), names=("Ann", "Ben"))', outputs=[still])
    )
    made = cell.outputs[0].data["text/html"]
    assert 'data-live="listen" data-names="Ann,Ben" data-scores="1.0,3.0"' in made and 'alt="Bars."' in made
    (part,) = (site.ROOT / "notebooks").glob("02a_*.ipynb")
    assert pages.LIVE.search(part.read_text("utf-8").replace('\\"', '"'))


def test_a_recording_plays_where_its_explorer_was_and_keeps_its_picture(source):
    still = new_output("display_data", data={"image/png": PNG, "text/plain": "Step 7."})
    told = new_output("stream", text="printed\n")
    code = "x = 1\nSevenStepsExplorer()"
    cell = new_code_cell(code, outputs=[told, still], id="film")
    states = {"film": ["02a.hash.film-0.js"]}
    (made,) = page_of(source, cell, name="evidence/02_scoring_evidence", states=states)
    assert made.outputs[0].text == "printed\n" and made.metadata.tags == ["hide-input"]
    place = made.outputs[1].data["text/html"]
    assert place.startswith(
        '<div data-states="film-0" data-src="../states/02a.hash.film-0.js"><div class="pic'
    )
    assert 'alt="Step 7."' in place
    alone = new_code_cell("figures.FilmExplorer(a, b=1)", outputs=[still], id="film")
    (made,) = page_of(source, alone, states=states)
    assert made.metadata.tags == ["remove-input"], "a call alone says nothing to a reader"


def test_hints_and_a_solution_stand_where_a_check_stood(source):
    turn = new_code_cell("def soft_look_up(query, key, value):\n    return ...")
    check = new_code_cell("check(soft_look_up)", metadata={"tags": ["exercise:soft_look_up"]}, id="c1")
    hinting = new_code_cell('# hint("soft_look_up")  # again for the next\n# solution("soft_look_up")')
    code, card, folds, *rest = page_of(source, turn, check, hinting, new_code_cell("progress()"))
    assert "return ..." in code.source and rest == []
    exercise = exercises()["soft_look_up"]
    assert folds.source.count("<details>") == 2 and folds.source.count("<li>") == len(exercise.hints) == 3
    for part in (
        "Which product of (n, d) and (m, d)",
        "```python\ndef soft_look_up",
        "Take paper",
        "Asked: ",
    ):
        assert part in folds.source
    assert "data-question='soft_look_up_on_paper'" in card.outputs[0].data["text/html"]
    assert "NOT ATTEMPTED" not in folds.source


def test_a_short_answer_has_a_field_in_the_page(source):
    blank = new_code_cell("score_ratio = ...")
    check = new_code_cell('check(score_ratio, "score_ratio")', metadata={"tags": ["exercise:score_ratio"]})
    card, folds = page_of(source, blank, check, name="exercises/02_scoring")
    (output,) = card.outputs
    assert "data-kind='number'" in output.data["text/html"] and "<style>" not in output.data["text/html"]
    assert card.metadata.tags == ["remove-input"] and "Put a = 12 and b = 10" in folds.source


def test_every_exercise_has_its_place_in_a_page(source):
    """Of each kind: what is asked, and a solution that reads."""
    for exercise in exercises().values():
        if not exercise.prediction:
            made = pages._turn(exercise, "c1")
            assert "A solution" in made[-1].source, exercise.name
            if isinstance(exercise, (pages.Choice, pages.Number)):
                assert len(made) == 2, exercise.name


def test_a_number_on_paper_is_what_the_function_gives_and_tells_its_mistakes_apart():
    """Of all functions: right and wrong numbers are computed by the solution and by its known mistakes."""
    asked = {
        name: on_paper.asked_on_paper(e) for name, e in exercises().items() if isinstance(e, pages.Write)
    }
    assert sum(question is not None for question in asked.values()) > 0.5 * len(asked)
    for name, question in asked.items():
        for number in question.slips.values() if question else ():
            assert question.judge(float(number), print).state == "failed", (name, number)
        assert question is None or question.judge(question.answer, print).state == "passed", name
    by_hand = (
        10 * math.exp(1) + 20 * math.exp(3) + 40 * math.exp(5)
    )  # the scores of its inputs are 1, 3 and 5
    assert asked["soft_look_up"].value == pytest.approx(by_hand / sum(map(math.exp, (1, 3, 5))), rel=1e-4)


def test_a_page_leaves_out_what_only_a_run_needs(source):
    seeded = new_code_cell("_ = torch.manual_seed(0)\nx = 1\nassert quick() or x > 0")
    proof = new_code_cell("right = x\nassert right", metadata={"tags": ["proof"]})
    drawn = new_code_cell("figures.lines(x)", outputs=[new_output("stream", text="a picture")])
    code, picture = page_of(source, seeded, proof, drawn)
    assert code.source == "x = 1" and picture.metadata.tags == ["remove-input"]


def test_every_page_that_stands_alone_has_what_its_capitals_name(source):
    shows = new_code_cell(
        "SevenStepsExplorer()\ntranslator_figures.losses\nright on unseen days",
        outputs=[new_output("display_data", data={"text/html": "<i>drawn</i>"})],
    )
    made = {
        name: new_notebook(cells=[new_markdown_cell("# T"), shows])
        for name in ("02a_soft_look_up", "06b_translator")
    }
    written = site.front.written(site.ROOT, made, book=True)
    assert {"index", "seven_steps", "six_guesses", "the_cheat", "claims_story"} == set(written)
    for name, text in written.items():
        assert not re.search(r"^[A-Z]{3,} ?|WHERE|COUNT", text, re.M), name
    assert "<i>drawn</i>" in written["index"] and 'href="02a_soft_look_up.html"' in written["index"]
    assert written["six_guesses"].count("data-question=") == 6
    with pytest.raises(ValueError, match="no cell of 02a_soft_look_up shows something"):
        site.front.written(site.ROOT, {}, book=False)


def test_the_course_is_one_zip_of_what_git_has(tmp_path):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "kept.txt").write_text("kept", "utf-8")
    (tmp_path / "other.txt").write_text("other", "utf-8")
    subprocess.run(["git", "add", "kept.txt"], cwd=tmp_path, check=True)
    assert site.zip_of(tmp_path, tmp_path / "course.zip")
    with zipfile.ZipFile(tmp_path / "course.zip") as file:
        assert file.namelist() == ["attention-course/kept.txt"]
    (tmp_path / "empty").mkdir()
    shutil.rmtree(tmp_path / ".git")
    assert not site.zip_of(tmp_path / "empty", tmp_path / "none.zip") and not (tmp_path / "none.zip").exists()


def test_the_guide_keeps_links_that_stay_and_shows_no_test_before_its_day(source):
    pages = site._guide(site.ROOT, source)
    assert pages[0] == "instructor/README" and "instructor/plans/half_day" in pages
    assert not [name for name in pages if "test_" in name]
    text = (source / "instructor" / "plans" / "half_day.md").read_text("utf-8")
    assert "[02a](../02_scoring.md)" in text and "[worksheet](../room/worksheet.md)" in text
    for path in source.glob("instructor/**/*.md"):
        for where in re.findall(r"(?<!!)\[[^\]]*\]\(([^)\s#]+)", path.read_text("utf-8")):
            if not where.startswith("http"):
                inside = where.endswith(".ipynb") or (path.parent / where).resolve().exists()
                assert inside, f"{path.name}: {where}"


def test_without_its_tools_the_site_says_what_to_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(site, "TOOLS", tmp_path / ".venv-site")
    assert site.main(to=tmp_path / "site") == 1
    assert ".venv-site is missing or not complete; run: make site" in capsys.readouterr().out
