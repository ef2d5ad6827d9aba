# /// ideas
# [few]
# says = "full attention reads all keys, and gives nearly all of its weight to few"
# motive = "How many of its keys does a query need"
# shown = "weights.topk(k, -1)"
# action = 'predict("four_largest")'
#
# [mask]
# says = "a choice of keys is a mask; attention under it equals attention to the gathered keys"
# motive = "must the other keys be read at all"
# shown = "key[where], value[where]"
# action = 'yours("chosen_keys")'
#
# [index]
# says = "index score: a few narrow heads with one shared key, ReLU, and a weight of each head from the query's token"
# motive = "So the choice needs a score of its own"
# shown = "I(t, s) ="
# action = 'yours("index_score")'
#
# [cost]
# says = "the index still scores all pairs, but a pair is cheap: with k fixed, the share of full attention falls to 9/128"
# motive = "What does that cost"
# shown = "share = (n * pair_index"
# action = 'predict("index_cost")'
#
# [measured]
# says = "counted is not measured: all at once the index lost time, and for one new token it won"
# motive = "Are fewer multiplications less time"
# shown = "seconds_in_turn(both_ways"
# action = 'predict("index_cost")'
#
# [gradient]
# says = "no gradient comes through a choice, so the answers' loss cannot teach the index"
# motive = "How does the index learn"
# shown = "index.w_key.weight.grad"
# action = 'predict("who_teaches")'
#
# [teacher]
# says = "full attention teaches: KL divergence from its weights to the softmax of the index scores"
# motive = "So it needs another teacher"
# shown = "def taught_by(reader, index):"
# action = 'predict("who_teaches")'
#
# [recall]
# says = "recall against k, beside a window and random keys of the same k: four learned keys do nearly what 40 do"
# motive = "Is the index good, or would any four keys do"
# shown = 'print(f"{k:4}'
# action = 'predict("four_newest")'
#
# [both]
# says = "embeddings that learn with the index make one key enough; the index alone, as long, stays below"
# motive = "Only the index has learned so far"
# shown = "def both(reader, index):"
# action = "index(x.detach())"
#
# [order]
# says = "first the mask, then the choice: else the future takes places, and a test of causality sees it"
# motive = "It is easy to write the other order"
# shown = "properties(late, causal=True)"
# action = 'predict("other_order")'
#
# [padding]
# says = "padding must be hidden before the choice, too: its zeros score 0, above most real keys"
# motive = "Texts of a batch are padded"
# shown = "for name, may in"
# action = 'predict("zeros_in_front")'
#
# [blocks]
# says = "blocks in place of keys: the largest score speaks for its block, masked before and after"
# motive = "Memory is read in blocks"
# shown = "unflatten(-1, (-1, 2)).amax(-1)"
# action = "on paper"
# ///

# %% [markdown]
r"""
{title}

A cheap score says how useful each key, a column, may be to each query, a row:

| | key 0 | key 1 | key 2 | key 3 |
|---|---|---|---|---|
| query 0 | 1 | 9 | 8 | 7 |
| query 1 | 2 | 3 | 9 | 8 |
| query 2 | 5 | 1 | 4 | 9 |
| query 3 | 0 | 3 | 6 | 2 |

Each query may look at two keys, and at none that comes later. Write down on paper which ones.

**Afterwards you can** make a mask of the keys that a cheap score chooses; train that score and say what it costs; test that neither future nor padding takes part in the choice.

{about}

<details><summary>中文摘要 · Chinese</summary>
完整的注意力读所有的键,却几乎只用其中几个。索引器用又窄又少的头给所有键打便宜的分数,每个查询只保留分数最高的 k 个:这就是一个掩码,其余照旧。选择没有梯度,所以由完整注意力的权重来教(KL 散度)。先掩码,再选择:否则未来和填充会占去名额。
</details>
"""

# %% tags=["imports"]
import copy

import torch
import torch.nn.functional as F
from torch import nn

from lesson_lib.attention import attend
from lesson_lib.checks import properties
from lesson_lib.course import *
from lesson_lib.device import on, quick
from lesson_lib.masks import causal
from lesson_lib.measure import seconds_in_turn

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
## 1 · Which keys are used?

