"""What keeps the small ViT from the rule, where pictures are few? The task "pair" of the experiment "vit",
with one thing changed at a time.

"as it was": the long training. "longer": four times the steps. "smaller codes": position codes that begin at
a sixth of their size. "no codes": the ViT sees a set of patches; it cannot tell where a shape lies, only how
a patch cuts it. All else is as in the experiment "vit": data, rate, first weights.
"""

from typing import Any

from lesson_lib.chapters.c07_attention_vs_cnn.experiments import vit
from lesson_lib.device import to_device

WAYS: dict[str, dict[str, Any]] = {
    "as it was": {},
    "longer": {"budget": "longest"},
    "smaller codes": {"codes": 0.02},
    "no codes": {"codes": False},
}
RECIPE = {
    "rows": [[1000, way] for way in WAYS] + [[5000, "as it was"], [5000, "no codes"]],
    "lr": vit.RECIPE["lr"]["vit"]["pair"],
    "seeds": [0, 1, 2],
}


def run(seed: int) -> list[dict[str, Any]]:
    """A row for each number of pictures and each way: accuracy on known and on test pictures."""
    rows = []
    for n, way in RECIPE["rows"]:
        model, history = vit.train("vit", "pair", n, seed, **WAYS[way])
        known = vit.accuracy(model, *to_device(vit.training("pair", n, seed)))
        accuracy = vit.accuracy(model, *vit.held_out("pair", "test"))
        row = {"seed": seed, "n": n, "way": way, "accuracy": accuracy, "known": known}
        rows.append(row | {"cpu_s": round(history.cpu_s, 1)})
    return rows
