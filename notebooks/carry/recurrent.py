"""Recurrent networks in plain torch: one file to copy into a project. MIT licence.

    lstm_step               from a token's vector and the old cell to the new state and cell
    RNN, LSTM               layers: (b, n, d_in) -> states (b, n, d), read token by token
    last                    of each text the state at its own end, although texts are padded
    Recaller                tokens -> states -> logits, from the last state
    heard                   how strongly each token moves the right logit, and so what training can hear
    linear, gated, delta    attention without softmax, with a gate, with a state that overwrites: query, key
                            (b, n, d_k), value (b, n, d_v) -> (b, n, d_v); NAME_step: token by token
    clock                   seconds of layers over the same batch
    machine                 a machine's wait and its rate, measured
    rnn_stages, time_on     what waits for what, and seconds from the two numbers
    python recurrent.py     trains three of them to name a letter 40 tokens back: heard before, right after
"""

import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn


def lstm_step(summed, cell):
    """The new state and cell, each (b, d), of summed = W x + U h + b (b, 4 d), in torch's order: i, f, g, o.

    The cell is kept by the share f, and i says how much of g is written. No tanh stands on its way, so the
    gradient of a cell with respect to the one before is f.
    """
    i, f, g, o = summed.chunk(4, -1)
    cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


class RNN(nn.Module):
    """States (b, n, d) of x (b, n, d_in): h = tanh(W x + U h + b), h = 0 before the first token."""

    rows = 1  # numbers of `summed` for each number of the state

    def __init__(self, d_in, d):
        super().__init__()
        self.d = d
        self.w, self.u = nn.Linear(d_in, self.rows * d), nn.Linear(d, self.rows * d, bias=False)

    def forward(self, x):
        h, states = x.new_zeros(len(x), self.d), []
        for token in self.w(x).unbind(1):  # W x waits for nothing: all tokens at once
            h = (token + self.u(h)).tanh()
            states.append(h)
        return torch.stack(states, 1)


class LSTM(RNN):
    """The same with a cell beside the state. `forget_bias` is added to the forget gates: 0 lets half of the
    cell through at each token, 5 lets 0.993 through. (torch has two biases, which it adds up.)"""

    rows = 4

    def __init__(self, d_in, d, forget_bias=0.0):
        super().__init__(d_in, d)
        with torch.no_grad():
            self.w.bias[d : 2 * d] += forget_bias

    def forward(self, x):
        h = cell = x.new_zeros(len(x), self.d)
        states = []
        for token in self.w(x).unbind(1):
            h, cell = lstm_step(token + self.u(h), cell)
            states.append(h)
        return torch.stack(states, 1)


def last(states, lengths=None):
    """The state (b, d) at each text's own end: states (b, n, d), lengths (b,) in tokens, None if all are n.

    states[:, -1] of a padded batch has read the padding.
    """
    if lengths is None:
        return states[:, -1]
    return states[torch.arange(len(states), device=states.device), lengths - 1]


class Recaller(nn.Module):
    """Logits (b, answers) of tokens (b, n), read from the last state; `core` is a layer of width d."""

    def __init__(self, tokens, answers, core, d):
        super().__init__()
        self.embed, self.core, self.read = nn.Embedding(tokens, d), core, nn.Linear(d, answers)

    def of_embedded(self, x, lengths=None):
        return self.read(last(self.core(x), lengths))

    def forward(self, tokens, lengths=None):
        return self.of_embedded(self.embed(tokens), lengths)


def heard(model, tokens, answers):
    """For each token the length (n,) of the gradient of the right logit with respect to the token's vector,
    mean over the batch."""
    x = model.embed(tokens).detach().requires_grad_()
    right = model.of_embedded(x).gather(1, answers[:, None])
    (gradient,) = torch.autograd.grad(right.sum(), x)  # texts do not mix
    return gradient.norm(dim=-1).mean(0)


def linear_step(query, key, value, state):
    """Attention without softmax as an RNN: what the query reads (b, d_v), and the state (b, d_k, d_v + 1),
    zeros at first. The state's last column sums features, since values get a 1 behind them."""
    query, key, value = F.elu(query) + 1, F.elu(key) + 1, F.pad(value, (0, 1), value=1.0)
    state = state + key[..., :, None] * value[..., None, :]
    summed = (query[..., None, :] @ state)[..., 0, :]
    return summed[..., :-1] / summed[..., -1:], state


def linear(query, key, value):
    """The same for all tokens at once (b, n, d_v)."""
    weights = ((F.elu(query) + 1) @ (F.elu(key) + 1).mT).tril()
    return weights @ value / weights.sum(-1, keepdim=True)


