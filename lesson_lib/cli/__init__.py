"""The command line: `python -m lesson_lib doctor | lab | capstone | model | build | figures | experiments |
ring | slides | handouts | site | assignments | collect | class | report`.

Each command imports what it needs when it is called, so that `lab` starts without waiting for torch.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from lesson_lib.cli import classroom

# the repository: the course is installed in place (pip install -e .)
ROOT = Path(__file__).resolve().parents[2]


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    top = argparse.ArgumentParser(prog="python -m lesson_lib", description=__doc__.splitlines()[0])
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("doctor", help="look at the machine and the installation, and say what to mend")
    lab = commands.add_parser("lab", help="open the lessons in JupyterLab, in your own copies (folder work/)")
    lab.add_argument(
        "first", nargs="?", metavar="NAME", help="which notebook to open first, such as 02a or sources"
    )
    lab.add_argument(
        "--port", type=int, default=None, help="a port of your choice (default: the first free one from 8888)"
    )
    lab.add_argument("--no-browser", action="store_true", help="print the address, open no browser")
    lab.add_argument(
        "--copy-only", action="store_true", help="copy what is missing into work/, start nothing"
    )
    capstone = commands.add_parser("capstone", help="judge your own Transformer, work/capstone.py, in stages")
    capstone.add_argument("file", nargs="?", type=Path, metavar="FILE", help="default: work/capstone.py")
    capstone.add_argument("--stage", type=int, choices=range(1, 6), help="this stage alone")
    capstone.add_argument("--no-training", action="store_true", help="a page without the training")
    model = commands.add_parser(
        "model", help="what a published model on your disk is, layer by layer (config.json and safetensors)"
    )
    model.add_argument("folder", type=Path, metavar="FOLDER", help="such as one that `hf download` has made")
    model.add_argument("--text", help="continue this text, by the likeliest tokens (needs tokenizers)")
    model.add_argument("--length", type=int, default=20, metavar="N", help="tokens to add (default: 20)")
    model.add_argument(
        "--ignore", nargs="*", default=(), metavar="FIELD", help="fields of config.json that change nothing"
    )
    build = commands.add_parser("build", help="build notebooks/*.ipynb from notebooks/source")
    build.add_argument(
        "names", nargs="*", metavar="NAME", help="02 (a chapter), 02a (a part), a full name (default: all)"
    )
    build.add_argument(
        "--check", action="store_true", help="build nothing; fail where a notebook differs from its source"
    )
    build.add_argument(
        "--fresh",
        action="store_true",
        help="take every new picture, also where the text beside it is the same",
    )
    figures = commands.add_parser("figures", help="draw figures/ again")
    figures.add_argument("--to", type=Path, default=ROOT / "figures", metavar="FOLDER")
    experiments = commands.add_parser("experiments", help="run the long experiments again")
    experiments.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    ring = commands.add_parser(
        "ring", help="attention over several processes; torchrun starts them (make ring)"
    )
    ring.add_argument(
        "--tokens", type=int, default=8192, metavar="N", help="of all processes together (default: 8192)"
    )
    ring.add_argument("--heads", type=int, default=4, metavar="H", help="default: 4")
    ring.add_argument("--width", type=int, default=64, metavar="D", help="of each head (default: 64)")
    ring.add_argument("--causal", action="store_true", help="no token looks at a later one")
    ring.add_argument("--backward", action="store_true", help="gradients, too")
    slides = commands.add_parser(
        "slides", help="slides of the lessons, for a browser without a network (make slides)"
    )
    slides.add_argument(
        "names", nargs="*", metavar="NAME", help="02 (a chapter), 02a (a part), a full name (default: all)"
    )
    slides.add_argument(
        "--plan", default="", help="a deck for each session of a plan: half-day, two-days, eight-weeks"
    )
    slides.add_argument("--to", type=Path, default=ROOT / "build" / "slides", metavar="FOLDER")
    pages = commands.add_parser("site", help="the course as pages for any browser (make site)")
    pages.add_argument("--to", type=Path, default=ROOT / "build" / "site", metavar="FOLDER")
    pages.add_argument(
        "--still",
        action="store_true",
        help="run no cell: explorers are pictures (1 minute instead of 4)",
    )
    sheets = commands.add_parser(
        "handouts", help="the sheets of a room as one page, and as a PDF (make handouts)"
    )
    sheets.add_argument(
        "names", nargs="*", metavar="NAME", help="such as worksheet or test_a (default: the room's)"
    )
    sheets.add_argument("--to", type=Path, default=ROOT / "build" / "handouts", metavar="FOLDER")
    given = commands.add_parser(
        "assignments", help="the exercises as nbgrader's assignments (make assignments)"
    )
    given.add_argument("names", nargs="*", metavar="NAME", help="03_matrix_form or 03 (default: all)")
    given.add_argument(
        "--unaided",
        action="store_true",
        help="without hints and solutions, with numbers of each student's own; a folder of its own",
    )
    given.add_argument(
        "--to",
        type=Path,
        default=None,
        metavar="FOLDER",
        help="default: build/assignments, build/unaided",
    )
    given.add_argument(
        "--seed", type=int, default=None, help="of the hidden tests (default: drawn once, and kept)"
    )
    taken = commands.add_parser(
        "collect", help="take the assignments of a class server in, for nbgrader (make collect)"
    )
    taken.add_argument("names", nargs="*", metavar="NAME", help="03_matrix_form or 03 (default: all)")
    taken.add_argument("--homes", type=Path, default=ROOT / "class" / "data" / "homes", metavar="FOLDER")
    taken.add_argument(
        "--to",
        type=Path,
        default=ROOT / "build" / "assignments",
        metavar="FOLDER",
        help="the folder of make assignments",
    )
    report = commands.add_parser(
        "report", help="a page on what a class has done, from the files of export_progress() in a folder"
    )
    report.add_argument(
        "folder", type=Path, metavar="FOLDER", help="with a file for each learner, in it or below"
    )
    report.add_argument("--to", type=Path, default=None, metavar="FILE", help="default: FOLDER/report.html")
    classroom.options(
        commands.add_parser("class", help="one JupyterHub for a class, on this machine (make class)")
    )
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 where all went well, 1 after a sentence that says what did not."""
    chosen = parser().parse_args(arguments)
    try:
        return _run(chosen)
    except KeyboardInterrupt:
        print("\nStopped.")
        return 130


