"""One rule for the figures of all chapters: a page wide at most, words that can be read, and a sentence for
who does not see them. What they draw is held by the stored notebooks, which every build compares."""

import importlib
import inspect
import math
from pathlib import Path

import pytest
import torch
from matplotlib.text import Text

from lesson_lib.chapters.c01_history import figures as c01
from lesson_lib.chapters.c01_history import glimpses_figures as glimpses
from lesson_lib.chapters.c02_scoring import figures as c02
from lesson_lib.chapters.c03_matrix_form import figures as c03
from lesson_lib.chapters.c04_multi_head import figures as c04
from lesson_lib.chapters.c05_positional_encoding import figures as c05
from lesson_lib.chapters.c06_transformer import (
    bert_figures,
    gpt_figures,
    layer_figures,
    proof_figures,
    translator_figures,
    writing_figures,
)
from lesson_lib.chapters.c06_transformer import figures as c06
from lesson_lib.chapters.c06_transformer.experiments import norms, translation
from lesson_lib.chapters.c07_attention_vs_cnn import figures as c07
from lesson_lib.chapters.c07_attention_vs_cnn.experiments import detr
from lesson_lib.chapters.c08_attention_vs_rnn import (
    costs_figures,
    linear_figures,
    paths_figures,
    remembering_figures,
)
from lesson_lib.chapters.c08_attention_vs_rnn import figures as c08
from lesson_lib.chapters.c08_attention_vs_rnn.experiments import paths
from lesson_lib.chapters.c09_truncated_attention import figures as c09
from lesson_lib.chapters.c09_truncated_attention.experiments import phonemes
from lesson_lib.chapters.c10_graph_attention import camps_figures, graphs, graphs_figures
from lesson_lib.chapters.c10_graph_attention import figures as c10
from lesson_lib.chapters.c11_efficient_attention import figures as c11
from lesson_lib.chapters.c11_efficient_attention import machines_figures as machines
from lesson_lib.chapters.c11_efficient_attention import scale_figures
from lesson_lib.chapters.c11_efficient_attention.experiments import laws
from lesson_lib.chapters.c12_claims import ledger_figures
from lesson_lib.chapters.c13_todays_models import inside_figures
from lesson_lib.charts.picture import Picture
from lesson_lib.experiments import results
from lesson_lib.masks import window
from lesson_lib.models.translator import Translation

CHAPTERS = Path(__file__).parents[1] / "lesson_lib" / "chapters"
WORDS = ["the", "old", "[mask]"]
SHARES = {"one": 0.25, "two": 0.75}
CURVES = {"one": [0.25, 0.5], "two": [0.75, 1.0]}
OVER_LENGTHS = {name: ([64, 256], ys) for name, ys in CURVES.items()}
BANDS = {"one": ([16, 64], [0.1, 0.2], [0.3, 0.4], [0.5, 0.6])}
SMALL = {  # points: drawings in which a few words are smaller than others
    "glance": 6, "paths": 6, "routes": 7.5, "rows_exchanged": 8, "transformer_diagram": 8, "waves": 7.5,
    "picture_as_set": 8.5, "timeline": 8.5,
}  # fmt: skip


def given(*arguments, **options):
    return arguments, options


def rows(name, kind=None):
    return [row for row in results(name)["rows"] if kind is None or row["kind"] == kind]


def tables(*names, shape=(3, 3)):
    return {name: torch.rand(shape, device="cpu") for name in names}


def rand(*shape):
    return torch.rand(shape, device="cpu")


TAGGERS = [
    {"system": system, "right": {"saw": 0.5, "cut": 0.3}, "limit": {"saw": 0.9, "cut": 0.4}}
    for system in ("one word", "window 2")
]
GLIMPSES = [rand(2, 24, 24), torch.zeros(2, 3, 2, device="cpu"), rand(2, 3, 10), torch.tensor([3, 5])]
KINDS = ("full", "window", "linear", "low rank", "random features")
ACCURACIES = {kind: {"pairs": [0.2, 0.3], "digits": [0.4, 0.5]} for kind in KINDS}
SPEECH = [rand(29, 40), torch.zeros(29, dtype=torch.long, device="cpu"), ("_", "a")]
LENGTHS = [
    {"kind": kind, "speech_s": s, "cpu_s": 2.0 * s, "mib": 3.0 * s}
    for kind in ("table", "window")
    for s in (1, 10)
]
GRAPH = torch.tensor([[0, 1, 2], [1, 2, 2]])
MASK = window(5, 1)

