"""Each lesson in JupyterLab: it opens, it runs from top to bottom, its widgets answer to the keyboard."""

import json
import os
import random
import statistics
import wave
from functools import cache
from pathlib import Path

import pytest

from lesson_lib.claims import ledger
from lesson_lib.cli import kinds, lab
from tests.browser import contrast
from tests.browser.conftest import in_notebook
from tests.browser.driver import CONTROLS, CURRENT, READY, TOKEN

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
EVERY = os.environ.get("LESSON_BROWSER") == "all"
NOTEBOOKS = [name for name in lab.lessons() if name.endswith(".ipynb")]
LESSONS = [f"{name}.ipynb" for name in kinds.built(ROOT, ("part", "page", "evidence"))]


@cache
def sources(name: str) -> list[str]:
    """The cells' sources of a built notebook."""
    cells = json.loads((ROOT / "notebooks" / name).read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells]


def explores(name: str) -> bool:
    """Whether a notebook has an explorer."""
    return any("Explorer(" in source for source in sources(name))


# What does not move is nearly the same in a browser as where nbval runs it: some of these stand for all, and
# with LESSON_BROWSER=all none is left out.
STANDING = {
    f"{name}.ipynb"
    for name in "02b_which_score 08a_remembering 10b_real_graph glossary exercises/02_scoring".split()
}
SEEN = [name for name in NOTEBOOKS if EVERY or explores(name) or name in STANDING]
assert STANDING < set(NOTEBOOKS)


@in_notebook(*SEEN)
def test_a_notebook_runs_and_its_widgets_answer_to_the_keyboard(notebook, record_property):
    assert notebook.ran, notebook.troubles()
    assert notebook.troubles() == []
    times, silent = [], []
    for number, widget in enumerate(notebook.widgets(), 1):
        moved = []
        for kind in CONTROLS:
            for control in widget.controls(kind):
                took = widget.move(control, kind)
                moved.append(took)
                times += [took] if took is not None and kind == "slider" else []
                if (
                    took is None and kind != "button"
                ):  # a button may have nothing to do yet, such as back at the first step
                    silent.append(
                        f"widget {number}: its {kind} {control.get_attribute('aria-label') or ''} changes no"
                        " picture"
                    )
        if not any(took is not None for took in moved):
            silent.append(f"widget {number}: no key changes its picture")
    if times:
        record_property(f"slider to picture, ms: {notebook.name}", round(statistics.median(times)))
    assert silent == []
    found = contrast.in_both_themes(notebook)
    notebook.wear("light")  # the server keeps a theme for the pages after
    assert contrast.faint(found) == []


def showing(text: str) -> str:
    """The first notebook, in the course's order, in which a cell has this text."""
    found = [name for name in NOTEBOOKS if any(text in source for source in sources(name))]
    assert found, f"no notebook has a cell with {text}"
    return found[0]


MOVING = [name for name in LESSONS if explores(name)]
STILL = {"03", "04"}  # chapters whose pictures do not move
assert {kinds.chapter_of(name) for name in MOVING} >= {f"{n:02}" for n in range(1, 13)} - STILL, MOVING


@in_notebook(*MOVING)
def test_two_views_of_a_widget_move_together(notebook):
    """The cell of the first widget with a slider, shown a second time."""
    first = next(widget for widget in notebook.widgets() if widget.controls("slider"))
    notebook.select(first.cell_index())
    second = notebook.second_view()
    before = second.shown()
    assert before == first.shown()
    for moved, other in ((first, second), (second, first)):
        assert moved.move(moved.controls("slider")[0], "slider") is not None
        notebook.settle()
        assert other.shown() == moved.shown() != before
        before = moved.shown()


LAID_OUT = f"""async width => {{
    await new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)));
    const box = {CURRENT}.node.getBoundingClientRect();
    return window.innerWidth === width && box.width > width / 2 && box.right <= width;
}}"""


