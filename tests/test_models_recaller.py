"""Networks that recall: each reads where it says, from what it may know, and gradients are what they are
called."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from lesson_lib.data import recall
from lesson_lib.data.recall import CHARACTERS, Recall
from lesson_lib.device import device, to_device
from lesson_lib.masks import window
from lesson_lib.models import recaller
from lesson_lib.models.recaller import SYSTEMS, Recaller
from lesson_lib.positions import sinusoidal

B, N, D, H = 3, 7, 10, 5


def make(system):
    return Recaller(system, d_model=D, n_heads=H).to(device()).eval()


def batch(distance=N - 1, before=0, count=B):
    return to_device(recall.draw(torch.Generator("cpu").manual_seed(0), count, distance, before=before))


def ends(model, tokens):
    """The left-to-right state behind each token, and the right-to-left one, step by step."""
    x, (left, right) = model.embed(tokens), ([], [])
    state = None
    for token in x.unbind(1):
        state = model.core.step(token, state)
        left.append(state.hidden)
    state = None
    for token in x.flip(1).unbind(1):
        state = model.core.step(token, state, backwards=True)
        right.insert(0, state.hidden)
    return left, right


@pytest.mark.parametrize("system", ["RNN", "LSTM"])
def test_recurrent_networks_are_read_behind_the_last_token(system):
    model, tokens = make(system), batch().tokens
    state = None
    for token in model.embed(tokens).unbind(1):
        state = model.core.step(token, state)
    assert_close(model(tokens), model.read(state.hidden))


def test_a_network_of_both_ways_is_read_at_the_last_token():
    model, tokens = make("BiRNN"), batch().tokens
    left, right = ends(model, tokens)
    assert_close(model(tokens), model.read(torch.cat([left[-1], right[-1]], -1)))


def test_or_where_each_half_ends():
    model, tokens = make("BiRNN, both ends"), batch().tokens
    left, right = ends(model, tokens)
    assert_close(model(tokens), model.read(torch.cat([left[-1], right[0]], -1)))


def test_attention_is_a_layer_on_sinusoidal_positions_read_at_the_last_token():
    model, tokens = make("attention"), batch().tokens
    seen = model.core(model.embed(tokens) + sinusoidal(N, D, device=device())).output
    assert_close(model(tokens), model.read(seen[:, -1]))
    swapped = tokens[:, [0, 2, 1, 3, 4, 5, 6]]
    assert not torch.equal(swapped, tokens)
    assert (model(swapped) - model(tokens)).abs().max() > 1e-5  # it knows the order


def windowed(radius, n_layers=1):
    """A model with a window, and the one with the same weights that sees all."""
    models = [
        Recaller("attention", d_model=D, n_heads=H, n_layers=n_layers, radius=r) for r in (radius, None)
    ]
    models[1].load_state_dict(models[0].state_dict())
    return [model.to(device()).eval() for model in models]


def test_layers_and_a_window_that_holds_all_is_none():
    near, all_seen = windowed(N, n_layers=3)
    tokens = batch().tokens
    assert sum(p.numel() for p in near.core.parameters()) * 2 == sum(
        p.numel() for p in near.below.parameters()
    )
    assert_close(near(tokens), all_seen(tokens))


def test_a_window_hides_what_is_further_than_the_radius_in_every_layer():
    near, all_seen = windowed(2, n_layers=2)
    tokens = batch().tokens
    assert (near(tokens) - all_seen(tokens)).abs().max() > 1e-4
    y = all_seen.embed(tokens) + sinusoidal(N, D, device=device())
    for layer in (*all_seen.below, all_seen.core):
        y = layer(y, mask=window(N, 2)).output
    assert_close(near(tokens), near.read(y[:, -1]))
    seen = near.look(tokens)
    assert_close(seen.logits, near(tokens))
    assert (seen.weights[..., : N - 3] == 0).all() and (seen.weights[..., N - 3 :] > 0).all()


@pytest.mark.parametrize("radius, n_layers", [(2, 1), (2, 3), (0, 4)])
def test_exactly_nothing_comes_from_beyond_radius_times_layers(radius, n_layers):
    model, reach = windowed(radius, n_layers)[0].double(), radius * n_layers
    found = recaller.gradients(model, batch(distance=10)).flip(0)  # from the question backwards
    assert (found[: reach + 1] > 0).all() and (found[reach + 1 :] == 0).all()


@pytest.mark.parametrize("n_layers", [0, 2.0])
def test_a_number_of_layers_that_is_none_gets_a_sentence(no_shape_hook, n_layers):
    with pytest.raises(ValueError, match="n_layers must be a whole number >= 1, got "):
        Recaller("attention", n_layers=n_layers)


@pytest.mark.parametrize("radius", [-1, "2"])
def test_a_radius_that_is_none_gets_a_sentence(no_shape_hook, radius):
    with pytest.raises(ValueError, match="radius must be a whole number >= 0"):
        Recaller("attention", radius=radius)


@pytest.mark.parametrize("system, options", [("RNN", {"radius": 4}), ("BiRNN", {"n_layers": 2})])
def test_recurrent_networks_have_no_window(system, options):
    with pytest.raises(
        ValueError, match=f"only attention has a radius and more layers than 1, got '{system}'"
    ):
        Recaller(system, **options)


@pytest.mark.parametrize("system", SYSTEMS)
def test_from_embedded_tokens_and_with_weights_the_logits_are_the_same(system):
    model, tokens = make(system), batch().tokens
    assert_close(model.of_embedded(model.embed(tokens)), model(tokens))
    seen = model.look(tokens)
    assert_close(seen.logits, model(tokens))
    assert (seen.weights is None) == (system != "attention")


def test_where_the_question_looks():
    model, tokens = make("attention"), batch().tokens
    weights = model.look(tokens).weights
    assert weights.shape == (B, H, N)
    assert_close(weights.sum(-1), torch.ones(B, H))
    x = model.embed(tokens) + sinusoidal(N, D, device=device())
    assert_close(weights, model.core(x, weights=True).weights[:, :, -1])


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_gradient_is_the_slope_of_the_right_answers_logit(system):
    """Against differences, in float64: for one sequence, the norm over the slopes in every direction of a
    token's embedding."""
    model, one = make(system).double(), batch(distance=3, count=1)
    x, step = model.embed(one.tokens).detach(), 1e-6
    wanted = torch.zeros(4, dtype=torch.float64)
    for token in range(4):
        for i in range(D):
            moved = torch.zeros_like(x)
            moved[0, token, i] = step
            up, down = (model.of_embedded(x + sign * moved)[0, one.answer[0]] for sign in (1, -1))
            wanted[token] += ((up - down) / (2 * step)).detach() ** 2
    assert_close(recaller.gradients(model, one), wanted.sqrt(), rtol=1e-5, atol=1e-8)


