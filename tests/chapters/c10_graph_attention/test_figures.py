"""A graph is drawn as it is; and what the figures of lesson 10 compute."""

import math

import pytest
import torch

from lesson_lib.chapters.c10_graph_attention import figures
from lesson_lib.chapters.c10_graph_attention import graphs_figures as shown
from lesson_lib.chapters.c10_graph_attention.graphs import NodeTask

N = 5


def task(edges=((0, 1), (1, 2), (2, 3)), y=(0, 0, 1, 1, 2), known=(0, 4), both=True):
    """Five nodes on a bent line, the last without edges."""
    pairs = torch.tensor(edges, device="cpu").T
    places = torch.tensor([[0.0, 0.0], [1.0, 2.0], [2.0, 0.5], [3.0, 2.0], [4.0, 0.0]], device="cpu")
    edge_index = torch.cat([pairs, pairs.flip(0)], 1) if both else pairs
    y, known = torch.tensor(y, device="cpu"), torch.tensor(known, device="cpu")
    return NodeTask("small", edge_index, torch.eye(N, device="cpu"), y, known, places, ("A", "B", "C"))


def table(**cells):
    """Weights, 0 but for those that are named: w_10=0.5 is what node 1 gives to node 0."""
    weights = torch.zeros(N, N, device="cpu")
    for name, value in cells.items():
        weights[int(name[2]), int(name[3])] = value
    return weights


def weighted(drawing):
    """{(source, target): width} of the lines that stand for weights."""
    return {line.edge: line.width for line in drawing.lines if line.color in (shown.GIVEN, shown.STRANGER)}


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_every_edge_is_one_line_and_every_node_one_mark():
    drawing = shown.draw(task())
    assert [line.edge for line in sorted(drawing.lines)] == [(0, 1), (1, 2), (2, 3)]
    assert [mark.node for mark in drawing.marks] == list(range(N)) and drawing.largest is None
    assert not any(line.head for line in drawing.lines)
    for mark in drawing.marks:
        assert 0 <= mark.place[0] <= shown.WIDE and 0 <= mark.place[1] <= shown.HIGH
    for line in drawing.lines:
        assert {line.points[0], line.points[-1]} == {drawing.marks[k].place for k in line.edge}


def test_an_edge_that_leads_one_way_has_a_head_at_its_target():
    drawing = shown.draw(task(both=False))
    for line in drawing.lines:
        assert math.dist(line.head[0], drawing.marks[line.edge[1]].place) < 2 * drawing.marks[0].radius


def test_colour_and_shape_are_the_class_and_a_thick_frame_is_a_known_one():
    marks = shown.draw(task()).marks
    assert [mark.ground for mark in marks] == [shown.COLORS[k] for k in (0, 0, 1, 1, 2)]
    assert [len(mark.corners) for mark in marks] == [0, 0, 4, 4, 3]
    assert [mark.frame > marks[1].frame for mark in marks] == [True, False, False, False, True]
    assert [mark.text for mark in marks] == ["0", "1", "2", "3", "4"]


def test_guesses_colour_the_nodes_and_a_wrong_one_has_a_dashed_frame():
    marks = shown.draw(task(), guesses=torch.tensor([0, 1, 1, -1, 2], device="cpu")).marks
    a, b, c, *_ = shown.COLORS
    assert [mark.ground for mark in marks] == [a, b, b, "white", c]
    assert [mark.dashed for mark in marks] == [False, True, False, False, False]
    # the shape stays the truth's; a circle tells nothing
    assert [len(mark.corners) for mark in marks] == [0, 0, 4, 0, 3]


def test_the_half_at_a_node_is_as_thick_as_the_weight_that_it_gives():
    drawing = shown.draw(task(), weights=table(w_10=0.8, w_01=0.2, w_12=0.4, w_11=1.0, w_40=0.9))
    # neither the weight on itself nor one without an edge has a half
    assert drawing.largest == pytest.approx(0.8)
    widths = weighted(drawing)
    assert widths == pytest.approx({(0, 1): shown.THICK, (1, 0): shown.THICK / 4, (2, 1): shown.THICK / 2})
    places = [mark.place for mark in drawing.marks]
    half = next(line for line in drawing.lines if line.edge == (0, 1) and line.color == shown.GIVEN)
    assert half.points[1] == places[1]  # node 1 gives it
    assert half.points[0] == pytest.approx([(a + b) / 2 for a, b in zip(places[0], places[1], strict=True)])


def test_small_weights_are_not_blown_up():
    drawing = shown.draw(task(), weights=table(w_10=0.05, w_01=0.01))
    assert weighted(drawing) == pytest.approx({(0, 1): 0.05 * shown.SCALE, (1, 0): 0.01 * shown.SCALE})


