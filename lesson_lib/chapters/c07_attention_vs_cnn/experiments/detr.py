"""A small DETR on scenes of one to three shapes: how much it finds, what its queries specialise in, and two
ablations.

"no matching" gives object k of the list to query k; the list has no order, so a query cannot know which
object is meant. "no encoder" leaves the encoder out. Each step draws new scenes; the rate, the steps and the
weights of the loss were chosen by recall and precision on the VALIDATION scenes, with seed 0; the scores of
the rows are those of test scenes, drawn by another generator and seen by nobody before.
"""

from functools import cache, partial
from typing import Any

import torch

from lesson_lib import require
from lesson_lib.chapters.c07_attention_vs_cnn import detr
from lesson_lib.chapters.c07_attention_vs_cnn import scenes as data
from lesson_lib.chapters.c07_attention_vs_cnn.detr import Detections, Detr, Score, Truth
from lesson_lib.chapters.c07_attention_vs_cnn.scenes import NONE, Objects
from lesson_lib.device import to_device
from lesson_lib.training import History, fit

RECIPE = {
    "systems": ["DETR", "no matching", "no encoder"],
    "n_queries": 5,
    "d_model": 48,
    "n_heads": 4,
    "d_inner": 96,
    "n_encoder": 1,
    "n_decoder": 2,
    "weights": detr.WEIGHTS | {"no object": detr.NO_OBJECT},
    "batch": 32,
    "steps": 1000,
    "lr": 3e-3,
    "scenes": {"validation": 500, "test": 1000},
    "data_seeds": {"validation": 1_000_001, "test": 1_000_002},  # trainings draw with seeds 0, 1, 2
    "kept": 400,  # test scenes whose boxes are kept, query by query
    "seeds": [0, 1, 2],
}
AT_ONCE = 250  # scenes that are judged together


@cache
def scenes(split: str) -> Objects:
    """The scenes of "validation" or "test", always the same ones, on the CPU. Raises ValueError for another
    split."""
    require.one_of(RECIPE["scenes"], split=split)
    generator = torch.Generator("cpu").manual_seed(RECIPE["data_seeds"][split])
    return data.objects(generator, RECIPE["scenes"][split])


def draw(generator: torch.Generator) -> Truth:
    """A batch of new scenes."""
    return detr.truth(data.objects(generator, RECIPE["batch"]))


def make(system: str = "DETR") -> Detr:
    """The untrained model; raises ValueError for an unknown system."""
    require.one_of(RECIPE["systems"], system=system)
    names = ("n_queries", "d_model", "n_heads", "d_inner", "n_encoder", "n_decoder")
    sizes = {name: RECIPE[name] for name in names}
    return Detr(**sizes | ({"n_encoder": 0} if system == "no encoder" else {}))


def train(seed: int = 0, *, system: str = "DETR", steps: int = RECIPE["steps"]) -> tuple[Detr, History]:
    """Train one model. Its history's score is 2 · recall · precision / (recall + precision) on validation
    scenes; both have columns of their own."""
    torch.manual_seed(seed)
    model, seen = to_device(make(system)), []

    def validate(model: Detr) -> float:
        given = scenes("validation")
        seen.append(detr.score(detr.detections(find(model, given)), given))
        recall, precision, _ = seen[-1]
        return 2 * recall * precision / max(1e-9, recall + precision)

    loss = partial(detr.loss, matched=system != "no matching")
    history = fit(
        model, draw, loss, steps=steps, lr=RECIPE["lr"], validate=validate, seed_number=seed, name=system
    )  # fmt: skip
    for row, one in zip(history.rows, seen, strict=False):
        row |= one._asdict()
    return model, history


@torch.no_grad()
def find(model: Detr, given: Objects) -> Detections:
    """What the model finds in all those scenes, with `earlier` layers and without weights, on the CPU."""
    model.eval()
    parts = [model(to_device(part)) for part in given.canvas[:, None].split(AT_ONCE)]
    layers = [
        Detections(
            torch.cat([one.logits for one in same]).cpu(), torch.cat([one.boxes for one in same]).cpu()
        )
        for same in zip(*([*part.earlier, part] for part in parts), strict=True)
    ]
    return layers[-1]._replace(earlier=tuple(layers[:-1]))


def by_objects(found: Detections, given: Objects) -> list[dict[str, float]]:
    """A row for scenes with one, two and three objects: "objects", "scenes", and what `Score` holds."""
    detected, counts = detr.detections(found), (given.kind != NONE).sum(1)
    rows = []
    for number in counts.unique().tolist():
        chosen = (counts == number).nonzero()[:, 0]
        part = Objects(*(table[chosen] for table in given))
        result = detr.score([detected[i] for i in chosen.tolist()], part)
        rows.append({"objects": number, "scenes": len(chosen)} | _rounded(result))
    return rows


def by_query(found: Detections) -> list[dict[str, Any]]:
    """A row per query: how often it found something, and for the first scenes that are kept: the middle of
    its box in pixels, and 1 where it found something."""
    kept, queries = RECIPE["kept"], range(found.boxes.shape[1])
    times = torch.zeros(len(found.boxes), len(queries), dtype=torch.long, device="cpu")
    for image, row in enumerate(detr.detections(found)):
        times[image, [one.query for one in row]] = 1
    places = (found.boxes[:kept, :, :2] * data.SIZE).double()
    return [
        {
            "query": q,
            "found": int(times[:, q].sum()),
            "x": [round(x, 1) for x in places[:, q, 0].tolist()],
            "y": [round(y, 1) for y in places[:, q, 1].tolist()],
            "sure": times[:kept, q].tolist(),
        }
        for q in queries
    ]


def run(seed: int) -> list[dict[str, Any]]:
    """A row per system: its history, and on test scenes the score, also by the number of objects and after
    each decoder layer; of seed 0 its queries."""
    return [_row(seed, system) for system in RECIPE["systems"]]


def _row(seed: int, system: str) -> dict[str, Any]:
    model, history = train(seed, system=system)
    given = scenes("test")
    found = find(model, given)
    row = {
        "system": system,
        "seed": seed,
        "parameters": sum(p.numel() for p in model.parameters()),
        "cpu_s": round(history.cpu_s, 1),
        "test": _rounded(detr.score(detr.detections(found), given)),
        "by_objects": by_objects(found, given),
        "by_layer": [_rounded(detr.score(detr.detections(one), given)) for one in (*found.earlier, found)],
        "history": [{name: round(value, 4) for name, value in one.items()} for one in history.rows],
    }
    return row | ({"queries": by_query(found)} if seed == 0 and system != "no encoder" else {})


def _rounded(result: Score) -> dict[str, float]:
    return {name: round(value, 4) for name, value in result._asdict().items()}
