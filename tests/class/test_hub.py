"""A class on one server: what is refused, what a student gets, and that whatever is killed comes back with
the work saved.

The hub is the real one, started by the command on a free port of 127.0.0.1, in a folder of its own. As root
its students get system accounts, which are removed again.
"""

import contextlib
import importlib
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import psutil
import pytest
import requests
import websocket
from traitlets.config import Config

from lesson_lib.cli import classroom, sync_copies

ROOT = Path(classroom.__file__).resolve().parents[2]
AS_ROOT = os.geteuid() == 0
PASSWORD = "a long enough word"
open_way = importlib.import_module(
    "tests.class.open_way"
)  # `class` is a keyword: no import statement can name it

spec = importlib.util.spec_from_file_location("class_hub", ROOT / "class" / "hub.py")
hub_module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hub_module)


# --- What is refused
# ---------------------------------------------------------------------------------------------------


def test_a_public_address_needs_tls(tmp_path, capsys):
    assert classroom.main(address="0.0.0.0", data=tmp_path) == 1
    assert "--key and --certificate" in capsys.readouterr().out
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"port": 0}, "between 1 and 65533"),
        ({"address": "my-server"}, "an address of this machine"),
        ({"key": Path("key.pem")}, "belong together"),
        ({"key": Path("no.pem"), "certificate": Path("no.pem")}, "cannot be read"),
    ],
)
def test_impossible_options_get_a_sentence(tmp_path, capsys, options, sentence):
    assert classroom.main(data=tmp_path, **options) == 1
    assert sentence in capsys.readouterr().out


def test_a_missing_proxy_gets_a_sentence_with_the_repair(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert classroom.main(data=tmp_path / "data") == 1
    said = capsys.readouterr().out
    assert "configurable-http-proxy" in said and "make setup-class" in said


def test_a_taken_port_gets_a_sentence(tmp_path, capsys):
    port = open_way.free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port + 2))
        taken.listen()
        assert classroom.main(port=port, data=tmp_path) == 1
    assert f"Port {port + 2}" in capsys.readouterr().out


@pytest.mark.skipif(
    not AS_ROOT, reason="not root: no other accounts are used, so nothing has to be reachable for them"
)
def test_root_is_told_which_folder_closes_the_way():
    with tempfile.TemporaryDirectory(prefix="lc-", dir="/tmp") as folder:  # mode 700
        said = classroom.unreachable(Path(folder))
        way = [Path(sys.base_prefix).resolve(), Path(sys.prefix), ROOT, Path(folder)]
        closed = classroom.closed_folder(way)  # while the last of them is there
    assert f"chmod o+x {closed}" in said and "make setup-class" in said


def stub(kind, **settings):
    """An authenticator of that class with these settings, not built: its constructor wants a database."""
    return object.__new__(type(kind.__name__, (kind,), settings))


OURS = stub(hub_module.ClassAuthenticator, open_signup=True, class_code="abcd-efgh")
NO_CODE = stub(hub_module.ClassAuthenticator, open_signup=True, class_code="abc")
APPROVING = stub(hub_module.NativeAuthenticator, open_signup=False)
OPEN = stub(hub_module.NativeAuthenticator, open_signup=True)
DUMMY = stub(hub_module.DummyAuthenticator, password="")
SHARED = stub(hub_module.DummyAuthenticator, password="one for all")


@pytest.mark.parametrize(
    "who, address, tls, hub_address, sentence",
    [
        (OURS, "127.0.0.1", False, "127.0.0.1", ""),
        (OURS, "192.0.2.7", True, "127.0.0.1", ""),
        (APPROVING, "", True, "127.0.0.1", ""),
        (OURS, "", False, "127.0.0.1", "--key and --certificate"),
        (OURS, "127.0.0.1", False, "0.0.0.0", "the hub's own port"),
        (NO_CODE, "127.0.0.1", False, "127.0.0.1", "class code of 3 letters"),
        (OPEN, "127.0.0.1", False, "127.0.0.1", "class code of 0 letters"),
        (DUMMY, "127.0.0.1", False, "127.0.0.1", "without a password"),
        (SHARED, "192.0.2.7", True, "127.0.0.1", "anybody can be anybody"),
    ],
)
def test_an_open_hub_is_refused(who, address, tls, hub_address, sentence):
    pem = "file.pem" if tls else ""
    said = hub_module.refusal(
        address=address, hub_address=hub_address, key=pem, certificate=pem, authenticator=who
    )
    assert (sentence in said) if sentence else said == ""


