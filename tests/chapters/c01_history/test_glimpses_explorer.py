"""The glimpse explorer without a browser: every step of every picture shows what the model saw and
believed."""

import base64
import io
import re

import pytest
import torch
from PIL import Image

from lesson_lib.chapters.c01_history.glimpse import glimpse
from lesson_lib.chapters.c01_history.glimpses_explorer import GlimpseExplorer
from tests.explorers import stands_alone

PICTURES, GLIMPSES, CLASSES, SIDE = 3, 4, 10, 24


def given():
    """Canvases with noise, a path that runs to the right and down, and probabilities that grow for the true
    class."""
    canvases = torch.rand(PICTURES, SIDE, SIDE)
    places = torch.stack([torch.linspace(0, 0.5, GLIMPSES), torch.linspace(0, 0.25, GLIMPSES)], -1)
    sure = torch.linspace(0.1, 0.73, GLIMPSES)
    labels = torch.tensor([7, 0, 9])
    probabilities = ((1 - sure) / 9)[None, :, None].repeat(PICTURES, 1, CLASSES)
    for i, label in enumerate(labels):
        probabilities[i, :, label] = sure
    return canvases, places.repeat(PICTURES, 1, 1), probabilities, labels


def test_it_starts_with_the_first_glimpse_and_a_still_picture_stands_for_it():
    w = GlimpseExplorer(*given())
    assert "<b>Look 1 of 4</b>, at x = 0.00, y = 0.00." in w.drawing.value
    assert stands_alone(lambda: GlimpseExplorer(*given()))


def test_every_step_of_every_picture():
    canvases, places, probabilities, labels = given()
    w = GlimpseExplorer(canvases, places, probabilities, labels)
    seen = set()
    for w.picture.value in range(PICTURES):
        for w.step.value in range(1, GLIMPSES + 1):
            i, t = w.picture.value, w.step.value
            drawing = w.drawing.value
            seen.add(drawing)
            assert drawing.count("<circle") == t and f"canvas with a {labels[i]};" in drawing
            assert "http" not in drawing and "src=" not in drawing and "<script" not in drawing
            assert f"</span> {probabilities[i, t - 1, labels[i]]:.2f}" in drawing
            assert f'class="ll-true"><th scope="row">{labels[i]} ✓' in drawing
    assert len(seen) == PICTURES * GLIMPSES


def test_the_patches_are_those_that_the_model_saw():
    canvases, places, probabilities, labels = given()
    canvases[1] = 0.0
    canvases[1, 14, 17] = 1.0  # a single bright pixel
    w = GlimpseExplorer(canvases, places, probabilities, labels)
    w.picture.value, w.step.value = 1, 4
    whole, sharp, wide = (
        Image.open(io.BytesIO(base64.b64decode(code)))
        for code in re.findall(r'href="data:image/png;base64,([^"]+)"', w.drawing.value)
    )

    def brightest(image):
        pixels = {
            (x, y): sum(image.getpixel((x, y))) for x in range(image.width) for y in range(image.height)
        }
        return max(pixels, key=pixels.get)

    assert (whole.size, sharp.size, wide.size) == ((24, 24), (8, 8), (8, 8))
    # the place (0.5, 0.25) is pixel (18, 15): the sharp patch starts at (14, 11), the wide one at (10, 7)
    assert brightest(whole) == (17, 14) and brightest(sharp) == (3, 3) and brightest(wide) == (3, 3)
    assert glimpse(canvases[1:2], places[1:2, 3], 8)[0, 3, 3] == 1
    squares = re.findall(r'<rect x="(-?\d+)" y="(-?\d+)" width="(\d+)"', w.drawing.value)
    assert squares == [("140", "110", "80"), ("100", "70", "160")]
    assert 'points="120.0,120.0 140.0,130.0 160.0,140.0 180.0,150.0"' in w.drawing.value


@pytest.mark.on_cpu
def test_it_says_in_words_what_the_model_believes():
    w = GlimpseExplorer(*given())
    assert w.words() == "The model says 7, with probability 0.10. That is right."
    canvases, places, probabilities, labels = given()
    w = GlimpseExplorer(canvases, places, probabilities, labels.flip(0))
    w.step.value = 4
    assert w.words() == "The model says 7, with probability 0.73. It is a 9, which gets 0.03."


def test_buttons_and_play_move_the_glimpse_and_stop_at_the_ends():
    w = GlimpseExplorer(*given())
    w.back.click()
    assert w.step.value == 1
    for _ in range(5):
        w.forward.click()
    assert w.step.value == w.play.value == 4
    w.play.value = 2
    assert w.step.value == 2 and "Look 2 of 4" in w.drawing.value
    w.step.value = 3
    assert w.play.value == 3, "play goes on from where the learner is"
