# %% [markdown]
# # 04 · Multi-head attention: exercises
#
# Seven exercises, about 45 minutes. They follow the lesson `04_multi_head`; best in this order.
#
# **How it works.** Replace the `...` (or repair the function) in a cell, run it, then run the cell with `check`. `hint("name")` asks a question that helps, three in
# all; `solution("name")` shows a right answer. `progress()` lists what you have done.
# The stars: ★ short, ★★ some lines, ★★★ pencil and paper.
#
# Axes: $b$ sequences, $h$ heads, $n$ query tokens, $m$ key tokens, $d$ columns of one head. Tokens are rows, matrices stand on the right: `x @ w`.
# A shape such as $(\ldots, n, d)$ may have any axes in front, or none.

# %%
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.checks import check, hint, picture, progress, solution

# %% [markdown]
# ## 1 · Eight heads, how many numbers?
#
# `★ · 4 min · eight heads do not cost eight times as much; they cost what one of full width costs`
#
# A self-attention layer with $d_\text{model} = 512$ and 8 heads. Each head projects the tokens to queries, keys and values of width
# $d_k = d_v = 64$. The heads' outputs stand side by side, and $W^o$ brings them back to width 512. There are no biases, and the sentence has
# $n = 100$ tokens. **How many numbers are learned?** An expression in quotes will do.

# %%
### BEGIN SOLUTION
eight_heads = "8 * 3 * 512 * 64 + 512 * 512"
### END SOLUTION
### STUB: eight_heads = ...

# %% tags=["exercise:eight_heads", "points:2"]
check(eight_heads, "eight_heads")

# %%
# hint("eight_heads")  # without the first '#': a question; run again for the next one
# solution("eight_heads")

# %% [markdown]
# ## 2 · One width, many heads
#
# `★★ · 8 min · one reshape too few, and heads see strange tokens: it runs, it even trains, and it is wrong`
#
# All heads are projected by one product, so each token is a row of $h \cdot d$ numbers: head 1's columns first, then head 2's. With two heads of
# width 3, one token's row is
#
# `[ a1 a2 a3 | b1 b2 b3 ]`
#
# **Give each head a table of its own**: from $(\ldots, n, h d)$ to $(\ldots, h, n, d)$. Write down the shape after each step before you type.


