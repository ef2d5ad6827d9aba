"""The stored small arena, read and drawn: who is how often right on which task."""

from statistics import fmean

from lesson_lib.chapters.c11_efficient_attention import figures
from lesson_lib.chapters.c11_efficient_attention.experiments import arena
from lesson_lib.charts.picture import Picture
from lesson_lib.experiments import results

TASKS = tuple(task for task in arena.TASKS if task not in arena.RECIPE["dropped"])


def reached() -> dict[str, dict[str, list[float]]]:
    """Test accuracies of the stored arena, one for each seed, by kind and task."""
    rows = [row for row in results("arena")["rows"] if row["kind"] == "point"]
    return {
        kind: {
            task: [row["accuracy"] for row in rows if (row["task"], row["attention"]) == (task, kind)]
            for task in TASKS
        }
        for kind in arena.KINDS
    }


def guessed() -> dict[str, float]:
    """Test accuracy, by task, of who always says the most frequent class: the mean of the seeds."""
    rows = [row for row in results("arena")["rows"] if row["kind"] == "guess"]
    return {task: fmean(row["accuracy"] for row in rows if row["task"] == task) for task in TASKS}


def bars() -> Picture:
    """The stored arena: a panel for each task with the accuracies of each kind of attention."""
    picture = figures.arena_bars(reached(), guessed())
    picture.alt = (
        "Accuracies on four tasks. Pairs: full attention is far ahead. Digits: low rank is. Text and"
        " listops: the kinds lie close together."
    )
    return picture


def without(left_out: str | None = None) -> dict[str, float]:
    """Each kind's mean accuracy over the tasks of the stored arena but `left_out`, the best first."""
    kept = [task for task in TASKS if task != left_out]
    found = {kind: fmean(fmean(of[task]) for task in kept) for kind, of in reached().items()}
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))
