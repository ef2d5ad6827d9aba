"""The figures of part 06c, how a translator writes."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from lesson_lib.chapters.c06_transformer import figures
from lesson_lib.chapters.c06_transformer.experiments import translation
from lesson_lib.charts.basic import lines
from lesson_lib.charts.picture import Picture
from lesson_lib.data.dates import Pair
from lesson_lib.device import to_device
from lesson_lib.experiments import dates, results
from lesson_lib.models.translator import PAD


def by_place(forced: Tensor, own: Tensor) -> Picture:
    """Shares (places,)."""
    numbers = list(range(1, len(forced) + 1))
    curves = {"behind the right signs": forced, "behind its own": own}
    return lines(
        {"right signs": {name: (numbers, shares.tolist()) for name, shares in curves.items()}},
        alt=(
            "Right signs over the place in the answer, above .96 everywhere. Behind right signs dips at"
            " places 3, 6 and 9; behind its own signs the places after these are low, too."
        ),
        caption="1,000 test dates. Places 1 to 4 are the year, 6 and 7 the month, 9 and 10 the day.",
        x_axis="place in the answer",
    )


@torch.no_grad()
def surer(model: nn.Module, wrong: Sequence[tuple[Pair, str]]) -> int:
    """Of the wrong answers (pair, text written), how many the model finds likelier than the right ones."""
    scores = []
    for texts in ([pair.target for pair, _ in wrong], [text for _, text in wrong]):
        batch = to_device(
            model.vocabulary.batch([(p.source, t) for (p, _), t in zip(wrong, texts, strict=True)])
        )
        logits = model(batch.source, batch.lengths, batch.target[:, :-1]).logits
        losses = cross_entropy(logits.mT, batch.target[:, 1:], ignore_index=PAD, reduction="none")
        scores.append(losses.sum(1))
    return int((scores[1] < scores[0]).sum())


def cost_of_writing() -> Picture:
    """Of the stored experiment "translation"."""
    return figures.cost_of_writing([r for r in results("translation")["rows"] if r["kind"] == "speed"])


def beside_the_recurrent() -> Picture:
    """Of the stored experiments "dates" and "translation"."""
    recurrent = dates.by_dates(results("dates")["rows"])["additive", 500]
    ours = translation.by_dates(results("translation")["rows"])
    return lines(
        {
            "texts without a wrong sign": {"recurrent, looks back": recurrent}
            | {f"Transformer, {label}": band for label, band in ours.items()}
        },
        alt=(
            "Texts without a wrong sign over one to four dates. The recurrent machine stays above .95; the"
            " Transformer falls from near 1 to .89, .51 and 0."
        ),
        caption=(
            "Median of three seeds, bands from lowest to highest. The recurrent machine was trained on one,"
            " two and three."
        ),
        x_axis="dates in a row",
        height=3.2,
    )
