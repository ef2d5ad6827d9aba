"""What many rows of an experiment come to: the best on a validation split, and the lowest, the median and the
highest over seeds."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
Band = tuple[list, list, list, list]


def best(rows: Iterable[Row], setting: Sequence[str], by: Callable[[Row], Any]) -> list[Row]:
    """Of the rows that are equal in the columns `setting` the one for which `by` is largest; of equals the
    first.

    >>> tried = [(0, 1, 0.3), (0, 2, 0.5), (1, 1, 0.4)]
    >>> rows = [{"seed": seed, "lr": lr, "score": score} for seed, lr, score in tried]
    >>> [row["lr"] for row in best(rows, ["seed"], by=lambda row: row["score"])]
    [2, 1]
    """
    groups: dict[tuple, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[column] for column in setting), []).append(row)
    return [max(group, key=by) for group in groups.values()]


def band(values: Mapping[Any, Sequence[float]]) -> Band:
    """The keys in order, and the lowest, the median and the highest value of each: a line with a band for
    `charts.basic.lines`.

    >>> band({20: [3, 1, 2], 10: [7]})
    ([10, 20], [7, 1], [7, 2], [7, 3])
    """
    xs = sorted(values)
    return xs, *([pick(values[x]) for x in xs] for pick in (min, statistics.median, max))


def gathered(rows: Iterable[Row], by: str | Sequence[str], x: str, y: str) -> dict[Any, dict[Any, list]]:
    """{value of the column `by`: {value of `x`: the values of `y`}}, in the order of the rows; of several
    columns `by` a tuple.

    >>> gathered([{"kind": "a", "n": 2, "s": 5}, {"kind": "a", "n": 2, "s": 7}], "kind", "n", "s")
    {'a': {2: [5, 7]}}
    """
    groups: dict[Any, dict[Any, list]] = {}
    for row in rows:
        name = row[by] if isinstance(by, str) else tuple(row[column] for column in by)
        groups.setdefault(name, {}).setdefault(row[x], []).append(row[y])
    return groups


def bands(rows: Iterable[Row], by: str | Sequence[str], x: str, y: str) -> dict[Any, Band]:
    """What is `gathered`, each as a band.

    >>> bands([{"kind": "a", "n": 2, "s": 5}, {"kind": "a", "n": 2, "s": 7}], "kind", "n", "s")
    {'a': ([2], [5], [6.0], [7])}
    """
    return {name: band(values) for name, values in gathered(rows, by, x, y).items()}
