# /// ideas
# [wide_heads]
# says = "a page names sizes: heads need not split a token's width, 64 heads of 64 stand on 2,880 numbers"
# motive = "says what its numbers are"
# shown = "64 · 64 = 4,096"
# action = "Which of them can you read already?"
#
# [window]
# says = "a window counts the token itself, so 128 means 127 before it; older keys may be forgotten"
# motive = "looks at the last tokens only"
# shown = "print(causal(6, window=3).int())"
# action = 'predict("window_of_128")'
#
# [cost]
# says = "what a text costs: the rows that each layer keeps, times numbers a row, times 2 bytes"
# motive = "What does a long text cost?"
# shown = "CacheExplorer()"
# action = 'predict("cache_with_windows")'
#
# [latent]
# says = "latent keys: all heads' keys and values are made from one narrow row, and the cache keeps that row"
# motive = "Could it keep less?"
# shown = "512 + 64 = 576"
# action = 'predict("wrong_root")'
#
# [moved]
# says = "W_k moves to the query, W_v behind the sum: attend asks the narrow rows themselves"
# motive = "Must all keys be made anew for each token?"
# shown = "(W_k^\\top q) \\cdot c"
# action = "short = attend("
#
# [qk_norm]
# says = "QK-norm: each head's queries and keys are normed before they turn, so lengths leave the scores"
# motive = "it cannot know what training does to the lengths"
# shown = "loud = scaled_dot("
# action = "q, k = norm(10 * q"
#
# [sink]
# says = "a sink is one more score of each head, with a value of 0: the head can say little"
# motive = "What if no key fits?"
# shown = "the tokens have"
# action = 'predict("five_and_a_sink")'
#
# [gate]
# says = "a sink is a gate: the plain output times sigmoid(logsumexp(scores) - sink); others make the gate from the token"
# motive = "Is a gate something else?"
# shown = "gate = (scores.logsumexp(-1, keepdim=True) - 1.5).sigmoid()"
# action = "assert_close(gate * plain, sunk("
#
# [no_positions]
# says = "some layers have no positions"
# motive = "must each layer know where a token stands"
# shown = "SmolLM3"
# action = "same = attend("
#
# [sharper]
# says = "weights thin out as texts grow; scores that grow with the logarithm of the length keep one key's share"
# motive = "a key that is ahead"
# shown = "for n in (100, 1_000, 10_000):"
# action = "What is left of it"
#
# [silent]
# says = "a page does not say all: QK-norm and sinks stand in no entry, only in the names of the weights"
# motive = "Does the page say all this?"
# shown = "card(page"
# action = 'predict("unknown_page")'
# ///

# %% [markdown]
r"""
{title}

A published model comes with a page, `config.json`, that says what its numbers are. Seven entries of gpt-oss 20B's, of 2025:

```
"num_hidden_layers": 24,     "hidden_size": 2880,
"num_attention_heads": 64,   "num_key_value_heads": 8,
"head_dim": 64,              "sliding_window": 128,
"layer_types": ["sliding_attention", "full_attention", …]
```

Which of them can you read already?

**Afterwards you can** read the attention of such a page entry by entry; say what a text costs; write two changes of today's models in a few lines each.

{about}

<details><summary>中文摘要 · Chinese</summary>
今天的模型改了注意力的什么?窗口,多个查询头共用键,所有的头共用一行"潜在"的键,QK 归一化(先归一,再旋转),"汇"(一个没有人写过的键;它等于一个门),没有位置的层,随长度增大的分数。
每一处改动只有几行,函数还是同一个 attend。最后读一页从没见过的配置文件。
</details>
"""

# %% tags=["imports"]
import math

import torch
import torch.nn.functional as F
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c13_todays_models import published
from lesson_lib.chapters.c13_todays_models.cache_explorer import CacheExplorer
from lesson_lib.course import *
from lesson_lib.masks import causal
from lesson_lib.models.pretrained import card, new_model
from lesson_lib.scores import scaled_dot

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
There are 24 layers, and a token is a row of 2,880 numbers. Eight heads of queries share each of the 8 heads of keys (11b).

**"Heads split the width of a token."** These 64 heads of 64 have 64 · 64 = 4,096 columns, more than the token has. $W_q$ leads from 2,880 to 4,096, and the output matrix leads back. So the width of a head is a choice of its own.