def assert_all_can_be_read(widget) -> None:
    """On a wide and on a narrow page: the drawing needs no scroll bar, no formula is cut off when its cell
    has the focus, and the controls and their words stand whole in the output."""
    for width in (1400, 800):
        widget.page.set_viewport_size({"width": width, "height": 1000})
        widget.page.wait_for_function(LAID_OUT, arg=width)
        cut = widget.root.evaluate("""root => {
                const box = root.querySelector('.ll-box'), cut = [];
                if (box.scrollWidth > box.clientWidth) cut.push('the drawing is ' + box.scrollWidth + ' pixels wide');
                const right = root.closest('.jp-OutputArea-output').getBoundingClientRect().right;
                for (const word of root.querySelectorAll('.ll-controls :is(.widget-label, .widget-readout, button, .noUi-handle)'))
                    if (word.scrollWidth > word.clientWidth && word.textContent || word.getBoundingClientRect().right > right)
                        cut.push('control: ' + (word.textContent || word.className));
                for (const cell of box.querySelectorAll('td[tabindex]')) {
                    cell.focus();  // the page may scroll
                    const tip = cell.querySelector('.ll-tip');
                    const at = tip.getBoundingClientRect(), outer = box.getBoundingClientRect();
                    if (!at.width || at.left < outer.left || at.right > outer.right || at.top < outer.top || at.bottom > outer.bottom)
                        cut.push(tip.textContent);
                    if (cell.getAttribute('aria-label') !== tip.textContent) cut.push('another label: ' + tip.textContent);
                }
                return cut;
            }""")  # noqa: E501
        assert cut == [], f"{width} pixels wide"


@in_notebook(showing("TimelineExplorer("))
def test_the_timeline_opens_one_entry_after_the_other(notebook):
    years = notebook.widget("TimelineExplorer(")
    drawing, slider = years.root.locator(".ll-box"), years.controls("slider")[0]
    card, open_entry = drawing.locator(".ll-card"), drawing.locator("[aria-current=true]")
    assert "1409.0473" in card.inner_text() and open_entry.inner_text() == "Bahdanau's attention"
    assert years.press(slider, "ArrowRight") is not None
    assert "1502.03044" in card.inner_text() and open_entry.inner_text() == "Show, attend and tell"
    for term in ("Problem", "Idea", "Not yet", "Runs in", "Source"):
        assert term in card.inner_text()
    assert years.press(slider, "End") is not None
    assert_all_can_be_read(years)


@in_notebook(showing("AlignmentExplorer("))
def test_a_date_is_typed_and_its_answer_walked_along(notebook):
    explorer = notebook.widget("AlignmentExplorer(")
    said = explorer.root.locator("p[role=status]")
    first = said.inner_text()
    assert first.startswith("Output character 0,")
    assert explorer.press(explorer.controls("slider")[0], "ArrowRight") is not None
    assert said.inner_text().startswith("Output character 1,") and said.inner_text() != first
    box = explorer.root.locator("input[type=text]").first
    box.fill("Samstag, 1. Mai 2021")
    box.press("Enter")
    explorer.root.locator("b", has_text="samstag, 1. mai 2021").wait_for()
    box.fill("日")
    box.press("Enter")
    explorer.root.locator("p[role=alert]").wait_for()  # a sentence, no traceback


@in_notebook(showing("MachineExplorer("))
def test_the_machine_is_opened_layer_by_layer(notebook):
    machine = notebook.widget("MachineExplorer(")
    said = machine.root.locator("p[role=status]")
    assert said.inner_text().startswith("Decoder to encoder, layer 2, head 0: query 5,")
    layer, head, token = machine.controls("slider")[:3]
    assert machine.press(layer, "ArrowLeft") is not None
    assert machine.press(head, "ArrowRight") is not None
    assert machine.press(token, "ArrowRight") is not None
    assert said.inner_text().startswith("Decoder to encoder, layer 1, head 1: query 6,")
    box = machine.root.locator("input[type=text]").first
    box.fill("1. Mai 1999")
    box.press("Enter")
    machine.root.locator("b", has_text="1. Mai 1999 →").wait_for()
    box.fill("日")
    box.press("Enter")
    machine.root.locator("p[role=alert]").wait_for()  # a sentence, no traceback
    assert_all_can_be_read(machine)


