"""The claims about long inputs and about graphs: one test each, named after its id."""

import math

import networkx
import pytest
import torch
from torch.nn.functional import leaky_relu
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.blocks import EncoderLayer
from lesson_lib.chapters.c09_truncated_attention import speech
from lesson_lib.chapters.c09_truncated_attention.experiments import phonemes
from lesson_lib.chapters.c10_graph_attention import graphs
from lesson_lib.chapters.c11_efficient_attention.experiments import arena
from lesson_lib.device import device, to_device
from lesson_lib.efficient import attend_tiles
from lesson_lib.experiments import lengths, results
from lesson_lib.graphs import GraphAttention, attend_edges, self_loops
from lesson_lib.masks import from_edges, window
from lesson_lib.measure import growth_exponent, operations, peak_mib, sensitivity
from lesson_lib.scores import scaled_dot
from lesson_lib.truncated import attend_window

N, D_IN, D_OUT, HEADS = 34, 7, 5, 3
SIZES = [250, 500, 1000]


def frames(samples, **options):
    """How many frames torch makes of a recording, 25 ms wide, every 10 ms."""
    shape = torch.hann_window(400)
    made = torch.stft(torch.zeros(samples), 400, speech.HOP, window=shape, return_complex=True, **options)
    return made.shape[-1]


def work(n, call):
    """Multiplications of a call on queries, keys and values of one sequence, 8 heads of width 64."""
    x = torch.randn(1, 8, n, 64, device="cpu")
    return operations(lambda: call(x, x, x))


def test_truncated_1():
    second = speech.RATE
    assert second // speech.HOP == 100
    assert (
        frames(second, center=False) == 98
        and frames(second) == len(speech.log_mel(torch.randn(second))) == 101
    )
    for center in (True, False):
        assert frames(2 * second, center=center) - frames(second, center=center) == 100
    # twice as long: four times the work, exactly, and four times the table
    counted = [work(n, lambda *x: attend(*x)) for n in SIZES]
    assert counted == [2 * 8 * n * n * 64 for n in SIZES]
    assert round(lengths.table_mib(1000), 1) == 30.5
    held = [lengths.mib("table", n) for n in SIZES]
    assert 3 < held[2] / held[1] < 4
    if device().type == "cpu":  # the table, once, and the outputs
        wanted = [lengths.table_mib(n) + 8 * n * 64 * 4 / 2**20 for n in SIZES]
        assert held == pytest.approx(wanted, rel=0.01)
    # the same work without the table: memory in proportion to n
    assert [work(n, lambda *x: attend(*x, weights=False)) for n in SIZES] == counted
    fused = [lengths.mib("fused", n) for n in SIZES]
    assert growth_exponent(SIZES, fused) < 1.3 and fused[2] < held[2] / 5


def test_truncated_3():
    lasts = [len(one.frames) for split in speech.SPLITS for one in speech.load(split)]
    assert len(lasts) == 297 and 150 <= min(lasts) <= max(lasts) <= 400
    assert sum(lasts) > 70_000
    # a thousand frames are ten seconds
    assert [len(speech.log_mel(torch.randn(speech.RATE * s))) for s in (9, 10, 20)] == [901, 1001, 2001]


def graph():
    """The club with random features: nodes, edges, and edges with self-loops."""
    edges = to_device(graphs.karate().edge_index)
    x = torch.randn(N, D_IN, generator=torch.Generator("cpu").manual_seed(0), device="cpu")
    return to_device(x), edges, self_loops(edges, N)


def gat_by_hand(layer, x, edges, head=0):
    """The paper's formula, node by node, for one head; without the bias."""
    rows = slice(head * D_OUT, (head + 1) * D_OUT)
    z = x @ layer.project.weight[rows].T
    found = []
    for i in range(len(x)):
        near = edges[0, edges[1] == i]
        scores = leaky_relu(layer.score.a_query[head] @ z[i] + z[near] @ layer.score.a_key[head], 0.2).exp()
        found.append(scores / scores.sum() @ z[near])
    return torch.stack(found)


def ranks(weights):
    """In which order each query holds the keys: (h, n, n)."""
    return weights.argsort(-1)


