"""The quiz as a reader without a kernel meets it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.widgets.test_quiz import specimen
from ttutor.widgets import Question, Quiz, Right, Wrong

pytestmark = pytest.mark.browser

Open = Callable[..., Page]


def test_choosing_shows_that_explanation_and_no_other(open_saved: Open) -> None:
    page = open_saved(specimen())
    expect(page.locator(".why:visible")).to_have_count(0)
    page.get_by_label("5 32").check()
    expect(page.locator(".why:visible")).to_have_text(["✓ Right.One row for each query, made of values."])
    page.get_by_label("9 32").check()
    expect(page.locator(".why:visible")).to_have_count(2)
    expect(page.locator(".score")).to_have_text("1 of 3 answered, 1 right at the first choice.")
    expect(page.locator('[role="status"]')).to_contain_text("✗ No.Keys and values are summed over")


def test_the_first_choice_counts(open_saved: Open) -> None:
    page = open_saved(specimen())
    page.get_by_label("They sharpen").check()
    page.get_by_label("Nothing").check()
    expect(page.locator(".score")).to_have_text("1 of 3 answered, 0 right at the first choice.")
    page.get_by_role("button", name="Start again").click()
    expect(page.locator(".why:visible")).to_have_count(0)
    assert page.locator("input:checked").count() == 0
    page.get_by_label("Nothing").check()
    expect(page.locator(".score")).to_have_text("1 of 3 answered, 1 right at the first choice.")


def test_the_keyboard_alone_is_enough(open_saved: Open) -> None:
    page = open_saved(specimen())
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page.locator(".why:visible")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    expect(page.get_by_label("5 32")).to_be_checked()
    expect(page.locator(".why:visible")).to_have_count(2)
    page.keyboard.press("Tab")
    expect(page.get_by_label("They sharpen")).to_be_focused()


def test_a_tap_is_enough(open_saved: Open) -> None:
    page = open_saved(specimen(), width=360, touch=True)
    page.locator(".choice label").nth(1).tap()
    expect(page.locator(".why:visible")).to_have_count(1)


def test_all_explanations_at_once_and_on_paper(open_saved: Open) -> None:
    page = open_saved(specimen())
    page.get_by_label("show all explanations").check()
    expect(page.locator(".why:visible")).to_have_count(7)
    page.get_by_label("show all explanations").uncheck()
    page.emulate_media(media="print")
    expect(page.locator(".why:visible")).to_have_count(7)


def test_formulas_are_typeset_by_the_browser(open_saved: Open) -> None:
    page = open_saved(specimen())
    formula = page.locator("math").last
    assert formula.evaluate("m => m.namespaceURI") == "http://www.w3.org/1998/Math/MathML"
    root = page.locator("msqrt").first
    assert root.evaluate("m => m.getBoundingClientRect().height") > 10


def test_a_choice_is_named_with_its_formulas(open_saved: Open) -> None:
    """Chromium leaves MathML out of the name that a label gives."""
    page = open_saved(Quiz(Question("Which?", Right("$F(x) = 0$", "yes"), Wrong("it is $x$", "no"), Wrong("5", "no"))))
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    names = [node["name"]["value"] for node in tree if node.get("role", {}).get("value") == "radio"]
    assert names == ["F(x)=0", "it is x", "5"]


def test_what_python_opens_is_shown(open_saved: Open) -> None:
    made = specimen()
    made.opened = [[0, 1], [], [0]]
    page = open_saved(made)
    expect(page.locator(".why:visible")).to_have_count(3)
    expect(page.get_by_label("5 32")).to_be_checked()


def test_hostile_text_stays_text(open_saved: Open) -> None:
    nasty = '<img src=x onerror="window.hacked=1">'
    page = open_saved(Quiz(Question(nasty, Right(f"`{nasty}`", nasty), Wrong("</script><b>", "no"))))
    page.locator("input").first.check()
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    expect(page.locator(".why:visible")).to_contain_text(nasty)
