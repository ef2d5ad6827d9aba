"""Classes of nodes: what is known stays apart from what is asked, weights are read as they are called."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from lesson_lib.chapters.c10_graph_attention import graphs
from lesson_lib.chapters.c10_graph_attention.experiments import club
from lesson_lib.chapters.c10_graph_attention.nodes import NodeOutput
from lesson_lib.device import device, to_device
from lesson_lib.experiments import results

GRAPH_KINDS = ("GAT", "GATv2", "dot products", "GCN")


class Says(nn.Module):
    """Gives each node the class that it is told, and shows the table that it is told."""

    kind = "GAT"

    def __init__(self, classes=None, weights=None):
        super().__init__()
        self.classes, self.weights = classes, weights

    def forward(self, x, edge_index):
        return nn.functional.one_hot(self.classes.to(x.device), 3).float()

    def look(self, x, edge_index):
        return NodeOutput(torch.zeros(len(x), 2), self.weights.to(x.device))


@pytest.fixture
def small(monkeypatch):
    values = {
        "d_hidden": 3, "n_heads": 2, "steps": 3, "rates": [1e-2],
        "pilot": {"club": 1, "blocks": 1, "opposites": 3}, "within": {"2": [0.3], "5": [0.2, 0.7]},
        "within_kinds": ["MLP"], "within_seeds": [1],
    }  # fmt: skip
    for name, value in values.items():
        monkeypatch.setitem(club.RECIPE, name, value)


def tiny():
    """0 - 1 - 2 and 3 alone; classes 0 0 1 1; node 0 is known."""
    cpu = torch.device("cpu")
    return graphs.NodeTask(
        "tiny", torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]], device=cpu), torch.eye(4, device=cpu),
        torch.tensor([0, 0, 1, 1], device=cpu), torch.tensor([0], device=cpu), torch.zeros(4, 2, device=cpu),
        ("A", "B"),
    )  # fmt: skip


def test_accuracy_asks_for_the_others_and_strangers_are_pairs_without_an_edge():
    """The known node does not count, be it right or wrong."""
    for first in (0, 1):
        model = Says(torch.tensor([first, 0, 1, 0]))
        assert club.accuracy(model, tiny()) == pytest.approx(2 / 3)
    assert club.accuracy(Says(torch.tensor([2, 0, 1, 1])), tiny()) == 1
    even = Says(weights=torch.full((5, 4, 4), 1 / 4))
    assert club.weight_on_strangers(even, tiny()) == pytest.approx(8 / 16)  # 16 pairs, 4 edges, 4 nodes
    own = Says(weights=torch.eye(4).expand(5, 4, 4))
    assert club.weight_on_strangers(own, tiny()) == 0
    table = torch.zeros(1, 4, 4)
    table[0, 0, 2], table[0, 1, 2] = 3.0, 1.0  # 2 is a stranger to 0, and 1's neighbour
    assert club.weight_on_strangers(Says(weights=table), tiny()) == 0.75


def test_the_club_at_the_start_gives_most_weight_to_strangers():
    """34 · 34 pairs, 156 edges, 34 nodes: spread evenly, 966 of 1,156 are strangers'."""
    task = graphs.karate()
    model = club.start("scores set to 0", task)
    nn.init.zeros_(model.first.w_query.weight)
    assert club.weight_on_strangers(model, task) == pytest.approx(966 / 1156)
    for kind in (*GRAPH_KINDS, "MLP"):
        assert club.weight_on_strangers(club.start(kind, task), task) == 0


def test_evenness_is_entropy_over_its_highest():
    """Nodes 0 and 2 see two, node 1 sees three, node 3 has no choice."""
    table = torch.zeros(1, 4, 4)
    table[0, 0, :2], table[0, 1, :3], table[0, 2, 2], table[0, 3, 3] = 1 / 2, 1 / 3, 1.0, 1.0
    assert club.evenness(Says(weights=table), tiny()) == pytest.approx(2 / 3)
    table[0, 1, :3] = torch.tensor([1 / 2, 1 / 2, 0])
    assert club.evenness(Says(weights=table), tiny()) == pytest.approx(
        (1 + math.log(2) / math.log(3) + 0) / 3
    )
    assert club.evenness(Says(weights=torch.full((2, 4, 4), 1 / 4)), tiny()) == pytest.approx(1)


def test_own_class_of_what_goes_to_others():
    table = torch.zeros(1, 4, 4)
    table[0, 0, 0], table[0, 0, 1], table[0, 1, 2], table[0, 2, 3] = 9.0, 1.0, 2.0, 5.0
    assert club.weight_on_own_class(Says(weights=table), tiny()) == pytest.approx(6 / 8)


