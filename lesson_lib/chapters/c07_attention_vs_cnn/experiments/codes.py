"""Are its position codes why the small ViT needs many pictures? The task "pair" of the experiment "vit",
after the long training, with codes and without.

Without codes the ViT sees a set of patches: it cannot tell where a shape lies, only how a patch cuts it. All
else is as in the experiment "vit": data, steps, rate, first weights.
"""

from typing import Any

from lesson_lib.chapters.c07_attention_vs_cnn.experiments import vit
from lesson_lib.device import to_device

RECIPE = {
    "n": [1000, 5000],
    "steps": vit.RECIPE["steps"]["vit"]["long"],
    "lr": vit.RECIPE["lr"]["vit"]["pair"],
    "seeds": [0, 1, 2],
}


def run(seed: int) -> list[dict[str, Any]]:
    """A row for each number of pictures, with codes and without: accuracy on known and on test pictures."""
    rows = []
    for n in RECIPE["n"]:
        for codes in (True, False):
            model, history = vit.train("vit", "pair", n, seed, budget="long", codes=codes)
            known = vit.accuracy(model, *to_device(vit.training("pair", n, seed)))
            accuracy = vit.accuracy(model, *vit.held_out("pair", "test"))
            row = {"seed": seed, "n": n, "codes": codes, "accuracy": accuracy, "known": known}
            rows.append(row | {"cpu_s": round(history.cpu_s, 1)})
    return rows