@torch.no_grad()
def test_graph_1():
    torch.manual_seed(0)
    x, edges, loops = graph()
    layer = to_device(GraphAttention(D_IN, D_OUT, HEADS))
    # only along the edges: the same numbers as the whole table under a mask
    along = layer(x, loops)
    assert_close(along.output, layer.dense(x, from_edges(loops, N)).output)
    # with self-loops and its own score it is GAT; without self-loops it is not
    for head in range(HEADS):
        rows = slice(head * D_OUT, (head + 1) * D_OUT)
        assert_close(along.output[:, rows], gat_by_hand(layer, x, loops, head))
        assert (layer(x, edges).output[:, rows] - gat_by_hand(layer, x, loops, head)).abs().max() > 0.1
    # dot products along the same edges: another layer
    z = layer.project(x).unflatten(-1, (HEADS, D_OUT))
    dots = attend_edges(z, z, z, loops)
    assert (dots.output.flatten(1) - along.output).abs().max() > 0.1
    # and it does what GAT cannot: GAT holds all keys in one order, for every query
    everyone = torch.ones(N, N, dtype=torch.bool)
    gat = ranks(layer.dense(x, everyone).weights)
    assert (gat == gat[:, :1]).all()
    dot = ranks(attend(*[z.transpose(0, 1)] * 3).weights)
    assert (dot != dot[:, :1]).any()


def test_graph_1_it_is_message_passing():
    """Nodes have no order, and a layer brings what neighbours know and nobody else."""
    x, _, loops = graph()
    x, layer = x.double(), to_device(GraphAttention(D_IN, D_OUT, HEADS)).double()
    renamed = torch.randperm(N, generator=torch.Generator("cpu").manual_seed(1), device="cpu").to(x.device)
    back = renamed.argsort()
    with torch.no_grad():
        assert_close(layer(x[renamed], back[loops]).output, layer(x, loops).output[renamed])
    seen = sensitivity(lambda x: layer(x[0], loops).output[None], x) > 0
    assert torch.equal(seen, from_edges(loops, N))
    second = to_device(GraphAttention(HEADS * D_OUT, 1)).double()
    twice = sensitivity(lambda x: second(layer(x[0], loops).output, loops).output[None], x) > 0
    two_away = from_edges(loops, N).double()
    assert torch.equal(twice, two_away @ two_away > 0)


def test_graph_1_an_isolated_node_gets_zeros():
    layer, x = (
        to_device(GraphAttention(D_IN, D_OUT, HEADS, bias=False)),
        torch.randn(3, D_IN, requires_grad=True),
    )
    edges = torch.tensor([[0, 1], [1, 0]])  # node 2 has none
    for output in (layer(x, edges).output, layer.dense(x, from_edges(edges, 3)).output):
        assert (output[2] == 0).all() and (output[:2] != 0).any()
        assert torch.autograd.grad(output.sum(), x)[0].isfinite().all()
    assert torch.full((3,), -torch.inf).softmax(0).isnan().all()  # what a mask of -inf alone would give
    with torch.no_grad():
        # and with a self-loop: itself
        assert_close(layer(x, self_loops(edges, 3)).output[2], layer.project(x)[2])


@pytest.mark.skipif(device().type != "cpu", reason="the referee is compared on the CPU")
def test_graph_1_against_pytorch_geometric():
    """Its GATConv adds self-loops by itself; its TransformerConv is what dot products along edges are
    called."""
    from torch_geometric.nn import GATConv, TransformerConv

    x, edges, loops = graph()
    with torch.no_grad():
        conv = GATConv(D_IN, D_OUT, heads=HEADS)
        layer = GraphAttention.from_pyg(conv)
        assert_close(layer(x, loops).output, conv(x, edges))
        assert (layer(x, edges).output - conv(x, edges)).abs().max() > 0.1
        conv = TransformerConv(D_IN, D_OUT, heads=HEADS, bias=False, root_weight=False)
        q, k, v = (
            lin(x).unflatten(-1, (HEADS, D_OUT)) for lin in (conv.lin_query, conv.lin_key, conv.lin_value)
        )
        assert_close(attend_edges(q, k, v, edges).output.flatten(1), conv(x, edges))


def strangers(weights, joined):
    """The share of each node's weight that lies on nodes it has no edge to, on average."""
    return (weights * ~joined).sum(-1).mean().item()


def zeroed(joined):
    """The scaled dot product, set to 0 where there is no edge, as the source says it."""
    return lambda query, key: scaled_dot(query, key) * joined


