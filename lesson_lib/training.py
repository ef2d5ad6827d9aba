"""One loop that trains every model of the course."""

import copy
import itertools
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from lesson_lib.device import quick, seed, to_device

QUICK_STEPS = 20
WEIGHTS = Path(__file__).parent / "experiments" / "results" / "weights"
_stored: ContextVar[tuple[Path, bool] | None] = ContextVar("stored", default=None)


@contextmanager
def stored(name: str, *, anew: bool = False) -> Iterator[None]:
    """Inside, `fit` does not train: it reads the weights that this very training left before.

    They lie in WEIGHTS, in float16, with `fit`'s name, steps, rate and seed: a call with others is refused,
    and so is a model of another form. Data and batch are not recorded: whoever changes them trains `anew`,
    which writes the weights again. Raises ValueError where there are none.
    """
    token = _stored.set((WEIGHTS / f"{name}.safetensors", anew))
    try:
        yield
    finally:
        _stored.reset(token)


def _read(model: nn.Module, path: Path, recipe: dict[str, str]) -> None:
    from safetensors import safe_open  # here, since most lessons read none

    if not path.exists():
        raise ValueError(f"there are no weights {path.stem!r}; train without stored(), or give it anew=True")
    with safe_open(path, "pt") as file:
        others = {key: value for key, value in file.metadata().items() if value != recipe.get(key)}
        if others:
            told = ", ".join(f"{key}={value}" for key, value in sorted(others.items()))
            raise ValueError(f"the weights {path.stem!r} were trained with {told}; train without stored()")
        model.load_state_dict({key: file.get_tensor(key).float() for key in file.keys()})


def _write(model: nn.Module, path: Path, recipe: dict[str, str]) -> None:
    from safetensors.torch import save_file

    path.parent.mkdir(exist_ok=True)
    halves = {key: x.half().cpu().contiguous() for key, x in model.state_dict().items()}
    save_file(halves, path, metadata=recipe)


@dataclass
class History:
    """What a training leaves behind: one row per report, and how it ended. Shows as a table in a notebook."""

    rows: list[dict[str, float]] = field(default_factory=list)
    ended: str = "all steps done"
    cpu_s: float = 0.0

    def column(self, name: str) -> list[float]:
        """One column, e.g. "step", "loss" or "score"; raises KeyError naming the columns there are."""
        names = list(self.rows[0]) if self.rows else []
        if name not in names:
            raise KeyError(f"no column {name!r}; this history has {', '.join(names) or 'no rows yet'}")
        return [row[name] for row in self.rows]

    def __repr__(self) -> str:
        if not self.rows:
            return f"History(no rows; {self.ended})"
        lines = ["  ".join(f"{name:>9}" for name in self.rows[0])]
        lines += ["  ".join(f"{_cell(value):>9}" for value in row.values()) for row in self.rows]
        return "\n".join([*lines, f"({self.ended})"])

    def _repr_html_(self) -> str:
        if not self.rows:
            return f"<p>No rows: {self.ended}.</p>"
        head = "".join(f"<th scope='col'>{name}</th>" for name in self.rows[0])
        body = "".join(
            "<tr>" + "".join(f"<td>{_cell(v)}</td>" for v in row.values()) + "</tr>" for row in self.rows
        )
        return f"<table><caption>{self.ended}</caption><tr>{head}</tr>{body}</table>"


