"""A JupyterLab server of our own, and what a learner does in one of its notebooks."""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import psutil

from lesson_lib.cli import lab

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "browser-tests"
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
READY = """async (path) => {
    const app = window.jupyterapp; await app.restored;
    let panel = app.shell.currentWidget;
    for (let i = 0; i < 300 && !(panel && panel.sessionContext && panel.context.path === path); i++) {
        await new Promise(r => setTimeout(r, 100)); panel = app.shell.currentWidget;
    }
    await panel.context.ready; await panel.revealed; await panel.sessionContext.ready;
    app.shell.collapseLeft(); app.shell.collapseRight && app.shell.collapseRight();
}"""
OPEN = "async path => { await window.jupyterapp.commands.execute('docmanager:open', {path}) }"
WIDGETS = ".jp-OutputArea-output > .jupyter-widgets"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
CONTROLS = {  # in the order in which they are tried; a film is played last, since it goes on by itself
    "slider": ".noUi-handle",
    "choice": "select, input[type=radio], input[type=checkbox]",
    "button": ":not(.widget-play) > button:enabled",
    "film": ".widget-play > button:enabled:first-child",
}
KEYS = {
    "slider": ("ArrowRight", "ArrowLeft"),
    "choice": ("ArrowDown", "ArrowUp", "Space"),
    "button": ("Enter",),
    "film": ("Enter",),
}
DIGEST = """root => [...root.querySelectorAll('.widget-html-content, .widget-image, img, svg, canvas')]
    .map(e => e.tagName === 'CANVAS' ? e.toDataURL() : e.tagName === 'IMG' ? e.src : e.outerHTML).join('|')"""
CURRENT = "window.jupyterapp.shell.currentWidget"
PANEL = "window.lessonPanel"  # the notebook's own, whatever view has the focus
WIDE = {"width": 1400, "height": 1000}
# The kernel answers in order: what it was sent before is done, and its words are here, when it has run
# nothing at all.
ANSWERED = f"""async () => {{
    await {PANEL}.sessionContext.session.kernel.requestExecute({{code: '', silent: true}}).done;
}}"""
STILL_S = 0.5  # the kernel has answered; a picture that still does not change within this does not change
FILM_S = 10  # a film waits between two pictures


def settings(theme: str = "light") -> str:
    """JupyterLab's settings as the text of overrides.json: all cells are drawn, in that theme."""
    chosen = {
        "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
        "@jupyterlab/apputils-extension:themes": {"theme": THEMES[theme]},
    }
    return json.dumps(chosen)


