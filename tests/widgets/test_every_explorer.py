"""What holds for every explorer, whatever it shows: it lives without a kernel, in every way to use it.

Each explorer's own test module has a ``specimen()``, the figure as a chapter would show it; ``hostile()``, where a
figure shows text from outside; and ``extremes()``, the figures that are hardest to fit on a page.
"""

from __future__ import annotations

import html
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import traitlets as t
from playwright.sync_api import Browser, Locator, Page, expect

from tests.book.browser import AXE, OVERFLOW
from tests.widgets.conftest import Show, hurried
from tests.widgets.figure import HOSTILE, assert_fits, in_browser, state_of, whole_text
from ttutor.widgets import Explorer
from ttutor.widgets.base import _PAGE
from ttutor.widgets.static import module_names, module_source, static_script

LARGEST_OUTPUT = 30_000
TALLEST = 700
NONSENSE = re.compile(r"\bNaN\b|undefined|\[object |not a number|\bInfinity\b|\bnull\b")
CONTROLS = "button, select, input[type=radio], input[type=checkbox], input[type=range]"
RESET = re.compile(r"^(Reset|Reset all|Start over|Start again)$")
# The figure's words, spoken labels included; what is hidden is neither seen nor told.
SHOWN = """
(place) => {
  const root = place.shadowRoot;
  const labels = [...root.querySelectorAll('section.tt :is([aria-label], [aria-valuetext])')].filter(
    (e) => e.checkVisibility()).map(
    (e) => `${e.getAttribute('aria-label') || ''} ${e.getAttribute('aria-valuetext') || ''}`);
  return [root.querySelector('section.tt').innerText, ...labels].join('\\n');
}
"""
VIOLATIONS = """
async (only) => (await axe.run(document, { preload: false, resultTypes: ["violations"], ...only })).violations.map(
  ({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 120))}`)
"""
# Mounts an explorer on a model that the test can read and set, as a kernel does: `window.figure`.
WITH_A_MODEL = """
async ([source, state]) => {
  const { default: module } = await import(`data:text/javascript;charset=utf-8,${encodeURIComponent(source)}`);
  const main = document.querySelector('main');
  const mount = (state) => {
    const listeners = {};
    const place = main.appendChild(document.createElement('div'));
    const el = place.appendChild(document.createElement('div'));
    place.className = 'explorer';
    const set = (values) => {
      Object.assign(state, values);
      for (const name in values) (listeners[`change:${name}`] || []).forEach((run) => run());
    };
    const model = { get: (name) => state[name], set, save_changes() {}, off() {},
      on: (event, run) => (listeners[event] ||= []).push(run) };
    return { state, set, el, place, stop: module.render({ model, el }) };
  };
  main.replaceChildren();
  window.figure = mount(state);
  window.first = structuredClone(state);
  // The same state drawn at once, and reached from the first one by setting all traits.
  window.others = (shown) => [[window.figure.state, {}], [window.first, window.figure.state]].map(([from, to]) => {
    const other = mount(structuredClone(from));
    other.set(structuredClone(to));
    const words = shown(other.el);
    other.stop();
    other.place.remove();
    return words;
  });
}
"""
# Numbers that no reader sets, and those that may be as large as one likes.
FREE = {
    ("causal_mask", "total"), ("decoding", "beam_size"), ("sequential", "total"), ("patches", "channels"),
    ("patches", "step"), ("patches", "model_patch_size"), ("translator", "selected"),
}  # fmt: skip
ENDLESS = {("attention", "temperature"), ("attention", "d_head"), ("merges", "step"), ("sequential", "tick")}
MODULES: dict[str, ModuleType] = {name: import_module(f"tests.widgets.test_{name}") for name in module_names()}

every_explorer = pytest.mark.parametrize("name", MODULES)


@cache
def specimen(name: str) -> Explorer:
    """One for all tests, which only show it: some measure a model when they are made."""
    return MODULES[name].specimen()


@cache
def extremes(name: str) -> list[Explorer]:
    return MODULES[name].extremes()


