"""Slides: what stands on them, what is said with them, and that nothing sticks out at 1280 x 720 in a browser
without a network."""

import base64
import io
import itertools
import re
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from lesson_lib.checks.engine import exercises
from lesson_lib.cli import plans, room_questions, slides
from lesson_lib.cli.slides import notes, outputs, session
from lesson_lib.cli.slides.deck import deck
from lesson_lib.cli.slides.slide import WORDS, Deck, Slide, words
from lesson_lib.cli.slides.text import Words
from tests.browser import driver
from tests.browser.conftest import why_not

EXERCISES, LESSONS = exercises(), slides.chosen()
ALT = "A small grey square."
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAAAAABX3VL4AAAADklEQVR4nGNsYGBiYAAAApIAhPd8o1gAAAAASUVORK5CYII="
OPENING = """# 03 · How does it become products?

Eight guests meet in random order.

**Afterwards you can** turn the loop into products; hide tokens with a mask.

**Time** about 45 minutes. **You need** part 02a.

<details><summary>中文摘要 · Chinese</summary>
摘要。
</details>"""


def small(*cells, guide: notes.Guide | None = None) -> Deck:
    """The deck of a part with these cells: a text is a text cell, (code, output) a code cell, a cell
    itself."""
    made = [new_markdown_cell(OPENING)]
    for cell in cells:
        if isinstance(cell, str):
            made.append(new_markdown_cell(cell))
        elif isinstance(cell, dict):
            made.append(cell)
        else:
            made.append(new_code_cell(cell[0], outputs=list(cell[1:])))
    return deck("03_matrix_form", new_notebook(cells=made), guide)


def printed(text: str):
    return new_output("stream", text=text)


def picture(alt: str = ALT, png: str = PNG, **meta):
    return new_output(
        "display_data",
        data={"image/png": png, "text/plain": alt},
        metadata={"image/png": {"alt": alt, **meta}},
    )


def shown(slide: Slide) -> str:
    """What stands on a slide, as text."""
    return " ".join(re.sub("<.*?>", " ", " ".join(piece.html for piece in slide.pieces)).split())


# What stands on a slide


def test_the_title_slide_has_the_story_the_goals_and_the_minutes():
    made = small("## 1 · One", ("y", printed("1")))
    assert slides.number_and_title(made) == ("03", "How does it become products?")
    assert "Eight guests" in made.story[0].html and len(made.story) == 1
    assert made.goals == ["turn the loop into products", "hide tokens with a mask"] and made.minutes == "45"


def test_each_cell_that_shows_something_is_a_slide_and_text_is_said_to_it():
    cells = ["## 1 · One\n\nFirst it is. Then more.", ("x = 2\nx", printed("2")), "It is two. Now another:"]
    made = small(*cells, ("draw()", picture()))
    (section,) = made.sections
    first, second = section.slides
    assert section.title == "1 · One" and first.title == second.title == "One"
    assert first.has("code") and first.has("pre") and shown(first).endswith("2")
    assert first.said == ["First it is.", "Then more."], "what follows and asks for nothing reads the output"
    assert second.has("figure") and not second.has("code") and second.code == "draw()"
    assert second.said == ["It is two.", "Now another:"]


def test_a_proof_keeps_its_inferences():
    proof = "Let $a$ be so. Then\n\n$$a = b$$\n\nand from $b$ follows $c$.\n\n$$c = d$$\n\nSo all is said."
    (slide,) = small(f"## 1 · The proof\n\n{proof}").slides
    assert [piece.kind for piece in slide.pieces] == ["lead", "formula", "lead", "formula", "lead"]
    (inline,) = small("## 1 · One\n\nSince $a < b$ and $b < c$, also $a < c$.").slides
    assert "Since" in shown(inline) and inline.said == []


def test_code_is_shown_whole_beside_its_output_or_on_demand():
    long = "\n".join(f"x{i} = {i}" for i in range(20))
    made = small("## 1 · One", (long, printed("\n".join("row" for _ in range(12)))))
    (slide,) = made.slides
    assert slide.code == long and slide.has("pre") and not slide.has("code")
    (both,) = small("## 1 · One", ("x = 1\nx", printed("row"))).slides
    assert both.has("pre") and both.has("code") and not both.code


