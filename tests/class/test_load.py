"""A class at work: everybody at once through the hub's API, and the hub, the proxy and a student's server
killed meanwhile.

The class starts once, in a folder of its own, and is gone before the first test looks at what was seen.
Measuring without pytest: `.venv-class/bin/python tests/class/test_load.py --students 20`.
"""

import argparse
import asyncio
import contextlib
import copy
import importlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

import psutil
import pytest
from tornado.httpclient import HTTPClientError

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from lesson_lib.cli import classroom  # noqa: E402
from lesson_lib.cli.sync_copies import digest  # noqa: E402

hub_client = importlib.import_module("tests.class.hub_client")  # class is a keyword
open_way = importlib.import_module("tests.class.open_way")
Trouble = hub_client.Trouble

STUDENTS = 4  # class/README.md has the measurements of 20
LESSON = "03_matrix_form.ipynb"
EXERCISE = "exercises/03_matrix_form.ipynb"
NAME = "without_loops"
RIGHT = "return (query @ key.mT).softmax(-1) @ value"
WRONG = "return (query @ key.mT).softmax(0) @ value"
OPEN_S, BACK_S, END_S, ALL_S = 180, 180, 150, 1500  # a hang is a sentence

COUNTING = """
import time
ticks = []
try:
    while len(ticks) < 9000:
        ticks.append(time.time())
        time.sleep(0.2)
except KeyboardInterrupt:
    pass
"""

# From a kernel of one student (A): what another one (B) has, and the hub. "refused" is what the system says.
REACHING = """
import json, os
def tried(act, *arguments):
    try:
        act(*arguments)
    except PermissionError:
        return "refused"
    except OSError as error:
        return type(error).__name__
    return "done"
print(json.dumps({{what: tried(act, *arguments) for what, act, *arguments in (
    ("own notebook", open, "{own}/work/{lesson}"),
    ("own home", os.listdir, "{own}"),
    ("own server's environment", open, "/proc/{own_pid}/environ"),
    ("notebook", open, "{home}/work/{lesson}"),
    ("progress", open, "{home}/.lesson/progress.json"),
    ("home", os.listdir, "{home}"),
    ("new file", open, "{home}/work/mine.txt", "w"),
    ("server's environment", open, "/proc/{pid}/environ"),
    ("signal to the server", os.kill, {pid}, 0),
    ("all homes", os.listdir, "{homes}"),
    ("code of the class", open, "{hub}/class_code"),
    ("accounts", open, "{hub}/jupyterhub.sqlite"),
)}}))
"""


@dataclass
class Desk:
    """One student with all that was saved: paths to notebooks, as the server confirmed them."""

    student: Any
    number: int
    saved: dict[str, dict[str, Any]] = field(default_factory=dict)
    lesson: Any = None  # its kernel
    kernel: Any = None  # of the exercise
    pid: int = 0
    counter: asyncio.Task | None = None
    since: float = 0.0  # it counts since then (seconds since 1970)
    done: float = 0.0  # monotonic seconds
    attempts: int = 0
    said: dict[str, str] = field(default_factory=dict)  # answer: what the check said
    cpu_s: list[float] = field(default_factory=list)  # kernel: torch imported; lesson run
    mib: tuple[float, float] = (0.0, 0.0)  # the kernel after the lesson: PSS, RSS

    async def save(self, path: str, notebook: dict[str, Any]) -> None:
        await self.student.save(path, notebook)
        self.saved[path] = copy.deepcopy(notebook)


@dataclass
class Seen:
    """What happened, for the tests and for the table."""

    names: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    mib: dict[str, tuple[float, float]] = field(default_factory=dict)
    cpu_s: dict[str, float] = field(default_factory=dict)
    load: tuple[float, float] = (0.0, 0.0)
    busy: int = 0  # students at work when the hub was killed, besides those whose kernels count
    reconnected: int = 0  # websockets that were opened again
    killed: dict[str, tuple[int, int]] = field(default_factory=dict)  # what: process before, after
    away: dict[str, tuple[float, float]] = field(default_factory=dict)  # what: from, to (seconds since 1970)
    same_kernel: dict[str, bool] = field(default_factory=dict)
    # student: what was away: ticks meanwhile
    went_on: dict[str, dict[str, int]] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    progress: dict[str, Any] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    verdicts: dict[str, set[str]] = field(default_factory=dict)  # answer: what the checks said
    files: dict[str, str] | None = None
    answers: dict[str, int] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)

    def row(self) -> str:
        """The table's line."""
        s, m, c = self.seconds, self.mib, self.cpu_s
        cells = [len(self.names)]
        cells += [f"{s[what]:.0f}" for what in ("servers", "torch", "done")]
        cells += ["{:.0f} / {:.0f}".format(*m[what]) for what in ("hub", "proxy", "server", "kernel")]
        cells += [f"{c['server']:.1f}", f"{c['torch']:.1f}", f"{c['lesson']:.1f}", f"{c['hub']:.1f}"]
        cells += [" / ".join(f"{s[what]:.0f}" for what in ("hub", "proxy", "server"))]
        cells += ["{:.1f} → {:.1f}".format(*self.load)]
        return "| " + " | ".join(map(str, cells)) + " |"


