# %% [markdown]
r"""
{title}

A million tokens. Queries, keys, values and outputs of one layer, eight heads of width 64, take 7.6 GiB. You have machines with 4 GiB each, and attention lets every query meet every key. Can they do it together, exactly?

**Afterwards you can** put together answers to different keys; write attention in a ring; say what more machines buy, and what they do not.

{about}

<details><summary>中文摘要 · Chinese</summary>
一百万个词,而每台机器只有 4 GiB。这一课先把两台机器各自算出的注意力合并成一个准确的结果,再让键和值沿着一个环传递,使每个查询都遇到每个键。
多台机器能换来什么,换不来什么?内存的墙没有了,平方的计算量还在。
</details>
"""

# %%
import torch
from jaxtyping import Float
from torch import Tensor
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c11_efficient_attention import (
    machines_figures,
    ring_figures,
)
from lesson_lib.chapters.c11_efficient_attention.experiments import laws, ring
from lesson_lib.chapters.c11_efficient_attention.merge_explorer import MergeExplorer
from lesson_lib.chapters.c11_efficient_attention.scale_explorer import ScaleExplorer
from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
from lesson_lib.efficient import Partial, attend_part, merge
from lesson_lib.masks import causal, padding
from lesson_lib.measure import operations

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
## 1 · Two machines, three keys

The three keys of 11b have scores ln 1, ln 3 and now ln 12, and values 10, 20 and 40. Machine A has the first two, machine B the third. Each does attention to what it has:

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
Move B's sum: at 4 the lever balances halfway, at 36 nearly below B. So a machine tells two things of its keys: its outputs, (n, d), and a sum for each query, (n,).
"""

# %% [markdown] tags=["exercise:merge_outputs"]
# This is the **merge**. Each of the n queries has sums of its own.

# %% [markdown]
r"""
With outputs $o_a, o_b$ and sums $S_a, S_b$:

$$o = \frac{S_a\, o_a + S_b\, o_b}{S_a + S_b} \qquad\qquad S = S_a + S_b$$

$S_a\, o_a$ is A's part of the softmax's numerator, $\sum e^{\text{score}}\, \text{value}$, and $S_a$ its part of the denominator.
"""

# %%
_ = torch.manual_seed(0)
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
**"Half of the keys here, half there: take the mean of both answers."** No: «18» % off. As many keys are not equal sums.

Large exponentials overflow, so the library keeps logarithms of the sums: `attend_part(q, k, v)` gives a `Partial`, (output, log_sum), computed tile by tile as in 11b, and `merge(one, other)` subtracts the larger logarithm before it takes exponentials. The order does not matter:
"""

# %%
first = attend_part(q, k[:120], v[:120])
rest = attend_part(q, k[120:], v[120:])
assert_close(first.log_sum.exp(), a[1])
assert_close(merge(first, rest).output, exact)
assert_close(merge(rest, first).output, exact)

# %% [markdown]
r"""
## 2 · In a ring

Four machines, or processes, each with a quarter of the tokens: their queries, keys and values. Queries stay. A machine's keys and values, its *block*, are handed to the next one; the queries there meet them, and what they find is merged.
"""

# %%
predict("hand_overs")

# %%
machines_figures.ring_rounds(4)

# %% [markdown]
r"""
Go down the column of process 0: keys 0, then 3, 2, 1. The small tables show which queries have met which keys. This is **ring attention**.
"""

# %% [markdown] tags=["exercise:in_a_ring"]
# Machines are places in a tuple: `blocks = x.chunk(4)` deals the rows out, and `blocks[-1:] + blocks[:-1]` (tuples join) hands each block on.

# %%
in_ring = yours("in_a_ring")
for machines in (1, 2, 3, 8):
    assert_close(in_ring(q, k, v, machines), exact)
print("1, 2, 3 and 8 machines: the same numbers")

# %% [markdown]
r"""
How many vectors does the library's ring hold for each token of a machine's share? Own query, key and value: 3. The block in use (first a copy of one's own): 2. The block that arrives: 2. Output: 1. Eight, of eight heads with 64 numbers of 4 bytes: $8 \cdot 512 \cdot 4$ bytes = 16 KiB.
"""

# %%
predict("smallest_ring")

# %%
for machines in (1, 2, 3, 4, 8):
    gib = laws.ring_mib(10**6, machines) / 1024  # with sums and a tile
    print(f"a ring of {machines}: {gib:5.2f} GiB in each")
assert laws.machines_needed(10**6, 4 * 1024) == 4

# %% [markdown]
r"""
**Four machines of 4 GiB hold what none of them can.** (A ring of one receives nothing: two vectors fewer. So the second brings little.)

## 3 · In earnest

Now each is a process with memory of its own. `torchrun` starts them, `torch.distributed` carries the blocks, and the library's `attend_ring` does what you wrote, with a causal mask (later blocks are skipped) and gradients (blocks go round again, and theirs come home with them). Three, on your machine:
"""

# %% tags=["nbval-ignore-output"]
sizes = ("--tokens", "1536", "--causal", "--backward")
ran = ring.torchrun(3, "-m", "lesson_lib", "ring", *sizes, wait_s=180)
print(ran.stdout or ran.stderr[-1000:])

