"""What the instructors' page names exists."""

from __future__ import annotations

import re
from pathlib import Path

from book._tools.build import read_toc
from tests.grading.made import MASK, SOFTMAX, marked, recorded
from ttutor.claims import all_claims
from ttutor.exercises import exercises
from ttutor.grading.feedback import IN_WORDS
from ttutor.grading.marks import State

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "book" / "instructors.md").read_text(encoding="utf-8")
CHAPTERS = [page.removeprefix("book/") for page in read_toc() if re.match(r"book/\d\d-[a-z]+$", page)]
PLAN = TEXT[TEXT.index("## Planning a course") : TEXT.index("## Assigning")]


def test_every_exercise_that_is_suggested_exists() -> None:
    stems = "|".join(chapter[3:] for chapter in CHAPTERS)
    named = set(re.findall(rf"`((?:{stems})\.\w+)`", PLAN))
    assert len(named) > 20
    assert named - {exercise.id for exercise in exercises()} == set()


def test_every_claim_that_is_named_is_linked_to_its_chapter() -> None:
    named = re.findall(r"\b[A-Z]{2,3}-\d\d\b(?=<)", PLAN)
    links = {claim: page for page, claim in re.findall(r'href="([\w-]+)\.html#claim-([A-Z]+-\d\d)"', PLAN)}
    assert set(named) == set(links)
    assert {claim: page[3:].removesuffix("-deeper") for claim, page in links.items()} == {
        id_: all_claims()[id_].chapter for id_ in links
    }


def test_the_longest_syllabus_has_every_chapter_once_and_each_has_a_goal() -> None:
    table = PLAN[PLAN.index("Three syllabi") : PLAN.index("What needs what")]
    weeks = re.findall(r"\* - \d+\n  - ([^\n]*)", table)
    assert [re.search(r"<(\d\d-\w+)>", week)[1] for week in weeks] == CHAPTERS
    goals = re.findall(r"^\{doc\}`Chapter \d+ <(\d\d-\w+)>`\n: Goal: .+\n: Homework: .+\n: Stumbling", PLAN, re.M)
    assert goals == CHAPTERS


def test_the_states_of_the_gradebook_are_those_of_the_table() -> None:
    table = TEXT[TEXT.index("The column `state`") : TEXT.index("How each exercise ended")]
    of_a_submission = (State.OK, State.MISSING, State.NOT_GRADABLE, State.GRADER_ERROR)
    pieces = [marked(MASK, state=state, warnings=warnings) for state in State for warnings in ((), ("line 1: `sys`",))]
    seen = {recorded("ada", marked(SOFTMAX), piece, state=state).state for state in of_a_submission for piece in pieces}
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.M)) == seen


def test_in_the_sample_only_those_whose_marks_are_all_there_are_ok() -> None:
    sample = TEXT[TEXT.index("$ cut -d, -f1") :].partition("```")[0].splitlines()[3:]
    assert len(sample) == 6
    for _, _, state, *points, total, _ in (row.split(",") for row in sample):
        assert state == ("missing" if not any(map(int, filter(None, points))) else "ok" if total else "open")
        assert (state == "open") is ("" in points)


def test_how_an_exercise_ends_is_named_in_words_and_as_the_records_have_it() -> None:
    sentence = TEXT[TEXT.index("How each exercise ended") :].partition("\n")[0]
    ended = [state for state in State if state not in (State.NOT_GRADABLE, State.GRADER_ERROR)]
    assert f"({', '.join(IN_WORDS[state] for state in ended)})" in sentence
    assert re.findall(r"`(\w+)`", sentence) == [state.value for state in ended]
