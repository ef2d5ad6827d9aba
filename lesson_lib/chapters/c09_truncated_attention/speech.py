"""Speech: frames of 10 ms, and for each the sound that was being spoken.

A frame is a row of 40 numbers: how loud 40 bands of pitch are, on a logarithmic scale, in the 25 ms around it
(a log-mel spectrogram). A sound is a *phoneme*, written as in a dictionary; "_" is silence. One second is 100
frames. The sentences were spoken by fourteen voices of a speech synthesiser, at several paces and pitches,
with noise added; `speech_maker.py` made the file. Its voices are English (General American), its phonemes
those of the synthesiser. The voice of the test split is in no other split, nor is that of the validation
split; no sentence is in two splits. Source of the frames: Davis & Mermelstein 1980 (mel bands); of the
voices: espeak-ng.
"""

import functools
import io
import math
import wave
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib import require

RATE = 16_000  # samples per second
HOP = 160  # samples from one frame to the next: 10 ms
WIDTH = 400  # samples that a frame looks at: 25 ms
N_MELS = 40
SPLITS = ("training", "validation", "test")
LABELS = (  # the phonemes, "_" is silence; ː is long, ɹ an r at the end of a vowel
    "_",
    "aɪ", "aɪə", "aɪɚ", "aʊ", "b", "d", "dʒ", "eɪ", "f", "h", "i", "iə", "iː", "j", "k", "l", "m", "n", "n̩",
    "oʊ",
    "p", "s", "t", "tʃ", "uː", "v", "w", "z", "æ", "ð", "ŋ", "ɐ", "ɑː", "ɑːɹ", "ɔ", "ɔɪ", "ɔː", "ɔːɹ", "ə",
    "əl", "ɚ",
    "ɛ", "ɛɹ", "ɜː", "ɡ", "ɪ", "ɪɹ", "ɹ", "ɾ", "ʃ", "ʊ", "ʊɹ", "ʌ", "ʒ", "ʔ", "θ", "ᵻ",
)  # fmt: skip
LONGEST_S = 600
LOUDNESS = 0.05  # root mean square to which a recording is brought before its frames are made
CENTRE, SPREAD = -5.0, 3.0  # of the logarithms, roughly: frames are (log - CENTRE) / SPREAD

_HERE = Path(__file__).parent


class Utterance(NamedTuple):
    """A spoken sentence: its frames, the phoneme of each (a number of `LABELS`), its text, and the name of
    the voice."""

    frames: Float[Tensor, "n 40"]
    labels: Int[Tensor, " n"]
    text: str
    voice: str


@functools.cache
def _file() -> dict[str, Any]:
    with numpy.load(_HERE / "speech.npz") as stored:
        return dict(stored)


def load(split: str) -> list[Utterance]:
    """The utterances of a split, "training", "validation" or "test", on the CPU. Raises ValueError for
    another."""
    require.one_of(SPLITS, split=split)
    stored = _file()
    ends = stored["frames_in"].cumsum()
    frames = torch.from_numpy(stored["frames"]).float()
    labels = torch.from_numpy(stored["labels"]).long()
    return [
        Utterance(frames[end - n : end], labels[end - n : end], str(text), str(voice))
        for n, end, text, voice, belongs in zip(
            stored["frames_in"].tolist(), ends.tolist(), stored["texts"], stored["voices"], stored["splits"],
            strict=True,
        )
        if belongs == split
    ]  # fmt: skip


def log_mel(samples: Float[Tensor, " samples"]) -> Float[Tensor, "n 40"]:
    """The frames of a recording at RATE: n = 1 + samples // HOP, frame t is centred at t · 10 ms.

    The recording is first brought to a common loudness; that is the only thing that a frame knows of the
    others.
    Raises ValueError where there are fewer samples than one frame looks at.
    """
    if not isinstance(samples, Tensor) or samples.ndim != 1 or not samples.is_floating_point():
        got = tuple(samples.shape) if isinstance(samples, Tensor) else type(samples).__name__
        raise TypeError(
            f"samples must be one row of floating-point numbers, as read_wav gives them, got {got}"
        )
    if len(samples) < WIDTH:
        raise ValueError(
            f"samples must be at least {WIDTH} (25 ms), got {len(samples)}; record a whole sentence"
        )
    rms = samples.square().mean().sqrt().clamp_min(1e-8)
    window = torch.hann_window(WIDTH, device=samples.device)
    spectrum = torch.stft(
        samples * (LOUDNESS / rms), 512, HOP, WIDTH, window, pad_mode="constant", return_complex=True
    )
    power = spectrum.abs().square().mT @ _mel_bands().to(samples)
    return (power.clamp_min(1e-6).log() - CENTRE) / SPREAD


