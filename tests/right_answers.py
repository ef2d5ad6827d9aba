"""Answers that every exercise must take, and wrong ones to open questions, by exercise."""

from importlib import import_module

_LESSONS = [import_module(f"{__name__}.lesson_{number:02}") for number in range(12)]
RIGHT = {name: answers for lesson in _LESSONS for name, answers in lesson.RIGHT.items()}
WRONG = {name: texts for lesson in _LESSONS for name, texts in getattr(lesson, "WRONG", {}).items()}
