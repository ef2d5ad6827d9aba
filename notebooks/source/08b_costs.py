# %% [markdown]
r"""
{title}

Two layers read a text of 512 tokens. One of them multiplies eight times as much as the other. Which is done first?

**Afterwards you can** count a layer's products, steps and paths; say from two numbers of a machine which layer is faster on it, and what that has to do with 2017.

{about}

<details><summary>中文摘要 · Chinese</summary>
乘法次数、先后步数、路径长度和秒数是四张不同的表。这一课数出前三张,量出第四张,再用两个数(一次等待多久,每秒做多少次乘法)描述一台机器,看它能不能预言时钟,以及这和 2017 年有什么关系。
</details>

{sources}
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
from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
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
print(f"products: RNN {by_rnn:,}, attention {by_attention:,}")
print("ratio:", by_attention // by_rnn)

# %% [markdown]
r"""
`operations` counts the multiplications of all matrix products that torch runs. Attention stands alone here, without projections: the tokens are queries, keys and values. `weights=False` asks for the output only, not for the table of weights.
"""

# %%
predict("whose_clock")

# %% tags=["measured"]
lengths = [64, 128, 256, 512, 1024, 2048, 4096]
taken = {"RNN": [], "attention alone": []}
with on("cpu"):
    for length in lengths:  # one forward pass of each, the median of five
        for name, one in seconds([*taken], length, d, rounds=5).items():
            taken[name].append(one)
products = {
    "RNN": [2 * length * d**2 for length in lengths],
    "attention alone": [2 * length**2 * d for length in lengths],
}
costs_figures.products_and_seconds(lengths, products, taken)

# %% [markdown]
r"""
Left: at 512 attention needs eight times the products (both axes are logarithmic). Right: there it is the lower curve, on the machine that made this page. In products the curves meet at 64 tokens, in seconds between 1,000 and 3,000. **"More products take more time."** Not here. So what else is paid?

## 1 · Products

An RNN multiplies each token by $W$ and each state by $U$, both $d \times d$: $2nd^2$. Attention has $n^2$ scores of $d$ products each, and mixes $n$ values of $d$ numbers for each of $n$ outputs: $2n^2d$. The two are equal at $n = d$. A whole layer of attention has four projections more, $4nd^2$; an LSTM has four matrices for each of the RNN's, $8nd^2$.

**"Attention is expensive, for $n^2$ is more than $n$."** A sentence of 50 tokens, in vectors of 512:
"""

# %%
m, wide = 50, 512
lstm = 8 * m * wide**2
layer = 4 * m * wide**2 + 2 * m**2 * wide
print(f"LSTM {lstm:,}, layer of attention {layer:,}")

# %% [markdown]
r"""
The LSTM multiplies nearly twice as much: $8nd^2$ against $4nd^2$, and the part with $n^2$ is small while $n$ is far below $d$. (A Transformer layer adds a feed-forward network, usually $8nd^2$.)

## 2 · Steps and paths

