# %% [markdown]
# # 08 · What did the RNN lack?: exercises
#
# Eight exercises, about 65 minutes. They follow the lesson `08_attention_vs_rnn`; best in this order, and the seventh, the hardest, may wait.
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

# %% [markdown]
# ## 1 · Where do they cost the same?
#
# `★ · 6 min · "attention costs n^2" is half of the truth: up to a length that you can compute, it is the cheaper one`
#
# An LSTM makes four blocks of d numbers at each token: three gates, and what is to be written. Each block is $W x_i + U h_{i-1}$, with matrices of its own. A *bidirectional* LSTM is two of them, one from each side. A layer of self-attention has
# four projections, the scores and the mix of the values. Tokens, and the states of each LSTM, have **d = 48** numbers. **At how many tokens n do the bidirectional LSTM and the attention layer need equally many multiplications?** Count matrix products only (no
# softmax, no gates number by number, no biases). The number of heads does not matter. Type a number or an expression in quotes.

# %%
### BEGIN SOLUTION
lstm_meets_attention = "(16 - 4) * 48 / 2"
### END SOLUTION
### STUB: lstm_meets_attention = ...

# %% tags=["exercise:lstm_meets_attention", "points:2"]
check(lstm_meets_attention, "lstm_meets_attention")

# %%
# hint("lstm_meets_attention")  # without the first '#': a question; run again for the next one
# solution("lstm_meets_attention")

# %% [markdown]
# ## 2 · How long is the way? Predict the picture
#
# `★★ · 6 min · each unit on the way can lose something of the signal, and of the gradient that must come back`
#
# 17 tokens. What the first token holds must reach the LAST position. Each layer, and each state of a recurrent network, that the signal passes is one unit; take the shortest way. Four networks: convolutions with
# kernel 5, one on top of the other, as many as needed; layers of window attention with radius 3 (a token sees 3 neighbours on each side), as many as needed; a BiRNN, one layer from the left and one from the right, whose two
# states at each position are put side by side, which is one more unit, as in the lesson; one layer of full attention. **How many units are on each way?**
#
# - a) convolutions 4, window 3, BiRNN 18, full attention 1
# - b) convolutions 8, window 6, BiRNN 10, full attention 1
# - c) convolutions 8, window 6, BiRNN 18, full attention 1
# - d) convolutions 8, window 6, BiRNN 18, full attention 17
# - e) convolutions 1, window 1, BiRNN 18, full attention 1
# - f) convolutions 8, window 5, BiRNN 18, full attention 1

# %%
### BEGIN SOLUTION
way_to_the_last = "c"
### END SOLUTION
### STUB: way_to_the_last = ...  # one letter, in quotes

# %% tags=["exercise:way_to_the_last", "points:4"]
check(way_to_the_last, "way_to_the_last")

# %%
picture("way_to_the_last")

# %%
# hint("way_to_the_last")
# solution("way_to_the_last")

# %% [markdown]
# ## 3 · A gate the wrong way round: a repair
#
# `★★ · 8 min · papers define this gate both ways; with weights learned the other way the shapes fit, and what should be kept is forgotten`
#
# A GRU has two gates, numbers between 0 and 1: $r$ decides how much of the state enters the proposal $n$, and $z$ decides how much of the old state stays. `W`, `U`, `b` and `c` hold three blocks
# of rows, for $r$, $z$ and $n$ in this order. In torch's form
#
# $$n = \tanh\left(W_n x + b_n + r \, (U_n h + c_n)\right), \qquad h' = (1 - z) \, n + z \, h .$$
#
# The weights were learned in this form. In the function below **one line is wrong. Repair it.**


# %%
def gru_step(
    x: Float[Tensor, "b d_token"],
    state: Float[Tensor, "b d_hidden"],
    W: Float[Tensor, "gates d_token"],
    U: Float[Tensor, "gates d_hidden"],
    b: Float[Tensor, " gates"],
    c: Float[Tensor, " gates"],
) -> Float[Tensor, "b d_hidden"]:
    new_r, new_z, new_n = (x @ W.T + b).chunk(3, dim=-1)
    old_r, old_z, old_n = (state @ U.T + c).chunk(3, dim=-1)
    r = torch.sigmoid(new_r + old_r)
    z = torch.sigmoid(new_z + old_z)
    ### BEGIN SOLUTION
    n = torch.tanh(new_n + r * old_n)
    return (1 - z) * n + z * state
    ### END SOLUTION
    ### STUB: n = torch.tanh(new_n + r * old_n)
    ### STUB: return (1 - z) * state + z * n


# %% tags=["exercise:gru_step", "points:4"]
check(gru_step)

# %%
# hint("gru_step")
# solution("gru_step")

# %% [markdown]
# ## 4 · The tokens are gone, the state is enough
#
# `★★ · 6 min · this is all that is computed for a new token, whether two tokens came before it or two million`
#
# Causal linear attention has read some tokens. Nothing is left of them but its state: $S = \sum_j \varphi(k_j) \, v_j = (100, 40)$, since values are single numbers here, and
# $z = \sum_j \varphi(k_j) = (4, 2)$. The next token comes with the query $(0, 1)$, the key $(1, 0)$ and the value $42$. **What is its output?** A pencil is enough.

# %%
### BEGIN SOLUTION
from_the_state = "(100 + 2*42 + 2*(40 + 42)) / (4 + 2 + 2*(2 + 1))"
### END SOLUTION
### STUB: from_the_state = ...

