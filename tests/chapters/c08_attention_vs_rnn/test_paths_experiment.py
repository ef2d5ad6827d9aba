"""Steps and paths: every network's counts by hand, and its reach."""

import math

import networkx
import pytest

from lesson_lib.chapters.c08_attention_vs_rnn.experiments import paths
from lesson_lib.chapters.c08_attention_vs_rnn.experiments.paths import Counted, counted, ends, network

LENGTHS = [1, 2, 5, 8, 13]


def by_hand(name, n):
    """Steps, longest of the shortest paths, pairs without one."""
    later = n * (n - 1) // 2  # pairs whose input stands behind the output
    stack = max(1, n - 1)  # a kernel of 3 reaches one place further with each layer
    window = max(1, math.ceil((n - 1) / 2))  # two places
    # 1, 1 + 2, 1 + 2 + 4 ... places
    dilated = max(1, math.ceil(math.log2(n)))
    doubling = math.ceil(math.log2(n)) + 2  # a token's own sum, twice as many in each step, the output
    nearer = n + 1 if n > 1 else 1  # a token's own query is nearer
    return {
        "RNN": Counted(n, n, later), "BiRNN": Counted(n + 1, n + 1, 0), "self-attention": Counted(1, 1, 0),
        "convolutions": Counted(stack, stack, 0), "dilated convolutions": Counted(dilated, dilated, 0),
        "causal self-attention": Counted(1, 1, later), "window attention": Counted(window, window, 0),
        "linear attention, as an RNN": Counted(n + 1, nearer, later),
        "linear attention, by doubling": Counted(doubling, doubling if n > 1 else 1, later),
    }[name]  # fmt: skip


@pytest.mark.parametrize("name", paths.NETWORKS)
@pytest.mark.parametrize("n", LENGTHS)
def test_counts_and_reach_by_hand(name, n):
    assert counted(network(name, n)) == by_hand(name, n)
    # Causal networks see the left and themselves; the others see everything.
    graph = network(name, n)
    inputs, outputs = ends(graph)
    assert [i for _, i in inputs] == [i for _, i in outputs] == [*range(n)]
    causal = {"RNN", "causal self-attention", "linear attention, as an RNN", "linear attention, by doubling"}
    for output in outputs:
        seen = {i for row, i in networkx.ancestors(graph, output) if row == "input"}
        assert seen == {*range(output[1] + 1 if name in causal else n)}


def test_rows_come_in_the_order_of_computing():
    for name in paths.NETWORKS:
        graph = network(name, 5)
        rows = list(dict.fromkeys(row for row, _ in graph))
        assert rows[0] == "input"
        for (source, _), (target, _) in graph.edges:
            assert rows.index(source) <= rows.index(target)
        assert networkx.is_directed_acyclic_graph(graph)


def test_edges_by_hand():
    assert {*network("RNN", 3).edges} == {
        (("input", 0), ("state", 0)), (("input", 1), ("state", 1)), (("input", 2), ("state", 2)),
        (("state", 0), ("state", 1)), (("state", 1), ("state", 2)),
    }  # fmt: skip
    one = network("convolutions", 2)
    assert {*one.edges} == {(("input", i), ("layer 1", o)) for i in range(2) for o in range(2)}
    both = network("BiRNN", 2)
    assert both.has_edge(("from the right", 1), ("from the right", 0))
    assert not both.has_edge(("from the right", 0), ("from the right", 1))
    assert {*both.predecessors(("output", 0))} == {("from the left", 0), ("from the right", 0)}
    twice = network("linear attention, by doubling", 4)
    assert {*twice.predecessors(("sum of 4", 3))} == {("sum of 2", 3), ("sum of 2", 1)}
    assert {*twice.predecessors(("sum of 4", 2))} == {("sum of 2", 2), ("sum of 1", 0)}
    assert ("sum of 4", 1) not in twice  # its sum was whole before


def test_what_is_no_network_gets_a_sentence(no_shape_hook):
    with pytest.raises(ValueError, match="network must be one of RNN, BiRNN"):
        network("rnn")
    with pytest.raises(ValueError, match="n must be a whole number from 1 to 256"):
        network("RNN", 257)
