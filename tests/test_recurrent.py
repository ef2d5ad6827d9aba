"""The two decoders and their encoder: against torch's own nets, against numbers by hand, and with poison in
the padding."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from lesson_lib.recurrent import (
    KINDS,
    AttentionDecoder,
    FixedVectorDecoder,
    Recurrent,
    TwoWayEncoder,
    mirrored,
)
from lesson_lib.scores import Additive, scaled_dot

B, M, N, D_TOKEN, D_HALF, D_STATE = 3, 7, 5, 11, 13, 17  # distinct primes: a swapped axis cannot pass by luck
D_MEMORY = 2 * D_HALF
DECODERS = [FixedVectorDecoder, AttentionDecoder]


def some_input():
    return torch.randn(B, M, D_TOKEN), torch.tensor([7, 2, 5])


def some_encoded():
    x, lengths = some_input()
    return TwoWayEncoder(D_TOKEN, D_HALF)(x, lengths), lengths


def test_only_real_tokens_are_mirrored_and_twice_is_once_back():
    x = torch.arange(5.0).expand(2, 5)[..., None]
    turned = mirrored(x, torch.tensor([5, 2]))
    assert turned[..., 0].tolist() == [[4, 3, 2, 1, 0], [1, 0, 4, 3, 2]]
    x, lengths = some_input()
    assert_close(mirrored(mirrored(x, lengths), lengths), x)


def test_the_encoder_is_torchs_bidirectional_gru_on_packed_input():
    ours = TwoWayEncoder(D_TOKEN, D_HALF)
    theirs = nn.GRU(D_TOKEN, D_HALF, batch_first=True, bidirectional=True)
    weights = dict(ours.forwards.named_parameters())
    weights |= {f"{name}_reverse": p for name, p in ours.backwards.named_parameters()}
    theirs.load_state_dict(weights)
    x, lengths = some_input()
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
    states, last = theirs(packed)
    states, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True)
    encoded = ours(x, lengths)
    for row, length in enumerate(lengths.tolist()):
        assert_close(encoded.states[row, :length], states[row, :length])
        assert encoded.mask[row, 0].tolist() == [j < length for j in range(M)]
    assert_close(encoded.ends, torch.cat([last[0], last[1]], -1))


@pytest.mark.parametrize("make", DECODERS)
def test_padding_changes_nothing(make):
    x, lengths = some_input()
    encoder, decoder = TwoWayEncoder(D_TOKEN, D_HALF), make(D_TOKEN, D_MEMORY, D_STATE)
    before = torch.randn(B, N, D_TOKEN)
    poisoned = x.clone()
    poisoned[1, 2:] = poisoned[2, 5:] = 1e9
    one, two = (decoder(encoder(inputs, lengths), before) for inputs in (x, poisoned))
    assert torch.isfinite(two.output).all()
    assert_close(one.output, two.output)
    alone = decoder(encoder(x[1:2, :2], lengths[1:2]), before[1:2])
    assert_close(alone.output, one.output[1:2])


@pytest.mark.parametrize("make", DECODERS)
def test_all_tokens_at_once_are_the_same_as_one_after_the_other(make):
    encoded, _ = some_encoded()
    decoder, before = make(D_TOKEN, D_MEMORY, D_STATE), torch.randn(B, N, D_TOKEN)
    outputs, weights = decoder(encoded, before)
    state = decoder.start(encoded)
    for i in range(N):
        step = decoder.step(encoded, before[:, i], state)
        state = step.state
        assert_close(step.output, outputs[:, i])
        assert_close(step.output[:, :D_STATE], state)
        assert_close(step.output[:, -D_TOKEN:], before[:, i])
        assert (step.weights is None) == (weights is None) == (make is FixedVectorDecoder)
        if weights is not None:
            assert_close(step.weights, weights[:, i])
    assert outputs.shape == (B, N, decoder.d_output) == (B, N, D_STATE + D_MEMORY + D_TOKEN)


def test_the_fixed_vector_is_fed_at_every_step_and_makes_the_first_state():
    encoded, _ = some_encoded()
    decoder, before = FixedVectorDecoder(D_TOKEN, D_MEMORY, D_STATE), torch.randn(B, N, D_TOKEN)
    c = encoded.ends
    state = torch.tanh(c @ decoder.first.weight.T + decoder.first.bias)
    cell = nn.GRUCell(D_MEMORY + D_TOKEN, D_STATE)
    cell.load_state_dict({k.removesuffix("_l0"): v for k, v in decoder.core.state_dict().items()})
    for i in range(N):
        state = cell(torch.cat([c, before[:, i]], -1), state)
        assert_close(decoder(encoded, before).output[:, i], torch.cat([state, c, before[:, i]], -1))


def test_attention_looks_first_and_moves_then():
    """One step, written out without `attend`: the state before asks, the context enters the GRU."""
    encoded, lengths = some_encoded()
    score = Additive(D_STATE, D_MEMORY, 19)
    decoder = AttentionDecoder(D_TOKEN, D_MEMORY, D_STATE, score=score)
    x, h = torch.randn(B, D_TOKEN), encoded.states
    state = torch.tanh(h[:, 0, D_HALF:] @ decoder.first.weight.T + decoder.first.bias)
    assert_close(decoder.start(encoded), state)
    made = decoder.step(encoded, x, state)
    for row, length in enumerate(lengths.tolist()):
        energies = []
        for j in range(length):
            hidden = score.w_query.weight @ state[row] + score.w_key.weight @ h[row, j]
            energies.append(score.v @ torch.tanh(hidden))
        shares = torch.stack(energies).exp() / torch.stack(energies).exp().sum()
        context = (shares[:, None] * h[row, :length]).sum(0)
        moved = decoder.core(torch.cat([context, x[row]])[None], state[row][None])[0]
        assert_close(made.weights[row, :length], shares)
        assert made.weights[row, length:].eq(0).all()
        assert_close(made.output[row], torch.cat([moved, context, x[row]]))


def test_another_score_takes_the_additive_ones_place():
    encoded, lengths = some_encoded()
    decoder = AttentionDecoder(D_TOKEN, D_MEMORY, D_MEMORY, score=scaled_dot)
    state = decoder.start(encoded)
    weights = decoder.step(encoded, torch.randn(B, D_TOKEN), state).weights
    scores = (encoded.states @ state[..., None])[..., 0] / D_MEMORY**0.5
    for row, length in enumerate(lengths.tolist()):
        assert_close(weights[row, :length], scores[row, :length].exp() / scores[row, :length].exp().sum())
    assert not [name for name, _ in decoder.named_parameters() if name.startswith("score")]
    narrow = AttentionDecoder(D_TOKEN, D_MEMORY, D_STATE, score=scaled_dot)
    with pytest.raises(ValueError, match="a dot product needs equal widths"):
        narrow(encoded, torch.randn(B, N, D_TOKEN))


def test_every_parameter_learns():
    for make in DECODERS:
        x, lengths = some_input()
        encoder, decoder = TwoWayEncoder(D_TOKEN, D_HALF), make(D_TOKEN, D_MEMORY, D_STATE)
        decoder(encoder(x, lengths), torch.randn(B, N, D_TOKEN)).output.square().sum().backward()
        for name, p in [*encoder.named_parameters(), *decoder.named_parameters()]:
            assert p.grad is not None and torch.isfinite(p.grad).all() and p.grad.abs().sum() > 0, name


@pytest.mark.parametrize(
    "lengths, error, words",
    [
        (torch.tensor([7, 0, 5]), ValueError, r"a number >= 1 for each of the 3 inputs, got \[7, 0, 5\]"),
        (torch.tensor([7, 2]), ValueError, r"for each of the 3 inputs, got \[7, 2\]"),
        (torch.tensor([7, 8, 5]), ValueError, "lengths must lie between 0 and n = 7 tokens"),
        (torch.tensor([7.0, 2.0, 5.0]), TypeError, "lengths must hold whole numbers"),
        (None, TypeError, "lengths must be an integer tensor"),
        ([7, 2, 5], TypeError, "lengths must be an integer tensor"),
    ],
    ids=["zero", "too few", "too long", "float", "None", "list"],
)
def test_lengths_that_do_not_fit_get_a_sentence(lengths, error, words, no_shape_hook):
    with pytest.raises(error, match=words):
        TwoWayEncoder(D_TOKEN, D_HALF)(torch.randn(B, M, D_TOKEN), lengths)


@pytest.mark.parametrize("width", [0, -3, 2.0, None, "4", True])
def test_widths_that_do_not_fit_get_a_sentence(width, no_shape_hook):
    for make, name in (
        (TwoWayEncoder, "d_half"),
        (FixedVectorDecoder, "d_memory"),
        (AttentionDecoder, "d_memory"),
    ):
        arguments = (3, width) if make is TwoWayEncoder else (3, width, 5)
        with pytest.raises(ValueError, match=f"{name} must be a whole number >= 1, got {width!r}"):
            make(*arguments)


@pytest.mark.parametrize(
    "x", [torch.randn(B, D_TOKEN), torch.randn(B, M, 2), torch.randn(B, 0, D_TOKEN), None, "abc"]
)
def test_tokens_of_another_shape_get_a_sentence(x, no_shape_hook):
    encoded, lengths = some_encoded()
    with pytest.raises(ValueError, match=r"x must be a tensor \(b, tokens, d_token = 11\)"):
        TwoWayEncoder(D_TOKEN, D_HALF)(x, lengths)
    for make in DECODERS:
        with pytest.raises(ValueError, match=r"x must be a tensor \(b, tokens, d_token = 11\)"):
            make(D_TOKEN, D_MEMORY, D_STATE)(encoded, x)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("both_ways", [False, True])
def test_the_steps_by_formula_are_torchs_layer(kind, both_ways):
    layer, x = Recurrent(kind, D_TOKEN, D_STATE, both_ways=both_ways), torch.randn(B, N, D_TOKEN)
    states = layer.states(x)
    assert_close(torch.stack([state.hidden for state in states], 1), layer(x), atol=1e-5, rtol=1e-5)
    width = 2 * D_STATE if both_ways else D_STATE
    assert all((state.cell is None) == (kind != "LSTM") for state in states) and layer(x).shape == (
        B,
        N,
        width,
    )


def test_the_cells_of_an_lstm_are_torchs():
    layer, x = Recurrent("LSTM", D_TOKEN, D_STATE), torch.randn(B, N, D_TOKEN)
    _, (hidden, cell) = layer.layer(x)
    last = layer.states(x)[-1]
    assert_close(last.hidden, hidden[0], atol=1e-5, rtol=1e-5)
    assert_close(last.cell, cell[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: Recurrent("rnn", 3, 5), "kind must be one of RNN, GRU, LSTM, got 'rnn'"),
        (lambda: Recurrent("RNN", 0, 5), "d_token must be a whole number >= 1, got 0"),
        (lambda: Recurrent("GRU", 3, 5)(torch.zeros(1, 0, 3)), "at least one token"),
        (lambda: Recurrent("GRU", 3, 5)(torch.zeros(1, 2, 4)), "d_token = 3"),
        (lambda: Recurrent("GRU", 3, 5).states(None), "got NoneType"),
    ],
)
def test_recurrent_layers_refuse_with_a_sentence(no_shape_hook, make, words):
    with pytest.raises(ValueError, match=words):
        make()
