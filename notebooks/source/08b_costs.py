# %% [markdown]
r"""
# 08b · What does each layer cost?

A text of 512 tokens comes in. Two layers read it. One of them multiplies eight times as much as the other. Which is done first?

**Afterwards you can** count products, steps and paths of a layer; say from two numbers of a machine which layer is faster there; say why attention came in 2017.

**Time** about 45 minutes. **You need** part [08a](08a_remembering.ipynb). **Exercises**: [exercises/08_attention_vs_rnn](exercises/08_attention_vs_rnn.ipynb).

<details><summary>中文摘要</summary>
乘法次数、先后步数、路径长度和秒数是四张不同的表。512 个词元时,注意力的乘法是 RNN 的八倍,却先算完:RNN 要等 512 次,每次等待抵得上几十万次乘法。
机器可以用两个数描述:一次等待多久,每秒做多少次乘法。乘法便宜、等待不便宜的机器(GPU)普及之后,注意力才合算;一批句子很多时,差别又只剩乘法次数。
</details>
"""

# %%
import torch
import torch.nn.functional as F
from IPython.display import Image
from jaxtyping import Float
from torch import Tensor, nn

from lesson_lib.attention import attend
from lesson_lib.chapters.c08_attention_vs_rnn import (
    costs,
    costs_figures,
    paths_figures,
)
from lesson_lib.chapters.c08_attention_vs_rnn.experiments import paths
from lesson_lib.checks import check, hint, predict, solution, warm_up
from lesson_lib.device import on
from lesson_lib.experiments.costs import seconds
from lesson_lib.measure import operations, seconds_in_turn

_ = torch.manual_seed(0)
warm_up()

# %%
n, d = 512, 64
text = torch.randn(1, n, d)
rnn = nn.RNN(d, d, batch_first=True)
by_rnn = operations(lambda: rnn(text))
by_attention = operations(lambda: attend(text, text, text, weights=False))
print(f"RNN {by_rnn:,} products, attention {by_attention:,}: {by_attention // by_rnn}×")

# %% [markdown]
r"""
`operations` counts the multiplications of all matrix products that torch runs. Attention stands alone here: tokens are queries, keys and values; its projections come later. (`weights=False`: only the output is wanted, not the table of weights.)
"""

# %%
predict("whose_clock")

# %% tags=["measured"]
lengths, names = [64, 128, 256, 512, 1024, 2048, 4096], ("RNN", "attention alone")
taken = {name: [] for name in names}
with on("cpu"):
    for length in lengths:
        for name, one in seconds(names, length, d, rounds=5).items():
            taken[name].append(one)
products = {
    "RNN": [2 * length * d**2 for length in lengths],
    "attention alone": [2 * length**2 * d for length in lengths],
}
costs_figures.products_and_seconds(lengths, products, taken)

# %% [markdown]
r"""
Left: at 512 attention is eight times as high. Right: it is the lower curve, on the machine that made this page. The curves cross at 64 tokens in products, and near 2,000 in seconds. **"More products take more time."** Not here. So what else is paid?

## 1 · Products

Begin with what is known. An RNN multiplies each token by $W$ and each state by $U$, both $d \times d$: $2nd^2$. Attention has $n^2$ scores of $d$ products each, and mixes $n$ values of $d$ numbers for each of $n$ outputs: $2n^2d$. They are equal at $n = d$. A layer of attention also has four projections, $4nd^2$; an LSTM is four RNNs side by side, $8nd^2$.

**"Attention is expensive, for $n^2$ is more than $n$."** A sentence of 50 tokens, in vectors of 512:
"""

# %%
m, wide = 50, 512
lstm = 8 * m * wide**2
layer = 4 * m * wide**2 + 2 * m**2 * wide
print(f"LSTM {lstm:,}, layer of attention {layer:,}")

# %% [markdown]
r"""
The LSTM multiplies nearly twice as much: $n$ is far below $d$.

## 2 · Steps and paths

Now look at what waits for what. A box is a state, or an output; its number says in which step it can be computed at the earliest.
"""

