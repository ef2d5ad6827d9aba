"""The machine explorer without a browser: it opens once per text and draws for every choice."""

import re
from typing import Any, NamedTuple

import pytest
import torch

from lesson_lib.blocks import Decoder, DecoderWeights, Encoder
from lesson_lib.masks import causal
from lesson_lib.widgets import machine as module
from lesson_lib.widgets.machine import BAR, FOOT, MachineExplorer
from tests.explorers import stands_alone

LAYERS, H, M, N = 2, 3, 7, 5
TEXTS = ["3. mai ", "mar 3 1987"]
TARGET = ["start", *"1987-05-03"]


class Opened(NamedTuple):
    source: list[str]
    target: list[str]
    encoder: Any
    decoder: Any


class Machine:
    """An untrained pair of stacks; it counts its calls."""

    def __init__(self, layers=LAYERS, n_heads=H, n=N, decoder_layers=None):
        torch.manual_seed(0)
        d, self.n, self.calls = 4 * n_heads, n, []
        sizes = {"d_model": d, "n_heads": n_heads, "d_inner": 17, "dropout": 0.0}
        self.encoder, self.decoder = Encoder(layers, **sizes), Decoder(decoder_layers or layers, **sizes)
        self.table = torch.randn(128, d)

    @torch.no_grad()
    def __call__(self, text):
        self.calls.append(text)
        if not text.isascii():
            raise ValueError(f"{text!r} has characters which this vocabulary lacks")
        if not text:
            raise TypeError("text must hold <b>at least</b> one character")
        target = (TARGET * 4)[: self.n if len(text) > 1 else 2]
        embed = lambda tokens: self.table[torch.tensor([ord(t[0]) for t in tokens])][None]  # noqa: E731
        encoded = self.encoder(embed(text), weights=True)
        n = len(target)
        decoded = self.decoder(embed(target), encoded.output, mask=causal(n), weights=True)
        return Opened(list(text), target, encoded, decoded)


def test_a_still_picture_stands_for_it_and_nothing_is_loaded():
    assert stands_alone(lambda: MachineExplorer(Machine(), TEXTS))


def test_every_choice_is_drawn_and_the_model_is_asked_once():
    model = Machine()
    w = MachineExplorer(model, TEXTS)
    drawn = set()
    for part, n in (("encoder", M), ("own", N), ("cross", N)):
        w.part.value = part
        assert (w.layer.min, w.layer.max, w.head.max, w.at.max) == (1, LAYERS, H - 1, n - 1)
        for w.layer.value in range(1, LAYERS + 1):
            for w.head.value in range(H):
                for w.at.value in range(n):
                    drawn.add(w.drawing.value)
                    assert f"layer {w.layer.value}, head {w.head.value}: query {w.at.value}, " in w.words()
    assert len(drawn) == LAYERS * H * (M + 2 * N) and model.calls == TEXTS[:1]


def test_picking_and_typing_open_once_each():
    model = Machine()
    w = MachineExplorer(model, TEXTS)
    w.example.value = TEXTS[1]
    assert w.text.value == TEXTS[1] and model.calls == TEXTS
    w.text.value = "3.3.03"
    assert len(model.calls) == 3 and "3.3.03 → 1987" in w.drawing.value


def test_stacks_of_different_depth_are_both_drawn():
    w = MachineExplorer(Machine(layers=3, decoder_layers=1), TEXTS)
    w.layer.value = 3
    w.part.value = "cross"
    assert w.layer.value == w.layer.max == 1 and "Overview of 15 maps" in w.drawing.value


def test_bars_are_as_high_as_the_weights_and_the_sentence_names_the_largest():
    model = Machine()

    def planted(text):
        one = model(text)
        one.decoder.weights[1] = DecoderWeights(one.decoder.weights[1].own, torch.zeros(1, H, N, M))
        one.decoder.weights[1].cross[0, 2, 3] = torch.tensor([0, 0, 0.125, 0.75, 0, 0.125, 0])
        return one

    w = MachineExplorer(planted, TEXTS)
    w.part.value, w.layer.value, w.head.value, w.at.value = "cross", 2, 2, 3
    bars = re.findall(r'class="ll-bar" x="\d+" y="([\d.]+)" width="\d+" height="([\d.]+)"', w.drawing.value)
    heights = [float(height) for _, height in bars]
    assert heights == [0, 0, 0.125 * BAR, 0.75 * BAR, 0, 0.125 * BAR, 0]
    assert all(float(y) + float(height) == FOOT for y, height in bars)
    assert "key 3, &#x27;m&#x27;: weight 0.7500" in w.drawing.value and ">0.75</text>" in w.drawing.value
    assert (
        w.words()
        == "Decoder to encoder, layer 2, head 2: query 3, '8' (from it comes the next, '7'), looks most at"
        " 'm' (place 3) with weight 0.75, then at ' ' (place 2) with weight 0.12; 'i' (place 5) with"
        " weight 0.12."
    )
    w.at.value = 0
    assert "is allowed no key." in w.words() and w.words() in w.drawing.value.replace("&#x27;", "'")


