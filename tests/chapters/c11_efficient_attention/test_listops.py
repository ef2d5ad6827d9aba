"""ListOps: answers are right, expressions as long, deep and wide as asked."""

import re
import statistics

import pytest
import torch

from lesson_lib.chapters.c11_efficient_attention import listops
from lesson_lib.chapters.c11_efficient_attention.listops import CLOSE, FILLER, OPERATORS, TOKENS, text, value


def draw(batch, n, seed=0, **options):
    return listops.draw(torch.Generator("cpu").manual_seed(seed), batch, n, **options)


def slow_value(expression):
    """Another way to work it out: the first list without a list in it is replaced by its value, until none is
    left."""

    def worked_out(found):
        digits = [int(digit) for digit in found[2].split()]
        return {
            "MIN": str(sorted(digits)[0]), "MAX": str(sorted(digits)[-1]), "SM": str(sum(digits))[-1],
            "MED": str(int(statistics.median(digits))),
        }[found[1]]  # fmt: skip

    while "[" in expression:
        expression = re.sub(r"\[([A-Z]+) ([0-9 ]+) ]", worked_out, expression, count=1)
    return int(expression)


def depth(expression):
    deepest = now = 0
    for character in expression:
        now += {"[": 1, "]": -1}.get(character, 0)
        deepest = max(deepest, now)
    return deepest


def counts_of_arguments(tokens):
    """How many arguments each list of a sequence has."""
    counts, around = [], [0]
    for token in tokens.tolist():
        if token < 10:
            around[-1] += 1
        elif token == CLOSE:
            counts.append(around.pop())
        elif token != FILLER:
            around[-1] += 1
            around.append(0)
    return counts


@pytest.mark.parametrize("expression, wanted", [
    ("[MAX 4 3 [MIN 2 3 ] 1 0 ]", 4), ("[MIN 4 3 [MAX 2 7 ] 9 ]", 3), ("[MED 9 1 5 ]", 5),
    ("[MED 1 8 5 2 ]", 3),  # the mean of 2 and 5 is 3.5
    ("[MED 2 4 ]", 3), ("[SM 7 8 9 ]", 4), ("[SM 5 5 ]", 0), ("[SM 3 ]", 3), ("7", 7),
    ("[SM [SM 9 2 ] [MED 0 9 [MIN 8 3 ] ] [MAX 0 0 ] ]", 4), ("[MIN [MIN [MIN [MIN 6 7 ] 8 ] 9 ] 7 ]", 6),
    ("[MAX[MIN 1 2]0]", 1), (" [MAX\n1   5 ] ", 5),
])  # fmt: skip
def test_values_worked_out_by_hand(expression, wanted):
    assert value(expression) == wanted


@pytest.mark.parametrize("n", [7, 131])
def test_answers_are_right(n):
    tokens, answer = draw(211, n)
    for row, wanted in zip(tokens, answer.tolist(), strict=True):
        assert value(text(row)) == slow_value(text(row)) == wanted


@pytest.mark.parametrize("n", [4, 7, 131])
def test_expressions_are_half_as_long_as_there_is_room_at_least(n):
    tokens, answer = draw(97, n)
    assert tokens.shape == (97, n) and answer.shape == (97,)
    assert tokens.dtype == answer.dtype == torch.int64
    lengths = (tokens != FILLER).sum(1)
    assert n / 2 <= lengths.min() and lengths.max() <= n
    for row, length in zip(tokens, lengths.tolist(), strict=True):
        assert (row[:length] != FILLER).all() and (row[length:] == FILLER).all()
        assert row[length - 1] == CLOSE and 10 <= row[0] < CLOSE
        assert len(text(row).split()) == length


def test_all_lengths_come_about_equally_often():
    lengths = (draw(4000, 41).tokens != FILLER).sum(1)
    shares = torch.bincount(lengths, minlength=42) / 4000
    assert shares[:21].sum() == 0 and (shares[21:] > 0.01).all() and shares.max() < 0.1


@pytest.mark.parametrize("max_depth", [2, 3, 5])
def test_lists_are_no_deeper_than_asked(max_depth):
    n = 3 * 2**max_depth - 2  # lists of two, full, are as long as that; others may be longer
    depths = {depth(text(row)) for row in draw(211, n, max_depth=max_depth).tokens}
    assert max(depths) == max_depth


