"""Makes speech.npz and speech.wav from the sentences in speech.txt:

    python -m lesson_lib.chapters.c09_truncated_attention.speech_maker LIBRARY DATA

LIBRARY is espeak-ng's shared library (libespeak-ng.so), DATA its folder espeak-ng-data; both come with any
installation of espeak-ng (made with 1.52). Nobody else needs it: the course reads the files, and never the
engine, whose licence is the GPL. The engine says at which sample each phoneme begins. Noise of 10 to 30 dB
below the voice is added, another for each sentence.
"""

import ctypes
import sys
import wave
from pathlib import Path

import numpy
import scipy.signal
import torch

from lesson_lib.chapters.c09_truncated_attention import speech

HERE = Path(__file__).parent
VOICES = {  # split -> voices
    "training": ("m1", "m3", "m4", "m5", "m6", "m7", "m8", "f1", "f2", "f4", "f5", "klatt"),
    "validation": ("f3",),
    "test": ("m2",),
}
SHARES = {"training": 216, "validation": 36, "test": 45}  # sentences of each split, 297 in all
PACE = (140, 155, 170, 185, 200)  # words per minute, in turn
PITCH = (40, 45, 50, 55, 60, 65, 35)  # of 100, in turn
STEPS = 32  # stored frames are rounded to 1/32, about a fifth of the float16 file's size
PHONEME_EVENT, END_OF_LIST = 7, 0


class Event(ctypes.Structure):
    """espeak_EVENT of speak_lib.h."""

    _fields_ = (
        ("type", ctypes.c_int), ("identifier", ctypes.c_uint), ("text", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio", ctypes.c_int), ("sample", ctypes.c_int), ("user", ctypes.c_void_p),
        ("name", ctypes.c_char * 8),
    )  # fmt: skip


class Engine:
    """espeak-ng in this process: speaks a sentence, and says when each phoneme begins."""

    def __init__(self, library: str, data: str) -> None:
        self.engine = ctypes.CDLL(library)
        self.samples: list[numpy.ndarray] = []
        self.begins: list[tuple[int, str]] = []
        kind = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(Event)
        )
        self.heard = kind(self._heard)  # must live as long as the engine
        synchronous, phoneme_events, in_ipa = 2, 1, 2
        self.rate = self.engine.espeak_Initialize(synchronous, 0, data.encode(), phoneme_events | in_ipa)
        self.engine.espeak_SetSynthCallback(self.heard)

    def _heard(self, samples, count, events) -> int:
        if samples and count:
            self.samples.append(numpy.ctypeslib.as_array(samples, (count,)).copy())
        i = 0
        while events[i].type != END_OF_LIST:
            if events[i].type == PHONEME_EVENT:
                self.begins.append((events[i].sample, events[i].name.decode()))
            i += 1
        return 0

    def speak(
        self, text: str, voice: str, pace: int, pitch: int
    ) -> tuple[numpy.ndarray, list[tuple[int, str]]]:
        """Samples at `self.rate`, -1 to 1, and [(first sample, phoneme)]."""
        self.samples, self.begins = [], []
        if self.engine.espeak_SetVoiceByName(f"gmw/en-US+{voice}".encode()) and (
            self.engine.espeak_SetVoiceByName(f"en-us+{voice}".encode())
        ):
            raise ValueError(f"espeak-ng has no voice en-us+{voice}")
        for number, value in ((1, pace), (3, pitch)):
            self.engine.espeak_SetParameter(number, value, 0)
        self.engine.espeak_ng_SetRandSeed(1)  # a breathy voice is partly noise
        data = text.encode()
        self.engine.espeak_Synth(data, len(data) + 1, 0, 1, 0, 1, None, None)
        self.engine.espeak_Synchronize()
        return numpy.concatenate(self.samples).astype(numpy.float32) / 2**15, self.begins


def utterance(
    engine: Engine, text: str, voice: str, pace: int, pitch: int, noise: numpy.random.Generator
) -> tuple[numpy.ndarray, list[str]]:
    """Samples at speech.RATE with noise, and the phoneme of each frame."""
    spoken, begins = engine.speak(text, voice, pace, pitch)
    quiet = numpy.zeros(engine.rate // 10, numpy.float32)  # a tenth of a second before and behind
    begins = [(0, "_"), *((begin + len(quiet), name.strip("ˈˌ") or "_") for begin, name in begins)]
    spoken = numpy.concatenate([quiet, spoken, quiet])
    samples = scipy.signal.resample_poly(spoken, speech.RATE, engine.rate).astype(numpy.float32)
    level = numpy.sqrt((samples**2).mean()) * 10 ** (-noise.uniform(10, 30) / 20)
    samples += level * noise.standard_normal(len(samples)).astype(numpy.float32)
    centres = numpy.arange(1 + len(samples) // speech.HOP) * speech.HOP * engine.rate / speech.RATE
    at = numpy.searchsorted([begin for begin, _ in begins], centres, "right") - 1
    return samples, [begins[i][1] for i in at]


def main(library: str, data: str) -> None:
    """Write both files beside this one."""
    engine, noise = Engine(library, data), numpy.random.default_rng(0)
    sentences = (HERE / "speech.txt").read_text().splitlines()
    order = numpy.random.default_rng(1).permutation(len(sentences))
    rows, split_of = [], [split for split, count in SHARES.items() for _ in range(count)]
    for turn, (at, split) in enumerate(zip(order, split_of, strict=True)):
        voice = VOICES[split][turn % len(VOICES[split])]
        samples, labels = utterance(
            engine, sentences[at], voice, PACE[turn % len(PACE)], PITCH[turn % len(PITCH)], noise
        )
        frames = speech.log_mel(torch.from_numpy(samples)).numpy()
        rows.append((split, voice, sentences[at], (frames * STEPS).round() / STEPS, labels, samples))
    if unknown := {name for row in rows for name in row[4]} ^ set(speech.LABELS):
        raise ValueError(f"speech.LABELS and what was spoken differ by {sorted(unknown)}")
    numpy.savez_compressed(
        HERE / "speech.npz", splits=[row[0] for row in rows], voices=[row[1] for row in rows],
        texts=[row[2] for row in rows], frames_in=[len(row[4]) for row in rows],
        frames=numpy.concatenate([row[3] for row in rows]).astype(numpy.float16),
        labels=numpy.array([speech.LABELS.index(name) for row in rows for name in row[4]], numpy.uint8),
    )  # fmt: skip
    shown = next(row for row in rows if row[0] == "test")
    with wave.open(str(HERE / "speech.wav"), "wb") as file:
        file.setnchannels(1), file.setsampwidth(2), file.setframerate(speech.RATE)
        file.writeframes((shown[5] / abs(shown[5]).max() * 0.9 * 2**15).astype("<i2").tobytes())
    print(
        f"{len(rows)} sentences, {sum(len(row[4]) for row in rows):,} frames, {len(speech.LABELS)} phonemes"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
