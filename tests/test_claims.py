"""The ledger: every claim is in it, and a decided one has a reason, a cell, and findings that can fail."""

import ast
import dataclasses
import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest

from lesson_lib import claims
from lesson_lib.claims import (
    VERDICTS,
    address,
    after_the_sources,
    claim,
    errata,
    ledger,
    page,
    sources,
    verdict,
)

ROOT = Path(__file__).parents[1]
DECIDED = [c for c in ledger().values() if c.verdict != "undecided"]
COUNTS = {
    "history": 4, "score": 8, "steps": 9, "matrix": 6, "heads": 8, "mask": 3, "position": 17,
    "transformer": 12, "bert": 1,
    "cnn": 10, "rnn": 8, "truncated": 3, "graph": 3, "efficient": 1, "self": 2,
}  # fmt: skip


SYSTEMS = tomllib.loads((ROOT / "tests" / "systems.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("system", SYSTEMS)
def test_each_system_that_the_sources_name_runs_in_a_notebook(system):
    name, runs = SYSTEMS[system]
    cells = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", 4).cells
    assert any(runs in cell.source and cell.cell_type == "code" for cell in cells)


def test_all_systems_are_listed():
    assert len(SYSTEMS) == 27


def claim_cells(notebook: str, root: Path = ROOT) -> dict[str, str]:
    """Source of each cell tagged claim:ID, by id."""
    text = (root / "notebooks" / "source" / f"{notebook}.py").read_text(encoding="utf-8")
    cells = re.split(r"^# %%", text, flags=re.M)
    return {
        key: cell.split("\n", 1)[1]
        for cell in cells
        for key in re.findall(r'"claim:([a-z]+-\d+)"', cell.split("\n", 1)[0])
    }


def literals(cell: str) -> list[str]:
    """Findings of a cell that are written down instead of computed: values of its dicts in which no name
    occurs."""
    values = [
        value for node in ast.walk(ast.parse(cell)) if isinstance(node, ast.Dict) for value in node.values
    ]
    return [ast.unparse(v) for v in values if not any(isinstance(n, ast.Name) for n in ast.walk(v))]


def test_every_claim_of_the_sources_is_in_the_ledger():
    got = {}
    for key in ledger():
        got[key.rsplit("-", 1)[0]] = got.get(key.rsplit("-", 1)[0], 0) + 1
    assert got == COUNTS
    for family, count in COUNTS.items():
        assert [f"{family}-{i}" for i in range(1, count + 1)] == sorted(
            (k for k in ledger() if k.startswith(f"{family}-")), key=lambda k: int(k.rsplit("-", 1)[1])
        )


@pytest.mark.parametrize("row", [*DECIDED, *after_the_sources().values()], ids=lambda c: c.id)
def test_a_decided_claim_has_a_reason_and_a_cell(row):
    assert row.because.endswith((".", ".)"))
    cells = claim_cells(row.lesson)
    assert row.id in cells, f"{row.lesson} has no cell tagged claim:{row.id}"
    assert f'claim("{row.id}"' in cells[row.id].replace("\n", "").replace("    ", ""), (
        f"that cell does not call claim({row.id!r}, ...)"
    )
    assert not literals(cells[row.id]), "a finding must be computed"


@pytest.mark.parametrize("row", DECIDED, ids=lambda c: c.id)
def test_a_row_quotes_its_source_and_names_what_decided_it(row):
    assert row.quote_zh and row.where.startswith(row.sources) and row.decided_by
    chinese = re.search(r"[\u4e00-\u9fff]", row.quote_zh)
    assert row.quote_en or not chinese, "a Chinese sentence needs its rendering"


def test_every_claim_is_decided():
    assert [row.id for row in ledger().values() if row.verdict == "undecided"] == []


def is_there(test: str, root: Path = ROOT) -> bool:
    """Whether a row's `test`, file::name, exists."""
    path, name = test.split("::")
    text = (root / path).read_text(encoding="utf-8") if (root / path).is_file() else ""
    return re.search(rf"^def {name}\(", text, re.M) is not None


@pytest.mark.parametrize("rows", [ledger, after_the_sources], ids=lambda rows: rows.__name__)
def test_a_test_that_a_row_names_exists(rows):
    assert [row.test for row in rows().values() if row.test and not is_there(row.test)] == []


def test_a_test_that_is_gone_is_seen(tmp_path):
    (tmp_path / "test_a.py").write_text("def test_one():\n    pass\n", encoding="utf-8")
    found = [
        is_there(f"test_{file}::test_{name}", tmp_path)
        for file, name in (("a.py", "one"), ("a.py", "on"), ("b.py", "one"))
    ]
    assert found == [True, False, False]


def test_a_finding_that_is_written_down_is_seen():
    assert literals('claim("a-1", {"one": True, "two": x == 1, "three": 2 > 1})') == ["True", "2 > 1"]


def test_a_false_finding_raises():
    with pytest.raises(AssertionError, match="score-1: the ledger says 'holds'"):
        claim("score-1", {"both learn": False})


@pytest.mark.parametrize(
    "key, findings, words",
    [
        ("score-99", {"x": 1}, "no claim"),
        ("score-1", {}, "at least one"),
    ],
)
def test_bad_input_gets_a_sentence(key, findings, words):
    with pytest.raises(ValueError, match=words):
        claim(key, findings)


def test_an_undecided_claim_has_no_verdict_to_show(monkeypatch):
    """All claims are decided; a new one begins undecided."""
    row = dataclasses.replace(claims.ledger()["score-1"], verdict="undecided")
    monkeypatch.setattr(claims, "ledger", lambda: {"score-1": row})
    with pytest.raises(ValueError, match="undecided"):
        claim("score-1", {"x": 1})


def test_a_shown_claim_reads_as_text_and_as_html():
    shown = claim("heads-4", {"q @ v fits, and is another table": 1 == 1})
    assert (
        "✗ heads-4 (S2)" in repr(shown) and "CORRECTED" in repr(shown) and "found: q @ v fits" in repr(shown)
    )
    assert "next clause says. Decided by the text.\n" in repr(shown)
    assert "<li>found: q @ v fits, and is another table</li>" in shown._repr_html_()


def test_verdict_prints_or_raises(capsys, monkeypatch):
    verdict("two is more than one", 2 > 1)
    assert capsys.readouterr().out == "two is more than one: True\n"
    with pytest.raises(AssertionError, match="one is more than two: False"):
        verdict("one is more than two", 1 > 2)
    monkeypatch.setenv("LESSON_STEPS", "quick")
    verdict("a trained thing", 1 > 2, trained=True)
    assert capsys.readouterr().out == "a trained thing: not judged: quick run\n"
    with pytest.raises(AssertionError):
        verdict("an untrained thing is judged all the same", 1 > 2)


def test_the_page_has_every_row_once_and_each_links_to_the_cell_that_decided_it():
    shown = page()._repr_html_()
    links = dict(re.findall(r'<a href="([^"]+)">([a-z]+-\d+)</a>', shown))
    assert len(links) == len(page().rows) == len(ledger()) and set(links.values()) == set(ledger())
    for link, key in links.items():
        name, cell_id = link.split("#cell-id=")
        cells = json.loads((ROOT / "notebooks" / name).read_text(encoding="utf-8"))["cells"]
        (cell,) = [cell for cell in cells if cell["id"] == cell_id]
        assert f"claim:{key}" in cell["metadata"]["tags"]


def test_the_whole_ledger_is_stored_on_the_page_of_sources():
    cells = json.loads((ROOT / "notebooks" / "sources_claims.ipynb").read_text(encoding="utf-8"))["cells"]
    (stored,) = [cell for cell in cells if "".join(cell["source"]) == "page()"]
    assert "".join(stored["outputs"][0]["data"]["text/html"]) == page()._repr_html_()


def test_a_part_of_the_page():
    assert page("corrected", "S4").rows == () and "No row" in page("corrected", "S4")._repr_html_()
    assert [row.id for row in page(words="ATTENTION forget").rows] == ["rnn-3", "rnn-4"]
    parts = {v: len(page(v).rows) for v in VERDICTS}
    assert sum(parts.values()) == len(ledger())
    assert page().counts() == {v: count for v, count in parts.items() if count}
    chapters = [row.chapter for row in page().rows]
    assert chapters == sorted(chapters)
    assert page().lessons == tuple(dict.fromkeys(row.lesson for row in page().rows))
    assert [row.id for row in page(lesson=ledger()["efficient-1"].lesson).rows] == ["efficient-1"]
    told = repr(page("holds", "S4"))
    assert told.startswith("9 claims: 9 holds\n✓ steps-1 (S0, S4): ") and told.count("\n") == 9


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        ({"verdict": "true"}, ValueError, "verdict must be one of None, holds"),
        ({"source": "S9"}, ValueError, "source must be one of None, S0"),
        ({"lesson": "11"}, ValueError, "lesson must be one of None, .*'11'"),
        ({"words": None}, TypeError, "words must be a text"),
    ],
)
def test_a_part_that_is_none_gets_a_sentence(no_shape_hook, arguments, error, words):
    with pytest.raises(error, match=words):
        page(**arguments)


