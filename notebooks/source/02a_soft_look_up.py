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
# shown = "figures.six_parts()"
# action = "def soft_look_up(query, key, value):"
# ["between dictionary and average"]
# says = "a long query makes the weights sharp, as in a dictionary; a query of zeros gives all values the same weight, so the output is their average"
# motive = "A query of zeros hears nothing."
# shown = "23.3333"
# action = 'predict("query_of_zeros")'
# ["self-attention"]
# says = "every token of a sequence asks, and every token is asked, itself included; what a token looks for is neither what it is found by nor what it passes on, so three matrices make its query, key and value from its row"
# motive = "what a token looks for is not what it is found by"
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

**Afterwards you can** compute attention by hand and in three lines of torch; name its six parts, with their shapes; hide the filler in a batch.

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

from lesson_lib.chapters.c02_scoring import figures
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
Cy's share falls most, from 0.867 to 0.468. *Plus* changes no share. With Ann's score back at 1, a large *times* gives Cy nearly all.

## 1 · From a dictionary to a mixture

Where do scores come from? A dictionary looks for the *key* that equals your *query*, and returns its *value*. With no such key it has no answer:
"""

# %%
prices = {"black tea": 12.0, "green tea": 15.0, "cake": 30.0}
try:
    prices["tea"]
except KeyError as missing:
    print("no key is equal to", missing)

# %% [markdown]
r"""
The search of a shop does better. Its keys are the titles of products, and its values are the products. It scores every title against the query *tea*, and lists the products, best first. Attention goes one step further: it **mixes** the values.

To score, write queries and keys as vectors. Each key says what a person knows of tea and of prices. Your query says how much you want of each: $[1, 2]$. The score is their dot product:

| | key | score with $[1, 2]$ | value |
|---|---|---|---|
| Ann | $[1, 0]$ | $1 \cdot 1 + 2 \cdot 0 = 1$ | 10 |
| Ben | $[1, 1]$ | $1 \cdot 1 + 2 \cdot 1 = 3$ | 20 |
| Cy | $[1, 2]$ | $1 \cdot 1 + 2 \cdot 2 = 5$ | 40 |
"""

# %%
query = torch.tensor([[1.0, 2.0]])  # one row: one query
key = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
value = torch.tensor([[10.0], [20.0], [40.0]])
scores = query @ key.mT  # .mT swaps the last two axes: (1, 2) @ (2, 3)
weights = scores.softmax(-1)  # torch's softmax; -1: over the last axis, the keys
show(scores=scores, weights=weights, output=weights @ value)

# %% [markdown]
r"""
The output, «37.2», is mostly Cy's 40, pulled down by Ben's 20. That is attention. Its six parts, for $n$ queries and $m$ keys of $d_k$ numbers each, and values of $d_v$ numbers:

"""

# %%
figures.six_parts()

# %% [markdown]
r"""
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

With the tea, you asked and others answered. In a sentence every word does both. A **token** is a piece of a text, here a word, and each token is a row of numbers. In **self-attention** every token asks, and every token is asked, itself included.

Which queries and keys should a token have? A first idea: its row serves as both. Take *the cat sleeps*, with three numbers for each word: how much of a noun it is, how much of a verb, and whether it is an animal.
"""

# %%
x = torch.tensor([[0.0, 0.0, 0.0], [3.0, 0.0, 1.0], [0.0, 3.0, 0.0]])  # the, cat, sleeps
show(weights=(x @ x.mT).softmax(-1))

# %% [markdown]
r"""
The last row is that of *sleeps*. Its score with itself is $3 \cdot 3 = 9$, and its scores with the others are 0, so nearly all of its weight is on *sleeps* itself. *cat*, too, looks at itself, and *the* gets the average.

But *sleeps* should find out who sleeps. It is found as a verb, and it looks for a noun: what a token looks for is not what it is found by. What a token passes on may differ again: *cat* is found as a noun, and passes on that it is an animal. So three matrices give each token, a row of $x$, three roles:

$$\text{queries} = x\,W_q \qquad \text{keys} = x\,W_k \qquad \text{values} = x\,W_v$$

With $d$ numbers in a token, $W_q$ and $W_k$ have shape $(d, d_k)$, here $(3, 2)$, and $W_v$ has shape $(d, d_v)$, here $(3, 1)$. Training finds these matrices, as part 03 shows. Here we write them by hand. The rows of each are noun, verb, animal:
"""

# %%
w_q = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]])  # columns: looks for a noun, for a verb
w_k = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])  # columns: is found as a noun, as a verb
w_v = torch.tensor([[0.0], [0.0], [1.0]])  # column: passes on whether it is an animal
show(
    queries=x @ w_q,
    weights=(x @ w_q @ (x @ w_k).mT).softmax(-1),
    outputs=yours("soft_look_up")(x @ w_q, x @ w_k, x @ w_v),
)

# %% [markdown]
r"""
The row of *sleeps*, $[0, 3, 0]$, times `w_q` is its query, $[3, 0]$: it looks for a noun. So «0.9998» of its weight is on *cat*, and its output is «0.9998», nearly 1: an animal sleeps. *the* and *cat* ask with zeros, so they get the average.

