"""The spoken sentences, the frames, and what happens to a recording that is none."""

import io
import math
import wave

import numpy
import pytest
import torch

from lesson_lib.chapters.c09_truncated_attention import speech, speech_maker


def wav(samples, *, rate=speech.RATE, channels=1, width=2) -> bytes:
    """The bytes of a WAV file with these whole numbers."""
    held = io.BytesIO()
    with wave.open(held, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        raw = numpy.asarray(samples, "<i4").view(numpy.uint8).reshape(-1, 4)
        file.writeframes(raw[:, :width].tobytes())
    return held.getvalue()


@pytest.mark.parametrize("split, count", [("training", 216), ("validation", 36), ("test", 45)])
def test_a_split_holds_whole_sentences(split, count):
    utterances = speech.load(split)
    assert len(utterances) == count
    for one in utterances:
        assert one.frames.shape == (len(one.labels), speech.N_MELS) and one.frames.isfinite().all()
        assert one.labels.min() >= 0 and one.labels.max() < len(speech.LABELS)
        assert one.labels[0] == one.labels[-1] == 0, "silence at both ends"
        assert 1.5 * 100 < len(one.labels) < 4 * 100


def test_no_voice_and_no_sentence_of_the_test_was_heard_before():
    splits = {split: speech.load(split) for split in speech.SPLITS}
    for key in ("voice", "text"):
        found = {split: {getattr(one, key) for one in rows} for split, rows in splits.items()}
        assert not found["test"] & (found["training"] | found["validation"])
        assert not found["validation"] & found["training"]
    assert len({one.voice for one in splits["training"]}) == 12


def test_every_phoneme_is_trained_on_and_each_has_its_own_name():
    heard = torch.cat([one.labels for one in speech.load("training")]).unique()
    assert heard.tolist() == list(range(len(speech.LABELS)))
    assert len(set(speech.LABELS)) == len(speech.LABELS)


def test_the_shipped_recording_gives_the_stored_frames():
    frames = speech.log_mel(speech.read_wav(speech.example()))
    stored = speech.load("test")[0].frames
    assert frames.shape == stored.shape
    assert (frames - stored).abs().mean() < 0.02, "rounded to 1/32, and the file to 16 bits"


def test_a_tone_lights_its_band():
    t = torch.arange(speech.RATE) / speech.RATE
    tips = [700 * (10 ** (math.log10(1 + 8000 / 700) * (band + 1) / 41) - 1) for band in range(speech.N_MELS)]
    for band in (7, 23, 37):
        frames = speech.log_mel(torch.sin(2 * math.pi * tips[band] * t))
        assert frames[50].argmax() == band


def test_loudness_does_not_matter_and_silence_gives_no_nan():
    samples = torch.randn(3000)
    torch.testing.assert_close(speech.log_mel(samples), speech.log_mel(samples / 50), atol=1e-4, rtol=0)
    frames = speech.log_mel(torch.zeros(1600))
    assert frames.isfinite().all() and frames.unique().numel() == 1


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_every_width_of_whole_numbers_is_read(width):
    wanted = torch.linspace(-0.9, 0.9, 1601, device="cpu")
    numbers = (wanted.double() * 2 ** (8 * width - 1)).round().long() + (128 if width == 1 else 0)
    found = speech.read_wav(wav(numbers.numpy(), width=width))
    torch.testing.assert_close(found, wanted, atol=2.0 ** (1 - 8 * min(width, 3)), rtol=0)


def test_two_channels_become_their_mean():
    left, right = numpy.full(1000, 3000), numpy.full(1000, -1000)
    found = speech.read_wav(wav(numpy.stack([left, right], 1).ravel(), channels=2))
    torch.testing.assert_close(found, torch.full((1000,), 1000 / 2**15, device="cpu"))


@pytest.mark.parametrize("recording, told", [
    ("nowhere.wav", "there is no file nowhere.wav"), (b"", "no WAV file"),
    (b"ID3 this is something else", "no WAV file.*save it as WAV, 16 bit, 16000 Hz"),
    (wav([])[:30], "no WAV file"), (wav([]), "holds 0 samples"),
    (wav([1] * 399), "holds 399 samples, less than one frame"),
    (wav([1] * 5000, rate=44_100), "44100 samples per second, and 16000 are needed.*ffmpeg"),
])  # fmt: skip
def test_what_is_no_recording_gets_a_sentence(recording, told):
    with pytest.raises(ValueError, match=told):
        speech.read_wav(recording)


def test_a_folder_is_no_recording(tmp_path):
    with pytest.raises(ValueError, match="no WAV file"):
        speech.read_wav(tmp_path)


def test_a_recording_of_hours_is_refused(monkeypatch):
    monkeypatch.setattr(speech, "LONGEST_S", 1)
    with pytest.raises(ValueError, match="longer than"):
        speech.read_wav(wav([1] * (speech.RATE + 1)))


@pytest.mark.parametrize("wrong", [None, 3, [0.0, 1.0]])
def test_read_wav_refuses_what_is_no_path(wrong, no_shape_hook):
    with pytest.raises(TypeError, match="must be the path of a WAV file"):
        speech.read_wav(wrong)


class Tone:
    """An engine that says "ab" by a tone: a from 0.2 s on, b from 0.3 s on, until 0.4 s."""

    rate = 20_000

    def speak(self, text, voice, pace, pitch):
        t = numpy.arange(8000) / self.rate
        return numpy.sin(2000 * t).astype(numpy.float32), [(4000, "ˈa"), (6000, "b"), (8000, "")]


def test_the_maker_labels_frames_by_their_centres_and_adds_noise_below_the_voice(no_shape_hook):
    samples, labels = speech_maker.utterance(Tone(), "ab", "m1", 150, 50, numpy.random.default_rng(0))
    assert len(samples) == 0.6 * speech.RATE
    assert labels == ["_"] * 30 + ["a"] * 10 + ["b"] * 10 + ["_"] * 11, "a tenth of a second of silence first"
    samples, _ = speech_maker.utterance(Tone(), "ab", "m1", 150, 50, numpy.random.default_rng(0))
    noise, voice = samples[:1600].std(), samples[1600:8000].std()
    assert 0.02 < noise / voice < 0.4
