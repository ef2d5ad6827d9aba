"""The same look-up, trained with each score at each width: how many steps does it need, and does it get
there?

A list holds 16 pairs (symbol, answer), drawn from 64 symbols and 8 answers. Asked for one of its symbols, the
model must say the answer. Query and key of a symbol are separate learned vectors of width d with unit
variance at the start, so that nothing but training makes the right pair match.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lesson_lib import require, summary
from lesson_lib.attention import attend
from lesson_lib.device import to_device
from lesson_lib.measure import cpu_seconds, peak_mib
from lesson_lib.scores import Additive, Bilinear, dot, scaled_dot
from lesson_lib.training import History, fit

SYMBOLS, ANSWERS, D_VALUE = 64, 8, 16
PAIRS = 16
RECIPE = {
    "symbols": SYMBOLS,
    "pairs": PAIRS,
    "answers": ANSWERS,
    "d_value": D_VALUE,
    "d_hidden": 64,
    "batch": 64,
    "steps": 1000,
    "every": 20,
    "stop_at": 0.95,
    "schedule": "constant",
    "scores": ["dot", "scaled dot", "additive", "bilinear"],
    "widths": [4, 16, 64, 256, 1024],
    "rates": [3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1],
    "seeds": [0, 1, 2],
}
# generators of the two splits; training uses the seeds of the recipe
VALIDATION_SEED, TEST_SEED = (
    10_000,
    20_000,
)


class LookUp(nn.Module):
    """Soft look-up: logits of the answer from `attend(query of the symbol, keys of the list, values of the
    list)`."""

    def __init__(self, score: str, d: int) -> None:
        super().__init__()
        self.query, self.key = nn.Embedding(SYMBOLS, d), nn.Embedding(SYMBOLS, d)
        self.value = nn.Embedding(ANSWERS, D_VALUE)
        self.read = nn.Linear(D_VALUE, ANSWERS)
        self.score = make_score(score, d)

    def forward(self, asked: Tensor, symbols: Tensor, answers: Tensor) -> Tensor:
        """Logits (batch, answers)."""
        mixed = attend(
            self.query(asked)[:, None], self.key(symbols), self.value(answers), score=self.score
        ).output
        return self.read(mixed[:, 0])


def make_score(name: str, d: int):
    """The score of that name for width d; raises ValueError for another name."""
    known = {
        "dot": lambda: dot,
        "scaled dot": lambda: scaled_dot,
        "dot / d": lambda: lambda q, k: dot(q, k) / d,
    }
    known |= {"additive": lambda: Additive(d, d, RECIPE["d_hidden"]), "bilinear": lambda: Bilinear(d, d)}
    require.one_of(known, score=name)
    return known[name]()


def draw(
    generator: torch.Generator, batch: int = RECIPE["batch"], *, symbols: int = SYMBOLS, pairs: int = PAIRS
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A batch: the symbol asked for (b,), the list's symbols (b, pairs) and answers (b, pairs), the right
    answer (b,).

    Raises ValueError where a list would need more symbols than there are.
    """
    if not 1 <= pairs <= symbols:
        raise ValueError(f"pairs must be from 1 to {symbols}, the number of symbols, got {pairs}")
    options = {"generator": generator, "device": "cpu"}
    listed = torch.rand(batch, symbols, **options).argsort(-1)[:, :pairs]
    answers = torch.randint(ANSWERS, (batch, pairs), **options)
    place = torch.randint(pairs, (batch, 1), **options)
    return listed.gather(1, place)[:, 0], listed, answers, answers.gather(1, place)[:, 0]


def loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Cross-entropy of the right answer."""
    *given, right = batch
    return F.cross_entropy(model(*given), right)


def hits(model: nn.Module, split: int) -> tuple[Tensor, Tensor]:
    """For 1,000 lists of a split (VALIDATION_SEED or TEST_SEED): the symbol asked for, and whether the answer
    is right."""
    asked, *given, right = to_device(draw(torch.Generator().manual_seed(split), 1000))
    with torch.no_grad():
        return asked, model(asked, *given).argmax(-1) == right


def accuracy(model: nn.Module, split: int) -> float:
    """Share of right answers on 1,000 lists of a split (VALIDATION_SEED or TEST_SEED)."""
    return hits(model, split)[1].float().mean().item()


def spread(model: nn.Module) -> float:
    """Standard deviation of the scores over 1,000 lists of the validation split."""
    asked, symbols, *_ = to_device(draw(torch.Generator().manual_seed(VALIDATION_SEED), 1000))
    with torch.no_grad():
        return model.score(model.query(asked)[:, None], model.key(symbols)).std().item()


def train(
    score: str, d: int, *, lr: float, seed: int = 0, steps: int = RECIPE["steps"], times: float = 1.0
) -> tuple[LookUp, History]:
    """Train one model until its validation accuracy reaches `stop_at`, at most `steps` steps.

    Its queries and keys start `times` as long as drawn. Raises ValueError where `times` is not positive.
    """
    if not times > 0:
        raise ValueError(f"times must be positive, got {times}; 0.25 starts with vectors a quarter as long")
    torch.manual_seed(seed)
    model = to_device(LookUp(score, d))
    with torch.no_grad():
        for table in (model.query, model.key):
            table.weight *= times
    history = fit(
        model, draw, loss, steps=steps, lr=lr, schedule=RECIPE["schedule"], every=RECIPE["every"],
        seed_number=seed,
        validate=lambda m: accuracy(m, VALIDATION_SEED), stop_at=RECIPE["stop_at"], name=f"{score}, d = {d}",
    )  # fmt: skip
    return model, history


def run(seed: int) -> list[dict[str, float | str | int]]:
    """One row for each score, width and learning rate."""
    rows = []
    for score in RECIPE["scores"]:
        for d in RECIPE["widths"]:
            for lr in RECIPE["rates"]:
                torch.manual_seed(seed)
                before = spread(to_device(LookUp(score, d)))
                model, history = train(score, d, lr=lr, seed=seed)
                batch = to_device(draw(torch.Generator().manual_seed(seed)))
                last = history.rows[-1]

                def step(model=model, batch=batch):
                    loss(model, batch).backward()

                rows.append(
                    {
                        "seed": seed, "score": score, "d": d, "lr": lr, "steps": last["step"],
                        "validation": max(history.column("score")), "test": accuracy(model, TEST_SEED),
                        "spread_start": before, "spread_end": spread(model),
                        "cpu_s": history.cpu_s, "ms_per_step": 1000 * cpu_seconds(step),
                        "peak_mib": peak_mib(step),
                    }
                )  # fmt: skip
    return rows


def best_rows(rows: list[dict]) -> list[dict]:
    """Of the learning rates of one score, width and seed, the one that is best on VALIDATION: fewest steps to
    the target, else the highest accuracy."""

    def rank(row: dict) -> tuple:
        return row["validation"] >= RECIPE["stop_at"], -row["steps"], row["validation"]

    return summary.best(rows, ("score", "d", "seed"), by=rank)
