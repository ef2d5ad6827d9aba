# %% [markdown]
# # 07 · Attention against convolution: exercises
#
# Seven exercises, about 60 minutes. They follow the lesson `07_attention_vs_cnn`; best in this order, and the second may wait.
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

# %% [markdown]
# ## 1 · What does one number see?
#
# `★ · 5 min · it is the first thing to know about a CNN: nothing outside of this square can change the number`
#
# Take a pencil. Three convolutions stand one behind the other, each with a kernel of 3 × 3. The first and the third have stride 1, **the second has stride 2**: it computes every second
# pixel only. Take one pixel of the last output, far from any edge. **How many pixels of the input can change it?** Type a number or an expression in quotes.

# %%
### BEGIN SOLUTION
pixels_seen = "(2 * (2 * 1 + 1) + 3) ** 2"
### END SOLUTION
### STUB: pixels_seen = ...

# %% tags=["exercise:pixels_seen", "points:2"]
check(pixels_seen, "pixels_seen")

# %%
# hint("pixels_seen")  # without the first '#': a question; run again for the next one
# solution("pixels_seen")

# %% [markdown]
# ## 2 · Nine heads are a convolution
#
# `★★★ · 15 min · this is the proof, in ten lines, that attention can do what a 3 x 3 convolution does`
#
# **Write the layer.** `d[i, j]` says how far, down and right, pixel $j$ lies from pixel $i$, which asks. There are nine heads, one for each tap of the kernel. The head of the tap in row $y$ and
# column $x$ of the kernel (counted from 0) looks around the centre $(y - 1, x - 1)$, and its value matrix is that tap:
#
# $$\text{weights}_{i} = \text{softmax}_j \left( -\,\text{sharpness} \cdot \lVert d_{ij} - \text{centre} \rVert^2 \right), \qquad \text{head}_i = \sum_j \text{weights}_{ij} \; W\, \text{pixel}_j, \qquad W = \text{kernel}[:, :, y, x]$$
#
# The output is the sum of the heads. The pixels that are looked at lie on a canvas, the picture with a border of zeros or other numbers, one pixel wide; each of them is a row of `pixels`. If the heads are
# sharp, your layer is the convolution.


# %%
def nine_heads(
    pixels: Float[Tensor, "m c_in"],
    d: Float[Tensor, "n m 2"],
    kernel: Float[Tensor, "c_out c_in 3 3"],
    sharpness: float,
) -> Float[Tensor, "n c_out"]:
    ### BEGIN SOLUTION
    made = 0
    for y in range(3):
        for x in range(3):
            centre = d.new_tensor([y - 1, x - 1])
            distance = (d - centre).square().sum(dim=-1)  # (n, m), squared
            weights = torch.softmax(-sharpness * distance, dim=-1)
            made = made + weights @ pixels @ kernel[:, :, y, x].T
    return made
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:nine_heads", "points:6"]
check(nine_heads)

# %%
# hint("nine_heads")
# solution("nine_heads")

# %% [markdown]
# ## 3 · A picture becomes a sequence
#
# `★★ · 10 min · a reshape alone has the right shape and gives no error, and the model reads stripes for patches`
#
# A Vision Transformer cuts a picture into square patches, and a patch is a token. **Write the cutting:** one row for each patch, $n = \frac{h}{\text{patch}} \cdot \frac{w}{\text{patch}}$ rows
# of $c \cdot \text{patch}^2$ numbers. Patches go row by row, like reading. Inside a patch, the first channel comes first, row by row, then the next channel. The sides h and w are multiples of `patch`.


