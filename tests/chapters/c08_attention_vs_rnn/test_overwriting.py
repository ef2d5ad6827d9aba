"""What part 08d lets its learners write is what the library does."""

import torch

from lesson_lib.delta import attend_delta, delta_step
from tests import code_of

asked = code_of("c08_attention_vs_rnn")

N, D_K, D_V = 7, 5, 3


def test_both_problems_are_the_librarys_delta_rule():
    q, k, v, beta = torch.randn(N, D_K), torch.randn(N, D_K) / 2, torch.randn(N, D_V), torch.rand(N)
    wanted = attend_delta(q, k, v, beta)
    torch.testing.assert_close(asked.corrected_2(q, k, v, beta), wanted)
    torch.testing.assert_close((q @ k.mT).tril() @ asked.corrected(k, v, beta), wanted)
    torch.testing.assert_close(q[-1] @ asked.delta_state(k, v, beta), wanted[-1])
    k, v, beta, gate = torch.randn(N, D_K) / 2, torch.randn(N, D_V), torch.rand(N), torch.rand(N)
    state = None
    for i in range(N):
        _, state = delta_step(k[i], k[i], v[i], beta[i], state, log_gate=gate[i].log())
    torch.testing.assert_close(asked.delta_state_2(k, v, beta, gate), state)
