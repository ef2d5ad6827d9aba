# /// ideas
# [parts]
# says = "what a machine knows of its keys is an output and a sum of exponentials, for each query"
# motive = "What must each tell"
# shown = "MergeExplorer"
# action = 'predict("merged_of_two")'
#
# [merge]
# says = "two parts merge exactly: an output counts as much as the exponentials behind it"
# motive = "Four machines will do this"
# shown = "S_a + S_b"
# action = "merge_outputs"
#
# [logs]
# says = "sums of exponentials overflow, so one keeps their logarithms, and subtracts the larger first"
# motive = "Scores can be large"
# shown = "the sum overflows"
# action = "merge again"
#
# [ring]
# says = "ring attention: queries stay, keys and values travel, and what came is merged"
# motive = "how does every query meet every key"
# shown = "machines_figures.ring_rounds"
# action = "in_a_ring"
#
# [rounds]
# says = "p machines need p - 1 hand-overs"
# motive = "After how many"
# shown = "ring_rounds(4)"
# action = 'predict("hand_overs")'
#
# [memory]
# says = "each machine holds eight vectors for each of its tokens: memory falls as 1/p"
# motive = "What does the library"
# shown = "all_of_it / machines"
# action = 'predict("smallest_ring")'
#
# [products]
# says = "machines share the products and save none; sending is added"
# motive = "Four machines make it cheaper"
# shown = "of the products"
# action = "Count the products"
#
# [quadratic]
# says = "the memory wall is gone, the quadratic work stays: a billion tokens take months"
# motive = "And a billion tokens"
# shown = "5,241 hours"
# action = 'predict("billion_time")'
#
# [uneven]
# says = "under a causal mask later tokens work more; a piece from each end makes it even"
# motive = "Is one machine slower"
# shown = "ends.flip(0)"
# action = 'predict("who_works_most")'
#
# [one_gpu]
# says = "the same merge on one GPU: a long cache is cut, read side by side, and merged"
# motive = "one new token asks"
# shown = "carried.merge(joined"
# action = "in any order"
# ///

# %% [markdown]
r"""
{title}

A million tokens. Queries, keys, values and outputs of one layer, eight heads of width 64, take 7.6 GiB. You have machines with 4 GiB each, and attention lets every query meet every key. Can they do it together, exactly?

**Afterwards you can** put together answers to different keys; write attention in a ring; say what more machines buy, and what they do not.

{about}

<details><summary>中文摘要 · Chinese</summary>
一百万个词,而每台机器只有 4 GiB。这一课先把两台机器各自算出的注意力合并成一个准确的结果,再让键和值沿着一个环传递,使每个查询都遇到每个键。多台机器能换来什么,换不来什么?内存的墙没有了,平方的计算量还在。
</details>
"""

# %% tags=["imports"]
import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c11_efficient_attention import machines_figures
from lesson_lib.chapters.c11_efficient_attention.experiments import ring
from lesson_lib.chapters.c11_efficient_attention.merge_explorer import MergeExplorer
from lesson_lib.course import *
from lesson_lib.efficient import attend_part, merge
from lesson_lib.masks import causal
from lesson_lib.measure import operations

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
## 1 · Two machines, three keys

One query asks three keys. Their scores are ln 1, ln 3 and ln 12, and their values 10, 20 and 40. Machine A has the first two keys, machine B the third. Each does attention to what it has:

- A: $(1 \cdot 10 + 3 \cdot 20) / 4 = 17.5$. Its exponentials sum to 4.
- B: $12 \cdot 40 / 12 = 40$. Its sum is 12.
"""

# %%
predict("merged_of_two")

# %%
scores = torch.tensor([[1.0, 3.0, 12.0]]).log()
values = torch.tensor([[10.0], [20.0], [40.0]])
mixed = (scores.softmax(-1) @ values).item()
print(f"attention to all three: {mixed:.3f}")

# %%
MergeExplorer()

# %% [markdown]
r"""
The lever balances where the answer is. Move B's sum: at 4 the two count alike, and at 36 the answer is nearly B's. What must each tell the other, then? Its output, (n, d), and for each of the n queries the sum of its exponentials, (n,).

Four machines will do this with every query, so write it as a function. It is called a **merge**.
"""

# %% [markdown] tags=["exercise:merge_outputs"]
# Put two answers together. Each of the n queries has sums of its own.

# %% [markdown]
r"""
With outputs $o_a, o_b$ and sums $S_a, S_b$:

$$o = \frac{S_a\, o_a + S_b\, o_b}{S_a + S_b} \qquad\qquad S = S_a + S_b$$

