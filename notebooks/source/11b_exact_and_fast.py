# /// ideas
# [continued]
# says = "a weighted mean can be continued by whoever keeps it and the sum of its weights"
# motive = "Each is thrown away once seen"
# shown = "total = total + score.exp()"
# action = 'predict("enough_to_keep")'
#
# [online]
# says = "online softmax: subtract the largest score so far; when it rises, both sums shrink by exp(old - new)"
# motive = "We know it only at the end"
# shown = "shrunk by"
# action = "add 100 to all"
#
# [tile]
# says = "a tile of scores at a time; of each query only top, total and mixed are kept"
# motive = "One key at a time is slow"
# shown = "figures.tile_order"
# action = "one_tile"
#
# [exact]
# says = "tiles of any size give softmax's own output, up to rounding"
# motive = "Each step throws scores away"
# shown = "for tile in (1, 7, 64, 100):"
# action = 'yours("one_tile")'
#
# [memory]
# says = "with tiles memory grows with n, not n², and the multiplications are as many"
# motive = "What is gained"
# shown = "peak_mib"
# action = 'predict("twice_as_long")'
#
# [traffic]
# says = "a fused kernel is fast because it moves fewer bytes between slow and fast memory"
# motive = "Can equal multiplications take less time"
# shown = "table = 4 * one_table"
# action = 'predict("bytes_moved")'
#
# [cache]
# says = "what is kept for the next token: 2 · layers · heads of keys · width · bytes · tokens"
# motive = "a new token asks all earlier ones"
# shown = "2 \\cdot \\text{layers}"
# action = 'predict("cache_size")'
#
# [shared]
# says = "groups of query heads share a head of keys and values: the cache shrinks, the queries stay"
# motive = "Must each head have its own keys"
# shown = "figures.shared_heads"
# action = "with_shared_keys"
#
# [neighbours]
# says = "neighbours share: repeat_interleave; repeat fits, too, and half of the heads meet strange keys"
# motive = "Which query heads share"
# shown = "repeat_interleave(4"
# action = 'predict("wrong_neighbours")'
#
# [hidden_tile]
# says = "where a mask hides a row's first tile, -inf less -inf is nan: never go below the lowest finite number"
# motive = "A mask may hide a whole tile"
# shown = "mask=may, tile=32"
# action = "show_source(carried.partial)"
#
# [merge]
# says = "two partial results merge exactly, in any order: largest, sum and weighted values are enough"
# motive = "says which part came first"
# shown = "carried.merge"
# action = "on paper"
# ///

# %% [markdown]
r"""
{title}

Three scores come one after the other: ln 1, ln 3, ln 4, with the values 10, 20, 40. Each is thrown away once seen. Can the output of softmax still be exact?

**Afterwards you can** compute attention in pieces and join them; say what a fast program saves, and what not; work out what a model keeps for its next token, and keep less.

{about}

<details><summary>中文摘要 · Chinese</summary>
softmax 不必同时看到所有分数:只要记住目前最大的分数、指数之和与加权的值,就能一块一块地算出完全相同的结果,而内存不再随长度的平方增长。
FlashAttention 就是这个循环:矩阵乘法一样多,搬运的字节少得多。写作时真正占内存的是缓存:几个头共享键,它就变小。
</details>
"""

# %% tags=["imports"]
import torch
import torch.nn.functional as F

from lesson_lib.attention import attend
from lesson_lib.chapters.c11_efficient_attention import figures
from lesson_lib.chapters.c11_efficient_attention.stream_explorer import (
    StreamExplorer,
)
from lesson_lib.course import *
from lesson_lib.device import on, quick
from lesson_lib.efficient import attend_tiles
from lesson_lib.masks import window
from lesson_lib.measure import operations, peak_mib, seconds_in_turn

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
at_once = scores.softmax(0) @ values
print(f"softmax of all three at once: {at_once:.2f}")

