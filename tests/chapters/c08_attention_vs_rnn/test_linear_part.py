"""What part 08c lets its learners write is what the library does."""

import torch

from lesson_lib.attention import attend
from lesson_lib.linear import as_rnn, feature_map
from tests import code_of

asked = code_of("c08_attention_vs_rnn")

N, D_K, D_V = 7, 5, 3


def test_by_state_is_linear_attention():
    q, k, v = torch.randn(N, D_K), torch.randn(N, D_K), torch.randn(N, D_V)
    found = asked.by_state(feature_map(q), feature_map(k), v)
    torch.testing.assert_close(found, as_rnn(q, k, v))
    start = feature_map(k[:2]).mT @ v[:2], feature_map(k[:2]).sum(0)
    last = asked.by_state_2(*start, *map(feature_map, (q[2:], k[2:])), v[2:])
    torch.testing.assert_close(last, found[-1])


def test_a_gate_is_a_penalty_on_the_score_and_equal_gates_are_one():
    q, k, v = torch.randn(2, D_K).abs(), torch.randn(N, D_K).abs(), torch.randn(N, D_V)
    bias = torch.arange(N - 1.0, -1, -1) * torch.tensor(0.7).log()
    by_table = attend(q, k, v, score=lambda a, b: (a @ b.mT).log(), score_bias=bias.expand(2, -1)).output
    gate = torch.full((N,), 0.7)
    summed, weight = (q @ asked.gated_state(k, x, gate) for x in (v, torch.ones(N, 1)))
    torch.testing.assert_close(summed / weight, by_table)
    k, v, gate = torch.randn(N, D_K), torch.randn(N, D_V), torch.rand(N)
    torch.testing.assert_close(
        asked.gated_state_2(k, v, gate[:, None].expand(-1, D_K)), asked.gated_state(k, v, gate)
    )
