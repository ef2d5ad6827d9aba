# /// ideas
# [twins]
# says = "trained at 50 it guesses, trained at 5 it is right at 200: did not learn is not cannot"
# motive = "People say that it forgets"
# shown = "near = trained_at(5)"
# action = 'predict("trained_near")'
#
# [rnn]
# says = "an RNN hands a state from token to token: h = tanh(W x + U h + b)"
# motive = "What does such a network hand on"
# shown = "h = torch.tanh(1.0 * x + 0.5 * h)"
# action = "By hand"
#
# [lstm]
# says = "an LSTM has a cell beside the state: f says how much is kept, i how much is written, o how much is shown"
# motive = "takes at least half away"
# shown = "remembering_figures.cell"
# action = "lstm_step"
#
# [gates]
# says = "what is kept over many tokens hangs on the most open forget gates: 0.6^50 is nothing, 0.99^50 is 0.6"
# motive = "What did training at 5 change"
# shown = "most open"
# action = "Which rows are stripes"
#
# [product]
# says = "the gradient of the last state with respect to the first is a product of a factor for each token"
# motive = "What told the one network"
# shown = "\\prod_"
# action = "way_back"
#
# [vanishing]
# says = "the product vanishes or explodes, unless its factors balance near 1"
# motive = "Now twenty tokens"
# shown = "for u, first in"
# action = 'predict("kept_and_heard")'
#
# [kept_not_heard]
# says = "a saturated unit keeps its state, and its gradient is nearly 0: it remembers, and training hears nothing"
# motive = "What a network remembers, its training hears"
# shown = "slope(u, states)"
# action = 'predict("kept_and_heard")'
#
# [heard]
# says = "a token is heard by the length of the right logit's gradient with respect to its vector; what is near drowns what is far"
# motive = "And an LSTM?"
# shown = "carried.heard"
# action = "figures.forgetting"
#
# [cause]
# says = "open forget gates before training, and the same training learns at 50: the missing gradient was the cause"
# motive = "Is that the cause"
# shown = "core.bias_ih_l0[32:64] = 5.0"
# action = 'predict("gates_opened")'
#
# [one_step]
# says = "attention reaches every token in one step: heard by 1/201 at 200, not by 10^-38"
# motive = "Attention has no chain"
# shown = "class OneHead"
# action = 'predict("one_look")'
# ///

# %% [markdown]
r"""
{title}

Somebody says *B*, babbles for a while, and asks: which letter came first? You remember. A network that reads letter by letter is trained on this, and guesses. People say that it forgets. Does it?

**Afterwards you can** write a step of an LSTM, a network with a memory of its own; compute what is left of a gradient after $n$ tokens; tell "it cannot" from "it did not learn to".

{about}

<details><summary>中文摘要 · Chinese</summary>
循环网络真的会忘记吗?这一课训练两个一样的 LSTM,只有训练时的距离不同;再亲手写出它的一步和梯度的乘积,找出原因,最后与一个注意力头相比。
</details>
"""

# %% tags=["imports"]
import torch
import torch.nn.functional as F
from torch import nn

from lesson_lib.attention import attend
from lesson_lib.chapters.c08_attention_vs_rnn import figures, remembering_figures
from lesson_lib.course import *
from lesson_lib.data import recall
from lesson_lib.device import quick, to_device
from lesson_lib.training import fit

_ = torch.manual_seed(0)
warm_up()

# %%
batch = recall.draw(torch.Generator().manual_seed(0), 3, distance=12)
for tokens, answer in zip(batch.tokens, batch.answer, strict=True):
    print(recall.text(tokens), "->", recall.text(answer[None]))

# %% [markdown]
r"""
The letter to remember is one of eight, A to H, so a guess is right in 0.125. The babble is random. The question stands 12 tokens behind the letter: that is its **distance**. This network reads the tokens one by one, and turns what it has at the question mark into eight logits:
"""


# %%
class Rememberer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(17, 32)  # 8 letters, 8 of babble, the question mark
        self.core = nn.LSTM(32, 32, batch_first=True)  # section 1 opens it
        self.read = nn.Linear(32, 8)

    def of_embedded(self, x):  # (b, n, 32)
        states, _ = self.core(x)  # (b, n, 32)
        return self.read(states[:, -1])

    def forward(self, tokens):
        return self.of_embedded(self.embed(tokens))


# %%
def letter_loss(model, batch):
    return F.cross_entropy(model(batch.tokens), batch.answer)


def trained_at(distance, model=None, steps=400, lr=0.01, kind=Rememberer):
    _ = torch.manual_seed(0)  # always the same first weights
    model = to_device(kind()) if model is None else model

    def some(generator):
        return recall.draw(generator, 32, distance)

    fit(model, some, letter_loss, steps=steps, lr=lr)
    return model


