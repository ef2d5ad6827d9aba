"""What the small DETR says about single scenes: the trainings of the experiment "detr", told scene by scene.

A row for each seed: what it finds in the first test scenes; where its surest query looks in the first scene
with three objects; its score; and, as the level of chance, the score of the same lists when each is given to
the next scene.
"""

from typing import Any

import torch

from lesson_lib.chapters.c07_attention_vs_cnn import detr
from lesson_lib.chapters.c07_attention_vs_cnn.experiments import detr as detecting
from lesson_lib.chapters.c07_attention_vs_cnn.scenes import MOST, NONE
from lesson_lib.device import to_device

RECIPE = {"steps": detecting.RECIPE["steps"], "lr": detecting.RECIPE["lr"], "scenes": 8, "seeds": [0, 1, 2]}


def run(seed: int) -> list[dict[str, Any]]:
    """The row of a seed."""
    model, history = detecting.train(seed)
    given = detecting.scenes("test")
    lists = detr.detections(detecting.find(model, given))
    return [
        {
            "seed": seed,
            "cpu_s": round(history.cpu_s, 1),
            "test": _rounded(detr.score(lists, given)),
            "chance": _rounded(detr.score(lists[-1:] + lists[:-1], given)),
            "scenes": [[_told(one) for one in each] for each in lists[: RECIPE["scenes"]]],
            "looked": looked(model),
        }
    ]


@torch.no_grad()
def looked(model: detr.Detr) -> dict[str, Any]:
    """The first test scene with three objects, the box of its surest query, and that query's weights: heads,
    rows, columns of cells."""
    given = detecting.scenes("test")
    scene = int((given.kind != NONE).sum(1).eq(MOST).nonzero()[0])
    found = model.eval()(to_device(given.canvas[scene][None, None]), weights=True)
    surest = max(detr.detections(found)[0], key=lambda one: one.confidence, default=None)
    asking = 0 if surest is None else surest.query
    heads = detr.maps(found.weights, model.grid).heads[0, :, asking]
    return {
        "scene": scene,
        "query": asking,
        "box": [] if surest is None else [round(edge, 2) for edge in surest.box],
        "weights": (heads.double() * 1000).round().div(1000).tolist(),
    }


def _told(one: detr.Detection) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "confidence": round(one.confidence, 3),
        "box": [round(edge, 2) for edge in one.box],
        "query": one.query,
    }


def _rounded(result: detr.Score) -> dict[str, float]:
    return {name: round(value, 4) for name, value in result._asdict().items()}
