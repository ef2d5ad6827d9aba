"""What the tests of a class need from the machine: a way for other accounts to the interpreter, free ports,
accounts removed.

As root each student has a system account, which must reach the interpreter and the repository. Where a folder
on that way is closed (a home of mode 700), the test's hub runs in a mount namespace of its own, in which only
that way is open; the machine itself is not changed.
"""

import contextlib
import os
import pwd
import secrets
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from lesson_lib.cli import classroom

ROOT = Path(classroom.__file__).resolve().parents[2]


def through(words: list[str], data: Path) -> tuple[list[str], str | None]:
    """(the words that run `words` where other accounts get through, None), or (words, a sentence why that
    cannot be).

    The words are the same where nothing is closed, or where this is not root.
    """
    if os.geteuid() != 0:
        return words, None
    places = [Path(sys.base_prefix).resolve(), Path(sys.prefix), ROOT, data]
    steps, opened = [], []
    while (folder := classroom.closed_folder([place for place in places if place not in opened])) is not None:
        inside = [place for place in places if place.is_relative_to(folder)]
        if folder in inside:
            return words, f"{folder} itself is closed to other accounts"
        steps += _open(folder, inside)
        opened += inside
    if not steps:
        return words, None
    enter = ["unshare", "-m", "sh", "-c"]
    if subprocess.run([*enter, " && ".join([*steps, "true"])], capture_output=True).returncode:
        return (
            words,
            (
                "this machine permits no mount namespace (unshare -m), and a closed folder is in the"
                " students' way"
            ),
        )
    return [*enter, " && ".join([*steps, f"exec {shlex.join(words)}"])], None


def _open(folder: Path, inside: list[Path]) -> list[str]:
    """Shell commands: an empty folder over `folder`, and in it only the places `inside`, bound to where they
    were."""
    aside = tempfile.gettempdir() + f"/open-way-{os.getpid()}"
    steps = [f"mkdir -p {aside}", f"mount -t tmpfs -o mode=711 tmpfs {aside}"]
    for number, place in enumerate(inside):
        steps += [f"mkdir {aside}/{number}", f"mount --bind {shlex.quote(str(place))} {aside}/{number}"]
    steps.append(f"mount -t tmpfs -o mode=755 tmpfs {shlex.quote(str(folder))}")
    for number, place in enumerate(inside):
        quoted = shlex.quote(str(place))
        steps += [f"mkdir -p {quoted}", f"mount --bind {aside}/{number} {quoted}"]
    return [*steps, f"umount -l {aside}", f"rmdir {aside}"]


def free_port() -> int:
    """A port of 127.0.0.1 that is free, and so are the next two.

    From below those that the system gives to whoever asks for any, and each process of pytest has a stretch
    of its own: nobody takes them before the class does.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    while True:
        port = 20_000 + 3_000 * (worker % 4) + 3 * secrets.randbelow(1_000)
        if not any(classroom._taken(port + more, "127.0.0.1") for more in (0, 1, 2)):
            return port


def remove_users(students: list[str]) -> None:
    """End what the system accounts of these students still run, and remove the accounts; those that are none
    are passed over."""
    for student in students:
        name = classroom.system_name(student)
        try:
            uid = pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
        until = time.monotonic() + 10
        while (alive := of_uid(uid)) and time.monotonic() < until:
            for process in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
            time.sleep(0.2)
        subprocess.run(["userdel", name], check=True, capture_output=True)


def of_uid(uid: int) -> list[psutil.Process]:
    """The processes of an account that are not gone (a zombie is)."""
    found = []
    for process in psutil.process_iter(["uids", "status"]):
        uids = process.info["uids"]
        if uids and uids.real == uid and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def below(folder: Path) -> list[psutil.Process]:
    """The processes whose command names `folder`: the hub, the culler and students' servers of that data
    folder."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = " ".join(process.info["cmdline"] or [])
        if (
            str(folder) in words
            and process.pid != os.getpid()
            and process.info["status"] != psutil.STATUS_ZOMBIE
        ):
            found.append(process)
    return found
