"""Pictures of looking: the path lies where the model looked, the film is the same bytes every time."""

import io

import pytest
import torch
from PIL import Image

from lesson_lib.chapters.c01_history import glimpses_figures as plots
from lesson_lib.chapters.c01_history.experiments import glimpse as experiment
from lesson_lib.data import digits
from lesson_lib.experiments import results

FEW = 3


def some(count=FEW, t=2):
    batch = digits.draw("test", count, torch.Generator().manual_seed(0))
    places = torch.zeros(count, t, 2, device="cpu")
    places[:, 1:] = digits.centre(batch.corner, 24)[:, None]
    probabilities = torch.full((count, t, 10), 0.1, device="cpu")
    return batch.canvas, places, probabilities, batch.label


def test_a_path_runs_through_the_middle_of_the_digit():
    canvas, places, probabilities, labels = some()
    figure = plots.paths(canvas, places, probabilities, labels).figure
    batch = digits.draw("test", FEW, torch.Generator().manual_seed(0))
    for axes, (column, row) in zip(figure.axes, batch.corner.tolist(), strict=False):
        line, (square,) = axes.get_lines()[-1], axes.patches
        assert line.get_xdata() == pytest.approx([11.5, column + 3.5], abs=1e-4)
        assert line.get_ydata() == pytest.approx([11.5, row + 3.5], abs=1e-4)
        assert (square.get_x(), square.get_y()) == (column - 0.5, row - 0.5) and square.get_width() == 8


def test_the_film_has_a_frame_for_each_glimpse_and_is_the_same_every_time():
    film = plots.film(*some(2))
    assert film == plots.film(*some(2))
    gif = Image.open(io.BytesIO(film))
    assert gif.is_animated and gif.n_frames == 4 and gif.width <= 800
    times = []
    for frame in range(4):
        gif.seek(frame)
        times.append(gif.info["duration"])
    assert times == [plots.FRAME_MS, plots.LAST_MS] * 2


def test_stored_paths_are_of_the_test_split_and_belong_to_the_recipe():
    recipe = results("glimpse")["recipe"]
    canvases, places, probabilities, labels = plots.stored_paths(recipe["pictures"])
    held_out = digits.draw(
        "test", recipe["test"], torch.Generator().manual_seed(experiment.TEST_SEED), size=recipe["size"]
    )
    assert torch.equal(canvases, held_out.canvas[: recipe["pictures"]])
    assert torch.equal(labels, held_out.label[: recipe["pictures"]])
    assert places.shape == (recipe["pictures"], recipe["n_glimpses"], 2) and places[:, 0].abs().max() == 0
    assert (probabilities.sum(-1) - 1).abs().max() < 0.01
    assert len(plots.stored_paths(2)[0]) == 2


def test_a_signal_that_cannot_be_told_from_nothing_is_the_smallest_that_can():
    def signal(*squares):
        seeds = [{"signal squared": square, "noise": 4.0, "noise without": 8.0} for square in squares]
        plain, noise, length = plots.noise_and_signal(seeds, paths=4)
        assert (plain, noise) == (8, 4)
        return length

    assert signal(25.0) == 5 and signal(-3.0) == 2  # 4² / 4 paths = 2²
    assert signal(*[-3.0] * 4) == pytest.approx(2**0.5)  # four seeds tell more
    assert signal(49.0, 1.0) == 5
