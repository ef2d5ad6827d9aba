# %% [markdown]
r"""
{title}

You ask three people what a pot of tea costs. Ann says 10, Ben 20, Cy 40. They are not equally good judges: for your question Ann has the
score 1, Ben 3, Cy 5. You want one number, and nobody left out. So each gets a *share*: positive (even where a score is negative), larger for a larger score, and
the three sum to 1.

**Afterwards you can** compute attention by hand and in three lines of torch; name its six parts, with their shapes; hide
empty places.

{about}

<details><summary>中文摘要 · Chinese</summary>
注意力是一次"软查询":用查询与每个键的点积打分,经 softmax 变成权重,再按权重混合各个值。分数很尖锐时它就是字典,分数相同时它就是平均数。
分数 0 不等于"不看":要排除填充,必须在 softmax 之前把分数设为负无穷。
</details>

{sources}
"""

# %%
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c02_scoring.softmax_explorer import SoftmaxExplorer
from lesson_lib.chapters.c02_scoring.steps_explorer import SevenStepsExplorer
from lesson_lib.checks import check, hint, predict, solution, warm_up
from lesson_lib.scores import dot
from lesson_lib.show import show
from lesson_lib.trace import example

warm_up()

# %%
predict("ann_share")

# %% [markdown]
r"""
The rule is called **softmax**: raise $e \approx 2.718$ to each score, then divide by the sum.

$$w_j = \frac{e^{s_j}}{e^{s_1} + e^{s_2} + e^{s_3}} \qquad \text{Ann: } \frac{e^1}{e^1 + e^3 + e^5} = \frac{2.72}{2.72 + 20.09 + 148.41} = 0.016$$

Every power of $e$ is positive, and one point more is always $e$ times the share.
"""

# %%
predict("plus_or_times")

# %% [markdown]
r"""
Type 5 for Ann's 1: who loses most? Then move *plus* and *times*.
"""

# %%
SoftmaxExplorer((1.0, 3.0, 5.0), names=("Ann", "Ben", "Cy"))

# %% [markdown]
r"""
Cy does, from 0.867 to 0.468. Adding changes nothing, so torch first subtracts the largest score: the largest power is then $e^0 = 1$, and none overflows.

## 1 · From a dictionary to a mixture

Where do scores come from? A dictionary looks for the *key* that equals your *query*,
and returns its *value*. With no such key it has no answer:
"""

# %%
prices = {"black tea": 12.0, "green tea": 15.0, "cake": 30.0}
try:
    prices["tea"]
except KeyError as missing:
    print("no key is equal to", missing)

# %% [markdown] tags=["slide"]
r"""
A shop's search does better: for the query *tea* it scores every product's title (a key), and lists the products (the values), best first. Attention **mixes** the values.

To score, write queries and keys as vectors. Each key says what a person knows of (tea, prices); your query says how much you
want of each: $[1, 2]$. The score is their dot product:

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
The output, 37.2, is mostly Cy's 40, pulled down by Ben. That is attention. Its six parts, for $n$ queries and $m$ keys of
width $d_k$:

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

A **query** asks, a **key** is compared with it, a **value** is mixed. A **score** is any number. A **weight** is a share, and each row of weights sums to 1: rows ask, columns answer. An
**output** is one query's mixture; it is as wide as a value, $d_v$.
"""

# %% [markdown] tags=["exercise:soft_look_up"]
# Write it for any number of queries and keys. (`Float[Tensor, "n d_k"]` is a note: a tensor of shape (n, d_k).)

# %% [markdown]
r"""
**"A query of zeros hears nothing."** Does it?
"""

# %%
predict("query_of_zeros")

# %%
times = torch.tensor([[0.0], [0.5], [1.0], [10.0]])  # four lengths of the same query
weights = (times * query @ key.mT).softmax(-1)
show(weights=weights, outputs=weights @ value)

# %% [markdown]
r"""
At ten times the query the best key takes all (0.0000 is rounded), as in a dictionary that always answers. At half: 32.4. At zero: the plain average. **Attention lives between a dictionary and an average**, and the gaps between the scores say where.

The library's `attend` is these lines in one call, and takes scores other than `dot`. It returns `output` and `weights`. (No message: equal.)
"""

# %%
out, weights = attend(query, key, value, score=dot)
assert_close(out, (query @ key.mT).softmax(-1) @ value)

# %% [markdown]
r"""
## 2 · Self-attention: every token asks

In a sentence there is one list of **tokens** (words, say), each a row of numbers. Every token asks,
and every token answers, itself included: that is **self-attention**. In *the cat sleeps*, *sleeps* looks for who sleeps; *cat* is found as a noun, and tells of an animal. So
three matrices give the tokens, the rows of $x$, three roles:

$$\text{queries} = x\,W_q \qquad \text{keys} = x\,W_k \qquad \text{values} = x\,W_v$$

Training finds these matrices. Here they are small whole numbers (Karim's example, 2019), and turn width 4 into 3:
"""

# %% tags=["slide"]
show(**{name: table.int() for name, table in example().items()})

