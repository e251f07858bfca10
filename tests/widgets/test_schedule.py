"""The warm-up: the peak on the page is where the trainer's own function has it; the losses are recorded."""

from __future__ import annotations

import math

import pytest

from tests.widgets.conftest import Show
from tests.widgets.figure import in_browser, numbers, slide
from ttutor.widgets import ScheduleExplorer


def specimen() -> ScheduleExplorer:
    """The figure as the gallery shows it."""
    return ScheduleExplorer()


def test_bad_input_is_refused_with_a_reason() -> None:
    with pytest.raises(ValueError, match="warmup has to be one of 1, 25, 50, 100, 200, 400, not 30"):
        ScheduleExplorer(warmup=30)


def test_without_a_warm_up_the_trainings_end_where_frequencies_end_and_with_a_hundred_steps_they_do_not() -> None:
    made = ScheduleExplorer()
    ends = {run["warmup"]: [losses[-1] for losses in run["losses"]] for run in made.runs}
    assert min(ends[1]) > made.guessing - 0.1
    assert max(ends[100]) < made.guessing - 1


@in_browser
def test_the_peak_on_screen_is_pythons_and_the_finding_says_who_learns(show: Show) -> None:
    page = show(ScheduleExplorer())
    for run in ScheduleExplorer().runs:
        made = ScheduleExplorer(warmup=run["warmup"])
        assert math.isclose(numbers(page, "circle")[0], made.rate(run["warmup"]), rel_tol=1e-6)
        found = page.locator(".tt-found").inner_text()
        learned = max(losses[-1] for losses in run["losses"]) < made.guessing - 1
        assert found.startswith("It learns") == learned
        assert ("later" in found) == (run["warmup"] == 400)
        fell = any(min(losses) < made.guessing - 0.3 < losses[-1] for losses in run["losses"])
        assert ("lost it again" in found) == fell
        slide(page, "Warm-up", "ArrowRight")
