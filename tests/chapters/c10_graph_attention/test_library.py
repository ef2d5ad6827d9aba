"""The standard library as a graph: what is a node, an edge and a word, and that nothing leaks."""

from collections import defaultdict

import pytest
import torch

from lesson_lib.chapters.c10_graph_attention import library, library_maker

QUEUE = '''
"""Words of a module are not read."""
import glob as g
from http import read_line as line


class Queue:
    """Waiting words that everybody knows."""

    def put(self, item):
        """Put one word behind all others."""
        return self.get(), line(item)

    def get(self):
        """Get one word before all others."""
        return Missing


def empty():
    """No, no."""


def walk(path):
    """Walk over every word and glob once."""
    return g.find(path)
'''
SOURCES = {
    "queue.py": QUEUE,
    "glob.py": 'def find(path):\n    """Find one word and every other word."""\n',
    "ast.py": 'def dump(node):\n    """One word and every node, dumped."""\n    return glob.find(node)\n',
    "http/__init__.py": "from .client import read_line\n",
    "http/client.py": 'def read_line(text):\n    """Read one word and every client line."""\n    '
    '"""not a docstring"""\n\n\ndef again():\n    """Find one word and every other word."""\n',
    "elsewhere.py": 'def f():\n    """One word and every module that is not in the table."""\n',
    "http/test/test_client.py": 'def g():\n    """One word and every test."""\n',
}


@pytest.fixture
def folder(tmp_path):
    for name, text in SOURCES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_nodes_have_a_docstring_of_three_words_that_no_other_family_has(folder):
    nodes, _ = library_maker.graph(folder)
    assert {node.name for node in nodes} == {
        "queue.Queue", "queue.Queue.put", "queue.Queue.get", "queue.walk", "glob.find", "ast.dump",
        "http.client.read_line",
    }  # fmt: skip


def test_edges_join_who_uses_whom_through_imports_methods_and_packages(folder):
    nodes, pairs = library_maker.graph(folder)
    found = {frozenset((nodes[i].name, nodes[j].name)) for i, j in pairs}
    assert found == {*map(frozenset, (
        ("queue.Queue", "queue.Queue.put"), ("queue.Queue", "queue.Queue.get"), ("queue.walk", "glob.find"),
        ("queue.Queue.put", "queue.Queue.get"), ("queue.Queue.put", "http.client.read_line"),
    ))}  # fmt: skip


def test_words_occur_in_four_families_and_name_no_module(folder):
    words = library_maker.vocabulary(library_maker.graph(folder)[0])
    assert words == ["one", "word"] or words == ["and", "every", "one", "word"]
    assert "glob" not in words and "client" not in words


def test_the_file_holds_what_was_read(folder):
    made = library_maker.made(folder)
    graph = library.read(made)
    put = graph.number("queue.Queue.put")
    assert graph.chapters[graph.y[put]] == "concurrency" and graph.families[graph.family[put]] == "queue"
    assert graph.text("glob.find").split()[-1] == "word"
    assert graph.counts[graph.number("glob.find"), graph.words.index("word")] == 2
    assert graph.edge_index[:, : made["pairs"].shape[1]].tolist() == made["pairs"].tolist()


def in_form(graph):
    """What holds of the graph of any Python."""
    n = len(graph.y)
    assert 1500 < n and graph.chapters == tuple(library_maker.CHAPTERS)
    source, target = graph.edge_index
    assert graph.edge_index.max() < n and (source != target).all()
    assert graph.edge_index.unique(dim=1).shape == graph.edge_index.shape
    pairs = {*map(tuple, graph.edge_index.T.tolist())}
    assert all((j, i) in pairs for i, j in pairs)
    bags = defaultdict(set)
    for row, family in zip(graph.counts > 0, graph.family.tolist(), strict=True):
        bags[tuple(row.nonzero()[:, 0].tolist())].add(family)
    assert sum(len(families) > 1 for words, families in bags.items() if len(words) > 5) == 0
    hidden = {part for name in graph.families for part in name.replace("_", " ").split()}
    assert not hidden & {*graph.words}
    assert (graph.y[source] == graph.y[target]).double().mean() > 0.9


def test_the_shipped_graph_has_the_form_and_is_small():
    graph = library.load()
    in_form(graph)
    assert graph.x.shape == (2339, 1008) and graph.edge_index.shape == (2, 6828)
    assert library._HERE.joinpath("library.npz").stat().st_size < 400 * 1024
    lengths = graph.x.norm(dim=-1)
    assert (lengths[graph.counts.sum(-1) > 0] - 1).abs().max() < 1e-6 and not lengths.isnan().any()


@pytest.mark.slow
def test_the_maker_gives_the_same_form_on_this_python():
    graph = library.read(library_maker.made())
    in_form(graph)
    shared = {*graph.names} & {*library.load().names}
    assert len(shared) > 1000
    theirs = library.load()
    assert all(graph.y[graph.number(name)] == theirs.y[theirs.number(name)] for name in sorted(shared)[::50])


@pytest.mark.parametrize("seed", range(5))
def test_no_family_stands_on_two_sides(seed):
    graph = library.load()
    parts = library.split(graph, seed)
    assert torch.stack([*parts.values()]).sum(0).eq(1).all()
    families = [{*graph.family[part].tolist()} for part in parts.values()]
    assert sum(map(len, families)) == len(graph.families)
    for part in parts.values():
        assert {*graph.y[part].tolist()} == {*range(7)}


def test_by_lot_families_are_torn_and_sizes_stay():
    graph = library.load()
    parts, torn = library.split(graph, 3), library.split_by_lot(graph, 3)
    assert [part.sum() for part in parts.values()] == [part.sum() for part in torn.values()]
    assert {*graph.family[torn["training"]].tolist()} & {*graph.family[torn["test"]].tolist()}


def test_shuffled_edges_keep_degrees_nearly_and_lose_like_with_like():
    graph = library.load()
    edges = library.shuffled(graph.edge_index, seed=1)
    assert 0.97 < edges.shape[1] / graph.edge_index.shape[1] <= 1
    assert {*map(tuple, edges.T.tolist())} == {*map(tuple, edges.flip(0).T.tolist())}
    before, after = (torch.bincount(e[0], minlength=len(graph.y)) for e in (graph.edge_index, edges))
    assert (after <= before).all()
    source, target = edges
    assert (graph.y[source] == graph.y[target]).double().mean() < 0.3


def test_a_share_of_the_edges_stays():
    graph = library.load()
    kept = {*map(tuple, graph.edge_index.T.tolist())}
    for share in (0.0, 0.25, 0.5):
        edges = library.shuffled(graph.edge_index, share)
        stayed = sum(tuple(edge) in kept for edge in edges.T.tolist()) / len(kept)
        assert stayed == pytest.approx(1 - share, abs=0.01)
    with pytest.raises(ValueError, match="share"):
        library.shuffled(graph.edge_index, 1.5)
