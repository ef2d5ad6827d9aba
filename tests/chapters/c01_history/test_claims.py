"""The claims about history: one test each, named after its id."""

import pytest
import torch

from lesson_lib.chapters.c01_history.experiments import glimpse, tagger
from lesson_lib.data import tagging
from lesson_lib.data.milestones import MILESTONES
from lesson_lib.data.tagging import TAGS, limit, patterns, window
from lesson_lib.device import to_device
from lesson_lib.experiments import dates, results


def read(sentence):
    return to_device(tagging.read(sentence))


def stored(experiment, **wanted):
    found = [row for row in results(experiment)["rows"] if all(row.get(k) == v for k, v in wanted.items())]
    assert found, wanted
    return found


def test_history_1():
    """Learned places beat drawn ones and the centre, every seed; with everything in view they gain
    nothing."""
    rows = results("glimpse")["rows"]
    policy, plain = glimpse.by_name(rows, "policy"), glimpse.by_name(rows, "plain")
    assert {len(seeds) for seeds in policy.values()} == {3}
    assert min(policy["learned"]) > max(policy["random"]) > min(policy["random"]) > max(policy["centre"])
    assert abs(sorted(plain["learned"])[1] - sorted(plain["random"])[1]) < 0.02
    before = {m.name: m.year for m in MILESTONES if m.thread == "vision" and m.year < 2014}
    assert before == {"Learned fovea": 1991, "VISIT": 1991, "Foveal glimpses": 2010}


def test_history_2():
    """At equal steps one vector falls behind attention as dates are added; eight times the steps bring most
    of it back."""
    spread = dates.by_dates(results("dates")["rows"])
    for system in ("additive", "scaled dot"):
        assert min(spread[system, 500][1]) > 0.9  # the lowest seed, at one, two and three dates
    _, lowest, _, highest = spread["fixed vector", 500]
    assert lowest[0] > 0.7 and max(highest[1:]) < 0.01
    assert spread["fixed vector", 4000][0] == [3] and spread["fixed vector", 4000][1][0] > 0.7


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
