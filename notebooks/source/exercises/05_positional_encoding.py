# %% [markdown]
# # 05 · Positional encoding: exercises
#
# Eight exercises, about 55 minutes. They follow the lesson `05_positional_encoding`; best in this order.
#
# **How it works.** Replace the `...` (or repair the function) in a cell, run it, then run the cell with `check`. `hint("name")` asks a question that helps, three in
# all; `solution("name")` shows a right answer. `progress()` lists what you have done.
# The stars: ★ short, ★★ some lines, ★★★ pencil and paper.
#
# Throughout, the sinusoidal code of position $i$ is the row
#
# $$p_{i, 2j} = \sin(i\, w_j), \qquad p_{i, 2j+1} = \cos(i\, w_j), \qquad w_j = 10000^{-2j/d}, \qquad j = 0, \ldots, d/2 - 1$$
#
# Columns, positions and $j$ are counted from 0.

# %%
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.checks import check, hint, picture, progress, solution

# %% [markdown]
# ## 1 · How long is a wave?
#
# `★ · 5 min · the wavelengths say which distances a column can tell apart`
#
# The codes are $d = 16$ wide. Column 0 goes through $\sin(0), \sin(1), \sin(2), \ldots$ and repeats after $2\pi$ tokens. **After how many tokens does column 8
# repeat?** It comes out without a computer. Type a number or an expression in quotes; `pi` is known.

# %%
### BEGIN SOLUTION
wavelength = "2 * pi * 10000**(8 / 16)"
### END SOLUTION
### STUB: wavelength = ...

# %% tags=["exercise:wavelength", "points:2"]
check(wavelength, "wavelength")

# %%
# hint("wavelength")  # without the first '#': a question; run again for the next one
# solution("wavelength")

# %% [markdown]
# ## 2 · The table of waves
#
# `★★ · 8 min · with a wrong exponent the table still makes a handsome picture, and nothing complains`
#
# **Write the formula above.** You are given the positions, a row of $n$ numbers, and the even width $d$; the result is $(n, d)$. The positions need not be
# 0, 1, 2: a rule, unlike a table, has a code for position 2.5 as well.


# %%
def waves(positions: Float[Tensor, " n"], d: int) -> Float[Tensor, "n d"]:
    ### BEGIN SOLUTION
    two_j = torch.arange(0, d, 2, dtype=positions.dtype, device=positions.device)
    frequencies = 10000.0 ** (-two_j / d)
    angles = positions[:, None] * frequencies  # (n, d/2), one column per frequency
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:waves", "points:4"]
check(waves)

# %%
# hint("waves")
# solution("waves")

# %% [markdown]
# ## 3 · A shift is a rotation
#
# `★★★ · 10 min · this matrix is why sinusoids can encode distance, and it is all that rotary attention does`
#
# Take a pencil. For one frequency $w$, the code of position $i$ is the pair $(\sin iw, \cos iw)$. Find the 2 × 2 matrix that turns it, **whatever $i$ is**, into the
# pair of position $i + \delta$:
#
# $$\begin{pmatrix} \sin((i+\delta) w) \\ \cos((i+\delta) w) \end{pmatrix} = \begin{pmatrix} ? & ? \\ ? & ? \end{pmatrix} \begin{pmatrix} \sin(iw) \\ \cos(iw) \end{pmatrix}$$
#
# Then **write the whole matrix** $R(\delta)$, $(d, d)$, for $d/2$ given frequencies. The code is a column here: $p_{i+\delta} = R(\delta)\, p_i$.


# %%
def shift_matrix(
    delta: float, frequencies: Float[Tensor, " half_d"]
) -> Float[Tensor, "d d"]:
    ### BEGIN SOLUTION
    cos, sin = torch.cos(delta * frequencies), torch.sin(delta * frequencies)
    rows = torch.stack([cos, sin], dim=-1), torch.stack([-sin, cos], dim=-1)
    return torch.block_diag(*torch.stack(rows, dim=-2))
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:shift_matrix", "points:6"]
check(shift_matrix)

# %%
# hint("shift_matrix")
# solution("shift_matrix")

# %% [markdown]
# ## 4 · Codes against codes: predict the picture
#
# `★★ · 5 min · one picture shows what sinusoids know about distance, and what they do not know about direction`
#
# `P` holds the codes of positions 0 to 31, one row each, with $d = 16$. You draw $P P^\top$ as a heat map: the dot product of every code with every other; bright
# is large. **What do you see?**
#
# - a) stripes along the diagonals: each diagonal has one value, the main one is brightest, both sides are alike
# - b) stripes along the diagonals: what is below the main one is bright, what is above is dark
# - c) brighter and brighter towards the lower right: late positions have large codes
# - d) a bright main diagonal; everything else is exactly 0
# - e) vertical stripes: each column has one value
# - f) horizontal stripes: each row has one value

# %%
### BEGIN SOLUTION
code_products = "a"
### END SOLUTION
### STUB: code_products = ...  # one letter, in quotes

# %% tags=["exercise:code_products", "points:4"]
check(code_products, "code_products")