@pytest.mark.parametrize("key", ["score-99", None, 3])
def test_an_unknown_claim_has_no_address(key, no_shape_hook):
    with pytest.raises(ValueError, match="there is no claim"):
        address(key)


@pytest.fixture
def quoted(monkeypatch, tmp_path):
    """A ledger of two rows: one quotes its source and is decided in evidence, one says nothing."""
    own = ledger()["score-3"]
    told = replace(
        own,
        lesson="evidence/02_scoring_evidence",
        quote_zh="除以根号 <d>",
        quote_en="divide by the root",
        where="S2, 3.1",
    )
    silent = replace(ledger()["steps-1"], lesson="02_scoring", verdict="unsaid", because="A figure.")
    monkeypatch.setattr(claims, "ledger", lambda: {row.id: row for row in (silent, told)})
    cell = {"id": "abc", "metadata": {"tags": ["claim:score-3"]}}
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "02_scoring_evidence.ipynb").write_text(json.dumps({"cells": [cell]}))
    monkeypatch.setattr(claims, "NOTEBOOKS", tmp_path)
    claims._deciding_cells.cache_clear()
    yield told
    claims._deciding_cells.cache_clear()


def test_a_row_shows_its_source_s_own_sentence_and_links_to_evidence(quoted):
    for shown in (page()._repr_html_(), claim("score-3", {"found": True})._repr_html_()):
        for part in ('<q lang="zh">除以根号 &lt;d&gt;</q>', "divide by the root", "<i>S2, 3.1</i>"):
            assert part in shown
    assert 'href="evidence/02_scoring_evidence.ipynb#cell-id=abc"' in page()._repr_html_()
    assert 'href="../evidence/02_scoring_evidence.ipynb#cell-id=abc"' in page(up="../")._repr_html_()
    assert (
        [row.id for row in page(words="根号").rows]
        == ["score-3"]
        == [row.id for row in page(words="3.1").rows]
    )


