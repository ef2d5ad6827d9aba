# %% [markdown]
# # 09 · What if the input is long?: exercises
#
# Eight exercises, about 65 minutes. They follow part [09 · truncated attention](../09_truncated_attention.ipynb); best in this order, and the seventh, the hardest, may wait.
#
# **How it works.** Replace the `...` (or repair the function) in a cell, run it, then run the cell with `check`. `hint("name")` asks a question that helps, three in
# all; `solution("name")` shows a right answer. `progress()` lists what you have done.
# The stars: ★ short, ★★ some lines or some thinking, ★★★ an idea that has to be found.
#
# Throughout, n is the number of frames, counted from 0, and a second of speech has 100 of them. A window of *radius* r lets each frame see itself and r frames on each side: |i - j| ≤ r. At the
# ends of a recording some of them are missing. `attend` is the library's; its `mask` says True = may look.

# %%
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from lesson_lib.attention import attend
from lesson_lib.checks import check, hint, picture, progress, solution

# %% [markdown] tags=["exercise:table_for_an_hour"]
# An hour of speech, a frame every 10 ms. One layer of full attention with **6 heads** keeps the weights of every query and key in a table for each head, as float32. **How many GiB are these tables?** A GiB is $2^{30}$ bytes. Type a number or an
# expression in quotes.

# %% [markdown] tags=["exercise:what_a_mask_saves"]
# 15 seconds of speech, n = 1,500. A frame shall see 15 frames on each side, 31 in all. Someone writes `attend(q, k, v, mask=window(n, 15))` in place of `attend(q, k, v)`, where `window(n, 15)` is the
# table that says who sees whom. **What becomes of the multiplications (of the matrix products), and of the memory at its peak?**

# %% [markdown] tags=["exercise:layers_until"]
# Layers of window attention, one on top of the other. In each, a frame hears `before` frames before it, `after` frames behind it, and itself; both numbers are at least 1. What a frame has heard, it
# passes on in the next layer. **After how many layers, at least, has frame i heard of frame j?** `i` and `j` hold whole numbers, a pair in each place. The result is a tensor of whole numbers like `i`, and 0 where i is j.


# %% [markdown] tags=["exercise:streaming_latency"]
# A recogniser writes while someone speaks. Frames come every 10 ms. Its first **2 layers** let each frame look 32 frames back and **4 frames ahead**. Then every second token is kept, so there is one for each 20 ms, and **6 layers** let each token
# look 32 tokens back and **3 tokens ahead**. Time for computing does not count here. **How many ms behind its own frame lies the last frame that an output needs?**

# %% [markdown] tags=["exercise:dilated_window"]
# A *dilated* window of radius r takes steps: query frame $i$ sees the key frames $i - r \cdot \text{step}, \ldots, i - \text{step}, i, i + \text{step}, \ldots, i + r \cdot \text{step}$, those of them that are there. With step 1 it is
# the window you know. **Write its mask**, of shape (n, m), True = may look. `queries` and `keys` hold the numbers of the frames: in a long recording a block of queries may hold the frames 100 to 104, and the keys around it 97 to 107.


# %% [markdown] tags=["exercise:near_blocks"]
# Blocks of `radius` frames, all at once: each block of queries gets the keys of the block before, of its own, and of the block behind. So that all blocks are alike, zeros are filled in, in front, at the end, and in
# the last block. `i` holds the number of each query, (count, radius, 1), and `j` that of each key, (count, 1, 3 radius), counted from the first frame. **One line is wrong. Repair it:** the result must be `attend`'s with the mask of the window, at the ends, too.


# %% [markdown] tags=["exercise:block_by_block"]
# The part gave all blocks to one call, and filled the ends up. Here they come one after the other, without any filler and with blocks of any size. Take `block` queries at a time (the last block may be shorter) and give them to `attend`, with the keys and the values in their reach and no others. Inside, a mask gives each query
# its own window. **Write it.** All outputs come in one tensor of shape (n, d_v), exact at the ends and where blocks meet. No table of n x n anywhere, no mask of n x n: twice as many frames may take twice the work.


# %% [markdown] tags=["exercise:beyond_every_window"]
# A recogniser has 3 layers of window attention, radius 15. Some label depends on a sound that was heard **100 frames earlier**. The training runs for a week, and on this label the model is still at chance. **Why, and what would you
# change?** Two or three sentences. The check shows a model answer and a few points: you judge your own, point by point.

# %% [markdown]
# ## What you should remember
#
# <details><summary>Open it when you are done</summary>
#
# 1. A table has n² weights for each head. Ten times the speech is a hundred times the memory.
# 2. A mask says what does not count; it saves nothing. What saves is to ask only the keys in reach.
# 3. Reach adds up: layers x radius frames on each side. To hear d frames far takes d / radius layers, rounded up.
# 4. The latency is the sum of all look-aheads, each times the time of its token. Earlier frames make no one wait.
# 5. A dilated window has the price of a small one and the reach of a large one. What lies in its gaps it does not hear.
# 6. A key of zeros has the score 0, and exp(0) is 1. Whatever is filled in must be hidden.
# 7. A block of queries needs block + 2 radius keys. So time and memory grow as n.
# 8. Beyond layers x radius the gradient is exactly 0. No training helps there, only another structure.
#
# </details>