@in_notebook(showing("ContinuationExplorer("))
def test_a_text_is_typed_and_continued(notebook):
    explorer = notebook.widget("ContinuationExplorer(")
    said, text = explorer.root.locator("p[role=status]"), explorer.root.locator("pre")
    assert said.inner_text().startswith("Made at temperature 1.00") and text.inner_text().startswith(
        "If the "
    )
    assert explorer.press(explorer.controls("slider")[0], "ArrowLeft") is not None
    assert "Press" in said.inner_text()
    box = explorer.root.locator("input[type=text]").first
    box.fill("def ")
    box.press("Enter")
    explorer.root.locator("pre b", has_text="def").wait_for()
    box.fill("日")
    box.press("Enter")
    explorer.root.locator("p[role=alert]").wait_for()  # a sentence, no traceback


@in_notebook(showing("HeadExplorer("))
def test_the_heads_of_a_layer_are_seen_together_and_alone(notebook):
    heads = notebook.widget("HeadExplorer(")
    drawing, slider = heads.root.locator(".ll-box"), heads.controls("slider")[0]
    maps, asked = drawing.locator("svg").count(), drawing.locator("p b").last
    pressed = heads.root.locator("button.mod-active")
    assert pressed.inner_text() == "all"
    assert maps == len(heads.controls("button")) - 1 == drawing.locator(".ll-words tr").count()
    assert asked.inner_text().startswith("Query 0,")
    assert heads.press(slider, "ArrowRight") is not None
    assert asked.inner_text().startswith("Query 1,")
    assert heads.press(heads.controls("button")[1], "Enter") is not None
    assert drawing.locator("svg").count() == 0 and drawing.locator(".ll-words tr").count() == 1
    assert drawing.locator("tr.ll-query").count() == 1
    assert_all_can_be_read(heads)
    assert heads.press(heads.controls("button")[0], "Enter") is not None
    assert drawing.locator("svg").count() == maps
    assert pressed.inner_text() == "all"
    assert pressed.evaluate("b => getComputedStyle(b).outlineWidth") == "2px"  # the keyboard's place is seen
    assert_all_can_be_read(heads)


@in_notebook(showing("ClockExplorer("))
def test_the_clocks_turn_and_the_angle_between_the_hands_stays(notebook):
    clocks = notebook.widget("ClockExplorer(")
    position, offset = clocks.controls("slider")

    def hands():
        return clocks.root.locator("svg path[stroke-width]").evaluate_all(
            "paths => paths.map(p => p.getAttribute('d'))"
        )

    def between():
        return clocks.root.locator(".ll-clock > div").all_inner_texts()

    turned, angles = hands(), between()
    for _ in range(3):
        assert clocks.press(position, "ArrowRight") is not None
    assert between() == angles and all(a != b for a, b in zip(hands(), turned, strict=True))
    assert clocks.press(offset, "ArrowRight") is not None
    assert all(a != b for a, b in zip(between(), angles, strict=True))
    assert_all_can_be_read(clocks)


@in_notebook(showing("RotationExplorer("))
def test_the_position_moves_neither_the_matrix_nor_the_dot_product(notebook):
    rotation = notebook.widget("RotationExplorer(")
    position, offset = rotation.controls("slider")
    matrix, product = rotation.root.locator("td[class^=matrix]"), rotation.root.locator("p b").last

    def shown():
        return matrix.all_inner_texts(), product.inner_text().split("=")[1]

    before, code = shown(), rotation.root.locator("td.here0-0").inner_text()
    assert rotation.press(position, "ArrowRight") is not None
    assert shown() == before and rotation.root.locator("td.here0-0").inner_text() != code
    assert rotation.press(offset, "ArrowRight") is not None
    assert shown()[0] != before[0] and shown()[1] != before[1]
    assert "below 1e-12" in rotation.root.inner_text()
    assert_all_can_be_read(rotation)