A text is 40 **notes**. A note is one token. It tells a name and that name's value, and it asks for the value of a name told before it (note 0 for its own). There are 50 names and 8 values:
"""

# %%
TOKENS, NAMES, VALUES, WIDTH = 40, 50, 8, 64
EARLIER = causal(TOKENS)  # mask (40, 40): own and earlier notes


def notes(batch, g):
    """Three tables (batch, 40): names told, values, names asked for; answers."""
    told = torch.rand(batch, NAMES, generator=g).argsort(1)[:, :TOKENS]
    value = torch.randint(VALUES, (batch, TOKENS), generator=g)
    where = (torch.rand(batch, TOKENS, generator=g) * torch.arange(TOKENS)).long()
    return (told, value, told.gather(1, where)), value.gather(1, where)


tables, answers = notes(500, torch.Generator().manual_seed(1000))
told, value, asked = tables
for t in range(3):
    print(f"note {t}: {told[0, t]} is {value[0, t]}. What is {asked[0, t]}?")


# %%
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.told, self.asked = nn.Embedding(NAMES, WIDTH), nn.Embedding(NAMES, WIDTH)
        self.value, self.read = nn.Embedding(VALUES, WIDTH), nn.Linear(WIDTH, VALUES)
        self.w_q, self.w_k, self.w_v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def tokens(self, told, value, asked):
        return self.told(told) + self.value(value) + self.asked(asked)

    def forward(self, x, mask):
        output, weights = attend(self.w_q(x), self.w_k(x), self.w_v(x), mask=mask)
        return self.read(output), weights


def answering(reader, mask_of):
    def loss(tables, answers):
        x = reader.tokens(*tables)
        return F.cross_entropy(reader(x, mask_of(x))[0].mT, answers)

    return loss


# %% [markdown]
r"""
All three ask for name 41, which note 0 tells, so each answer is «2». One head of attention reads the notes, and `read` makes logits. The loop takes a function `loss_of` (tables and answers in, loss out), since two more losses follow. **Recall** is the share of questions that are answered rightly, in 500 new texts.
"""


# %%
def teach(modules, loss_of, seed, steps=300):
    generator = torch.Generator().manual_seed(seed)
    adam = torch.optim.Adam([p for m in modules for p in m.parameters()], lr=0.01)
    for _ in range(3 if quick() else steps):
        loss = loss_of(*notes(32, generator))
        adam.zero_grad()
        loss.backward()
        adam.step()


@torch.no_grad()
def recall(reader, mask_of):
    x = reader.tokens(*tables)
    return (reader(x, mask_of(x))[0].argmax(-1) == answers).float().mean().item()


readers = []
for seed in (0, 1, 2):
    _ = torch.manual_seed(seed)
    readers.append(Reader())
    teach(readers[-1:], answering(readers[-1], lambda x: EARLIER), seed)
reader = readers[0]
print(f"recall with all earlier keys: {recall(reader, lambda x: EARLIER):.2f}")

# %% [markdown]
r"""
Nearly every question is answered. How many of its keys does a query need? Take queries 20 to 39, who see 21 to 40 keys.
"""

# %%
predict("four_largest")

# %%
with torch.no_grad():
    weights = reader(reader.tokens(*tables), EARLIER)[1][:, 20:]
for k in (1, 4):
    share = weights.topk(k, -1).values.sum(-1).mean()
    print(f"weight of the {k} largest: {share:.2f}")

# %% [markdown]
r"""
Four keys hold all the weight, to two digits; the largest alone holds «0.99» on average. After all, a note asks for one name. But 21 to 40 keys and values were read for it.

## 2 · A choice is a mask

If somebody told us the few keys, must the other keys be read at all? Let `scores` say how good each key is. The k best of each query make a boolean mask, True = may look, and `attend` does the rest.
"""

# %% [markdown] tags=["exercise:chosen_keys"]
# Write the choice. `mask`, True = allowed, fits `scores`; a row with fewer than k allowed keys keeps those. `scores.topk(k, -1).indices` are the columns of the k largest. `table.scatter(-1, columns, True)` writes True there.

# %% [markdown]
r"""
Now compare the mask with reading the chosen keys alone. In `where`, (5, 2), stand the two columns that each query has chosen; so `key[where]` is (5, 2, 3).
"""

# %%
chosen = yours("chosen_keys")
query, key, value = torch.randn(5, 3), torch.randn(7, 3), torch.randn(7, 4)
may = chosen(torch.randn(5, 7), 2, torch.ones(5, 7, dtype=torch.bool))
where = may.nonzero()[:, 1].view(5, 2)
few = attend(query[:, None], key[where], value[where]).output[:, 0]
off = (attend(query, key, value, mask=may).output - few).abs().max()
print(f"off by {off:.5f}")

# %% [markdown]
r"""
Both are equal, because under a mask softmax shares its weight among allowed keys only. So hidden keys need not be read. A mask is easy to train with; gathering is what saves.

