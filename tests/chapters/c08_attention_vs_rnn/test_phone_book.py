"""The phone book: names are keys, numbers are signs; and what machine B, a state, finds in it."""

import pytest
import torch

from lesson_lib.attention import attend
from lesson_lib.chapters.c08_attention_vs_rnn import phone_book
from tests import code_of

asked = code_of("c08_attention_vs_rnn")

pytestmark = pytest.mark.on_cpu


def test_numbers_survive_their_signs():
    numbers = torch.arange(256)
    assert phone_book.read(phone_book.in_signs(numbers)) == numbers.tolist()
    quiet = 0.1 * phone_book.in_signs(torch.tensor([5, 250]))
    assert phone_book.read(quiet) == [5, 250]
    (signs,) = phone_book.in_signs(torch.tensor([183]))
    assert signs.tolist() == [1, -1, 1, 1, -1, 1, 1, 1]


def test_a_book_has_every_name_once_with_keys_of_length_1():
    book = phone_book.draw(7, 5, seed=0)
    assert book.who.tolist() == [*range(7)] and book.keys.shape == (7, 5) and book.signs.shape == (7, 8)
    torch.testing.assert_close(book.keys.norm(dim=1), torch.ones(7))
    assert torch.equal(book.keys, phone_book.draw(7, 5, seed=0).keys)
    assert not torch.equal(book.keys, phone_book.draw(7, 5, seed=1).keys)


def test_a_name_keeps_its_key_and_its_latest_number_counts():
    book = phone_book.moves(3, 5, who=torch.tensor([2, 0, 2, 2, 0]), seed=0)
    assert torch.equal(book.keys[0], book.keys[2]) and not torch.equal(book.keys[0], book.keys[1])
    now = phone_book.latest(book)
    assert torch.equal(now.keys, book.keys[[4, 3]]) and torch.equal(now.signs, book.signs[[4, 3]])


def test_an_answer_with_one_wrong_sign_is_wrong():
    signs = phone_book.in_signs(torch.tensor([3, 200]))
    almost = signs.clone()
    almost[1, 7] *= -1
    assert (phone_book.found(signs, signs), phone_book.found(almost, signs)) == (2, 1)


@pytest.mark.parametrize("n, low, high", [(8, 6, 8), (64, 5, 9)])
def test_attention_finds_all_and_b_some_eight(n, low, high):
    found = []
    for seed in range(20):
        book = phone_book.draw(n, seed=seed)
        answers = attend(10 * book.keys, 10 * book.keys, book.signs).output
        assert phone_book.found(answers, book.signs) == n
        b = phone_book.machine_b(book.keys, book.keys, book.signs)
        found.append(phone_book.found(b, book.signs))
    assert low < sum(found) / 20 < high


def test_machine_b_is_the_state_that_forgets_nothing():
    key, value = torch.randn(7, 5), torch.randn(7, 3)
    query = torch.randn(2, 5)
    torch.testing.assert_close(
        phone_book.machine_b(query, key, value), query @ asked.gated_state(key, value, torch.ones(7))
    )