@in_notebook(showing("PixelExplorer("))
def test_a_blur_becomes_one_tap_of_the_kernel(notebook):
    pixels = notebook.widget("PixelExplorer(")
    row, column, sharpness, head = pixels.controls("slider")
    said, difference = pixels.root.locator("p[role=status]"), pixels.root.locator("tr", has_text="difference")
    assert "the head up left (-1, -1) looks most at" in said.inner_text()
    assert pixels.press(sharpness, "End") is not None
    assert float(said.inner_text().split("with weight ")[1].removeprefix("more than ")[:6]) > 0.999
    assert max(abs(float(text)) for text in difference.locator("td").all_inner_texts()) < 1e-4
    assert pixels.press(row, "Home") is not None and pixels.press(column, "ArrowRight") is not None
    assert said.inner_text().startswith("From row 0,") and "border of zeros" in said.inner_text()
    assert pixels.press(head, "ArrowRight") is not None
    assert "the head up (-1, 0)" in said.inner_text()
    assert_all_can_be_read(pixels)
    assert pixels.press(head, "End") is not None
    assert "added up" in said.inner_text()
    assert_all_can_be_read(pixels)


@in_notebook(showing("PathExplorer("))
def test_a_path_between_two_tokens_is_lit_in_the_chosen_network(notebook):
    explorer = notebook.widget("PathExplorer(")
    network, start, end = explorer.controls("slider")
    said, chosen = explorer.root.locator("p[role=status]"), explorer.root.locator("tr.ll-chosen")
    lit = explorer.root.locator("svg.ll-net g > [fill='#D55E00']")
    names = explorer.root.locator(".ll-given tbody th").all_inner_texts()
    assert names[0] == "RNN" == chosen.locator("th").inner_text()
    last = lit.count() - 2  # from the first input to the last output: the input, and a state for each token
    assert f"from input 0 to output {last} is {last + 1} units long" in said.inner_text()
    assert explorer.press(start, "End") is not None and lit.count() == 2
    assert explorer.press(end, "Home") is not None and lit.count() == 0
    assert "no path leads" in said.inner_text()
    assert explorer.root.locator("svg.ll-net [stroke-dasharray]").count() == 2
    for name in names[1 : names.index("self-attention") + 1]:
        assert explorer.press(network, "ArrowRight") is not None
        assert chosen.locator("th").inner_text() == name and said.inner_text().startswith(f"{name}: ")
        assert_all_can_be_read(explorer)
    assert f"from input {last} to output 0 is 1 unit long" in said.inner_text() and lit.count() == 2


@in_notebook(showing("WavePlayer("))
def test_units_light_up_step_by_step(notebook):
    player = notebook.widget("WavePlayer(")
    (step,), said = player.controls("slider"), player.root.locator("p[role=status]")
    now = player.root.locator("svg.ll-net g > [fill='#D55E00']")
    done = player.root.locator("svg.ll-net g > [fill='#0072B2']")
    assert said.inner_text().startswith("Step 0.") and now.count() == done.count() == 0
    assert player.press(step, "ArrowRight") is not None
    first = now.count()
    assert said.inner_text().startswith("Step 1.") and first > 0 == done.count()
    assert player.press(step, "ArrowRight") is not None
    assert now.count() > 0 and done.count() == first
    assert player.press(step, "End") is not None
    assert said.inner_text().count("done after") == player.root.locator("svg.ll-net").count()
    assert_all_can_be_read(player)


@in_notebook(showing("DistanceExplorer("))
def test_a_sequence_grows_to_two_hundred_tokens(notebook):
    explorer = notebook.widget("DistanceExplorer(")
    distance, sequence = explorer.controls("slider")
    said, written = explorer.root.locator("p[role=status]"), explorer.root.locator(".ll-sequence")
    curves, rows = explorer.root.locator("svg polyline"), explorer.root.locator(".ll-answers tbody tr")
    assert curves.count() == rows.count() >= 2
    assert explorer.press(distance, "End") is not None
    shown = "".join(written.inner_text().split())
    assert len(shown) == 201 and "the question stands 200 tokens behind it" in said.inner_text()
    assert said.inner_text().startswith(f"The symbol was {shown[0]},") and shown[-1] == "?"
    assert explorer.press(sequence, "ArrowRight") is not None
    assert "".join(written.inner_text().split()) != shown
    assert_all_can_be_read(explorer)
    assert explorer.press(distance, "Home") is not None
    assert "stands 1 token behind it" in said.inner_text()
    assert_all_can_be_read(explorer)


