"""An LSTM with attention over its states: its tasks by hand, and its parts."""

import pytest
import torch

from lesson_lib.attention import attend
from lesson_lib.chapters.c08_attention_vs_rnn.experiments import joined
from lesson_lib.data.recall import CHARACTERS, QUESTION, SYMBOLS


def some(task, distance=7, batch=11):
    return joined.drawn(task, torch.Generator().manual_seed(0), batch, distance)


def test_what_is_asked_for():
    tokens, answer = some("first")
    for row, right in zip(tokens.tolist(), answer.tolist(), strict=True):
        symbols = [(i, token) for i, token in enumerate(row) if token < len(SYMBOLS)]
        (one, first), (two, second) = symbols
        assert first == right != second and 1 <= two - one <= 4
        assert len(row) - 1 - one == 7 and row[-1] == QUESTION
    tokens, answer = some("one")
    assert tokens.shape == (11, 8) and torch.equal(tokens[:, 0], answer)


def test_a_system_has_only_its_parts():
    with pytest.raises(ValueError, match="system"):
        joined.Joined("RNN")
    parts = {name: [n for n, _ in joined.Joined(name).named_children()] for name in joined.SYSTEMS}
    assert "core" not in parts["attention"] and "core" in parts["both"]


@pytest.mark.on_cpu
def test_the_head_is_attend_over_the_states():
    model, tokens = joined.Joined("both", d_model=5), some("one").tokens
    states = model.core(model.embed(tokens))
    q, k, v = (model.head[name](states) for name in ("query", "key", "value"))
    torch.testing.assert_close(model(tokens), model.read(attend(q, k, v).output[:, -1]))


def test_attention_alone_does_not_know_the_order():
    model, tokens = joined.Joined("attention"), torch.randint(len(CHARACTERS), (3, 11))
    turned = torch.cat([tokens[:, torch.randperm(10)], tokens[:, -1:]], 1)
    torch.testing.assert_close(model(turned), model(tokens))
    assert (joined.Joined("both")(turned) - joined.Joined("both")(tokens)).abs().max() > 1e-4
