"""A student at a class server, without a browser: the hub's pages and API, files, and a kernel over its
websocket.

    student = Student("http://127.0.0.1:8000", "alice")
    await student.sign_up(code)
    await student.log_in()
    await student.spawn()
    kernel = await student.kernel("exercises/03_matrix_form.ipynb")
    ran = await kernel.run("1 + 1")          # ran.text == "2", ran.error == ""

Many students at once are many coroutines. Like a browser it asks again where the proxy or the hub is away for
a moment, and opens a websocket that broke again, in the same session: the server has kept what the kernel
said meanwhile. Nothing waits without an end: `Trouble` says in a sentence who waited for what.
"""

import asyncio
import json
import struct
import time
import uuid
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import quote, urlencode, urljoin, urlparse

from tornado.httpclient import HTTPError, HTTPRequest, HTTPResponse
from tornado.simple_httpclient import SimpleAsyncHTTPClient
from tornado.websocket import WebSocketClientConnection, WebSocketError, websocket_connect

PATIENCE_S = 180.0  # the hub or the proxy is away for so long at most
REQUEST_S = 120.0
START_S = 400.0  # a server; the hub itself gives up after 180 s, twice
KERNEL_S = 180.0
CELL_S = 600.0
# not there now; on a path of the API a redirect means: no route yet
AWAY = {
    302,
    307,
    424,
    429,
    500,
    502,
    503,
    504,
    599,
}
CONNECTION = (OSError, WebSocketError, HTTPError, asyncio.TimeoutError)


class Trouble(RuntimeError):
    """What a student could not do, in a sentence."""


@dataclass
class CellResult:
    """What a cell gave: nbformat's outputs, the number beside it, and its error as one line ('' where there
    is none)."""

    outputs: list[dict[str, Any]] = field(default_factory=list)
    count: int | None = None
    error: str = ""

    @property
    def text(self) -> str:
        """All that was printed or shown, as plain text."""
        parts = [o.get("text") or o.get("data", {}).get("text/plain", "") for o in self.outputs]
        return "".join(parts).strip()


