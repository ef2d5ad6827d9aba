"""DETR: the cheapest matching, a loss without order, queries that are a set, detections that are counted."""

import math
from itertools import permutations

import pytest
import torch

from lesson_lib.attention import attend
from lesson_lib.chapters.c07_attention_vs_cnn import detr
from lesson_lib.chapters.c07_attention_vs_cnn.detr import Detection, Detections, Detr, Hit
from lesson_lib.chapters.c07_attention_vs_cnn.scenes import KINDS, NONE, Objects, objects
from lesson_lib.device import to_device

B, Q, MOST, C, HEADS, D_MODEL, D_INNER, SIDE = 7, 5, 3, 2, 3, 33, 13, 28
GRID = (SIDE // 4, SIDE // 4)


def small(**options):
    torch.manual_seed(0)
    sizes = {"side": SIDE, "c_in": C, "d_model": D_MODEL, "n_heads": HEADS, "d_inner": D_INNER}
    return to_device(Detr(Q, **sizes | options)).eval()


def guesses(batch=B, queries=Q):
    """Logits and boxes at random, as a model might give them."""
    logits, boxes = torch.randn(batch, queries, len(KINDS) + 1), torch.rand(batch, queries, 4)
    return Detections(logits, 0.1 + 0.4 * boxes)


def listed():
    """Kinds and boxes of 0, 1, 2, 3 ... objects per image."""
    there = torch.arange(MOST) < (torch.arange(B) % (MOST + 1))[:, None]
    kind = torch.randint(len(KINDS), (B, MOST)).where(there, NONE)
    return kind, (0.1 + 0.4 * torch.rand(B, MOST, 4)) * there[..., None]


def value(found, kind, boxes):
    return detr.set_loss(found, kind, boxes, detr.match(found, kind, boxes))


def test_shapes_and_parameters_by_hand():
    model, canvas = small(), torch.randn(B, C, SIDE, SIDE)
    found = model(canvas)
    assert found.logits.shape == (B, Q, 5) and found.boxes.shape == (B, Q, 4) and found.weights is None
    assert len(found.earlier) == 1 and found.earlier[0].logits.shape == (B, Q, 5)
    assert model(canvas, weights=True).weights.shape == (B, HEADS, Q, 49) and model.grid == GRID
    stem = 9 * (C * 11 + 11 * 22 + 22 * 33 + 33 * 33) + 11 + 22 + 33 + 33
    feed_forward = 2 * D_MODEL * D_INNER + D_INNER + D_MODEL
    encoder = 4 * D_MODEL**2 + feed_forward + 4 * D_MODEL
    decoder = 8 * D_MODEL**2 + feed_forward + 6 * D_MODEL
    alone = (49 + Q + 2) * D_MODEL + 34 * 5 + 33 * 34 + 34 * 4
    count = sum(p.numel() for p in model.parameters())
    assert count == stem + encoder + 2 * D_MODEL + 2 * decoder + 2 * D_MODEL + alone
    without = small(n_encoder=0)
    assert count - sum(p.numel() for p in without.parameters()) == encoder + 2 * D_MODEL
    assert without(canvas).boxes.shape == (B, Q, 4)


def test_boxes_lie_on_the_canvas_and_every_parameter_learns():
    model, batch = small(c_in=1), detr.truth(objects(torch.Generator("cpu").manual_seed(0), B, size=SIDE))
    found = model(to_device(batch.canvas))
    assert found.boxes.min() > 0 and found.boxes.max() < 1
    detr.loss(model, to_device(batch)).backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


def test_permuted_queries_permute_what_is_found():
    model, canvas, order = small(), torch.randn(B, C, SIDE, SIDE), torch.tensor([3, 0, 4, 1, 2])
    before = model(canvas, weights=True)
    with torch.no_grad():
        model.queries.copy_(model.queries[order])
    after = model(canvas, weights=True)
    torch.testing.assert_close(after.logits, before.logits[:, order])
    torch.testing.assert_close(after.boxes, before.boxes[:, order])
    torch.testing.assert_close(after.weights, before.weights[:, :, order])


def test_weights_are_those_of_the_last_layers_cross_attention():
    model, canvas = small(n_decoder=1), torch.randn(2, C, SIDE, SIDE)
    weights = model(canvas, weights=True).weights
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, HEADS, Q))
    layer, memory = model.decoder.layers[0], model.memory(canvas)
    x = model.queries.expand(2, -1, -1)
    y = layer.norms[0](x)
    x = x + layer.attention(y, y, y).output
    query = layer.cross_attention.w_query(layer.norms[1](x)).unflatten(-1, (HEADS, -1)).transpose(1, 2)
    key = layer.cross_attention.w_key(memory).unflatten(-1, (HEADS, -1)).transpose(1, 2)
    torch.testing.assert_close(weights, attend(query, key, key).weights)


