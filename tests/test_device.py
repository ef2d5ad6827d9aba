"""The device, seeds, and where a learner's files lie."""

from pathlib import Path

import pytest
import torch

from lesson_lib import device


def test_auto_takes_the_gpu_where_there_is_one(monkeypatch):
    monkeypatch.setenv("LESSON_DEVICE", "auto")
    assert device.device().type == ("cuda" if torch.cuda.is_available() else "cpu")
    monkeypatch.setenv("LESSON_DEVICE", " CPU ")
    assert device.device().type == "cpu"


def test_an_unknown_device_gets_a_sentence(monkeypatch):
    monkeypatch.setenv("LESSON_DEVICE", "gpu")
    with pytest.raises(ValueError, match="one of auto, cpu, cuda, mps, got 'gpu'"):
        device.device()


@pytest.mark.parametrize("name", ["cuda", "mps"])
def test_a_missing_device_gets_a_sentence(monkeypatch, name):
    monkeypatch.setenv("LESSON_DEVICE", name)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(RuntimeError, match="set LESSON_DEVICE=cpu"):
        device.device()


def test_seed_gives_the_same_data_again_from_a_cpu_generator():
    first = torch.randn(3, generator=device.seed(5), device="cpu")
    torch.randn(7)
    assert torch.equal(first, torch.randn(3, generator=device.seed(5), device="cpu"))
    assert device.seed(5).device.type == "cpu"


def test_to_device_keeps_the_shape_of_a_tree():
    tree = {"a": torch.ones(1), "b": [torch.ones(2), (torch.ones(3), "text")]}
    moved = device.to_device(tree)
    assert moved["a"].device.type == device.device().type
    assert moved["b"][1][1] == "text" and isinstance(moved["b"][1], tuple)


def test_home_is_chosen_by_lesson_home(monkeypatch, tmp_path):
    monkeypatch.setenv("LESSON_HOME", str(tmp_path))
    assert device.home() == tmp_path
    monkeypatch.delenv("LESSON_HOME")
    assert isinstance(device.home(), Path) and device.home().is_absolute()


def test_tf32_is_off():
    assert not torch.backends.cuda.matmul.allow_tf32 and not torch.backends.cudnn.allow_tf32
