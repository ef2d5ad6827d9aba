"""Right answers to the exercises of lesson 09, in many spellings; wrong ones to the open question."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from lesson_lib.attention import attend
from lesson_lib.masks import window
from lesson_lib.truncated import attend_window
from tests import code_of

asked = code_of("c09_truncated_attention")


def _layers(i: Tensor, j: Tensor, before: int, after: int) -> Tensor:
    return torch.where(j < i, -(-(i - j) // before), -(-(j - i) // after))


def _by_floats(i: Tensor, j: Tensor, before: int, after: int) -> Tensor:
    return torch.maximum((i - j) / before, (j - i) / after).ceil().to(i.dtype)


def _pair_by_pair(i: Tensor, j: Tensor, before: int, after: int) -> Tensor:
    found = [
        -((b - a) // before) if b < a else -((a - b) // after)
        for a, b in zip(i.tolist(), j.tolist(), strict=True)
    ]
    return torch.tensor(found, dtype=i.dtype, device=i.device)


def _dilated(queries: Tensor, keys: Tensor, radius: int, step: int) -> Tensor:
    steps = step * torch.arange(-radius, radius + 1, device=keys.device)
    return (keys[:, None] == (queries[:, None] + steps)[:, None]).any(-1)


def _by_lists(queries: Tensor, keys: Tensor, radius: int, step: int) -> Tensor:
    rows = [
        [j in range(i - radius * step, i + radius * step + 1, step) for j in keys.tolist()]
        for i in queries.tolist()
    ]
    return torch.tensor(rows, dtype=torch.bool, device=queries.device)


def _blockwise(query: Tensor, key: Tensor, value: Tensor, radius: int) -> Tensor:
    """The function of the repair, with its keys and values in one line."""
    n = len(query)
    count = -(-n // radius)
    filler = count * radius - n
    q = pad(query, (0, 0, 0, filler)).unflatten(0, (count, radius))
    k, v = (pad(x, (0, 0, radius, radius + filler)).unfold(0, 3 * radius, radius).mT for x in (key, value))
    i = torch.arange(count * radius, device=query.device).view(count, radius, 1)
    j = i[:, :1] + torch.arange(-radius, 2 * radius, device=query.device)
    mask = ((i - j).abs() <= radius) & (j >= 0) & (j < n)
    return attend(q, k, v, mask=mask).output.flatten(0, 1)[:n]


def _sliced(query: Tensor, key: Tensor, value: Tensor, radius: int) -> Tensor:
    """Query by query, without any filler."""
    near = [slice(max(0, i - radius), i + radius + 1) for i in range(len(query))]
    return torch.cat([attend(query[i : i + 1], key[s], value[s]).output for i, s in enumerate(near)])


def _biased(query: Tensor, key: Tensor, value: Tensor, radius: int) -> Tensor:
    """A column for each offset, hidden ones at minus infinity."""
    n = len(query)
    k, v = (pad(x, (0, 0, radius, radius)).unfold(0, 2 * radius + 1, 1).mT for x in (key, value))
    scores = (k @ query[..., None]).squeeze(-1) / query.shape[-1] ** 0.5
    j = torch.arange(n, device=key.device)[:, None] + torch.arange(-radius, radius + 1, device=key.device)
    weights = scores.masked_fill((j < 0) | (j >= n), -torch.inf).softmax(-1)
    return (weights[:, None] @ v)[:, 0]


def _in_slices(query: Tensor, key: Tensor, value: Tensor, radius: int, block: int) -> Tensor:
    """Places in the slices, moved on by where each begins."""
    n, outputs = len(query), []
    for start in range(0, n, block):
        end = min(n, start + block)
        first, last = max(0, start - radius), min(n, end + radius)
        k, v = key[first:last], value[first:last]
        i = torch.arange(end - start, device=key.device)[:, None] + start
        j = torch.arange(len(k), device=key.device) + first
        outputs.append(attend(query[start:end], k, v, mask=(i - j).abs() <= radius).output)
    return torch.cat(outputs)


def _written_in_place(query: Tensor, key: Tensor, value: Tensor, radius: int, block: int) -> Tensor:
    """A tensor stands ready; the last block overlaps the one before it."""
    n, made = len(query), torch.empty_like(value)
    for start in range(0, n, block):
        start = max(0, min(start, n - block))
        end = min(n, start + block)
        left = max(0, start - radius)
        near = slice(left, end + radius)
        band = torch.ones(end - start, len(key[near]), dtype=torch.bool, device=key.device)
        shift = start - left
        band = band.tril(shift + radius).triu(shift - radius)
        made[start:end] = attend(query[start:end], key[near], value[near], mask=band).output
    return made


def _pieces(x: Tensor, radius: int, block: int) -> Tensor:
    """Overlapping pieces of a padded sentence, by unfold."""
    return pad(x, (0, 0, radius, radius)).unfold(0, block + 2 * radius, block).mT


def _block_for_block(x: Tensor, radius: int, block: int) -> Tensor:
    """Zeros where a block has no neighbours, one block after the other."""
    n, made = len(x), []
    for start in range(0, n, block):
        first, last = max(0, start - radius), min(n, start + block + radius)
        front = x.new_zeros(first - (start - radius), x.shape[1])
        behind = x.new_zeros(start + block + radius - last, x.shape[1])
        made.append(torch.cat([front, x[first:last], behind]))
    return torch.stack(made)


def _band_in_pieces(n: int, radius: int, block: int) -> Tensor:
    """The whole band, cut as the keys are."""
    band = pad(window(n, radius).float(), (radius, radius))
    pieces = band.unfold(1, block + 2 * radius, block)  # (n, blocks, reach)
    which = torch.arange(n) // block
    return pieces[torch.arange(n), which].unflatten(0, (-1, block)) > 0


def _by_places(n: int, radius: int, block: int) -> Tensor:
    """One small band for all blocks, without the zeros at the ends."""
    p, c = torch.arange(block)[:, None], torch.arange(block + 2 * radius)
    band = (p <= c) & (c <= p + 2 * radius)
    key = torch.arange(0, n, block)[:, None, None] - radius + c
    return band & (key >= 0) & (key < n)


RIGHT = {
    "keys_of_blocks": (
        _pieces,
        _block_for_block,
        lambda x, radius, block: pad(x, (0, 0, radius, radius))[
            torch.arange(0, len(x), block)[:, None] + torch.arange(block + 2 * radius)
        ],
    ),
    "who_is_seen": (
        _band_in_pieces,
        _by_places,
        lambda n, radius, block: torch.tensor(
            [
                [
                    [
                        max(0, i - radius) <= first + c - radius <= min(n - 1, i + radius)
                        for c in range(block + 2 * radius)
                    ]
                    for i in range(first, first + block)
                ]
                for first in range(0, n, block)
            ]
        ),
    ),
    "layers_until": (_layers, _by_floats, _pair_by_pair),
    "dilated_window": (_dilated, _by_lists, asked._offset_by_offset),
    "near_blocks": (_blockwise, _sliced, _biased, attend_window),
    "block_by_block": (
        _in_slices,
        _written_in_place,
        lambda query, key, value, radius, block: attend_window(query, key, value, radius),
    ),
    "beyond_every_window": (
        (
            "100 frames are farther than 3 * 15 = 45, so the output does not depend on the sound at all and"
            " there is nothing to learn from. I would stack 7 layers."
        ),
        (
            "The receptive field is 45 frames to each side; changing the sound changes nothing at the output,"
            " its derivative is zero. A dilated window reaches farther at the same price."
        ),
        (
            "Each layer carries a sound 15 frames on, three layers 45. No information arrives, and no amount"
            " of training helps. Take a radius of 34 or more, or add a global token."
        ),
    ),
}

# in the order of the slips
WRONG = {
    "beyond_every_window": (
        "The model would learn it with more data.",
        "I would give it more heads and a larger hidden size.",
        "Over 100 frames the gradients vanish.",
        "After 100 frames the model has forgotten the sound.",
        "The model hears only 15 frames, and the sound is 100 away.",
        "It lacks positional encodings, so it cannot tell where the sound was; I would add them.",
    ),
}
