"""Part 08a: one head with nothing beside it, and gates that are open at the start."""

import math

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c08_attention_vs_rnn.experiments import remembering as trained
from lesson_lib.chapters.c08_attention_vs_rnn.look_back import LookBack
from lesson_lib.data.recall import draw
from lesson_lib.experiments import results
from lesson_lib.recurrent import Recurrent, State
from tests import code_of

asked = code_of("c08_attention_vs_rnn")


@pytest.mark.on_cpu
def test_one_head_asks_with_the_last_token_and_has_no_positions():
    model, tokens = LookBack(7), draw(torch.Generator().manual_seed(0), 3, 11).tokens
    x = model.embed(tokens)
    look, _ = attend(model.query(x[:, -1:]), model.key(x), model.value(x))
    assert_close(model(tokens), model.read(look[:, 0]))
    mixed = torch.cat([tokens[:, :-1].flip(1), tokens[:, -1:]], 1)
    assert_close(model(mixed), model(tokens))


def test_open_gates_keep_the_cell_and_change_nothing_else():
    plain, opened = trained.start("LSTM", 2), trained.start("LSTM, gates open", 2)
    d = 32
    for (name, one), (_, other) in zip(plain.named_parameters(), opened.named_parameters(), strict=True):
        changed = (one != other).nonzero()
        if name.endswith("bias_ih_l0"):
            assert changed.flatten().tolist() == [*range(d, 2 * d)]
            assert (other[d : 2 * d] == 5).all()
        else:
            assert len(changed) == 0, name


def test_attention_alone_has_fewer_weights_than_the_lstm():
    counts = {s: sum(p.numel() for p in trained.start(s).parameters()) for s in ("LSTM", "attention alone")}
    assert counts == {"LSTM": 9256, "attention alone": 3880}


def test_what_learners_write_in_08a_is_what_the_library_and_torch_do():
    layer = Recurrent("LSTM", 5, 3)
    W, U, b, c = layer.layer.parameters()
    x, state = torch.randn(5), State(torch.randn(3), torch.randn(3))
    made = asked.lstm_step(W @ x + U @ state.hidden + b + c, state.cell)
    expected = layer.step(x[None], State(state.hidden[None], state.cell[None]))
    assert_close(made, torch.stack([expected.hidden[0], expected.cell[0]]))

    U, states = torch.randn(3, 3), [torch.randn(3)]
    tokens = torch.randn(4, 3)

    def run(first):
        h = [first]
        for token in tokens:
            h.append(torch.tanh(token + U @ h[-1]))
        return torch.stack(h)

    states = run(torch.tensor([0.1, -0.2, 0.3]))
    slopes = torch.autograd.functional.jacobian(lambda first: run(first)[-1], states[0])
    assert_close(asked.way_back_2(U, states), slopes)
    one = run(states[0])[:, :1]
    assert_close(asked.way_back_2(U[:1, :1], one)[0, 0], asked.way_back(U[0, 0].item(), one[:, 0]))


def test_the_slope_by_hand():
    states = torch.tensor([0.76, 0.36, 0.18, 0.09])
    assert math.isclose(asked.way_back(0.5, states).item(), 0.1044, abs_tol=1e-4)


def stored(system, column="accuracy"):
    rows = [row for row in results("remembering")["rows"] if row["kind"] == "point"]
    return {
        (row["distance"], row["seed"]): row[column] for row in rows if row["system"] == system
    }  # fmt: skip


def test_rates_are_the_best_on_validation():
    rows = [row for row in results("remembering")["rows"] if row["kind"] == "rate"]
    for system, chosen in trained.RECIPE["lr"].items():
        means = {
            lr: sum(r["validation_accuracy"] for r in rows if (r["system"], r["lr"]) == (system, lr))
            for lr in trained.RECIPE["rates"]
        }
        assert max(means, key=means.get) == chosen
