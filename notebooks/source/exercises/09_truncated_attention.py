# %% [markdown]
# # 09 · What if the input is long?: exercises
#
# Eight exercises, about 65 minutes. They follow the lesson `09_truncated_attention`; best in this order, and the seventh, the hardest, may wait.
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

# %% [markdown]
# ## 1 · A table for an hour of speech
#
# `★ · 5 min · whoever knows this number does not wonder why a recogniser that runs on ten seconds dies on a lecture`
#
# An hour of speech, a frame every 10 ms. One layer of full attention with **6 heads** keeps the weights of every query and key in a table for each head, as float32. **How many GiB are these tables?** A GiB is $2^{30}$ bytes. Type a number or an
# expression in quotes.

# %%
### BEGIN SOLUTION
table_for_an_hour = "6 * 4 * (3600 * 100)**2 / 2**30"
### END SOLUTION
### STUB: table_for_an_hour = ...

# %% tags=["exercise:table_for_an_hour", "points:2"]
check(table_for_an_hour, "table_for_an_hour")

# %%
# hint("table_for_an_hour")  # without the first '#': a question; run again for the next one
# solution("table_for_an_hour")

# %% [markdown]
# ## 2 · What does a mask save? Predict the picture
#
# `★ · 5 min · "our attention is local, so it is linear": code that says so may still compute every score, and hide most of them`
#
# 15 seconds of speech, n = 1,500. A frame shall see 15 frames on each side, 31 in all. Someone writes `attend(q, k, v, mask=window(n, 15))` in place of `attend(q, k, v)`, where `window(n, 15)` is the
# table that says who sees whom. **What becomes of the multiplications (of the matrix products), and of the memory at its peak?**
#
# - a) both fall to about 31 / 1,500, a fiftieth
# - b) the multiplications fall to a fiftieth; the memory stays, since the table is there
# - c) the memory falls to a fiftieth; the multiplications stay, since a weight must be known before it is hidden
# - d) the multiplications stay; the memory even grows, since the mask is one more table
# - e) the multiplications of the scores stay, those of the mix fall to a fiftieth; the memory stays
# - f) both grow to twice as much: once for all scores, once for those in the window

# %%
### BEGIN SOLUTION
what_a_mask_saves = "d"
### END SOLUTION
### STUB: what_a_mask_saves = ...  # one letter, in quotes

# %% tags=["exercise:what_a_mask_saves", "points:2"]
check(what_a_mask_saves, "what_a_mask_saves")

# %%
picture("what_a_mask_saves")

# %%
# hint("what_a_mask_saves")
# solution("what_a_mask_saves")

# %% [markdown]
# ## 3 · How many layers until it is heard?
#
# `★★ · 7 min · a model with too few layers cannot learn what is farther away, however long it is trained`
#
# Layers of window attention, one on top of the other. In each, a frame hears `before` frames before it, `after` frames behind it, and itself; both numbers are at least 1. What a frame has heard, it
# passes on in the next layer. **After how many layers, at least, has frame i heard of frame j?** `i` and `j` hold whole numbers, a pair in each place. The result is a tensor of whole numbers like `i`, and 0 where i is j.


# %%
def layers_until(
    i: Int[Tensor, " pairs"], j: Int[Tensor, " pairs"], before: int, after: int
) -> Int[Tensor, " pairs"]:
    ### BEGIN SOLUTION
    back = (i - j + before - 1) // before  # // rounds down: add almost a layer
    ahead = (j - i + after - 1) // after
    return torch.where(j < i, back, ahead)
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:layers_until", "points:4"]
check(layers_until)

# %%
# hint("layers_until")
# solution("layers_until")

# %% [markdown]
# ## 4 · How late is a live recogniser?
#
# `★★ · 6 min · subtitles that come a second late are of little use; the look ahead decides on that, before any processor does`
#
# A recogniser writes while someone speaks. Frames come every 10 ms. Its first **2 layers** let each frame look 32 frames back and **4 frames ahead**. Then every second token is kept, so there is one for each 20 ms, and **6 layers** let each token
# look 32 tokens back and **3 tokens ahead**. Time for computing does not count here. **How many ms behind its own frame lies the last frame that an output needs?**

# %%
### BEGIN SOLUTION
streaming_latency = "2*4*10 + 6*3*20"
### END SOLUTION
### STUB: streaming_latency = ...

# %% tags=["exercise:streaming_latency", "points:4"]
check(streaming_latency, "streaming_latency")

# %%
# hint("streaming_latency")
# solution("streaming_latency")

# %% [markdown]
# ## 5 · A window with gaps
#
# `★★ · 8 min · as many keys as before, a reach step times as far: this is how sparse attention hears far at the price of a small window`
#
# A *dilated* window of radius r takes steps: query frame $i$ sees the key frames $i - r \cdot \text{step}, \ldots, i - \text{step}, i, i + \text{step}, \ldots, i + r \cdot \text{step}$, those of them that are there. With step 1 it is
# the window you know. **Write its mask**, of shape (n, m), True = may look. `queries` and `keys` hold the numbers of the frames: in a long recording a block of queries may hold the frames 100 to 104, and the keys around it 97 to 107.


