"""Graphs as pictures: what is where, lit and computed when; no line passes through another's box."""

import io
from itertools import pairwise

import networkx
import pytest
from PIL import Image

from lesson_lib.chapters.c08_attention_vs_rnn import paths_figures
from lesson_lib.chapters.c08_attention_vs_rnn.experiments.paths import NETWORKS
from lesson_lib.chapters.c08_attention_vs_rnn.experiments.paths import network as graph_of
from lesson_lib.chapters.c08_attention_vs_rnn.paths_figures import DONE, GIVEN, NOW, PALE, RISE, SIDE

N = 5


def chain(n=3):
    """An RNN by hand: an input and a state for each token, and the states in a row."""
    graph = networkx.DiGraph()
    graph.add_nodes_from([("input", i) for i in range(n)])
    graph.add_edges_from((("input", i), ("state", i)) for i in range(n))
    graph.add_edges_from((("state", i - 1), ("state", i)) for i in range(1, n))
    return graph


def boxes(drawing):
    return {box.node: box for box in drawing.boxes}


def lines(drawing):
    return {line.edge: line for line in drawing.lines}


def test_rows_steps_and_places_by_hand():
    graph = chain()
    assert paths_figures.rows(graph) == ["input", "state"]
    due = paths_figures.steps(graph)
    assert [due["input", i] for i in range(3)] == [0] * 3
    assert [due["state", i] for i in range(3)] == [1, 2, 3]
    drawing = paths_figures.draw(graph)
    assert drawing.rows == ["input", "state"]
    assert boxes(drawing)["input", 2].place == (2, 0) and boxes(drawing)["state", 1].place == (1, RISE)
    assert all(box.round == (box.node[0] == "input") for box in drawing.boxes)
    assert {box.text for box in drawing.boxes} == {""} and {line.color for line in drawing.lines} == {PALE}
    assert lines(drawing).keys() == set(graph.edges)


@pytest.mark.parametrize("name", NETWORKS)
def test_steps_are_longest_paths_from_the_inputs(name):
    graph, due = graph_of(name, N), paths_figures.steps(graph_of(name, N))
    for node in graph:
        before = list(graph.predecessors(node))
        assert due[node] == (1 + max(due[a] for a in before) if before else 0)
        assert (not before) == (node[0] == "input")
    assert max(due.values()) == networkx.dag_longest_path_length(graph)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_shortest_path_is_as_long_as_networkx_says_or_there_is_none(name):
    graph = graph_of(name, N)
    last = paths_figures.rows(graph)[-1]
    for i in range(N):
        for o in range(N):
            path = paths_figures.shortest(graph, i, o)
            if not path:
                assert not networkx.has_path(graph, ("input", i), (last, o))
                continue
            assert (path[0], path[-1]) == (("input", i), (last, o)) and networkx.is_path(graph, path)
            assert len(path) - 1 == networkx.shortest_path_length(graph, ("input", i), (last, o))


def test_of_paths_as_short_the_one_that_turns_least_is_taken():
    assert paths_figures.shortest(graph_of("convolutions", N), 2, 2) == [("input", 2)] + [
        (f"layer {k}", 2) for k in range(1, N)
    ]
    path = paths_figures.shortest(graph_of("window attention", 7), 0, 4)
    moved = [b[1] - a[1] for a, b in pairwise(path)]
    assert max(moved) - min(moved) <= 1 and sum(moved) == 4


def test_a_path_is_lit_and_numbered_from_its_start():
    graph = chain()
    drawing = paths_figures.draw(graph, path=paths_figures.shortest(graph, 0, 2))
    lit = {node: box.text for node, box in boxes(drawing).items() if box.ground == NOW}
    assert lit == {("input", 0): "0", ("state", 0): "1", ("state", 1): "2", ("state", 2): "3"}
    bright = {edge for edge, line in lines(drawing).items() if line.color == NOW}
    states = [("state", i) for i in range(3)]
    assert bright == {(("input", 0), states[0]), *pairwise(states)}
    assert all(line.head for line in drawing.lines if line.color == NOW)
    assert [line.color for line in drawing.lines][-3:] == [NOW] * 3  # they lie above the others
    assert {box.text for box in drawing.boxes if box.ground != NOW} == {""}


@pytest.mark.parametrize("wave", range(5))
def test_a_wave_colours_what_is_computed_now_before_and_later(wave):
    drawing = paths_figures.draw(chain(), wave=wave)
    for i in range(3):
        box, due = boxes(drawing)["state", i], i + 1
        assert box.text == str(due)  # not by colour alone
        assert box.ground == (NOW if due == wave else DONE if due < wave else "white")
        assert (box.frame > 0.05) == (due == wave)
        assert boxes(drawing)["input", i].ground == GIVEN and boxes(drawing)["input", i].text == ""
    bright = {edge for edge, line in lines(drawing).items() if line.color == NOW}
    waited = {(("input", wave - 1), ("state", wave - 1)), (("state", wave - 2), ("state", wave - 1))}
    assert bright == waited & set(chain().edges)


