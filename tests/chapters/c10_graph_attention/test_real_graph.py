"""Part 10b: layers, scores in which chapters count the same, small graphs, the text of "In real work"."""

import re
from statistics import median

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.chapters.c10_graph_attention import (
    library,
    molecules,
    real_graph,
)
from lesson_lib.chapters.c10_graph_attention.experiments import real_graph as trained
from lesson_lib.cli.sources import ROOT
from lesson_lib.device import to_device
from lesson_lib.experiments import results
from lesson_lib.graphs import self_loops
from lesson_lib.masks import from_edges
from tests import code_of

asked = code_of("c10_graph_attention")
N, D, CLASSES = 7, 5, 3


def loops():
    """0 - 1 - 2 and 3 - 4, two nodes alone; each hears itself."""
    return self_loops(torch.tensor([[0, 1, 2, 1, 3, 4], [1, 0, 1, 2, 4, 3]]), N)


@pytest.mark.parametrize("kind", real_graph.LAYERS)
def test_each_layer_gives_a_row_to_each_node_and_hears_only_along_edges(kind):
    torch.manual_seed(0)
    layer, x = real_graph.LAYERS[kind](D, 2, 3), torch.randn(N, D)
    edges = loops()
    output = layer(x, edges)
    assert output.shape == (N, 6)
    x[4] += 1e3
    moved = ((layer(x, edges) - output).abs() > 1e-3).any(-1).nonzero()[:, 0].tolist()
    assert moved == ([4] if kind == "words alone" else [3, 4])


def test_gcn_by_a_table_of_degrees():
    layer, x = real_graph.Fixed(D, 3, 2), torch.randn(N, D)
    edges = loops()
    table = from_edges(edges, N).float()
    degree = table.sum(-1)
    expected = table / (degree[:, None] * degree).sqrt() @ layer.project(x)
    assert_close(layer(x, edges), expected)  # a bias begins at 0


def test_words_alone_have_gcns_number_of_weights():
    counts = {
        kind: sum(p.numel() for p in real_graph.reader(kind, D, CLASSES).parameters())
        for kind in ("words alone", "GCN", "GAT")
    }
    assert counts["words alone"] == counts["GCN"] < counts["GAT"]
    with pytest.raises(ValueError, match="kind must be one of"):
        real_graph.reader("MLP", D, CLASSES)


def test_each_class_counts_the_same():
    y = torch.tensor([0, 0, 0, 0, 1, 2, 2])
    part = torch.tensor([1, 1, 1, 1, 1, 0, 0]).bool()
    logits = torch.nn.functional.one_hot(torch.tensor([0, 0, 0, 1, 1, 0, 0]), 3).float()
    assert real_graph.balanced_accuracy(logits, y, part) == (3 / 4 + 1) / 2
    constant = torch.zeros(7, 3)
    constant[:, 0] = 1
    assert real_graph.balanced_accuracy(constant, y, torch.ones(7).bool()) == pytest.approx(1 / 3)
    assert_close(real_graph.balanced_loss(0 * logits, y, part), torch.tensor(3.0).log())


def test_the_peer_begins_with_our_weights_and_gives_our_numbers():
    graph = library.load()
    x, edges = graph.x, self_loops(graph.edge_index, len(graph.y))
    ours, theirs = (trained.start(kind, 3).cpu().eval() for kind in ("GAT", trained.PEER))
    assert_close(theirs(x, edges), ours(x, edges), rtol=1e-4, atol=1e-5)


def scores(kind, part="point", share=0.0, column="score"):
    rows = [row for row in results("real_graph")["rows"] if row["part"] == part and row["kind"] == kind]
    return [row[column] for row in rows if row.get("share", share) == share]


def test_rates_are_the_best_on_validation():
    rows = [row for row in results("real_graph")["rows"] if row["part"] == "rate"]
    for kind, lr in trained.RECIPE["lr"].items():
        found = {row["lr"]: row["score_validation"] for row in rows if row["kind"] == kind}
        assert found[lr] == max(found.values())


def test_twins_have_the_same_atoms_and_bonds_and_differ_in_one_question():
    made = molecules.twins(50, seed=2)
    for first, second in zip(made[::2], made[1::2], strict=True):
        assert (first.joined, second.joined) == (True, False)
        assert_close(first.x.sum(0), second.x.sum(0))
        assert torch.equal(first.edge_index, second.edge_index)
        assert first.x.sum(0)[1:].tolist() == [1, 1] and 5 <= len(first.x) <= 9
    assert all(molecules.is_bound(m.x, m.edge_index).any() == m.joined for m in made)


def test_a_batch_gives_what_each_graph_gives_alone():
    made = [m._replace(x=to_device(m.x), edge_index=to_device(m.edge_index)) for m in molecules.twins(11, 4)]
    atoms = torch.tensor([len(m.x) for m in made])
    bonds = torch.tensor([m.edge_index.shape[1] for m in made])
    edges = torch.cat([m.edge_index for m in made], 1)
    batch = asked.batch_graphs(atoms, bonds, edges)
    layer = real_graph.Attentive(3, 2, 3)
    whole = layer(torch.cat([m.x for m in made]), batch)
    assert_close(whole, torch.cat([layer(m.x, m.edge_index) for m in made]))
    assert torch.equal(asked.batch_graphs_2(atoms, bonds, batch), edges)
    owner = torch.arange(len(made)).repeat_interleave(atoms)
    pooled = asked.pool_mean(whole, owner, len(made))
    assert_close(pooled, torch.stack([part.mean(0) for part in whole.split(atoms.tolist())]))
    even = asked.pool_mean_2(whole, torch.zeros(len(whole)), owner, len(made))
    assert_close(even, pooled)


def test_the_program_of_in_real_work_runs(monkeypatch):
    """The block that the part shows, with PyTorch Geometric; with fixed weights; and the trap it tells."""
    monkeypatch.syspath_prepend(str(ROOT / "notebooks"))
    source = (ROOT / "notebooks" / "source" / "10b_real_graph.py").read_text(encoding="utf-8")
    text = "\n".join(re.findall(r"^```\n(.*?)^```$", source, re.DOTALL | re.MULTILINE))
    told = [float(number) for number in re.findall("‹(0\\.[0-9]+)›", source.partition("It prints five")[2])]

    def results(*swaps):
        program = text
        for one, other in swaps:
            assert one in program
            program = program.replace(one, other)
        names = {"graph": library.load()}
        with torch.device("cpu"):
            exec(program, names)
        return names["results"]

    three = ("range(5)", "range(3)")  # of the five, whose medians are told
    rows = results(three)
    for edges, alone, wrong in zip(*rows.values(), strict=True):
        assert wrong + 0.05 < alone < edges - 0.02
    fixed = results(
        ("import GATConv", "import GCNConv"),
        ("GATConv(words, 8, heads=4)", "GCNConv(words, 32)"),
        ("GATConv(4 * 8, classes)", "GCNConv(32, classes)"),
        ("in controls.items()", "in [*controls.items()][:1]"),
        three,
    )
    medians = [median(row) for row in (*rows.values(), fixed["edges"])]
    assert max(abs(one - other) for one, other in zip(medians, told[:4], strict=True)) < 0.05
    trap = results(
        ("heads=4", "heads=4, add_self_loops=False"),
        ("8, classes", "8, classes, add_self_loops=False"),
        ("range(5)", "range(1)"),
    )
    assert abs(trap["edges"][0] - told[4]) < 0.08 and trap["no edges"][0] < 0.2 and told[5] < 0.2