class Student:
    """A person at `base` (scheme, address and port of the proxy) with an account, cookies, a token and a
    server."""

    def __init__(self, base: str, name: str, password: str = "correct-horse-7-staple"):
        self.base, self.name, self.password = base, name, password
        self.cookies: dict[tuple[str, str], str] = {}  # (name, path) -> value
        self.token = ""
        self.http = SimpleAsyncHTTPClient(force_instance=True, max_clients=20)

    # --- requests

    async def fetch(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        form: bool = False,
        cookies: bool = False,
        token: str = "",
    ) -> HTTPResponse:
        """The answer to one request, whatever its status (599: none); redirects are not followed."""
        content = None
        headers = {"Accept": "application/json"}
        if body is not None:
            content = urlencode(body) if form else json.dumps(body)
            headers["Content-Type"] = "application/x-www-form-urlencoded" if form else "application/json"
        if token:
            headers["Authorization"] = f"token {token}"
        if cookies:
            headers |= self.cookie_headers(path)
        request = HTTPRequest(
            urljoin(self.base, path),
            method,
            headers,
            content,
            connect_timeout=20,
            request_timeout=REQUEST_S,
            follow_redirects=False,
            allow_nonstandard_methods=True,
        )
        answer = await self._sent(request)
        if cookies:
            self._keep(answer)
        return answer

    async def ask(self, method: str, path: str, body: Any = None, *, what: str) -> Any:
        """The JSON of an answer to a request with the student's token; asks again while the server is away.

        Raises Trouble, which names `what` was wanted.
        """
        until = time.monotonic() + PATIENCE_S
        while True:
            answer = await self.fetch(method, path, body, token=self.token)
            if answer.code < 300:
                return json.loads(answer.body) if answer.body else None
            # the hub's own page
            no_route = answer.code == 404 and "html" in answer.headers.get("Content-Type", "")
            if not (answer.code in AWAY or no_route) or time.monotonic() > until:
                raise Trouble(f"{self.name} could not {what}: {method} {path} gave {_status(answer)}")
            await asyncio.sleep(float(answer.headers.get("Retry-After", 1)))

    async def follow(self, path: str, steps: int = 10) -> HTTPResponse:
        """The last answer to a GET with the student's cookies, redirects followed."""
        for _ in range(steps):
            answer = await self.fetch("GET", path, cookies=True)
            if answer.code not in (301, 302, 303, 307, 308):
                return answer
            path = urljoin(path, answer.headers["Location"])
        raise Trouble(f"{self.name} was sent around {steps} times, last to {path}")

    def cookie_headers(self, path: str) -> dict[str, str]:
        """The headers that a browser would send to `path`: cookies, the longest path first, and the XSRF
        token."""
        path = urlparse(path).path
        mine = sorted((k for k in self.cookies if path.startswith(k[1])), key=lambda k: -len(k[1]))
        if not mine:
            return {}
        headers = {"Cookie": "; ".join(f"{name}={self.cookies[name, place]}" for name, place in mine)}
        xsrf = [self.cookies[key] for key in mine if key[0] == "_xsrf"]
        return headers | ({"X-XSRFToken": xsrf[0]} if xsrf else {})

    # --- the hub

    async def sign_up(self, code: str) -> None:
        """Make the account, with the code of the class."""
        form = {"username": self.name, "signup_password": self.password, "class_code": code}
        form["signup_password_confirmation"] = self.password
        page = await self._submit("/hub/signup", form)
        if b"The signup was successful" not in page.body:
            raise Trouble(f"{self.name} could not sign up: {_status(page)}")

    async def log_in(self) -> None:
        """Log in with the password, and take a token: from here on no cookie is needed."""
        page = await self._submit("/hub/login", {"username": self.name, "password": self.password})
        if page.code != 302:
            raise Trouble(f"{self.name} could not log in: {_status(page)}")
        answer = await self.fetch("POST", f"/hub/api/users/{self.name}/tokens", {}, cookies=True)
        if answer.code not in (200, 201):
            raise Trouble(f"{self.name} got no token: {_status(answer)}")
        self.token = json.loads(answer.body)["token"]

    async def spawn(self) -> None:
        """Start the student's server and wait until it is there; a start that the hub gave up is tried once
        more."""
        until = time.monotonic() + START_S
        starts = 0
        while time.monotonic() < until:
            about = await self.ask("GET", f"/hub/api/users/{self.name}", what="ask for the server's state")
            server = about["servers"].get("")
            if server and server["ready"]:
                if (await self.fetch("GET", self.place("api/status"), token=self.token)).code == 200:
                    return
            elif not server and starts == 2:
                raise Trouble(f"{self.name}'s server was started twice, and the hub gave up twice")
            elif not server:
                await self.ask("POST", f"/hub/api/users/{self.name}/server", {}, what="start the server")
                starts += 1
            await asyncio.sleep(1)
        raise Trouble(f"{self.name}'s server was not there after {START_S:.0f} s")

    # --- the student's own server

    def place(self, path: str) -> str:
        """The path of `path` on the student's server."""
        return f"/user/{self.name}/{path}"

    async def read(self, path: str) -> dict[str, Any]:
        """The notebook at `path`, relative to the student's folder."""
        found = await self.ask("GET", self.place(f"api/contents/{quote(path)}"), what=f"read {path}")
        return found["content"]

    async def save(self, path: str, notebook: dict[str, Any]) -> None:
        """Write the notebook to `path`."""
        model = {"type": "notebook", "format": "json", "content": notebook}
        await self.ask("PUT", self.place(f"api/contents/{quote(path)}"), model, what=f"save {path}")

    async def kernel(self, path: str) -> "Kernel":
        """A new kernel for the notebook at `path`, in that notebook's folder; it has answered once."""
        model = {"name": "python3", "path": path}
        about = await self.ask("POST", self.place("api/kernels"), model, what="start a kernel")
        kernel = Kernel(self, about["id"])
        await kernel.connect()
        await kernel.run("None", KERNEL_S)  # it may have hung while it started
        return kernel

    async def kernels(self) -> list[dict[str, Any]]:
        """What the student's server says about its kernels."""
        return await self.ask("GET", self.place("api/kernels"), what="list the kernels")

    async def _submit(self, path: str, form: dict[str, str]) -> HTTPResponse:
        await self.fetch("GET", path, cookies=True)  # brings the cookie _xsrf
        xsrf = next(
            (v for (name, place), v in self.cookies.items() if (name, place) == ("_xsrf", "/hub/")), ""
        )
        return await self.fetch("POST", path, form | {"_xsrf": xsrf}, form=True, cookies=True)

    async def _sent(self, request: HTTPRequest) -> HTTPResponse:
        try:
            return await self.http.fetch(request, raise_error=False)
        except CONNECTION as error:  # nobody listens, or the connection broke
            return HTTPResponse(request, 599, reason=str(error) or type(error).__name__)

    def _keep(self, answer: HTTPResponse) -> None:
        for line in answer.headers.get_list("Set-Cookie"):
            for name, morsel in SimpleCookie(line).items():
                key = (name, morsel["path"] or "/")
                if morsel.value:
                    self.cookies[key] = morsel.value
                else:
                    self.cookies.pop(key, None)


