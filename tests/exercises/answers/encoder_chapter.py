"""Answers to chapter 5's own exercises: right ones in other styles, and mistakes that stand in no list."""

import torch
from torch.nn import functional

# The folded norm


def folded_by_a_diagonal(gain, bias, weight, constant):
    return weight @ torch.diag(gain), functional.linear(bias, weight, constant)


def folded_by_probing(gain, bias, weight, constant):
    """Sends zero and the unit vectors through norm's end and map."""

    def through(normed):
        return functional.linear(gain * normed + bias, weight, constant)

    nothing = through(torch.zeros_like(gain))
    return (through(torch.eye(len(gain), dtype=gain.dtype)) - nothing).T, nothing


def folded_and_halved(gain, bias, weight, constant):
    return 0.5 * weight * gain, constant + weight @ bias


# The lost stream


def stream_by_torch(hidden, sublayers):
    width = hidden.shape[-1:]
    for sublayer in sublayers:
        hidden = torch.add(hidden, sublayer(functional.layer_norm(hidden, width)))
    return functional.layer_norm(hidden, width)


def stream_by_recursion(hidden, sublayers):
    normed = functional.layer_norm(hidden, hidden.shape[-1:])
    return normed if not sublayers else stream_by_recursion(hidden + sublayers[0](normed), sublayers[1:])


def stream_that_reads_twice_as_loud(hidden, sublayers):
    width = hidden.shape[-1:]
    for sublayer in sublayers:
        hidden = hidden + sublayer(2 * functional.layer_norm(hidden, width))
    return functional.layer_norm(hidden, width)


def stream_that_fades(hidden, sublayers):
    width = hidden.shape[-1:]
    for sublayer in sublayers:
        hidden = 0.9 * hidden + sublayer(functional.layer_norm(hidden, width))
    return functional.layer_norm(hidden, width)


RIGHT = {
    "encoder.folded_norm": (folded_by_a_diagonal, folded_by_probing),
    "encoder.lost_stream": (stream_by_torch, stream_by_recursion),
}

STRAY = {
    "encoder.folded_norm": ((folded_and_halved, "both_ways_agree"),),
    "encoder.lost_stream": (
        (stream_that_reads_twice_as_loud, "reads_are_normalised"),
        (stream_that_fades, "writes_add_up"),
    ),
}
