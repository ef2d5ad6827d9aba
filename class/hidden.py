"""The hidden test of one exercise: its points, on inputs that the notebook has not shown.

`make assignments` puts this text between nbgrader's two markers in the cell that checks the exercise; in the
build folder, nowhere else. There it runs in the student's kernel, in a namespace of its own: from the
notebook it takes the answer, and nothing else.
"""

import builtins
import importlib
import sys
from dataclasses import replace

import torch

LATE = "no answer after"  # runner.within says so when time is up
MIME = "application/x-lesson-verdict+json"
# What the judging itself computes with.
USED = (
    "softmax exp log tanh sum mean max amax abs matmul einsum"
    " bmm all any isfinite equal isclose allclose clone"
)


def foreign():
    """Name of a function of Python or torch in whose place the notebook has put another one; else None."""
    for place in (builtins, torch, torch.Tensor, torch.nn.functional):
        for name, thing in list(vars(place).items()):
            if "__main__" in [getattr(x, "__module__", "") for x in (thing, type(thing))]:
                return f"{place.__name__}.{name}"
        for name in USED.split():
            if getattr(getattr(place, name, None), "__name__", name) != name:
                return f"{place.__name__}.{name}"
    return None


def graded(answer, name, points, seed, student=None, said=None):
    """The verdict: points, diagnosis, how many steps are right, and `sure`, False where a person must look.

    `student`, where numbers are each student's own: whose notebook it is; `said`: whose it says that it is.
    """
    verdict = {"exercise": name, "points": 0.0, "of": points, "steps": "", "sure": True}
    if changed := foreign():
        said = f"{changed} has been replaced in this notebook, so nothing can be judged"
        return verdict | {"diagnosis": said}
    own = [n for n in sys.modules if n.split(".")[0] == "lesson_lib"]
    kept = {n: sys.modules.pop(n) for n in own}
    try:  # the library as it is on disk, whatever the notebook has made of it
        if student is not None and not hasattr(exercise := _exercise(name), "stages"):
            return verdict | _own(answer, exercise, points, student, said)
        return verdict | _judged(answer, name, points, seed)
    finally:
        for n in [n for n in sys.modules if n.split(".")[0] == "lesson_lib"]:
            del sys.modules[n]
        sys.modules.update(kept)


def _exercise(name):
    return importlib.import_module("lesson_lib.checks.exam").every()[name]


def _own(answer, exercise, points, student, said):
    """The verdict on a number or a letter, by this student's numbers."""
    engine = importlib.import_module("lesson_lib.checks.engine")
    unaided = importlib.import_module("lesson_lib.checks.exam")

    if answer is None or answer is ...:
        return {"diagnosis": "not attempted yet"}
    mine = unaided.own(exercise, student)
    found = engine.verdict(mine, answer)
    if found.passed:
        return {"points": float(points), "diagnosis": found.diagnosis}
    if type(said) is str and engine.verdict(unaided.own(exercise, said), answer).passed:
        told = f"right with the numbers of {said!r}, and handed in by {student!r}, whose numbers are others"
        return {"diagnosis": told, "sure": False}
    others = unaided.others(exercise, student) if found.diagnosis not in mine.slips else []
    if any(engine.verdict(other, answer).passed for other in others):
        told = f"right with the printed numbers of somebody else; yours are: {mine.asked}"
        return {"diagnosis": told, "sure": False}
    return {"diagnosis": found.diagnosis, "sure": found.state != "unjudged"}


def _judged(answer, name, points, seed):
    engine = importlib.import_module("lesson_lib.checks.engine")
    inputs = importlib.import_module("lesson_lib.checks.inputs")
    runner = importlib.import_module("lesson_lib.checks.runner")
    # Nobody waits at a screen, and the machine that grades may be busy.
    runner.DEADLINE_S = 10.0
    exercise = _exercise(name)
    if answer is None or answer is ...:
        return {"diagnosis": "not attempted yet"}
    written = hasattr(exercise, "stages")
    shifts = (seed, seed + 1)

    parts = _parts(exercise, inputs) if written else []
    troubles = []
    for part in parts:
        troubles.append(_trouble(part, answer, shifts, inputs, runner))
        if LATE in troubles[-1]:  # the other steps would cost as many seconds again
            right = troubles.count("")
            return _verdict(points, troubles[-1], right, len(parts))

    for shift in (0, *shifts) if written else (0,):
        with inputs.reseeded(shift):
            result = engine.verdict(exercise, answer)
        if not result.passed:
            break
    said = result.diagnosis
    if result.state in ("open", "unjudged"):
        return {"diagnosis": said, "sure": result.state == "open"}
    if not written:
        earned = float(points) if result.passed else 0.0
        return {"points": earned, "diagnosis": said}
    right = troubles.count("")
    if result.passed and right == len(parts):
        return _verdict(points, said, right, right)
    if result.passed:
        said = next(t for t in troubles if t)
    if result.passed or shift:
        said = f"right on the notebook's inputs, not on others: {said}"
    return _verdict(points, said, min(right, len(parts) - 1), len(parts))


def _verdict(points, said, right, steps):
    earned = round(points * right / steps, 2)
    return {"points": earned, "diagnosis": said, "steps": f"{right} of {steps} steps"}


def _parts(exercise, inputs):
    """The exercise once for each of its steps, with this step alone; the last step has the other
    sizes, too."""
    parts = []
    for stage in exercise.stages:
        cases = stage.cases
        if stage is exercise.stages[-1] and (more := exercise.hidden):
            cases = lambda old=stage.cases, more=more: [*old(), *more(inputs.drawn)]  # noqa: E731
        parts.append(replace(exercise, stages=(replace(stage, cases=cases),), extra=None))
    if exercise.extra is not None:
        parts.append(replace(exercise, stages=exercise.stages[:1]))
    return parts


def _trouble(part, answer, shifts, inputs, runner):
    """What is wrong with an answer in one step, with any of the seeds; '' where nothing is."""
    for shift in shifts:
        with inputs.reseeded(shift), runner.undisturbed():
            try:
                judge = lambda: part.judge(answer, lambda *_: None)  # noqa: E731
                result = runner.within(runner.DEADLINE_S, judge)
                trouble = "" if result.passed else result.diagnosis
            except TimeoutError as late:
                trouble = str(late)
            except BaseException as error:
                trouble = runner.sentence(error)
        if trouble:
            return trouble
    return ""


class Verdict:
    """Shows itself to nbgrader as a number of points, and to this course's grading with the diagnosis and a
    token."""

    def __init__(self, content):
        self.content = content

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": str(self.content["points"]), MIME: self.content}
