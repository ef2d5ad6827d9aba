"""What part 12 asks: the solutions are the sentences, to the letter and kindly."""

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from tests import code_of

asked = code_of("c12_claims")


@pytest.mark.on_cpu  # the numbers that are drawn decide how loud a stranger is
def test_to_the_letter_strangers_are_heard_and_kindly_they_are_not():
    q, k, v = torch.randn(5, 4), torch.randn(7, 4), torch.randn(7, 3)
    mask = torch.ones(5, 7, dtype=torch.bool)
    mask[:, -2:] = False
    loud = v.clone()
    loud[-1] += 100
    heard = asked.to_the_letter(q, k, loud, mask) - asked.to_the_letter(q, k, v, mask)
    assert heard.abs().min() > 1
    assert_close(asked.to_the_letter_2(q, k, v, mask), attend(q, k, v, mask=mask).output)


def test_shares_count_tokens():
    turned = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    x = torch.eye(2)
    assert asked.share_on_itself(x, x, x) == 1 and asked.share_on_itself(x, x, turned) == 0
    assert asked.share_on_itself_2(x, x, turned) == 1
