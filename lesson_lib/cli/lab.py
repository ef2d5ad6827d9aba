"""The learner's side: copies of parts, pages, evidence and exercises in work/, and a JupyterLab on this
machine only.

A copy is made where none is; it comes blank where it asks questions, since a stored output would answer them.
What a learner wrote is safe from updates: only a copy whose cells are as they were copied is brought up to
date (it may have been run; outputs come back with a run). Where a notebook
leaves the course, its copy moves to work/old/ if nobody has changed it, and else stays.
"""

import argparse
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

from lesson_lib import places
from lesson_lib.cli import kinds
from lesson_lib.places import ROOT

FIRST = "00_start_here.ipynb"
RECORD = ".copied.json"  # which version of a lesson each copy was made from
ASIDE = "old"  # where untouched copies go of notebooks that the course no longer has
ASKS = r"\b(predict|warm_up|check)\("
TUTOR = Path(__file__).parent / "tutor"  # what an AI that helps is told, under the names that it reads
QUIET = Path(__file__).parent / "jupyter"  # JupyterLab's settings: no news, so nothing asks the network
ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)]
POSIX = os.name == "posix"
DEADLINE_S = 15.0  # JupyterLab gives its kernels 5 seconds, then kills them


def lessons(root: Path = ROOT) -> list[str]:
    """The notebooks for a learner and the files to carry away, as paths below notebooks/, in the course's
    order. No solutions."""
    carried = sorted(path.name for path in (root / "notebooks" / "carry").glob("*.py"))
    return [f"{name}.ipynb" for name in kinds.built(root)] + [f"carry/{name}" for name in carried]


@dataclass
class Copies:
    """Names of notebooks in work/: new (`copied`); of which the course has a newer version, and the copy is
    that now, since nobody had changed it (`updated`), or stays (`outdated`); and which the course no longer
    has, moved to work/old/ (`aside`) or left, since they were changed (`left`)."""

    copied: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)
    aside: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def copy_missing(root: Path = ROOT, work: Path | None = None) -> Copies:
    """Copy into the folder `work` (of the repository) what is not there yet, bring untouched copies up to
    date, and move away those of what the course no longer has."""
    work = work or root / "work"
    work.mkdir(parents=True, exist_ok=True)
    for told in TUTOR.iterdir():
        if not (work / told.name).exists():
            (work / told.name).write_bytes(told.read_bytes())
    versions, done = _record(work), Copies()
    for name in lessons(root):
        source, copy = root / "notebooks" / name, work / name
        version = _version(source)
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(blank(source.read_bytes()))
            versions[name] = version
            done.copied.append(name)
        elif versions.setdefault(name, version) == version:
            continue
        elif _version(copy) == versions[name]:
            fresh = copy.with_name(f".{copy.name}.part")
            fresh.write_bytes(blank(source.read_bytes()))
            os.replace(fresh, copy)
            versions[name] = version
            done.updated.append(name)
        else:
            done.outdated.append(name)
    for name in sorted(set(versions) - set(lessons(root))):
        copy = work / name
        if not copy.exists():
            del versions[name]
        elif _version(copy) == versions[name] and set_aside(work, name):
            done.aside.append(name)
            del versions[name]
        else:
            done.left.append(name)
    part = work / f"{RECORD}.part"
    part.write_text(json.dumps(versions, indent=1, sort_keys=True), encoding="utf-8")
    os.replace(part, work / RECORD)
    return done


