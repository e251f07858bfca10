"""How fast the Transformer of the first page learns in a browser, how smoothly it draws meanwhile, and what it keeps.

    python benchmarks/playground.py [--sections speed memory] [--minutes 5] [--no-record]

`PlaygroundExplorer` is opened from disk in Chromium and learns to reverse eight letters. ``learned_s`` is the time from
the reader's press to the first picture that shows nine in ten right, ``ended_s`` to the end of the 300 steps, of which
no more than 75 a second are made, so that there is something to watch. ``frames_a_second`` counts what the page may
draw and ``pictures_a_second`` what it draws anew; ``long_tasks`` counts what keeps the page's own thread for more than
50 ms at a time. ``slowed`` is Chromium's own throttling, as for a phone. It slows the page, and not its workers, so the
row without a worker, where the page's thread computes too, is the one to read there. ``bare`` is the computing alone,
as fast as it goes.

Then the training goes on for ``--minutes``: every ten seconds, after a collection, the page's heap, the memory of
Chromium's renderers as the system counts it, and the elements of the page. Writes benchmarks/results/playground.json.
"""

import argparse
import gzip
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page

from experiments import _record
from tests.book.browser import open_browser
from ttutor.widgets import PlaygroundExplorer, static
from ttutor.widgets.playground import engine_source

RESULT = Path(__file__).resolve().parent / "results" / "playground.json"
PHONE = 4
EVERY = 10
FORBIDDEN = "window.Worker = function () { throw new Error('forbidden'); };"
WATCHED = """
async () => {
  const root = document.querySelector('[data-explorer]').firstElementChild.shadowRoot;
  const [card, looks] = [root.querySelector('section'), root.querySelector('svg')];
  const [long, frames] = [[], []];
  const watcher = new PerformanceObserver((all) => long.push(...all.getEntries().map((one) => one.duration)));
  watcher.observe({ entryTypes: ['longtask'] });
  let [pictures, drawn, learned] = [0, false, null];
  new MutationObserver(() => { drawn = true; }).observe(looks, { subtree: true, attributes: true, childList: true });
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  [...root.querySelectorAll('button')].find((one) => one.textContent === 'Yes').click();
  const begun = performance.now();
  while (card.getAttribute('aria-busy') === 'true') {
    frames.push(await frame());
    if (drawn) pictures += 1;
    drawn = false;
    const share = Number(root.querySelector('[data-key=share]')?.textContent.match(/\\d+/)?.[0]);
    if (share >= 90) learned ??= performance.now() - begun;
  }
  const seconds = (performance.now() - begun) / 1000;
  const pauses = frames.slice(1).map((one, i) => one - frames[i]);
  await frame();
  return {
    learned_s: learned && learned / 1000, ended_s: seconds, frames_a_second: frames.length / seconds,
    pictures_a_second: pictures / seconds, longest_pause_ms: Math.max(...pauses), long_tasks: long.length,
    longest_task_ms: Math.max(0, ...long), says: root.querySelector('.tt-found').textContent,
  };
}
"""
BARE = """
([source, parts]) => {
  const engine = new Function(`return ${source}`)();
  const training = new engine.Training('reverse', 1);
  let [learned, seconds, steps] = [null, 0, 300];
  for (let step = 0; step < steps; step += 1) {
    const begun = performance.now();
    training.step(parts, 0.003);
    seconds += (performance.now() - begun) / 1000;
    if (step % 10 === 9 && training.right(parts) > 0.9) learned ??= seconds;
  }
  return { learned_s: learned, steps_a_second: steps / seconds };
}
"""
PARTS = {"positions": True, "causal": False, "heads": 2, "skips": True, "norm": True, "layers": 1}
GO_ON = """
() => {
  const root = document.querySelector('[data-explorer]').firstElementChild.shadowRoot;
  [...root.querySelectorAll('button')].find((one) => one.textContent === 'Go on' && one.checkVisibility())?.click();
}
"""


