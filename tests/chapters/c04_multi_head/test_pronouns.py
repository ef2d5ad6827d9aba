"""The small language in which *it* is one of two nouns."""

import pytest

from lesson_lib.chapters.c04_multi_head import pronouns
from lesson_lib.chapters.c04_multi_head.pronouns import (
    FAMILIES,
    KIND,
    KINDS,
    NOUNS,
    PLACES,
    RARE,
    WORDS,
    is_noun,
    read,
    sentences,
    text,
)

OPENING = "the animal did not cross the street because it was too tired"


def test_each_word_is_once_in_the_list_and_a_kind_has_six_nouns_and_three_adjectives():
    assert len(set(WORDS)) == len(WORDS)
    assert len(NOUNS) == 24 and len(RARE) == 8 and set(NOUNS) > RARE
    assert [KIND[noun] for noun in ("animal", "street", "soup", "box")] == list(KINDS)
    assert KIND["tired"] == "animals" and KIND["wide"] == "ways"


@pytest.mark.parametrize("line", [line for lines in FAMILIES.values() for line in lines])
def test_every_line_has_two_nouns_and_one_length(line):
    words = line.split()
    assert len(words) == PLACES and words.count("1") == words.count("2") == 1
    assert words.index("1") < words.index("2")


def test_new_templates_put_the_nouns_in_pairs_of_places_that_training_has_not():
    pairs = {
        family: {(line.split().index("1"), line.split().index("2")) for line in lines}
        for family, lines in FAMILIES.items()
    }
    assert not pairs["new"] & (pairs["it"] | pairs["others"]) and len(pairs["new"]) == 3


def test_what_is_read_can_be_written_again():
    (row,) = read(OPENING)
    assert row.shape == (12,) and text(row) == OPENING
    assert is_noun(row).nonzero().flatten().tolist() == [1, 6]


@pytest.mark.parametrize(
    "sentence, said",
    [
        ("the animal was tired", "a sentence has 12 words here, got 4"),
        (OPENING.replace("animal", "unicorn"), "word must be one of animal, dog"),
    ],
)
def test_what_cannot_be_read_is_told(sentence, said):
    with pytest.raises(ValueError, match=said):
        read(sentence)


def test_a_family_has_all_its_sentences_once_and_every_noun_is_frequent_or_rare():
    counts = {rare: len(sentences("it", rare)[0]) for rare in (None, True, False)}
    # 4 lines, ordered pairs of nouns of two kinds, 2 answers, 3 adjectives
    assert counts == {None: 4 * 24 * 18 * 6, True: 4 * 8 * 6 * 6, False: 4 * 16 * 12 * 6}
    words, _ = sentences("it", rare=True)
    assert len({tuple(row) for row in words.tolist()}) == len(words)
    shown = {WORDS[number] for number in words[is_noun(words)].tolist()}
    assert shown == set(RARE)


def test_the_answers_are_the_first_noun_and_the_one_that_the_adjective_fits():
    words, answers = sentences("new")
    for row, (acted, it) in list(zip(words.tolist(), answers.tolist(), strict=True))[::97]:
        nouns = [number for number in row if number < len(NOUNS)]
        assert len(nouns) == 2 and acted == nouns[0] and it in nouns
        assert KIND[WORDS[it]] == KIND[WORDS[row[-1]]]
        assert KIND[WORDS[sum(nouns) - it]] != KIND[WORDS[row[-1]]]


def test_sentences_come_in_fours():
    """Of each line and two nouns all four pairs of answers occur equally often: one head's bound is 3/4."""
    words, answers = sentences("it", rare=False)
    four = {(first, it): 0 for first in ("animal", "street") for it in ("animal", "street")}
    names = [[pronouns.NOUNS[i] for i in pair] for pair in answers.tolist()]
    for row, pair in zip(words, names, strict=True):
        line = text(row).split()
        if {line[1], line[6]} == {"animal", "street"} and line[4] == "cross":
            four[tuple(pair)] += 1
    assert set(four.values()) == {3}