**"Then choose by the scores of attention itself."** To find the largest we must compute all of them, so at most half is saved. So the choice needs a score of its own.

## 3 · A cheap second score

DeepSeek-V3.2 (2025) scores each pair with an **index score**:

$$I(t, s) = \sum_h w_h(t)\, \text{ReLU}(q_h(t) \cdot k(s))$$

Its heads are few and narrow; here 3 heads of width 2. All share one key $k(s)$. The weight $w_h(t)$ of a head comes from the asking token, and may be negative. The layer that computes it is called an **indexer**.
"""

# %% [markdown] tags=["exercise:index_score"]
# Write the index score of a batch. `query` is (b, h, n, width), `key` (b, m, width), `weight` (b, n, h); the scores are (b, n, m).

# %% [markdown]
r"""
What does that cost? The index multiplies $3 \cdot 2 + 3 = 9$ times for a pair. Attention multiplies $2 \cdot 64 = 128$ times, for score and weighted value, and after a choice of k it does so for k keys of a query only. Count without projections:
"""

# %%
predict("index_cost")

# %%
pair_index, pair_full, k = 3 * 2 + 3, 2 * 64, 4
for n in (40, 400, 4000):
    share = (n * pair_index + k * pair_full) / (n * pair_full)
    print(f"{n:4} tokens: {share:.3f} of full attention")

# %% [markdown]
r"""
The k chosen keys soon cost nothing beside the index. What stays is 9/128, about «0.07»: still $n^2$, but cheap.

Are fewer multiplications less time? We measure all 2,048 queries at once, and one new query after 100,000 keys, as in writing. `seconds_in_turn` gives the seconds of each call.
"""


# %% tags=["nbval-ignore-output"]
score_of_index = yours("index_score")


def both_ways(n, m):
    query, (key, value) = torch.randn(n, 64), torch.randn(2, m, 64)
    q, k, w = torch.randn(1, 3, n, 2), torch.randn(1, m, 2), torch.randn(1, n, 3)

    def by_index():
        where = score_of_index(q, k, w)[0].topk(4, -1).indices
        return attend(query[:, None], key[where], value[where])

    return {"full": lambda: attend(query, key, value), "index": by_index}


with on("cpu"), torch.no_grad():
    for n, m in ((2048, 2048), (1, 100_000)):
        taken = seconds_in_turn(both_ways(n, m), repeats=5)
        print(f"{n:4} queries, {m:6} keys:", end="")
        print("".join(f"  {name} {1000 * s:.1f} ms" for name, s in taken.items()))

# %% [markdown]
r"""
On our processor the index is some ‹six› times slower for all queries at once: its products are few, but it makes, clips and weighs a table for each head, and sorts. For one new query it takes about ‹0.3› of the time. There attention reads 128 numbers of each earlier token, a key and a value; the index reads 2. So this program gains in writing. For all queries at once DeepSeek wrote a fused kernel (11b).

## 4 · Who teaches the index?