What waits for what? `paths` reads it off torch's autograd, which knows what was computed from what. A box is a state or an output; its number is the earliest step in which it can be computed.
"""

# %%
beside = {name: paths.network(name, 8) for name in ("RNN", "self-attention")}
Image(
    paths_figures.film(beside),
    format="gif",
    metadata={"alt": "An RNN lights its boxes one by one, self-attention all at once."},
)

# %% [markdown]
r"""
**Steps**: the boxes on the longest chain. They come one after the other, however many processors there are. **Path**: the boxes on the shortest way from an input to an output, for the pair that is farthest apart. The RNN has 8 and 8, attention 1 and 1.
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
A BiRNN reads once from each side and joins the two: «9». Dilated convolutions look twice as far in each layer: 1 + 2 + 4 = 7 places in «3». A window of two tokens to each side takes «4» layers. (In table 1 of the Transformer paper a convolution's steps are those of one layer, its path that of a stack.)

What a path costs stands in 08a: a factor of the gradient from box to box. What does a step cost? Write a layer as a list of **stages**, each with its products. A stage starts when the one before is done.
"""

# %% [markdown] tags=["exercise:rnn_stages"]
# List the products of the $n + 1$ stages of an RNN; `rows` is 1 for it, 4 for an LSTM.

# %% [markdown]
r"""
`attention_stages` is the same list for attention:
"""

# %%
stages_of = yours("rnn_stages")  # ours, until yours has passed
for name, some in {
    "RNN": stages_of(n, d, 1),
    "attention": costs.attention_stages(n, d, projections=False),
}.items():
    print(f"{name}: {len(some)} stages, {int(some.sum()):,} products")

# %% [markdown]
r"""
Attention has two stages, scores and mixture (the softmax has no products, and is left out). The RNN has «513».

## 3 · A machine of two numbers

Suppose that a stage needs a fixed time to start, the **wait**, and then multiplies at a **rate**:

$$\text{seconds} = \sum_\text{stages} \Big( \text{wait} + \frac{\text{products}}{\text{rate}} \Big)$$
"""

# %% [markdown] tags=["exercise:time_on"]
# Turn the formula into code.

# %% [markdown]
r"""
Measure both: an RNN of width 1 hardly multiplies; a product of 512 × 512 matrices hardly waits. `seconds_in_turn` gives medians of seven rounds.
"""

# %% tags=["nbval-ignore-output"]
thin, square = nn.RNN(1, 1, batch_first=True), torch.randn(512, 512)
steps = torch.randn(1, 1000, 1)
with torch.no_grad(), on("cpu"):
    calls = {"wait": lambda: thin(steps), "rate": lambda: square @ square}
    found = seconds_in_turn(calls, repeats=7)
wait, rate = found["wait"] / 1000, 512**3 / found["rate"]
print(f"wait {wait * 1e6:.1f} microseconds")
print(f"rate {rate / 1e9:.0f} products a nanosecond")
print(f"wait times rate: {wait * rate:,.0f} products")

# %% [markdown]
r"""
On this page's machine a wait costs as much as some hundred thousand products. A step of the RNN has $64^2$ = 4,096. Do two numbers predict the clock?
"""

# %% tags=["measured"]
time = yours("time_on")


def predicted(wait, rate, lengths):
    stages = {
        "RNN": [stages_of(n, d, 1) for n in lengths],
        "attention alone": [
            costs.attention_stages(n, d, projections=False) for n in lengths
        ],
    }
    return {
        name: [time(some, wait, rate).item() for some in lists]
        for name, lists in stages.items()
    }


costs_figures.model_and_clock(lengths, predicted(wait, rate, lengths), taken)

# %% [markdown]
r"""
The RNN's marks lie near its line, attention's come near from 512 on: short texts pay for the call, which the model has not. Where this page was built, lines and marks cross between 1,000 and 3,000 tokens. So the RNN waits: «513» waits are dearer than 29 million extra products. With $n$ waits for the RNN and none for attention, attention is faster as long as

$$n < d + \frac{\text{wait} \cdot \text{rate}}{2d}$$

## 4 · Why 2017?
"""

# %%
predict("faster_products")

# %%
gpu_wait, gpu_rate = 5e-6, 4.75e12
print(f"wait times rate: {gpu_wait * gpu_rate:,.0f} products")
print(f"equal at n = {d + gpu_wait * gpu_rate / (2 * d):,.0f} tokens")
longer = [64 * 4**k for k in range(7)]
costs_figures.on_another_machine(longer, predicted(gpu_wait, gpu_rate, longer))

# %% [markdown]
r"""
The rate is that of one P100; eight trained the first Transformer: its paper reckons with $9.5 \cdot 10^{12}$ operations a second, two for a product and its addition. The wait of 5 microseconds is an assumption. No GPU was measured here: this is a model. In it the curves cross at «186,000» tokens, for there a wait is worth 24 million products. **Attention turns waits into products, and GPUs had made products cheap.**

But nobody trains on one text at a time, and texts of a batch take each step together. Now layers of width 512, attention's with projections, without a feed-forward network:
"""

# %%
predict("many_texts")

# %%
for texts, tokens in ((500, 50), (32, 512), (1, 512), (1, 4096), (32, 4096)):
    whole = costs.attention_stages(tokens, 512, projections=True)
    attention = time(texts * whole, gpu_wait, gpu_rate)
    recurrent = time(texts * stages_of(tokens, 512, 4), gpu_wait, gpu_rate)
    ratio = recurrent / attention
    print(f"{texts:3} × {tokens:4} tokens: LSTM {ratio:4.1f} times as long")

# %% [markdown]
r"""
In a batch all texts share each wait. In the first the ratio of products is left, nearly «2»; in the second a quarter of the LSTM's time is still waiting. For a single text of 512 tokens the LSTM takes «15» times as long; for one of 4,096 it is «5», since attention's products grow with $n^2$. The Transformer's paper gives this reason: steps become critical for long texts, of which memory lets few into a batch. The last line is the limit: where 32 texts of 4,096 do fit, attention has more products ($n > 2d$), and the LSTM takes half the time.

## In real work

Measure before you choose: a wait belongs to a program as much as to a machine. The bug that people meet: on a GPU a call returns before it is done, so the clock is read too early. `torch.utils.benchmark.Timer` waits for the end. And a batch pays for its padding:
"""

# %%
both = nn.utils.rnn.pad_sequence(
    [torch.randn(512, 64), torch.randn(32, 64)], batch_first=True
)[:, None]  # (2, 1, 512, 64): texts, heads, tokens, width
real = (torch.arange(512) < torch.tensor([[512], [32]]))[:, None, None]
look = F.scaled_dot_product_attention
paid = operations(lambda: look(both, both, both, attn_mask=real))
needed = 2 * 64 * (512**2 + 32**2)
print(f"products: {paid:,}, needed {needed:,}")

# %% [markdown]
r"""
The mask hides the short text's padding and saves none of its products: the batch takes twice what is needed.

## 512 tokens once more

Attention has eight times the products, and 2 waits against «513»: it is done first, here. Where a wait is worth less than $(512 - 64) \cdot 2 \cdot 64$ = 57,344 products, it would be done last.

**To remember.** Steps, paths, products and seconds are four tables.

- Products: RNN $2nd^2$, LSTM $8nd^2$, attention $2n^2d$, with projections $2n^2d + 4nd^2$.
- Steps and paths are read off a graph; ask whether of a layer or of a stack.
- Seconds: waits, and products over the rate.
- A batch shares waits, not products.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762), sections 1, 4, 5.2 and 6.1. Memory, threads, claims: [evidence](evidence/08_attention_vs_rnn_evidence.ipynb).

**Next**: [08c · Linear](08c_linear.ipynb): can attention be computed as an RNN?
"""
