"""Which of eight heads are missed? Trained for a task that two heads can do, then silenced one at a time.

A silenced head's block of W_o is 0, and nothing is trained again. Each of the two names is counted by itself:
an average of both hides that most heads serve one of them.
"""

import torch

from lesson_lib.chapters.c04_multi_head.experiments import two_relations

RECIPE = {"system": "8 heads", "lr": 1e-2, "seeds": [0, 1, 2], "task": two_relations.RECIPE}


def silence(model: two_relations.TwoNames, *heads: int) -> None:
    """Set these heads' blocks of W_o to 0, in place."""
    width = model.attention.d_v
    with torch.no_grad():
        for head in heads:
            model.attention.w_output.weight[:, width * head : width * (head + 1)] = 0


def run(seed: int) -> list[dict[str, float | int]]:
    """One row for the whole layer (head -1), and one for each head that is silenced."""
    model, _ = two_relations.train(RECIPE["system"], lr=RECIPE["lr"], seed=seed)
    matrix = model.attention.w_output.weight
    whole, rows = matrix.detach().clone(), []
    for head in range(-1, model.attention.n_heads):
        if head >= 0:
            silence(model, head)
        one, three = two_relations.accuracy(model, two_relations.TEST_SEED)
        rows.append({"seed": seed, "head": head, "one back": one, "three back": three})
        with torch.no_grad():
            matrix.copy_(whole)
    return rows