How does the index learn? Its weights start at random. Suppose that we train it, like all else, by the loss of the answers.
"""

# %%
predict("who_teaches")

# %%
class Index(nn.Module):
    def __init__(self, heads=3, width=2):
        super().__init__()
        self.heads = heads
        self.w_query = nn.Linear(WIDTH, heads * width, bias=False)
        self.w_key = nn.Linear(WIDTH, width, bias=False)
        self.w_head = nn.Linear(WIDTH, heads, bias=False)

    def forward(self, x):  # (b, n, 64) to (b, n, n)
        query = self.w_query(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return score_of_index(query, self.w_key(x), self.w_head(x))


index = Index()
loss = answering(reader, lambda x: chosen(index(x), 4, EARLIER))
loss(*notes(32, torch.Generator().manual_seed(0))).backward()
print("gradient of the index:", index.w_key.weight.grad)

# %% [markdown]
r"""
None: a mask is True or False, and a score that rises a little leaves it as it is. So it needs another teacher, and has one: the weights $p$ of full attention. Each row of $p$ sums to 1, and so does softmax of the index scores, $\hat p$. The **KL divergence** $\sum_s p \ln (p / \hat p)$ is 0 where both agree, and else above 0. Only $-\sum_s p \ln \hat p$ of it depends on the index:
"""


# %%
def apart(weights, scores):  # KL, up to what the index cannot change
    logs = scores.masked_fill(~EARLIER, -torch.inf).log_softmax(-1)
    return -(weights * logs.masked_fill(~EARLIER, 0)).sum(-1).mean()


def taught_by(reader, index):
    def loss(tables, answers):
        with torch.no_grad():  # the reader stays as it is
            x = reader.tokens(*tables)
            weights = reader(x, EARLIER)[1]
        return apart(weights, index(x))

    return loss


indexes = []
for seed, r in enumerate(readers):
    _ = torch.manual_seed(seed)
    indexes.append(Index())
    teach(indexes[-1:], taught_by(r, indexes[-1]), seed + 10)

# %% [markdown]
r"""
Is the index good, or would any four keys do? Two controls choose as many: the k newest notes, a window, and k earlier notes at random.
"""

# %%
predict("four_newest")

# %% tags=["nbval-ignore-output"]
print("keys  index, three seeds  newest  random")
found = {}
for k in (1, 2, 4, 8):
    found[k] = [
        recall(r, lambda x, i=i, k=k: chosen(i(x), k, EARLIER))
        for r, i in zip(readers, indexes)
    ]
    newest = recall(reader, lambda x, k=k: causal(TOKENS, window=k))
    noise = torch.rand(500, TOKENS, TOKENS)
    random = recall(reader, lambda x, k=k, noise=noise: chosen(noise, k, EARLIER))
    learned = " ".join(f"{value:.2f}" for value in found[k])
    print(f"{k:4}  {learned:18}  {newest:6.2f}  {random:6.2f}")

# %% [markdown]
r"""
With four keys the index has «0.97» and more, the newest four «0.37», and random ones hardly more. One key is not enough: three in four answers are right then (a guess is, once in eight). **A cheap score need not find the best key; it must have it among its k best.**

## 5 · Both learn

Only the index has learned so far. Let the reader learn, too: its answers under the chosen mask, plus the index's divergence, in one loss. The control gives the index as many steps more, alone.
"""


# %% tags=["nbval-ignore-output"]
def both(reader, index):
    def loss(tables, answers):
        x = reader.tokens(*tables)
        weights, scores = reader(x, EARLIER)[1], index(x)
        logits, _ = reader(x, chosen(scores, 4, EARLIER))
        wrong = F.cross_entropy(logits.mT, answers)
        return wrong + apart(weights.detach(), scores)  # the teacher stays

    return loss


for name in ("index alone", "both"):
    after = []
    for seed, pair in enumerate(zip(readers, indexes)):
        r, i = copy.deepcopy(pair)
        loss, modules = (both(r, i), [r, i]) if name == "both" else (taught_by(r, i), [i])
        teach(modules, loss, seed + 20)
        after.append(recall(r, lambda x, i=i: chosen(i(x), 1, EARLIER)))
    print(f"one key, {name:11}", " ".join(f"{value:.2f}" for value in after))

# %% tags=["proof"]
assert quick() or (min(found[4]) > 0.93 > max(found[1]) and newest < 0.7)
assert quick() or min(after) > 0.93

# %% [markdown]
r"""
The index alone gains little. With both, one key is enough: «0.99» and more. Was it the reader's answers? Write `index(x.detach())` in `both`, so that the index's loss no longer reaches the embeddings: then one key finds ‹0.72› to ‹0.77›. So the embeddings have moved to where two numbers can tell them apart.

## 6 · First the mask