def opened(browser: Browser, folder: Path, slowed: int, worker: bool) -> tuple[Page, CDPSession]:
    """The figure from disk in a page of its own, and what talks to its browser."""
    page = browser.new_context(viewport={"width": 1200, "height": 900}).new_page()
    page.set_default_timeout(120_000)
    if not worker:
        page.add_init_script(FORBIDDEN)
    page.goto(PlaygroundExplorer().save(folder / "page.html").as_uri())
    page.locator("[data-explorer][data-ready]").wait_for()
    talk = page.context.new_cdp_session(page)
    talk.send("Emulation.setCPUThrottlingRate", {"rate": slowed})
    return page, talk


def rounded(figures: dict[str, Any]) -> dict[str, Any]:
    return {name: round(one, 2) if isinstance(one, float) else one for name, one in figures.items()}


def measure(browser: Browser, folder: Path) -> list[dict[str, Any]]:
    """One row for each way to run it."""
    rows = []
    for slowed in (1, PHONE):
        for worker in (True, False):
            page, _ = opened(browser, folder, slowed, worker)
            rows.append({"slowed": slowed, "worker": worker, **rounded(page.evaluate(WATCHED))})
            print(json.dumps(rows[-1]), flush=True)
            page.context.close()
        page, _ = opened(browser, folder, slowed, worker=False)
        rows.append({"slowed": slowed, "bare": True, **rounded(page.evaluate(BARE, [engine_source(), PARTS]))})
        print(json.dumps(rows[-1]), flush=True)
        page.context.close()
    return rows


def renderers_mb(browser: Browser) -> float:
    """What the browser's renderers keep for themselves in memory, as Linux counts it."""
    found = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    total = 0.0
    for one in found:
        if one["type"] == "renderer":
            lines = Path(f"/proc/{one['id']}/status").read_text(encoding="utf-8").splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024
    return total


def remember(browser: Browser, folder: Path, minutes: float) -> list[dict[str, float]]:
    """Let it learn on, and look every ten seconds at what it keeps."""
    page, talk = opened(browser, folder, 1, worker=True)
    page.get_by_role("button", name="Yes", exact=True).click()
    begun, rows = time.monotonic(), []
    while (now := time.monotonic() - begun) < 60 * minutes:
        if now >= EVERY * (len(rows) + 1):
            talk.send("HeapProfiler.collectGarbage")
            usage, dom = talk.send("Runtime.getHeapUsage"), talk.send("Memory.getDOMCounters")
            heap = (usage["usedSize"] + usage.get("backingStorageSize", 0)) / 1e6
            rows.append(
                rounded({"s": now, "heap_mb": heap, "renderers_mb": renderers_mb(browser), "nodes": dom["nodes"]})
            )
            print(json.dumps(rows[-1]), flush=True)
        page.evaluate(GO_ON)
        page.wait_for_timeout(500)
    page.context.close()
    return rows


def bundle() -> dict[str, int]:
    """The bytes of the book's scripts, gzipped: for every page with explorers, and for pages with the playground."""
    scripts = {"all_pages": static.static_script(apart=static._APART), "playground": static.part_script("playground")}
    return {name: len(gzip.compress(script.encode(), mtime=0)) for name, script in scripts.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sections", nargs="+", choices=("speed", "memory"), default=["speed", "memory"])
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--no-record", action="store_true", help="print alone")
    wish = parser.parse_args()
    record = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        made = {
            "command": _record.command_line("playground", sys.argv[1:]).replace("experiments/", "benchmarks/"),
            "machine": _record.machine(),
            "browser": f"Chromium {browser.version}",
            "load_average": os.getloadavg()[0],
        }
        record["gzipped_bytes"] = bundle()
        if "speed" in wish.sections:
            record["speed"] = made | {"rows": measure(browser, Path(folder))}
        if "memory" in wish.sections:
            record["memory"] = made | {"rows": remember(browser, Path(folder), wish.minutes)}
    if not wish.no_record:
        RESULT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        print(RESULT)


if __name__ == "__main__":
    main()
