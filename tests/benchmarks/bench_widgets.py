"""Slider to picture, in a browser: the median of 20 moves by keyboard for each widget of each lesson.

And without one: what the largest drawings cost the kernel.
"""

import itertools
import statistics

import pytest
import torch

from lesson_lib.chapters.c05_positional_encoding.clocks_explorer import ClockExplorer
from lesson_lib.chapters.c05_positional_encoding.rotation_explorer import RotationExplorer
from lesson_lib.chapters.c07_attention_vs_cnn.pixels_explorer import PixelExplorer
from lesson_lib.chapters.c08_attention_vs_rnn.recall_explorer import DistanceExplorer
from lesson_lib.chapters.c09_truncated_attention import speech
from lesson_lib.chapters.c09_truncated_attention.phonemes import PhonemeRecogniser
from lesson_lib.chapters.c09_truncated_attention.recording_explorer import RecordingExplorer
from lesson_lib.cli import lab as copies
from lesson_lib.data import dates
from lesson_lib.device import device
from lesson_lib.models.recaller import Recaller
from lesson_lib.widgets import AlignmentExplorer
from lesson_lib.widgets.heads import EVERY, HeadExplorer
from lesson_lib.widgets.machine import MachineExplorer
from tests import test_widgets_alignment as translators
from tests import test_widgets_machine as machines
from tests.browser.conftest import in_notebook
from tests.chapters.c08_attention_vs_rnn import test_paths_explorer as paths
from tests.chapters.c09_truncated_attention import test_recording_explorer as recordings
from tests.chapters.c10_graph_attention import test_graph_explorer as graphs
from tests.chapters.c11_efficient_attention import test_scale_explorer as scales

MOVES = 20


def heads(shown: int | str) -> HeadExplorer:
    """As many heads and tokens as are drawn; all of them, or one."""
    widget = HeadExplorer(torch.randn(12, 24, 24).softmax(-1), [f"token {i}" for i in range(24)])
    widget.shown.value = shown
    return widget


def alignment() -> AlignmentExplorer:
    """The longest input."""
    widget = AlignmentExplorer(translators.untrained(), translators.TEXTS)
    widget.text.value = "3. märz 2021; " * 8
    return widget


def machine(layers: int, n_heads: int) -> MachineExplorer:
    """The longest input, and the weights from decoder to encoder."""
    widget = MachineExplorer(machines.Machine(layers, n_heads, n=23), ["3. mar 2021; " * 4])
    widget.part.value = "cross"
    return widget


LARGEST = {
    "a date of 112 characters": alignment,
    "2 layers of 4 heads": lambda: machine(2, 4),
    "6 layers of 8 heads": lambda: machine(6, 8),
    "12 heads of 24 tokens": lambda: heads(EVERY),
    "one of them": lambda: heads(0),
    "8 clocks": lambda: ClockExplorer(16),
    "rotation of width 8": lambda: RotationExplorer(8),
}


def recording() -> RecordingExplorer:
    """Five seconds of speech."""
    widget = RecordingExplorer(PhonemeRecogniser(len(speech.LABELS), radius=15).to(device()), speech.LABELS)
    recordings.put_in(widget, recordings.wav(5))
    return widget


# The control that is moved, and to where, again and again.
MOVED = {
    "tokens of the scale": lambda: (scales.explorer().tokens, [1000, 10**9, 500_000, 10**8]),
    "start of a path": lambda: (paths.explorer(n=8).start, [3, 1, 5, 2]),
    "step of three waves": lambda: (paths.player(n=8).step, [3, 1, 5, 2]),
    "radius of the window": lambda: (recordings.window().slider, ["7", "30", "60", "full"]),
    "frame of a recording": lambda: (recording().frame, [199, 150, 490, 180]),
    "distance of three networks": lambda: (
        DistanceExplorer({system: Recaller(system) for system in ("RNN", "LSTM", "attention")}).distance,
        [199, 150, 190, 180],
    ),
    "node of the club": lambda: (graphs.explorer().node, [1, 5, 3]),
}


@pytest.mark.parametrize("name", MOVED)
def test_a_moved_control_is_answered(benchmark, name):
    control, places = MOVED[name]()
    places = itertools.cycle(places)
    benchmark(lambda: setattr(control, "value", next(places)))


def test_dates_are_drawn(benchmark):
    """A training of 500 steps asks for 24,000."""
    benchmark(lambda: dates.draw(torch.Generator("cpu").manual_seed(0), 1000))


def test_three_dates_are_read(benchmark):
    benchmark(dates.readings, "30. maj 2021; 3. 5. 2021; torsdag den 3. marts 2022")


@pytest.mark.parametrize("kernel", [3, 5])
def test_a_new_sharpness_computes_every_pixel_again(benchmark, kernel):
    widget = PixelExplorer(torch.nn.Conv2d(3, 6, kernel, padding=kernel // 2), torch.rand(3, 12, 12))
    values = itertools.cycle([1.0, 8.0])
    benchmark(lambda: setattr(widget.sharpness, "value", next(values)))


@pytest.mark.parametrize("name", LARGEST)
def test_the_largest_drawings(benchmark, name):
    widget = LARGEST[name]()
    benchmark(widget.refresh)
    benchmark.extra_info["kilobytes"] = len(widget.drawing.value) // 1000


@pytest.mark.browser
@in_notebook(*[name for name in copies.lessons() if "/" not in name])
def test_slider_to_picture(notebook, capsys):
    assert notebook.ran, notebook.troubles()
    for number, widget in enumerate(notebook.widgets(), 1):
        for slider in widget.controls("slider")[:1]:
            times, keys = [], ["ArrowRight", "ArrowLeft"]
            for _ in range(4 * MOVES):
                took = widget.press(slider, keys[0])
                if took is None:  # the slider is at its end: turn round
                    keys.reverse()
                    continue
                times.append(took)
                if len(times) == MOVES:
                    break
            with capsys.disabled():
                if times:
                    print(
                        f"\n{notebook.name}, widget {number}: median {statistics.median(times):.0f} ms, worst"
                        f" {max(times):.0f} ms of {len(times)} moves"
                    )
        assert widget.shown()
