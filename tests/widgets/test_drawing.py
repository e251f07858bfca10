"""What every drawing gives the reader: knobs that keep a finger, and arrow keys from part to part."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.widgets.conftest import Show
from tests.widgets.figure import in_browser, press
from tests.widgets.test_decoding import specimen as decoding
from ttutor.widgets import (
    AttentionExplorer,
    Explorer,
    GroupExplorer,
    HeadsExplorer,
    RotaryExplorer,
    ScheduleExplorer,
    TilesExplorer,
    WavesExplorer,
)

FINGER = 44


def drag(page: Page, start: tuple[float, float], path: list[tuple[float, float]]) -> None:
    """Drag with one finger, as a phone's screen reports it."""
    session = page.context.new_cdp_session(page)
    x, y = start
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for across, down in path:
        x, y = x + across, y + down
        session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": x, "y": y}]})
        page.wait_for_timeout(20)
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    session.detach()


@in_browser
@pytest.mark.parametrize(
    ("make", "knob", "steps"),
    [
        (WavesExplorer, "handle", [(0, 8)] * 10),
        (RotaryExplorer, "query_position", [(8, 6)] * 10),
        (AttentionExplorer.by_hand, "pull", [(0, 8)] * 10),
        (ScheduleExplorer, "peak", [(0, 8)] * 14),
    ],
)
def test_a_knob_keeps_the_finger_and_the_page_stays(
    show: Show, make: Callable[[], Explorer], knob: str, steps: list[tuple[float, float]]
) -> None:
    page = show(make(), width=390, touch=True)
    page.evaluate("document.querySelector('main').style.paddingBottom = '1200px'")
    circle = page.locator(f'[data-key="{knob}"]')
    circle.scroll_into_view_if_needed()
    before, box = page.evaluate("scrollY"), circle.bounding_box()
    grip = page.locator(f'[data-key="{knob}-grip"]').bounding_box()
    assert min(grip["width"], grip["height"]) == pytest.approx(FINGER, abs=0.1)
    aside = box["x"] + box["width"] / 2 + 15  # beside the knob that is seen, where the thumb may fall
    drag(page, (aside, box["y"] + box["height"] / 2), steps)
    page.wait_for_timeout(400)
    assert page.evaluate("scrollY") == before
    after = circle.bounding_box()
    assert abs(after["x"] - box["x"]) + abs(after["y"] - box["y"]) > 20


@in_browser
def test_beside_the_knobs_a_finger_still_scrolls_the_page(show: Show) -> None:
    page = show(RotaryExplorer(), width=390, touch=True)
    page.evaluate("document.querySelector('main').style.paddingBottom = '1200px'")
    box = page.locator('[data-key="circle"]').bounding_box()
    drag(page, (box["x"] + 20, box["y"] + 100), [(0, -12)] * 10)
    page.wait_for_timeout(400)
    assert page.evaluate("scrollY") > 40


@in_browser
@pytest.mark.parametrize("make", [AttentionExplorer.by_hand, HeadsExplorer.recorded, decoding])
def test_arrow_keys_move_inside_a_picture_and_it_is_one_tab_stop(show: Show, make: Callable[[], Explorer]) -> None:
    page = show(make())
    buttons = page.locator('.tt-picture [role="button"]')
    n_buttons = buttons.count()
    assert n_buttons > 2
    assert page.locator('.tt-picture [role="button"][tabindex="0"]').count() == 1
    reached = set()
    page.locator('.tt-picture [role="button"][tabindex="0"]').focus()
    held = "document.querySelector('.explorer > div').shadowRoot.activeElement.dataset.key"
    for key in ["ArrowRight", "ArrowDown"] * n_buttons + ["ArrowLeft", "ArrowUp"] * n_buttons:
        reached.add(page.evaluate(held))
        page.keyboard.press(key)
    assert len(reached) > 2
    assert page.locator('.tt-picture [role="button"][tabindex="0"]').count() == 1
    page.keyboard.press("Enter")
    expect(page.locator(".tt-card")).to_have_attribute("data-acted", "1")


@in_browser
def test_what_plays_stops_at_its_end_and_at_the_readers_hand(show: Show) -> None:
    page = show(TilesExplorer(), motion=True)
    play, pause = (page.get_by_role("button", name=name, exact=True) for name in ("Play", "Pause"))
    tile = page.get_by_label("Tile", exact=True)
    press(page, "Play")
    expect(pause).to_have_count(1)
    tile.press("Home")  # the reader goes elsewhere
    expect(play).to_have_count(1)
    press(page, "Play")
    expect(tile).to_have_value("4", timeout=30_000)
    expect(play).to_have_count(1)
    press(page, "Play")  # from the start again
    expect(pause).to_have_count(1)
    press(page, "Reset")
    expect(play).to_have_count(1)
    expect(tile).to_have_value("1")


@in_browser
@pytest.mark.parametrize("make", [WavesExplorer, ScheduleExplorer])
def test_a_click_on_an_empty_place_of_a_drawing_leaves_no_focus_there(show: Show, make: Callable[[], Explorer]) -> None:
    page = show(make())
    picture = page.locator(".tt-picture > svg")
    box = picture.bounding_box()
    page.mouse.click(box["x"] + box["width"] - 3, box["y"] + box["height"] - 3)
    page.keyboard.press("Shift")  # a key shows the ring of what has the focus
    assert not picture.evaluate("e => e.matches(':focus')")


def calls(page: Page) -> set[str]:
    """The animations that run in a figure, by name."""
    return set(
        page.locator("section.tt").evaluate(
            "e => e.getRootNode().getAnimations().map((one) => one.animationName).filter(Boolean)"
        )
    )


@in_browser
def test_what_is_to_be_used_first_calls_until_the_reader_acts_and_never_where_less_movement_is_wanted(
    show: Show,
) -> None:
    for explorer, call in ((GroupExplorer.recorded(), "tt-ring"), (ScheduleExplorer(), "tt-beckon")):
        page = show(explorer, motion=True)
        expect(page.locator("section.tt")).to_have_attribute("data-seen", "1")
        assert calls(page) == {call}
        page.locator("input[type=range]").first.press("ArrowRight")
        assert calls(page) == set()
        assert calls(show(explorer)) == set()  # where less movement is wanted


@in_browser
@pytest.mark.parametrize(
    "explorer", [AttentionExplorer.by_hand(), WavesExplorer(), RotaryExplorer(), ScheduleExplorer()]
)
def test_home_and_end_pull_a_knob_as_far_as_it_goes(show: Show, explorer: Explorer) -> None:
    knob = show(explorer).locator("svg [role=slider]").last
    places = []
    for key in ("Home", "End"):
        knob.press(key)
        places.append([knob.get_attribute(name) for name in ("cx", "cy")])
    assert places[0] != places[1]
    if not isinstance(explorer, AttentionExplorer):  # its arrow turns about a point: no end is an end
        knob.press("ArrowRight")
        assert [knob.get_attribute(name) for name in ("cx", "cy")] == places[1]