# %%
assert ran.returncode == 0, (
    "the ring did not come home: the cell above shows what it said"
)
difference = float(ran.stdout.split("largest difference ")[1].split()[0])
assert difference < 1e-5
ring_figures.memory_of_each()

# %% [markdown]
r"""
Outputs and gradients differ from one process's by rounding. Each sent seven blocks of 1 MiB: two forward, two backward, three of gradients. The figure is a stored run of 8,192 tokens; a mark is the process that held most. From two processes to four memory falls to 0.54 (0.57 with backward): a tile does not shrink.

## 4 · What stays

**"Four machines make it cheaper."** Count the products:
"""

# %%
alone = operations(lambda: attend(q, k, v))
for machines in (2, 4, 8):
    together = operations(lambda p=machines: in_ring(q, k, v, p))
    sent = (machines - 1) * (k.nbytes + v.nbytes) / 1024
    print(f"{machines} machines: {together / alone:.2f} of the products,", end=" ")
    print(f"{sent:.0f} KiB sent")

# %% [markdown]
r"""
As many products, and sending is added. Machines share the work; they save none. (While one computes, its next block comes.)

A billion tokens, 16 KiB each and the sums, fill 1,913 machines of 8 GiB.
"""

# %%
predict("billion_time")

# %%
ScaleExplorer(**ring_figures.scales())

# %% [markdown]
r"""
Seconds follow a law, $a + b\,n + c\,n^2$, fitted to runs on one thread. ≈: trust the unit, not the digit. (Linear kinds: 08c, 11a.) (*full*: 11b's fused kernel; dashed: one machine.) *Do:* set one million tokens and 4 GiB. Which kinds fit into one machine? How many machines does the ring need? *Then* a billion tokens, 8 GiB, 2,000 machines: how long?

<details><summary>Answers</summary>
None fits: the least takes ‹7.7› GiB. The ring needs 4. A billion: months.
</details>

**A ring removes the memory limit. The quadratic work stays.**

## In real work

Llama 3 learned from texts of 131,072 tokens, each cut over 16 GPUs. A GPU first collects all keys and values, few thanks to shared heads (11b). The trap that people meet: under a causal mask, work is uneven.
"""

# %%
seen = causal(16)  # 16 tokens, four machines
in_order = seen.unflatten(0, (4, 4)).sum((1, 2))
print("tokens in order:       ", in_order.tolist(), "pairs")
ends = torch.arange(16).unflatten(0, (8, 2))
both = torch.cat([ends[:4], ends.flip(0)[:4]], 1)  # first and last piece
print("a piece from each end: ", seen[both].sum((1, 2)).tolist())

# %% [markdown]
r"""
In order, the last machine has almost half of all pairs, and the others wait. With a piece from each end none does.

On one GPU a long cache is cut, its pieces are read side by side, and merged (Flash-Decoding). Two texts, one so short that its second piece is all padding:
"""

# %%
q1, keys, vals = torch.randn(2, 1, 8), *torch.randn(2, 2, 20, 8)
real = padding(torch.tensor([20, 7]), 20)  # (2, 1, 20)


def piece(cut):
    s = (q1 @ keys[:, cut].mT / 8**0.5).masked_fill(~real[..., cut], -torch.inf)
    out = attend(q1, keys[:, cut], vals[:, cut], mask=real[..., cut]).output
    return Partial(out, s.logsumexp(-1))


halves = piece(slice(0, 10)), piece(slice(10, 20))
print("second piece, log sum -inf:", halves[1].log_sum.isinf().tolist())
assert halves[1].output[1].abs().max() == 0  # it saw nothing
assert_close(merge(*halves).output, attend(q1, keys, vals, mask=real).output)

# %% [markdown]
r"""
A log sum of $-\infty$ is a sum of 0: it counts nothing. (Two of them: $-\infty + \infty$ is nan.) torch gives such parts, fast after `torch.compile`:

```python
from torch.nn.attention.flex_attention import AuxRequest, flex_attention

q, k, v = torch.randn(3, 1, 2, 20, 16)  # (b, h, n, d)
output, aux = flex_attention(q, k, v, return_aux=AuxRequest(lse=True))
log_sum = aux.lse  # log of the sum of exp, (b, h, n)
```

## A million tokens once more

7.6 GiB of tensors, machines of 4 GiB: four hold it, visiting blocks included, exact up to rounding.

**To remember.** What a machine knows of its keys is an output and a sum; such parts merge exactly, in any order.

- An output counts as much as the exponentials behind it.
- A ring: queries stay, keys and values travel, $p - 1$ times.
- Memory falls as $1/p$, from two machines on; products are shared, not saved.

**Sources.** Liu, Zaharia & Abbeel 2023 (arXiv:2310.01889, ring attention); Brandon et al. 2023 (arXiv:2311.09431, balance); Grattafiori et al. 2024 (arXiv:2407.21783, Llama 3). Laws, rings, claims: [evidence](evidence/11_efficient_attention_evidence.ipynb).

**Next**: [12 · Claims](12_claims.ipynb): what did the sources get right?
"""
