"""Who acted, and what is it: models, bound, interventions."""

import pytest
import torch

from lesson_lib.chapters.c04_multi_head import pronouns
from lesson_lib.chapters.c04_multi_head.experiments import two_questions
from lesson_lib.chapters.c04_multi_head.pronouns import POSITIONS, is_noun, text
from lesson_lib.device import to_device

FOUR = [
    f"the {one} did not cross the {other} because it was too {last}"
    for one, other in (("animal", "street"), ("street", "animal"))
    for last in ("tired", "wide")
]


@pytest.fixture(scope="module")
def two():
    return two_questions.train("2 heads")[0]


def untrained(system, seed=0):
    torch.manual_seed(seed)
    return to_device(two_questions.make(system))


def read(*lines):
    return to_device(pronouns.read(*lines))


def test_the_nouns_alone_answer_unless_all_words_may():
    words = read(*FOUR)
    small = ~is_noun(words[:, :-1])[:, None, None]
    assert (untrained("2 heads")(words).weights[small.expand(4, 2, 1, POSITIONS)] == 0).all()
    assert (untrained("1 head, all words")(words).weights > 0).all()


def test_no_head_of_its_own_passes_the_bound_of_the_proof():
    """Whatever the weights are: of the four sentences one head has both answers right in three at most."""
    for seed in range(20):
        model = untrained("1 head", seed)
        with torch.no_grad():
            model.answer.weight.mul_(7)
            said = [text(row) for row in model(read(*FOUR)).scores.argmax(-1)]
        right = ["animal animal", "animal street", "street animal", "street street"]
        assert sum(a == b for a, b in zip(said, right, strict=True)) <= 3


def test_values_do_not_know_places():
    """With all weight on one noun, the scores are the same wherever it stands."""
    model, words = untrained("1 head"), read(FOUR[0], FOUR[2])
    weights = to_device(torch.zeros(2, 1, 1, POSITIONS))
    weights[0, :, :, 1] = weights[1, :, :, 6] = 1  # the animal, first and second
    scores = two_questions.say(model, words, weights)
    torch.testing.assert_close(scores[0], scores[1])


def test_what_is_said_with_its_own_weights_is_what_a_model_says(two):
    words = read(*FOUR)
    scores, weights = two(words)
    torch.testing.assert_close(two_questions.say(two, words, weights), scores)


def test_a_swap_exchanges_one_head_s_two_places():
    weights = torch.arange(2 * 3 * 1 * 5.0).view(2, 3, 1, 5)
    moved = two_questions.swapped(weights, 1, torch.tensor([0, 1]), torch.tensor([4, 2]))
    assert moved[0, 1, 0].tolist() == [9, 6, 7, 8, 5] and moved[1, 1, 0].tolist() == [20, 22, 21, 23, 24]
    assert torch.equal(moved[:, [0, 2]], weights[:, [0, 2]]) and weights[0, 1, 0, 0] == 5


def test_it_in_one_layer_cannot_know_the_last_word():
    """Sentences that differ in their last word only get the same weights and the same answers; reading first
    changes that."""
    blind, reading = untrained("2 heads, it asks"), untrained("2 layers, it asks")
    words = read(*FOUR[:2])
    assert torch.equal(*blind(words).weights) and torch.equal(*blind(words).scores)
    assert not torch.allclose(*reading(words).weights)


def test_a_batch_is_of_the_training():
    words, answers = two_questions.draw(torch.Generator().manual_seed(1), 100)
    known = {tuple(row) for row in pronouns.sentences(held_out=False)[0].tolist()}
    assert known >= {tuple(row) for row in words.tolist()} and answers.shape == (100, 2)


def test_two_heads_learn_both_questions_and_the_answer_follows_its_own_head(two):
    assert min(two_questions.right(two, "both new").values()) > 0.88
    follows = two_questions.followed(two, "held-out pairs")
    assert follows["moved to the other noun"] > 0.9
    assert max(follows["moved to a small word"], follows["moved in the other head"]) < 0.2


def test_rules_by_place_are_right_half_of_the_time():
    rules = two_questions.baselines()
    assert rules["nearest noun"] == rules["first noun"] == 0.5 and rules["commonest noun"] == 1 / 24
