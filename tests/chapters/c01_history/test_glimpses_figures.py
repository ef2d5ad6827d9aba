"""Pictures of looking: the path lies where the model looked, dots are the seeds, the film is the same bytes
every time."""

import io
import json

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
    for axes, (column, row), label in zip(figure.axes, batch.corner.tolist(), labels.tolist(), strict=False):
        line = axes.get_lines()[-1]
        assert line.get_xdata() == pytest.approx([11.5, column + 3.5], abs=1e-4)
        assert line.get_ydata() == pytest.approx([11.5, row + 3.5], abs=1e-4)
        (square,) = axes.patches
        assert (square.get_x(), square.get_y()) == (column - 0.5, row - 0.5) and square.get_width() == 8
        assert axes.get_title() == ("says 0: right" if label == 0 else f"says 0: it is a {label}")


@pytest.mark.parametrize("count", [1, 4, 5, 8])
def test_paths_of_any_number_of_canvases_fit_the_page(count):
    figure = plots.paths(*some(count)).figure
    assert figure.get_size_inches()[0] <= 8 and len([a for a in figure.axes if a.axison]) == count


@pytest.mark.parametrize("upto", [1, 2])
def test_a_glance_shows_patches_and_probabilities_of_that_glimpse(upto):
    canvas, places, probabilities, labels = some()
    probabilities[0, upto - 1] = torch.arange(10) / 45
    figure = plots.glance(canvas[0], places[0], probabilities[0], labels[0].item(), upto=upto).figure
    whole, sharp, _, bars = figure.axes
    assert whole.get_title() == f"glimpse {upto} of 2" and len(whole.patches) == 2
    assert [bar.get_width() for bar in bars.patches] == pytest.approx([d / 45 for d in range(10)])
    if upto == 2:  # the digit fills the sharp patch
        images, _ = digits.pictures("test")
        picture = digits.draw("test", FEW, torch.Generator().manual_seed(0)).picture[0]
        assert sharp.images[0].get_array().tolist() == images[picture].tolist()


def test_a_glimpse_that_is_not_there_gets_a_sentence():
    canvas, places, probabilities, labels = some()
    for upto in (0, 3):
        with pytest.raises(ValueError, match=rf"upto must be 1 \.\.\. 2 glimpses, got {upto}"):
            plots.glance(canvas[0], places[0], probabilities[0], labels[0].item(), upto=upto)


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


def test_stored_numbers_are_drawn():
    stored = results("glimpse")
    rows, recipe = stored["rows"], stored["recipe"]
    policies = experiment.by_name(rows, "policy")
    everything = policies | experiment.by_name(rows, "whole")
    drawn = plots.policies(everything).figure.axes[0]
    assert [label.get_text() for label in drawn.get_yticklabels()] == recipe["policies"] + recipe["whole"]
    dots = [line for line in drawn.get_lines() if line.get_linestyle() == "None"]
    assert sorted(x for line in dots for x in line.get_xdata()) == sorted(
        x for some in everything.values() for x in some
    )
    changed = experiment.by_name(rows, "departure")
    departures = plots.departures(changed, policies["learned"]).figure
    assert len(departures.axes[0].get_yticks()) == 1 + len(recipe["departures"])
    assert departures.get_size_inches()[0] <= 8
    noise = [row for row in rows if row["kind"] == "noise"]
    large, small = plots.gradient_noise(noise, paths=recipe["noise"]["paths"]).figure.axes
    assert "24 by 24" in large.get_title(loc="left") and "8 by 8" in small.get_title(loc="left")
    assert len(large.get_lines()) == 3


def test_a_signal_that_cannot_be_told_from_nothing_is_drawn_at_the_smallest_that_can():
    def row(squared, seed=0):
        return {
            "size": 24,
            "trained": 0.0,
            "seed": seed,
            "signal squared": squared,
            "noise": 4.0,
            "noise without": 8.0,
        }

    def signal(*rows):
        return plots.gradient_noise(rows, paths=4).figure.axes[0].get_lines()[2].get_ydata()[0]

    assert signal(row(25.0)) == 5 and signal(row(-3.0)) == 2  # 4² / 4 paths = 2²
    assert signal(*[row(-3.0, seed) for seed in range(4)]) == pytest.approx(2**0.5)  # four seeds tell more
    assert signal(row(49.0), row(1.0)) == 5


@pytest.mark.parametrize("kind", ["policies", "departures"])
def test_the_middle_seed_is_written(kind):
    given = ({"a": [0.91, 0.12, 0.43]},) + (([0.5, 0.6, 0.7],) if kind == "departures" else ())
    text = getattr(plots, kind)(*given).svg().decode()
    assert ">0.43<" in text and ">0.91<" not in text


def test_a_file_without_paths_is_no_riddle(monkeypatch, tmp_path):
    (tmp_path / "empty.json").write_text(json.dumps({"rows": [], "recipe": {}}), encoding="utf-8")
    monkeypatch.setattr(plots, "STORED", tmp_path / "empty.json")
    with pytest.raises(ValueError, match="python -m lesson_lib experiments glimpse"):
        plots.stored_paths(1)