def test_graph_2():
    _, _, loops = graph()
    joined = from_edges(loops, N)
    q, k, v = torch.randn(3, N, 8)
    # a score of 0 is a score like others: were all scores 0, 84 % of the weight would go to strangers
    none = 0 * q
    assert strangers(attend(none, k, v, score=zeroed(joined)).weights, joined) == pytest.approx(
        0.8356, abs=1e-4
    )
    assert 1 - (2 * 78 + 34) / 34**2 == pytest.approx(0.8356, abs=1e-4)
    # and with scores of the usual size
    set_to_0, hidden = attend(q, k, v, score=zeroed(joined)), attend(q, k, v, mask=joined)
    assert strangers(set_to_0.weights, joined) > 0.7
    assert (set_to_0.output - hidden.output).norm() > 0.5 * hidden.output.norm()
    # weight 0 is a score of -inf: the same as never to compute it
    assert strangers(hidden.weights, joined) == 0
    along = attend_edges(*(t[:, None] for t in (q, k, v)), loops)
    assert_close(hidden.output, along.output[:, 0])
    # who has one edge and himself would have to score 7.4 until all strangers together weigh less than 1 %
    score = math.log(32 * 0.99 / (2 * 0.01))
    assert round(score, 1) == 7.4
    assert 32 / (32 + 2 * math.exp(score)) == pytest.approx(0.01)


def club_rows(column="accuracy", count=10, **wanted):
    """A column of the stored rows of the club's experiment that fit, a number for each seed."""
    found = [row[column] for row in results("club")["rows"] if wanted.items() <= row.items()]
    assert len(found) == count
    return found


def test_graph_2_trained():
    """Training fights it on the club, and cannot on a larger graph."""
    zero, weight_0 = ({"part": "point", "kind": kind} for kind in ("scores set to 0", "dot products"))
    left = club_rows("strangers", **zero, task="club")
    assert (round(min(left), 2), round(max(left), 2)) == (0.36, 0.67)
    assert round(sum(club_rows(**zero, task="club")) / 10, 2) == 0.88
    assert round(sum(club_rows(**weight_0, task="club")) / 10, 2) == 0.95
    assert set(club_rows("strangers", **weight_0, task="club")) == {0}
    assert {round(share, 2) for share in club_rows("strangers", **zero, task="blocks")} == {0.96}
    assert set(club_rows(**zero, task="blocks")) == {0.25}  # of four classes
    assert min(club_rows(**weight_0, task="blocks")) > 0.8


def test_graph_3_trained():
    """In the club equal weights along the edges are as good as learnt ones; elsewhere edges may help, or
    harm."""
    assert set(club_rows(part="even", task="club")) == {30 / 32}
    assert {round(32 * right) for right in club_rows(part="point", kind="GAT", task="club")} == {30, 31}

    def right(kind, n_classes, share):
        return club_rows(count=3, part="within", kind=kind, n_classes=n_classes, within=share)

    for n_classes, share in ((2, 0.5), (4, 0.1)):
        assert max(right("GAT", n_classes, share)) < min(right("MLP", n_classes, share))
    assert min(right("GAT", 2, 0.1)) > max(right("MLP", 2, 0.1)) + 0.1


def test_graph_3():
    club = graphs.karate()
    edges, side = club.edge_index, club.y
    # edges say who knew whom; sides are another question
    assert edges.shape[1] // 2 == 78
    assert int((side[edges[0]] != side[edges[1]]).sum()) // 2 == 11
    allies = (side[:, None] == side).triu(1)
    assert int(allies.sum()) == 272 and int((allies & from_edges(edges, N).cpu()).sum()) == 67
    # the same edges, drawn by class: neighbours are right about a node where they are like it, and wrong
    # where they are not
    for within, right in ((0.9, (0.85, 0.95)), (0.5, (0.45, 0.55)), (0.1, (0.05, 0.2))):
        for seed in range(5):
            task = graphs.opposites(seed, within=within)
            told = from_edges(task.edge_index, len(task.y)).float() @ task.x
            assert right[0] <= (told.argmax(1) == task.y).double().mean() <= right[1]
            assert 0.7 < (task.x.argmax(1) == task.y).double().mean() < 0.78  # by itself


def test_graph_3_how_much_is_not_in_the_edges():
    """Four neighbours, one of them marked: with fixed weights the answer does not depend on which; attention
    picks it."""
    star = torch.tensor([[1, 2, 3, 4], [0, 0, 0, 0]])
    says = torch.tensor([0.0, 10.0, 20.0, 30.0, 40.0])
    for marked in (1, 2, 3, 4):
        mark = torch.zeros(5)
        mark[marked] = 1
        x = torch.stack([torch.ones(5), mark], 1)  # what a key knows; the query asks for the mark
        query, key, value = torch.tensor([0.0, 30.0]).expand(5, 1, 2), x[:, None], says[:, None, None]
        found = attend_edges(query, key, value, star).output[0, 0, 0]
        assert_close(found, says[marked])
        assert says[star[0]].mean() == 25
    assert networkx.is_tree(networkx.Graph(star.T.tolist()))


