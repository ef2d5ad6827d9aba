"""Found in the wild: a beam search with a cache, to be mended. That caches must follow their texts is as old
as generation with beams."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn
from lesson_lib.checks.questions import Code

GIVEN = "this is still the function as it was given"


def best_beam(
    start: int,
    table: Float[Tensor, "n_tokens d"],
    weights: Float[Tensor, "three d d"],
    width: int,
    length: int,
) -> Int[Tensor, "length"]:
    def log_shares(x):
        logits = x @ table.mT
        return logits - logits.logsumexp(-1, keepdim=True)

    class Beams:
        """`width` texts, their scores, and what has been read of each."""

        def __init__(self):
            self.tokens = torch.full((width, 1), start)
            self.scores = torch.full((width,), -torch.inf)
            self.scores[0] = 0.0  # all are alike: only one of them may have children
            self.key = table.new_zeros(width, 0, table.shape[1])
            self.value = table.new_zeros(width, 0, table.shape[1])

        def follow(self, parents):
            self.tokens = self.tokens[parents]
            self.key, self.value = self.key[parents], self.value[parents]

        def append(self, tokens, scores):
            self.tokens = torch.cat((self.tokens, tokens[:, None]), dim=1)
            self.scores = scores

    def step(beams):
        x = table[beams.tokens[:, -1:]]
        beams.key = torch.cat((beams.key, x @ weights[1].mT), dim=1)
        beams.value = torch.cat((beams.value, x @ weights[2].mT), dim=1)
        query = x @ weights[0].mT
        out = F.scaled_dot_product_attention(query, beams.key, beams.value)
        return log_shares((x + out)[:, 0])

    beams = Beams()
    for _ in range(length):
        scores = beams.scores[:, None] + step(beams)
        best = scores.flatten().topk(width)
        beams.follow(best.indices // len(table))
        beams.append(best.indices % len(table), best.values)
    return beams.tokens[beams.scores.argmax(), 1:]


def _without_cache(start: int, table: Tensor, weights: Tensor, width: int, length: int) -> Tensor:
    texts = {(start,): 0.0}
    for _ in range(length):
        found = {}
        for text, score in texts.items():
            x = table[list(text)]
            q, k, v = (x @ w.mT for w in weights)
            logits = (x[-1] + attend(q[-1:], k, v).output[0]) @ table.mT
            for token, log_share in enumerate((logits - logits.logsumexp(-1)).tolist()):
                found[(*text, token)] = score + log_share
        texts = dict(sorted(found.items(), key=lambda pair: -pair[1])[:width])
    return torch.tensor(max(texts, key=texts.get)[1:])


def _beams(seed: int, width: int, length: int, n_tokens: int = 5, draw: Draw = drawn) -> Case:
    return {
        "start": 0, "table": 0.8 * draw(seed, n_tokens, 4), "weights": draw(seed + 1, 3, 4, 4),
        "width": width, "length": length,
    }  # fmt: skip


CODE = {
    "best_beam": Code(
        solution=best_beam,
        cases=(
            lambda: [_beams(1, 1, 3), _beams(5, 1, 5)],
            lambda: [_beams(seed, 2, 3) for seed in range(10, 22)],
            lambda: [_beams(seed, width, 6, 7) for seed in range(30, 42) for width in (3, 4)],
        ),
        reference=_without_cache,
        hidden=lambda draw: [_beams(seed, 3, 5, 6, draw) for seed in range(50, 60)],
    ),
}