# %% [markdown]
r"""
Both ways give «28.75». The output of attention is a weighted mean. Whoever keeps a mean and the sum of its weights can continue it, so two numbers are enough.

## 2 · What if scores are large?

In the explorer, add 100 to all. Softmax should not change, yet the output is `nan`: $e^{100}$ is $2.7 \cdot 10^{43}$, float32 ends at $3.4 \cdot 10^{38}$, and inf / inf is not a number. So softmax subtracts the largest score from all of them first. We know it only at the end!

Therefore subtract the largest *so far*. When a larger one comes, multiply both sums by $e^{\text{old} - \text{new}}$. Then they are what they would be if the new one had been subtracted from the start. By hand:

| | largest | sum | weighted values |
|---|---|---|---|
| after ln 1, ln 3 | ln 3 | 1/3 + 1 = 4/3 | 10/3 + 20 = 70/3 |
| shrunk by $e^{\ln 3 - \ln 4} = 3/4$ | ln 4 | 1 | «17.5» |
| plus ln 4 | ln 4 | 1 + 1 = 2 | «17.5» + 40 = 57.5 |

And 57.5 / 2 = «28.75». This is the **online softmax**. In the explorer choose *exp(score - largest)*: now 100 or 200 more do no harm.

## 3 · A tile at a time

One key at a time is slow, so take many at once. A **tile** is a block of the table of scores, here 4 queries by 4 keys:
"""

# %%
figures.tile_order(n=16, tile=4, step=7)

# %% [markdown]
r"""
Tile 7 is in hand, and tiles 1 to 6 are gone. On the right stands what is kept of each query: `top`, the largest score so far, and `total`, the sum, both $(n, 1)$; and `mixed`, the weighted values, $(n, d_v)$.
"""

# %% [markdown] tags=["exercise:one_tile"]
# Write what happens when a tile comes: the steps by hand, for n queries and many keys.

# %% [markdown]
r"""
The loop around your step takes the keys `tile` by `tile`, and divides once, at the end:
"""

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


q, k, v = torch.randn(60, 8), torch.randn(100, 8), torch.randn(100, 5)
for tile in (1, 7, 64, 100):
    off = (in_tiles(q, k, v, tile) - attend(q, k, v).output).abs().max()
    print(f"tiles of {tile:3} keys: off by {off:.5f}")

# %% [markdown]
r"""
**"Each step throws scores away, so it is an approximation."** Nothing is lost: whatever the tile, the outputs are attend's, up to rounding.

## 4 · What is saved?

What is gained? We compare three ways. The *table* is `attend`, which holds all scores. *Tiles* is the library's `attend_tiles`: your loop, and the queries are cut, too, into tiles of 256 by 256. *Fused* is torch's own program, which `attend(weights=False)` calls. It computes scores, softmax and mixture at one go, and is called a **fused kernel**. `peak_mib` gives the most memory that a call holds at a time, in MiB ($2^{20}$ bytes). `operations` counts multiplications.
"""

# %%
predict("twice_as_long")

# %%
for n in (1024, 2048, 4096):
    with on("cpu"):  # measured there on every machine
        x = torch.randn(1, 4, n, 32)  # four heads of width 32
        ways = {
            "table": lambda x=x: attend(x, x, x),
            "tiles": lambda x=x: attend_tiles(x, x, x),
            "fused": lambda x=x: attend(x, x, x, weights=False),
        }
        mib = [f"{name} {peak_mib(way):.1f}" for name, way in ways.items()]
        counts = {operations(way) for way in ways.values()}
    assert len(counts) == 1  # equal for all three
    print(f"{n} tokens, MiB:", ", ".join(mib))
    print(f"    million multiplications: {counts.pop() / 1e6:,.0f}, each way")

# %% [markdown]
r"""
With twice the tokens the table takes four times the memory. At 4,096 tokens scores and weights are $4 \cdot 4{,}096^2$ numbers of 4 bytes each, twice 256 MiB, and the output takes 2: «514» MiB. With tiles it is «4»: 2 for the output, which grows with $n$, and some 2 for a tile, which does not. **With tiles memory grows with $n$, not with $n^2$, and the multiplications are as many.**

Can equal multiplications take less time? A processor computes with what lies in a small fast memory (a CPU's cache of some MiB, a GPU's SRAM of some hundred KiB). All else waits in a large slow one (RAM, or a GPU's HBM), and each byte must be moved. So count the bytes. The table's way writes the scores, reads them for softmax, writes the weights, and reads them for the mixture. A tile stays in the fast memory.
"""

# %%
predict("bytes_moved")

# %%
n, heads, width, size = 4096, 4, 32, 4  # 4 bytes a number
one_table = size * heads * n * n
rows = size * heads * n * width  # all queries, or keys, values, outputs
table = 4 * one_table + 4 * rows
tiles = 2 * rows + n // 256 * 2 * rows  # keys, values: for 16 rows of tiles
for name, moved in {"table": table, "tiles": tiles}.items():
    print(f"{name}: {moved / 2**20:,.0f} MiB moved")

