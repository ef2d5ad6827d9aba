# %% [markdown]
# # 08 · What did the RNN lack?: exercises
#
# Eight exercises, about 65 minutes. They follow the parts [08a · remembering](../08a_remembering.ipynb), [08b · costs](../08b_costs.ipynb) and [08c · linear](../08c_linear.ipynb); best in this order, and the seventh, the hardest, may wait.
#
# **How it works.** Replace the `...` (or repair the function) in a cell, run it, then run the cell with `check`. `hint("name")` asks a question that helps, three in
# all; `solution("name")` shows a right answer. `progress()` lists what you have done.
# The stars: ★ short, ★★ some lines or some thinking, ★★★ an idea that has to be found.
#
# Throughout, n is the number of tokens and d the width of a token and of a state. Linear attention has weights $\varphi(q) \cdot \varphi(k)$ with $\varphi(x) = \text{elu}(x) + 1$ for each number:
# $x + 1$ from 0 upwards, $e^x$ below. The library calls it `feature_map`.

# %%
import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.checks import check, hint, picture, progress, solution
from lesson_lib.linear import feature_map

# %% [markdown] tags=["exercise:lstm_meets_attention"]
# An LSTM makes four blocks of d numbers at each token: three gates, and what is to be written. Each block is $W x_i + U h_{i-1}$, with matrices of its own. A *bidirectional* LSTM is two of them, one from each side. A layer of self-attention has
# four projections, the scores and the mix of the values. Tokens, and the states of each LSTM, have **d = 48** numbers. **At how many tokens n do the bidirectional LSTM and the attention layer need equally many multiplications?** Count matrix products only (no
# softmax, no gates number by number, no biases). The number of heads does not matter. Type a number or an expression in quotes.

# %% [markdown] tags=["exercise:way_to_the_last"]
# 17 tokens. What the first token holds must reach the LAST position. Each layer, and each state of a recurrent network, that the signal passes is one unit; take the shortest way. Four networks: convolutions with
# kernel 5, one on top of the other, as many as needed; layers of window attention with radius 3 (a token sees 3 neighbours on each side), as many as needed; a BiRNN, one layer from the left and one from the right, whose two
# states at each position are put side by side, which is one more unit, as in part 08b; one layer of full attention. **How many units are on each way?**

# %% [markdown] tags=["exercise:gru_step"]
# A GRU has two gates, numbers between 0 and 1: $r$ decides how much of the state enters the proposal $n$, and $z$ decides how much of the old state stays. `W`, `U`, `b` and `c` hold three blocks
# of rows, for $r$, $z$ and $n$ in this order. In torch's form
#
# $$n = \tanh\left(W_n x + b_n + r \, (U_n h + c_n)\right), \qquad h' = (1 - z) \, n + z \, h .$$
#
# The weights were learned in this form. In the function below **one line is wrong. Repair it.**


# %% [markdown] tags=["exercise:from_the_state"]
# Causal linear attention has read some tokens. Nothing is left of them but its state: $S = \sum_j \varphi(k_j) \, v_j = (100, 40)$, since values are single numbers here, and
# $z = \sum_j \varphi(k_j) = (4, 2)$. The next token comes with the query $(0, 1)$, the key $(1, 0)$ and the value $42$. **What is its output?** A pencil is enough.

# %% [markdown] tags=["exercise:fading_attention"]
# Give linear attention a state that fades: before a token is taken up, what is there already is multiplied by `decay`, a number from 0 to 1.
#
# $$S_i = \text{decay} \cdot S_{i-1} + \varphi(k_i) \, v_i^\top, \qquad z_i = \text{decay} \cdot z_{i-1} + \varphi(k_i), \qquad \text{output}_i = \frac{\varphi(q_i) \, S_i}{\varphi(q_i) \cdot z_i}$$
#
# Both start at 0. **Write it as a recurrent network:** token after token, with $S$ and $z$ and nothing else kept, so that a token costs the same however many came before it. `query`, `key` and `value` are tokens in rows.


# %% [markdown] tags=["exercise:cache_and_state"]
# One layer with d_model = 512 and 8 heads, so each head's queries, keys and values have 64 numbers. The model has written 1,000 tokens. With softmax, the keys and the values of all tokens are kept (the
# *cache*), since each new query asks them all. With linear attention, each head keeps its $S$ and its $z$. **How many times as many numbers as in the states are in the cache?** Two digits are enough.

# %% [markdown] tags=["exercise:states_at_once"]
# A recurrence without a nonlinear function: $h_i = a_i \, h_{i-1} + b_i$, number by number, and the state before the first token is 0. All $a_i$ and $b_i$ are known (a gate that looks at the token alone makes them).
# A loop needs n steps. **Write it with about $\log_2 n$ rounds.** In each round all tokens are worked on at once: each looks `reach` places back, then the reach is doubled. Two steps in a row are one step of
# the same kind, with another factor and another number; find these two first. The result is all states, in a tensor like `b`.


# %% [markdown] tags=["exercise:why_tanh_waits"]
# Two recurrent networks; all tokens $x_i$ are known beforehand.
#
# 1. $h_i = \tanh(W x_i + U h_{i-1})$
# 2. $h_i = a_i \, h_{i-1} + W x_i$, number by number, where $a_i$ is computed from $x_i$
#
# Both need the state before. **Why can all states of (2) be found in about $\log_2 n$ rounds, and those of (1) not, in this way?** Two or three sentences. The check shows a model answer and a few points: you judge your own, point by point.

# %% [markdown]
# ## What you should remember
#
# <details><summary>Open it when you are done</summary>
#
# 1. Attention needs 4 n d² + 2 n² d multiplications, an LSTM 8 n d² in each direction. Up to n = 2 d attention needs fewer than one direction, up to n = 6 d fewer than both; seconds are another matter.
# 2. The reach of a layer decides the way: (n - 1) / r layers, rounded up. Reading both ways does not shorten the way from end to end; asking directly does.
# 3. In torch's GRU z near 1 keeps the state. Other papers call the opposite gate z: look before you load weights.
# 4. Linear attention: take up $\varphi(k) v$ and $\varphi(k)$, then divide. The same work for every token, and the tokens themselves are not needed.
# 5. With a fading state it forgets as a recurrent network does. With decay 1 it is causal linear attention.
# 6. The cache of softmax attention grows with n, the state stays. What does not grow cannot hold everything.
# 7. Two linear steps make one linear step. Whatever can be joined in pairs needs $\log_2 n$ rounds, not n.
# 8. Not the loop makes an RNN wait but the tanh in it.
#
# </details>
