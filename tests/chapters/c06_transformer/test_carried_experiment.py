"""Which look is forbidden to whom."""

import pytest
import torch

from lesson_lib.chapters.c06_transformer.experiments import bert as masked
from lesson_lib.chapters.c06_transformer.experiments import carried
from lesson_lib.experiments import results

pytestmark = pytest.mark.on_cpu


def test_a_table_forbids_one_column_to_those_who_are_named():
    given = carried.misled().take(torch.tensor([0, 3]))
    n = given.words.shape[1]
    for row, (subject, verb) in enumerate(zip(given.subject.tolist(), given.verb.tolist(), strict=True)):
        asks = {
            who: carried.blind(given, who)[row, :, subject].nonzero()[:, 0].tolist() for who in carried.WAYS
        }
        assert asks["gap"] == [verb] and asks["itself"] == [subject] and asks["behind"] == [subject + 1]
        assert asks["others"] == [place for place in range(n) if place not in (subject, verb)]
        assert asks["two"] == [subject + 1, verb]
    assert all(carried.blind(given, who).sum((1, 2)).min() >= 1 for who in carried.WAYS)


def test_to_blind_the_gap_is_what_the_experiment_before_does():
    given = carried.misled()
    assert torch.equal(carried.blind(given, "gap"), masked.blind(given, "verb"))


def test_only_the_gap_is_kept_from_the_words_that_are_named():
    given = carried.misled().take(torch.tensor([0, 3]))
    for what, steps in carried.UNREAD.items():
        hidden = carried.unread(given, what)
        for table, subject, verb in zip(hidden, given.subject.tolist(), given.verb.tolist(), strict=True):
            assert table.nonzero().tolist() == [[verb, subject + step] for step in steps]
    assert torch.equal(carried.unread(given, "subject"), carried.blind(given, "gap"))
    given = carried.misled()
    assert (given.subject + max(carried.UNREAD["control"]) < given.verb).all()


def test_between_the_gap_and_the_subject_another_word_stands():
    given = carried.misled()
    assert given.misleading.all() and (given.verb > given.subject + 1).all()


def row(seed, layer, head):
    (found,) = [
        r for r in results("carried")["rows"] if (r["seed"], r["layer"], r["head"]) == (seed, layer, head)
    ]
    return found