def test_a_configuration_that_opens_the_hub_is_refused_before_anything_listens(tmp_path):
    classroom._folders(tmp_path)
    classroom._secrets(tmp_path, False)
    port = open_way.free_port()
    hub = classroom.Hub(port, "127.0.0.1", tmp_path, None, None)
    opened = tmp_path / "opened.py"
    text = (ROOT / "class" / "jupyterhub_config.py").read_text(encoding="utf-8")
    text = text.replace("Path(__file__).resolve().parent", f"Path({str(ROOT / 'class')!r})")
    opened.write_text(text + 'c.JupyterHub.authenticator_class = "dummy"\n', encoding="utf-8")
    hub.words = [f"--config={opened}" if word.startswith("--config=") else word for word in hub.words]
    start = hub._start()
    assert hub.process.wait(60) == classroom.REFUSED
    said = classroom._last_words(tmp_path / "hub" / "hub.log", start)
    assert said.startswith("DummyAuthenticator without a password lets everybody in")
    assert not classroom._taken(port, "127.0.0.1")


def test_the_example_for_a_cluster_is_the_same_class():
    text = (ROOT / "class" / "kubernetes_config.py").read_text(encoding="utf-8")
    config = Config()
    exec(compile(text, "kubernetes_config.py", "exec"), {"get_config": lambda: config})
    assert config.Authenticator.allow_all is False and "Dummy" not in config.JupyterHub.authenticator_class
    assert importlib.util.find_spec(config.Spawner.cmd[3]).origin == sync_copies.__file__
    jupyter = config.Spawner.environment["JUPYTER_CONFIG_PATH"].removeprefix("/opt/course/")
    assert (ROOT / jupyter / "jupyter_server_config.json").exists()
    assert config.Spawner.environment["OMP_NUM_THREADS"] == "1"


# --- Copies
# ------------------------------------------------------------------------------------------------------------


def write(path, *sources, outputs=(), metadata=None, count=None):
    """A notebook with these cells; the outputs are those of the first."""
    cells = [
        {"cell_type": "code", "id": uuid.uuid4().hex[:8], "metadata": {}, "execution_count": count,
        "source": [source], "outputs": []}
        for source in sources
    ]  # fmt: skip
    cells[0]["outputs"] = list(outputs)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": cells, "metadata": metadata or {}}), encoding="utf-8")


@pytest.fixture
def course(tmp_path):
    """An original with one lesson, one exercise and its solution; the student's folder is beside it."""
    notebooks = tmp_path / "original" / "notebooks"
    write(notebooks / "03_matrix_form.ipynb", "hello")
    write(notebooks / "exercises" / "03_matrix_form.ipynb", "try")
    write(notebooks / "solutions" / "03_matrix_form.ipynb", "answer")
    return tmp_path


def pull(course):
    return sync_copies.pull(course / "original", course / "work")


LESSON = "03_matrix_form.ipynb"


def sources(path):
    return ["".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]


def test_everything_but_solutions_is_copied_once(course):
    assert pull(course).copied == [LESSON, f"exercises/{LESSON}"]
    assert not (course / "work" / "solutions").exists()
    assert pull(course) == sync_copies.Pulled()
    assert not list(course.rglob("*.part"))


def test_a_copy_that_nobody_changed_follows_the_original(course):
    pull(course)
    write(course / "original" / "notebooks" / LESSON, "hello, newer")
    assert pull(course) == sync_copies.Pulled(updated=[LESSON])
    assert sources(course / "work" / LESSON) == ["hello, newer"]
    assert pull(course) == sync_copies.Pulled()


def test_opening_and_saving_a_copy_is_no_change(course):
    pull(course)
    write(course / "work" / LESSON, "hello", metadata={"language_info": {"version": "3.13"}}, count=7)
    write(course / "original" / "notebooks" / LESSON, "hello, newer")
    assert pull(course).updated == [LESSON]


