"""Before anything is installed: one sentence for what is missing, and nothing for what is fine."""

import os
import subprocess
import sys
from collections import namedtuple

import pytest

from lesson_lib.cli import preflight


def test_a_python_that_fits_is_let_through():
    for version in ((3, 11), (3, 12, 4), (3, 15)):
        assert preflight.python_problem(version) is None


@pytest.mark.parametrize("version", [(2, 7), (3, 10), (3, 16)])
def test_another_python_gets_one_sentence_with_a_repair(version):
    sentence = preflight.python_problem(version)
    assert f"{version[0]}.{version[1]}" in sentence and "PYTHON=" in sentence and "\n" not in sentence
    assert "PYTHON=python3.12" in preflight.python_problem(version, ["python3.12"])


def test_a_mac_with_an_intel_processor_gets_one_sentence(monkeypatch, capsys):
    assert preflight.mac_problem("darwin", "arm64") is None
    assert preflight.mac_problem("linux", "x86_64") is None
    sentence = preflight.mac_problem("darwin", "x86_64")
    assert "2.2.2" in sentence and "Apple processor" in sentence and "\n" not in sentence
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert preflight.main([]) == 1
    assert capsys.readouterr().out == sentence + "\n"


def test_a_full_disk_gets_one_sentence():
    assert "1.2 GB" in preflight.disk_problem(1.2)
    assert preflight.disk_problem(preflight.ROOM_GIB) is None


def test_a_python_without_venv_gets_one_sentence():
    assert "python3-venv" in preflight.venv_problem(["venv"])
    assert preflight.venv_problem(["venv", "ensurepip"]) is None


SELECTOR = "pip3 install torch torchvision --index-url https://there/cpu"


@pytest.fixture
def asked(monkeypatch):
    """The step before torch's download, on a Linux without torch and without an NVIDIA GPU, where somebody
    types these lines; what pip is then told to install, and what was asked."""

    def ask(*lines, gpu=False, platform="linux", have=None, terminal=True, extra=None, uv=""):
        told, typed = [], iter(lines)

        def answer(prompt):
            print(prompt)
            return next(typed)

        monkeypatch.setattr(sys, "platform", platform)
        monkeypatch.setattr("platform.machine", lambda: "arm64")
        monkeypatch.setattr(preflight, "installed_torch", lambda: have)
        monkeypatch.setattr(preflight, "nvidia", lambda: gpu)
        monkeypatch.setattr(preflight, "uv", lambda: uv)
        monkeypatch.setattr(preflight, "pip", lambda name, *words: told.append(words) or 0)
        monkeypatch.setattr("builtins.input", answer)
        monkeypatch.delenv("CI", raising=False)
        monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
        if extra:
            monkeypatch.setenv("PIP_EXTRA_INDEX_URL", extra)
        for stream in (sys.stdin, sys.stdout):
            monkeypatch.setattr(stream, "isatty", lambda: terminal, raising=False)
        assert preflight.main(["torch", "2.13.0"]) == 0 and list(typed) == [], "every line was asked for"
        return told

    return ask


CPU = [("--index-url", "https://there/cpu", "torch==2.13.0")]


@pytest.mark.parametrize("yes", ["", "Yes "])
def test_without_a_gpu_the_cpu_build_is_asked_for_and_taken(yes, asked, capsys):
    assert asked(yes, SELECTOR) == CPU
    out = capsys.readouterr().out
    assert "No NVIDIA GPU" in out and "[Y/n]" in out and "pytorch.org" in out
    for size in (preflight.CPU_GB, preflight.CUDA_GB, preflight.WHEEL_GB):
        assert f"{size} GB" in out


def test_with_uv_no_address_is_needed(asked, capsys):
    assert asked("", uv="uv") == [("--torch-backend", "cpu", "torch==2.13.0")]
    assert "pytorch.org" not in capsys.readouterr().out and asked("n", uv="uv") == []


@pytest.mark.parametrize("lines", [["No"], ["y", ""]])
def test_the_plain_build_is_one_answer_away(lines, asked):
    assert asked(*lines) == []


def test_a_command_that_cannot_be_read_is_asked_for_again(asked, capsys):
    assert asked("y", "pip3 install torch torchvision", "no idea", SELECTOR) == CPU
    assert capsys.readouterr().out.count("names no --index-url") == 2


@pytest.mark.parametrize(
    "command, address",
    [
        (SELECTOR, "https://there/cpu"),
        ("pip install 'torch' --extra-index-url='https://there/cpu'", "https://there/cpu"),
        ("pip3 install torch", None),
        ("https://there/get-started", None),
        ("pip3 install torch --index-url cpu; rm x", None),
    ],
)
def test_of_a_command_the_address_alone_is_taken(command, address):
    assert preflight.address(command) == address


