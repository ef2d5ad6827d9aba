"""Attention along edges equals attention with the edges for a mask; the layer equals a GAT written from its
formula."""

from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.graphs import CHUNK, CHUNK_OF_GPU, GraphAttention, _slices, attend_edges, self_loops
from lesson_lib.masks import from_edges
from lesson_lib.measure import growth_exponent, peak_mib
from lesson_lib.scores import Additive, GraphScore, dot, scaled_dot

N, D_IN, D_OUT, HEADS = 11, 5, 3, 2


def graph(n=N, edges=40, seed=0):
    """Edges, each once; node 0 has none that arrives."""
    generator = torch.Generator("cpu").manual_seed(seed)
    drawn = torch.randint(0, n, (2, edges), generator=generator, device="cpu").unique(dim=1)
    order = torch.randperm(drawn.shape[1], generator=generator, device="cpu")
    return drawn[:, order][:, drawn[1, order] != 0].to(torch.get_default_device())


def nodes(n=N, *width, seed=1):
    generator = torch.Generator("cpu").manual_seed(seed)
    x = torch.randn(n, *(width or (D_IN,)), generator=generator, device="cpu", dtype=torch.float64)
    return x.to(torch.get_default_device())


def heads_first(*tensors):
    return [x.transpose(0, 1) for x in tensors]


@pytest.mark.parametrize("score", [dot, scaled_dot, "additive", "graph", "dynamic"])
def test_edges_are_a_mask(score):
    torch.manual_seed(0)
    scores = {
        "additive": Additive(D_OUT, D_OUT, 4),
        "graph": GraphScore(D_OUT, HEADS),
        "dynamic": GraphScore(D_OUT, HEADS, dynamic=True),
    }
    score = scores[score].double() if isinstance(score, str) else score
    q, k, v = (nodes(N, HEADS, d, seed=s) for d, s in ((D_OUT, 1), (D_OUT, 2), (7, 3)))
    edges = graph()
    output, weights = attend_edges(q, k, v, edges, score=score)
    wanted = attend(*heads_first(q, k, v), score=score, mask=from_edges(edges, N))
    assert_close(output, wanted.output.transpose(0, 1))
    assert_close(weights, wanted.weights[:, edges[1], edges[0]].T)


@pytest.mark.parametrize("dynamic", [False, True])
def test_both_forms_of_the_layer_agree_forward_and_backward(dynamic):
    torch.manual_seed(0)
    layer, x = GraphAttention(D_IN, D_OUT, HEADS, dynamic=dynamic).double(), nodes().requires_grad_()
    edges = graph()
    nn.init.normal_(layer.bias)
    sparse, dense = layer(x, edges), layer.dense(x, from_edges(edges, N))
    assert_close(sparse.output, dense.output)
    assert_close(sparse.weights, dense.weights[:, edges[1], edges[0]].T)
    weigh = nodes(N, HEADS * D_OUT, seed=5)
    wanted = torch.autograd.grad((dense.output * weigh).sum(), [x, *layer.parameters()])
    assert_close(torch.autograd.grad((sparse.output * weigh).sum(), [x, *layer.parameters()]), wanted)


def test_more_edges_than_a_chunk():
    n = 150
    edges = torch.cartesian_prod(torch.arange(n), torch.arange(n)).T
    assert edges.shape[1] > 2 * CHUNK
    q, k, v = (nodes(n, HEADS, D_OUT, seed=s) for s in (1, 2, 3))
    assert_close(attend_edges(q, k, v, edges).output, attend(*heads_first(q, k, v)).output.transpose(0, 1))


def test_a_node_without_edges_gets_zero_before_the_bias():
    torch.manual_seed(0)
    layer, x, edges = GraphAttention(D_IN, D_OUT, HEADS).double(), nodes().requires_grad_(), graph()
    nn.init.constant_(layer.bias, 7.0)
    output = layer(x, edges).output
    assert 0 not in edges[1] and (output[0] == 7.0).all()
    (gradient,) = torch.autograd.grad(output.sum(), x)
    assert gradient.isfinite().all()
    none = torch.zeros(2, 0, dtype=torch.long)
    assert (layer(x, none).output == 7.0).all() and layer(x, none).weights.shape == (0, HEADS)


