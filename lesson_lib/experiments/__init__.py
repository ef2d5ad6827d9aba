"""Experiments: a recipe, a run per seed, and the results of a long run beside them.

Each module here holds `RECIPE` (plain numbers and names) and `run(seed) -> list of rows`. `make experiments` runs them
for all seeds of the recipe and writes `results/NAME.json`; a lesson reads that with `results(NAME)` and draws it beside
its own live run. A file whose recipe is not the code's any more is refused.
"""

import importlib
import json
import platform
import time
from datetime import date
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"


def names() -> list[str]:
    """Names of all experiments."""
    return sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__")


def results(name: str) -> dict[str, Any]:
    """The stored results of an experiment: recipe, rows (one dict per seed and setting), date, machine.

    Raises ValueError for an unknown name, and where the stored recipe differs from the code's.
    """
    module, path = _module(name), FOLDER / f"{name}.json"
    if not path.exists():
        raise ValueError(
            f"there are no results of {name!r} yet; run: python -m lesson_lib experiments {name}"
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


def main(chosen: list[str] | None = None) -> None:
    """Run experiments by name (default: all) for every seed of their recipes and write their results."""
    from tqdm import tqdm

    for name in chosen or names():
        module = _module(name)
        start, rows = time.process_time(), []
        for seed in tqdm(module.RECIPE["seeds"], desc=name, unit="seed"):
            rows += module.run(seed)
        stored = {
            "experiment": name,
            "recipe": module.RECIPE,
            "date": date.today().isoformat(),
            "machine": f"{platform.machine()}, Python {platform.python_version()}, one thread"
            if _threads() == 1
            else f"{platform.machine()}, Python {platform.python_version()}, {_threads()} threads",
            "cpu_s": round(time.process_time() - start, 1),
            "rows": rows,
        }
        FOLDER.mkdir(exist_ok=True)
        text = json.dumps(stored, indent=1)
        (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8", newline="\n")
        print(f"{name}: {len(rows)} rows in {stored['cpu_s']} s of processor time")


def _threads() -> int:
    import torch

    return torch.get_num_threads()


def _module(name: str) -> Any:
    if name not in names():
        raise ValueError(f"there is no experiment {name!r}; choose from: {', '.join(names())}")
    return importlib.import_module(f"lesson_lib.experiments.{name}")
