"""The path explorer and the wave player light up and say what the graphs hold."""

import re

import networkx
import pytest

from lesson_lib.chapters.c08_attention_vs_rnn import paths_figures
from lesson_lib.chapters.c08_attention_vs_rnn.experiments.paths import NETWORKS, network
from lesson_lib.chapters.c08_attention_vs_rnn.paths_explorer import PathExplorer, WavePlayer
from lesson_lib.chapters.c08_attention_vs_rnn.paths_figures import DONE, NOW
from tests.explorers import stands_alone

N = 5
THREE = ("RNN", "BiRNN", "self-attention")


def explorer(*names, n=N):
    return PathExplorer({name: network(name, n) for name in names or NETWORKS})


def player(*names, n=N):
    return WavePlayer({name: network(name, n) for name in names or THREE})


def boxes(drawing):
    """{(row, position): (colour, text)} of every box of a drawing."""
    found = re.findall(
        r"<g><title>([^<]+) (\d+)</title><(?:rect|circle)[^>]*"
        r' fill="([^"]+)"[^>]*>(?:<text[^>]*>(\d+)</text>)?</g>',
        drawing,
    )
    return {(row, int(position)): (color, text) for row, position, color, text in found}


@pytest.mark.parametrize("make", [explorer, player])
def test_a_still_picture_stands_for_it_and_nothing_is_loaded(make):
    assert stands_alone(make)


@pytest.mark.parametrize("name", ["BiRNN", "causal self-attention", "window attention"])
def test_the_path_of_every_pair_is_lit_and_told(name):
    w = explorer()
    w.network.value = name
    graph = w.networks[name]
    last = paths_figures.rows(graph)[-1]
    for w.start.value in range(N):
        for w.end.value in range(N):
            lit = {node: text for node, (color, text) in boxes(w.drawing.value).items() if color == NOW}
            ends = ("input", w.start.value), (last, w.end.value)
            assert len(boxes(w.drawing.value)) == len(graph)
            dashes = w.drawing.value.count("stroke-dasharray")
            if not networkx.has_path(graph, *ends):
                assert lit == {} and dashes == 2 and "no path leads from input" in w.words()
                continue
            units = networkx.shortest_path_length(graph, *ends)
            along = sorted(lit, key=lambda node: int(lit[node]))
            assert networkx.is_path(graph, along) and (along[0], along[-1]) == ends and dashes == 0
            assert [lit[node] for node in along] == [str(k) for k in range(units + 1)]
            assert f"is {units} unit{'s' if units > 1 else ''} long: " in w.words()
            assert w.drawing.value.count('<polyline points="') == graph.number_of_edges()


def test_names_are_escaped():
    for w in (PathExplorer({"<i>&": network("RNN", 3)}), WavePlayer({"<i>&": network("RNN", 3)})):
        assert "<i>" not in w.drawing.value and "&lt;i&gt;&amp;" in w.drawing.value


def test_every_step_colours_what_is_computed_and_counts_it():
    w = player()
    assert (w.step.min, w.step.max, w.step.value) == (0, N + 1, 0)  # the BiRNN takes a step more than tokens
    for w.step.value in range(N + 2):
        step, found = w.step.value, w.drawing.value.split("<svg")[1:]
        assert len(found) == len(THREE)
        for name, part in zip(THREE, found, strict=True):
            due = {node: step for node, step in paths_figures.steps(w.networks[name]).items() if step}
            shown = {node: box for node, box in boxes(part).items() if node in due}
            assert shown.keys() == due.keys()
            for node, (color, text) in shown.items():
                assert text == str(due[node])
                assert color == (NOW if due[node] == step else DONE if due[node] < step else "white")
            done = sum(at <= step for at in due.values())
            assert f"{name}: {done} of {len(due)} units, " in w.words()
            last = max(due.values())
            assert f"{step} of {last} step" in part or (step >= last and f"done after {last} step" in part)


def test_playing_moves_the_slider_and_the_slider_the_player():
    w = player()
    before = w.drawing.value
    w.play.value = 3
    assert w.step.value == 3 and w.drawing.value != before and "<b>Step 3.</b>" in w.drawing.value
    w.step.value = 1
    assert w.play.value == 1 and (w.play.min, w.play.max) == (w.step.min, w.step.max)


def test_it_starts_with_the_longest_way_through_the_first_network():
    w = explorer()
    assert (w.network.value, w.start.value, w.end.value) == (
        "RNN",
        0,
        N - 1,
    ) and "role='status'" in w.drawing.value
    way = "state[0] → state[1] → state[2] → state[3] → state[4]"
    assert w.words() == f"RNN: the shortest path from input 0 to output 4 is 5 units long: {way}."
