"""The stages of an attention layer, for the clock of part 08b."""

import torch
from jaxtyping import Float
from torch import Tensor


def attention_stages(n: int, d: int, projections: bool) -> Float[Tensor, " stages"]:
    """The products of each stage of self-attention over n tokens of width d: scores, then mixtures; with
    `projections` also queries, keys and values before, and the output's behind."""
    inside = [n * n * d, n * n * d]
    if projections:
        inside = [3 * n * d * d, *inside, n * d * d]
    return torch.tensor(inside, dtype=torch.float64)
