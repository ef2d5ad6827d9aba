"""Can this Python run `make test-gpu`? One sentence where it cannot; where it can, the line that says what
computes."""

from __future__ import annotations  # an old Python must get as far as its sentence

import re
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
THERE = ["torch", "numpy", "scipy", "scikit-learn", "matplotlib", "pillow", "networkx", "sympy", "pip"]


def number(version: str) -> tuple[int, ...]:
    """The first two numbers of a version.

    >>> number("2.11.0a0+git1"), number("13") < number("13.1")
    ((2, 11), True)
    """
    return tuple(map(int, re.findall(r"\d+", version)[:2]))


def installed(name: str) -> str | None:
    """The version of a package that this Python has, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def oldest() -> dict[str, str]:
    """The oldest versions that pyproject.toml allows, by name."""
    return dict(re.findall(r'^ +"([\w-]+)>=([\d.]+)"', (ROOT / "pyproject.toml").read_text("utf-8"), re.M))


def package_problem(versions: dict[str, str | None]) -> str | None:
    """A sentence that names the packages that are missing or too old, else None. `versions`: by name, None
    where missing."""
    least = oldest()
    lacks = [
        f"{name} {least[name]} or newer{f' (it has {version})' if version else ''}" if name in least else name
        for name, version in versions.items()
        if version is None or number(version) < number(least.get(name, "0"))
    ]
    if not lacks:
        return None
    return (
        f"{sys.executable} lacks {', '.join(lacks)}. The tests never install these: PYTHON=... names the"
        " Python that has the machine's torch; what it lacks besides, install there yourself."
    )


def cuda_problem(torch_version: str, built_for: str | None, seen: bool) -> str | None:
    """A sentence where torch sees no GPU (`seen`), else None. `built_for`: the CUDA it was built for, None
    for a CPU build."""
    if seen:
        return None
    built, repair = "built without CUDA", "install PyTorch's CUDA build there"
    if built_for:
        built, repair = f"built for CUDA {built_for}", "see whether nvidia-smi lists a GPU"
    return (
        f"torch {torch_version} ({built}) sees no CUDA device on this machine: {repair}, or run this on a"
        " machine that has one. DEVICE=cpu runs the same tests on the processor."
    )


def main(device: str) -> str | None:
    """The sentence that says why the tests cannot run on `device`; None after the line that says what runs
    them."""
    python = sys.version.split()[0]
    if not (3, 11) <= sys.version_info < (3, 15):
        return (
            f"{sys.executable} is Python {python}, and the course needs 3.11 to 3.14: PYTHON=... names"
            " another."
        )
    if problem := package_problem({name: installed(name) for name in THERE}):
        return problem
    import torch

    seen = torch.cuda.is_available()
    if device == "cuda" and (problem := cuda_problem(torch.__version__, torch.version.cuda, seen)):
        return problem
    where = torch.cuda.get_device_name() if device == "cuda" else device
    print(f"Python {python}, torch {torch.__version__}, on: {where}", flush=True)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
