"""One loop that trains every model of the course."""

import copy
import hashlib
import itertools
import json
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from lesson_lib import desk
from lesson_lib.device import quick, seed, to_device, watched

QUICK_STEPS = 20
LONG_S = 2  # a laptop of ten years ago takes several times as long
WEIGHTS = Path(__file__).parent / "experiments" / "results" / "weights"
Rows = list[dict[str, float]]
_asked: ContextVar[bool] = ContextVar("asked", default=False)
_written: set[Path] = set()
_undo = ExitStack()  # gives IPython its own way with KeyboardInterrupt back


@contextmanager
def stored() -> Iterator[None]:
    """Inside, nothing is trained: the weights that this very training left before are read.

    They lie in WEIGHTS, in float16, with the history. A file is found by `fit`'s name, steps, rate and seed
    and by the model's shapes, and refused where the first batch is another; the loss is not recorded. With
    LESSON_STORED=anew trainings write their weights: those that stand inside, those that have a file, and
    those of more than LONG_S seconds. Raises ValueError where nothing is stored.
    """
    token = _asked.set(True)
    try:
        yield
    finally:
        _asked.reset(token)


def no_time() -> None:
    """Nothing comes back. From here on the trainings of this session read their weights where some are
    stored, and say so; the others train. LESSON_STORED=1 does the same from the start."""
    os.environ["LESSON_STORED"] = "1"
    desk.say("From here on, a training whose model is stored takes that model, and trains nothing.")


def _file(model: nn.Module, name: str, steps: int, lr: float | None = None, seed: int | None = None) -> Path:
    """Where the weights of this training lie, or would lie."""
    shapes = [(key, list(x.shape)) for key, x in model.state_dict().items()]
    digest = hashlib.sha256(json.dumps([name, steps, lr, seed, shapes]).encode()).hexdigest()[:8]
    return WEIGHTS / f"{re.sub(r'[^a-z0-9]+', '_', name.lower()).strip('_')}-{digest}.safetensors"


def _taken(model: nn.Module, path: Path, name: str, data: Callable[[], float]) -> Rows | None:
    """The history of a stored training, whose weights the model now has; None where it is to be trained."""
    wish, asked = os.environ.get("LESSON_STORED"), _asked.get()
    if wish == "anew" and quick():
        raise ValueError("LESSON_STEPS=quick trains too little to be stored; take it out of the environment")
    if wish == "anew" or not (asked or wish == "1"):
        return None
    rows = _read(model, path, data) if path.exists() else None
    if rows is None and asked:
        raise ValueError(
            f"no weights are stored for this training, {name!r}: its name, steps, rate, seed, data or model"
            " are others; train without stored()"
        )
    if rows is not None and not asked:
        desk.say(f"{name}: the lesson's stored weights; nothing is trained here")
    return rows


def _read(model: nn.Module, path: Path, data: Callable[[], float]) -> Rows | None:
    from safetensors import safe_open  # here, since most lessons read none

    with safe_open(path, "pt") as file:
        told = file.metadata()
        if not math.isclose(float(told["data"]), data(), rel_tol=1e-3):
            return None
        model.load_state_dict({key: file.get_tensor(key).float() for key in file.keys()})
    model.eval()
    return json.loads(told["rows"])


def _leave(model: nn.Module, path: Path, rows: Rows, seconds: float, data: float) -> None:
    """Write a training's weights and history, where LESSON_STORED=anew asks for them."""
    if os.environ.get("LESSON_STORED") != "anew":
        return
    if not (_asked.get() or path.exists() or seconds > LONG_S):
        return
    if path in _written:
        raise ValueError(f"{path.name} would be written twice; one of the trainings needs another name")
    from safetensors.torch import save_file

    _written.add(path)
    path.parent.mkdir(exist_ok=True)
    halves = {key: x.half().cpu().contiguous() for key, x in model.state_dict().items()}
    rounded = [{key: round(value, 6) for key, value in row.items()} for row in rows]
    save_file(halves, path, metadata={"rows": json.dumps(rounded), "data": f"{data:.6g}"})


def _size(batch: Any) -> float:
    """The sum of all numbers of a batch, without their signs: other data have another."""
    if isinstance(batch, Tensor):
        return batch.cpu().double().abs().sum().item()
    parts = batch.values() if isinstance(batch, dict) else batch if isinstance(batch, (list, tuple)) else ()
    return sum(map(_size, parts))


def counted(steps: range, model: nn.Module, losses: list[float], name: str | None = None) -> Iterator[int]:
    """The steps, one after the other, under a bar: for a loop that is written out, which trains `model` and
    appends each step's loss to `losses`. Two trainings of one kind of model need a `name` each.

    Stopping the kernel (the ■ button) ends the cell in a sentence. Where a stored model is read (see
    `no_time`), `losses` is filled from its history, and there is no step.
    """
    name = name or type(model).__name__
    path = _file(model, name, len(steps))
    if (rows := _taken(model, path, name, float)) is not None:
        losses += [row["loss"] for row in rows]
        return
    number, start = 0, time.process_time()
    lack = "This cell did not end: the model is half trained, and what the cell was to make is missing."
    _when_stopped(lambda: _stopped(name, number, len(steps), lack, path))
    with progress_bar(len(steps), name) as bar:
        for step in steps:
            number += 1
            yield step
            bar.update()
    _undo.close()
    desk.half_done(False)
    _leave(model, path, [{"loss": x} for x in losses], time.process_time() - start, 0.0)


def _stopped(name: str, number: int, steps: int, effect: str, path: Path) -> str:
    other = ", or type no_time() before: then it takes a stored model." if path.exists() else "."
    where = f"{name} was stopped in step {number} of {steps}."
    return f"{where} {effect} To train to the end, run this cell again{other}"


