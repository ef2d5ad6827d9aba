"""The machine explorer without a browser: it opens once per text and draws for every choice."""

import re
from typing import Any, NamedTuple

import pytest
import torch

from lesson_lib.blocks import Decoder, Encoder
from lesson_lib.masks import causal
from lesson_lib.widgets import machine as module
from lesson_lib.widgets.machine import MachineExplorer
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
