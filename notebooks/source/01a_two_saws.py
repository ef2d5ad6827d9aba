# /// ideas
# [sight]
# says = "two words whose visible input is the same get the same tag, however large the network is"
# motive = "The same word twice"
# shown = "the same sight, they get the same tag"
# action = 'predict("same_word")'
#
# [limit]
# says = "the limit: for each visible input its most probable tag, added up; the best accuracy that any tagger with this input can reach"
# motive = "How often can it be right at best?"
# shown = "sum_{\\text{sight}}"
# action = "most_right"
#
# [mask]
# says = "a mask says which word may look at which; one word, a window, a recurrent network and attention differ in it"
# motive = "Which words does each kind of network see?"
# shown = "figures.masks"
# action = "window_mask"
#
# [farthest_clue]
# says = "more sight never lowers the limit, and a window must be as wide as the farthest clue"
# motive = "Which words does each kind"
# shown = "0.984"
# action = 'predict("best_on_cut")'
#
# [order]
# says = "order is a part of the sight; attention alone does not know it"
# motive = "where these words stand"
# shown = "bag of words"
# action = 'predict("without_order")'
#
# [reached]
# says = "trained networks come close to their limits"
# motive = "Does training get there?"
# shown = "figures.stored_taggers"
# action = "Compare dots and lines"
#
# [way]
# says = "a recurrent network that reads both ways sees everything too, but must carry a far word through every step between; attention reads it directly"
# motive = "Only attention can do this"
# shown = "ten updates"
# action = "Compare dots and lines"
#
# [intervention]
# says = "an intervention with its control tells which word decides: change one, and see which answers change"
# motive = "Does the network use"
# shown = "cut: base -> past"
# action = "changed_tags"
#
# [weights]
# says = "a large attention weight is no proof: the word under it may change nothing"
# motive = "large weight marks the cause"
# shown = "0.75"
# action = 'predict("which_deletion")'
# ///

# %% [markdown]
r"""
{title}

*I saw a saw.* The same word twice: first a verb, then a tool. A **tagger** is a network that names each word's part of speech, its **tag**. What must it see to know which *saw* is which?

**Afterwards you can** compute the best accuracy that a tagger can reach with what it sees; say what a window, a recurrent network and attention see; find out by an intervention which word a trained network uses.

{about}

<details><summary>中文摘要 · Chinese</summary>
同一个词出现两次,一次是动词,一次是名词。标注器要看到什么,才能分清?本课先算出任何标注器能达到的最好成绩,再画出窗口、循环网络和注意力各能看到哪些词,
最后对训练好的网络做干预:删去一个词,看哪个标注随之改变。
</details>

{sources}
"""

# %% tags=["imports"]
import torch

from lesson_lib.chapters.c01_history import figures
from lesson_lib.chapters.c01_history.experiments import tagger
from lesson_lib.course import *
from lesson_lib.data import tagging
from lesson_lib.device import to_device
from lesson_lib.masks import causal
from lesson_lib.training import stored

warm_up()

# %%
predict("same_word")

# %% [markdown]
r"""
A small grammar writes our sentences, and gives a tag to every word. One of them:
"""

# %%
sample = tagging.draw(torch.Generator().manual_seed(12), batch=2)
words = tagging.text(sample.words[0]).split()
print(*(f"{word}/{tagging.TAGS[tag]}" for word, tag in zip(words, sample.tags[0], strict=True)))

# %% [markdown]
r"""
Read the first word and the last but one. *may* is an auxiliary, a word such as *did* or *will*. After an auxiliary a verb has its base form (*did see*, not *did saw*), so *may* is the reason why *split* is a base form, although nine words stand between the two. Two kinds of words are hard, since they have more than one tag:

| words like | may be | what tells |
|---|---|---|
| *saw* | noun, past form | a neighbour: *the saw*, *I saw* |
| *cut*, *split* | noun, past form, base form | at times a word far away: ***may** each brush … **split** him* |

## 1 · The best that anybody can do

A word's **sight** is all that the tagger sees while it tags this word. If two words have the same sight, they get the same tag.

How often can it be right at best? Let *saw* be a noun 5 times and a past form 3 times. A tagger that sees this word alone does best if it always says "noun", and is right 5 times of 8. Now let it see the word before as well:

| sight | noun | past form | right at best |
|---|---|---|---|
| *the saw* | 4 | 0 | 4 of 4 |
| *I saw* | 0 | 3 | 3 of 3 |
| *garden saw* | 1 | 0 | 1 of 1 |

Together that is 8 of 8. So the rule is: give each sight its most frequent tag, and add up.
"""

