# %% [markdown]
r"""
# 08a · What did the RNN lack?

Somebody says *B*, then babbles for a while, then asks: which letter came first? You remember. A network that reads letter by letter is trained on this, and guesses. People say that it forgets. Does it?

**Afterwards you can** write a step of an RNN and of an LSTM; compute what is left of a gradient after $n$ tokens; tell "it cannot" from "it did not learn to".

**Time** about 45 minutes. **You need** part [02a](02a_soft_look_up.ipynb). **Exercises**: [exercises/08_attention_vs_rnn](exercises/08_attention_vs_rnn.ipynb).

<details><summary>中文摘要</summary>
LSTM 在距离 50 上训练,只会猜;同样的网络在距离 5 上训练,到距离 200 仍然全对。所以它不是记不住,而是训练时听不见:梯度每经过一个词元就乘上一个小于 1 的因子。
开始训练前把遗忘门打开,它就能在距离 50 上学会。一个注意力头不需要任何别的东西:每个词元都只有一步之遥,从训练的第一步起就听得见。
</details>
"""

# %%
import torch
from jaxtyping import Float
from torch import Tensor, nn

from lesson_lib.chapters.c08_attention_vs_rnn import (
    figures,
    remembering,
    remembering_figures,
)
from lesson_lib.chapters.c08_attention_vs_rnn.experiments.remembering import (
    open_gates,
    start,
    train,
)
from lesson_lib.chapters.c08_attention_vs_rnn.look_back import LookBack
from lesson_lib.checks import check, hint, predict, solution, warm_up
from lesson_lib.data.recall import draw, text
from lesson_lib.device import quick
from lesson_lib.experiments.recall import accuracy, gradients
from lesson_lib.show import show, show_source

_ = torch.manual_seed(0)
warm_up()

# %%
batch = draw(torch.Generator().manual_seed(0), 3, distance=12)
for tokens, answer in zip(batch.tokens, batch.answer, strict=True):
    print(text(tokens), "->", text(answer[None]))

# %% [markdown]
r"""
The symbol is one of eight, A to H; a guess is right in 1/8 = 0.125. The letters between are drawn at random. The answer is read at the question mark, here at **distance** 12. The network:
"""

# %%
print(start("LSTM"))

# %% [markdown]
r"""
`embed` gives each of 17 characters a vector of 32 numbers. `core` is an **LSTM**: it reads token by token and hands 32 numbers on; section 1 opens it. `read` makes 8 logits of what it holds at the question mark. `train` takes 400 steps of 32 fresh sequences, `accuracy` asks 1,000 others. First at distance 50:
"""

# %% tags=["nbval-ignore-output"]
far = train("LSTM", 50)
print(f"trained at 50, asked at 50: {accuracy(far, 50):.3f}")

# %%
assert quick() or accuracy(far, 50) < 0.2

# %% [markdown]
r"""
It guesses. A second LSTM, with the same start, is trained at distance 5 and never sees more.
"""

# %%
predict("trained_near")

# %% tags=["nbval-ignore-output"]
near = train("LSTM", 5)
for distance in (5, 50, 200):
    print(f"trained at 5, asked at {distance}: {accuracy(near, distance):.3f}")

# %%
assert quick() or accuracy(near, 200) > 0.9

# %% [markdown]
r"""
**"An LSTM forgets after some tens of tokens."** This one is right at 200. (Two more seeds: 0.93 and 0.63, far above a guess.) **It remembers.** Why then can it not *learn* at 50 what it *can do* at 200?

## 1 · What is handed on

A **recurrent network** (RNN) hands a vector from token to token, its **state** $h$:

$$h_t = \tanh(W x_t + U h_{t-1} + b), \qquad h_0 = 0$$

$x_t$ is the token's vector. The matrices $W$, $U$ and the vector $b$ are the same at each step. By hand, with numbers for vectors:
"""

# %%
predict("left_of_it")

# %%
h, states = torch.tensor(0.0), []
for x in (1.0, 0.0, 0.0, 0.0):
    h = torch.tanh(1.0 * x + 0.5 * h)
    states.append(h)
show(torch.stack(states))

# %% [markdown]
r"""
0.76, 0.36, 0.18, 0.09: each zero takes at least half away. An LSTM has a second vector for keeping, the **cell** $c$:
"""

# %%
remembering_figures.cell()

# %% [markdown]
r"""
$$c_t = f \odot c_{t-1} + i \odot g, \qquad h_t = o \odot \tanh c_t$$

$\odot$ multiplies number by number. $f$, $i$ and $o$ are **gates**: sigmoids, numbers between 0 (shut) and 1 (open). $g$ is a tanh. Each of the four is made of its own row of $W x_t + U h_{t-1} + b$, so that $W$ and $U$ have $4 \cdot 32$ rows.
"""

