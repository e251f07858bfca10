"""What holds for every explorer, whatever it shows: it lives without a kernel, in every way to use it.

Each explorer's own test module has a ``specimen()``: the figure as a chapter would show it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.book.browser import OVERFLOW
from ttutor.widgets import Explorer
from ttutor.widgets.static import module_names

Open = Callable[..., Page]
LARGEST_OUTPUT = 30_000
NONSENSE = re.compile(r"\bNaN\b|undefined|\[object |not a number|\bInfinity\b|\bnull\b")
CONTROLS = "button, select, input[type=radio], input[type=checkbox], input[type=range]"

every_explorer = pytest.mark.parametrize("name", module_names())


def fresh(name: str) -> Explorer:
    return import_module(f"tests.widgets.test_{name}").specimen()


@cache
def specimen(name: str) -> Explorer:
    """One for all tests, which only show it: some measure a model when they are made."""
    return fresh(name)


def shown(page: Page) -> str:
    """All text on the figure, spoken labels included."""
    root = page.locator(".explorer > div").first
    labels = root.locator("[aria-label], [aria-valuetext]").evaluate_all(
        "all => all.map((e) => `${e.getAttribute('aria-label') || ''} ${e.getAttribute('aria-valuetext') || ''}`)"
    )
    return root.locator("section.tt").inner_text() + "\n" + "\n".join(labels)


def assert_sound(page: Page) -> None:
    assert page.evaluate(OVERFLOW) == []
    found = NONSENSE.search(shown(page))
    assert found is None, f"{found} in {shown(page)}"


# ---------------------------------------------------------------- stored form


@every_explorer
def test_the_stored_output_is_small_and_the_same_each_time(name: str) -> None:
    one, two = fresh(name), fresh(name)
    assert one.to_html() == two.to_html()
    assert repr(one) == repr(two)
    assert " object at 0x" not in repr(one)
    assert len(one.to_html().encode()) < LARGEST_OUTPUT


@every_explorer
def test_the_name_is_exported_and_is_the_modules(name: str) -> None:
    made = specimen(name)
    assert made._module == name
    assert type(made).__module__ == f"ttutor.widgets.{name}"
    assert getattr(import_module("ttutor.widgets"), type(made).__name__).__module__ == type(made).__module__


@every_explorer
def test_every_trait_of_the_state_is_synced(name: str) -> None:
    made = specimen(name)
    synced = set(made.traits(sync=True))
    assert set(made._state_keys) <= synced
    own = {trait for trait in synced if not trait.startswith("_")} - set(Explorer.class_traits(sync=True))
    assert own == set(made._state_keys), "a trait that the page without a kernel does not start from"


@pytest.mark.browser
@every_explorer
def test_without_scripts_there_is_real_content(name: str, browser: Browser, tmp_path: Path) -> None:
    path = specimen(name).save(tmp_path / "plain.html")
    context = browser.new_context(java_script_enabled=False, viewport={"width": 360, "height": 740})
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.locator(".explorer table, .explorer svg, .explorer ol, .explorer img, .explorer dl").count() > 0
    text = page.locator(".explorer").inner_text()
    assert len(text) > 80
    assert not re.search(r"\brun (this|the) cell\b", text, re.IGNORECASE)
    assert NONSENSE.search(text) is None
    context.close()


# ---------------------------------------------------------------- alive


@pytest.mark.browser
@every_explorer
def test_it_fits_at_every_width_and_axe_finds_nothing_in_either_mode(name: str, open_saved: Open) -> None:
    page = open_saved(specimen(name), width=360)
    for dark in (False, True):
        # Without movement, or axe would meet colours on their way from one mode to the other.
        page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce")
        expect(page.locator("section.tt")).to_have_attribute("data-mode", "dark" if dark else "light")
        for width in (360, 900):
            page.set_viewport_size({"width": width, "height": 740})
            assert_sound(page)
        found = Axe().run(page).response["violations"]
        assert [f"{one['id']}: {[node['html'][:120] for node in one['nodes']]}" for one in found] == []


@pytest.mark.browser
@every_explorer
def test_every_slider_at_both_ends_and_every_control_once(name: str, open_saved: Open) -> None:
    page = open_saved(specimen(name), width=360)
    controls = page.locator(".explorer").locator(CONTROLS)
    for index in range(controls.count()):
        control = controls.nth(index)
        if not control.is_visible():
            continue
        kind = control.evaluate("e => e.type")
        if kind == "range":
            for key in ("Home", "End"):
                control.press(key)
                assert_sound(page)
        elif kind == "select-one":
            for option in range(control.evaluate("e => e.options.length")):
                control.select_option(index=option)
                assert_sound(page)
        else:
            control.press("Space")
            assert_sound(page)


@pytest.mark.browser
@every_explorer
def test_the_keyboard_reaches_every_control_and_leaves_again(name: str, open_saved: Open) -> None:
    page = open_saved(specimen(name))
    page.evaluate("document.querySelector('main').insertAdjacentHTML('beforeend', '<button id=after>after</button>')")
    reached = set()
    for _ in range(200):
        page.keyboard.press("Tab")
        where = page.evaluate(
            """() => {
              let e = document.activeElement;
              while (e && e.shadowRoot && e.shadowRoot.activeElement) e = e.shadowRoot.activeElement;
              if (e.id === 'after') return 'after';
              const all = [...document.querySelector('.explorer > div').shadowRoot.querySelectorAll('*')];
              return all.indexOf(e);
            }"""
        )
        if where == "after":
            break
        reached.add(where)
    assert where == "after", "Tab never leaves the figure"
    wanted = page.locator(".explorer").evaluate(
        f"""place => {{
          const all = [...place.firstElementChild.shadowRoot.querySelectorAll('*')];
          return all.filter((e) => e.matches({CONTROLS!r}) && e.type !== 'radio' && e.checkVisibility()
            && e.tabIndex >= 0).map((e) => all.indexOf(e));
        }}"""
    )
    assert set(wanted) <= reached
    assert reached, "nothing in the figure can be focused"


@pytest.mark.browser
@every_explorer
def test_less_movement_and_print_lose_nothing(name: str, open_saved: Open) -> None:
    page = open_saved(specimen(name))
    before = page.locator("section.tt").inner_text()
    page.emulate_media(reduced_motion="reduce")
    assert page.locator("section.tt").inner_text() == before
    page.emulate_media(media="print")
    assert len(page.locator("section.tt").inner_text()) > 40
    assert_sound(page)


@pytest.mark.browser
@every_explorer
def test_a_frame_without_widgets_shows_it_alive(name: str, browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "frame.html"
    path.write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{specimen(name)._repr_html_()}</body>")
    context = browser.new_context(viewport={"width": 800, "height": 740})
    page = context.new_page()
    page.goto(path.as_uri())
    frame = page.frame_locator("iframe")
    expect(frame.locator("[data-explorer][data-ready]")).to_have_count(1)
    context.close()