# %%
def patch_rows(
    images: Float[Tensor, "b c h w"], patch: int
) -> Float[Tensor, "b n d_patch"]:
    ### BEGIN SOLUTION
    b, c, h, w = images.shape
    cut = images.reshape(b, c, h // patch, patch, w // patch, patch)
    cut = cut.permute(0, 2, 4, 1, 3, 5)  # (b, down, right, c, patch, patch)
    return cut.flatten(3).flatten(1, 2)
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:patch_rows", "points:4"]
check(patch_rows)

# %%
# hint("patch_rows")
# solution("patch_rows")

# %% [markdown]
# ## 4 · What does a patch know? Predict the picture
#
# `★ · 5 min · it is the difference between the two families in one picture: how far one layer reaches`
#
# A picture of 20 × 20 pixels. Three things are computed of it, all in its middle: a pixel behind two convolutions of 3 × 3 (stride 1); the token of a patch of 4 × 4, a matrix times the patch; and the same
# token after ONE layer of self-attention over all 25 tokens, with softmax and without a mask. For each of them you mark the pixels of the input that can change it. **What do the three maps look like?**
#
# - a) 5 × 5 pixels; its own patch, 4 × 4; all 20 × 20
# - b) 5 × 5 pixels; its own patch, 4 × 4; its own patch and the eight around it, 12 × 12
# - c) 5 × 5 pixels; all 20 × 20; all 20 × 20
# - d) 9 × 9 pixels; its own patch, 4 × 4; all 20 × 20
# - e) 5 × 5 pixels; its own patch, 4 × 4; still its own patch, 4 × 4
# - f) 5 × 5 pixels; one pixel; its own patch, 4 × 4

# %%
### BEGIN SOLUTION
token_view = "a"
### END SOLUTION
### STUB: token_view = ...  # one letter, in quotes

# %% tags=["exercise:token_view", "points:2"]
check(token_view, "token_view")

# %%
picture("token_view")

# %%
# hint("token_view")
# solution("token_view")

# %% [markdown]
# ## 5 · A square table hides it: a repair
#
# `★★ · 8 min · the table of weights is square, so the mistake passes every check of shapes, and nothing complains`
#
# The attention block of SAGAN stands between two convolutions. Its queries, keys and values come from 1 × 1 convolutions, which are nothing but matrices times each pixel. What attention brings is
# scaled by $\gamma$, a learned number that starts at 0, and added to $x$. Scores are plain dot products here. In the function below **one thing is wrong. Repair it:** each pixel's query must ask
# all keys, and the weights of the pixel that asks must sum to 1.


# %%
def sagan_block(
    x: Float[Tensor, "b c h w"],
    w_q: Float[Tensor, "d_k c"],
    w_k: Float[Tensor, "d_k c"],
    w_v: Float[Tensor, "c c"],
    gamma: float,
) -> Float[Tensor, "b c h w"]:
    pixels = x.flatten(2)  # (b, c, n): here a pixel is a column
    query, key, value = w_q @ pixels, w_k @ pixels, w_v @ pixels
    ### BEGIN SOLUTION
    weights = torch.softmax(query.mT @ key, dim=2)  # (b, n, n)
    attended = value @ weights.mT  # (b, c, n)
    return x + gamma * attended.unflatten(2, x.shape[2:])
    ### END SOLUTION
    ### STUB: weights = torch.softmax(query.mT @ key, dim=1)  # (b, n, n)
    ### STUB: attended = value @ weights.mT  # (b, c, n)
    ### STUB: return x + gamma * attended.unflatten(2, x.shape[2:])


# %% tags=["exercise:sagan_block", "points:4"]
check(sagan_block)

# %%
# hint("sagan_block")
# solution("sagan_block")

# %% [markdown]
# ## 6 · Who answers for which object?
#
# `★★ · 10 min · a detector answers with a set; before its loss can be computed, somebody must say which answer belongs to which object`
#
# DETR looks at a picture with a fixed number of queries, each of which may answer with one object. The answers come in no order. `cost[i, j]` says how badly the answer of query $j$ fits object $i$.
# **Give each object a query of its own, so that the sum of all costs is the smallest.** The result names the query of each object. There are at least as many queries as objects, and few of both:
# you may try all ways. `permutations(range(3), 2)` yields every way to take two different numbers out of 0, 1, 2, in every order. (If you
# would rather take scipy's `linear_sum_assignment`, make a tensor of its second result.)


# %%
def cheapest_match(
    cost: Float[Tensor, "objects queries"],
) -> Int[Tensor, " objects"]:
    ### BEGIN SOLUTION
    objects, queries = cost.shape
    every = list(permutations(range(queries), objects))
    ways = torch.tensor(every, device=cost.device)  # (ways, objects)
    each = torch.arange(objects, device=cost.device)
    totals = cost[each, ways].sum(dim=-1)
    return ways[totals.argmin()]
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:cheapest_match", "points:4"]
check(cheapest_match)

# %%
# hint("cheapest_match")
# solution("cheapest_match")

# %% [markdown]
# ## 7 · Three pixels are enough, in your own words
#
# `★★ · 7 min · it says what attention lacks, and so what must be added before it can be a convolution`
#
# A row of three pixels, $1\;0\;0$. A convolution with the kernel $(1, 0, 0)$ brings each pixel's left neighbour and makes $0\;1\;0$ of it. **Why can no self-attention without positions do that, whatever its weights
# are, and however many heads it has?** Two or three sentences. The check looks for the ideas that an answer cannot avoid, then shows a model answer. It reads words, not meaning: compare the two yourself.

# %%
### BEGIN SOLUTION
why_no_convolution = """The second and the third pixel are equal, so they ask the same query of the same pixels.
Every head gives both of them the same output, and so does a sum of heads. The convolution gives them 1 and 0,
because it knows which neighbour stands on the left."""
### END SOLUTION
### STUB: why_no_convolution = """ """

# %% tags=["exercise:why_no_convolution", "points:4"]
check(why_no_convolution, "why_no_convolution")

# %%
# hint("why_no_convolution")
# solution("why_no_convolution")

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
