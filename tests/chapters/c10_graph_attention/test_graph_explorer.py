"""The graph explorer tells and draws what the model gives on the edges that are left."""

import html
import re

import pytest
import torch
from torch.nn import functional
from torch.testing import assert_close

from lesson_lib.chapters.c10_graph_attention.graph_explorer import MOST, NONE, GraphExplorer
from lesson_lib.chapters.c10_graph_attention.graphs import karate
from lesson_lib.chapters.c10_graph_attention.graphs_figures import STRANGER
from lesson_lib.chapters.c10_graph_attention.nodes import NodeClassifier
from lesson_lib.device import device
from tests.explorers import stands_alone

HEADS = 3


def make(kind="GAT", task=None, heads=HEADS):
    """A model with weights that differ from neighbour to neighbour."""
    task = task or karate()
    torch.manual_seed(5)
    model = NodeClassifier(kind, task.x.shape[1], len(task.classes), d_hidden=5, n_heads=heads).to(device())
    with torch.no_grad():
        for parameter in model.first.parameters():
            parameter.mul_(4)
    return model.eval()


def explorer(kind="GAT", node=8):
    return GraphExplorer(karate(), make(kind), node=node)


def without(task, *cuts):
    """The task's edges without some pairs, and the model's answer there."""
    gone = {frozenset(pair) for pair in cuts}
    kept = [k for k, pair in enumerate(task.edge_index.T.tolist()) if frozenset(pair) not in gone]
    assert len(kept) == task.edge_index.shape[1] - 2 * len(gone)
    return task.edge_index[:, kept].to(device())


def looked(w, *cuts):
    with torch.no_grad():
        return w.model.look(w.task.x.to(device()), without(w.task, *cuts))


def rows(w):
    """{first cell: (weight now, weight before)} of the table."""
    found = re.findall(
        r'<th scope="row"[^>]*>([^<]+)</th><td>.*?</svg>([\d.]+)</td><td>([\d.]+)</td>', w.drawing.value
    )
    return {html.unescape(name): (float(now), float(before)) for name, now, before in found}


def test_a_still_picture_stands_for_it_and_nothing_is_loaded():
    assert stands_alone(explorer)


@pytest.mark.parametrize("kind", ["GAT", "MLP", "full attention"])
def test_the_table_holds_the_weights_of_the_mean_and_of_each_head(kind):
    w = explorer(kind)
    weights = looked(w).weights.cpu()
    tables = [weights.mean(0), *weights]
    assert len(w.head.options) == len(tables)
    for w.head.index, table in enumerate(tables):
        assert_close(w.weights(w.now).float(), table)
        shown = rows(w)
        for name, (now, before) in shown.items():
            if not name.endswith(" more"):
                node = int(name.split()[0])
                assert now == before == pytest.approx(table[8, node].item(), abs=0.005)
        assert sum(now for now, _ in shown.values()) == pytest.approx(table[8].sum().item(), abs=0.06)
        best = table[8].argmax().item()
        assert w.words().startswith(
            f"Node 8 looks most at {'itself' if best == 8 else best} ({table[8, best]:.2f})"
        )


def test_the_table_begins_with_the_largest_and_sums_up_the_rest():
    w = explorer(node=33)  # with 17 neighbours
    shown = rows(w)
    assert len(shown) == MOST + 1 and list(shown)[-1] == "6 more"
    told = [before for _, before in list(shown.values())[:-1]]
    assert told == sorted(told, reverse=True)


def test_strangers_are_told_and_drawn_as_such():
    for kind, few in (("scores set to 0", False), ("full attention", False), ("GAT", True), ("MLP", True)):
        w = explorer(kind, node=11)
        assert ("no edge" in "".join(rows(w))) != few
        lines = w.drawing.value.count(f'stroke="{STRANGER}"') - 1  # without the ring
        assert lines == (0 if few else 32)
        assert all(name in ("0 Mr. Hi", "11 itself") for name in rows(w)) == few


