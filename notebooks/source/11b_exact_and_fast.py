# %% [markdown]
r"""
{title}

Three scores come one after the other: ln 1, ln 3, ln 4, with the values 10, 20, 40. Each is thrown away once seen. Can the output still be exact?

**Afterwards you can** compute attention piece by piece; say what a fast program saves, and what not; work out what a model keeps for its next token, and keep less.

{about}

<details><summary>中文摘要 · Chinese</summary>
softmax 不必同时看到所有分数:只要记住目前最大的分数、指数之和与加权的值,就能一块一块地算出完全相同的结果,而显存不再随长度的平方增长。
FlashAttention 就是这个循环:矩阵乘法一样多,搬运的数少得多。写作时真正占内存的是缓存:共享键、潜在向量与窗口使它变小。
</details>
"""

# %%
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c11_efficient_attention import figures
from lesson_lib.chapters.c11_efficient_attention.cost_explorer import (
    CostExplorer,
    Setting,
    cache_bytes,
)
from lesson_lib.chapters.c11_efficient_attention.stream_explorer import (
    StreamExplorer,
)
from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
from lesson_lib.device import on
from lesson_lib.efficient import attend_tiles
from lesson_lib.heads import Cache, MultiHeadAttention
from lesson_lib.masks import causal, padding
from lesson_lib.measure import operations, peak_mib

_ = torch.manual_seed(0)
warm_up()

# %%
StreamExplorer([1, 3, 4], [10, 20, 40])  # scores ln 1, ln 3, ln 4

# %% [markdown]
r"""
## 1 · What must be kept?

Move *seen* to 2, not yet to 3. Softmax takes the exponentials $e^{\text{score}}$, here 1 and 3. So the output is $(1 \cdot 10 + 3 \cdot 20) / 4 = 17.5$.
"""

# %%
predict("enough_to_keep")

# %%
scores = torch.tensor([1.0, 3.0, 4.0]).log()
values = torch.tensor([10.0, 20.0, 40.0])
total, mixed = 0.0, 0.0  # sums: exponentials; exponentials times values
for score, value in zip(scores, values, strict=True):
    total = total + score.exp()
    mixed = mixed + score.exp() * value
    print(f"sum {total:.0f}, output {mixed / total:.2f}")
assert_close(mixed / total, scores.softmax(0) @ values)

# %% [markdown]
r"""
«28.75» is softmax's own. Attention is a weighted mean, and a mean can be continued by whoever knows how much it weighs so far. Two numbers were kept.

## 2 · What if scores are large?

In the widget, add 100 to all. Softmax should not change, yet the output is `nan`, inf / inf: $e^{100}$ is $2.7 \cdot 10^{43}$, and float32 ends at $3.4 \cdot 10^{38}$. So softmax subtracts the largest score first. We know it only at the end!

Subtract the largest *so far*. When a larger one comes, multiply both sums by $e^{\text{old} - \text{new}}$, as if it had been subtracted from the start. By hand:

| | largest | sum | weighted values |
|---|---|---|---|
| after ln 1, ln 3 | ln 3 | 1/3 + 1 = 4/3 | 10/3 + 20 = 70/3 |
| shrunk by $e^{\ln 3 - \ln 4} = 3/4$ | ln 4 | 1 | «17.5» |
| plus ln 4 | ln 4 | 1 + 1 = 2 | «17.5» + 40 = 57.5 |

And 57.5 / 2 = «28.75». This is the **online softmax**. Choose *exp(score - largest)* in the widget: now 100 or 200 more do no harm.

## 3 · A tile at a time

For speed take many keys at once. A **tile** is a block of the table of scores, here 4 queries by 4 keys:
"""

# %%
figures.tile_order(n=16, tile=4, step=7)

# %% [markdown]
r"""
Tile 7 is in hand, 1 to 6 are gone. On the right stands what is kept of each query: `top`, the largest score so far, and the sum `total`, both (n, 1); the weighted values `mixed`, (n, d_v).
"""

# %% [markdown] tags=["exercise:one_tile"]
# Write what happens when a tile comes: the steps by hand, for n queries and many keys.

# %%
step = yours("one_tile")


def in_tiles(query, key, value, tile):
    top = torch.full((len(query), 1), -torch.inf)
    total = torch.zeros(len(query), 1)
    mixed = torch.zeros(len(query), value.shape[1])
    for start in range(0, len(key), tile):
        some = slice(start, start + tile)
        scores = query @ key[some].T / query.shape[1] ** 0.5
        top, total, mixed = step(top, total, mixed, scores, value[some])
    return mixed / total


q, k, v = torch.randn(3, 100, 8)  # 100 tokens, one head of width 8
for tile in (1, 7, 64, 100):
    assert_close(in_tiles(q, k, v, tile), attend(q, k, v).output)

