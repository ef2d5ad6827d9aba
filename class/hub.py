"""JupyterHub for a class: who may sign up, where a student's server runs, and what is refused at the start.

`make class` runs this file with jupyterhub_config.py, where every setting stands. Nothing here needs to be
changed for a class.
"""

import asyncio
import hmac
import ipaddress
import os
import pwd
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlparse

import psutil
from jupyterhub.app import JupyterHub
from jupyterhub.auth import Authenticator, DummyAuthenticator
from jupyterhub.handlers.base import PrefixRedirectHandler
from jupyterhub.handlers.login import LoginHandler
from jupyterhub.spawner import LocalProcessSpawner, set_user_setuid
from jupyterhub.traitlets import ByteSpecification
from nativeauthenticator import NativeAuthenticator
from nativeauthenticator.handlers import LoginHandler as NativeLogin
from nativeauthenticator.handlers import SignUpHandler
from nativeauthenticator.orm import UserInfo
from traitlets import Integer, Unicode

from lesson_lib.cli.classroom import INSTRUCTOR, REFUSED, system_name

# as root; only root writes to /run, and it is empty after a restart of the machine
SOCKETS = Path("/run/lesson-class")
NO_SERVER = (
    "Your server does not run at the moment. Nothing is lost: keep this page open, start the server in"
    " another tab ({page}), and save again."
)
CODE_LETTERS = 8  # a class code shorter than this can be tried out


class ClassSignUp(SignUpHandler):
    """The sign-up page: whoever has the class code makes an account with a password of their own."""

    async def post(self):
        code = self.get_body_argument("class_code", "").strip().lower()
        if hmac.compare_digest(code.encode(), self.authenticator.class_code.lower().encode()):
            return await super().post()
        page = await self.render_template(
            "signup.html",
            alert="alert-danger",
            result_message="This is not the code of the class. Your instructor has it.",
        )
        self.set_status(403)
        self.finish(page)


class ClassLogin(LoginHandler):
    """JupyterHub's own login page: the authenticator's does not run with JupyterHub 6."""

    def _render(self, login_error=None, **kwargs):
        if login_error and not self.authenticator.open_signup:
            login_error += ", or your instructor has not approved you yet"
        return super()._render(login_error=login_error, **kwargs)


class ClassAuthenticator(NativeAuthenticator):
    """Accounts with passwords (stored as bcrypt hashes); a student needs the class code to sign up."""

    class_code = Unicode(config=True, help="What a student must know to sign up.")
    instructor_hash = Unicode(config=True, help="File with the hash of a new password for the instructor.")

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        fresh = Path(self.instructor_hash) if self.instructor_hash else None
        if fresh is not None and fresh.exists():
            row = UserInfo.find(self.db, INSTRUCTOR)
            if row is None:
                row = UserInfo(username=INSTRUCTOR)
                self.db.add(row)
            row.password, row.is_authorized = fresh.read_bytes(), True
            self.db.commit()
            fresh.unlink()

    def get_handlers(self, app):
        ours = {SignUpHandler: ClassSignUp, NativeLogin: ClassLogin}
        return [(path, ours.get(page, page)) for path, page in super().get_handlers(app)]


class NoRoute(PrefixRedirectHandler):
    """What the proxy sends to the hub because it has no route to a student's server (it was started again,
    say).

    JupyterHub redirects pages and refuses all else with "403 Forbidden", so a notebook that is saved in this
    moment would not arrive. Where the server runs, its route is set here and the request goes on as it was
    (307: same method, same body); else the answer says what to do. Nothing is changed or shown here, so
    cookies are not asked for: the server does that.
    """

    def check_xsrf_cookie(self):
        pass

    async def get(self, name: str, _path: str):
        if not await self.sent_on(name):
            super().get()

    async def put(self, name: str, _path: str):
        if not await self.sent_on(name):
            self.set_status(424)
            self.finish({"message": NO_SERVER.format(page=f"{self.hub.base_url}home")})

    post = patch = delete = put

    async def sent_on(self, name: str) -> bool:
        """True where the request was sent on to the student's server."""
        user = self.find_user(name)
        if user is None or not user.spawner.ready:
            return False
        await self.proxy.add_user(user)
        self.redirect(self.request.uri, status=307)
        return True