HEAD = (
    "| students | all servers (s) | all with torch (s) | all done (s) | hub | proxy | server | kernel (MiB,"
    " PSS / RSS) | CPU s: server | torch | lesson | hub | hub / proxy / server back (s) | load |"
)


class Running:
    """A class that runs: its folder, its port, its command."""

    def __init__(self, folder: Path, port: int, command: subprocess.Popen):
        self.folder, self.port, self.command = folder, port, command
        self.url = f"http://127.0.0.1:{port}"

    @property
    def code(self) -> str:
        return (self.folder / "hub" / "class_code").read_text().strip()

    def pid(self, what: str) -> int:
        """The process of the hub or the proxy; 0 where there is none at the moment."""
        try:
            return int((self.folder / "hub" / f"{what}.pid").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return 0

    def server_pid(self, name: str) -> int:
        """The process of a student's server."""
        asked = (
            "select spawners.state from spawners join users on users.id = spawners.user_id where"
            " users.name = ?"
        )
        with contextlib.closing(sqlite3.connect(self.folder / "hub" / "jupyterhub.sqlite")) as accounts:
            row = accounts.execute(asked, (name,)).fetchone()
        state = row[0] if row else None
        return (json.loads(state) if isinstance(state, str) else state or {}).get("pid", 0)

    def last_words(self) -> str:
        said = (self.folder / "command.log").read_text(errors="replace")
        with contextlib.suppress(OSError):
            said += (self.folder / "hub" / "hub.log").read_text(errors="replace")
        return "\n".join(said.splitlines()[-30:])


@contextlib.contextmanager
def open_class(names: list[str], seen: Seen) -> Iterator[Running]:
    """A class on free ports in a folder of its own. Everything that it started is ended, also where the body
    fails.

    What it would have left behind (processes, ports) is in `seen.left`, and ended too.
    """
    folder = Path(tempfile.mkdtemp(prefix="lc-", dir="/tmp"))
    folder.chmod(0o711)
    port = open_way.free_port()
    words = [sys.executable, "-m", "lesson_lib.cli.classroom", "--port", str(port), "--data", str(folder)]
    words, reason = open_way.through(words, folder)
    if reason:
        folder.rmdir()
        raise pytest.skip.Exception(f"A class for system users: {reason}")
    with open(folder / "command.log", "ab") as log:
        command = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True, cwd=ROOT)
    running = Running(folder, port, command)
    try:
        yield running
    finally:
        try:
            seen.left += _end(running)
        finally:
            if os.geteuid() == 0:
                open_way.remove_users(names)
            shutil.rmtree(folder)


def _end(running: Running) -> list[str]:
    """End the class as Ctrl+C does; sentences about what was then still there, which is ended as well."""
    started = {process.pid: process for process in _family(running)}
    said = []
    if running.command.poll() is None:
        running.command.send_signal(signal.SIGINT)
    try:
        running.command.wait(END_S)
    except subprocess.TimeoutExpired:
        said.append(f"the class did not end within {END_S} s of Ctrl+C")
    else:
        if running.command.returncode:
            said.append(f"the class ended with {running.command.returncode}: {running.last_words()}")
    alive = started | {process.pid: process for process in _family(running)}
    for process in alive.values():
        with contextlib.suppress(psutil.Error):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                said.append(f"still running: {' '.join(process.cmdline())[:200]}")
                process.kill()
    psutil.wait_procs(alive.values(), timeout=20)
    running.command.wait(20)
    for number in range(3):
        if why := classroom._taken(running.port + number, "127.0.0.1"):
            said.append(f"port {running.port + number} is still taken: {why}")
    return said