# %% [markdown]
r"""
**"It is an approximation."** No: tiles of 1, 7, 64 and 100 keys give attend's numbers, up to rounding.

The library's loop, `attend_tiles`, cuts the queries, too, as in the picture. *Fused* is torch's: one compiled program, a **kernel** (not 07a's), for scores, softmax and mixture, which `attend(weights=False)` calls. `peak_mib` measures memory, `operations` counts the multiplications of matrix products.
"""

# %%
predict("twice_as_long")

# %%
for n in (1024, 2048, 4096):
    with on("cpu"):  # measured there on every machine
        x = torch.randn(1, 4, n, 32)  # four heads
        ways = {
            "table": lambda x=x: attend(x, x, x),
            "tiles": lambda x=x: attend_tiles(x, x, x),
            "fused": lambda x=x: attend(x, x, x, weights=False),
        }
        mib = [f"{name} {peak_mib(way):.1f}" for name, way in ways.items()]
        counts = {operations(way) for way in ways.values()}
    assert counts == {2 * 4 * n * n * 32}  # equal: scores, and mixtures
    print(f"{n} tokens, MiB:", ", ".join(mib))

# %% [markdown]
r"""
Twice the tokens: four times the memory with the table, less than twice with tiles, since a tile of 256 by 256 does not grow. At 4,096 tokens it is «514» MiB against «4» and «3»: scores and weights are $4 \cdot 4{,}096^2$ numbers of 4 bytes each, so 256 MiB twice, and 2 for the output. **Only seeing the weights costs the table.**

**FlashAttention** is this loop, written for a GPU. **"FlashAttention is fast because it computes less."** The assertion refutes it: unmasked, the products are as many. The shrinking comes on top; gradients recompute the weights, which nobody kept. But a tile fits into the GPU's small fast memory; the table travels to the large slow one and back.

## 4 · What is kept for the next token

A GPT writes token by token. Each new query asks the keys and values of all earlier tokens. These are computed once, kept in a **cache**, and read again for every new token.
"""

# %%
predict("cache_size")

# %% [markdown]
r"""
$$2 \cdot \text{layers} \cdot \text{heads} \cdot \text{width} \cdot \text{bytes} \cdot \text{tokens}$$

16 GiB for one conversation: 8.6 billion parameters at 2 bytes. Tiles do not help: all is wanted again.

Must each head have its own keys? In **multi-query attention** one head of keys and values serves all heads of queries, in **grouped-query attention** one serves a group:
"""

# %%
figures.shared_heads(8, [8, 2, 1])

# %% [markdown] tags=["exercise:with_shared_keys"]
# Write it for one text, x of shape (n, d_model); h_d and g_d are heads of queries, of keys, times width.

# %%
shared = yours("with_shared_keys")
layer = MultiHeadAttention(32, 8, n_key_heads=2)  # 8 heads of width 4
x = torch.randn(1, 10, 32)
names = ("w_query", "w_key", "w_value")
matrices = [getattr(layer, name).weight.T for name in names]
joined = shared(x[0], *matrices, n_heads=8)
assert_close(layer.w_output(joined), layer(x, x, x).output[0])

for key_heads in (8, 4, 2, 1):
    layer, cache = MultiHeadAttention(64, 8, n_key_heads=key_heads), Cache()
    with torch.no_grad():
        for new in torch.randn(1, 300, 64).split(1, dim=1):  # token by token
            layer(new, new, new, cache=cache)
    held = cache.key.nbytes + cache.value.nbytes
    sizes = Setting(layers=1, heads=8, key_heads=key_heads, width=8)
    assert held == cache_bytes(sizes, tokens=300, bytes_each=4)
    print(f"key heads {key_heads}: {held / 1024} KiB")

# %% [markdown]
r"""
`cache_bytes` is the formula, and the cache agrees, with heads *of keys*: $2 \cdot 8 \cdot 8 \cdot 4 \cdot 300$ bytes are «150» KiB. What does sharing cost? 06e's GPT, trained with 4, 2 and 1 heads of keys:
"""

# %%
figures.shared_bits()

# %% [markdown]
r"""
Half the cache costs 1.2 % more bits, a quarter ‹1.6› %, or 1.4 % at equal parameters. Three seeds cannot rank these.

## 5 · Latent keys, and your own model

**Latent keys** go further: keep one short vector a token, $c = x W_c$, of shape (n, r). Each head makes its keys from it, $k = c W_k$, and its values, $v = c W_v$. It need not even make them, since $q \cdot (c W_k) = (q W_k^T) \cdot c$:
"""

