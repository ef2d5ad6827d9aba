"""The driver waits for a server that is slow, and not for one that is stuck."""

import socket
import subprocess
import sys
import time

import pytest

from tests.browser import driver

SLOW = """
import http.server, time
for _ in range({}):
    time.sleep(0.25)
    end = time.process_time() + 0.01
    while time.process_time() < end:
        pass
http.server.HTTPServer(("127.0.0.1", {}), http.server.SimpleHTTPRequestHandler).serve_forever()
"""


@pytest.fixture
def wait(tmp_path):
    """Starts that code as a server and waits for it with a patience of 5 s; seconds that it took."""
    started = []

    def waited(code):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        log = tmp_path / "log"
        with open(log, "w") as file:
            started.append(
                subprocess.Popen([sys.executable, "-c", code(port)], cwd=tmp_path, stdout=file, stderr=file)
            )
        begin = time.monotonic()
        driver._wait(started[0], f"http://127.0.0.1:{port}", log, 5)
        return time.monotonic() - begin

    yield waited
    for process in started:
        process.kill()
        process.wait()


def test_a_server_that_starts_slowly_is_awaited(wait):
    assert wait(lambda port: SLOW.format(24, port)) > 5


@pytest.mark.parametrize(
    "code", ["import time; time.sleep(60)", "while True: pass", "raise SystemExit('the port is taken')"]
)
def test_one_that_is_stuck_or_ended_is_not(code, wait):
    with pytest.raises(RuntimeError, match="JupyterLab did not start; its log ends"):
        wait(lambda port: code)
