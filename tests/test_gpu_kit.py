"""The kit of `make test-gpu`: its pins are the project's and complete, torch is left alone, what is missing
is said."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.gpu import ready

ROOT = Path(__file__).resolve().parents[1]
KIT = ROOT / "tests" / "gpu"
WHEN = {  # the machine that the wheels are for, in the words of a requirement's marker
    "python_version": "3.12", "python_full_version": "3.12.1", "sys_platform": "linux",
    "platform_system": "Linux", "platform_machine": "x86_64", "os_name": "posix",
    "implementation_name": "cpython", "platform_python_implementation": "CPython", "extra": "",
}  # fmt: skip
NOT_THERE = {
    "jupyterlab", "playwright", "ruff", "hatchling", "import-linter", "transformers", "huggingface-hub",
    "tokenizers",
}  # not run on a GPU machine  # fmt: skip
LINUX = pytest.mark.skipif(
    sys.platform == "win32" or shutil.which("bash") is None, reason="the kit's scripts are bash's"
)


def pins(text: str) -> dict[str, str]:
    """Name to version of every line `name==version`; names as registries compare them."""
    found = re.findall(r"^([\w.-]+)==(\S+)", text, flags=re.M)
    return {canonicalize_name(name): version for name, version in found}


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def needs(name: str) -> set[str]:
    """The packages that an installed package declares to need on the GPU machine; none where it is not
    installed."""
    try:
        declared = map(Requirement, importlib.metadata.requires(name) or [])
    except importlib.metadata.PackageNotFoundError:
        return set()
    return {
        canonicalize_name(need.name) for need in declared if not need.marker or need.marker.evaluate(WHEN)
    }


def missing(carried: dict[str, str]) -> dict[str, set[str]]:
    """What carried packages need that is neither carried nor comes with what is there; only pins that are
    installed here."""
    there, todo = set(), list(ready.THERE)
    while todo:
        name = todo.pop()
        if name not in there:
            there.add(name)
            todo += needs(name)
    lacks = {}
    for name, version in carried.items():
        try:
            same = importlib.metadata.version(name) == version
        except importlib.metadata.PackageNotFoundError:
            continue
        if same and (left := needs(name) - there - set(carried)):
            lacks[name] = left
    return lacks


CARRIED = pins(read("tests/gpu/requirements.txt"))
LISTS = ["requirements.txt", "requirements-test.txt", "requirements-class.txt"]


@pytest.mark.parametrize("other", LISTS)
def test_pins_are_those_of_the_project(other):
    project = pins(read(other))
    both = sorted(set(project) & set(CARRIED))
    assert len(both) >= 5
    assert {name: CARRIED[name] for name in both} == {name: project[name] for name in both}


def test_every_line_is_a_pin_or_a_comment_and_none_comes_twice():
    lines = [line for line in read("tests/gpu/requirements.txt").splitlines() if line and line[0] != "#"]
    assert len(lines) == len(CARRIED) and all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)


def test_what_is_expected_is_said_in_the_list():
    said = read("tests/gpu/requirements.txt").split("\n\n")[0]
    assert [name for name in ready.THERE if name not in said] == []


def test_what_is_large_is_never_carried():
    assert [name for name in CARRIED if name in ready.THERE or name.startswith(("nvidia", "triton"))] == []


def test_what_the_project_needs_is_carried_or_there():
    declared = tomllib.loads(read("pyproject.toml"))["project"]
    lines = [*declared["dependencies"], *declared["optional-dependencies"]["lab"]]
    project = {canonicalize_name(Requirement(line).name) for line in lines}
    project |= set(pins(read("requirements-test.txt")))
    assert project - set(CARRIED) - set(ready.THERE) == NOT_THERE


def test_what_the_carried_packages_need_is_carried_or_there():
    assert missing(CARRIED) == {}


def test_a_need_that_is_forgotten_is_found():
    short = {name: version for name, version in CARRIED.items() if name != "wadler-lindig"}
    if importlib.metadata.version("jaxtyping") != CARRIED["jaxtyping"]:
        pytest.skip("another jaxtyping than the pinned one is installed")
    assert missing(short) == {"jaxtyping": {"wadler-lindig"}}


def foreign(text: str) -> list[str]:
    """Addresses and host names in a text."""
    return re.findall(r"\w+://\S+|\b[\w-]+\.(?:org|com|net|io|dev)\b", text)


@pytest.mark.parametrize("name", ["requirements.txt", "gather.sh", "run.sh"])
def test_no_registry_is_named(name):
    assert foreign((KIT / name).read_text(encoding="utf-8")) == []


def test_a_registry_that_is_named_is_found():
    assert foreign("pip --index-url https://example/simple") and foreign("wheels.example.org")


def bash(script: str, *arguments, **variables) -> subprocess.CompletedProcess[str]:
    """Run one of the kit's scripts; of the kit's own variables it sees only those that are given."""
    own = {"PYTHON", "DEVICE", "WORKERS", "WHEELS", "OUT", "PYTHON_VERSION", "ARCH", "GLIBC"}
    clean = {name: value for name, value in os.environ.items() if name not in own}
    words = {name: str(value) for name, value in variables.items()}
    return subprocess.run(
        ["bash", KIT / script, *map(str, arguments)], env=clean | words, capture_output=True, text=True
    )


def stub(folder: Path, body: str) -> Path:
    """A `python` that writes its arguments, a line for each call, to FOLDER/calls, then does `body`
    (bash)."""
    path = folder / "python"
    path.write_text(f'#!/usr/bin/env bash\necho "$*" >> "{folder}/calls"\n{body}\n', encoding="utf-8")
    path.chmod(0o755)
    return path


def pip(mib: int) -> str:
    """A body that downloads two wheels of `mib` MiB together."""
    return (
        "while [[ $1 != --dest ]]; do shift; done\nfor name in a b; do head -c "
        f'{mib * 2**19} /dev/zero > "$2/$name-1-py3-none-any.whl"; done'
    )


@LINUX
def test_gather_counts_and_forgets_old_wheels(tmp_path):
    folder = tmp_path / "wheels"
    folder.mkdir()
    (folder / "old-1-py3-none-any.whl").write_bytes(b"x")
    done = bash("gather.sh", folder, PYTHON=stub(tmp_path, pip(3)))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"2 wheels for Python 3.12 on Linux x86_64 in {folder}: 3.0 MiB\n"
    names = {path.name for path in folder.iterdir()}
    assert names == {"a-1-py3-none-any.whl", "b-1-py3-none-any.whl", "requirements.txt"}
    assert (folder / "requirements.txt").read_text(encoding="utf-8") == read("tests/gpu/requirements.txt")


@LINUX
def test_gather_asks_for_wheels_alone_of_every_older_platform(tmp_path):
    bash(
        "gather.sh",
        tmp_path / "w",
        PYTHON=stub(tmp_path, pip(1)),
        PYTHON_VERSION="3.13",
        ARCH="aarch64",
        GLIBC="2.35",
    )
    call = (tmp_path / "calls").read_text(encoding="utf-8")
    assert (
        "-m pip download" in call
        and "--no-deps --only-binary=:all:" in call
        and "--python-version 3.13" in call
    )
    platforms = re.findall(r"--platform (\S+)", call)
    named = [f"manylinux_2_{minor}_aarch64" for minor in range(35, 4, -1)]
    assert platforms == [*named, "manylinux2014_aarch64", "manylinux2010_aarch64", "manylinux1_aarch64"]


@LINUX
def test_gather_fails_with_a_sentence_above_50_mib(tmp_path):
    done = bash("gather.sh", tmp_path / "w", PYTHON=stub(tmp_path, pip(51)))
    assert done.returncode == 1
    assert "51.0 MiB, over the limit of 50 MiB" in done.stdout and "requirements.txt" in done.stdout
    assert not (tmp_path / "w" / "requirements.txt").exists()  # run.sh takes no such folder
    assert bash("gather.sh", tmp_path / "w", PYTHON=stub(tmp_path, pip(50))).returncode == 0


@LINUX
def test_gather_without_a_network_says_what_to_do(tmp_path):
    done = bash("gather.sh", tmp_path / "w", PYTHON=stub(tmp_path, "echo no route >&2; exit 1"))
    assert done.returncode == 1 and "no route" in done.stderr
    assert "needs a network" in done.stdout and f"bring the folder {tmp_path / 'w'} along" in done.stdout


@LINUX
def test_run_without_cuda_says_what_is_missing_and_the_repair(tmp_path):
    done = bash("run.sh", PYTHON=sys.executable, WHEELS=tmp_path / "w", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 1
    assert "sees no CUDA device on this machine" in done.stderr and "DEVICE=cpu" in done.stderr
    assert "Traceback" not in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "w").exists()  # nothing was collected


def test_packages_that_are_missing_or_too_old_are_named():
    good = {name: ready.oldest().get(name, "1.0") for name in ready.THERE}
    assert ready.package_problem(good) is None
    bad = ready.package_problem(good | {"torch": "2.9.1+cu130", "pip": None, "scipy": None})
    assert "lacks torch 2.11 or newer (it has 2.9.1+cu130), scipy 1.13 or newer, pip." in bad


def test_a_torch_without_a_gpu_is_told_its_repair():
    assert ready.cuda_problem("2.11.0", "13.0", True) is None
    assert "nvidia-smi" in ready.cuda_problem("2.11.0", "13.0", False)
    assert "install PyTorch's CUDA build" in ready.cuda_problem("2.11.0+cpu", None, False)


@LINUX
def test_run_with_a_python_without_torch_names_it(tmp_path):
    bare = stub(tmp_path, f'exec "{sys.executable}" -I -S "$@"')
    done = bash("run.sh", PYTHON=bare, WHEELS=tmp_path / "w")
    assert (
        done.returncode == 1
        and " lacks torch 2.11 or newer, numpy " in done.stderr
        and "PYTHON=..." in done.stderr
    )
    gone = bash("run.sh", PYTHON=tmp_path / "gone")
    assert gone.returncode == 1 and f"There is no {tmp_path / 'gone'}" in gone.stderr


@LINUX
def test_run_refuses_a_part_that_it_does_not_know(tmp_path):
    done = bash("run.sh", "unit", "dance", PYTHON=stub(tmp_path, ""))
    assert (
        done.returncode == 1 and "no part is called 'dance'; there are unit, notebooks, curves" in done.stderr
    )
    assert not (tmp_path / "calls").exists()


def kit(folder: Path) -> Path:
    """A folder of wheels that gather.sh could have filled."""
    wheels = folder / "wheels"
    wheels.mkdir()
    shutil.copy(KIT / "requirements.txt", wheels)
    (wheels / "a-1-py3-none-any.whl").write_bytes(b"")
    return wheels


@LINUX
def test_run_installs_without_a_network_and_runs_the_parts(tmp_path):
    out = tmp_path / "out"
    python = stub(tmp_path, f'[[ $1 != tests/parts.py ]] || echo "$PYTHONPATH" > "{tmp_path}/path"')
    done = bash("run.sh", "unit", "notebooks", PYTHON=python, WHEELS=kit(tmp_path), OUT=out)
    assert (done.returncode, done.stderr) == (0, "")
    check, install, run = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert check == "tests/gpu/ready.py cuda"
    site = re.search(r"--target (\S+)", install).group(1)
    assert "--isolated" in install and "--no-index --no-deps" in install and "torch" not in install
    assert run == f"tests/parts.py --workers 8 --device cuda --reports {out} unit notebooks"
    assert (tmp_path / "path").read_text(encoding="utf-8").strip() == f"{site}:{ROOT}"
    assert not Path(site).exists()  # the scratch folder is gone


@LINUX
@pytest.mark.parametrize("broken", ["tests/parts.py", "-m"])
def test_run_ends_with_1_when_anything_fails_and_goes_on(tmp_path, broken):
    python = stub(tmp_path, f"[[ $2 == pip || $1 != {broken} ]]")
    out = tmp_path / "out"
    assert bash("run.sh", PYTHON=python, WHEELS=kit(tmp_path), OUT=out, WORKERS=2).returncode == 1
    assert (tmp_path / "calls").read_text(encoding="utf-8").splitlines()[2:] == [
        f"tests/parts.py --workers 2 --device cuda --reports {out} unit notebooks",
        "-m lesson_lib experiments devices",
    ]


@LINUX
def test_wheels_that_do_not_fit_are_told_apart_from_missing_ones(tmp_path):
    python = stub(tmp_path, "[[ $2 != pip ]] || exit 1; [[ $1 != -c ]] || echo 3.13")
    done = bash("run.sh", "unit", PYTHON=python, WHEELS=kit(tmp_path), OUT=tmp_path / "out")
    assert done.returncode == 1 and "do not fit this Python" in done.stderr
    assert "PYTHON_VERSION=3.13 tests/gpu/gather.sh" in done.stderr


@LINUX
def test_wheels_of_other_pins_are_collected_again(tmp_path):
    wheels = kit(tmp_path)
    (wheels / "requirements.txt").write_text("pytest==1.0\n", encoding="utf-8")
    python = stub(tmp_path, f"[[ $1 != -c ]] || echo 3.13\n[[ $3 == download ]] || exit 0\n{pip(1)}")
    done = bash("run.sh", "unit", PYTHON=python, WHEELS=wheels, OUT=tmp_path / "out")
    assert done.returncode == 0 and "2 wheels for Python 3.13" in done.stdout
    assert (wheels / "requirements.txt").read_text(encoding="utf-8") == read("tests/gpu/requirements.txt")


@LINUX
@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_curves_are_a_gpus(tmp_path, device):
    words = {"PYTHON": stub(tmp_path, ""), "WHEELS": kit(tmp_path), "OUT": tmp_path / "out", "DEVICE": device}
    assert bash("run.sh", "curves", **words).returncode == 0
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert calls[2:] == ["-m lesson_lib experiments devices"] * (device == "cuda")


@LINUX
def test_run_ends_where_the_wheels_cannot_be_collected(tmp_path):
    python = stub(tmp_path, "[[ $3 != download ]]")
    done = bash("run.sh", "unit", PYTHON=python, WHEELS=tmp_path / "none", OUT=tmp_path / "out")
    assert done.returncode == 1 and "needs a network" in done.stdout
    assert "install" not in (tmp_path / "calls").read_text(encoding="utf-8")
