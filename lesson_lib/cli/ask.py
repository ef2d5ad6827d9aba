"""`python -m lesson_lib ask NAME`: a question as a learner sees it, and what comes after, for its author."""

import argparse
from pathlib import Path

CHAPTERS = Path(__file__).resolve().parents[1] / "chapters"
PAGE = "<!doctype html><meta charset=utf-8><title>{name}</title><body style='max-width:50em'>{cards}"


def options(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the options of `main`."""
    parser.add_argument("name", metavar="NAME", help="such as padding_share or scaled_attention_2")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write it as a page, too")


def _location(name: str) -> str:
    """Where the words of a question stand: file and line."""
    for path in sorted(CHAPTERS.glob("*/questions/*.md")):
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            if line == f"## {name}" or line.startswith(f"## {name}: "):
                return f"{path.relative_to(CHAPTERS.parents[1])}:{number}"
    return ""


def main(name: str, *, html: Path | None = None) -> int:
    """Print what a learner is asked, its hints, and its solution; 0, or 1 after a sentence."""
    from lesson_lib.checks import engine
    from lesson_lib.checks.card import question_page, question_text
    from lesson_lib.checks.exercise import Write
    from lesson_lib.checks.find_inputs import Expose
    from lesson_lib.checks.result import Note
    from lesson_lib.checks.short_answers import RETURNING

    exercise, problem = engine.find(name)
    if exercise is None:
        print(problem)
        return 1
    stars = f"{'★' * exercise.stars} {exercise.minutes} min, {exercise.why}" if exercise.stars else ""
    about = {"words": _location(name), "about": stars}
    about |= {f"hint {number}": text for number, text in enumerate(exercise.hints, 1)}
    rows = {"answer": exercise.right, "remember": exercise.remember}
    for number, (slip, wrong) in enumerate(exercise.slips.items(), 1):
        rows[f"if {wrong}" if isinstance(exercise, RETURNING) else f"slip {number}"] = slip
    writes = isinstance(exercise, Write | Expose)
    below = [
        Note(exercise.title or name, {k: v for k, v in about.items() if v}, exercise.start if writes else ""),
        Note("Afterwards", {k: v for k, v in rows.items() if v}, exercise.text),
    ]
    print(question_text(exercise, "asked"), *below, sep="\n\n")
    if html is not None:
        cards = [question_page(exercise, "Asked"), *(note._repr_html_() for note in below)]
        if not html.parent.is_dir():
            print(f"there is no folder {html.parent}; give --html another file")
            return 1
        html.write_text(PAGE.format(name=name, cards="".join(cards)), encoding="utf-8")
    return 0
