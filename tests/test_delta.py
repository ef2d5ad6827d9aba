"""The delta rule: token by token, and by a triangular solve; what it overwrites."""

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.delta import CHUNK, as_rnn, attend_delta, delta_step

B, H, N, D_K, D_V = 2, 3, 7, 5, 11
EXACT = {"atol": 1e-12, "rtol": 1e-12}


def drawn(*batch, n=N, gate=None):
    """Queries, keys, values, beta and log_gate in float64, keys of length 1, all waiting for gradients."""
    shapes = {"query": (n, D_K), "key": (n, D_K), "value": (n, D_V), "beta": (n,)}
    made = {name: torch.randn(*batch, *shape, dtype=torch.float64) for name, shape in shapes.items()}
    made["key"] = made["key"] / made["key"].norm(dim=-1, keepdim=True)
    made["beta"] = made["beta"].sigmoid()
    if gate is not None:
        shape = (n, D_K) if gate == "columns" else (n,)
        made["log_gate"] = torch.nn.functional.logsigmoid(torch.randn(*batch, *shape, dtype=torch.float64))
    return {name: x.requires_grad_() for name, x in made.items()}


@pytest.mark.parametrize("n", [1, 2, N, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 3])
@pytest.mark.parametrize("gate", [None, "tokens", "columns"])
@pytest.mark.parametrize("batch", [(), (B, H)])
def test_both_forms_agree_gradients_too(n, gate, batch):
    inputs = drawn(*batch, n=n, gate=gate)
    whole, loop = attend_delta(**inputs), as_rnn(**inputs)
    assert whole.shape == (*batch, n, D_V)
    assert_close(whole, loop, **EXACT)
    of = torch.randn_like(whole)
    ours, theirs = (
        torch.autograd.grad(x, list(inputs.values()), of, allow_unused=True) for x in (whole, loop)
    )
    for x, y, name in zip(ours, theirs, inputs, strict=True):
        x, y = (torch.zeros_like(inputs[name]) if g is None else g for g in (x, y))
        assert_close(x, y, **EXACT, msg=name)


def test_by_the_rules_formula_with_no_step_of_ours():
    """S = (diag(a) - beta k (a * k)^T) S + beta k v^T, as Kimi's paper writes it."""
    inputs = {name: x.detach() for name, x in drawn(n=CHUNK + 9, gate="columns").items()}
    S, outputs = torch.zeros(D_K, D_V, dtype=torch.float64), []
    for q, k, v, b, g in zip(*inputs.values(), strict=True):
        a = g.exp()
        S = (a.diag() - b * torch.outer(k, a * k)) @ S + b * torch.outer(k, v)
        outputs.append(S.mT @ q)
    assert_close(attend_delta(**inputs), torch.stack(outputs), **EXACT)


def test_equal_gates_of_all_columns_are_one_gate():
    inputs = drawn(B, n=CHUNK + 5, gate="tokens")
    columns = inputs | {"log_gate": inputs["log_gate"][..., None].expand(-1, -1, D_K)}
    assert_close(attend_delta(**columns), attend_delta(**inputs), **EXACT)


@pytest.mark.parametrize("gate", ["tokens", "columns"])
@pytest.mark.parametrize("form", [attend_delta, as_rnn])
def test_gates_near_zero_stay_finite(form, gate):
    inputs = {name: x.detach().float() for name, x in drawn(n=CHUNK + 5, gate=gate).items()}
    inputs["log_gate"] = torch.full_like(inputs["log_gate"], -50.0).requires_grad_()
    found = form(**inputs)  # a state that keeps nothing answers with the token alone
    own = (inputs["query"] * inputs["key"]).sum(-1) * inputs["beta"]
    assert_close(found, own[:, None] * inputs["value"])
    assert torch.autograd.grad(found.sum(), inputs["log_gate"])[0].isfinite().all()


def test_axes_in_front_are_broadcast():
    inputs = {name: x.detach() for name, x in drawn(B, H, gate="tokens").items()}
    shared = inputs | {
        "key": inputs["key"][:1],
        "beta": inputs["beta"][0, 0],
        "log_gate": inputs["log_gate"][0, 0],
    }
    wanted = [
        [
            as_rnn(*(x[b, h] for x in (inputs["query"],)), inputs["key"][0, h], inputs["value"][b, h],
                   shared["beta"], log_gate=shared["log_gate"])
            for h in range(H)
        ]
        for b in range(B)
    ]  # fmt: skip
    for form in (attend_delta, as_rnn):
        assert_close(form(**shared), torch.stack([torch.stack(row) for row in wanted]), **EXACT)


def test_a_state_goes_on():
    inputs = {name: x.detach() for name, x in drawn(B, gate="tokens").items()}
    state, outputs = None, []
    for q, k, v, b, g in zip(*(x.unbind(1) for x in inputs.values()), strict=True):
        output, state = delta_step(q, k, v, b, state, log_gate=g)
        outputs.append(output)
    assert state.shape == (B, D_K, D_V)
    assert_close(torch.stack(outputs, 1), attend_delta(**inputs), **EXACT)


def test_no_tokens_give_no_outputs():
    inputs = {name: x.detach() for name, x in drawn(B, n=0).items()}
    assert attend_delta(**inputs).shape == as_rnn(**inputs).shape == (B, 0, D_V)


@pytest.mark.parametrize(
    "changed, error, words",
    [
        ({"query": torch.zeros(N + 1, D_K)}, ValueError, "a query for each key, got 8 and 7"),
        ({"value": torch.zeros(N - 1, D_V)}, ValueError, "each key needs its own value"),
        ({"beta": torch.ones(N - 1)}, ValueError, r"beta must have a number for each token, \(\.\.\., 7\)"),
        ({"beta": 1.0}, TypeError, "beta must be a tensor of torch.float32 as query is, got float"),
        ({"log_gate": torch.zeros(N).double()}, TypeError, "log_gate must be a tensor .* got torch.float64"),
        ({"log_gate": torch.zeros(N, D_V)}, ValueError, r"log_gate must have a number .* got \(7, 11\)"),
        ({"log_gate": torch.full((N,), -torch.inf)}, ValueError, "log_gate must be finite"),
    ],
)
@pytest.mark.parametrize("form", [attend_delta, as_rnn])
def test_bad_input_gets_a_sentence(no_shape_hook, form, changed, error, words):
    inputs = {name: x.detach().float() for name, x in drawn(gate="tokens").items()}
    with pytest.raises(error, match=words):
        form(**inputs | changed)
