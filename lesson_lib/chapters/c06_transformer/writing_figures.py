"""The figures of part 06c, how a translator writes."""

from torch import Tensor

from lesson_lib.chapters.c06_transformer import figures
from lesson_lib.chapters.c06_transformer.experiments import translation
from lesson_lib.charts.basic import lines
from lesson_lib.charts.picture import Picture
from lesson_lib.experiments import dates, results


def by_place(forced: Tensor, own: Tensor) -> Picture:
    """Share of right signs at each place of the answer, behind right ones and behind its own."""
    places = list(range(1, len(forced) + 1))
    curves = {"behind the right signs": forced, "behind its own": own}
    return lines(
        {"right signs": {name: (places, shares.tolist()) for name, shares in curves.items()}},
        alt=(
            "Right signs over the place in the answer: near 1 everywhere, lowest at the last digits of the"
            " year and of the day; behind its own signs a little lower."
        ),
        caption="1,000 test dates. Places 1 to 4 are the year, 6 and 7 the month, 9 and 10 the day.",
        x_axis="place in the answer",
    )


def cost_of_writing() -> Picture:
    """Stored: processor seconds over the length of an answer, with the cache and without."""
    return figures.cost_of_writing([r for r in results("translation")["rows"] if r["kind"] == "speed"])


def beside_the_recurrent() -> Picture:
    """Stored: texts without a wrong sign over the number of dates, for the Transformer and for the recurrent
    machine that looks back."""
    recurrent = dates.by_dates(results("dates")["rows"])["additive", 500]
    ours = translation.by_dates(results("translation")["rows"])
    return lines(
        {"texts without a wrong sign": {"recurrent, looks back": recurrent, **ours}},
        alt=(
            "Texts without a wrong sign over one to four dates. The recurrent machine stays above .95; the"
            " Transformer falls from near 1 to .89, .51 and 0."
        ),
        caption="Median of three seeds, bands from lowest to highest.",
        x_axis="dates in a row",
        height=3.2,
    )
