"""The figures of part 09 that show stored runs: how far a frame must look, where it looks, other voices, and
what lies beyond the reach."""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes

from lesson_lib import summary
from lesson_lib.chapters.c09_truncated_attention import figures, speech
from lesson_lib.chapters.c09_truncated_attention.experiments import phonemes
from lesson_lib.chapters.c09_truncated_attention.nearness import even
from lesson_lib.charts.basic import lines
from lesson_lib.charts.marks import note
from lesson_lib.charts.picture import MARKERS, Picture, color, figure, styled
from lesson_lib.experiments import results

LAYERS = ("first layer", "second layer")


def rows(name: str, kind: str) -> list[Mapping[str, Any]]:
    """The stored rows of one kind."""
    return [row for row in results(name)["rows"] if row["kind"] == kind]


@styled
def by_radius() -> Picture:
    """Of the stored experiment "phonemes"."""
    curves: dict[str, dict[int | None, list[float]]] = {"attention": {}}
    for row in rows("phonemes", "point"):
        curves["attention"].setdefault(row["radius"], []).append(row["accuracy"])
    figure, axes, _ = figures.over_radius(curves)
    axes.set_title("share of the test voice's frames named rightly", loc="left")
    (guess,) = rows("phonemes", "guess")
    return Picture(
        figure,
        "Accuracy over the radius: it rises to 15 frames and falls for the whole sentence.",
        f"A mark for each seed. Always to say silence: {guess['accuracy']:.2f}.",
    )


def same_loss(level: float = 0.3) -> Picture:
    """Of the stored experiment "phonemes"."""
    stored = results("phonemes")["rows"]
    picture = figures.matched({f"training loss {level:g}": phonemes.matched(stored, level)})
    picture.alt = "At the same training loss a radius of 15 frames is best; the whole sentence is last."
    picture.caption = f"Each asked as soon as its training loss had fallen to {level:g}."
    return picture


@figure(
    "Untrained, both layers lie at the line of even weights; trained, they lie above it, in each seed one"
    " layer far above.",
    "A mark for each seed.",
    width=6.0,
    height=3.2,
    title="share of the weights within 15 frames",
    legend=2,
)
def near(axes: Axes) -> None:
    """Of the stored experiments "phonemes" and "nearness"."""
    systems = {
        "untrained": rows("nearness", "untrained"),
        "trained": [row for row in rows("phonemes", "point") if row["radius"] is None],
    }
    for layer, name in enumerate(LAYERS):
        marks = [
            (x + 0.12 * (layer - 0.5), row["near"][layer])
            for x, these in enumerate(systems.values())
            for row in these
        ]
        style = {"linestyle": "none", "color": color(layer), "marker": MARKERS[layer], "markersize": 7}
        axes.plot(*zip(*marks, strict=True), **style, label=name)
    heard = speech.load("validation")[:8]  # those that `experiments.phonemes.near` looks at
    alike = sum(even(len(one.labels), 15) for one in heard) / len(heard)
    axes.axhline(alike, color="0.5", linewidth=1, zorder=0)
    note(axes, f"even weights: {alike:.2f}", y=alike, shift=(-2, 3), color="0.35", ha="right")
    axes.set(xticks=[0, 1], xticklabels=list(systems), xlim=(-0.5, 1.5), ylim=(0, 1))


@figure(
    "For each of fourteen voices two marks, for a window of 15 frames and for the whole sentence.",
    "For each mark 600 steps on the other thirteen voices.",
    width=7.0,
    height=3.4,
    title="share of its frames named rightly",
    x="the voice that was never heard",
    legend=2,
)
def voices(axes: Axes) -> None:
    """Of the stored experiment "nearness"."""
    accuracy: dict[str, dict[int | None, float]] = {}
    for row in rows("nearness", "voice"):
        accuracy.setdefault(row["voice"], {})[row["radius"]] = row["accuracy"]
    ordered = sorted(accuracy, key=lambda voice: accuracy[voice][15])
    for x, voice in enumerate(ordered):
        axes.plot([x, x], list(accuracy[voice].values()), color="0.7", linewidth=1.5, zorder=0)
    for k, (radius, name) in enumerate({15: "radius 15", None: "the whole sentence"}.items()):
        style = {"linestyle": "none", "color": color(k), "marker": MARKERS[k], "markersize": 7}
        axes.plot([accuracy[voice][radius] for voice in ordered], **style, label=name)
    axes.set_xticks(range(len(ordered)), ordered)


def recalled() -> Picture:
    """Of the stored experiment "beyond", windows of radius 8."""
    rows_of_8 = [row for row in rows("beyond", "point") if row["radius"] == 8]
    bands = dict(sorted(summary.bands(rows_of_8, "layers", "distance", "accuracy").items()))
    picture = lines(
        {
            "share of right answers": {
                f"{layers} layer{'s' if layers > 1 else ''}: reach {8 * layers}": (distances, medians)
                for layers, (distances, _, medians, _) in bands.items()
            }
        },
        alt="Curves for one, two and four layers: each is at the top up to its reach, and then at a guess.",
        caption="Radius 8; median of three seeds, trained for each distance, with near letters first.",
        x_axis="how many tokens before the question the letter stands",
        y_limits=(0.0, 1.05),
        height=3.2,
    )
    (axes,) = picture.figure.axes
    for k, layers in enumerate(bands):
        axes.axvline(8 * layers + 0.5, color=color(k), linestyle="--", linewidth=1, zorder=0)
    return picture