@torch.no_grad()
def share_right_at(model, distance):  # of 1,000 new sequences
    new = to_device(recall.draw(torch.Generator().manual_seed(7), 1000, distance))
    return (model(new.tokens).argmax(-1) == new.answer).float().mean().item()


# %%
far = trained_at(50)
print(f"trained at 50, tested at 50: {share_right_at(far, 50):.1f}")

# %% tags=["proof"]
assert quick() or share_right_at(far, 50) < 0.2

# %% [markdown]
r"""
It guesses, since 0.125 would be luck. Now a second network begins with the same first weights and is trained at distance 5. Then it is tested where the first one failed, and farther.
"""

# %%
predict("trained_near")

# %% tags=["nbval-ignore-output"]
near = trained_at(5)
for distance in (5, 50, 200):
    print(f"trained at 5, tested at {distance}: {share_right_at(near, distance):.3f}")

# %% tags=["proof"]
assert quick() or min(share_right_at(near, 50), share_right_at(near, 200)) > 0.6

# %% [markdown]
r"""
**"An LSTM forgets after some tens of tokens."** This one is right at 200 nearly always. (With two other seeds it is right in ‹0.96› and ‹0.74›: nothing made it keep the letter for so long, but it can.) So the first network could do at 50 what it did not *learn* there. Why not?

## 1 · What is handed on

What does such a network hand on from token to token? The simplest **recurrent network** (RNN) has a vector, its **state** $h$:

$$h_t = \tanh(W x_t + U h_{t-1} + b), \qquad h_0 = 0$$

The vector $x_t$ is the token's. $W$, $U$ (matrices) and $b$ are the same at each step. By hand, with one number, $W = 1$, $U = 0.5$, $b = 0$ and the tokens 1, 0, 0, 0:
"""

# %%
h, states = torch.tensor(0.0), []
for x in (1.0, 0.0, 0.0, 0.0):
    h = torch.tanh(1.0 * x + 0.5 * h)
    states.append(h)
show(torch.stack(states))

# %% [markdown]
r"""
The 1 is squashed to «0.76», and each zero takes at least half away. An **LSTM** (long short-term memory) keeps a second vector, the **cell** $c$, on a line without a tanh:
"""

# %%
remembering_figures.cell()

# %% [markdown]
r"""
$$c_t = f \odot c_{t-1} + i \odot g, \qquad h_t = o \odot \tanh c_t$$

Here $\odot$ multiplies number by number. $W x_t + U h_{t-1} + b$ has $4 \cdot 32$ numbers now, four blocks. A sigmoid, $1 / (1 + e^{-x})$, makes three of them **gates** between 0 and 1: the input gate $i$ says what share of something new is written, the forget gate $f$ what share of the cell is kept, and the output gate $o$ what is shown. The new, $g$, is a tanh of its block.
"""

# %% [markdown] tags=["exercise:lstm_step"]
# Write one step. Given are these sums, `summed` (4d, in the order $i, f, g, o$), and the old cell (d). Return the new state and the new cell, as one tensor (2, d).

# %% [markdown]
r"""
With your step we look into both networks while they read *B* and 29 letters of babble. Which rows are stripes?
"""


# %%
step = yours("lstm_step")
sequence = recall.draw(torch.Generator().manual_seed(2), 1, distance=30).tokens[0]
sequence[0] = 1  # B


@torch.no_grad()
def read_along(model):
    # torch keeps W, U and two biases, which are added
    w, u, *biases = (p.cpu() for p in model.core.parameters())
    h, cell, states, gates = torch.zeros(32), torch.zeros(32), [], []
    for token in sequence:
        summed = w @ model.embed.weight[token].cpu() + u @ h + sum(biases)
        h, cell = step(summed, cell)
        states.append(h)
        gates.append(summed[32:64].sigmoid())  # f
    return torch.stack(states), torch.stack(gates)[1:-1]  # gates: of the babble alone


read = {"trained at 5": read_along(near), "trained at 50": read_along(far)}
hidden = {name: states for name, (states, _) in read.items()}
remembering_figures.states(hidden, recall.text(sequence))

# %% [markdown]
r"""
In the upper picture most rows are stripes: *B* sets them, and the babble does not wipe them out. In the lower one each column is made by the last letters. What did training at 5 change? Compare the forget gates. To keep something over 50 tokens, a row needs a gate near 1: $0.6^{50}$ is $10^{-11}$, and $0.99^{50}$ is 0.6.
"""

