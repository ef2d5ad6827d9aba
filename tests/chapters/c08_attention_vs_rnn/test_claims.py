"""The claims about recurrent networks and attention: one test each, named after its id."""

import networkx
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c08_attention_vs_rnn.experiments import paths
from lesson_lib.data import recall
from lesson_lib.device import to_device
from lesson_lib.experiments import costs, results
from lesson_lib.heads import Cache, MultiHeadAttention
from lesson_lib.linear import as_rnn, attend_linear, feature_map, step
from lesson_lib.masks import causal
from lesson_lib.measure import dependencies, growth_exponent, operations, sensitivity
from lesson_lib.models.recaller import Recaller, gradients
from lesson_lib.recurrent import Recurrent, State
from lesson_lib.scores import dot

N, D = 11, 5
FAR = [10, 25, 50, 100, 200]


def leaves(n, d=D):
    """Tokens that a dependency graph can start from."""
    return {("input", i): torch.randn(1, d, requires_grad=True) for i in range(n)}


def path(name, n):
    return paths.counted(paths.network(name, n))


def test_rnn_1():
    """Multiplications counted in the layers, and ways counted in the graphs; each as the table says, with
    what the table leaves out."""
    n, d = 7, 13
    expected = {"convolution": 3 * n * d**2, "RNN": 2 * n * d**2, "attention alone": 2 * n**2 * d}
    for kind, number in expected.items():
        assert costs.counted(kind, n, d) == number
    sizes = [16, 32, 64]
    for kind, in_n, in_d in (("convolution", 1, 2), ("RNN", 1, 2), ("attention alone", 2, 1)):
        counted = [costs.counted(kind, size, 16) for size in sizes]
        assert growth_exponent(sizes, counted) == pytest.approx(in_n)
        counted = [costs.counted(kind, 16, size) for size in sizes]
        assert growth_exponent(sizes, counted) == pytest.approx(in_d)
    # as many as an RNN where n = d; the layer has 4 n d² more for its projections, and never as few
    assert costs.counted("attention alone", 31, 31) == costs.counted("RNN", 31, 31)
    assert costs.counted("self-attention", n, d) == 2 * n**2 * d + 4 * n * d**2
    assert costs.counted("self-attention", 2, 64) > 2 * costs.counted("RNN", 2, 64)
    # ways and waiting
    for n in (4, 13):
        assert path("RNN", n)[:2] == (n, n)
        assert path("self-attention", n) == (1, 1, 0)
        # (n - 1) / 1 layers of a kernel of 3 until the last token knows the first: the stack has to wait, too
        assert path("convolutions", n) == (n - 1, n - 1, 0)
        assert path("window attention", n)[:2] == (-(-(n - 1) // 2),) * 2
    assert [path("dilated convolutions", n).path for n in (4, 8, 16)] == [2, 3, 4]


def test_rnn_1_a_wider_kernel_shortens_the_way():
    """A stack of convolutions needs 2 (n - 1) / (k - 1) layers until every token moves every other; with one
    less, some do not."""
    n = 13
    for kernel, layers in ((3, 12), (5, 6), (7, 4)):
        stack = [nn.Conv1d(1, 1, kernel, padding=kernel // 2, dtype=torch.float64) for _ in range(layers)]
        for layer in stack:
            nn.init.constant_(layer.weight, 1 / kernel)

        def seen(stack=stack):
            return sensitivity(lambda x: nn.Sequential(*stack)(x.mT).mT, torch.randn(n, 1).double()) > 0

        assert seen().all() and not seen(stack[1:]).all()


def stored(part, **wanted):
    """Rows of the stored costs, of all three repeats."""
    rows = [row for row in results("costs")["rows"] if {"part": part, **wanted}.items() <= row.items()]
    assert {row["seed"] for row in rows} == {0, 1, 2}
    return rows


def test_rnn_1_seconds():
    """Measured in every repeat: attention grows nearly with n², an RNN with n; in d the RNN has not come to
    its square yet."""

    def powers(over, kind):
        return [
            row["upper"] for row in stored("exponent", over=over, of="seconds", kind=kind, backward=False)
        ]

    assert min(powers("n", "attention alone")) > 1.6
    assert 0.7 < min(powers("n", "RNN")) and max(powers("n", "RNN")) < 1.3
    assert max(powers("d", "RNN")) < 1.9


def test_rnn_2():
    """Attention takes sequences of any length; 1 is the largest of the SHORTEST ways from a token to an
    output."""
    for n in (1, 2, 40):
        assert attend(*[torch.randn(n, D)] * 3).output.shape == (n, D)
        assert path("self-attention", n).path == 1
    # where a signal may choose its way, the longest way and the longest of the shortest ones differ
    n, back = 16, 4
    tokens, states = leaves(n), {}
    for i, token in enumerate(tokens.values()):
        before = [states["state", i - step] for step in (1, back) if i >= step]
        states["state", i] = (token + sum(before)).tanh()
    graph = dependencies(tokens, states)
    assert networkx.dag_longest_path_length(graph) == n
    shortest = dict(networkx.all_pairs_shortest_path_length(graph))
    largest = max(length for i in tokens for o, length in shortest[i].items() if o in states)
    assert largest == 7  # in, three leaps of 4, three of 1
    # the source's own words for the path: how far an input goes until it moves an output; forwards and
    # backwards it is the same
    for name, length in (("RNN", n), ("BiRNN", n + 1), ("self-attention", 1)):
        assert path(name, n).path == length


def untrained(system, distance, seed=0):
    """How strongly the symbol moves the answer before training."""
    torch.manual_seed(seed)
    batch = recall.draw(torch.Generator("cpu").manual_seed(seed), 32, distance)
    return gradients(Recaller(system).double(), to_device(batch))[0].item()


def latch(kind):
    """A Recaller that was not trained: unit s is switched on by symbol s, and stays on."""
    model, one = Recaller(kind).double(), torch.eye(8).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.embed.weight[:8, :8] = model.read.weight[:, :8] = one
        layer = model.core.layer
        if kind == "RNN":
            layer.weight_ih_l0[:8, :8], layer.weight_hh_l0[:8, :8] = 5 * one, 2 * one
        else:
            enter, forget, _, out = layer.bias_ih_l0.view(4, -1)
            enter[:], forget[:], out[:] = -40, 40, 40  # shut, keep, show
            enter, _, written, _ = layer.weight_ih_l0.view(4, 32, 32)
            enter[:8, :8], written[:8, :8] = 80 * one, one
    return model


def test_rnn_3():
    for seed in range(3):
        rnn, lstm, attention = (
            [untrained(system, distance, seed) for distance in FAR] for system in ("RNN", "LSTM", "attention")
        )
        # a factor for every token, and no longer one in attention
        falls = [(signal[4] / signal[1]) ** (1 / (FAR[4] - FAR[1])) for signal in (rnn, lstm)]
        assert 0.3 < falls[0] < 0.55 < 0.58 < falls[1] < 0.72
        assert rnn[4] < 1e-50 and lstm[4] < 1e-30
        assert attention[4] > 1e-2 * attention[0]
        assert -1.3 < growth_exponent(FAR, attention) < -0.5


@pytest.mark.parametrize("kind", ["RNN", "LSTM"])
def test_rnn_3_both_can_remember(kind):
    """Weights made by hand name the symbol after 1,000 tokens; the RNN's gradient is the smaller for it, the
    LSTM's does not fall."""
    model, strength = latch(kind), {}
    for distance in (10, 100, 1000):
        batch = to_device(recall.draw(torch.Generator("cpu").manual_seed(0), 40, distance))
        assert (model(batch.tokens).argmax(-1) == batch.answer).all()
        strength[distance] = gradients(model, batch)[0].item()
    if kind == "RNN":
        assert strength[10] < 1e-6 and strength[100] < 1e-70
    else:
        assert strength[10] > 0.1
        assert strength[1000] == pytest.approx(strength[10], rel=1e-6)


def test_rnn_3_trained():
    """The same 400 steps for all: attention knows the symbol at any distance, RNN and LSTM guess (1 of 8)
    from 25 on; few of them cannot."""
    rows = results("recall")["rows"]

    def accuracies(system, distances, kind="point", aid="none"):
        found = [
            row["accuracy"] for row in rows
            if (row["kind"], row["system"], row["aid"]) == (kind, system,
            aid) and row["distance"] in distances
        ]  # fmt: skip
        assert len(found) == 3 * len(distances)
        return found

    assert min(accuracies("attention", FAR)) > 0.99
    for system in ("RNN", "LSTM"):
        assert min(accuracies(system, [5])) > 0.9
        assert max(accuracies(system, FAR[1:])) < 0.2
    # both ends help where the symbol stands at one of them, and only there
    assert min(accuracies("BiRNN, both ends", FAR)) > 0.9
    assert max(accuracies("BiRNN, both ends", [25, 50], "middle")) < 0.2 > max(accuracies("BiRNN", FAR[1:]))
    # a start that keeps, distances that lengthen and more steps: then both learn what they could not
    for system in ("RNN", "LSTM"):
        assert min(accuracies(system, [25, 50, 100], "aid", "all three")) > 0.9
    # what an LSTM has learned nearby it keeps for far longer than it could have learned it
    near = [
        row for row in rows if (row["kind"], row["system"]) == ("point", "LSTM") and row["distance"] <= 10
    ]
    assert max(row["asked"]["200"] for row in near) > 0.9


def test_rnn_4():
    x = torch.randn(N, D)
    look = MultiHeadAttention(D, 1)
    left = sensitivity(Recurrent("RNN", D, D), x)
    both = sensitivity(Recurrent("RNN", D, D, both_ways=True), x)
    all_of_it = sensitivity(lambda x: look(x, x, x).output, x)
    so_far = sensitivity(lambda x: look(x, x, x, mask=causal(x.shape[1])).output, x)
    below = causal(N)
    for table in (left, so_far):
        assert (table[~below] == 0).all() and (table[below] > 0).all()
    for table in (both, all_of_it):
        assert (table > 0).all()
    # it must be carried: as many steps as there are tokens between, and most is lost on the way
    assert path("BiRNN", N) == (N + 1, N + 1, 0)
    for table in (left, both):
        assert table[-1, 0] < 1e-2 * table[-1, -1]
    assert both[0, -1] < 1e-2 * both[0, 0]
    assert all_of_it[-1, 0] > 0.1 * all_of_it[-1, 1:-1].mean()


def doubled(states):
    """All running sums, each made of two over half as many tokens."""
    reach = 1
    while reach < len(states):
        states = [now if i < reach else now + states[i - reach] for i, now in enumerate(states)]
        reach *= 2
    return torch.stack(states)


def sweeps(layer, x, tolerance):
    """How many times all states must be computed at once, each from its neighbour's last guess, until they
    are those of the loop."""
    true = layer(x[None])[0]
    W, U, b, c = layer.layer.parameters()
    guess = torch.zeros_like(true)
    for number in range(1, len(x) + 1):
        guess = (x @ W.T + b + nn.functional.pad(guess, (0, 0, 1, 0))[:-1] @ U.T + c).tanh()
        if (guess - true).abs().max() < tolerance:
            return number
    return len(x) + 1


def test_rnn_5():
    # a nonlinear recurrence waits at every token, however many there are, and whichever way it reads
    for n in (4, 16, 64):
        assert path("RNN", n).steps == n and path("BiRNN", n).steps == n + 1
        assert path("self-attention", n).steps == path("causal self-attention", n).steps == 1
    # a linear one need not: sums can be made in any order, and the states are the same
    assert path("linear attention, as an RNN", 64).steps == 65
    assert [path("linear attention, by doubling", n).steps for n in (4, 16, 64)] == [4, 6, 8]
    x = torch.randn(N, D)
    added = [step(token, token, token)[1] for token in x]
    S, z = doubled([new.S for new in added]), doubled([new.z for new in added])
    q = feature_map(x)
    read = (q[:, None] @ S)[:, 0] / (q * z).sum(1, keepdim=True)
    assert_close(read, as_rnn(x, x, x), atol=1e-5, rtol=1e-5)
    # half of a nonlinear one's multiplications wait for nothing: what the tokens bring
    cell, tokens = Recurrent("RNN", D, D).cpu(), torch.randn(1, N, D, device="cpu")
    brought = operations(lambda: tokens @ cell.layer.weight_ih_l0.T)
    assert brought == N * D * D and operations(lambda: cell.states(tokens)) == 2 * brought


def test_rnn_5_guesses_in_parallel():
    """Sweeps over all states at once: after k of them the first k are exact. Where the network forgets, so
    are soon the others."""
    n, tolerance = 200, 1e-6
    layer, x = Recurrent("RNN", 32, 32).double(), torch.randn(n, 32).double()
    with torch.no_grad():
        assert sweeps(layer, x, tolerance) < 40
        layer.layer.weight_hh_l0.mul_(3)
        assert sweeps(layer, x, tolerance) > n / 2


def test_rnn_6():
    n = 70  # more than a chunk
    query, key, value = torch.randn(3, 2, n, D)
    outputs = attend_linear(query, key, value, causal=True)
    # another score: the logarithm of phi(q) · phi(k) in the place of q · k / sqrt(d)
    table = attend(
        query, key, value, mask=causal(n), score=lambda q, k: (feature_map(q) @ feature_map(k).mT).log()
    )
    assert_close(outputs, table.output, atol=1e-5, rtol=1e-4)
    assert_close(outputs, as_rnn(query, key, value), atol=1e-5, rtol=1e-4)
    assert (outputs - attend(query, key, value, mask=causal(n)).output).abs().max() > 0.1
    # the state does not grow, and the cache of softmax does
    state, cache, heads, kept = None, Cache(), MultiHeadAttention(D, 1), []
    for token in torch.randn(n, 1, 1, D):
        state = step(token[0, 0], token[0, 0], token[0, 0], state)[1]
        heads(token, token, token, cache=cache)
        kept.append((state.S.numel() + state.z.numel(), cache.key.numel() + cache.value.numel()))
    assert kept == [(D * D + D, 2 * D * (i + 1)) for i in range(n)]


def test_rnn_6_softmax_has_no_finite_state():
    """With features of r parts, the table of phi(q) · phi(k) has rank r at most. That of exp(q · k) has rank
    n, for any n."""
    query, key = torch.randn(2, 64, 8, dtype=torch.float64)
    for n in (4, 16, 64):
        q, k = query[:n], key[:n]
        assert torch.linalg.matrix_rank((q @ k.mT).exp()) == n
        assert torch.linalg.matrix_rank(feature_map(q) @ feature_map(k).mT) == min(n, 8)
    # and with numbers of one part: exp(i ln j) = j to the power i, Vandermonde's table, never singular
    i, j = torch.arange(6.0).double(), torch.arange(1.0, 7).double()
    power = (i[:, None] * j.log()).exp()
    assert_close(power, j ** i[:, None])
    assert torch.linalg.det(power).item() == pytest.approx(34_560)  # 1! 2! 3! 4! 5!


def new_token(kind, n, d=16):
    """Multiplications for token n + 1, where n have been taken up."""
    token = torch.randn(1, 1, d, device="cpu")
    if kind == "attention":
        heads, cache = MultiHeadAttention(d, 1).cpu(), Cache()
        past = torch.randn(1, n, d, device="cpu")
        heads(past, past, past, cache=cache)
        return operations(lambda: heads(token, token, token, cache=cache))
    cell = Recurrent(kind, d, d).cpu()
    state = cell.states(torch.randn(1, n, d, device="cpu"))[-1]
    return operations(lambda: cell.step(token[0], state))


def test_rnn_7():
    # generation: the work of a recurrent network for a token does not grow, attention's does
    d = 16
    lengths = (10, 100, 1000)
    assert [new_token("RNN", n, d) for n in lengths[:2]] == [2 * d * d] * 2
    assert [new_token("LSTM", n, d) for n in lengths[:2]] == [8 * d * d] * 2
    assert [new_token("attention", n, d) for n in lengths] == [4 * d * d + 2 * (n + 1) * d for n in lengths]
    # a whole sequence: more multiplications than an LSTM from n = 2 d on, than an RNN always
    assert costs.counted("self-attention", 2 * d, d) == costs.counted("LSTM", 2 * d, d)
    assert costs.counted("self-attention", 2 * d - 1, d) < costs.counted("LSTM", 2 * d - 1, d)
    assert costs.counted("self-attention", 1, d) > costs.counted("RNN", 1, d)


def test_rnn_7_seconds():
    """Training on one thread, in every repeat: attention is faster at 256 tokens, and the LSTM at 4,096."""

    def taken(kind, n):
        rows = stored("sweep", over="n", backward=True, kind=kind, n=n)
        return [row["seconds"] for row in sorted(rows, key=lambda row: row["seed"])]

    for attention, rnn in zip(taken("self-attention", 256), taken("RNN", 256), strict=True):
        assert attention < rnn / 2
    for attention, lstm in zip(taken("self-attention", 4096), taken("LSTM", 4096), strict=True):
        assert attention > 2 * lstm
    # a batch of 32: the RNN's small products have become larger ones
    for attention, rnn in zip(
        *(stored("threads", kind=kind, batch=32, threads=1) for kind in ("self-attention", "RNN")),
        strict=True,
    ):
        assert attention["seconds"] > 2 * rnn["seconds"]
    # four times the multiplications, and yet less time: the kernel decides
    assert all(lstm < rnn for lstm, rnn in zip(taken("LSTM", 4096), taken("RNN", 4096), strict=True))


def jordan(tokens, before=None, read=None):
    """A Jordan network: the feedback comes from the output alone; from `before`, the right outputs, where
    they are given."""
    d = next(iter(tokens.values())).shape[-1]
    cell, read = Recurrent("RNN", d, d), nn.Linear(d, 1)
    output, units = torch.zeros(1, 1), {}
    for i, token in enumerate(tokens.values()):
        fed = output if before is None or i == 0 else before[i - 1]
        units["state", i] = cell.step(token, State(fed.expand(1, d))).hidden
        units["output", i] = output = read(units["state", i])
    return units


def test_rnn_8():
    cell, read, x = Recurrent("RNN", D, D), nn.Linear(D, 2), torch.randn(1, D)
    # one output, two states, two futures: the output is not enough
    hidden = torch.rand(1, D) / 2
    silent = torch.linalg.svd(read.weight)[2][-1:]  # what the output does not show
    one, other = State(hidden), State(hidden + 0.3 * silent)
    assert_close(read(one.hidden), read(other.hidden), atol=1e-6, rtol=0)
    assert (read(cell.step(x, one).hidden) - read(cell.step(x, other).hidden)).abs().max() > 1e-3
    # an LSTM's hidden state, which its layer puts out, is not enough either: the cell is needed
    lstm = Recurrent("LSTM", D, D)
    apart = lstm.step(x, State(hidden, hidden)).hidden - lstm.step(x, State(hidden, -hidden)).hidden
    assert apart.abs().max() > 1e-3
    # in a graph: from state to state, and the outputs are dead ends
    tokens, units, state = leaves(N), {}, None
    for i, token in enumerate(tokens.values()):
        state = cell.step(token, state)
        units["state", i], units["output", i] = state.hidden, read(state.hidden)
    elman = dependencies(tokens, units)
    assert not any(elman.out_degree(("output", i)) for i in range(N))
    assert networkx.dag_longest_path_length(elman) == N + 1


def test_rnn_8_feedback_from_outputs_only():
    tokens = leaves(N)
    free = dependencies(tokens, jordan(tokens))
    forced = dependencies(tokens, jordan(tokens, before=torch.randn(N, 1, 1)))
    assert networkx.dag_longest_path_length(free) == 2 * N
    assert networkx.dag_longest_path_length(forced) == 2
    # the price: trained so, an output sees its own token and the right output before it
    assert not networkx.has_path(forced, ("input", 0), ("output", 1))
    assert networkx.has_path(free, ("input", 0), ("output", N - 1))
    # feedback from the states keeps its chain, whatever is fed beside it
    cell, state, units = Recurrent("RNN", D + 1, D), None, {}
    for i, token in enumerate(tokens.values()):
        state = cell.step(torch.cat([token, torch.ones(1, 1)], -1), state)
        units["state", i] = state.hidden
    assert networkx.dag_longest_path_length(dependencies(tokens, units)) == N


def test_matrix_4_once_more():
    """Without softmax the brackets may be moved: the numbers stay, the multiplications grow with n instead of
    n²."""
    for n, d in ((64, 16), (16, 64), (32, 32)):
        q, k, v = (torch.randn(n, d, device="cpu", dtype=torch.float64) for _ in range(3))
        assert_close((q @ k.mT) @ v, q @ (k.mT @ v))
        assert operations(lambda q=q, k=k, v=v: (q @ k.mT) @ v) == 2 * n * n * d
        assert operations(lambda q=q, k=k, v=v: q @ (k.mT @ v)) == 2 * n * d * d
        softened = attend(q, k, v, score=dot).output
        assert (softened - q @ (k.mT @ v)).abs().max() > 1
