# %% [markdown]
r"""
{title}

A published model comes with a page, `config.json`, that says what its numbers are. Seven entries of gpt-oss 20B's, of 2025:

    "num_hidden_layers": 24,        "hidden_size": 2880,
    "num_attention_heads": 64,      "num_key_value_heads": 8,
    "head_dim": 64,                 "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention", …]

Each layer has 64 numbers more, called `sinks`.

**Afterwards you can** read the attention of such a page entry by entry, write three changes in a few lines each, and say what a text costs.

{about}

<details><summary>中文摘要 · Chinese</summary>
今天的模型改了注意力的什么?六个公开模型的配置文件:多个查询头共用键,窗口,QK 归一化(先把查询和键归一,再旋转),分数的软上限,以及"汇"(一个没有人写过的键)。
每一处改动只有几行,函数还是同一个 attend。查询和键的起点长 4 倍时,只有归一化的模型学得会(三个种子 1.00、.84、1.00);长 16 倍时它慢,但不是学不会。
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
from lesson_lib.chapters.c13_todays_models.cache_explorer import CacheExplorer
from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
from lesson_lib.masks import causal, padding
from lesson_lib.models.pretrained import new_model
from lesson_lib.scores import scaled_dot

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
Eight heads of queries share one of the 8 heads of keys (11b), so a token leaves $2 \cdot 8 \cdot 64 = 1{,}024$ numbers in a layer's cache. **"Heads split the width of a token."** Here 64 heads of 64 are 4,096 numbers, and a token has 2,880: $W_q$ leads there, the output matrix back.

## 1 · A window, in every second layer

In a layer of `sliding_attention` a token looks at the last tokens only. A mask says so:
"""

# %%
print(causal(6, window=3).int())  # rows are queries, 1 = may look

# %%
predict("window_of_128")

# %% [markdown]
r"""
What lies farther back is not lost: every second layer looks at all.

Keys and values older than the window are never used again in that layer, so its cache may forget them.
"""

# %%
predict("cache_with_windows")

# %% [markdown]
r"""
Without windows it is 6. Five more pages (not all were made for so long a text):
"""

# %%
CacheExplorer()

# %% [markdown]
r"""
*Do:* at 131,072 tokens, take the windows away, then shared keys, too. Whose cache does each step multiply most?

<details><summary>Answer</summary>
The first Mistral's, by 32: all its layers have windows. The second gpt-oss's, by 8.
</details>

## 2 · Scores that shout
"""

# %%
predict("ten_times_longer")

# %% [markdown]
r"""
02b's trouble again: with scores far apart one key has all the weight, and slopes vanish. The root mends what the width does at the *start*; it cannot know what training does to the lengths.

**QK-norm** takes the lengths away: each head's queries and keys are normed as 06a's RMSNorm norms a token. Its columns have learned gains, so it comes *before* the turn (05b): behind it, gains would stretch turned columns, and places would count, not distances alone.
"""

# %% [markdown] tags=["exercise:normed"]
# `gain` is learned, a number for each column.

# %%
norm = yours("normed")
q, k = torch.randn(2, 5, 64)  # 5 tokens each, one head 64 wide
ones = torch.ones(64)
loud = scaled_dot(10 * q, 10 * k).abs().max()
calm = scaled_dot(norm(10 * q, ones), norm(10 * k, ones)).abs().max()
print(f"largest score: {loud:.0f}, with QK-norm {calm:.1f}")  # 1 / 100
assert calm < 8  # both are sqrt(64) long, so 64 / 8 at most
assert_close(norm(10 * q, ones), norm(q, ones))

# %% [markdown]
r"""
## 3 · A cap

Gemma 2 had another way: scores may grow, but not past a cap, there 50: $\text{cap} \cdot \tanh(\text{score} / \text{cap})$.
"""

# %% [markdown] tags=["exercise:capped"]
# One line. Small scores pass, loud ones bend.

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
`attend` caps first, then masks. In the other order minus infinity becomes -cap, here -2, and the future gets «.08»; at 50 this test would miss it.

A small model learns in 800 steps to repeat a word of random signs, *kfwac kf…*. Now it starts loud.
"""

# %%
predict("loud_start")

# %%
figures.loud_starts()

# %% [markdown]
r"""
At 4 times QK-norm alone learns: 1.00, .84 and 1.00 in three seeds, the others .06 at best. Plain is stuck: .05 after 3,200 steps.