@functools.cache
def _mel_bands() -> Float[Tensor, "257 40"]:
    """Triangles over the 257 frequencies of the spectrum; their tips are equally far apart in mel, 2595
    log10(1 + f / 700)."""
    highest = 2595 * math.log10(1 + RATE / 2 / 700)
    tips = 700 * (10 ** (torch.linspace(0, highest, N_MELS + 2, device="cpu") / 2595) - 1)
    frequencies = torch.linspace(0, RATE / 2, 257, device="cpu")[:, None]
    low, tip, high = tips[:-2], tips[1:-1], tips[2:]
    rising, falling = (frequencies - low) / (tip - low), (high - frequencies) / (high - tip)
    return torch.minimum(rising, falling).clamp_min(0)


def read_wav(recording: str | Path | bytes) -> Float[Tensor, " samples"]:
    """The samples of a WAV file, -1 to 1, at RATE; of several channels the mean. `recording` is a path, or
    the file's bytes.

    Raises ValueError, with what to do, where the file is missing, is no WAV of whole numbers, is empty, is
    longer than ten minutes, or has another rate.
    """
    if not isinstance(recording, str | Path | bytes):
        raise TypeError(f"recording must be the path of a WAV file, got {type(recording).__name__}")
    name = "the recording" if isinstance(recording, bytes) else str(recording)
    try:
        with wave.open(
            io.BytesIO(recording) if isinstance(recording, bytes) else str(recording), "rb"
        ) as file:
            rate, channels, width, count = (
                file.getframerate(), file.getnchannels(), file.getsampwidth(), file.getnframes(),
            )  # fmt: skip
            data = file.readframes(min(count, LONGEST_S * rate + 1))
    except FileNotFoundError:
        raise ValueError(f"there is no file {name}; check its name and folder") from None
    except (wave.Error, EOFError, OSError) as error:
        raise ValueError(
            f"{name} is no WAV file that can be read here ({error or 'it ends too early'}); save it as WAV,"
            f" 16 bit, {RATE} Hz"
        ) from None
    if rate != RATE:
        raise ValueError(
            f"{name} has {rate} samples per second, and {RATE} are needed; export it at {RATE} Hz, "
            f"or convert it: ffmpeg -i in.wav -ar {RATE} -ac 1 out.wav"
        )
    if count > LONGEST_S * RATE:
        raise ValueError(f"{name} is longer than {LONGEST_S // 60} minutes; cut a few seconds out of it")
    samples = _whole_numbers(data, width).reshape(-1, channels).mean(-1)
    if len(samples) < WIDTH:
        raise ValueError(
            f"{name} holds {len(samples)} samples, less than one frame ({WIDTH}); record a whole sentence"
        )
    return torch.from_numpy(samples)


def _whole_numbers(data: bytes, width: int) -> numpy.ndarray:
    """Samples of 1 to 4 bytes as numbers from -1 to 1."""
    data = data[: len(data) - len(data) % width]
    if width == 1:  # without a sign, silence is 128
        return (numpy.frombuffer(data, numpy.uint8).astype(numpy.float32) - 128) / 128
    padded = numpy.zeros((len(data) // width, 4), numpy.uint8)
    padded[:, 4 - width :] = numpy.frombuffer(data, numpy.uint8).reshape(-1, width)
    return padded.view("<i4")[:, 0].astype(numpy.float32) / 2**31


def example() -> Path:
    """A WAV file that is shipped: one sentence, by the voice of the test split."""
    return _HERE / "speech.wav"
