"""Two ways to see a picture: patches are a strided convolution; distances and gradients by hand."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from lesson_lib.chapters.c07_attention_vs_cnn import vit
from lesson_lib.device import to_device

B, C, SIDE, PATCH, CLASSES, D_MODEL, HEADS, LAYERS, D_INNER = 2, 3, 15, 5, 7, 22, 11, 2, 13


def transformer():
    torch.manual_seed(0)
    sizes = {"d_model": D_MODEL, "n_layers": LAYERS, "n_heads": HEADS, "d_inner": D_INNER}
    return to_device(vit.VisionTransformer(SIDE, PATCH, CLASSES, c_in=C, **sizes)).eval()


def convnet(channels=(5, 11, 13), c_in=C):
    torch.manual_seed(0)
    return to_device(vit.ConvNet(CLASSES, channels, c_in=c_in)).eval()


def test_patches_by_hand_and_by_a_strided_convolution():
    x = torch.arange(24.0).reshape(1, 2, 2, 6)
    assert vit.patchify(x, 2)[0].tolist() == [
        [0, 1, 6, 7, 12, 13, 18, 19],
        [2, 3, 8, 9, 14, 15, 20, 21],
        [4, 5, 10, 11, 16, 17, 22, 23],
    ]
    x, conv = torch.randn(B, C, 10, 15), nn.Conv2d(C, D_MODEL, PATCH, stride=PATCH)
    by_hand = vit.patchify(x, PATCH) @ conv.weight.flatten(1).T + conv.bias
    assert by_hand.shape == (B, 6, D_MODEL)
    assert_close(conv(x).flatten(2).mT, by_hand)


def test_parameters_by_hand():
    layer = 4 * D_MODEL**2 + 2 * D_MODEL * D_INNER + D_INNER + 5 * D_MODEL
    patches, table = (C * PATCH**2 + 1) * D_MODEL, (9 + 2) * D_MODEL
    wanted = patches + table + LAYERS * layer + 2 * D_MODEL + (D_MODEL + 1) * CLASSES
    assert sum(p.numel() for p in transformer().parameters()) == wanted
    wanted = 9 * (3 * 5 + 5 * 11 + 11 * 13) + 2 * (5 + 11 + 13) + 14 * CLASSES
    assert sum(p.numel() for p in convnet().parameters()) == wanted


def test_looking_changes_no_logit_and_brings_each_layers_weights():
    model, x = transformer(), torch.randn(B, C, SIDE, SIDE)
    looked = model.look(x)
    assert_close(looked.logits, model(x))
    assert [w.shape for w in looked.weights] == [(B, HEADS, 10, 10)] * LAYERS
    for weights in looked.weights:
        assert_close(weights.sum(-1), torch.ones(B, HEADS, 10))


def test_the_class_token_comes_first_and_positions_are_added():
    model, x = transformer(), torch.randn(B, C, SIDE, SIDE)
    with torch.no_grad():
        model.class_token.normal_()
        first = model.stack(x, weights=True).stream[0]
    assert_close(first[:, 0], (model.class_token + model.positions.table[0]).expand(B, -1))
    patches = vit.patchify(x, PATCH) @ model.patches.weight.flatten(1).T + model.patches.bias
    assert_close(first[:, 1:], patches + model.positions.table[1:])


def test_the_logits_are_read_from_the_class_token_alone():
    model, x = transformer(), torch.randn(B, C, SIDE, SIDE)
    assert_close(model(x), model.classify(model.stack(x).output[:, 0]))
    table = model.stack(x, weights=True).stream[-2][:, 1:]  # what the class token reads in the last layer
    assert model.features(x).shape == (B, D_MODEL, 3, 3)
    assert_close(model.features(x)[:, :, 1, 2], table[:, 5])


@pytest.mark.parametrize("channels, size", [((5,), 15), ((5, 11), 7), ((5, 11, 13), 3), ((5, 11, 13, 2), 3)])
def test_the_convnet_halves_twice_at_most_and_takes_the_mean(channels, size):
    model, x = convnet(channels), torch.randn(B, C, 15, 15)
    assert model.features(x).shape == (B, channels[-1], size, size)
    assert_close(model(x), model.classify(model.features(x).mean((2, 3))))


def test_distances_by_hand():
    # a grid of 1 x 3 patches of 5 pixels: distances 0, 5, 10
    own = torch.eye(3)
    even = torch.full((3, 3), 1 / 3)
    ends = torch.tensor([[0.0, 0, 1], [0.5, 0, 0.5], [1, 0, 0]])
    weights = torch.stack([own, even, ends])[None]
    assert_close(vit.attention_distance(weights, (1, 3), 5), torch.tensor([0.0, 40 / 9, 25 / 3]))
    assert_close(vit.attention_distance(weights, (3, 1), 5), torch.tensor([0.0, 40 / 9, 25 / 3]))
    weights = torch.zeros(1, 1, 6, 6)
    weights[..., 3] = 0.25  # of 2 x 3 patches: the second row's first; the class token took the rest
    wanted = 7 * (1 + 2**0.5 + 5**0.5 + 0 + 1 + 2) / 6
    assert_close(vit.attention_distance(weights, (2, 3), 7), torch.tensor([wanted]))


@pytest.mark.parametrize("make", [transformer, convnet])
def test_what_is_seen_is_the_norm_of_the_jacobian(make):
    model, x = make(), torch.randn(C, SIDE, SIDE)
    jacobian = torch.autograd.functional.jacobian(lambda y: model.features(y[None])[0, :, 1, 2], x)
    assert_close(vit.seen(model, x, (1, 2)), jacobian.square().sum((0, 1)).sqrt(), rtol=1e-4, atol=1e-5)


def test_seeing_leaves_the_model_as_it_was():
    model, x = convnet().train(), torch.randn(C, SIDE, SIDE)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    vit.seen(model, x, (0, 0))
    with pytest.raises(ValueError, match="place must be"):
        vit.seen(model, x, (3, 0))
    assert model.training and all(p.grad is None for p in model.parameters())
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_the_loss_and_what_is_right_by_hand():
    class Fixed(nn.Module):
        def forward(self, x):
            return x.flatten(1)

    x = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]])[:, None, None]
    label = torch.tensor([0, 1, 1])
    assert vit.right(Fixed(), x, label).tolist() == [True, True, False]
    wanted = torch.tensor([1 + torch.e**-2, 1 + torch.e**-1, 1 + torch.e**3]).log().mean()
    assert_close(vit.loss(Fixed(), (x, label)), wanted)


GOOD = torch.zeros(B, C, SIDE, SIDE)


@pytest.mark.parametrize("call, said", [
    (lambda: vit.VisionTransformer(24, 5, 2), "side must be a multiple of patch, got 24 and 5"),
    (lambda: transformer()(torch.zeros(B, C, 15, 20)), r"\(b, 3, 15, 15\), got \(2, 3, 15, 20\)"),
    (lambda: vit.patchify(GOOD[0], 5), r"got \(3, 15, 15\)"),
    (lambda: vit.seen(transformer(), GOOD[0], "middle"), "got 'middle'"),
])  # fmt: skip
def test_what_does_not_fit_gets_a_sentence(no_shape_hook, call, said):
    with pytest.raises((ValueError, TypeError), match=said):
        call()
