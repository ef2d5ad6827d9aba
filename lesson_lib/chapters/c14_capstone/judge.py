"""A learner's capstone, judged: their file is read anew each time, a stage's tests are run, the Transformer
is trained on dates, and a report says what passed.

    begin()                    make capstone.py here, with what there is to write; an older one stays
    stage(number)              the report of one stage
    train()                    850 steps on part 06b's dates, with your Translator
    page()                     all stages, as a page to keep or to hand in
"""

import hashlib
import linecache
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from html import escape
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lesson_lib.chapters.c14_capstone import stages
from lesson_lib.chapters.c14_capstone.stages import STAGES, TEXT, Stage
from lesson_lib.checks import runner
from lesson_lib.checks.result import COLOURS, SIGNS, Note, table_html, table_text
from lesson_lib.checks.store import write_whole
from lesson_lib.data import dates as data
from lesson_lib.device import device, quick, to_device
from lesson_lib.experiments.dates import texts
from lesson_lib.models.translator import END, PAD, START, Batch, Batches, Vocabulary
from lesson_lib.training import fit

FILE = "capstone.py"
EMPTY = Path(__file__).with_name(FILE)  # what a learner begins with
GOAL = 0.9  # of the test dates, without a mistake
RECIPE = {"steps": 850, "lr": 3e-3, "batch": 48, "pool": 8}
LENGTHS = (
    "how long are your rows of signs when the positions are added, and how large are the first logits? A row"
    " of nn.Embedding is about sqrt(d_model) long as it is drawn; one drawn with variance 1/d_model is about"
    " 1 long, and is multiplied by sqrt(d_model) (06b, section 1)"
)
DEADLINE_S = 60.0  # for one test
LONGEST = 11  # signs of an answer, with the end


