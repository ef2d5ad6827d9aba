"""What an explorer draws, recorded for pages without a kernel."""

import json
from itertools import product

import ipywidgets
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from lesson_lib.chapters.c02_scoring.steps_explorer import SevenStepsExplorer
from lesson_lib.cli import kinds, site
from lesson_lib.cli.site import states
from lesson_lib.widgets.explorer import Explorer

PICTURE = [new_output("display_data", data={"image/png": "aGk=", "text/plain": "A picture."})]


class Texts(Explorer):
    """Two texts; a place in the one that is chosen; a field, and a button, that a page cannot offer."""

    fixed = ("zoom",)

    def __init__(self):
        self.text = ipywidgets.ToggleButtons(options=["ab", "xyz"], description="text")
        self.at = ipywidgets.IntSlider(0, min=0, max=1, description="place")
        self.zoom = ipywidgets.IntSlider(1, min=1, max=9, description="zoom")
        typed, button = ipywidgets.Text(description="type one"), ipywidgets.Button(description="write")
        super().__init__([self.text, self.at, self.zoom, typed, button])
        self.text.observe(self._fit, names="value")
        self.watch(self.at)

    def _fit(self, _change):
        self.at.max = len(self.text.value) - 1
        self.refresh()

    def draw(self):
        return f"<p>{self.text.value}: <b>{self.text.value[self.at.value]}</b></p>"


def state_of(told, *labels):
    """The drawing of a state, found as the page's player finds it: leading controls first."""
    named = dict(zip([c["name"] for c in told["controls"]], labels, strict=True))
    node = told["tree"]
    for control in told["controls"]:
        if control["leads"]:
            node = node["next"][node["labels"].index(named[control["name"]])]
    number = 0
    others = [c["name"] for c in told["controls"] if not c["leads"]]
    for name, offered in zip(others, node["labels"], strict=True):
        number = number * len(offered) + offered.index(named[name])
    return told["drawings"][node["first"] + number]


def test_a_control_that_changes_what_others_offer_leads():
    told = states.record(Texts())
    assert [(c["name"], c["kind"], c["leads"]) for c in told["controls"]] == [
        ("text", "choice", True), ("place", "slider", False),
    ]  # fmt: skip
    assert told["lacks"] == ["“zoom”", "texts of your own", "“write”"] and told["plays"] is None
    assert not told["thinned"] and len(told["drawings"]) == 2 + 3
    for text in ("ab", "xyz"):
        for at, letter in enumerate(text):
            assert f"{text}: <b>{letter}</b>" in state_of(told, text, str(at))


def test_every_state_of_a_film_is_what_the_explorer_draws():
    explorer = SevenStepsExplorer()
    before = explorer.drawing.value
    told = states.unpack(states.pack(states.record(explorer), "film-0"))
    assert explorer.drawing.value == before, "its controls are put back"
    controls = [explorer.step, explorer.query, explorer.kind]
    assert told["plays"] == 0 and told["lacks"] == [] and len(told["drawings"]) == 7 * 3 * 3
    for state in product(*map(states.values_of, controls)):
        for control, (_, value) in zip(controls, state, strict=True):
            control.value = value
        assert state_of(told, *(label for label, _ in state)) == explorer.drawing.value


def test_long_sliders_keep_their_ends_and_where_they_start():
    class Long(Texts):
        most_states = 40

        def __init__(self):
            self.x = ipywidgets.IntSlider(37, min=0, max=100, description="x")
            self.y = ipywidgets.FloatSlider(0.5, min=0, max=1, step=0.1, description="y")
            self.z = ipywidgets.FloatLogSlider(1.0, min=-1, max=1, step=1, description="z")
            Explorer.__init__(self, [self.x, self.y, self.z])
            self.watch(self.x, self.y, self.z)

        def draw(self):
            return f"{self.x.value} {self.y.value} {self.z.value}"

    told = states.record(Long())
    x, y, z = told["tree"]["labels"]
    assert told["thinned"] and len(told["drawings"]) == len(x) * len(y) * len(z) <= 40
    assert {"0", "37", "100"} <= set(x) and {"0", "0.5", "1"} <= set(y) and {"0.1", "1", "10"} == set(z)
    assert [x[told["tree"]["at"][0]], y[told["tree"]["at"][1]]] == ["37", "0.5"]


def test_the_key_follows_the_code_that_makes_a_recording_and_no_other():
    def book(code="SevenStepsExplorer()", after="x = 2"):
        cells = [new_code_cell("x = 1"), new_code_cell(code, outputs=PICTURE), new_code_cell(after)]
        return new_notebook(cells=cells)

    key = states.key(book(), site.ROOT)
    assert key == states.key(book(after="y = 3"), site.ROOT), "what comes after changes nothing"
    assert key != states.key(book("SevenStepsExplorer( )"), site.ROOT)
    assert key != states.key(book("SoftmaxExplorer((1.0, 2.0))"), site.ROOT), "another class, another file"


def test_a_notebook_is_recorded_once_and_one_that_fails_is_named(tmp_path, monkeypatch):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    (tmp_path / "lesson_lib").symlink_to(site.ROOT / "lesson_lib")
    made = (
        "from lesson_lib.chapters.c02_scoring.steps_explorer import SevenStepsExplorer\nSevenStepsExplorer()"
    )
    for name, code in {"02a_x": made, "03_y": "1 / 0\nSevenStepsExplorer()", "04_z": "x = 1"}.items():
        cell = new_code_cell(code, outputs=[] if name == "04_z" else PICTURE, id=f"cell{name[:2]}")
        nbformat.write(new_notebook(cells=[cell]), folder / f"{name}.ipynb")
    kept = tmp_path / "kept"
    found, troubles = states.recorded(["02a_x", "03_y", "04_z"], tmp_path, kept)
    assert list(found) == ["cell02"] and len(found["cell02"]) == 1
    assert len(states.unpack(found["cell02"][0].read_text("utf-8"))["drawings"]) == 63
    (trouble,) = troubles
    assert trouble == (
        "03_y: its explorers stay pictures, since a cell ends in: ZeroDivisionError: division by zero"
    )
    monkeypatch.setattr(states, "_run", lambda *_: pytest.fail("nothing is run again"))
    assert states.recorded(["02a_x"], tmp_path, kept) == (found, [])


def test_every_explorer_that_a_page_shows_is_found():
    cells = {}
    for name in kinds.built(site.ROOT):
        notebook = nbformat.read(site.ROOT / "notebooks" / f"{name}.ipynb", 4)
        cells |= {cell.id: name for cell in states.explorers(notebook)}
    assert len(cells) >= 25, json.dumps(cells)