# %% [markdown]
r"""
Queries and outputs move once, keys and values once for each of 16 rows of tiles: together a fifteenth. What is it worth on your machine? `seconds_in_turn` gives the seconds of each call. A copy of 128 MiB moves 256, since it reads and writes. Beside it we time one tile of 4,096, which is the table again, and tiles of 256: the same loop, and only the tile's size differs.
"""


# %% tags=["nbval-ignore-output"]
@on("cpu")
@torch.no_grad()
def timed():
    source, x = torch.randn(2**25), torch.randn(1, 4, n, 32)
    target = torch.empty_like(source)
    calls = {
        "copy": lambda: target.copy_(source),
        "one tile": lambda: attend_tiles(x, x, x, tile=n),
        "tiles of 256": lambda: attend_tiles(x, x, x, tile=256),
        "fused": lambda: attend(x, x, x, weights=False),
    }
    return seconds_in_turn(calls, repeats=3)  # of each call


taken = timed()
speed = 2**28 / taken["copy"]  # bytes a second
print(f"this machine moves {speed / 2**30:.0f} GiB a second")
for name, moved in {"one tile": table, "tiles of 256": tiles}.items():
    print(f"{name:12}: at least {moved / speed:.3f} s for moving, of {taken[name]:.2f} s")
print(f"fused       : {taken['fused']:.2f} s")

# %% tags=["proof"]
assert quick() or 15 * tiles / speed < table / speed < taken["one tile"]

# %% [markdown]
r"""
On our processor tiles of 256 take about ‹0.6› of the time, although they multiply as often. At the pace of a copy, the bytes that they save are worth less than half of that gain. (Our loop touches its scores more than four times, so it moves more than this.) On a GPU arithmetic is so cheap that attention mostly waits for memory: it is **memory-bound**.

**FlashAttention** is this loop as a fused kernel for GPUs. **"FlashAttention is fast because it computes less."** In its paper (1,024 tokens on one GPU, forward and backward) it makes ‹75.2› billion additions and multiplications in place of ‹66.6›: the weights were not kept, so for the gradients the scores are multiplied once more. But it moves ‹4.4› GB in place of ‹40.3›, and takes ‹7.3› ms in place of ‹41.7›.

## 5 · What is kept for the next token

A GPT writes token by token, and a new token asks all earlier ones and itself. Their keys and values do not change, so they are computed once and kept in a **cache**. A GiB is $2^{30}$ bytes.
"""

# %%
predict("cache_size")

# %% [markdown]
r"""
$$\text{cache} = 2 \cdot \text{layers} \cdot \text{heads} \cdot \text{width} \cdot \text{bytes} \cdot \text{tokens}$$

One conversation takes 16 GiB, as much as 8.6 billion parameters of 2 bytes. Tiles do not help, because all of it is wanted again at the next token.

Must each head have its own keys? In **multi-query attention** one head of keys and values serves all query heads; in **grouped-query attention** one serves a group:
"""

# %%
figures.shared_heads(8, [8, 2, 1])

# %% [markdown]
r"""
On the left each of 8 heads has its own keys and values, and 16 arrays are kept. In the middle four query heads share, and 4 are kept. On the right all share, and 2 are kept. Queries are not kept at all.
"""

# %% [markdown] tags=["exercise:with_shared_keys"]
# Without a mask, write it for one text $x$ of shape (n, d_model). h_d is the number of query heads times width, g_d is the number of heads of keys times width.

# %% [markdown]
r"""
Torch's own function shares, too, if it is told `enable_gqa=True`. It takes (batch, heads, n, width):
"""

# %%
share = yours("with_shared_keys")
x, w_q = torch.randn(300, 64), torch.randn(64, 8 * 4)  # 8 query heads of width 4


def heads_of(table):  # (n, h * 4) to (1, h, n, 4)
    return table.unflatten(1, (-1, 4)).transpose(0, 1)[None]


for key_heads in (8, 2, 1):
    w_k, w_v = torch.randn(2, 64, key_heads * 4)
    kept = x @ w_k, x @ w_v
    by_torch = F.scaled_dot_product_attention(
        heads_of(x @ w_q), *map(heads_of, kept), enable_gqa=True
    )
    ours = share(x, w_q, w_k, w_v, n_heads=8)
    assert torch.allclose(heads_of(ours), by_torch, atol=1e-4)
    kib = sum(table.nbytes for table in kept) / 1024
    print(f"heads of keys: {key_heads}, kept of 300 tokens: {kib:.1f} KiB")

