"""One Jupyter server and one Chromium, and a notebook in them as a person sees it.

JupyterLab and Notebook 7 are served by the same server. What a person clicks and types goes through the page; what is
only a way to get there (run a cell, save, change the theme) goes through the front end's own commands.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import nbformat
from playwright.sync_api import Browser, Error, Locator, Page, TimeoutError, sync_playwright

FrontEnd = Literal["lab", "notebook"]
FRONT_ENDS: tuple[FrontEnd, ...] = ("lab", "notebook")
CHROMIUM = os.environ.get("PI_NOTEBOOK_TEST_CHROMIUM", "/usr/bin/chromium")
REPOSITORY = Path(__file__).resolve().parents[2]
SCREENSHOTS = REPOSITORY / "build" / "screenshots"
PATIENCE = 60_000
"""Milliseconds until a test gives up on something that ought to happen; not a figure of speed."""

_CHROMIUM_ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass
class Server:
    """A running Jupyter server on a port and with a token of its own."""

    url: str
    token: str
    root: Path
    process: subprocess.Popen[bytes]

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Call the server's REST API; returns the JSON of the reply, or None."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, method=method)
        request.add_header("Authorization", f"token {self.token}")
        with urllib.request.urlopen(request, timeout=30) as reply:
            text = reply.read()
        return json.loads(text) if text else None

    def write_notebook(self, name: str, cells: Sequence[str], kernel: str = "python3") -> Path:
        """Make `name` with code cells; returns its path."""
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(source) for source in cells],
            metadata={"kernelspec": {"name": kernel, "display_name": kernel, "language": "python"}},
        )
        path = self.root / name
        nbformat.write(notebook, path)
        return path

    def read_notebook(self, name: str) -> Any:
        """The notebook as it stands on disk."""
        return nbformat.read(self.root / name, as_version=4)

    def copy_untrusted(self, name: str, copy: str) -> None:
        """Copy a notebook with a change that its signature does not cover."""
        notebook = self.read_notebook(name)
        notebook.metadata["somebody_else"] = secrets.token_hex(8)
        for cell in notebook.cells:
            cell.metadata.pop("trusted", None)
        nbformat.write(notebook, self.root / copy)

    def shut_kernels_down(self) -> None:
        """End all sessions, and with them their kernels."""
        for session in self.request("GET", "api/sessions"):
            self.request("DELETE", f"api/sessions/{session['id']}")


@contextmanager
def running_server(folder: Path) -> Iterator[Server]:
    """Start a server whose files, settings and trust are all under `folder`."""
    root, home = folder / "notebooks", folder / "home"
    root.mkdir()
    home.mkdir()
    news = home / "settings" / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    news.parent.mkdir(parents=True)
    news.write_text('{"fetchNews": "false", "checkForUpdates": false}')
    token = secrets.token_hex(16)
    environment = {
        **os.environ,
        "HOME": str(home),
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
    }
    environment.pop("JUPYTER_PATH", None)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1"]
    command += ["--ServerApp.port=0", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={root}"]
    command += ["--LabApp.expose_app_in_browser=True", "--JupyterNotebookApp.expose_app_in_browser=True"]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=root)
    try:
        url = _wait_for_address(process, home / "runtime", folder / "server.log")
        yield Server(url, token, root, process)
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()


def _wait_for_address(process: subprocess.Popen[bytes], runtime: Path, log: Path) -> str:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and process.poll() is None:
        for path in runtime.glob(f"jpserver-{process.pid}.json"):
            try:
                url = str(json.loads(path.read_text())["url"]).replace("localhost", "127.0.0.1")
                urllib.request.urlopen(f"{url}api", timeout=5)
            except (ValueError, OSError):
                break
            return url
        time.sleep(0.1)
    raise RuntimeError(f"The Jupyter server did not come up:\n{log.read_text()[-4000:]}")


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """Debian's Chromium, driven by Playwright."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_CHROMIUM_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


