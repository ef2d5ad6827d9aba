# %% [markdown]
r"""
# Sources: every claim, and the errata

The five texts of [Sources](sources.ipynb) make 95 claims. Here is each, with the text's own words, a translation, the verdict, its reason and a link to the cell that decided it. How the rows were made: [evidence](evidence/12_claims_evidence.ipynb).

<details><summary>中文摘要 · Chinese</summary>
全部九十五个论断:原文、英译、结论、理由,以及作出判断的单元格。可以按结论、按文章、按词语筛选。最后是勘误。
</details>
"""

# %%
from lesson_lib.chapters.c12_claims.ledger_explorer import LedgerExplorer
from lesson_lib.claims import errata, page, sources

# %% [markdown]
r"""
## 1 · Search the claims

✓ holds, ◐ holds with a condition, ✗ corrected, – unsaid: code or a figure. A verdict is that of a sentence's kindest reading; what stands in brackets is an addition, no blame. A toy is a small trained model of ours.
"""

# %%
LedgerExplorer(page, verdicts=list(page().counts()), sources=sources())

# %% [markdown]
r"""
## 2 · Every claim, with its own words
"""

# %%
page()

# %% [markdown]
r"""
## 3 · Errata

Slips that need no cell:
"""

# %%
errata()
