# /// ideas
# ["softmax"]
# says = "e to each score, divided by the sum of these powers: positive shares that sum to 1, larger for a larger score"
# motive = "You want one number"
# shown = "2.72 + 20.09 + 148.41"
# action = 'predict("ann_share")'
# ["differences of scores"]
# says = "adding a number to all scores changes no share; multiplying all scores stretches their differences, so that the largest takes more"
# motive = "one point ahead of another"
# shown = "0.867"
# action = 'predict("plus_or_times")'
# ["attention"]
# says = "a dictionary returns the value of the one equal key; attention scores every key against the query by a dot product, turns the scores into weights by softmax, and mixes the values by them"
# motive = "With no such key it has no answer"
# shown = "1 \\cdot 1 + 2 \\cdot 2 = 5"
# action = 'Write it for any number of queries'
# ["six parts"]
# says = "queries (n, d_k), keys (m, d_k), values (m, d_v), scores and weights (n, m), outputs (n, d_v); rows ask, columns answer, and each row of weights sums to 1"
# motive = "Its six parts"
# shown = "queries (n, d_k)"
# action = "def soft_look_up(query, key, value):"
# ["between dictionary and average"]
# says = "a long query makes the weights sharp, as in a dictionary; a query of zeros gives all values the same weight, so the output is their average"
# motive = "A query of zeros hears nothing."
# shown = "23.3333"
# action = 'predict("query_of_zeros")'
# ["self-attention"]
# says = "every token of a sequence asks, and every token is asked, itself included; what a token looks for is not what it is found by or what it passes on, so three matrices make its query, key and value from its row"
# motive = "What a token looks for is not what it is"
# shown = "0.9998"
# action = "Change one number of `w_q`"
# ["padding"]
# says = "filler that makes sequences of a batch equally long; its score of 0 does not hide it, since e^0 = 1"
# motive = "A tensor needs lists of equal length"
# shown = "Zoe is told 3.3"
# action = 'predict("padding_share")'
# ["mask"]
# says = "a boolean table, here True = may look; a key that may not be looked at gets the score -inf before the softmax, and then its weight is exactly 0"
# motive = "means: do not look"
# shown = "11.19"
# action = "def without_padding(scores, real):"
# ["nan of a hidden row"]
# says = "where all keys of a row are hidden, softmax subtracts -inf from -inf and gives nan; attend gives zeros"
# motive = "What if the mask is turned round?"
# shown = "nan"
# action = "turned ="
# ["torch's function"]
# says = "F.scaled_dot_product_attention(q, k, v, attn_mask=mask) is attention in one call, True = may look; like the carried attend it divides the scores by sqrt(d_k)"
# motive = "torch has the same as one function"
# shown = "torch (2,)"
# action = 'predict("ann_first")'
# ///

# %% [markdown]
r"""
{title}

You ask three people what a pot of tea costs. Ann says 10, Ben 20, Cy 40. They are not equally good judges: for your question Ann has the score 1, Ben 3, Cy 5. You want one number, to which all three contribute. So each person gets a *share*. A share is positive, even where a score is negative. It is larger for a larger score, and the three shares sum to 1.

**Afterwards you can** compute attention by hand and in three lines of torch; name its six parts, with their shapes; hide empty places.

{about}

<details><summary>中文摘要 · Chinese</summary>
注意力是一次"软查询":用查询与每个键的点积打分,经 softmax 变成权重,再按权重混合各个值。在自注意力中,每个词元都提问,也都被问到;三个矩阵分别给出它的查询、键和值。
最后一节说明怎样隐藏一批序列中的填充。
</details>

{sources}
"""

# %% tags=["imports"]
import torch
import torch.nn.functional as F

from lesson_lib.chapters.c02_scoring.softmax_explorer import SoftmaxExplorer
from lesson_lib.chapters.c02_scoring.steps_explorer import SevenStepsExplorer
from lesson_lib.course import *

