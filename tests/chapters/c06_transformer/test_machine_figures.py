"""The whole machine in pictures: the right weights in the right place, norms by hand, and sentences for what
does not fit."""

from typing import Any, NamedTuple

import pytest
import torch
from matplotlib.text import Annotation

from lesson_lib.blocks import Decoder, DecoderWeights, Encoder, Stacked
from lesson_lib.chapters.c06_transformer.machine_figures import (
    MEMORY,
    inside,
    machine,
    transformer_diagram,
)
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


def images(picture):
    return [torch.from_numpy(image.get_array().data) for image in picture.figure.axes[0].get_images()]


def test_what_is_inside_is_what_the_blocks_returned():
    one = opened()
    made = inside(one)
    assert made.encoder.shape == (LAYERS, H, M, M) and made.own.shape == (LAYERS, H, N, N)
    assert made.cross.shape == (LAYERS, H, N, M) and made.encoder_stream.shape == (LAYERS + 1, M, D)
    assert made.decoder_stream.shape == (LAYERS + 1, N, D)
    assert torch.equal(made.cross[1, 2], one.decoder.weights[1].cross[0, 2].double().cpu())
    assert torch.equal(made.decoder_stream[2], one.decoder.stream[2][0].double().cpu())
    assert made.own.dtype == torch.float64 and made.own.device.type == "cpu"


def test_maps_go_down_as_the_tokens_do():
    made, drawn = inside(opened()), images(machine(opened()))
    rows = [*made.encoder, made.own[0], made.cross[0], made.own[1], made.cross[1]]
    assert len(drawn) == 6 * H + 1, "all maps, and the colours' scale"
    for k, row in enumerate(rows):
        for head in range(H):
            torch.testing.assert_close(drawn[k * H + head], row[head], rtol=0, atol=0)
    picture = machine(opened())
    page = picture.figure.axes[0]
    texts = [text.get_text() for text in page.texts]
    assert [t for t in texts if t.startswith("head")] == 2 * [f"head {k}" for k in range(H)]
    assert texts.count("cross") == LAYERS and {"layer 1", "layer 2", "layer 1\nown"} <= set(texts)
    assert all(image.get_clim() == (0, 1) for image in page.get_images())


def test_the_norm_stands_beside_the_layers_that_made_it():
    one = opened()
    for norms in one.encoder.stream:
        norms[:] = 0
    one.encoder.stream[1][0, :, 0] = torch.arange(3.0, 3.0 + M)  # norms 3 ... 9, mean 6
    one.encoder.stream[2][0, 0, :2] = torch.tensor([30.0, 40.0])  # norm 50, the others 0
    picture = machine(one)
    page, beside, _ = picture.figure.axes
    (line,) = beside.get_lines()
    xs, ys = line.get_xdata(), line.get_ydata()
    torch.testing.assert_close(
        torch.as_tensor(xs), torch.tensor([0, 6, 50 / M], dtype=torch.float64), check_device=False
    )
    extents = [image.get_extent() for image in page.get_images()]
    assert extents[0][3] == pytest.approx(ys[0]), "what comes in stands at the top of layer 1"
    assert extents[0][2] < ys[1] <= extents[H][3] + 1e-9, "what layer 1 leaves stands between layers 1 and 2"
    height = picture.figure.get_size_inches()[1]
    box = beside.get_position()
    low, high = beside.get_ylim()
    at = box.y0 + (ys[1] - low) / (high - low) * box.height
    assert abs((1 - at) * height - ys[1]) < 0.2, "both axes count inches of the page"
    band = beside.collections[0].get_paths()[0].vertices[:, 0]
    assert band.max() == 50 and band.min() == 0
    assert [t.get_text() for t in beside.get_yticklabels()] == ["in", "after 1", "after 2"]


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


def test_alt_texts_are_sentences_without_numbers_and_captions_name_the_query():
    pictures = [machine(opened()), transformer_diagram(), transformer_diagram(norm_first=True)]
    for picture in pictures:
        assert picture.alt.endswith(".") and not any(c.isdigit() for c in picture.alt)
        assert picture.caption and picture.png().startswith(b"\x89PNG")
    assert "rows are queries, columns are keys" in pictures[0].caption


@pytest.mark.parametrize("nothing", [None, "3. mai", [1, 2], torch.zeros(2, 3)])
def test_what_is_not_opened_gets_a_sentence(nothing):
    with pytest.raises(TypeError, match=r"opened must have source, target, encoder, decoder, as .* lacks"):
        machine(nothing)