# %% [markdown] tags=["exercise:lstm_step"]
# Write what happens once the four rows are summed.

# %% [markdown]
r"""
The next cell reads *B* and 29 letters with your step (with the library's until yours passes), and keeps states and forget gates:
"""


# %%
step = lstm_step if check(lstm_step).passed else remembering.lstm_step
sequence = draw(torch.Generator().manual_seed(2), 1, distance=30).tokens


@torch.no_grad()
def read_along(model):
    W, U, b, b2 = (
        p.cpu() for p in model.core.layer.parameters()
    )  # torch has two biases
    h, c, states, gates = torch.zeros(32), torch.zeros(32), [], []
    for token in sequence[0]:
        summed = W @ model.embed.weight[token].cpu() + U @ h + b + b2
        h, c = step(summed, c)
        states.append(h)
        gates.append(summed[32:64].sigmoid())
    return torch.stack(states), torch.stack(gates)


read = {"trained at 5": read_along(near), "trained at 50": read_along(far)}
figures.states({k: v[0] for k, v in read.items()}, list(text(sequence[0])))

# %% tags=["nbval-ignore-output"]
for name, (_, gates) in (read | {"untrained": read_along(start("LSTM"))}).items():
    print(f"forget gates, mean, {name}: {gates[1:-1].mean():.2f}")

# %%
assert quick() or read["trained at 5"][1].mean() > 0.7 > read["trained at 50"][1].mean()

# %% [markdown]
r"""
A column is a token, a row one of the 32 numbers of the state. Trained at 5, most rows become stripes: the symbol sets them, the babble does not wipe them out. Trained at 50, each column is made by the last few letters. The gates say why: an untrained forget gate keeps 0.49 on average. Training at 5 has opened it, to 0.87 on average and in some units to 0.99; training at 50 has not.

So the second network found out that something must be kept. From what does a network find out?

## 2 · What training hears

From gradients: how much does the last state change if the first one changes a little? The chain rule, for an RNN of one number with $U = u$, takes two lines. tanh has the slope $1 - \tanh^2$, so

$$\frac{\partial h_t}{\partial h_{t-1}} = u\,(1 - h_t^2), \qquad \frac{\partial h_n}{\partial h_1} = \prod_{t=2}^{n} u\,(1 - h_t^2)$$

A factor for each token. (With vectors each factor is a matrix: $U$, its rows times tanh's slopes.)
"""

# %% [markdown] tags=["exercise:way_back"]
# Write the product.

# %% [markdown]
r"""
The four states above give $0.5^3 \cdot 0.87 \cdot 0.97 \cdot 0.99 = 0.10$. Over twenty tokens, a 1 and nineteen zeros, with small and large $u$:
"""

# %%
predict("kept_and_heard")

# %%
slope = way_back if check(way_back).passed else remembering.way_back


def twenty(u, first):
    states, h = [], torch.tensor(0.0)
    for x in [first] + 19 * [0.0]:
        h = torch.tanh(x + u * h)
        states.append(h)
    return torch.stack(states)


for u, first in ((0.5, 1.0), (2.0, 1.0), (2.0, 0.0)):
    states = twenty(u, first)
    print(f"u = {u}, token {first}: last state {states[-1]:.2f}", end=", ")
    print(f"slope {slope(u, states):.0e}")

# %% [markdown]
r"""
- $u = 0.5$: the state is lost, and so is the slope, 0.5 per token. This is the **vanishing gradient**.
- $u = 2$: the state holds itself at 0.96. **"What a network remembers, its training hears."** No: tanh is flat there, each factor is $2\,(1 - 0.96^2) = 0.17$. It remembers, and training hears nothing of it.
- $u = 2$ around 0: tanh has slope 1, the product is $2^{19}$, half a million. This is the **exploding gradient**: one such batch throws all weights away. `train` therefore **clips**: if the gradient of all weights is longer than 1, it is shortened to 1.

An LSTM's cell is not squashed by a tanh: along $c$ the factor is $f$ alone. At the start $f$ is 0.49. So measure: how much does the right logit change with each token's vector, in a network before training and in the one that was trained at 5?
"""

# %%
heard = {
    "untrained": gradients(start("LSTM"), 50),
    "trained at 5": gradients(near, 50),
}
figures.forgetting(heard, distance=50)

# %%
assert heard["untrained"][0] < 1e-10
assert quick() or heard["trained at 5"][0] > 1e-3

