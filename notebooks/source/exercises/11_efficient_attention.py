# %% [markdown]
# # 11 · Efficient attention: exercises
#
# Eight exercises, about 56 minutes. They follow the lesson `11_efficient_attention`; best in this order, and the last, the hardest, may wait.
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

# %% [markdown]
# ## 1 · What a long conversation keeps
#
# `★ · 4 min · at generation this cache, not the model, fills the memory; it decides how many people can talk to one machine`
#
# A language model keeps the keys and values of all tokens it has read, so that a new token need not compute them again. It has **32 layers**. In each, **32 query heads** share **8 heads of keys
# and values**, and a head's query, key and value have **128 numbers** each. The conversation is **131,072 tokens** long, and a number takes **2 bytes**. **How many GiB is this cache?** Type a
# number or an expression in quotes.

# %%
### BEGIN SOLUTION
cache_of_groups = "2 * 32 * 8 * 128 * 131072 * 2 / 2**30"
### END SOLUTION
### STUB: cache_of_groups = ...

# %% tags=["exercise:cache_of_groups", "points:2"]
check(cache_of_groups, "cache_of_groups")

# %%
# hint("cache_of_groups")  # without the first '#': a question; run again for the next one
# solution("cache_of_groups")

# %% [markdown]
# ## 2 · Two halves of the keys
#
# `★★ · 8 min · tiles, rings of machines and split caches all rest on these five lines: attention to some keys and attention to the others, put together`
#
# Some keys are here, the others somewhere else. Each part answers the same n queries: the outputs of attention to its keys alone, and for each query
#
# $$\text{log\_sum} = \ln \sum_{j \text{ in the part}} \exp(\text{score}_j),$$
#
# which is -inf where a query saw no key; its output is 0 then. **Write the merge**: output and log_sum of attention to the keys of *both* parts, as two tensors. Log sums may be 200 or -200, and both may be -inf.


# %%
def merge_two(
    output_a: Float[Tensor, "n d_v"],
    log_sum_a: Float[Tensor, " n"],
    output_b: Float[Tensor, "n d_v"],
    log_sum_b: Float[Tensor, " n"],
) -> tuple[Float[Tensor, "n d_v"], Float[Tensor, " n"]]:
    ### BEGIN SOLUTION
    log_sum = torch.logaddexp(log_sum_a, log_sum_b)
    lowest = torch.finfo(log_sum.dtype).min  # in place of -inf: -inf - -inf is nan
    a = (log_sum_a - log_sum.clamp(min=lowest)).exp()
    b = (log_sum_b - log_sum.clamp(min=lowest)).exp()
    return a[:, None] * output_a + b[:, None] * output_b, log_sum
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:merge_two", "points:4"]
check(merge_two)

# %%
# hint("merge_two")
# solution("merge_two")

# %% [markdown]
# ## 3 · A softmax that never sees its row
#
# `★★ · 10 min · these ten lines are the idea of FlashAttention: the exact softmax, read tile by tile, with nothing kept but two sums and a maximum`
#
# `scores` stand in a table (n, m) here, but imagine that they come tile by tile, `tile` keys at a time from left to right, and that a tile is gone once the next one comes. The last tile may be narrower. **Write**
# `softmax(scores) @ value` in one pass: for each query keep the largest score so far and two sums relative to it, and nothing else. Scores may be 200 or -200. No operation may take all keys at once; a
# slice of some columns is a tile.


# %%
def one_pass(
    scores: Float[Tensor, "n m"], value: Float[Tensor, "m d_v"], tile: int
) -> Float[Tensor, "n d_v"]:
    ### BEGIN SOLUTION
    top = scores.new_full((len(scores), 1), -torch.inf)  # the largest score so far
    total, mixed = 0.0, 0.0  # two sums, relative to it
    for start in range(0, len(value), tile):
        part = scores[:, start : start + tile]
        new = torch.maximum(top, part.amax(1, keepdim=True))
        shrink, weights = (top - new).exp(), (part - new).exp()
        total = total * shrink + weights.sum(1, keepdim=True)
        mixed = mixed * shrink + weights @ value[start : start + tile]
        top = new
    return mixed / total
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:one_pass", "points:4"]
check(one_pass)

# %%
# hint("one_pass")
# solution("one_pass")

# %% [markdown]
# ## 4 · Which heads share their keys?: a repair
#
# `★★ · 6 min · programs that load a published model have made this mistake: every shape is right, no error comes, and the text is nonsense`
#
# h query heads share g heads of keys and values; h is a multiple of g. Heads that share are **neighbours**: with h = 4 and g = 2, query heads 0 and 1 look at key head 0, heads 2 and 3 at key head 1. So was the model
# trained whose weights are loaded here. In the function below **one line is wrong. Repair it.**


# %%
def grouped_query(
    query: Float[Tensor, "h n d_k"],
    key: Float[Tensor, "g m d_k"],
    value: Float[Tensor, "g m d_v"],
) -> Float[Tensor, "h n d_v"]:
    shared = len(query) // len(key)  # query heads that share a head of keys
    ### BEGIN SOLUTION
    key, value = (x.repeat_interleave(shared, 0) for x in (key, value))
    ### END SOLUTION
    ### STUB: key, value = (x.repeat(shared, 1, 1) for x in (key, value))
    return attend(query, key, value, weights=False).output


# %% tags=["exercise:grouped_query", "points:4"]
check(grouped_query)

