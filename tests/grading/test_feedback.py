"""`ttutor.grading.feedback`: what a student is told, and what not."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import nbformat
import pytest

from tests.grading.fake import HIDDEN
from tests.grading.made import LATE, MASK, SOFTMAX, asked, marked, recorded
from ttutor.grading.assignment import Lateness
from ttutor.grading.feedback import IN_WORDS, as_html, feedback_notebook, plain, table
from ttutor.grading.feedback import feedback as page_of
from ttutor.grading.gradebook import with_marks_by_hand
from ttutor.grading.marks import State

ATTACKS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</code></p><h1>6 of 6 points</h1>",
    "`` ` <b>x</b> ` ``",
    "`a` <b> `",
    "\\` <b>x</b> `",
    "[click](javascript:alert(1))",
    "![x](http://evil/x.png)",
    "<http://evil>",
    "| a | b |\n| --- | --- |",
    "\n\n# 6 of 6 points\n\n",
    "- x\n\n    code",
    "```\n<b>\n```",
    "<!-- x",
    "&lt;b&gt; &#60;b&#62;",
    "a\u202eb\x00c\ud800d",
    "*bold* _em_ ~~gone~~",
)


def feedback(assignment, record):
    """The page for a student, as Markdown and as HTML."""
    markdown = page_of(assignment, record)
    return markdown, as_html(assignment.title, markdown)


class Tags(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list) -> None:
        self.tags.append((tag, tuple(attributes)))

    def handle_data(self, data: str) -> None:
        self.text += data


def body(page: str) -> str:
    return page.partition("<body>")[2]


@pytest.mark.parametrize("attack", ATTACKS)
def test_whatever_a_student_writes_comes_out_as_text(attack) -> None:
    record = recorded(
        "ada",
        marked(SOFTMAX, State.ERROR, message=attack, warnings=(attack,)),
        marked(MASK, title=attack),
        notes=(attack,),
        shown=attack,
        files=((attack, 1, "x"),),
    )
    harmless = recorded("ada", marked(SOFTMAX, State.ERROR, message="m", warnings=("w",)), marked(MASK), notes=("n",))
    _, html = feedback(asked(), record)
    allowed = {"h1", "h2", "p", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "code"}
    assert {tag for tag, _ in Tags(body(html)).tags} <= allowed
    assert not any(attributes for _, attributes in Tags(body(html)).tags)
    headings = [tag for tag, _ in Tags(html).tags if tag in ("h1", "h2")]
    assert headings == [tag for tag, _ in Tags(feedback(asked(), harmless)[1]).tags if tag in ("h1", "h2")]


def test_code_between_backticks_is_code() -> None:
    markdown = plain("Call `x.amax(dim=-1)` < 3.")
    assert markdown == "Call `x.amax(dim=-1)` &lt; 3."
    assert "Call <code>x.amax(dim=-1)</code> &lt; 3." in as_html("T", markdown)
    assert as_html("T", table(["h"], [["`a | b`"]])).count("<td>") == 1


def test_nothing_of_a_hidden_case_is_told_but_that_it_is_there() -> None:
    wrong = marked(SOFTMAX, State.WRONG, message=f"It is wrong with {HIDDEN}: 3.14 came.")
    for page in feedback(asked(), recorded("ada", wrong, marked(MASK))):
        assert HIDDEN not in page
        assert "3.14" not in page
        assert "kept for grading" in page
        assert "1 more case kept for grading counts too." in page


def test_a_student_sees_points_states_message_and_cases() -> None:
    wrong = marked(SOFTMAX, State.WRONG, message="Your columns sum to 1.", warnings=("It imports ttutor.",))
    markdown, html = feedback(asked(), recorded("ada", wrong, marked(MASK), files=(("hw.py", 9, "x"),)))
    for page in (markdown, html):
        for text in ("2 of 6 points.", "0 of 4", "Your columns sum to 1.", "✗ with one row", "✓ with two rows"):
            assert text in page
        assert "It imports ttutor." in page
        assert "hw.py" in page


def test_of_what_is_missing_no_cases_are_listed() -> None:
    markdown, _ = feedback(
        asked(), recorded("ada", marked(SOFTMAX, State.MISSING, message="Not handed in."), marked(MASK))
    )
    assert "✗" not in markdown
    assert "Not handed in." in markdown


def test_hints_are_for_the_instructor() -> None:
    one = marked(SOFTMAX, State.WRONG, hint_id="a_hint_id")
    for page in feedback(asked(), recorded("ada", one, marked(MASK))):
        assert "a_hint_id" not in page


@pytest.mark.parametrize("state", list(State))
def test_every_state_has_its_words(state) -> None:
    markdown, _ = feedback(asked(), recorded("ada", marked(SOFTMAX, state), marked(MASK)))
    assert IN_WORDS[state] in markdown


def test_what_is_marked_by_hand_waits_and_has_not_failed() -> None:
    wanted = asked(by_hand={"short_essay": 10})
    for page in feedback(wanted, with_marks_by_hand(wanted, recorded(), {})):
        assert "waits for a mark by hand" in page
        assert "Short essay: open" in page
        assert "could not be graded" not in page
        assert "short_essay" not in page.replace("\\", "")


def test_what_is_not_graded_promises_no_points() -> None:
    markdown, _ = feedback(asked(), recorded(state=State.NOT_GRADABLE, problem="It is no notebook."))
    assert "There is no total yet" in markdown
    assert "It is no notebook." in markdown
    assert "of 6 points" not in markdown
    missing, _ = feedback(asked(), recorded("a", marked(SOFTMAX, State.MISSING), state=State.MISSING))
    assert "Nothing was handed in: 0 of 6 points." in missing


@pytest.mark.parametrize(
    ("late", "said"),
    [
        (LATE, "It came 5 hours after the deadline; 10 % of the total were taken off."),
        (Lateness(2.5, 0.0), "It came 2.5 hours after the deadline."),
    ],
)
def test_lateness_is_said_with_its_cost(late, said) -> None:
    assert said in feedback(asked(), recorded(late=late))[0]


def test_who_was_in_time_hears_nothing_of_it() -> None:
    assert "deadline" not in feedback(asked(), recorded(late=Lateness(0.0, 0.0)))[0]


def notebook(*cells: tuple[str, object], **more: object) -> bytes:
    return json.dumps(
        {"nbformat": 4, "cells": [{"cell_type": kind, "source": source} for kind, source in cells]} | more
    ).encode()


def test_a_notebook_comes_back_with_the_findings_under_the_cells() -> None:
    data = notebook(
        ("markdown", "# Mine"),
        ("code", ["import torch\n", "def softmax(scores, dim=-1):\n", "    return scores"]),
        ("code", "def my_softmax(scores, dim=-1):\n    return 2 * scores"),
        ("code", "softmaxed = 3"),
    )
    record = recorded("ada", marked(SOFTMAX, State.WRONG, message="Your columns sum to 1."), marked(MASK))
    text = feedback_notebook(asked(), record, data)
    nbformat.validate(nbformat.reads(text, as_version=4))
    cells = [cell["source"] for cell in json.loads(text)["cells"]]
    assert "2 of 6 points." in cells[0]
    assert cells[1].startswith("# Mine")
    assert [number for number, cell in enumerate(cells) if "Your columns sum to 1." in cell] == [4]
    assert f"({MASK})" in cells[-1].replace("\\_", "_")
    assert HIDDEN not in text


@pytest.mark.parametrize(
    "data",
    [
        b"no JSON",
        b"[" * 100_000,
        b"[1]",
        notebook(("code", 3)),
        notebook(("heading", "x")),
        notebook(*[("code", "x")] * 6000),
        notebook(("code", "x" * (9 << 20))),
    ],
    ids=lambda data: str(data[:20]),
)
def test_what_is_no_notebook_is_not_copied(data) -> None:
    assert feedback_notebook(asked(), recorded(), data) is None


def test_of_a_notebook_nothing_that_runs_comes_back() -> None:
    cell = {"cell_type": "code", "source": "x = 1", "metadata": {"a": "<b>"}, "outputs": [{"text/html": "<script>"}]}
    text = feedback_notebook(asked(), recorded(), json.dumps({"cells": [cell], "metadata": {"x": "<i>"}}).encode())
    assert not [tag for tag in ("<script>", "<b>", "<i>") if tag in text]
