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
    with pytest.raises(ValueError, match=r"one of auto, cpu, cuda, mps.*, got 'gpu'"):
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


def test_a_part_of_a_program_computes_elsewhere_and_the_rest_does_not(monkeypatch):
    monkeypatch.delenv("LESSON_DEVICE", raising=False)
    outside = device.device().type
    with device.on("cpu"):
        assert device.device().type == "cpu" and device.to_device(torch.zeros(2)).device.type == "cpu"
        with device.on("auto"):
            assert device.device().type == outside
        assert device.device().type == "cpu"
    assert device.device().type == outside and "LESSON_DEVICE" not in device.os.environ


def test_it_comes_back_after_an_error_and_a_missing_device_runs_nothing(monkeypatch):
    monkeypatch.setenv("LESSON_DEVICE", "cpu")
    with pytest.raises(ZeroDivisionError), device.on("cpu"):
        1 / 0  # noqa: B018
    ran = []
    with pytest.raises(ValueError, match="got 'gpu'"), device.on("gpu"):
        ran.append(1)
    assert not ran and device.os.environ["LESSON_DEVICE"] == "cpu"
