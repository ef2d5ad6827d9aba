"""Part 10a: what learners write is what the library does; the networks of its evidence."""

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c10_graph_attention import graphs
from lesson_lib.chapters.c10_graph_attention.camp_models import DotProducts, Fixed, TwoDots, TwoLayers
from lesson_lib.chapters.c10_graph_attention.experiments import camps
from lesson_lib.chapters.c10_graph_attention.nodes import NodeClassifier
from lesson_lib.device import device, to_device
from lesson_lib.experiments import results
from lesson_lib.graphs import attend_edges, self_loops
from lesson_lib.masks import from_edges
from lesson_lib.scores import GraphScore
from tests import code_of

asked = code_of("c10_graph_attention")

N, D_IN, D_K, D_V, CLASSES = 13, 11, 5, 3, 2


def cpu_edges(n=N, seed=0):
    """Edges at random, without order; nobody hears node 1, and node 0 hears nobody."""
    drawn = torch.rand(n, n, generator=torch.Generator("cpu").manual_seed(seed), device="cpu") > 0.7
    drawn[0], drawn[:, 1] = False, False
    edges = drawn.nonzero().T.flip(0)
    return edges[
        :, torch.randperm(edges.shape[1], generator=torch.Generator("cpu").manual_seed(1), device="cpu")
    ]


def test_sums_and_scores_along_edges_are_the_librarys():
    with torch.device("cpu"):
        q, k, v, edges = torch.randn(N, D_K), torch.randn(N, D_K), torch.randn(N, D_V), cpu_edges()
        found = asked.along_edges((q[edges[1]] * k[edges[0]]).sum(-1) / D_K**0.5, v, edges)
        assert_close(found, attend_edges(q[:, None], k[:, None], v[:, None], edges).output[:, 0])
        assert_close(found, attend(q, k, v, mask=from_edges(edges, N)).output)
    assert (found[0] == 0).all()
    with torch.device("cpu"):
        edges, first, later = cpu_edges(), GraphScore(D_K), GraphScore(D_K, dynamic=True)
        z, other = torch.randn(2, N, D_K)
        found = asked.gat_scores(z, first.a_query[0], first.a_key[0], edges)
        assert_close(found, first.of_edges(z[:, None], z[:, None], *edges)[:, 0])
        found = asked.gat_scores_2(z, other, later.a_key[0], edges)
        assert_close(found, later.of_edges(z[:, None], other[:, None], *edges)[:, 0])


def test_the_logarithm_of_the_sum_and_the_softmax_agree():
    with torch.device("cpu"):
        edges = self_loops(cpu_edges(), N)
        scores = 9 * torch.randn(edges.shape[1], 2)
        sums = asked.softmax_over_edges_2(scores, edges, N)
        weights = asked.softmax_over_edges(scores, edges, N)
        assert_close((scores - sums[edges[1]]).exp(), weights)


def test_two_layers_average_the_heads_of_the_last():
    model, edges = TwoLayers(D_IN, CLASSES).to(device()), to_device(self_loops(cpu_edges(), N))
    x = to_device(torch.randn(N, D_IN))
    hidden = torch.nn.functional.elu(model.first(x, edges).output)
    joined = model.last(hidden, edges).output
    mean = sum(joined[:, k * CLASSES : (k + 1) * CLASSES] for k in range(4)) / 4
    assert_close(model(x, edges), mean)


def test_a_fixed_layer_is_that_of_the_node_classifier():
    with torch.device("cpu"):
        ring = torch.stack([torch.arange(N), (torch.arange(N) + 1) % N])
        edges = self_loops(torch.cat([ring, ring.flip(0), torch.tensor([[0, 5], [5, 0]])], 1), N)
        mine, other = Fixed(D_IN, D_K), NodeClassifier("GCN", D_IN, CLASSES).first.__class__(D_IN, D_K)
        other.load_state_dict(mine.state_dict())
        x = torch.randn(N, D_IN)
        assert_close(mine(x, edges), other(x, edges)[0])
        assert_close(mine(torch.zeros(N, D_IN) + x, edges)[2], _by_hand(mine, x, edges, 2))


def _by_hand(layer, x, edges, i):
    degree = edges[1].bincount()
    near = edges[0, edges[1] == i]
    return sum(layer.project(x)[j] / (degree[i] * degree[j]) ** 0.5 for j in near.tolist()) + layer.bias


def test_full_attention_never_sees_the_edges_and_residual_adds_its_own():
    x = torch.randn(N, D_IN)
    some, none = cpu_edges(), cpu_edges()[:, :0]
    for residual in (False, True):
        model = TwoDots(D_IN, CLASSES, everybody=True, residual=residual).to(device())
        assert_close(model(to_device(x), to_device(some)), model(to_device(x), to_device(none)))
    with torch.device("cpu"):
        x = x.cpu()
        layer = DotProducts(D_IN, D_K, 2, everybody=True, residual=True)
        whole, own = layer(x, some), layer.project.pop("own")(x)
        assert_close(whole, layer(x, some) + own)


def test_dot_products_along_edges_are_the_librarys():
    with torch.device("cpu"):
        layer = DotProducts(D_IN, D_K, 2, everybody=False, residual=False)
        x, edges = torch.randn(N, D_IN), cpu_edges()
        q, k, v = (layer.project[name](x).unflatten(1, (2, -1)) for name in ("query", "key", "value"))
        assert_close(layer(x, edges), attend_edges(q, k, v, edges).output.flatten(1) + layer.bias)
        low, high = camps.first_weights(camps.start("full attention"), graphs.karate())
    assert 0.02 < low < 1 / 34 < high < 0.04


def test_training_reads_the_known_labels_only():
    task = graphs.karate()
    lie = task._replace(y=torch.where(torch.arange(34, device="cpu") % 33 == 0, task.y, 1 - task.y))
    losses = [
        camps.loss(camps.start("GCN"), to_device(camps.with_loops(some))).item() for some in (task, lie)
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)  # a GPU adds in any order


def test_apart_is_the_largest_difference():
    class Says(torch.nn.Module):
        def forward(self, x, edge_index):
            return torch.tensor([[0.0, 5.0], [1.0, 5.0], [-2.0, 5.5]]).to(x.device)

    task = graphs.karate()._replace(edge_index=torch.tensor([[0], [1]], device="cpu"))
    task = task._replace(y=task.y[:3], x=task.x[:3], known=task.known[:1])
    assert camps.apart(Says(), task) == 3.0
    # 0 is known; of 1 and 2, who both follow Mr. Hi, neither is placed rightly
    assert camps.accuracy(Says(), task) == 0.0


def stored(system, column="accuracy"):
    rows = [row for row in results("camps")["rows"] if row["kind"] == "point"]
    found = [row[column] for row in rows if row["system"] == system]
    assert len(found) == 3
    return found


def test_rates_are_near_the_best_on_validation():
    rows = [row for row in results("camps")["rows"] if row["kind"] == "rate"]
    for system, chosen in camps.RECIPE["lr"].items():
        found = {row["lr"]: row["validation_accuracy"] for row in rows if row["system"] == system}
        good = [lr for lr, score in found.items() if score >= max(found.values()) - 0.02]
        assert min(good, key=lambda lr: max(lr / 1e-2, 1e-2 / lr)) == chosen
