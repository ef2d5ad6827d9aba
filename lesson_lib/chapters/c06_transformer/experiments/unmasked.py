"""The translator of `experiments.translation`, trained without the causal mask: its loss, and what it writes.

Same first weights, texts, rates and steps as there; only the decoder's own attention may look at all places.
"copies" is the share of places whose prediction becomes the digit that was put in one place later, over test
dates in which one digit is replaced by the next (9 by 0).
"""

import torch
from torch import Tensor

from lesson_lib.chapters.c06_transformer.experiments import translation
from lesson_lib.device import to_device
from lesson_lib.experiments.dates import texts
from lesson_lib.masks import padding
from lesson_lib.models import translator
from lesson_lib.models.translator import Batches, Logits, TransformerTranslator, Vocabulary, translate
from lesson_lib.training import fit

RECIPE = {"steps": 1000, "places": [1, 2, 3, 4, 6, 7, 9, 10], "seeds": [0, 1, 2]}  # where digits stand


class Unmasked(TransformerTranslator):
    """A translator whose decoder may look ahead while it trains."""

    def forward(self, source: Tensor, lengths: Tensor, before: Tensor, *, weights: bool = False) -> Logits:
        """Logits of all places, each of which may see all the others."""
        machine, real = self.transformer, padding(lengths, source.shape[1])
        memory = machine.encoder(machine.embedding(source), mask=real).output
        decoded = machine.decoder(machine.embedding(before), memory, memory_mask=real)
        return Logits(machine.embedding.logits(decoded.output), None)


@torch.no_grad()
def copies(model: TransformerTranslator) -> float:
    """Share of predictions that become the digit put in one place later."""
    pairs, followed = texts(1, "test"), []
    batch = to_device(model.vocabulary.batch(pairs))
    higher = [
        (pair.source, "".join(str((int(c) + 1) % 10) if c != "-" else c for c in pair.target))
        for pair in pairs
    ]
    other = to_device(model.vocabulary.batch(higher)).target
    for place in RECIPE["places"]:
        before = batch.target[:, :-1].clone()
        before[:, place] = other[:, place]
        predicted = model(batch.source, batch.lengths, before).logits[:, place - 1].argmax(-1)
        followed.append((predicted == other[:, place]).float().mean())
    return torch.stack(followed).mean().item()


def run(seed: int) -> list[dict]:
    """A row with the last loss, the share of test dates without a wrong sign, and `copies`."""
    torch.manual_seed(seed)
    model = to_device(Unmasked(Vocabulary(translation.data.characters()), **translation.RECIPE["model"]))
    size = {"batch": translation.RECIPE["batch"], "pool": translation.RECIPE["pool"]}
    batches = Batches(model.vocabulary, translation.single, **size)
    history = fit(
        model, batches, translator.loss, steps=RECIPE["steps"], lr=translation.RECIPE["lr"], seed_number=seed
    )
    pairs = texts(1, "test")
    made = translate(model, [pair.source for pair in pairs])
    exact = sum(one.text == pair.target for one, pair in zip(made, pairs, strict=True)) / len(pairs)
    row = {"seed": seed, "loss": history.rows[-1]["loss"], "exact": exact, "copies": copies(model)}
    return [row | {"cpu_s": history.cpu_s}]
