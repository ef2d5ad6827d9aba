# %% [markdown]
r"""
{title}

*I saw a saw.* The same word twice: first a verb, then a tool. You knew which was which. A **tagger** is a network that names each word's part of speech. What must it see
to know it, too?

**Afterwards you can** compute the best score that a tagger can reach from what it sees; say what a window, a recurrent network and attention see; test by an
intervention which words a trained network uses.

{about}

<details><summary>中文摘要 · Chinese</summary>
看到的信息相同,输出就相同:只看单个词的网络无法区分句中的两个 saw。一个标注器能达到的最好成绩由它能看到什么决定,可以精确计算。
窗口大小难以选定,自注意力让每个词一步就能看到全句。要知道训练好的网络用了哪个词,应做干预实验并设对照,而不是只看权重图。
</details>

{sources}
"""

# %%
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor
from torch.testing import assert_close

from lesson_lib.chapters.c01_history import figures
from lesson_lib.chapters.c01_history.experiments import tagger
from lesson_lib.checks import check, hint, predict, solution, warm_up
from lesson_lib.data import tagging
from lesson_lib.device import quick, to_device
from lesson_lib.masks import causal, window
from lesson_lib.models import tagger as models
from lesson_lib.show import show, show_source

warm_up()

# %%
predict("same_word")

# %% [markdown]
r"""
A small grammar writes our sentences, with a tag for every word:
"""

# %%
sample = tagging.draw(torch.Generator().manual_seed(12), 2)
for words, tags in zip(sample.words, sample.tags, strict=True):
    named = [tagging.TAGS[t] for t in tags.tolist() if t != tagging.PADDING]
    print(
        *(f"{w}/{t}" for w, t in zip(tagging.text(words).split(), named, strict=True))
    )

# %% [markdown]
r"""
Three kinds of words are ambiguous. (After an *auxiliary*, such as *did* or *will*, a verb has its *base* form: *did cut*.)

| words like | may be | told by |
|---|---|---|
| *saw* | noun, past form | a neighbour: *the saw*, *I saw* |
| *watch* | noun, base form | a neighbour: *the watch*, did *I watch* |
| *cut* | noun, past, base form | at times a word far away: ***did** the man near me **cut** the bottle* |

## 1 · The best that anybody can do

**Two words that look the same to a tagger get the same tag.** Call what it sees a *sight*. The best that it can do is to name, for each sight, the most
frequent tag.

Let *saw* be a noun 5 times and a past form 3 times. Alone, 5 of 8 can be right: always say "noun". Now the tagger sees the word before as well:

| | noun | past form | right |
|---|---|---|---|
| *the saw* | 4 | 0 | 4 of 4 |
| *I saw* | 0 | 3 | 3 of 3 |
| *garden saw* | 1 | 0 | 1 of 1 |

Together 8 of 8.
"""

# %% [markdown] tags=["exercise:most_right"]
# Write it for any table of counts: a row for each sight, a column for each tag.

# %% [markdown]
r"""
The grammar knows every probability, so the library's `limit` gives the exact value for all sentences. Words like *saw*, seen alone:
"""

# %%
show(limit=tagging.limit(tagging.window(0), among=("saw",)))

# %% [markdown]
r"""
**"A larger network would do it."** No network that sees one word passes «0.63», however large. (The limit is known because the grammar is. In a real text
most long sights occur once; counting would say 1.)

## 2 · What sees what

For each kind of network we can draw which word (row) may look at which (column): its **mask**. A **recurrent** network reads from left to right and keeps a
summary. Let each of the four know the order of what it sees.
"""

# %% [markdown] tags=["exercise:window_mask"]
# A window shows a word its neighbours. Write its mask.

# %%
figures.masks(
    {
        "one word": window(6, radius=0),
        "window 1": window(6, radius=1),
        "recurrent": causal(6),
        "attention": torch.ones(6, 6),
    }
)

# %%
predict("best_on_cut")

# %%
sights = {
    "one word": tagging.window(0),
    "window 1": tagging.window(1),
    "window 7": tagging.window(7),
    "recurrent": tagging.before,
    "attention": tagging.whole,
}
print("limit           saw    cut")
for name, sight in sights.items():
    saw, cut = (tagging.limit(sight, among=(word,)) for word in ("saw", "cut"))
    print(f"{name:14}{saw:.3f}  {cut:.3f}")

# %% [markdown]
r"""
One neighbour on either side solves *saw*. For *cut* even seven are too few: a window must be as wide as the farthest clue. The
recurrent network misses what a later word tells: only *bit* and *me* tell the two *saw* of *the garden saw bit me* and *the garden saw me* apart. Seeing everything gives «1».
"""

# %%
predict("without_order")

# %%
show(limit_without_order=tagging.limit(tagging.bag, among=("saw",)))

# %% [markdown]
r"""
Order is a part of what is seen. Attention has to be told it (chapter 05).

## 3 · Are the limits reached?

The model behind *one word* and the windows. (`embed` gives each word a row of numbers, `read_out` scores the tags.)
"""

# %%
show_source(models.Window)

# %%
figures.stored_taggers()