def inside(point, center, margin):
    return max(abs(p - q) for p, q in zip(point, center, strict=True)) < margin


def through(drawing):
    """Edges whose line passes through a box that is neither of its ends."""
    crossed = []
    for line in drawing.lines:
        for (x, y), (u, v) in pairwise(line.points):
            places = [(x + (u - x) * t / 50, y + (v - y) * t / 50) for t in range(51)]
            others = [box.place for box in drawing.boxes if box.node not in line.edge]
            if any(inside(spot, other, SIDE / 2 - 1e-9) for spot in places for other in others):
                crossed.append(line.edge)
    return crossed


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("n", [2, 8])
def test_no_line_passes_through_a_box_that_it_does_not_belong_to(name, n):
    drawing = paths_figures.draw(graph_of(name, n))
    assert through(drawing) == []
    for line in drawing.lines:
        for point, node in ((line.points[0], line.edge[0]), (line.points[-1], line.edge[1])):
            center = boxes(drawing)[node].place
            reach = max(abs(p - q) for p, q in zip(point, center, strict=True))
            assert reach == pytest.approx(SIDE / 2)  # it starts and ends at the box's border


def test_a_line_through_a_box_would_be_seen():
    graph = networkx.DiGraph([(("a", 0), ("b", 0)), (("b", 0), ("c", 0)), (("a", 0), ("c", 0))])
    drawing = paths_figures.draw(graph)
    assert through(drawing) == [] and len(lines(drawing)[("a", 0), ("c", 0)].points) == 4
    straight = [line._replace(points=[line.points[0], line.points[-1]]) for line in drawing.lines]
    assert through(drawing._replace(lines=straight)) == [(("a", 0), ("c", 0))]


def test_a_leap_along_a_row_goes_over_the_boxes_and_a_line_may_lead_down():
    graph = networkx.DiGraph(
        [(("x", 0), ("a", 0)), (("a", 0), ("a", 1)), (("a", 1), ("a", 2)), (("a", 0), ("a", 2))]
    )
    assert through(paths_figures.draw(graph)) == []
    down = networkx.DiGraph([(("x", 0), ("b", 0)), (("b", 0), ("a", 1))])
    down.add_node(("a", 0))
    graph = networkx.DiGraph()
    graph.add_nodes_from([("a", 1), ("b", 0), ("x", 0)])  # rows from the bottom: a, b, x
    graph.add_edges_from(down.edges)
    drawing = paths_figures.draw(graph)
    assert through(drawing) == []
    (x, y), (u, v) = lines(drawing)[("b", 0), ("a", 1)].points
    assert (x, u) == (0, 1) and y == pytest.approx(RISE - SIDE / 2) and v == pytest.approx(SIDE / 2)


@pytest.mark.parametrize("graph, error, words", [
    (None, TypeError, "must be a networkx.DiGraph, got NoneType"),
    ("RNN", TypeError, "got str; make one with experiments.paths.network"),
    (networkx.Graph(), TypeError, "got Graph"), (networkx.DiGraph(), ValueError, r"nodes \(row, position\)"),
    (networkx.DiGraph([(1, 2)]), ValueError, r"such as \('state', 3\), positions from 0, got \[1, 2\]"),
    (networkx.DiGraph([(("a", -1), ("b", 0))]), ValueError, "positions from 0"),
    (networkx.DiGraph([(("a", 0), ("b", "0"))]), ValueError, "positions from 0"),
    (networkx.DiGraph([(("a", 0), ("b", 0)), (("b", 0), ("a", 0))]), ValueError, "no circle"),
    (chain(13), ValueError, "at most 12 positions and 2 to 12 rows to be drawn, got 13 and 2; take n = 8"),
    (networkx.path_graph([(f"row {k}", 0) for k in range(13)], networkx.DiGraph), ValueError, "got 1 and 13"),
    (networkx.path_graph([("row", 0), ("row", 1)], networkx.DiGraph), ValueError, "got 2 and 1"),
])  # fmt: skip
def test_what_cannot_be_drawn_gets_a_sentence(no_shape_hook, graph, error, words):
    with pytest.raises(error, match=words):
        paths_figures.check(graph)


def test_the_film_has_a_frame_for_each_step_pauses_at_the_end_and_is_the_same_every_time():
    graphs = {"an RNN": chain(), "self-attention": graph_of("self-attention", 3)}
    film = paths_figures.film(graphs)
    assert film == paths_figures.film(graphs)
    gif = Image.open(io.BytesIO(film))
    assert gif.is_animated and gif.n_frames == 4 and gif.width <= 800
    times = []
    for frame in range(gif.n_frames):
        gif.seek(frame)
        times.append(gif.info["duration"])
    assert times == [paths_figures.FRAME_MS] * 3 + [paths_figures.LAST_MS]


def test_the_ends_of_no_path_are_dashed():
    graph = chain()
    drawing = paths_figures.draw(graph, path=[], ends=(("input", 2), ("state", 0)))
    assert {node for node, box in boxes(drawing).items() if box.dashed} == {("input", 2), ("state", 0)}
    assert NOW not in {box.ground for box in drawing.boxes}