def test_weights_of_a_nodes_edges_sum_to_one_even_where_scores_are_huge():
    q, k, v = nodes(N, 1, 2, seed=1), nodes(N, 1, 2, seed=2), nodes(N, 1, 2, seed=3)
    edges = self_loops(graph(), N)
    weights = attend_edges(1000 * q, 1000 * k, v, edges).weights
    sums = torch.zeros(N, 1, dtype=torch.float64).index_add(0, edges[1], weights)
    assert_close(sums, torch.ones_like(sums))


def test_what_is_ranked_static_and_dynamic():
    """GAT ranks all neighbours alike for every node; GATv2 need not (Brody et al., the reason for it)."""
    torch.manual_seed(0)
    edges = torch.cartesian_prod(torch.arange(N), torch.arange(N)).T
    best = {}
    for dynamic in (False, True):
        layer = GraphAttention(D_IN, 8, 1, dynamic=dynamic).double()
        best[dynamic] = layer(nodes(), edges).weights.view(N, N).argmax(0)  # by source, for each target
    assert len(best[False].unique()) == 1 < len(best[True].unique())


@pytest.mark.parametrize("backward", [False, True])
def test_memory_grows_with_the_edges(backward):
    """Allocator peaks with ten edges for each node; no table of n x n."""
    sizes = [2000, 4000, 8000]
    torch.manual_seed(0)
    layer = GraphAttention(8, 8, 4)

    def peak(n):
        x, edges = nodes(n, 8).float().requires_grad_(backward), torch.randint(0, n, (2, 10 * n))

        def call():
            with torch.set_grad_enabled(backward):
                y = layer(x, edges).output
                if backward:
                    y.sum().backward()

        return peak_mib(call)

    peaks = [peak(n) for n in sizes]
    assert growth_exponent(sizes, peaks) < 1.1
    assert peaks[-1] < 8000 * 8000 * 4 / 2**20 / 5


def test_self_loops_once_for_every_node():
    edges = torch.tensor([[0, 1, 2, 2], [0, 2, 2, 0]])
    found = sorted(self_loops(edges, 4).T.tolist())
    assert found == [[0, 0], [1, 1], [1, 2], [2, 0], [2, 2], [3, 3]]


@pytest.mark.parametrize("node", [-1, N, 99])
def test_an_edge_to_a_node_that_is_not_there_is_named(node):
    edges = torch.tensor([[0, 1], [2, node]])
    layer, x = GraphAttention(D_IN, D_OUT).double(), nodes()
    for call in (lambda: layer(x, edges), lambda: attend_edges(x[:, None], x[:, None], x[:, None], edges)):
        with pytest.raises(ValueError, match=rf"edge_index names nodes .*{node}.*allows 0 \.\.\. {N - 1}"):
            call()


@pytest.mark.parametrize(
    "edges, error",
    [
        ([[0], [1]], TypeError),
        (None, TypeError),
        (torch.zeros(2, 3), TypeError),
        (torch.zeros(3, 2).long(), ValueError),
    ],
)
def test_edges_of_another_kind_get_a_sentence(edges, error, no_shape_hook):
    if isinstance(edges, torch.Tensor):
        edges = edges.to(torch.get_default_device())
    with pytest.raises(error, match="edge_index"):
        GraphAttention(D_IN, D_OUT)(nodes().float(), edges)


