"""`python -m lesson_lib capstone`: the learner's own Transformer, judged stage by stage, and a page at the
end."""

from pathlib import Path

from lesson_lib.cli import lab


def main(file: Path | None = None, *, only: int | None = None, trains: bool = True) -> int:
    """Make the file where there is none; else judge its stages, train once all of them pass, and write the
    page. 0, or 1 after a sentence where nothing could be judged."""
    from lesson_lib.chapters.c14_capstone import judge

    path = lab.ROOT / "work" / judge.FILE if file is None else file
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        made = judge.begin(path)
        print(made)
        if path.exists():
            print(f"Write in {path}, stage by stage; the same command judges it.")
        return 0 if path.exists() else 1
    reports = [judge.stage(n, path) for n in ([only] if only else range(1, len(judge.STAGES) + 1))]
    for report in reports:
        print(report, end="\n\n")
    if not all(isinstance(report, judge.Report) for report in reports):
        return 1
    if only:
        return 0
    if not all(reports):
        print("The training, and the page, come once all five stages pass.")
        return 0
    trained = judge.train(path) if trains else False
    if trains:
        print(trained, end="\n\n")
    print(judge.page(path, to=path.with_suffix(".html"), trained=trained))
    return 0