@dataclass
class _Asked:
    """A request that the kernel has not finished: its message, what came, and which of its two ends were
    seen."""

    message: dict[str, Any]
    ran: CellResult = field(default_factory=CellResult)
    taken: bool = False
    replied: bool = False
    idle: bool = False
    done: asyncio.Event = field(default_factory=asyncio.Event)
    lost: str = ""


class Kernel:
    """A kernel of a student's server, and the websocket to it."""

    def __init__(self, student: Student, id: str):
        self.student, self.id = student, id
        self.session = uuid.uuid4().hex
        self.breaks = 0  # how often the websocket was opened again
        self._socket: WebSocketClientConnection | None = None
        self._reader: asyncio.Task | None = None
        self._asked: dict[str, _Asked] = {}

    async def connect(self) -> None:
        """Open the websocket, again and again while the server is away."""
        until = time.monotonic() + PATIENCE_S
        path = self.student.place(f"api/kernels/{self.id}/channels?session_id={self.session}")
        while True:
            try:
                self._socket = await websocket_to(self.student, path, token=self.student.token)
                break
            except CONNECTION as error:
                if time.monotonic() > until:
                    raise Trouble(f"{self.student.name}'s kernel could not be reached: {error}") from None
                await asyncio.sleep(1)
        if self._reader is None:
            self._reader = asyncio.create_task(self._read())

    async def run(self, code: str, wait_s: float = CELL_S) -> CellResult:
        """What `code` gives, run to its end; an error in it is part of the answer."""
        for _ in range(3):
            asked = await self._send(
                "execute_request", {"code": code, "silent": False, "stop_on_error": True}
            )
            try:
                await asyncio.wait_for(asked.done.wait(), wait_s)
            except TimeoutError:
                raise Trouble(
                    f"{self.student.name}'s cell did not end within {wait_s:.0f} s: {_first_line(code)}"
                ) from None
            finally:
                self._asked.pop(asked.message["header"]["msg_id"], None)
            if not asked.lost:
                return asked.ran
            if asked.taken:
                break  # it ran, or half of it: not a second time
        raise Trouble(f"{self.student.name}'s kernel: {asked.lost}: {_first_line(code)}")

    async def run_notebook(
        self, notebook: dict[str, Any], *, first: int = 0, last: int | None = None
    ) -> None:
        """Run the code cells number `first` to `last` (exclusive; among code cells) and put their outputs
        into them.

        Raises Trouble at the first error.
        """
        for cell in code_cells(notebook)[first:last]:
            ran = await self.run(cell["source"])
            cell["outputs"], cell["execution_count"] = ran.outputs, ran.count
            if ran.error:
                raise Trouble(
                    f"{self.student.name}'s cell failed with {ran.error}: {_first_line(cell['source'])}"
                )

    async def interrupt(self) -> None:
        """A KeyboardInterrupt in what the kernel runs."""
        path = self.student.place(f"api/kernels/{self.id}/interrupt")
        await self.student.ask("POST", path, {}, what="interrupt the kernel")

    async def close(self) -> None:
        """Close the websocket; the kernel goes on."""
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
            self._reader = None
        if self._socket is not None:
            self._socket.close()

    async def shut_down(self) -> None:
        """End the kernel."""
        await self.close()
        await self.student.ask("DELETE", self.student.place(f"api/kernels/{self.id}"), what="end the kernel")

    async def _send(self, kind: str, content: dict[str, Any]) -> _Asked:
        header = {"msg_id": uuid.uuid4().hex, "msg_type": kind, "version": "5.3", "date": ""}
        header |= {"session": self.session, "username": self.student.name}
        message = {
            "header": header,
            "parent_header": {},
            "metadata": {},
            "content": content,
            "channel": "shell",
        }
        asked = self._asked[header["msg_id"]] = _Asked(message)
        try:
            await self._socket.write_message(json.dumps(message))
        except CONNECTION:
            pass  # the reader opens the websocket again, and finds that this was lost
        return asked

    async def _read(self) -> None:
        """Give every message to the request it answers; open the websocket again where it broke."""
        while True:
            raw = await self._socket.read_message()
            if raw is not None:
                await self._take(_message(raw))
                continue
            self.breaks += 1
            try:
                await self.connect()
            except Trouble as trouble:
                self._lose(list(self._asked.values()), str(trouble), taken=True)
                return
            # The kernel answers in order. What it has not finished when it answers this was lost on the way.
            await self._send("kernel_info_request", {})

    async def _take(self, message: dict[str, Any]) -> None:
        kind, content = message["header"]["msg_type"], message["content"]
        if kind == "status" and content["execution_state"] in ("restarting", "autorestarting", "dead"):
            self._lose(list(self._asked.values()), "it died while it ran", taken=True)
            return
        asked = self._asked.get(message["parent_header"].get("msg_id"))
        if asked is None:
            return
        asked.taken = True
        if kind in ("stream", "display_data", "execute_result", "error"):
            _add(asked.ran, kind, content)
        elif kind == "status":
            asked.idle = asked.idle or content["execution_state"] == "idle"
        elif kind.endswith("_reply"):
            asked.replied, asked.ran.count = True, content.get("execution_count")
            if content["status"] != "ok" and not asked.ran.error:
                asked.ran.error = _error(content)
        if not (asked.replied and asked.idle):  # two channels: either may be the last
            return
        asked.done.set()
        if asked.message["header"]["msg_type"] == "kernel_info_request":
            every = list(self._asked.values())
            self._lose(every[: every.index(asked)], "its answer was lost when the connection broke")
            del self._asked[asked.message["header"]["msg_id"]]

    @staticmethod
    def _lose(requests: list[_Asked], why: str, taken: bool = False) -> None:
        for asked in requests:
            if not asked.done.is_set():
                asked.lost, asked.taken = why, asked.taken or taken
                asked.done.set()