# %%
beside = {name: paths.network(name, 8) for name in ("RNN", "self-attention")}
Image(
    paths_figures.film(beside),
    alt="An RNN lights its boxes one after the other, self-attention all at once.",
)

# %% [markdown]
r"""
**Steps** are the boxes on the longest chain anywhere: they must come one after the other, however many processors there are. A **path** leads from one input to one output; take the shortest, for the pair that is farthest apart. The RNN has 8 and 8: $x_0$ passes eight states. Attention has 1 and 1. (One box holds a whole sum over keys.)
"""

# %%
predict("stack_of_seven")

# %%
print(f"{'8 tokens':24}steps  path")
for name in (
    *("RNN", "BiRNN", "convolutions", "dilated convolutions"),
    *("window attention", "self-attention"),
):
    found = paths.counted(paths.network(name, 8))
    print(f"{name:24}{found.steps:5}{found.path:6}")

# %% [markdown]
r"""
A BiRNN reads from both sides and joins the two: 9. *Dilated* taps stand twice as far apart in each layer: 1 + 2 + 4 = 7 places in 3 layers. A window of two tokens to each side needs 4 layers. In the famous table of 2017 a convolution has $O(1)$ steps beside its path of many layers: the steps are those of one layer, the path is that of a stack.

Part 08a showed what a path costs: a factor of the gradient for each box. What does a step cost? Write a layer as a list of **stages**, each with its number of products. A stage starts when the one before is done.
"""

# %% [markdown] tags=["exercise:rnn_stages"]
# An RNN has $n + 1$ stages. Which of its products wait?

# %%
stages_of = rnn_stages if check(rnn_stages).passed else costs.rnn_stages
for name, some in {
    "RNN": stages_of(n, d, 1),
    "attention": costs.attention_stages(n, d, projections=False),
}.items():
    print(f"{name}: {len(some)} stages, {int(some.sum()):,} products")

# %% [markdown]
r"""
Two stages, scores and mixture, hold all of attention's products. The RNN's come in 513.

## 3 · A machine of two numbers

Suppose that a stage takes a fixed **wait** to start, and then multiplies at a **rate**:

$$\text{seconds} = \sum_\text{stages} \Big( \text{wait} + \frac{\text{products}}{\text{rate}} \Big)$$
"""

# %% [markdown] tags=["exercise:time_on"]
# Write it.

# %% [markdown]
r"""
Both numbers can be measured here: an RNN of width 1 does hardly anything but wait; one large product of 512 × 512 matrices hardly waits.
"""

# %% tags=["nbval-ignore-output"]
thin, square = nn.RNN(1, 1, batch_first=True), torch.randn(512, 512)
steps = torch.randn(1, 1000, 1)
with torch.no_grad():
    calls = {"wait": lambda: thin(steps), "rate": lambda: square @ square}
    found = seconds_in_turn(calls, repeats=7)
wait, rate = found["wait"] / 1000, 512**3 / found["rate"]
print(f"a wait {wait * 1e6:.1f} microseconds, {rate / 1e9:.0f} products a nanosecond")
print(f"one wait costs as much as {wait * rate:,.0f} products")
print("a step of the RNN has", d * d, "products")

# %% [markdown]
r"""
On the machine that made this page one wait costs as much as some 300,000 products, and a step of the RNN has 4,096. It spends its time waiting. Do the two numbers predict the clock?
"""

# %% tags=["measured"]
time = time_on if check(time_on).passed else costs.time_on


def predicted(wait, rate, lengths):
    stages = {
        "RNN": [stages_of(n, d, 1) for n in lengths],
        "attention alone": [costs.attention_stages(n, d, False) for n in lengths],
    }
    return {
        name: [time(some, wait, rate).item() for some in lists]
        for name, lists in stages.items()
    }


costs_figures.model_and_clock(lengths, predicted(wait, rate, lengths), taken)

