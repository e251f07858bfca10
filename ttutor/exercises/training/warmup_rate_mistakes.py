"""What goes wrong with a learning rate that warms up and then falls."""

import math


def rate(step, d_model, warmup, factor, *, width=-0.5, rise=-1.5):
    step = max(step, 1)
    return factor * d_model**width * min(step**-0.5, step * warmup**rise)


def step0_crash(step, d_model, warmup, factor):
    return factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def step0_zero(step, d_model, warmup, factor):
    return rate(step, d_model, warmup, factor) if step else 0.0


def step0_infinite(step, d_model, warmup, factor):
    return rate(step, d_model, warmup, factor) if step else math.inf


def max_not_min(step, d_model, warmup, factor):
    step = max(step, 1)
    return factor * d_model**-0.5 * max(step**-0.5, step * warmup**-1.5)


def no_dmodel(step, d_model, warmup, factor):
    return rate(step, d_model, warmup, factor, width=0)


def dmodel_plus_half(step, d_model, warmup, factor):
    return rate(step, d_model, warmup, factor, width=0.5)


def dmodel_whole(step, d_model, warmup, factor):
    return rate(step, d_model, warmup, factor, width=-1)


def warmup_exp(step, d_model, warmup, factor):
    return rate(step, d_model, warmup, factor, rise=-0.5)


def warmup_exp_one(step, d_model, warmup, factor):
    return rate(step, d_model, warmup, factor, rise=-1)


def no_decay(step, d_model, warmup, factor):
    return rate(min(step, warmup), d_model, warmup, factor)


def linear_to_zero(step, d_model, warmup, factor):
    if step <= warmup:
        return rate(step, d_model, warmup, factor)
    return rate(warmup, d_model, warmup, factor) * max(0.0, 2 - step / warmup)


def linear_decay(step, d_model, warmup, factor):
    if step <= warmup:
        return rate(step, d_model, warmup, factor)
    return rate(warmup, d_model, warmup, factor) * max(0.0, 1 - (step - warmup) / (10 * warmup))


def decay_by_step(step, d_model, warmup, factor):
    if step <= warmup:
        return rate(step, d_model, warmup, factor)
    return rate(warmup, d_model, warmup, factor) * warmup / step


def decay_starts_anew(step, d_model, warmup, factor):
    if step <= warmup:
        return rate(step, d_model, warmup, factor)
    return factor * d_model**-0.5 * (step - warmup) ** -0.5


def never_falls(step, d_model, warmup, factor):
    return factor * d_model**-0.5 * max(step, 1) * warmup**-1.5


def no_warmup(step, d_model, warmup, factor):
    return factor * d_model**-0.5 * max(step, 1) ** -0.5


def no_factor(step, d_model, warmup, factor):
    return rate(step, d_model, warmup, 1.0)


def factor_on_one_branch(step, d_model, warmup, factor):
    step = max(step, 1)
    return d_model**-0.5 * min(factor * step**-0.5, step * warmup**-1.5)


def step_plus_one(step, d_model, warmup, factor):
    return rate(step + 1, d_model, warmup, factor)


def warmup_plus_one(step, d_model, warmup, factor):
    if step < warmup:
        return factor * d_model**-0.5 * (step + 1) * warmup**-1.5
    return rate(step, d_model, warmup, factor)


def hard_coded_warmup(step, d_model, warmup, factor):
    return rate(step, d_model, 4000, factor)


def hard_coded_width(step, d_model, warmup, factor):
    return rate(step, 512, warmup, factor)


def share_of_the_peak(step, d_model, warmup, factor):
    step = max(step, 1)
    return factor * min(step / warmup, math.sqrt(warmup / step))


def whole_division(step, d_model, warmup, factor):
    step = max(step, 1)
    peak = factor * (d_model * warmup) ** -0.5
    return peak * (step // warmup if step < warmup else (warmup / step) ** 0.5)
