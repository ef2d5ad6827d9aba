"""SAGAN's block by plain matrices, gamma at 0, generator, discriminator and losses by hand."""

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.chapters.c07_attention_vs_cnn import sagan
from lesson_lib.device import to_device

B, C, H, W, D_K = 2, 7, 3, 5, 11


def block(gamma=0.7, d_k=D_K):
    layer = sagan.SelfAttention2d(C, d_k=d_k)
    with torch.no_grad():
        layer.gamma.fill_(gamma)
    return layer


def by_matrices(layer, x):
    """The paper's formula for one map, places as columns: y = x + gamma · value · beta, beta a column for
    each query."""
    x = x.flatten(1)  # (c, n)

    def times(conv):
        return conv.weight[:, :, 0, 0] @ x + conv.bias[:, None]

    s = times(layer.key).T @ times(layer.query)  # s_ij = key_i · query_j, without a root
    beta = s.exp() / s.exp().sum(0)
    return x + layer.gamma * (times(layer.value) @ beta), beta.T


def test_attention_is_the_papers_formula_by_matrices():
    layer, x = block(), torch.randn(B, C, H, W)
    output, weights = layer(x, weights=True)
    for k in range(B):
        expected, beta = by_matrices(layer, x[k])
        assert_close(output[k].flatten(1), expected)
        assert_close(weights[k], beta)
    assert_close(weights.sum(-1), torch.ones(B, H * W))
    again = layer(x)
    assert_close(again.output, output)
    assert again.weights is None


def test_gamma_starts_at_0_leaves_x_exactly_and_has_a_gradient():
    layer, x = sagan.SelfAttention2d(C), torch.randn(B, C, H, W)
    output, _ = layer(x)
    assert layer.gamma.item() == 0 and torch.equal(output, x)
    output.square().sum().backward()
    assert layer.gamma.grad.abs() > 0.1
    assert layer.value.weight.grad.abs().max() == 0  # at gamma = 0 nothing else learns yet


def test_the_far_corner_is_seen_by_attention_and_not_by_the_small_convolution():
    x = torch.randn(1, C, H, 2 * sagan.REACH + 1)
    changed = x.clone()
    changed[..., 1, 0] += 3
    for layer, far in (
        (block(), True),
        (sagan.Convolved(C, wide=False), False),
        (sagan.Convolved(C, wide=True), False),
    ):
        with torch.no_grad():
            layer.gamma.fill_(1.0)
        moved = (layer(x).output - layer(changed).output).abs().amax((0, 1))
        assert (moved[1, -1] > 1e-6).item() == far
    assert moved[1, sagan.REACH] > 1e-4 and moved[1, sagan.REACH + 1] == 0 and moved[0].max() == 0


def test_parameters_by_hand_and_alike():
    layers = sagan.SelfAttention2d(32), sagan.Convolved(32, wide=False), sagan.Convolved(32, wide=True)
    counts = [sum(p.numel() for p in layer.parameters()) for layer in layers]
    assert counts[0] == 2 * 4 * 33 + 32 * 33 + 1 == 1321
    assert counts[1] == 9 * 32 * 4 + 4 + 4 * 32 + 32 + 1 == 1317
    assert counts[2] == 17 * 32 + 32 * 33 + 1 == 1601
    assert sagan.SelfAttention2d(5).query.out_channels == 1  # an eighth of 5 is 0


@pytest.mark.parametrize("middle", sagan.MIDDLES)
def test_networks_have_their_shapes_and_begin_without_their_middle(middle):
    generator = to_device(sagan.Generator(middle, channels=6, d_z=3)).eval()
    made = generator(to_device(sagan.noise(B, torch.Generator().manual_seed(0), d_z=3)), weights=True)
    assert made.canvas.shape == (B, *sagan.SIZE) and 0 <= made.canvas.min() and made.canvas.max() <= 1
    assert (made.weights is not None) == (middle == "attention")
    discriminator = to_device(sagan.Discriminator(middle, channels=6)).eval()
    scores = discriminator(made.canvas)
    assert scores.shape == (B,)
    for network in (generator, discriminator):
        assert (network.middle is None) == (middle == "nothing")
        network.middle = None
    assert torch.equal(
        generator(to_device(sagan.noise(B, torch.Generator().manual_seed(0), d_z=3))).canvas, made.canvas
    )
    assert torch.equal(discriminator(made.canvas), scores)