# a function, and what it is given
GIVEN = {
    c01.taggers: lambda: given(TAGGERS, ("saw", "cut"), "Stored runs."),
    c01.sweep: lambda: given([0, 2], {"saw": [0.6, 1.0]}, TAGGERS),
    c01.masks: lambda: given({"near": MASK, "all": MASK}),
    c01.looked: lambda: given(Translation("2021", rand(4, 7)), "in 2021"),
    glimpses.glance: lambda: given(*(each[0] for each in GLIMPSES[:3]), 3, upto=2),
    glimpses.paths: lambda: given(*GLIMPSES),
    glimpses.policies: lambda: given({"a": [0.91, 0.12, 0.43]}),
    glimpses.one_look: lambda: given(rand(24, 24), rand(8, 8), rand(8, 8)),
    glimpses.departures: lambda: given({"a": [0.91, 0.12, 0.43]}, [0.5, 0.6, 0.7]),
    glimpses.gradient_noise: lambda: given(rows("glimpse", "noise"), paths=4),
    c02.regression: lambda: given(rand(7, 1), {0.4: rand(7, 1)}, rand(7, 1), rand(5, 1), rand(5, 1)),
    c02.word_scores: lambda: given(WORDS, rand(3, 3), rand(3, 3)),
    c02.scaling: lambda: given(*[{"dot": ([4, 16], [2.0, 4.0])}] * 3),
    c02.list_weights: lambda: given({"plain": rand(4), "scaled": rand(4)}, ["7:1", "3:0", "9:4", "5:2"], 2),
    c02.spreads: lambda: given({"width 4": rand(5, 7), "width 9": 3 * rand(5, 7)}),
    c02.pushes: lambda: given({"plain": rand(11) ** 40, "scaled": rand(11)}),
    c02.learning: lambda: given({"plain": [0.1, 0.2], "scaled": [0.1, 0.9]}, 10, 0.125),
    c02.arrival: lambda: given(BANDS, BANDS),
    c02.costs: lambda: given([16, 32], CURVES, CURVES),
    c03.loop_and_product: lambda: given([16, 32], CURVES),
    c03.mirrored: lambda: given(rand(3, 3), rand(3, 3)),
    c03.tokens: lambda: given(rand(8, 13)),
    c03.found_partners: lambda: given(rand(8, 8), rand(8, 8), torch.arange(8)),
    c03.learned_relation: lambda: given(rand(13, 13), torch.arange(8)),
    c03.influence: lambda: given({"near": rand(8, 8), "all": rand(8, 8)}),
    c04.pieces: lambda: given(0.7, 0.2),
    c04.square: lambda: given({"animal, street, tired": (1, 1), "street, animal, wide": (0, 0)}),
    c04.one_head: lambda: given([0.0, 1.0], CURVES),
    c04.as_heads: lambda: given(rand(3, 8), rand(2, 3, 4)),
    c04.right_names: lambda: given(SHARES, 0.125, "Stored."),
    c04.code: lambda: given({"animals": rand(3), "places": rand(3)}, WORDS),
    c04.silenced: lambda: given(CURVES),
    c05.by_position: lambda: given(rand(61)),
    c05.two_sentences: lambda: given(rand(3, 16), rand(3, 16), WORDS),
    c05.as_lists: lambda: given(rand(8, 8), rand(23, 3), rand(23, 3)),
    c05.table: lambda: given(rand(64, 32)),
    c05.waves: lambda: given(rand(64, 32), [1, 3]),
    c05.counters: lambda: given({"sines": [318, 101]}, [999, 499]),
    c05.products: lambda: given(rand(30, 30)),
    c05.in_between: lambda: given(tables("nothing", "R(3)", shape=(21, 21))),
    c05.equal_words: lambda: given(tables("rotary", "codes added", shape=(40, 40))),
    c05.score_tables: lambda: given(tables(*"abcdef", shape=(24, 24))),
    bert_figures.gap: lambda: given(WORDS, rand(2, 2, 3, 3)),
    bert_figures.looks: lambda: given(rand(2, 2), 0.31),
    bert_figures.stored_looks: lambda: given(0),
    bert_figures.blinded: lambda: given(SHARES),
    c06.company: lambda: given([2, 8, 32], [0.5, 0.3, 0.1]),
    c06.by_depth: lambda: given(norms.best(rows("norms"), "depth", ("norm_first", "rise", "layers"))),
    c06.schedule: lambda: given({"4 steps": ([1, 2], [0.1, 0.2])}),
    c06.cost_of_writing: lambda: given(rows("translation", "speed")),
    c06.translations: lambda: given(translation.by_dates(rows("translation"))),
    c06.errors_by_language: lambda: given(rows("translation", "language")),
    c06.agreement: lambda: given(rows("bert", "trained")),
    c06.probe: lambda: given(rows("bert", "probe")),
    c06.interference: lambda: given(rows("bert", "interference")),
    c06.bits: lambda: given(rows("gpt")),
    c06.cost_of_sampling: lambda: given(rows("gpt", "cost")),
    gpt_figures.temperatures: lambda: given("a\n ", {0.5: rand(3), 2.0: rand(3)}, most=3),
    gpt_figures.prompts: lambda: given(rand(63)),
    gpt_figures.training: lambda: given([{"step": 1, "loss": 3.0}, {"step": 2, "loss": 2.0}]),
    gpt_figures.beyond: lambda: given({"all": rand(64), "near": rand(64)}),
    layer_figures.same_way: lambda: given([rand(8, 8)] * 3),
    proof_figures.at_the_start: lambda: given(
        {"one": [[1, 5], [3, 4], [2, 9]]}, title="size of the gradient"
    ),
    translator_figures.losses: lambda: given({"with the mask": [5.0, 4.0, 3.0, 2.0, 1.0] * 2}),
    writing_figures.by_place: lambda: given(rand(5, 10) > 0.2, rand(5, 10) > 0.2),
    c07.detections: lambda: given(
        rand(4, 24, 24), *[[torch.tensor([[2, 6, 8, 12]])] * 4] * 2, [["cross"]] * 4
    ),
    c07.found_in: lambda: given(detr.scenes("test")),
    c07.looked_from: lambda: given(detr.scenes("test")),
    c07.query_maps: lambda: given(rand(24, 24), torch.tensor([1, 1, 5, 5]), tables(*"abcd", shape=(6, 6))),
    c07.queries: lambda: given(rows("detr")),
    c07.picture_as_set: lambda: given(c07.example_picture()),
    c07.edges: lambda: given(rand(3, 5, 10), tables("one", "two", shape=(5, 10)), {"A": (1, 0)}),
    c07.taps: lambda: given(rand(9, 144, 196), (2, 2), (12, 12), 1),
    c07.gaze: lambda: given(c07.example_picture(), rand(7, 12), (2, 2), "up"),
    c07.error_by_sharpness: lambda: given([1, 2], [0.1, 0.2], [0.1, 0.2]),
    c07.fields: lambda: given(tables(*"abcd", shape=(5, 7)), (0, 0)),
    c07.scenes: lambda: given(rand(6, 5, 5), "abcdef"),
    c07.gamma: lambda: given({"generator": ([0, 1], [0.0, 0.1])}),
    c07.drawn: lambda: given(rand(16, 8, 24), "attention", "wide convolution"),
    c07.generated: lambda: given(tables(*"abcd", shape=(16, 8, 24))),
    c07.curves: lambda: given({"short": BANDS}, "pairs"),
    c07.shares_right: lambda: given({"CNN, new": 1.0, "ViT, new": 0.7}, guess=0.5),
    c07.class_token_path: lambda: given(rand(20, 20), patch=5),
    c07.judged: lambda: given(rand(6, 20, 20), ["same"] * 6, {"ViT": ["different"] * 6}),
    c07.distances: lambda: given({1: [1.0, 3.0]}, {1: [2.0, 2.0]}),
    costs_figures.products_and_seconds: lambda: given([64, 256], CURVES, CURVES),
    costs_figures.model_and_clock: lambda: given(OVER_LENGTHS, OVER_LENGTHS),
    c08.grow: lambda: given(rows("costs"), "n"),
    c08.table: lambda: given(
        {"theory": {"RNN": {"path": "n"}}, "measured": {"RNN": {"power": [1.04, 0.98]}}}
    ),
    c08.threads: lambda: given([row for row in rows("costs") if row["part"] == "threads"]),
    c08.states: lambda: given(tables("RNN", "LSTM", shape=(7, 3))),
    c08.rank: lambda: given(tables("features", shape=(7, 7)), 3),
    c08.gap: lambda: given({"RNN": [2.0, 0.5, 0.125]}),
    c08.recall: lambda: given(rows("recall")),
    c08.aids: lambda: given(rows("recall")),
    c08.asked: lambda: given(rows("recall")),
    c08.sensitivities: lambda: given(tables(*"abcd", shape=(7, 7))),
    c08.forgetting: lambda: given({"RNN": [1.0, 0.0]}, 1),
    linear_figures.gates: lambda: given({"random keys": {0.5: 0.3, 1.0: 0.0}}),
    paths_figures.waves: lambda: given({name: paths.network(name, 8) for name in paths.NETWORKS}, 2),
    paths_figures.routes: lambda: given({name: paths.network(name, 8) for name in paths.NETWORKS}, 5, 2),
    remembering_figures.states: lambda: given({"LSTM": rand(3, 5)}, "Bg?"),
    c09.gib: lambda: given(LENGTHS),
    c09.costs: lambda: given(LENGTHS, reach_s=0.31),
    c09.accuracy: lambda: given(rows("phonemes"), saturates=phonemes.saturates(rows("phonemes"))),
    c09.by_kind: lambda: given(rows("phonemes")),
    c09.matched: lambda: given({"loss 1": {0: [], 2: [0.5, 0.7], None: [0.4]}}),
    c09.fields: lambda: given({1: rand(41), 2: rand(41)}),
    c09.utterance: lambda: given(*SPEECH),
    c09.spoken: lambda: given(*SPEECH[:2], {"one": SPEECH[1], "two": SPEECH[1]}, SPEECH[2]),
    c09.attention: lambda: given(SPEECH[0], rand(29), 3),
    c09.band: lambda: given({"a": window(60, 3), "b": window(60, 9), "c": window(60, 30)}),
    camps_figures.puzzle: lambda: given(graphs.karate()),
    c10.messages: lambda: given([0.0, -math.inf], [1.0, 0.0], [2.0, 7.0], names=["i", "a"], node="i"),
    c10.masks: lambda: given({"a": MASK, "b": MASK}),
    c10.kinds: lambda: given(
        rows("club"), {row["task"]: 0.5 for row in rows("club") if row["part"] == "point"}
    ),
    c10.shares: lambda: given(tables("score 0", shape=(5, 5)), MASK),
    c10.evenness: lambda: given(tables("GAT", shape=(2, 5, 5)), MASK),
    c10.over_homophily: lambda: given(rows("club"), 0.25),
    c10.sparse_dense: lambda: given([{"kind": "edges", "n": n, "seconds": 1.0, "mib": 1.0} for n in (4, 16)]),
    c10.static: lambda: given(tables("GAT", "GATv2")),
    c10.writings: lambda: given(GRAPH, 3),
    graphs_figures.network: lambda: given(graphs.karate(), title="a club"),
    c11.seen_patterns: lambda: given({"window": MASK}),
    c11.spectra: lambda: given({"a": torch.tensor([3.0, 1.0])}),
    c11.errors: lambda: given({"a": [(2, [0.5, 0.0]), (4, [0.125])]}, xlabel="features", slope=-0.5),
    c11.arena_plane: lambda: given(ACCURACIES, dict.fromkeys(KINDS, 3.0), dict.fromkeys(KINDS, 7.0)),
    c11.arena_bars: lambda: given(ACCURACIES, {"pairs": 0.1, "digits": 0.1}),
    c11.next_token: lambda: given([16, 32], CURVES),
    c11.shared_heads: lambda: given(6, [6, 3, 1]),
    machines.tile_order: lambda: given(7, 2, causal=True, step=3),
    machines.ring_rounds: lambda: given(6),
    machines.ring_memory: lambda: given(rows("ring")),
    machines.lever: lambda: given({"A": (20.0, 3.0), "B": (50.0, 1.0)}, most=60),
    scale_figures.laws_picture: lambda: given(rows("laws"), laws.laws(rows("laws"))),
    scale_figures.machine_picture: lambda: given({"a": 1.0, "b": 4.0}, 2.0),
    ledger_figures.tally: lambda: given(
        {"a": {"holds": 3}}, alt="A bar for each of the groups, and its pieces."
    ),
    inside_figures.without_heads: lambda: given(rand(2, 4)),
    inside_figures.rows_exchanged: lambda: given(rand(2, 3), WORDS),
}


