# %% [markdown]
r"""
# 11c · What if no machine can hold it?

A million tokens. Queries, keys, values and outputs of one layer, eight heads of width 64, take 7.6 GiB. You have machines with 4 GiB each, and attention lets every query meet every key. Can they do it together, exactly?

**Afterwards you can** put together answers to different keys; write attention in a ring; say what more machines buy, and what they do not.

**Time** about 45 minutes. **You need** part [11b](11b_exact_and_fast.ipynb). **Exercises**: [exercises/11_efficient_attention](exercises/11_efficient_attention.ipynb).

<details><summary>中文摘要</summary>
一百万个词,没有一台机器装得下。这一课先把两台机器各自算出的注意力合并成一个准确的结果,再让键和值沿着一个环传递,使每个查询都遇到每个键。
多台机器能换来什么,换不来什么?内存的墙没有了,平方的时间还在。
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
print("attention to all three:", (scores.softmax(-1) @ values).item())

# %%
MergeExplorer()

# %% [markdown]
r"""
Move B's sum: at 4 the lever balances halfway, at 36 nearly below B. With outputs $o_a, o_b$ and sums $S_a, S_b$:

$$o = \frac{S_a\, o_a + S_b\, o_b}{S_a + S_b} \qquad\qquad S = S_a + S_b$$

since $S_a\, o_a$ is A's part of the softmax's numerator, $\sum e^{\text{score}}\, \text{value}$, and $S_a$ its part of the denominator. So a machine tells two things of its keys: its outputs, (n, d), and a sum for each query, (n,).
"""

# %% [markdown] tags=["exercise:merge_outputs"]
# This is the **merge**. Each of the n queries has sums of its own.

# %%
_ = torch.manual_seed(0)
q, k, v = torch.randn(3, 240, 8)


def answered(keys, values):
    """Outputs of these keys alone, and the sums of exponentials."""
    return attend(q, keys, values).output, (q @ keys.T / 8**0.5).exp().sum(1)


a, b = answered(k[:60], v[:60]), answered(k[60:], v[60:])
exact = attend(q, k, v).output
assert_close(yours("merge_outputs")(*a, *b), exact)
off = ((a[0] + b[0]) / 2 - exact).norm() / exact.norm()
print(f"merged: exact; by the mean of both: {100 * off:.0f} % off")

# %% [markdown]
r"""
**"Half of the keys here, half there: take the mean of both answers."** Here B has 180 of 240 keys; and even with halves each query has sums of its own.

Large exponentials overflow, so the library keeps logarithms of the sums. `attend_part(q, k, v)` gives a `Partial`, (output, log_sum), computed tile by tile as in 11b; `merge(one, other)` puts two of them together:
"""

# %%
first, rest = attend_part(q, k[:60], v[:60]), attend_part(q, k[60:], v[60:])
assert_close(first.log_sum.exp(), a[1])
assert_close(merge(first, rest).output, exact)

# %% [markdown]
r"""
## 2 · In a ring

Four machines, each with a quarter of the tokens: their queries, keys and values. Queries stay. Keys and values are handed to the next machine; the queries there meet them, and what they find is merged.
"""

# %%
predict("hand_overs")

# %%
machines_figures.ring_rounds(4)

# %% [markdown]
r"""
Go down the column of process 0: keys 0, then 3, 2, 1. The small tables show who has met whom, until all 16 blocks are done. This is **ring attention**.
"""

# %% [markdown] tags=["exercise:in_a_ring"]
# Machines are places in a tuple here: `x.chunk(4)` deals the rows out, and `k[-1:] + k[:-1]` hands each block on.

# %%
in_ring = yours("in_a_ring")
for machines in (1, 2, 3, 8):
    assert_close(in_ring(q, k, v, machines), exact)
print("1, 2, 3 and 8 machines: the same numbers")

# %% [markdown]
r"""
What does a machine hold of each of its own tokens? Query, key, value; the block in use, two vectors; the block that comes, two; an output. Eight vectors, with eight heads of 64 numbers of 4 bytes: $8 \cdot 512 \cdot 4$ bytes = 16 KiB.
"""

# %%
predict("smallest_ring")

# %%
for machines in (1, 2, 3, 4, 8):
    gib = laws.ring_mib(10**6, machines) / 1024
    print(f"a ring of {machines}: {gib:5.2f} GiB in each")
assert laws.machines_needed(10**6, 4 * 1024) == 4

# %% [markdown]
r"""
**Four machines of 4 GiB hold what none of them can.** (A ring of one has no block that comes: six vectors.)

