"""The ledger after the sources: each row is whole, and its cell is in the evidence, which proves it."""

from pathlib import Path

import pytest

from lesson_lib.claims import MEANS, address, after_the_sources, claim, ledger, page

ROWS = after_the_sources()
SOURCES = Path(__file__).parents[3] / "notebooks" / "source"


@pytest.mark.parametrize("key", ROWS)
def test_a_row_is_whole_and_has_its_cell(key):
    row = ROWS[key]
    assert row.verdict in ("holds", "with a condition", "corrected") and row.because and row.where
    assert set(row.decided_by.split(" and ")) <= set(MEANS)
    assert row.lesson.startswith("evidence/")
    assert f'tags=["claim:{key}"]' in (SOURCES / f"{row.lesson}.py").read_text("utf-8")
    assert "#cell-id=" in address(key)


def test_the_two_ledgers_share_no_row():
    assert not set(ROWS) & set(ledger()) and list(ROWS) == [f"after-{i}" for i in range(1, len(ROWS) + 1)]
    shown = page(after=True)
    assert sorted(row.id for row in shown.rows) == sorted(ROWS) and "Olsson" in shown._repr_html_()
    assert not [row for row in page().rows if row.id in ROWS]
    conditional = {row.id for row in page("with a condition", after=True).rows}
    assert conditional == {f"after-{i}" for i in (2, 3, 5, 7, 11, 12)}
    with pytest.raises(ValueError, match="source must be one of"):
        page(source="S1", after=True)
    assert "HOLDS" in repr(claim("after-9", {"a finding": True}))
