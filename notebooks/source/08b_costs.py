# /// ideas
# [clock]
# says = "eight times the products, and done first: products are not seconds"
# motive = "Which is done first?"
# shown = "carried.clock"
# action = 'predict("whose_clock")'
#
# [products]
# says = "an RNN makes 2 n d^2 products, attention 2 n^2 d; they are equal at n = d"
# motive = "Where do they come from?"
# shown = "$2nd^2$"
# action = "Put in 512 and 64"
#
# [stages]
# says = "a layer is a list of stages, each of which waits for the one before; an RNN has n + 1 small ones, attention two large ones"
# motive = "what waits for what"
# shown = "paths_figures.film"
# action = "rnn_stages"
#
# [seconds]
# says = "seconds = the sum over the stages of wait + products / rate"
# motive = "Suppose that a stage"
# shown = "\\frac{\\text{products}}{\\text{rate}}"
# action = "time_on"
#
# [price]
# says = "wait times rate: how many products a wait is worth; one number for a machine"
# motive = "products could be made"
# shown = "wait times rate:"
# action = "time_on"
#
# [crossing]
# says = "attention is faster as long as n < d + wait rate / 2d"
# motive = "Where do they cross?"
# shown = "n < d +"
# action = "Divide by"
#
# [batch]
# says = "the texts of a batch share each wait, not the products: the wait is divided by b"
# motive = "Networks are trained on many"
# shown = "2\\,d\\,b"
# action = 'predict("many_texts")'
#
# [gpu]
# says = "a GPU shortens waits, and makes products cheaper still: one wait is worth millions"
# motive = "The Transformer came in 2017"
# shown = "costs.on_gpu()"
# action = 'predict("on_a_gpu")'
#
# [long]
# says = "with the tokens of a batch fixed, waits grow with the length: steps cost time where texts are long"
# motive = "Can its waits make up for that"
# shown = "transformer_stages"
# action = 'predict("same_tokens")'
#
# [padding]
# says = "a mask hides padding and saves none of its products; texts of like length share a batch"
# motive = "a batch pays for its padding"
# shown = "attn_mask=real"
# action = 'predict("padding_paid")'
# ///

# %% [markdown]
r"""
{title}

Two layers read a text of 512 tokens. One of them multiplies eight times as much as the other. Which is done first?

**Afterwards you can** count a layer's products, and list what waits for what; say from two numbers of a machine which layer is faster on it; judge what that has to do with 2017.

{about}

<details><summary>中文摘要 · Chinese</summary>
乘法更多的层,为什么反而先算完?这一课数出乘法次数和先后步数,用两个数(一次等待多久,每秒做多少次乘法)描述一台机器,让它预言时钟,再看 GPU、成批的文本,以及 2017 年。
</details>

{sources}
"""

# %% tags=["imports"]
import torch
import torch.nn.functional as F
from IPython.display import Image
from torch import nn

from lesson_lib.attention import attend
from lesson_lib.chapters.c08_attention_vs_rnn import (
    costs,
    costs_figures,
    paths_figures,
)
from lesson_lib.chapters.c08_attention_vs_rnn.experiments import paths
from lesson_lib.course import *
from lesson_lib.measure import operations

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
A **product** is here one multiplication of two numbers. `operations` calls a function and counts the products in all its matrix multiplications. Attention comes without learned matrices: the tokens themselves are queries, keys and values.
"""

# %%
n, d = 512, 64
text = torch.randn(1, n, d)
rnn = nn.RNN(d, d, batch_first=True)  # tokens of d numbers, states of d


def attention(x):
    return attend(x, x, x, weights=False)  # False: the output alone


print(f"RNN: {operations(lambda: rnn(text)):,} products")
print(f"attention: {operations(lambda: attention(text)):,} products")

# %%
predict("whose_clock")

# %% [markdown]
r"""
This function takes the time of a forward pass. The layers take turns, so that a busy moment of the machine hits both. The first round is thrown away, since a first call also prepares.
"""

# %%
from carry import recurrent as carried

show_source(carried.clock)

# %% tags=["measured"]
lengths = [64, 128, 256, 512, 1024, 2048, 4096]
layers = {"RNN": rnn, "attention": attention}
taken = {name: [] for name in layers}
for length in lengths:
    seconds = carried.clock(layers, torch.randn(1, length, d))
    for name in layers:
        taken[name].append(seconds[name])

products = {
    "RNN": [2 * length * d**2 for length in lengths],
    "attention": [2 * length**2 * d for length in lengths],
}
costs_figures.products_and_seconds(lengths, products, taken)

# %% [markdown]
r"""
Both axes are logarithmic. Find 512 tokens. On the left attention's curve is the upper one, eight times as many. On the right it is the lower one. **"More products take more time."** Not here. The curves of products meet at 64 tokens, those of seconds between 1,000 and 3,000, on the machine that made this page. What else is paid for?