def test_gradients_are_averaged_over_sequences_and_leave_nothing_behind():
    model, some = make("LSTM"), batch()
    with torch.no_grad():  # as in a loop that judges
        found = recaller.gradients(model, some)
    each = [
        recaller.gradients(model, Recall(some.tokens[i : i + 1], some.answer[i : i + 1])) for i in range(B)
    ]
    assert found.shape == (N,) and not found.requires_grad
    assert_close(found, torch.stack(each).mean(0))
    assert all(p.grad is None for p in model.parameters()) and not model.training
    recaller.gradients(model.train(), some)
    assert model.training


def test_not_knowing_costs_log_8():
    model = make("RNN")
    nn.init.zeros_(model.read.weight)
    nn.init.zeros_(model.read.bias)
    assert_close(recaller.loss(model, batch()).item(), math.log(8))
    nn.init.constant_(model.read.bias[2:3], 1e9)
    sure = Recall(torch.zeros(B, N, dtype=torch.long), torch.full((B,), 2))
    assert recaller.loss(model, sure) == 0


def test_an_orthogonal_start_keeps_lengths():
    model = make("RNN")
    recaller.start_to_keep(model, 50)
    U = model.core.layer.weight_hh_l0
    assert_close(U @ U.T, torch.eye(D), rtol=0, atol=1e-5)


def test_gates_that_stay_open():
    model = make("LSTM")
    others = model.core.layer.bias_ih_l0[2 * D :].clone()
    weights = model.core.layer.weight_hh_l0.clone()
    recaller.start_to_keep(model, 50)
    i, f, *_ = (model.core.layer.bias_ih_l0 + model.core.layer.bias_hh_l0).split(D)
    assert_close(i, -f)
    assert 0 <= f.min() < f.max() <= math.log(49)
    assert f.max() > math.log(10)  # some of them last long
    assert torch.equal(model.core.layer.bias_ih_l0[2 * D :], others)
    assert torch.equal(model.core.layer.weight_hh_l0, weights)
    assert all(p.requires_grad for p in model.parameters())


@pytest.mark.parametrize("system", ["GRU", None])
def test_another_system_gets_a_sentence(no_shape_hook, system):
    with pytest.raises(
        ValueError, match="system must be one of RNN, LSTM, BiRNN, BiRNN, both ends, attention, got "
    ):
        Recaller(system)


@pytest.mark.parametrize(
    "tokens, error, words",
    [
        ("Bgda?", TypeError, "tensor of token numbers \\(b, n\\), got str"),
        (torch.zeros(2, 3, device="cpu"), TypeError, "got torch.float32"),
        (torch.zeros(3, dtype=torch.long, device="cpu"), ValueError, "a single sequence is tokens\\[None\\]"),
        (torch.zeros(3, 0, dtype=torch.long, device="cpu"), ValueError, "at least one token, got \\(3, 0\\)"),
        (torch.full((1, 2), len(CHARACTERS), device="cpu"), ValueError, "from 0 to 16, got 17 to 17"),
        (torch.tensor([[0, -1]], device="cpu"), ValueError, "from 0 to 16, got -1 to 0"),
    ],
)  # fmt: skip
def test_other_tokens_get_a_sentence(no_shape_hook, tokens, error, words):
    model = make("RNN")
    for ask in (model, model.look):
        with pytest.raises(error, match=words):
            ask(tokens)