$S_a\, o_a$ is A's part of the softmax's numerator, $\sum e^{\text{score}}\, \text{value}$, and $S_a$ its part of the denominator. The softmax has nothing else. Now on 240 tokens, half of the keys here and half there:
"""

# %%
q, k, v = torch.randn(3, 240, 8)


def answered(keys, values):
    """Outputs of these keys alone, and the sums of exponentials."""
    return attend(q, keys, values).output, (q @ keys.T / 8**0.5).exp().sum(1)


a, b = answered(k[:120], v[:120]), answered(k[120:], v[120:])
exact = attend(q, k, v).output
assert_close(yours("merge_outputs")(*a, *b), exact)
off = ((a[0] + b[0]) / 2 - exact).norm() / exact.norm()
print(f"merged: exact; by the mean of both: {100 * off:.0f} % off")

# %% [markdown]
r"""
**"Half of the keys here, half there: take the mean of both answers."** It is «18» % off, since as many keys need not have equal sums.

Scores can be large. Let us make the queries 100 times as long, and merge again, by the library's functions. `attend_part(q, k, v)` gives a **part**, an `output` and the logarithm of its sum, `log_sum`. `merge` takes two parts and gives one.
"""

# %%
long_a, long_b = ((100 * q @ keys.T / 8**0.5).exp().sum(1) for keys in (k[:120], k[120:]))
overflows = (long_a + long_b).isinf().sum().item()
print(f"for {overflows} of 240 queries the sum overflows")

first = attend_part(100 * q, k[:120], v[:120])
rest = attend_part(100 * q, k[120:], v[120:])
long_exact = attend(100 * q, k, v).output
assert_close(merge(first, rest).output, long_exact)
assert_close(merge(rest, first).output, long_exact)

# %% [markdown]
r"""
The sums are infinite in float32, and inf / inf would be nan. Their logarithms are not. `merge` does what yours does, but subtracts the larger logarithm $m$ before it takes an exponential: $\ln S = m + \ln(e^{\ln S_a - m} + e^{\ln S_b - m})$. Both orders give the exact outputs. (A part that has met no key has a sum of 0, so a log sum of $-\infty$, and gets no weight.)

## 2 · In a ring

Now four machines, each with a quarter of the tokens: their queries, keys and values. None can hold everything. So how does every query meet every key? Queries stay. A machine's keys and values, its *block*, are handed to the next machine, whose queries meet them there. Each machine merges the new part into the one that it has. After how many hand-overs is that done?
"""

# %%
predict("hand_overs")

# %%
machines_figures.ring_rounds(4)

# %% [markdown]
r"""
In the picture a machine is called a process. Go down the column of process 0: it meets keys 0, then 3, 2 and 1. The small tables show which queries have met which keys. After three hand-overs all cells are filled. This is **ring attention**.
"""

# %% [markdown] tags=["exercise:in_a_ring"]
# Four machines are four entries of a tuple: `blocks = x.chunk(4)` deals the rows out, and `blocks[-1:] + blocks[:-1]` hands each block to the next.

# %%
in_ring = yours("in_a_ring")
for machines in (1, 2, 3, 8):
    assert_close(in_ring(q, k, v, machines), exact)
print("1, 2, 3 and 8 machines: the same outputs as one attention")

# %% [markdown]
r"""
What does the library's ring hold for each token of a machine?

- its own query, key and value, for they are its input: 3 vectors
- the key and value of the block that it computes with: 2
- those of the next block, which arrive meanwhile: 2
- the output, into which each tile is merged (11b): 1

That makes eight. With eight heads of 64 numbers and 4 bytes a number, a token takes $8 \cdot 512 \cdot 4$ bytes = 16 KiB.
"""

# %%
predict("smallest_ring")

# %%
all_of_it = 8 * 512 * 4 * 10**6 / 2**30  # GiB
for machines in (4, 8, 16):
    print(f"a ring of {machines:2}: {all_of_it / machines:5.2f} GiB in each")

# %% [markdown]
r"""
**Four machines of 4 GiB hold what none of them can.** Twice as many hold half as much each.

## 3 · What stays

**"Four machines make it cheaper."** Count the products of your ring. What it sends we compute:
"""

# %%
alone = operations(lambda: attend(q, k, v))
for machines in (2, 4, 8):
    together = operations(lambda p=machines: in_ring(q, k, v, p))
    sent = (machines - 1) * (k.nbytes + v.nbytes) / 1024
    print(f"{machines} machines: {together / alone:.2f} of the products,", end=" ")
    print(f"{sent:.0f} KiB sent by all")

# %% [markdown]
r"""
The products are as many as in one machine, and sending is added: all together send $p - 1$ times the keys and values. So machines share the work, and they save none.

And a billion tokens? At 16 KiB each they fill 1,908 machines of 8 GiB. One thread of ours needs some ten hours for one layer at a million tokens, by a law that was fitted to shorter runs ([evidence](evidence/11_efficient_attention_evidence.ipynb), section 10).
"""

# %%
predict("billion_time")

# %% [markdown]
r"""
A billion is a thousand million, so there are a million times as many pairs. 1,908 machines with a thread each take $10 \cdot 1{,}000{,}000 / 1{,}908$ = 5,241 hours, seven months, for one layer. **A ring removes the memory limit. The quadratic work stays.**