# %%
def dilated_window(
    queries: Int[Tensor, " n"], keys: Int[Tensor, " m"], radius: int, step: int
) -> Bool[Tensor, "n m"]:
    ### BEGIN SOLUTION
    away = keys - queries[:, None]  # (n, m): how many frames later the key stands
    return (away % step == 0) & (away.abs() <= radius * step)
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:dilated_window", "points:4"]
check(dilated_window)

# %%
# hint("dilated_window")
# solution("dilated_window")

# %% [markdown]
# ## 6 · Zeros that take weight: a repair
#
# `★★ · 10 min · the middle of a long recording is right and its ends are not: a test that looks at shapes, or at the middle alone, lets it pass`
#
# Blocks of `radius` frames, all at once: each block of queries gets the keys of the block before, of its own, and of the block behind. So that all blocks are alike, zeros are filled in, in front, at the end, and in
# the last block. `i` holds the number of each query, (count, radius, 1), and `j` that of each key, (count, 1, 3 radius), counted from the first frame. **One line is wrong. Repair it:** the result must be `attend`'s with the mask of the window, at the ends, too.


# %%
def near_blocks(
    query: Float[Tensor, "n d_k"],
    key: Float[Tensor, "n d_k"],
    value: Float[Tensor, "n d_v"],
    radius: int,
) -> Float[Tensor, "n d_v"]:
    n = len(query)
    count = -(-n // radius)  # blocks of `radius` frames; the last one is filled up
    ends = (0, 0, radius, radius + count * radius - n)
    q = pad(query, (0, 0, 0, count * radius - n)).unflatten(0, (count, radius))
    k = pad(key, ends).unfold(0, 3 * radius, radius).mT  # the block before,
    v = pad(value, ends).unfold(0, 3 * radius, radius).mT  # itself, the one behind
    i = torch.arange(count * radius, device=query.device).view(count, radius, 1)
    j = i[:, :1] + torch.arange(-radius, 2 * radius, device=query.device)
    ### BEGIN SOLUTION
    seen = ((i - j).abs() <= radius) & (0 <= j) & (j < n)
    ### END SOLUTION
    ### STUB: seen = (i - j).abs() <= radius
    return attend(q, k, v, mask=seen, weights=False).output.flatten(0, 1)[:n]


# %% tags=["exercise:near_blocks", "points:4"]
check(near_blocks)

# %%
# hint("near_blocks")
# solution("near_blocks")

# %% [markdown]
# ## 7 · Block by block, without a table
#
# `★★★ · 15 min · these ten lines are what makes an hour of speech fit: only what is in reach is ever computed`
#
# The lesson asked the frames one by one, a call for each; the library takes all blocks in one call. Here is the way between, without any filler and with blocks of any size. Take `block` queries at a time (the last block may be shorter) and give them to `attend`, with the keys and the values in their reach and no others. Inside, a mask gives each query
# its own window. **Write it.** All outputs come in one tensor of shape (n, d_v), exact at the ends and where blocks meet. No table of n x n anywhere, no mask of n x n: twice as many frames may take twice the work.


# %%
def block_by_block(
    query: Float[Tensor, "n d_k"],
    key: Float[Tensor, "n d_k"],
    value: Float[Tensor, "n d_v"],
    radius: int,
    block: int,
) -> Float[Tensor, "n d_v"]:
    ### BEGIN SOLUTION
    n, outputs = len(query), []
    for start in range(0, n, block):
        end = min(n, start + block)
        first, last = max(0, start - radius), min(n, end + radius)
        i = torch.arange(start, end, device=query.device)
        j = torch.arange(first, last, device=query.device)
        seen = (i[:, None] - j).abs() <= radius
        q, k, v = query[start:end], key[first:last], value[first:last]
        outputs.append(attend(q, k, v, mask=seen, weights=False).output)
    return torch.cat(outputs)
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:block_by_block", "points:6"]
check(block_by_block)

# %%
# hint("block_by_block")
# solution("block_by_block")

# %% [markdown]
# ## 8 · What no training brings near. In your own words
#
# `★★ · 7 min · a model that cannot hear something looks exactly like one that has not learned it yet; the difference is worth days of training`
#
# A recogniser has 3 layers of window attention, radius 15. Some label depends on a sound that was heard **100 frames earlier**. The training runs for a week, and on this label the model is still at chance. **Why, and what would you
# change?** Two or three sentences. The check looks for the ideas that an answer cannot avoid, then shows a model answer. It reads words, not meaning: compare the two yourself.

# %%
### BEGIN SOLUTION
beyond_every_window = """Three layers of radius 15 reach 45 frames, and the sound is 100 away. The output
does not depend on it, so the gradient towards it is exactly 0. Seven layers would reach 105 frames, or a
window with gaps, or a larger radius."""
### END SOLUTION
### STUB: beyond_every_window = """ """

# %% tags=["exercise:beyond_every_window", "points:4"]
check(beyond_every_window, "beyond_every_window")

# %%
# hint("beyond_every_window")
# solution("beyond_every_window")

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