def _shell() -> Any:
    """IPython's shell, where one runs; else None."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def _when_stopped(sentence: Callable[[], str]) -> None:
    """In a notebook, ■ ends the running cell in this sentence, and no traceback is shown."""
    _undo.close()
    shell = _shell()
    if shell is None:
        return

    def over(_: Any) -> None:
        _undo.close()

    for what in ("custom_exceptions", "CustomTB"):
        _undo.callback(setattr, shell, what, getattr(shell, what))
    _undo.callback(shell.events.unregister, "post_run_cell", over)
    shell.events.register("post_run_cell", over)  # the loop itself does not hear how it was left

    def said(*_: Any, **__: Any) -> None:
        desk.half_done(True)
        desk.say(sentence())

    shell.set_custom_exc((KeyboardInterrupt,), said)


@dataclass
class History:
    """What a training leaves behind: one row per report, and how it ended. Shows as a table in a notebook."""

    rows: Rows = field(default_factory=list)
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
    name: str | None = None,
) -> History:
    """Train `model` in place with Adam and return its history, a row every `every` steps (default: ten rows).

    `draw(generator)` makes a batch with a CPU generator, so that every device trains on the same data;
    `loss(model, batch)` is a scalar. `schedule` is "one-cycle" (warm up over 10 % of the steps, then fall
    along a cosine), "constant", or a function of the step (1 for the first) whose value is multiplied with
    `lr`, such as a partial of `warmup` with lr=1. `clip` bounds the norm of the gradient. `validate(model)`
    is the score on a VALIDATION split, higher is better: it is a column of the history, training ends once it
    has not risen for `patience` reports or has reached `stop_at`, and the best weights seen are put back.
    Stopping the kernel (the ■ button) ends training the same way, with the history so far and a sentence. A
    bar shows progress unless LESSON_PROGRESS=off. LESSON_STEPS=quick does at most 20 steps. Inside `stored`,
    and after `no_time`, weights are read, and nothing is trained.
    Raises ValueError for settings that do not fit, and where the loss is not finite.
    """
    _check(steps, lr, schedule, clip, validate, patience, stop_at)
    name = name or type(model).__name__
    path = _file(to_device(model), name, steps, lr, seed_number)
    generator = seed(seed_number)
    if (rows := _taken(model, path, name, lambda: _size(draw(generator)))) is not None:
        return History(rows, ended="not trained here: these weights were stored")
    generator = seed(seed_number)
    steps = min(steps, QUICK_STEPS) if quick() else steps
    every = every or max(1, steps // 10)
    model.train()
    optimize = _optimizer(model, lr, schedule, clip, steps)
    history, best, data, step, reported = History(), _Best(stop_at, patience), 0.0, 0, 0
    start, total = time.process_time(), 0.0
    with progress_bar(steps, name) as bar:
        try:
            for step in range(1, steps + 1):
                batch = draw(generator)
                data = _size(batch) if step == 1 else data
                total += optimize(loss(model, to_device(batch)))
                bar.update()
                if step % every and step != steps:
                    continue
                row = {"step": step, "loss": _finite(float(total) / (step - reported), step, lr)}
                if validate is not None:
                    row["score"] = _score(model, validate)
                history.rows.append(row | {"cpu_s": time.process_time() - start})
                bar.set_postfix({k: _cell(v) for k, v in row.items() if k != "step"}, refresh=False)
                total, reported = 0.0, step
                if validate is not None and (reason := best.after(model, row["score"])):
                    history.ended = f"stopped at step {step}: {reason}"
                    break
        except KeyboardInterrupt:
            history.ended = f"interrupted in step {step} of {steps}"
            kept = "The model keeps what it has learned, and the cells below see that."
            desk.say(_stopped(name, step, steps, kept, path))
    best.put_back(model)
    model.eval()
    history.cpu_s = time.process_time() - start
    if history.ended.startswith("interrupted"):
        return history
    _leave(model, path, history.rows, history.cpu_s, data)
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


class _Line:
    """A line in a notebook's output, written over and over. (tqdm's own bar is a widget there, which a saved
    notebook shows as a lost model.)"""

    shown: Any = None

    def write(self, text: str) -> None:
        """Show the text in the place of the one before."""
        from IPython.display import display

        data = {"text/plain": text.strip()}
        if self.shown is not None:
            self.shown.update(data, raw=True)
        elif text.strip():
            self.shown = display(data, raw=True, display_id=True)

    def flush(self) -> None:
        """Nothing waits."""


@contextmanager
def progress_bar(steps: int, name: str) -> Iterator[Any]:
    """A bar of so many steps, which says how long they take here in all and what is left, and goes in the
    end; LESSON_PROGRESS=off hides it. What is over within a second has none."""
    from tqdm import tqdm

    class Bar(tqdm):
        @property
        def format_dict(self) -> dict[str, Any]:
            known = super().format_dict
            left = (known["total"] - known["n"]) / known["rate"] if known.get("rate") else 0
            return known | {"whole": _seconds(known["elapsed"] + left), "left": _seconds(left)}

    says = "{desc}: {percentage:3.0f}%|{bar}| about {whole} on this machine, {left} left{postfix}"
    at = _Line() if hasattr(_shell(), "kernel") else None
    bar = Bar(
        total=steps, desc=name, leave=False, disable=not watched(), delay=1, bar_format=says,
        smoothing=0.1, mininterval=0.3, file=at, ncols=100 if at else None,
    )  # fmt: skip
    try:
        yield bar
    finally:
        bar.total = bar.n  # else a bar that ended early stays on the page, in red
        bar.close()


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value < 120 else f"{value / 60:.0f} min"


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
