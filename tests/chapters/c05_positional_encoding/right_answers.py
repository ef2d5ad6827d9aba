"""Right answers to the exercises of lesson 05, in many spellings; wrong ones to the open question."""

import math

import torch
from torch import Tensor

from lesson_lib.chapters.c05_positional_encoding.exercises import _right_blocks, _token_by_token
from lesson_lib.checks.inputs import table
from lesson_lib.positions import alibi, rotation, sinusoidal


def _as_complex_numbers(x: Tensor, positions: Tensor, frequencies: Tensor) -> Tensor:
    angles = positions[:, None] * frequencies
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


RIGHT = {
    "dog_in_both": ("a", "yes"),
    "shuffled_points": ("a", "stays exactly the same"),
    "slowest_clock": ("b", "what is far looks equally far"),
    "codes_on_points": ("c", "half as often"),
    "one_matrix": ("a", "p_405"),
    "swapped_sign": ("b", "to p_35"),
    "either_side": ("c", "neither"),
    "random_between": ("c", "no"),
    "same_words": ("b", "constant along each diagonal"),
    "one_clock": (
        lambda angle: rotation(angle.item(), 2),
        lambda angle: torch.linalg.matrix_exp(angle * table([[0.0, 1.0], [-1.0, 0.0]])),
    ),
    "turn_rows": (
        lambda x, frequency: _as_complex_numbers(x, torch.arange(len(x)), table([frequency])),
        lambda x, frequency: torch.stack([row @ rotation(i * frequency, 2) for i, row in enumerate(x)]),
    ),
    "learned_at_128": (0.28, "35 / 125"),
    "striped": ("b", "Shaw, ALiBi, rotary"),
    "who_survives": ("b", "Shaw"),
    "stretched_near": ("c", "6 %, a guess"),
    "stretched_far": ("a", "nearly always"),
    "alibi_bias": (
        lambda n, slope: slope * alibi(n, 8)[0] / 0.5,
        lambda n, slope: table([[-slope * abs(i - j) for j in range(n)] for i in range(n)]),
    ),
    "squeezed": (
        lambda n, trained: torch.arange(n) / max(1, n / trained),
        lambda n, trained: table([i if n <= trained else i * trained / n for i in range(n)]),
    ),
    "put_back": (
        lambda outputs, order: torch.empty_like(outputs).index_copy(0, order, outputs),
        lambda outputs, order: torch.stack(
            [outputs[(order == t).nonzero()[0, 0]] for t in range(len(order))]
        ),
    ),
    "code_row": (
        lambda position, d: table(
            [(math.sin, math.cos)[c % 2](position / 10000 ** ((c - c % 2) / d)) for c in range(d)]
        ),
        lambda position, d: sinusoidal(int(position) + 1, d)[-1],
    ),
    "waves": (
        lambda positions, d: torch.stack(
            [(positions * 10000.0 ** (-(c - c % 2) / d) + c % 2 * math.pi / 2).sin() for c in range(d)], dim=1
        ),
        lambda positions, d: torch.stack(
            [
                rotation(float(i), d, dtype=positions.dtype, device=positions.device)
                @ sinusoidal(1, d, dtype=positions.dtype, device=positions.device)[0]
                for i in positions
            ]
        ),
    ),
    "shift_matrix": (
        _right_blocks,
        lambda delta, frequencies: torch.linalg.matrix_exp(
            delta * torch.block_diag(*(w * table([[0.0, 1.0], [-1.0, 0.0]]) for w in frequencies))
        ),
    ),
    "offset_rows": (
        lambda query_positions, key_positions, radius: (
            key_positions - query_positions[:, None] + radius
        ).clamp(0, 2 * radius),
        lambda i, j, r: torch.stack([torch.clamp(j - one, min=-r, max=r) + r for one in i]),
    ),
    "turned": (
        _token_by_token,
        _as_complex_numbers,
    ),
    "wavelength": ("200 * pi", 628.3185, "2 * pi * 10000**(8 / 16)"),
    "shaw_numbers": (544, "2 * (2 * 8 + 1) * 16", "17 * 16 + 17 * 16"),
    "code_products": ("a", "(A)"),
    "why_no_order": (
        (
            "Every token is projected with the same matrices, and each output is a sum over all keys, which"
            " has no order; adding position codes to the tokens changes that."
        ),
        (
            "Scores belong to pairs of tokens, and each token keeps its own query, key and value wherever it"
            " stands. A causal mask or rotary positions tie the scores to places."
        ),
    ),
}

# in the order of the slips
WRONG = {
    "why_no_order": (
        "Self-attention is permutation invariant.",
        "The softmax loses the order.",
        "The matrices learn the order of the tokens.",
        "After training on ordered text it knows the order.",
        "The residual connection changes that.",
        "A padding mask breaks it.",
    ),
}
