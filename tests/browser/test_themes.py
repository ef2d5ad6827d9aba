"""Nothing is drawn in its background's colour, neither in JupyterLab's light theme nor in its dark one.

The measure is tests/browser/contrast.js. test_lessons.py holds it to every notebook, with its widgets alive.
"""

import nbformat
import pytest

from tests.browser import contrast

pytestmark = pytest.mark.browser
CARDS = [
    (
        "import sys\nfrom lesson_lib.checks import check, hint, predict, progress, properties, second\n"
        "from lesson_lib.checks import solution, warm_up\n"
        "from lesson_lib.claims import claim, errata, page\n"
        "from lesson_lib.chapters.c01_history.timeline_figures import cards\n"
        "from lesson_lib.show import show_source\n"
        "from lesson_lib.chapters.c02_scoring.softmax_explorer import SoftmaxExplorer"
    ),
    "check(..., 'score_ratio')",
    "check('exp(1)', 'score_ratio')",
    "check('exp(2)', 'score_ratio')",
    "check('no number', 'score_ratio')",
    "check(lambda scores: scores.softmax(-2), 'stable_weights')",
    "check(0, 'no such exercise')",
    "check('twelve words are enough to be compared with a model answer, they say', 'why_the_root')",
    "predict('unscaled_picture')",
    "card = predict('unscaled_picture'); card.commit('a'); card",
    "card = predict('unscaled_picture'); card.commit('b'); card",
    "predict('score_ratio')",
    "second('score_ratio')",
    (  # a miss of 2020 is due
        "from lesson_lib.checks import store\n"
        "store.record(store.Event('growth', 'answer', fields={'row': 0}, day='2020-01-01'))\n"
        "warm_up()"
    ),
    "hint('score_ratio')",
    "solution('stable_weights')",
    "progress()",
    "properties(lambda query, key, value, mask=None: value)",
    "claim('graph-2', {'a finding': True})",
    "errata()",
    "page('corrected', 'S2')",
    "cards('Transformer')",
    "show_source(show_source)",
    "print('to standard error', file=sys.stderr)",
    "SoftmaxExplorer()",
]
STATES = ("NOT ATTEMPTED YET", "NOT YET", "PASSED", "NOT JUDGED", "WRITTEN", "✓ Right", "✗ Not so")
GROUNDS = {"dark": "#111111", "light": "#ffffff"}  # JupyterLab's, behind a notebook
PLANTED = {  # HTML in an output, and the contrast by hand: (brighter + 0.05) / (darker + 0.05), of luminances
    "<p style='color:#fff;background:#fff'>as its ground</p>": 1.0,
    "<p style='color:#000;background:#fff'>black on white</p>": 21.0,
    "<p style='color:#fff;background:#767676'>a grey</p>": 4.54,
    "<p style='background:#fff;color:rgba(0, 0, 0, 0)'>clear</p>": 1.0,
    "<div style='background:#fff;color:#000'><p style='opacity:0'>faded</p></div>": 1.0,
    "<div style='background:#fff;color:#000'><p style='opacity:.5'>half grey</p></div>": 3.98,
    "<div style='background:#000;color:#fff'><p style='background:rgba(255, 255, 255, 1)'>laid over</p></div>": (  # noqa: E501
        1.0
    ),
    "<details style='background:#fff;color:#fff'><summary> </summary>folded</details>": 1.0,
    "<svg style='background:#fff'><text y='20' fill='#fff'>drawn</text></svg>": 1.0,
    "<svg style='background:#fff'><rect width='300' height='40'/><text y='20'>on a shape</text></svg>": 1.0,
    "<svg style='background:#fff'><text y='20'>under it</text><rect width='300' height='40'/></svg>": 21.0,
    "<svg style='background:#000'><text y='20' stroke='#fff' stroke-width='3' paint-order='stroke'>halo</text></svg>": (  # noqa: E501
        21.0
    ),
    "<input type='text' value='typed' style='color:#fff;background:#fff'>": 1.0,
}


@pytest.fixture
def cards(bench, scratch):
    """A notebook with every state of a check, and whatever else the library shows as HTML; it has run."""
    made = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in CARDS],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    nbformat.write(made, scratch / "work" / "cards.ipynb")
    return bench.take("cards.ipynb")


def test_cards_and_tables_can_be_read(cards):
    notebook = cards
    assert notebook.ran, notebook.troubles()
    assert (
        len(notebook.widgets()) == 1
    )  # beside a stack and its card, six that ask, five results with buttons
    assert notebook.page.locator(".ll-card").count() == 13
    shown = notebook.page.locator(".jp-Notebook").inner_text()
    assert [state for state in STATES if state not in shown] == []
    found = contrast.in_both_themes(notebook)
    notebook.wear("light")
    assert {reading["cell"] for reading in found["dark"]} >= set(range(2, len(CARDS) + 1))
    assert contrast.faint(found) == []


@pytest.mark.parametrize("planted, expected", PLANTED.items(), ids=range(len(PLANTED)))
def test_the_contrast_is_the_one_computed_by_hand(cards, planted, expected):
    found = cards.page.evaluate(
        f"""planted => {{
            const page = document.createElement('div');
            page.innerHTML = '<div class="jp-OutputArea-output">' + planted + '</div>';
            document.body.append(page);
            const found = {contrast.MEASURE}(page);
            page.remove();
            return found;
        }}""",
        planted,
    )
    assert [reading["ratio"] for reading in found] == [pytest.approx(expected, abs=0.01)]


def test_text_of_the_background_s_colour_is_found(cards):
    """A line in each theme's background colour, in an output of a notebook: each is found, in its theme
    alone."""
    cards.page.evaluate(
        """colours => document.querySelector('.jp-OutputArea-output').insertAdjacentHTML('beforeend',
            colours.map(colour => `<p style="color:${colour}">planted</p>`).join(''))""",
        list(GROUNDS.values()),
    )
    found = contrast.in_both_themes(cards)
    cards.wear("light")
    told = [f"'planted' is {colour} on {colour}, contrast 1.00" for colour in GROUNDS.values()]
    assert [line.split(": ")[1] for line in sorted(contrast.faint(found))] == told
    assert [line.split(",")[0] for line in sorted(contrast.faint(found))] == list(GROUNDS)
