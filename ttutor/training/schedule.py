r"""The learning rate over time: a linear warm-up, then a plateau, or a decline with the inverse root of the step.

Vaswani et al. (2017), equation 3:

$$\mathrm{lr}(s) = d_\mathrm{model}^{-0.5} \cdot \min(s^{-0.5},\; s \cdot \mathrm{warmup}^{-1.5})$$

Steps count from 1.
"""


def noam_rate(step: int, d_model: int, warmup: int = 4000, factor: float = 1.0) -> float:
    """The paper's schedule (equation 3), named after Noam Shazeer; `factor` scales all of it.

    >>> f"{noam_rate(4000, d_model=512):.3e}"  # its peak, at the end of the warm-up
    '6.988e-04'
    """
    _check_step(step, warmup)
    if d_model < 1:
        raise ValueError(f"d_model must be at least 1, got {d_model}")
    return factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def warmup_then_decline(
    step: int, peak: float, warmup: int, *, progress: float = 0.0, decay_from: float = 1.0
) -> float:
    """The same curve, its height given by the peak; then, at will, a straight line down that ends at zero.

    Args:
        step: the step about to be taken, from 1.
        peak: the rate at step `warmup`.
        warmup: steps of linear growth.
        progress: the share of the training that is done, from 0 to 1.
        decay_from: the share after which the rate is brought down linearly to zero; 1 leaves the curve as it is.

    >>> [warmup_then_decline(step, peak=1.0, warmup=100) for step in (50, 100, 400)]
    [0.5, 1.0, 0.5]
    >>> warmup_then_decline(400, peak=1.0, warmup=100, progress=0.75, decay_from=0.5)
    0.25
    """
    _check_step(step, warmup)
    return _on_the_way_down(peak * min(step / warmup, (warmup / step) ** 0.5), progress, decay_from)


def warmup_hold_decline(
    step: int, peak: float, warmup: int, *, progress: float = 0.0, decay_from: float = 1.0
) -> float:
    """A trapezoid: up to the peak, along it, and down a straight line that ends at zero.

    Arguments and errors as for `warmup_then_decline`. The plateau learns fast and leaves the weights restless; the way
    down calms them (Hägele et al. 2024).

    >>> [warmup_hold_decline(step, peak=1.0, warmup=100) for step in (50, 100, 400)]
    [0.5, 1.0, 1.0]
    >>> warmup_hold_decline(400, peak=1.0, warmup=100, progress=0.75, decay_from=0.5)
    0.5
    """
    _check_step(step, warmup)
    return _on_the_way_down(peak * min(step / warmup, 1.0), progress, decay_from)


SCHEDULES = {"inverse-sqrt": warmup_then_decline, "trapezoid": warmup_hold_decline}


def _on_the_way_down(rate: float, progress: float, decay_from: float) -> float:
    """The rate, which falls linearly to zero from ``decay_from`` on."""
    for name, share in (("progress", progress), ("decay_from", decay_from)):
        if not 0 <= share <= 1:
            raise ValueError(f"{name} is a share of the training and must lie between 0 and 1, got {share}")
    return rate * (1 - progress) / (1 - decay_from) if progress > decay_from else rate


def _check_step(step: int, warmup: int) -> None:
    if step < 1:
        raise ValueError(f"steps count from 1, got step {step}")
    if warmup < 1:
        raise ValueError(f"warmup must be at least 1 step, got {warmup}")
