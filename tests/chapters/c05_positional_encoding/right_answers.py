"""Right answers to the exercises of lesson 05, in many spellings; wrong ones to the open question."""

import math

import torch
from torch import Tensor

from lesson_lib.checks.inputs import table
from lesson_lib.positions import alibi, rotation, sinusoidal
from tests import code_of

asked = code_of("c05_positional_encoding")


def _as_complex_numbers(x: Tensor, positions: Tensor, frequencies: Tensor) -> Tensor:
    angles = positions[:, None] * frequencies
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


def _in_steps_of_two(positions: Tensor, d: int) -> Tensor:
    """As in many a tutorial: exp of a logarithm, and even and odd columns are written."""
    codes = positions.new_zeros(len(positions), d)
    frequencies = torch.exp(torch.arange(0, d, 2).to(positions) * (-math.log(10000.0) / d))
    codes[:, 0::2] = torch.sin(positions.unsqueeze(1) * frequencies)
    codes[:, 1::2] = torch.cos(positions.unsqueeze(1) * frequencies)
    return codes


def _by_diagonals(delta: float, frequencies: Tensor) -> Tensor:
    angles = (delta * frequencies).repeat_interleave(2)
    beside = angles.sin() * (torch.arange(len(angles)) % 2 == 0)
    return torch.diag(angles.cos()) + torch.diag(beside[:-1], 1) - torch.diag(beside[:-1], -1)


def _even_and_odd(x: Tensor, positions: Tensor, frequencies: Tensor) -> Tensor:
    angles = torch.outer(positions, frequencies)
    a, b, turned = x[..., ::2], x[..., 1::2], torch.empty_like(x)
    turned[..., ::2] = a * angles.cos() - b * angles.sin()
    turned[..., 1::2] = a * angles.sin() + b * angles.cos()
    return turned


def _by_assignment(outputs: Tensor, order: Tensor) -> Tensor:
    back = torch.zeros_like(outputs)
    back[order] = outputs
    return back


RIGHT = {
    "one_clock": (
        lambda angle: rotation(angle.item(), 2),
        lambda angle: torch.linalg.matrix_exp(angle * table([[0.0, 1.0], [-1.0, 0.0]])),
        lambda angle: torch.eye(2) * angle.cos() + table([[0.0, 1.0], [-1.0, 0.0]]) * angle.sin(),
        lambda angle: torch.stack([angle.cos(), angle.sin(), -angle.sin(), angle.cos()]).view(2, 2),
    ),
    "turn_rows": (
        lambda x, frequency: _as_complex_numbers(x, torch.arange(len(x)), table([frequency])),
        lambda x, frequency: torch.stack([row @ rotation(i * frequency, 2) for i, row in enumerate(x)]),
        lambda x, frequency: (
            (t := torch.arange(len(x))[:, None] * frequency).cos() * x
            + t.sin() * x.flip(-1) * table([-1.0, 1.0])
        ),
    ),
    "alibi_bias": (
        lambda n, slope: slope * alibi(n, 8)[0] / 0.5,
        lambda n, slope: table([[-slope * abs(i - j) for j in range(n)] for i in range(n)]),
        lambda n, slope: slope * torch.minimum(i := torch.arange(n) - torch.arange(n).unsqueeze(1), -i),
        lambda n, slope: (
            -torch.cdist(torch.arange(n).float()[:, None], torch.arange(n).float()[:, None]) * slope
        ),
    ),
    "squeezed": (
        lambda n, trained: torch.arange(n) / max(1, n / trained),
        lambda n, trained: table([i if n <= trained else i * trained / n for i in range(n)]),
        lambda n, trained: torch.arange(n).float() if n <= trained else torch.arange(n) * trained / n,
        lambda n, trained: torch.linspace(0, (n - 1) * min(trained, n) / n, n),
    ),
    "by_parts": (
        lambda turns, trained, times: turns / (1 + (times - 1) * (turns * trained < 2 * math.pi)),
        lambda turns, trained, times: torch.stack(
            [w if 2 * math.pi / w <= trained else w / times for w in turns]
        ),
        lambda turns, trained, times: turns.masked_fill(turns < 2 * math.pi / trained, 0.0).add(
            (turns / times).masked_fill(turns >= 2 * math.pi / trained, 0.0)
        ),
    ),
    "put_back": (
        lambda outputs, order: torch.empty_like(outputs).index_copy(0, order, outputs),
        lambda outputs, order: torch.stack(
            [outputs[(order == t).nonzero()[0, 0]] for t in range(len(order))]
        ),
        lambda outputs, order: torch.eye(len(order))[order].T @ outputs,
        _by_assignment,
    ),
    "code_row": (
        lambda position, d: table(
            [(math.sin, math.cos)[c % 2](position / 10000 ** ((c - c % 2) / d)) for c in range(d)]
        ),
        lambda position, d: sinusoidal(int(position) + 1, d)[-1],
        lambda position, d: _in_steps_of_two(table([position]), d)[0],
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
        _in_steps_of_two,
    ),
    "shift_matrix": (
        asked._right_blocks,
        lambda delta, frequencies: torch.linalg.matrix_exp(
            delta * torch.block_diag(*(w * table([[0.0, 1.0], [-1.0, 0.0]]) for w in frequencies))
        ),
        _by_diagonals,
    ),
    "offset_rows": (
        lambda query_positions, key_positions, radius: (
            key_positions - query_positions[:, None] + radius
        ).clamp(0, 2 * radius),
        lambda i, j, r: torch.stack([torch.clamp(j - one, min=-r, max=r) + r for one in i]),
        lambda i, j, r: (j[None, :, None] - i[:, None, None] >= torch.arange(1 - r, r + 1)).sum(-1),
        lambda i, j, r: torch.where((far := j - i[:, None]) > r, 2 * r, torch.where(far < -r, 0, far + r)),
    ),
    "turned": (asked._token_by_token, _as_complex_numbers, _even_and_odd),
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