@pytest.mark.parametrize("max_depth", [1, 3])
def test_the_least_depth_that_is_let_in_is_deep_enough(max_depth):
    least = 3 * 2**max_depth - 2
    tokens, _ = draw(97, 2 * least, max_depth=max_depth, max_args=2)
    assert ((tokens != FILLER).sum(1) == least).all()  # full, each of them
    with pytest.raises(
        ValueError,
        match=(
            f"max_depth={max_depth} is too small for n={2 * least + 1}: .* max_depth={max_depth + 1} is"
            " enough"
        ),
    ):
        draw(97, 2 * least + 1, max_depth=max_depth, max_args=2)
    draw(97, 2 * least + 1, max_depth=max_depth + 1, max_args=2)


@pytest.mark.parametrize("max_args", [2, 3, 7])
def test_lists_have_two_arguments_up_to_as_many_as_asked(max_args):
    found = [count for row in draw(97, 131, max_args=max_args).tokens for count in counts_of_arguments(row)]
    assert set(found) == set(range(2, max_args + 1))
    shares = torch.bincount(torch.tensor(found, device="cpu"))[2:] / len(found)
    assert (shares - 1 / (max_args - 1)).abs().max() < 0.06


@pytest.mark.parametrize("operators", [("MIN",), ["SM", "MED"], ("MAX", "MIN", "MED"), tuple(OPERATORS)])
def test_operators_are_those_asked_for_each_as_often(operators):
    tokens, _ = draw(211, 67, operators=operators)
    found = torch.bincount(tokens.flatten(), minlength=len(TOKENS))[10:CLOSE]
    wanted = [TOKENS.index(f"[{name}") - 10 for name in operators]
    shares = found / found.sum()
    assert (shares[wanted] - 1 / len(operators)).abs().max() < 0.05
    assert shares[wanted].sum() == pytest.approx(1)


@pytest.mark.parametrize("n", [31, 131])
def test_no_answer_and_no_first_operator_gives_it_away(n):
    tokens, answer = draw(4000, n)
    shares = torch.bincount(answer, minlength=10) / 4000
    assert len(shares) == 10 and 0.05 < shares.min() and shares.max() < 0.16
    table = torch.zeros(len(TOKENS), 10, device="cpu")
    table.index_put_((tokens[:2000, 0], answer[:2000]), torch.ones(2000, device="cpu"), accumulate=True)
    right = (table.argmax(1)[tokens[2000:, 0]] == answer[2000:]).float().mean()
    assert 0.15 < right < 0.32  # more than by chance: a list that begins with MAX has no small value


@pytest.mark.parametrize(
    "expression, words",
    [
        ("", "must be an expression, got nothing"),
        ("[MAX 4 3 ] 5", "ends before word 5, '5'"),
        ("[max 4 3 ]", "got '\\[max'"),
        ("[MAX 4, 3 ]", "got '4,'"),
    ],
)  # fmt: skip
def test_what_is_no_expression_gets_a_sentence(expression, words):
    with pytest.raises(ValueError, match=words):
        value(expression)


@pytest.mark.parametrize("tokens, error, words", [
    ("[MAX", TypeError, "tokens must be a tensor \\(n\\), got str"), ([1], TypeError, "got list"),
    (torch.zeros(2, 3, dtype=torch.long, device="cpu"), TypeError, "got shape \\(2, 3\\); .* tokens\\[0\\]"),
    (torch.tensor([1, 16], device="cpu"), ValueError, "from 0 to 15, got 16"),
    (torch.tensor([-1, 1], device="cpu"), ValueError, "from 0 to 15, got -1"),
])  # fmt: skip
def test_what_are_no_tokens_get_a_sentence(no_shape_hook, tokens, error, words):
    with pytest.raises(error, match=words):
        text(tokens)


@pytest.mark.parametrize("name, least", [("batch", 1), ("n", 4), ("max_depth", 1), ("max_args", 2)])
@pytest.mark.parametrize("bad", [0, [7]])
def test_bad_numbers_get_a_sentence(no_shape_hook, name, least, bad):
    numbers = {"batch": 3, "n": 11} | {name: bad}
    with pytest.raises(
        ValueError, match=f"{name} must be a whole number >= {least}, got {re.escape(repr(bad))}"
    ):
        draw(**numbers)