@dataclass(frozen=True, eq=False)
class Report:
    """What came of a stage: a sentence for each test ('' where it holds), and what else there is to say."""

    title: str
    found: dict[str, str]
    more: dict[str, str] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether every test holds."""
        return not any(self.found.values())

    def __bool__(self) -> bool:
        return self.passed

    @property
    def rows(self) -> dict[str, str]:
        """Label and text, in order."""
        signs = {name: SIGNS["failed" if said else "passed"] for name, said in self.found.items()}
        return {name: f"{signs[name]} {said or 'holds'}" for name, said in self.found.items()} | self.more

    def __repr__(self) -> str:
        return table_text(self.head, self.rows)

    def _repr_html_(self) -> str:
        return table_html(f"<b>{escape(self.head)}</b>", self.rows, COLOURS[self._state])

    @property
    def _state(self) -> Any:
        return "passed" if self.passed else "failed"

    @property
    def head(self) -> str:
        """The verdict in one line."""
        return f"{SIGNS[self._state]} {self.title}: {'passed' if self.passed else 'not yet'}"


class Unread(Exception):
    """A file that cannot be judged; the sentence says why."""


def begin(path: str | Path = FILE) -> Note:
    """Make the file to write in, with everything that is asked; one that is there already stays as it is."""
    path = Path(path)
    if path.exists():
        return Note(f"{path.name} is there already", {"next": "stage(1) judges its first stage"})
    try:
        shutil.copyfile(EMPTY, path)
    except OSError as error:
        return Note(f"{path.name} could not be made", {"diagnosis": error.strerror or str(error)})
    return Note(
        f"{path.name} is made", {"next": "open it beside this notebook, write stage 1, then stage(1)"}
    )


def stage(number: Any, path: str | Path = FILE) -> Report | Note:
    """The report of one stage: each of its tests, and what is wrong."""
    if type(number) is not int or number not in range(1, len(STAGES) + 1):
        return Note("No stage", {"diagnosis": f"there are stages 1 to {len(STAGES)}, got {number!r}"})
    chosen = STAGES[number - 1]
    try:
        file = read(Path(path))
    except Unread as reason:
        return Note(f"Stage {number}: not judged", {"diagnosis": str(reason)})
    return _judged(chosen, file)


def _judged(chosen: Stage, file: ModuleType) -> Report:
    title = f"Stage {chosen.number}, {chosen.title}"
    missing = [name for name in chosen.needs if not callable(getattr(file, name, None))]
    if missing:
        return Report(title, dict.fromkeys(missing, "is missing in your file"))
    cpu, found, notes = torch.device("cpu"), {}, runner.Notes()
    with runner.undisturbed(), cpu:
        for name, test in chosen.tests.items():
            own = test is stages.attention_has_the_properties  # they bring their own deadline
            work = partial(test, file)
            found[name] = _caught(work) if own else _said(work, notes)
        more = {"printed": notes.rows["printed"]} if notes.rows.get("printed") else {}
        if chosen.number == len(STAGES) and not found["opens the model of 13c"]:
            written = _said(partial(stages.continued, file, TEXT, 40))
            more["your code writes"] = f"{TEXT}|{written}"
    return Report(title, found, more)


def _said(work: Callable[[], str], notes: runner.Notes | None = None) -> str:
    """What a test says, an error in a sentence included; endless loops end. `notes` keep what is printed."""
    try:
        return runner.within(DEADLINE_S, partial(_caught, work), notes, tried=False)
    except TimeoutError as reason:
        return str(reason)


def _caught(work: Callable[[], str]) -> str:
    try:
        return work()
    except Exception as error:
        if isinstance(error, (TypeError, AttributeError)) and "NoneType" in str(error):
            return f"something is not written yet, and gives None{runner.where(error)}"
        return runner.sentence(error)


def read(path: Path) -> ModuleType:
    """The learner's file as a module, read anew. Raises Unread."""
    if not path.is_file():
        raise Unread(f"there is no {path.name} here; begin() makes one (in a terminal: make capstone)")
    linecache.checkcache(str(path))
    try:
        text = path.read_text(encoding="utf-8")
        code = compile(text, str(path), "exec")
    except (OSError, ValueError) as error:
        raise Unread(f"{path.name} cannot be read: {error}") from None
    except SyntaxError as error:
        place = f" in line {error.lineno}" if error.lineno else ""
        raise Unread(f"{path.name} is no Python{place}: {error.msg}") from None
    if "lesson_lib" in {word for line in text.splitlines() for word in _imported(line)}:
        raise Unread(f"{path.name} imports from lesson_lib; here you write everything yourself")
    file = ModuleType("capstone")
    file.__file__ = str(path)
    sys.modules["capstone"] = file  # classes that look for their module find it
    try:
        exec(code, vars(file))
    except BaseException as error:
        raise Unread(runner.sentence(error).replace("your function", path.name, 1)) from None
    return file


def _imported(line: str) -> list[str]:
    words = line.replace(".", " ").replace(",", " ").split()
    return words if words[:1] in (["import"], ["from"]) else []


def train(path: str | Path = FILE, *, seed: int = 0) -> Report | Note:
    """Train your Translator on part 06b's dates, and count the test dates that it writes without a mistake.

    The loss is 06b's: cross-entropy of the next sign, teacher forcing, no padding. Adam, 850 steps of 48
    dates, the rate as there (one cycle, at most 0.003). About a minute on two cores.
    """
    try:
        file = read(Path(path))
    except Unread as reason:
        return Note("Not trained", {"diagnosis": str(reason)})
    begun, title = time.perf_counter(), "Training on dates"
    vocabulary = Vocabulary(data.characters())
    torch.manual_seed(seed)
    try:
        model = to_device(file.Translator(len(vocabulary)))
        batches = Batches(vocabulary, data.draw, batch=RECIPE["batch"], pool=RECIPE["pool"])
        recipe = {
            "steps": RECIPE["steps"],
            "lr": RECIPE["lr"],
            "seed_number": seed,
            "name": "your Translator",
        }
        last = fit(model, batches, loss, **recipe).rows[-1]["loss"]
        share, shown = accuracy(model, vocabulary)
    except Exception as error:
        return Report(title, {"runs": runner.sentence(error)})
    said = "" if share >= GOAL else f"{share:.3f} of the test dates are right; {GOAL} are asked for"
    numbers = sum(p.numel() for p in model.parameters())
    more = {"right": f"{share:.3f} of 1,000 test dates", "an example": shown, "parameters": f"{numbers:,}"}
    more |= {
        "loss at the end": f"{last:.3f}",
        "took": f"{time.perf_counter() - begun:.0f} s",
        "seed": str(seed),
    }
    if said:
        more["think"] = LENGTHS
    return Report(title, {f"{GOAL:.0%} of the test dates": said}, more)


