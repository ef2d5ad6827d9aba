"""Slider to picture, in a browser: the median of 20 moves by keyboard for each widget of each lesson."""

import statistics

import pytest

from lesson_lib.cli import lab as copies

MOVES = 20


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