@in_notebook(showing("WindowExplorer("))
def test_the_radius_moves_the_mask_the_cost_and_the_accuracy_together(notebook):
    explorer = notebook.widget("WindowExplorer(")
    (radius,) = explorer.controls("slider")
    said, rows = explorer.root.locator("p[role=status]"), explorer.root.locator(".ll-cost tbody tr")
    bars = explorer.root.locator("svg[aria-label^='the mask'] rect[fill='#0072B2']")

    def widths():
        return bars.evaluate_all("bars => bars.map(bar => Number(bar.getAttribute('width')))")

    before = widths()
    assert (
        said.inner_text().startswith("Radius 5: each frame looks at 11 frames, 110 ms.") and rows.count() == 2
    )
    assert len(before) == 60 and explorer.root.locator("svg circle[r='6']").count() == 2
    assert explorer.press(radius, "ArrowRight") is not None
    assert (
        "Not trained with this radius" in said.inner_text()
        and explorer.root.locator("svg circle[r='6']").count() == 3
    )
    assert all(wider > bar for wider, bar in zip(widths(), before, strict=True))
    assert_all_can_be_read(explorer)
    assert explorer.press(radius, "Home") is not None
    assert said.inner_text().startswith("Radius 0: each frame looks at 1 frame, 10 ms.")
    assert explorer.press(radius, "End") is not None
    assert said.inner_text().startswith("Full attention") and rows.count() == 1 and len(set(widths())) == 1
    assert_all_can_be_read(explorer)


