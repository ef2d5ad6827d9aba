"""The claims about history: one test each, named after its id."""

import pytest
import torch

from lesson_lib.data import tagging
from lesson_lib.data.tagging import TAGS, limit, patterns, window
from lesson_lib.device import to_device
from lesson_lib.experiments import results, tagger


def read(sentence):
    return to_device(tagging.read(sentence))


def stored(experiment, **wanted):
    found = [row for row in results(experiment)["rows"] if all(row.get(k) == v for k, v in wanted.items())]
    assert found, wanted
    return found


def test_history_3():
    one_word = tagger.make("one word")
    scores = one_word(read("I saw a saw"))[0]
    assert torch.equal(scores[1], scores[3])
    assert limit(window(0), ("saw",)) < 0.64
    assert all(row["right"]["saw"] < 0.66 for row in stored("tagger", system="one word"))


def test_history_4():
    assert limit(window(1), ("saw", "watch")) == 1 > limit(window(7), ("cut",))
    for system, reached in {"window 3": False, "recurrent": True}.items():
        words = read("did the man that saw the duck near me cut the nail")
        other = words.clone()
        other[0, 0] = read("will")[0, 0]
        model = tagger.make(system).eval()
        assert bool((model(words)[0, -1] - model(other)[0, -1]).abs().max() > 0) == reached, system
    recurrent = tagger.make("recurrent").eval()
    assert torch.equal(recurrent(read("I saw a saw"))[0, :3], recurrent(read("I saw a nail"))[0, :3])


def test_position_16_in_the_grammar_of_lesson_01():
    _, tags, probability = patterns()
    verb = torch.isin(tags, torch.tensor([TAGS.index("past"), TAGS.index("base")], device="cpu"))
    command = tags[:, 0] == TAGS.index("base")
    question = tags[:, 0] == TAGS.index("auxiliary")
    statement = ~command & ~question
    assert not verb[statement, 0].any() and verb[command, 0].all()
    assert probability[command].sum().item() == pytest.approx(0.1)
    share = (probability[:, None] * verb).sum() / (probability[:, None] * (tags >= 0)).sum()
    assert 0.1 < share