def having(what: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", [name for name, module in MODULES.items() if hasattr(module, what)])


def shown(page: Page) -> str:
    return page.locator(".explorer > div").first.evaluate(SHOWN)


def assert_sound(page: Page) -> None:
    assert page.evaluate(OVERFLOW) == []
    found = NONSENSE.search(words := shown(page))
    assert found is None, f"{found} in {words}"


def all_in_one(folder: Path, script: str) -> Path:
    """A page with every explorer and this script."""
    path = folder / "all.html"
    body = "".join(specimen(name).to_html() for name in MODULES)
    path.write_text(_PAGE.format(title="All", body=body, script=script), encoding="utf-8")
    return path


# ---------------------------------------------------------------- stored form


@every_explorer
def test_the_stored_output_is_small_and_the_same_each_time(name: str) -> None:
    one, two = specimen(name), MODULES[name].specimen()
    assert one.to_html() == two.to_html()
    assert repr(one) == repr(two)
    assert " object at 0x" not in repr(one)
    assert one.model_id not in one.to_html()
    assert len(one.to_html().encode()) < LARGEST_OUTPUT


@every_explorer
def test_every_trait_of_the_state_is_synced_and_stored_and_the_module_reads_no_other(name: str) -> None:
    made = specimen(name)
    synced = set(made.traits(sync=True))
    own = {trait for trait in synced if not trait.startswith("_")} - set(Explorer.class_traits(sync=True))
    assert own == set(state_of(made))
    assert set(re.findall(r'\bget\("(\w+)"\)', module_source(name))) <= own


@every_explorer
def test_a_number_beyond_its_range_is_refused(name: str) -> None:
    made = MODULES[name].specimen()
    for trait, kind in made.traits(sync=True).items():
        if trait in made.static_state() and isinstance(kind, t.Int | t.Float) and not kind.read_only:
            values = [-(10**6)] * ((name, trait) not in FREE) + [10**9] * ((name, trait) not in FREE | ENDLESS)
            for value in values:
                with pytest.raises((ValueError, t.TraitError), match=f"{trait}.*{value}"):
                    setattr(made, trait, value)


@having("hostile")
def test_texts_are_never_markup_and_come_back_whole(name: str) -> None:
    made = MODULES[name].hostile()
    assert "<img" not in made.to_html()
    assert "<script" not in made.to_html()
    assert HOSTILE[0] in str(state_of(made)).replace("\\'", "'")


@in_browser
def test_without_scripts_there_is_real_content(browser: Browser, tmp_path: Path) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 360, "height": 740})
    page = context.new_page()
    page.goto(all_in_one(tmp_path, static_script()).as_uri())
    for place, name in zip(page.locator(".explorer").all(), MODULES, strict=True):
        assert place.locator("table, svg, ol, img, dl").count() > 0, name
        text = place.inner_text()
        assert len(text) > 80, name
        assert not re.search(r"\brun (this|the) cell\b", text, re.IGNORECASE), name
        assert NONSENSE.search(text) is None, name
    context.close()


# ---------------------------------------------------------------- alive


@in_browser
@every_explorer
def test_a_saved_file_fits_at_every_width_and_axe_finds_nothing(name: str, show: Show, tmp_path: Path) -> None:
    page = show.file(specimen(name).save(tmp_path / "explorer.html"), width=360)
    before = whole_text(page)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    for dark in (False, True):
        # Without movement, or axe would meet colours on their way from one mode to the other.
        page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce")
        expect(page.locator("section.tt")).to_have_attribute("data-mode", "dark" if dark else "light")
        only = {"runOnly": ["color-contrast"]} if dark else {}  # the rest does not depend on the colours
        assert page.evaluate(VIOLATIONS, only) == []
    assert whole_text(page) == before
    page.emulate_media(media="print")
    assert len(whole_text(page)) > 40
    page.emulate_media(media="screen")
    for width in (900, 360):
        page.set_viewport_size({"width": width, "height": 740})
        assert_sound(page)


@in_browser
@every_explorer
def test_every_control_at_both_ends_and_the_figure_is_what_its_traits_say(name: str, show: Show) -> None:
    page = show(specimen(name), width=360)
    page.evaluate(WITH_A_MODEL, [hurried(module_source(name)), specimen(name).static_state()])
    before = whole_text(page)
    controls = page.locator(".explorer").locator(CONTROLS)
    for index in range(controls.count()):
        control = controls.nth(index)
        if control.is_visible():
            for use in uses(control):
                use()
                expect(page.locator("section.tt[aria-busy=true]")).to_have_count(0, timeout=30_000)
                assert_sound(page)
            if name != "quiz":  # where showing all explanations is no trait
                assert set(page.evaluate(f"window.others({SHOWN})")) == {shown(page)}, control
    resets = page.get_by_role("button", name=RESET)
    resets.last.press("Space")
    assert (whole_text(page) == before) != (name == "quiz")  # which keeps what is open
    page.evaluate("window.figure.stop()")


def uses(control: Locator) -> list:
    """The ways to use a control with keys, one after the other."""
    kind, text = control.evaluate("e => [e.type, e.textContent]")
    if kind == "range":
        return [lambda: control.press("Home"), lambda: control.press("End")]
    if kind == "select-one":
        n_options = control.evaluate("e => e.options.length")
        return [lambda option=option: control.select_option(index=option) for option in range(n_options)]
    if text == "Play":  # and pause
        return [lambda: (control.press("Space"), control.press("Space"))]
    return [lambda: control.press("Space")]


