"""When a question returns: 1, 3, 7 and 21 days after it was last answered; the day after a miss, from the
start."""

from datetime import date, timedelta

from lesson_lib.checks.store import Entry

DAYS = (1, 3, 7, 21)  # after 0, 1, 2 and 3 right answers in a row; after 4 it is known


def due(entry: Entry) -> date | None:
    """The day on which it returns; None where it has not been answered, or is known.

    >>> due({"attempts": 1, "day": "2026-11-21", "row": 1})
    datetime.date(2026, 11, 24)
    """
    row = entry.get("row", 0)
    if "day" not in entry or row >= len(DAYS):
        return None
    return date.fromisoformat(entry["day"]) + timedelta(days=DAYS[row])
