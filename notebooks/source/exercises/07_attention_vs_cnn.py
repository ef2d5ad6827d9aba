# %% [markdown]
# # 07 · Attention against convolution: exercises
#
# Seven exercises, about 60 minutes. They follow the parts [07a · convolution](../07a_convolution.ipynb), [07b · data or prior](../07b_data_or_prior.ipynb) and [07c · reach](../07c_reach.ipynb); best in this order, and the second may wait.
#
# **How it works.** Replace the `...` (or repair the function) in a cell, run it, then run the cell with `check`. `hint("name")` asks a question that helps, three in
# all; `solution("name")` shows a right answer. `progress()` lists what you have done.
# The stars: ★ short, ★★ some lines or some thinking, ★★★ a proof in code.
#
# Throughout, a picture is (c, h, w): c channels, h pixels down, w pixels right. A batch of pictures is (b, c, h, w). Places are written (down, right). A convolution here is
# torch's: it puts the kernel on the picture as it is, and turns nothing round.

# %%
from itertools import permutations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.checks import check, hint, picture, progress, solution

# %% [markdown] tags=["exercise:pixels_seen"]
# Take a pencil. Three convolutions stand one behind the other, each with a kernel of 3 × 3. The first and the third have stride 1, **the second has stride 2**: it computes every second
# pixel only. Take one pixel of the last output, far from any edge. **How many pixels of the input can change it?** Type a number or an expression in quotes.

# %% [markdown] tags=["exercise:nine_heads"]
# **Write the layer.** `d[i, j]` says how far, down and right, pixel $j$ lies from pixel $i$, which asks. There are nine heads, one for each tap of the kernel. The head of the tap in row $y$ and
# column $x$ of the kernel (counted from 0) looks around the centre $(y - 1, x - 1)$, and its value matrix is that tap:
#
# $$\text{weights}_{i} = \text{softmax}_j \left( -\,\text{sharpness} \cdot \lVert d_{ij} - \text{centre} \rVert^2 \right), \qquad \text{head}_i = \sum_j \text{weights}_{ij} \; W\, \text{pixel}_j, \qquad W = \text{kernel}[:, :, y, x]$$
#
# The output is the sum of the heads. The pixels that are looked at lie on a canvas, the picture with a border of zeros or other numbers, one pixel wide; each of them is a row of `pixels`. If the heads are
# sharp, your layer is the convolution.


# %% [markdown] tags=["exercise:patch_rows"]
# A Vision Transformer cuts a picture into square patches, and a patch is a token. **Write the cutting:** one row for each patch, $n = \frac{h}{\text{patch}} \cdot \frac{w}{\text{patch}}$ rows
# of $c \cdot \text{patch}^2$ numbers. Patches go row by row, like reading. Inside a patch, the first channel comes first, row by row, then the next channel. The sides h and w are multiples of `patch`.


# %% [markdown] tags=["exercise:token_view"]
# A picture of 20 × 20 pixels. Three things are computed of it, all in its middle: a pixel behind two convolutions of 3 × 3 (stride 1); the token of a patch of 4 × 4, a matrix times the patch; and the same
# token after ONE layer of self-attention over all 25 tokens, with softmax and without a mask. For each of them you mark the pixels of the input that can change it. **What do the three maps look like?**

# %% [markdown] tags=["exercise:sagan_block"]
# The attention block of SAGAN stands between two convolutions. Its queries, keys and values come from 1 × 1 convolutions, which are nothing but matrices times each pixel. What attention brings is
# scaled by $\gamma$, a learned number that starts at 0, and added to $x$. Scores are plain dot products here. In the function below **one thing is wrong. Repair it:** each pixel's query must ask
# all keys, and the weights of the pixel that asks must sum to 1.


# %% [markdown] tags=["exercise:cheapest_match"]
# DETR looks at a picture with a fixed number of queries, each of which may answer with one object. The answers come in no order. `cost[i, j]` says how badly the answer of query $j$ fits object $i$.
# **Give each object a query of its own, so that the sum of all costs is the smallest.** The result names the query of each object. There are at least as many queries as objects, and few of both:
# you may try all ways. `permutations(range(3), 2)` yields every way to take two different numbers out of 0, 1, 2, in every order. (If you
# would rather take scipy's `linear_sum_assignment`, make a tensor of its second result.)


# %% [markdown] tags=["exercise:why_no_convolution"]
# A row of three pixels, $1\;0\;0$. A convolution with the kernel $(1, 0, 0)$ brings each pixel's left neighbour and makes $0\;1\;0$ of it. **Why can no self-attention without positions do that, whatever its weights
# are, and however many heads it has?** Two or three sentences. The check shows a model answer and a few points: you judge your own, point by point.

# %% [markdown]
# ## What you should remember
#
# <details><summary>Open it when you are done</summary>
#
# 1. Each 3 × 3 convolution adds 2 to the side of the field; behind a stride of 2, the layers that follow add 4.
# 2. One head per tap: its position scores say where to look, its value matrix is the tap, and the heads are added up.
# 3. Split each side into (patches, pixels), bring the two patch counts to the front, then flatten. A reshape never moves a number.
# 4. A convolution's field grows layer by layer. Attention's is the whole picture after one layer, and its weights say where it really looks.
# 5. The softmax runs over the pixels that are looked at. A square table hides the mistake, its sums show it.
# 6. A set is matched for all objects at once, by the smallest sum; greed can end with a larger one.
# 7. Without positions equal pixels get equal outputs, in every head. A convolution tells them apart by their neighbours.
#
# </details>