def test_a_row_s_own_sentence_is_told_in_a_terminal_too(quoted):
    lines = repr(claim("score-3", {"so": True})).splitlines()
    assert lines[1] == "  S2, 3.1: 除以根号 <d> (divide by the root)" and lines[2].startswith(
        "  WITH A CONDITION."
    )


@pytest.mark.parametrize(
    "fields, told",
    [
        ({}, []),
        ({"quote_zh": "甲"}, ["  甲"]),
        ({"where": "S2, 1"}, ["  S2, 1"]),
        ({"quote_en": "first", "where": "S2, 1"}, ["  S2, 1: first"]),
    ],
)
def test_fields_that_are_not_filled_leave_no_trace(fields, told):
    bare = {"quote_zh": "", "quote_en": "", "where": ""}
    row = dataclasses.replace(ledger()["score-3"], **bare | fields)
    shown = claims.Shown(row, ("so",))
    assert repr(shown).splitlines()[1:-2] == told
    html = shown._repr_html_()
    assert "<br><br>" not in html and ("<i>" in html) == ("where" in fields)


def test_what_decided_a_row_is_one_of_five(monkeypatch):
    row = {
        "sources": ["S2"],
        "claim": "It is so",
        "verdict": "holds",
        "lesson": "x",
        "decided_by": "a toy and faith",
    }
    monkeypatch.setattr(claims, "_content", lambda: {"sources": {"S2": "a text"}, "claims": {"a-1": row}})
    with pytest.raises(ValueError, match=r"a-1: decided_by must be of .*'literature'"):
        ledger.__wrapped__()