@pytest.mark.parametrize(
    "change, words",
    [
        (
            lambda o: {"encoder": Stacked(o.encoder.output, None, None)},
            "the encoder was not opened: .* weights=True",
        ),
        (lambda o: {"decoder": o.decoder._replace(weights=[None, None])}, "the decoder was not opened"),
        (
            lambda o: {"source": o.source[1:]},
            r"encoder.weights must be one sequence's, \(1, ..., 6, 6\) in each layer, got \(1, 3, 7, 7\)",
        ),
        (lambda o: {"target": [*o.target, "!"]}, r"decoder.weights, own must be .* \(1, ..., 6, 6\)"),
        (
            lambda o: {
                "encoder": o.encoder._replace(weights=[w.repeat(2, 1, 1, 1) for w in o.encoder.weights])
            },
            r"got \(2, 3, 7, 7\)",
        ),
        (
            lambda o: {
                "decoder": o.decoder._replace(
                    weights=[DecoderWeights(w.own, w.own) for w in o.decoder.weights]
                )
            },
            "decoder.weights, cross must",
        ),
        (
            lambda o: {
                "decoder": o.decoder._replace(
                    weights=[DecoderWeights(w.own, None) for w in o.decoder.weights]
                )
            },
            "cross .* got NoneType",
        ),
        (
            lambda o: {"encoder": o.encoder._replace(stream=o.encoder.stream[1:])},
            "encoder.stream must hold one more than the 2 layers, got 2",
        ),
        (
            lambda o: {"decoder": o.decoder._replace(stream=[x[0] for x in o.decoder.stream])},
            r"decoder.stream .*, 5, d_model\) .* got \(5, 12\)",
        ),
    ],
)
def test_what_does_not_fit_gets_a_sentence(change, words, no_shape_hook):
    one = opened()
    with pytest.raises(ValueError, match=words):
        inside(one._replace(**change(one)))


def norms_of(picture):
    """Middles of the boxes that are called norm."""
    return [text.get_position() for text in picture.figure.axes[0].texts if text.get_text() == "norm"]


def test_the_diagram_says_what_the_blocks_are_called():
    texts = {text.get_text() for text in transformer_diagram().figure.axes[0].texts}
    assert {"embedding", "attention", "cross_attention", "feed_forward", "norm", "logits", "table"} <= texts
    assert {"EncoderLayer 1", "DecoderLayer 1", "layer 2", "layer n_layers"} <= texts
    from lesson_lib import blocks

    decoder = blocks.DecoderLayer(8, 2, 16)
    assert all(hasattr(decoder, name) for name in ("attention", "cross_attention", "feed_forward", "norms"))
    assert hasattr(blocks.TokenEmbedding(3, 8), "table")


def test_the_switch_moves_the_norms_into_the_branches_and_adds_the_last_ones():
    after, first = (norms_of(transformer_diagram(norm_first=switch)) for switch in (False, True))
    assert len(after) == 2 + 3 and len(first) == 2 + 3 + 2
    rails = sorted({y for _, y in after})
    assert len(rails) == 2, "post-norm: all norms on the two streams"
    assert sum(y in rails for _, y in first) == 2, "pre-norm: only the two last norms are on them"
    plus = [t for t in transformer_diagram().figure.axes[0].texts if t.get_text() == "+"]
    assert len(plus) == 5 and {t.get_position()[1] for t in plus} == set(rails)


@pytest.mark.parametrize("norm_first", [False, True])
def test_no_text_of_the_diagram_leaves_the_page_or_touches_another(norm_first):
    figure = transformer_diagram(norm_first=norm_first).figure
    assert tuple(figure.get_size_inches() * 100) == (800, 564)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts if text.get_text()]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert all(b.x0 >= 0 and b.y0 >= 0 and b.x1 <= figure.bbox.x1 and b.y1 <= figure.bbox.y1 for b in boxes)


def test_an_arrow_goes_from_the_last_encoder_layer_to_each_decoder_layer():
    page = transformer_diagram().figure.axes[0]
    ends = [
        text.xy for text in page.texts if isinstance(text, Annotation) and text.arrowprops["color"] == MEMORY
    ]
    layers = {text.get_position()[0] for text in page.texts if text.get_text().startswith("layer ")}
    cross = next(text for text in page.texts if text.get_text() == "cross_attention").get_position()[0]
    assert len(ends) == 3 and abs(min(ends)[0] - cross) < 5
    assert {x for x, _ in ends} - {min(ends)[0]} <= layers
