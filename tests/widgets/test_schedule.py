"""The warm-up: the peak on the page is where the trainer's own function has it."""

from __future__ import annotations

import math
import re

import pytest

from tests.widgets.conftest import Show
from tests.widgets.figure import in_browser, numbers, slide
from ttutor.widgets import ScheduleExplorer


def specimen() -> ScheduleExplorer:
    """The figure as the gallery shows it."""
    return ScheduleExplorer()


def extremes() -> list[ScheduleExplorer]:
    return [ScheduleExplorer(warmup=100), ScheduleExplorer(warmup=10_000, steps=2000, d_model=4096)]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"warmup": 0}, "warmup has to be from 100 to 10,000"), ({"steps": 1}, "steps has to be from 1,000")],
)
def test_bad_input_is_refused_with_a_reason(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ScheduleExplorer(**options)


@in_browser
@pytest.mark.parametrize("d_model", [64, 512])
def test_the_peak_on_screen_is_pythons(show: Show, d_model: int) -> None:
    page = show(ScheduleExplorer(d_model=d_model))
    for keys, warmup in (([], 4000), (["End"], 10_000), (["ArrowLeft"], 9900)):
        slide(page, "Warm-up", *keys)
        made = ScheduleExplorer(d_model=d_model, warmup=warmup)
        assert math.isclose(numbers(page, "circle")[0], made.rate(warmup), rel_tol=1e-6)
        times = re.search(r"would have ([\d\s]+) times", page.locator(".tt-found").inner_text())
        without = ScheduleExplorer(d_model=d_model).d_model ** -0.5
        assert times is not None
        assert int(re.sub(r"\s", "", times[1])) == round(without / made.rate(warmup))


@in_browser
def test_a_curve_that_leaves_the_picture_comes_back_where_it_does_and_has_no_other_peak(show: Show) -> None:
    page = show(ScheduleExplorer(warmup=100))
    drawn = page.locator(".rate").get_attribute("d")
    up, down = ([tuple(map(float, point.split())) for point in part.split("L")] for part in drawn[1:].split("M"))
    assert up[-1][1] == down[0][1] == min(y for _, y in up + down)  # both ends at the border
    assert up[-1][0] < down[0][0]
    assert page.locator(".peak").count() == 0