# %%
c = torch.randn(50, 8)  # kept: 8 numbers a token
w_k, w_v = torch.randn(2, 4, 8, 16)  # for each of four heads, (8, 16)
q = torch.randn(4, 1, 16)  # the next token asks
made = attend(q, c @ w_k, c @ w_v).output
scale = (8 / 16) ** 0.5  # attend divides by sqrt(8) now, not by sqrt(16)
asked = attend(scale * q @ w_k.mT, c[None], c[None]).output @ w_v
assert_close(made, asked, atol=1e-4, rtol=1e-4)

# %% [markdown]
r"""
8 numbers a token, not $2 \cdot 4 \cdot 16 = 128$. DeepSeek V3 keeps 512, and 64 more for positions, a rotary key (05b) for all heads: behind a turn for each place $W_k$ could not move over to $q$. The price: each head compares 512 + 64 numbers, where keys of its own would have 128 + 64.

A **window** keeps the last tokens only. Combine:
"""

# %%
CostExplorer()

# %% [markdown]
r"""
*Look:* choose each model; who crosses 1 GiB? DeepSeek V3 keeps the fewest numbers of a token, 576 a layer, and makes the most multiplications.

*Do:* choose Llama 3.1 8B and 131,072 tokens: 16 GiB. With all 32 layers, get below 1 GiB. What have you given up?

<details><summary>Answer</summary>
One head of keys leaves 2 GiB, the shortest latent vector 1.5. A window of 4,096 takes 512 MiB, at any length; what lies farther back is heard only through other layers, if at all.
</details>

## In real work

Llama 3, Mistral 7B, Qwen3 and Gemma 3 share keys in groups; DeepSeek V3 has latent keys. All can run in fused, exact kernels. vLLM, a server, keeps caches in blocks, like pages of memory.
"""

# %%
predict("wrong_neighbours")

# %%
sdpa = F.scaled_dot_product_attention
q = torch.randn(2, 8, 6, 16)  # two texts, 8 heads, 6 tokens
k, v = torch.randn(2, 2, 2, 6, 16)  # each with 2 heads
real = padding(torch.tensor([6, 4]), 6)  # the second text has 4 tokens
may = causal(6) & real[:, None]  # (2, 1, 6, 6), True = may look
output = sdpa(q, k, v, attn_mask=may, enable_gqa=True)  # in groups
k8, v8 = (x.repeat_interleave(4, dim=1) for x in (k, v))
assert_close(output, attend(q, k8, v8, mask=may).output)

others = [x.repeat(1, 4, 1, 1) for x in (k, v)]  # the bug: no error
assert not torch.allclose(sdpa(q, *others, attn_mask=may), output)

# two new tokens beside four cached ones
right = sdpa(q[:, :, 4:], k, v, attn_mask=may[:, :, 4:], enable_gqa=True)
assert_close(right, output[:, :, 4:])
wrong = sdpa(q[:, :, 4:], k, v, is_causal=True, enable_gqa=True)
assert_close(wrong[:, :, 0], v8[:, :, 0])  # token 4 sees key 0 alone

# %% [markdown]
r"""
`is_causal=True` takes new queries for the first ones; beside `attn_mask` torch refuses it. Build one mask, of the new rows only: a full one is the table again.

## The three scores once more
"""

# %%
kept = (torch.tensor([[-torch.inf]]), torch.zeros(1, 1), torch.zeros(1, 1))
for tile in (slice(0, 2), slice(2, 3)):  # ln 1 and ln 3, then ln 4
    kept = step(*kept, scores[None, tile] + 100, values[tile, None])
print(f"{(kept[2] / kept[1]).item():.2f}")
assert_close(kept[2] / kept[1], torch.tensor([[28.75]]))

# %% [markdown]
r"""
Two tiles, all scores 100 higher, and the same output.

**To remember.** Of its scores exact attention keeps a largest one, a sum and weighted values.

- When the largest rises, shrink both sums by $e^{\text{old} - \text{new}}$.
- Tiles: memory grows with $n$, products stay; a fast kernel moves less.
- The cache: 2 · layers · heads of keys · width · bytes · tokens.
- Groups share keys, latent vectors stand for them, windows forget.

**Sources.** Milakov & Gimelshein 2018 (arXiv:1805.02867); Dao et al. 2022 (arXiv:2205.14135); Shazeer 2019 (arXiv:1911.02150); Ainslie et al. 2023 (arXiv:2305.13245); DeepSeek-AI 2024 (arXiv:2405.04434, 2412.19437); Kwon et al. 2023 (arXiv:2309.06180). Seeds, seconds: [evidence](evidence/11_efficient_attention_evidence.ipynb).

**Next**: [11c · Many machines](11c_many_machines.ipynb), or on the core path [13a · Today](13a_today.ipynb).
"""