## 1 · Products and steps

First the products. Where do they come from? An RNN multiplies each token by a matrix $W$, and each state by a matrix $U$. Both are $d \times d$, so $n$ tokens take $2nd^2$ products. Attention computes $n^2$ scores, and each takes $d$ products. Then it mixes $n$ values of $d$ numbers for each of $n$ outputs, which takes as many again: $2n^2d$. Put in 512 and 64, and you have the two numbers above. The two are equal at $n = d$.

The products are not all that matters. The other question is what waits for what. In this film a box is a state or an output, and its number says when it can be computed, at the earliest.
"""

# %%
both = {name: paths.network(name, 8) for name in ("RNN", "self-attention")}  # 8 tokens
Image(
    paths_figures.film(both),
    format="gif",
    metadata={"alt": "An RNN lights its boxes one by one, self-attention all at once."},
)

# %% [markdown]
r"""
Over 8 tokens the RNN needs eight steps, one after the other, however many processors there are, since each state needs the state before it. In attention no output waits for another.

What does waiting cost? To compute it, we write a layer as a list of **stages**. A stage is a group of products that can all be made at once, and it starts when the stage before is done. An RNN's first stage is $Wx$ for all tokens together, because that needs no state. Then $Uh$ follows, token after token. (We leave out the tanh, and later the softmax.)
"""

# %% [markdown] tags=["exercise:rnn_stages"]
# Return the number of products in each of these $n + 1$ stages, as a tensor. `rows` is 1 for an RNN. An LSTM has four $W$ and four $U$, stacked, so there it is 4.

# %% [markdown]
r"""
Attention's one step of the film has two stages, the scores and then the mixture:
"""


# %%
def attention_stages(n, d):
    return torch.tensor([n * n * d, n * n * d], dtype=torch.float64)


stages_of = yours("rnn_stages")  # ours, until yours has passed
stages = {"RNN": stages_of(n, d, 1), "attention": attention_stages(n, d)}
for name, some in stages.items():
    print(f"{name}: {len(some)} stages, {int(some.sum()):,} products")

# %% [markdown]
r"""
So the RNN makes few products in «513» stages, and attention makes eight times as many in «2».

## 2 · A machine of two numbers

Suppose that a stage needs a fixed time to start, the **wait**, and then makes its products at a **rate**, so many in a second:

$$\text{seconds} = \sum_\text{stages} \Big( \text{wait} + \frac{\text{products}}{\text{rate}} \Big)$$

This formula is our **model** of a machine.
"""

# %% [markdown] tags=["exercise:time_on"]
# Turn the formula into code.

# %% [markdown]
r"""
We need the two numbers of this machine. For the wait we time an RNN of width 1, which hardly multiplies. For the rate we time a product of two 512 × 512 matrices, one stage, in which a wait is little beside 134 million products:
"""

# %%
show_source(carried.machine)

# %% tags=["nbval-ignore-output"]
wait, rate = carried.machine()
print(f"a wait: {wait * 1e6:.1f} microseconds")
print(f"wait times rate: {wait * rate:,.0f} products")

# %% [markdown]
r"""
Wait times rate: that many products could be made during one wait. Where this page was made, a wait is some millionths of a second, and it is worth more than a hundred thousand products. A step of our RNN makes $64^2$ = 4,096: nearly all of its time is waiting. Do the two numbers predict the clock?
"""

# %% tags=["measured"]
seconds_on = yours("time_on")


def predicted(wait, rate, lengths, texts=1):
    """{layer: seconds for each length}; a batch has more products in each stage."""
    by_rnn = [seconds_on(texts * stages_of(n, d, 1), wait, rate) for n in lengths]
    by_attention = [seconds_on(texts * attention_stages(n, d), wait, rate) for n in lengths]
    return {"RNN": (lengths, by_rnn), "attention": (lengths, by_attention)}


measured = {name: (lengths, some) for name, some in taken.items()}
costs_figures.model_and_clock(predicted(wait, rate, lengths), measured)

# %% [markdown]
r"""
The lines are predicted, the open marks measured. The RNN's marks lie near its line, which is not much of a test, since an RNN gave us the wait. Attention's come near from 512 tokens on; for shorter texts calling the function takes time that the model leaves out. Lines and marks cross at about the same length.

