"""Wrong answers to the exercise on LayerNorm, as students write them."""

import torch


def _statistics(hidden, axes=-1):
    """Mean and biased variance, their axes kept."""
    return hidden.mean(axes, keepdim=True), hidden.var(axes, unbiased=False, keepdim=True)


def wrong_dim(hidden, gain, bias, eps):
    mean, variance = _statistics(hidden, -2)
    return gain * (hidden - mean) / torch.sqrt(variance + eps) + bias


def all_dims(hidden, gain, bias, eps):
    mean, variance = _statistics(hidden, (-2, -1))
    return gain * (hidden - mean) / torch.sqrt(variance + eps) + bias


def whole_batch(hidden, gain, bias, eps):
    mean, variance = _statistics(hidden, tuple(range(hidden.ndim - 1)))
    return gain * (hidden - mean) / torch.sqrt(variance + eps) + bias


def third_axis(hidden, gain, bias, eps):
    mean, variance = _statistics(hidden, 2)
    return gain * (hidden - mean) / torch.sqrt(variance + eps) + bias


def second_axis(hidden, gain, bias, eps):
    mean, variance = _statistics(hidden, 1)
    return gain * (hidden - mean) / torch.sqrt(variance + eps) + bias


def no_keepdim(hidden, gain, bias, eps):
    mean, variance = hidden.mean(-1), hidden.var(-1, unbiased=False)
    return gain * (hidden - mean) / torch.sqrt(variance + eps) + bias


def unbiased(hidden, gain, bias, eps):
    mean, variance = hidden.mean(-1, keepdim=True), hidden.var(-1, keepdim=True)
    return gain * (hidden - mean) / torch.sqrt(variance + eps) + bias


def eps_outside(hidden, gain, bias, eps):
    mean, variance = _statistics(hidden)
    return gain * (hidden - mean) / (torch.sqrt(variance) + eps) + bias


def no_eps(hidden, gain, bias, eps):
    mean, variance = _statistics(hidden)
    return gain * (hidden - mean) / torch.sqrt(variance) + bias


def eps_ignored(hidden, gain, bias, eps):
    mean, variance = _statistics(hidden)
    return gain * (hidden - mean) / torch.sqrt(variance + 1e-5) + bias


def eps_as_a_floor(hidden, gain, bias, eps):
    mean, variance = _statistics(hidden)
    return gain * (hidden - mean) / torch.sqrt(variance.clamp(min=eps)) + bias


def no_sqrt(hidden, gain, bias, eps):
    mean, variance = _statistics(hidden)
    return gain * (hidden - mean) / (variance + eps) + bias


def no_affine(hidden, gain, bias, eps):
    mean, variance = _statistics(hidden)
    return (hidden - mean) / torch.sqrt(variance + eps)


def no_gain(hidden, gain, bias, eps):
    mean, variance = _statistics(hidden)
    return (hidden - mean) / torch.sqrt(variance + eps) + bias


def no_bias(hidden, gain, bias, eps):
    mean, variance = _statistics(hidden)
    return gain * (hidden - mean) / torch.sqrt(variance + eps)


def affine_order(hidden, gain, bias, eps):
    mean, variance = _statistics(hidden)
    return gain * ((hidden - mean) / torch.sqrt(variance + eps) + bias)


def affine_first(hidden, gain, bias, eps):
    hidden = gain * hidden + bias
    mean, variance = _statistics(hidden)
    return (hidden - mean) / torch.sqrt(variance + eps)


def gain_plus_one(hidden, gain, bias, eps):
    mean, variance = _statistics(hidden)
    return (1 + gain) * (hidden - mean) / torch.sqrt(variance + eps) + bias


def rmsnorm(hidden, gain, bias, eps):
    return gain * hidden / torch.sqrt(hidden.square().mean(-1, keepdim=True) + eps) + bias


def mean_square(hidden, gain, bias, eps):
    mean = hidden.mean(-1, keepdim=True)
    return gain * (hidden - mean) / torch.sqrt(hidden.square().mean(-1, keepdim=True) + eps) + bias


def mean_kept(hidden, gain, bias, eps):
    _, variance = _statistics(hidden)
    return gain * hidden / torch.sqrt(variance + eps) + bias


def unit_length(hidden, gain, bias, eps):
    centred = hidden - hidden.mean(-1, keepdim=True)
    return gain * centred / torch.sqrt(centred.square().sum(-1, keepdim=True) + eps) + bias


def mean_distance(hidden, gain, bias, eps):
    centred = hidden - hidden.mean(-1, keepdim=True)
    return gain * centred / (centred.abs().mean(-1, keepdim=True) + eps) + bias


def zero_to_one(hidden, gain, bias, eps):
    low, high = hidden.amin(-1, keepdim=True), hidden.amax(-1, keepdim=True)
    return gain * (hidden - low) / (high - low + eps) + bias


def difference_of_squares(hidden, gain, bias, eps):
    mean = hidden.mean(-1, keepdim=True)
    variance = hidden.square().mean(-1, keepdim=True) - mean.square()
    return gain * (hidden - mean) / torch.sqrt(variance + eps) + bias


def clamped_difference_of_squares(hidden, gain, bias, eps):
    mean = hidden.mean(-1, keepdim=True)
    variance = (hidden.square().mean(-1, keepdim=True) - mean.square()).clamp(min=0)
    return gain * (hidden - mean) / torch.sqrt(variance + eps) + bias


def casts_to_float32(hidden, gain, bias, eps):
    centred = (hidden - hidden.mean(-1, keepdim=True)).float()
    return gain.float() * centred / torch.sqrt(centred.square().mean(-1, keepdim=True) + eps) + bias.float()


def inplace(hidden, gain, bias, eps):
    mean, variance = _statistics(hidden)
    hidden -= mean
    hidden /= torch.sqrt(variance + eps)
    return gain * hidden + bias


def detached(hidden, gain, bias, eps):
    mean, variance = _statistics(hidden.detach())
    return gain * (hidden - mean) / torch.sqrt(variance + eps) + bias


def deviation_squared(hidden, gain, bias, eps):
    mean, variance = _statistics(hidden)
    deviation = torch.sqrt(variance)
    return gain * (hidden - mean) / torch.sqrt(deviation**2 + eps) + bias