## 3 · In earnest

Now each is a process with memory of its own. `torchrun` starts them, `torch.distributed` carries the blocks, and the library's `ring.attend_ring` does what you wrote, with a causal mask and gradients. Three processes, on your machine:
"""

# %% tags=["nbval-ignore-output"]
sizes = ("--tokens", "1536", "--causal", "--backward")
ran = ring.torchrun(3, "-m", "lesson_lib", "ring", *sizes, wait_s=180)
print(ran.stdout or ran.stderr[-1000:])

# %%
difference = float(ran.stdout.split("largest difference ")[1].split()[0])
assert difference < 1e-5
ring_figures.memory_of_each()

# %% [markdown]
r"""
"Largest difference" compares outputs and gradients with `attend` in one process. The figure is a stored run of 8,192 tokens; a mark is the process that held most. From two processes to four its memory falls to 0.54, nearly half: a tile does not shrink.

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
As many products, and sending is added. Machines share the work; they save none.

Now a billion tokens, a library. Of 8 GiB machines it takes 1,913.
"""

# %%
predict("billion_time")

# %%
ring_figures.explorer()

# %% [markdown]
r"""
Seconds follow a law, $a + b\,n + c\,n^2$, fitted to runs on one processor thread; ≈ marks what lies far beyond them. There trust the power, not the factor. (Linear kinds: 08c, 11a.) *Do:* set one million tokens and 4 GiB. Which kinds fit into one machine? From how many machines on does the ring? *Then* a billion tokens, 8 GiB, 2,000 machines: how long?

<details><summary>Answers</summary>
None fits: the least takes 7.7 GiB. The ring, from 4 on. A billion: seven months.
</details>

**A ring removes the memory limit. The quadratic time stays.**

## In real work

Llama 3 was trained on texts of 131,072 tokens with each text cut over 16 GPUs. They gather all keys first: few, since heads share them (11b). The bug that people meet: under a causal mask, who has work?
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
In order, the last machine has almost half of all pairs, and the others wait for it. With a piece from the front and one from the back all have the same.

On one GPU the merge works, too: a long cache is cut, the pieces are read side by side, then merged (Flash-Decoding). Two texts, one of them short, so that its second piece is all padding:
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
assert_close(merge(*halves).output, attend(q1, keys, vals, mask=real).output)

# %% [markdown]
r"""
A log sum of $-\infty$ is a sum of 0: it counts nothing. (Subtract $-\infty$ from $-\infty$, and all is nan.) torch gives such parts, compiled for GPUs:

```python
from torch.nn.attention.flex_attention import AuxRequest, flex_attention

q, k, v = torch.randn(3, 1, 2, 20, 16)  # (b, h, n, d)
output, aux = flex_attention(q, k, v, return_aux=AuxRequest(lse=True))
log_sum = aux.lse  # (b, h, n)
```

## A million tokens once more

7.6 GiB of tensors, machines of 4 GiB: four of them do it, to the last digits. Each computes two hours and a half.

**To remember.** What a machine knows of its keys is an output and a sum; such parts merge exactly, in any order.

- An output counts as much as the exponentials behind it.
- A ring: queries stay, keys and values travel, $p - 1$ times.
- Memory falls as $1/p$; the products are shared, not saved.

**Sources.** Liu, Zaharia & Abbeel 2023 (arXiv:2310.01889, ring attention); Brandon et al. 2023 (arXiv:2311.09431, balanced rings); Grattafiori et al. 2024 (arXiv:2407.21783, Llama 3). Laws, rings, claims: [evidence](evidence/11_efficient_attention_evidence.ipynb).

**Next**: [12 · Claims](12_claims.ipynb): what did the sources get right?
"""
