"""The stored small arena, read and drawn: who is how often right on which task."""

from statistics import fmean

from matplotlib.axes import Axes

from lesson_lib.chapters.c11_efficient_attention import figures
from lesson_lib.chapters.c11_efficient_attention.experiments import arena, bottleneck
from lesson_lib.charts.picture import MARKERS, Picture, color, figure
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
    """`arena_bars` of the stored experiment "arena"."""
    picture = figures.arena_bars(reached(), guessed())
    picture.alt = (
        "Accuracies on four tasks. Pairs: full attention is far ahead. Digits: low rank is. Text and"
        " listops: the kinds lie close together."
    )
    return picture


def without(left_out: str | None = None) -> dict[str, float]:
    """Each kind's mean accuracy over the tasks of the stored arena but `left_out`, the best first."""
    kept = [task for task in TASKS if task != left_out]
    means = {kind: fmean(fmean(of[task]) for task in kept) for kind, of in reached().items()}
    return dict(sorted(means.items(), key=lambda pair: -pair[1]))


@figure(
    "Accuracy over the number of pairs: full attention stays at the top; through one global token it"
    " falls as pairs become more.",
    "A mark for each of three seeds. Dotted: a guess.",
    width=6.0,
    height=3.2,
    title="share of questions answered rightly",
    legend=2,
)
def through_one_token(axes: Axes) -> None:
    """Of the stored experiment "bottleneck"; the line is the mean of the seeds."""
    counts = bottleneck.RECIPE["counts"]
    names = {"full": "full attention", "window and global": "all through one global token"}
    for k, (kind, name) in enumerate(names.items()):
        shares = [
            [row["accuracy"] for row in results("bottleneck")["rows"]
             if (row["kind"], row["attention"], row["count"]) == ("point", kind, count)]
            for count in counts
        ]  # fmt: skip
        style = {"color": color(k), "marker": MARKERS[k], "markersize": 7}
        axes.plot(counts, [fmean(seeds) for seeds in shares], color=color(k), linewidth=1.5)
        marks = [(count, share) for count, seeds in zip(counts, shares, strict=True) for share in seeds]
        axes.plot(*zip(*marks, strict=True), **style, linestyle="none", alpha=0.8, label=name)
    axes.axhline(1 / 8, color="0.35", linestyle=":", linewidth=1.3, zorder=1)
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.minorticks_off()
    axes.set(ylim=(0, 1.05), xlabel="pairs")