def fit(
    model: nn.Module,
    draw: Callable[[torch.Generator], Any],
    loss: Callable[[nn.Module, Any], Tensor],
    *,
    steps: int,
    lr: float = 1e-3,
    schedule: str | Callable[[int], float] = "one-cycle",
    clip: float = 1.0,
    validate: Callable[[nn.Module], float] | None = None,
    every: int | None = None,
    patience: int | None = None,
    stop_at: float | None = None,
    seed_number: int = 0,
    name: str = "training",
) -> History:
    """Train `model` in place with Adam and return its history, a row every `every` steps (default: ten rows).

    `draw(generator)` makes a batch with a CPU generator, so that every device trains on the same data;
    `loss(model, batch)` is a scalar. `schedule` is "one-cycle" (warm up over 10 % of the steps, then fall
    along a cosine), "constant", or a function of the step (1 for the first) whose value is multiplied with
    `lr`, such as a partial of `warmup` with lr=1. `clip` bounds the norm of the gradient. `validate(model)`
    is the score on a VALIDATION split, higher is better: it is a column of the history, training ends once it
    has not risen for `patience` reports or has reached `stop_at`, and the best weights seen are put back.
    Stopping the kernel (the ■ button) ends training the same way, with the history so far. A bar shows
    progress unless LESSON_PROGRESS=off. LESSON_STEPS=quick does at most 20 steps. Inside `stored` weights are
    read, and nothing is trained.
    Raises ValueError for settings that do not fit, and where the loss is not finite.
    """
    _check(steps, lr, schedule, clip, validate, patience, stop_at)
    recipe = {"name": name, "steps": f"{steps}", "lr": f"{lr:g}", "seed": f"{seed_number}"}
    kept = _stored.get()
    if kept and kept[1] and quick():
        raise ValueError("LESSON_STEPS=quick trains too little to be stored; take it out of the environment")
    if kept and not kept[1]:
        seed(seed_number)
        _read(to_device(model), kept[0], recipe)
        model.eval()
        return History(ended="not trained here: these weights were stored")
    steps = min(steps, QUICK_STEPS) if quick() else steps
    every = every or max(1, steps // 10)
    generator = seed(seed_number)
    to_device(model).train()
    optimize = _optimizer(model, lr, schedule, clip, steps)
    history, best, reported = History(), _Best(stop_at, patience), 0
    start, total = time.process_time(), 0.0
    with progress_bar(steps, name) as bar:
        try:
            for step in range(1, steps + 1):
                total += optimize(loss(model, to_device(draw(generator))))
                bar.update()
                if step % every and step != steps:
                    continue
                row = {"step": step, "loss": _finite(float(total) / (step - reported), step, lr)}
                if validate is not None:
                    row["score"] = _score(model, validate)
                history.rows.append(row | {"cpu_s": time.process_time() - start})
                bar.set_postfix({k: _cell(v) for k, v in row.items() if k != "step"})
                total, reported = 0.0, step
                if validate is not None and (reason := best.after(model, row["score"])):
                    history.ended = f"stopped at step {step}: {reason}"
                    break
        except KeyboardInterrupt:
            history.ended = f"interrupted at step {reported}; the model keeps what it learned"
    best.put_back(model)
    model.eval()
    if kept:
        _write(model, kept[0], recipe)
    history.cpu_s = time.process_time() - start
    return history


@dataclass
class _Best:
    """The best weights seen, and when to stop looking for better ones."""

    stop_at: float | None
    patience: int | None
    score: float = -math.inf
    weights: dict[str, Any] | None = None
    waited: int = 0  # reports without a rise

    def after(self, model: nn.Module, score: float) -> str:
        """Why training ends behind a report with this score; '' where it goes on."""
        self.waited += 1
        if score > self.score:
            self.score, self.waited, self.weights = score, 0, copy.deepcopy(model.state_dict())
        if self.stop_at is not None and self.score >= self.stop_at:
            return f"score {self.score:.4f} reached {self.stop_at}"
        if self.patience is not None and self.waited >= self.patience:
            return f"no rise in {self.patience} reports"
        return ""

    def put_back(self, model: nn.Module) -> None:
        """Give the model its best weights, where any were judged."""
        if self.weights is not None:
            model.load_state_dict(self.weights)


def _finite(loss: float, step: int, lr: float) -> float:
    if not math.isfinite(loss):
        raise ValueError(
            f"the loss is {loss} at step {step}; lower lr (now {lr}), or look for a mask that hides"
            " everything"
        )
    return loss


def _optimizer(
    model: nn.Module, lr: float, schedule: str | Callable[[int], float], clip: float, steps: int
) -> Callable[[Tensor], Tensor]:
    """A step of Adam for a loss: gradients, clipped, at the scheduled rate; it gives the loss's value.

    The step is torch's own function `adam`, and the moments are kept here: torch.optim.Adam does the same,
    but imports torch's compiler when it is made: a second and 150 MiB that a lesson never needs. Where torch
    has the fused kernel, all parameters move in one call: our small models train in a fifth less time.
    """
    parameters = [p for p in model.parameters() if p.requires_grad]
    fused = all(p.device.type in ("cpu", "cuda") for p in parameters)
    counts_on = [p.device if fused else "cpu" for p in parameters]  # where the kernel counts its steps
    moments = [
        (torch.zeros_like(p), torch.zeros_like(p), torch.zeros((), device=on))
        for p, on in zip(parameters, counts_on, strict=True)
    ]
    factors = {"one-cycle": lambda step: one_cycle(step, steps), "constant": lambda step: 1.0}
    factor = schedule if callable(schedule) else factors[schedule]
    number = itertools.count(1)

    def optimize(value: Tensor) -> Tensor:
        for parameter in parameters:
            parameter.grad = None
        value.backward()
        nn.utils.clip_grad_norm_(parameters, clip)
        moved = [(p, p.grad, *of) for p, of in zip(parameters, moments, strict=True) if p.grad is not None]
        means, squares, counts = ([row[i] for row in moved] for i in (2, 3, 4))
        with torch.no_grad():
            adam(
                [row[0] for row in moved],
                [row[1] for row in moved],
                means,
                squares,
                [],
                counts,
                fused=fused,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=lr * factor(next(number)),
                weight_decay=0.0,
                eps=1e-8,
                maximize=False,
            )
        return value.detach()

    return optimize


def warmup(step: int, d_model: int, warmup_steps: int = 4000) -> float:
    """The published learning rate at a step (1 for the first): `d_model ** -0.5 * min(step ** -0.5, step *
    warmup_steps ** -1.5)`.

    It rises linearly for `warmup_steps` steps and falls with the root of the step from then on. Raises
    ValueError where a count is less than 1.
    Source: Vaswani et al. 2017, arXiv:1706.03762, section 5.3.

    >>> warmup(1, 4, warmup_steps=1), warmup(4, 4, warmup_steps=1)
    (0.5, 0.25)
    """
    for label, value in (("step", step), ("d_model", d_model), ("warmup_steps", warmup_steps)):
        if not value >= 1:
            raise ValueError(f"{label} must be >= 1, got {value}; the first step is step 1")
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def one_cycle(step: int, steps: int) -> float:
    """Factor on the learning rate at a step (1 for the first): a linear rise to 1 over the first tenth of the
    steps, then half a cosine down to nearly 0.

    Source: Smith & Topin 2017, arXiv:1708.07120, for the name; the cosine is Loshchilov & Hutter's, 2016,
    arXiv:1608.03983.

    >>> [round(one_cycle(step, 20), 3) for step in (1, 2, 3, 12, 20)]
    [0.5, 1.0, 1.0, 0.5, 0.008]
    """
    warm = max(1, steps // 10)
    if step <= warm:
        return step / warm
    return 0.5 * (1 + math.cos(math.pi * (step - 1 - warm) / max(1, steps - warm)))


def _score(model: nn.Module, validate: Callable[[nn.Module], float]) -> float:
    model.eval()
    with torch.no_grad():
        value = float(validate(model))
    model.train()
    return value


@contextmanager
def progress_bar(steps: int, name: str) -> Iterator[Any]:
    """A bar of so many steps, which goes in the end; LESSON_PROGRESS=off hides it."""
    from tqdm.auto import tqdm

    bar = tqdm(total=steps, desc=name, leave=False, disable=os.environ.get("LESSON_PROGRESS") == "off")
    try:
        yield bar
    finally:
        bar.total = bar.n  # else a bar that ended early stays on the page, in red
        bar.close()


def _cell(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4f}" if abs(value) < 100 else f"{value:.1f}"


def _check(
    steps: int,
    lr: float,
    schedule: str | Callable[[int], float],
    clip: float,
    validate: Any,
    patience: int | None,
    stop_at: float | None,
) -> None:
    if steps < 1:
        raise ValueError(f"steps must be >= 1, got {steps}")
    if not lr > 0:
        raise ValueError(f"lr must be > 0, got {lr}; 1e-3 is a common start")
    if not clip > 0:
        raise ValueError(f"clip must be > 0, got {clip}; math.inf turns clipping off")
    if not callable(schedule) and schedule not in ("one-cycle", "constant"):
        raise ValueError(
            f"schedule must be 'one-cycle', 'constant' or a function of the step, got {schedule!r}"
        )
    if validate is None and (patience is not None or stop_at is not None):
        raise ValueError("patience and stop_at judge the score on a validation split; give validate as well")
