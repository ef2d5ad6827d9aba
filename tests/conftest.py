"""Every unit test runs with jaxtyping's shapes checked by beartype, on the device that LESSON_DEVICE
names."""

import os
import threading

import jaxtyping
import pytest
import torch

from lesson_lib.checks import isolation, sandbox
from lesson_lib.device import device


def by_default(place: torch.device | None) -> None:
    """Tensors are made there. A default device is a mode, which every call of torch then goes through: the
    CPU needs none."""
    torch.set_default_device(None if place is None or place.type == "cpu" else place)


def pytest_sessionstart():
    """Tensors that a file of tests makes for all of its tests lie on the lessons' device, too."""
    by_default(device())


@pytest.fixture(autouse=True)
def _same_start(request):
    """Tensors are made on the lessons' device, from the same seed, in every test; on the CPU, where it is
    marked so. No test leaves an answer that runs on."""
    by_default(None if request.node.get_closest_marker("on_cpu") else device())
    (torch.manual_seed if device().type != "cpu" else torch.default_generator.manual_seed)(0)
    yield
    by_default(None)
    assert not judging(wait=5), "an answer is still judged: it would slow down every later test"


def judging(wait: float) -> list[threading.Thread]:
    """The threads that still judge an answer when each has had so many seconds to end."""
    threads = [thread for thread in threading.enumerate() if thread.name == isolation.CHECK]
    for thread in threads:
        thread.join(wait)
    return [thread for thread in threads if thread.is_alive()]


@pytest.fixture
def most():
    """`most(mib)`: a bound of memory, exact on the CPU. A GPU's allocator rounds up, and its kernels keep
    tables of their own: twice as much."""
    return lambda mib: mib if device().type == "cpu" else 2 * mib


@pytest.fixture
def untried(monkeypatch):
    """Answers are judged without a trial in a copy of this process, and no disk is waited for: where
    thousands are known to end."""
    monkeypatch.setattr(sandbox, "tried", lambda *given: sandbox.Trial())
    monkeypatch.setattr(os, "fsync", lambda file: None)


@pytest.fixture
def no_shape_hook():
    """jaxtyping would raise before the library does: switched off where the library's own sentence is
    tested."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