# %% [markdown] tags=["exercise:most_right"]
# Write this rule. `counts` is (sights, tags): a row for each sight, a column for each tag. Return the best share that can be right: for the table above 8 / 8 = 1.

# %% [markdown]
r"""
We wrote the grammar, so we need not count: we know how probable each sight is together with each tag. Put these probabilities where the counts were, and the result is the **limit**, the best accuracy over all sentences of the grammar:

$$\text{limit} = \frac{\sum_{\text{sight}} \max_{\text{tag}}\; p(\text{sight}, \text{tag})}{\sum_{\text{sight}} \sum_{\text{tag}}\; p(\text{sight}, \text{tag})}$$

`tagging.table` gives these probabilities for one kind of words (so they sum to less than 1, and we divide). `window(0)` is a sight: the word with 0 neighbours. The grammar treats all words like *saw* alike, so they have one row:
"""

# %%
limit = yours("most_right")  # ours, until yours has passed
# (1, 10): one sight, ten tags
alone = tagging.table(tagging.window(0), among=("saw",))
for tag, share in zip(tagging.TAGS, alone[0] / alone.sum(), strict=True):
    if share > 0:
        print(f"{tag} {share:.3f}")
print(f"limit {limit(alone):.3f}")

# %% [markdown]
r"""
The best is always "noun": no network that sees one word gets more than «0.629» of the words like *saw* right, whatever its size.

## 2 · What sees what

Which words does each kind of network see? A **mask** is the answer as a table: row $i$, column $j$ is True where word $i$ may look at word $j$. A **window** lets a word look at its neighbours.
"""

# %% [markdown] tags=["exercise:window_mask"]
# Write the mask of a window (n, n): each word sees itself and `radius` words on either side.

# %% [markdown]
r"""
A **recurrent** network reads from left to right. After each word it updates one row of numbers, its state, which sums up all that it has read. So a word sees itself and everything before it: `causal` is this mask. Attention lets every word look at every word.
"""