def refusal(
    *, address: str, hub_address: str, key: str, certificate: str, authenticator: Authenticator
) -> str:
    """A sentence where a hub with these settings would be open to people who have no business there,
    else ''."""
    kind = type(authenticator).__name__
    dummy = isinstance(authenticator, DummyAuthenticator)
    if dummy and not authenticator.password:
        return (
            f"{kind} without a password lets everybody in: use the ClassAuthenticator of"
            " jupyterhub_config.py."
        )
    if isinstance(authenticator, NativeAuthenticator) and authenticator.open_signup:
        code = getattr(authenticator, "class_code", "")
        if len(code) < CODE_LETTERS:
            return (
                f"open_signup with a class code of {len(code)} letters lets everybody in: give class_code at"
                f" least {CODE_LETTERS}, or set open_signup = False and approve each student at"
                " /hub/authorize."
            )
    if not loopback(hub_address):
        return (
            f"hub_bind_url is {hub_address!r}: the hub's own port must stay on 127.0.0.1; students come"
            " through the proxy."
        )
    if loopback(address):
        return ""
    if not (key and certificate):
        return (
            f"The address {address or '(all)'!s} can be reached from other machines, and passwords would"
            " travel in the open: give --key and --certificate (TLS), or stay on 127.0.0.1."
        )
    if dummy:
        return (
            f"{kind} has one password for all, so anybody can be anybody: not on {address}, only on"
            " 127.0.0.1."
        )
    return ""


def loopback(address: str) -> bool:
    """True for an address that only this machine can reach; '' means every address there is."""
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address == "localhost"


class ClassHub(JupyterHub):
    """JupyterHub that refuses to start where `refusal` has a sentence; whatever the configuration says."""

    def init_handlers(self):
        super().init_handlers()
        self.handlers.insert(0, (rf"{self.base_url}user/([^/]+)(/.*)", NoRoute))

    async def initialize(self, *args, **kwargs):
        await super().initialize(*args, **kwargs)
        sentence = refusal(
            address=urlparse(self.bind_url).hostname or "",
            hub_address=urlparse(self.hub_bind_url).hostname or self.hub_ip,
            key=self.ssl_key,
            certificate=self.ssl_cert,
            authenticator=self.authenticator,
        )
        if sentence:  # nothing listens yet
            print(f"Refused: {sentence}", file=sys.stderr, flush=True)
            os._exit(REFUSED)


class StudentSpawner(LocalProcessSpawner):
    """A student's server: held to its memory in two ways, and started by copies.py, which pulls first.

    `data_limit` bounds each process (RLIMIT_DATA: an allocation beyond it fails in Python, as a MemoryError
    or torch's RuntimeError). `mem_limit` bounds what all processes of the student hold together: `poll` stops
    the largest one.
    """

    homes = Unicode(config=True, help="The folder of the students' homes.")
    original = Unicode(config=True, help="The folder with the original of the course.")
    data_limit = ByteSpecification(0, config=True, help="Bytes that one process may allocate; 0: no limit.")
    niceness = Integer(5, config=True, help="How far the students' processes step back behind the hub.")

    @property
    def home(self) -> Path:
        """The student's own folder."""
        return Path(self.homes) / self.user.name

    @property
    def sockets(self) -> Path:
        """A folder of the student's own for the kernels' sockets; short, since a socket's path has 107
        letters at most.

        Sockets in place of ports: two kernels that start at once can be given the same port, and one of them
        then hangs; and any account of the machine could listen to a port.
        """
        return SOCKETS / self.user.name

    async def stop(self, now=False):
        await super().stop(now=now)
        shutil.rmtree(self.sockets, ignore_errors=True)

    def get_env(self):
        env = super().get_env()
        env["LESSON_HOME"] = str(self.home / ".lesson")
        env["JUPYTER_RUNTIME_DIR"] = str(self.sockets)
        return env

    def user_env(self, env):
        return env | {"USER": self.user.name, "HOME": str(self.home), "SHELL": "/bin/bash"}

    async def start(self):
        self.notebook_dir = str(self.home / "work")
        pull = [sys.executable, "-I", "-m", "lesson_lib.cli.sync_copies", self.original, self.notebook_dir]
        self.cmd = [
            *pull,
            sys.executable,
            "-P",
            "-m",
            "jupyterhub.singleuser",
        ]  # -P: not a student's own random.py
        return await super().start()

    def limits(self):
        """Applied between fork and exec; a process without privileges can only lower them."""
        if self.data_limit:
            resource.setrlimit(resource.RLIMIT_DATA, (self.data_limit, self.data_limit))
        os.nice(self.niceness)
        if os.path.exists("/proc/self/oom_score_adj"):
            with open("/proc/self/oom_score_adj", "w") as file:
                file.write("500")  # where the machine runs out of memory, the hub is the last to go

    def processes(self) -> list[tuple[int, int]]:
        """(pid, bytes of its own) of each process of the student."""
        family, found = {self.pid}, []
        for pid, parent, _, own in sorted(everybody()):
            if pid in family or parent in family:
                family.add(pid)
                found.append((pid, own))
        return found

    async def poll(self):
        status = await super().poll()
        if status is None and self.mem_limit:
            self.hold_memory()
        return status

    def hold_memory(self):
        """Stop the student's largest process where all together are over the limit; the server itself comes
        last."""
        held = self.processes()
        total = sum(own for _, own in held)
        if total <= self.mem_limit:
            return
        pid, own = max(held, key=lambda process: (process[0] != self.pid, process[1]))
        self.log.warning(
            "Memory of %s: %d processes hold %d MiB together, and the limit is %d MiB. Process %d (%d MiB) "
            "is stopped; a kernel starts again by itself, saved work is kept.",
            self.user.name, len(held), total >> 20, self.mem_limit >> 20, pid, own >> 20,
        )  # fmt: skip
        kill(pid)