## 1 · What a text costs

In a layer of `sliding_attention` a token looks at the last tokens only. A mask says so:
"""

# %%
print(causal(6, window=3).int())  # rows are queries, 1 = may look

# %%
predict("window_of_128")

# %% [markdown]
r"""
What lies farther back is not lost, because every second layer looks at all. But in a layer with a window old keys and values are never used again, so its cache may forget them. What does a long text cost?
"""

# %%
predict("cache_with_windows")

# %% [markdown]
r"""
So 3 GiB; without windows it would be 6. The same count for six models, a bar for each:
"""

# %%
CacheExplorer()

# %% [markdown]
r"""
*Do:* at 131,072 tokens take the windows away, then the shared keys, too. Which model's cache does each step multiply most?

<details><summary>Answer</summary>
Without windows Mistral 7B's grows most, 131,072 / 4,096 = 32 times, for all its layers have windows. Then gpt-oss's does, 8 times: 64 heads of keys in place of 8.
</details>

## 2 · One row for all heads

DeepSeek V3 has 128 heads, each with a key of 128 + 64 numbers and a value of 128. A cache of them would keep 128 · 320 = 40,960 numbers for a token, in each layer. Could it keep less? A learned matrix makes of each token one narrow row $c$ of 512 numbers, the **latent row**, and the cache keeps that. From it each head's matrices make 128 numbers of its key, $W_k c$, and its value, $W_v c$. (The other 64 come below.)

Must all keys be made anew for each token? No:

$$q \cdot (W_k\, c) = (W_k^\top q) \cdot c \qquad \sum_j w_j\, W_v c_j = W_v \sum_j w_j\, c_j$$

So $W_k$ moves over to the query, and $W_v$ comes last. Then all heads ask the same narrow rows, which are keys and values at once. Here are 5 heads of width 8 over latent rows of width 12. `attend` divides scores by the root of a key's width.
"""

# %%
predict("wrong_root")

# %%
c = torch.randn(40, 12)  # latent rows of 40 tokens
w_key, w_value = torch.randn(2, 5, 8, 12)  # two matrices for each head
q = torch.randn(5, 3, 8)  # three queries for each head
long = attend(q, c @ w_key.mT, c @ w_value.mT).output
for factor in (1, (12 / 8) ** 0.5):
    short = attend(factor * q @ w_key, c, c).output @ w_value.mT
    print(f"times {factor:.2f}: off by {(short - long).abs().max():.4f}")

# %% [markdown]
r"""
With the right root both are equal, and the cache keeps 12 numbers a token in place of 5 · 16 = 80. With rotary positions the key is turned after $W_k$: $q \cdot (R\, W_k\, c)$. The turn $R$ depends on the distance, so $W_k^\top R^\top q$ would have to be computed anew for every key, and nothing would be saved. Therefore the other 64 numbers of a key are made apart: they are turned, all heads share them, and their product is added to the score. The cache keeps 512 + 64 = 576 numbers in place of 40,960.

## 3 · Scores that shout
"""

# %%
predict("ten_times_longer")

# %% [markdown]
r"""
With scores so far apart one key has all the weight, and softmax is saturated (02b). The division by the root mends what the width does at the start; it cannot know what training does to the lengths.

**QK-norm** takes the lengths away. Each head's queries and keys are divided by the root of the mean of their squares, and each column is multiplied by a learned gain. This comes before the rotary turn. A turn mixes two columns, and if they were stretched differently afterwards, scores would depend on positions and not on distances alone.
"""

# %% [markdown] tags=["exercise:normed"]
# Write it. `gain` has a number for each column.

# %%
norm = yours("normed")
q, k = torch.randn(2, 5, 64)  # 5 tokens each, one head of width 64
loud = scaled_dot(10 * q, 10 * k).abs().max()
q, k = norm(10 * q, torch.ones(64)), norm(10 * k, torch.ones(64))
print(f"largest score: {loud:.0f}, with QK-norm {scaled_dot(q, k).abs().max():.1f}")

# %% [markdown]
r"""
Without the norm the largest score is «176», and one key has all the weight. Each normed row has a length of $\sqrt{64}$ = 8, so with gains of 1 no score passes 64 / 8 = 8. The gains are learned, and with them a head can still become sharp. ([Evidence](evidence/13_todays_models_evidence.ipynb).) Without mean and bias 06a's LayerNorm is such an **RMS norm**; most of today's models have it around sub-layers.