def gated_step(query, key, value, gate, state):
    """S <- g S + k v^T, no features: what the query reads, and S (b, d_k, d_v); gate (b,) from 0 to 1."""
    state = gate[..., None, None] * state + key[..., :, None] * value[..., None, :]
    return (query[..., None, :] @ state)[..., 0, :], state


def faded(query, key, gate):
    """Scores (b, n, n) of the tokens so far, each times the gates behind its key; gates (b, n) above 0."""
    total = gate.log().cumsum(-1)
    return query @ key.mT * (total[..., :, None] - total[..., None, :]).tril().exp().tril()


def gated(query, key, value, gate):
    """The same for all tokens at once (b, n, d_v)."""
    return faded(query, key, gate) @ value


def delta_step(query, key, value, gate, beta, state):
    """S <- g S, then S <- S + beta k (v - S^T k)^T: what S answers to k is replaced. Keys have length 1."""
    state = gate[..., None, None] * state
    change = beta[..., None] * (value - (key[..., None, :] @ state)[..., 0, :])
    state = state + key[..., :, None] * change[..., None, :]
    return (query[..., None, :] @ state)[..., 0, :], state


def delta(query, key, value, gate, beta):
    """The same for all tokens: one triangular solve finds the changes, whose own coefficients are 1."""
    answered, wanted = beta[..., None] * faded(key, key, gate), beta[..., None] * value
    change = torch.linalg.solve_triangular(answered, wanted, upper=False, unitriangular=True)
    return gated(query, key, change, gate)


def clock(layers, x, rounds=7):
    """{name: seconds} of one call of each layer on x, without gradients: the median of `rounds`, in which the
    layers take turns, after one call to warm up."""
    taken = {name: [] for name in layers}
    with torch.no_grad():
        for _ in range(1 + rounds):
            for name, layer in layers.items():
                begun = time.perf_counter()
                layer(x)
                if x.is_cuda:  # there a call returns before its work is done
                    torch.cuda.synchronize()
                taken[name].append(time.perf_counter() - begun)
    return {name: statistics.median(some[1:]) for name, some in taken.items()}


def machine(tokens=1000, width=512):
    """The seconds of a wait, and products a second."""
    thin = nn.RNN(1, 1, batch_first=True)  # hardly multiplies
    by_step = clock({"": thin}, torch.randn(1, tokens, 1))[""]
    at_once = clock({"": lambda x: x @ x}, torch.randn(width, width))[""]
    return by_step / tokens, width**3 / at_once


def rnn_stages(n, d, rows=1):
    """The products of each stage (n + 1,): W x of all tokens, then U h token by token; LSTM: rows = 4."""
    return torch.tensor([n * rows * d * d] + n * [rows * d * d], dtype=torch.float64)


def time_on(stages, wait, rate):
    """Seconds of stages, one after the other: each waits, then makes its products at the rate."""
    return (wait + stages / rate).sum()


def recall(batch, distance, generator):
    """Tokens (b, distance + 1): a letter 0 to 7, filler 8 to 15, 16 to ask for it; and the letter (b,)."""
    letter = torch.randint(8, (batch, 1), generator=generator)
    filler = torch.randint(8, 16, (batch, distance - 1), generator=generator)
    question = torch.full((batch, 1), 16)
    return torch.cat((letter, filler, question), 1), letter[:, 0]


def train(model, steps, distance, lr=5e-3, seed=0):
    """Cross-entropy, Adam; the rate rises, then falls; a gradient longer than 1 is shortened to 1."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr)
    shape = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps, pct_start=0.1)
    for _ in range(steps):
        tokens, letters = recall(32, distance, generator)
        loss = F.cross_entropy(model(tokens), letters)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        shape.step()
    return model


if __name__ == "__main__":
    cores = {"RNN": (RNN, {}), "LSTM": (LSTM, {}), "LSTM, open gates": (LSTM, {"forget_bias": 5.0})}
    unseen = recall(1000, 40, torch.Generator().manual_seed(1))
    for name, (kind, options) in cores.items():
        torch.manual_seed(0)
        model = Recaller(17, 8, kind(32, 32, **options), 32)
        before = heard(model, *unseen)[0]
        train(model, steps=400, distance=40)
        with torch.no_grad():
            right = (model(unseen[0]).argmax(-1) == unseen[1]).float().mean()
        print(f"{name:20} hears {before:.0e} of the letter; right in {right:.2f}")