def blank(notebook: bytes) -> bytes:
    """A notebook as a learner gets it: without outputs, where it asks something. Any other is as it was."""
    try:
        content = json.loads(notebook)
        code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
        if not any(re.search(ASKS, "".join(cell["source"])) for cell in code):
            return notebook
        for cell in code:
            cell |= {"outputs": [], "execution_count": None}
    except (ValueError, KeyError, TypeError, RecursionError):  # no notebook
        return notebook
    return (json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def set_aside(work: Path, name: str) -> bool:
    """Move a copy to work/old/; False where that cannot be, or something stands there: the copy
    stays."""
    target = work / ASIDE / name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(target):
            return False
        os.replace(work / name, target)
    except OSError:
        return False
    return True


def command(work: Path, *, port: int | None = None, browser: bool = True, first: str = FIRST) -> list[str]:
    """The command that starts JupyterLab in `work`, on loopback, with its token on."""
    words = [sys.executable, "-m", "jupyterlab", "--ServerApp.ip=127.0.0.1", f"--ServerApp.root_dir={work}"]
    words += [f"--LabApp.default_url=/lab/tree/{first}"]
    words += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"] if port else []
    words += [] if browser else ["--no-browser"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        words += ["--allow-root"]  # in a container
    return words


def environment() -> dict[str, str]:
    """JupyterLab's environment: ours, and the course's quiet settings beside the user's own."""
    paths = [str(QUIET), os.environ.get("JUPYTER_CONFIG_PATH", "")]
    return os.environ | {"JUPYTER_CONFIG_PATH": os.pathsep.join(p for p in paths if p)}


def port_problem(port: int) -> str | None:
    """A sentence where `port` cannot be listened on, else None."""
    if not 0 < port < 65536:
        return f"--port must be between 1 and 65535, got {port}"
    with socket.socket() as probe:
        if os.name == "posix":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port that was just closed is free
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            return (
                f"Port {port} cannot be used ({error.strerror}); leave --port out, and a free one is taken."
            )
    return None


def options(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the options of `main`."""
    parser.add_argument(
        "first", nargs="?", metavar="NAME", help="which notebook to open first, such as 02a or sources"
    )
    parser.add_argument(
        "--port", type=int, default=None, help="a port of your choice (default: the first free one from 8888)"
    )
    parser.add_argument(
        "--no-browser", dest="browser", action="store_false", help="print the address, open no browser"
    )
    parser.add_argument(
        "--copy-only", action="store_true", help="copy what is missing into work/, start nothing"
    )
    parser.add_argument(
        "--to",
        type=Path,
        metavar="FOLDER",
        help="where your copies go (default: work/ in the course's folder, or, if the course is installed"
        " as a package, in the folder at hand)",
    )


def main(
    *,
    first: str | None = None,
    port: int | None = None,
    browser: bool = True,
    copy_only: bool = False,
    to: Path | None = None,
    root: Path = ROOT,
) -> int:
    """Copy what is missing into `to` (work/), say what happened, and run JupyterLab until it is stopped
    (Ctrl+C twice).

    It opens with the page 00, or with the notebook that `first` names: 02a, sources, exercises/02_scoring.
    """
    if not lessons(root):
        print("There are no lessons in notebooks/; fetch the whole repository.")
        return 1
    if not copy_only and find_spec("jupyterlab") is None:
        print("JupyterLab is not installed here: pip install 'lesson-lib[lab]'")
        return 1
    names = kinds.built(root)
    fitting = [FIRST] if first is None else [f"{name}.ipynb" for name in kinds.fitting(first, names)]
    opened = next(iter(fitting), None)
    if opened is None:
        print(unknown(first, names))
        return 1
    problem = port_problem(port) if port is not None else None
    if problem:
        print(problem)
        return 1
    work = (to or places.work(root)).resolve()
    shown = to or "work"
    try:
        done = copy_missing(root, work)
    except OSError as error:
        print(
            f"The copies in {shown}/ cannot be written ({error.strerror}: {error.filename}); mend that and"
            " start again."
        )
        return 1
    print(
        f"{shown}/ holds your copies ({len(done.copied)} new, {len(done.updated)} brought up to date); what"
        " you changed is never overwritten."
    )
    if done.aside:
        print(
            f"  {len(done.aside)} of the course's former notebooks, which you had not changed, are in"
            f" {shown}/{ASIDE}/ now; they still run."
        )
    for name in done.left:
        print(f"  {shown}/{name}: the course no longer has it. Yours is as you left it, and still runs.")
    for name in done.outdated:
        print(
            f"  {shown}/{name}: you changed it, and the course has a newer version. Rename yours and start"
            " again to get it beside yours."
        )
    if copy_only:
        return 0
    print("JupyterLab runs on this machine only. To stop it: Ctrl+C, twice.", flush=True)
    return served(command(work, port=port, browser=browser, first=opened))


def unknown(asked: str, names: list[str]) -> str:
    """A sentence for a name that fits no notebook: the name that was meant, or what is accepted."""
    meant = re.sub(r"(^|/)(?=\d(\D|$))", r"\g<1>0", asked.lower())  # 2a is 02a
    if not kinds.fitting(meant, names):
        known = {*names, *(name.rpartition("/")[2] for name in names), *map(kinds.number_of, names)}
        meant = next(iter(get_close_matches(meant, sorted(known), 1, 0.7)), "")
    if meant:
        return f"There is no notebook {asked!r}; did you mean {meant}?"
    return (
        f"There is no notebook {asked!r}. Accepted are 02 or 02a, sources, exercises/02_scoring; all names"
        " stand in the folder notebooks/."
    )


def served(words: list[str]) -> int:
    """The exit code of the server that `words` start. Whatever ends this program ends the server, too."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.getsignal(number) for number in ENDING}
    if POSIX:  # what comes while the server starts waits until there is one to end
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    server = subprocess.Popen(words, env=environment(), preexec_fn=_outlive_the_terminal if POSIX else None)
    for number in ENDING:
        if before[number] is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, end)
    try:
        if POSIX:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        while True:
            try:
                return server.wait()
            except KeyboardInterrupt:
                if not (sys.stdin and sys.stdin.isatty()):
                    raise  # a terminal's JupyterLab has heard it too, and asks whether to stop
    finally:
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)  # once is enough
        ended(server)
        for number, handler in before.items():
            signal.signal(number, handler)


def _outlive_the_terminal() -> None:
    """In the server: a closed terminal would end it, but not its kernels; so whoever started it ends it."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def ended(server: subprocess.Popen) -> None:
    """End a server that runs, which ends its kernels; if it is not done in time it is killed, and a kernel
    that has lost its server ends by itself."""
    if server.poll() is not None:
        return
    server.terminate()
    try:
        server.wait(DEADLINE_S)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        server.kill()
        server.wait()


def _version(page: Path) -> str:
    """16 letters that change with a module's text, or the sources of a notebook's cells (new outputs make no
    new version); '' where the file is neither."""
    try:
        text = page.read_text(encoding="utf-8")
        if page.suffix != ".py":
            text = "\0".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _record(work: Path) -> dict[str, str]:
    try:
        record = json.loads((work / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # none yet, or damaged: the copies count as made today
        return {}
    return record if isinstance(record, dict) else {}