def test_a_weight_is_never_a_rounded_one():
    assert [module._share(x) for x in (0.994, 0.996, 1.0)] == ["0.99", "over 0.99", "1.00"]


def test_the_streams_numbers_by_hand():
    model = Machine()

    def planted(text):
        one = model(text)
        for x, row in zip(one.encoder.stream, [(3.0, 4.0), (3.0, 0.0), (-6.0, 0.0)], strict=True):
            x[0, 4] = 0
            x[0, 4, :2] = torch.tensor(row)
        return one

    w = MachineExplorer(planted, TEXTS)
    w.at.value = 4
    assert w.changes() == [(5, None, None), (3, 4, pytest.approx(0.6)), (6, 9, pytest.approx(-1))]
    rows = re.findall(r"<tr.*?</tr>", w.drawing.value.split("<tbody>")[-1])
    plain = [re.sub(r'<span class="ll-tip".*?</span>|<.*?>', " ", row).split() for row in rows]
    assert plain == [["in", "5.00", "–", "–"], ["1", "3.00", "4.00", "0.60"], ["2", "6.00", "9.00", "-1.00"]]
    assert "change = norm of (after layer 2 − after layer 1) = 9.0000" in w.drawing.value
    assert "Residual stream of &#x27;a&#x27; (place 4)" in w.drawing.value


def test_the_overview_keeps_what_is_bright():
    weights = torch.zeros(2, 3, 40, 80, dtype=torch.float64)
    weights[1, 2, 39, 0] = 0.75
    small = module._mosaic(weights, 10)
    assert small.shape == (2 * 10, 3 * 10)
    assert small[19, 20] == 0.75 and (small > 0).sum() == 1
    assert module._mosaic(weights[..., :5, :7], 10).shape == (2 * 5, 3 * 7), "short texts are not blown up"


@pytest.mark.parametrize(
    "text, words",
    [
        ("märz", "this vocabulary lacks"),
        ("", "Text must hold &lt;b&gt;at least&lt;/b&gt; one"),
        ("3" * 121, "At most 120 tokens can be drawn; these are 121"),
    ],
)
def test_odd_input_gets_a_sentence_and_the_last_picture_stays(text, words):
    w = MachineExplorer(Machine(), TEXTS)
    before = w.draw()
    w.text.value = text
    assert words in w.drawing.value and "role='alert'" in w.drawing.value
    assert w.drawing.value.count("<svg") == 2 and f"<b>{TEXTS[0]} → 1987" in w.drawing.value
    w.at.value = 2
    assert "query 2, " in w.drawing.value and "role='alert'" in w.drawing.value, (
        "the old picture can be explored"
    )
    w.at.value = 0
    w.text.value = TEXTS[0]
    assert w.draw() == before


def test_images_have_words_and_markup_is_escaped():
    model = Machine()
    w = MachineExplorer(model, ["<i>&amp"])
    assert "<i>" not in w.drawing.value and "&lt;i&gt;&amp;amp" in w.drawing.value
    labels = re.findall(r'role="img" aria-label="([^"]+)"', w.drawing.value)
    assert len(labels) == 2 and labels[0].startswith("Overview of 18 maps") and "looks most at" in labels[1]
    assert "role='status'" in w.drawing.value and "rows are queries, columns are keys" in w.drawing.value


def frames(w):
    found = re.findall(r'class="ll-frame" x="(\d+)" y="(\d+)" width="(\d+)"', w.drawing.value)
    return [tuple(map(int, frame)) for frame in found]


def test_the_frames_move_with_part_layer_head_and_query():
    w = MachineExplorer(Machine(), TEXTS)
    (x, y, side), (_, row, _) = frames(w)
    w.head.value, w.layer.value, w.at.value = 2, 2, 1
    (x_2, y_2, _), (_, row_2, _) = frames(w)
    assert (x_2 - x, y_2 - y) == (2 * side, side) and row_2 > row
    w.part.value = "cross"
    assert frames(w)[0][0] > x_2 + side and frames(w)[0][1] == y_2
