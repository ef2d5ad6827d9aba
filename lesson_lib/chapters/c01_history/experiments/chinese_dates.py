"""Chinese dates as a sixteenth language of the translator that looks back: 2021年3月3日星期三 becomes
2021-03-03.

Model, steps and learning rate are those of `dates` for one date; only the languages differ. Judged are 100
days of the test split in every language and style, so that each language has as many texts.
"""

from datetime import date

import torch

from lesson_lib.data import dates as data
from lesson_lib.experiments import dates
from lesson_lib.models.translator import translate

LOCALES = (*data.LOCALES, data.CHINESE)
RECIPE = {
    "system": "additive",
    "locales": list(LOCALES),
    "steps": 500,
    "lr": 1e-2,
    "days": 100,
    "map": "2021年3月3日星期三",
    "seeds": [0, 1, 2],
}


def right(model: torch.nn.Module, locale: str) -> float:
    """Share of this language's texts without a wrong character, on days of the test split."""
    days = [date.fromordinal(day) for day in data.days("test")[: RECIPE["days"]].tolist()]
    texts = [(data.written(day, locale, style), day.isoformat()) for day in days for style in data.STYLES]
    made = translate(model, [source for source, _ in texts])
    return sum(one.text == target for one, (_, target) in zip(made, texts, strict=True)) / len(texts)


def run(seed: int) -> list[dict]:
    """A row for each language, and on the first seed a map."""
    model, _ = dates.train(
        RECIPE["system"], lr=RECIPE["lr"], seed=seed, steps=RECIPE["steps"], locales=LOCALES
    )
    rows = [{"kind": "trained", "seed": seed, "locale": one, "right": right(model, one)} for one in LOCALES]
    return rows + ([dates.map_row(model, RECIPE["map"], seed)] if seed == RECIPE["seeds"][0] else [])
