"""The ledger to search: every control narrows the rows, and says how many are left."""

from lesson_lib.chapters.c12_claims.ledger_explorer import LedgerExplorer
from lesson_lib.claims import VERDICTS, ledger, page, sources


def made():
    return LedgerExplorer(page, verdicts=VERDICTS[:3], sources=sources())


def shown(explorer):
    return [key for key in ledger() if f"<br>{key} (" in explorer.drawing.value]


def test_it_starts_with_all_rows_and_loads_nothing():
    explorer = made()
    assert shown(explorer) == list(ledger()) and "<b>95 claims</b>" in explorer.drawing.value
    drawn = explorer.drawing.value.replace("https://arxiv.org/abs/2008.02445", "")  # a source's own words
    assert not any(word in drawn for word in ("http", "<script", "href", "src="))


def test_each_control_narrows_the_rows():
    explorer = made()
    explorer.verdict.value = "corrected"
    corrected = shown(explorer)
    assert corrected == [key for key, row in ledger().items() if row.verdict == "corrected"]
    explorer.source.value = "S1"
    assert shown(explorer) == [key for key in corrected if "S1" in ledger()[key].sources]
    explorer.verdict.value, explorer.source.value, explorer.words.value = "all", "all", "float16"
    assert shown(explorer) == ["mask-2"] and "<b>1 claim</b>: 1 holds" in explorer.drawing.value
    explorer.words.value = "<b>nowhere"
    assert shown(explorer) == [] and "No row of the ledger" in explorer.drawing.value