warm_up()

# %%
predict("ann_share")

# %% [markdown]
r"""
The rule is called **softmax**. It raises $e \approx 2.718$ to each score, and divides by the sum of these powers:

$$w_j = \frac{e^{s_j}}{e^{s_1} + e^{s_2} + e^{s_3}} \qquad \text{Ann: } \frac{e^1}{e^1 + e^3 + e^5} = \frac{2.72}{2.72 + 20.09 + 148.41} \approx 0.016$$

Every power of $e$ is positive, and a person who is one point ahead of another has $e$ times the other's share.
"""

# %%
predict("plus_or_times")

# %% [markdown]
r"""
Type 5 for Ann's 1. Whose share falls most, in percentage points? Then move *plus*, which adds a number to all scores, and *times*, which multiplies them.
"""

# %%
SoftmaxExplorer((1.0, 3.0, 5.0), names=("Ann", "Ben", "Cy"))

# %% [markdown]
r"""
Cy's share falls most, from 0.867 to 0.468. *Plus* changes no share, and with a large *times* Cy takes nearly all.

## 1 · From a dictionary to a mixture

Where do scores come from? A dictionary looks for the *key* that equals your *query*, and returns its *value*. With no such key it has no answer:
"""

# %%
prices = {"black tea": 12.0, "green tea": 15.0, "cake": 30.0}
try:
    prices["tea"]
except KeyError as missing:
    print("no key is equal to", missing)

# %% [markdown] tags=["slide"]
r"""
The search of a shop does better. Its keys are the titles of products, and its values are the products. It scores every title against the query *tea*, and lists the products, best first. Attention goes one step further: it **mixes** the values.

To score, write queries and keys as vectors. Each key says what a person knows of tea and of prices. Your query says how much you want of each: $[1, 2]$. The score is their dot product:

| | key | score with $[1, 2]$ | value |
|---|---|---|---|
| Ann | $[1, 0]$ | $1 \cdot 1 + 2 \cdot 0 = 1$ | 10 |
| Ben | $[1, 1]$ | $1 \cdot 1 + 2 \cdot 1 = 3$ | 20 |
| Cy | $[1, 2]$ | $1 \cdot 1 + 2 \cdot 2 = 5$ | 40 |
"""

# %% tags=["slide"]
query = torch.tensor([[1.0, 2.0]])  # one row: one query
key = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
value = torch.tensor([[10.0], [20.0], [40.0]])
scores = query @ key.mT  # .mT swaps the last two axes: (1, 2) @ (2, 3)
weights = scores.softmax(-1)  # torch's softmax; -1: over the last axis, the keys
show(scores=scores, weights=weights, output=weights @ value)

# %% [markdown] tags=["slide"]
r"""
The output, «37.2», is mostly Cy's 40, pulled down by Ben's 20. That is attention. Its six parts, for $n$ queries and $m$ keys of width $d_k$ and values of width $d_v$:

```
queries (n, d_k) ─┐
                  ├─ compare ─> scores (n, m)
keys    (m, d_k) ─┘                  │
                                  softmax
                                     v
values  (m, d_v) ──── mix <─── weights (n, m)
                       v
                outputs (n, d_v)
```

A **query** asks, a **key** is compared with it, a **value** is mixed. A **score** is any number. A **weight** is a share, and each row of weights sums to 1: rows ask, columns answer. An **output** is the mixture for one query.
"""

# %% [markdown] tags=["exercise:soft_look_up"]
# Write it for any number of queries (n, d_k) and keys (m, d_k), with values (m, d_v).

# %% [markdown]
r"""
**"A query of zeros hears nothing."** Does it?
"""

# %%
predict("query_of_zeros")

# %% [markdown]
r"""
Four queries, each a multiple of yours, ask at once. (`yours("soft_look_up")` is your function, or the course's until yours has passed its check.)
"""

