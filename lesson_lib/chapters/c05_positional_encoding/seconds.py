"""A second problem of lesson 05: positions on which counting the places in a list is caught."""

import torch

from lesson_lib.checks.exercise import Exercise, Write
from lesson_lib.checks.expose import Expose


def _counts_from_zero(query_positions: torch.Tensor, key_positions: torch.Tensor, radius: int) -> bool:
    return all(bool((p == torch.arange(len(p))).all()) for p in (query_positions, key_positions))


def _all_beyond(query_positions: torch.Tensor, key_positions: torch.Tensor, radius: int) -> bool:
    return radius == 0


def offset_rows(first: Write, _n: int) -> Exercise:
    """Positions that do not begin at 0."""
    return Expose(
        name="offset_rows_2",
        title="Catch it",
        asked=(
            "somebody counts the places in the two lists and never looks at the positions in them; while whole"
            " texts are read, nobody notices. Write positions on which it fails, such as occur when a model"
            " writes word by word"
        ),
        of=first,
        slip="you count the places in the two lists; take the positions as they are given",
        solution=(
            "offset_rows_2 = {\n"
            '    "query_positions": torch.tensor([5]),  # the newest word alone\n'
            '    "key_positions": torch.tensor([3, 4, 5]),\n'
            '    "radius": 2,\n'
            "}"
        ),
        remember="with a cache the only query is the newest: its position is not 0, and code must be given it",
        hints=(
            "For which positions is the place in the list the position itself?",
            "When a model writes word by word, how many queries are there, and which position has it?",
            "Which rows are asked for, if the only query stands at 5 and the keys at 3, 4 and 5?",
        ),
        slips={
            "both lists count from 0, and so a place is a position: begin elsewhere": _counts_from_zero,
            "with radius 0 every offset has the same row": _all_beyond,
        },
    )
