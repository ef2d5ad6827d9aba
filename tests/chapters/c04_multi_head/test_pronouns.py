"""The small language in which *it* is one of two nouns."""

import pytest

from lesson_lib.chapters.c04_multi_head import pronouns

OPENING = "the animal did not cross the street because it was too tired"


def test_words_kinds_and_the_last_word_that_a_noun_never_meets():
    assert len(set(pronouns.WORDS)) == len(pronouns.WORDS)
    assert len(pronouns.NOUNS) == 24 and len(pronouns.LAST) == 12
    assert [pronouns.KIND[noun] for noun in ("animal", "street", "soup", "box")] == list(pronouns.KINDS)
    assert pronouns.KIND["tired"] == "animals" and pronouns.KIND["wide"] == "places"
    assert sorted(noun for noun, _ in pronouns.HELD_OUT) == sorted(pronouns.NOUNS)
    assert sorted(last for _, last in pronouns.HELD_OUT) == sorted(2 * pronouns.LAST)
    assert all(pronouns.KIND[noun] == pronouns.KIND[last] for noun, last in pronouns.HELD_OUT)
    assert {("animal", "tired"), ("street", "wide")} < pronouns.HELD_OUT


@pytest.mark.parametrize("line", [line for lines in pronouns.PATTERNS.values() for line in lines])
def test_every_line_has_two_nouns_and_one_length(line):
    words = line.split()
    assert len(words) == pronouns.POSITIONS and words.count("1") == words.count("2") == 1
    assert words.index("1") < words.index("2")


def test_new_patterns_put_the_nouns_in_pairs_of_positions_that_training_has_not():
    at = {
        patterns: [(line.split().index("1"), line.split().index("2")) for line in lines]
        for patterns, lines in pronouns.PATTERNS.items()
    }
    assert not set(at["new"]) & set(at["trained"]) and len(set(at["new"])) == 2
    for new, trained in zip(zip(*at["new"], strict=True), zip(*at["trained"], strict=True), strict=True):
        assert set(new) <= set(trained)  # each position is trained, only the pair is new


def test_what_is_read_can_be_written_again():
    (row,) = pronouns.read(OPENING)
    assert row.shape == (12,) and pronouns.text(row) == OPENING
    assert pronouns.is_noun(row).nonzero().flatten().tolist() == [1, 6]


@pytest.mark.parametrize("sentence, said", [
    ("the animal was tired", "a sentence has 12 words here, got 4"),
    (OPENING.replace("animal", "unicorn"), "word must be one of animal, dog"),
])  # fmt: skip
def test_what_cannot_be_read_is_told(sentence, said):
    with pytest.raises(ValueError, match=said):
        pronouns.read(sentence)


def test_a_held_out_pair_stands_in_no_sentence_of_the_training():
    counts = {held_out: len(pronouns.sentences(held_out=held_out)[0]) for held_out in (None, True, False)}
    # 4 lines, ordered pairs of nouns of two kinds, 2 answers, 3 last words
    assert counts == {None: 4 * 24 * 18 * 6, True: 4 * 24 * 18 * 2, False: 4 * 24 * 18 * 4}
    words, answers = pronouns.sentences(held_out=True)
    assert len({tuple(row) for row in words.tolist()}) == len(words)
    assert {
        (pronouns.WORDS[it], pronouns.WORDS[last])
        for it, last in zip(answers[:, 1], words[:, -1], strict=True)
    } == pronouns.HELD_OUT
    words, _ = pronouns.sentences(held_out=False)
    lines = [set(pronouns.text(row).split()) for row in words]
    assert not any(line >= set(pair) for line in lines for pair in list(pronouns.HELD_OUT)[::5])
    assert set().union(*lines) >= {*pronouns.NOUNS, *pronouns.LAST}  # but every word does


def test_the_first_held_out_sentences_have_the_opening_s_pattern():
    """So the part says: 864 of them, with the nouns at positions 1 and 6."""
    words, _ = pronouns.sentences(held_out=True)
    first = [pronouns.text(row).split() for row in words[:864]]
    assert all(line[2:5] == ["did", "not", "cross"] for line in first) and pronouns.text(
        words[864]
    ).startswith("today")
    assert pronouns.text(words[0]) == OPENING


def test_the_answers_are_the_first_noun_and_the_one_that_the_last_word_fits():
    words, answers = pronouns.sentences(patterns="new")
    for row, (acted, it) in list(zip(words.tolist(), answers.tolist(), strict=True))[::97]:
        nouns = [number for number in row if number < len(pronouns.NOUNS)]
        assert len(nouns) == 2 and acted == nouns[0] and it in nouns
        assert pronouns.KIND[pronouns.WORDS[it]] == pronouns.KIND[pronouns.WORDS[row[-1]]]
        assert pronouns.KIND[pronouns.WORDS[sum(nouns) - it]] != pronouns.KIND[pronouns.WORDS[row[-1]]]


@pytest.mark.parametrize("held_out, each", [(True, 1), (False, 2)])
def test_sentences_come_in_fours(held_out, each):
    """Of each line and two nouns all four pairs of answers occur equally often: one head's bound is 3/4."""
    words, answers = pronouns.sentences(held_out=held_out)
    four = {(first, it): 0 for first in ("animal", "street") for it in ("animal", "street")}
    names = [[pronouns.NOUNS[i] for i in pair] for pair in answers.tolist()]
    for row, pair in zip(words, names, strict=True):
        line = pronouns.text(row).split()
        if {line[1], line[6]} == {"animal", "street"} and line[4] == "cross":
            four[tuple(pair)] += 1
    assert set(four.values()) == {each}