@pytest.mark.parametrize("node", [0, 8, 9, 33])
def test_the_class_and_its_probability_are_the_models(node):
    w = explorer(node=node)
    shares = functional.log_softmax(looked(w).logits, -1).exp()[node]
    label, truth = shares.argmax().item(), w.task.y[node].item()
    verdict = "right" if label == truth else f"wrong, it is {w.task.classes[truth]}"
    assert f"It is taken for {w.task.classes[label]}, probability {shares[label]:.2f}: {verdict}" in w.words()
    assert ("this class was given for training" in w.words()) == (node in (0, 33))


def test_a_cut_edge_is_gone_both_ways_and_can_be_put_back():
    w = explorer()
    assert w.edge.options == tuple((f"8 – {k}", k) for k in (0, 2, 30, 32, 33))
    before, drawn = w.words(), w.drawing.value
    assert w.back.disabled and not w.cut.disabled
    w.edge.value = 32
    w.cut.click()
    after = looked(w, (8, 32))
    assert_close(w.weights(w.now).float(), after.weights.mean(0).cpu())
    assert_close(w.now.probabilities.float(), functional.log_softmax(after.logits, -1).exp().cpu())
    assert w.weights(w.now)[8, 32] == w.weights(w.now)[32, 8] == 0
    now, was = rows(w)["32 Officer"]
    assert now == 0 < was and 'class="ll-cut"' in w.drawing.value
    assert 32 not in [k for _, k in w.edge.options] and not w.back.disabled
    label = w.before.probabilities[8].argmax().item()
    told = f"Before the cuts: {w.task.classes[label]}, {w.before.probabilities[8, label]:.2f}."
    assert told in w.words()
    w.back.click()
    assert w.words() == before and w.back.disabled
    assert w.edge.value == 0 and w.drawing.value == drawn


def test_all_edges_of_a_node_can_be_cut_and_it_is_left_to_itself():
    w = explorer(node=11)  # a member with one edge
    w.cut.click()
    assert w.cut.disabled and w.edge.value == NONE and w.edge.options == (("none is left", NONE),)
    assert rows(w)["11 itself"][0] == 1.0 and "Node 11 looks most at itself (1.00). " in w.words()
    w.cut.click()  # does nothing more
    assert w.cuts == {(0, 11)}
    w.node.value = 0
    assert 11 not in [k for _, k in w.edge.options] and not w.cut.disabled
    assert_close(
        w.now.probabilities.float(), functional.log_softmax(looked(w, (0, 11)).logits, -1).exp().cpu()
    )


def test_others_whose_class_changes_are_named():
    w = explorer(node=33)
    for _ in range(17):
        w.cut.click()
    partners = [j for j, i in w.task.edge_index.T.tolist() if i == 33]
    after = looked(w, *((33, k) for k in partners)).logits.argmax(-1).cpu()
    changed = [
        k for k in (after != looked(w).logits.argmax(-1).cpu()).nonzero().flatten().tolist() if k != 33
    ]
    if changed:
        listed = ", ".join(map(str, changed[:8]))
        assert f"Other nodes whose class changes: {listed}" in w.words()
    else:
        assert w.words().endswith("No other node changes its class.")
    w.before = w.before._replace(probabilities=w.now.probabilities)
    assert w.words().endswith("No other node changes its class.")
    w.before = w.before._replace(probabilities=1 - w.now.probabilities)  # of two classes: all change
    assert w.words().endswith("Other nodes whose class changes: 0, 1, 2, 3, 4, 5, 6, 7 and 25 more.")


def test_names_of_classes_are_escaped():
    task = karate()._replace(classes=("<i>&", "Officer"))
    w = GraphExplorer(task, make(), node=8)
    assert "<i>" not in w.drawing.value and "&lt;i&gt;&amp;" in w.drawing.value
