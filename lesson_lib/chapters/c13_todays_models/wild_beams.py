"""Found in the wild: a beam search with a cache, to be mended. That caches must follow their texts is as old
as generation with beams."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn

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


STAY = ("self.key, self.value = self.key[parents], self.value[parents]", "pass")
ALIKE = ("torch.full((width,), -torch.inf)", "torch.zeros(width)")

beams = Write(
    name="best_beam",
    title="Found in the wild: beams with a cache",
    stars=3,
    minutes=12,
    why="a search that is no better than taking the likeliest token, and nobody notices",
    asked=(
        "repair: a search that keeps the `width` best texts (06c's beam) and the keys and values of each."
        " Return the best text of `length` tokens behind `start`. Nobody knows how many faults there are"
    ),
    repair=True,
    stages=(
        Stage(
            "one beam",
            lambda: [_beams(1, 1, 3), _beams(5, 1, 5)],
            "One beam takes the likeliest token each time. If this fails, what you changed was right before.",
        ),
        Stage(
            "two beams, a few texts",
            lambda: [_beams(seed, 2, 3) for seed in range(10, 22)],
            "Beams that begin alike, all with the score 0, stay copies of one text. And where each text keeps"
            " a child of its own, none ever competes with another: the best of ALL children go on.",
        ),
        Stage(
            "three and four beams, longer texts",
            lambda: [_beams(seed, width, 6, 7) for seed in range(30, 42) for width in (3, 4)],
            "A text and its cache belong together: who takes over another's text takes over its keys.",
        ),
    ),
    reference=_without_cache,
    hints=(
        "At the first step all beams hold the same text. What do their best children look like?",
        "Beam 1 dies, beam 0 has two children. Whose keys does the second child need?",
        "scores is flattened before topk: what are indices // n_tokens, and what is done with it?",
    ),
    solution=best_beam,
    hidden=lambda draw: [_beams(seed, 3, 5, 6, draw) for seed in range(50, 60)],
    remember="what belongs to a text moves with it: tokens, scores, keys, values",
    slips={
        GIVEN: (*STAY, *ALIKE),
        "the first step is right; keys and values stay where they were when a text moves": STAY,
        "the keys move, the values stay": (
            "self.key, self.value = self.key[parents], self.value[parents]", "self.key = self.key[parents]",
        ),
        "the worst text is returned": ("beams.scores.argmax()", "beams.scores.argmin()"),
        "the numbers of the parents are taken for those of the tokens": (
            "beams.append(best.indices % len(table)", "beams.append(best.indices // len(table)",
        ),
        "the flat table has a row of len(table) tokens for each beam: divide by len(table), not by width": (
            "best.indices // len(table)", "best.indices % width",
            "best.indices % len(table)", "best.indices // width",
        ),
        "logits are added up; only the logs of shares can be": (
            "return logits - logits.logsumexp(-1, keepdim=True)", "return logits",
        ),
        "the WORST texts go on: topk takes the largest": (
            "torch.full((width,), -torch.inf)",
            "torch.full((width,), torch.inf)",
            "topk(width)",
            "topk(width, largest=False)",
        ),
        "keys and values have changed places: weights holds w_query, w_key, w_value": (
            "beams.key, x @ weights[1]",
            "beams.key, x @ weights[2]",
            "beams.value, x @ weights[2]",
            "beams.value, x @ weights[1]",
        ),
        "queries and keys have changed places: weights holds w_query, w_key, w_value": (
            "beams.key, x @ weights[1]",
            "beams.key, x @ weights[0]",
            "query = x @ weights[0]",
            "query = x @ weights[1]",
        ),
        "queries and values have changed places: weights holds w_query, w_key, w_value": (
            "beams.value, x @ weights[2]",
            "beams.value, x @ weights[0]",
            "query = x @ weights[0]",
            "query = x @ weights[2]",
        ),
        "the keys are kept as values, too: values are made with weights[2]": ("weights[2]", "weights[1]"),
    },
)  # fmt: skip
