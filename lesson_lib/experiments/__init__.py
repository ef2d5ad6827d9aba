"""Experiments: a recipe, a run per seed, and the results of a long run beside them.

An experiment lies with its chapter, lesson_lib/chapters/*/experiments/NAME.py; what several chapters measure
lies here. Each module holds `RECIPE` (plain numbers and names) and `run(seed) -> list of rows`. `make
experiments` runs them for all seeds of the recipe and writes `results/NAME.json` beside the module; a lesson
reads that with `results(NAME)` and draws it beside its own live run. A file whose recipe is not the code's
any more is refused. results/weights/ here holds what `training.stored` reads.

A module whose seconds belong to one device says so: `DEVICE = "cpu"` is run there on every machine, `DEVICE =
"gpu"` only where the lessons compute on a GPU, and has no results before that. All others run on the lessons'
device.
"""

import argparse
import importlib
import json
import platform
import time
from contextlib import nullcontext
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import torch

from lesson_lib.device import device, on

_HOUSE = Path(__file__).parents[1]


@cache
def _files() -> dict[str, Path]:
    """Every experiment's file by its name."""
    files = [*_HOUSE.glob("experiments/*.py"), *_HOUSE.glob("chapters/*/experiments/*.py")]
    return {path.stem: path for path in sorted(files, key=lambda path: path.stem) if path.stem != "__init__"}


def names() -> list[str]:
    """Names of all experiments."""
    return list(_files())


def stored_at(name: str) -> Path:
    """Where an experiment's results stand, or will."""
    return _files()[name].parent / "results" / f"{name}.json"


def results(name: str) -> dict[str, Any]:
    """The stored results of an experiment: recipe, rows (one dict per seed and setting), date, machine; and
    the GPU, if there was one.

    Raises ValueError for an unknown name, and where the stored recipe differs from the code's.
    """
    module = _module(name)
    path = stored_at(name)
    if not path.exists():
        where = " on a machine with a GPU" if needs_gpu(name) else ""
        raise ValueError(
            f"there are no results of {name!r} yet; run{where}: python -m lesson_lib experiments {name}"
        )
    stored = json.loads(path.read_text(encoding="utf-8"))
    recipe = json.loads(json.dumps(module.RECIPE))
    if stored["recipe"] != recipe:
        changed = sorted(
            key for key in recipe | stored["recipe"] if recipe.get(key) != stored["recipe"].get(key)
        )
        raise ValueError(
            f"the recipe of {name!r} has changed in {', '.join(changed)} since its results were made; "
            f"run: python -m lesson_lib experiments {name}"
        )
    return stored


def needs_gpu(name: str) -> bool:
    """Whether an experiment runs on a GPU alone. Raises ValueError for an unknown name."""
    return getattr(_module(name), "DEVICE", "") == "gpu"


def gpu_name() -> str:
    """The name of the GPU that the lessons compute on. Raises RuntimeError where they compute on the CPU."""
    kind = device().type
    if kind == "cpu":
        raise RuntimeError("the lessons compute on the CPU here, and a CPU has no GPU's name")
    if kind == "cuda":
        return torch.cuda.get_device_name()
    return "an Apple GPU" if kind == "mps" else f"a GPU of the kind {kind}"


def options(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the options of `main`."""
    parser.add_argument("chosen", nargs="*", metavar="NAME", help="default: all")


def main(chosen: list[str] | None = None) -> int:
    """Run experiments by name (default: all) for every seed of their recipes and write their results; 1 where
    a chosen one cannot run, else 0.

    What needs a GPU is left out where there is none, and said to be.
    """
    from tqdm import tqdm

    left_out = False
    for name in chosen or names():
        module = _module(name)
        if needs_gpu(name) and device().type == "cpu":
            print(f"{name}: left out, since it needs a GPU, and the lessons compute on the CPU here")
            left_out = True
            continue
        start, rows = time.process_time(), []
        with on("cpu") if getattr(module, "DEVICE", "") == "cpu" else nullcontext():
            for seed in tqdm(module.RECIPE["seeds"], desc=name, unit="seed"):
                rows += module.run(seed)
            gpu = {"gpu": gpu_name()} if device().type != "cpu" else {}
        stored = {
            "experiment": name,
            "recipe": module.RECIPE,
            "date": date.today().isoformat(),
            "machine": ", ".join([*_machine(), *gpu.values()]),
            **gpu,
            "cpu_s": round(time.process_time() - start, 1),
            "rows": rows,
        }
        path = stored_at(name)
        path.parent.mkdir(exist_ok=True)
        text = json.dumps(stored, indent=1)
        path.write_text(text + "\n", encoding="utf-8", newline="\n")
        print(f"{name}: {len(rows)} rows in {stored['cpu_s']} s of processor time")
    return int(left_out and bool(chosen))


def _machine() -> list[str]:
    """Processor, Python and threads, in words."""
    threads = torch.get_num_threads()
    return [
        platform.machine(),
        f"Python {platform.python_version()}",
        "one thread" if threads == 1 else f"{threads} threads",
    ]


def _module(name: str) -> Any:
    if name not in names():
        raise ValueError(f"there is no experiment {name!r}; choose from: {', '.join(names())}")
    parts = _files()[name].relative_to(_HOUSE.parent).with_suffix("").parts
    return importlib.import_module(".".join(parts))