def _family(running: Running) -> list[psutil.Process]:
    """Every process of the class, also those that lost their parent."""
    found = open_way.below(running.folder)
    with contextlib.suppress(psutil.Error):
        found.append(psutil.Process(running.command.pid))
    with contextlib.suppress(psutil.Error):
        proxy = psutil.Process(running.pid("proxy"))  # its words do not name the folder
        found += [proxy] if str(running.port + 1) in " ".join(proxy.cmdline()) else []
    for process in list(found):
        with contextlib.suppress(psutil.Error):
            found += process.children(recursive=True)
    return found


def spent_s(pid: int) -> float:
    """CPU seconds of a process, its children not counted."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def held_mib(pid: int) -> tuple[float, float]:
    """PSS (shared pages divided among their users; RSS where the system does not know it) and RSS of a
    process, in MiB."""
    held = psutil.Process(pid).memory_full_info()
    return getattr(held, "pss", held.rss) / 2**20, held.rss / 2**20


def mean_mib(held: list[tuple[float, float]]) -> tuple[float, float]:
    return mean(pss for pss, _ in held), mean(rss for _, rss in held)


async def until(what: str, there, wait_s: float = BACK_S) -> float:
    """Seconds until `there()` is true; Trouble, in a sentence, after `wait_s`."""
    began = time.monotonic()
    while not await there():
        if time.monotonic() - began > wait_s:
            raise Trouble(f"{what} within {wait_s} s")
        await asyncio.sleep(0.2)
    return time.monotonic() - began


async def everybody(desks: list[Desk], act, seen: Seen) -> None:
    """`act` for each student at once; what goes wrong is written down, and nobody waits for it."""
    results = await asyncio.gather(*(act(desk) for desk in desks), return_exceptions=True)
    seen.troubles += [
        result.args[0] if isinstance(result, Trouble) else f"{desk.student.name}: {result!r}"
        for desk, result in zip(desks, results, strict=True)
        if result is not None
    ]
    if seen.troubles:
        raise Trouble(seen.troubles.pop())


async def arrive(desk: Desk, code: str) -> None:
    await desk.student.sign_up(code)
    await desk.student.log_in()
    await desk.student.spawn()


async def open_lesson(desk: Desk) -> None:
    """Open the lesson and run its first cell, which imports torch."""
    notebook = await desk.student.read(LESSON)
    desk.lesson = await desk.student.kernel(LESSON)
    pid = int((await desk.lesson.run("import os; os.getpid()")).text)
    await desk.lesson.run_notebook(notebook, last=1)
    desk.cpu_s.append(spent_s(pid))
    desk.pid, desk.saved[LESSON] = pid, notebook


async def work(desk: Desk) -> None:
    """The rest of the lesson, saved; its kernel ended; an exercise solved, at the second or third try for
    some."""
    notebook = desk.saved.pop(LESSON)
    await desk.lesson.run_notebook(notebook, first=1)
    await desk.save(LESSON, notebook)
    desk.cpu_s.append(spent_s(desk.pid))
    desk.mib = held_mib(desk.pid)
    await desk.lesson.shut_down()

    notebook = await desk.student.read(EXERCISE)
    desk.kernel = await desk.student.kernel(EXERCISE)
    desk.pid = int((await desk.kernel.run("import os; os.getpid()")).text)
    cells = hub_client.code_cells(notebook)
    here = next(i for i, cell in enumerate(cells) if f"def {NAME}(" in cell["source"])
    assert f"exercise:{NAME}" in cells[here + 1]["metadata"]["tags"]
    stub = cells[here]["source"]
    assert stub.count("return ...") == 1
    await desk.kernel.run_notebook(notebook, last=here)
    for answer in [WRONG] * (desk.number % 3) + [RIGHT]:
        cells[here]["source"] = stub.replace("return ...", answer)
        await desk.save(EXERCISE, notebook)
        await desk.kernel.run_notebook(notebook, first=here, last=here + 2)
        await desk.save(EXERCISE, notebook)
        desk.attempts += 1
        said = _shown(cells[here + 1])
        desk.said[answer] = said
        if said.startswith("PASSED") != (answer == RIGHT):
            raise Trouble(f"{desk.student.name} answered {answer!r}, and the check said: {said}")
    desk.done, desk.since = time.monotonic(), time.time()


async def note(desk: Desk, what: str) -> None:
    """Save a note about what was killed into the lesson, at that moment."""
    notebook = copy.deepcopy(desk.saved[LESSON])
    notebook["cells"].append({"cell_type": "markdown", "metadata": {}, "source": f"The {what} was killed."})
    await desk.save(LESSON, notebook)


async def kill(what: str, pid: int, desks: list[Desk], back, seen: Seen) -> tuple[float, float]:
    """Kill the process; everybody in `desks` saves a note meanwhile; (when, when it was back), in seconds
    since 1970."""
    psutil.Process(pid).kill()
    began = time.time()
    back_s, *_ = await asyncio.gather(
        until(f"The {what} was killed and did not come back", back), *(note(desk, what) for desk in desks)
    )
    seen.seconds[what] = back_s
    return began, began + back_s


async def story(running: Running, desks: list[Desk], seen: Seen) -> None:
    """The whole hour of the class."""

    async def is_open() -> bool:
        if running.command.poll() is not None:
            raise Trouble(f"The class did not open: {running.last_words()}")
        return (await desks[0].student.fetch("GET", "/hub/health")).code == 200

    await until("The class did not open", is_open, OPEN_S)
    began = time.monotonic()
    code = running.code
    await everybody(desks, lambda desk: arrive(desk, code), seen)
    seen.seconds["servers"] = time.monotonic() - began
    await everybody(desks, open_lesson, seen)
    seen.seconds["torch"] = time.monotonic() - began
    measure(running, desks, seen)

    counting: list[Desk] = []

    async def work_and_count(desk: Desk) -> None:
        await work(desk)
        desk.counter = asyncio.create_task(desk.kernel.run(COUNTING, ALL_S))
        counting.append(desk)

    async def half() -> bool:
        return workers.done() or 2 * len(counting) >= len(desks)

    workers = asyncio.create_task(everybody(desks, work_and_count, seen))
    try:
        await until("Half of the students did not solve the exercise", half, ALL_S)
        if not workers.done():
            seen.busy = len(desks) - len(counting)
        if counting:
            await kills(running, counting[0], counting[1:], seen)
        await workers
    finally:
        workers.cancel()
        await asyncio.gather(workers, return_exceptions=True)
    seen.seconds["done"] = max(desk.done for desk in desks) - began
    seen.mib["kernel"] = mean_mib([desk.mib for desk in desks])
    seen.cpu_s["torch"] = mean(desk.cpu_s[0] for desk in desks)
    seen.cpu_s["lesson"] = mean(desk.cpu_s[1] for desk in desks)
    await everybody(desks, lambda desk: look_back(running, desk, seen), seen)
    await neighbours(running, desks[0], desks[1], seen)


def measure(running: Running, desks: list[Desk], seen: Seen) -> None:
    """Memory and CPU of what runs now: everybody's server with a kernel that has imported torch."""
    servers = [running.server_pid(desk.student.name) for desk in desks]
    for what in ("hub", "proxy"):
        seen.mib[what] = held_mib(running.pid(what))
        seen.cpu_s[what] = spent_s(running.pid(what))
    seen.mib["server"] = mean_mib([held_mib(pid) for pid in servers])
    seen.cpu_s["server"] = mean(spent_s(pid) for pid in servers)


