# %% [markdown]
r"""
# 08 · Attention and RNN: what did the RNN lack?

**The question.** From about 1990 on the usual network for text read as we read aloud: one word after the other, with what matters kept in mind. In 2017 a paper
did without. What did the recurrent network lack? Is there anything that it has and attention has not? And is there a way back?

**After this lesson you can**

- write the step of a recurrent network, and say what is left of a word ten steps later;
- read out of a real network which unit waits for which, and count steps and paths;
- check the famous table of costs, line by line: what in it is exact, what depends on the machine, and what two of its columns do not say;
- train an RNN, an LSTM and attention to remember one symbol over a distance, and tell "it cannot" from "it did not learn to";
- turn attention into a recurrent network, prove that it is one, and say what that costs.

**Time** about 130 minutes; good places to stop are before sections 4 and 7. **You need** lessons [02a](02a_soft_look_up.ipynb), [03](03_matrix_form.ipynb)
and [06a](06a_layer.ipynb); of RNNs you need to know nothing. **Exercises**: [exercises/08_attention_vs_rnn](exercises/08_attention_vs_rnn.ipynb).
"""

# %%
import networkx
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from lesson_lib import measure
from lesson_lib.attention import attend
from lesson_lib.chapters.c08_attention_vs_rnn import figures
from lesson_lib.chapters.c08_attention_vs_rnn import paths_figures as drawing
from lesson_lib.chapters.c08_attention_vs_rnn.experiments import paths
from lesson_lib.claims import claim, verdict
from lesson_lib.device import on, to_device
from lesson_lib.experiments import costs, devices, recall, results
from lesson_lib.heads import MultiHeadAttention
from lesson_lib.linear import as_rnn, attend_linear, feature_map, step
from lesson_lib.masks import causal
from lesson_lib.recurrent import Recurrent
from lesson_lib.show import show, show_source

_ = torch.manual_seed(0)

# %% [markdown]
r"""
> **Predict first.** A text has 1,000 words, and your machine has as many processors as you like. How many steps, one after the other, does a recurrent network need for
> one layer? How many does attention need?
>
> <details><summary>Answer</summary>
> The recurrent network needs 1,000: each step waits for the one before it. Attention needs one, since no output waits for another. Section 2 reads both numbers out of real networks. How much <em>time</em> that saves on your machine is another question: section 4.
> </details>

## 1 · A network that reads word by word

### One line

A **recurrent** network (RNN) has a **state** $h$, a vector. It takes up one token after the other; the new state is made of the token and the old state:

$$h_t = \tanh(W x_t + U h_{t-1} + b), \qquad h_0 = 0$$

$W$, $U$ and $b$ are the same at every step: one set of weights reads a text of any length. The state is also the output. Nothing else is kept of
the tokens read: if the network is to know at token 200 what token 1 was, it must stand in $h_{199}$.

By hand, with numbers in place of vectors: $W = 1$, $U = 0.5$, $b = 0$, and the tokens 1, 0, 0, 0.

> **Predict.** tanh squeezes a number to between −1 and 1, and tanh 1 = 0.76. About how much of the 1 is left in the state after the fourth token: half, a tenth, or nothing?
>
> <details><summary>Answer</summary>
> About a tenth. After the first token the state is 0.76. Each zero then takes at least half of it away: 0.36, 0.18, 0.09.
> </details>
"""

# %%
h = torch.tensor(0.0)
states = []
for x in (1.0, 0.0, 0.0, 0.0):
    h = torch.tanh(1.0 * x + 0.5 * h)
    states.append(h)
show(torch.stack(states))

# %% [markdown]
r"""
Now with vectors, in a few lines, and beside it torch's own loop. `Recurrent` in the library is a thin layer over torch's: `forward` runs torch's loop,
`states` runs the formula, step by step, so that we can look at what is inside.
"""


# %%
def read_aloud(x, W, U, b):
    """The state behind each token: x (n, d_in) -> (n, d)."""
    h, states = torch.zeros(len(U)), []
    for token in x:
        h = torch.tanh(W @ token + U @ h + b)
        states.append(h)
    return torch.stack(states)


rnn = Recurrent("RNN", d_token=3, d_hidden=4)
W, U, b, c = rnn.layer.parameters()  # torch splits the bias in two: b + c
x = torch.randn(6, 3)
with torch.no_grad():
    assert_close(read_aloud(x, W, U, b + c), rnn(x[None])[0])
print("six tokens, six states:", tuple(rnn(x[None]).shape))

# %% [markdown]
r"""
### What is left of a word?

Take two texts that differ in their first token alone. Behind that token their states differ. How far apart are they later, when both have read the same
words? If the difference is gone, so is the first token: no layer on top can tell the two texts apart.

Two other recurrent networks were made to keep more of it. In a **GRU** and an **LSTM** small networks, called **gates**, decide at each step how much of the old state is kept,
number by number. The LSTM carries two vectors: its state $h$, and a **cell** $c$ that is only multiplied by a gate and added to:

$$c_t = f_t \odot c_{t-1} + i_t \odot g_t, \qquad h_t = o_t \odot \tanh c_t$$

The gates $f$ (forget), $i$ (input) and $o$ (output) lie between 0 and 1, $g$ is what the token offers, and $\odot$ multiplies number by number. Where a forget gate is 1, that number of the cell is kept, and where it is ½ ten times in a row, a thousandth is left. The GRU has no cell. Its new state lies between a proposal $\tilde h_t$
and the old state, $h_t = (1 - z) \odot \tilde h_t + z \odot h_{t-1}$: where $z$ is 1, all is kept. (`Recurrent`'s docstring has all formulas.)

> **Predict.** Three networks, 32 numbers wide, with the weights that torch gives them at the start. Which of them still tells the two texts apart after 50 common tokens?
>
> <details><summary>Answer</summary>
> None of them, in practice: see the figure. An untrained network forgets at a steady rate. The RNN keeps about half of the difference at each token, the two with gates a little more.
> </details>
"""

# %%
_ = torch.manual_seed(0)
networks = {kind: Recurrent(kind, 16, 32).double() for kind in ("RNN", "GRU", "LSTM")}
common = torch.randn(1, 50, 16).double()
firsts = torch.randn(2, 1, 16).double()
texts = torch.cat([firsts, common.expand(2, -1, -1)], 1)  # two texts of 51 tokens
apart = {}
with torch.no_grad():
    for name, network in networks.items():
        one, other = network(texts)
        apart[name] = (one - other).norm(dim=-1).tolist()
figures.gap(apart)

# %%
rate = {name: (gaps[40] / gaps[10]) ** (1 / 30) for name, gaps in apart.items()}
for name, gaps in apart.items():
    verdict(f"{name}: after 50 tokens less than a hundredth is left",
        gaps[50] < gaps[0] / 100)  # fmt: skip
verdict("the RNN keeps about half with each token", 0.4 < rate["RNN"] < 0.58)
verdict("the gated ones more, less than 7 of 10",
    0.58 < min(rate["GRU"], rate["LSTM"]) < max(rate["GRU"], rate["LSTM"]) < 0.7)  # fmt: skip

# %% [markdown]
r"""
A straight line on a logarithmic axis: each step takes the same share away. That is how torch's initial weights are, the start and not the end of the story. Training can move the weights, and section 5 lets it try. But what training
has to go by is a gradient, and the gradient takes the same way back. In our example by hand: tanh has the slope $1 - h^2$, so $\partial h_4 / \partial h_1 = 0.5^3 (1 - 0.36^2)(1 - 0.18^2)(1 - 0.09^2) = 0.10$. Three steps back, and a tenth is left of the gradient, too.

## 2 · What waits for what

The two texts met because the signal had 50 steps to go. How many steps does it have to go in other networks? That can be *read out of a network*: while it computes, torch's
autograd notes what was computed from what. `measure.dependencies` takes the tokens and the tensors that we name, and gives a graph: an arrow for each that enters another directly.
"""

# %%
tokens = [torch.randn(1, 3, requires_grad=True) for _ in range(3)]
state, named = None, {}
for i, token in enumerate(tokens):
    state = rnn.step(token, state)
    named[f"h{i}"] = state.hidden
graph = measure.dependencies({f"x{i}": x for i, x in enumerate(tokens)}, named)
print(", ".join(f"{one} -> {other}" for one, other in graph.edges))

# %% [markdown]
r"""
Five arrows: each state needs its token, and the state before it. Follow them from `x0` to `h2`: three arrows, over `h0` and `h1`.

The tensors that we have named are the graph's **units**; here a unit is a state, elsewhere the output of a layer at one place. Two numbers describe such a graph:

- **steps**: the arrows of the *longest* path anywhere. These units wait for each other, so that many steps must be made one after the other, however many processors there are. A unit counts as one step, however much is computed in it: attention's sum over $n$ keys, too. So 1 says: no output waits for another *output*.
- **path**: how far a signal has to go. For one input and one output take the *shortest* path; then take the pair for which it is largest.

The same for eight tokens, in an RNN and in attention, as the sources draw it: with boxes that light up in the order in which they can be computed. The number in a box says in which step that is.
"""

# %%
from IPython.display import Image

beside = {name: paths.network(name, 8) for name in ("RNN", "self-attention")}
Image(
    drawing.film(beside),
    alt="An RNN lights its boxes one after the other, self-attention all in the first step.",
)

# %% [markdown]
r"""
(The film runs three times. Run the cell to see it again.)

The RNN has 8 steps and a path of 8, attention 1 and 1.

> **Predict.** Eight tokens. Steps and path: for a **bidirectional** RNN (BiRNN), which reads once from the left and once from the right and puts both states side by side? For a stack of convolutions with three taps, with as many layers as it takes for every output to see every input?
>
> <details><summary>Answer</summary>
> BiRNN: 9 and 9, since putting side by side is one more unit. Convolutions: a layer carries a signal one place further, so 7 layers, 7 steps and 7 units of path. If the taps of each layer stand twice as far apart as those of the layer below (<em>dilated</em>), 3 are enough: 1 + 2 + 4 = 7.
> </details>
"""

# %%
print(f"{'':30} steps  path  pairs without a path")
for name in paths.NETWORKS:
    found = paths.counted(paths.network(name, 8))
    print(f"{name:30} {found.steps:5} {found.path:5} {found.no_path:8} of 64")