It is easy to write the other order: choose the two best of *all* keys, then hide later ones. Try your table.
"""

# %%
predict("other_order")

# %%
table = torch.tensor([[1.0, 9, 8, 7], [2, 3, 9, 8], [5, 1, 4, 9], [0, 3, 6, 2]])
first = chosen(table, 2, causal(4))
after = chosen(table, 2, torch.ones_like(first)) & causal(4)
show(first=first.int(), after=after.int())


# %% tags=["nbval-ignore-output"]
def late_mask(x):
    return chosen(indexes[0](x), 4, torch.ones_like(EARLIER)) & EARLIER


print(f"recall with four keys, mask after: {recall(reader, late_mask):.2f}")

# %% [markdown]
r"""
The first table answers the question of the start. In the second, queries 0 and 1 lose both keys to the future, and query 2 loses one. Yet the trained index still recalls «0.96», beside «0.99». No error came, and such a small loss looks like bad luck. But which keys are left depends on tokens that come later, and in writing these are not there yet. A test asks directly. `properties(f, causal=True)` changes one token and looks at earlier outputs, then cuts the text into chunks. In `f` the scores $q \cdot k$ choose; its $n$ queries are the last of $m$ tokens:
"""


# %%
def early(query, key, value):
    earlier = causal(key.shape[-2], queries=query.shape[-2])
    return attend(query, key, value, mask=chosen(query @ key.mT, 4, earlier))


print("mask first:", properties(early, causal=True).diagnosis)


# %%
def late(query, key, value):
    earlier = causal(key.shape[-2], queries=query.shape[-2])
    best = chosen(query @ key.mT, 4, torch.ones_like(earlier))
    return attend(query, key, value, mask=best & earlier)


print("mask after:", properties(late, causal=True).diagnosis)

# %% [markdown]
r"""
**"The mask hides the future, so the order does not matter."** Hidden keys get no weight, but they have taken places. In 2026 an indexer in the library transformers did see the future.

## In real work

Texts of a batch are padded. Let ten tokens of padding, zeros, stand in front of the 40 notes, and choose four keys.
"""

# %%
predict("zeros_in_front")

# %% tags=["nbval-ignore-output"]
real, earlier = torch.arange(50) >= 10, causal(50)
with torch.no_grad():
    x = torch.cat([torch.zeros(500, 10, WIDTH), reader.tokens(*tables)], 1)
    scores = indexes[0](x)
    for name, may in {
        "before the choice": chosen(scores, 4, earlier & real),
        "after the choice ": chosen(scores, 4, earlier) & real,
    }.items():
        right = reader(x, may)[0][:, 10:].argmax(-1) == answers
        print(f"padding hidden {name}: recall {right.float().mean():.2f}")
    below = (indexes[0](x[:, 10:])[:, EARLIER] < 0).float().mean()
print(f"real scores below 0: {below:.2f}")

# %% [markdown]
r"""
Zeros have the key 0, and so the score 0. A score is $w$ times a ReLU, so where all weights $w$ of a query are negative, none of its scores is above 0, and padding takes all four places. Of real scores «0.78» are below 0. Hidden before the choice it does no harm: «0.99», as without padding.

## To carry away

The choice stands in `notebooks/carry/long.py`, beside tiles and windows:
"""

# %%
from carry import long as carried

show_source(carried.chosen)

# %% [markdown]
r"""
## The four queries once more

Memory is read in blocks, so some models choose whole blocks of keys (MiniMax M3; MoBA, 2025). Here the largest score in a block speaks for it. On paper: with blocks of two keys, which block does each query of the opening choose, if it may have one?
"""

# %%
hidden = table.masked_fill(~causal(4), -torch.inf)
best = hidden.unflatten(-1, (-1, 2)).amax(-1)  # (4, 2): queries, blocks
block = carried.chosen(best, 1, best > -torch.inf)
show((block.repeat_interleave(2, -1) & causal(4)).int())

# %% [markdown]
r"""
Queries 0 to 2 take block 0, and query 0 sees one key of it. Query 3 takes block 1, because of its 6. The mask stands twice: before the largest is taken, or 9 would win for query 2; and at the end, since the block of query 0 holds a later key.

**To remember.** A cheap score chooses, a mask says so, attention does the rest.

- A choice is a mask: the same as gathering the chosen keys.
- The index scores all pairs, narrowly; for long texts its share is what stays.
- No gradient comes through a choice: full attention teaches the index.
- Judge recall at k, beside the newest and random keys.
- First hide future and padding, then choose.

**Sources.** DeepSeek-AI 2025 (arXiv:2512.02556); Lu et al. 2025 (MoBA, arXiv:2502.13189). Bugs: transformers issues 45820 (future), 48289 (padding and cache). Seeds, widths, blocks: [evidence](evidence/11_efficient_attention_evidence.ipynb).

**Next**: [12 · Claims](12_claims.ipynb): what did the sources get right?
"""
