"""Firefox and WebKit for the tests, each by what it speaks itself: no driver has to be downloaded.

Firefox answers WebDriver BiDi over a web socket, WebKitGTK's own driver the classic WebDriver over HTTP. Only what the
tests need is here: open a page, run a script, collect what the page complains of.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

import websocket

WAIT = 60
"""Seconds in which an engine has to start, and a script to end."""
COMPLAINTS = """
<script>
window.complaints = [];
addEventListener('error', (event) => window.complaints.push(String(event.message)));
addEventListener('unhandledrejection', (event) => window.complaints.push(String(event.reason)));
const { error } = console;
console.error = (...words) => { window.complaints.push(words.map(String).join(' ')); error(...words); };
</script>
"""
"""To stand in the head of a page, so that `window.complaints` tells what went wrong in it."""


class Engine(Protocol):
    """What the tests ask of a browser."""

    def open(self, address: str) -> None:
        """Load a page to its load event."""

    def run(self, body: str) -> Any:
        """Run the body of an async function in the page; returns what JSON can hold."""


def free_port() -> int:
    """A port that nobody uses."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Firefox:
    """A Firefox that answers on a web socket (https://w3c.github.io/webdriver-bidi)."""

    def __init__(self, port: int) -> None:
        self.socket = _until(lambda: _connected(f"ws://127.0.0.1:{port}/session"))
        self.n_sent = 0
        self._send("session.new", capabilities={})
        self.tab = self._send("browsingContext.getTree")["contexts"][0]["context"]

    def _send(self, method: str, **parameters: Any) -> Any:
        self.n_sent += 1
        self.socket.send(json.dumps({"id": self.n_sent, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == self.n_sent:
                if answer["type"] == "error":
                    raise RuntimeError(f"{method}: {answer['message']}")
                return answer["result"]

    def open(self, address: str) -> None:
        self._send("browsingContext.navigate", context=self.tab, url=address, wait="complete")

    def run(self, body: str) -> Any:
        function = f"async () => JSON.stringify(await (async () => {{ {body} }})() ?? null)"
        given = {"functionDeclaration": function, "awaitPromise": True, "target": {"context": self.tab}}
        answer = self._send("script.callFunction", **given)
        if answer["type"] == "exception":
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"]["value"])


class WebKit:
    """A MiniBrowser of WebKitGTK, led by WebKitWebDriver (https://w3c.github.io/webdriver)."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        options = {"binary": str(mini_browser()), "args": ["--automation"]}
        capabilities = {"capabilities": {"alwaysMatch": {"webkitgtk:browserOptions": options}}}
        session = _until(lambda: self._ask("POST", "/session", capabilities))
        self.address += f"/session/{session['sessionId']}"
        self._ask("POST", "/timeouts", {"script": 1000 * WAIT, "pageLoad": 1000 * WAIT})

    def _ask(self, method: str, path: str, body: dict | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=WAIT) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{path}: {error.read().decode()[:500]}") from None

    def open(self, address: str) -> None:
        self._ask("POST", "/url", {"url": address})

    def run(self, body: str) -> Any:
        script = (
            f"const done = arguments[0]; (async () => {{ {body} }})().then("
            "(value) => done(JSON.stringify([value ?? null])), (error) => done(JSON.stringify([null, String(error)])));"
        )
        value, *error = json.loads(self._ask("POST", "/execute/async", {"script": script, "args": []}))
        if error:
            raise RuntimeError(error[0])
        return value


def mini_browser() -> Path | None:
    """The browser that comes with WebKitGTK."""
    return next(iter(sorted(Path("/usr/lib").glob("*/webkit2gtk-4.*/MiniBrowser"), reverse=True)), None)


def is_installed(name: str) -> bool:
    """Whether this machine has what the engine needs."""
    if name == "firefox":
        return bool(shutil.which("firefox-esr") or shutil.which("firefox"))
    return bool(shutil.which("WebKitWebDriver") and mini_browser() and shutil.which("Xvfb"))


@contextmanager
def open_engine(name: str, folder: Path) -> Iterator[Engine]:
    """Start an engine whose files stay in the folder; it ends with the context."""
    port = free_port()
    with ExitStack() as stack:
        if name == "firefox":
            program = shutil.which("firefox-esr") or "firefox"
            command = [program, "--headless", "--profile", folder, f"--remote-debugging-port={port}", "--no-remote"]
            stack.enter_context(_running(command, folder, {}))
            firefox = Firefox(port)
            stack.callback(firefox.socket.close)
            yield firefox
            return
        display = f":{port}"
        stack.enter_context(_running(["Xvfb", display, "-screen", "0", "1280x900x24"], folder, {}))
        settings = {"DISPLAY": display, "WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1", "LIBGL_ALWAYS_SOFTWARE": "1"}
        stack.enter_context(_running(["WebKitWebDriver", f"--port={port}"], folder, settings))
        yield WebKit(port)


@contextmanager
def _running(command: list, folder: Path, settings: dict[str, str]) -> Iterator[None]:
    log = (folder / f"{Path(command[0]).name}.log").open("wb")
    home = {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder), "NO_AT_BRIDGE": "1"}
    process = subprocess.Popen(
        command, stdout=log, stderr=log, env=os.environ | home | settings, start_new_session=True
    )
    try:
        yield
    finally:
        os.killpg(process.pid, 15)
        process.wait(WAIT)
        log.close()


def _connected(address: str) -> websocket.WebSocket:
    return websocket.create_connection(address, timeout=WAIT, suppress_origin=True)


def _until(act: Any) -> Any:
    """Try until it answers."""
    end = time.monotonic() + WAIT
    while True:
        try:
            return act()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