async def kills(running: Running, first: Desk, others: list[Desk], seen: Seen) -> None:
    """The hub, the proxy, and the server of the student who was done first; each has to come back."""
    student = first.student
    for what in ("hub", "proxy"):
        before = running.pid(what)

        async def back(what=what, before=before) -> bool:
            if running.pid(what) in (0, before):
                return False
            hub = await student.fetch("GET", "/hub/health")
            server = await student.fetch("GET", student.place("api/status"), token=student.token)
            return hub.code == server.code == 200

        seen.away[what] = await kill(what, before, [first, *others], back, seen)
        seen.killed[what] = before, running.pid(what)

    before = running.server_pid(student.name)
    first.counter.cancel()
    first.counter = None
    await first.kernel.close()
    psutil.Process(before).kill()
    began = time.time()
    await student.spawn()
    seen.away["server"] = began, time.time()
    seen.seconds["server"] = time.time() - began
    seen.killed["server"] = before, running.server_pid(student.name)

    first.kernel = await student.kernel(EXERCISE)
    notebook = await student.read(EXERCISE)
    cells = hub_client.code_cells(notebook)
    check = next(i for i, cell in enumerate(cells) if cell["source"] == f"check({NAME})")
    await first.kernel.run_notebook(notebook, last=check + 1)  # it has passed before: no attempt is counted
    if not _shown(cells[check]).startswith("PASSED"):
        raise Trouble(f"{student.name}'s answer is not the one that was saved: {_shown(cells[check])}")


