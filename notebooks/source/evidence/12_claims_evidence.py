# %% [markdown]
r"""
# 12 · Claims: evidence

What part [12](../12_claims.ipynb) says in a sentence: how a claim gets its row, who read the rows, what they found, and what the ledger cannot show. All rows with their sources' words stand on the page [every claim](../sources_claims.ipynb).

<details><summary>中文摘要 · Chinese</summary>
本页说明九十五行结论是怎样得来的:没有算出的依据就没有结论;两位中文读者逐行对照原文,二十九个判定被认为不公,全部改过;哪些行由计算、测量、小模型、原文或文献决定,以及这张表不能说明什么。
</details>
"""

# %%
from itertools import chain

from lesson_lib.chapters.c12_claims import ledger_figures, literal
from lesson_lib.checks import properties
from lesson_lib.claims import MEANS, claim, ledger, page, sources, verdict
from lesson_lib.trace import EXAMPLE, in_pure_python

# %% [markdown]
r"""
## 1 · A row is computed, or there is none

A verdict needs *findings*: sentences, each with a value that a cell has just computed. `claim` shows a row only if all of them are true. The nine numbers that S4 prints, computed again:
"""

# %%
printed = [
    [1.9366210616669624, 6.683105308334811, 1.5950684074995565],
    [1.9999939663351456, 7.9639915951322156, 0.0539764053125496],
    [1.9997046127769653, 7.759892254657784, 0.3583892946751152],
]
computed = in_pure_python(**EXAMPLE)
pairs = zip(chain(*printed), chain(*computed), strict=True)
gap = max(abs(a - b) for a, b in pairs)
claim("steps-3", {"all nine numbers agree to 12 decimals": gap < 1e-12})

# %% [markdown]
r"""
And a finding that is not true:
"""

# %%
by_hand = [[2.0, 7.0, 1.5], [2.0, 8.0, 0.0], [2.0, 7.8, 0.3]]
try:
    claim("steps-3", {"the outputs are those found by hand": computed == by_hand})
except AssertionError as refused:
    print(refused)

# %% [markdown]
r"""
## 2 · The kindest reading

The first ledger had 22 rows "corrected". A reader of Chinese held ten of them against the sentence that they quoted, and found that it does not say what was corrected. So every row now quotes its sentence, and two fresh readers of Chinese went through all 95, each through half, with the five texts beside them and nothing else. They checked the quotation, its rendering, its place, the verdict against the kindest reading, and whether the reason blames the text for what it does not say.

All 95 quotations were found in the texts. Of the verdicts 29 were called unfair:

| before | after | rows |
|---|---|---|
| with a condition | holds | 21: the condition is in the sentence, in the one beside it, or was ours (rnn-6, steps-2, heads-6 ...) |
| corrected | with a condition | 7: a loose word or an end of an interval that can be read rightly (score-5, position-3, rnn-2 ...) |
| corrected | holds | 1: letters that may be exchanged (position-11) |

All 29 were changed. Besides, 42 claims were worded nearer to the text, 19 renderings mended, 22 places made exact, and five rows lost a text that does not support them. What a row adds beyond its sentence stands in brackets now.

So far the readers had seen one ledger. What was changed was read again by others:

| readers | verdicts called unfair | what became of them |
|---|---|---|
| a second pair | 14 of 95 | 9 became *holds* (score-5, heads-1, rnn-2 ...), five reasons were reworded |
| a third pair | 7 | all became *holds* (position-8, transformer-6, graph-3 ...) |
| one more, all rows | 5, by their own estimate with 50 to 65 % confidence | 4 became *holds*; efficient-1 was kept, and its reason says now that the text names long inputs |

That is a drift in one direction: a fair reader finds a kind reading, and the next one a kinder. The last found no *holds* that fails for a sensible reader.
"""

# %%
total = page().counts()
print(total)
verdict("95 rows", sum(total.values()) == 95)
verdict("two are corrected", total["corrected"] == 2)
for row in page("corrected").rows:
    print(row)

# %% [markdown]
r"""
Graph-2, with which part 12 begins, is one that they left as it was: the word *attention score* means the table before softmax in one place of the text, and what comes out of it in another.

## 3 · Who says what, and where it was decided

A claim that two texts make counts for both.
"""

# %%
for letter, what in sources().items():
    print(f"{letter}: {what}")
by_source = {letter: page(source=letter).counts() for letter in sources()}
ledger_figures.tally(
    by_source,
    alt="A bar for each of the five sources: S2 and S3 have most claims; the two corrected ones are theirs.",
    caption="Claims of each source by their verdict.",
)

# %%
by_chapter = {}
for row in page().rows:
    counts = by_chapter.setdefault(row.chapter, {})
    counts[row.verdict] = counts.get(row.verdict, 0) + 1
ledger_figures.tally(
    by_chapter,
    alt="A bar for each chapter: 02 and 05 have most claims, 01 and 09 to 11 have at most four.",
    caption="The same claims by the chapter that decided them.",
)

# %% [markdown]
r"""
S2 and S3 say most: S2 in code and shapes, S3 in words and pictures. S4, the worked example, has nothing that is not so.

## 4 · What decided a row
"""

# %%
for means in MEANS:
    rows = [
        row.id for row in ledger().values() if means in row.decided_by.split(" and ")
    ]
    print(f"{means} ({len(rows)}): {', '.join(rows)}")

# %% [markdown]
r"""
- **Literature.** Who was first, and what became popular: about that no cell can decide anything.
- **A toy.** A minute's training, a small network, mostly three seeds; the evidence of its chapter says how many. It shows that something can happen. A CNN that is ahead of a ViT on our canvases says nothing about 300 million photographs.
- **The text.** Reading its words. Somebody else would have found 80 claims, or 120; and whether a missing condition counts is a judgement. The reason beside each verdict is there so that you can judge again.

## 5 · Sentences to the letter

Part 12 tries four functions on four examples, and hands them to `properties`. Everything that the suite finds in one of them:
"""

# %%
properties(literal.maskless(literal.minus_a_billion))
