"""Pictures of whole notebooks in JupyterLab: `python -m tests.browser.shots FOLDER
notebooks/02_scoring.ipynb`

Each notebook is opened in a JupyterLab of its own and photographed from top to bottom, 1,400 and 800 pixels
wide, in slices of 1,500 pixels: FOLDER/02_scoring_1400_01.png ... `--run` runs all cells first (widgets are
alive then), `--width N` takes one width, `--theme dark` JupyterLab's dark theme; its files are called
02_scoring_dark_1400_01.png ...
"""

import argparse
import shutil
import tempfile
from pathlib import Path

from tests.browser.driver import THEMES, Notebook, chromium, server

HEIGHT = 1600
SCROLLER = ".jp-WindowedPanel-outer"


def shoot(notebook: Notebook, folder: Path, stem: str) -> list[Path]:
    """Photograph a notebook from top to bottom; returns the files."""
    page = notebook.page
    scroller = page.locator(SCROLLER).first
    made, top = [], 0
    while True:
        scroller.evaluate("(e, top) => { e.scrollTop = top }", top)
        page.wait_for_timeout(400)
        made.append(folder / f"{stem}_{len(made) + 1:02}.png")
        scroller.screenshot(path=made[-1])
        seen, whole = scroller.evaluate("e => [e.clientHeight, e.scrollHeight]")
        top += seen - 40
        if top + 40 >= whole or len(made) >= 60:
            return made


def main(arguments: list[str] | None = None) -> int:
    """Take the pictures and print the files."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.browser.shots", description=__doc__.splitlines()[0]
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("notebooks", nargs="+", type=Path)
    parser.add_argument("--run", action="store_true", help="run all cells first")
    parser.add_argument("--width", type=int, action="append", help="default: 1400 and 800")
    parser.add_argument("--theme", choices=sorted(THEMES), default="light", help="JupyterLab's theme (light)")
    parser.add_argument(
        "--full", action="store_true", help="with --run: full trainings (default: LESSON_STEPS=quick)"
    )
    chosen = parser.parse_args(arguments)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    mark = "" if chosen.theme == "light" else f"_{chosen.theme}"
    steps = None if chosen.full else "quick"
    with tempfile.TemporaryDirectory(prefix="lesson_shots_", ignore_cleanup_errors=True) as scratch:
        work = Path(scratch) / "work"
        work.mkdir()
        for path in chosen.notebooks:
            shutil.copyfile(path, work / path.name)
        with (
            server(work, Path(scratch), steps=steps, theme=chosen.theme) as address,
            chromium() as browser,
        ):
            for path in chosen.notebooks:
                for width in chosen.width or [1400, 800]:
                    context = browser.new_context(viewport={"width": width, "height": HEIGHT})
                    notebook = Notebook(context.new_page(), address, path.name)
                    if chosen.run and not notebook.run_all():
                        print(f"{path.name}: Run All did not finish: {notebook.troubles()}")
                    for file in shoot(notebook, chosen.folder, f"{path.stem}{mark}_{width}"):
                        print(file, flush=True)
                    context.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