@pytest.mark.parametrize(
    "mine", [{"sources": ["my own words"]}, {"sources": ["hello"], "outputs": [{"text": "6"}]}]
)
def test_a_changed_copy_stays_and_the_new_version_comes_beside_it_once(course, mine):
    pull(course)
    write(course / "work" / LESSON, *mine.pop("sources"), **mine)
    before = (course / "work" / LESSON).read_bytes()
    write(course / "original" / "notebooks" / LESSON, "hello, newer")
    assert pull(course) == sync_copies.Pulled(new_versions=["03_matrix_form.new.ipynb"])
    assert pull(course) == sync_copies.Pulled()
    assert (course / "work" / LESSON).read_bytes() == before
    (course / "work" / "03_matrix_form.new.ipynb").write_text("mine, too")
    write(course / "original" / "notebooks" / LESSON, "hello, newest")
    assert pull(course).new_versions == ["03_matrix_form.new-2.ipynb"]
    assert (course / "work" / "03_matrix_form.new.ipynb").read_text() == "mine, too"
    (course / "work" / "03_matrix_form.new-2.ipynb").unlink()
    assert pull(course) == sync_copies.Pulled()  # what a student threw away is not pressed on them


def test_a_copy_that_was_renamed_or_deleted_comes_back_fresh(course):
    pull(course)
    (course / "work" / LESSON).rename(course / "work" / "mine.ipynb")
    assert pull(course) == sync_copies.Pulled(copied=[LESSON])
    assert sources(course / "work" / "mine.ipynb") == ["hello"]


def test_untouched_copies_of_what_is_gone_move_away_and_changed_ones_stay(course):
    exercise = f"exercises/{LESSON}"
    pull(course)
    write(course / "work" / exercise, "my own words")
    write(course / "work" / "mine.ipynb", "hello")
    for name in (LESSON, exercise):
        (course / "original" / "notebooks" / name).unlink()
    assert pull(course) == sync_copies.Pulled(aside=[LESSON], left=[exercise])
    assert sources(course / "work" / "old" / LESSON) == sources(course / "work" / "mine.ipynb")
    assert sources(course / "work" / exercise) == ["my own words"]
    assert pull(course) == sync_copies.Pulled(left=[exercise])
    (course / "work" / exercise).unlink()
    assert pull(course) == sync_copies.Pulled()


@pytest.mark.parametrize("damage", ["{", '{"03_matrix_form.ipynb": "0123456789abcdef"}', "[" * 100_000])
def test_a_damaged_record_loses_nothing(course, damage):
    pull(course)
    write(course / "work" / LESSON, "my own words")
    (course / "work" / sync_copies.RECORD).write_text(damage, encoding="utf-8")
    # whose it is cannot be known
    assert pull(course) == sync_copies.Pulled(new_versions=["03_matrix_form.new.ipynb"])
    assert sources(course / "work" / LESSON) == ["my own words"]


@pytest.mark.parametrize("text", ["no notebook", '{"cells": 3}'])
def test_a_copy_that_is_no_notebook_any_more_stays(course, text):
    pull(course)
    (course / "work" / LESSON).write_text(text)
    write(course / "original" / "notebooks" / LESSON, "hello, newer")
    assert pull(course).new_versions == ["03_matrix_form.new.ipynb"]
    assert (course / "work" / LESSON).read_text() == text


def test_a_full_disk_leaves_the_old_copy_whole_and_no_rest(course, monkeypatch):
    pull(course)
    write(course / "original" / "notebooks" / LESSON, "hello, newer")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            pull(course)
    assert sources(course / "work" / LESSON) == ["hello"] and not list(course.rglob("*.part"))
    assert pull(course).updated == [LESSON]