def test_a_chosen_node_is_ringed_and_shows_its_own_weights_alone_as_arrows_to_it():
    weights = table(w_11=0.2, w_10=0.4, w_12=0.3, w_14=0.1, w_23=1.0)
    drawing = shown.draw(task(), weights=weights, node=1)
    assert [mark.ring for mark in drawing.marks] == [False, True, False, False, False]
    assert weighted(drawing) == pytest.approx({(1, 1): 0.1, (0, 1): 0.2, (2, 1): 0.15, (4, 1): 0.05})
    lines = {line.edge: line for line in drawing.lines if line.color in (shown.GIVEN, shown.STRANGER)}
    assert [edge for edge, line in lines.items() if line.color == shown.STRANGER] == [(4, 1)]
    assert lines[4, 1].dashed and not lines[0, 1].dashed
    center, radius = drawing.marks[1].place, drawing.marks[1].radius
    for source in (0, 2, 4):
        tip = lines[source, 1].head[0]
        assert lines[source, 1].points[0] == drawing.marks[source].place
        assert math.dist(tip, center) == pytest.approx(1.6 * radius)
    loop = lines[1, 1].points
    assert loop[1] == pytest.approx(loop[-1]) and not lines[1, 1].head
    assert all(radius < math.dist(point, center) < 4 * radius for point in loop)


def test_a_cut_edge_is_dashed_and_a_pointed_one_is_marked():
    drawing = shown.draw(task(), weights=table(w_10=0.5, w_12=0.5), cut=[(2, 1)], pointed=(1, 0))
    bare = {line.edge: line for line in drawing.lines if line.color != shown.GIVEN}
    assert bare[1, 2].dashed and not bare[0, 1].dashed and bare[0, 1].width > bare[2, 3].width
    assert (2, 1) not in weighted(drawing) and (0, 1) in weighted(drawing)


def test_an_arrow_from_a_near_node_stays_between_the_two():
    near = task()._replace(
        places=torch.tensor([[0.0, 0.0], [0.02, 0.0], [9.0, 9.0], [9.0, 0.0], [0.0, 9.0]], device="cpu")
    )
    drawing = shown.draw(near, weights=table(w_10=1.0), node=1)
    line = next(line for line in drawing.lines if line.edge == (0, 1) and line.head)
    start, end = drawing.marks[0].place, drawing.marks[1].place
    for x, _ in line.head + line.points:
        assert min(start[0], end[0]) - 1e-9 <= x <= max(start[0], end[0]) + 1e-9


# --- lesson 10 ---

SCORES, WEIGHTS, VALUES = [0.0, 1.0, -math.inf], [0.25, 0.75, 0.0], [2.0, -4.0, 7.0]


def test_shares_are_those_of_the_mask_nodes_with_few_edges_first():
    mask = torch.tensor([[1, 1, 1], [1, 1, 0], [0, 0, 1]]).bool()
    weights = torch.tensor([[0.2, 0.3, 0.5], [0.5, 0.1, 0.4], [0.7, 0.2, 0.1]])
    picture = figures.shares({"score 0": weights, "other": torch.eye(3)}, mask)
    left, right = picture.figure.axes
    near, far = left.containers
    assert [bar.get_height() for bar in near] == pytest.approx([0.1, 0.6, 1.0])
    assert [bar.get_height() for bar in far] == pytest.approx([0.9, 0.4, 0.0], abs=1e-7)
    assert left.get_title("left") == "score 0\nstrangers get 0.43 of the weight"
    assert right.get_title("left") == "other\nstrangers get 0.00 of the weight"


def test_evenness_is_the_number_of_nodes_that_equal_weights_would_be_spread_over():
    mask = torch.tensor([[1, 1, 1], [1, 1, 0], [0, 0, 1]]).bool()
    weights = torch.tensor(
        [[[1 / 3] * 3, [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]]
    )
    (axes,) = figures.evenness({"GAT": weights}, mask).figure.axes
    first, second = (line for line in axes.lines if line.get_linestyle() == "None")
    assert list(first.get_xdata()) == [3, 2, 1]
    assert list(first.get_ydata()) == pytest.approx([3, 1, 1])
    assert list(second.get_ydata()) == pytest.approx([2, 2, 1])


@pytest.mark.parametrize("given, words", [
    ({}, ""), ({"weights": table(w_10=1.0)}, "The half of a line next to a node"),
    ({"weights": table(w_10=1.0), "node": 1}, "Arrows are as thick"),
    ({"weights": table(w_14=1.0), "node": 1}, "Dashed: weight on a node to which no edge leads."),
    ({"guesses": torch.tensor([0, 0, 1, 1, 1], device="cpu")}, "Dashed frame: the two differ."),
    ({"guesses": torch.tensor([0, -1, -1, -1, -1], device="cpu")}, "White: no class is given."),
])  # fmt: skip
def test_the_caption_tells_what_is_there(given, words):
    assert words in shown.network(task(), **given).caption
