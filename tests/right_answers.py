"""Answers that every exercise must take, and wrong ones to open questions, by exercise; each chapter's stand
beside its tests."""

from importlib import import_module
from pathlib import Path

_CHAPTERS = [
    import_module(f"tests.chapters.{path.parent.name}.right_answers")
    for path in sorted(Path(__file__).parent.glob("chapters/*/right_answers.py"))
]
RIGHT = {name: answers for chapter in _CHAPTERS for name, answers in chapter.RIGHT.items()}
WRONG = {name: texts for chapter in _CHAPTERS for name, texts in getattr(chapter, "WRONG", {}).items()}
