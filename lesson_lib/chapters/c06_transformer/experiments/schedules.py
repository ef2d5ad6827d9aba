"""The translator of `translation`, single dates, with the published schedule in the place of the cosine.

"published" rises for 400 steps to about the peak of `translation` and falls with the root of the step;
"no rise" stands at that peak for 400 steps and then falls in the same way. Post-norm is tried as well. All
else is the recipe of `translation`, whose rows are the baseline with the cosine (pre-norm).
"""

import functools
from itertools import product
from typing import Any

import torch

from lesson_lib.chapters.c06_transformer.experiments import translation
from lesson_lib.data import dates as data
from lesson_lib.device import to_device
from lesson_lib.experiments.dates import judge
from lesson_lib.models import translator
from lesson_lib.models.translator import Batches, TransformerTranslator, Vocabulary
from lesson_lib.training import fit, warmup

RECIPE = {
    "model": translation.RECIPE["model"],
    "batch": translation.RECIPE["batch"],
    "pool": translation.RECIPE["pool"],
    "lr": translation.RECIPE["lr"],  # at the peak
    "steps": translation.RECIPE["runs"][0][1],
    "warm": 400,
    "schedules": ["cosine", "published", "no rise"],
    "seeds": [0, 1, 2],
}


def factor(step: int, schedule: str) -> float:
    """What the peak rate is multiplied with at a step of "published" or "no rise": at most 1."""
    warm = RECIPE["warm"]
    return warmup(step if schedule == "published" else max(step, warm), 1, warm) * warm**0.5


def run(seed: int) -> list[dict[str, Any]]:
    """A row for each place of the norm and each schedule: exact match on 1,000 test dates."""
    rows = []
    draw = functools.partial(translation.mixed, dates=(1,))
    for norm_first, schedule in product((True, False), RECIPE["schedules"]):
        torch.manual_seed(seed)
        sizes = RECIPE["model"] | {"norm_first": norm_first}
        model = to_device(TransformerTranslator(Vocabulary(data.characters()), **sizes))
        history = fit(
            model, Batches(model.vocabulary, draw, batch=RECIPE["batch"], pool=RECIPE["pool"]),
            translator.loss, steps=RECIPE["steps"], lr=RECIPE["lr"], seed_number=seed, name=schedule,
            schedule="one-cycle" if schedule == "cosine" else functools.partial(factor, schedule=schedule),
        )  # fmt: skip
        exact = judge(model.eval(), 1, width=1, longest=21)["exact"]
        rows.append(
            {"seed": seed, "norm_first": norm_first, "schedule": schedule, "exact": exact,
             "cpu_s": round(history.cpu_s, 1)}
        )  # fmt: skip
    return rows
