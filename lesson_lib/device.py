"""The machine under the lessons: which device computes, which seeds, where a learner's files lie.

Environment variables: LESSON_DEVICE=auto|cpu|cuda|mps, LESSON_HOME=folder, LESSON_STEPS=quick,
LESSON_STORED=1|anew (training.stored), LESSON_PROGRESS=off.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import torch

Tree = TypeVar("Tree")
KNOWN = ("auto", "cpu", "cuda", "mps")

# TF32 keeps 10 bits of a float32 product; with it, a GPU could not show the numbers that a CPU shows.
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False


def device() -> torch.device:
    """The device the lessons compute on: LESSON_DEVICE, or `auto`: cuda where there is one, else cpu.

    Raises ValueError for an unknown name, RuntimeError where the device is asked for and missing.
    """
    name = os.environ.get("LESSON_DEVICE", "auto").strip().lower() or "auto"
    if name not in KNOWN:
        raise ValueError(
            f"LESSON_DEVICE must be one of {', '.join(KNOWN)}, got {name!r}; unset it to choose automatically"
        )
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cuda" and not torch.cuda.is_available():
        raise RuntimeError("LESSON_DEVICE=cuda, but torch sees no CUDA device; set LESSON_DEVICE=cpu")
    if name == "mps" and not torch.backends.mps.is_available():
        raise RuntimeError("LESSON_DEVICE=mps, but torch sees no Apple GPU; set LESSON_DEVICE=cpu")
    return torch.device(name)


@contextmanager
def on(name: str) -> Iterator[None]:
    """Within it, the lessons compute on that device: `with on("cpu"): ...` measures the CPU on a machine with
    a GPU, too.

    Tensors and layers that were made before stay where they are. Raises as `device()` does, before anything
    is run.

    >>> with on("cpu"):
    ...     print(device())
    cpu
    """
    before = os.environ.get("LESSON_DEVICE")
    os.environ["LESSON_DEVICE"] = str(name)
    try:
        device()
        yield
    finally:
        if before is None:
            del os.environ["LESSON_DEVICE"]
        else:
            os.environ["LESSON_DEVICE"] = before


def to_device(tree: Tree) -> Tree:
    """The same tensors, modules, lists, tuples and dicts of them, on `device()`; anything else is passed
    through."""
    if isinstance(tree, (torch.Tensor, torch.nn.Module)):
        return tree.to(device())
    if isinstance(tree, dict):
        return {key: to_device(value) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*map(to_device, tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(map(to_device, tree))
    return tree


def seed(number: int = 0) -> torch.Generator:
    """Seed torch's own generators and return a CPU generator with the same seed.

    Data are drawn with the CPU generator and then moved, so that every device sees the same inputs.
    """
    torch.manual_seed(number)
    return torch.Generator().manual_seed(number)


def quick() -> bool:
    """True where LESSON_STEPS=quick: trainings are cut short (tests in the browser), and verdicts are not
    judged."""
    return os.environ.get("LESSON_STEPS", "") == "quick"


def watched() -> bool:
    """False where nobody sees a bar or presses a button: LESSON_PROGRESS=off builds and tests notebooks."""
    return os.environ.get("LESSON_PROGRESS") != "off"


def home() -> Path:
    """Folder for a learner's progress and trained weights: LESSON_HOME, else the user's data folder. Not
    created here."""
    if chosen := os.environ.get("LESSON_HOME"):
        return Path(chosen).expanduser()
    from platformdirs import user_data_path

    return user_data_path("lesson_lib", appauthor=False)