# %% [markdown]
r"""
From 256 tokens on the rings stand near the lines, and the lines cross where the clock's curves do, near 2,000. (For short texts a call of `attend` has a price that the model leaves out.) So the RNN's 513 waits are dearer than attention's 29 million extra products. Set the two times equal, and leave out attention's two waits: attention is faster as long as

$$n < d + \frac{\text{wait} \cdot \text{rate}}{2d}$$

## 4 · Why 2017?
"""

# %%
predict("faster_products")

# %%
gpu_wait, gpu_rate = 5e-6, 4.75e12
print(f"a wait costs as much as {gpu_wait * gpu_rate:,.0f} products")
print(f"equal at n = {d + gpu_wait * gpu_rate / (2 * d):,.0f} tokens")
longer = [64 * 4**k for k in range(8)]
costs_figures.on_another_machine(longer, predicted(gpu_wait, gpu_rate, longer))

# %% [markdown]
r"""
The rate is that of the P100, the GPU on which the first Transformer was trained (its paper reckons with $9.5 \cdot 10^{12}$ operations a second, and a product with its addition is two). The wait of 5 microseconds to start a stage is an assumption. **No GPU was measured for this page; this is a model.** In it the curves cross at 186,000 tokens, not at 2,000. GPUs had made products cheap, and no machine makes waits cheap. **Attention turns waits into products.**

But who trains on one text at a time? Texts of a batch take each step together. Here are whole layers of width 512, with projections.
"""

# %%
predict("many_texts")

# %%
for n, texts in ((512, 1), (50, 500), (512, 32), (4096, 1)):
    lstm = time(texts * stages_of(n, 512, 4), gpu_wait, gpu_rate)
    layer = time(texts * costs.attention_stages(n, 512, True), gpu_wait, gpu_rate)
    print(f"{texts:3} texts of {n:4}: LSTM {lstm / layer:4.1f} times as long")

# %% [markdown]
r"""
With 500 sentences, or with 32 texts of 512, the waits are shared by all, and the ratio of products is left: nearly 2. With one long text the LSTM takes 5 to 15 times as long. Its own paper says so: computing in sequence matters most at long texts, where memory lets few texts into a batch. That is the answer to 2017, as far as two numbers give it: texts became longer, and products cheap.

## In real work

Measure before you choose; kernels differ. On this page's machine `nn.LSTM` multiplies four times as much as `nn.RNN` and takes less than half its time: torch gives it a program with shorter waits. Two bugs that people meet: the first call is timed, which also loads and allocates; and on a GPU, where a call returns before it is done, the clock is read without `torch.cuda.synchronize()`. `torch.utils.benchmark.Timer` minds both. A batch pays for its padding, too:
"""

# %%
both = nn.utils.rnn.pad_sequence(
    [torch.randn(512, 64), torch.randn(32, 64)], batch_first=True
)[:, None]  # (2, 1, 512, 64): texts, heads, tokens, width
real = (torch.arange(512) < torch.tensor([[512], [32]]))[:, None, None]
paid = operations(lambda: F.scaled_dot_product_attention(both, both, both, real))
needed = 2 * 64 * (512**2 + 32**2)
print(f"products paid {paid:,}, needed {needed:,}: {paid / needed:.2f} times")

# %% [markdown]
r"""
The mask `real` hides the short text's padding from the output, and saves none of its products.

## 512 tokens once more

Eight times the products, two waits in place of 513: done first, on this machine. On one where a wait costs less than 58,000 products, it would be done last.

**To remember.** Steps, paths, products and seconds are four tables.

- Products: RNN $2nd^2$, LSTM $8nd^2$, attention $2n^2d$, and $4nd^2$ with its projections.
- Steps belong to a layer, or to the whole stack: ask which.
- Seconds: waits and products, by two numbers of the machine.
- A batch shares waits, not products.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762), sections 1, 4 and 6.2, tables 1 and 2. Powers of $n$, memory, threads, claims: [evidence](evidence/08_attention_vs_rnn_evidence.ipynb).

**Next**: [08c · Linear](08c_linear.ipynb): can attention be computed as an RNN?
"""