Where do they cross? The RNN has $n - 1$ waits more than attention, nearly $n$. Attention has $2n^2d - 2nd^2$ products more. So attention is faster as long as

$$n \cdot \text{wait} > \frac{2n^2d - 2nd^2}{\text{rate}}$$

Divide by $n$, multiply by the rate, divide by $2d$, and solve for $n$:

$$n < d + \frac{\text{wait} \cdot \text{rate}}{2\,d}$$

"""

# %% tags=["nbval-ignore-output"]
print(f"attention is faster up to {d + wait * rate / (2 * d):,.0f} tokens")

# %% [markdown]
r"""
There the lines cross. At 512 tokens attention wins, because 513 waits cost more than 29 million extra products.

## 3 · Many texts at once

Networks are trained on many texts at a time. Take 32 texts of 512 tokens, and the same machine.
"""

# %%
predict("many_texts")

# %% tags=["nbval-ignore-output"]
texts = 32
batch = torch.randn(texts, n, d)
model = predicted(wait, rate, [n], texts)
for name, s in carried.clock(layers, batch).items():
    (by_model,) = model[name][1]
    print(f"{name:10} {s * 1e3:5.1f} ms, by the model {by_model * 1e3:5.1f}")

# %% [markdown]
r"""
The RNN is done first. Both take longer than the model says, the RNN more than twice as long, probably since tanh, sums and softmax are left out. It names the right winner. Why does the RNN win? The texts of a batch take each step together, so they **share each wait**. The products they do not share. For $b$ texts the waits on the left of the inequality stay, and the products on the right become $b$ times as many:

$$n < d + \frac{\text{wait} \cdot \text{rate}}{2\,d\,b}$$

If a wait is worth 200,000 products, that is 64 + 1,563 tokens for one text, and 64 + 49 for 32. **"An RNN cannot run in parallel."** Over the texts of a batch it does. What it cannot do is read token 2 of a text before token 1.

## 4 · Why 2017?

The Transformer came in 2017, without any RNN, and it was trained on GPUs. We have none of 2017. The course measured an H200, with our two layers and one text.
"""

# %%
predict("on_a_gpu")

# %%
gpu = costs.on_gpu()  # {layer: (lengths, seconds)}, as measured
rnn_s, attention_s = (dict(zip(*gpu[name], strict=True)) for name in layers)
gpu_wait = (rnn_s[4096] - rnn_s[2048]) / 2048  # 2,048 steps more
gpu_rate = 2 * 16384**2 * d / attention_s[16384]
price = gpu_wait * gpu_rate
print(f"wait {gpu_wait * 1e6:.2f} microseconds, wait * rate {price:,.0f} products")
print(f"equal at {d + price / (2 * d):,.0f} tokens")

# %%
longer = [64 * 4**k for k in range(6)]
costs_figures.model_and_clock(predicted(gpu_wait, gpu_rate, longer), gpu)

# %% [markdown]
r"""
A wait is worth «6,112,338» products there, some 25 times as many as here. (The wait is the time of one more step of the RNN, and the rate is that of attention at 16,384 tokens, so the fit at the long end proves nothing.) For short texts the marks are nearly level, far above the lines: a call costs about 0.1 milliseconds before it computes anything. At each length that both layers ran, up to 4,096, attention is done first. Beyond 4,096 the RNN was not timed, and the model puts the crossing near «48,000». **Attention has few waits and many products, and a GPU makes products cheap.**