@contextmanager
def server(folder: Path, scratch: Path, *, steps: str | None = "quick", theme: str = "light"):
    """A JupyterLab in `folder` with settings and progress of its own in `scratch`; gives its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    own = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR")
    own += ("JUPYTERLAB_WORKSPACES_DIR", "IPYTHONDIR", "LESSON_HOME")
    environment = lab.environment() | {name: str(scratch / name.lower()) for name in own}
    environment |= {"OMP_NUM_THREADS": "1", "LESSON_DEVICE": os.environ.get("LESSON_DEVICE", "cpu")}
    environment.pop("LESSON_PROGRESS", None)  # a learner has bars and buttons
    environment |= {"LESSON_STEPS": steps} if steps else {}
    if not steps:
        environment.pop("LESSON_STEPS", None)
    app = scratch / "app_settings"
    app.mkdir(parents=True, exist_ok=True)
    (scratch / "jupyterlab_settings_dir").mkdir(exist_ok=True)
    (app / "overrides.json").write_text(settings(theme), encoding="utf-8")
    command = lab.command(folder, port=port, browser=False)
    command += [
        f"--IdentityProvider.token={TOKEN}",
        "--LabApp.expose_app_in_browser=True",
        f"--LabApp.app_settings_dir={app}",
    ]
    address = f"http://127.0.0.1:{port}"
    with open(scratch / "jupyterlab.log", "w", encoding="utf-8") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
        try:
            _wait(process, f"{address}/api?token={TOKEN}", scratch / "jupyterlab.log")
            yield address
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait(process: subprocess.Popen, url: str, log: Path, patience_s: float = 60) -> None:
    """Until the server answers. On a busy machine that takes long; a server that is stuck stands still, or
    computes for ever."""
    spent, since = 0.0, time.monotonic()
    while process.poll() is None and max(spent, time.monotonic() - since) < patience_s:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.2)
        now = sum(psutil.Process(process.pid).cpu_times()[:2])
        if now > spent:
            spent, since = now, time.monotonic()
    raise RuntimeError(f"JupyterLab did not start; its log ends:\n{log.read_text(encoding='utf-8')[-2000:]}")


class Notebook:
    """One notebook, open in a page."""

    def __init__(self, page, address: str, name: str):
        self.page, self.name, self.ran = page, name, False
        self.address = f"{address}/lab/tree/{name}?token={TOKEN}&reset"
        self._open()

    def _open(self) -> None:
        self.page.set_default_timeout(60_000)
        if self.page.url.startswith("http"):  # JupyterLab is there; to load it again takes seconds
            self.page.evaluate(OPEN, self.name)
        else:
            self.page.goto(self.address)
            self.page.wait_for_function("() => window.jupyterapp")
        self.page.evaluate(READY, self.name)
        self.page.evaluate(f"() => {{ {PANEL} = {CURRENT} }}")

    def show(self) -> None:
        """Bring it to the front, 1,400 pixels wide; other views are closed."""
        self.page.set_viewport_size(WIDE)
        self.page.evaluate(
            f"""async path => {{
                const shell = window.jupyterapp.shell;
                for (const other of [...shell.widgets('main')]) if (!other.context) other.close();
                await ({OPEN})(path);
            }}""",
            self.name,
        )
        self.settle()

    def shut_down(self) -> None:
        """End its kernel and take it, and whatever else was opened, from the page. It is not saved."""
        self.page.evaluate(
            f"""async () => {{
                await {PANEL}.sessionContext.shutdown();
                for (const view of [...window.jupyterapp.shell.widgets('main')]) view.dispose();
            }}"""
        )

    def run_all(self, seconds: float = 600) -> bool:
        """Run > Run All Cells; True when all of them ran without an error."""
        self.page.evaluate(
            "() => { window.lessonRun = undefined; "
            "window.jupyterapp.commands.execute('notebook:run-all-cells')"
            ".then(r => { window.lessonRun = r === true }, () => { window.lessonRun = false }) }"
        )
        self.page.wait_for_function("() => window.lessonRun !== undefined", timeout=seconds * 1000)
        self.settle()
        return self.page.evaluate("() => window.lessonRun")

    def theme(self) -> str:
        """The theme that JupyterLab wears: "light" or "dark"."""
        name = self.page.evaluate("() => document.body.dataset.jpThemeName")
        return next(theme for theme, called in THEMES.items() if called == name)

    def wear(self, theme: str) -> None:
        """Put on a theme, "light" or "dark", and wait until its colours are there. The server keeps it for
        other pages."""
        name = THEMES[theme]
        if self.theme() == theme:
            return
        self.page.evaluate(
            "name => window.jupyterapp.commands.execute('apputils:change-theme', {theme: name})", name
        )
        self.page.wait_for_function("name => document.body.dataset.jpThemeName === name", arg=name)
        self.settle()

    def settle(self) -> None:
        """Wait until the page has drawn what it was given."""
        self.page.evaluate("() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")

    def cells(self) -> list[dict]:
        """The notebook's cells, with their outputs, as the browser holds them."""
        return self.page.evaluate(f"() => {PANEL}.content.model.toJSON().cells")

    def troubles(self) -> list[str]:
        """Error outputs and standard error, as 'cell 3: NameError: ...'."""
        found = []
        for number, cell in enumerate(self.cells(), 1):
            for output in cell.get("outputs", []):
                if output["output_type"] == "error":
                    found.append(f"cell {number}: {output['ename']}: {output['evalue']}")
                elif output.get("name") == "stderr":
                    found.append(f"cell {number}: standard error: {''.join(output['text'])[:200]}")
        return found

    def cell(self, index: int):
        """The element of a cell (index among all cells)."""
        return self.page.locator(".jp-Notebook-cell").nth(index)

    def find(self, text: str) -> int:
        """The index of the first code cell whose source contains `text`."""
        for index, cell in enumerate(self.cells()):
            if cell["cell_type"] == "code" and text in "".join(cell["source"]):
                return index
        raise LookupError(f"no code cell of {self.name} contains {text!r}")

    def type_into(self, index: int, source: str) -> None:
        """Click into a cell and replace what stands there, key by key, as a learner would."""
        editor = self.cell(index).locator(".cm-content")
        editor.scroll_into_view_if_needed()
        editor.click()
        keyboard = self.page.keyboard
        keyboard.press("ControlOrMeta+a")
        keyboard.press("Delete")
        for number, line in enumerate(source.split("\n")):
            if number:
                keyboard.press("Enter")
                keyboard.press("Shift+Home")  # the editor indents by itself; we type our own spaces over that
            keyboard.type(line)
            keyboard.press("Escape") if self.page.locator(".jp-Completer").is_visible() else None
        typed = "".join(self.cells()[index]["source"])
        if [line.rstrip() for line in typed.split("\n")] != [line.rstrip() for line in source.split("\n")]:
            raise RuntimeError(
                f"the editor made something else of what was typed:\n{typed}\ninstead of\n{source}"
            )

    def run_here(self, index: int) -> None:
        """Run one cell and wait for its end."""
        self.page.evaluate(
            f"""async (index) => {{
                const panel = {PANEL}; panel.content.activeCellIndex = index;
                await window.jupyterapp.commands.execute('notebook:run-cell');
            }}""",
            index,
        )
        self.settle()

    def start_here(self, index: int) -> None:
        """Run one cell, and do not wait for its end."""
        self.select(index)
        self.page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-cell') }")

    def save_and_open_again(self) -> None:
        """Save it, end its kernel, and open it in another page, where no cell has run."""
        self.page.evaluate(
            f"async () => {{ await {PANEL}.context.save(); await {PANEL}.sessionContext.shutdown() }}"
        )
        old, self.page = self.page, self.page.context.new_page()
        old.close()
        self._open()
        self.settle()

    def select(self, index: int) -> None:
        """Make a cell the active one."""
        self.page.evaluate(f"index => {{ {PANEL}.content.activeCellIndex = index }}", index)

    def colour(self, element, what: str) -> list[int]:
        """Red, green and blue of one of an element's colours, as the browser draws it."""
        text = element.evaluate("(e, what) => getComputedStyle(e).getPropertyValue(what)", what)
        return [int(float(part)) for part in re.findall(r"[\d.]+", text)[:3]]

    def output(self, index: int):
        """The element of a cell's outputs."""
        return self.cell(index).locator(".jp-Cell-outputWrapper")

    def second_view(self) -> "Widget":
        """The active cell's widget in a second view (menu: Create New View for Cell Output)."""
        path = self.name
        self.page.evaluate(
            "async () => { await window.jupyterapp.commands.execute('notebook:create-output-view') }"
        )
        clone = self.page.locator(".jp-LinkedOutputView .jp-OutputArea-output > .jupyter-widgets").first
        clone.wait_for()
        self.page.evaluate(OPEN, path)
        return Widget(self.page, clone)

    def widget(self, made_by: str) -> "Widget":
        """The widget below the first cell that contains `made_by`, made anew: whatever was done to it before
        is forgotten.

        Where later cells have used its names for something else, all cells run again.
        """
        index = self.find(made_by)
        self.run_here(index)
        if any(output["output_type"] == "error" for output in self.cells()[index]["outputs"]):
            self.run_all()
        made = self.cell(index).locator(WIDGETS).first
        made.wait_for()
        return Widget(self.page, made)

    def widgets(self) -> list["Widget"]:
        """The widgets that stand in the notebook's outputs, once all of them are drawn; no cards that ask."""
        outputs = [output for cell in self.cells() for output in cell.get("outputs", [])]
        wanted = sum(WIDGET_VIEW in output.get("data", {}) for output in outputs)
        self.page.wait_for_function(
            "([css, n]) => document.querySelectorAll(css).length >= n", arg=[WIDGETS, wanted]
        )
        moving = self.page.locator(f"{WIDGETS}:not(.ll-card)")
        return [Widget(self.page, moving.nth(i)) for i in range(moving.count())]


