# %% [markdown]
# # 02 · Scoring: exercises
#
# Nine exercises, about an hour. They follow the parts [02a · soft look up](../02a_soft_look_up.ipynb) and [02b · which score](../02b_which_score.ipynb); best in this order.
#
# <details><summary>中文摘要 · Chinese</summary>
#
# 九道练习:手算权重之比、写出数值稳定的 softmax 与缩放点积注意力、修复加性打分、看图判断是否缩放、写出 softmax 的全部导数,并解释为什么要除以根号 d。
# 每题都有检查、三个提示和答案;答错时会指出错在哪里。
#
# </details>
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
# The stars say how hard: ★ short, ★★ some lines, ★★★ an idea that has to be found. Your progress is kept on this computer only;
# `progress()` shows it.
#
# Throughout, $n$ counts queries, $m$ counts keys, $d_k$ is the width of queries and keys, $d_v$ the width of values. Tokens are rows.

# %%
import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.checks import check, hint, picture, progress, solution

# %% [markdown] tags=["exercise:score_ratio"]
# In the film of part 02a the query of token 3 gives the three keys the scores `[4, 12, 10]`. There is no $1/\sqrt{d_k}$ in that example.
#
# After softmax: **how many times as much weight does key 2 get as key 3?** Work it out on paper; you need one cancellation and no
# computer. Type a number (`3.5`) or an expression, in a notebook in quotes (`"exp(3) / 2"`, `"12 * 34"`).

# %% [markdown] tags=["exercise:stable_weights"]
# Write softmax over the keys by hand:
#
# $$\text{weights}[i, j] = \frac{e^{\text{scores}[i, j]}}{\sum_{j'} e^{\text{scores}[i, j']}}$$
#
# It must survive scores of 1,000 and of −1,000. Exercise 1 tells you why you may: a common shift of a row changes no weight.
# (Calling `torch.softmax` passes, too. Then you have used the line, and not written it.)


# %% [markdown] tags=["exercise:scaled_attention"]
# $$\text{output} = \text{softmax}\!\left(\frac{\text{query}\;\text{key}^\top}{\sqrt{d_k}}\right)\text{value}$$
#
# One output row for each query. `.mT` exchanges the last two axes of a tensor, and `@` multiplies matrices. Before you start: which
# shape must the scores have, and along which axis does softmax run?


# %% [markdown] tags=["exercise:additive_scores"]
# The additive score puts a small network between a query and a key:
#
# $$\text{score}[i, j] = v \cdot \tanh(\text{query}_i\, W_\text{query} + \text{key}_j\, W_\text{key})$$
#
# ($v$ is a learned vector here, not a value; the letter is the paper's.) The function below was written for it. With as many queries as keys it runs without a complaint, and it is wrong. **Repair it.**
# First guess: with 4 queries and 4 keys, what shape does it return, and what does its second number stand for?


# %% [markdown] tags=["exercise:unscaled_picture"]
# Draw 6 queries and 8 keys at random, each of width $d_k = 256$, all parts independent with mean 0 and variance 1. Take plain dot
# products, not scaled, and softmax. The weights are a table of 6 rows and 8 columns; bright is large. **What does it look like?**

# %% [markdown] tags=["exercise:slopes"]
# Part 02b has the derivatives of one softmax: $w_j - w_j^2$ for a weight by its own score, and $-w_i w_j$ for weight $i$ by score $j$. **Write all of
# them as one table**, (m, m), for one row of m weights: row $i$, column $j$ says by how much weight $i$ moves when score $j$ grows.

# %% [markdown] tags=["exercise:copies"]
# The root of the width is right for numbers that are independent. Take the extreme case in which they are not: in each query and in each key, all 64
# numbers are the same: one random number of mean 0 and variance 1, drawn anew for each vector. The dot products are divided by √64 = 8. **What is the
# standard deviation of the scores?**

# %% [markdown] tags=["exercise:score_variance"]
# The lesson showed that $q \cdot k$ has variance $d$ when the parts are independent with mean 0 and variance 1. Now let all parts of
# $q$ and $k$ be independent with **mean 2** and variance 1, and $d = 16$.
#
# **What is the variance of $q \cdot k$?** You need $\text{var}(z) = E[z^2] - E[z]^2$, once.

# %% [markdown] tags=["exercise:why_the_root"]
# In two or three sentences: **why divide the scores by $\sqrt{d_k}$, and why not by $d_k$ itself?** The check shows a model answer and a few points: you judge your own, point by point.

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
# 6. The derivatives of a softmax are diag(w) − w wᵀ: all are 0 where one weight is 1.
# 7. √d is the right divisor for independent numbers. 64 copies of one number leave a standard deviation of 8.
# 8. var(q · k) = d holds for mean 0 and variance 1. A mean adds variance (and an offset that all scores share, which softmax does not see).
# 9. √d_k is the standard deviation of the score (for mean 0 and variance 1): dividing by it makes the width irrelevant.
#
# </details>
#
# Next: the part [03 · matrix form](../03_matrix_form.ipynb), and its exercises.