# %%
# hint("grouped_query")
# solution("grouped_query")

# %% [markdown]
# ## 5 · Mixtures of keys
#
# `★★ · 6 min · four lines make the cost of attention grow with n instead of n²; what they give up is worth knowing as exactly`
#
# Instead of n keys and n values, `rank` mixtures of them: E and F, of shape (rank, n), are learnt, and row r of E says how much of each token's key goes into mixture r. **Write** attention of all n queries to the mixtures:
#
# $$\text{output} = \operatorname{softmax}\!\left(\frac{Q\, (E K)^T}{\sqrt{d_k}}\right) F V .$$
#
# Twice as many tokens may take twice the work, not more: no table of n x n.


# %%
def low_rank(
    query: Float[Tensor, "n d_k"],
    key: Float[Tensor, "n d_k"],
    value: Float[Tensor, "n d_v"],
    E: Float[Tensor, "rank n"],
    F: Float[Tensor, "rank n"],
) -> Float[Tensor, "n d_v"]:
    ### BEGIN SOLUTION
    keys, values = E @ key, F @ value  # `rank` mixtures of n tokens each
    scores = query @ keys.mT / query.shape[-1] ** 0.5  # (n, rank)
    return scores.softmax(-1) @ values
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:low_rank", "points:4"]
check(low_rank)

# %%
# hint("low_rank")
# solution("low_rank")

# %% [markdown]
# ## 6 · Which method can do what? Predict the picture
#
# `★★ · 6 min · whoever picks a method by its cost alone finds out about its limits when the model is trained`
#
# Five ways to spare the table, for thousands of tokens: **T**, tiles with a running softmax; **W**, a window of radius 64; **L**, low rank with E and F learnt; **R**, random features; **E**, attention along a list of edges. (Lesson 08 has causal linear attention, lesson 10 the edges.)
# **Which of them**
#
# 1. give the outputs of full attention, to rounding, whatever the tokens hold,
# 2. can be made causal at the same price,
# 3. take a longer sequence than any in training, without new weights,
# 4. must be told who is connected?
#
# - a) (1) T, R; (2) T, W, R, E; (3) T, W, R, E; (4) E
# - b) (1) T; (2) T, W, L, R, E; (3) T, W, R, E; (4) E
# - c) (1) none; (2) T, W, R, E; (3) T, W, R, E; (4) E
# - d) (1) T; (2) T, W, R, E; (3) T, W, L, R, E; (4) E
# - e) (1) T; (2) T, W, R, E; (3) T, W, R, E; (4) E
# - f) (1) T; (2) T, W, E; (3) T, W, R, E; (4) E
# - g) (1) T; (2) T, W, R, E; (3) T, W, R, E; (4) W, E

# %%
### BEGIN SOLUTION
which_method = "e"
### END SOLUTION
### STUB: which_method = ...  # one letter, in quotes

# %% tags=["exercise:which_method", "points:4"]
check(which_method, "which_method")

# %%
picture("which_method")

# %%
# hint("which_method")
# solution("which_method")

# %% [markdown]
# ## 7 · How many machines for a million tokens?
#
# `★★ · 6 min · whether a sequence fits is a division that you can do before you rent anything`
#
# A ring of machines shares n = $2^{20}$ tokens out in equal parts, and computes exact attention tile by tile. For **each of its own tokens** a machine holds a query, a key, a value and an output. It also holds **two
# visiting blocks** of keys and values, each as large as its own part: the one it works with and the one that comes in meanwhile. Every one of these vectors has **512 numbers of 4 bytes**. The tiles are so small that they do not count. **Each machine
# has 1 GiB free for this. How many machines are needed?**

# %%
### BEGIN SOLUTION
ring_machines = "(4 + 2*2) * 512 * 4 * 2**20 / 2**30"
### END SOLUTION
### STUB: ring_machines = ...

# %% tags=["exercise:ring_machines", "points:4"]
check(ring_machines, "ring_machines")

# %%
# hint("ring_machines")
# solution("ring_machines")

# %% [markdown]
# ## 8 · The future in every mixture. In your own words
#
# `★★★ · 10 min · such a model has a wonderful loss in training and writes nonsense, and no test of shapes finds it`
#
# Someone builds a language model from low-rank layers, `attend(q, E @ k, F @ v)`, for n = 8 tokens, numbered from 0, with rank 3. To make it causal, a triangle of a mask is laid over the table of weights, which has shape (8, 3). The loss in training is wonderful. What the
# model writes is nonsense. **Token 5 is changed: which outputs change? Why can no mask over the mixtures mend this? What would you take instead?** Two to four sentences. The check looks for the ideas that an
# answer cannot avoid, then shows a model answer. It reads words, not meaning: compare the two yourself.

# %%
### BEGIN SOLUTION
leaky_mixtures = """All eight, those before token 5 as well: every mixture sums over all tokens, so
each one contains token 5. A mask hides a whole mixture, and there is none without the future in it. I
would take tiles with a causal mask, or random features with a running sum that stops at the query."""
### END SOLUTION
### STUB: leaky_mixtures = """ """

# %% tags=["exercise:leaky_mixtures", "points:6"]
check(leaky_mixtures, "leaky_mixtures")

# %%
# hint("leaky_mixtures")
# solution("leaky_mixtures")

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
# 8. What is mixed before it is hidden cannot be hidden.
#
# </details>
