"""Slides: what stands on them, what is said with them, and that nothing sticks out at 1280 x 720 in a browser
without a network."""

import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from lesson_lib.checks.engine import exercises
from lesson_lib.cli import slides
from lesson_lib.cli.slides import notes, outputs
from lesson_lib.cli.slides.deck import deck
from lesson_lib.cli.slides.text import Words
from tests.browser import driver
from tests.browser.conftest import why_not

EXERCISES, LESSONS = exercises(), slides.chosen()
ALT = "A small grey square."
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAAAAABX3VL4AAAADklEQVR4nGNoYGhgaAAABIsBAaJSkMUAAAAASUVORK5CYII="
OPENING = """# 03 · Matrix form: how?

**The question.** It was by hand. Why is that the same?

**After this lesson you can**

- turn the loop into products;
- hide tokens with a mask.

**Time** about 50 minutes. **You need** lesson 02."""
PREDICT = """> **Predict.** Which shape has it: (2, 3) or (3, 2)?
>
> <details><summary>Answer</summary>
> (2, 3): a row per query.
> </details>"""


def small(*cells) -> slides.Deck:
    """The deck of a lesson with these cells: a text is a text cell, (code, output) a code cell, a cell
    itself."""
    made = [new_markdown_cell(OPENING)]
    for cell in cells:
        if isinstance(cell, str):
            made.append(new_markdown_cell(cell))
        elif isinstance(cell, dict):
            made.append(cell)
        else:
            made.append(new_code_cell(cell[0], outputs=list(cell[1:])))
    return deck("03_matrix_form", new_notebook(cells=made))


def printed(text: str):
    return new_output("stream", text=text)


def picture(alt: str = ALT):
    return new_output(
        "display_data", data={"image/png": PNG, "text/plain": alt}, metadata={"image/png": {"alt": alt}}
    )


def shown(made: slides.Deck) -> list[str]:
    """What stands on each slide after the title, as HTML without the notes."""
    return [
        f"{s.part} " + " ".join(p.html for p in s.pieces) for section in made.sections for s in section.slides
    ]


# What stands on a slide


def test_the_title_slide_has_question_goals_and_minutes():
    made = small("## 1 · One\n\nA text.")
    assert slides.number_and_title(made) == ("03", "Matrix form: how?")
    assert made.question == "It was by hand. Why is that the same?"
    assert made.goals == ["turn the loop into products", "hide tokens with a mask"] and made.minutes == "50"


def test_a_section_is_a_column_and_a_part_a_slide_below():
    made = small("## 1 · One\n\nA text.\n\n### A part\n\nMore text.", "## 2 · Two\n\nThe end.")
    assert [s.heading for s in made.sections] == ["Opening", "1 · One", "2 · Two"]
    assert [slide.part for slide in made.sections[1].slides] == ["", "A part"]


def test_two_sentences_are_shown_and_all_are_said():
    text = "First it is. Second it is. Third it is. Fourth it is."
    (slide,) = small(f"## 1 · One\n\n{text}").sections[1].slides
    assert "Second" in slide.pieces[0].html and "Third" not in slide.pieces[0].html
    assert text in " ".join(slide.notes)


def test_an_answer_appears_on_the_next_key_press():
    (ask,) = [html for html in shown(small(f"## 1 · One\n\n{PREDICT}")) if "Which shape" in html]
    question, _, answer = ask.partition('<div class="answer fragment">')
    assert "a row per query" in answer and "a row per query" not in question


def test_the_question_is_repeated_where_it_is_answered():
    made = shown(small(f"## 1 · One\n\n{PREDICT}", ("print(x.shape)", printed("(2, 3)"))))
    assert "Which shape has it" in made[-1] and "(2, 3)</pre>" in made[-1] and "answer" not in made[-1]


def test_short_code_is_shown_and_long_code_only_on_demand():
    long = "\n".join(f"x{i} = {i}" for i in range(20))
    made = small("## 1 · One", ("y = 1\ny", printed("1")), "### A part", (long, printed("2")))
    first, second = made.sections[1].slides
    assert first.has("code") and not first.folded
    assert not second.has("code") and second.folded == [long]
    assert "popover" in slides.page(made)


def test_a_figure_keeps_its_alt_text_and_its_code_is_folded():
    made = small("## 1 · One\n\nLook:", ("draw(\n    1\n)", picture()))
    (slide,) = made.sections[1].slides
    assert f'alt="{ALT}"' in slide.pieces[1].html and slide.folded and not slide.has("code")