# %% [markdown]
r"""
Each dot is a trained network, each black line its limit: no dot is more than two points away. (A dot may pass its limit by a hair.) **What a model sees decides what it can learn.**

**"Only attention can do this."** *Recurrent, both ways* has two readers, one from each end, and sees everything too. But it may have to carry
*did* through ten updates of its summary; attention reads *did* directly. Train attention, with positions (its two layers are opened in chapters 04 and 06):
"""

# %%
attentive, _ = tagger.train("attention", lr=1e-2)
share = tagger.accuracy(attentive, "test")

# %% tags=["nbval-ignore-output"]
print({name: round(right, 3) for name, right in share.items()})

# %% tags=["proof"]
assert quick() or (share["all words"] > 0.98 and share["cut"] > 0.985)

# %% [markdown]
r"""
## 4 · Who looked?

On *cut* it passes «.984», the limit of a window of 7. Does it use the far word? An **intervention** tests it: change one word, and see which tags follow.
"""

# %%
asked = "did the old man that saw the duck near me cut the bottle"
predict("did_away")


# %%
def tagged(sentence):
    """The tag that the trained network gives each word."""
    with torch.no_grad():
        best = attentive(to_device(tagging.read(sentence)))[0].argmax(-1)
    return [tagging.TAGS[t] for t in best.tolist()]


def moved(sentence, gone=None):
    """The words whose tags differ from those in `asked`; word `gone` of it is missing."""
    kept = [i for i in range(len(asked.split())) if i != gone]
    before, after = tagged(asked), tagged(sentence)
    pairs = zip(sentence.split(), (before[i] for i in kept), after, strict=True)
    return [f"{word}: {one} -> {other}" for word, one, other in pairs if one != other]


found = {
    "without did": moved(asked.replace("did ", ""), gone=0),
    "without old": moved(asked.replace("old ", ""), gone=2),
    "will, not did": moved(asked.replace("did", "will")),
}

# %% tags=["nbval-ignore-output"]
for change, followed in found.items():
    print(f"{change:15}", followed or "nothing")

# %%
silent = [followed for change, followed in found.items() if change != "without did"]

# %% tags=["proof"]
assert quick() or (found["without did"] == ["cut: base -> past"] and silent == [[], []])

# %% [markdown]
r"""
One word went, and one tag changed, ten places on. Taking *did* away also moves *cut* by a place. Hence the **control**: taking *old* away moves
*cut* as well, and no tag changes. Nor does *will* for *did*: any auxiliary serves. One sentence may be luck, so here are all test sentences with an
auxiliary eight words or more before a word like *cut*, the auxiliary taken away, or replaced:
"""

# %%
far, away, replaced = tagger.without_auxiliary(attentive, distance=8)

# %% tags=["nbval-ignore-output"]
print(f"{far} sentences, tagged past: away {away:.0%}, replaced {replaced:.0%}")

# %% tags=["proof"]
assert quick() or (away > 0.9 and replaced < 0.1)

# %% [markdown]
r"""
**"The longest bar is the cause."** Where does *cut* look, in the first layer and in the second?
"""

# %% tags=["trained"]
with torch.no_grad():
    _, maps = attentive.look(to_device(tagging.read(asked)))
figures.sight(asked.split(), [layer[0] for layer in maps], 10)

# %% [markdown]
r"""
The dotted line is an even share, 1/13. Several words pass it; which one decides, no bar says. A map is a place to get ideas; an
intervention is a test.

## In real work

Sentences in a batch are padded to the longest.
"""

# %%
predict("padding_counts")

# %%
batch = to_device(tagging.draw(torch.Generator().manual_seed(6), 3))
scores, tags = attentive(batch.words).flatten(0, 1), batch.tags.flatten()
real = tags != tagging.PADDING
by_torch = F.cross_entropy(scores, tags, ignore_index=tagging.PADDING)
assert_close(by_torch, F.cross_entropy(scores[real], tags[real]))
hits = real.float()  # somebody who tags every word rightly, and every padding wrongly
print(f"of the words {hits[real].mean():.2f}, of all places {hits.mean():.2f}")

# %% [markdown]
r"""
Divide by the number of *words*. In the loss `ignore_index` does that.

## I saw a saw
"""

# %% tags=["nbval-ignore-output"]
print(tagged("I saw a saw"))

# %% tags=["proof"]
assert quick() or tagged("I saw a saw")[1::2] == ["past", "noun"]

# %% [markdown]
r"""
Each *saw* saw something else.

**To remember.** What a model sees, order included, sets the limit of what it can learn; where the probabilities are known, the limit can be computed before anything is trained.

- Equal sights get equal answers, at any size.
- A window must be as wide as the farthest clue; attention lets each word look anywhere in one step.
- To know what a network uses, change it, with a control.
- Leave padding out of loss and accuracy.

**Sources.** Hung-yi Lee, *Machine Learning* 2021 (the sentence). Seeds, rates, the sources' claims:
[evidence](evidence/01_history_evidence.ipynb).

**Next**: [01b · Looking back](01b_looking_back.ipynb), or on the core path [02a · A soft look-up](02a_soft_look_up.ipynb).
"""