def test_every_layer_has_a_largest_singular_value_of_about_1():
    network = to_device(sagan.Discriminator("attention", channels=6))
    for _ in range(50):
        network(torch.rand(5, *sagan.SIZE))
    layers = [m for m in network.eval().modules() if isinstance(m, (torch.nn.Conv2d, torch.nn.Linear))]
    assert len(layers) == 7
    for layer in layers:
        assert torch.linalg.matrix_norm(layer.weight.flatten(1), 2).item() == pytest.approx(1, abs=0.02)


def test_without_a_middle_no_far_noise_reaches_a_pixel():
    """Own noise: the outermost columns share no place of noise; with attention (gamma not 0) they do."""
    z = to_device(sagan.noise(1, torch.Generator().manual_seed(0)))
    changed = z.clone()
    changed[..., -1] += 5
    for middle, far in (("nothing", False), ("attention", True)):
        generator = to_device(sagan.Generator(middle)).eval()
        if generator.middle is not None:
            with torch.no_grad():
                generator.middle.gamma.fill_(1.0)
        moved = (generator(z).canvas - generator(changed).canvas).abs().amax((0, 1))
        assert moved[-1] > 1e-5 and (moved[0] > 1e-7).item() == far


def test_the_discriminator_sees_how_much_a_batch_differs():
    network = to_device(sagan.Discriminator("nothing")).eval()
    canvas = torch.rand(3, *sagan.SIZE)
    alone, together = network(canvas[:1]), network(canvas)[:1]
    assert (alone - together).abs() > 1e-5
    assert_close(network(canvas[:1].repeat(3, 1, 1)), alone.repeat(3))


def test_shared_noise_is_the_same_everywhere_and_own_noise_is_not():
    own, shared = (sagan.noise(5, torch.Generator().manual_seed(0), shared=s, d_z=3) for s in (False, True))
    assert own.shape == shared.shape == (5, 3, *sagan.START) and own.device.type == "cpu"
    assert torch.equal(shared, shared[..., :1, :1].expand_as(shared))
    assert own.flatten(-2).std(-1).min() > 0.1


def test_losses_by_hand():
    real, made = torch.tensor([2.0, -1.0, 0.5]), torch.tensor([-3.0, 1.0])
    assert sagan.discriminator_loss(real, made).item() == pytest.approx((0 + 2 + 0.5) / 3 + (0 + 2) / 2)
    assert sagan.generator_loss(made).item() == 1.0


def test_maps_are_rows_of_the_weights():
    generator = to_device(sagan.Generator("attention"))
    z = sagan.noise(3, torch.Generator().manual_seed(0))
    drawn = sagan.maps(generator, z, [(1, 2), (3, 11)])
    made = generator(to_device(z), weights=True)
    assert drawn.weights.shape == (3, 2, *sagan.GRID)
    assert_close(drawn.weights[:, 0].flatten(1), made.weights[:, 1 * 12 + 2].detach().cpu())
    assert_close(drawn.weights[:, 1].flatten(1), made.weights[:, 47].detach().cpu())
    assert_close(drawn.canvas, made.canvas.detach().cpu())


@pytest.mark.parametrize("call, sentence", [
    (lambda: sagan.SelfAttention2d(0), "channels must be a whole number >= 1, got 0"),
    (lambda: sagan.Generator("Attention"), "middle must be one of nothing, attention, convolution"),
    (lambda: sagan.Discriminator(channels="6"), "channels must be a whole number >= 1, got '6'"),
    (lambda: sagan.maps(sagan.Generator(), torch.zeros(1, 8, 2, 6), [(4, 0)]),
     r"a place is \(row, column\) on a grid of 4 x 12, counted from 0, got \(4, 0\)"),
])  # fmt: skip
def test_errors_are_sentences_with_a_repair(no_shape_hook, call, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        call()