# %% [markdown]
r"""
Your function agrees with torch's. A quarter of the heads of keys keeps a quarter of the bytes: in the formula *heads* means heads **of keys**. In a small GPT, 06e's, the price is small: it needs ‹1.2› % more bits a character with half the cache ([evidence](evidence/11_efficient_attention_evidence.ipynb)).

## In real work

Which query heads share? Models are trained with neighbours: of 8 query heads 0 to 3 use key head 0, and 4 to 7 key head 1.
"""

# %%
predict("wrong_neighbours")

# %%
w_k, w_v = torch.randn(2, 64, 2 * 4)
q8, k2, v2 = (heads_of(x @ w) for w in (w_q, w_k, w_v))
wanted = heads_of(share(x, w_q, w_k, w_v, n_heads=8))
neighbours = [t.repeat_interleave(4, dim=1) for t in (k2, v2)]
strangers = [t.repeat(1, 4, 1, 1) for t in (k2, v2)]  # 0 1 0 1 0 1 0 1
for name, pair in {"interleaved": neighbours, "repeated": strangers}.items():
    off = (attend(q8, *pair).output - wanted).abs().amax((0, 2, 3))
    print(f"{name:11} wrong heads: {(off > 1e-3).nonzero().flatten().tolist()}")

# %% [markdown]
r"""
With `repeat` heads 1, 3, 4 and 6 meet another group's keys, and no shape complains. `repeat_interleave` has all of them right. So compare a loaded model with its original, number by number, before you use it.

## To carry away

`notebooks/carry/long.py` has tiles, windows and caches in plain torch. There your step is two functions. `partial` makes `top`, `total` and `mixed` of one tile alone, and `merge` joins two such results. (`detach`: the output does not depend on what is subtracted, so `top` needs no gradient.)
"""

# %%
from carry import long as carried

show_source(carried.partial)

# %%
show_source(carried.merge)

# %% [markdown]
r"""
A mask may hide a whole tile. If it is a row's first one, your loop subtracts -inf from -inf, which is nan, and a nan stays. So `partial` raises a largest of -inf to float32's lowest number, $-3.4 \cdot 10^{38}$: a hidden tile then adds $e^{-\infty} = 0$. With a window of 15 to each side, rows from 47 on see none of the first 32 keys:
"""

# %%
may, y = window(100, 15), torch.randn(100, 8)
tiled = carried.attend_tiles(y, y, y, mask=may, tile=32)
print(f"off by {(tiled - attend(y, y, y, mask=may).output).abs().max():.5f}")

# %% [markdown]
r"""
## The three scores once more

Nothing in `merge` says which part came first. So let one machine see ln 1 and ln 3, and another ln 4, all 100 higher. Write on paper what each one keeps. Then merge them, in either order:
"""

# %%
one_part = carried.partial(scores[None, :2] + 100, values[:2, None])
other_part = carried.partial(scores[None, 2:] + 100, values[2:, None])
for one, other in ((one_part, other_part), (other_part, one_part)):
    top, total, mixed = carried.merge(one, other)
    print(f"sum {total.item():.2f}, output {(mixed / total).item():.2f}")

# %% [markdown]
r"""
The first machine has ln 3 + 100, 4/3 and 70/3, the second ln 4 + 100, 1 and 40. The first one's sums shrink by 3/4, to 1 and 17.5. Together they are 2 and 57.5: «28.75», in either order.

**To remember.** Exact attention need not keep its scores: of each row the largest, the sum of exponentials and the weighted values are enough.

- When the largest rises, both sums shrink by $e^{\text{old} - \text{new}}$. So two parts merge, in any order.
- With tiles memory grows with $n$. The multiplications are as many; fewer bytes are moved.
- The cache: 2 · layers · heads of keys · width · bytes · tokens.
- Neighbouring query heads share keys, and only heads of keys are kept.

**Sources.** Milakov & Gimelshein 2018 (arXiv:1805.02867); Dao et al. 2022 (arXiv:2205.14135; its numbers: figure 2); Shazeer 2019 (arXiv:1911.02150); Ainslie et al. 2023 (arXiv:2305.13245). Seeds, gradients, seconds: [evidence](evidence/11_efficient_attention_evidence.ipynb).

**Next**: [11c · Many machines](11c_many_machines.ipynb), or on the core path [13a · Today](13a_today.ipynb).
"""
