"""The recogniser: radius means radius, filler means nothing, and its loss is the field's."""

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.chapters.c09_truncated_attention import phonemes
from lesson_lib.chapters.c09_truncated_attention.phonemes import FILLER, PhonemeRecogniser
from lesson_lib.chapters.c09_truncated_attention.speech import N_MELS, Utterance
from lesson_lib.device import device, to_device
from lesson_lib.masks import padding, window

B, N, D, H, LABELS = 3, 71, 10, 5, 7
RADII = [0, 2, 13, 100, None]


def make(radius, n_layers=2, **options):
    torch.manual_seed(0)
    model = PhonemeRecogniser(
        LABELS, radius=radius, **{"d_model": D, "n_heads": H, "n_layers": n_layers} | options
    )
    return model.to(device()).eval()


def spoken(*lengths):
    return [
        Utterance(torch.randn(n, N_MELS), torch.arange(n) % LABELS, text="so", voice="m1") for n in lengths
    ]


@pytest.mark.parametrize("radius", [2, 13])
def test_a_window_is_the_whole_network_with_a_band_for_a_mask(radius):
    truncated, whole = make(radius), make(None)
    whole.load_state_dict(truncated.state_dict())
    frames = torch.randn(B, N, N_MELS)
    masked = whole.encoder(whole.listen(frames), mask=window(N, radius).to(device())).output
    assert_close(truncated(frames), whole.name(masked), atol=1e-5, rtol=0)
    assert (truncated(frames) - whole(frames)).abs().max() > 1e-4


@pytest.mark.parametrize("radius, n_layers", [(0, 2), (2, 1), (2, 3), (13, 2)])
def test_a_frame_hears_layers_times_radius_and_no_further(radius, n_layers):
    frames = torch.randn(1, N, N_MELS, requires_grad=True)
    make(radius, n_layers)(frames)[0, N // 2].sum().backward()
    heard = frames.grad[0].abs().sum(-1)
    reach = radius * n_layers
    far = (torch.arange(N, device=device()) - N // 2).abs() > reach
    assert (heard[far] == 0).all() and (heard[~far] > 0).all()


@pytest.mark.parametrize("radius", RADII)
def test_filler_means_nothing(radius):
    model, frames = make(radius), torch.randn(2, N, N_MELS)
    lengths = torch.tensor([N, 40])
    poisoned = frames.clone()
    poisoned[1, 40:] = 1e4
    mask = padding(lengths, N)
    assert_close(model(poisoned, mask=mask)[1, :40], model(frames[1:, :40])[0], atol=1e-5, rtol=0)
    assert_close(model(poisoned, mask=mask)[0], model(frames[:1])[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("radius", [2, 13])
def test_where_a_frame_stands_does_not_matter(radius):
    """Frames in the middle, with their neighbours, give the same logits wherever they are: positions are
    relative."""
    model, frames = make(radius), torch.randn(1, N, N_MELS)
    reach = 2 * radius
    moved = torch.cat([torch.randn(1, 11, N_MELS), frames], 1)
    assert_close(model(frames)[:, reach:], model(moved)[:, 11 + reach :], atol=1e-4, rtol=0)


@pytest.mark.parametrize("radius", RADII)
def test_looking_changes_nothing(radius):
    model, frames = make(radius), torch.randn(B, N, N_MELS)
    logits, tables = model.look(frames)
    assert_close(logits, model(frames), atol=1e-5, rtol=0)
    assert len(tables) == 2
    for table in tables:
        assert table.shape == (B, H, N, N)
        assert_close(table.sum(-1), torch.ones(B, H, N))
        if radius is not None:
            assert (table[..., ~window(N, radius).to(device())] == 0).all()


def test_parameters_as_the_docstring_counts_them():
    for radius in RADII:
        model = make(radius)
        encoder = sum(p.numel() for p in model.encoder.parameters())
        assert encoder == 2 * (4 * D**2 + 2 * D * 2 * D + 2 * D + 5 * D) + 2 * D
        assert sum(p.numel() for p in model.parameters()) == (N_MELS + 1) * D + encoder + (D + 1) * LABELS


def test_utterances_side_by_side():
    some = spoken(5, 3)
    frames, labels, mask = phonemes.batch(some)
    assert frames.shape == (2, 5, N_MELS) and torch.equal(frames[1, :3], some[1].frames)
    assert (frames[1, 3:] == 0).all()
    assert labels.tolist() == [[0, 1, 2, 3, 4], [0, 1, 2, FILLER, FILLER]]
    assert mask.int().tolist() == [[[1, 1, 1, 1, 1]], [[1, 1, 1, 0, 0]]]


@pytest.mark.parametrize("radius", [2, None])
def test_the_loss_is_the_mean_over_real_frames(radius):
    model, some = make(radius), to_device(spoken(7, 3))
    each = []
    for frames, labels, _, _ in some:
        log = model(frames[None])[0].log_softmax(-1)
        each += (-log.gather(1, labels[:, None])[:, 0]).tolist()
    assert_close(phonemes.loss(model, phonemes.batch(some)).item(), sum(each) / 10)


@pytest.mark.parametrize("options, words", [
    ({"n_layers": 0}, "n_layers must be a whole number >= 1, got 0"),
    ({"n_heads": None}, "n_heads must be a whole number >= 1, got None"),
    ({"d_model": "wide"}, "d_model must be a whole number >= 1, got 'wide'"),
    ({"d_model": 15}, "multiple of 2 · n_heads = 10, as rotary positions turn pairs, got 15"),
])  # fmt: skip
def test_bad_sizes_get_a_sentence(no_shape_hook, options, words):
    with pytest.raises(ValueError, match=words):
        make(2, **options)


@pytest.mark.parametrize("frames, error, words", [
    ([[1.0]], TypeError, "frames must be a tensor of floats, got list; speech.log_mel makes them"),
    (torch.zeros(2, N_MELS, device="cpu"), ValueError, r"\(2, 40\); a single utterance is frames\[None\]"),
    (torch.zeros(1, 0, N_MELS, device="cpu"), ValueError, "got \\(1, 0, 40\\)"),
])  # fmt: skip
def test_other_frames_get_a_sentence(no_shape_hook, frames, error, words):
    model = make(2)
    for ask in (model, model.look):
        with pytest.raises(error, match=words):
            ask(frames)
