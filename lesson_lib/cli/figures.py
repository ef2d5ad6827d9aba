"""The figures on disk: drawn by code, the same bytes every time."""

import argparse
import io
from pathlib import Path

from PIL import Image

from lesson_lib.chapters.c01_history import glimpses_figures
from lesson_lib.chapters.c01_history.timeline_figures import timeline
from lesson_lib.chapters.c02_scoring import matrices
from lesson_lib.chapters.c05_positional_encoding import figures
from lesson_lib.charts.basic import heatmap
from lesson_lib.charts.picture import Picture
from lesson_lib.places import ROOT
from lesson_lib.positions import sinusoidal
from lesson_lib.trace import example, seven_steps

FRAME_MS = 1600


def all_pictures() -> dict[str, Picture]:
    """Every figure by its name."""
    given = example()
    steps = seven_steps(**given)
    weights = {name.replace("w_", "W_"): given[name] for name in ("w_key", "w_query", "w_value")}
    n, d_model, d_k, d_v = 6, 10, 4, 5
    return {
        "seven_steps": matrices.seven_steps(steps, weights),
        "weights": heatmap(
            {"scores": steps.scores, "weights": steps.weights},
            alt=(
                "Scores and weights of the worked example: three queries by three keys; softmax turns each"
                " row of scores into shares."
            ),
        ),
        "rows": matrices.products(
            list(matrices.equations("rows", n, d_model, d_k, d_v).values()),
            alt="The five products of self-attention and its softmax with tokens as rows, drawn to scale.",
        ),
        "columns": matrices.products(
            list(matrices.equations("columns", n, d_model, d_k, d_v).values()),
            alt="The five products of self-attention and its softmax with tokens as columns, drawn to scale.",
        ),
        "positions": figures.table(sinusoidal(64, 32)),
        "timeline": timeline(),
        "glimpses": glimpses_figures.paths(*glimpses_figures.stored_paths(6)),
    }


def film() -> bytes:
    """The seven steps as an animated GIF, a step every 1.6 seconds."""
    given = example()
    steps = seven_steps(**given)
    weights = {name.replace("w_", "W_"): given[name] for name in ("w_key", "w_query", "w_value")}
    frames = [
        Image.open(io.BytesIO(matrices.seven_steps(steps, weights, upto=step).png())).convert("RGB")
        for step in range(1, 8)
    ]
    palette = frames[-1].quantize(128, dither=Image.Dither.NONE)
    frames = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    file = io.BytesIO()
    times = [FRAME_MS] * 6 + [3 * FRAME_MS]
    frames[0].save(
        file, format="GIF", save_all=True, append_images=frames[1:], duration=times, loop=0, optimize=False
    )
    return file.getvalue()


def options(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the options of `main`."""
    parser.add_argument("--to", type=Path, default=ROOT / "figures", metavar="FOLDER")


def main(*, to: Path) -> int:
    """Draw all figures; 0."""
    write_all(to)
    return 0


def write_all(folder: Path | str) -> list[Path]:
    """Write every figure as SVG and PNG, and the films as GIF, into a folder; returns what was written."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, picture in all_pictures().items():
        for path, content in (
            (folder / f"{name}.svg", picture.svg()),
            (folder / f"{name}.png", picture.png()),
        ):
            path.write_bytes(content)
            written.append(path)
    for name, frames in {
        "seven_steps": film(),
        "glimpses": glimpses_figures.film(*glimpses_figures.stored_paths(4)),
    }.items():
        path = folder / f"{name}.gif"
        path.write_bytes(frames)
        written.append(path)
    return written