# %%
def heads_apart(
    x: Float[Tensor, "*b n width"], n_heads: int
) -> Float[Tensor, "*b h n d"]:
    ### BEGIN SOLUTION
    *batch, n, width = x.shape
    blocks = x.reshape(*batch, n, n_heads, width // n_heads)
    return blocks.transpose(-2, -3)  # heads before tokens
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:heads_apart", "points:4"]
check(heads_apart)

# %%
# hint("heads_apart")
# solution("heads_apart")

# %% [markdown]
# ## 3 · The way back: a repair
#
# `★ · 5 min · shapes are right, numbers are not: no error message will ever tell you`
#
# After the attention, the heads stand side by side again: from $(\ldots, h, n, d)$ to $(\ldots, n, h d)$, each token's part from head 1 first.
# The function below gives the right shape, and with one head or with one token it gives the right numbers. **Repair it.**


# %%
def heads_together(heads: Float[Tensor, "*b h n d"]) -> Float[Tensor, "*b n width"]:
    *batch, h, n, d = heads.shape
    ### BEGIN SOLUTION
    return heads.transpose(-2, -3).reshape(*batch, n, h * d)
    ### END SOLUTION
    ### STUB: return heads.reshape(*batch, n, h * d)


# %% tags=["exercise:heads_together", "points:2"]
check(heads_together)

# %%
# hint("heads_together")
# solution("heads_together")

# %% [markdown]
# ## 4 · The whole layer
#
# `★★★ · 12 min · the layer as it stands in every library: whoever has written each step finds the one that is wrong`
#
# Self-attention with several heads, from the tokens to the output:
#
# 1. queries, keys and values of all heads: `x @ w_query`, `x @ w_key`, `x @ w_value`;
# 2. split each into heads;
# 3. in every head, mix the values with $\text{softmax}(Q K^\top / \sqrt{d_k})$, where $d_k$ is the width of ONE head's queries;
# 4. the heads side by side, times $W^o$, which is `w_output`.
#
# You may call your functions of exercises 2 and 3. The widths $d_k$ and $d_v$ need not agree, nor need $h \cdot d_k$ be $d_\text{model}$.


# %%
def many_heads(
    x: Float[Tensor, "*b n d_model"],
    w_query: Float[Tensor, "d_model h_d_k"],
    w_key: Float[Tensor, "d_model h_d_k"],
    w_value: Float[Tensor, "d_model h_d_v"],
    w_output: Float[Tensor, "h_d_v d_model"],
    n_heads: int,
) -> Float[Tensor, "*b n d_model"]:
    ### BEGIN SOLUTION
    def split(y):  # (..., n, h*d) to (..., h, n, d)
        return y.unflatten(-1, (n_heads, -1)).transpose(-2, -3)

    query, key, value = split(x @ w_query), split(x @ w_key), split(x @ w_value)
    scores = query @ key.mT / query.shape[-1] ** 0.5  # d_k, the width of one head
    mixed = torch.softmax(scores, dim=-1) @ value
    return mixed.transpose(-2, -3).flatten(-2) @ w_output
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:many_heads", "points:6"]
check(many_heads)

# %%
# hint("many_heads")
# solution("many_heads")

# %% [markdown]
# ## 5 · True means the opposite
#
# `★★ · 6 min · two meanings of True; taken for each other, a model looks at its padding and at nothing else`
#
# `torch.nn.MultiheadAttention` takes two boolean masks: `attn_mask` $(n, m)$, the same for all sequences, and `key_padding_mask` $(b, m)$, which marks the
# fillers at the end of each sequence. In both, **True hides**. In `attend`, and in torch's own `scaled_dot_product_attention`, True means "may look".
#
# The scores of several heads are $(b, h, n, m)$. **Make one mask $(b, 1, n, m)$ of the two, in which True = may look**; the axis of length 1 is shared by all heads.


# %%
def may_look(
    attn_mask: Bool[Tensor, "n m"], key_padding_mask: Bool[Tensor, "b m"]
) -> Bool[Tensor, "b 1 n m"]:
    ### BEGIN SOLUTION
    hidden = attn_mask | key_padding_mask[:, None, None, :]
    return ~hidden
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:may_look", "points:4"]
check(may_look)

# %%
# hint("may_look")
# solution("may_look")

# %% [markdown]
# ## 6 · What does this head look like? Predict the picture
#
# `★ · 4 min · you will read many maps of heads; which side of the diagonal is the past?`
#
# Ten tokens. One head has learned to look three tokens back: the query of token $i$ puts its weight on the key of token $i - 3$. You draw the
# weights as a heat map: rows are queries, columns are keys, token 1 is on top and on the left; bright is large. **What is bright?**
#
# - a) a line parallel to the diagonal, below it: row i is bright in column i - 3
# - b) a line parallel to the diagonal, above it: row i is bright in column i + 3
# - c) column 3
# - d) row 3
# - e) the diagonal, three times as bright
# - f) everything below the diagonal
#
# And what do you expect in the first three rows?

# %%
### BEGIN SOLUTION
three_back = "a"
### END SOLUTION
### STUB: three_back = ...  # one letter, in quotes

# %% tags=["exercise:three_back", "points:2"]
check(three_back, "three_back")

# %%
picture("three_back")

# %%
# hint("three_back")
# solution("three_back")

# %% [markdown]
# ## 7 · One number, two questions, in your own words
#
# `★★★ · 8 min · a short proof, and a good reason for a second head`
#
# A text is written in two symbols only, $x$ and $y$. At every position $i$ a layer is to name two symbols: the one at $i-1$ and the one at $i-3$. It has ONE head,
# whose weights may be whatever you like at each distance, and two linear read-outs on the head's output. **Why is it impossible?**
#
# Two or three sentences. The check looks for the ideas that an answer cannot avoid, then shows a model answer. It reads words, not meaning:
# compare the two yourself.

# %%
### BEGIN SOLUTION
why_two_heads = """The values are v_x or v_y, so the output is p v_x + (1 - p) v_y: one number p, the total weight on x.
Each linear read-out is a threshold on p. Two thresholds make three pieces, and there are four answers: xx, xy, yx, yy."""
### END SOLUTION
### STUB: why_two_heads = """ """

# %% tags=["exercise:why_two_heads", "points:6"]
check(why_two_heads, "why_two_heads")

# %%
# hint("why_two_heads")
# solution("why_two_heads")

# %% [markdown]
# ## What you should remember
#
# <details><summary>Open it when you are done</summary>
#
# 1. h heads of width d_model / h have the parameters of one head of full width: 4 d_model² with W^o.
# 2. Cut the width where it is (reshape), then move the axis (transpose). One reshape alone mixes heads with tokens.
# 3. On the way back the axis moves first; only neighbouring axes can become one.
# 4. Project, split, attend in every head at once, join, W^o. Under the root stands one head's width d_k.
# 5. torch's layer: True hides. Here: True may look. Hidden is one or the other; may look is neither.
# 6. With queries as rows, what is below the diagonal is the past.
# 7. One head hands on one weighted mean. Two questions at once need two means, or something behind it that is not linear.
#
# </details>