class FolderSpawner(StudentSpawner):
    """A folder for each student, all in the account that runs the hub. It isolates nothing between
    students."""

    @property
    def sockets(self):
        return Path(f"/tmp/lesson-class-{os.geteuid()}") / self.user.name

    def make_preexec_fn(self, name):
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        ours = self.sockets.parent
        ours.mkdir(mode=0o700, exist_ok=True)
        about = ours.lstat()
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o077:
            raise RuntimeError(
                f"{ours} is not a folder for this account alone: remove it, and start the server again."
            )
        self.sockets.mkdir(mode=0o700, exist_ok=True)
        return self.limits


class SystemUserSpawner(StudentSpawner):
    """A system account for each student, made at the first start: no password, no login shell, a home of mode
    700."""

    making = asyncio.Lock()  # useradd locks /etc/passwd, and gives up where another one holds it

    def user_env(self, env):
        return super().user_env(env) | {"USER": system_name(self.user.name)}

    async def start(self):
        async with self.making:
            await asyncio.get_running_loop().run_in_executor(None, self.make_account)
        self.end_leftovers()
        return await super().start()

    async def stop(self, now=False):
        await super().stop(now=now)
        self.end_leftovers()

    def make_account(self):
        """The account and its home, where they are missing. RuntimeError where the name is somebody
        else's."""
        name, home = system_name(self.user.name), self.home
        try:
            account = pwd.getpwnam(name)
        except KeyError:
            words = ["useradd", "--no-create-home", "--home-dir", str(home), "--shell", "/usr/sbin/nologin"]
            # a home from another machine
            words += ["--uid", str(home.stat().st_uid)] if home.exists() else []
            done = subprocess.run([*words, "--user-group", name], capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"The account {name} could not be made: {done.stderr.strip()}") from None
            account = pwd.getpwnam(name)
        if Path(account.pw_dir) != home:
            raise RuntimeError(
                f"The account {name} belongs to {account.pw_dir}, not to {home}: another class on this"
                " machine has it. Let the student sign up under another name, or remove that account:"
                f" userdel {name}"
            )
        if not home.exists():
            home.mkdir(mode=0o700)
            os.chown(home, account.pw_uid, account.pw_gid)
        SOCKETS.mkdir(mode=0o711, exist_ok=True)
        self.sockets.mkdir(mode=0o700, exist_ok=True)
        os.chown(self.sockets, account.pw_uid, account.pw_gid)

    def make_preexec_fn(self, name):
        become = set_user_setuid(system_name(name))

        def preexec():
            resource.setrlimit(resource.RLIMIT_NPROC, (1024, 1024))  # threads count: of this account only
            self.limits()
            become()

        return preexec

    def processes(self):
        uid = pwd.getpwnam(system_name(self.user.name)).pw_uid
        return [(pid, own) for pid, _, owner, own in everybody() if owner == uid]

    def end_leftovers(self):
        """End what the student's account still runs after its server is gone: kernels that lost it,
        background jobs."""
        everybody(fresh_s=0)
        for pid, _ in self.processes():
            kill(pid)


_seen: tuple[float, list[tuple[int, int, int, int]]] = (-1e9, [])


def everybody(fresh_s: float = 2.0) -> list[tuple[int, int, int, int]]:
    """(pid, parent, uid, bytes of its own) of every process here; the hub asks for 30 students at once, so it
    is kept.

    Bytes of its own: resident, less what it shares with others (torch's libraries are there once for all).
    """
    global _seen
    if time.monotonic() - _seen[0] > fresh_s:
        found = []
        for process in psutil.process_iter(["ppid", "uids", "memory_info"]):
            info = process.info
            if info["uids"] and info["memory_info"]:
                own = info["memory_info"].rss - getattr(info["memory_info"], "shared", 0)
                found.append((process.pid, info["ppid"], info["uids"].real, own))
        _seen = (time.monotonic(), found)
    return _seen[1]


def kill(pid: int) -> None:
    """End a process at once; nothing where it is gone."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


if __name__ == "__main__":
    ClassHub.launch_instance()