def _run(chosen: argparse.Namespace) -> int:
    if chosen.command == "doctor":
        from lesson_lib.cli import doctor

        return doctor.main()
    if chosen.command == "lab":
        from lesson_lib.cli import lab

        return lab.main(
            first=chosen.first,
            port=chosen.port,
            browser=not chosen.no_browser,
            copy_only=chosen.copy_only,
        )
    if chosen.command == "capstone":
        from lesson_lib.cli import capstone

        return capstone.main(chosen.file, only=chosen.stage, trains=not chosen.no_training)
    if chosen.command == "model":
        from lesson_lib.cli import model

        return model.main(chosen.folder, text=chosen.text, length=chosen.length, ignore=chosen.ignore)
    if chosen.command == "build":
        from lesson_lib.cli import build

        return build.check(chosen.names) if chosen.check else build.main(chosen.names, fresh=chosen.fresh)
    if chosen.command == "figures":
        from lesson_lib.cli.figures import write_all

        write_all(chosen.to)
        return 0
    if chosen.command == "ring":
        from lesson_lib.cli import ring

        sizes = {"tokens": chosen.tokens, "heads": chosen.heads, "width": chosen.width}
        return ring.main(**sizes, causal=chosen.causal, backward=chosen.backward)
    if chosen.command == "report":
        from lesson_lib.cli import report

        return report.main(chosen.folder, to=chosen.to)
    if chosen.command == "slides":
        from lesson_lib.cli import slides

        return slides.main(chosen.names, plan=chosen.plan, to=chosen.to)
    if chosen.command == "class":
        return classroom.main(**{k: v for k, v in vars(chosen).items() if k != "command"})
    if chosen.command == "site":
        from lesson_lib.cli import site

        return site.main(to=chosen.to, record=() if chosen.still else None)
    if chosen.command == "handouts":
        from lesson_lib.cli import handouts

        return handouts.main(chosen.names, to=chosen.to)
    if chosen.command == "assignments":
        from lesson_lib.cli import assignments

        to = chosen.to or ROOT / "build" / ("unaided" if chosen.unaided else "assignments")
        return assignments.main(chosen.names, to=to, seed=chosen.seed, unaided=chosen.unaided)
    if chosen.command == "collect":
        from lesson_lib.cli import collect

        return collect.main(chosen.names, homes=chosen.homes, to=chosen.to)
    from lesson_lib import experiments

    return experiments.main(chosen.names)
