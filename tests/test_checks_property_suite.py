"""The property suite passes what is right, whoever wrote it, and names what is wrong: seven planted bugs, and
more."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lesson_lib.attention import attend
from lesson_lib.checks import properties
from lesson_lib.scores import Additive, dot

WIDTH = 5  # of the suite's queries, keys and values


def scores(query, key):
    return query @ key.mT / query.shape[-1] ** 0.5


def softmax(table, dim=-1):
    """Softmax in which a row of nothing but -inf gives zeros."""
    return table.softmax(dim).nan_to_num(0.0) if not table.requires_grad else _finite(table, dim)


def _finite(table, dim):
    empty = (table == -torch.inf).all(dim, keepdim=True)
    return table.masked_fill(empty, 0.0).softmax(dim).masked_fill(empty, 0.0)


def hidden(table, mask, number=-torch.inf):
    return table if mask is None else table.masked_fill(~mask, number)


# --- what must pass ---


def another_name(query, key, value, allowed=None):
    return attend(query, key, value, mask=allowed)


def ours_fused(query, key, value, mask=None):
    return attend(query, key, value, mask=mask, weights=False)


def torch_fused(query, key, value, mask=None):
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


def torch_multihead(query, key, value, mask=None):
    """nn.MultiheadAttention with identity projections. Its masks say True = hidden: the polarity is turned
    here."""
    layer = nn.MultiheadAttention(WIDTH, 1, bias=False, batch_first=True, device="cpu")
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.eye(WIDTH).repeat(3, 1))
        layer.out_proj.weight.copy_(torch.eye(WIDTH))
    hide = None if mask is None else ~mask
    return layer(query, key, value, attn_mask=hide, need_weights=False)[0]


def by_hand(query, key, value, mask=None):
    weights = softmax(hidden(scores(query, key), mask))
    return weights @ value, weights


@pytest.mark.parametrize(
    "function", [attend, ours_fused, torch_fused, torch_multihead, by_hand, another_name]
)
def test_what_is_right_passes(function):
    result = properties(function)
    assert result.passed, result
    assert result.diagnosis == "all 15 properties hold" and not result.warnings


def test_a_function_for_one_sequence_passes_with_a_warning():
    def flat(query, key, value, mask=None):
        if query.ndim != 2:
            raise ValueError("one sequence, please")
        return attend(query, key, value, mask=mask)

    result = properties(flat)
    assert result.passed and "one sequence" in result.warnings[0]


# --- the seven planted bugs ---


def inverted_mask(query, key, value, mask=None):
    return softmax(hidden(scores(query, key), None if mask is None else ~mask)) @ value


def minus_1e4(query, key, value, mask=None):
    weights = softmax(hidden(scores(query, key), mask, -1e4))
    return (weights if mask is None else weights * mask.any(-1, keepdim=True)) @ value


def over_queries(query, key, value, mask=None):
    return softmax(hidden(scores(query, key), mask), dim=-2) @ value


def no_scale(query, key, value, mask=None):
    return softmax(hidden(query @ key.mT, mask)) @ value


def masked_after(query, key, value, mask=None):
    weights = softmax(scores(query, key))
    return (weights if mask is None else weights * mask) @ value


def in_place(query, key, value, mask=None):
    if mask is not None:
        mask.logical_not_()
        return softmax(scores(query, key).masked_fill(mask, -torch.inf)) @ value
    return softmax(scores(query, key)) @ value


def from_the_data(query, key, value, mask=None):
    table = scores(query, key)
    return (
        softmax(table if mask is None else table.masked_fill(torch.triu(table, 1).bool(), -torch.inf)) @ value
    )


PLANTED = {
    inverted_mask: "opposite polarity",
    minus_1e4: "a finite number (such as -1e4 or -1e9); write -inf",
    over_queries: "the softmax runs over queries",
    no_scale: "1/sqrt(d_k) is missing",
    masked_after: "multiplied onto the weights after the softmax",
    in_place: "mask is changed in place",
    from_the_data: "the mask depends on the data",
}

# --- and others ---


def scaled_in_place(query, key, value, mask=None):
    query /= query.shape[-1] ** 0.5
    return softmax(hidden(query @ key.mT, mask)) @ value


def always_from_the_data(query, key, value, mask=None):
    table = scores(query, key)
    return softmax(table.masked_fill(torch.triu(table, 1).bool(), -torch.inf)) @ value


def multiplied_scores(query, key, value, mask=None):
    table = scores(query, key)
    return softmax(hidden(table, None if mask is None else (table * mask).bool())) @ value


def nan_in_empty_rows(query, key, value, mask=None):
    return hidden(scores(query, key), mask).softmax(-1) @ value


def average_in_empty_rows(query, key, value, mask=None):
    table = hidden(scores(query, key), mask)
    return table.masked_fill((table == -torch.inf).all(-1, keepdim=True), 0.0).softmax(-1) @ value


def nan_in_the_gradient(query, key, value, mask=None):
    bias = 0.0 if mask is None else torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)
    table = (scores(query, key) + bias).softmax(-1)
    return torch.where(table.isnan(), 0.0, table) @ value


def ignores_the_mask(query, key, value, mask=None):
    return softmax(scores(query, key)) @ value


def divides_by_width(query, key, value, mask=None):
    return softmax(hidden(query @ key.mT / query.shape[-1], mask)) @ value


def multiplies_by_root(query, key, value, mask=None):
    return softmax(hidden(query @ key.mT * query.shape[-1] ** 0.5, mask)) @ value


def overflows(query, key, value, mask=None):
    exps = scores(query, key).exp()
    exps = exps if mask is None else exps * mask
    return exps / exps.sum(-1, keepdim=True) @ value


def counts_positions(query, key, value, mask=None):
    bias = 0.3 * torch.arange(key.shape[-2], device=key.device)
    return softmax(hidden(scores(query, key) + bias, mask)) @ value


def random(query, key, value, mask=None):
    return attend(query, key, value, mask=mask, dropout=0.5).output


def other_weights(query, key, value, mask=None):
    output, weights = attend(query, key, value, mask=mask)
    return output, weights.flip(-1)


def one_row_too_few(query, key, value, mask=None):
    return attend(query, key, value, mask=mask).output[..., :-1, :]


OTHERS = {
    scaled_in_place: "query is changed in place",
    always_from_the_data: "the mask depends on the data",
    multiplied_scores: "the mask depends on the data",
    nan_in_empty_rows: "may look at nothing gives nan",
    average_in_empty_rows: "the average of all values",
    nan_in_the_gradient: "makes the gradient nan",
    ignores_the_mask: "it is ignored",
    divides_by_width: "divided by d_k; divide by sqrt(d_k)",
    multiplies_by_root: "multiplied by sqrt(d_k)",
    overflows: "nan",
    counts_positions: "depends on the order of the keys",
    random: "two calls with the same inputs differ",
    other_weights: "the weights that are returned are not those",
    one_row_too_few: "has shape (2, 2, 5), asked for is (2, 3, 5)",
}


@pytest.mark.parametrize("function", [*PLANTED, *OTHERS], ids=lambda function: function.__name__)
def test_a_bug_is_named(function):
    result = properties(function)
    assert not result.passed
    assert (PLANTED | OTHERS)[function] in result.diagnosis, result


def test_the_opposite_polarity_is_also_a_warning():
    assert "opposite mask polarity" in properties(inverted_mask).warnings[-1]


def test_causality_fails_for_a_bug_that_leaks():
    assert "the future leaks" in properties(inverted_mask).findings["causality"]
    assert "the future leaks" in properties(ignores_the_mask).findings["causality"]


def test_without_scale_the_factor_is_free():
    assert properties(no_scale, scale=False).passed
    assert properties(lambda q, k, v, mask=None: attend(q, k, v, score=dot, mask=mask), scale=False).passed


def test_other_scores_are_judged_but_for_their_scale():
    score = Additive(WIDTH, WIDTH, 7).to("cpu")
    result = properties(lambda q, k, v, mask=None: attend(q, k, v, score=score, mask=mask))
    assert result.passed and "no multiple of q . k" in result.warnings[0]


@pytest.mark.parametrize(
    "odd",
    [None, 3, "attend", nn.Linear, torch.ones(2), lambda: 1, lambda q, k, v: q, print, lambda *a: 1 / 0],
)
def test_nothing_makes_the_suite_fail(odd):
    result = properties(odd)
    assert not result.passed and not result
    assert result.diagnosis[:40] in repr(result) and "NOT YET" in result._repr_html_()


def test_the_suite_ends_an_endless_loop(monkeypatch):
    from lesson_lib.checks import runner

    def forever(query, key, value, mask=None):
        while True:
            pass

    monkeypatch.setattr(runner, "DEADLINE_S", 0.2)
    assert "had no answer after " in properties(forever).diagnosis


def test_the_random_state_is_left_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    properties(random)
    assert torch.equal(torch.get_rng_state(), before)
