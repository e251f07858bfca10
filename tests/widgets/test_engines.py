"""Every explorer in Firefox and WebKit as well: it mounts from disk, its controls answer, nothing is too wide."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.book.browser import OVERFLOW
from tests.require import missing
from tests.widgets.engines import COMPLAINTS, Engine, is_installed, open_engine
from tests.widgets.test_every_explorer import CONTROLS, MODULES, NONSENSE, SHOWN, specimen
from ttutor.widgets import PlaygroundExplorer
from ttutor.widgets.base import _PAGE
from ttutor.widgets.static import module_names, static_script, write_weights

pytestmark = [pytest.mark.soak, pytest.mark.browser]
MOUNTED = """
const end = performance.now() + 30000;
const places = [...document.querySelectorAll('[data-explorer]')];
while (!places.every((place) => place.dataset.ready) && performance.now() < end)
  await new Promise((done) => setTimeout(done, 20));
return places.filter((place) => !place.dataset.ready).map((place) => place.dataset.explorer);
"""
# Uses every control of a figure as a reader without a mouse would; gives what it says after each.
USED = f"""
const place = document.querySelector('[data-explorer]');
const root = place.firstElementChild.shadowRoot;
const words = [];
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
for (const control of [...root.querySelectorAll({CONTROLS!r})]) {{
  if (!control.isConnected || !control.checkVisibility()) continue;
  if (control.type === 'range') {{
    for (const value of [control.min, control.max]) {{
      control.value = value;
      control.dispatchEvent(new Event('input', {{ bubbles: true }}));
    }}
  }} else if (control.type === 'select-one') {{
    control.selectedIndex = control.options.length - 1;
    control.dispatchEvent(new Event('change', {{ bubbles: true }}));
  }} else control.click();
  const end = performance.now() + 20000;
  await pause(5);
  while (root.querySelector('[aria-busy="true"]') && performance.now() < end) await pause(20);
  words.push(({SHOWN})(place.firstElementChild));
}}
return words;
"""

LEARNED = """
const root = document.querySelector('[data-explorer]').firstElementChild.shadowRoot;
[...root.querySelectorAll('button')].find((button) => button.textContent === 'Yes').click();
const end = performance.now() + 50000;
while (root.querySelector('[aria-busy="true"]') && performance.now() < end)
  await new Promise((done) => setTimeout(done, 50));
return root.querySelector('.tt-found').textContent;
"""


@pytest.fixture(scope="module", params=["firefox", "webkit"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    if not is_installed(request.param):
        missing("engines", "install firefox-esr, webkit2gtk-driver and xvfb to try other browsers than Chromium")
    with open_engine(request.param, tmp_path_factory.mktemp(request.param)) as opened:
        yield opened


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page from disk for each explorer, with the weights beside it."""
    made = tmp_path_factory.mktemp("pages")
    write_weights(made)
    for name in MODULES:
        body = specimen(name).to_html()
        page = _PAGE.format(title=name, body=body, script=static_script([name])).replace(
            "<head>", f"<head>{COMPLAINTS}"
        )
        (made / f"{name}.html").write_text(page, encoding="utf-8")
    return made


@pytest.mark.parametrize("name", module_names())
def test_it_mounts_answers_and_fits(name: str, engine: Engine, folder: Path) -> None:
    engine.open((folder / f"{name}.html").as_uri())
    assert engine.run(MOUNTED) == []
    words = engine.run(USED)
    assert len(words) > 1
    assert [found[0] for found in map(NONSENSE.search, words) if found] == []
    assert engine.run(f"return ({OVERFLOW})();") == []
    assert engine.run("return window.complaints;") == []


@pytest.mark.parametrize(
    ("positions", "outcome"), [(True, "It learns, as you guessed."), (False, "It fails, and you guessed otherwise.")]
)
def test_the_playground_learns_to_reverse_and_fails_without_positions(
    positions: bool, outcome: str, engine: Engine, tmp_path: Path
) -> None:
    engine.open(PlaygroundExplorer(positions=positions).save(tmp_path / "page.html").as_uri())
    assert engine.run(MOUNTED) == []
    assert engine.run(LEARNED).startswith(f"{outcome} After 300 steps it has ")
