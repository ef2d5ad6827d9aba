# %% [markdown]
# # 02 · Scoring: exercises
#
# Seven exercises, about 50 minutes. They follow the lesson `02_scoring`; best in this order.
#
# **How it works.** Replace the `...` (or repair the function) in a cell, run it, then run the cell with `check`. It says what was asked, what you gave, and
# what is wrong, on the smallest example it can find. Three verbs:
#
# | you type | you get |
# |---|---|
# | `check(answer, "name")` | a verdict; for a function, `check(function)` is enough |
# | `hint("name")` | a question that helps; call it again for the next one, three in all |
# | `solution("name")` | a right answer, and what to remember |
#
# The stars say how hard: ★ short, ★★ some lines, ★★★ pencil and paper. Your progress is kept on this computer only;
# `progress()` shows it.
#
# Throughout, $n$ counts queries, $m$ counts keys, $d_k$ is the width of queries and keys, $d_v$ the width of values. Tokens are rows.

# %%
import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.checks import check, hint, picture, progress, solution

# %% [markdown]
# ## 1 · Two points more
#
# `★ · 4 min · softmax sees differences of scores and nothing else; everything later leans on it`
#
# In the worked example, the query of token 3 gives the three keys the scores `[4, 12, 10]`. There is no $1/\sqrt{d_k}$ in that example.
#
# After softmax: **how many times as much weight does key 2 get as key 3?** Work it out on paper; you need one cancellation and no
# computer. Type a number (`3.5`) or an expression in quotes (`"exp(3) / 2"`, `"12 * 34"`).

# %%
### BEGIN SOLUTION
score_ratio = "exp(12) / exp(10)"
### END SOLUTION
### STUB: score_ratio = ...

# %% tags=["exercise:score_ratio", "points:2"]
check(score_ratio, "score_ratio")

# %%
# hint("score_ratio")  # without the first '#': a question; run again for the next one
# solution("score_ratio")

# %% [markdown]
# ## 2 · Scores of a thousand
#
# `★★ · 8 min · exp(89) is inf in float32, and inf/inf is nan; one line prevents it, and attend has it too`
#
# Write softmax over the keys by hand, from memory, without scrolling back in the lesson:
#
# $$\text{weights}[i, j] = \frac{e^{\text{scores}[i, j]}}{\sum_{j'} e^{\text{scores}[i, j']}}$$
#
# It must survive scores of 1,000 and of −1,000. Exercise 1 tells you why you may: a common shift of a row changes no weight.
# (Calling `torch.softmax` passes, too. Then you have used the line, and not written it.)


# %%
def stable_weights(scores: Float[Tensor, "*b n m"]) -> Float[Tensor, "*b n m"]:
    ### BEGIN SOLUTION
    largest = scores.amax(-1, keepdim=True)
    exponentials = (scores - largest).exp()  # at most 1: no overflow
    return exponentials / exponentials.sum(-1, keepdim=True)
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:stable_weights", "points:4"]
check(stable_weights)

# %%
# hint("stable_weights")
# solution("stable_weights")

# %% [markdown]
# ## 3 · Attention in three lines
#
# `★★ · 10 min · this is the function of the whole course; you will meet it again and again`
#
# $$\text{output} = \text{softmax}\!\left(\frac{\text{query}\;\text{key}^\top}{\sqrt{d_k}}\right)\text{value}$$
#
# One output row for each query. `.mT` exchanges the last two axes of a tensor, and `@` multiplies matrices. Before you start: which
# shape must the scores have, and along which axis does softmax run?


# %%
def scaled_attention(
    query: Float[Tensor, "*b n d_k"],
    key: Float[Tensor, "*b m d_k"],
    value: Float[Tensor, "*b m d_v"],
) -> Float[Tensor, "*b n d_v"]:
    ### BEGIN SOLUTION
    scores = query @ key.mT / query.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return weights @ value
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:scaled_attention", "points:4"]
check(scaled_attention)

# %%
# hint("scaled_attention")
# solution("scaled_attention")

# %% [markdown]
# ## 4 · Every query with every key: a repair
#
# `★★ · 8 min · a wrong broadcast runs whenever n = m, and no error message comes`
#
# The additive score puts a small network between a query and a key:
#
# $$\text{score}[i, j] = v \cdot \tanh(\text{query}_i\, W_\text{query} + \text{key}_j\, W_\text{key})$$
#
# ($v$ is a learned vector here, not a value; the letter is the paper's.) The function below was written for it. With as many queries as keys it runs without a complaint, and it is wrong. **Repair it.**
# First guess: with 4 queries and 4 keys, what shape does it return, and what does its second number stand for?


