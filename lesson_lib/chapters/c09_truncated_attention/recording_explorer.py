"""A recording, frame by frame: what the recogniser hears in it, and where each of its layers looks; the
shipped one, or the learner's own."""

import html
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import ipywidgets
import torch
from torch import Tensor

from lesson_lib.chapters.c09_truncated_attention import speech
from lesson_lib.chapters.c09_truncated_attention.phonemes import PhonemeRecogniser
from lesson_lib.chapters.c09_truncated_attention.speech_figures import HOP_S, attention, segments
from lesson_lib.charts.picture import CURVES, Picture
from lesson_lib.widgets.explorer import Explorer, pixels

LONGEST_S = 12  # more frames could not be told apart on the screen
WIDTH, LEFT = 640, 64  # screen pixels
LINE, LETTER = 16, 7.5  # height of a line of phonemes, width of a letter
# heights of the spectrogram and of a layer's weights, and the room above these
PICTURE, BARS, SPACE = (
    110,
    52,
    12,
)

STYLE = """
.ll-told {min-height:2.7em}
.ll-heard text {font:12px system-ui, sans-serif; fill:#444}
.ll-heard .ll-sound {font-size:13px; fill:#111}
.ll-heard .ll-here {font-weight:700; fill:#A63D00}
"""


class Heard(NamedTuple):
    """A recording as the model hears it: frames, the probability of each phoneme in each frame, each layer's
    weights (mean of its heads)."""

    name: str
    frames: Tensor
    chances: Tensor
    weights: list[Tensor]