Change one number of `w_q`, so that *cat* looks for the verb, and run the cell again.

<details><summary>One answer</summary>

In the first row, that of the noun, the 0 for the verb becomes a 1: $[0, 1]$. Then *cat* gives nearly all of its weight to *sleeps*.

</details>

A longer example, after Raimi Karim (2019), has three tokens of four numbers, and matrices of shape $(4, 3)$ with small whole numbers.
"""

# %%
predict("score_by_hand")

# %% [markdown]
r"""
The film below goes from the tokens to the outputs in seven steps. It counts tokens from 1. Press *play*, or *forward*. Point at a number, or move to it with Tab, to see how it was computed.
"""

# %%
SevenStepsExplorer()

# %% [markdown]
r"""
Step 2 shows the three matrices, step 3 keys, queries and values. Step 4 has your score, 4, in row 1, column 2. Step 5 turns row 1 of the scores, 2, 4, 4, into the weights 0.06, 0.47, 0.47. By these weights the three values $[1, 2, 3]$, $[2, 8, 0]$ and $[2, 6, 3]$ are mixed: step 7 has the output $[1.94, 6.68, 1.60]$. It lies near $[2, 7, 1.5]$, the middle of the last two values, pulled a little towards the first.

## 3 · In real work: the empty chair

A model answers many questions at once, a **batch**. Zoe asks, too, but of a list of her own: she has met only Ann and Ben. She mistrusts experts, so her query is yours with the sign turned, $[-1, -2]$. A tensor needs lists of equal length, so an empty chair fills hers, with the key $[0, 0]$ and the value 0. Such filler is called **padding**.
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
Zoe is told «3.3», though nobody said less than 10: the chair has «71» % of the weight. So **"a score of 0 means: do not look"** is wrong. But a score of $-\infty$ has the weight 0, since $e^{-\infty} = 0$, as long as another score of the row is finite.
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
Zoe hears the chair alone. And your weights are nan, "not a number": all three keys are hidden, so all scores are $-\infty$. The softmax of torch first subtracts the largest score from all, which keeps the powers small and changes no share. Here this is $-\infty - (-\infty)$, which is nan. If outputs contain nan, look first for a row whose keys are all hidden. (With −1e9 in place of $-\infty$, all three would get a third, and nothing would warn you.)

## To carry away

`notebooks/carry/attention.py` is one file to copy, with chapters 02 to 04 in plain torch. Its `attend` returns outputs and weights. It joins your two functions, and it divides the scores by $\sqrt{d_k}$, for a reason that part 02b finds. (To divide the query, `query * d**-0.5`, gives the same scores.)
"""

# %%
from carry import attention as carried

show_source(carried.attend)

# %% [markdown]
r"""
`empty` marks the rows whose keys are all hidden. The line of `weights` fills such a row twice. Before the softmax it gets finite scores, so that no nan arises. After it, its weights become 0. (`score_bias` and `dropout` are for later parts.) torch has the same as one function, which returns the outputs alone. In its `attn_mask`, too, True means *may look*:
"""

# %%
mask = real[:, None, :]  # (2, 1, 3)
output, _ = carried.attend(queries, keys, values, mask=mask)
by_torch = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
show(carried=output[:, 0, 0], torch=by_torch[:, 0, 0])

# %% [markdown]
r"""
Both give «34.90» and «11.96». The division makes the differences between the scores smaller, so your «37.18» and Zoe's «11.19» have moved towards the averages of their lists, 23.33 and 15.

## Three people once more

Only your question changes.
"""

# %%
predict("ann_first")

# %%
weights = (torch.tensor([[1.0, -1.0]]) @ key.mT).softmax(-1)
show(weights=weights, price=weights @ value)

# %% [markdown]
r"""
Ann's share rose from ‹1.6› % to «66.5» %, though she said nothing new. The price falls to «15.15». A score belongs to a question and a key; a weight depends on all keys.

**To remember.** Attention scores every key against the query, turns scores into shares, and mixes the values by them.

- Rows ask, columns answer; each row of weights sums to 1.
- Only differences of scores count: large ones pick the best key; without any, you get the average.
- In self-attention three learned matrices turn each token into a query, a key and a value.
- Padding gets $-\infty$ before the softmax; a score of 0 hides nothing.

**Sources.** Bahdanau, Cho & Bengio 2014 (arXiv:1409.0473); Vaswani et al. 2017 (arXiv:1706.03762); Karim 2019, *Illustrated: Self-Attention*. Their claims: [evidence](evidence/02_scoring_evidence.ipynb).

**Next**: [02b · Which score](02b_which_score.ipynb), and why the root?
"""