A whole Transformer layer has more products than attention alone: $4nd^2$ for four projections, and $8nd^2$ for a feed-forward network of the usual inner width $4d$. So it has $12nd^2 + 2n^2d$, and an LSTM has $8nd^2$: fewer, at any length. Can its waits make up for that?

The first Transformer's batches held 25,000 tokens a side, on eight GPUs, so 3,125 on each. We cut them into texts of 50, of 500 or of 3,125 tokens, and let the model compute both layers of width 512, with the H200's two numbers.
"""

# %%
predict("same_tokens")


# %%
def transformer_stages(n, d):
    before, behind = [3 * n * d * d], [n * d * d, 4 * n * d * d, 4 * n * d * d]
    inside = attention_stages(n, d).tolist()
    return torch.tensor([*before, *inside, *behind])  # projections, pairs, feed-forward


wide = 512
print("texts  tokens   LSTM, of it waiting   Transformer layer")
for m in (50, 500, 3125):
    texts = 3125 / m
    by_lstm = seconds_on(texts * stages_of(m, wide, 4), gpu_wait, gpu_rate)
    by_layer = seconds_on(texts * transformer_stages(m, wide), gpu_wait, gpu_rate)
    waiting = (m + 1) * gpu_wait / by_lstm
    print(f"{texts:5.1f}{m:8}{by_lstm * 1e3:6.2f} ms{waiting:9.0%}{by_layer * 1e3:14.2f} ms")

# %% [markdown]
r"""
In sentences of 50 the LSTM hardly waits, and by the model it is done first. In texts of 500 it waits a third of its time, and is still first. In one text of 3,125 it waits three quarters of its time, and is done last, although the other layer's $2n^2d$ has grown. **Steps cost time where texts are long, and few fit into a batch.** The Transformer's paper gives this reason: steps become critical for longer sequences, since a GPU's memory holds only so many tokens, and so few long texts. For sentences it gives another: where $n < d$, attention has fewer products. That counts attention alone. For the whole layer the model finds no gain, but it is crude: in section 3 it was off by more than the differences in this table. If an LSTM took more than twice its time, as the RNN did in section 3, the first two rows would turn.

## In real work

Lengths differ, so a batch pays for its padding. Here are one text of 512 tokens and one of 32. A mask hides the padding.
"""

# %%
predict("padding_paid")

# %%
long, short = torch.randn(512, 64), torch.randn(32, 64)
padded = nn.utils.rnn.pad_sequence([long, short], batch_first=True)  # zeros behind
real = (torch.arange(512) < torch.tensor([[512], [32]]))[:, None]  # (2, 1, 512)
look = F.scaled_dot_product_attention
together = operations(lambda: look(padded, padded, padded, attn_mask=real))
alone = operations(lambda: [look(x[None], x[None], x[None]) for x in (long, short)])
print(f"in one batch {together:,}, each alone {alone:,}")

# %% [markdown]
r"""
The mask hides the padding, and saves none of its products: the batch takes twice what is needed. The usual repair is to sort texts by length and to batch those of like length.

## To carry away

`clock`, `machine` and your two functions stand in `notebooks/carry/recurrent.py`, the chapter's file. Give `clock` your own layers and your own batch. On a GPU a call returns before its work is done; without `synchronize` the clock is read too early.

## 512 tokens once more

Attention makes eight times the products, and is done first: for one text, on this machine, with «2» waits against «513». In a batch of 32 it is done last. With how many texts does it turn on your machine? Solve the formula for $b$, then set `texts` in section 3 to less and to more, and look.

**To remember.** Ask which count somebody means, for which batch.

- Products: RNN $2nd^2$, attention $2n^2d$; equal at $n = d$.
- Seconds: for each stage a wait, and products over the rate.
- Attention is faster for $n < d + \text{wait} \cdot \text{rate} / 2db$.
- A batch shares waits, not products. A mask over padding saves none.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762), sections 1, 4, 5.1 and 5.2. More: [evidence](evidence/08_attention_vs_rnn_evidence.ipynb).

**Next**: [08c · Linear](08c_linear.ipynb): can attention be computed as an RNN?
"""
