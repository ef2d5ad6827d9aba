"""Sentences in which a verb agrees with a far subject: what is said of each is true, and nothing but the
subject tells."""

import math

import pytest
import torch

from lesson_lib.chapters.c06_transformer import agreement

SINGULAR = {forms[1]: forms[0] for forms in (*agreement.NOUNS, *agreement.VERBS)}


def generator(seed=0):
    return torch.Generator("cpu").manual_seed(seed)


def number(word):
    """0 singular, 1 plural, None for a word without a number."""
    return next((forms.index(word) for forms in (*agreement.NOUNS, *agreement.VERBS) if word in forms), None)


def is_noun(word):
    return any(word in forms for forms in agreement.NOUNS)


def parsed(words):
    """Places of subject and main verb and of the nouns between, read off a sentence by a rule that never saw
    the generator."""
    spoken, i = [agreement.VOCABULARY[w] for w in words.tolist() if w != agreement.PAD], 0
    if spoken[0] in agreement.PREPOSITIONS:
        i = 3
    i += 1 + (spoken[i + 1] in agreement.ADJECTIVES)
    subject, between = i, []
    i += 1
    while spoken[i] in agreement.PREPOSITIONS or spoken[i] == "that":
        assert spoken[i + 1] in agreement.DETERMINERS and is_noun(spoken[i + 2])
        between.append(i + 2)
        i += 4 if spoken[i] == "that" else 3
    return spoken, subject, i, between


def test_what_is_said_of_a_sentence_is_what_its_words_say():
    given = agreement.draw(generator(), 199)
    for words, length, at, verb, other, attractors, misleading in zip(*given, strict=True):
        spoken, subject, place, between = parsed(words)
        assert (len(spoken), subject, place, len(between)) == (length, at, verb, attractors)
        assert is_noun(spoken[subject]) and number(spoken[subject]) == number(spoken[place])
        assert sorted((spoken[place], agreement.VOCABULARY[other])) in [
            sorted(forms) for forms in agreement.VERBS
        ]
        before = [number(w) for k, w in enumerate(spoken[:place]) if is_noun(w) and k != subject]
        assert misleading == (len(between) > 0 and number(spoken[subject]) not in before)


def test_verbs_agree_in_clauses_and_are_followed_by_their_kind():
    clauses = 0
    for words in agreement.draw(generator(1), 199).words:
        spoken = agreement.text(words).split()
        for i in (i for i, word in enumerate(spoken) if word == "that"):
            assert number(spoken[i + 2]) == number(spoken[i + 3]) is not None
            clauses += 1
    assert clauses > 30
    kinds = {0: agreement.ADJECTIVES, 1: agreement.DETERMINERS, 2: agreement.ADVERBS}
    for words in agreement.draw(generator(2), 199).words:
        spoken, _, place, _ = parsed(words)
        (verb,) = [v for v, forms in enumerate(agreement.VERBS) if spoken[place] in forms]
        assert spoken[place + 1] in kinds[verb % 3]
        assert len(spoken) == place + (3 if verb % 3 == 1 else 2)


def test_numbers_are_even_and_independent_and_attractors_as_frequent_as_said():
    given = agreement.draw(generator(3), 3000)
    counted = torch.bincount(given.attractors, minlength=4) / 3000
    torch.testing.assert_close(
        counted.cpu(), torch.tensor(agreement.BETWEEN, device="cpu").float(), atol=0.03, rtol=0
    )
    nouns = torch.tensor([[agreement._NUMBER[w] for w in forms] for forms in agreement.NOUNS], device="cpu")
    subject = given.words.gather(1, given.subject[:, None])
    assert torch.isin(subject, nouns[:, 1]).float().mean() == pytest.approx(0.5, abs=0.03)
    # misleading: k attractors and perhaps a noun in front, all of the other number
    share = sum(
        p * (0.5**k * (1 - agreement.IN_FRONT) + 0.5 ** (k + 1) * agreement.IN_FRONT)
        for k, p in enumerate(agreement.BETWEEN)
        if k
    )
    assert given.misleading.float().mean() == pytest.approx(share, abs=0.025)