def drawing(module):
    """Functions of a module that return pictures."""
    return [
        value
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and name[0] != "_"
        and inspect.signature(value).return_annotation is Picture
    ]  # fmt: skip


FIGURES = [
    function
    for path in sorted(CHAPTERS.glob("c*/*figures.py"))
    for function in drawing(
        importlib.import_module(".".join(("lesson_lib.chapters", path.parent.name, path.stem)))
    )
]


@pytest.mark.parametrize(
    "draw", FIGURES, ids=lambda function: ".".join((*function.__module__.split(".")[2:], function.__name__))
)
def test_a_figure_fits_the_page_can_be_read_and_says_what_it_shows(draw, no_shape_hook):
    arguments, options = GIVEN[draw]() if draw in GIVEN else ((), {})
    picture = draw(*arguments, **options)
    assert isinstance(picture, Picture) and picture.figure.get_size_inches()[0] <= 8.01
    assert len(picture.alt) > 40 and picture.alt.endswith(".")
    assert picture.caption.endswith((".", "?")) or not picture.caption
    picture.figure.draw_without_rendering()
    sizes = [
        text.get_fontsize() for text in picture.figure.findobj(Text) if text.get_text() and text.get_visible()
    ]
    assert min(sizes) >= SMALL.get(draw.__name__, 9)