@pytest.mark.parametrize("verdict", ["unsaid", "not said"])
def test_the_file_s_rows_may_have_the_fields_and_be_unsaid(monkeypatch, verdict):
    fields = {
        "quote_zh": "甲",
        "quote_en": "first",
        "where": "S2, 1",
        "lesson": "evidence/02_scoring_evidence",
    }
    row = {
        "sources": ["S2"],
        "claim": "It is so",
        "verdict": verdict,
        "because": "Code.",
        "test": "x",
    } | fields
    monkeypatch.setattr(claims, "_content", lambda: {"sources": {"S2": "a text"}, "claims": {"a-1": row}})
    if verdict == "unsaid":
        (read,) = ledger.__wrapped__().values()
        assert {name: getattr(read, name) for name in fields} == fields and read.sources == ("S2",)
    else:
        with pytest.raises(ValueError, match=r"a-1: verdict must be one of .*'unsaid'"):
            ledger.__wrapped__()


def test_what_is_unsaid_is_shown_as_such(quoted):
    shown = claim("steps-1", {"the figure is drawn": True})
    assert repr(shown).startswith("– steps-1") and "<b>Unsaid.</b> A figure." in shown._repr_html_()
    assert "– unsaid" in page()._repr_html_()


def test_evidence_may_hold_the_deciding_cell(tmp_path):
    folder = tmp_path / "notebooks" / "source" / "evidence"
    folder.mkdir(parents=True)
    cell = '# %% tags=["claim:score-3"]\nclaim("score-3", {"so": x == 1})\n'
    (folder / "02_scoring_evidence.py").write_text(cell, encoding="utf-8")
    found = claim_cells("evidence/02_scoring_evidence", tmp_path)
    assert list(found) == ["score-3"] and 'claim("score-3"' in found["score-3"]


def test_evidence_stands_in_its_chapter_and_what_is_unsaid_is_counted(quoted):
    assert [row.chapter for row in page().rows] == ["02 scoring", "02 scoring"]
    assert page()._repr_html_().count("<caption") == 1
    assert page().counts() == {"with a condition": 1, "unsaid": 1} and "– steps-1" in repr(page("unsaid"))


def test_a_row_without_a_quote_looks_as_before(monkeypatch):
    bare = replace(ledger()["heads-1"], quote_zh="", quote_en="", where="")
    monkeypatch.setattr(claims, "ledger", lambda: {bare.id: bare})
    assert bare.quoted == "" and "<q lang" not in page()._repr_html_()


def test_without_its_notebooks_the_library_names_the_lesson(monkeypatch, tmp_path):
    claims._deciding_cells.cache_clear()
    monkeypatch.setattr(claims, "NOTEBOOKS", tmp_path)
    try:
        assert address("graph-2") == f"{ledger()['graph-2'].lesson}.ipynb"
    finally:
        claims._deciding_cells.cache_clear()


def test_the_errata_name_known_sources_and_say_both_sides():
    assert {e.source for e in errata()} == set(sources()) and all(e.says and e.meant for e in errata())
    assert errata()._repr_html_().count("<tr>") == len(errata()) + 1
    assert repr(errata()).splitlines()[0].startswith("S0: ")
