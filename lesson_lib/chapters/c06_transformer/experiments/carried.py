"""Through which words the subject's number travels to the gap, in each seed's BERT of `bert`.

Misleading test sentences with the verb hidden. For each head: the mean weight that the word right behind the
subject puts on the subject, and right verbs after the subject is hidden from some words there: from the gap
alone, from itself alone, from the word right behind it alone, and from all words but itself and the gap;
from the gap and the word right behind it ("two").

What the gap reads there is tested in turn ("unread"): the gap may not see the subject, the word right behind
it, both, the next word but one (a control), the subject and that control.
"""

from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor

from lesson_lib.chapters.c06_transformer import bert as model_of
from lesson_lib.chapters.c06_transformer.agreement import Sentences
from lesson_lib.chapters.c06_transformer.bert import Bert
from lesson_lib.chapters.c06_transformer.experiments import bert as masked
from lesson_lib.device import to_device
from lesson_lib.experiments import results

WAYS = ("gap", "itself", "behind", "others", "two")
UNREAD = {  # what the gap may not see: places, counted from the subject
    "subject": (0,),
    "behind": (1,),
    "subject and behind": (0, 1),
    "control": (2,),
    "subject and control": (0, 2),
}
RECIPE = {
    "model": masked.RECIPE,
    "every": 2,
    "ways": list(WAYS),
    "unread": {name: list(places) for name, places in UNREAD.items()},
    "seeds": masked.RECIPE["seeds"],
}


def misled() -> Sentences:
    """Every second misleading test sentence, so many as are judged together."""
    given = masked.probed()
    return given.take(given.misleading.nonzero()[:: RECIPE["every"], 0])


def routes() -> dict[str, dict[int, float]]:
    """Stored: what is hidden in all four heads, and by seed the share of right verbs."""
    rows = {row["seed"]: row | row["unread"] for row in results("carried")["rows"] if row["layer"] is None}
    names = {
        "the subject": "subject",
        "the next word": "behind",
        "both": "subject and behind",
        "the subject, also from the next word": "two",
        "the next word but one": "control",
    }
    return {name: {seed: row[key] for seed, row in rows.items()} for name, key in names.items()}


def blind(given: Sentences, who: str) -> Tensor:
    """Which queries may not see the subject (b, n, n); who: one of WAYS."""
    place = torch.arange(given.words.shape[1], device="cpu")
    itself, gap = (place == at[:, None] for at in (given.subject, given.verb))
    behind = place == given.subject[:, None] + 1
    asks = {"gap": gap, "itself": itself, "behind": behind, "others": ~(itself | gap), "two": gap | behind}
    return asks[who][:, :, None] & itself[:, None, :]


def unread(given: Sentences, what: str) -> Tensor:
    """Which words the gap may not see (b, n, n); what: one of UNREAD."""
    place = torch.arange(given.words.shape[1], device="cpu")
    hidden = torch.stack([place == given.subject[:, None] + step for step in UNREAD[what]]).any(0)
    return (place == given.verb[:, None])[:, :, None] & hidden[:, None, :]


def _right(model: Bert, given: Sentences, layer: int | None, head: int | None, table: Tensor) -> float:
    table = to_device(table)
    with ExitStack() as stack:
        for one in range(len(model.encoder.layers)) if layer is None else (layer,):
            stack.enter_context(model_of.changed(model, one, head, blind=table))
        return masked.agrees(masked.at_verb(model, given), given).mean().item()


def run(seed: int) -> list[dict[str, Any]]:
    """A row for each head, and one for all heads (layer None)."""
    model, _ = masked.train(seed)
    given = misled()
    behind = blind(given, "behind").any(2)
    tables = model.stack(*to_device((given.masked(), given.lengths)), weights=True).weights
    rows = []
    for layer, head in ((0, 0), (0, 1), (1, 0), (1, 1), (None, None)):
        row: dict[str, Any] = {"seed": seed, "layer": layer, "head": head}
        if layer is not None:
            looks = (
                tables[layer][:, head].detach().cpu()[behind]
            )  # the row of the word behind, for each sentence
            row["weight"] = looks.gather(1, given.subject[:, None]).mean().item()
        row |= {who: _right(model, given, layer, head, blind(given, who)) for who in WAYS}
        row["unread"] = {what: _right(model, given, layer, head, unread(given, what)) for what in UNREAD}
        rows.append(row)
    return rows
