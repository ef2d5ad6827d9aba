# %% [markdown]
# # 05 · Positional encoding: exercises
#
# Eight exercises, about 55 minutes. They follow the parts [05a · order](../05a_order.ipynb), [05b · rotation](../05b_rotation.ipynb) and [05c · beyond training](../05c_beyond_training.ipynb); best in this order.
#
# **How it works.** Replace the `...` (or repair the function) in a cell, run it, then run the cell with `check`. `hint("name")` asks a question that helps, three in
# all; `solution("name")` shows a right answer. `progress()` lists what you have done.
# The stars: ★ short, ★★ some lines, ★★★ an idea that has to be found.
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

# %% [markdown] tags=["exercise:wavelength"]
# The codes are $d = 16$ wide. Column 0 goes through $\sin(0), \sin(1), \sin(2), \ldots$ and repeats after $2\pi$ tokens. **After how many tokens does column 8
# repeat?** It comes out without a computer. Type a number or an expression in quotes; `pi` is known.

# %% [markdown] tags=["exercise:waves"]
# **Write the formula above.** You are given the positions, a row of $n$ numbers, and the even width $d$; the result is $(n, d)$. The positions need not be
# 0, 1, 2: a rule, unlike a table, has a code for position 2.5 as well.


# %% [markdown] tags=["exercise:shift_matrix"]
# Take a pencil. For one frequency $w$, the code of position $i$ is the pair $(\sin iw, \cos iw)$. Find the 2 × 2 matrix that turns it, **whatever $i$ is**, into the
# pair of position $i + \delta$:
#
# $$\begin{pmatrix} \sin((i+\delta) w) \\ \cos((i+\delta) w) \end{pmatrix} = \begin{pmatrix} ? & ? \\ ? & ? \end{pmatrix} \begin{pmatrix} \sin(iw) \\ \cos(iw) \end{pmatrix}$$
#
# Then **write the whole matrix** $R(\delta)$, $(d, d)$, for $d/2$ given frequencies. The code is a column here: $p_{i+\delta} = R(\delta)\, p_i$.


# %% [markdown] tags=["exercise:code_products"]
# `P` holds the codes of positions 0 to 31, one row each, with $d = 16$. You draw $P P^\top$ as a heat map: the dot product of every code with every other; bright
# is large. **What do you see?**

# %% [markdown] tags=["exercise:shaw_numbers"]
# Shaw's relative positions: a table with one learned row for each offset $j - i$ from $-8$ to $8$, added to the keys, and a second one, added to the values. Offsets beyond 8 share
# the outermost row of their side. There is one head with $d_k = d_v = 16$, and texts have 128 tokens. **How many learned numbers are in the two tables?**

# %% [markdown] tags=["exercise:offset_rows"]
# The rows of Shaw's table are numbered from 0: offset $-\text{radius}$ takes row 0, offset 0 takes row $\text{radius}$, and offset $+\text{radius}$ takes the last. Farther keys take
# the first or the last row. **Which row does each pair take?** You are given the positions of the queries and of the keys, and they need not be 0, 1, 2: with a cache, the only
# query is the newest token.


# %% [markdown] tags=["exercise:turned"]
# Rotary attention turns queries and keys by their positions. Here **neighbouring** columns are a pair: in token $i$, the numbers $(a, b)$ in columns $2j$ and $2j + 1$ become
#
# $$(a \cos t - b \sin t, \;\; a \sin t + b \cos t), \qquad t = \text{positions}[i] \cdot w_j$$
#
# The function below was put together from two sources. With one pair ($d = 2$) it is right. **Repair it.**


# %% [markdown] tags=["exercise:why_no_order"]
# Self-attention without positions and without a mask. You shuffle the tokens of a sentence, and the outputs come out shuffled in the same way, with the same numbers.
# **Why? And what must be added for that to change?** Two or three sentences. The check shows a model answer and a few points: you judge your own, point by point.

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
