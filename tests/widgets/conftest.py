"""Explorers as a reader without a kernel meets them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.book.browser import Visit, settle, watch
from ttutor.widgets import Explorer, base, static

# A training in the playground takes some seconds at least, and tells often how it stands, for those who watch it.
PACE = {"[SECONDS,SLOW_SECONDS]=[4,": "[SECONDS,SLOW_SECONDS]=[0.1,", "slice:24": "slice:500"}
MOUNTS_A_PAGE = 30  # figures that were replaced go on listening to the page's colours
# The page's own script, run again, mounts what stands in the page now; the figures are ready when it is done.
MOUNT = """
async (markup) => {
  document.querySelector('main').innerHTML = `<h1>Figure</h1>${markup}`;
  document.body.removeAttribute('style');
  document.documentElement.removeAttribute('data-theme');
  const script = document.createElement('script');
  script.textContent = document.querySelector('body > script').textContent;
  document.body.append(script);
  script.remove();
  const places = [...document.querySelectorAll('[data-explorer]')];
  const end = performance.now() + 20000;
  while (!places.every((place) => place.dataset.ready) && performance.now() < end)
    await new Promise((done) => setTimeout(done, 2));
  return places.every((place) => place.dataset.ready);
}
"""


def hurried(script: str) -> str:
    """A script in which no training waits for those who watch it."""
    for watched, unwatched in PACE.items():
        script = script.replace(watched, unwatched)
    return script


@dataclass
class Show:
    """Shows figures in a page that is loaded from disk, without a network, and used again from test to test."""

    browser: Browser
    folder: Path
    tabs: dict[bool, tuple[Page, Visit]] = field(default_factory=dict)
    n_mounts: int = 0

    def __call__(
        self,
        *explorers: Explorer,
        width: int = 900,
        dark: bool = False,
        touch: bool = False,
        motion: bool = False,
        paced: bool = False,
    ) -> Page:
        """Show explorers, one below the other, and return the page.

        Nothing moves and nobody has to watch a training, unless ``motion`` or ``paced`` asks for it.
        """
        page, visit = self._tab(touch)
        shell = (self.folder / ("paced.html" if paced else "shell.html")).as_uri()
        visit.url = ", ".join(map(repr, explorers))
        page.mouse.move(0, 0)
        page.set_viewport_size({"width": width, "height": 740})
        moves = "no-preference" if motion else "reduce"
        page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion=moves, media="screen")
        if self.n_mounts % MOUNTS_A_PAGE == 0 or page.url != shell:
            page.goto(shell)
            page.mouse.move(1, 1)  # the first move in a page comes from nowhere, and moves by nothing
        self.n_mounts += 1
        if not page.evaluate(MOUNT, "".join(explorer.to_html() for explorer in explorers)):
            visit.add("did not mount", visit.url)
        return page

    def file(self, path: Path, *, width: int = 900) -> Page:
        """Open a file as a reader does who got it sent."""
        page, visit = self._tab(touch=False)
        visit.url = path.name
        page.mouse.move(0, 0)
        page.set_viewport_size({"width": width, "height": 740})
        page.emulate_media(color_scheme="light", reduced_motion="reduce", media="screen")
        page.goto(path.as_uri(), wait_until="load")
        settle(page, visit, 20)
        return page

    def complaints(self) -> list[str]:
        """What the pages complained of since the last call."""
        found = [str(visit) for _, visit in self.tabs.values() if visit.findings]
        for _, visit in self.tabs.values():
            visit.findings.clear()
        return found

    def _tab(self, touch: bool) -> tuple[Page, Visit]:
        if touch not in self.tabs:
            context = self.browser.new_context(has_touch=touch)
            page, visit = context.new_page(), Visit("")
            watch(page, visit)
            self.tabs[touch] = page, visit
            self.n_mounts = 0
        return self.tabs[touch]


@pytest.fixture(scope="session")
def _show(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Show:
    folder, script = tmp_path_factory.mktemp("explorers"), static.static_script()
    assert all(one in script for one in PACE), "the playground writes its pace in another way"
    for name, text in {"shell": hurried(script), "paced": script}.items():
        page = base._PAGE.format(title="Figures", body="", script=text)
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    static.write_weights(folder)
    return Show(browser, folder)


@pytest.fixture
def show(_show: Show) -> Iterator[Show]:
    """Show an explorer in the browser; whatever the page complains of fails the test."""
    yield _show
    assert not (complaints := _show.complaints()), "\n".join(complaints)
