# %% [markdown]
# # 04 · Multi-head attention: exercises
#
# Nine exercises, about 55 minutes. They follow part [04 · multi head](../04_multi_head.ipynb), in which you cut the heads apart; best in this order.
#
# **How it works.** Replace the `...` (or repair the function) in a cell, run it, then run the cell with `check`. `hint("name")` asks a question that helps, three in
# all; `solution("name")` shows a right answer. `progress()` lists what you have done.
# The stars: ★ short, ★★ some lines, ★★★ an idea that has to be found.
#
# Axes: $b$ sequences, $h$ heads, $n$ query tokens, $m$ key tokens, $d$ columns of one head. Tokens are rows, matrices stand on the right: `x @ w`.
# A shape such as $(\ldots, n, d)$ may have any axes in front, or none.

# %%
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks import check, hint, picture, progress, solution

# %% [markdown] tags=["exercise:eight_heads"]
# A self-attention layer with $d_\text{model} = 512$ and 8 heads. Each head projects the tokens to queries, keys and values of width
# $d_k = d_v = 64$. The heads' outputs stand side by side, and $W_o$ brings them back to width 512. There are no biases, and the sentence has
# $n = 100$ tokens. **How many numbers are learned?** An expression in quotes will do.

# %% [markdown] tags=["exercise:heads_together"]
# After the attention, the heads stand side by side again: from $(\ldots, h, n, d)$ to $(\ldots, n, h d)$, each token's part from the first head first.
# The function below gives the right shape, and with one head or with one token it gives the right numbers. **Repair it.**


# %% [markdown] tags=["exercise:several_heads"]
# The middle of the layer. The queries $(b, n, h d)$, the keys $(b, m, h d)$ and the values $(b, m, h d_v)$ of all heads have been projected already, and the heads stand side by side in
# their columns. Split them, attend in every head, put the heads' outputs side by side again, and multiply by $W_o$, which is `w_output`.
#
# You may use `attend(query, key, value)`: it takes all axes but the last two as a batch. Its output is `.output`.


# %% [markdown] tags=["exercise:many_heads"]
# Self-attention with several heads, from the tokens to the output:
#
# 1. queries, keys and values of all heads: `x @ w_query`, `x @ w_key`, `x @ w_value`;
# 2. split each into heads;
# 3. in every head, mix the values with $\text{softmax}(Q K^\top / \sqrt{d_k})$, where $d_k$ is the width of ONE head's queries;
# 4. the heads side by side, times $W_o$, which is `w_output`.
#
# You may call `heads_together` of exercise 2, and write `heads_apart` of the part once more. The widths $d_k$ and $d_v$ need not agree, nor need $h \cdot d_k$ be $d_\text{model}$.


# %% [markdown] tags=["exercise:silent_head"]
# The output of several heads is $[\text{head}_0, \text{head}_1, \ldots]\; W_o$. To find out whether a trained layer needs a head, silence it: change $W_o$ so that this head, counted from 0, adds
# nothing to the output. Its queries, keys and weights stay as they are. **Give back such a $W_o$**, and leave the one that you were given as it is.


# %% [markdown] tags=["exercise:may_look"]
# `torch.nn.MultiheadAttention` takes two boolean masks: `attn_mask` $(n, m)$, the same for all sequences, and `key_padding_mask` $(b, m)$, which marks the
# fillers at the end of each sequence. In both, **True hides**. In `attend`, and in torch's own `scaled_dot_product_attention`, True means "may look".
#
# The scores of several heads are $(b, h, n, m)$. **Make one mask $(b, 1, n, m)$ of the two, in which True = may look**; the axis of length 1 is shared by all heads.


# %% [markdown] tags=["exercise:three_back"]
# Ten tokens. One head has learned to look three tokens back: the query of token $i$ puts its weight on the key of token $i - 3$. You draw the
# weights as a heat map: rows are queries, columns are keys, token 1 is on top and on the left; bright is large. **What is bright?**
#
#
# And what do you expect in the first three rows?

# %% [markdown] tags=["exercise:who_asks"]
# In the part, the last word asks. But it is the word *it* for which a noun is looked for. So let *it* ask, in one layer: its query is made from its own row, and the nouns are
# the keys, as in the part. Compare *the animal did not cross the street because it was too tired* with the sentence that ends in *wide*. **How do the
# weights of *it* on *animal* and on *street* change?**

# %% [markdown] tags=["exercise:why_two_heads"]
# A text is written in two symbols only, $x$ and $y$. At every position $i$ a layer is to name two symbols: the one at $i-1$ and the one at $i-3$. It has ONE head,
# whose weights may be whatever you like, values that tell the symbol and not its place, and two linear read-outs that see the head's output only. **Why is it impossible?**
#
# Two or three sentences. The check shows a model answer and a few points: you judge your own, point by point.

# %% [markdown]
# ## What you should remember
#
# <details><summary>Open it when you are done</summary>
#
# 1. h heads of width d_model / h have the parameters of one head of full width: 4 d_model² with W_o.
# 2. On the way back the axis moves first; only neighbouring axes can become one.
# 3. Project, split, attend in every head at once, join, W_o. Under the root stands one head's width d_k.
# 4. A head's voice is its block of rows of W_o.
# 5. torch's layer: True hides. Here: True may look. Hidden is one or the other; may look is neither.
# 6. With queries as rows, what is below the diagonal is the past.
# 7. In one layer, a query knows its own token only.
# 8. One head hands on one weighted mean. Two questions at once need two means, or something behind it that is not linear.
#
# </details>
