# %% [markdown]
# # 03 · Matrix form: exercises
#
# Seven exercises, about 45 minutes. They follow the part [03 · matrix form](../03_matrix_form.ipynb); best in this order.
#
# <details><summary>中文摘要 · Chinese</summary>
#
# 七道练习:数一数学到的参数、不用循环写出自注意力、按列书写同样的公式、读权重图、计算重新结合后的乘法次数,并解释 softmax 为什么不允许重新结合。
# 每题都有检查、三个提示和答案;答错时会指出错在哪里。
#
# </details>
#
# **How it works.** Replace the `...` (or repair the function) in a cell, run it, then run the cell with `check`. `hint("name")` asks a question that helps, three in
# all; `solution("name")` shows a right answer. `progress()` lists what you have done.
# The stars: ★ short, ★★ some lines, ★★★ an idea that has to be found.
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

# %% [markdown] tags=["exercise:learned_numbers"]
# A self-attention layer with the three matrices and nothing else. Inputs have width $d_\text{model} = 512$, queries and keys $d_k = 64$,
# values $d_v = 128$, and the sentence has $n = 100$ tokens. **How many numbers are learned?** Count by hand; an expression in quotes will do.

# %% [markdown] tags=["card:without_loops"]
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

# %% [markdown] tags=["exercise:without_loops"]
# One query, two keys. The scores are 1 and 0, so the first value has the larger weight, and the output lies nearer to 10 than to 20.
#
# **Write it without a loop**: two matrix products with a softmax in between. The check counts torch's operations: they must not become
# more when there are more tokens.


# %% [markdown] tags=["exercise:mix_in_columns"]
# Tokens are columns now. `V` is $(d_v, n)$, and column $i$ of `A_prime` $(n, n)$ holds the weights of query $i$: its columns sum to 1.
# The function below was copied from a text that says "the output is A′ times V". With two tokens of width 2 it runs. **Repair it.**


# %% [markdown] tags=["exercise:attention_in_columns"]
# Self-attention with the tokens as columns of $I$:
#
# $$Q = W^q I, \quad K = W^k I, \quad V = W^v I, \quad A = K^\top Q, \quad A' = \text{softmax of each column of } A, \quad O = V A'$$
#
# Write down the shape of each matrix before you type. Where is the score of key $j$ for query $i$: at $A[i, j]$ or at $A[j, i]$?


# %% [markdown] tags=["exercise:bright_picture"]
# Five tokens as columns. Key 3 is much longer than the others, and every query points its way. You draw the weights
# $A' = \text{softmax}(K^\top Q)$ as a heat map, first row on top; bright is large. **What do you see?**

# %% [markdown] tags=["exercise:regrouped_cost"]
# Leave the softmax out, and attention is a product of three matrices. Then the brackets may be moved:
#
# $$(Q K^\top)\, V = Q\, (K^\top V)$$
#
# With $n = 4096$ tokens and $d_k = d_v = 64$: **how many times more multiplications does the left side take than the right?** A product
# of an $(a, b)$ and a $(b, c)$ matrix takes $a \cdot b \cdot c$ of them.

# %% [markdown] tags=["exercise:why_not_regroup"]
# In two or three sentences: **why can softmax$(Q K^\top)\,V$ not be regrouped in this way, and what would allow it?** The check shows a model answer and a few points: you judge your own, point by point.

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