def test_a_pull_that_fails_keeps_nobody_from_the_files(course):
    code = "import os; print(open('mine.txt').read())"
    (course / "work").mkdir()
    (course / "work" / "mine.txt").write_text("my work")
    words = [sys.executable, "-I", "-m", "lesson_lib.cli.sync_copies", "/nowhere", str(course / "work")]
    done = subprocess.run([*words, sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0
    assert "my work" in (course / sync_copies.LOG).read_text()


def test_the_original_is_read_only_and_without_solutions(course):
    root, original = course / "original", course / "published"
    classroom.publish(root, original)
    assert (original / "notebooks" / LESSON).stat().st_mode & 0o777 == 0o444
    assert not (original / "notebooks" / "solutions").exists()
    write(root / "notebooks" / LESSON, "hello, newer")
    (root / "notebooks" / "exercises" / LESSON).unlink()
    classroom.publish(root, original)
    assert sources(original / "notebooks" / LESSON) == ["hello, newer"]
    assert classroom.lab.lessons(original) == [LESSON]


# --- One class, running
# ------------------------------------------------------------------------------------------------


class Student:
    """A browser and a notebook in one: signs up, logs in, starts a server, runs code in a kernel."""

    def __init__(self, url: str, name: str, password: str = PASSWORD):
        self.url, self.name, self.password, self.browser = url, name, password, requests.Session()
        self.browser.trust_env = False  # no proxy of the environment
        self.token = ""

    def page(self, path: str) -> requests.Response:
        return self.browser.get(f"{self.url}/hub/{path}", timeout=60)

    def form(self, path: str, **fields) -> requests.Response:
        token = re.search(r'name="_xsrf" value="([^"]+)"', self.page(path).text)[1]
        return self.browser.post(f"{self.url}/hub/{path}", data={"_xsrf": token} | fields, timeout=60)

    def sign_up(self, code: str) -> requests.Response:
        words = {"signup_password": self.password, "signup_password_confirmation": self.password}
        return self.form("signup", username=self.name, class_code=code, **words)

    def log_in(self) -> int:
        """The status of the log-in page: 200 after a redirect to the student's server, 403 where it is
        refused."""
        answer = self.form("login", username=self.name, password=self.password, next="/hub/home")
        if answer.ok:
            cookie = [
                one.value for one in self.browser.cookies if one.name == "_xsrf" and one.path == "/hub/"
            ][-1]
            path = f"{self.url}/hub/api/users/{self.name}/tokens"
            made = self.browser.post(path, json={}, headers={"X-XSRFToken": cookie}, timeout=60)
            self.token = made.json()["token"]
        return answer.status_code

    def ask(self, method: str, path: str, **more) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            headers = {"Authorization": f"token {self.token}"}
            return session.request(method, self.url + path, headers=headers, timeout=60, **more)

    def server(self) -> dict:
        return self.ask("GET", f"/hub/api/users/{self.name}").json()["servers"].get("", {})

    def start(self) -> None:
        assert self.ask("POST", f"/hub/api/users/{self.name}/server").status_code in (201, 202)
        wait_for(lambda: self.server().get("ready"), 180)

    def kernel(self) -> str:
        return self.ask("POST", f"/user/{self.name}/api/kernels", json={"name": "python3"}).json()["id"]

    def run(self, kernel: str, code: str) -> str:
        """What the code printed, the error's name and text, or <restarting> where the kernel was lost."""
        path = f"/user/{self.name}/api/kernels/{kernel}/channels"
        header = [f"Authorization: token {self.token}"]
        number, said = uuid.uuid4().hex, ""
        message = {
            "msg_id": number,
            "session": number,
            "username": "",
            "msg_type": "execute_request",
            "version": "5.3",
        }
        content = {
            "code": code,
            "silent": False,
            "store_history": False,
            "allow_stdin": False,
            "user_expressions": {},
        }
        request = {
            "header": message,
            "parent_header": {},
            "metadata": {},
            "channel": "shell",
            "content": content,
        }
        socket_ = websocket.create_connection(
            self.url.replace("http", "ws", 1) + path, header=header, timeout=120
        )
        with contextlib.closing(socket_):
            socket_.send(json.dumps(request))
            while True:
                answer = json.loads(socket_.recv())
                kind, content = answer["msg_type"], answer["content"]
                if kind == "status" and content["execution_state"] in ("restarting", "dead"):
                    return f"{said}<{content['execution_state']}>"
                if answer["parent_header"].get("msg_id") != number:
                    continue
                if kind == "stream":
                    said += content["text"]
                elif kind == "error":
                    said += f"{content['ename']}: {content['evalue']}"
                elif kind == "status" and content["execution_state"] == "idle":
                    return said.strip()


def wait_for(holds, seconds=60):
    """What `holds()` says when it is true; while a server is away its errors count as 'not yet'."""
    until = time.monotonic() + seconds
    while True:
        with contextlib.suppress(requests.RequestException, KeyError, ValueError):
            if found := holds():
                return found
        assert time.monotonic() < until, f"not within {seconds} s"
        time.sleep(0.2)


class Class:
    """`make class` in a folder of its own."""

    def __init__(self, folder: Path, before: tuple[str, ...] = ()):
        self.data, self.port, self.said = folder / "data", open_way.free_port(), folder / "said"
        self.url, self.students = f"http://127.0.0.1:{self.port}", []
        words = [
            *before,
            sys.executable,
            "-m",
            "lesson_lib.cli.classroom",
            "--port",
            str(self.port),
            "--data",
            str(self.data),
        ]
        self.words, self.folder = words, folder

    def command(self, *more: str) -> list[str]:
        """The words that run `make class` here, so that other accounts reach the interpreter."""
        words, reason = open_way.through([*self.words, *more], self.folder)
        if reason:
            pytest.skip(f"NO CLASS IS STARTED: {reason}")
        return words

    def start(self, *more: str):
        with open(self.said, "ab") as file:
            start = file.tell()
            self.main = subprocess.Popen(
                self.command(*more), stdout=file, stderr=file, cwd=ROOT, start_new_session=True
            )

        def opened():
            assert self.main.poll() is None, self.said.read_text()
            return b"The class is open" in self.said.read_bytes()[start:]

        wait_for(opened, 120)
        return self

    def student(self, name: str) -> Student:
        self.students.append(name)
        return Student(self.url, name)

    def secret(self, name: str) -> str:
        return (self.data / "hub" / name).read_text().strip()

    def pid(self, name: str) -> int:
        """The process of the hub or the proxy; 0 while its file is written anew."""
        try:
            return int(self.secret(f"{name}.pid").split()[0])
        except (FileNotFoundError, IndexError):
            return 0

    def server_pid(self, student: Student) -> int:
        with contextlib.closing(
            sqlite3.connect(f"file:{self.data}/hub/jupyterhub.sqlite?mode=ro", uri=True)
        ) as base:
            query = (
                "select spawners.state from spawners join users on users.id = spawners.user_id where"
                " users.name = ?"
            )
            return json.loads(base.execute(query, (student.name,)).fetchone()[0])["pid"]

    def log(self) -> str:
        return (self.data / "hub" / "hub.log").read_text(errors="replace")

    def alive(self) -> list[psutil.Process]:
        """What runs of this class; students' kernels as long as their accounts are known."""
        found = open_way.below(self.data)
        for name in self.students if AS_ROOT else ():
            with contextlib.suppress(KeyError):
                found += open_way.of_uid(open_way.pwd.getpwnam(classroom.system_name(name)).pw_uid)
        proxy = f"--port {self.port} "
        return found + [
            p for p in psutil.process_iter(["cmdline"]) if proxy in " ".join(p.info["cmdline"] or [])
        ]

    def end(self):
        if self.main.poll() is None:
            self.main.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.main.wait(90)
        left = self.alive()
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        if AS_ROOT:
            open_way.remove_users(self.students)
        return left


@contextlib.contextmanager
def class_in_a_folder(before: tuple[str, ...] = (), owner: int | None = None):
    # short: pytest's own folders are closed to other accounts
    folder = Path(tempfile.mkdtemp(prefix="lc-", dir="/tmp"))
    folder.chmod(0o755)
    if owner is not None:
        os.chown(folder, owner, owner)
    made = Class(folder, before)
    try:
        yield made.start()
    finally:
        left = made.end() if hasattr(made, "main") else []
        shutil.rmtree(folder)
        if owner is not None:
            shutil.rmtree(f"/tmp/lesson-class-{owner}", ignore_errors=True)
    assert not left, f"still there after the end of the class: {left}"


NAME = f"t{os.getpid()}"


@pytest.fixture(scope="module")
def running():
    with class_in_a_folder() as made:
        yield made


@pytest.fixture(scope="module")
def ada(running):
    """A student with an account and a server."""
    student = running.student(f"{NAME}ada")
    assert "signup was successful" in student.sign_up(running.secret("class_code")).text
    assert student.log_in() == 200
    student.start()
    return student


@pytest.fixture(scope="module")
def bob(running):
    student = running.student(f"{NAME}bob")
    student.sign_up(running.secret("class_code"))
    student.log_in()
    student.start()
    return student


def test_nobody_signs_up_without_the_code_or_logs_in_without_an_account(running):
    student = Student(running.url, f"{NAME}eve")
    for code in ("", "wrong-code-12"):
        answer = student.sign_up(code)
        assert answer.status_code == 403 and "not the code of the class" in answer.text
    assert student.log_in() == 403
    short = Student(running.url, f"{NAME}eve", password="short")
    assert "signup was successful" not in short.sign_up(running.secret("class_code")).text
    root = Student(running.url, "../root")
    assert "signup was successful" not in root.sign_up(running.secret("class_code")).text
    taken = Student(running.url, classroom.INSTRUCTOR)
    assert "already in use" in taken.sign_up(running.secret("class_code")).text


def instructors_password(running) -> str:
    """The one that was printed last."""
    return re.findall(r"Password of the instructor: (\S+)", running.said.read_text())[-1]


def test_the_instructor_is_made_at_the_first_start_and_the_password_is_stored_hashed(running):
    password = instructors_password(running)
    instructor = Student(running.url, classroom.INSTRUCTOR, password)
    assert instructor.log_in() == 200
    for page in ("admin", "authorize", "change-password"):
        assert instructor.page(page).status_code == 200
    for path in (running.data / "hub").iterdir():
        assert path.name == "lock" or password.encode() not in path.read_bytes()
    assert not (running.data / "hub" / "instructor.hash").exists()


def test_secrets_are_for_the_instructors_account_alone(running):
    assert (running.data / "hub").stat().st_mode & 0o777 == 0o700
    for name in ("cookie_secret", "proxy_token", "command_token", "class_code", "hub.log"):
        assert (running.data / "hub" / name).stat().st_mode & 0o077 == 0, name


def test_a_student_gets_private_copies_and_the_library(running, ada):
    home = running.data / "homes" / ada.name
    assert home.stat().st_mode & 0o777 == 0o700
    assert (home / "work" / "exercises" / LESSON).exists() and not (home / "work" / "solutions").exists()
    code = (
        "import os, lesson_lib, resource; from lesson_lib.device import home\nprint(home(),"
        " os.environ['OMP_NUM_THREADS'], os.environ['LESSON_DEVICE'],"
        " resource.getrlimit(resource.RLIMIT_DATA)[1])"
    )
    kernel = ada.kernel()
    assert ada.run(kernel, code) == f"{home}/.lesson 1 cpu {2 << 30}"
    assert ada.run(kernel, "print(os.getuid() != 0)") == str(AS_ROOT or True)


def test_kernels_speak_through_sockets_that_are_the_students_own(running, ada):
    kernel = ada.kernel()
    told = ada.run(kernel, "from jupyter_core.paths import jupyter_runtime_dir as d; print(d())")
    folder = Path(told)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert folder.stat().st_uid == (running.data / "homes" / ada.name).stat().st_uid
    about = json.loads((folder / f"kernel-{kernel}.json").read_text())
    assert about["transport"] == "ipc"
    longest = folder.with_name("n" * 24) / f"kernel-{kernel}-ipc-5"
    assert len(str(longest)) <= 103  # macOS; Linux permits 107


def test_the_instructor_starts_and_stops_servers_and_opens_none(running, ada):
    instructor = Student(running.url, classroom.INSTRUCTOR, instructors_password(running))
    instructor.log_in()
    assert instructor.ask("GET", f"/hub/api/users/{ada.name}").json()["servers"][""]["ready"]
    assert instructor.ask("GET", f"/user/{ada.name}/api/contents").status_code == 403


def test_one_student_does_not_open_the_server_of_another(running, ada, bob):
    for path in ("lab", "api/contents", "api/kernels"):
        assert bob.ask("GET", f"/user/{ada.name}/{path}").status_code in (403, 404), path
        answer = bob.browser.get(f"{running.url}/user/{ada.name}/{path}", timeout=60)
        assert answer.status_code in (403, 404), path
    assert bob.ask("GET", f"/hub/api/users/{ada.name}").status_code in (403, 404)
    assert bob.ask("DELETE", f"/hub/api/users/{ada.name}/server").status_code in (403, 404)


def test_who_knows_the_class_code_does_not_log_in_as_another(running, ada):
    other = Student(running.url, ada.name, password="not-that-of-ada-1")
    assert "already in use" in other.sign_up(running.secret("class_code")).text
    assert other.log_in() == 403


@pytest.mark.skipif(
    not AS_ROOT, reason="NOT ROOT: students share one account, and nothing keeps their files apart"
)
def test_one_student_does_not_read_the_files_of_another(running, ada, bob):
    home, kernel = running.data / "homes" / ada.name, bob.kernel()
    for path in (
        home,
        home / "work" / LESSON,
        running.data / "homes",
        running.data / "hub" / "command_token",
    ):
        code = (
            f"import os; print(os.listdir({str(path)!r}) if os.path.isdir({str(path)!r}) else"
            f" open({str(path)!r}).read())"
        )
        assert bob.run(kernel, code).startswith("PermissionError"), path
    original = running.data / "original" / "notebooks" / LESSON
    assert bob.run(kernel, f"open({str(original)!r}, 'w')").startswith("PermissionError")
    assert "PermissionError" in bob.run(kernel, f"import os; os.kill({running.server_pid(ada)}, 9)")


def test_one_allocation_too_many_is_an_error_and_the_kernel_lives(ada):
    kernel = ada.kernel()
    assert ada.run(kernel, "x = 41\nimport numpy; numpy.ones(1 << 29)").startswith("MemoryError")
    assert "can't allocate" in ada.run(kernel, "import torch; torch.ones(1 << 30)")
    assert ada.run(kernel, "print(x)") == "41"


def test_a_student_over_the_limit_loses_a_kernel_and_nobody_else_anything(running, ada, bob):
    others, mine = bob.kernel(), [ada.kernel(), ada.kernel()]
    bob.run(others, "x = 41")
    server = running.server_pid(ada)
    hold = "import numpy; x = numpy.ones(150_000_000)"  # 1.1 GiB: allowed to each, too much for both
    for kernel in mine:
        ada.run(kernel, hold)
    wait_for(lambda: f"Memory of {ada.name}" in running.log(), 30)
    assert "the limit is 2048 MiB" in running.log() and "a kernel starts again by itself" in running.log()
    alive = wait_for(lambda: [ada.run(kernel, "print('x' in dir())") for kernel in mine], 60)
    assert "False" in alive  # one has started afresh
    assert running.server_pid(ada) == server and psutil.pid_exists(server)
    assert bob.run(others, "print(x)") == "41"


def cullers(running) -> list[psutil.Process]:
    found = psutil.process_iter(["cmdline", "environ"])
    url = f"http://127.0.0.1:{running.port + 2}/hub/api"
    return [
        p for p in found if "idle.py" in " ".join(p.info["cmdline"] or []) and url in str(p.info["environ"])
    ]


def test_idle_servers_are_culled(running):
    assert [word for process in cullers(running) for word in process.cmdline() if "--timeout" in word] == [
        "--timeout=3600"
    ]
    assert re.search(r"200 GET /hub/api/users\?state=\S+ \(idle@", running.log())  # it may ask who is idle


def saved(student) -> bytes:
    answer = student.ask("GET", f"/user/{student.name}/api/contents/mine.txt")
    return answer.json()["content"]


def work_and_save(student) -> str:
    """A kernel that holds x = 41, after the student saved a file through the server."""
    body = {"type": "file", "format": "text", "content": "my work"}
    answer = student.ask("PUT", f"/user/{student.name}/api/contents/mine.txt", json=body)
    assert answer.status_code in (200, 201)
    kernel = student.kernel()
    student.run(kernel, "x = 41")
    return kernel


def lose_route(running, student) -> None:
    """Take the student's route from the proxy, as in the moment after a proxy started again, when not all are
    back."""
    proxy = f"http://127.0.0.1:{running.port + 1}/api/routes/user/{student.name}"
    rights = {"Authorization": f"token {running.secret('proxy_token')}"}
    assert requests.delete(proxy, headers=rights, timeout=20).status_code == 204


def test_a_save_without_a_route_arrives_all_the_same(running, ada):
    """What the proxy has no route for goes to the hub: it sets the route, and sends the request on as
    it was."""
    place = f"/user/{ada.name}/api/contents/late.txt"
    body = {"type": "file", "format": "text", "content": "late"}
    lose_route(running, ada)
    assert ada.ask("PUT", place, json=body).status_code == 201
    # brings the cookies
    assert ada.browser.get(f"{ada.url}/user/{ada.name}/lab", timeout=60).status_code == 200
    own = {cookie.name: cookie.value for cookie in ada.browser.cookies if ada.name in cookie.path}
    lose_route(running, ada)
    saved = ada.browser.put(
        ada.url + place, json=body | {"content": "later"}, headers={"X-XSRFToken": own["_xsrf"]}, timeout=60
    )
    assert saved.status_code == 200 and [step.status_code for step in saved.history] == [307]
    assert ada.ask("GET", place).json()["content"] == "later"
    lose_route(running, ada)
    assert ada.browser.get(f"{ada.url}/user/{ada.name}/lab", timeout=60).status_code == 200


def test_a_save_without_a_server_is_refused_in_a_sentence(running, ada):
    for name in (f"{NAME}nobody", f"{NAME}eve"):  # unknown; without a server
        running.students.append(name)
        if name.endswith("eve"):
            Student(running.url, name).sign_up(running.secret("class_code"))
        refused = ada.ask("PUT", f"/user/{name}/api/contents/late.txt", json={})
        assert refused.status_code == 424
        assert "keep this page open" in refused.json()["message"] and "/hub/home" in refused.json()["message"]


def test_a_killed_hub_comes_back_and_takes_the_servers_over(running, ada):
    kernel, hub, server = work_and_save(ada), running.pid("hub"), running.server_pid(ada)
    os.kill(hub, signal.SIGKILL)
    wait_for(lambda: running.pid("hub") not in (0, hub) and ada.server().get("ready"), 60)
    assert running.server_pid(ada) == server
    assert ada.run(kernel, "print(x)") == "41" and saved(ada) == "my work"
    assert "The hub died (status -9) and is started again" in running.said.read_text()
    wait_for(lambda: len(cullers(running)) == 1, 30)  # the old one has ended with its hub


def test_a_killed_proxy_comes_back_with_its_routes(running, ada):
    kernel, proxy = work_and_save(ada), running.pid("proxy")
    os.kill(proxy, signal.SIGKILL)
    wait_for(lambda: running.pid("proxy") not in (0, proxy) and saved(ada) == "my work", 60)
    assert ada.run(kernel, "print(x)") == "41"


def test_a_killed_command_is_started_again_in_the_same_folder(running, ada):
    kernel, server, hub = work_and_save(ada), running.server_pid(ada), running.pid("hub")
    code, old = running.secret("class_code"), instructors_password(running)
    again = subprocess.run(running.command(), capture_output=True, text=True, cwd=ROOT)
    assert again.returncode == 1 and "A class runs from" in again.stdout
    running.main.kill()
    running.main.wait()
    running.start("--new-password")
    assert not psutil.pid_exists(hub)
    wait_for(lambda: ada.server().get("ready"), 60)
    assert running.server_pid(ada) == server and running.secret("class_code") == code
    assert ada.run(kernel, "print(x)") == "41" and saved(ada) == "my work"
    assert Student(running.url, classroom.INSTRUCTOR, old).log_in() == 403
    assert Student(running.url, classroom.INSTRUCTOR, instructors_password(running)).log_in() == 200


def test_new_lessons_reach_a_student_at_the_next_start(running, ada):
    name = "original/notebooks/04_multi_head.ipynb"
    write(running.data / "newer.ipynb", "newer")
    os.replace(running.data / "newer.ipynb", running.data / name)
    (running.data / name).chmod(0o444)
    body = {"type": "notebook", "content": {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}}
    ada.ask("PUT", f"/user/{ada.name}/api/contents/{LESSON}", json=body)
    assert ada.ask("DELETE", f"/hub/api/users/{ada.name}/server").status_code in (202, 204)
    wait_for(lambda: not ada.server(), 60)
    ada.start()
    work = running.data / "homes" / ada.name / "work"
    assert sources(work / "04_multi_head.ipynb") == ["newer"]
    assert sources(work / LESSON) == []  # the student's own


@pytest.mark.skipif(not AS_ROOT, reason="not root: every class of these tests is one without root")
def test_without_root_each_student_has_a_folder_and_is_told_what_that_is_worth():
    nobody = 65534
    before = ("setpriv", f"--reuid={nobody}", f"--regid={nobody}", "--clear-groups")
    with class_in_a_folder(before, owner=nobody) as made:
        assert "nothing keeps them out of each other's" in made.said.read_text()
        student = Student(made.url, f"{NAME}cy")
        student.sign_up(made.secret("class_code"))
        assert student.log_in() == 200
        student.start()
        home = made.data / "homes" / student.name
        assert (
            student.run(student.kernel(), "import os; print(os.getuid(), os.getcwd())")
            == f"{nobody} {home}/work"
        )
