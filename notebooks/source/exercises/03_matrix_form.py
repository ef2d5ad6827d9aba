# %% [markdown]
# # 03 · Matrix form: exercises
#
# Seven exercises, about 45 minutes. They follow the lesson `03_matrix_form`; best in this order.
#
# **How it works.** Replace the `...` (or repair the function) in a cell, run it, then run the cell with `check`. `hint("name")` asks a question that helps, three in
# all; `solution("name")` shows a right answer. `progress()` lists what you have done.
# The stars: ★ short, ★★ some lines, ★★★ pencil and paper.
#
# Two conventions meet here. **Rows**: a token is a row, $Q = X W_q$, scores $Q K^\top$, softmax along each row. **Columns**: a token is a
# column, $Q = W^q I$, scores $A = K^\top Q$, softmax down each column. There is no $1/\sqrt{d_k}$ in this lesson's examples.

# %%
import math

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.checks import check, hint, picture, progress, solution
from lesson_lib.show import show

# %% [markdown]
# ## 1 · What is learned?
#
# `★ · 4 min · attention has few parameters, and none of them counts tokens: that is why it takes inputs of any length`
#
# A self-attention layer with the three matrices and nothing else. Inputs have width $d_\text{model} = 512$, queries and keys $d_k = 64$,
# values $d_v = 128$, and the sentence has $n = 100$ tokens. **How many numbers are learned?** Count by hand; an expression in quotes will do.

# %%
### BEGIN SOLUTION
learned_numbers = "2 * 512 * 64 + 512 * 128"
### END SOLUTION
### STUB: learned_numbers = ...

# %% tags=["exercise:learned_numbers", "points:2"]
check(learned_numbers, "learned_numbers")

# %%
# hint("learned_numbers")  # without the first '#': a question; run again for the next one
# solution("learned_numbers")

# %% [markdown]
# ## 2 · Three loops, two products
#
# `★★ · 8 min · the same arithmetic, without Python in between: all tokens are computed in parallel`
#
# Here is attention, number by number:


# %%
def with_loops(query, key, value):
    outputs = torch.zeros(len(query), value.shape[1])
    for i in range(len(query)):
        exps = []
        for j in range(len(key)):
            score = sum(query[i, c] * key[j, c] for c in range(query.shape[1]))
            exps.append(math.exp(score))
        for j in range(len(key)):
            outputs[i] += exps[j] / sum(exps) * value[j]
    return outputs


show(
    with_loops(torch.tensor([[1.0, 0.0]]), torch.eye(2), torch.tensor([[10.0], [20.0]]))
)

# %% [markdown]
# One query, two keys. The scores are 1 and 0, so the first value has the larger weight, and the output lies nearer to 10 than to 20.
#
# **Write it without a loop**: two matrix products with a softmax in between. The check counts torch's operations: they must not become
# more when there are more tokens.


# %%
def without_loops(
    query: Float[Tensor, "n d_k"],
    key: Float[Tensor, "m d_k"],
    value: Float[Tensor, "m d_v"],
) -> Float[Tensor, "n d_v"]:
    ### BEGIN SOLUTION
    scores = query @ key.mT  # all n * m dot products at once
    return torch.softmax(scores, dim=-1) @ value
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:without_loops", "points:4"]
check(without_loops)

# %%
# hint("without_loops")
# solution("without_loops")

# %% [markdown]
# ## 3 · The order that runs: a repair
#
# `★ · 5 min · with d_v = n the wrong order raises no error; only the numbers know`
#
# Tokens are columns now. `V` is $(d_v, n)$, and column $i$ of `A_prime` $(n, n)$ holds the weights of query $i$: its columns sum to 1.
# The function below was copied from a text that says "the output is A′ times V". With two tokens of width 2 it runs. **Repair it.**


# %%
def mix_in_columns(
    V: Float[Tensor, "d_v n"], A_prime: Float[Tensor, "n n"]
) -> Float[Tensor, "d_v n"]:
    ### BEGIN SOLUTION
    return V @ A_prime
    ### END SOLUTION
    ### STUB: return A_prime @ V


# %% tags=["exercise:mix_in_columns", "points:2"]
check(mix_in_columns)

# %%
# hint("mix_in_columns")
# solution("mix_in_columns")

# %% [markdown]
# ## 4 · The lecture's letters
#
# `★★★ · 12 min · half of what is written on attention uses columns; reading it, you translate in your head`
#
# Self-attention with the tokens as columns of $I$:
#
# $$Q = W^q I, \quad K = W^k I, \quad V = W^v I, \quad A = K^\top Q, \quad A' = \text{softmax of each column of } A, \quad O = V A'$$
#
# Write down the shape of each matrix before you type. Where is the score of key $j$ for query $i$: at $A[i, j]$ or at $A[j, i]$?