# %% [markdown]
r"""
- In the RNN, and in causal attention, 28 of the 64 pairs have no path: an output sees nothing to its right. The BiRNN sees all, but it must *carry* what it sees: 9 units.
- Window attention lets a token look two places to the left and two to the right. It needs four layers to see all: 4 steps, a path of 4. The 1 of attention is the 1 of *full* attention.
- The last two lines belong to section 7. They compute the same thing, one as an RNN, one by adding up in pairs, in fewer steps. (Here each sum of two is a unit of its own. So their steps are finer than attention's one, and not to be compared with it.)

Light the paths yourself:
"""

# %%
from lesson_lib.chapters.c08_attention_vs_rnn.paths_explorer import PathExplorer

PathExplorer({name: paths.network(name, 8) for name in paths.NETWORKS})

# %% [markdown]
r"""
*Do:* choose the RNN, input 0 and output 7, then move the output to the left. *Look:* a unit less for each place. *Do:* the same with self-attention. *Look:* one arrow, wherever you go.
*Do:* choose the RNN, input 5 and output 2. *Look:* no path: the future has no way back.

And in time, at your own pace, with a bidirectional network between the two:
"""

# %%
from lesson_lib.chapters.c08_attention_vs_rnn.paths_explorer import WavePlayer

some = ("RNN", "BiRNN", "self-attention")
WavePlayer({name: paths.network(name, 8) for name in some})

# %% [markdown]
r"""
*Do:* move the slider for the step, or press play. *Look:* the RNN lights one box at a time; the BiRNN two, one from either side; attention all at once. The sources' picture of it has red boxes for the RNN and blue ones for attention; here blue is done, and orange with a thick frame is being computed.

How do the numbers grow? The stored counts go up to 64 tokens. If a number grows as $n^p$, then $p$ is its slope on two logarithmic axes; `growth_exponent` takes the median of the
slopes between all pairs of points, so that one bad point does not move it.
"""

# %%
rows = results("paths")["rows"]
print(f"{'':30} path at n = 4, 8, 16, 32, 64     exponent")
for name in paths.NETWORKS:
    mine = [row for row in rows if (row["network"], row["seed"]) == (name, 0)]
    lengths, found = ([row[key] for row in mine] for key in ("n", "path"))
    p = measure.growth_exponent(lengths, found)
    print(f"{name:30} {', '.join(map(str, found)):30} {p:8.2f}")

# %% [markdown]
r"""
Three kinds: 1 whatever the length (exponent 0, full attention); in proportion to the length (exponent about 1; $n + 1$ and $n - 1$ are no pure powers, hence 0.93 and 1.09); and the logarithm, which grows by 1 when the length doubles, so that no power fits it
(dilated convolutions, adding in pairs).

## 3 · What it costs, counted

### The famous table

Table 1 of the Transformer paper, which the sources copy, compares layers, for $n$ tokens of width $d$, a convolution of $k$ taps, and a window of $r$ tokens:

| layer | operations | steps, one after the other | longest path |
|---|---|---|---|
| self-attention | $O(n^2 d)$ | $O(1)$ | $O(1)$ |
| recurrent | $O(n d^2)$ | $O(n)$ | $O(n)$ |
| convolution | $O(k n d^2)$ | $O(1)$ | $O(\log_k n)$ dilated; $O(n / k)$ otherwise, says the text |
| window attention | $O(r n d)$ | $O(1)$ | $O(n / r)$ |

$O(\ldots)$ says how a number grows, up to a factor that it keeps to itself. Section 2 has counted the last two columns, and shows how to read them: they speak of *different networks*. The steps are those of **one** layer.
The path is that of **as many layers as it takes** to see everything (for convolutions the paper's text says so, the table does not). Our stack of seven convolutions has a path of 7, and it has 7 steps, not $O(1)$.

The first column is left. `measure.operations` counts the multiplications, each with its addition, of all matrix products that torch really runs. So put real layers in:
"""

# %%
for kind in costs.KINDS:
    n, d = 512, 64
    found, by_theory = costs.counted(kind, n, d), costs.formula(kind, n, d)
    if found != by_theory:
        raise ValueError(f"{kind}: counted {found}, by theory {by_theory}")
    print(f"{kind:26} {found:>12,}   {costs.THEORY[kind].multiplications}")

# %% [markdown]
r"""
Counted and by formula: the same number, to the last multiplication, in all eight layers. What is behind the formulas:

- A **recurrent** layer multiplies each token by a matrix $d \times d$, and each state by another: $2 n d^2$. A GRU has three such pairs, an LSTM four.
- A **convolution** with three taps multiplies each token by three matrices: $3 n d^2$.
- **Attention alone**, $QK^\top$ and then the weights times $V$: $2 n^2 d$. "With its table" makes the same products, and holds the whole table of $n \times n$ weights in memory; "alone" runs torch's fused kernel, which never holds it whole (lesson 02).
- An **attention layer as it is used** has four projections, for $Q$, $K$, $V$ and the output: $4 n d^2$ more. The table leaves them out. For short texts they are most of the work.
- **Linear attention** is the subject of section 7.

> **Predict.** $d = 64$. From which length $n$ on does attention alone take more multiplications than an RNN, $2n^2d > 2nd^2$? And the attention layer, with its projections? And beside an LSTM?
>
> <details><summary>Answer</summary>
> Alone: beyond n = d = 64, where they are equal. With projections it never takes fewer than the RNN, since 4 n d² alone is more than 2 n d². Beside an LSTM, 8 n d²: beyond n = 2 d = 128.
> </details>
"""

# %%
n = torch.arange(1, 600).tolist()
print("more multiplications, at d = 64, from which n on?")
for kind, other in (
    ("attention alone", "RNN"),
    ("self-attention", "RNN"),
    ("self-attention", "LSTM"),
    ("attention alone", "convolution"),
):
    more = [i for i in n if costs.formula(kind, i, 64) > costs.formula(other, i, 64)]
    print(f"   {kind:16} than {other:12} {more[0]:4}")

# %% [markdown]
r"""
So by operations attention *alone* is cheaper than an RNN as long as a text is shorter than its vectors are wide. The layer with its projections never is; it is cheaper than an LSTM up to $2d$. With $d = 512$, as in the Transformer paper, that is 1,024 tokens: longer than nearly every sentence.

### What it costs, in seconds

Now the clock: the same layers, one sequence of width 64, one thread of the processor, forward only. If your machine has a GPU, a panel beside shows the same layers on it, to longer texts; if not, those of a stored run on a GPU, or a line that there is none.

> **Predict.** Attention alone and the RNN take equally many operations at $n = 64$. Where are they equally fast?
>
> <details><summary>Answer</summary>
> Much further out. At 64 tokens the RNN takes a few times as long. At how many tokens attention loses depends on the machine, and on how well the loop was written.
> </details>
"""

# %% tags=["measured"]
compared = ["convolution", "RNN", "LSTM", "attention alone", "self-attention"]
lengths = [64, 128, 256, 512, 1024, 2048]
taken = {kind: [] for kind in compared}
with on("cpu"):
    for n in lengths:
        for kind, one in costs.seconds(compared, n, 64, rounds=5).items():
            taken[kind].append(one)
figures.live_seconds(lengths, taken, devices.beside("layers"))

