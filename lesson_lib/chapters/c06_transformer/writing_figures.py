"""The figures of part 06c, how a translator writes."""

from torch import Tensor

from lesson_lib.chapters.c06_transformer import figures
from lesson_lib.charts.basic import lines
from lesson_lib.charts.picture import Picture
from lesson_lib.experiments import results


def by_place(forced: Tensor, own: Tensor) -> Picture:
    """Right tokens (texts, positions), after the right ones and after its own."""
    curves = {"after right tokens": forced, "after its own": own}
    return lines(
        {
            "share of right tokens": {
                name: (list(range(right.shape[1])), right.float().mean(0).tolist())
                for name, right in curves.items()
            }
        },
        alt=(
            "Share of right tokens over the position in the answer, above .95 everywhere. Both curves dip at"
            " positions 2, 5 and 8; after its own tokens position 3 is as low as 2, and 6 and 9 are lower"
            " than after right ones."
        ),
        caption="1,000 test days. Positions 0 to 3 are the year, 5 and 6 the month, 8 and 9 the day.",
        x_axis="position in the answer",
    )


def cost_of_writing() -> Picture:
    """Of the stored experiment "translation"."""
    return figures.cost_of_writing([r for r in results("translation")["rows"] if r["kind"] == "speed"])
