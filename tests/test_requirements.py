"""What is installed: pins that are whole and in range, name no address, and leave a CPU build alone."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NEEDS = [Requirement(line) for line in PROJECT["dependencies"]]
LAB = [Requirement(line) for line in PROJECT["optional-dependencies"]["lab"]]
SYSTEMS = [
    {"python_version": python, "python_full_version": f"{python}.1", "sys_platform": system}
    for python in ("3.11", "3.12", "3.13", "3.14", "3.15")
    for system in ("linux", "darwin", "win32")
]


def pins(name: str) -> list[Requirement]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and line[0] not in "#-"]


def holds(requirement: Requirement, where: dict[str, str]) -> bool:
    return requirement.marker is None or requirement.marker.evaluate(where)


def outside(needs: list[Requirement], pinned: list[Requirement], where: dict[str, str]) -> list[str]:
    """The needs there that no pin, or one out of their range, answers."""
    versions = {canonicalize_name(p.name): str(p.specifier)[2:] for p in pinned if holds(p, where)}
    return [
        str(need)
        for need in needs
        if holds(need, where) and versions.get(canonicalize_name(need.name), "") not in need.specifier
    ]


@pytest.mark.parametrize("where", SYSTEMS, ids=lambda where: "-".join(where.values()))
def test_what_is_needed_is_pinned_once_within_its_range(where):
    pinned = [pin for pin in pins("requirements.txt") if holds(pin, where)]
    assert all(re.fullmatch(r"==[\w.]+", str(pin.specifier)) for pin in pinned)
    assert len({pin.name for pin in pinned}) == len(pinned) > 100, "and all that these need"
    assert outside(NEEDS + LAB, pinned, where) == []


def test_a_pin_out_of_range_and_a_missing_one_are_found():
    needs = [Requirement("torch>=2.11"), Requirement("numpy>=2")]
    found = outside(needs, [Requirement("torch==2.10.0")], SYSTEMS[0])
    assert found == ["torch>=2.11", "numpy>=2"]


def test_a_cpu_build_of_torch_stays_one():
    """torch's builds for a GPU bring their own needs: listed, they would be installed beside any build."""
    assert [pin.name for pin in pins("requirements.txt") if re.match("nvidia|cuda|triton", pin.name)] == []


@pytest.mark.parametrize("name", sorted(p.name for p in ROOT.glob("requirements*.txt")))
def test_no_address_is_named(name):
    assert "://" not in (ROOT / name).read_text(encoding="utf-8")


def test_a_hosted_notebook_keeps_its_versions():
    hosted = pins("tests/hosted.txt")
    where = SYSTEMS[6] | {"sys_platform": "linux"}
    asked = {canonicalize_name(need.name) for need in NEEDS}
    kept = [pin for pin in hosted if canonicalize_name(pin.name) in asked]
    assert len(kept) >= 10
    within = [need for need in NEEDS if canonicalize_name(need.name) in {p.name for p in kept}]
    assert outside(within, hosted, where) == []