def test_a_wrong_idea_is_the_title_of_its_slide():
    made = small('## 1 · Three wrong ideas\n\n**"It is square."** Only sometimes.')
    assert made.sections[1].slides[0].part == "&quot;It is square.&quot;"


def test_verdicts_become_a_list_with_ticks():
    cell = ('verdict("a is b", a == b)\nverdict("b is c", b == c)', printed("a is b: True\nb is c: True"))
    made = shown(small("## 1 · One\n\nSee.", cell))[0]
    assert "<li>a is b</li>" in made and "True" not in made and "verdict(" not in made


def test_a_claim_hides_its_verdict_first():
    html = (
        "<p><b>✗ x-1</b> (S0) <q>It is so</q><br><b>Corrected.</b> It is not.</p><ul><li>found: no</li></ul>"
    )
    cell = ("claim('x-1', {})", new_output("execute_result", data={"text/html": html, "text/plain": "x"}))
    (slide,) = small("## 1 · Claims", cell).sections[1].slides
    assert 'verdict corrected fragment"><b>✗</b> <b>Corrected.</b> It is not.' in slide.pieces[0].html
    assert "found: no" in " ".join(slide.notes)


def test_a_claim_s_own_sentence_stands_beside_it_and_not_with_the_verdict():
    html = '<p><b>– x-1</b> (S0) <q>It is so</q><br><q lang="zh">是</q><br>it is<br><b>Unsaid.</b> Code.</p>'
    cell = ("claim('x-1', {})", new_output("execute_result", data={"text/html": html, "text/plain": "x"}))
    (slide,) = small("## 1 · Claims", cell).sections[1].slides
    said, verdict = slide.pieces[0].html.split('class="verdict')
    assert '<q lang="zh">是</q>' in said and "it is" in said and "是" not in verdict
    assert "<b>–</b> <b>Unsaid.</b> Code." in verdict


def test_a_long_table_is_dealt_out_evenly_with_its_header_on_each_slide():
    rows = "".join(f"<tr><td>row {i}</td><td>{'word ' * 12}</td></tr>" for i in range(40))
    html = f"<table><caption>All</caption><tr><th>name</th><th>text</th></tr>{rows}</table>"
    cell = ("table()", new_output("execute_result", data={"text/html": html, "text/plain": "x"}))
    made = [s for s in small("## 1 · One\n\nSee:", cell).sections[1].slides if s.has("table")]
    counts = [s.pieces[-1].html.count("<tr>") - 1 for s in made]
    assert sum(counts) == 40 and len(made) > 1 and max(counts) - min(counts) <= 2
    assert all("<th>name</th>" in s.pieces[-1].html and s.part == "All" for s in made)


