# %% [markdown]
r"""
# 01 · History: evidence

What part [01a](../01a_two_saws.ipynb) says in a sentence, with protocol, seeds and numbers; and what S0, an overview of self-attention, claims of it. (The chapter's other claims still stand in
[01 · History](../01_history.ipynb).) ✓ holds, ◐ holds with a condition. Each finding is computed in its cell or above it; were it not true, the cell would end in an error.

<details><summary>中文摘要</summary>
本页给出 01a 各个结论的依据:语法、训练方案、三个随机种子、各种窗口大小的极限,以及原文关于词性标注与窗口的原句与判定。
</details>
"""

# %%
import torch

from lesson_lib.chapters.c01_history import figures
from lesson_lib.chapters.c01_history.experiments import tagger
from lesson_lib.claims import claim, verdict
from lesson_lib.data import tagging
from lesson_lib.device import to_device
from lesson_lib.experiments import results
from lesson_lib.show import show_source

# %% [markdown]
r"""
## 1 · Protocol

The grammar writes more than $10^{18}$ sentences, so nothing can be learned by heart; the words of a sentence decide whether it is for training, validation or testing. Every system trains on the
same 10,000 sentences: 1,200 steps of Adam, batches of 64, three learning rates (the best on 2,000 validation sentences is taken), three seeds; 4,000 test sentences. All taggers
share embedding, width and the layer behind; what stands between is what they see. `make experiments ARGS=tagger` runs it again.

A limit is the probability of each pair of a sight and a tag, the largest of each sight, all added up:
"""

# %%
show_source(tagging.limit)

# %%
rows = results("tagger")["rows"]
limits = {row["system"]: row["limit"] for row in rows}
print(f"sentences: {tagging.count_sentences():.1e}")
print(f"{'limit':24} saw    watch  cut")
for name, limit in limits.items():
    print(f"{name:24}", *(f"{limit[group]:.3f} " for group in ("saw", "watch", "cut")))

# %%
gaps = [abs(row["right"][g] - row["limit"][g]) for row in rows for g in ("saw", "cut")]
verdict("no trained tagger is more than 2 points from its limit", max(gaps) < 0.02)

# %% [markdown]
r"""
How large should a window be? For *saw* and *watch* 1, for *cut* more than 7:
"""

# %%
radii = [0, 1, 2, 3, 5, 7]
window_limits = {
    group: [tagging.limit(tagging.window(r), (group,)) for r in radii]
    for group in ("saw", "watch", "cut")
}
figures.sweep(radii, window_limits, rows)

# %% [markdown]
r"""
Two readers, one from each end (a bidirectional GRU), see everything as well, and reach the limit: for twelve words attention is not needed. Chapter 08 measures what its short way is worth on longer inputs.

## 2 · What the source says
"""

# %% tags=["claim:history-3"]
blank = to_device(tagger.make("one word"))  # not trained: any weights will do
scores = blank(to_device(tagging.read("I saw a saw")))[0]
alone = [row for row in rows if row["system"] == "one word"]
claim(
    "history-3",
    {
        "the two saw get the same scores, whatever the weights": torch.equal(
            scores[1], scores[3]
        ),
        "of words like saw at most 63 % can be right": round(
            limits["one word"]["saw"], 2
        )
        == 0.63,
        "and the best of three trained ones is within 2 points of that": abs(
            max(row["right"]["saw"] for row in alone) - limits["one word"]["saw"]
        )
        < 0.02,
    },
)


# %% tags=["claim:history-4"]
def words_reached(system, place):
    """The words whose scores change when the word at `place` is another one."""
    model = to_device(tagger.make(system)).eval()
    words = to_device(tagging.read("the man found the cat near the house"))
    other = words.clone()
    other[0, place] = to_device(tagging.read("kitchen"))[0, 0]
    with torch.no_grad():
        change = (model(words) - model(other)).abs().amax(-1)[0]
    return (change > 0).nonzero().flatten().tolist()


claim(
    "history-4",
    {
        "for saw a window of 1 is enough": round(limits["window 1"]["saw"], 6) == 1,
        "for cut a window of 7 is not": limits["window 7"]["cut"] < 1,
        "a window of 1: word 4 reaches words 3, 4, 5": words_reached("window 1", 4)
        == [3, 4, 5],
        "a recurrent network: word 4 reaches word 7, the last, and none before": words_reached(
            "recurrent", 4
        )
        == [4, 5, 6, 7],
    },
)

# %% [markdown]
r"""
A window sees as much to the left as to the right, and then nothing. A recurrent network sees everything to its left and nothing to its right. The source calls the first by the name of the second; the table above shows that
they fail on different words.

**Back** to [01a · What does a word need to see?](../01a_two_saws.ipynb)
"""
