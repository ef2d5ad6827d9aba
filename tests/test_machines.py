"""The tool that compares instruction sets: what it notes, and one cell of its table on this machine."""

import ast
import json

import pytest
import torch

from tools import machines
from tools.machines import Seen

# it solves a system that is nearly singular, and failed on other processors once
CELL = "notebooks/evidence/05_positional_encoding_evidence.ipynb"


@pytest.fixture
def noted(monkeypatch, tmp_path):
    """`noted(code)`: the comparisons that are written down when the code runs, and the truth of each."""

    def run(code):
        rows = []
        monkeypatch.setattr(machines, "_write", lambda **row: rows.append(row))
        tree = ast.fix_missing_locations(machines.Noted().visit(ast.parse(code)))
        exec(compile(tree, "a cell", "exec"), {"_noted_comparison": machines.noted, "torch": torch})
        return [(row["sign"], row["left"], row["right"]) for row in rows]

    return run


@pytest.mark.parametrize(
    ("code", "rows"),
    [
        ("assert 3 > 2", [(">", 3, 2)]),
        ("assert False or 1 < 5 <= 7", [("<", 1, 5), ("<=", 5, 7)]),
        ("assert all(x < 0.5 for x in (0.1, 0.4))", [("<", 0.1, 0.5), ("<", 0.4, 0.5)]),
        ("assert (torch.tensor([3.0, 8.0]) > 2).all()", [(">", 3, 2)]),
        ("verdict = lambda text, truth: None; verdict('more', 7 >= 5)", [(">=", 7, 5)]),
        ("x = 3 > 2", []),
    ],
)
def test_comparisons_that_judge_are_noted(code, rows, noted):
    assert noted(code) == rows


def test_a_false_comparison_stays_false(noted):
    with pytest.raises(AssertionError):
        noted("assert 1 < 2 < 1.5")


def test_the_narrowest_of_a_place_is_kept_and_comes_first(tmp_path):
    rows = [
        {"where": "a", "text": "x > 0.9", "sign": ">", "left": left, "right": 0.9}
        for left in (0.99, 0.95, 0.97)
    ]
    rows += [{"where": "a::cell 3", "failed": "assert x"}, {"where": "t", "trains": True}]
    (tmp_path / "one").write_text("".join(json.dumps(row) + "\n" for row in rows))
    seen, failed, trains = machines.read(tmp_path / "one")
    assert seen == {("a", "x > 0.9"): Seen("a", "x > 0.9", ">", 0.95, 0.9)}
    assert failed == {"a::cell 3": "assert x"} and trains == ["t"]
    other = {
        ("a", "x > 0.9"): Seen("a", "x > 0.9", ">", 0.85, 0.9),
        ("b", "y < 4"): Seen("b", "y < 4", "<", 1, 4),
    }
    head, *rows = machines.table({"1 x default": seen, "1 x avx2": other})
    assert head[3:] == ["1 x default", "1 x avx2"]
    assert rows[0] == ["a", "x > 0.9", "-0.056", "0.95 > 0.9", "0.85 > 0.9"]
    assert rows[1:] == [], "y is seen in one setting only, and differs from nothing"


def test_a_cell_of_the_table(capsys):
    arguments = [CELL, "--capability", "default", "--threads", "1", "--workers", "1"]
    assert machines.main(arguments) == 0, capsys.readouterr().out
    said = capsys.readouterr().out
    assert "== 1 x default: " in said and " 0 failures" in said
