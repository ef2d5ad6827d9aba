# %% [markdown]
r"""
# 13a · What do today's models change?

A model that people use lies on a disk as two files: numbers, and a page that says what they are. Six lines of gpt-oss 20B's page, a model of 2025:

    "num_hidden_layers": 24,        "head_dim": 64,
    "num_attention_heads": 64,      "num_key_value_heads": 8,
    "layer_types": ["sliding_attention", "full_attention", …],
    "sliding_window": 128

Among its numbers are 64 more for each layer, called `sinks`.

**Afterwards you can** read the attention of such a page line by line, write each change in a line or two, and say what a text costs.

**Time** about 45 minutes. **You need** parts [02b](02b_which_score.ipynb), [04](04_multi_head.ipynb), [05b](05b_rotation.ipynb), [06a](06a_layer.ipynb) and [11b](11b_exact_and_fast.ipynb).

<details><summary>中文摘要</summary>
今天的模型改了注意力的什么?六个公开模型的配置文件,一行一行读:多个查询头共用键,窗口,QK 归一化(先把查询和键归一,再旋转),分数的软上限,以及"汇"(一个没有人写过的键)。
每一处改动只有一两行,函数还是同一个 attend。查询和键的起点太长时,没有归一化的模型学不会,有归一化的照样学会。
</details>
"""

# %%
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c13_todays_models import figures, published
from lesson_lib.chapters.c13_todays_models.cache_explorer import (
    CacheExplorer,
    windows_of,
)
from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
from lesson_lib.masks import causal, padding
from lesson_lib.models.pretrained import new_model
from lesson_lib.scores import scaled_dot

_ = torch.manual_seed(0)
warm_up()

# %%
predict("numbers_a_token")

# %% [markdown]
r"""
That is 11b's sharing: `num_key_value_heads` are the heads of keys. **"Heads split the width of a token."** Here 64 heads of 64 are 4,096 numbers, and a token has 2,880: one matrix leads in, another back.

## 1 · A window, in every second layer

In a layer of `sliding_attention` a token looks at the last tokens only. A mask says so:
"""

# %%
print(causal(6, window=3).int())  # rows are queries, 1 = may look

# %%
predict("window_of_128")

# %% [markdown]
r"""
Is what lies farther back lost? Each layer looks 127 places back from where the layer below looked; and every second layer looks at all.

What does a window save? Keys behind it are never asked again, so a cache may forget them.
"""

# %%
predict("cache_with_windows")

# %%
options = published.read("gpt-oss 20B")  # its page, read by our library
windows = windows_of(options)  # 24 layers: 128, 0, 128, 0, ...; 0 for all
tokens = 131072
held = sum(min(tokens, window or tokens) for window in windows)
print(held * 1024 * 2 / 2**30, "GiB, and without windows", end=" ")
print(len(windows) * tokens * 1024 * 2 / 2**30)

# %% [markdown]
r"""
Five more pages, some of models that were not trained for so long a text:
"""

# %%
CacheExplorer()

# %% [markdown]
r"""
*Do:* take the windows away, then shared keys, too. Who saves most by windows, who by sharing?

<details><summary>Answer</summary>
Windows: Mistral, 32 times, since all its layers have one. Sharing: gpt-oss, 8 times.
</details>

## 2 · Scores that shout
"""

# %%
predict("ten_times_longer")

# %% [markdown]
r"""
02b's trouble again: with scores far apart one key has all the weight, and slopes vanish. The root mends what the width does at the *start*; it cannot know what training does to the lengths.

**QK-norm** takes the lengths away: each head's queries and keys are normed as 06a's RMSNorm norms a token, *before* they are turned (05b).
"""

# %% [markdown] tags=["exercise:normed"]
# Write the norm. `gain` is learned, a number for each column.

# %%
norm = yours("normed")
q, k = torch.randn(2, 5, 64)  # 5 tokens each, one head 64 wide
ones = torch.ones(64)
loud = scaled_dot(10 * q, 10 * k).abs().max()
calm = scaled_dot(norm(10 * q, ones), norm(10 * k, ones)).abs().max()
print(f"largest score: {loud:.0f}, with QK-norm {calm:.1f}")
assert_close(norm(10 * q, ones), norm(q, ones))

# %% [markdown]
r"""
## 3 · A cap

Gemma 2 had another way: scores may grow, but not past a cap, here 50.
"""

# %% [markdown] tags=["exercise:capped"]
# Write it, a line.

# %%
cap = yours("capped")
scores = torch.tensor([1.0, 10, 50, 300])
print([round(score, 1) for score in cap(scores, 50).tolist()])

x, may = torch.randn(6, 64), causal(6)
low = attend(x, x, x, score=lambda q, k: cap(scaled_dot(q, k), 2), mask=may)
hidden = scaled_dot(x, x).masked_fill(~may, -torch.inf)
wrong = cap(hidden, 2).softmax(-1)  # the mask first, then the cap
for table in (low.weights, wrong):  # what row 0 hears of the future
    print(f"{table[0, 1:].sum():.2f}")

# %% [markdown]
r"""
`attend` puts the mask behind the score. In the other order minus infinity becomes -cap, and is heard: .08, without an error.

Who learns from a loud start? A small model learns to copy signs (13b), all right after 800 steps. Now its queries and keys start 4 or 16 times as long:
"""

# %%
figures.loud_starts()

