"""Lanes that the grader's tests share: starting one takes as long as importing PyTorch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.require import missing
from ttutor.grading.ladder import choose_level, open_lane, problem_with
from ttutor.grading.sandbox import LEVELS
from ttutor.grading.zygotes import Lane


@pytest.fixture(scope="session")
def lane() -> Iterator[Lane]:
    """A lane of the strongest level that works here."""
    opened = open_lane(choose_level())
    yield opened
    opened.close()


@pytest.fixture
def level(request: pytest.FixtureRequest) -> str:
    """The name of a level that works here; the test is skipped, with the reason, where it does not."""
    (found,) = (one for one in LEVELS if one.name == request.param)
    if (why := problem_with(found)) is not None:
        missing("sandbox", f"the level {found.name} does not work here: {why}")
    return found.name