**"With QK-norm lengths do not matter."** At 16 times it has .04 to .30: Adam's steps turn a matrix 16 times as large 16 times less. Slow, not stuck: 3,200 steps give 1.00 in all seeds ([evidence](evidence/13_todays_models_evidence.ipynb)).

## 4 · Nothing to find

Softmax must give all its weight away. What if no key fits? Large models put it on the first token, which all see, as on a **sink**; hide it by a window new to them, and they break. gpt-oss gives each head a sink of its own: a learned score that belongs to no token.
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

What six pages change:
"""

# %%
figures.families()

# %% [markdown]
r"""
The last column is rotary's base; Gemma 3's layers with windows have the small one. DeepSeek's latent keys stand in the [evidence of 11](evidence/11_efficient_attention_evidence.ipynb). **"Every family has its own attention."** Compare your sink with a layer that our library makes from such a page:
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
layer = new_model(page).layers[0].cpu()  # page to model
whole = layer.attention  # a MultiHeadAttention
turn = layer.kind.turn  # rotary positions
torch.nn.init.normal_(whole.attention.sinks)
x = torch.randn(10, 48)
mask = causal(10, window=4)  # given to both below
with torch.no_grad():
    q = whole.w_query(x).view(10, 4, 16).transpose(0, 1)  # (4, 10, 16)
    k = whole.w_key(x).view(10, 2, 16).transpose(0, 1)  # (2, 10, 16)
    v = whole.w_value(x).view(10, 2, 16).transpose(0, 1)
    q, k = turn(q, 0), turn(k, 0)  # token 0 stands at place 0

# %%
with torch.no_grad():
    heads = [
        sunk(q[head], k[head // 2], v[head // 2], mask, sink.item())
        for head, sink in enumerate(whole.attention.sinks)  # two ask one key
    ]
    by_hand = whole.w_output(torch.cat(heads, -1))
    theirs = whole(x[None], x[None], x[None], mask=mask).output[0]
assert_close(by_hand, theirs, atol=1e-5, rtol=1e-5)
print("numbers that agree:", by_hand.numel())

# %% [markdown]
r"""
Our library opens ten families this way; tests find their logits equal to the published code's, to 4 millionths of the largest.

## In real work

`python -m lesson_lib model FOLDER` says all this of a model on your disk. QK-norm, window and sink in torch, with padding:
"""

# %%
q = torch.randn(2, 4, 6, 16)  # two texts, 4 heads, 6 tokens
k, v = torch.randn(2, 2, 4, 6, 16)
real = padding(torch.tensor([6, 4]), 6)  # (2, 1, 6): the second has 4
mask = (causal(6, window=3) & real[:, None]).expand(2, 4, 6, 6)
q, k = F.rms_norm(q, (16,), eps=1e-6), F.rms_norm(k, (16,), eps=1e-6)
sinks = torch.randn(4)
column = sinks[:, None, None].expand(2, 4, 6, 1)
bias = torch.zeros(2, 4, 6, 6).masked_fill(~mask, -torch.inf)
bias = torch.cat((bias, column), -1)  # (2, 4, 6, 7)
more = (F.pad(x, (0, 0, 0, 1)) for x in (k, v))
output = F.scaled_dot_product_attention(q, *more, attn_mask=bias)
for text, head in torch.cartesian_prod(torch.arange(2), torch.arange(4)):
    one = (x[text, head] for x in (q, k, v, mask))
    assert_close(output[text, head], sunk(*one, sinks[head].item()))

# %% [markdown]
r"""
A common bug: is the own token counted? Mistral, Gemma and gpt-oss count it; ModernBERT, an encoder, has `local_attention: 128`, 64 to either side, so 129. An error by one hardly changes a text: compare logits.

## The page once more

24 layers; 64 heads, eight on one head of keys; every second layer hears 128 tokens; each head has a sink, for when nothing fits; a text of 131,072 tokens costs 3 GiB.

**To remember.** Today's models change what is compared, who is heard and what is kept; the function is the one of 02a.

- Shared keys and windows save memory; each layer may have its own.
- QK-norm takes lengths out of the scores.
- Cap scores first, then mask.
- A sink lets a head say nothing.

**Sources.** Henry et al. 2020 (arXiv:2010.04245, QK-norm); Xiao et al. 2023 (2309.17453, sinks); the models' reports (2407.21783, 2310.06825, 2505.09388, 2408.00118, 2503.19786, 2508.10925).

**Next**: [13b · How does a model copy?](13b_induction.ipynb)
"""
