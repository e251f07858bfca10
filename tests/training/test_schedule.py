"""The learning rate, against the paper's formula and the figures that follow from it."""

import pytest

from ttutor.training.schedule import noam_rate, warmup_hold_decline, warmup_then_decline


@pytest.mark.parametrize(("step", "rate"), [(100, 1.75e-5), (4_000, 6.988e-4), (16_000, 3.49e-4), (100_000, 1.40e-4)])
def test_the_paper_s_base_model(step, rate):
    assert noam_rate(step, d_model=512) == pytest.approx(rate, rel=4e-3)


def test_the_peak_stands_at_the_end_of_the_warm_up():
    rates = {step: noam_rate(step, d_model=512) for step in range(1, 12_000)}
    assert max(rates, key=rates.get) == 4_000


@pytest.mark.parametrize("step", [1, 3_999, 4_000, 4_001, 50_000])
def test_both_forms_are_one_curve(step):
    peak = noam_rate(4_000, 512)
    assert warmup_then_decline(step, peak, 4_000) == pytest.approx(noam_rate(step, 512))
    assert noam_rate(step, 512, factor=2.0) == pytest.approx(2 * noam_rate(step, 512))


def test_the_last_part_goes_linearly_to_zero():
    def rate(progress):
        return warmup_then_decline(100, 1.0, 100, progress=progress, decay_from=0.5)

    assert [rate(share) for share in (0.0, 0.5, 0.75, 0.9, 1.0)] == pytest.approx([1.0, 1.0, 0.5, 0.2, 0.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"step": 0, "peak": 1.0, "warmup": 10}, "got step 0"),
        ({"step": 1, "peak": 1.0, "warmup": 0}, "at least 1 step, got 0"),
        ({"step": 1, "peak": 1.0, "warmup": 1, "progress": 1.5}, r"progress .* got 1\.5"),
        ({"step": 1, "peak": 1.0, "warmup": 1, "decay_from": -1.0}, "decay_from"),
    ],
)
def test_impossible_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        warmup_then_decline(**arguments)


def test_the_trapezoid_goes_up_along_and_down():
    total, warmup = 100, 10
    rates = [
        warmup_hold_decline(step, 2.0, warmup, progress=(step - 1) / total, decay_from=0.5)
        for step in range(1, total + 1)
    ]
    assert rates[:warmup] == pytest.approx([0.2 * step for step in range(1, warmup + 1)])
    assert rates[warmup:51] == [2.0] * (51 - warmup)
    assert rates[51:] == pytest.approx([2.0 * (total - done) / (total / 2) for done in range(51, total)])
