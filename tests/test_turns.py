"""Your-turn cells of a part: unsolved they stop nothing, and solved the part runs on."""

import re
import sys

import pytest

from lesson_lib.checks import engine
from lesson_lib.cli import build, sources
from lesson_lib.cli.exercise_cells import CARD
from tests import cells

PART = """\
# %% [markdown]
# # What does softmax need?

# %%
import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.checks import check, predict, warm_up

warm_up()

# %%
predict("unscaled_picture")

# %% [markdown] tags=["exercise:stable_weights"]
# Write softmax so that it stands scores of 1,000.

# %%
print(torch.softmax(torch.tensor([1000.0, 1000.0]), -1).tolist())
"""


@pytest.fixture
def part(tmp_path):
    """The target of a part with one your-turn cell."""
    folder = tmp_path / "notebooks" / "source"
    folder.mkdir(parents=True)
    (folder / "02a_made_up.py").write_text(PART, encoding="utf-8")
    (target,) = sources.targets(root=tmp_path)
    target.path.parent.mkdir(exist_ok=True)
    return target


def run(target: sources.Target, *, solved: bool):
    """The part's notebook, run to its end."""
    notebook = sources.read_source(target, solved=solved)
    build.execute(notebook, target)
    return notebook


def said(notebook) -> dict[str, str]:
    """What the check of each your-turn cell says."""
    texts = ["".join(o.data["text/plain"] for o in c.get("outputs", ())) for c in notebook.cells if asked(c)]
    return dict(zip([name for cell in notebook.cells for name in asked(cell)], texts, strict=True))


def asked(cell) -> list[str]:
    """The exercises whose check is in the cell."""
    return re.findall(r"exercise:(\w+)", " ".join(cell.metadata.get("tags", ())))


def test_unsolved_it_says_so_and_the_part_goes_on(part):
    notebook = run(part, solved=False)
    assert "return ..." in "".join(cell.source for cell in notebook.cells)
    (text,) = said(notebook).values()
    assert text.startswith("NOT ATTEMPTED YET") and "[0.5, 0.5]" in notebook.cells[-1].outputs[0].text


def test_solved_it_passes_and_the_part_goes_on(part):
    notebook = run(part, solved=True)
    (text,) = said(notebook).values()
    assert text.startswith("PASSED  stable_weights") and "[0.5, 0.5]" in notebook.cells[-1].outputs[0].text


def test_its_cells_are_a_shorter_card_without_points(part):
    cells = sources.read_source(part).cells
    head = next(i for i, cell in enumerate(cells) if cell.source.startswith("### Your turn: "))
    answer, judged = cells[head + 1 : head + 3]
    assert answer.metadata.tags == ["turn:stable_weights"] and answer.source.endswith("return ...")
    assert judged.metadata.tags == ["exercise:stable_weights"]
    assert (
        judged.source
        == 'check(stable_weights)  # stuck? hint("stable_weights"), then solution("stable_weights")'
    )


@pytest.mark.skipif(sys.platform == "win32", reason="a fork; the systems with one say it for all")
def test_what_passed_in_this_process_is_not_what_a_notebook_goes_on_with(monkeypatch):
    monkeypatch.setitem(engine._PASSED, "stable_weights", lambda scores: None)
    ours = "engine.yours('stable_weights') is engine.exercises()['stable_weights'].solution"
    assert cells.run(["from lesson_lib.checks import engine", ours]) == ["", "True"]


TURNS = [
    target
    for target in sources.targets(among=("part", "page", "evidence"))
    if CARD.search(target.source.read_text(encoding="utf-8"))
]


@pytest.mark.skipif(sys.platform == "win32", reason="a fork; the systems with one say it for all")
@pytest.mark.parametrize("target", TURNS, ids=lambda target: target.name)
def test_every_turn_of_the_course_is_solved_by_its_solution(target):
    """Of the part, those cells and what they stand on; what comes later runs in nbval."""
    code = [cell for cell in sources.read_source(target, solved=True).cells if cell.cell_type == "code"]
    turns = [
        i
        for i, cell in enumerate(code)
        if re.search(r"\b(turn|exercise):", " ".join(cell.metadata.get("tags", ())))
    ]
    chosen = cells.needed([cell.source for cell in code], turns)
    texts = cells.run([code[i].source for i in chosen], target.path.parent)
    results = [text for i, text in zip(chosen, texts, strict=True) if asked(code[i])]
    assert results and all(text.startswith("PASSED") for text in results)