# %% [markdown] tags=["slide"]
r"""
The first token is $[1, 0, 1, 0]$, so its query adds the first and third row of $W_q$: $[1, 0, 1] + [0, 0, 1] = [1, 0, 2]$. The second, $[0, 2, 0, 2]$, gets the key $2 \cdot [1, 1, 0] + 2 \cdot [1, 1, 0] = [4, 4, 0]$.
"""

# %%
predict("score_by_hand")

# %% [markdown]
r"""
Go through the film step by step; it counts from 1; bright is large. Point at a computed number to read its formula. Before step 5: whom will query 2 hear?
"""

# %%
SevenStepsExplorer()

# %% [markdown]
r"""
The scores 4, 16, 12 became 0.00, 0.98, 0.02: four points behind, a key has $e^{-4}$, 1/55, of the leader's share. Step 6 shows the weighted values of query 2, and step 7 adds them up: $[2.00, 7.96, 0.05]$, nearly
the second value, $[2, 8, 0]$. Press *rounded by hand*: Karim's 0, 1, 0 loses the 2 %. (Scores over $\sqrt 3$: see 02b.)

## 3 · In real work: the empty chair

Models read many lists at once. Zoe asks beside you. She mistrusts insiders: her query is $[-1, -2]$, so whoever knows more scores less. She met only
Ann and Ben. A tensor needs lists of equal length, so an empty chair fills hers: key $[0, 0]$, value 0. That is **padding**.
"""

# %%
predict("padding_share")

# %%
queries = torch.stack([query, -query])  # (2 lists, 1 query, 2 numbers)
keys, values = torch.stack([key, key]), torch.stack([value, value])
keys[1, 2], values[1, 2] = 0, 0  # the empty chair
real = torch.tensor([[True, True, True], [True, True, False]])  # not used yet
output, weights = attend(queries, keys, values, score=dot)
show(weights=weights, output=output)

# %% [markdown]
r"""
Zoe is told 3.3, and nobody said less than 10. So **"a score of 0 means: do not look"** is wrong. Only the score $-\infty$ has the weight 0, since
$e^{-\infty} = 0$; others are at most rounded to it.
"""

# %% [markdown] tags=["exercise:without_padding"]
# In a batch of $b$ lists, `real` (b, m) is True for real keys. Hide the others, and return the weights. (`real[:, None, :]` is (b, 1, m): one row for all queries of a list.)

# %% [markdown]
r"""
Such a table is a **mask**: True means *may look*. `attend` and torch's `scaled_dot_product_attention` take it.
"""

# %%
mask = real[:, None, :]  # (2, 1, 3)
ours = attend(queries, keys, values, score=dot, mask=mask).output
by_torch = F.scaled_dot_product_attention(
    queries, keys, values, attn_mask=mask, scale=1.0
)
assert_close(ours, by_torch)
show(outputs=ours)

# %% [markdown]
r"""
You still hear 37.18, and Zoe hears 11.19: Ann's 10 and a little of Ben's 20. (torch divides scores by $\sqrt{d_k}$ unless told `scale=1.0`: part 02b.)

Beware of torch's *layer*: its `key_padding_mask` means the opposite, True = **ignore**. Hand it `real`, and all of your list is ignored: every power is 0, and 0 / 0 is nan. Zoe
hears only the chair: one key is left, with the share 1. `~real` is right.
"""

# %%
# widths of queries, keys and values: 2, 2, 1; one head (more in chapter 04)
layer = torch.nn.MultiheadAttention(2, num_heads=1, kdim=2, vdim=1, batch_first=True)
for name, ignored in {"real": real, "~real": ~real}.items():  # ~ swaps True and False
    _, got = layer(queries, keys, values, key_padding_mask=ignored)  # got: the weights
    print(f"{name:>5}: you nan? {got[0].isnan().any()}  chair {got[1, 0, 2]:.0f}")

# %% [markdown]
r"""
## Three people once more

Only your question changes.
"""

# %%
predict("ann_first")

# %%
show(weights=attend(torch.tensor([[1.0, -1.0]]), key, value, score=dot).weights)

# %% [markdown]
r"""
Ann's share rose from 1.6 to 66.5 %, though she said nothing new. A score belongs to a question and a key; a weight depends on all keys.

**To remember.** Attention scores every key against the query, turns scores into shares, and mixes the values by them.

- Rows ask, columns answer; each row of weights sums to 1.
- Only differences of scores count: large ones pick the best key; without any, you get the average.
- In self-attention three learned matrices turn each token into a query, a key and a value.
- Padding gets $-\infty$ before the softmax; a score of 0 hides nothing.

**Sources.** Bahdanau, Cho & Bengio 2014 (arXiv:1409.0473); Vaswani et al. 2017 (arXiv:1706.03762); Karim 2019, *Illustrated: Self-Attention*. Their claims:
[evidence](evidence/02_scoring_evidence.ipynb).

**Next**: [02b · Which score](02b_which_score.ipynb), and why the root?
"""
