"""The whole machine in pictures: the right weights in the right place, norms by hand, and sentences for what
does not fit."""

from typing import Any, NamedTuple

import pytest
import torch

from lesson_lib.blocks import Decoder, DecoderWeights, Encoder, Stacked
from lesson_lib.charts.opened import machine, parts
from lesson_lib.masks import causal

LAYERS, H, M, N, D = 2, 3, 7, 5, 12  # D is a multiple of H


class Opened(NamedTuple):
    source: list[str]
    target: list[str]
    encoder: Any
    decoder: Any


def opened(layers=LAYERS, n_heads=H, m=M, n=N, **options):
    torch.manual_seed(0)
    stacks = {"n_layers": layers, "d_model": 4 * n_heads, "n_heads": n_heads, "d_inner": 17, "dropout": 0.0}
    with torch.no_grad():
        encoded = Encoder(**stacks, **options)(torch.randn(1, m, 4 * n_heads), weights=True)
        decoded = Decoder(**stacks, **options)(
            torch.randn(1, n, 4 * n_heads), encoded.output, mask=causal(n), weights=True
        )
    return Opened(list("3. mai 87;" * 12)[:m], ["start", *"1987-05-03;" * 11][:n], encoded, decoded)


def test_what_is_inside_is_what_the_blocks_returned():
    one = opened()
    encoder, own, cross = parts(one)
    assert [part.key for part in (encoder, own, cross)] == ["encoder", "own", "cross"]
    assert encoder.weights.shape == (LAYERS, H, M, M) and own.weights.shape == (LAYERS, H, N, N)
    assert cross.weights.shape == (LAYERS, H, N, M) and encoder.stream.shape == (LAYERS + 1, M, D)
    assert own.stream.shape == (LAYERS + 1, N, D) and own.first == 1 and own.says is None
    assert torch.equal(cross.weights[1, 2], one.decoder.weights[1].cross[0, 2].double().cpu())
    assert torch.equal(cross.stream[2], one.decoder.stream[2][0].double().cpu())
    assert own.weights.dtype == torch.float64 and own.weights.device.type == "cpu"


class OfOneStack(NamedTuple):
    pieces: list[str]
    weights: list[Any]
    stream: list[Any]
    says: Any = None


def of_one_stack(layers=3, n_heads=H, n=N):
    torch.manual_seed(1)
    tables = [torch.randn(1, n_heads, n, n).softmax(-1) for _ in range(layers)]
    return OfOneStack(list("spam;" * 30)[:n], tables, [torch.randn(1, n, D) for _ in range(layers + 1)])


def test_one_stack_is_one_part_whose_layers_count_from_zero():
    (part,) = parts(of_one_stack())
    assert (part.key, part.first, part.queries, part.keys) == ("own", 0, list("spam;"), list("spam;"))
    page, beside = machine(of_one_stack()).figure.axes
    texts = [text.get_text() for text in page.texts]
    assert {"Model", "5 tokens", "layer 0", "layer 2"} <= set(texts) and "cross" not in texts
    assert [t.get_text() for t in beside.get_yticklabels()] == ["in", "after 0", "after 1", "after 2"]
    assert len(page.get_images()) == 3 * H + 1
    with pytest.raises(ValueError, match="the model's stream must hold one more than the 3 layers, got 3"):
        parts(of_one_stack()._replace(stream=of_one_stack().stream[1:]))
    with pytest.raises(ValueError, match="the model was not opened: call the model with weights=True"):
        parts(of_one_stack()._replace(weights=None))


@pytest.mark.parametrize(
    "layers, n_heads, m, n", [(2, 4, 41, 23), (6, 8, 31, 11), (1, 1, 3, 2), (3, 2, 5, 37)]
)
def test_small_and_large_machines_fit_the_page(layers, n_heads, m, n):
    picture = machine(opened(layers, n_heads, m, n))
    width, height = picture.figure.get_size_inches()
    assert 3 < width <= 8.01 and height <= 13
    figure = picture.figure
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i]), "no text over another"
    assert all(box.x0 >= 0 and box.y1 <= figure.bbox.y1 for box in boxes)


@pytest.mark.parametrize("nothing", [None, "3. mai", [1, 2], torch.zeros(2, 3)])
def test_what_is_not_opened_gets_a_sentence(nothing):
    with pytest.raises(TypeError, match=r"opened must be what .* lacks source, target, encoder, decoder"):
        machine(nothing)


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda o: {"encoder": Stacked(o.encoder.output, None, None)},
         "the encoder was not opened: .* weights=True"),
        (lambda o: {"decoder": o.decoder._replace(weights=[None, None])}, "the decoder was not opened"),
        (lambda o: {"source": o.source[1:]},
         r"encoder.weights must be one sequence's, \(1, ..., 6, 6\) in each layer, got \(1, 3, 7, 7\)"),
        (lambda o: {"target": [*o.target, "!"]}, r"decoder.weights, own must be .* \(1, ..., 6, 6\)"),
        (lambda o: {"encoder": o.encoder._replace(weights=[w.repeat(2, 1, 1, 1) for w in o.encoder.weights])},
         r"got \(2, 3, 7, 7\)"),
        (
            lambda o: {"decoder": o.decoder._replace(weights=[DecoderWeights(w.own,
             w.own) for w in o.decoder.weights])},
            "decoder.weights, cross must",
        ),
        (
            lambda o: {"decoder": o.decoder._replace(weights=[DecoderWeights(w.own,
             None) for w in o.decoder.weights])},
            "cross .* got NoneType",
        ),
        (lambda o: {"encoder": o.encoder._replace(stream=o.encoder.stream[1:])},
         "the encoder's stream must hold one more than the 2 layers, got 2"),
        (lambda o: {"decoder": o.decoder._replace(stream=[x[0] for x in o.decoder.stream])},
         r"decoder.stream .*, 5, d_model\) .* got \(5, 12\)"),
    ],
)  # fmt: skip
def test_what_does_not_fit_gets_a_sentence(change, words, no_shape_hook):
    one = opened()
    with pytest.raises(ValueError, match=words):
        parts(one._replace(**change(one)))