@in_notebook(showing("RecordingExplorer("))
def test_a_recording_is_walked_through_and_another_one_put_in(notebook, tmp_path):
    explorer = notebook.widget("RecordingExplorer(")
    (frame,) = explorer.controls("slider")
    said, place = explorer.root.locator("p[role=status]"), explorer.root.locator("path.ll-at")
    name, sounds = explorer.root.locator("p b").first, explorer.root.locator("text.ll-sound")
    before, line = said.inner_text(), place.get_attribute("d")
    assert name.inner_text() == "the shipped recording" and sounds.count() > 3
    assert explorer.press(frame, "ArrowRight") is not None
    assert said.inner_text() != before and place.get_attribute("d") != line
    assert_all_can_be_read(explorer)
    audio = explorer.root.locator("audio")
    audio.evaluate(
        "a => a.readyState >= 1 || new Promise(done => a.addEventListener('loadedmetadata', done))"
    )
    assert 1 < audio.evaluate("a => a.duration") < 12  # it came without a network
    button = explorer.root.locator("button.widget-upload")

    def put_in(path):
        with explorer.page.expect_file_chooser() as chooser:  # the file's own control stands on no page
            button.click()
        chooser.value.set_files(path)

    file = tmp_path / "mine.wav"
    with wave.open(str(file), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(16_000)
        out.writeframes(random.Random(0).randbytes(2 * 16_000))
    put_in(file)
    explorer.root.locator("b", has_text="mine.wav").wait_for()
    assert "101 frames" in explorer.root.locator(".ll-box").inner_text()
    assert explorer.press(frame, "End") is not None and said.inner_text().startswith("Frame 100, at 1.00 s:")
    (tmp_path / "song.wav").write_bytes(b"no wave at all")
    put_in(tmp_path / "song.wav")
    explorer.root.locator("p[role=alert]").wait_for()  # a sentence, no traceback
    assert name.inner_text() == "mine.wav"
    back = explorer.root.locator("button", has_text="the shipped one")
    assert explorer.press(back, "Enter") is not None
    assert (
        name.inner_text() == "the shipped recording" and explorer.root.locator("p[role=alert]").count() == 0
    )
    assert_all_can_be_read(explorer)


@in_notebook(showing("GraphExplorer("))
def test_an_edge_is_cut_and_put_back(notebook):
    explorer = notebook.widget("GraphExplorer(")
    node, weights, edge = explorer.controls("slider")
    said, ringed = explorer.root.locator("p[role=status]"), explorer.root.locator("svg.ll-sheet .ll-ring")
    cut, back = (explorer.root.get_by_role("button", name=name) for name in ("cut this edge", "put all back"))
    dashed = explorer.root.locator("svg.ll-sheet [stroke='#888888']")
    first, struck = said.inner_text(), explorer.root.locator("th.ll-cut")
    assert first.startswith("Node ") and " looks most at " in first and "Before the cuts" not in first
    assert ringed.count() == 1 and dashed.count() == struck.count() == 0 and back.is_disabled()
    assert explorer.press(edge, "ArrowRight") is not None
    assert explorer.press(cut, "Enter") is not None
    assert dashed.count() == struck.count() == 1 and "Before the cuts: " in said.inner_text()
    assert_all_can_be_read(explorer)
    assert explorer.press(back, "Enter") is not None
    assert said.inner_text() == first and dashed.count() == 0 and back.is_disabled()
    assert explorer.press(weights, "End") is not None and explorer.press(weights, "Home") is not None
    assert said.inner_text() == first
    assert explorer.press(node, "Home") is not None
    assert said.inner_text().startswith("Node 0 ")  # with the most neighbours but one: the longest table
    assert_all_can_be_read(explorer)


@in_notebook(showing("ScaleExplorer("))
def test_what_fits_is_said_at_both_ends(notebook):
    explorer = notebook.widget("ScaleExplorer(")
    tokens, memory, machines = explorer.controls("slider")
    said, ring = explorer.root.locator("p[role=status]"), explorer.root.locator("tr.ll-ring")
    assert said.inner_text().startswith("1 M tokens, one machine of ") and ring.count() == 1
    assert explorer.press(tokens, "Home") is not None
    assert said.inner_text().startswith("1 k tokens") and "all kinds fit." in said.inner_text()
    assert explorer.press(tokens, "End") is not None
    assert explorer.press(memory, "Home") is not None
    assert "1 G tokens, one machine of 1 GiB: nothing fits" in said.inner_text()
    assert "does not fit" in ring.inner_text()
    assert explorer.press(machines, "End") is not None
    assert "A ring of 100,000 machines" in said.inner_text() and "does not" not in ring.inner_text()
    assert_all_can_be_read(explorer)


@in_notebook(showing("CostExplorer("))
def test_what_is_kept_follows_the_sliders(notebook):
    explorer = notebook.widget("CostExplorer(")
    sliders, said = explorer.controls("slider"), explorer.root.locator("p[role=status]")
    before = said.inner_text()
    for slider in sliders:
        moved = [explorer.press(slider, key) for key in ("End", "Home")]
        assert moved != [None, None]
    assert said.inner_text() != before
    assert_all_can_be_read(explorer)


@in_notebook(showing("MergeExplorer("))
def test_the_lever_balances_where_the_words_say(notebook):
    explorer = notebook.widget("MergeExplorer(")
    its_sum, output = explorer.controls("slider")
    said = explorer.root.locator("p[role=status]")
    assert "= 34.38; the mean of both outputs would be 28.75" in said.inner_text()
    assert explorer.press(its_sum, "Home") is not None
    assert said.inner_text().startswith("(4 · 17.5 + 1 · 40) / 5 = 22")
    assert explorer.press(output, "End") is not None
    assert said.inner_text().startswith("(4 · 17.5 + 1 · 60) / 5 = 26")
    assert_all_can_be_read(explorer)


@in_notebook(showing("LedgerExplorer("))
def test_the_ledger_is_searched(notebook):
    explorer = notebook.widget("LedgerExplorer(")
    said, rows = explorer.root.locator("p[role=status]"), explorer.root.locator("tbody tr")
    verdicts, origins = explorer.controls("slider")
    assert said.inner_text().startswith("95 claims: ") and rows.count() == 95
    assert explorer.press(verdicts, "End") is not None
    assert rows.count() == 2  # what is unsaid
    assert explorer.press(verdicts, "ArrowLeft") is not None
    assert rows.count() == 2  # what is corrected
    assert explorer.press(origins, "End") is not None  # S4
    assert rows.count() == 0 and "No row of the ledger" in explorer.root.inner_text()
    assert explorer.press(verdicts, "Home") is not None and explorer.press(origins, "Home") is not None
    words = explorer.root.locator("input[type=text]")
    words.fill("strangers weight")
    words.press("Enter")
    explorer.root.get_by_text("1 claim:").wait_for()
    assert rows.count() == 1


@in_notebook("sources_claims.ipynb")
def test_a_row_of_the_ledger_leads_to_the_cell_that_decided(notebook):
    whole = next(i for i, cell in enumerate(notebook.cells()) if "".join(cell["source"]) == "page()")
    page, link = notebook.page, notebook.output(whole).locator("a", has_text="graph-2")
    place = f"{ledger()['graph-2'].lesson}.ipynb"
    shown = f"{CURRENT}.context.path"
    link.click()  # JupyterLab opens the notebook at its top; the second time it goes to the cell
    page.wait_for_function(f"() => {shown} === '{place}'")
    page.evaluate(READY, place)
    page.evaluate(
        "() => { const s = window.jupyterapp.shell;"
        f" s.activateById([...s.widgets('main')].find(w => w.context.path === '{notebook.name}').id) }}"
    )
    link.click()
    page.wait_for_function(f"() => {shown} === '{place}'")
    decided = next(i for i, source in enumerate(sources(place)) if '"graph-2"' in source)
    page.wait_for_function(
        f"""index => {{
            const box = {CURRENT}.content.widgets[index].node.getBoundingClientRect();
            return box.height > 0 && box.top < window.innerHeight && box.bottom > 0;
        }}""",
        arg=decided,
    )
    assert page.evaluate(f"() => {shown}") == place
    assert 'claim("graph-2"' in page.evaluate(
        f"index => {CURRENT}.content.widgets[index].model.sharedModel.source", decided
    )


@in_notebook(*sorted(name for name in STANDING if "/" in name))
def test_an_exercise_is_solved_by_typing(notebook):
    """The first exercise: as it comes, then solved; the check says NOT ATTEMPTED YET, then PASSED, in
    green."""
    name = notebook.name
    mine, solved = sources(name), sources(name.replace("exercises/", "solutions/"))
    assert len(mine) == len(solved)
    answer = next(i for i, (a, b) in enumerate(zip(mine, solved, strict=True)) if a != b)
    judged = next(i for i in range(answer, len(mine)) if "check(" in solved[i])
    assert "NOT ATTEMPTED YET" in notebook.output(judged).inner_text()
    notebook.type_into(answer, solved[answer])
    for index in sorted({answer, judged}):
        notebook.run_here(index)
    assert notebook.troubles() == []
    shown = notebook.output(judged)
    shown.get_by_text("PASSED").first.wait_for()
    red, green, blue = notebook.colour(shown.locator("[style*=border-left]").first, "border-left-color")
    assert green > red and green > blue


def test_the_first_lesson_opens_by_itself(browser, lab):
    """The address that JupyterLab opens names no file, and the first lesson comes, with no pop-up over it."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{lab}/?token={TOKEN}")
    page.wait_for_function("() => window.jupyterapp", timeout=60_000)
    page.evaluate(READY, "00_start_here.ipynb")
    assert page.evaluate(f"() => {CURRENT}.context.path") == "00_start_here.ipynb"
    page.wait_for_timeout(2000)
    # nothing asks the learner for anything, such as news
    assert page.locator(".Toastify__toast, .jp-Dialog").count() == 0
    context.close()