# %% tags=["nbval-ignore-output"]
_ = torch.manual_seed(0)
untrained = to_device(Rememberer())  # as both began
read["untrained"] = read_along(untrained)
for name, (_, gates) in read.items():
    of_rows = gates.mean(0)  # the mean gate of each of 32 rows
    print(f"{name:13}: all rows {of_rows.mean():.2f}, the most open {gates.mean(0).amax(-1):.3f}")

# %% tags=["proof"]
open_most = {name: gates.mean(0).amax().item() for name, (_, gates) in read.items()}
assert quick() or open_most["trained at 5"] > 0.95 > 0.8 > open_most["untrained"]

# %% [markdown]
r"""
Untrained, a gate lets about half through, and the most open one 0.6. Training at 5 has opened some gates nearly fully, farther than 5 tokens need. Training at 50 has even closed them a little. What told the one network what to keep, and not the other?

## 2 · What training hears

Training follows gradients. So ask: how much does the last state change if the first one changes a little? Take an RNN of one number, $U = u$. The slope of tanh is $1 - \tanh^2$, and the chain rule gives

$$\frac{\partial h_t}{\partial h_{t-1}} = u\,(1 - h_t^2), \qquad \frac{\partial h_n}{\partial h_1} = \prod_{t=2}^{n} u\,(1 - h_t^2)$$

There is a factor for each token after the first.
"""

# %% [markdown] tags=["exercise:way_back"]
# Write the product.

# %% [markdown]
r"""
The four states above give $0.5^3 \cdot 0.87 \cdot 0.97 \cdot 0.99 = 0.10$. Now twenty tokens, a 1 and nineteen zeros:
"""

# %%
predict("kept_and_heard")

# %%
slope = yours("way_back")


def twenty(u, first):
    states, h = [], torch.tensor(0.0)
    for x in [first] + 19 * [0.0]:
        h = torch.tanh(x + u * h)
        states.append(h)
    return torch.stack(states)


for u, first in ((0.5, 1.0), (2.0, 1.0), (2.0, 0.0)):
    states = twenty(u, first)
    print(f"u = {u}, token {first}: last state {states[-1]:.2f}, slope {slope(u, states):.0e}")

# %% [markdown]
r"""
- $u = 0.5$: the state is lost, and the slope with it, half per token: a **vanishing gradient**.
- $u = 2$: the state holds itself at «0.96». **"What a network remembers, its training hears."** No: tanh is saturated there, it is flat, and each factor comes to $2\,(1 - 0.9575^2) = 0.17$. The state remembers, and its gradient is nearly 0.
- $u = 2$ and only zeros: tanh has slope 1, and the product is $2^{19}$: an **exploding gradient**. The usual cure is to **clip**: a gradient longer than a limit is shortened to it.

And an LSTM? On the direct line from cell to cell the factor is $f$, without a tanh; there are detours through the gates. So measure what arrives. For each token we take the gradient of the right letter's logit with respect to the token's vector. Its length says how strongly training **hears** the token. The function stands in the chapter's file to carry away:
"""

# %%
from carry import recurrent as carried

show_source(carried.heard)

# %%
def heard_over(model, distance):  # float64: it can hold 1e-38 and less
    some = to_device(recall.draw(torch.Generator().manual_seed(8), 64, distance))
    lengths = carried.heard(model.double(), some.tokens, some.answer).tolist()
    model.float()
    return lengths


heard = {"untrained": heard_over(untrained, 50), "trained at 5": heard_over(near, 50)}
figures.forgetting(heard, distance=50)

# %%
assert heard["untrained"][0] < 1e-9 < 1e-4 < heard["untrained"][45]

# %% tags=["proof"]
assert quick() or heard["trained at 5"][0] > 1e-3

# %% [markdown]
r"""
Look at the untrained curve. Five tokens back a token is heard with 0.005, and the letter, 50 tokens back, with $10^{-11}$. The curve is straight on an axis of powers of ten, so each token multiplies by the same factor, about 0.64; the most open gate had «0.62». Training at 5 had something to learn from.

Why not learn from $10^{-11}$ with larger steps? (Adam takes them: it divides by the size of the whole gradient.) But all tokens change the same $W$ and $U$, and the last letters of the babble are heard more than a hundred million times as strongly. What they say is random. So, we suppose, it drowns the letter. Once training at 5 has opened the gates, the letter is heard from 50 tokens, too, with some 0.02.

## 3 · Is that the cause?

If so, a network whose gates are open *before* training learns at 50. One line opens them: the forget gates get a bias of 5, and begin at sigmoid(5) = 0.993. We train it and the usual start at 50, both for 600 steps, at a learning rate of 0.005.
"""

# %%
predict("gates_opened")

# %% tags=["nbval-ignore-output"]
_ = torch.manual_seed(0)
opened = to_device(Rememberer())
with torch.no_grad():
    opened.core.bias_ih_l0[32:64] = 5.0  # the bias of f, in torch's order i, f, g, o
