"""Graphs: the club is Zachary's, generated graphs have the edges that they were told to have."""

import networkx
import pytest
import torch
from torch.testing import assert_close

from lesson_lib.chapters.c10_graph_attention.graphs import blocks, karate, opposites

N, CLASSES = 105, 7


def pairs(task):
    return set(map(tuple, task.edge_index.T.tolist()))


def within(task):
    """The share of edges inside a class."""
    source, target = task.edge_index
    return (task.y[source] == task.y[target]).double().mean().item()


@pytest.mark.parametrize(
    "make", [karate, blocks, opposites, lambda: blocks(3, N, n_classes=CLASSES, degree=5)]
)
def test_a_task_is_well_formed(make):
    task = make()
    n = len(task.y)
    assert len(task.x) == len(task.places) == n and task.places.shape == (n, 2)
    assert len(pairs(task)) == task.edge_index.shape[1]  # no edge twice
    assert {(b, a) for a, b in pairs(task)} == pairs(task) and all(a != b for a, b in pairs(task))
    assert int(task.y.min()) == 0 and int(task.y.max()) == len(task.classes) - 1
    assert sorted(set(task.y[task.known].tolist())) == list(range(len(task.classes)))  # one of each at least
    assert len(set(task.known.tolist())) == len(task.known)
    assert all(t.device.type == "cpu" for t in task if isinstance(t, torch.Tensor))
    assert len(set(map(tuple, task.places.tolist()))) == n


def test_the_club_is_zacharys():
    task = karate()
    club = networkx.karate_club_graph()
    assert {tuple(sorted(pair)) for pair in pairs(task)} == {tuple(sorted(edge)) for edge in club.edges}
    assert task.edge_index.shape == (2, 2 * 78) and task.x.shape == (34, 34)
    assert [task.classes[label] for label in task.y.tolist()] == [club.nodes[i]["club"] for i in range(34)]
    assert task.y.bincount().tolist() == [17, 17]
    source, target = task.edge_index
    assert int((task.y[source] != task.y[target]).sum()) == 2 * 11
    assert task.known.tolist() == [0, 33] and task.y[task.known].tolist() == [0, 1]
    degree = torch.bincount(source)
    assert degree[[0, 33]].tolist() == [16, 17] and degree.max() == 17
    assert torch.equal(task.x, torch.eye(34, device="cpu"))


def test_its_places_are_the_layout_that_they_are_called():
    networkx_places = networkx.kamada_kawai_layout(networkx.karate_club_graph(), weight=None)
    wanted = torch.tensor([networkx_places[i].tolist() for i in range(34)], device="cpu")
    off = torch.cdist(karate().places, karate().places) - torch.cdist(wanted.float(), wanted.float())
    assert off.abs().max() < 0.05  # distances, since a layout may come out turned


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_edges_stay_within_a_class_as_often_as_asked(share, n_classes):
    tasks = [blocks(seed, 210, n_classes=n_classes, degree=7, within=share) for seed in range(5)]
    assert abs(sum(map(within, tasks)) / 5 - share) < 0.03
    assert abs(sum(task.edge_index.shape[1] / 210 for task in tasks) / 5 - 7) < 0.3


def test_blocks_are_equal_known_by_five_and_their_features_name_nodes():
    task = blocks()
    assert task.name == "blocks" and task.classes == ("A", "B", "C", "D")
    assert task.y.bincount().tolist() == [60] * 4
    assert task.y[task.known].bincount().tolist() == [5] * 4
    assert torch.equal(task.x, torch.eye(240, device="cpu"))


def test_extreme_shares_leave_no_other_edge():
    assert within(blocks(0, 60, within=1)) == 1 and within(blocks(0, 60, within=0)) == 0
    assert blocks(0, 60, degree=0).edge_index.shape == (2, 0)


def test_opposites_lead_elsewhere_and_carry_the_class():
    task = opposites(noise=0)
    assert task.name == "opposites" and within(task) < 0.2 and len(task.classes) == 2
    assert torch.equal(task.x, torch.eye(2, device="cpu")[task.y])
    noisy = opposites(noise=0.5, n=4000, degree=2)
    off = noisy.x - torch.eye(2, device="cpu")[noisy.y]
    assert_close(off.std(0), torch.full((2,), 0.5, device="cpu"), atol=0.02, rtol=0)
    assert off.mean(0).abs().max() < 0.03


def test_the_share_moves_edges_and_not_features():
    few, many = opposites(5, within=0.1), opposites(5, within=0.9)
    assert torch.equal(few.x, many.x) and torch.equal(few.known, many.known)
    assert pairs(few) != pairs(many)


@pytest.mark.parametrize("make", [blocks, opposites])
def test_a_seed_is_a_graph(make):
    one, same, other = make(1), make(1), make(2)
    assert all(torch.equal(a, b) for a, b in zip(one[1:-1], same[1:-1], strict=True))
    assert pairs(one) != pairs(other) and one.known.tolist() != other.known.tolist()


@pytest.mark.parametrize("options, words", [
    ({"n": 2}, "n must be a whole number >= 4, got 2"),
    ({"labelled": 61}, "labelled = 61 is more than a class has nodes \\(60\\)"),
    ({"degree": "many"}, "got 'many'"), ({"within": True}, "got True"),
])  # fmt: skip
def test_numbers_that_no_graph_has_get_a_sentence(no_shape_hook, options, words):
    for make in (blocks, lambda **options: opposites(**({"n_classes": 4} | options))):
        with pytest.raises(ValueError, match=words):
            make(**options)
