"""The grammar behind "I saw a saw": its patterns, its splits, and the limits that it sets."""

from collections import defaultdict

import pytest
import torch

from lesson_lib.data import tagging
from lesson_lib.data.tagging import (
    CLASSES,
    GRAMMAR,
    PADDING,
    TAGS,
    VOCABULARY,
    WORDS,
    bag,
    before,
    count_sentences,
    draw,
    limit,
    patterns,
    read,
    text,
    whole,
    window,
)


def generator(seed=0):
    return torch.Generator("cpu").manual_seed(seed)


def test_every_word_is_in_one_class():
    assert len(set(VOCABULARY)) == len(VOCABULARY) == 135


@pytest.mark.parametrize("ways", GRAMMAR.values(), ids=GRAMMAR)
def test_the_ways_of_a_rule_have_probability_1(ways):
    assert sum(ways.values()) == pytest.approx(1)


def test_the_patterns_are_all_there_is():
    classes, tags, probability = patterns()
    assert probability.sum().item() == pytest.approx(1, abs=1e-12)
    assert len({tuple(row) for row in torch.cat([classes, tags], 1).tolist()}) == len(classes)
    assert ((classes == PADDING) == (tags == PADDING)).all()
    assert (torch.diff((classes == PADDING).int(), dim=1) >= 0).all()  # padding behind, never between


def test_the_probability_of_a_pattern_by_hand():
    # I saw a saw: SHORT occurs only in pairs, so: SENTENCE -> STATEMENT -> SUBJECT VERB OBJECT
    classes, tags, probability = patterns()
    wanted = [CLASSES.index(name) for name in ("I", "saw", "the", "saw")]
    row = (classes[:, :4] == torch.tensor(wanted, device="cpu")).all(1) & (classes[:, 4:] == PADDING).all(1)
    by_hand = 0.5 * 0.2 * 0.3 * (0.75 * 0.35) * (0.8 * 0.4 * 0.2)
    assert probability[row].tolist() == pytest.approx([by_hand])
    assert [TAGS[tag] for tag in tags[row][0, :4]] == ["pronoun", "past", "determiner", "noun"]


def slow_limit(sight_of, among=CLASSES):
    """The same limit by dictionaries, from a function of one sentence and a place."""
    mass = defaultdict(lambda: defaultdict(float))
    for classes, tags, p in zip(*(table.tolist() for table in patterns()), strict=True):
        sentence = [c for c in classes if c != PADDING]
        for i, c in enumerate(sentence):
            if CLASSES[c] in among:
                mass[sight_of(sentence, i)][tags[i]] += p
    return sum(max(by_tag.values()) for by_tag in mass.values()) / sum(
        sum(by_tag.values()) for by_tag in mass.values()
    )


@pytest.mark.parametrize(
    "sight, slow",
    {
        window(0): lambda s, i: s[i],
        window(2): lambda s, i: tuple(s[k] if 0 <= k < len(s) else None for k in range(i - 2, i + 3)),
        before: lambda s, i: tuple(s[: i + 1]),
        bag: lambda s, i: (s[i], *sorted(s)),
        whole: lambda s, i: (i, *s),
    }.items(),
    ids=["one word", "window 2", "before", "bag", "whole"],
)
def test_the_limit_is_that_of_a_count_with_dictionaries(sight, slow):
    assert limit(sight, ("cut",)) == pytest.approx(slow_limit(slow, ("cut",)), abs=1e-12)


def test_a_window_of_one_is_enough_for_saw_and_watch():
    assert limit(window(1), ("saw", "watch")) == 1
    assert limit(window(1), ("cut",)) < 0.9


def test_a_sight_beyond_its_bits_is_refused():
    with pytest.raises(ValueError, match="0 to 7"):
        window(8)


@pytest.mark.parametrize("among", [(), ("verbs",)])
def test_unknown_classes_are_refused(among):
    with pytest.raises(ValueError, match="among must name classes"):
        limit(whole, among)


def test_words_fit_their_classes_and_tags():
    words, classes, tags = draw(generator(), 211)
    real = words != PADDING
    assert torch.equal(real, classes != PADDING) and torch.equal(real, tags != PADDING)
    for word, kind in zip(words[real].tolist(), classes[real].tolist(), strict=True):
        assert VOCABULARY[word] in WORDS[CLASSES[kind]]


def test_the_words_of_a_class_are_equally_likely():
    words = draw(generator(5), 6000).words
    counts = torch.stack([(words == VOCABULARY.index(word)).sum() for word in WORDS["saw"]]).double()
    assert (counts / counts.mean() - 1).abs().max() < 0.15


def test_no_sentence_is_in_two_splits():
    drawn = {
        split: {text(row) for row in draw(generator(seed), 2003, split).words}
        for seed, split in enumerate(("training", "validation", "test"))
    }
    assert not drawn["training"] & drawn["test"] and not drawn["training"] & drawn["validation"]
    assert not drawn["validation"] & drawn["test"]


def test_the_same_seed_draws_the_same_sentences():
    assert all(torch.equal(a, b) for a, b in zip(draw(generator(7), 13), draw(generator(7), 13), strict=True))


def test_padding_does_not_move_a_sentence_to_another_split():
    words = read("did the man that saw the duck cut the nail")
    longer = torch.nn.functional.pad(words, (0, 5), value=PADDING)
    assert torch.equal(tagging._part(words), tagging._part(longer))


@pytest.mark.parametrize(
    "wrong, message", [({"split": "tset"}, "split must be one of"), ({"batch": 0}, "at least 1")]
)
def test_draw_refuses_what_it_cannot_draw(wrong, message):
    with pytest.raises(ValueError, match=message):
        draw(**({"generator": generator(), "batch": 3} | wrong))


def test_more_sentences_than_can_be_memorised():
    assert count_sentences() > 10**18


@pytest.mark.parametrize("wrong", ["", "   ", None, 3])
def test_read_wants_words(wrong, no_shape_hook):
    with pytest.raises(ValueError, match="with spaces between"):
        read(wrong)


def test_read_names_the_unknown_words():
    with pytest.raises(ValueError, match="zebra"):
        read("I saw a zebra")


def test_read_takes_a_sentence_as_people_write_it():
    assert torch.equal(read("Did the man cut a nail?"), read("did the man cut a nail"))