# %%
def attention_in_columns(
    I: Float[Tensor, "d_model n"],
    W_q: Float[Tensor, "d_k d_model"],
    W_k: Float[Tensor, "d_k d_model"],
    W_v: Float[Tensor, "d_v d_model"],
) -> Float[Tensor, "d_v n"]:
    ### BEGIN SOLUTION
    Q, K, V = W_q @ I, W_k @ I, W_v @ I
    A = K.mT @ Q  # A[j, i]: key j for query i
    return V @ torch.softmax(A, dim=-2)
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:attention_in_columns", "points:6"]
check(attention_in_columns)

# %%
# hint("attention_in_columns")
# solution("attention_in_columns")

# %% [markdown]
# ## 5 · Which way is bright? Predict the picture
#
# `★ · 4 min · before you read an attention map, you must know which axis is the query`
#
# Five tokens as columns. Key 3 is much longer than the others, and every query points its way. You draw the weights
# $A' = \text{softmax}(K^\top Q)$ as a heat map, first row on top; bright is large. **What do you see?**
#
# - a) row 3 is bright
# - b) column 3 is bright
# - c) the diagonal is bright
# - d) only the cell (3, 3) is bright
# - e) all cells are equal
# - f) row 3 and column 3 are bright

# %%
### BEGIN SOLUTION
bright_picture = "a"
### END SOLUTION
### STUB: bright_picture = ...  # one letter, in quotes

# %% tags=["exercise:bright_picture", "points:2"]
check(bright_picture, "bright_picture")

# %%
picture("bright_picture")

# %%
# hint("bright_picture")
# solution("bright_picture")

# %% [markdown]
# ## 6 · The same product, cheaper
#
# `★★ · 6 min · the whole family of linear attention lives on this one pair of brackets`
#
# Leave the softmax out, and attention is a product of three matrices. Then the brackets may be moved:
#
# $$(Q K^\top)\, V = Q\, (K^\top V)$$
#
# With $n = 4096$ tokens and $d_k = d_v = 64$: **how many times more multiplications does the left side take than the right?** A product
# of an $(a, b)$ and a $(b, c)$ matrix takes $a \cdot b \cdot c$ of them.

# %%
### BEGIN SOLUTION
regrouped_cost = "(2 * 4096**2 * 64) / (2 * 4096 * 64**2)"
### END SOLUTION
### STUB: regrouped_cost = ...

# %% tags=["exercise:regrouped_cost", "points:4"]
check(regrouped_cost, "regrouped_cost")

# %%
# hint("regrouped_cost")
# solution("regrouped_cost")

# %% [markdown]
# ## 7 · What the softmax forbids, in your own words
#
# `★★ · 6 min · it explains in one move why attention is quadratic, and what linear attention gives up`
#
# In two or three sentences: **why can softmax$(Q K^\top)\,V$ not be regrouped in this way, and what would allow it?** The check looks for the
# ideas that an answer cannot avoid, then shows a model answer. It reads words, not meaning: compare the two yourself.

# %%
### BEGIN SOLUTION
why_not_regroup = """Softmax is not linear: a weight depends on the whole row of scores, so the scores must be there first.
If exp(q . k) were a product of features, phi(q) . phi(k), the brackets could be moved, as in linear attention."""
### END SOLUTION
### STUB: why_not_regroup = """ """

# %% tags=["exercise:why_not_regroup", "points:4"]
check(why_not_regroup, "why_not_regroup")

# %%
# hint("why_not_regroup")
# solution("why_not_regroup")

# %% [markdown]
# ## What you should remember
#
# <details><summary>Open it when you are done</summary>
#
# 1. Only $W_q$, $W_k$, $W_v$ are learned. Q, K, V and the weights are computed anew for every input; n occurs in no parameter.
# 2. n · m dot products are one product, `query @ key.mT`; n weighted sums are another, `weights @ value`.
# 3. A product on the right mixes columns, on the left it mixes rows. So O = V A′ in columns, A′ V in rows.
# 4. Columns are rows transposed: A = KᵀQ, softmax runs down each column.
# 5. A popular key is a bright column where rows are queries, and a bright row where columns are.
# 6. (Q Kᵀ) V costs 2 n² d, Q (Kᵀ V) costs 2 n d².
# 7. Softmax stands between the two products. It makes attention quadratic, and more than a chain of products.
#
# </details>
