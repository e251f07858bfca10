"""Wrong answers to the exercise on sinusoidal encoding. They carry no annotations: they are wrong on purpose."""

import math

import torch
from einops import rearrange


def waves(position, frequency):
    """The angles: one row for each position, one column for each frequency."""
    return rearrange(position, "positions -> positions 1") * frequency


def frequencies(d_model, *, base=10_000.0):
    """One for each pair of features, the last pair perhaps cut."""
    return base ** (-torch.arange(0, d_model, 2) / d_model)


def positions(max_len):
    return torch.arange(max_len, dtype=torch.float32)


def interleave(first, second, d_model):
    """First at even features, second at odd ones."""
    return rearrange([first, second], "two positions pairs -> positions (pairs two)")[:, :d_model]


def encode(angle, d_model):
    """As it should be, given the angles."""
    return interleave(angle.sin(), angle.cos(), d_model)


def sin_cos_swapped(max_len, d_model):
    angle = waves(positions(max_len), frequencies(d_model))
    return interleave(angle.cos(), angle.sin(), d_model)


def concat(max_len, d_model):
    angle = waves(positions(max_len), frequencies(d_model))
    return torch.cat([angle.sin(), angle.cos()[:, : d_model // 2]], dim=1)


def only_sines(max_len, d_model):
    angle = waves(positions(max_len), frequencies(d_model))
    return interleave(angle.sin(), angle.sin(), d_model)


def every_feature_its_own(max_len, d_model):
    angle = waves(positions(max_len), 10_000.0 ** (-torch.arange(d_model) / d_model))
    even = torch.arange(d_model) % 2 == 0
    return torch.where(even, angle.sin(), angle.cos())


def every_feature_twice_as_fast(max_len, d_model):
    angle = waves(positions(max_len), 10_000.0 ** (-2 * torch.arange(d_model) / d_model))
    even = torch.arange(d_model) % 2 == 0
    return torch.where(even, angle.sin(), angle.cos())


def exponent_i(max_len, d_model):
    angle = waves(positions(max_len), 10_000.0 ** (-torch.arange(0, d_model, 2) / (2 * d_model)))
    return encode(angle, d_model)


def exponent_2x(max_len, d_model):
    angle = waves(positions(max_len), 10_000.0 ** (-2 * torch.arange(0, d_model, 2) / d_model))
    return encode(angle, d_model)


def sign(max_len, d_model):
    return encode(waves(positions(max_len), 1 / frequencies(d_model)), d_model)


def no_base(max_len, d_model):
    return encode(waves(positions(max_len), torch.arange(0, d_model, 2) / d_model), d_model)


def same_frequency(max_len, d_model):
    return encode(waves(positions(max_len), torch.ones(math.ceil(d_model / 2))), d_model)


def starts_at_1(max_len, d_model):
    return encode(waves(positions(max_len) + 1, frequencies(d_model)), d_model)


def share_of_length(max_len, d_model):
    return encode(waves(positions(max_len) / max_len, frequencies(d_model)), d_model)


def base_1000(max_len, d_model):
    return encode(waves(positions(max_len), frequencies(d_model, base=1000.0)), d_model)


def base_100_000(max_len, d_model):
    return encode(waves(positions(max_len), frequencies(d_model, base=100_000.0)), d_model)


def natural_base(max_len, d_model):
    return encode(waves(positions(max_len), frequencies(d_model, base=math.e)), d_model)


def log_of_base_ten(max_len, d_model):
    exponent = -torch.arange(0, d_model, 2) * math.log10(10_000.0) / d_model
    return encode(waves(positions(max_len), exponent.exp()), d_model)


def endpoints(max_len, d_model):
    n_pairs = math.ceil(d_model / 2)
    return encode(waves(positions(max_len), 10_000.0 ** (-torch.arange(n_pairs) / (n_pairs - 1))), d_model)


def whole_exponent(max_len, d_model):
    angle = waves(positions(max_len), 10_000.0 ** (-(torch.arange(0, d_model, 2) // d_model).float()))
    return encode(angle, d_model)


def times_two_pi(max_len, d_model):
    return encode(2 * math.pi * waves(positions(max_len), frequencies(d_model)), d_model)


def in_degrees(max_len, d_model):
    return encode(waves(positions(max_len), frequencies(d_model)) * math.pi / 180, d_model)


def odd_d_crash(max_len, d_model):
    angle = waves(positions(max_len), frequencies(d_model))
    encoding = torch.zeros(max_len, d_model)
    encoding[:, 0::2] = angle.sin()
    encoding[:, 1::2] = angle.cos()
    return encoding


def one_too_wide(max_len, d_model):
    angle = waves(positions(max_len), frequencies(d_model))
    return rearrange([angle.sin(), angle.cos()], "two positions pairs -> positions (pairs two)")


def one_too_narrow(max_len, d_model):
    return odd_d_crash(max_len, d_model - d_model % 2)


def last_left_empty(max_len, d_model):
    encoding = torch.zeros(max_len, d_model)
    even = d_model - d_model % 2
    encoding[:, :even] = encode(waves(positions(max_len), frequencies(d_model)), d_model)[:, :even]
    return encoding


def widened_when_odd(max_len, d_model):
    even = d_model + d_model % 2
    return encode(waves(positions(max_len), frequencies(even)), even)[:, :d_model]


def last_cosine_cut(max_len, d_model):
    angle = waves(positions(max_len), frequencies(d_model))
    encoding = torch.zeros(max_len, d_model)
    encoding[:, 0::2] = angle.sin()
    encoding[:, 1::2] = angle[:, :-1].cos()
    return encoding


def extra_batch(max_len, d_model):
    angle = waves(positions(max_len), frequencies(d_model))
    return rearrange(encode(angle, d_model), "positions d_model -> 1 positions d_model")


def transposed(max_len, d_model):
    angle = waves(positions(max_len), frequencies(d_model))
    return rearrange(encode(angle, d_model), "positions d_model -> d_model positions")


def one_position(max_len, d_model):
    return encode(waves(torch.tensor([float(max_len)]), frequencies(d_model)), d_model)[0]


def in_float64(max_len, d_model):
    return encode(waves(positions(max_len).double(), frequencies(d_model).double()), d_model)


def as_numpy(max_len, d_model):
    return encode(waves(positions(max_len), frequencies(d_model)), d_model).numpy()


def as_parameter(max_len, d_model):
    return torch.nn.Parameter(encode(waves(positions(max_len), frequencies(d_model)), d_model))