def test_maps_put_the_weights_on_the_grid_row_by_row():
    weights = torch.arange(2 * 3 * 5 * 77.0).reshape(2, 3, 5, 77)
    heads, mean = detr.maps(weights, (7, 11))
    assert heads.shape == (2, 3, 5, 7, 11) and mean.shape == (2, 5, 7, 11)
    assert heads[1, 2, 4, 6, 3] == weights[1, 2, 4, 6 * 11 + 3]
    torch.testing.assert_close(mean[1, 4, 6, 3], weights[1, :, 4, 69].mean())


def test_cells_lie_row_by_row_and_see_seventeen_pixels():
    model = small(n_encoder=0)
    canvas = torch.randn(1, C, SIDE, SIDE, requires_grad=True)
    model.memory(canvas)[0, 2 * 7 + 3].square().sum().backward()  # third row, fourth column
    rows, columns = canvas.grad[0].abs().sum(0).nonzero(as_tuple=True)
    assert (int(columns.min() + columns.max()), int(rows.min() + rows.max())) == (2 * 12, 2 * 8)
    assert columns.max() - columns.min() + 1 == 17 == rows.max() - rows.min() + 1


def test_iou_giou_corners_and_truth_by_hand():
    one = torch.tensor([[0.0, 0, 2, 2]]).expand(4, 4)
    other = torch.tensor([[0.0, 0, 2, 2], [1, 1, 3, 3], [3, 0, 4, 2], [0, 0, 1, 2]])
    torch.testing.assert_close(detr.iou(one, other), torch.tensor([1, 1 / 7, 0, 1 / 2]))
    # around both: 4, 9, 8 and 4; in neither: 0, 2, 2 and 0
    torch.testing.assert_close(detr.giou(one, other), torch.tensor([1, 1 / 7 - 2 / 9, -2 / 8, 1 / 2]))
    torch.testing.assert_close(detr.giou(one, other), detr.giou(other, one))
    empty = torch.zeros(4)
    assert detr.iou(empty, empty) == 0 and detr.giou(empty, empty).isfinite()
    torch.testing.assert_close(detr.corners(torch.tensor([5.0, 3, 4, 2])), torch.tensor([3.0, 2, 7, 4]))
    scenes = to_device(objects(torch.Generator("cpu").manual_seed(1), B, size=29))
    canvas, kind, boxes = detr.truth(scenes)
    assert canvas.shape == (B, 1, 29, 29) and torch.equal(kind, scenes.kind)
    torch.testing.assert_close(detr.corners(boxes) * 29, scenes.box.float())


def test_the_matching_is_the_cheapest_of_all_assignments():
    for _ in range(5):
        found, (kind, boxes) = guesses(), listed()
        chosen, table = detr.match(found, kind, boxes), detr.costs(found, kind, boxes)
        for image in range(B):
            n = int((kind[image] != NONE).sum())
            assert chosen[image, n:].tolist() == [NONE] * (MOST - n)
            prices = {
                way: sum(table[image, q, o].item() for o, q in enumerate(way))
                for way in permutations(range(Q), n)
            }
            assert tuple(chosen[image, :n].tolist()) == min(prices, key=prices.get)


def test_costs_by_hand():
    logits = torch.tensor([[[0.5, 0.2, 0.2, 0.05, 0.05], [0.1, 0.1, 0.1, 0.1, 0.6]]]).log()
    found = Detections(logits, torch.tensor([[[0.5, 0.5, 0.2, 0.2], [0.1, 0.1, 0.1, 0.1]]]))
    kind, boxes = torch.tensor([[1, NONE]]), torch.tensor([[[0.6, 0.5, 0.2, 0.2], [0.0, 0, 0, 0]]])
    # half of each box is shared: IoU 1/3, and nothing around both lies in neither
    wanted = 5 * 0.1 - 2 / 3 - 4 * 0.2
    assert detr.costs(found, kind, boxes)[0, 0, 0].item() == pytest.approx(wanted, abs=1e-5)
    query = detr.match(found, kind, boxes)
    kinds = -(math.log(0.2) + 0.7 * math.log(0.6)) / 1.7
    made = detr.set_loss(found, kind, boxes, query)
    assert made.item() == pytest.approx(4 * kinds + 5 * 0.1 + 2 * (1 - 1 / 3), abs=1e-5)


def test_the_order_of_the_list_changes_nothing_unless_the_matching_is_missing():
    found, (kind, boxes) = guesses(), listed()
    for order in permutations(range(MOST)):
        turned = kind[:, list(order)], boxes[:, list(order)]
        torch.testing.assert_close(value(found, *turned), value(found, kind, boxes))
    full, its = kind[3::4], boxes[3::4]  # three objects each
    found = Detections(found.logits[3::4], found.boxes[3::4])
    one = detr.set_loss(found, full, its, detr.in_order(full))
    other = detr.set_loss(found, full.flip(1), its.flip(1), detr.in_order(full.flip(1)))
    assert not torch.isclose(one, other)


def test_a_box_that_belongs_to_no_object_changes_nothing():
    found, (kind, boxes) = guesses(), listed()
    poisoned = boxes.masked_fill((kind == NONE)[..., None], 1e9)
    torch.testing.assert_close(value(found, kind, poisoned), value(found, kind, boxes))