async def look_back(running: Running, desk: Desk, seen: Seen) -> None:
    """What the kernel did meanwhile, and what is on the disk."""
    student, home = desk.student, running.folder / "homes" / desk.student.name
    if desk.counter is not None:
        await desk.kernel.interrupt()
        ran = await desk.counter
        if ran.error:
            raise Trouble(f"{student.name}'s counting ended with {ran.error}")
        seen.same_kernel[student.name] = int((await desk.kernel.run("os.getpid()")).text) == desk.pid
        seen.went_on[student.name] = {
            what: int((await desk.kernel.run(f"sum({began} < t < {back} for t in ticks)")).text)
            for what, (began, back) in seen.away.items()
            if desk.since < began
        }
    for path, notebook in desk.saved.items():
        mine = digest(json.dumps(notebook).encode())
        shown = digest(json.dumps(await student.read(path)).encode())
        if mine != digest((home / "work" / path).read_bytes()) or mine != shown:
            seen.lost.append(f"{student.name}: {path} is not what was saved")
    seen.progress[student.name] = json.loads((home / ".lesson" / "progress.json").read_text())["exercises"]
    seen.attempts[student.name] = desk.attempts
    for answer, said in desk.said.items():
        seen.verdicts.setdefault(answer, set()).add(said)
    seen.reconnected += desk.kernel.breaks + desk.lesson.breaks


async def neighbours(running: Running, a: Desk, b: Desk, seen: Seen) -> None:
    """Student A tries what is B's; the same with B's own rights shows that it is there."""
    mine, theirs, answers = a.student, b.student, seen.answers
    contents, kernel = theirs.place(f"api/contents/{LESSON}"), b.kernel.id
    channels = theirs.place(f"api/kernels/{kernel}/channels")
    name, port = theirs.name, _port(running.server_pid(theirs.name))
    direct = f"http://127.0.0.1:{port}{contents}"

    async def status(what: str, who, method: str, path: str, body: Any = None, **rights) -> None:
        answers[what] = (await who.fetch(method, path, body, **rights)).code

    async def socket(what: str, who, **rights) -> None:
        try:
            (await hub_client.websocket_to(who, channels, **rights)).close()
            answers[what] = 101
        except HTTPClientError as error:
            answers[what] = error.code

    answers["own: a page of the server, cookies"] = (await theirs.follow(theirs.place("lab"))).code
    await status("own: file, token", theirs, "GET", contents, token=theirs.token)
    await status("own: file, cookies", theirs, "GET", contents, cookies=True)
    await status("own: file, past the proxy", theirs, "GET", direct, token=theirs.token)
    await socket("own: websocket, token", theirs, token=theirs.token)
    await socket("own: websocket, cookies", theirs, cookies=True)
    await mine.follow(mine.place("lab"))  # A is logged in as a browser would be
    answers["page of the server, cookies"] = (await mine.follow(theirs.place("lab"))).code
    await status("file, token", mine, "GET", contents, token=mine.token)
    await status("file, cookies", mine, "GET", contents, cookies=True)
    await status("file, past the proxy", mine, "GET", direct, token=mine.token)
    await status("file, nobody", mine, "GET", contents)
    await status("file written", mine, "PUT", contents, {"type": "file", "content": ""}, token=mine.token)
    await status("kernel", mine, "POST", theirs.place("api/kernels"), {}, token=mine.token)
    await socket("websocket, token", mine, token=mine.token)
    await socket("websocket, cookies", mine, cookies=True)
    await socket("websocket, nobody", mine)
    await status("account", mine, "GET", f"/hub/api/users/{name}", token=mine.token)
    await status("token", mine, "POST", f"/hub/api/users/{name}/tokens", {}, token=mine.token)
    await status("end of the server", mine, "DELETE", f"/hub/api/users/{name}/server", token=mine.token)
    await status("list of accounts", mine, "GET", "/hub/api/users", token=mine.token)
    if os.geteuid() == 0:
        homes = running.folder / "homes"
        code = REACHING.format(
            own=homes / mine.name, home=homes / name, homes=homes, hub=running.folder / "hub", lesson=LESSON,
            own_pid=running.server_pid(mine.name), pid=running.server_pid(name),
        )  # fmt: skip
        ran = await a.kernel.run(code)
        if ran.error:
            raise Trouble(f"{mine.name}'s kernel: {ran.error}")
        seen.files = json.loads(ran.text)