class RecordingExplorer(Explorer):
    """A recording and what is heard in it: walk from frame to frame, see the guessed phonemes and where each
    layer looks.

    `model` is a trained PhonemeRecogniser, `names` are the phonemes of its labels, such as
    `speech.LABELS`. It starts with the recording that is shipped; a WAV file of one's own can be put in,
    up to 12 s. What is no such file gets a sentence, and what was there before stays. The model listens once
    to each recording; moving along the frames only draws. Raises TypeError where the model is another,
    ValueError where it has not as many labels as there are names.
    """

    most_states = 300

    def __init__(self, model: PhonemeRecogniser, names: Sequence[str]) -> None:
        if not isinstance(model, PhonemeRecogniser):
            raise TypeError(
                f"model must be a trained phonemes.PhonemeRecogniser, got {type(model).__name__}; take"
                " the one that experiments.phonemes.train returns"
            )
        if isinstance(names, str) or not all(isinstance(name, str) for name in names or [0]):
            raise TypeError(f"names must be a list of phonemes, got {names!r:.60}; take speech.LABELS")
        self.model, self.names, self.trouble = model, list(names), ""
        self.upload = ipywidgets.FileUpload(accept=".wav", multiple=False, description="my WAV file")
        self.back = ipywidgets.Button(description="the shipped one")
        self.audio = ipywidgets.Audio(
            value=b"", format="wav", autoplay=False, loop=False, layout=ipywidgets.Layout(width="300px")
        )
        self.frame = ipywidgets.IntSlider(
            0, min=0, max=0, description="frame", style={"description_width": "50px"},
            layout=ipywidgets.Layout(width="640px")
        )  # fmt: skip
        self._open(speech.example().read_bytes(), "the shipped recording")
        if self.trouble:
            raise ValueError(f"the shipped recording cannot be shown: {self.trouble}")
        super().__init__([self.upload, self.back, self.audio, self.frame])
        self.upload.observe(self._uploaded, names="value")
        self.back.on_click(self._shipped)
        self.watch(self.frame)

    def guesses(self) -> Tensor:
        """The likeliest phoneme of each frame, as a label."""
        return self.heard.chances.argmax(-1)

    def words(self) -> str:
        """What is heard in the chosen frame, and how far each layer looks for it, as a sentence."""
        at = self.frame.value
        chances, labels = self.heard.chances[at].topk(min(3, len(self.names)))
        pairs = zip(labels.tolist(), chances.tolist(), strict=True)
        first, *more = [f"{self.names[label]} ({chance:.2f})" for label, chance in pairs if chance >= 0.01]
        told = f", then {', '.join(more)}" if more else ""
        near = " and ".join(
            f"{_half(table[at], at)} frames in layer {k}" for k, table in enumerate(self.heard.weights, 1)
        )
        return f"Frame {at}, at {HOP_S * at:.2f} s: {first}{told}. Half of the weight lies within {near}."

    def draw(self) -> str:
        alert = f"<p role='alert'>{html.escape(self.trouble)}</p>" if self.trouble else ""
        reach = self.model.radius
        heard = (
            ""
            if reach is None
            else " Between the dashed lines: all that this guess can have heard, radius times layers."
        )
        return (
            f"<style>{STYLE}</style>{alert}<p><b>{html.escape(self.heard.name)}</b>, {len(self.heard.frames)}"
            " frames of 10 ms</p><p role='status'"
            f" class='ll-told'>{html.escape(self.words())}</p>{self._svg()}<p>Top: the guessed phonemes, a"
            " stretch of equal guesses written once (_ is silence and is left out). Then the frames, low"
            " pitch at the bottom, bright where it is loud. Below: the weights with which the frame marked"
            f" in orange looks at all frames, the mean over heads.{heard}</p>"
        )

    def still(self) -> Picture:
        at = self.frame.value
        rows = {f"layer {k}": table[at] for k, table in enumerate(self.heard.weights, 1)}
        picture = attention(self.heard.frames, rows, at, title=self.heard.name)
        return Picture(picture.figure, f"The recording explorer as it starts. {picture.alt}", picture.caption)

    def _uploaded(self, change: dict) -> None:
        files = change["new"]
        if isinstance(files, dict):  # of ipywidgets 7, which hosted notebooks have
            files = [{"name": name, **file} for name, file in files.items()]
        if files:
            self._open(bytes(files[-1]["content"]), str(files[-1]["name"]))
            self.refresh()

    def _shipped(self, _button: ipywidgets.Button) -> None:
        self.upload.set_trait("value", type(self.upload.value)())  # so that the same file may be put in again
        self._open(speech.example().read_bytes(), "the shipped recording")
        self.refresh()

    def _open(self, wav: bytes, name: str) -> None:
        """Listen to a WAV file; `trouble` says why that cannot be, or is empty."""
        try:
            samples = speech.read_wav(wav)
            if len(samples) > LONGEST_S * speech.RATE:
                raise ValueError(
                    f"the recording is {len(samples) / speech.RATE:.1f} s long, at most {LONGEST_S} s can be"
                    " shown; cut out a sentence"
                )
            frames = speech.log_mel(samples)
        except ValueError as error:
            self.trouble = f"{Path(name).name}: {error}"
            return
        self.trouble, self.heard = "", _listen(self.model, frames, Path(name).name)
        if self.heard.chances.shape[-1] != len(self.names):
            raise ValueError(
                f"names must hold a phoneme for each of the model's {self.heard.chances.shape[-1]} labels,"
                f" got {len(self.names)}; take those that it was trained with, speech.LABELS"
            )
        low, high = torch.quantile(frames.flatten(), torch.tensor([0.02, 0.995], device="cpu")).tolist()
        self._image = pixels(((frames.mT.flip(0) - low) / max(high - low, 1e-6)).clamp(0, 1))
        self._sounds = self._written(segments(self.guesses(), self.names))
        self.audio.value = wav
        self.frame.max = len(frames) - 1
        self.frame.value = len(frames) // 2

    def _written(self, stretches: Sequence[tuple[int, int, str]]) -> str:
        """The phonemes as text, on the first of three lines on which there is room."""
        parts, free = [], [-LEFT] * 3
        for start, stop, name in stretches:
            x, half = self._across((start + stop) / 2), LETTER * len(name) / 2 + 1
            line = next((k for k in range(3) if free[k] <= x - half), None)
            if name == speech.LABELS[0] or line is None:
                continue
            free[line] = x + half
            sound = html.escape(name)
            times = f"{HOP_S * start:.2f} to {HOP_S * stop:.2f} s"
            parts.append(
                f'<text class="ll-sound" x="{x:.1f}" y="{LINE * (line + 1) - 4}"'
                f' text-anchor="middle">{sound}<title>{sound}, {times}</title></text>'
            )
        return "".join(parts)

    def _across(self, frame: float) -> float:
        """Screen pixels from the left of the spectrogram to a time in frames."""
        return WIDTH * frame / len(self.heard.frames)

    def _svg(self) -> str:
        n, at = len(self.heard.frames), self.frame.value
        top, here = 3 * LINE, self._across(at + 0.5)
        parts = [
            self._sounds,
            (
                f'<image href="{self._image}" x="0" y="{top}" width="{WIDTH}" height="{PICTURE}"'
                ' preserveAspectRatio="none" style="image-rendering:pixelated"/>'
            ),
            f'<text x="-6" y="{LINE * 2 - 4}" text-anchor="end">guessed</text>',
            f'<text x="-6" y="{top + PICTURE / 2 + 4}" text-anchor="end">pitch</text>',
        ]
        foot = top + PICTURE
        for k, table in enumerate(self.heard.weights, 1):
            parts.append(self._bars(table[at], foot + SPACE, f"layer {k}"))
            foot += SPACE + BARS
        if self.model.radius is not None:
            reach = self.model.radius * len(self.heard.weights)
            for edge in (max(0, at - reach), min(n, at + reach + 1)):
                x = self._across(edge)
                parts.append(f'<path d="M{x:.1f} {top}V{foot}" stroke="{CURVES[1]}" stroke-dasharray="4 3"/>')
        parts.append(
            f'<path class="ll-at" d="M{here:.1f} {top}V{foot}" stroke="{CURVES[1]}" stroke-width="2"/>'
        )
        every = next(step for step in (0.2, 0.5, 1, 2, 5) if HOP_S * n / step <= 10)
        for tick in range(int(HOP_S * n / every) + 1):
            x = self._across(tick * every / HOP_S)
            parts.append(f'<path d="M{x:.1f} {foot}v4" stroke="#444"/>')
            parts.append(f'<text x="{x:.1f}" y="{foot + 17}" text-anchor="middle">{tick * every:g}</text>')
        parts.append(f'<text x="{WIDTH / 2}" y="{foot + 33}" text-anchor="middle">seconds</text>')
        wide = LEFT + WIDTH + 14
        return (
            '<svg class="ll-heard" role="img" aria-label="the frames of the recording with the guessed'
            f' phonemes above, and below where the chosen frame looks" viewBox="{-LEFT} 0 {wide} {foot + 38}"'
            f' width="{wide}" style="display:block;max-width:100%;height:auto">{"".join(parts)}</svg>'
        )

    def _bars(self, row: Tensor, top: float, name: str) -> str:
        """One layer's weights as steps over time; the largest fills the height and is written beside it."""
        most = row.max().item()
        foot = top + BARS
        heights = (BARS * row / max(most, 1e-9)).tolist()
        steps = "".join(f"V{foot - height:.1f}H{self._across(j + 1):.1f}" for j, height in enumerate(heights))
        return (
            f'<path class="ll-weights" d="M0 {foot}{steps}V{foot}Z" fill="{CURVES[0]}"/><path d="M0'
            f' {foot}h{WIDTH}" stroke="#bbb"/><text x="-6" y="{foot - 4}"'
            f' text-anchor="end">{name}</text><text x="-6" y="{top + 9}" text-anchor="end">{most:.2f}</text>'
        )


@torch.inference_mode()
def _listen(model: PhonemeRecogniser, frames: Tensor, name: str) -> Heard:
    """What the model hears in a recording, on the CPU."""
    model.eval()
    looked = model.look(frames[None].to(next(model.parameters()).device))
    return Heard(
        name,
        frames,
        looked.logits[0].float().log_softmax(-1).exp().cpu(),
        [table[0].float().mean(0).cpu() for table in looked.weights],
    )


def _half(row: Tensor, at: int) -> int:
    """The smallest distance within which half of a frame's weight lies.

    >>> _half(torch.tensor([0.1, 0.2, 0.4, 0.3]), 2)
    1
    """
    far = (torch.arange(len(row), device=row.device) - at).abs()
    within = torch.zeros(len(row), device=row.device).index_add(0, far, row).cumsum(0)
    return int((within >= 0.5 * row.sum()).nonzero()[0, 0])