def test_images_without_objects_teach_no_object_alone():
    found = Detections(torch.randn(B, Q, 5, requires_grad=True), torch.rand(B, Q, 4, requires_grad=True))
    kind, boxes = torch.full((B, MOST), NONE), torch.zeros(B, MOST, 4)
    assert detr.match(found, kind, boxes).eq(NONE).all()
    made = value(found, kind, boxes)
    torch.testing.assert_close(made, -4 * found.logits.log_softmax(-1)[..., -1].mean())
    made.backward()
    assert found.logits.grad[..., -1].max() < 0 and found.boxes.grad.abs().sum() == 0


def test_the_loss_sums_the_layers_each_matched_for_itself():
    batch = to_device(detr.truth(objects(torch.Generator("cpu").manual_seed(2), B, size=SIDE)))
    model = small(c_in=1)
    found = model(batch.canvas)
    layers = [found.earlier[0], found]
    wanted = sum(value(one, batch.kind, batch.boxes) for one in layers)
    torch.testing.assert_close(detr.loss(model, batch), wanted)
    query = detr.in_order(batch.kind)
    wanted = sum(detr.set_loss(one, batch.kind, batch.boxes, query) for one in layers)
    torch.testing.assert_close(detr.loss(model, batch, matched=False), wanted)


def told(kinds, shares, boxes):
    """A Detections for one image: the likeliest kind of each query and its probability; boxes as centres and
    sizes."""
    table = torch.full((len(kinds), 5), 0.0)
    for row, kind, share in zip(table, kinds, shares, strict=True):
        row[:] = (1 - share) / 4
        row[kind] = share
    return Detections(table.log()[None], torch.tensor([boxes]))


def test_detections_are_sorted_kinds_above_the_threshold():
    found = told([1, 4, 3, 0], [0.6, 0.9, 0.8, 0.45], [[0.5, 0.5, 0.25, 0.5]] * 4)
    (image,) = detr.detections(found)
    assert [(one.kind, one.query) for one in image] == [(3, 2), (1, 0)]  # "no object" is never detected
    assert [one.confidence for one in image] == pytest.approx([0.8, 0.6])
    assert image[0].box == pytest.approx((9, 6, 15, 18))
    assert detr.detections(found, size=48)[0][0].box == pytest.approx((18, 12, 30, 36))
    assert [one.query for one in detr.detections(found, threshold=0.4)[0]] == [2, 0, 3]
    assert detr.detections(found, threshold=1) == [[]]


def test_hits_and_score_by_hand():
    kind = torch.tensor([0, 0, 2, NONE])
    box = torch.tensor([[0, 0, 10, 10], [12, 0, 22, 10], [0, 12, 10, 22], [0, 0, 0, 0]])
    detected = [
        Detection(0, 0.9, (0.0, 0.0, 10.0, 8.0), 4),  # right, IoU 0.8
        Detection(0, 0.8, (0.0, 0.0, 10.0, 10.0), 1),  # a second box on the same object
        Detection(1, 0.7, (12.0, 0.0, 22.0, 10.0), 0),  # the wrong kind
        Detection(2, 0.6, (0.0, 12.0, 10.0, 17.0), 2),  # right: IoU just 0.5
        Detection(0, 0.55, (12.0, 0.0, 22.0, 4.9), 3),  # too small
    ]
    assert detr.hits(detected, kind, box) == [Hit(0, 0, pytest.approx(0.8)), Hit(3, 2, 0.5)]
    kinds = torch.stack([kind, torch.tensor([3, NONE, NONE, NONE])])
    scenes = Objects(torch.zeros(2, 24, 24), kinds, box.expand(2, -1, -1))
    made = detr.score([detected, []], scenes)
    assert made == pytest.approx((2 / 4, 2 / 5, 0.65))


def test_a_detection_takes_the_object_that_it_overlaps_most():
    kind, box = torch.tensor([1, 1]), torch.tensor([[0, 0, 10, 10], [2, 0, 12, 10]])
    both = [Detection(1, 0.9, (2.0, 0.0, 12.0, 10.0), 0), Detection(1, 0.8, (2.0, 0.0, 12.0, 10.0), 1)]
    assert [hit.object for hit in detr.hits(both, kind, box)] == [1, 0]


@pytest.mark.parametrize("options, sentence", [
    ({"side": 26}, "side must be a multiple of 4 pixels, the width of a cell, got 26"),
    ({"n_queries": 0}, "n_queries must be a whole number >= 1, got 0"), ({"n_encoder": -1}, "n_layers"),
    ({"d_model": 46, "n_heads": 4}, "d_model"),
])  # fmt: skip
def test_sizes_that_cannot_be_get_a_sentence(no_shape_hook, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        Detr(**options)


@pytest.mark.parametrize("canvas", [torch.zeros(3, 24, 24), [[0]]])
def test_another_canvas_gets_a_sentence(no_shape_hook, canvas):
    with pytest.raises(
        ValueError, match=r"canvas must have the shape \(batch, 1, 24, 24\), got .*canvas\[:, None\]"
    ):
        Detr()(canvas)