# %%
def additive_scores(
    query: Float[Tensor, "n d_q"],
    key: Float[Tensor, "m d_k"],
    w_query: Float[Tensor, "d_q d_hidden"],
    w_key: Float[Tensor, "d_k d_hidden"],
    v: Float[Tensor, " d_hidden"],
) -> Float[Tensor, "n m"]:
    ### BEGIN SOLUTION
    of_queries, of_keys = query @ w_query, key @ w_key
    pairs = of_queries[:, None, :] + of_keys[None, :, :]  # (n, m, d_hidden)
    return torch.tanh(pairs) @ v
    ### END SOLUTION
    ### STUB: hidden = torch.tanh(query @ w_query + key @ w_key)
    ### STUB: return hidden @ v


# %% tags=["exercise:additive_scores", "points:4"]
check(additive_scores)

# %%
# hint("additive_scores")
# solution("additive_scores")

# %% [markdown]
# ## 5 · What does width do? Predict the picture
#
# `★ · 4 min · the picture of saturation: you will recognise it in a model that does not learn`
#
# Draw 6 queries and 8 keys at random, each of width $d_k = 256$, all parts independent with mean 0 and variance 1. Take plain dot
# products, not scaled, and softmax. The weights are a table of 6 rows and 8 columns; bright is large. **What does it look like?**
#
# - a) every cell about 1/8
# - b) one bright cell in each row, its column left to chance; the others nearly 0
# - c) a bright diagonal
# - d) one bright column: all queries prefer the same key
# - e) one bright cell in each column, so that columns sum to 1
# - f) many cells at exactly 0, the rest equal

# %%
### BEGIN SOLUTION
unscaled_picture = "b"
### END SOLUTION
### STUB: unscaled_picture = ...  # one letter, in quotes

# %% tags=["exercise:unscaled_picture", "points:2"]
check(unscaled_picture, "unscaled_picture")

# %% [markdown]
# Now look. The left table is the one you predicted; the right one has the same queries and keys, with scores divided by
# $\sqrt{256} = 16$.

# %%
picture("unscaled_picture")

# %%
# hint("unscaled_picture")
# solution("unscaled_picture")

# %% [markdown]
# ## 6 · When √d is not enough
#
# `★★★ · 8 min · the usual argument for 1/√d assumes mean 0; here you see what the assumption is worth`
#
# The lesson showed that $q \cdot k$ has variance $d$ when the parts are independent with mean 0 and variance 1. Now let all parts of
# $q$ and $k$ be independent with **mean 2** and variance 1, and $d = 16$.
#
# **What is the variance of $q \cdot k$?** You need $\text{var}(z) = E[z^2] - E[z]^2$, once.

# %%
### BEGIN SOLUTION
score_variance = "16 * (5 * 5 - 4 * 4)"
### END SOLUTION
### STUB: score_variance = ...

# %% tags=["exercise:score_variance", "points:6"]
check(score_variance, "score_variance")

# %%
# hint("score_variance")
# solution("score_variance")

# %% [markdown]
# ## 7 · Why the root? In your own words
#
# `★★ · 6 min · many give another reason; can you tell them apart?`
#
# In two or three sentences: **why divide the scores by $\sqrt{d_k}$, and why not by $d_k$ itself?** The check looks for the ideas that an
# answer cannot avoid, then shows a model answer. It reads words, not meaning: whether yours is right, you decide by comparing.

# %%
### BEGIN SOLUTION
why_the_root = """The variance of q . k grows with d_k, its standard deviation with the root. Large scores saturate softmax,
and its gradient vanishes. Divided by d_k itself, the scores of a wide model would be too small, and the weights uniform."""
### END SOLUTION
### STUB: why_the_root = """ """

# %% tags=["exercise:why_the_root", "points:4"]
check(why_the_root, "why_the_root")

# %%
# hint("why_the_root")
# solution("why_the_root")

# %% [markdown]
# ## What you should remember
#
# <details><summary>Open it when you are done</summary>
#
# 1. The ratio of two weights is exp(difference of their scores). A shift of all scores changes nothing, a factor changes everything.
# 2. Subtract each row's maximum before exp: the weights stay, the overflow goes.
# 3. Scores (n, m), divide by √d_k, softmax over keys, times values (m, d_v).
# 4. `[:, None, :] + [None, :, :]` pairs everything with everything. Equal sizes hide the mistake of leaving it out.
# 5. Unscaled scores grow with √d; softmax of large scores picks one key and hardly mixes.
# 6. var(q · k) = d holds for mean 0 and variance 1. A mean adds variance, and a common offset besides.
# 7. √d_k is the standard deviation of the score: dividing by it makes the width irrelevant.
#
# </details>
#
# Next: the lesson `03_matrix_form`, and its exercises.