# %%
at_512 = {kind: taken[kind][lengths.index(512)] for kind in compared}
print("operations at 512, attention alone over RNN:",
    costs.formula("attention alone", 512, 64) // costs.formula("RNN", 512, 64))  # fmt: skip
verdict("512 tokens: attention alone is faster all the same",
    at_512["attention alone"] < at_512["RNN"], trained=True)  # fmt: skip
p = measure.growth_exponent(lengths[3:], taken["attention alone"][3:])
verdict("attention's time grows faster than n", p > 1.2, trained=True)
verdict("memory of the table of weights: nearly four times as much for twice n",
    costs.mib("attention with its table", 1024, 64)
    > 3.5 * costs.mib("attention with its table", 512, 64))  # fmt: skip

# %% [markdown]
r"""
Eight times the operations of the RNN, and less time. Why is the crossover of seconds not that of operations? A processor does not do one multiplication after the other. It is fast where it gets *one large product*, and attention is two of them.
The RNN is the same number of multiplications cut into $n$ small products that must wait for each other; each call has a price of its own. How good the **kernels** are, the compiled programs that do the products, decides; and $O(\ldots)$ says nothing about that.

The stored run went further: lengths to 4,096, widths to 512, three repeats on a machine with two cores.
"""

# %%
stored = results("costs")["rows"]
shown = ["convolution", "RNN", "LSTM", "attention alone", "self-attention"]


def powers_of(kind, of):
    """{power of n: repeats, power of d: repeats} of a layer, upper half of the sizes."""
    found = {"in n": [], "in d": []}
    for row in stored:
        if row["part"] == "exponent" and (row["kind"], row["of"]) == (kind, of):
            if not row.get("backward"):
                found["in " + row["over"]].append(row["upper"])
    return found


# %%
laws = {kind: costs.THEORY[kind] for kind in shown}
blocks = {
    "theory": {
        kind: {
            "multiplications": law.multiplications,
            "in n": law.in_n,
            "in d": law.in_d,
        }
        for kind, law in laws.items()
    },
    "counted": {kind: powers_of(kind, "operations") for kind in shown},
    "seconds, three repeats": {kind: powers_of(kind, "seconds") for kind in shown},
}
figures.table(blocks)

# %% [markdown]
r"""
Theory on the left, measurements on the right. Each number is a *power*: 2 in the column "in n" says that twice the tokens cost four times as much. It is fitted to the larger half of the sizes, 512 to 4,096 tokens or widths 128 to 512.

- **Counted**, the powers are those of theory. The attention layer is a sum, $4nd^2 + 2n^2d$: theory names the larger power of either part, and what is counted lies between, since which part is the larger changes on the way.
- **In seconds**, over $n$: attention alone comes near its 2, the RNN near its 1. The LSTM (about 0.85) stays below, since the price of a call, which does not grow, is still a good part of its time. So does the convolution (about 0.7): its time jumps between 256 and 512, where torch probably changes its kernel, and rises little after that.
- **In seconds**, over $d$: attention alone keeps to its 1. The RNN stays far below its 2, for the same reason: each of its 512 small products costs a call. The LSTM goes *beyond* 2, probably because its widest weights no longer fit into the processor's fast memory.

So the powers of $O(\ldots)$ are what is left when everything is large, and a machine is rarely there.

The curves themselves, over the number of tokens:
"""

# %%
some = [row for row in stored if row.get("kind") in shown]
figures.grow(some, "n", ("operations", "seconds"))

# %% tags=["nbval-ignore-output"]
print("attention alone takes longer from which n on? (three repeats)")
for backward in (False, True):
    for other in ("convolution", "RNN", "GRU", "LSTM"):
        found = [
            row["seconds"] and round(row["seconds"])
            for row in stored
            if row["part"] == "crossing" and row["backward"] == backward
            and (row["kind"], row["other"]) == ("attention alone", other)
        ]  # fmt: skip
        print(
            "   with backward" if backward else "   forward      ", f"{other:12}", found
        )

# %%
at_4096 = {
    kind: [
        row["seconds"] for row in stored
        if row["part"] == "sweep" and row["over"] == "n" and not row["backward"]
        and (row["kind"], row["n"]) == (kind, 4096)
    ]
    for kind in ("RNN", "LSTM")
}  # fmt: skip

# %%
meeting = {
    (row["other"], row["backward"], row["seed"]): row["seconds"]
    for row in stored
    if row["part"] == "crossing" and row["kind"] == "attention alone"
}
with_rnn = [meeting["RNN", False, seed] for seed in (0, 1, 2)]
with_lstm = [meeting["LSTM", False, seed] for seed in (0, 1, 2)]
verdict("forward, RNN: between 1,500 and 4,096, not at n = d = 64",
    all(n and 1500 < n < 4096 for n in with_rnn))  # fmt: skip
verdict("forward, LSTM: between 500 and 1,500, not at 4 d = 256",
    all(n and 500 < n < 1500 for n in with_lstm))  # fmt: skip
verdict("4,096: the LSTM multiplies four times as much, in less than half the time",
    costs.formula("LSTM", 4096, 64) == 4 * costs.formula("RNN", 4096, 64)
    and 2 * max(at_4096["LSTM"]) < min(at_4096["RNN"]))  # fmt: skip

# %% [markdown]
r"""
("None": attention stays the faster one up to the longest input that was measured, 4,096 tokens. 64 is the shortest. The GRU is slower than an LSTM, with fewer operations. Against the convolution attention is the slower one from 64 tokens on in two of three repeats, and in the third from 139; with the backward pass from 64 to 159.) By operations, attention and the RNN cross at 64 tokens. By the clock they cross beyond 2,000, thirty times further out, and with the backward pass not up to 4,096.
The LSTM, which makes four times the RNN's multiplications, is *two and a half times as fast* as the RNN at 4,096 tokens here. Probably torch has a better kernel for it on this kind of processor. Another library, another machine, and the picture is another one. What stays is the counted part, and the direction: long enough, $n^2$ loses.

And memory? Here is the peak of one forward pass, counted by torch's allocator:
"""

# %%
held = [
    "RNN",
    "LSTM",
    "attention with its table",
    "attention alone",
    "linear attention",
]
some = [row for row in stored if row.get("kind") in held]
figures.grow(some, "n", ("mib",))

# %% [markdown]
r"""
At 4,096 tokens the table is 4,096² numbers of 4 bytes, 64 MiB, and grows with $n^2$; with the output it makes 65. The fused kernel computes the same numbers in 1.6 MiB (5.0 with the projections, not drawn), the RNN takes 3.0, linear attention in chunks 5.1. So what costs memory is the *table*, not attention (lesson 02).

## 4 · One core and two

"An RNN cannot run in parallel." So far one thread did everything, and the RNN's price was that of many small calls. Give both a second core.

> **Predict.** Two threads instead of one, one sequence of 512 tokens of width 256, forward and backward. How much faster does attention get? How much the RNN? And in a batch of 32 sequences?
>
> <details><summary>Answer</summary>
> Attention: a good deal, at most a factor of two. The RNN: nothing with one sequence, since each step is one small product, and the next step waits. With 32 sequences a step is a larger product, and a second core has something to do: parallel over the <em>batch</em>, not over time.
> </details>
"""

# %%
figures.threads(stored)


# %%
def faster(kind, batch):
    """How many times as fast two threads are, for each repeat."""
    one, two = (
        [
            row["seconds"] for row in stored
            if row["part"] == "threads"
            and (row["kind"], row["batch"], row["threads"]) == (kind, batch, count)
        ]
        for count in (1, 2)
    )  # fmt: skip
    return [a / b for a, b in zip(one, two, strict=True)]


verdict("attention, one sequence: one and a half times as fast, and more",
    min(faster("self-attention", 1)) > 1.5)  # fmt: skip
verdict("RNN, one sequence: nothing gained", max(faster("RNN", 1)) < 1.1)
verdict("RNN, 32 sequences: some gain", min(faster("RNN", 32)) > 1.2)
verdict("LSTM: about a third faster with one sequence, nearly twice as fast with 32",
    all(1.25 < a < 1.45 and 1.75 < b < 2
        for a, b in zip(faster("LSTM", 1), faster("LSTM", 32), strict=True)))  # fmt: skip

# %%
in_batch = {
    kind: [
        row["seconds"] for row in stored
        if row["part"] == "threads"
        and (row["kind"], row["batch"], row["threads"]) == (kind, 32, 1)
    ]
    for kind in ("RNN", "self-attention")
}  # fmt: skip
verdict("32 sequences, one thread: the RNN is more than twice as fast as attention",
    2 * max(in_batch["RNN"]) < min(in_batch["self-attention"]))  # fmt: skip

# %% [markdown]
r"""
So the sentence holds, with two conditions. *Over time*: over a batch even the RNN runs in parallel, and in training there is a batch. And *not all of it*: half of a recurrent layer's multiplications bring the tokens in, and those wait for nothing. If only that half is shared by two cores, ½ + ¼ = ¾ of the time is left, 1.33 times as fast:
about what the LSTM gains. The RNN gains nothing; probably even its products for the tokens are made one by one here. (A first measurement, on a machine that was busy with other things, told another story: there the second thread made the RNN more than twice as slow. A stopwatch measures the whole machine.)

Look at the seconds in the figure, too. With *one* sequence attention is the fastest of the three. In a batch of 32, at this length and width, the RNN is: a third of attention's time. Its small products have become larger ones, and it has fewer multiplications to make. "Attention is faster" is a sentence about a batch, a length and a machine.

*What this does not show.* Two threads are few. On a GPU, with thousands, the chain of $n$ small steps weighs far more; the course's stored runs have none.
"""

# %% [markdown]
r"""
## 5 · Remember one thing

### The task

A symbol, a stretch of filler, a question: which symbol was it?
"""

# %%
from lesson_lib.data.recall import draw, text
from lesson_lib.models.recaller import Recaller, gradients

batch = draw(torch.Generator().manual_seed(0), 4, distance=12)
for tokens, answer in zip(batch.tokens, batch.answer, strict=True):
    print(text(tokens), "->", text(answer[None]))

# %% [markdown]
r"""
Eight symbols A to H, eight filler letters. The filler says nothing. Who guesses is right once in eight times. The answer is read at the last token, by one linear map. So what is known of the symbol must have got there.

We train three systems, equally wide (the LSTM and attention have three times the RNN's weights), with the same 400 steps of 32 sequences, for a distance of 50 tokens: an RNN, an LSTM, and one layer of attention with the positions of lesson 05.

> **Predict.** Which of them can say the symbol after 50 tokens?
>
> <details><summary>Answer</summary>
> After 400 steps only attention; the other two guess. Whether they <em>cannot</em> or only <em>did not learn to</em> is another question, and we put it below.
> </details>
"""

# %% tags=["nbval-ignore-output"]
models, scores = {}, {}
for system in ("RNN", "LSTM", "attention"):
    models[system], history = recall.train(system, 50, seed=0)
    scores[system] = recall.accuracy(models[system], 50)
    print(f"{system:10} {scores[system]:6.1%} of 1,000, {history.cpu_s:5.1f} s")

# %%
verdict("attention: at least 95 of 100 right", scores["attention"] > 0.95, trained=True)
verdict("RNN and LSTM: no better than a fifth",
    max(scores["RNN"], scores["LSTM"]) < 0.2, trained=True)  # fmt: skip

# %% [markdown]
r"""
### What they had to learn from

Learning goes by gradients. So ask of each *untrained* network: how much would the right answer change if the vector at place $j$ changed a little? That is what training gets to hear from that place.
"""

# %%
at_start = {
    system: recall.gradients(recall.start(system, 50), 50)
    for system in ("RNN", "LSTM", "attention")
}
figures.forgetting(at_start, distance=50)

# %%
times_smaller = {system: sizes[-2] / sizes[0] for system, sizes in at_start.items()}
verdict("RNN: at the symbol more than 1e17 times smaller than next to the question",
    times_smaller["RNN"] > 1e17)  # fmt: skip
verdict("LSTM: more than 1e8 times", times_smaller["LSTM"] > 1e8)
verdict("attention: less than 10 times", times_smaller["attention"] < 10)

# %% [markdown]
r"""
The straight lines of section 1 again, now the other way round. In the RNN the gradient at the symbol is nineteen orders of magnitude smaller than next to the question; Hochreiter described it in 1991, Bengio, Simard and Frasconi in 1994: the **vanishing gradient**. In attention all tokens are one step away.

### Over the distance

The stored runs: five systems, six distances, three seeds, 400 steps for all; the learning rate of each system was chosen on validation sequences. "BiRNN" is read at the question, like the others. "BiRNN, both ends" is read where each direction *ends*, at the last token and at the first.
"""

# %%
remembered = results("recall")["rows"]
figures.recall(remembered)


# %%
def right_at(kind, system, distance, aid="none"):
    """Accuracy of the stored runs, a number for each seed."""
    wanted = (kind, system, distance, aid)
    return [
        row["accuracy"] for row in remembered
        if (row["kind"], row.get("system"), row.get("distance"), row.get("aid")) == wanted
    ]  # fmt: skip


for system in ("RNN", "LSTM", "BiRNN"):
    late = [r for far in (25, 50, 100, 200) for r in right_at("point", system, far)]
    verdict(f"{system}: right at 5, guessing from 25 on, in every seed",
        min(right_at("point", system, 5)) > 0.8 and max(late) < 0.2)  # fmt: skip
for system in ("attention", "BiRNN, both ends"):
    far = right_at("point", system, 200)
    verdict(f"{system}: right at 200, in every seed", min(far) > 0.95)

# %% [markdown]
r"""
The left panel is the figure that everybody knows: recurrent networks forget, attention does not. At 10 tokens the LSTM is right in .88 to 1.00, the RNN in .13, .26 and 1.00: there its start decides. The right panel gives the reason: the gradient at the symbol falls by seven to ten orders of magnitude every 25 tokens in the RNN, every 50 in the LSTM. Attention's falls about as 1 / *n*, since *n* tokens share the weight.

The fifth curve is a warning. Read at both ends, a BiRNN is right everywhere. Has it learned to carry the symbol over 200 tokens? No: its right-to-left half ends *at* the symbol, which is the first token. Misconception 1 below moves the symbol.

### Can they, at all?

Not learned does not mean not possible. Set the weights by hand: symbol *s* switches unit *s* on, and the unit keeps itself on. In the RNN by feeding itself twice what it has, so that tanh cannot pull it back to 0. In the LSTM by gates: the forget gate always open, the input gate open for the eight symbols and shut
for everything else.

> **Predict.** With weights set by hand, over what distance can 32 units keep one of eight symbols?
>
> <details><summary>Answer</summary>
> Over any that you will wait for. The cell below goes to 1,000. But look at the gradient beside it.
> </details>
"""

# %%
rnn, lstm, one = Recaller("RNN").double(), Recaller("LSTM").double(), torch.eye(8)
with torch.no_grad():
    for parameter in (*rnn.parameters(), *lstm.parameters()):
        parameter.zero_()
    for latched in (rnn, lstm):
        latched.embed.weight[:8, :8] = latched.read.weight[:, :8] = one
    rnn.core.layer.weight_ih_l0[:8, :8] = 5 * one  # the symbol switches its unit on
    rnn.core.layer.weight_hh_l0[:8, :8] = 2 * one  # and the unit holds itself
    enter, keep, _, out = lstm.core.layer.bias_ih_l0.view(4, -1)
    enter[:], keep[:], out[:] = -40, 40, 40  # gates: shut, open, open
    enter, _, written, _ = lstm.core.layer.weight_ih_l0.view(4, 32, 32)
    enter[:8, :8], written[:8, :8] = 80 * one, one  # a symbol opens the first
known, held = {}, {}
for distance in (10, 100, 1000):
    batch = draw(torch.Generator().manual_seed(0), 40, distance)
    for name, latched in {"RNN": rnn, "LSTM": lstm}.items():
        answers = latched(batch.tokens).argmax(-1)
        known[name, distance] = (answers == batch.answer).float().mean().item()
        held[name, distance] = gradients(latched, batch)[0].item()
        found = f"{known[name, distance]:.0%}, gradient {held[name, distance]:.0e}"
        print(f"{distance:4} {name:4} {found}")

# %% [markdown]
r"""
Both know the symbol after 1,000 tokens. But look at this RNN's gradient: 10⁻¹¹ after ten tokens, where the untrained one has 10⁻⁵; 10⁻⁸¹ after a hundred; and after a thousand it is too small for the number format. A unit that holds itself so sits where tanh is flat: it is *saturated*, and each step multiplies the gradient by about 0.17. It remembers, and training hears
nothing of it. Bengio, Simard and Frasconi (1994) describe such a trade-off between learning by gradients and holding on to what was learned. The LSTM's way out is a memory that is *added to*, not squashed: kept times 1, its gradient is the same at 10 and at 1,000.
"""

# %% [markdown]
r"""
### Can they learn it?

So 400 steps were too few, or the gradient too small, or the start wrong. Give the recurrent networks a fair chance, one aid at a time and all together:

- **longer**: up to 4,000 steps, ten times as many; training ends as soon as all validation sequences, at the full distance, are right;
- **start**: initial weights that keep what is there. For the RNN a $U$ that is *orthogonal*: it turns a vector and leaves its length. For the LSTM biases that hold the forget gates open for about as long as the distance, which they are told ("chrono initialization", Tallec and Ollivier 2018);
- **curriculum**: each batch draws its distance between 1 and a bound, and the bound grows to the full distance in the first half of all steps;
- **all three**. The learning rate of each was chosen anew, on validation sequences. (For "longer" that choice says nothing: it was made at 25 tokens, where none of the three rates did better than guessing. So "longer" is one rate, and a better one beyond those three is not ruled out.)

> **Predict.** Which aid helps most? And does an LSTM with all three reach a distance of 200?
>
> <details><summary>Answer</summary>
> For the LSTM the start or the curriculum, either alone, is enough for 50 tokens. The RNN's start helps at 10, its curriculum at 25, and in part beyond. More steps alone help at 10 tokens and no further. With all three the LSTM is right at 200 tokens, in all three seeds, after 240 to 400 steps.
> </details>
"""

# %%
figures.aids(remembered)

# %%
helped = right_at("aid", "LSTM", 200, "all three")
verdict("LSTM, all three: right at 200 tokens, in every seed", min(helped) > 0.95)
steps_taken = [
    row["steps"] for row in remembered
    if (row["kind"], row.get("system"), row.get("aid")) == ("aid", "LSTM", "all three")
]  # fmt: skip
verdict(
    "and it took 240 to 400 steps", 240 <= min(steps_taken) <= max(steps_taken) <= 400
)
rnn_helped = [right_at("aid", "RNN", far, "all three") for far in (100, 200)]
verdict("RNN, all three: right at 100 in every seed, at 200 in two of three",
    min(rnn_helped[0]) > 0.95 and sorted(rnn_helped[1])[1] > 0.95)  # fmt: skip
only_longer = [r for far in (50, 100) for r in right_at("aid", "LSTM", far, "longer")]
verdict("ten times the steps alone: still guessing at 50 and 100",
    max(only_longer) < 0.2)  # fmt: skip

# %% [markdown]
r"""
**That is the most important figure of this lesson.** An LSTM that starts well and begins with short distances remembers over 200 tokens, after 240 to 400 steps; with 400 steps at the full distance it failed. The plain RNN, too, reaches 100 in all three seeds, and 200 in two of three (0.89 in the third). So "LSTMs forget after some tens of tokens" is a sentence about a training, not about LSTMs.

And there is a second surprise in it. With "all three" the bound would reach the full distance only after 2,000 steps. At step 400 it stands at 41. So the LSTM that is right at 200 was never trained beyond 41. It learned near, and its start, which was told 200, made it able to carry the rest. Try it live, and go further: an LSTM without any aid that was trained at distance *5*, and never saw more. How far does it remember?
"""

# %% tags=["nbval-ignore-output"]
models["LSTM, helped"], history = recall.train("LSTM", 50, seed=0, aid="all three")
print(
    f"helped, at 50: {recall.accuracy(models['LSTM, helped'], 50):.1%}, {history.cpu_s:.1f} s"
)
near_only, history = recall.train("LSTM", 5, seed=0)
carried = recall.accuracy(near_only, 200)
print(f"trained at 5, asked at 200: {carried:.1%}")

# %%
verdict("the helped LSTM is right at 50",
    recall.accuracy(models["LSTM, helped"], 50) > 0.9, trained=True)  # fmt: skip
verdict(
    "trained at 5, asked at 200: far better than guessing", carried > 0.3, trained=True
)

# %% [markdown]
r"""
Trained at 5 it remembers over 200 (in the stored runs 1.00, 0.93 and 0.63 of the sequences; a guess has 0.125). Trained at 25 it learns nothing. For the LSTM it is not the keeping that is hard. It is *finding out that something must be kept*, from a gradient that has nearly gone on its way back. There attention has its advantage: each token is one step away, from the first step of training on.

What does keeping look like from inside? Both LSTMs read the same 31 tokens. A column is a token, a row is one of the 32 units:
"""

# %%
sequence = draw(torch.Generator().manual_seed(2), 1, distance=30).tokens
with torch.no_grad():
    inside = {
        name: models[name].core(models[name].embed(to_device(sequence)))[0]
        for name in ("LSTM, helped", "LSTM")
    }
figures.states(inside, list(text(sequence[0])), limit=0.5)

# %%
in_turn = sequence.repeat(8, 1)
in_turn[:, 0] = torch.arange(8)  # each of the eight symbols, before the same filler
with torch.no_grad():
    spread = {
        name: models[name]
        .core(models[name].embed(to_device(in_turn)))
        .std(0)
        .norm(dim=-1)
        for name in inside
    }  # how far apart the eight states are, token by token
verdict("helped: at the question the states of the eight symbols are as far apart as at the symbol",
    spread["LSTM, helped"][-1] > spread["LSTM, helped"][0], trained=True)  # fmt: skip
verdict("plain: less than a thousandth of it is left",
    spread["LSTM"][-1] < 1e-3 * spread["LSTM"][0], trained=True)  # fmt: skip

# %% [markdown]
r"""
In the helped LSTM most rows are stripes: the unit is set by the symbol, and stays, whatever the filler says. In the plain one each column is made by the last few tokens.

In the stored runs, each model was asked at all distances:
"""

# %%
figures.asked(remembered)

# %% [markdown]
r"""
Read a row from left to right: trained at one distance, asked at others. The LSTM that has learned the symbol, at 5 or 10, keeps it. Attention carries over only in part, since it meets positions that it never saw (lesson 05).

The RNN's first row looks as if it forgot: 0.00 at 25 in two of three seeds, and that is *worse* than guessing. Whoever is wrong so reliably knows something. Its state goes on moving, and the answer with it. So let the answers be renamed, A for C and so on, the best renaming found on validation sequences, and many are right:
"""

# %%
for named, column in (("as they are", "asked"), ("renamed", "kept")):
    found = [
        [row[column][far] for row in remembered
         if (row["kind"], row.get("system"), row.get("distance")) == ("point", "RNN", 5)]
        for far in ("25", "200")
    ]  # fmt: skip
    print(f"RNN trained at 5, answers {named}: at 25 {found[0]}, at 200 {found[1]}")

# %% [markdown]
r"""
(Three seeds each.) At 200 tokens the renamed answers are right in 0.29 to 0.68 of the cases; a guess has 0.125. A good part of the symbol is still there.

And one more shortcut: in training the symbol was always the *first* token. Put as much filler before it as behind it, and attention trained at 50 is right in .28, .60 and .30 of the cases; trained at other distances in .41 to 1.00. Part of what it has learned is "look at place 0"; part may be that it never saw such places.

Ask the four models of this section yourself:
"""

# %%
from lesson_lib.chapters.c08_attention_vs_rnn.recall_explorer import DistanceExplorer

DistanceExplorer(models)

# %% [markdown]
r"""
*Do:* set the distance to 1, 5 and 10. *Look:* the RNN and the LSTM, trained at 50, guess even here: they have learned nothing. *Do:* go to 50. *Look:* the plain LSTM's curve falls on the left, down to 10⁻¹⁰ and less; the helped one's stays up, all the way to the symbol. *Do:* go on to 200. *Look:* attention and the helped LSTM, which of them is still right, and how sure are they?

*What this does not show.* One task, networks 32 numbers wide. One symbol is little to remember, and filler is easily told from symbols. With many things to keep, a state gets full (section 7). And nothing here says how well either learns a language.
"""

# %% [markdown]
r"""
## 6 · Who sees whom

An output of an RNN sees what stands to its left, one of a bidirectional network sees all; so the sources say. That can be measured: `measure.sensitivity` computes the norm of the derivative of output $i$ with respect to
input $j$, for all pairs. 0 means that the output does not depend on that input at all.

> **Predict.** Four layers with random weights, ten tokens. Which tables of 10 × 10 are full, and which are a triangle? Where are the large numbers?
>
> <details><summary>Answer</summary>
> RNN and causal attention: a triangle, nothing from the right. BiRNN and attention: full. In the recurrent ones the numbers fall with the distance from the diagonal. In attention they do not.
> </details>
"""

# %%
_ = torch.manual_seed(0)
heads, single = MultiHeadAttention(8, 1).eval(), Recurrent("RNN", 8, 8)
both = Recurrent("RNN", 8, 8, both_ways=True)
layers = {
    "RNN": single,
    "BiRNN": both,
    "self-attention": lambda x: heads(x, x, x).output,
    "causal self-attention": lambda x: heads(x, x, x, mask=causal(x.shape[1])).output,
}
sequences = torch.randn(20, 10, 8)
seen = {
    name: torch.stack([measure.sensitivity(layer, x) for x in sequences]).mean(0)
    for name, layer in layers.items()
}  # the mean over 20 random sequences
figures.sensitivities(seen)

# %%
right_of = torch.ones(10, 10).triu(1).bool()  # j > i: the future
for name, table in seen.items():
    blind = bool((table[right_of] == 0).all())
    full = bool((table > 0).all())
    print(f"{name:22} blind to the right: {blind!s:5}  sees everything: {full}")

# %%
far_share = {
    name: (table.diagonal(-8).mean() / table.diagonal(-1).mean()).item()
    for name, table in seen.items()
}
verdict("RNN and BiRNN: eight tokens away a tenth of the neighbour, or less",
    max(far_share["RNN"], far_share["BiRNN"]) < 0.1)  # fmt: skip
verdict("attention: more than a third, with or without the mask",
    min(far_share["self-attention"], far_share["causal self-attention"]) > 1 / 3)  # fmt: skip

# %% [markdown]
r"""
"Sees" is one thing, then, and how much of it arrives another, before training at least. The BiRNN's table has no zero, and the source is right to add that it must *carry* what it sees: its corners are as dark as the RNN's. (Causal attention falls a little, too: late tokens share their weight among more keys.)
"""

# %% [markdown]
r"""
## 7 · The way back: attention that is an RNN

### Softmax stands in the way

Attention is a product of three matrices with a softmax after the first product: $\text{softmax}(Q K^\top) V$. Without softmax it would be
$(Q K^\top) V$, and a product of three matrices can be made in another order:

$$(Q K^\top)\, V \;=\; Q\, (K^\top V)$$

On the left stands a table of $n \times n$. On the right there is none: $K^\top V$ is $d \times d$, whatever the length.

> **Predict.** $n = 1{,}000$ tokens, $d = 10$. How many multiplications does each order take? (A product of $(a, b)$ and $(b, c)$ takes $a\,b\,c$.)
>
> <details><summary>Answer</summary>
> Left: 1000 · 10 · 1000 and 1000 · 1000 · 10, together 20 million. Right: 10 · 1000 · 10 and 1000 · 10 · 10, together 200,000: a hundredth, which is d / n.
> </details>
"""

# %%
_ = torch.manual_seed(0)
Q, K, V = torch.randn(3, 1000, 10).double()
orders = {"(Q K^T) V": lambda: (Q @ K.mT) @ V, "Q (K^T V)": lambda: Q @ (K.mT @ V)}
for name, order in orders.items():
    print(f"{name}  {measure.operations(order):10,} multiplications")
table_first, state_first = (order() for order in orders.values())
verdict("the same numbers", torch.allclose(table_first, state_first))

# %% [markdown]
r"""
That is a claim of lesson 03 once more (matrix-4): self-attention, said S3, is only "一连串矩阵的乘法", a chain of matrix products. Were it only that, the table of $n \times n$ would never have to be made.
"""

# %% [markdown]
r"""
So the softmax has to go. But its job has to be done: weights must not be negative, and each row must sum to 1. Softmax attention weighs key $j$ by $e^{q_i \cdot k_j}$. **Linear attention** takes another
weight that is never negative, and that is a plain product of vectors:

$$\phi(q_i) \cdot \phi(k_j), \qquad \phi(x) = \text{elu}(x) + 1 = \begin{cases} x + 1 & x > 0 \\ e^x & x \le 0 \end{cases}$$

φ is called the **feature map**: it works number by number, and what comes out is positive. Dividing each row by its sum does the rest. (Katharopoulos and others, 2020; they leave out the $1/\sqrt{d}$, and so do we.)
"""

# %%
show_source(feature_map)

# %% [markdown]
r"""
### It is still the one function

`attend` takes any score. Softmax takes $e$ to the power of it, so the score whose softmax gives those weights is their logarithm:
"""


# %%
def linear_score(q, k):
    """log(phi(q) · phi(k)): softmax makes weights of it that are phi(q) · phi(k), divided by their sum."""
    return torch.log(feature_map(q) @ feature_map(k).mT)


q, k, v = torch.randn(3, 2, 50, 8)  # two sequences of 50 tokens
by_table = attend(q, k, v, score=linear_score).output
assert_close(attend_linear(q, k, v), by_table, atol=1e-5, rtol=1e-5)
masked = attend(q, k, v, score=linear_score, mask=causal(50)).output
assert_close(attend_linear(q, k, v, causal=True), masked, atol=1e-5, rtol=1e-5)
print("attend with another score, and the library's form without a table: the same")

# %% [markdown]
r"""
### Token by token

Now causal: token $i$ may look at tokens $1 \ldots i$. The query does not depend on $j$, so it can be taken out of the sum:

$$o_i = \frac{\sum_{j \le i} \big(\phi(q_i) \cdot \phi(k_j)\big)\, v_j}{\sum_{j \le i} \phi(q_i) \cdot \phi(k_j)}
= \frac{S_i^\top \phi(q_i)}{z_i \cdot \phi(q_i)}$$

$$S_i = \sum_{j \le i} \phi(k_j)\, v_j^\top, \qquad z_i = \sum_{j \le i} \phi(k_j)$$

And sums can be made one term at a time:

$$S_i = S_{i-1} + \phi(k_i)\, v_i^\top, \qquad z_i = z_{i-1} + \phi(k_i)$$

A state, that takes up one token after the other, with the same rule at every step: **that is an RNN**. Its state is the matrix $S$ and the vector $z$.

By hand, with one number in place of vectors. Two tokens: $q = 0$ for both, so $\phi(q) = 1$. Keys 0 and 2, so $\phi(k)$ is 1 and 3. Values 8 and 4.

> **Predict.** The state (S, z) after each token, and the two outputs?
>
> <details><summary>Answer</summary>
> After the first: S = 1 · 8 = 8, z = 1, output 8 / 1 = 8. After the second: S = 8 + 3 · 4 = 20, z = 1 + 3 = 4, output 20 / 4 = 5. That is the mean of 8 and 4 with weights 1/4 and 3/4.
> </details>
"""

# %%
state = None
for key, value in ((0.0, 8.0), (2.0, 4.0)):
    output, state = step(
        torch.zeros(1), torch.tensor([key]), torch.tensor([value]), state
    )
    print(f"S = {state.S.item()}, z = {state.z.item()}, output {output.item()}")
show_source(step)


# %%
def token_by_token(q, k, v):
    """Causal linear attention as a recurrence: q, k, v of shape (n, d)."""
    q, k = feature_map(q), feature_map(k)
    S, z, outputs = torch.zeros(k.shape[1], v.shape[1]), torch.zeros(k.shape[1]), []
    for i in range(len(q)):
        S = S + torch.outer(k[i], v[i])
        z = z + k[i]
        outputs.append(S.T @ q[i] / (z @ q[i]))
    return torch.stack(outputs)


assert_close(token_by_token(q[0], k[0], v[0]), masked[0], atol=1e-5, rtol=1e-5)
assert_close(as_rnn(q, k, v), masked, atol=1e-5, rtol=1e-5)
print("an RNN, and attention: the same numbers")

# %% [markdown]
r"""
### An RNN that need not wait

Compare with section 1. There the new state was a $\tanh$ of the old one, and fifty tanh cannot be joined into one. Here the old state is only *added to*. Sums may be made in any order: add neighbours, then pairs of pairs, and so on.
After $m$ rounds of doubling each place holds the sum over $2^m$ tokens. That is the last line of section 2's table: one step to make $\phi(k) v^\top$, $\log_2 n$ rounds, one step to read. 5 for 8 tokens, 8 for 64. So what must wait is not "an RNN" but a recurrence that is **not linear** in its state. (Section 9 shows how far one gets there by guessing.)
"""


# %%
def by_doubling(terms):
    """All sums of the terms up to each place, (n, ...) -> (n, ...), and the rounds it took."""
    sums, reach, rounds = terms, 1, 0
    while reach < len(terms):
        sums = torch.cat([sums[:reach], sums[reach:] + sums[:-reach]])
        reach, rounds = 2 * reach, rounds + 1
    return sums, rounds


products = feature_map(k[0])[:, :, None] * v[0][:, None, :]  # phi(k) v^T, (50, 8, 8)
sums, rounds = by_doubling(products)
assert_close(sums, products.cumsum(0), atol=1e-5, rtol=1e-5)
print(f"50 states in {rounds} rounds: 2^6 = 64 is the first power that reaches 50")

# %% [markdown]
r"""
Doubling holds $n$ states of $d \times d$ numbers, and makes $n \log_2 n$ additions of them. In practice a third way is taken, also by `attend_linear(causal=True)`: **chunks** of 64 tokens, with one state for each chunk. Within a chunk it makes a small table, as attention does. What came before the chunk it takes from a
state, as an RNN does.
"""

# %%
figures.chunks(n=16, chunk=4)

# %% [markdown]
r"""
How many multiplications does that save, against attention over all pairs? (Causal attention that leaves out what the mask hides would need half of them.)
"""

# %%
for n in (512, 4096):
    all_pairs = costs.formula("attention alone", n, 64)
    in_chunks = costs.formula("linear attention", n, 64)
    print(
        f"{n:5,} tokens: attention multiplies {all_pairs / in_chunks:.1f} times as much"
    )

# %% tags=["nbval-ignore-output"]
with on("cpu"):
    pace = costs.chunks(1024)
for form, per_second in pace.items():
    print(f"{form:8} {per_second:>9,.0f} tokens a second, forward and backward")

# %%
verdict("chunks: more than six times as many as the loop",
    pace["chunked"] > 6 * pace["loop"], trained=True)  # fmt: skip
ratios = [r["chunked"] / r["loop"] for r in stored if r["part"] == "chunks"]
verdict("stored, one head and eight, 1,024 and 4,096 tokens: nine times and more",
    min(ratios) > 9)  # fmt: skip

# %% [markdown]
r"""
### Why softmax has no such state

Could softmax attention, too, be written with a state of fixed size? It would need a φ with $e^{q \cdot k} = \phi(q) \cdot \phi(k)$, and φ may have only so many numbers, say $r$. Then the table of all $e^{q_i \cdot k_j}$ would
be a product of a matrix with $r$ columns and one with $r$ rows, and its rank at most $r$. So look at the rank.

> **Predict.** 60 queries and 60 keys of width $d = 4$. What rank has the table of $\phi(q_i) \cdot \phi(k_j)$? And that of $e^{q_i \cdot k_j}$?
>
> <details><summary>Answer</summary>
> The first has rank 4: it is a product of (60, 4) and (4, 60). The second has as much rank as there are tokens: more tokens, more rank. No r is enough.
> </details>
"""

# %%
_ = torch.manual_seed(0)
Q, K = 1.5 * torch.randn(2, 60, 4).double()
tables = {
    "exp(q · k)": (Q @ K.T).exp(),
    "φ(q) · φ(k)": feature_map(Q) @ feature_map(K).T,
}
figures.rank(tables, d_k=4)

# %%
for name, table in tables.items():
    sizes = torch.linalg.svdvals(table)
    print(
        f"{name}: above rounding behind the fourth? {bool(sizes[4] > 1e-12 * sizes[0])}"
    )
one_more = [
    torch.linalg.matrix_rank((Q @ K.T).exp()[:n, :n]).item() for n in (4, 12, 36)
]
print("rank of exp's table for 4, 12 and 36 tokens:", one_more)

# %% [markdown]
r"""
An exponential is a series with infinitely many terms, $e^{s} = 1 + s + s^2/2 + \ldots$, and each power of $q \cdot k$ brings new features. The figure also shows a way out: the singular values *fall*. A state of finite size can come near.
That is the idea behind random features, in lesson 11. What softmax attention keeps instead of a state is *all* keys and values: the **cache** of lesson 06.

### What the state costs

A state of $d \times d$ numbers cannot hold a text of any length. Store $n$ pairs of a key and a value, all random. Then ask for each value by its key. The answer is a mixture of all values. Take the even mixture away, what every question gets; does the rest
point to the right value more than to any other?

> **Predict.** Softmax attention and linear attention, keys of width 16 and of width 64. Which of the four still find 256 pairs?
>
> <details><summary>Answer</summary>
> Both of the softmax: it has all pairs in its cache, and can look sharply. Linear attention has added them all into one matrix. With 16 numbers half are lost at some 20 to 25 pairs, with 64 at some 160.
> </details>
"""

# %%
STORED = (2, 4, 8, 16, 32, 64, 128, 256)


def found_again(look, width, stored, seed):
    """The share of values to which the answers for their keys point the most."""
    generator = torch.Generator("cpu").manual_seed(seed)
    keys, values = torch.randn(2, stored, width, generator=generator, device="cpu")
    keys, values = 10 * F.normalize(keys, dim=-1), F.normalize(values, dim=-1)
    answers = look(keys, keys, values) - values.mean(0)
    points_to = (answers @ (values - values.mean(0)).T).argmax(1)
    return (points_to == torch.arange(stored)).float().mean().item()


looks = {"linear": attend_linear, "softmax": lambda *qkv: attend(*qkv).output}
right = {
    f"{name}, width {width}": [
        [found_again(look, width, n, seed) for seed in range(5)] for n in STORED
    ]
    for name, look in looks.items()
    for width in (16, 64)
}
figures.pairs_held(STORED, right)

# %%
at_256 = {name: shares[-1] for name, shares in right.items()}
verdict("softmax: all 256 pairs, in all five draws",
    min(at_256["softmax, width 16"] + at_256["softmax, width 64"]) == 1)  # fmt: skip
verdict("linear, width 16: less than a tenth", max(at_256["linear, width 16"]) < 0.1)
verdict("linear, width 64: more than width 16, less than half",
    max(at_256["linear, width 16"]) < min(at_256["linear, width 64"])
    and max(at_256["linear, width 64"]) < 0.5)  # fmt: skip

# %% [markdown]
r"""
A wider state holds more, and every fixed state is full at some time. That is the price of the way back. (Keys here have length 10, so that softmax can look sharply. Trained keys, or another rule of writing into the state, hold more pairs; with a fixed number of digits no rule holds all.)
"""

# %% [markdown]
r"""
## 8 · Writing, token by token

A language model that writes (lesson 06) takes up its own tokens one after the other. No layer runs in parallel then. Softmax attention asks *all* tokens so far, and keeps their keys and values in a cache. A recurrent network has its state.

> **Predict.** 64 numbers a token. How many numbers does each keep after 1,000 tokens: softmax attention, linear attention, an LSTM?
>
> <details><summary>Answer</summary>
> Softmax attention: a key and a value for each token, 2 · 64 · 1000 = 128,000, and growing. Linear attention: S and z, 64 · 64 + 64 = 4,160, always. An LSTM: state and cell, 128, always.
> </details>
"""

# %%
with on("cpu"):
    writing = costs.generation(1024)
for system in costs.GENERATORS:
    kept = {row["token"]: row["numbers"] for row in writing if row["system"] == system}
    print(f"{system:18}", {token: kept[token] for token in (1, 16, 128, 1024)})

# %% tags=["measured"]
figures.generation(writing)

# %% [markdown]
r"""
The count is exact: softmax attention keeps 128 numbers more with every token, the other two keep what they have. At 33 tokens the cache is already larger than $S$ and $z$. The clock follows later, since a short cache is read quickly: linear attention and the LSTM take the same time throughout; softmax takes about half as much again for the first few hundred tokens, then pulls away. (The first tokens are dear for all three: everything is made for the first time.) In the stored runs they go on to 4,096.
"""


# %%
def token_seconds(system, token):
    """Seconds for that token in the stored runs, a number for each repeat."""
    return [
        row["seconds"] for row in stored
        if row["part"] == "generation" and (row["system"], row["token"]) == (system, token)
    ]  # fmt: skip


later = {
    system: [
        b / a
        for a, b in zip(
            token_seconds(system, 64), token_seconds(system, 4096), strict=True
        )
    ]
    for system in costs.GENERATORS
}
verdict("softmax attention: token 4,096 takes over five times what token 64 took",
    min(later["softmax attention"]) > 5)  # fmt: skip
verdict("linear attention and the LSTM: the same, within a fifth",
    max(later["linear attention"] + later["LSTM"]) < 1.2)  # fmt: skip

# %% [markdown]
r"""
That is what an RNN has and softmax attention has not: a price per token that never rises. It is one reason why recurrent forms are looked at again for long texts (lesson 11).
"""

# %% [markdown]
r"""
## 9 · What the sources say

Each claim, with what this notebook has just found. ✓ holds, ◐ holds with a condition, ✗ corrected. (S0 is an overview of self-attention, S1 notes on position and
complexity, S2 the Transformer with code; S3 are notes on a lecture.)
"""

# %%
from lesson_lib.heads import Cache
from lesson_lib.measure import dependencies, growth_exponent, operations, sensitivity
from lesson_lib.recurrent import State

# %%
stacks = ("convolutions", "dilated convolutions", "window attention")
ways = {
    name: [paths.counted(paths.network(name, n)) for n in (8, 16)]
    for name in ("RNN", "self-attention", *stacks)
}
print("n = 8, n = 16          steps     longest path")
for name, (short, long) in ways.items():
    print(f"{name:21} {short.steps:3} {long.steps:3} {short.path:9} {long.path:3}")

# %%
sizes, powers = [16, 32, 64], {}
for kind in ("convolution", "RNN", "attention alone"):
    over_n = [costs.counted(kind, size, 16) for size in sizes]
    over_d = [costs.counted(kind, 16, size) for size in sizes]
    powers[kind] = tuple(round(growth_exponent(sizes, y), 6) for y in (over_n, over_d))
    print(f"{kind:15} multiplications: n^{powers[kind][0]:.0f} d^{powers[kind][1]:.0f}")

# %% tags=["claim:rnn-1"]
n, d = 48, 32
count = {kind: costs.counted(kind, n, d) for kind in (*powers, "self-attention")}
claim("rnn-1", {
    "counted: 3 n d² for three taps, 2 n d² for an RNN, 2 n² d for attention": [*count.values()][:3]
    == [3 * n * d**2, 2 * n * d**2, 2 * n**2 * d],
    "so they grow with the powers of the table": [*powers.values()] == [(1, 2), (1, 2), (2, 1)],
    "attention has as many as an RNN where n = d": costs.counted("attention alone", d, d)
    == costs.counted("RNN", d, d),
    "its layer has 4 n d² more, for the projections": count["self-attention"]
    == count["attention alone"] + 4 * n * d**2,
    "steps and longest path: n in an RNN, 1 in attention": [w[:2] for w in ways["RNN"]]
    == [(8, 8), (16, 16)] and {w[:2] for w in ways["self-attention"]} == {(1, 1)},
    "three taps, stacked: n - 1; dilated: log2 n": [w.path for w in ways["convolutions"]]
    == [7, 15] and [w.path for w in ways["dilated convolutions"]] == [3, 4],
    "a window of radius 2: n / 2": [w.path for w in ways["window attention"]] == [4, 8],
    "a stack waits as often as it is deep: O(1) is one layer's": all(
        w.steps == w.path for name in stacks for w in ways[name]),
})  # fmt: skip

# %% [markdown]
r"""
S1 says of self-attention: "完全并行,最长序列为1", fully parallel, the longest *sequence* is 1. Earlier it has the right word, 最长路径, the longest *path*. What is
measured there is no longest path either: of all the ways that a signal can take, take the shortest; and then, of all pairs of tokens, the pair for which that is longest.

> **Predict.** An RNN in which each state also sees the state four before it. 16 tokens. How long is the longest way from an input to an output, and how long the longest of the shortest?
>
> <details><summary>Answer</summary>
> 16, through every state; and 7: one unit to take up the first token, three leaps of 4 and three steps of 1.
> </details>
"""

# %%
tokens = {("input", i): torch.ones(1, 2, requires_grad=True) for i in range(16)}
leaping = {}
for i, token in enumerate(tokens.values()):
    before = [leaping["state", i - back] for back in (1, 4) if i >= back]
    leaping["state", i] = (token + sum(before)).tanh()
graph = dependencies(tokens, leaping)
shortest = dict(networkx.all_pairs_shortest_path_length(graph))
largest = max(
    length for i in tokens for o, length in shortest[i].items() if o in leaping
)
longest = networkx.dag_longest_path_length(graph)
print("leaps of 4: longest of all paths", longest, "- of the shortest", largest)

# %% tags=["claim:rnn-2"]
lengths = (1, 2, 40)
claim("rnn-2", {
    "attention takes sequences of any length": all(
        attend(*[torch.randn(n, 5)] * 3).output.shape == (n, 5) for n in lengths),
    "what is 1, for each of them, is the path from any token to any output": all(
        paths.counted(paths.network("self-attention", n)) == (1, 1, 0) for n in lengths),
    "where paths differ, it is the longest of the SHORTEST that counts": (longest, largest) == (16, 7),
})  # fmt: skip

# %% [markdown]
r"""
Do RNNs forget, or do they not learn to remember? Two questions, so two cells. The first asks untrained networks how strongly the symbol moves the answer; in float64, since float32 has no
number that small.
"""

# %%
far, strength = (10, 25, 50, 100, 200), {}
for system in ("RNN", "LSTM", "attention"):
    _ = torch.manual_seed(0)
    fresh = Recaller(system).double()
    batches = [draw(torch.Generator().manual_seed(0), 32, d) for d in far]
    strength[system] = [gradients(fresh, batch)[0].item() for batch in batches]
    print(f"{system:10}", "  ".join(f"{g:.0e}" for g in strength[system]))
power = growth_exponent(far, strength["attention"])
fall = {s: (strength[s][4] / strength[s][1]) ** (1 / 175) for s in ("RNN", "LSTM")}
print("times this with every token:", {s: round(f, 2) for s, f in fall.items()})
print(f"attention: about distance to the power {power:.1f}")

# %% [markdown]
r"""
The RNN's is multiplied by 0.4 with *every* token, the LSTM's by 0.65 (with other seeds by up to 0.5, and by about the same); attention's falls about as 1/n, since n tokens share the weight. So training hears nothing from 100 tokens ago. What weights set by hand can do, section 5 has shown.
"""

# %% tags=["claim:rnn-3"]
claim("rnn-3", {
    "untrained, an RNN's signal is halved with every token, or worse": 0.3 < fall["RNN"] < 0.5,
    "an LSTM's fades by a third": 0.6 < fall["LSTM"] < 0.7,
    "after 200 tokens nothing is left of either": max(strength[s][4] for s in fall) < 1e-30,
    "attention's falls no faster than 1/n, about": -1.3 < power < -0.5,
    "with weights by hand, both answer after 1,000 tokens: it is no limit": min(known.values()) == 1,
    "the RNN that latches it is deafer than one that forgets": held["RNN", 10] < strength["RNN"][0] / 1000,
    "the LSTM that keeps it hears 1,000 tokens as well as 10": abs(
        held["LSTM", 1000] / held["LSTM", 10] - 1) < 1e-6,
})  # fmt: skip

# %%
_ = torch.manual_seed(0)
x, look = torch.randn(11, 5), MultiHeadAttention(5, 1)
tables = {
    "RNN": sensitivity(Recurrent("RNN", 5, 5), x),
    "RNN both ways": sensitivity(Recurrent("RNN", 5, 5, both_ways=True), x),
    "attention": sensitivity(lambda x: look(x, x, x).output, x),
    "causal": sensitivity(lambda x: look(x, x, x, mask=causal(11)).output, x),
}
past = causal(11)
for name, table in tables.items():
    earlier, later = (int((table[some] > 0).sum()) for some in (past, ~past))
    print(f"{name:14} sees {earlier} of 66 up to now, {later} of 55 later")

# %% tags=["claim:rnn-4"]
both = tables["RNN both ways"]
claim("rnn-4", {
    "an RNN's output sees all to the left, and exactly nothing to the right": (tables["RNN"][past] > 0).all()
    and (tables["RNN"][~past] == 0).all(),
    "one that reads both ways sees all": (both > 0).all(),
    "but it must carry it: n + 1 units from end to end": paths.counted(
        paths.network("BiRNN", 11)).path == 12,
    "and most is lost on the way, before training: less than a hundredth arrives": max(
        both[-1, 0] / both[-1, -1], both[0, -1] / both[0, 0]) < 0.01,
    "attention sees all in one": (tables["attention"] > 0).all(),
    "causal attention, too, sees the left only": torch.equal(tables["causal"] > 0, past),
})  # fmt: skip

# %% [markdown]
r"""
An RNN waits at every token. "没有办法并行化", there is no way to make it parallel, says S3. Is there none? There is a way around: guess all states, and compute each anew from its neighbour's guess, *all at once*. One such sweep makes the first state right, two sweeps the first two;
so after n sweeps all are. That would be no gain.

> **Predict.** 200 tokens, a fresh RNN. How many sweeps until no state is off by more than 0.000001? And with the matrix that leads from state to state made three times as large?
>
> <details><summary>Answer</summary>
> 19, and 200. An RNN that forgets within some 20 tokens needs no more than the last 20 to know its state, and so it can run in parallel. One in which small differences grow has to wait.
> </details>
"""


# %%
def sweeps_until_right(layer, x):
    """How many sweeps over all states at once it takes to agree with the loop."""
    true = layer(x[None])[0]
    W, U, b, c = layer.layer.parameters()
    guess = torch.zeros_like(true)
    for number in range(1, len(x) + 1):
        before = nn.functional.pad(guess, (0, 0, 1, 0))[:-1]
        guess = (x @ W.T + b + before @ U.T + c).tanh()
        if (guess - true).abs().max() < 1e-6:
            return number


_ = torch.manual_seed(0)
layer, x = Recurrent("RNN", 32, 32).double(), torch.randn(200, 32).double()
with torch.no_grad():
    forgets = sweeps_until_right(layer, x)
    layer.layer.weight_hh_l0.mul_(3)
    keeps = sweeps_until_right(layer, x)
    brought = operations(lambda: x @ layer.layer.weight_ih_l0.T)
    whole = operations(lambda: layer.states(x[None]))
print("sweeps:", forgets, "where it forgets,", keeps, "where differences grow")

# %% tags=["claim:rnn-5"]
waits = {
    name: [paths.counted(paths.network(name, n)).steps for n in (4, 16, 64)]
    for name in ("RNN", "BiRNN", "causal self-attention", "linear attention, as an RNN",
                 "linear attention, by doubling")
}  # fmt: skip
claim("rnn-5", {
    "an RNN waits at every token, and reading both ways does not help": waits["RNN"] == [4, 16, 64]
    and waits["BiRNN"] == [5, 17, 65],
    "attention waits for nothing": waits["causal self-attention"] == [1, 1, 1],
    "a linear recurrence can go token by token": waits["linear attention, as an RNN"] == [5, 17, 65],
    "or in log2 n + 2 steps: sums can be made in any order": waits["linear attention, by doubling"]
    == [4, 6, 8],
    "half of an RNN's multiplications wait for nothing: what the tokens bring": 2 * brought == whole,
    "an RNN that forgets can be guessed: a tenth or so of the steps": forgets < 40,
    "one in which differences grow cannot": keeps > 100,
})  # fmt: skip

# %%
_ = torch.manual_seed(0)
query, key, value = torch.randn(3, 70, 5)
linear = attend_linear(query, key, value, causal=True)
by_table = attend(
    query, key, value, mask=causal(70),
    score=lambda q, k: (feature_map(q) @ feature_map(k).mT).log(),
)  # fmt: skip
state, cache, heads, sizes = None, Cache(), MultiHeadAttention(5, 1), []
for token in torch.randn(70, 1, 1, 5):
    state = step(*[token[0, 0]] * 3, state)[1]
    _ = heads(token, token, token, cache=cache)
    sizes.append((state.S.numel() + state.z.numel(), 2 * cache.key.numel()))
ranks = {}
for n in (4, 16, 64):
    q, k = torch.randn(2, n, 8).double()
    features = feature_map(q) @ feature_map(k).mT
    ranks[n] = [int(torch.linalg.matrix_rank(t)) for t in ((q @ k.mT).exp(), features)]
print("numbers kept after token 1, 2, 70:", [sizes[i] for i in (0, 1, 69)])
print("ranks of the tables exp(q · k) and phi(q) · phi(k):", ranks)

# %% tags=["claim:rnn-6"]
softmax = attend(query, key, value, mask=causal(70)).output
claim("rnn-6", {
    "some changes: another score, the logarithm of phi(q) · phi(k), and the causal mask": torch.allclose(
        linear, by_table.output, atol=1e-5),
    "then an RNN, token by token, gives the same numbers": torch.allclose(
        linear, as_rnn(query, key, value), atol=1e-5),
    "it is another layer, not softmax attention": (linear - softmax).abs().max() > 0.1,
    "its state does not grow": {kept for kept, _ in sizes} == {5 * 5 + 5},
    "softmax keeps all keys and values": [kept for _, kept in sizes] == [10 * n for n in range(1, 71)],
    "no finite state would do: exp(q · k) has rank n, at 4, 16 and 64": [r for r, _ in ranks.values()] == [*ranks],
    "where features have 8 parts, the rank is 8 at most": [r for _, r in ranks.values()] == [4, 8, 8],
})  # fmt: skip


# %%
def for_a_new_token(kind, n, d=16):
    """Multiplications for token n + 1, where n have been taken up."""
    token, taken_up = torch.randn(1, 1, d), torch.randn(1, n, d)
    if kind == "self-attention":
        heads, cache = MultiHeadAttention(d, 1), Cache()
        _ = heads(taken_up, taken_up, taken_up, cache=cache)
        return operations(lambda: heads(token, token, token, cache=cache))
    cell = Recurrent(kind, d, d)
    state = cell.states(taken_up)[-1]
    return operations(lambda: cell.step(token[0], state))


new = {
    kind: [for_a_new_token(kind, n) for n in (10, 100, 1000)]
    for kind in ("RNN", "LSTM", "self-attention")
}
print("multiplications for a new token after 10, 100, 1,000:")
for kind, numbers in new.items():
    print(f"{kind:15}", *(f"{number:7,}" for number in numbers))


# %%
def seconds_at(kind, n):
    """Stored seconds, forward and backward, one sequence of width 64, for each repeat."""
    return [
        row["seconds"] for row in stored
        if row["part"] == "sweep" and row["over"] == "n" and row["backward"]
        and (row["kind"], row["n"]) == (kind, n)
    ]  # fmt: skip


with_rnn_256, with_lstm_4096 = (
    [
        b / a
        for a, b in zip(
            seconds_at("self-attention", n), seconds_at(kind, n), strict=True
        )
    ]
    for kind, n in (("RNN", 256), ("LSTM", 4096))
)
print("attention trains so many times as fast, one sequence (stored):")
print("256 tokens, as an RNN:", [round(x, 1) for x in with_rnn_256])
print("4,096 tokens, as an LSTM:", [round(x, 2) for x in with_lstm_4096])

# %% tags=["claim:rnn-7"]
d = 16
at = {kind: [costs.counted(kind, n, d) for n in (1, 2 * d - 1, 2 * d)] for kind in new}
claim("rnn-7", {
    "a sequence: the layer multiplies less than an LSTM below n = 2 d": at["self-attention"][1]
    < at["LSTM"][1] and at["self-attention"][2] == at["LSTM"][2],
    "more than an RNN at any n: what is faster is not fewer operations": at["self-attention"][0]
    > at["RNN"][0],
    "stored: one sequence of 256 tokens trains twice as fast and more": min(with_rnn_256) > 2,
    "but one of 4,096 half as fast as in an LSTM, and less": max(with_lstm_4096) < 1 / 2,
    "in a batch of 32 the RNN is faster": 2 * max(in_batch["RNN"]) < min(
        in_batch["self-attention"]),
    "but attention does not wait": paths.counted(paths.network("self-attention", 16)).steps == 1,
    "a new token: 2 d² and 8 d², whatever came before": set(new["RNN"]) == {2 * d**2}
    and set(new["LSTM"]) == {8 * d**2},
    "attention: 4 d² + 2 n d, more with each token": new["self-attention"]
    == [4 * d**2 + 2 * (n + 1) * d for n in (10, 100, 1000)],
})  # fmt: skip

# %% [markdown]
r"""
Each step needs the *output* of the step before (上一个时刻 RNN 模块的输出), say S0, S2 and S3. If that is what the recurrent unit hands on, its state, they are right. But a network with a read-out has states *and* outputs, and its arrow from step to step leads from state to state. There *is* a network in which it leads from output to state: Jordan's (1986).

> **Predict.** In a Jordan network the right outputs are known in training. Feed them in place of the network's own: *teacher forcing*. How many units must then wait for each other, for 11 tokens?
>
> <details><summary>Answer</summary>
> Two, the state and the output, however many tokens there are. Fed with its own outputs, 22.
> </details>
"""


# %%
def with_feedback(tokens, fed_back, right=None):
    """States and outputs of an RNN into which its states are fed back, or its outputs."""
    _ = torch.manual_seed(0)
    cell, read = Recurrent("RNN", 5, 5), nn.Linear(5, 1)
    units, before = {}, State(torch.zeros(1, 5))
    for i, token in enumerate(tokens.values()):
        if right is not None and i:
            before = State(right[i - 1].expand(1, 5))
        units["state", i] = cell.step(token, before).hidden
        units["output", i] = output = read(units["state", i])
        states = fed_back == "states"
        before = State(units["state", i] if states else output.expand(1, 5))
    return dependencies(tokens, units)


tokens = {("input", i): torch.ones(1, 5, requires_grad=True) for i in range(11)}
chains = {
    "states (Elman)": with_feedback(tokens, "states"),
    "outputs (Jordan)": with_feedback(tokens, "outputs"),
    "right outputs": with_feedback(tokens, "outputs", right=torch.randn(11, 1, 1)),
}
for name, graph in chains.items():
    print(f"{name:17} {networkx.dag_longest_path_length(graph):2} units in a row")

# %% tags=["claim:rnn-8"]
_ = torch.manual_seed(0)
cell, read, x = Recurrent("RNN", 5, 5), nn.Linear(5, 2), torch.randn(1, 5)
unseen = torch.linalg.svd(read.weight)[2][-1:]  # what the output does not show
one, other = State(unseen / 5), State(-unseen / 5)
next_one, next_other = (read(cell.step(x, state).hidden) for state in (one, other))
lstm, hidden = Recurrent("LSTM", 5, 5), torch.rand(1, 5)
cells = [lstm.step(x, State(hidden, c)).hidden for c in (hidden, -hidden)]
elman, free, forced = chains.values()
claim("rnn-8", {
    "two states with one output": torch.allclose(read(one.hidden), read(other.hidden), atol=1e-6),
    "have different next outputs: it is the state that is needed": (
        next_one - next_other).abs().max() > 1e-3,
    "an LSTM's hidden state, its layer's output, is not enough: the cell too": (
        cells[0] - cells[1]).abs().max() > 1e-3,
    "in the graph, no output leads anywhere": not any(elman.out_degree(("output", i)) for i in range(11)),
    "where outputs are fed back, and right ones in training, nothing waits": [
        networkx.dag_longest_path_length(g) for g in (elman, free, forced)] == [12, 22, 2],
    "the price: the first token does not reach the second output": not networkx.has_path(
        forced, ("input", 0), ("output", 1)),
})  # fmt: skip

# %% [markdown]
r"""
## 10 · Three wrong ideas worth having once

**"A network that reads both ways has no distance left."** In section 5 it was right at 200 tokens, read at both ends, with the symbol at one of them. Put as much filler *before* the symbol as behind it: now it is far from both ends.

> **Predict.** Trained and asked so, over what distance does it still know the symbol?
>
> <details><summary>Answer</summary>
> Over 5 tokens, and no longer over 10: like the RNNs of which it is made.
> </details>
"""

# %%
both_ends = "BiRNN, both ends"
first = right_at("point", both_ends, 50)
middle = {far: right_at("middle", both_ends, far) for far in (5, 10, 25, 50)}
verdict("the symbol first: right at 50", min(first) > 0.95)
verdict("in the middle: well above chance at 5", min(middle[5]) > 0.5)
verdict("in the middle: guessing from 10 on",
    max(middle[10] + middle[25] + middle[50]) < 0.2)  # fmt: skip
verdict("attention: right at 50, wherever the symbol stands",
    min(right_at("middle", "attention", 50)) > 0.95)  # fmt: skip

# %% [markdown]
r"""
**"$n^2$ is more than $n$, so attention is the expensive layer."** Which is larger, $n^2 d$ or $n d^2$, depends on which is larger, $n$ or $d$. A sentence of 50 words in vectors of 512:
"""

# %%
for n, d in ((50, 512), (20_000, 64)):
    lstm = costs.formula("LSTM", n, d)
    print(f"{n:6,} tokens of width {d}: the LSTM takes", end=" ")
    for kind in ("attention alone", "self-attention"):
        print(
            f"{lstm / costs.formula(kind, n, d):.3g} times as many as {kind};", end=" "
        )
    print()

# %% [markdown]
r"""
For the sentence, 41 times as many as attention alone, and nearly twice as many as the layer with its four projections (a plain RNN would take half as many as that layer). For the long text of narrow vectors, an eightieth.

**"Linear attention is softmax attention, only faster."** It is another function, with other weights. φ is no approximation of the exponential. Ask both about the same keys, and make the query longer:
"""

# %%
one_query, some_keys = (
    torch.tensor([[1.0, 1.0]]),
    torch.tensor([[2.0, 2.0], [0.0, 0.0]]),
)
for longer in (1, 3, 10):
    with_exp = attend(longer * one_query, some_keys, some_keys).weights[0]
    with_phi = attend(
        longer * one_query, some_keys, some_keys, score=linear_score
    ).weights[0]
    print(
        f"query times {longer:2}: softmax {with_exp[0]:.4f}, linear {with_phi[0]:.4f}"
    )

# %% [markdown]
r"""
Softmax can put all its weight on one key: scale the query. In linear attention the better key has three times the weight of the other, 0.75, however long the query is: φ(2) = 3 and φ(0) = 1. It cannot choose as sharply, which is what section 7's stored pairs have shown from the other side.

## 11 · Exercises

Open [exercises/08_attention_vs_rnn](exercises/08_attention_vs_rnn.ipynb). If you do only one, write causal linear attention as an RNN.

## 12 · Summary

- An RNN carries all it knows in a state of fixed size. An untrained one forgets at a steady rate, and gradients vanish at a steady rate, too; gates keep more.
- Steps that must wait for each other, and the length of a signal's path, can be read out of a network's graph: $n$ and $n$ for an RNN, 1 and 1 for full attention. In the famous table the steps belong to one layer, the paths to a stack.
- Operations are exact: $2 n^2 d$ for attention alone against $2 n d^2$ for an RNN, equal at $n = d$; projections cost $4 n d^2$ more. Seconds cross elsewhere, since large products are faster than many small ones: for one sequence beyond 2,000 tokens; in a batch of 32, at 512 tokens of width 256, the RNN is the faster one.
- On one task, after equal training, an RNN and an LSTM guess from 25 tokens on, and attention is right at 200. That is learning, not ability: weights set by hand keep a symbol over 1,000 tokens. With a good start and a curriculum an LSTM learns to keep it over 200, and an RNN over 100.
- Without softmax the products re-associate. Linear attention, causal, *is* an RNN whose state is a sum; so it needs no waiting. Softmax has no state of finite size, and keeps a cache instead.
- A fixed state writes at constant cost per token, and holds only so much.

**Sources.** Elman 1990; Jordan 1986; Hochreiter 1991 (vanishing gradients); Hochreiter & Schmidhuber 1997 (LSTM); Gers, Schmidhuber & Cummins 2000 (its forget gate); Schuster & Paliwal 1997 (bidirectional); Cho et al. 2014 (arXiv:1406.1078, GRU); Bengio, Simard & Frasconi 1994; Vaswani et al. 2017 (arXiv:1706.03762, table 1);
Katharopoulos, Vyas, Pappas & Fleuret 2020 (arXiv:2006.16236); Hua et al. 2022 (arXiv:2202.10447, chunks); Tallec & Ollivier 2018 (arXiv:1804.11188); Saxe et al. 2013 (arXiv:1312.6120, orthogonal starts); the course's own sources S0 to S3.

**Next**: lesson 09 asks what to do when the input is long.
"""