class Widget:
    """One widget in an output: its controls, and what it shows."""

    def __init__(self, page, root):
        self.page, self.root = page, root

    def cell_index(self) -> int:
        """The index of the cell that it stands below."""
        return self.root.evaluate(
            "e => [...document.querySelectorAll('.jp-Notebook-cell')].indexOf(e.closest('.jp-Notebook-cell'))"
        )

    def controls(self, kind: str) -> list:
        """Its controls of one kind that can be seen: slider, choice, button, film."""
        found = self.root.locator(CONTROLS[kind])
        return [found.nth(i) for i in range(found.count()) if found.nth(i).is_visible()]

    def shown(self) -> str:
        """What it shows, as text that changes when the picture changes."""
        return self.root.evaluate(f"root => ({DIGEST})(root)")

    def press(self, control, key: str, wait_s: float = 0) -> float | None:
        """Press a key on a control; the milliseconds until the picture changed, or None where it did not.

        It did not when the kernel has answered to all that it was sent, and what came back is drawn: on a
        busy machine this takes longer. `wait_s`: what changes by itself (a film) has so many seconds more.
        """
        control.scroll_into_view_if_needed()
        control.focus()
        self.root.evaluate(f"""root => {{
                const digest = {DIGEST}; const before = digest(root); let began = performance.now();
                document.addEventListener('keydown', () => {{ began = performance.now() }}, {{capture: true, once: true}});
                window.lessonMove = {{took: null}};
                const move = window.lessonMove;
                move.look = new MutationObserver(() => {{
                    if (move.took !== null || digest(root) === before) return;
                    move.took = performance.now() - began;
                }});
                move.look.observe(root, {{subtree: true, childList: true, attributes: true, characterData: true}});
            }}""")  # noqa: E501
        self.page.keyboard.press(key)
        self.page.evaluate(ANSWERED)
        took = self._moved(STILL_S)
        took = self._moved(wait_s) if took is None and wait_s else took
        self.page.evaluate("() => window.lessonMove.look.disconnect()")
        return took

    def _moved(self, seconds: float) -> float | None:
        return self.page.evaluate(
            """async seconds => {
                const end = performance.now() + 1000 * seconds;
                while (window.lessonMove.took === null && performance.now() < end)
                    await new Promise(r => requestAnimationFrame(r));
                return window.lessonMove.took;
            }""",
            seconds,
        )

    def move(self, control, kind: str) -> float | None:
        """Move a control by the keyboard, back where it is at its end; milliseconds, or None. A film is
        stopped at what it shows then: what is looked at next does not move by itself."""
        for key in KEYS[kind]:
            took = self.press(control, key, FILM_S if kind == "film" else 0)
            if kind == "film":
                control.evaluate("button => button.querySelector('.fa-pause') && button.click()")
                self.page.evaluate(ANSWERED)
            if took is not None:
                return took
        return None


