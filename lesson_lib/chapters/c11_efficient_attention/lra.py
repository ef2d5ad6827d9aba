"""A published arena: test accuracies of eleven kinds of attention on five tasks, in %.

All numbers are the paper's own, its Table 1; the sixth task, Path-X, is left out, as in the paper's mean,
since no kind learned it. ListOps has sequences of up to 2,000 tokens, Text and Retrieval of 4,000 bytes
(Retrieval of each of two documents), Image and Pathfinder of 1,024 pixels.
Source: Tay et al. 2021, "Long Range Arena", arXiv:2011.04006.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from statistics import fmean

from lesson_lib import require

TASKS = ("ListOps", "Text", "Retrieval", "Image", "Pathfinder")
RIGHT = {
    "Transformer": (36.37, 64.27, 57.46, 42.44, 71.40),
    "Local": (15.82, 52.98, 53.39, 41.46, 66.63),
    "Sparse": (17.07, 63.58, 59.59, 44.24, 71.71),
    "Longformer": (35.63, 62.85, 56.89, 42.22, 69.71),
    "Linformer": (35.70, 53.94, 52.27, 38.56, 76.34),
    "Reformer": (37.27, 56.10, 53.40, 38.07, 68.50),
    "Sinkhorn": (33.67, 61.20, 53.83, 41.23, 67.45),
    "Synthesizer": (36.99, 61.68, 54.67, 41.61, 69.45),
    "BigBird": (36.05, 64.02, 59.29, 40.83, 74.87),
    "Linear": (16.13, 65.90, 53.09, 42.34, 75.30),
    "Performer": (18.01, 65.40, 53.82, 42.77, 77.05),
}


def means(tasks: Sequence[str] = TASKS) -> dict[str, float]:
    """Each kind's mean accuracy over these tasks, the best first. Raises ValueError for no or an unknown
    task.

    >>> next(iter(means(["ListOps", "Text", "Retrieval", "Image"]).items()))
    ('Transformer', 50.135)
    """
    if isinstance(tasks, str) or not tasks:
        raise ValueError(f"tasks must be a list of at least one of {', '.join(TASKS)}, got {tasks!r}")
    for task in tasks:
        require.one_of(TASKS, task=task)
    found = {
        kind: round(fmean(right[TASKS.index(task)] for task in tasks), 4) for kind, right in RIGHT.items()
    }
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def choices(tasks: Sequence[str] = TASKS) -> Iterator[tuple[str, ...]]:
    """Every choice of one task or more.

    >>> len(list(choices()))
    31
    """
    for count in range(1, len(tasks) + 1):
        yield from combinations(tasks, count)