def test_what_shows_nothing_is_no_slide():
    made = small(
        "## 1 · One", ("import torch\n_ = torch.manual_seed(0)",), ("assert 1 < 2",), ("y", printed("1"))
    )
    assert len(made.slides) == 1
    assert small("## 1 · One", ("def f(x):\n    return x",)).slides[0].has("code")


def test_a_figure_keeps_its_alt_text_and_is_described_where_nothing_else_is_said():
    (slide,) = small("## 1 · One", ("draw()", picture())).slides
    assert f'alt="{ALT}"' in slide.pieces[0].html and slide.said == [ALT]


def drawn(*rows: range, height: int) -> str:
    """A picture with something in these rows."""
    image = Image.new("L", (600, height), 255)
    for y in itertools.chain(*rows):
        image.putpixel((y % 600, y), 0)
    file = io.BytesIO()
    image.save(file, format="PNG")
    return base64.b64encode(file.getvalue()).decode()


def test_a_tall_figure_is_cut_at_its_blank_band_so_that_its_words_can_be_read():
    png = drawn(range(20, 560), range(600, 1140), height=1160)
    (slide, other) = small("## 1 · One", ("draw()", picture(png=png, width=400))).slides
    heights = [int(re.search(r'height="(\d+)"', s.pieces[0].html)[1]) for s in (slide, other)]
    assert sum(heights) == 4 + 540 + (14 + 26 // 6) + 540 + 4, "most of the blank rows are gone"
    assert 4 + 540 < heights[0] < 4 + 540 + 18
    assert "Part 1 of 2. A small" in slide.pieces[0].html and "Part 2 of 2" in other.pieces[0].html


def test_a_caption_for_which_there_is_no_room_is_said():
    png = drawn(range(20, 590), height=610)
    (whole,) = outputs.figure_pieces("image/png", png, ALT, 400, "It rises.")
    assert whole.told == "It rises." and "figcaption" not in whole.html
    (low,) = outputs.figure_pieces("image/png", drawn(range(20, 300), height=320), ALT, 400, "It rises.")
    assert not low.told and "It rises." in low.html
    said = new_output("display_data", data={"text/html": "<p><em>It rises.</em></p>"})
    (slide,) = small("## 1 · One", ("draw()", picture(png=png, width=400), said)).slides
    assert slide.said[-1] == "It rises."


@pytest.mark.parametrize("path", LESSONS, ids=lambda p: p.stem)
def test_words_in_figures_are_at_least_18_pixels(path):
    zooms = [
        float(z)
        for s in slides.read(path).slides
        for p in s.pieces
        for z in re.findall('data-zoom="(.*?)"', p.html)
    ]
    assert all(9 * 100 / 72 * zoom >= 18 - 0.1 for zoom in zooms), (
        "figures have words of 9 points or more, 100 pixels an inch"
    )


def test_a_wrong_idea_is_the_title_of_its_slide():
    made = small(
        '## 1 · One\n\n**"It is square."** Only sometimes.', ("x", printed("1")), ("y", printed("1"))
    )
    assert [slide.title for slide in made.slides] == ["&quot;It is square.&quot;", "One"]
    assert made.slides[0].said == ["Only sometimes."]


def test_an_author_keeps_or_drops_a_slide_by_a_tag():
    kept = new_code_cell("x", outputs=[printed("1")], metadata={"tags": ["slide"]})
    dropped = new_code_cell("y", outputs=[printed("2")], metadata={"tags": ["no-slide"]})
    (slide,) = small("## 1 · One", kept, dropped).slides
    assert slide.worth == 10 and shown(slide) == "x 1"


def test_a_long_table_is_dealt_out_evenly_with_its_header_on_each_slide():
    rows = "".join(f"<tr><td>row {i}</td><td>{'word ' * 12}</td></tr>" for i in range(40))
    html = f"<table><caption>All</caption><tr><th>name</th><th>text</th></tr>{rows}</table>"
    cell = ("table()", new_output("execute_result", data={"text/html": html, "text/plain": "x"}))
    made = [s for s in small("## 1 · One\n\nSee:", cell).slides if s.has("table")]
    counts = [s.pieces[-1].html.count("<tr>") - 1 for s in made]
    assert sum(counts) == 40 and len(made) > 1 and max(counts) - min(counts) <= 2
    assert all("<th>name</th>" in s.pieces[-1].html and s.title == "All" for s in made)


def test_formulas_and_code_are_never_cut():
    words = Words()
    (block,) = words.blocks("It is $a. B$ and `c. D`. Then more.")
    first = words.html(words.sentences(block.text)[0])
    assert first == 'It is <span class="tex">a. B</span> and <code>c. D</code>.'


def test_a_fold_is_a_question_whose_answer_waits():
    fold = "*Do:* choose one.\n\n<details><summary>Answer</summary>\nThe first.\n</details>"
    (slide,) = small(f"## 1 · One\n\n{fold}").slides
    question, _, answer = slide.pieces[0].html.partition('<div class="answer fragment">')
    assert "choose one" in question and "The first." in answer and "The first." not in question


# What is asked


def test_a_prediction_waits_for_its_answer_and_tells_the_speaker_what_is_wrong():
    (slide,) = small(new_code_cell('predict("who_learns")', outputs=[printed("PREDICT")])).slides
    question, answer = slide.pieces[0].html.split("answer fragment")
    assert "Predict" in question and "only the plain one" in question and "PREDICT" not in question
    assert "first scores small" in answer and slide.kind == "question"
    assert "it is the other way round" in slide.notes


def test_a_prompt_waits_for_the_prediction_that_it_would_give_away():
    told = GUIDE.replace(
        "How many\n  numbers of width?", "What happens to the standard deviation of width 4 and 1,024?"
    )
    cells = [
        "## 1 · One\n\nThe standard deviation of width 1,024 has $$a$$",
        new_code_cell('predict("growth")'),
        ("x", printed("1")),
    ]
    first, asked, _ = small(*cells, guide=notes.guide(told)).slides
    assert "standard deviation" in asked.asked[0] and "standard deviation" not in "".join(first.asked)


def test_a_turn_has_its_stub_a_timer_and_for_the_speaker_the_solution():
    stub = new_code_cell(
        "def stable_weights(scores):\n    return ...", metadata={"tags": ["turn:stable_weights"]}
    )
    judged = new_code_cell("check(stable_weights)", metadata={"tags": ["exercise:stable_weights"]})
    made = small(stub, judged)
    (slide,) = made.slides
    assert slide.kind == "turn" and "return ..." in shown(slide) and slide.minutes == 8
    assert "largest = scores.amax" in slide.notes and "largest = scores.amax" not in shown(slide)
    assert 'data-minutes="8"' in slides.page(made)


# What is said

GUIDE = """# 03 · Matrix form: for the instructor
## Minutes
| section | minutes | exercises | may be cut |
|---|---|---|---|
| Opening | 5 | | no |
| 1 · One | 9 | `learned_numbers` | yes: the second proof |
| **together** | 14 | | |
## Prompts
### 1 · One
- **Ask:** How many
  numbers of width?
- **Answer:** 36, as $6^2$.
- **If nobody answers:** How many rows?
- **Ask:** Whose table is it?
- **Answer:** Nobody's.
## Misconceptions
- **"Every table of widths is square."** Ask for three queries. Then for four.
## Board
First the square.

```
+--+ table square
```
"""


def test_each_prompt_stands_at_the_slide_that_it_is_about():
    cells = ["## 1 · One\n\nThe width is here.", ("width = 2\nwidth", printed("2"))]
    made = small(*cells, ("table()", printed("square table of widths")), guide=notes.guide(GUIDE))
    width, table = made.slides
    assert "How many numbers" in width.asked[0] and '<span class="tex">6^2</span>' in width.asked[1]
    assert "Whose table" in table.asked[0] and len(table.asked) == 2
    assert "May be cut" in width.notes and "the second proof" in width.notes
    assert "People say" in table.notes and "Then for four" not in table.notes
    assert "Board." in table.notes and "+--+" in table.notes


@pytest.mark.parametrize("path", LESSONS, ids=lambda p: p.stem)
def test_no_slide_has_more_than_120_words_to_say_and_every_prompt_has_a_slide(path):
    made = slides.read(path)
    spoken = [re.sub("<pre>.*?</pre>", "", slide.notes, flags=re.S) for slide in made.slides]
    assert all(words(said) <= WORDS for said in spoken)
    guide = notes.read_guide(path.parent / "instructor", path.stem)
    wanted = [Words().inline(p.ask) for prompts in guide.prompts.values() for p in prompts]
    asked = " ".join(" ".join(slide.asked) for slide in made.slides)
    assert [ask for ask in wanted if ask not in asked] == []
    assert set(guide.minutes) <= {"Opening", *(s.title for s in made.sections)} | {
        notes.plain_heading(s.title) for s in made.sections
    }


SPOKEN = sorted((plans.ROOT / "notebooks" / "instructor" / "spoken").glob("*.md"))


@pytest.mark.parametrize("path", SPOKEN, ids=lambda path: path.stem)
def test_what_an_author_says_has_its_slide_and_is_short(path):
    made = slides.read(plans.ROOT / "notebooks" / f"{path.stem}.ipynb")
    spoken = notes.spoken(path.read_text(encoding="utf-8"))
    assert spoken and path.read_text(encoding="utf-8").count("\n- ") == len(spoken)
    places = [key for key in spoken if not any(key in slide.source for slide in made.slides)]
    assert [key for key in places if key != "story"] == []
    assert all(words(text) <= 70 for text in spoken.values())


def test_a_cell_of_two_slides_has_two_things_to_say():
    made = small("## 1 · One", ("look(1)", picture(), picture()), ("look(2)", printed("2")))
    notes.add_spoken(made.slides, notes.Guide(spoken={"look(": "The first.", "look": "The second."}))
    assert [slide.said for slide in made.slides] == [["The first."], ["The second."], []]


def test_each_slide_of_half_a_day_has_something_to_say():
    made = SESSIONS["half-day"]
    silent = [slide.title for slide in made.slides if not slide.said and slide.kind not in ("pause", "turn")]
    assert silent == []


def test_a_deck_reads_its_own_part_of_the_chapters_guide(tmp_path):
    table = "| section | minutes | exercises | may be cut |\n|---|---|---|---|\n| Opening | {} | x | no |\n"
    form = (
        "## Minutes: {0}\n\n"
        + table.replace("{}", "{1}")
        + "\n## Prompts: {0}\n### Opening\n- **Ask:** {0}?\n"
    )
    text = form.format("02a_soft_look_up", 5) + form.format("02b_which_score", 7)
    text += "## Board\nThe first.\n\n```\none\n```\nFor 02b: the second.\n\n```\ntwo\n```\n"
    (tmp_path / "02_scoring.md").write_text(text)
    one, two = (notes.read_guide(tmp_path, part) for part in ("02a_soft_look_up", "02b_which_score"))
    assert (one.minutes, two.minutes) == ({"Opening": "5"}, {"Opening": "7"})
    assert [p.ask for p in one.prompts["Opening"]] == ["02a_soft_look_up?"]
    assert (one.boards, two.boards) == ([("The first.", "one")], [("For 02b: the second.", "two")])
    none = notes.read_guide(tmp_path, "02c_scale")
    assert (none.minutes, none.prompts) == ({}, {}), "a part that the guide does not name reads nothing"


# A session

PLAN = """# Short

| from | minutes | what | lesson | sections | exercises | hands |
|---|---|---|---|---|---|---|
| 0:00 | 14 | look up | [02a](../02_scoring.md) | Opening, 1 | ★ `ann_share` | 4 |
| 0:14 | 10 | alone | [02a](../02_scoring.md) | – | `soft_look_up` | 10 |
| 0:24 | 12 | alone | [02b](../02_scoring.md) | – | `scaled_attention` | 10 |
| 0:36 | 4 | vote | [02a](../02_scoring.md) | – | ★ `other_axis` | – |
| 0:40 | 10 | on paper: [a row](../room/worksheet.md) | [02a](../02_scoring.md) | – | – | 10 |
| 0:50 | 15 | break | – | – | – | – |
| 1:05 | 5 | slack: who is stuck gets there | – | – | – | – |
| | **70** | **together** | | | | |
"""


@pytest.fixture(scope="module")
def short() -> Deck:
    (made,) = session.session_decks(
        plans.parsed("short", PLAN), lambda part: slides.read(plans.ROOT / "notebooks" / f"{part}.ipynb")
    )
    return made


def test_a_session_keeps_the_order_of_its_plan_and_says_when(short):
    assert [section.title for section in short.sections][:2] == ["look up", "alone"]
    assert [section.slides[0].when.partition(",")[0] for section in short.sections] == [
        "0:00", "0:14", "0:24", "0:36", "0:40", "0:50", "1:05"]  # fmt: skip
    assert slides.number_and_title(short) == ("", "Short") and short.minutes == "70"


def test_a_session_has_tasks_with_a_timer_breaks_and_votes(short):
    question = room_questions.read()["other_axis"]
    look, turn, task, vote, paper, pause, slack = (section.slides for section in short.sections)
    assert "Ann says 10" in shown(look[0]), "the part's story comes first"
    assert "ann_share" in [slide.name for slide in look] and "soft_look_up" not in [s.name for s in look]
    assert (turn[0].minutes, task[0].minutes, paper[0].minutes, pause[0].minutes, slack[0].minutes) == (
        10,
        10,
        10,
        15,
        5,
    )
    assert "exercises/02_scoring.ipynb" in shown(task[0]) and "return ..." in shown(turn[0])
    assert pause[0].kind == slack[0].kind == "pause" and "Who is stuck gets there" in shown(slack[0])
    before, _, answer = paper[0].pieces[-1].html.partition("fragment")
    assert "three tokens, one row for each" in shown(paper[0]) and "Eight minutes" in paper[0].said[0]
    assert "scores 2, 4, 4" in answer and "scores 2, 4, 4" not in before
    assert "room/" not in shown(paper[0])
    assert [slide.title for slide in vote] == ["Alone, then with a neighbour", "And now?"]
    assert vote[1].when == session.SPARE and f"Right: {question.again.right}<" in vote[1].notes
    assert f"4 minutes in all · Right: {question.right}<" in vote[0].notes
    assert "notebook 02a, 1 · From a dictionary" in turn[0].notes and not any(
        "May be cut" in s.notes for s in look
    )
    before, _, answer = vote[0].pieces[0].html.partition("answer fragment")
    because = Words().inline(question.because)
    assert because in answer and because not in before and "the contest" not in before
    assert len(vote[0].wrong) == len(question.wrong)


SESSIONS = {made.name: made for plan in plans.names() for made in slides.of_plan(plan)}


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_has_at_most_60_slides_and_shows_each_of_its_questions_and_tasks(name):
    made = SESSIONS[name]
    assert 40 <= slides.count(made) <= session.SLIDES
    assert all(section.slides for section in made.sections)
    assert all(slide.when for slide in made.slides)
    asked = {slide.name for slide in made.slides if slide.name}
    plan = plans.read(re.sub(r"-\d$", "", name))
    held = plan.held[int(name[-1]) - 1 if name[-1].isdigit() else 0]
    assert {n for row in held.rows for n in row.exercises if n in EXERCISES} <= asked


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


def test_names_that_fit_nothing_and_missing_packages_are_sentences(tmp_path, capsys, monkeypatch):
    assert slides.main(["99"], to=tmp_path) == 1
    assert "no built lesson is called '99'" in capsys.readouterr().err
    assert slides.main(plan="week", to=tmp_path) == 1
    assert "no plan is called 'week'; there are half-day, two-days" in capsys.readouterr().err
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    with pytest.raises(slides.SlidesError, match="make setup-class"):
        slides.copy_assets(tmp_path, root=tmp_path)
    with pytest.raises(slides.SlidesError, match="make notebooks"):
        slides.chosen(root=tmp_path)
    (tmp_path / "broken.ipynb").write_text("{")
    with pytest.raises(slides.SlidesError, match="make notebooks"):
        slides.read(tmp_path / "broken.ipynb")


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
    """The folder with the slides of all parts and of all plans."""
    folder = tmp_path_factory.mktemp("slides")
    for made in SESSIONS.values():
        slides.write(made, folder)
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


@pytest.mark.parametrize("name", [*(path.stem for path in LESSONS), *SESSIONS])
def test_no_slide_overflows_and_nothing_is_missing(name, built, browser):
    wrong = audited(browser, built / f"{name}.html")
    assert not wrong, "\n".join(wrong[:20])


PLANTED = {
    "sticks out": '<p style="font-size: 90px; flex: none">' + "A planted text. " * 40 + "</p>",
    "text of 12": '<p style="font-size: 12px">Too small.</p>',
    "request": '<img src="http://127.0.0.1:9/x.png" alt="From elsewhere.">',
}


@pytest.mark.parametrize("reported, planted", PLANTED.items(), ids=PLANTED)
def test_what_is_planted_is_reported(reported, planted, built, browser):
    made = small("## 1 · One\n\nA text.", "## 2 · Two", ("x", printed("1")))
    clean, dirty = built / "clean.htm", built / "dirty.htm"
    clean.write_text(slides.page(made), encoding="utf-8")
    assert audited(browser, clean) == []
    made.sections[1].slides[0].pieces[0].html += planted
    dirty.write_text(slides.page(made), encoding="utf-8")
    assert any(reported in line for line in audited(browser, dirty))


@pytest.fixture
def page(built, browser):
    """The deck of 03, open."""
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    page = context.new_page()
    page.goto((built / "03_matrix_form.html").as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady()")
    yield page
    context.close()


def go_to(page, selector: str) -> None:
    page.evaluate(
        "(selector) => { const i = Reveal.getIndices(document.querySelector(selector).closest('section'));"
        " Reveal.slide(i.h, i.v || 0, -1); }",
        selector,
    )


def test_answers_wait_for_a_key_and_the_speaker_sees_the_notes(page):
    go_to(page, ".answer")
    answer = page.locator("section.present:not(.stack) .answer")
    at = page.evaluate("() => Reveal.getIndices().h")
    assert answer.evaluate("e => getComputedStyle(e).visibility") == "hidden"
    page.keyboard.press("Space")
    assert answer.evaluate("e => getComputedStyle(e).visibility") == "visible"
    assert page.evaluate("() => Reveal.getIndices().h") == at
    with page.expect_popup() as opened:
        page.keyboard.press("s")
    opened.value.wait_for_selector(".speaker-controls-notes .value:has-text('Wrong answers to expect')")


def test_code_is_shown_on_demand(page):
    go_to(page, ".more")
    assert page.locator(":popover-open").count() == 0
    page.keyboard.press("c")
    assert page.locator(":popover-open").is_visible()
    page.keyboard.press("c")
    assert page.locator(":popover-open").count() == 0


def test_a_timer_runs_stops_and_begins_anew(page):
    go_to(page, ".timer")
    timer = page.locator("section.present:not(.stack) .timer")
    full = timer.inner_text()
    page.keyboard.press("t")
    page.wait_for_function("full => document.querySelector('.present .timer').textContent !== full", arg=full)
    page.keyboard.press("t")
    stopped = timer.inner_text()
    page.wait_for_timeout(1300)
    assert timer.inner_text() == stopped != full
    page.keyboard.press("ArrowLeft")
    go_to(page, ".timer")
    assert timer.inner_text() == full