# %%
queries = torch.tensor([[0.0], [0.5], [1.0], [10.0]]) * query  # (4, 2)
show(
    weights=(queries @ key.mT).softmax(-1),
    outputs=yours("soft_look_up")(queries, key, value),
)

# %% [markdown]
r"""
The query of zeros gets the plain average, «23.33». Half your query gets «32.4», and yours «37.2». With ten times your query Cy takes all (0.0000 is rounded), as in a dictionary that always answers. **Attention lives between a dictionary and an average**: the larger the differences between the scores, the nearer to the dictionary.

## 2 · Self-attention: every token asks

In a sentence the same words ask and are asked. A **token** is a piece of a text, here a word, and each token is a row of numbers. In **self-attention** every token asks, and every token is asked, itself included.

Which queries and keys should a token have? A first idea: its row serves as both. Take *the cat sleeps*, with three numbers for each word: how much of a noun it is, how much of a verb, and whether it is an animal.
"""

# %%
x = torch.tensor([[0.0, 0.0, 0.0], [3.0, 0.0, 1.0], [0.0, 3.0, 0.0]])  # the, cat, sleeps
show(weights=(x @ x.mT).softmax(-1))

# %% [markdown]
r"""
The last row is that of *sleeps*. Nearly all of its weight is on *sleeps* itself, because no row is more like it. But *sleeps* should find out who sleeps, so a verb should look for a noun. What a token looks for is not what it is. Nor is it what the token is found by: *cat* is found as a noun. And what *cat* passes on should be a third thing, that it is an animal. So three matrices give each token, a row of $x$, three roles:

$$\text{queries} = x\,W_q \qquad \text{keys} = x\,W_k \qquad \text{values} = x\,W_v$$

Training finds these matrices, as part 03 shows. Here we write them by hand:
"""

# %%
w_q = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]])  # a verb looks for a noun
w_k = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])  # found by: noun, verb
w_v = torch.tensor([[0.0], [0.0], [1.0]])  # passes on: animal or not
show(
    queries=x @ w_q,
    weights=(x @ w_q @ (x @ w_k).mT).softmax(-1),
    outputs=yours("soft_look_up")(x @ w_q, x @ w_k, x @ w_v),
)

# %% [markdown]
r"""
Now the query of *sleeps* is $[3, 0]$, a noun, and «0.9998» of its weight is on *cat*. Its output is «0.9998», nearly 1: an animal sleeps. (*the* and *cat* ask with zeros, so they get the average.) Change one number of `w_q`, so that *cat* looks for the verb, and run the cell again.

If the first row of your `w_q` is $[0, 1]$, *cat* gives nearly all of its weight to *sleeps*. The next example is Raimi Karim's (2019): three tokens of four numbers, and matrices of small whole numbers that turn four into three.
"""

# %%
predict("score_by_hand")

# %% [markdown]
r"""
The film below goes from the tokens to the outputs in seven steps. It counts tokens from 1. Press *play*, or *forward*. Point at a number, or move to it with Tab, to read how it came about.
"""

# %%
SevenStepsExplorer()

# %% [markdown]
r"""
Step 2 has the three matrices, and step 3 what they make of the tokens: in row 1 of the queries you find $[1, 0, 2]$. Step 4 has your score, 4, in row 1, column 2. Row 1 holds the scores 2, 4, 4. Step 5 turns them into the weights 0.06, 0.47, 0.47, and steps 6 and 7 mix the values.

## 3 · In real work: the empty chair

A model answers many questions at once, a **batch**. Zoe asks beside you, with a list of her own. Her query is yours with the sign turned, $[-1, -2]$: whoever knows more gets a lower score from her. She has met only Ann and Ben. A tensor needs lists of equal length, so an empty chair fills hers, with the key $[0, 0]$ and the value 0. Such filler is called **padding**.
"""

# %%
predict("padding_share")

