"""How fast a page of the built book is there, what it weighs, and how far things move while it loads.

    python benchmarks/pages.py [--rounds 3] [--pages 02-attention ...]

Each page of the book is opened from disk in a browser context of its own, with nothing cached, ``--rounds`` times at
each width; times are the medians. ``load_ms`` is the load event, ``explorers_ms`` the moment when the last explorer
stands (the load event where there is none), ``formulas_ms`` the moment when all formulas are set. ``own_bytes`` are
the bytes of the page, uncompressed, besides MathJax and the theme; ``shift`` is the cumulative layout shift.

The first page with its translator has two rows of its own, at full speed and with Chromium's own throttling to a
quarter of it, as for a phone: milliseconds to the load event, and, medians over sentences typed into it, from the last
key to the first token on the screen and to the last, the longest pause between two frames meanwhile, and the memory of
the page's scripts, the model included.

Needs the book (``make book``) and a Chromium. Writes benchmarks/results/pages.json: command, machine, figures.
"""

import argparse
import json
import os
import statistics
import sys
from pathlib import Path

from playwright.sync_api import Browser

from experiments import _record
from tests.book.browser import HTML, Visit, open_browser, reader, serve, settle

BENCHMARKS = Path(__file__).resolve().parent
WIDTHS = (360, 1200)
PATIENCE = 120
FIRST_PAGE = "book/intro.html"
PHONE = 4
"""How many times a phone is taken to be slower."""

NOTE_MOUNTS = """
new MutationObserver((all) => {
  for (const one of all) if (one.target.dataset && one.target.dataset.ready) window.lastMount = performance.now();
}).observe(document, { subtree: true, attributes: true, attributeFilter: ['data-ready'] });
"""
TIMES = """
() => {
  const load = performance.getEntriesByType('navigation')[0].loadEventEnd;
  return [load, Math.max(load, window.lastMount || 0)];
}
"""


SENTENCES = (
    "Two dogs run through the deep snow.",
    "A woman in a green coat is reading a newspaper on a bench.",
    "The children who are playing in the park look at a street musician.",
    "A man with a beard is repairing a bicycle in front of his house.",
    "Several people are standing in line to buy tickets for the theatre tonight.",
)
TYPED = """
async (text) => {
  const root = document.querySelector('[data-explorer=translator]').firstElementChild.shadowRoot;
  const [input, written] = [root.querySelector('input'), root.querySelector('.written')];
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  input.value = text;
  input.dispatchEvent(new Event('input'));
  const begun = await frame();
  let [first, last, pause] = [0, begun, 0];
  const busy = () => root.querySelector('section').getAttribute('aria-busy') === 'true';
  const [before] = [written.children.length];
  while (busy()) {
    const now = await frame();
    if (first) pause = Math.max(pause, now - last);
    if (!first && written.children.length < before) first = now - begun;
    last = now;
  }
  return [first || last - begun, last - begun, pause, written.children.length];
}
"""


def measure_translator(browser: Browser, rounds: int, slowed: int) -> dict[str, float | str]:
    """Open the first page and type into its translator, as a reader of the book from disk would, slowed so many times.

    Each round is a visit with nothing cached.
    """
    loads, seen, memories = [], [], []
    for _ in range(rounds):
        with reader(browser) as one:
            one.page.emulate_media(reduced_motion="no-preference")
            talk = one.page.context.new_cdp_session(one.page)
            talk.send("Emulation.setCPUThrottlingRate", {"rate": slowed})
            one.page.goto((HTML / FIRST_PAGE).as_uri(), wait_until="load", timeout=1000 * PATIENCE)
            settle(one.page, one.now, PATIENCE)
            loads.append(one.page.evaluate(TIMES)[0])
            one.page.locator("[data-explorer=translator]").scroll_into_view_if_needed()
            one.page.evaluate(TYPED, SENTENCES[0])  # loads the model
            seen += [one.page.evaluate(TYPED, sentence) for sentence in SENTENCES]
            talk.send("HeapProfiler.collectGarbage")
            usage = talk.send("Runtime.getHeapUsage")
            memories.append((usage["usedSize"] + usage.get("backingStorageSize", 0)) / 1e6)
    first, last, pause, tokens = (statistics.median(row) for row in zip(*seen, strict=True))
    return {
        "page": FIRST_PAGE,
        "slowed": slowed,
        "load_ms": round(statistics.median(loads)),
        "first_token_ms": round(first),
        "last_token_ms": round(last),
        "longest_pause_ms": round(pause),
        "tokens": tokens,
        "memory_mb": round(statistics.median(memories), 1),
    }


def open_once(browser: Browser, address: str, width: int) -> tuple[list[float], Visit]:
    """Open a page in a context of its own; return the three times in milliseconds, and what the visit measured."""
    with reader(browser, widths=(width,)) as one:
        one.page.add_init_script(NOTE_MOUNTS)
        one.page.set_viewport_size({"width": width, "height": 800})
        one.page.goto(address, wait_until="load", timeout=1000 * PATIENCE)
        settle(one.page, one.now, PATIENCE)
        formulas = one.page.evaluate("performance.now()")
        if one.now.findings:
            raise RuntimeError(str(one.now))
        one.weigh()
        return [*one.page.evaluate(TIMES), formulas], one.now


def measure(browser: Browser, page: str, served: str, rounds: int) -> dict[str, float | str]:
    """Return one row: the page at both widths from disk, and its weight from a server, which tells sizes."""
    visits = [(width, *open_once(browser, (HTML / page).as_uri(), width)) for _ in range(rounds) for width in WIDTHS]
    load, explorers, formulas = (statistics.median(row) for row in zip(*(times for _, times, _ in visits), strict=True))
    shifts = {f"shift_{width}": max(seen.shift for at, _, seen in visits if at == width) for width in WIDTHS}
    return {
        "page": page,
        "load_ms": round(load),
        "explorers_ms": round(explorers),
        "formulas_ms": round(formulas),
        "own_bytes": open_once(browser, f"{served}/{page}", WIDTHS[-1])[1].own_bytes,
        **{name: round(shift, 4) for name, shift in shifts.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", nargs="+", help="names without folder and ending; all when left out")
    parser.add_argument(
        "--first-page", action="store_true", help="measure the first page and its translator alone, keep the other rows"
    )
    parser.add_argument("--no-record", action="store_true", help="print alone")
    wish = parser.parse_args()
    pages = sorted(HTML.glob("book/*.html"))
    chosen = [path for path in pages if not wish.pages or path.stem in wish.pages]
    if not chosen:
        parser.error(f"no such page in {HTML / 'book'}: build the book, or name one of its pages")
    place = BENCHMARKS / "results" / "pages.json"
    made = {
        "command": _record.command_line("pages", sys.argv[1:]).replace("experiments/", "benchmarks/"),
        "machine": _record.machine(),
        "load_average": os.getloadavg()[0],
        "rounds": wish.rounds,
    }
    with open_browser() as browser, serve(HTML) as served:
        rows = []
        for path in [] if wish.first_page else chosen:
            rows.append(measure(browser, path.relative_to(HTML).as_posix(), served, wish.rounds))
            print(json.dumps(rows[-1]), flush=True)
        first = made | {"rows": [measure_translator(browser, wish.rounds, slowed) for slowed in (1, PHONE)]}
        print(json.dumps(first), flush=True)
    if not wish.no_record:
        others = json.loads(place.read_text(encoding="utf-8")) if wish.first_page else {**made, "rows": rows}
        record = others | {"first_page": first}
        place.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        print(place)


if __name__ == "__main__":
    main()
