"""The taggers see what they are said to see, and nothing else."""

import pytest
import torch

from lesson_lib.chapters.c01_history.experiments import tagger as experiment
from lesson_lib.data import tagging
from lesson_lib.data.tagging import PADDING, draw
from lesson_lib.device import to_device
from lesson_lib.models import tagger

SYSTEMS = experiment.RECIPE["systems"]
SENTENCE = "did the man that saw the duck near me cut the nail"


def read(sentence):
    return to_device(tagging.read(sentence))


def model(system):
    torch.manual_seed(0)
    return to_device(experiment.make(system)).eval()


def moved(system, changed):
    """Which tokens' scores change when the word at place `changed` is another one."""
    words, trained = read(SENTENCE), model(system)
    other = words.clone()
    other[0, changed] = read("window")[0, 0]
    return ((trained(words) - trained(other)).abs().amax(-1)[0] > 0).nonzero().flatten().tolist()


@pytest.mark.parametrize(
    "system, reached",
    {
        "one word": [4],
        "window 1": [3, 4, 5],
        "window 3": [1, 2, 3, 4, 5, 6, 7],
        "recurrent": [*range(4, 12)],
        "recurrent, both ways": [*range(12)],
        "attention, no positions": [*range(12)],
        "attention": [*range(12)],
    }.items(),
)
def test_a_word_reaches_as_far_as_the_trainedsees(system, reached):
    assert moved(system, changed=4) == reached


def test_one_word_cannot_tell_the_two_saw_apart():
    scores = model("one word")(read("I saw a saw"))[0]
    assert torch.equal(scores[1], scores[3])


def test_attention_without_positions_cannot_either():
    scores = model("attention, no positions")(read("I saw a saw"))[0]
    torch.testing.assert_close(scores[1], scores[3])
    scores = model("attention")(read("I saw a saw"))[0]
    assert (scores[1] - scores[3]).abs().max() > 1e-3


@pytest.mark.parametrize("system", [s for s in SYSTEMS if s != "recurrent, both ways"])
def test_padding_changes_nothing(system):
    words = read(SENTENCE)
    padded = torch.nn.functional.pad(words, (0, 5), value=PADDING)
    torch.testing.assert_close(model(system)(padded)[:, :12], model(system)(words))


def test_look_gives_the_weights_of_both_layers_and_the_same_scores():
    words, attention = read(SENTENCE), model("attention")
    scores, maps = attention.look(words)
    torch.testing.assert_close(scores, attention(words))
    assert [tuple(table.shape) for table in maps] == [(1, 4, 12, 12)] * 2
    torch.testing.assert_close(maps[0].sum(-1), torch.ones(1, 4, 12))


def test_the_loss_does_not_count_padding():
    given = to_device(draw(torch.Generator("cpu").manual_seed(1), 5))
    longer = type(given)(*(torch.nn.functional.pad(t, (0, 7), value=PADDING) for t in given))
    one = model("one word")
    torch.testing.assert_close(tagger.loss(one, given), tagger.loss(one, longer))


def test_a_few_steps_teach_something():
    trained, history = experiment.train("window 1", lr=1e-2, steps=60)
    assert experiment.accuracy(trained, "validation")["all words"] > 0.6
    assert history.rows[-1]["step"] == 60