print(f"open, heard before training: {heard_over(opened, 50)[0]:.2f}")
right = {}
for name, model in (("usual start", None), ("gates open", opened)):
    model = trained_at(50, model, steps=600, lr=0.005)
    right[name] = share_right_at(model, 50)
    print(f"{name}, trained and tested at 50: {right[name]:.3f}")

# %% tags=["proof"]
assert quick() or right["usual start"] < 0.3 < 0.6 < right["gates open"]

# %% [markdown]
r"""
Before training the open network hears the letter billions of times as strongly as the usual start did, and learns to keep it. The usual start guesses after the same training. **The network can remember. From its usual start, at 50, the gradient is too faint to tell it what.** In an LSTM the two go together: the factor $f$ that keeps the letter on the way forward brings the gradient back. (A gradient that arrives is needed, and not always enough: with open gates .60 to .86 are right at 100, and .11 to .36 at 200: [evidence](evidence/08_attention_vs_rnn_evidence.ipynb). Why, we have not measured.)

## 4 · One head of attention

Attention has no chain. Here it has nothing else, either: one head, and no positions, since a capital letter alone tells it where to look.
"""



# %%
class OneHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(17, 32)
        self.query, self.key, self.value = (nn.Linear(32, 32, bias=False) for _ in range(3))
        self.read = nn.Linear(32, 8)

    def of_embedded(self, x):  # (b, n, 32): the question mark asks all tokens, once
        found = attend(self.query(x[:, -1:]), self.key(x), self.value(x)).output
        return self.read(found[:, 0])

    def forward(self, tokens):
        return self.of_embedded(self.embed(tokens))


# %%
predict("one_look")

# %%
_ = torch.manual_seed(0)
heard_all = heard_over(to_device(OneHead()), 200)
heard_first = heard_all[0]
look = trained_at(200, lr=0.003, kind=OneHead)  # its best rate of three
print(f"one head, trained and tested at 200: {share_right_at(look, 200):.1f}")
print(f"heard before training: {heard_first:.3f}")

# %% tags=["proof"]
assert quick() or share_right_at(look, 200) > 0.95

# %%
lstm_first = heard_over(untrained, 200)[0]
assert lstm_first < 1e-30 < 3e-4 < heard_first < 5e-3 and max(heard_all[:-1]) < 2 * heard_first

# %% [markdown]
r"""
One look is one step. Before training all 201 tokens have about the same weight, 1/201 = 0.005, and the letter is heard with «0.002», about as strongly as each letter of the babble. In the untrained LSTM it is below $10^{-30}$.

## In real work

If an LSTM does not learn something far away, measure what it hears. Then train it on near examples first, or open its gates. One trap: a bias of 1 is a common start, and sigmoid(1) is 0.73. Over fifty tokens that leaves $0.73^{50} = 10^{-7}$. Choose the bias for your distance: with a bias of $\ln n$ the gate is $n / (n + 1)$, and over $n$ tokens it leaves about 0.37.

## To carry away

`notebooks/carry/recurrent.py` has the RNN, the LSTM with a bias for its gates and `heard`, in plain torch. It runs alone. This is your step, for a batch:
"""

# %%
show_source(carried.lstm_step)

# %% [markdown]
r"""
## The babble once more

*B*, two hundred letters, which was it? Four networks answer.
"""

# %% tags=["nbval-ignore-output"]
once = recall.draw(torch.Generator().manual_seed(3), 1, distance=200).tokens
once[0, 0] = 1  # B
networks = {"LSTM, at 5": near, "LSTM, at 50": far, "LSTM, open, at 50": opened, "one head": look}
for name, model in networks.items():
    with torch.no_grad():
        said = model(to_device(once)).argmax(-1)
    print(f"{name:18} {recall.text(said)}")

# %% [markdown]
r"""
The network that was trained at 5 knows, and so do the open one and the head. The one that was trained at 50 from the usual start has never heard of *B*.

**To remember.** What a network can keep, it may never learn to keep.

- An RNN hands on a state; an LSTM also a cell, $c_t = f \odot c_{t-1} + i \odot g$.
- Over $n$ tokens the gradient is a product of $n - 1$ factors; unless they balance, it vanishes or explodes.
- With open forget gates the same training learns at 50.
- Attention reaches every token in one step.

**Sources.** Bengio et al. 1994; Hochreiter & Schmidhuber 1997; Gers et al. 2000 (the forget gate); Pascanu et al. 2013 (clipping); Jozefowicz et al. 2015 (the bias). More: [evidence](evidence/08_attention_vs_rnn_evidence.ipynb).

**Next**: [08b · Costs](08b_costs.ipynb): what do the two pay, in steps, products and seconds?
"""