# %% [markdown]
r"""
Follow the curves from the question, at the right, to the symbol. Untrained, a falling line: at 50 tokens $4 \cdot 10^{-11}$ is left. That is what the first LSTM had to learn from. At distance 5 the same line stands at about a hundredth: enough. And once the gates are open, 50 is heard as well.

## 3 · Is that the cause?

Then a network whose gates are open *before* training must learn at 50. Change one thing: `open_gates` sets the forget gates' bias to 5, so $f$ = sigmoid(5) = 0.993, and $0.993^{50} = 0.7$.
"""

# %%
predict("gates_opened")

# %% tags=["nbval-ignore-output"]
opened = open_gates(start("LSTM"))
print(f"heard of the symbol before training: {gradients(opened, 50)[0]:.2f}")
opened = train("LSTM, gates open", 50, lr=1e-2)  # the rate of the others
print(f"trained at 50, asked at 50: {accuracy(opened, 50):.3f}")

# %%
assert quick() or accuracy(opened, 50) > 0.95

# %% [markdown]
r"""
Same network, same 400 steps, same distance: 0.08 is heard, and all are right. **The RNN does not lack memory. It lacks a gradient that tells it, at the start, what to remember.**

## 4 · One head of attention

Attention has no chain to go back. Here it has nothing else, either: no positions, one head, and fewer weights than the LSTM, 3,880 against 9,256.
"""

# %%
show_source(LookBack)

# %% [markdown]
r"""
The last token asks all tokens, once; `read` makes logits of the mixture. It is trained at 200 from its first step.
"""

# %%
predict("one_look")

# %% tags=["nbval-ignore-output"]
look = train("attention alone", 200)
print(f"trained at 200, asked at 200: {accuracy(look, 200):.3f}")
print(f"heard before training: {gradients(start('attention alone'), 200)[0]:.4f}")

# %%
assert quick() or accuracy(look, 200) > 0.95

# %% [markdown]
r"""
One look is one step. Before training all tokens have about the same weight, 1/201, and so the symbol is heard about as 1/201: 0.0015, where the untrained LSTM at 200 hears $10^{-38}$. Stored runs over the distance, three seeds each:
"""

# %%
remembering_figures.learned()

# %% [markdown]
r"""
The LSTM as it is drawn learns at 5 and 10 and guesses from 25 on. With open gates it is right up to 50 in all seeds, and fails in part at 100: what is heard there is loud enough, but a hundred letters of babble are kept, too. Attention is right everywhere. That is one task, with one thing to remember.

## In real work

`nn.LSTM` starts with forget gates near a half. Libraries and papers often add 1 or 2 to that bias; growing texts from short to long help, too ([measured](evidence/08_attention_vs_rnn_evidence.ipynb)). Clipping is one line, between `backward()` and `step()`: `nn.utils.clip_grad_norm_(model.parameters(), 1.0)`. The bug that people meet: texts of two lengths in one batch.
"""

# %%
lstm = nn.LSTM(3, 4, batch_first=True)
long, short = torch.randn(5, 3), torch.randn(2, 3)
both = nn.utils.rnn.pad_sequence([long, short], batch_first=True)  # (2, 5, 3)
packed = nn.utils.rnn.pack_padded_sequence(both, [5, 2], batch_first=True)
with torch.no_grad():
    alone = lstm(short[None])[0][0, -1]
    last = lstm(both)[0][1, -1]
    ended = lstm(packed)[1][0][0, 1]
show(
    read_at_the_last_place=(last - alone).abs().max(),
    packed=(ended - alone).abs().max(),
)

# %% [markdown]
r"""
`pad_sequence` fills the short text with zeros. The state at the last place has read three of them, and is not the state of the short text. `pack_padded_sequence` is told the lengths; the second thing that the LSTM gives back holds each text's last state.

## The babble once more

*B*, two hundred letters, which was it? The LSTM that was trained at 5 knows. The one that was trained at 50 never heard of *B*.

**To remember.** It remembers, and training hears nothing of it.

- A recurrent network hands on a state; an LSTM also a cell, $c = f \odot c + i \odot g$.
- The gradient over $n$ tokens is a product of $n - 1$ factors: it vanishes or explodes.
- Open the forget gates at the start, and the same training learns at 50.
- Attention reaches every token in one step, from the start.

**Sources.** Hochreiter & Schmidhuber 1997 (LSTM); Gers, Schmidhuber & Cummins 2000 (its forget gate); Bengio, Simard & Frasconi 1994 (vanishing gradients); Pascanu, Mikolov & Bengio 2013, arXiv:1211.5063 (clipping); Jozefowicz, Zaremba & Sutskever 2015 (the bias). Seeds, other aids, the sources' sentences: [evidence](evidence/08_attention_vs_rnn_evidence.ipynb).

**Next**: [08b · Costs](08b_costs.ipynb): an LSTM can learn it. What did it cost, in steps, products and seconds?
"""