## 4 · Nothing to find

A row of weights sums to 1, so softmax must give all its weight away. What if no key fits? Trained models then give most of it to the first token, which all tokens see: they use it as a **sink**. Add a window after training, so that late tokens no longer see the first one, and the models break: the weight that was parked there now lands on tokens whose values matter. So gpt-oss gives each head a sink of its own: a learned score that belongs to no token, with a value of 0.
"""

# %%
predict("five_and_a_sink")

# %% [markdown] tags=["exercise:with_sink"]
# Write it with one more key, and call `attend` once.

# %%
sunk = yours("with_sink")
q, k, v = torch.zeros(1, 4), torch.randn(5, 4), torch.ones(5, 1)
may = torch.ones(1, 5, dtype=torch.bool)
for sink in (-30.0, 0.0, 3.0):
    print(f"sink {sink}: the tokens have {sunk(q, k, v, may, sink).item():.2f}")

# %% [markdown]
r"""
**"Weights add up to 1."** Those of the tokens need not: with a sink of 3 they have «0.20».

Other models of 2025, Qwen3-Next among them, put a **gate** behind attention: the output times $\sigma(W_g x)$, a number between 0 and 1 for each head or column. Is a gate something else? With $Z = \sum_j e^{s_j}$ for the tokens, softmax divides by $Z + e^{\text{sink}}$. So together the tokens get $Z / (Z + e^{\text{sink}})$, and this is $\sigma(\ln Z - \text{sink})$, with $\sigma(x) = 1 / (1 + e^{-x})$. torch's `logsumexp` is $\ln Z$:
"""

# %%
q, k, v = torch.randn(3, 4), torch.randn(5, 4), torch.randn(5, 2)
may = torch.ones(3, 5, dtype=torch.bool)
plain, scores = attend(q, k, v).output, scaled_dot(q, k)
gate = (scores.logsumexp(-1, keepdim=True) - 1.5).sigmoid()
assert_close(gate * plain, sunk(q, k, v, may, 1.5))
print("gates of three queries:", *(f"{one:.2f}" for one in gate[:, 0]))

# %% [markdown]
r"""
So **a sink is a gate**. Of the first query the tokens get «0.65», and the sink takes the rest. The gate is a half where $Z = e^{\text{sink}}$, and closes as the tokens' scores fall below. Qwen's gate is made from the token instead, by a matrix: the token says how much it wants to hear, before it has met any key.

## 5 · Far apart

Two more changes are a line each. First, must each layer know where a token stands? Let the last of six tokens ask the five before it, without positions, and then the same five in another order:
"""

# %%
x, order = torch.randn(6, 16), [3, 0, 4, 1, 2]
same = attend(x[5:], x[:5], x[:5]).output, attend(x[5:], x[order], x[order]).output
assert_close(*same)

# %% [markdown]
r"""
The five tokens in another order give the same output. So such a layer weighs tokens by content alone, at any distance. Every fourth layer of SmolLM3 and of Llama 4 is one, and the layers around it know the order.

Second, a key that is ahead of all others by 6: how much weight has it among 100 keys? What is left of it among 10,000? On the right its lead grows with the length, since all scores are multiplied by $\ln n / \ln 100$:
"""

# %%
for n in (100, 1_000, 10_000):
    scores = F.one_hot(torch.tensor(0), n) * 6.0
    grown = scores * math.log(n) / math.log(100)
    print(f"{n:6} keys: {scores.softmax(-1)[0]:.2f} {grown.softmax(-1)[0]:.2f}")

# %% [markdown]
r"""
The others are many, so «0.80» becomes «0.04». With a lead of $\ln n$ a key weighs as much as $n$ others. So a lead that grows with $\ln n$ need not fade. In Llama 4 and Ministral 3 they grow so, in steps, each several thousand positions long.

## In real work