def loss(model: nn.Module, batch: Batch) -> Tensor:
    """06b's loss: every next sign of the right answer, padding left out."""
    batch = to_device(batch)
    logits = model(batch.source, batch.target[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), batch.target[:, 1:].flatten(), ignore_index=PAD)


@torch.no_grad()
def accuracy(model: nn.Module, vocabulary: Vocabulary) -> tuple[float, str]:
    """The share of 1,000 test dates that are written without a mistake, the likeliest sign each time; and one
    of them, as it was written."""
    pairs = texts(1, "test")[: 100 if quick() else None]
    model.eval()
    made = []
    for first in range(0, len(pairs), 250):
        source, _ = vocabulary.encode([pair.source for pair in pairs[first : first + 250]])
        source = source.to(device())
        before = torch.full((len(source), 1), START, device=source.device)
        for _ in range(LONGEST):
            following = model(source, before)[:, -1, END:].argmax(-1) + END  # no padding, no second start
            before = torch.cat([before, following[:, None]], 1)
        made += vocabulary.decode(before[:, 1:].cpu())
    right = sum(one == pair.target for one, pair in zip(made, pairs, strict=True))
    return right / len(pairs), f"{pairs[0].source} -> {made[0]}"


def page(
    path: str | Path = FILE, *, to: str | Path = "capstone.html", trained: bool | Report | Note = True
) -> Note:
    """Judge all stages, train, and write a page that says what passed: for you, and for your instructor.

    It holds no name: the date, each test, the training, and a mark of the file (so that page and file can be
    told to belong together). `trained` may be what train() has just reported; False leaves the training out,
    and the page says so.
    """
    path, to = Path(path), Path(to)
    try:
        file = read(path)
    except Unread as reason:
        return Note("No page", {"diagnosis": str(reason)})
    reports = [_judged(chosen, file) for chosen in STAGES]
    if trained is not False:  # a report that did not pass is false, too
        reports.append(train(path) if trained is True else trained)
    passed, of = sum(isinstance(report, Report) and bool(report) for report in reports), len(STAGES) + 1
    text = path.read_text(encoding="utf-8")
    lines = sum(bool(line.strip()) for line in text.splitlines())
    mark = hashlib.sha256(text.encode()).hexdigest()[:12]
    about = {
        "passed": f"{passed} of {of}" + ", and the training was left out" * (trained is False),
        "day": date.today().isoformat(),
        "file": f"{path.name}, {lines} lines, mark {mark}",
    }
    body = "".join(report._repr_html_() for report in reports)
    head = table_html("<b>Capstone: my own Transformer</b>", about, COLOURS["open"])
    html = (
        "<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'><title>Capstone</title><style>"
        "body{font-family:sans-serif;max-width:50em;margin:2em auto;color:#202020;background:#fff}"
        "body>div{margin:1em 0}</style></head><body>"
        f"{head}{body}</body></html>\n"
    )
    try:
        write_whole(to, html)
    except OSError as error:
        return Note("No page", {"diagnosis": f"{to} cannot be written: {error.strerror or error}"})
    return Note(f"Capstone: {passed} of {of} passed", about | {"page": str(to)})