def test_a_table_with_a_title_of_its_own_names_its_slide_and_no_later_one():
    tables = "".join(
        f"<table><caption>{name}</caption><tr><th>name</th></tr><tr><td>x</td></tr></table>"
        for name in ("First", "Second")
    )
    cell = ("tables()", new_output("execute_result", data={"text/html": tables, "text/plain": "x"}))
    made = small("## 1 · One\n\n### A part\n\nSee:", cell, "- one\n- two\n").sections[1].slides
    assert [s.part for s in made if s.has("table")] == ["First", "Second"]
    assert [s.part for s in made if s.has("list")] == ["A part"]
    alone = small("## 1 · One\n\n### A part\n\nSee:", (cell[0], new_output("execute_result", data={
        "text/html": tables[: len(tables) // 2 - 1], "text/plain": "x"}))).sections[1].slides  # fmt: skip
    assert [s.part for s in alone if s.has("table")] == ["A part"]


def test_no_slide_is_empty_and_a_heading_never_stands_alone():
    made = small("## 1 · One", "### A part", "### Another\n\nText.", "## 2 · Two")
    assert all(slide.pieces for section in made.sections for slide in section.slides)


@pytest.mark.parametrize("path", LESSONS, ids=lambda p: p.stem)
def test_every_lesson_fits_by_estimate(path):
    for section in slides.read(path).sections:
        for slide in section.slides:
            assert slide.pieces, f"{section.heading}: an empty slide"
            assert slide.height <= outputs.HEIGHT + 60, (
                f"{section.heading} / {slide.part}: {slide.height:.0f}"
            )


def test_formulas_and_code_are_never_cut():
    words = Words()
    (block,) = words.blocks("It is $a. B$ and `c. D`. Then more. And more.")
    assert (
        words.html(words.short(block.text, 1)) == 'It is <span class="tex">a. B</span> and <code>c. D</code>.'
    )


def test_a_number_at_the_start_of_a_line_is_no_list():
    assert [b.kind for b in Words().blocks("It is in section\n1. Then it goes on.")] == ["text"]


# What is said

GUIDE = """# 03 · Matrix form: for the instructor
## Minutes
| section | minutes | exercises | may be cut |
|---|---|---|---|
| Opening | 5 | | no |
| 1 · One | 9 | `learned_numbers` | no |
| **together** | 14 | | |
## Prompts
### 1 · One
- **Ask:** How many
  numbers?
- **Answer:** 36, as $6^2$.
- **If nobody answers:** How many rows?
"""


def test_notes_have_minutes_questions_and_wrong_answers():
    notebook = new_notebook(cells=[new_markdown_cell(OPENING), new_markdown_cell("## 1 · One\n\nText.")])
    made = deck("03_matrix_form", notebook, notes.guide(GUIDE))
    said = " ".join(made.sections[1].slides[0].notes)
    assert "<b>Minutes:</b> 5" in " ".join(made.opening_notes) and "<b>Minutes:</b> 9" in said
    assert (
        "How many numbers?" in said
        and '36, as <span class="tex">6^2</span>' in said
        and "How many rows?" in said
    )
    assert "Wrong answers to expect" in said and "W_v is missing: values have a matrix of their own" in said


def test_without_a_guide_there_are_fewer_notes_and_no_error(tmp_path):
    assert notes.read_guide(tmp_path, "03_matrix_form") == notes.Guide()
    made = small("## 1 · One\n\nText.")
    assert "50 for the whole lesson" in " ".join(made.opening_notes)
    assert "Wrong answers to expect" in " ".join(made.sections[-1].slides[0].notes)


def test_a_prediction_waits_for_its_answer_and_tells_the_speaker_what_is_wrong():
    made = small(new_code_cell('predict("unscaled_picture")', outputs=[printed("PREDICT  unscaled_picture")]))
    (slide,) = made.sections[-1].slides
    (piece,) = slide.pieces
    assert "Predict" in piece.html and "a) every cell about 1/8" in piece.html
    question, answer = piece.html.split("answer fragment")
    assert "picks one key" in answer and "picks one key" not in question
    said = " ".join(slide.notes)
    assert "show of hands" in said and "no common favourite" in said and "PREDICT" not in piece.html


def test_a_number_to_predict_is_written_down():
    made = small(new_code_cell('predict("score_ratio")'))
    (slide,) = made.sections[-1].slides
    assert "7.3891 = exp(12) / exp(10)" in slide.pieces[0].html.replace("<strong>", "")
    assert "writes a number" in " ".join(slide.notes)


def test_a_turn_is_a_question_with_minutes_solution_and_wrong_answers():
    stub = new_code_cell(
        "def stable_weights(scores):\n    return ...", metadata={"tags": ["turn:stable_weights"]}
    )
    tags = {"tags": ["exercise:stable_weights"]}
    judged = new_code_cell("check(stable_weights)", metadata=tags, outputs=[printed("NOT ATTEMPTED YET")])
    made = small(stub, judged)
    pieces = [piece for slide in made.sections[-1].slides for piece in slide.pieces]
    said = " ".join(note for slide in made.sections[-1].slides for note in slide.notes)
    assert any("return ..." in re.sub("<.*?>", "", piece.html) for piece in pieces)
    assert any("Your turn" in piece.html for piece in pieces) and "NOT ATTEMPTED" not in str(pieces)
    for words in ("8 minutes", "largest = scores.amax", "exp is missing"):
        assert words in said


def test_an_exercise_that_its_part_asks_has_its_wrong_answers_there_alone():
    table = "## Minutes\n| section | minutes | exercises |\n|---|---|---|\n| 1 · One | 9 | {} |"
    tags = {"tags": ["exercise:stable_weights"]}
    cells = [new_markdown_cell(OPENING), new_markdown_cell("## 1 · One\n\nText.")]
    cells += [new_code_cell("check(stable_weights)", metadata=tags)]
    guide = notes.guide(table.format("stable_weights, scaled_attention"))
    (_, section) = deck("02_scoring", new_notebook(cells=cells), guide).sections
    said = " ".join(note for slide in section.slides for note in slide.notes)
    assert said.count("exp is missing") == 1
    own, prepared = (f"<i>{EXERCISES[n].title}</i>" for n in ("stable_weights", "scaled_attention"))
    assert own not in said and prepared in said


def test_a_warm_up_has_its_words():
    made = small(
        new_code_cell("from lesson_lib.checks import warm_up\n\nwarm_up()", outputs=[printed("Nothing")])
    )
    (slide,) = made.sections[-1].slides
    assert "parts before" in slide.pieces[0].html and "review()" in slide.notes[0]


def test_a_broken_guide_is_read_as_far_as_it_goes():
    assert notes.guide("## Minutes\nnothing\n## Prompts\n- **Answer:** without a question\n") == notes.Guide()


# The command


def test_every_part_has_a_deck_and_a_chapter_is_chosen_by_its_number(tmp_path):
    folder = tmp_path / "notebooks"
    names = ["00_start_here", "02a_soft_look_up", "02b_which_score", "03_matrix_form"]
    others = ["glossary", "evidence/02_scoring_evidence", "exercises/02_scoring", "solutions/02_scoring"]
    for name in names + others:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.ipynb").write_text("{}")
    assert [path.stem for path in slides.chosen(root=tmp_path)] == names
    assert [path.stem for path in slides.chosen(["02"], root=tmp_path)] == names[1:3]
    assert [path.stem for path in slides.chosen(["02b", "03"], root=tmp_path)] == names[2:]
    for other in ("glossary", "02_scoring", "02c"):
        with pytest.raises(slides.SlidesError, match="there are 00_start_here, 02a_soft_look_up"):
            slides.chosen([other], root=tmp_path)


def test_a_deck_reads_its_own_part_of_the_chapters_guide(tmp_path):
    table = "| section | minutes | exercises |\n|---|---|---|\n| Opening | {} | x |\n"
    form = (
        "## Minutes: {0}\n\n"
        + table.replace("{}", "{1}")
        + "\n## Prompts: {0}\n### Opening\n- **Ask:** {0}?\n"
    )
    text = form.format("02a_soft_look_up", 5) + form.format("02b_which_score", 7)
    (tmp_path / "02_scoring.md").write_text(text)
    one, two = (notes.read_guide(tmp_path, part) for part in ("02a_soft_look_up", "02b_which_score"))
    assert (one.minutes, two.minutes) == ({"Opening": "5"}, {"Opening": "7"})
    assert [p.ask for p in one.prompts["Opening"]] == ["02a_soft_look_up?"]
    none = notes.read_guide(tmp_path, "02c_scale")
    assert (none.minutes, none.prompts) == ({}, {}), "a part that the guide does not name reads nothing"


def test_wrong_answers_of_another_part_s_exercises_are_not_expected():
    """What no table names belongs to the last section of each deck; what the other part's names to none."""
    text = "\n".join(
        f"## Minutes: {part}\n| section | minutes | exercises |\n|---|---|---|\n| {row} | 5 | {name} |"
        for part, row, name in (
            ("02a_soft_look_up", "1 · One", "stable_weights"),
            ("02b_which_score", "1 · Other", "scaled_attention"),
        )
    )
    notebook = new_notebook(cells=[new_markdown_cell(OPENING), new_markdown_cell("## 1 · One\n\nText.")])
    said = {}
    for part in ("02a_soft_look_up", "02b_which_score"):
        made = deck(part, notebook, notes.guide(text, part))
        said[part] = " ".join(made.sections[-1].slides[0].notes)
    names = ("stable_weights", "scaled_attention", "score_ratio")
    own, other, free = (f"<i>{EXERCISES[name].title}</i>" for name in names)
    assert own in said["02a_soft_look_up"] and other not in said["02a_soft_look_up"]
    assert own not in said["02b_which_score"] and free in said["02a_soft_look_up"]


def test_the_index_is_in_the_course_s_order(tmp_path):
    for name in ("10_graph", "02b_which_score", "02a_soft_look_up", "glossary", "index"):
        (tmp_path / f"{name}.html").write_text(f"<title>{name}</title>")
    slides.write_index(tmp_path)
    found = re.findall(r'href="(\w+)\.html"', (tmp_path / "index.html").read_text())
    assert found == ["02a_soft_look_up", "02b_which_score", "10_graph"]


def test_names_that_fit_nothing_and_missing_packages_are_sentences(tmp_path, capsys, monkeypatch):
    assert slides.main(["99"], to=tmp_path) == 1
    assert "no built lesson is called '99'" in capsys.readouterr().err
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    with pytest.raises(slides.SlidesError, match="make setup-class"):
        slides.copy_assets(tmp_path, root=tmp_path)
    with pytest.raises(slides.SlidesError, match="make notebooks"):
        slides.chosen(root=tmp_path)
    (tmp_path / "broken.ipynb").write_text("{")
    with pytest.raises(slides.SlidesError, match="make notebooks"):
        slides.read(tmp_path / "broken.ipynb")


def test_nothing_that_is_written_names_another_host(built):
    for path in built.rglob("*.css"), built.glob("*.html"):
        for file in path:
            text = re.sub(r'data:[^"]*', "", file.read_text(encoding="utf-8"))
            loaded = re.findall(r'(?:src|<link[^>]*href)="([^"]*)"|url\(([^)]*)\)|@import', text)
            assert not [u for u in loaded if "//" in "".join(u)], file.name


# In a browser

# Goes through all slides of the page, with all fragments shown; returns what is wrong, a sentence each.
AUDIT = r"""(floor) => {
  const wrong = [];
  const hidden = (e) => e.closest("aside.notes, [popover]");
  const inside = (e) => e.closest(".katex") && !e.matches(".katex, .base");
  for (const target of Reveal.getSlides()) {
    const at = Reveal.getIndices(target);
    Reveal.slide(at.h, at.v || 0, 99);
    const slide = Reveal.getCurrentSlide();
    const name = `slide ${at.h}/${at.v || 0}`;
    const page = slide.getBoundingClientRect();
    const body = slide.querySelector(".body").getBoundingClientRect();
    for (const e of slide.querySelectorAll("*")) {
      if (hidden(e) || inside(e)) continue;
      const box = e.getBoundingClientRect();
      if (!box.width || !box.height) continue;
      const room = e.closest(".body") ? body : page;
      const what = `${name}: <${e.tagName.toLowerCase()} class="${e.className}"> ${(e.textContent || "").trim().slice(0, 40)}`;
      if (box.left < room.left - 2 || box.right > room.right + 2 || box.top < room.top - 2 || box.bottom > room.bottom + 2)
        wrong.push(`${what}: sticks out, ${[box.left, box.top, box.right, box.bottom].map(Math.round)} of ${[room.left, room.top, room.right, room.bottom].map(Math.round)}`);
      if (e.clientWidth && !e.closest(".katex") && (e.scrollWidth > e.clientWidth + 2 || e.matches(".body, pre") && e.scrollHeight > e.clientHeight + 2))
        wrong.push(`${what}: overflows by ${e.scrollWidth - e.clientWidth}, ${e.scrollHeight - e.clientHeight}`);
      const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || e.matches(".katex");
      const px = parseFloat(getComputedStyle(e).fontSize) * Reveal.getScale();
      if (own && !e.matches(".base") && px < (e.closest("pre, code") ? 16 : floor) - 0.01) wrong.push(`${what}: text of ${px} px`);
      if (e.matches("img") && !e.alt.trim()) wrong.push(`${what}: no alt text`);
      if (e.matches("img") && (!e.naturalWidth || Math.max(box.width / e.naturalWidth, box.height / 150) < 0.5)) wrong.push(`${what}: a picture of ${box.width} x ${box.height}`);
    }
  }
  for (const e of document.querySelectorAll(".katex-error")) wrong.push(`formula: ${e.title}`);
  for (const e of document.querySelectorAll(".tex:empty")) wrong.push("a formula that is not drawn");
  return wrong;
}"""  # noqa: E501


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The folder with the slides of all lessons."""
    folder = tmp_path_factory.mktemp("slides")
    assert slides.main(to=folder) == 0
    return folder


@pytest.fixture(scope="module")
def browser():
    """Chromium, headless. Without one these tests are skipped with a line; in CI they fail, unless
    LESSON_BROWSER=skip."""
    import os

    if reason := why_not():
        if os.environ.get("CI") and os.environ.get("LESSON_BROWSER") != "skip":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    with driver.chromium() as started:
        yield started


def audited(browser, path: Path) -> list[str]:
    """What is wrong with a deck, a sentence each: what sticks out, small text, missing alt text, errors,
    requests."""
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    page, wrong = context.new_page(), []
    page.on("console", lambda m: wrong.append(f"console: {m.text}") if m.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on(
        "request",
        lambda r: (
            None if r.url.startswith(("file:", "data:", "blob:")) else wrong.append(f"request: {r.url}")
        ),
    )
    page.goto(path.as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady() && document.fonts.status === 'loaded'")
    wrong += page.evaluate(AUDIT, 20)
    context.close()
    return wrong


@pytest.mark.parametrize("path", LESSONS, ids=lambda p: p.stem)
def test_no_slide_overflows_and_nothing_is_missing(path, built, browser):
    wrong = audited(browser, built / f"{path.stem}.html")
    assert not wrong, "\n".join(wrong[:20])


@pytest.mark.parametrize("path", LESSONS, ids=lambda p: p.stem)
def test_every_deck_has_notes_with_minutes_and_wrong_answers(path, built):
    html = (built / f"{path.stem}.html").read_text(encoding="utf-8")
    said = " ".join(re.findall(r'<aside class="notes">(.*?)</aside>', html, re.S))
    assert "<b>Minutes:</b>" in said
    guide = notes.read_guide(path.parent / "instructor", path.stem)
    if any(guide.exercises.values()):
        assert "Wrong answers to expect" in said
    headings = {notes.plain_heading(s.heading) for s in slides.read(path).sections}
    assert set(guide.minutes) <= headings and set(guide.prompts) <= headings  # or their notes are lost
    asked = [Words().inline(prompt.ask) for prompts in guide.prompts.values() for prompt in prompts]
    assert asked and [question for question in asked if f"<b>Ask:</b> {question}" not in said] == []


PLANTED = {
    "sticks out": '<p style="font-size: 90px; flex: none">' + "A planted text. " * 40 + "</p>",
    "overflows by": '<pre style="white-space: pre; overflow: hidden">' + "x" * 300 + "</pre>",
    "text of 12": '<p style="font-size: 12px">Too small.</p>',
    "no alt text": f'<img src="data:image/png;base64,{PNG}" width="200" height="200">',
    "formula": '<span class="tex">\\frac{1</span>',
    "request": '<img src="http://127.0.0.1:9/x.png" alt="From elsewhere.">',
}


@pytest.mark.parametrize("reported, planted", PLANTED.items(), ids=PLANTED)
def test_what_is_planted_is_reported(reported, planted, built, browser):
    made = small("## 1 · One\n\nA text.", f"## 2 · Two\n\n{PREDICT}")
    clean, dirty = built / "clean.htm", built / "dirty.htm"
    clean.write_text(slides.page(made), encoding="utf-8")
    assert audited(browser, clean) == []
    made.sections[2].slides[0].pieces[0].html += planted
    dirty.write_text(slides.page(made), encoding="utf-8")
    assert any(reported in line for line in audited(browser, dirty))


def test_answers_wait_for_a_key_and_the_speaker_sees_the_notes(built, browser):
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    page = context.new_page()
    page.goto((built / "03_matrix_form.html").as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady()")
    asked = page.evaluate(
        "() => { const s = Reveal.getSlides().find((s) => s.querySelector('.answer')); const i ="
        " Reveal.getIndices(s); Reveal.slide(i.h, i.v || 0, -1); return i; }"
    )
    answer = page.locator("section.present:not(.stack) .answer")
    assert answer.evaluate("e => getComputedStyle(e).visibility") == "hidden"
    page.keyboard.press("Space")
    assert answer.evaluate("e => getComputedStyle(e).visibility") == "visible"
    assert page.evaluate("() => Reveal.getIndices().h") == asked["h"]
    page.evaluate("() => Reveal.slide(0, 0)")
    with page.expect_popup() as opened:
        page.keyboard.press("s")
    speaker = opened.value
    speaker.wait_for_selector(".speaker-controls-notes .value:has-text('Minutes')")
    context.close()


def test_code_is_shown_on_demand(built, browser):
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    page = context.new_page()
    page.goto((built / "03_matrix_form.html").as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady()")
    page.evaluate(
        "() => { const i = Reveal.getIndices(document.querySelector('.more').closest('section'));"
        " Reveal.slide(i.h, i.v || 0); }"
    )
    assert page.locator(":popover-open").count() == 0
    page.keyboard.press("c")
    assert page.locator(":popover-open").is_visible()
    page.keyboard.press("c")
    assert page.locator(":popover-open").count() == 0
    context.close()


def test_the_index_lists_every_deck(built):
    text = (built / "index.html").read_text(encoding="utf-8")
    assert all(f'href="{path.stem}.html"' in text for path in LESSONS)
    assert nbformat.read(LESSONS[0], 4).cells  # the lessons themselves were only read