# %%
queries = torch.stack([query, -query])  # (2 lists, 1 query, 2 numbers)
keys, values = torch.stack([key, key]), torch.stack([value, value])
keys[1, 2], values[1, 2] = 0, 0  # the empty chair
scores = queries @ keys.mT  # (2, 1, 3)
show(weights=scores.softmax(-1), outputs=scores.softmax(-1) @ values)

# %% [markdown]
r"""
Zoe is told «3.3», though nobody said less than 10: the chair has «71» % of the weight. So **"a score of 0 means: do not look"** is wrong. But a score of $-\infty$ has the weight 0, whatever the other scores are, since $e^{-\infty} = 0$.
"""

# %% [markdown] tags=["exercise:without_padding"]
# `scores` is (b, n, m), for b lists. `real` is (b, m), True for a real key. Hide the other keys, and return the weights. Your tools: `real[:, None, :]` is (b, 1, m), one row for all queries of a list; `~` exchanges True and False; `t.masked_fill(where, number)` writes the number where `where` is True; `-torch.inf` is $-\infty$.

# %%
real = torch.tensor([[True, True, True], [True, True, False]])
weights = yours("without_padding")(scores, real)
show(weights=weights, outputs=weights @ values)

# %% [markdown]
r"""
You still hear «37.18». Zoe hears «11.19»: Ann's 10 and a little of Ben's 20. A table such as `real` is a **mask**, and here True means *may look*. What if the mask is turned round?
"""

# %%
turned = yours("without_padding")(scores, ~real)
show(weights=turned)

# %% [markdown]
r"""
Zoe hears the chair alone. And your weights are nan, "not a number": all three keys are hidden, so all scores are $-\infty$. The softmax of torch first subtracts the largest score from each, which changes no share and keeps the powers small; but $-\infty - (-\infty)$ is nan. If outputs contain nan, look first for a row whose keys are all hidden. (With −1e9 in place of $-\infty$, all three would get a third, and nothing would warn you.)

## To carry away

`notebooks/carry/attention.py` holds the chapters 02 to 04 in plain torch, one file to copy. Its `attend` is your function with a mask, and with a division that part 02b explains:
"""

# %%
from carry import attention as carried

show_source(carried.attend)

# %% [markdown]
r"""
The default `score_bias` and `dropout` do nothing; later parts use them. The two lines with `empty` give a row whose keys are all hidden zeros in place of nan. torch has the same as one function, and in its `attn_mask`, too, True means *may look*:
"""

# %%
mask = real[:, None, :]  # (2, 1, 3)
output, _ = carried.attend(queries, keys, values, mask=mask)
by_torch = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
show(carried=output[:, 0, 0], torch=by_torch[:, 0, 0])

# %% [markdown]
r"""
Both give «34.90» and «11.96». The division makes the differences between the scores smaller, so the outputs lie nearer to the average than «37.18» and «11.19».

## Three people once more

Only your question changes.
"""

# %%
predict("ann_first")

# %%
show(weights=(torch.tensor([[1.0, -1.0]]) @ key.mT).softmax(-1))

# %% [markdown]
r"""
Ann's share rose from ‹1.6› % to «66.5» %, though she said nothing new. The scores are now 1, 0 and −1. A score belongs to a question and a key; a weight depends on all keys.

**To remember.** Attention scores every key against the query, turns scores into shares, and mixes the values by them.

- Rows ask, columns answer; each row of weights sums to 1.
- Only differences of scores count: large ones pick the best key; without any, you get the average.
- In self-attention three learned matrices turn each token into a query, a key and a value.
- Padding gets $-\infty$ before the softmax; a score of 0 hides nothing.

**Sources.** Bahdanau, Cho & Bengio 2014 (arXiv:1409.0473); Vaswani et al. 2017 (arXiv:1706.03762); Karim 2019, *Illustrated: Self-Attention*. Their claims: [evidence](evidence/02_scoring_evidence.ipynb).

**Next**: [02b · Which score](02b_which_score.ipynb), and why the root?
"""
