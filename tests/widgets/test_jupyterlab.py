"""The explorer in JupyterLab with a kernel: what the reader does arrives in Python, and what Python sets is drawn."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.book.browser import Visit, watch

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.browser, pytest.mark.soak]

# The observer answers the reader's click by setting another trait: one round trip shows both directions.
CODE = """
import json, pathlib
from ttutor.widgets import AttentionExplorer, live

explorer = AttentionExplorer(["the", "cat", "sat"], [[1.0, 0.0, 2.0], [0.5, 0.5, 0.0], [0.0, 3.0, 1.0]])

def note(change):
    pathlib.Path("selected.json").write_text(json.dumps(change["new"]))
    explorer.temperature = 0.3

explorer.observe(note, names="selected")
explorer
"""
LIVE = 'live(lambda text: f"{len(text)} letters", text="attention")'


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """A JupyterLab server over a folder with one notebook, and its address."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in (CODE, LIVE)])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, tmp_path / "try.ipynb")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", "--IdentityProvider.token="]
    command = [sys.executable, "-m", "jupyterlab", *options, f"--ServerApp.port={port}"]
    environment = os.environ | {"JUPYTER_CONFIG_DIR": str(tmp_path / "config"), "PYTHONPATH": str(ROOT)}
    with (tmp_path / "lab.log").open("w") as log:
        server = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait_for(f"http://127.0.0.1:{port}/api/status", tmp_path / "lab.log")
            yield f"http://127.0.0.1:{port}/lab/tree/try.ipynb"
        finally:
            server.terminate()
            server.wait(timeout=30)


def _wait_for(url: str, log: Path, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()[-2000:]}")


def run_all(page: Page, address: str) -> None:
    """Open the notebook and run its cells, once there is a kernel to run them."""
    page.goto(address)
    page.locator(".jp-Notebook .jp-CodeCell").nth(1).wait_for(timeout=60_000)
    expect(page.locator(".jp-StatusBar-Widget")).to_contain_text("| Idle", timeout=60_000)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()


def test_traits_travel_both_ways(browser: Browser, lab: str, tmp_path: Path) -> None:
    context = browser.new_context(viewport={"width": 1200, "height": 1000})
    page = context.new_page()
    seen = Visit(lab)
    watch(page, seen)
    run_all(page, lab)

    cell = page.locator('.jp-OutputArea-output [data-row="2"][data-column="1"]')
    cell.click(timeout=60_000)
    expect(page.get_by_label("Temperature")).to_have_attribute("aria-valuetext", "0.3", timeout=30_000)
    assert json.loads((tmp_path / "selected.json").read_text()) == [2, 1]
    expect(page.locator(".tt-found")).to_contain_text("“sat” → “cat”: weight 0.999")

    text = page.get_by_label("text", exact=True)
    text.fill("softmax!")
    text.press("Enter")
    expect(page.get_by_text("8 letters")).to_be_visible(timeout=30_000)
    page.screenshot(path=tmp_path / "lab.png")
    assert "script error" not in seen.findings, str(seen)
    context.close()
