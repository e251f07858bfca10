"""The quiz: what may be asked, what is stored, what readers without scripts see, and what a choice shows."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from tests.widgets.conftest import Show
from tests.widgets.figure import (
    HOSTILE,
    in_browser,
    spoken,
)
from ttutor.widgets import Quiz
from ttutor.widgets.rich_text import rich_text


def specimen() -> Quiz:
    """The figure as the gallery shows it."""
    return Quiz(r"""
        The queries have the shape `5 64`, the keys `9 64`, the values `9 32`. What is the shape of the output?
        - `5 64` :: The queries' features are used up in the scores; none of them reaches the output.
        + `5 32` :: One row for each query, made of values.
        - `9 32` :: Keys and values are summed over: the 9 is the axis that disappears.

        What happens to the weights of a row when 10 is added to all of its scores?
        - They sharpen :: *Multiplying* the scores sharpens. Adding leaves their differences alone.
        + Nothing :: The factor $e^{10}$ stands above and below the fraction.

        Why divide by $\sqrt{d_\mathrm{head}}$?
        + The spread of a sum of independent terms grows with the root of their number :: So the spread stays.
        - It is a convention :: Without it the weights are one-hot at $d_\mathrm{head} = 512$.
    """)


def hostile() -> Quiz:
    return Quiz(f"{HOSTILE[0]}\n+ `{HOSTILE[0]}` :: {HOSTILE[0]}\n- {HOSTILE[1]} :: no")


TAP = (".choice label >> nth=1", "One row for each query")


def test_the_state_is_data_and_the_trait_is_what_was_opened() -> None:
    made = specimen()
    state = json.loads(json.dumps(made.static_state()))
    assert [len(one["choices"]) for one in state["questions"]] == [3, 2, 2]
    assert state["questions"][0]["prompt"][1] == ["code", "5 64"]
    assert state["opened"] == [[], [], []]
    made.opened = [[0, 1], [1], []]
    assert repr(made) == "Quiz(3 questions, 2 answered)"


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", ValueError, "at least one question"),
        (7, TypeError, "expected the questions as one text, got int"),
        ("What?\n+ a :: b", ValueError, "has 1 choices, expected 2 to 8"),
        ("What?\n+ a :: b\n- c", ValueError, "'c' has no reason; write it as '- c :: why'"),
        ("+ a :: b\n- c :: d", ValueError, "'a' stands before any question"),
        ("What?\n- a :: x\n- b :: y", ValueError, "no choice is right"),
        ("What?\n+ a :: x\n+ b :: y", ValueError, "every choice is right"),
        ("What?\n+ a :: x\n- a :: y", ValueError, "read the same"),
        ("$\\foo$?\n+ this :: Yes.\n- that :: No.", ValueError, r"uses \\foo, which is not known"),
    ],
)
def test_bad_input_is_refused_with_a_reason(text, error, message) -> None:
    with pytest.raises(error, match=message):
        Quiz(text)


def test_without_scripts_the_explanations_come_after_all_questions() -> None:
    page = specimen().fallback_html()
    questions, answers = page.split("<strong>Answers</strong>")
    assert "What is the shape" in questions
    assert "used up in the scores" not in questions
    verdicts = re.findall(r"<strong>(Right|No)\.</strong>", answers)
    assert verdicts == ["No", "Right", "No", "No", "Right", "Right", "No"]


def plain_text(nodes: list) -> str:
    """The nodes' letters alone."""
    return "".join(node if isinstance(node, str) else plain_text(node[1:]) for node in nodes)


@pytest.mark.parametrize(
    ("source", "letters"),
    [
        ("a *b* **c** `d`", "a b c d"),
        (r"$\frac{a}{b}$", "ab"),
        (r"$d_\mathrm{head}$", "dhead"),
        ("5 $ and 3 $", "5 $ and 3 $"),
        ("one\n  two", "one two"),
        ("a_b * c", "a_b * c"),
    ],
)
def test_letters_survive(source: str, letters: str) -> None:
    assert plain_text(rich_text(source)) == letters


@in_browser
def test_choosing_shows_that_explanation_and_no_other(show: Show) -> None:
    page = show(specimen())
    expect(page.locator(".why:visible")).to_have_count(0)
    page.get_by_label("5 32").check()
    expect(page.locator(".why:visible")).to_have_text(["✓ Right.One row for each query, made of values."])
    page.get_by_label("9 32").check()
    expect(page.locator(".why:visible")).to_have_count(2)
    expect(page.locator(".score")).to_have_text("1 of 3 answered, 1 right at the first choice.")
    expect(spoken(page)).to_contain_text("✗ No.Keys and values are summed over")


@in_browser
def test_the_first_choice_counts(show: Show) -> None:
    page = show(specimen())
    page.get_by_label("They sharpen").check()
    page.get_by_label("Nothing").check()
    expect(page.locator(".score")).to_have_text("1 of 3 answered, 0 right at the first choice.")
    page.get_by_role("button", name="Start again").click()
    expect(page.locator(".why:visible")).to_have_count(0)
    assert page.locator("input:checked").count() == 0
    page.get_by_label("Nothing").check()
    expect(page.locator(".score")).to_have_text("1 of 3 answered, 1 right at the first choice.")


@in_browser
def test_all_explanations_at_once_and_on_paper(show: Show) -> None:
    page = show(specimen())
    page.get_by_label("show all explanations").check()
    expect(page.locator(".why:visible")).to_have_count(7)
    page.get_by_label("show all explanations").uncheck()
    page.emulate_media(media="print")
    expect(page.locator(".why:visible")).to_have_count(7)


@in_browser
def test_a_choice_is_named_with_its_formulas(show: Show) -> None:
    """Chromium leaves MathML out of the name that a label gives."""
    page = show(Quiz("Which?\n+ $F(x) = 0$ :: yes\n- it is $x$ :: no\n- 5 :: no"))
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    names = [node["name"]["value"] for node in tree if node.get("role", {}).get("value") == "radio"]
    assert names == ["F(x)=0", "it is x", "5"]