def costs(kind, n, of="cpu_s"):
    """Stored costs of a forward pass over n frames, a number for each repeat."""
    rows = results("lengths")["rows"]
    found = [row[of] for row in rows if (row["kind"], row["n"], row["backward"]) == (kind, n, False)]
    assert len(found) == 3
    return found


def test_truncated_2_faster():
    """The work of a window grows with its length and the radius; that of a mask over the table does not
    shrink."""
    radius = lengths.RECIPE["radius"]
    for n in (600, 1200):  # in blocks of 32 queries, 62 keys for each; a few at the ends apart
        done = work(n, lambda *x: attend_window(*x, radius))
        assert done == pytest.approx(2 * 8 * n * (32 + 2 * radius) * 64, rel=0.02)
        assert (
            work(n, lambda *x, n=n: attend(*x, mask=window(n, radius, device=x[0].device)))
            == 2 * 8 * n * n * 64
        )
    # stored: ten seconds of speech, every repeat
    assert max(costs("window", 1000)) < min(costs("fused", 1000)) / 2
    assert max(costs("window", 1000)) < min(costs("table", 1000)) / 4
    assert min(costs("mask over the table", 1000)) > max(costs("table", 1000))
    assert max(costs("window", 8000)) < min(costs("fused", 8000)) / 20
    # one second: nothing to gain
    assert min(costs("window", 100)) > max(costs("table", 100))
    assert lengths.exponents(results("lengths")["rows"])["window"] == pytest.approx(1, abs=0.15)


def right(radius, kind="point", of="accuracy"):
    """Stored test accuracies of the recogniser with that radius, a number for each seed."""
    found = [
        row[of] for row in results("phonemes")["rows"] if (row["kind"], row.get("radius")) == (kind, radius)
    ]
    assert len(found) == 3
    return found


def test_truncated_2():
    """A small neighbourhood is enough, and less is not."""
    rows = results("phonemes")["rows"]
    enough = phonemes.saturates(rows)
    assert enough in (2, 5, 15)
    assert min(right(enough)) > max(right(0)) + 0.1  # alone a frame knows much less
    assert max(right(None)) < min(right(enough)) + 0.02  # to look further brings next to nothing
    means = {radius: sum(right(radius)) / 3 for radius in (0, 5, 15, None)}
    for radius, told in {0: 0.56, 5: 0.73, 15: 0.75, None: 0.68}.items():
        assert abs(means[radius] - told) < 0.005, radius
    at_loss = phonemes.matched(rows, 0.3)
    assert min(at_loss[15]) > max(at_loss[None])


def test_efficient_1():
    # the square, and how much of a layer it is: n / (n + 6 d)
    assert [work(n, lambda *x: attend(*x)) for n in (500, 1000)] == [2 * 512 * n * n for n in (500, 1000)]
    layer = EncoderLayer(512, 8, 2048, dropout=0.0).cpu().eval()
    for n, share in ((512, 1 / 7), (3072, 1 / 2)):
        with torch.no_grad():
            whole = operations(lambda n=n: layer(torch.zeros(1, n, 512, device="cpu")))
        assert work(n, lambda *x: attend(*x, weights=False)) / whole == pytest.approx(share, rel=1e-9)
    # cheaper where sequences are long, and only there
    rows = results("arena")["rows"]
    costs, others = arena.costs(rows), [kind for kind in arena.KINDS if kind != "full"]
    for kind in others:
        assert 6.5 < costs[kind][4096][0] / costs["full"][4096][0] < 15.5
        assert costs[kind][256][0] < 2 * costs["full"][256][0]
        assert costs["full"][4096][1] < 1.01 * costs[kind][4096][1]  # MiB: the table is never held
    # the price depends on the task
    reached = {
        (row["task"], row["attention"], row["seed"]): row["accuracy"]
        for row in rows
        if row["kind"] == "point"
    }
    for seed in arena.RECIPE["seeds"]:
        for other in arena.RECIPE["seeds"]:
            for kind in others:
                assert reached["pairs", "full", seed] > reached["pairs", kind, other] + 0.3
            assert reached["digits", "low rank", seed] > reached["digits", "full", other] + 0.1
    # nothing is given up tile by tile
    x = torch.randn(3, 300, 16)
    assert_close(attend_tiles(*x), attend(*x).output, atol=1e-6, rtol=0)
    peaks = [peak_mib(lambda n=n: attend_tiles(*torch.randn(3, 1, n, 16))) for n in (2000, 4000)]
    assert peaks[1] < 2.2 * peaks[0]