def _port(pid: int) -> int:
    return next(c.laddr.port for c in psutil.Process(pid).net_connections("tcp") if c.status == "LISTEN")


def _shown(cell: dict[str, Any]) -> str:
    return cell["outputs"][0]["data"]["text/plain"]


def run_class(count: int) -> Seen:
    """What was seen in a class of `count` students (at least 2)."""
    seen = Seen([f"t{os.getpid() % 10000}s{number}" for number in range(count)])
    before = os.getloadavg()[0]
    with open_class(seen.names, seen) as running:
        desks = [
            Desk(hub_client.Student(running.url, name), number) for number, name in enumerate(seen.names)
        ]

        async def limited() -> None:
            async with asyncio.timeout(ALL_S):
                await story(running, desks, seen)

        try:
            asyncio.run(limited())
        except Trouble as trouble:
            seen.troubles.append(str(trouble))
        except TimeoutError:
            seen.troubles.append(f"The class was not over after {ALL_S} s")
        if seen.troubles:
            seen.troubles.append(f"The last words of the hub:\n{running.last_words()}")
    seen.load = before, os.getloadavg()[0]
    return seen


@pytest.fixture(scope="module")
def seen(request) -> Seen:
    """A class that is over: what was seen in it. The table is printed, captured or not."""
    seen = run_class(STUDENTS)
    if seen.troubles:
        pytest.fail("\n".join(seen.troubles), pytrace=False)
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print("", HEAD, seen.row(), sep="\n")
    return seen


def test_everybody_runs_the_lesson_and_solves_an_exercise(seen):
    assert len(seen.progress) == STUDENTS
    for name, entries in seen.progress.items():
        assert set(entries) == {NAME}, name
        assert entries[NAME]["first_pass"] and entries[NAME]["attempts"] == seen.attempts[name], name
    assert set(seen.attempts.values()) >= {1, 2, 3}  # each student's own
    assert set(seen.verdicts) == {RIGHT, WRONG}
    for answer, said in seen.verdicts.items():
        assert len(said) == 1, f"A busy machine changes what the check says of {answer}: {said}"


def test_hub_proxy_and_a_server_come_back(seen):
    assert set(seen.killed) == {"hub", "proxy", "server"}
    for what, (before, after) in seen.killed.items():
        assert before and after and before != after, what


def test_the_others_kernels_go_on(seen):
    assert len(seen.same_kernel) == STUDENTS - 1 and all(seen.same_kernel.values())
    assert sum(len(ticks) for ticks in seen.went_on.values()) >= 3 * (STUDENTS // 2 - 1)
    for name, ticks in seen.went_on.items():
        assert all(ticks.values()), f"{name}'s kernel stood still while these were away: {ticks}"


def test_nothing_that_was_saved_is_lost(seen):
    assert seen.lost == []


def test_nobody_opens_the_server_of_another(seen):
    own = {what: code for what, code in seen.answers.items() if what.startswith("own: ")}
    assert len(own) == 6 and all(code in (101, 200) for code in own.values()), own
    others = {what: code for what, code in seen.answers.items() if what not in own}
    assert len(others) == 14 and all(code in (403, 404) for code in others.values()), others


@pytest.mark.skipif(
    os.geteuid() != 0, reason="system users for students need root: all of them share this account"
)
def test_nobody_reads_the_files_of_another(seen):
    own = {what: said for what, said in seen.files.items() if what.startswith("own ")}
    assert set(own.values()) == {"done"}, own
    others = {what: said for what, said in seen.files.items() if what not in own}
    assert len(others) == 9 and set(others.values()) == {"refused"}, others


def test_nothing_is_left(seen):
    assert seen.left == []


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Measure a class on this machine; the last line is a row of a table."
    )
    parser.add_argument("--students", type=int, default=STUDENTS, help=f"at least 2 (default: {STUDENTS})")
    count = parser.parse_args().students
    if count < 2:
        parser.error(f"--students must be at least 2, got {count}")
    found = run_class(count)
    for key, value in vars(found).items():
        print(f"{key}: {value}")
    if not found.troubles:
        print(HEAD, found.row(), sep="\n")
    sys.exit(bool(found.troubles or found.lost or found.left))