def test_a_network_that_does_not_choose_gets_a_sentence():
    task = graphs.karate()
    with pytest.raises(ValueError, match="no node has a choice"):
        club.evenness(club.start("MLP", task), task)
    with pytest.raises(ValueError, match="no node looks at another"):
        club.weight_on_own_class(club.start("MLP", task), task)


def test_others_known_are_one_of_each_side_and_no_leaders():
    drawn = [club.others_known(seed).known.tolist() for seed in range(200)]
    y = graphs.karate().y
    assert all(y[known].tolist() == [0, 1] and not set(known) & {0, 33} for known in drawn)
    assert {member for known in drawn for member in known} == set(range(1, 33))
    assert drawn == [club.others_known(seed).known.tolist() for seed in range(200)]


def test_a_stand_in_is_like_the_club():
    tasks, real = [club.stand_in(seed) for seed in range(20)], graphs.karate()
    edges = sum(task.edge_index.shape[1] for task in tasks) / 20
    assert abs(edges - real.edge_index.shape[1]) < 10
    for task in tasks:
        assert len(task.y) == 34 and task.y.bincount().tolist() == [17, 17] and task.name == "club"
        degree = torch.bincount(task.edge_index[0], minlength=34)
        for side, node in enumerate(task.known.tolist()):
            assert task.y[node] == side and degree[node] == degree[task.y == side].max()


def test_no_validation_graph_is_tested_on():
    for name in club.RECIPE["pilot"]:
        known = [tuple(task.edge_index.flatten().tolist()) for task in club.validation(name)]
        assert len(set(known)) == club.RECIPE["pilot"][name]
        for seed in club.RECIPE["seeds"]:
            assert tuple(club.TASKS[name](seed).edge_index.flatten().tolist()) not in known


def alike(one, other, task):
    """The same answers: where a gradient is nothing but rounding, Adam's first steps make another parameter
    of it."""
    task = to_device(task)
    with torch.no_grad():
        logits = [model(task.x, task.edge_index) for model in (one, other)]
    return torch.allclose(*logits, rtol=1e-4, atol=1e-4)


def test_training_never_reads_an_unknown_class(small):
    task = graphs.karate()
    lie = task._replace(y=torch.where(torch.arange(34, device="cpu") % 33 == 0, task.y, 1 - task.y))
    assert lie.y[lie.known].tolist() == task.y[task.known].tolist() and not torch.equal(lie.y, task.y)
    one, two = (club.train("GAT", t)[0] for t in (task, lie))
    assert alike(one, two, task)


def test_loss_is_the_mean_over_known_nodes():
    class Even(nn.Module):
        def forward(self, x, edge_index):
            return torch.zeros(len(x), 2)

    task = to_device(graphs.karate())
    assert_close(club.loss(Even(), task).item(), math.log(2))


def test_even_weights_stay_even(small):
    task = graphs.karate()
    model = club.train("GAT", task, even=True)[0]
    weights = model.look(*(t.to(device()) for t in (task.x, task.edge_index))).weights
    counts = torch.bincount(task.edge_index[1], minlength=34).to(device()) + 1
    assert_close(weights.amax(-1), (1 / counts).expand(2, -1))
    assert club.evenness(model, task) == pytest.approx(1)
    other = club.train("GAT", task)[0]
    assert club.evenness(other, task) < 0.9999


@pytest.mark.parametrize("kind", ["GATv2", "GCN"])
def test_only_a_gat_can_be_held_even(small, kind):
    with pytest.raises(ValueError, match=f"only the scores of a GAT can be held at 0, got kind '{kind}'"):
        club.train(kind, graphs.karate(), even=True)


def test_a_task_without_a_rate_gets_a_sentence(small):
    with pytest.raises(ValueError, match=r"not for .tiny.; give lr=..., say 1e-2"):
        club.train("GAT", tiny())
    assert club.train("GAT", tiny(), lr=1e-2)[1].rows
    with pytest.raises(ValueError, match="kind must be one of GAT, GATv2"):
        club.train("GIN", tiny())


def stored(name="accuracy", *, part="point", **wanted):
    """A column of the stored rows of that part, seed by seed."""
    wanted = {"part": part} | wanted
    rows = [row for row in results("club")["rows"] if all(row[key] == value for key, value in wanted.items())]
    assert rows
    return [row[name] for row in rows]


def test_the_rates_are_the_best_on_validation_and_of_equals_the_nearest_to_1e_2():
    rates = club.RECIPE["rates"]
    for name, kinds in club.RECIPE["lr"].items():
        piloted = "club" if name == "club, others known" else name
        for kind, lr in kinds.items():
            scores = [
                stored("accuracy_validation", part="rate", task=piloted, kind=kind, lr=rate)[0]
                for rate in rates
            ]
            best = [i for i, score in enumerate(scores) if score > max(scores) - 1e-9]
            assert lr == rates[min(best, key=lambda i: abs(i - rates.index(1e-2)))], (name, kind)
