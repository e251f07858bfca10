"""Warm-up and peak: each has its handle, and the losses are those that were recorded."""

from __future__ import annotations

import numpy as np
import pytest

from tests.widgets.conftest import Show
from tests.widgets.figure import in_browser, numbers, slide
from ttutor.widgets import ScheduleExplorer


def specimen() -> ScheduleExplorer:
    """The figure as the gallery shows it."""
    return ScheduleExplorer()


def test_bad_input_is_refused_with_a_reason() -> None:
    with pytest.raises(ValueError, match="warmup has to be one of 1, 30, 100, not 25"):
        ScheduleExplorer(warmup=25)
    with pytest.raises(ValueError, match=r"peak has to be one of 0.001, 0.003, 0.01, not 0.1"):
        ScheduleExplorer(peak=0.1)


def test_there_is_a_training_for_every_place_of_the_two_handles() -> None:
    made = ScheduleExplorer()
    tried = {(run["peak"], run["warmup"]) for run in made.runs}
    assert tried == {(peak, warmup) for peak in (0.001, 0.003, 0.01) for warmup in (1, 30, 100)}
    assert len(tried) == len(made.runs)
    assert [ScheduleExplorer(warmup=100, peak=0.01).rate(step) for step in (50, 100, 300)] == [0.005, 0.01, 0.01]


@in_browser
def test_each_handle_moves_alone_and_the_finding_gives_the_losses_at_the_end(show: Show) -> None:
    page = show(ScheduleExplorer(peak=0.001))
    for peak in (0.001, 0.003, 0.01):
        assert numbers(page, "circle.peak")[0] == peak
        found = page.locator(".tt-found").inner_text()
        (run,) = (run for run in ScheduleExplorer().runs if (run["peak"], run["warmup"]) == (peak, 1))
        last = [losses[-1] for losses in run["losses"]]
        assert f"{min(last):.2f} to {max(last):.2f} nats" in found
        slide(page, "Peak", "ArrowRight")
    slide(page, "Warm-up", "ArrowRight")
    assert "without a warm-up (dashed)" in page.locator(".tt-found").inner_text()


@in_browser
def test_the_verdict_on_each_peak_is_that_of_the_trainings(show: Show) -> None:
    made = ScheduleExplorer(peak=0.001)
    page = show(made)
    found = page.locator(".tt-found")

    def learn(peak: float, warmup: int) -> bool:
        (run,) = (run for run in made.runs if (run["peak"], run["warmup"]) == (peak, warmup))
        return all(losses[-1] < made.guessing - 1 for losses in run["losses"])

    verdicts, summary = [], []
    for peak in (0.001, 0.003, 0.01):
        slide(page, "Warm-up", "Home")
        assert "This peak" not in found.inner_text()
        slide(page, "Warm-up", "End")
        saved = any(learn(peak, warmup) for warmup in (30, 100))
        verdicts.append(
            f"This peak needs {'no' if learn(peak, 1) else 'a'} warm-up."
            if saved
            else "None of these warm-ups lets all seeds"
        )
        needs = "needs no warm-up" if learn(peak, 1) else "needs one"
        summary.append(f"{peak} {needs if saved else 'is too high for any of these'}")
        if len(summary) == 3:  # a warm-up was tried at every peak: the question has its answer
            assert found.inner_text().endswith(f"In all: {', '.join(summary)}.")
            break
        assert verdicts[-1] in found.inner_text()
        slide(page, "Warm-up", "ArrowLeft")
        assert (verdicts[-1] if learn(peak, 30) or not saved else "Another one does better.") in found.inner_text()
        slide(page, "Peak", "ArrowRight")
    assert len(set(verdicts)) == 3
    slide(page, "Warm-up", "ArrowLeft")
    assert page.locator("circle.place").count() == len(made.runs)
    # Every place has been tried now, and keeps what came of it; after a reset only the one that is shown does.
    shares = [sum(losses[-1] < made.guessing - 1 for losses in run["losses"]) / 3 for run in made.runs]
    np.testing.assert_allclose(sorted(numbers(page, "circle.place")), sorted(shares), atol=0.005)
    page.get_by_role("button", name="Reset").click()
    assert len(numbers(page, "circle.place")) == 1


@in_browser
def test_arrow_keys_take_the_ball_to_every_place(show: Show) -> None:
    page = show(ScheduleExplorer())
    ball = page.locator("svg [role=slider]")
    for key, place in (
        ("ArrowUp", "warm-up 1 steps, peak 0.01"),
        ("ArrowDown", "warm-up 1 steps, peak 0.003"),
        ("ArrowDown", "warm-up 1 steps, peak 0.001"),
        ("ArrowRight", "warm-up 30 steps, peak 0.001"),
        ("ArrowRight", "warm-up 100 steps, peak 0.001"),
        ("ArrowUp", "warm-up 100 steps, peak 0.003"),
        ("ArrowLeft", "warm-up 30 steps, peak 0.003"),
    ):
        ball.press(key)
        assert ball.get_attribute("aria-valuetext") == place
