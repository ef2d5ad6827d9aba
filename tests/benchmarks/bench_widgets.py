"""Slider to picture, in a browser: the median of 20 moves by keyboard for each widget of each lesson.

And without one: what the largest drawings cost the kernel.
"""

import itertools
import statistics

import pytest
import torch

from lesson_lib.cli import lab as copies
from lesson_lib.widgets import ClockExplorer, HeadExplorer, PixelExplorer, RotationExplorer

MOVES = 20


def heads(shown: int | None) -> HeadExplorer:
    """As many heads and tokens as are drawn; all of them, or one."""
    widget = HeadExplorer(torch.randn(12, 24, 24).softmax(-1), [f"token {i}" for i in range(24)])
    widget.shown.value = shown
    return widget


LARGEST = {
    "12 heads of 24 tokens": lambda: heads(None),
    "one of them": lambda: heads(0),
    "8 clocks": lambda: ClockExplorer(16),
    "rotation of width 8": lambda: RotationExplorer(8),
}


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
@pytest.mark.parametrize("name", [name for name in copies.lessons() if "/" not in name])
def test_slider_to_picture(open_notebook, name, capsys):
    notebook = open_notebook(name)
    assert notebook.run_all(), notebook.troubles()
    for number, widget in enumerate(notebook.widgets(), 1):
        for slider in widget.controls("slider")[:1]:
            times, keys = [], ["ArrowRight", "ArrowLeft"]
            for _ in range(4 * MOVES):
                took = widget.press(slider, keys[0], wait_ms=500)
                if took is None:  # the slider is at its end: turn round
                    keys.reverse()
                    continue
                times.append(took)
                if len(times) == MOVES:
                    break
            with capsys.disabled():
                if times:
                    print(
                        f"\n{name}, widget {number}: median {statistics.median(times):.0f} ms, worst {max(times):.0f} ms of {len(times)} moves"
                    )
        assert widget.shown()