@in_browser
@every_explorer
def test_nothing_moves_under_a_mouse_that_is_pressed(name: str, show: Show) -> None:
    page = show(specimen(name), width=360)
    controls = page.locator(".explorer").locator(CONTROLS)
    for index in range(min(controls.count(), 8)):
        control = controls.nth(index)
        if not control.is_visible() or control.evaluate("e => e.tagName === 'SELECT'"):  # whose list would open
            continue
        control.scroll_into_view_if_needed()
        before = control.bounding_box()
        page.mouse.move(before["x"] + before["width"] / 2, before["y"] + before["height"] / 2)
        page.mouse.down()
        assert control.bounding_box() == before, control
        page.mouse.up()


@in_browser
@every_explorer
def test_none_opens_taller_than_a_phone(name: str, show: Show) -> None:
    page = show(specimen(name), width=390)
    assert page.locator("section.tt").bounding_box()["height"] <= TALLEST


@in_browser
@every_explorer
def test_the_keyboard_reaches_every_control_and_leaves_again(name: str, show: Show) -> None:
    page = show(specimen(name))
    page.evaluate(
        """() => {
          document.querySelector('main').insertAdjacentHTML('beforeend', '<button id=after>after</button>');
          window.reached = new Set();
          document.querySelector('.explorer > div').shadowRoot.addEventListener('focusin', (event) =>
            window.reached.add(event.target));
        }"""
    )
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "after":
            break
    assert page.evaluate("document.activeElement.id") == "after", "Tab never leaves the figure"
    assert page.evaluate("window.reached.size"), "nothing in the figure can be focused"
    focused = "[...window.reached].filter((e) => e.tagName === 'svg' && e.getAttribute('role') === 'group').length"
    assert page.evaluate(focused) == 0, "a drawing is a stop though no key does anything there"
    missed = page.locator(".explorer").evaluate(
        f"""place => [...place.firstElementChild.shadowRoot.querySelectorAll({CONTROLS!r})].filter(
          (e) => e.type !== 'radio' && e.checkVisibility() && e.tabIndex >= 0 && !window.reached.has(e)
        ).map((e) => e.outerHTML)"""
    )
    assert missed == []


@in_browser
@having("hostile")
def test_hostile_texts_stay_text_on_the_page(name: str, show: Show) -> None:
    page = show(MODULES[name].hostile())
    grid = page.locator("[data-row], .choice label, .token")
    if grid.count():
        grid.first.click()
    assert page.evaluate("window.hacked") is None
    assert page.locator("section.tt img").count() == 0
    assert HOSTILE[0][:8] in page.locator("section.tt").evaluate("e => e.textContent")  # long words are cut short


@in_browser
@having("extremes")
@pytest.mark.filterwarnings("ignore:.*(fit|figure holds|read|are put in|drawn pixel)")
def test_nothing_is_wider_than_its_page(name: str, show: Show) -> None:
    for made in extremes(name):
        assert len(made.to_html().encode()) < LARGEST_OUTPUT, made
        page = show(made)
        assert_fits(page)
        assert_sound(page)


@in_browser
@having("TAP")
def test_a_tap_on_a_phone_is_enough(name: str, show: Show) -> None:
    selector, words = MODULES[name].TAP
    page = show(specimen(name), width=360, touch=True, paced=True)
    page.locator(selector).first.tap()
    assert words in shown(page)


@in_browser
def test_frames_without_widgets_show_them_alive(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "frames.html"
    frames = "".join(specimen(name)._repr_html_() for name in MODULES)
    path.write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{frames}</body>", encoding="utf-8")
    context = browser.new_context(viewport={"width": 800, "height": 740})
    page = context.new_page()
    page.goto(path.as_uri())
    for index in range(len(MODULES)):
        ready = page.locator("iframe").nth(index).content_frame.locator("[data-explorer][data-ready]")
        expect(ready).to_have_count(1)
    context.close()


@in_browser
def test_colours_follow_the_page_also_when_it_changes(show: Show) -> None:
    page = show(specimen("attention"), dark=True)
    root = page.locator("section.tt")
    expect(root).to_have_attribute("data-mode", "dark")
    page.emulate_media(color_scheme="light")
    expect(root).to_have_attribute("data-mode", "light")
    # A theme that has a switch of its own sets an attribute and colours, whatever the system prefers.
    page.evaluate("document.body.style.color = 'rgb(230, 230, 230)'; document.documentElement.dataset.theme = 'dark'")
    expect(root).to_have_attribute("data-mode", "dark")


def test_a_saved_file_stands_alone(tmp_path: Path) -> None:
    page = specimen("attention").save(tmp_path / "map.html", title="<My> map").read_text(encoding="utf-8")
    assert f"<title>{html.escape('<My> map')}</title>" in page
    assert page.count("</script>") == 1
    assert not re.search(r"https?://(?!www\.w3\.org)", page)
