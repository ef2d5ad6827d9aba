"""Recurrent networks in plain torch: one file to copy into a project. MIT licence.

    rnn_step, lstm_step     from a token's vector and the old state to the new one
    RNN, LSTM               layers: (b, n, d_in) -> states (b, n, d), read token by token
    last                    of each text the state at its own end, although texts are padded
    look_back               attention over states: one query for each text, padding hidden
    Recaller                tokens -> states -> logits, from the last state or by looking back
    heard                   how strongly each token moves the right logit, and so what training can hear
    clock                   seconds of layers over the same batch
    machine                 a machine's wait and its rate, measured
    rnn_stages, time_on     what waits for what, and seconds from the two numbers
    python recurrent.py     trains four of them to name a letter that stood 40 tokens before, and prints
                            what each hears of it before training, and how often it is right afterwards
"""

import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn


def rnn_step(summed):
    """The new state (b, d) of summed = W x + U h + b (b, d)."""
    return summed.tanh()


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
            h = rnn_step(token + self.u(h))
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


def look_back(query, states, lengths=None):
    """Attention over states (b, n, d) with a query (b, d): the mixture (b, d) and the weights (b, n).

    A text without any token (length 0) gets zeros.
    """
    scores = (states @ query[..., None])[..., 0] / query.shape[-1] ** 0.5
    if lengths is not None:
        hidden = torch.arange(states.shape[1], device=states.device) >= lengths[:, None]
        scores = scores.masked_fill(hidden, -torch.inf)
        weights = scores.softmax(-1).masked_fill(hidden, 0.0).nan_to_num()
    else:
        weights = scores.softmax(-1)
    return (weights[:, None] @ states)[:, 0], weights


class Recaller(nn.Module):
    """Logits (b, answers) of tokens (b, n). `core` is a layer (b, n, d) -> (b, n, d). With `looks` the last
    state asks all states, and what it finds is read with it; without, the last state is read alone."""

    def __init__(self, tokens, answers, core, d, looks=False):
        super().__init__()
        self.embed, self.core, self.looks = nn.Embedding(tokens, d), core, looks
        self.query = nn.Linear(d, d, bias=False) if looks else None
        self.read = nn.Linear(2 * d if looks else d, answers)

    def of_embedded(self, x, lengths=None):
        states = self.core(x)
        end = last(states, lengths)
        if self.looks:
            end = torch.cat((end, look_back(self.query(end), states, lengths)[0]), -1)
        return self.read(end)

    def forward(self, tokens, lengths=None):
        return self.of_embedded(self.embed(tokens), lengths)


def heard(model, tokens, answers):
    """For each token the length (n,) of the gradient of the right logit with respect to the token's vector,
    mean over the batch."""
    x = model.embed(tokens).detach().requires_grad_()
    right = model.of_embedded(x).gather(1, answers[:, None])
    (gradient,) = torch.autograd.grad(right.sum(), x)  # texts do not mix
    return gradient.norm(dim=-1).mean(0)


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
    """Tokens (b, distance + 1): one of the letters 0 to 7, filler 8 to 15, and 16, the question; and the
    letter (b,)."""
    letter = torch.randint(8, (batch, 1), generator=generator)
    filler = torch.randint(8, 16, (batch, distance - 1), generator=generator)
    question = torch.full((batch, 1), 16)
    return torch.cat((letter, filler, question), 1), letter[:, 0]


def train(model, steps, distance, lr=5e-3, seed=0):
    """Cross-entropy, Adam; the learning rate rises for a tenth of the steps and falls to 0; a gradient longer
    than 1 is shortened to 1, since a product of many factors can explode."""
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
    cores = {
        "RNN": (RNN, {}, False),
        "LSTM": (LSTM, {}, False),
        "LSTM, open gates": (LSTM, {"forget_bias": 5.0}, False),
        "LSTM that looks back": (LSTM, {}, True),
    }
    unseen = recall(1000, 40, torch.Generator().manual_seed(1))
    for name, (kind, options, looks) in cores.items():
        torch.manual_seed(0)
        model = Recaller(17, 8, kind(32, 32, **options), 32, looks)
        before = heard(model, *unseen)[0]
        train(model, steps=400, distance=40)
        with torch.no_grad():
            right = (model(unseen[0]).argmax(-1) == unseen[1]).float().mean()
        print(f"{name:20} hears {before:.0e} of the letter; right in {right:.2f}")