## 4 · Who works most?

A language model has a causal mask, and at each hand-over all wait for the slowest machine. (Blocks of later keys are skipped.) Is one machine slower? Put 16 tokens in order on four machines, so that machine 0 has tokens 0 to 3:
"""

# %%
predict("who_works_most")

# %%
seen = causal(16)
in_order = torch.arange(16).unflatten(0, (4, 4))  # tokens of each machine
ends = torch.arange(16).unflatten(0, (8, 2))  # eight pieces of two tokens
both = torch.cat([ends[:4], ends.flip(0)[:4]], 1)  # piece 0 and 7, 1 and 6 ...
for name, dealt in {"in order": in_order, "a piece from each end": both}.items():
    print(f"{name}: {seen[dealt].sum((1, 2)).tolist()} pairs")
    for machine in (0, 3):
        with_blocks = [seen[dealt[machine]][:, block].sum().item() for block in dealt]
        print(f"    machine {machine} with blocks 0 to 3: {with_blocks}")

# %% [markdown]
r"""
In order, the last machine has 58 of 136 pairs, and the others wait for it. With a piece from each end all have as many, because each early piece is paired with a late one. Each block brings 8 pairs, or 10 at home, so all are ready at each hand-over, too.

## In real work

Now with processes that share no memory. `torchrun` starts three of them, `torch.distributed` carries the blocks, and the library's `attend_ring` does what you wrote. The trap: if one process fails, the others wait for its block for ever. So the run has a time limit. At its end it compares the outputs with those of one process:
"""

# %% tags=["nbval-ignore-output"]
ran = ring.torchrun(3, "-m", "lesson_lib", "ring", "--tokens", "1536", wait_s=180)
print(ran.stdout or ran.stderr[-1000:])

# %% tags=["proof"]
assert ran.returncode == 0, "the ring did not come home: read what it said above"
assert float(ran.stdout.split("largest difference ")[1].split()[0]) < 1e-5

# %% [markdown]
r"""
The largest difference is float32's rounding. Each process sent two blocks of 1 MiB, its own and the one that had come. It keeps more than section 2 counts: the block that comes, and a table of scores, small for long texts.

## To carry away

`notebooks/carry/long.py` has parts and merges in plain torch. There a part is three things, as in 11b: the largest score `top`, the sum, and the mixed values, both computed with $e^{\text{score} - \text{top}}$. So mixed / sum is the output, and top + ln sum the log sum. `partial` makes one of a single table of scores, and `attend_part` merges those of many tiles. With these functions your ring is this:
"""

# %%
from carry import long as carried


def ring_of(query, key, value, machines):
    q, k, v = (x.chunk(machines) for x in (query, key, value))
    have = [carried.attend_part(*own) for own in zip(q, k, v, strict=True)]
    for _ in range(machines - 1):
        k, v = k[-1:] + k[:-1], v[-1:] + v[:-1]
        came = [carried.attend_part(*now) for now in zip(q, k, v, strict=True)]
        have = [carried.merge(*two) for two in zip(have, came, strict=True)]
    return torch.cat([carried.output(part) for part in have])


assert_close(ring_of(q, k, v, 3), exact)
show_source(carried.partial, carried.merge, carried.output)

# %% [markdown]
r"""
You need no second machine to need a merge. When a model writes, one new token asks a long cache. A GPU deals out queries to its processors, and with one query most are idle. So the cache is cut, its pieces are read side by side, and the parts are merged, in any order (Flash-Decoding):
"""

# %%
new, cache_k, cache_v = torch.randn(1, 8), *torch.randn(2, 1000, 8)
cut = zip(cache_k.split(250), cache_v.split(250), strict=True)
pieces = [carried.attend_part(new, *piece) for piece in cut]
joined = pieces[2]
for other in (pieces[0], pieces[3], pieces[1]):
    joined = carried.merge(joined, other)
assert_close(carried.output(joined), attend(new, cache_k, cache_v).output)

# %% [markdown]
r"""
## A million tokens once more

7.6 GiB of tensors, machines of 4 GiB: four hold it, visiting blocks included, and the result is exact up to rounding.

**To remember.** What a machine knows of its keys is an output and a sum. Such parts merge exactly, in any order.

- An output counts as much as the exponentials behind it.
- In a ring queries stay, and keys and values travel, $p - 1$ times.
- Memory falls as $1/p$. Products are shared, not saved.
- Under a causal mask give each machine a piece from each end.

**Sources.** Liu, Zaharia & Abbeel 2023 (arXiv:2310.01889, ring attention); Brandon et al. 2023 (arXiv:2311.09431, balance). Laws, rings, claims: [evidence](evidence/11_efficient_attention_evidence.ipynb).

**Next**: [11d · Chosen keys](11d_chosen_keys.ipynb): can a cheap score choose the keys?
"""
