"""The distance explorer: its sequences, answers and curves are those of the networks that it was given."""

import html
import math
import re

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.chapters.c08_attention_vs_rnn import recall_explorer as module
from lesson_lib.data.recall import CHARACTERS, SYMBOLS, Recall, text
from lesson_lib.device import device
from lesson_lib.models.recaller import Recaller, gradients
from tests.explorers import stands_alone

D, H = 10, 5


def make(system, kind=Recaller):
    return kind(system, d_model=D, n_heads=H).to(device()).eval()


class Knows(Recaller):
    """Reads the symbol where it stands."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.register_buffer("symbols", torch.arange(len(SYMBOLS)))

    def forward(self, tokens):
        return 9.0 * (tokens[:, :1] == self.symbols).float()


class Errs(Knows):
    """Always names the next symbol."""

    def forward(self, tokens):
        return super().forward(tokens).roll(1, -1)


def explorer(*systems):
    return module.DistanceExplorer({system: make(system) for system in systems or ("RNN", "attention")})


def test_a_still_picture_stands_for_it_and_nothing_is_loaded():
    assert stands_alone(explorer)


@pytest.mark.parametrize("distance", [1, 67, 200])
def test_the_sequence_is_written_whole_its_symbol_and_question_framed(distance):
    w = explorer("RNN")
    w.distance.value = distance
    batch = w.drawn()
    assert batch.tokens.shape == (1, distance + 1) and batch.tokens[0, -1] == len(CHARACTERS) - 1
    written = re.search(r'<div class="ll-sequence"[^>]*>(.*?)</div>', w.drawing.value)[1]
    lines = [re.sub("<[^>]+>", "", line) for line in written.split("<br>")]
    assert "".join(lines) == text(batch.tokens[0]) and max(map(len, lines)) <= module.LINE
    symbol = SYMBOLS[batch.answer.item()]
    assert written.startswith(f"<b>{symbol}</b>") and written.endswith("<i>?</i>")
    told = f"The symbol was {symbol}, the question stands {distance} token{'s' * (distance > 1)} behind it."
    assert told in w.words()


@pytest.mark.parametrize("system", ["LSTM", "attention"])
def test_answers_and_probabilities_are_the_networks(system):
    w = explorer(system)
    w.distance.value = 13
    logits = w.models[system](w.drawn().tokens.to(device()))[0].detach().cpu()
    shares = logits.exp() / logits.exp().sum()
    answer, right = w.answers()[system], w.drawn().answer.item()
    assert answer.symbol == logits.argmax() and answer.probability == pytest.approx(
        shares.max().item(), abs=1e-5
    )
    assert answer.right == pytest.approx(shares[right].item(), abs=1e-5)
    row = re.search(r"<tbody>(.*?)</tbody>", w.drawing.value)[1]
    mark = "✓" if answer.symbol == right else "✗"
    assert f"<td>{mark} <b>{SYMBOLS[answer.symbol]}</b>, {answer.probability:.2f}</td>" in row
    assert f"<td>{answer.right:.2f}</td>" in row and f"{SYMBOLS[right]} gets" in w.drawing.value
    batch = Recall(*(x.to(device()) for x in w.drawn()))
    assert answer.gradients == pytest.approx(gradients(w.models[system], batch).tolist())


def test_it_says_who_is_right_and_how_often():
    w = module.DistanceExplorer({"knows": make("RNN", Knows), "errs": make("RNN", Errs)})
    for w.distance.value in (1, 30, 200):
        assert w.words().endswith("Right: knows. Wrong: errs.")
        assert w.accuracies() == {"knows": 1.0, "errs": 0.0}
        assert f"right, of {w.sequences()} others" in w.drawing.value
        assert re.findall(r"</svg>(\d\.\d\d)</td>", w.drawing.value) == ["1.00", "0.00"]
    alone = module.DistanceExplorer({"errs": make("RNN", Errs)})
    assert "Right" not in alone.words() and alone.words().endswith("Wrong: errs.")


def test_an_accuracy_is_the_share_of_right_answers_on_other_sequences():
    w = explorer("LSTM")
    w.distance.value = 3
    batch = module._draw(0, w.sequences(), 3)
    with torch.no_grad():
        found = w.models["LSTM"](batch.tokens.to(device())).argmax(-1).cpu()
    assert w.accuracies()["LSTM"] == pytest.approx((found == batch.answer).float().mean().item())
    assert w.drawn().tokens.shape == (1, 4) and batch.tokens.shape == (200, 4)


def curves(drawing):
    return [
        [tuple(map(float, p.split(","))) for p in line.split()]
        for line in re.findall(r'<polyline points="([^"]+)"', drawing)
    ]


@pytest.mark.parametrize("distance", [10, 200])
def test_a_curve_is_as_high_as_the_power_of_ten_of_each_gradient(distance):
    w = explorer("LSTM", "attention")
    w.distance.value = distance
    for points, answer in zip(curves(w.drawing.value), w.answers().values(), strict=True):
        xs, ys = zip(*points, strict=True)
        assert len(points) == distance + 1 and list(xs) == sorted(xs)
        assert module.LEFT <= xs[0] and xs[-1] <= module.LEFT + module.WIDTH
        powers = [max(module.LOW, math.log10(max(value, 1e-300))) for value in answer.gradients]
        expected = [module.HEIGHT * (module.HIGH - power) / (module.HIGH - module.LOW) for power in powers]
        assert_close(torch.tensor(ys), torch.tensor(expected), atol=0.06, rtol=0)


def test_a_gradient_of_exactly_zero_lies_on_the_bottom_line():
    model = make("RNN")
    torch.nn.init.zeros_(model.read.weight)
    w = module.DistanceExplorer({"deaf": model})
    assert w.answers()["deaf"].gradients == [0.0] * 11
    assert {y for _, y in curves(w.drawing.value)[0]} == {module.HEIGHT}
    assert f"<td>below 1e{module.LOW}</td>" in w.drawing.value
    assert w.still().png()  # no logarithm of 0


def test_names_are_escaped_and_curves_differ_by_more_than_colour():
    names = ["<i>&", "b", "c", "d", "e"]
    w = module.DistanceExplorer({name: make("RNN") for name in names})
    drawing = w.drawing.value
    assert "<i>&" not in drawing and html.escape("<i>&") in drawing
    dashes = re.findall(r'<polyline [^>]*stroke-dasharray="([^"]*)"', drawing)
    assert len(set(dashes)) == len(names)
    assert re.findall(r'<path d="M0 5h34" [^>]*stroke-dasharray="([^"]*)"', drawing) == dashes  # the legend


def test_gradients_are_written_with_their_power_of_ten():
    written = [module._power(value) for value in (0.0312, 2.0, 1e-20, 9e-21, 0.0)]
    assert written == ["3e-02", "2e+00", "1e-20", "below 1e-20", "below 1e-20"]


def test_each_place_of_the_slider_is_a_sequence_of_its_own_and_always_the_same():
    w, again = explorer("RNN"), explorer("RNN")
    seen = set()
    for w.sequence.value in range(module.SEQUENCES):
        again.sequence.value = w.sequence.value
        assert torch.equal(w.drawn().tokens, again.drawn().tokens)
        seen.add(text(w.drawn().tokens[0]))
    assert len(seen) == module.SEQUENCES == again.sequence.max + 1 and len({line[0] for line in seen}) >= 6