class Notebook:
    """A notebook that is open in a page.

    Attributes:
        requests: Addresses that the page asked for outside the server, and thus must not have.
        dialogs: Texts of `alert` and the like.
    """

    def __init__(self, server: Server, page: Page, front_end: FrontEnd) -> None:
        self.server = server
        self.page = page
        self.front_end = front_end
        self.name = ""
        self.requests: list[str] = []
        self.dialogs: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("request", self._on_request)
        page.on("dialog", self._on_dialog)

    def _on_request(self, request: Any) -> None:
        if not request.url.startswith((self.server.url, self.server.url.replace("http", "ws", 1), "data:", "blob:")):
            self.requests.append(request.url)

    def _on_dialog(self, dialog: Any) -> None:
        if dialog.type != "beforeunload":
            self.dialogs.append(dialog.message)
        dialog.accept()

    # Opening

    def open(self, name: str) -> None:
        """Open the notebook `name` and wait until its kernel is there.

        Once in a few dozen times JupyterLab never hears of a kernel that is up and idle; then the page is loaded again,
        as a person would.
        """
        self.name = name
        self._go()
        try:
            self.wait_idle(15_000)
        except TimeoutError:
            self.reload()

    def reload(self, *, wait: bool = True) -> None:
        """Load the page again, as F5 does. `wait`: until the kernel is idle."""
        self._go()
        if wait:
            self.wait_idle()

    def _go(self) -> None:
        path = f"lab/tree/{self.name}?reset" if self.front_end == "lab" else f"notebooks/{self.name}"
        joint = "&" if "?" in path else "?"
        self.page.goto(f"{self.server.url}{path}{joint}token={self.server.token}", wait_until="domcontentloaded")
        self.page.wait_for_function("() => window.jupyterapp && window.jupyterapp.shell.currentWidget?.content?.model")
        self.page.wait_for_function("() => window.jupyterapp.shell.currentWidget.context.isReady")
        self.page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
        if self.front_end == "lab":
            self.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")

    def wait_idle(self, patience: float = PATIENCE) -> None:
        """Wait until the kernel has nothing to do; `patience` in milliseconds."""
        self.page.wait_for_function(
            "() => window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'",
            timeout=patience,
        )

    # Doing

    def command(self, name: str, arguments: Any = None, *, wait: bool = True) -> Any:
        """Run a command of the front end. `wait`: until it has ended."""
        script = "([name, args]) => { window.jupyterapp.commands.execute(name, args ?? {}) }"
        if wait:  # `evaluate` itself would wait for ever
            script = """([name, args, patience]) => Promise.race([
                window.jupyterapp.commands.execute(name, args ?? {}).then(() => null),
                new Promise((_, fail) => setTimeout(() => fail(new Error(`${name} does not end`)), patience)),
            ])"""
        return self.page.evaluate(script, [name, arguments, PATIENCE])

    def run(self, *indexes: int, wait: bool = False) -> None:
        """Run cells, as Ctrl-Enter in each does. `wait`: until the kernel is idle again."""
        for index in indexes:
            self.page.evaluate("i => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = i }", index)
            self.command("notebook:run-cell", wait=wait)
        if wait:
            self.wait_idle()

    def run_all(self) -> None:
        """Run All, without waiting for its end."""
        self.command("notebook:run-all-cells", wait=False)

    def interrupt(self) -> None:
        """The kernel's interrupt, as the square button does it."""
        self.command("notebook:interrupt-kernel", wait=False)

    def save(self) -> None:
        """Save, and wait until the file is written."""
        self.command("docmanager:save")

    def shut_kernel_down(self) -> None:
        """End this notebook's kernel."""
        self.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")

    def theme(self, dark: bool) -> None:
        """Change the theme and wait until it is there."""
        name = "JupyterLab Dark" if dark else "JupyterLab Light"
        self.command("apputils:change-theme", {"theme": name})
        self.page.wait_for_function(f"() => document.body.dataset.jpThemeName === {json.dumps(name)}")
        self.page.wait_for_function("() => !document.getElementById('jupyterlab-splash')")

    def width(self, pixels: int, height: int = 900) -> None:
        """Set the page's size."""
        self.page.set_viewport_size({"width": pixels, "height": height})

    # Looking

    def cell(self, index: int) -> Locator:
        return self.page.locator(".jp-Notebook .jp-Cell").nth(index)

    def output(self, index: int) -> Locator:
        """Everything that cell `index` has put out."""
        return self.cell(index).locator(".jp-Cell-outputArea")

    def text(self, index: int) -> str:
        """The visible text of a cell's output."""
        try:
            return self.output(index).inner_text(timeout=5_000)
        except Error:
            return ""

    def wait_text(self, index: int, text: str) -> None:
        """Wait until the output of cell `index` shows `text`."""
        self.output(index).get_by_text(text).first.wait_for()

    def button(self, name: str, index: int | None = None) -> Locator:
        """The button with exactly this name, anywhere or in the output of a cell."""
        scope: Any = self.page.locator(".jp-Notebook") if index is None else self.output(index)
        return scope.get_by_role("button", name=name, exact=True)

    def click(self, name: str, index: int | None = None, *, nth: int = 0) -> None:
        """Click a button by its name."""
        self.button(name, index).nth(nth).click()

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until `condition` holds, letting the page go on meanwhile."""
        deadline = time.monotonic() + PATIENCE / 1000
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"this never happened: {what}")
            self.page.wait_for_timeout(50)

    def execution_count(self, index: int) -> int | None:
        """The number in `[n]:` of a cell; None while it has not ended."""
        count: int | None = self.page.evaluate(
            "i => window.jupyterapp.shell.currentWidget.content.widgets[i].model.executionCount ?? null", index
        )
        return count

    def screenshot(self, name: str, index: int | None = None) -> Path:
        """Keep a picture of the page, or of one cell, as `build/screenshots/NAME.png`."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        (self.page if index is None else self.cell(index)).screenshot(path=path)
        return path

    @property
    def pwned(self) -> bool:
        """Whether a script that came as text has run in the page."""
        return bool(self.page.evaluate("() => Boolean(window.pwned)"))


@contextmanager
def open_notebook(server: Server, browser: Browser, front_end: FrontEnd) -> Iterator[Notebook]:
    """A fresh page, with nothing opened in it."""
    context = browser.new_context(viewport={"width": 1100, "height": 900})
    try:
        yield Notebook(server, context.new_page(), front_end)
    finally:
        context.close()
        server.shut_kernels_down()