async def websocket_to(
    student: Student, path: str, *, token: str = "", cookies: bool = False
) -> WebSocketClientConnection:
    """A websocket to `path` with the student's token or cookies; HTTPError where it is refused."""
    headers = {"Authorization": f"token {token}"} if token else {}
    if cookies:
        headers |= student.cookie_headers(path) | {"Origin": student.base}
    url = "ws" + student.base.removeprefix("http") + path
    request = HTTPRequest(url, headers=headers, connect_timeout=20, request_timeout=60)
    return await asyncio.wait_for(websocket_connect(request, max_message_size=1 << 28), 60)


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """The code cells, in order."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _add(ran: CellResult, kind: str, content: dict[str, Any]) -> None:
    """Put a message into the outputs, as nbformat keeps it; pieces of one stream become one."""
    content = {key: value for key, value in content.items() if key != "transient"}
    last = ran.outputs[-1] if ran.outputs else {}
    if kind == "error":
        ran.error = _error(content)
    if kind == "stream" and last.get("name") == content["name"] and last["output_type"] == "stream":
        last["text"] += content["text"]
    else:
        ran.outputs.append({"output_type": kind, **content})


def _error(content: dict[str, Any]) -> str:
    return f"{content.get('ename', content.get('status'))}: {content.get('evalue', '')}"


def _message(raw: str | bytes) -> dict[str, Any]:
    """A message of the websocket; one with buffers is binary: a count, that many offsets, JSON, the
    buffers."""
    if isinstance(raw, bytes):
        count = struct.unpack("!i", raw[:4])[0]
        offsets = struct.unpack(f"!{count}I", raw[4 : 4 + 4 * count])
        raw = raw[offsets[0] : offsets[1] if count > 1 else None].decode()
    return json.loads(raw)


def _status(answer: HTTPResponse) -> str:
    said = (answer.body or b"").decode(errors="replace")
    if "result_message" in said or "alert" in said:
        said = said[said.find("alert") :]
    return f"HTTP {answer.code} {answer.reason} {' '.join(said[:300].split())}".strip()


def _first_line(code: str) -> str:
    return code.strip().splitlines()[0] if code.strip() else "(empty)"
