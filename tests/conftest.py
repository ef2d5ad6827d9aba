"""Every unit test runs with jaxtyping's shapes checked by beartype, on the device that LESSON_DEVICE names."""

import pytest
import torch
from jaxtyping import install_import_hook

with install_import_hook("lesson_lib", "beartype.beartype"):
    import lesson_lib.attention
    import lesson_lib.blocks
    import lesson_lib.checks
    import lesson_lib.convolution
    import lesson_lib.data.agreement
    import lesson_lib.data.connected
    import lesson_lib.data.dates
    import lesson_lib.data.digits
    import lesson_lib.data.graphs
    import lesson_lib.data.listops
    import lesson_lib.data.passages
    import lesson_lib.data.recall
    import lesson_lib.data.scenes
    import lesson_lib.data.speech
    import lesson_lib.data.tagging
    import lesson_lib.data.topics
    import lesson_lib.efficient
    import lesson_lib.graphs
    import lesson_lib.heads
    import lesson_lib.linear
    import lesson_lib.masks
    import lesson_lib.models.arena
    import lesson_lib.models.bert
    import lesson_lib.models.detr
    import lesson_lib.models.glimpse
    import lesson_lib.models.gpt
    import lesson_lib.models.ngrams
    import lesson_lib.models.nodes
    import lesson_lib.models.phonemes
    import lesson_lib.models.recaller
    import lesson_lib.models.sagan
    import lesson_lib.models.tagger
    import lesson_lib.models.translator
    import lesson_lib.models.vit
    import lesson_lib.positions
    import lesson_lib.recurrent
    import lesson_lib.ring
    import lesson_lib.scores
    import lesson_lib.trace
    import lesson_lib.truncated  # noqa: F401
    from lesson_lib.device import device

import jaxtyping


def by_default(place: torch.device | None) -> None:
    """Tensors are made there. A default device is a mode, which every call of torch then goes through: the CPU needs none."""
    torch.set_default_device(None if place is None or place.type == "cpu" else place)


def pytest_sessionstart():
    """Tensors that a file of tests makes for all of its tests lie on the lessons' device, too."""
    by_default(device())


@pytest.fixture(autouse=True)
def _same_start():
    """Tensors are made on the lessons' device, from the same seed, in every test."""
    by_default(device())
    torch.manual_seed(0)
    yield
    by_default(None)


@pytest.fixture
def most():
    """`most(mib)`: a bound of memory, exact on the CPU. A GPU's allocator rounds up, and its kernels keep tables of their own: twice as much."""
    return lambda mib: mib if device().type == "cpu" else 2 * mib


@pytest.fixture
def no_shape_hook():
    """jaxtyping would raise before the library does: switched off where the library's own sentence is tested."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