# %%
figures.masks(
    {
        "one word": yours("window_mask")(6, radius=0),
        "window 1": yours("window_mask")(6, radius=1),
        "recurrent": causal(6),
        "attention": torch.ones(6, 6, dtype=torch.bool),
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
print("limit       like saw  like cut")
for name, sight in sights.items():
    both = (limit(tagging.table(sight, among=(word,))) for word in ("saw", "cut"))
    print(f"{name:10}", *(f"{share:9.3f}" for share in both))

# %% [markdown]
r"""
A sight that contains another never has a lower limit, since a tagger can ignore what it does not need. (Recurrent lacks the words to the right, so it does not contain window 7.) Words like *cut* alone are a guess among three tags, «0.355». For words like *saw* one neighbour on either side is enough; for words like *cut* even seven are too few, «0.984»: **a window must be as wide as the farthest clue**. The recurrent network reaches any distance to the left, but it misses what a later word tells. In *the garden saw bit me* the saw is a tool, in *the garden saw me* the garden saw somebody, and up to *saw* both are the same. Seeing everything gives «1.000».

In this table each sight includes order: which word is one to the left, which two. Attention by itself does not know where these words stand. Each word has a row of numbers. Attention adds the rows with weights that depend on which words these are, not on their places (chapter 02), and a sum is the same in any order. So it sees a **bag of words**: which word is to be tagged, and which others occur.
"""

# %%
predict("without_order")

# %%
show(without_order=limit(tagging.table(tagging.bag, among=("saw",))))

# %% [markdown]
r"""
It is «0.7732». The other words help a little, but *I saw a saw* shows what is missing: both *saw* have the same bag, so both get the same tag, and one is wrong. Attention must be told the order, and chapter 05 tells it.

## 3 · Are the limits reached?

Does training get there? Compare dots and lines: each dot is a trained network, each black line its limit.
"""

# %%
figures.stored_taggers()

# %% [markdown]
r"""
One word is worst; windows are enough for *saw* and climb slowly on *cut*. Every dot stands near its line: the widest gap is less than 0.02.

**"Only attention can do this."** The row *recurrent, both ways* refutes it: two recurrent networks, one from each end, see everything too, and have all words right. They differ in how the clue travels: from *may* to *split* a recurrent network carries the auxiliary through ten updates of its state, and attention reads it in one step (more in 08a).

## 4 · Who looked?

Take the tagger of the last row. It computes this (chapters 04 to 06 open its pieces):

```
row = 32 numbers of the word + a code of its position
twice:  rows = rows + attention(rows)      # 4 heads
        rows = rows + small_network(rows)  # by word
tag = the largest of 10 numbers, made from the row
```

A head is one way of looking. For the word that looks it has a weight for each word, and these weights sum to 1. Here is a new sentence, with *did* ten words before *cut*. In the last layer, where does *cut* look?
"""

# %%
with stored():  # it was trained before; without this line it takes half a minute
    attentive, _ = tagger.train("attention", lr=1e-2)
asked = "did the old man that saw the duck near me cut the bottle"
words = asked.split()
with torch.no_grad():
    _, weights = attentive.look(to_device(tagging.read(asked)))  # of each layer
last = weights[-1][0]  # (4, 13, 13): head, word that looks, word looked at
for head, row in enumerate(last[:, words.index("cut")]):
    print(f"head {head}: largest weight {row.max():.2f}, on {words[row.argmax()]}")

# %% [markdown]
r"""
Head 0 has all its weight on *did*, «1.00», and head 1 three quarters on *old*, «0.75»; the others look at *saw* and at *cut* itself. **"A large weight marks the cause."** Does the network use both words for the tag of *cut*? An **intervention** tests it: change the input at one place, and see which answers change.
"""

# %%
predict("which_deletion")

# %% [markdown]
r"""
You will delete each word in turn. One mistake is easy: after a deletion, all later tags stand one place further left.
"""

# %% [markdown] tags=["exercise:changed_tags"]
# `before` (n,) holds the numbers of the tags of a sentence, and `after` (n - 1,) those of the same sentence without its word number `gone`. It should return the positions, in the whole sentence, of the words whose tag has changed, and makes the mistake just mentioned: repair it.


# %%
@torch.no_grad()
def tags_of(sentence):
    """The numbers of the tags, (n,), that the trained network gives."""
    return attentive(to_device(tagging.read(sentence)))[0].argmax(-1).cpu()


before = tags_of(asked)
changed = {}
for gone, word in enumerate(words):
    after = tags_of(" ".join(words[:gone] + words[gone + 1 :]))
    changed[gone] = yours("changed_tags")(before, after, gone).tolist()
    told = [
        f"{words[i]}: {tagging.TAGS[before[i]]} -> {tagging.TAGS[after[i - (i > gone)]]}"
        for i in changed[gone]
    ]
    print(f"without {word:7}", *(told or ["nothing"]))

# %% tags=["proof"]
assert [gone for gone, places in changed.items() if 10 in places] == [0]

# %% [markdown]
r"""
Without *did*, *cut* becomes a past form. Without *old*, nothing changes: head 1 looks at this word, and the tag does not depend on it. But a deletion in front of *cut* also moves *cut* by one place. Is the move the cause? The nine other deletions in front are the **control**: they move *cut* as well, and none of them changes its tag.

One sentence may be luck. So take all test sentences whose auxiliary stands at least eight words before a verb like *cut*. Each sentence is read four times: as written; with another auxiliary in its place; without its second word, which is a control; and without the auxiliary:
"""

# %%
count, shares = tagger.base_forms(attentive, distance=8)
print(f"{count} verbs, tagged as a base form:")
for change, share in shares.items():
    print(f"{change:19} {share:.0%}")

# %% [markdown]
r"""
Without the auxiliary none of the «195» verbs stays a base form. Without the second word, or with another auxiliary, «99%» stay. So the network uses this far word.

## In real work

Pictures of weights are often published as explanations. A large weight gives an idea, and no more; besides, what a later layer looks at was mixed by the layers before. So delete the word before you believe it. But a deletion has a weakness, too: without *near* our sentence says *the duck me cut the bottle*, and *duck* becomes a base form. The network never met such a sentence, so this says little about real ones.

## I saw a saw
"""

# %%
print([tagging.TAGS[tag] for tag in tags_of("I saw a saw")])

# %% [markdown]
r"""
The same word twice, and both are right. A network that sees one word cannot do it, nor can attention without order: for both, the two *saw* look the same. Try others: *the garden saw me*, *the garden saw bit me*.

**To remember.** What a model sees, order included, sets the limit of what it can learn.

- The same sight gets the same answer, at any size.
- A window must be as wide as the farthest clue. Attention lets each word look anywhere in one step.
- To know what a network uses, change it, and have a control.

**Sources.** Hung-yi Lee, *Machine Learning* 2021 (the sentence). Seeds, rates, the sources' claims: [evidence](evidence/01_history_evidence.ipynb).

**Next**: [01b · Looking back](01b_looking_back.ipynb), or on the core path [02a · A soft look-up](02a_soft_look_up.ipynb).
"""