@pytest.mark.parametrize("here", [{"have": "2.13.0+cpu"}, {"platform": "darwin"}])
def test_nothing_is_said_where_there_is_one_build_or_torch_is_there(here, asked, capsys):
    assert asked(**here) == [] and capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "here", [{"terminal": False}, {"gpu": True}, {"have": "2.12.0", "gpu": True}, {"extra": "https://there"}]
)
def test_nothing_is_asked_of_a_script_or_where_a_gpu_is(here, asked, capsys):
    assert asked(**here) == []
    out = capsys.readouterr().out
    assert out.count("\n") == 1 and "PIP_EXTRA_INDEX_URL" in out and f"{preflight.CUDA_GB} GB" in out


def test_an_input_that_ends_stops_before_the_download(tmp_path):
    """A terminal that is closed at the question is no yes and no no."""
    code = "import sys, runpy; from lesson_lib.cli import preflight; f = preflight.__file__\n"
    code += "sys.stdin.isatty = sys.stdout.isatty = lambda: True; sys.platform = 'linux'\n"
    code += "sys.argv = [f, 'torch', '0.0']; runpy.run_path(f, run_name='__main__')"
    environment = {name: text for name, text in os.environ.items() if name not in ("CI", "PATH")}
    done = subprocess.run(
        [sys.executable, "-c", code], input="", capture_output=True, text=True, env=environment, timeout=60
    )
    assert done.returncode == 1 and "Stopped. Nothing is lost" in done.stderr, done


@pytest.mark.parametrize("page", ["docs/install.md", "notebooks/instructor/README.md", "site/pages/index.md"])
def test_the_pages_say_the_sizes_that_the_preflight_says(page):
    with open(os.path.join(preflight.ROOT, page), encoding="utf-8") as file:
        text = file.read()
    for size in (preflight.CPU_GB, preflight.CUDA_GB):
        assert f"{size} GB" in text


def test_main_says_the_sentence_and_ends_with_1(monkeypatch, capsys):
    assert preflight.main([]) == 0
    monkeypatch.setattr(preflight, "free_gib", lambda: 0.5)
    assert preflight.main([]) == 1
    assert "0.5 GB" in capsys.readouterr().out


PIP = """\
import sys
from collections import namedtuple
print("Collecting torch==2.15.0 (from -r requirements.txt)")
print("  Downloading https://host/a/torch-2.15.0.whl.metadata (29 kB)")
print("Requirement already satisfied: numpy")
sys.exit("--fail" in sys.argv and "no matching distribution")
"""


@pytest.mark.parametrize("fails", [False, True])
def test_pips_lines_are_shown_where_it_fails(fails, tmp_path, monkeypatch, capsys):
    (tmp_path / "pip.py").write_text(PIP)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(preflight, "uv", lambda: "")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    code = preflight.main(["install", "--fail" if fails else "requirements.txt"])
    out = capsys.readouterr().out
    log = (tmp_path / "install.log").read_text()
    assert code == fails and out.startswith("Installing ") and "already satisfied" in log
    assert (out.count("\n") == 1) == (not fails)
    for text in ("already satisfied", "no matching distribution", "make command again"):
        assert (text in out) == fails


def test_where_uv_is_it_installs(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(preflight, "uv", lambda: "/there/uv")
    monkeypatch.setattr(preflight, "installed", lambda command, log, shown: said.append(command) or 0)
    assert preflight.main(["install", "requirements.txt"]) == 0
    assert said[0][:3] == ["/there/uv", "pip", "install"] and said[0][-2:] == ["-r", "requirements.txt"]
    assert said[0][said[0].index("--python") + 1] == sys.executable, "into this environment"


def test_an_old_python_is_turned_away(monkeypatch, capsys):
    version = namedtuple("version", "major minor micro")(3, 9, 1)
    monkeypatch.setattr(sys, "version_info", version)
    assert preflight.main([]) == 1
    out = capsys.readouterr().out
    assert out.startswith("This is Python 3.9") and out.count("\n") == 1


def test_it_needs_nothing_that_has_to_be_installed():
    done = subprocess.run([sys.executable, "-I", "-S", preflight.__file__], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_old_pythons_can_read_it():
    """No f-string, no walrus, no annotation: a Python 2.7 gets the sentence in place of a SyntaxError."""
    import ast

    with open(preflight.__file__, encoding="utf-8") as file:
        nodes = list(ast.walk(ast.parse(file.read())))
    assert not any(
        isinstance(node, ast.JoinedStr | ast.NamedExpr | ast.AnnAssign | ast.Match) for node in nodes
    )
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    assert functions and all(
        f.returns is None and not any(a.annotation for a in f.args.args) for f in functions
    )
