"""`ttutor.grading.exports`: what Gradescope and a JUnit reader parse."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from tests.grading.fake import HIDDEN
from tests.grading.made import LATE, MASK, SOFTMAX, asked, marked, recorded
from ttutor.grading.exports import gradescope, junit
from ttutor.grading.marks import State

GRADESCOPE_KEYS = {"score", "output", "output_format", "visibility", "stdout_visibility", "tests", "extra_data"}
TEST_KEYS = {"name", "score", "max_score", "status", "output", "output_format", "visibility"}
VISIBILITIES = ("visible", "after_due_date", "after_published", "hidden")
HOSTILE = "\x00\x1b[2J ]]> </failure> \ud800 \ufffe"


def test_gradescope_reads_scores_and_visibility() -> None:
    table = json.loads(gradescope(asked(), recorded("ada", marked(SOFTMAX, State.WRONG, earned=1.0), marked(MASK))))
    assert set(table) <= GRADESCOPE_KEYS
    assert table["visibility"] in VISIBILITIES
    assert table["score"] == 3.0
    assert all(set(test) == TEST_KEYS and test["visibility"] in VISIBILITIES for test in table["tests"])
    assert all(test["status"] in ("passed", "failed") and test["score"] <= test["max_score"] for test in table["tests"])
    assert sum(test["max_score"] for test in table["tests"]) == pytest.approx(6, abs=1e-3)


def test_hidden_cases_are_an_entry_of_their_own_without_their_names() -> None:
    assignment = asked(visibility={"hidden_cases": "hidden", "results": "after_due_date"})
    text = gradescope(assignment, recorded("ada", marked(SOFTMAX, State.WRONG, message=f"With {HIDDEN}: 3.14")))
    seen, kept = json.loads(text)["tests"]
    assert (seen["visibility"], kept["visibility"]) == ("after_due_date", "hidden")
    assert (seen["max_score"], kept["max_score"]) == (2.6667, 1.3333)
    assert HIDDEN not in text
    assert "3.14" not in text


def test_gradescope_gets_no_score_for_what_a_human_has_to_look_at() -> None:
    table = json.loads(gradescope(asked(), recorded(state=State.NOT_GRADABLE, problem="It is no notebook.")))
    assert "score" not in table
    assert table["tests"] == []
    assert "It is no notebook." in table["output"]


def test_gradescope_gets_the_total_after_lateness_and_the_sandbox() -> None:
    table = json.loads(gradescope(asked(), recorded(late=LATE)))
    assert table["score"] == 5.4
    assert "Sandbox: none." in table["output"]


def test_what_gradescope_shows_does_not_help_to_guess_the_seed() -> None:
    assert "a-key" not in gradescope(asked(), recorded(key="a-key"))


def test_junit_counts_what_its_tests_say() -> None:
    states = [State.OK, State.WRONG, State.ERROR, State.TIMEOUT, State.CRASH, State.MISSING, State.NOT_GRADABLE]
    records = [recorded(f"s{n}", marked(SOFTMAX, state), marked(MASK)) for n, state in enumerate(states)]
    root = ET.fromstring(junit(asked(), records))
    assert {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "14",
        "failures": "4",
        "errors": "2",
        "skipped": "1",
    }
    for kind, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert len(root.findall(f".//{tag}")) == int(root.get(kind))
        assert sum(int(suite.get(kind)) for suite in root) == int(root.get(kind))
    assert [suite.get("name") for suite in root] == [record.student for record in records]


def test_junit_holds_whatever_a_student_writes() -> None:
    root = ET.fromstring(junit(asked(), [recorded("ada", marked(SOFTMAX, State.ERROR, message=HOSTILE))]))
    (failure,) = root.findall(".//failure")
    assert "]]> </failure>" in failure.get("message")


def test_junit_says_nothing_of_hidden_cases() -> None:
    assert HIDDEN not in junit(asked(), [recorded("a", marked(SOFTMAX, State.WRONG, message=f"With {HIDDEN}"))])


def test_a_submission_that_cannot_be_graded_passes_no_test() -> None:
    root = ET.fromstring(junit(asked(), [recorded(state=State.NOT_GRADABLE), recorded(state=State.GRADER_ERROR)]))
    assert (root.get("errors"), root.get("tests")) == ("4", "4")