Is the own token counted in a window? Mistral, Gemma and gpt-oss count it. ModernBERT, an encoder, says `local_attention: 128` and means 64 to either side, so 129. Does an error by one show? Here is a small model made from gpt-oss's page, with new weights, and the same weights with a window of one more:
"""

# %%
small = published.CONFIGS["gpt-oss 20B"] | {
    "num_hidden_layers": 2, "hidden_size": 48, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16,
    "intermediate_size": 16, "vocab_size": 50,
}  # fmt: skip
right, wrong = (new_model(small | {"sliding_window": w}) for w in (128, 129))
wrong.load_state_dict(right.state_dict())
text = torch.randint(50, (4, 300))  # four texts of 300 tokens
with torch.no_grad():
    one, other = right(text).logits, wrong(text).logits
same = (one.argmax(-1) == other.argmax(-1)).float()
print(f"best tokens that stay: {same[:, :128].mean():.0%}, {same[:, 128:].mean():.0%}")
print(f"logits up to {one.abs().max():.1f}, off by {(one - other).abs().max():.1f}")

# %% tags=["proof"]
assert same[:, :128].all() and 0.75 < same[:, 128:].mean() < 0.97
assert (one - other).abs().max() > 1

# %% [markdown]
r"""
In the first 128 positions nothing changes, since all tokens are in both windows. Behind them most of the best tokens stay, so a text may still look plausible. The logits show it at once. (These weights are random, so the sizes say nothing of gpt-oss.) So compare a loaded model with its original by logits, on a text longer than the window. (`python -m lesson_lib model FOLDER --against transformers` names the first layer and step that differ.)

## To carry away

`notebooks/carry/llm.py` opens a folder of Llama, Mistral, Qwen or SmolLM3, and writes. Its `attend` has shared keys, windows and sinks. Here it is beside yours, with 4 heads of queries, 2 of keys, and 10 tokens:
"""

# %%
from carry import llm as carried

q, sinks = torch.randn(1, 4, 10, 16), torch.randn(4)
k, v = torch.randn(2, 1, 2, 10, 16)
theirs, mask = carried.attend(q, k, v, 4, sinks), causal(10, window=4)
for h in range(4):  # two heads of queries ask one head of keys
    mine = sunk(q[0, h], k[0, h // 2], v[0, h // 2], mask, sinks[h].item())
    assert_close(mine, theirs[0, h])
show_source(carried.attend)

# %% [markdown]
r"""
`may` is True inside the window. Each head of keys is copied for the heads that share it, as in 11b. The sink is a last column of the bias, over a key and a value of zeros.

## A page never seen

Read one alone: Olmo 3 7B's, of 2025. There is no `head_dim`, so here the heads do split the token.
"""

# %%
page = {
    "model_type": "olmo3",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 8,
    "sliding_window": 4096,
    "rope_theta": 500_000,
    "intermediate_size": 11008,  # of the feed-forward network
    "vocab_size": 100278,
}

# %%
predict("unknown_page")

# %%
card(page, name="Olmo 3 7B")

# %% [markdown]
r"""
Does the page say all this? The norms do not stand there (OLMo norms after each sub-layer, a third place beside 06a's two): `card` knows them by the family's name. So it is with gpt-oss's sinks. Of a family that you do not know, look for `q_norm` or `sinks` among the names of the weights.

Olmo keeps 9.5 GiB, and gpt-oss 3 GiB for twice as many tokens: 1,024 numbers a token and layer, not 8,192. And so the page of the start is read: 24 layers; 64 heads, eight on one head of keys; every second layer hears 128 tokens. Each head has a sink, for when nothing fits, and no entry says so.

**To remember.** Today's models change what is compared, who is heard and what is kept. The function is that of 02a.

- Windows, shared keys and latent rows save memory; each layer may have its own.
- QK-norm takes lengths out of scores.
- A sink lets a head say little, and is a gate.
- Compare a loaded model with its original by logits.

**Sources.** Henry et al. 2020 (arXiv:2010.04245); Xiao et al. 2023 (2309.17453); DeepSeek-AI 2024 (2405.04434, 2412.19437); Qiu et al. 2025 (*Gated Attention for Large Language Models*); Nakanishi 2025 (2501.19399); the models' reports (2407.21783, 2310.06825, 2505.09388, 2408.00118, 2503.19786, 2508.10925).

**Next**: [13b · How does a model copy?](13b_induction.ipynb) On the core path: [13c · What is in a model on my disk?](13c_open_a_model.ipynb)
"""