def test_rules_by_hand_and_by_what_can_be_computed():
    given = agreement.draw(generator(4), 3000)
    found = agreement.rules(given)
    assert found["a coin"] == 0.5
    assert found["nearest noun"] == pytest.approx(
        agreement.BETWEEN[0] + (1 - agreement.BETWEEN[0]) / 2, abs=0.03
    )
    assert found["first noun"] == pytest.approx(1 - agreement.IN_FRONT / 2, abs=0.03)
    assert 0.5 < found["most nouns"] < 0.9
    misled = agreement.rules(given.take(given.misleading))
    assert misled["nearest noun"] == 0 and misled["most nouns"] < 0.3
    words = agreement.read("near the doors the key to my dog falls today")
    known = {
        "lengths": [10], "subject": [4], "verb": [8], "other": [0], "attractors": [1], "misleading": [0],
    }  # fmt: skip
    given = agreement.Sentences(words, *(torch.tensor(v, device="cpu") for v in known.values()))
    assert agreement.rules(given) == {"a coin": 0.5, "nearest noun": 1, "first noun": 0, "most nouns": 1}


def test_a_masked_verb_is_one_of_four_or_of_eight_and_all_are_equally_likely():
    assert agreement.verb_limits() == {"number known": math.log(4), "number unknown": math.log(8)}
    for split in agreement.SPLITS:
        counted = torch.bincount(
            agreement.draw(generator(5), 1200, split).right(), minlength=len(agreement.VOCABULARY)
        )
        shares = counted[counted > 0] / 1200
        assert len(shares) == 24 and (shares - 1 / 24).abs().max() < 0.025


def test_no_sentence_is_in_two_splits_in_any_number():
    def lemmas(split, seed):
        drawn = agreement.draw(generator(seed), 499, split)
        return {" ".join(SINGULAR.get(w, w) for w in agreement.text(row).split()) for row in drawn.words}

    training, validation, test = (
        lemmas(s, seed) for seed, s in enumerate(("training", "validation", "test"))
    )
    assert not training & validation and not training & test and not validation & test


def test_masked_hides_the_verb_and_right_remembers_it():
    given = agreement.draw(generator(8), 11)
    masked, right = given.masked(), given.right()
    for row, words, place, verb in zip(masked, given.words, given.verb, right, strict=True):
        assert row[place] == agreement.MASK and words[place] == verb
        assert ((row != words).nonzero().flatten() == place).all()


@pytest.mark.parametrize("wrong", ["", ["the", "keys"]])
def test_read_wants_a_sentence(wrong, no_shape_hook):
    with pytest.raises(ValueError, match="with spaces between"):
        agreement.read(wrong)


def test_read_names_an_unknown_word_and_its_neighbours():
    with pytest.raises(
        ValueError, match="'windoes' is not among the 84 words of this grammar; near it: window"
    ):
        agreement.read("the windoes are old")
    with pytest.raises(ValueError, match=r"'zyx' is not among .*; some that are: keys"):
        agreement.read("the zyx are old")
    with pytest.raises(ValueError, match=r"'\[pad\]' is not among"):
        agreement.read("the [pad] are old")


def test_read_takes_what_people_write_and_refuses_what_is_too_long():
    assert (
        agreement.text(agreement.read("The keys to the door ARE old. ")[0]) == "the keys to the door are old"
    )
    assert agreement.read(" ".join(["the"] * agreement.LONGEST)).shape == (1, agreement.LONGEST)
    with pytest.raises(ValueError, match=f"at most {agreement.LONGEST} words, got {agreement.LONGEST + 1}"):
        agreement.read(" ".join(["the"] * (agreement.LONGEST + 1)))
