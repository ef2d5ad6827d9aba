"""Networks on graphs: each looks where its kind says, and shows the table that was used."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c10_graph_attention.nodes import KINDS, NodeClassifier
from lesson_lib.device import device
from lesson_lib.graphs import self_loops
from lesson_lib.masks import from_edges

N, D_IN, CLASSES, D, H = 13, 5, 3, 7, 2


def make(kind, d_in=D_IN):
    return NodeClassifier(kind, d_in, CLASSES, d_hidden=D, n_heads=H).to(device()).eval()


def path(n=N):
    """0 - 1 - 2 - ..., each edge both ways."""
    i = torch.arange(n - 1)
    return torch.cat([torch.stack([i, i + 1]), torch.stack([i + 1, i])], 1)


def ring_and_chords():
    i = torch.arange(N)
    pairs = torch.stack([torch.cat([i, i]), torch.cat([(i + 1) % N, (i + 3) % N])])
    return torch.cat([pairs, pairs.flip(0)], 1)


def joined(edges, n=N):
    return from_edges(self_loops(edges, n), n)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_lie_where_the_kind_may_look(kind):
    weights = make(kind).look(torch.randn(N, D_IN), ring_and_chords()).weights
    allowed = {"MLP": torch.eye(N, dtype=torch.bool)}.get(kind, joined(ring_and_chords()))
    if kind in ("full attention", "scores set to 0"):
        allowed = torch.ones(N, N, dtype=torch.bool)
    assert ((weights > 0) == allowed).all()


@pytest.mark.parametrize("kind", ["GAT", "GATv2"])
def test_graph_attention_equals_its_dense_form_twice(kind):
    model, x, edges = make(kind), torch.randn(N, D_IN), ring_and_chords()
    hidden, weights = model.first.dense(x, joined(edges))
    assert_close(model.look(x, edges).weights, weights)
    assert_close(model(x, edges), model.last.dense(F.elu(hidden), joined(edges)).output)


def dots(layer, x, heads, **options):
    """A layer of dot products, by `attend` on tables of heads."""
    q, k, v = (
        w(x).unflatten(-1, (heads, -1)).transpose(0, 1) for w in (layer.w_query, layer.w_key, layer.w_value)
    )
    return attend(q, k, v, **options).output.transpose(0, 1).flatten(1) + layer.bias


@pytest.mark.parametrize("kind", ["dot products", "full attention"])
def test_dot_products_are_attend_with_or_without_the_mask_of_the_graph(kind):
    model, x, edges = make(kind), torch.randn(N, D_IN), ring_and_chords()
    nn.init.normal_(model.first.bias)
    mask = joined(edges) if kind == "dot products" else None
    hidden = F.elu(dots(model.first, x, H, mask=mask))
    assert_close(model(x, edges), dots(model.last, hidden, 1, mask=mask))


def test_a_score_of_0_is_looked_at():
    """By hand: three nodes, 0 and 1 joined, every score of a pair with an edge 2: strangers keep 1 of 2 e² +
    1, or of e² + 2."""
    model = NodeClassifier("scores set to 0", 1, 2, d_hidden=1, n_heads=1).to(device())
    nn.init.constant_(model.first.w_query.weight, 2.0)
    nn.init.constant_(model.first.w_key.weight, 1.0)
    e2 = torch.tensor(2.0).exp().item()
    weights = model.look(torch.ones(3, 1), torch.tensor([[0, 1], [1, 0]])).weights[0]
    near, far, alone = e2 / (2 * e2 + 1), 1 / (2 * e2 + 1), 1 / (e2 + 2)
    wanted = [[near, near, far], [near, near, far], [alone, alone, e2 / (e2 + 2)]]
    assert_close(weights, torch.tensor(wanted))


def test_scores_of_0_reach_the_second_layer_too():
    """With all scores 0 a node takes the mean of all, joined or not: all logits are alike."""
    model, x = make("scores set to 0"), torch.randn(N, D_IN)
    for layer in (model.first, model.last):
        nn.init.zeros_(layer.w_query.weight)
    logits = model(x, ring_and_chords())
    assert_close(logits, logits[:1].expand(N, -1))


def test_gcn_weighs_by_degrees_as_its_paper_does():
    """D^-1/2 (A + I) D^-1/2 x W + b, by a table; on a path of three the middle has degree 3, the ends 2."""
    model = make("GCN")
    nn.init.normal_(model.first.bias)
    nn.init.normal_(model.last.bias)
    x, edges = torch.randn(N, D_IN), ring_and_chords()
    table = joined(edges).float()
    scale = table.sum(-1).rsqrt()
    table = scale[:, None] * table * scale
    hidden = F.elu(table @ model.first.project(x) + model.first.bias)
    assert_close(model(x, edges), table @ model.last.project(hidden) + model.last.bias)
    small = model.look(torch.randn(3, D_IN), path(3)).weights[0]
    a = 6**-0.5
    assert_close(small, torch.tensor([[1 / 2, a, 0], [a, 1 / 3, a], [0, a, 1 / 2]]))


def test_an_mlp_is_one():
    model, x = make("MLP"), torch.randn(N, D_IN)
    nn.init.normal_(model.first.bias)
    hidden = F.elu(x @ model.first.project.weight.T + model.first.bias)
    wanted = hidden @ model.last.project.weight.T + model.last.bias
    assert_close(model(x, ring_and_chords()), wanted)
    assert torch.equal(model.look(x, path()).weights, torch.eye(N)[None])


@pytest.mark.parametrize("kind", KINDS)
def test_how_far_a_node_sees_whatever_its_number_is(kind):
    """Two layers along a path reach two nodes away; a poisoned node stays unseen beyond, or is seen
    by all."""
    model, x = make(kind), torch.randn(N, D_IN)
    poisoned = x.clone()
    poisoned[6] = 1e3
    moved = (model(poisoned, path()) - model(x, path())).abs().amax(-1) > 1e-4
    reach = {"MLP": 0, "full attention": N, "scores set to 0": N}.get(kind, 2)
    assert moved.tolist() == [abs(i - 6) <= reach for i in range(N)]
    model, x, edges = make(kind), torch.randn(N, D_IN), ring_and_chords()
    order = torch.randperm(N)  # new number of each node
    moved = torch.empty_like(x)
    moved[order] = x
    assert_close(model(moved, order[edges])[order], model(x, edges))


@pytest.mark.parametrize("kind", KINDS)
def test_self_loops_count_once_and_every_parameter_learns(kind):
    model, x = make(kind), torch.randn(N, D_IN)
    assert_close(model(x, self_loops(path(), N)), model(x, path()))
    alone = model.look(x, path()[:, :0]).weights
    if kind not in ("full attention", "scores set to 0"):
        assert_close(alone, torch.eye(N).expand_as(alone))
    model = make(kind)
    model(torch.randn(N, D_IN), ring_and_chords()).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("kind", ["GIN", "gat"])
def test_another_kind_gets_a_sentence(no_shape_hook, kind):
    with pytest.raises(ValueError, match=r"kind must be one of GAT, GATv2, dot products, GCN, .*, got "):
        NodeClassifier(kind, 3, 2)


@pytest.mark.parametrize("x, error, words", [
    ([[1.0] * 5], TypeError, r"x must be a float tensor of features \(n, 5\), got list"),
    (torch.zeros(5, device="cpu"), ValueError, r"\(n, 5\), one row for each node, got \(5,\)"),
    (torch.zeros(1, 2, 5, device="cpu"), ValueError, "got \\(1, 2, 5\\)"),
])  # fmt: skip
def test_other_features_get_a_sentence(no_shape_hook, x, error, words):
    model = make("GAT")
    for ask in (model, model.look):
        with pytest.raises(error, match=words):
            ask(x, path(2))


@pytest.mark.parametrize("kind", KINDS)
def test_an_edge_to_nowhere_gets_a_sentence(no_shape_hook, kind):
    x = torch.zeros(3, D_IN)
    with pytest.raises(ValueError, match=r"names nodes 0 ... 3, but n = 3 allows 0 ... 2"):
        make(kind)(x, path(4))
    with pytest.raises(TypeError, match="edge_index must be an integer tensor"):
        make(kind)(x, [[0], [1]])