# %% [markdown]
r"""
At 4 times QK-norm alone learns: 1.00, .84 and 1.00 in three seeds, the others .06 at best. Scores near a cap of 50 still give one key everything.

**"With QK-norm lengths do not matter."** At 16 times it fails, too: .04 to .30. Scores are calm, but a step of the same size turns a matrix 16 times as long 16 times less ([evidence](evidence/13_todays_models_evidence.ipynb)).

## 4 · Nothing to find

Softmax must give all its weight away. What if no key fits? Large models put it on the first token, which then serves as a **sink** (Xiao and others 2023); drop that token from a window, and they break. gpt-oss gives each head a sink of its own: a learned score that belongs to no token.
"""

# %%
predict("five_and_a_sink")

# %% [markdown] tags=["exercise:with_sink"]
# Write it with one more key, and attend as it is.

# %%
sunk = yours("with_sink")
q, k, v = torch.zeros(1, 4), torch.randn(5, 4), torch.ones(5, 1)
may = torch.ones(1, 5, dtype=torch.bool)
for sink in (-30.0, 0.0, 3.0):
    told = sunk(q, k, v, may, sink).item()
    print(f"sink {sink}: the tokens have {told:.2f}")

# %% [markdown]
r"""
Values are 1, so the output is the tokens' weight. **"Weights add up to 1."** Those of the tokens need not.

## 5 · The whole page

You have written what six pages change:
"""

# %%
figures.families()

# %% [markdown]
r"""
The last column is 05b's base: the larger, the slower the slow columns turn, for longer texts. **"Every family has its own attention."** Put together what you wrote, and compare it with a layer of a small model that our library makes from such a page:
"""

# %%
page = published.CONFIGS["gpt-oss 20B"] | {
    "num_hidden_layers": 2,
    "hidden_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "sliding_window": 4,
    "intermediate_size": 16,
    "vocab_size": 50,
}
layer = new_model(page).layers[0]
whole, turn = layer.attention, layer.kind.turn
torch.nn.init.normal_(whole.attention.sinks)
x = torch.randn(10, 48)
mask = causal(10, window=4)
with torch.no_grad():
    q = whole.w_query(x).view(10, 4, 16).transpose(0, 1)  # (4, 10, 16)
    k = whole.w_key(x).view(10, 2, 16).transpose(0, 1)  # (2, 10, 16)
    v = whole.w_value(x).view(10, 2, 16).transpose(0, 1)
    q, k = turn(q, 0), turn(k, 0)  # rotary positions

# %%
with torch.no_grad():
    heads = [
        sunk(q[head], k[head // 2], v[head // 2], mask, sink.item())
        for head, sink in enumerate(whole.attention.sinks)  # two ask one key
    ]
    by_hand = whole.w_output(torch.cat(heads, -1))
    theirs = whole(x[None], x[None], x[None], mask=mask).output[0]
assert_close(by_hand, theirs, atol=1e-5, rtol=1e-5)

# %% [markdown]
r"""
Your sink, a window, a turn, and two heads on one head of keys: the layer. Our library opens ten families so, and tests find their logits equal to the published code's, but for 4 millionths of the largest. The five texts that this course follows name none of these changes.

## In real work

`python -m lesson_lib model FOLDER` says all this of a model on your disk. QK-norm, window and sink in torch, with padding:
"""

# %%
q = torch.randn(2, 4, 6, 16)  # two texts, 4 heads, 6 tokens
k, v = torch.randn(2, 2, 4, 6, 16)
real = padding(torch.tensor([6, 4]), 6)  # the second text has 4 tokens
mask = (causal(6, window=3) & real[:, None]).expand(2, 4, 6, 6)
q, k = F.rms_norm(q, (16,), eps=1e-6), F.rms_norm(k, (16,), eps=1e-6)
sinks = torch.randn(4)[:, None, None].expand(2, 4, 6, 1)
bias = torch.zeros(2, 4, 6, 6).masked_fill(~mask, -torch.inf)
bias = torch.cat((bias, sinks), -1)
more = (F.pad(x, (0, 0, 0, 1)) for x in (k, v))
output = F.scaled_dot_product_attention(q, *more, attn_mask=bias)
weights = scaled_dot(q, k).masked_fill(~mask, -torch.inf)
left = (weights.logsumexp(-1, keepdim=True) - sinks).sigmoid()
assert_close(output, left * attend(q, k, v, mask=mask).output)

# %% [markdown]
r"""
People meet the window's edge. Mistral, Gemma and gpt-oss count the token itself; ModernBERT's `local_attention: 128` is 64 to either side, so 129. An error by one hardly changes a text: compare logits.

## The six lines once more

24 layers; 64 heads, eight on one head of keys; every second layer hears 128 tokens; and a head that finds nothing has a sink.

**To remember.** Today's models change what is compared, who is heard and what is kept; the function is the one of 02a.

- Shared keys and windows save memory; each layer may have its own.
- QK-norm takes lengths out of the scores.
- A cap is a score, so it stands before the mask.
- A sink lets a head say nothing.

**Sources.** Henry et al. 2020 (arXiv:2010.04245, QK-norm); Xiao et al. 2023 (arXiv:2309.17453); Gemma Team 2024, 2025 (arXiv:2408.00118, 2503.19786); OpenAI 2025 (arXiv:2508.10925).

**Next**: [13b · How does a model copy?](13b_induction.ipynb)
"""
