"""What is asked of the trained tagger beyond its accuracy."""

import pytest
import torch

from lesson_lib.chapters.c01_history.experiments import tagger
from lesson_lib.data import tagging
from lesson_lib.device import to_device

AUXILIARIES = torch.tensor([tagging.VOCABULARY.index(word) for word in tagging.WORDS["will"]])


class Naming(torch.nn.Module):
    """A model that gives every word one tag, by the first word of its sentence."""

    def __init__(self, with_auxiliary: str, without: str) -> None:
        super().__init__()
        self.tags = [tagging.TAGS.index(tag) for tag in (with_auxiliary, without)]

    def forward(self, words):
        # the auxiliary is taken away from all sentences or from none
        there = bool(torch.isin(words[:, 0], AUXILIARIES.to(words.device)).all())
        tags = torch.full_like(words, self.tags[0] if there else self.tags[1])
        return torch.nn.functional.one_hot(tags, len(tagging.TAGS)).float()


def test_a_tagger_that_uses_the_auxiliary_changes_every_tag_and_one_that_does_not_none():
    count, shares = tagger.base_forms(Naming("base", "past"), distance=8)
    assert count > 100 and list(shares.values()) == [1, 1, 1, 0]
    assert tagger.base_forms(Naming("base", "base"), distance=8)[1]["auxiliary deleted"] == 1


def test_the_sentences_are_those_that_a_loop_finds():
    given = to_device(tagger.sentences("test"))
    cut, base = tagging.CLASSES.index("cut"), tagging.TAGS.index("base")
    found = 0
    for classes, tags in zip(given.classes.tolist(), given.tags.tolist(), strict=True):
        if tags[0] == tagging.TAGS.index("auxiliary"):
            found += sum((c, t) == (cut, base) for c, t in list(zip(classes, tags, strict=True))[5:])
    assert tagger.base_forms(Naming("base", "past"), distance=5)[0] == found


def test_a_distance_of_0_is_refused():
    with pytest.raises(ValueError, match="distance"):
        tagger.base_forms(Naming("base", "past"), distance=0)