class Bench:
    """One notebook at a time, open and run: many tests look at it, and the next one takes its place in the
    same page.

    So a notebook runs once, and one kernel at a time holds memory. The network is this machine alone.
    """

    def __init__(self, browser, address: str):
        context = browser.new_context(viewport=WIDE)
        here = (address, "data:", "blob:")
        context.route(lambda url: not url.startswith(here), lambda route: route.abort())
        self.page, self.address, self.open = context.new_page(), address, None

    def take(self, name: str) -> Notebook:
        """The notebook, run from top to bottom, in front, and wide."""
        if self.open is None or self.open.name != name:
            self.clear()
            self.open = Notebook(self.page, self.address, name)
            self.open.ran = self.open.run_all()
        self.open.show()
        return self.open

    def clear(self) -> None:
        """Put the open notebook away."""
        held, self.open = self.open, None
        if held is not None:
            held.shut_down()
            self.page = held.page


@contextmanager
def chromium():
    """A browser, driven by Playwright."""
    from playwright.sync_api import sync_playwright

    from lesson_lib.cli.chromium import FLAGS, find

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find(), args=FLAGS, headless=True)
        try:
            yield browser
        finally:
            browser.close()


def copies(scratch: Path, root: Path = ROOT) -> Path:
    """A learner's folder like work/: all notebooks but the solutions, copied."""
    folder = scratch / "work"
    for name in lab.lessons(root):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(lab.blank((root / "notebooks" / name).read_bytes()))
    folder.mkdir(exist_ok=True)
    return folder


if __name__ == "__main__":
    sys.exit(
        "this module is imported by the browser tests; for pictures of a notebook: python -m"
        " tests.browser.shots"
    )
