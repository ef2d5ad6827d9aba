"""`python -m lesson_lib capstone`: the learner's own Transformer, judged stage by stage, and a page at the
end."""

import argparse
from pathlib import Path

from lesson_lib import places


def options(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the options of `main`."""
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="default: work/capstone.py")
    parser.add_argument("--stage", dest="only", type=int, choices=range(1, 6), help="this stage alone")
    parser.add_argument(
        "--no-training", dest="trains", action="store_false", help="a page without the training"
    )


def main(file: Path | None = None, *, only: int | None = None, trains: bool = True) -> int:
    """Make the file where there is none; else judge its stages, train once all of them pass, and write the
    page. 0, or 1 after a sentence where nothing could be judged."""
    from lesson_lib.chapters.c14_capstone import judge

    path = places.work() / judge.FILE if file is None else file
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        message = judge.begin(path)
        if not path.exists():
            print(message)
            return 1
        shown = path if file else path.relative_to(path.parents[1])
        print(f"{shown} is made. Open it in an editor and write stage 1; this judges it: {_judges(1, file)}")
        return 0
    stages = [only] if only else range(1, len(judge.STAGES) + 1)
    reports = {number: judge.stage(number, path) for number in stages}
    unread = next((report for report in reports.values() if not isinstance(report, judge.Report)), None)
    if unread:
        print(unread)
        return 1
    first = next((number for number, report in reports.items() if not report), None)
    for number, report in reports.items():
        print(report if number in (only, first) else report.head)
    if only:
        return 0
    if first:
        print(f"\nStage {first} is next; this judges it alone: {_judges(first, file)}")
        print("The training, and the page, come once all five stages pass.")
        return 0
    print()
    trained = judge.train(path) if trains else False
    if trains:
        print(trained, end="\n\n")
    print(judge.page(path, to=path.with_suffix(".html"), trained=trained))
    return 0


def _judges(number: int, file: Path | None) -> str:
    """The command that judges one stage."""
    if file is None:
        return places.command("capstone", f"--stage {number}")
    return f"python -m lesson_lib capstone {file} --stage {number}"