# %% tags=["exercise:from_the_state", "points:4"]
check(from_the_state, "from_the_state")

# %%
# hint("from_the_state")
# solution("from_the_state")

# %% [markdown]
# ## 5 · Attention that fades
#
# `★★ · 10 min · one number makes linear attention forget as a recurrent network does: several language models of today keep a state that fades`
#
# Give linear attention a state that fades: before a token is taken up, what is there already is multiplied by `decay`, a number from 0 to 1.
#
# $$S_i = \text{decay} \cdot S_{i-1} + \varphi(k_i) \, v_i^\top, \qquad z_i = \text{decay} \cdot z_{i-1} + \varphi(k_i), \qquad \text{output}_i = \frac{\varphi(q_i) \, S_i}{\varphi(q_i) \cdot z_i}$$
#
# Both start at 0. **Write it as a recurrent network:** token after token, with $S$ and $z$ and nothing else kept, so that a token costs the same however many came before it. `query`, `key` and `value` are tokens in rows.


# %%
def fading_attention(
    query: Float[Tensor, "n d_k"],
    key: Float[Tensor, "n d_k"],
    value: Float[Tensor, "n d_v"],
    decay: float,
) -> Float[Tensor, "n d_v"]:
    ### BEGIN SOLUTION
    S, z, outputs = 0, 0, []
    for q, k, v in zip(feature_map(query), feature_map(key), value, strict=True):
        S = decay * S + k[:, None] * v  # (d_k, d_v)
        z = decay * z + k
        outputs.append(q @ S / (q @ z))
    return torch.stack(outputs)
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:fading_attention", "points:4"]
check(fading_attention)

# %%
# hint("fading_attention")
# solution("fading_attention")

# %% [markdown]
# ## 6 · What must be kept while writing?
#
# `★★ · 6 min · when long texts are written, this memory, and reading it again for every token, is one of the limits of a model`
#
# One layer with d_model = 512 and 8 heads, so each head's queries, keys and values have 64 numbers. The model has written 1,000 tokens. With softmax, the keys and the values of all tokens are kept (the
# *cache*), since each new query asks them all. With linear attention, each head keeps its $S$ and its $z$. **How many times as many numbers as in the states are in the cache?** Two digits are enough.

# %%
### BEGIN SOLUTION
cache_and_state = "2*512*1000 / (8 * (64*64 + 64))"
### END SOLUTION
### STUB: cache_and_state = ...

# %% tags=["exercise:cache_and_state", "points:4"]
check(cache_and_state, "cache_and_state")

# %%
# hint("cache_and_state")
# solution("cache_and_state")

# %% [markdown]
# ## 7 · All states in few rounds
#
# `★★★ · 15 min · this is why some recurrent networks can be trained in parallel over time: 1,000 states in 10 rounds`
#
# A recurrence without a nonlinear function: $h_i = a_i \, h_{i-1} + b_i$, number by number, and the state before the first token is 0. All $a_i$ and $b_i$ are known (a gate that looks at the token alone makes them).
# A loop needs n steps. **Write it with about $\log_2 n$ rounds.** In each round all tokens are worked on at once: each looks `reach` places back, then the reach is doubled. Two steps in a row are one step of
# the same kind, with another factor and another number; find these two first. The result is all states, in a tensor like `b`.


# %%
def states_at_once(
    a: Float[Tensor, "n d"], b: Float[Tensor, "n d"]
) -> Float[Tensor, "n d"]:
    ### BEGIN SOLUTION
    reach = 1
    while reach < len(a):
        a_before = torch.cat([torch.ones_like(a[:reach]), a[:-reach]])
        b_before = torch.cat([torch.zeros_like(b[:reach]), b[:-reach]])
        b = a * b_before + b  # first b: it needs the old a
        a = a * a_before
        reach = 2 * reach
    return b
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:states_at_once", "points:6"]
check(states_at_once)

# %%
# hint("states_at_once")
# solution("states_at_once")

# %% [markdown]
# ## 8 · Which of them must wait? In your own words
#
# `★★ · 7 min · "an RNN cannot run in parallel" is true of one kind of RNN; the other kind is trained in parallel today`
#
# Two recurrent networks; all tokens $x_i$ are known beforehand.
#
# 1. $h_i = \tanh(W x_i + U h_{i-1})$
# 2. $h_i = a_i \, h_{i-1} + W x_i$, number by number, where $a_i$ is computed from $x_i$
#
# Both need the state before. **Why can all states of (2) be found in about $\log_2 n$ rounds, and those of (1) not, in this way?** Two or three sentences. The check looks for the ideas that an answer cannot avoid, then shows
# a model answer. It reads words, not meaning: compare the two yourself.

# %%
### BEGIN SOLUTION
why_tanh_waits = """Two steps of (2) are one linear step again: the factors multiply. So neighbouring steps are
joined in pairs, all pairs at once, then pairs of pairs. In (1) a tanh stands between two steps: together
they are no step of that form, and each state waits for the one before."""
### END SOLUTION
### STUB: why_tanh_waits = """ """

# %% tags=["exercise:why_tanh_waits", "points:4"]
check(why_tanh_waits, "why_tanh_waits")

# %%
# hint("why_tanh_waits")
# solution("why_tanh_waits")

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