@pytest.fixture(scope="module")
def pyg():
    """PyTorch Geometric's layers. Its import takes seconds, so it is not at the top."""
    from torch_geometric.nn import GATConv, GATv2Conv

    def layer(kind, *widths, loops=False, bias=True, **options):
        made = {"GATConv": GATConv, "GATv2Conv": GATv2Conv}[kind](
            *widths, add_self_loops=loops, bias=bias, **options
        )
        if kind == "GATv2Conv" and bias:
            made.lin_l.bias = made.lin_r.bias = None  # `bias` gives its projections biases, too
        if bias:
            nn.init.normal_(made.bias)
        return made

    return layer


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("kind", ["GATConv", "GATv2Conv"])
def test_it_is_the_layer_of_pytorch_geometric(pyg, kind, loops, bias):
    """Both forms, outputs, weights, gradients of the input and of every parameter; node 0 has no edge where
    there are no loops."""
    conv = pyg(kind, D_IN, D_OUT, heads=HEADS, loops=loops, bias=bias)
    layer, x, edges = GraphAttention.from_pyg(conv).double(), nodes().requires_grad_(), graph()
    conv = conv.double()
    wanted, (_, of_edges) = conv(x, edges, return_attention_weights=True)
    edges = self_loops(edges, N) if loops else edges
    sparse, dense = layer(x, edges), layer.dense(x, from_edges(edges, N))
    assert_close(sparse.output, wanted)
    assert_close(sparse.weights, of_edges)  # its own order, too: loops last
    assert_close(dense.output, wanted)
    weigh = nodes(N, HEADS * D_OUT, seed=5)
    found = [
        torch.autograd.grad((y * weigh).sum(), x, retain_graph=True)[0]
        for y in (wanted, sparse.output, dense.output)
    ]
    assert_close(found[1], found[0])
    assert_close(found[2], found[0])
    names = {"project.weight": "lin.weight", "score.a_key": "att_src", "score.a_query": "att_dst"}
    if kind == "GATv2Conv":
        names = {
            "project.weight": "lin_l.weight",
            "project_query.weight": "lin_r.weight",
            "score.a_key": "att",
        }
    names |= {"bias": "bias"} if bias else {}
    mine, theirs = dict(layer.named_parameters()), dict(conv.named_parameters())
    assert mine.keys() == names.keys()
    for y, parameters in ((wanted, theirs), (sparse.output, mine)):
        (y * weigh).sum().backward(inputs=[*parameters.values()])
    for name, other in names.items():
        assert_close(mine[name].grad, theirs[other].grad.view_as(mine[name]))


def test_from_pyg_refuses_options_of_the_real_layers(pyg):
    for kind in ("GATConv", "GATv2Conv"):
        for options in (
            {"edge_dim": 3},
            {"concat": False},
            {"residual": True},
            {"dropout": 0.5},
            {"negative_slope": 0.1},
        ):
            with pytest.raises(ValueError, match=f"this {kind} has .*; GraphAttention has not"):
                GraphAttention.from_pyg(pyg(kind, D_IN, D_OUT, heads=HEADS, bias=False, **options))
    from torch_geometric.nn import GATv2Conv, GCNConv

    with pytest.raises(ValueError, match="this GATv2Conv has a bias in the projections"):
        GraphAttention.from_pyg(GATv2Conv(D_IN, D_OUT, heads=HEADS))
    with pytest.raises(ValueError, match="got GCNConv"):
        GraphAttention.from_pyg(GCNConv(D_IN, D_OUT))


@pytest.mark.parametrize(
    "place, edges, step",
    [
        ("cpu", 8 * CHUNK_OF_GPU + 1, CHUNK),
        ("meta", 8 * CHUNK_OF_GPU + 1, CHUNK_OF_GPU),
        ("meta", 80 * CHUNK, 10 * CHUNK),
        ("meta", 3 * CHUNK, CHUNK),
    ],
)
def test_edges_are_taken_by_thousands_on_a_cpu_and_by_more_elsewhere(place, edges, step):
    slices = _slices(torch.empty(edges, device=place))
    assert len(slices) == -(-edges // step) and (slices[0].start, slices[-1].stop >= edges) == (0, True)
    assert all(one.stop == two.start for one, two in pairwise(slices))
