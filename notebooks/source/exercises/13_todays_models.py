# %% [markdown]
# # 13 · Today's models: exercises
#
# Nine exercises, about 95 minutes. They follow the parts of chapter 13. The first mends a model whose logits are off; the others were **found in the wild**: each has the faults that users of published
# programs reported, in code of our own. Nobody tells you how many faults there are. Take them in any order, one a day.
#
# **How it works.** Repair the program in a cell, run it, then run the cell with `check`. `hint("name")` asks a question that helps, three in all; `solution("name")` shows a right answer. `progress()` lists what you
# have done. Each program stands in one function, so that a check can run it.
# The stars: ★ short, ★★ some lines or some thinking, ★★★ an idea that has to be found.
#
# <details><summary>中文摘要 · Chinese</summary>
#
# 九道题。第一题:一个模型的输出不对,有五行写错了,请找出来。其余八题取自别人真实报告过的错误:缓存、窗口、左填充、集束搜索、分块计算、半精度的位置、用 -10000 当遮罩。
# 有几处错,没有人告诉你。其中两题不用改程序,而是写出能让错误暴露的输入。
#
# </details>

# %%
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks import check, hint, picture, progress, solution
from lesson_lib.positions import rotary

# %% [markdown] tags=["exercise:logits_of"]
# A file opens, all shapes fit, and the logits are off. This is its layer, with **five wrong lines**. The page of the model says:
#
# 1. norms divide by the root of the mean square and multiply by 1 + gain;
# 2. queries and keys are normed head by head **before** they are turned;
# 3. the columns $j$ and $j + d_k/2$ turn together;
# 4. query heads that share a key head are **neighbours**;
# 5. a token looks at `window` tokens, itself among them.
#
# **Mend it.** The check begins with one token and one key, where most lines cannot matter, and adds one thing in each step.


# %% [markdown] tags=["exercise:read_prompt"]
# A long prompt is read `chunk` tokens at a time; keys and values are kept. In chunks and all at once must give the same rows. **Mend it.**


# %% [markdown] tags=["exercise:read_window"]
# A token looks at `window` tokens, itself among them, so most of what was read can be forgotten. The model was trained on whole texts, under a mask. **Mend the program**, so that it gives the same rows in chunks.


# %% [markdown] tags=["exercise:next_logits"]
# To continue several texts together, they are filled up **on the left**, so that all end in the last column. `pad` is the number of the filler. In `attn_mask` True means: may look. Each text is to get the
# logits that it gets alone. **Mend it.**


# %% [markdown] tags=["exercise:best_beam"]
# A beam search keeps the `width` best texts and, of each, the keys and values that were read. At each step every text has `n_tokens` children, and the best `width` of all of them live on. **Mend it.**


# %% [markdown] tags=["exercise:windowed"]
# Attention under a causal window, `block` queries at a time. Its outputs were off, and its memory grew with the square of the text. **Mend both.**


# %% [markdown] tags=["exercise:tiles_with_sink"]
# Exact attention, `tile` keys at a time, with a running maximum and two sums (11b); and a sink (13a): one score more for every query, without a value. **Mend it.**


# %% [markdown] tags=["exercise:where_it_turns_wrong"]
# Here nothing is to be mended: this function keeps positions in bfloat16, which has 8 binary digits. **Write x and start** on which its result is wrong.

# %% [markdown] tags=["exercise:what_it_lets_through"]
# This one adds -10,000 to hidden scores, where -inf belongs. **Write query, key, value and mask** on which something hidden comes through. The right function gives zeros to a query that may look at nothing.

# %% [markdown]
# ## What you should remember
#
# <details><summary>Open it when you are done</summary>
#
# 1. Make inputs so small that only one line can matter. Compare logits, not the likeliest token: most faults keep it.
# 2. In chunks = all at once: one line of test for masks, places and caches together.
# 3. First answer, then forget. Count what was seen, not what is kept.
# 4. Padding in front must change nothing: add a column of it and compare.
# 5. What belongs to a text moves with it: tokens, scores, keys, values.
# 6. A mask that is made whole and narrowed afterwards has cost everything. Measure memory.
# 7. The size of a tile must change nothing: compare two of them.
# 8. bfloat16 knows every whole number up to 256; beyond, places fall together.
# 9. Only -inf hides.
#
# </details>