# %%
picture("code_products")

# %%
# hint("code_products")
# solution("code_products")

# %% [markdown]
# ## 5 · What do distances cost?
#
# `★★ · 5 min · a table of distances does not grow with the text; a table of positions does`
#
# Shaw's relative positions: a table with one learned row for each offset $j - i$ from $-8$ to $8$, added to the keys, and a second one, added to the values. Offsets beyond 8 share
# the outermost row of their side. There is one head with $d_k = d_v = 16$, and texts have 128 tokens. **How many learned numbers are in the two tables?**

# %%
### BEGIN SOLUTION
shaw_numbers = "2 * (2 * 8 + 1) * 16"
### END SOLUTION
### STUB: shaw_numbers = ...

# %% tags=["exercise:shaw_numbers", "points:4"]
check(shaw_numbers, "shaw_numbers")

# %%
# hint("shaw_numbers")
# solution("shaw_numbers")

# %% [markdown]
# ## 6 · Which row of the table?
#
# `★★ · 6 min · a negative index takes a row from the end of a table, without an error`
#
# The rows of Shaw's table are numbered from 0: offset $-\text{radius}$ takes row 0, offset 0 takes row $\text{radius}$, and offset $+\text{radius}$ takes the last. Farther keys take
# the first or the last row. **Which row does each pair take?** You are given the positions of the queries and of the keys, and they need not be 0, 1, 2: with a cache, the only
# query is the newest token.


# %%
def offset_rows(
    query_positions: Int[Tensor, " n"],
    key_positions: Int[Tensor, " m"],
    radius: int,
) -> Int[Tensor, "n m"]:
    ### BEGIN SOLUTION
    offsets = key_positions[None, :] - query_positions[:, None]  # j - i
    return offsets.clamp(-radius, radius) + radius
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:offset_rows", "points:4"]
check(offset_rows)

# %%
# hint("offset_rows")
# solution("offset_rows")

# %% [markdown]
# ## 7 · Two clocks in one function: a repair
#
# `★★ · 8 min · two pairings are in use; mixed up, nothing crashes, and a published model writes nonsense`
#
# Rotary attention turns queries and keys by their positions. Here **neighbouring** columns are a pair: in token $i$, the numbers $(a, b)$ in columns $2j$ and $2j + 1$ become
#
# $$(a \cos t - b \sin t, \;\; a \sin t + b \cos t), \qquad t = \text{positions}[i] \cdot w_j$$
#
# The function below was put together from two sources. With one pair ($d = 2$) it is right. **Repair it.**


# %%
def turned(
    x: Float[Tensor, "*b n d"],
    positions: Float[Tensor, " n"],
    frequencies: Float[Tensor, " half_d"],
) -> Float[Tensor, "*b n d"]:
    angles = positions[:, None] * frequencies  # (n, d/2)
    partner = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)
    ### BEGIN SOLUTION
    angles = angles.repeat_interleave(2, dim=-1)  # both columns of a pair
    ### END SOLUTION
    ### STUB: angles = torch.cat([angles, angles], dim=-1)
    return x * angles.cos() + partner * angles.sin()


# %% tags=["exercise:turned", "points:4"]
check(turned)

# %%
# hint("turned")
# solution("turned")

# %% [markdown]
# ## 8 · Why does it not know order? In your own words
#
# `★★ · 6 min · it is the reason for this whole lesson: nothing in attention knows where a token stands`
#
# Self-attention without positions and without a mask. You shuffle the tokens of a sentence, and the outputs come out shuffled in the same way, with the same numbers.
# **Why? And what must be added for that to change?** Two or three sentences. The check looks for the ideas that an answer cannot avoid, then shows a model answer. It reads
# words, not meaning: compare the two yourself.

# %%
### BEGIN SOLUTION
why_no_order = """Each query, key and value is made of its own token alone, with the same matrices everywhere. The softmax and the
mean are sums over the keys, and a sum has no order. Positions must come in: codes, a turn, a score term, a causal mask."""
### END SOLUTION
### STUB: why_no_order = """ """

# %% tags=["exercise:why_no_order", "points:4"]
check(why_no_order, "why_no_order")

# %%
# hint("why_no_order")
# solution("why_no_order")

# %% [markdown]
# ## What you should remember
#
# <details><summary>Open it when you are done</summary>
#
# 1. Wavelengths grow from 2π to nearly 10000 · 2π, by the same factor from pair to pair.
# 2. d/2 frequencies, two columns each: columns 2j and 2j + 1 are one clock.
# 3. Block j of the shift is [[cos, sin], [−sin, cos]] of δ · w_j. It knows δ and not i.
# 4. p_i · p_j depends on i − j alone, and not on its sign: how far, not which way.
# 5. Radius r makes 2r + 1 rows: r before, r after, and 0.
# 6. Clip j − i to [−radius, radius], then add radius.
# 7. A pairing decides two things, the partner and the angle. Both must agree.
# 8. Without positions self-attention is equivariant: shuffle the input, and the output is shuffled likewise, nothing else.
#
# </details>
