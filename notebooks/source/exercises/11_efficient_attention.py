# %% [markdown]
# # 11 · Efficient attention: exercises
#
# Nine exercises, about 64 minutes. They follow the parts [11a · approximations](../11a_approximations.ipynb), [11b · exact and fast](../11b_exact_and_fast.ipynb), [11c · many machines](../11c_many_machines.ipynb) and [11d · chosen keys](../11d_chosen_keys.ipynb); best in this order, and the last, the hardest, may wait.
#
# **How it works.** Replace the `...` (or repair the function) in a cell, run it, then run the cell with `check`. `hint("name")` asks a question that helps, three in
# all; `solution("name")` shows a right answer. `progress()` lists what you have done.
# The stars: ★ short, ★★ some lines or some thinking, ★★★ an idea that has to be found.
#
# Throughout, n is the number of tokens that ask, m the number of keys. A GiB is $2^{30}$ bytes. `attend` is the library's; it scales scores by $1 / \sqrt{d_k}$.

# %%
import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks import check, hint, picture, progress, solution

# %% [markdown] tags=["exercise:cache_of_groups"]
# A language model keeps the keys and values of all tokens it has read, so that a new token need not compute them again. It has **32 layers**. In each, **32 query heads** share **8 heads of keys
# and values**, and a head's query, key and value have **128 numbers** each. The conversation is **131,072 tokens** long, and a number takes **2 bytes**. **How many GiB is this cache?** Type a
# number or an expression in quotes.

# %% [markdown] tags=["exercise:merge_two"]
# Some keys are here, the others somewhere else. Each part answers the same n queries: the outputs of attention to its keys alone, and for each query
#
# $$\text{log\_sum} = \ln \sum_{j \text{ in the part}} \exp(\text{score}_j),$$
#
# which is -inf where a query saw no key; its output is 0 then. **Write the merge**: output and log_sum of attention to the keys of *both* parts, as two tensors. Log sums may be 200 or -200, and both may be -inf.


# %% [markdown] tags=["exercise:one_pass"]
# `scores` stand in a table (n, m) here, but imagine that they come tile by tile, `tile` keys at a time from left to right, and that a tile is gone once the next one comes. The last tile may be narrower. **Write**
# `softmax(scores) @ value` in one pass: for each query keep the largest score so far and two sums relative to it, and nothing else. Scores may be 200 or -200. No operation may take all keys at once; a
# slice of some columns is a tile.


# %% [markdown] tags=["exercise:grouped_query"]
# h query heads share g heads of keys and values; h is a multiple of g. Heads that share are **neighbours**: with h = 4 and g = 2, query heads 0 and 1 look at key head 0, heads 2 and 3 at key head 1. So was the model
# trained whose weights are loaded here. In the function below **one line is wrong. Repair it.**


# %% [markdown] tags=["exercise:low_rank"]
# Instead of n keys and n values, `rank` mixtures of them: E and F, of shape (rank, n), are learnt, and row r of E says how much of each token's key goes into mixture r. **Write** attention of all n queries to the mixtures:
#
# $$\text{output} = \operatorname{softmax}\!\left(\frac{Q\, (E K)^T}{\sqrt{d_k}}\right) F V .$$
#
# Twice as many tokens may take twice the work, not more: no table of n x n.


# %% [markdown] tags=["exercise:which_method"]
# Five ways to spare the table, for thousands of tokens: **T**, tiles with a running softmax; **W**, a window of radius 64; **L**, low rank with E and F learnt; **R**, random features; **E**, attention along a list of edges. (Lesson 08 has causal linear attention, lesson 10 the edges.)
# **Which of them**
#
# 1. give the outputs of full attention, to rounding, whatever the tokens hold,
# 2. can be made causal at the same price,
# 3. take a longer sequence than any in training, without new weights,
# 4. must be told who is connected?

# %% [markdown] tags=["exercise:ring_machines"]
# A ring of machines shares n = $2^{20}$ tokens out in equal parts, and computes exact attention tile by tile. For **each of its own tokens** a machine holds a query, a key, a value and an output. It also holds **two
# visiting blocks** of keys and values, each as large as its own part: the one it works with and the one that comes in meanwhile. Every one of these vectors has **512 numbers of 4 bytes**. The tiles are so small that they do not count. **Each machine
# has 1 GiB free for this. How many machines are needed?**

# %% [markdown] tags=["exercise:chosen_rows"]
# A text of m tokens is read with a cache: its last n tokens are new, with index scores (n, m) for all m keys. `real` (m,) is False where a token is padding. **Write** the mask (n, m) of each new query's k best keys. A query may choose itself and earlier tokens, and no padding.
# In 2026 published code got this wrong in three ways: the choice saw the future, it was another one with a cache, and another one with padding.


# %% [markdown] tags=["exercise:leaky_mixtures"]
# Someone builds a language model from low-rank layers, `attend(q, E @ k, F @ v)`, for n = 8 tokens, numbered from 0, with rank 3. To make it causal, a triangle of a mask is laid over the table of weights, which has shape (8, 3). The loss in training is wonderful. What the
# model writes is nonsense. **Token 5 is changed: which outputs change? Why can no mask over the mixtures mend this? What would you take instead?** Two to four sentences. The check shows a model answer and a few points: you judge your own, point by point.

# %% [markdown]
# ## What you should remember
#
# <details><summary>Open it when you are done</summary>
#
# 1. A cache holds keys and values of the key heads. Fewer of them, and nothing else, make it smaller.
# 2. An output and its log sum are all that must be kept of keys that are gone. Weigh each part by exp(log_sum of the part - log_sum of both).
# 3. When the maximum rises, shrink both sums by exp(old - new). Divide once, at the end.
# 4. Groups are neighbours: `repeat_interleave`, 0 0 1 1. `repeat` gives 0 1 0 1, and no error.
# 5. Low rank is `attend(q, E k, F v)`: n x rank scores. The columns of E are places.
# 6. Only tiles (and rings of them) are exact. Only low rank can be neither causal nor longer than it was trained.
# 7. Memory in a ring falls as 1 / machines: 8 vectors a token. The work stays n², shared out.
# 8. First the mask (the future, padding, counted from the last key), then the choice.
# 9. What is mixed before it is hidden cannot be hidden.
#
# </details>
