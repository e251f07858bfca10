"""What training finds where a network is known to exist: 32 units for sin 3x between -pi and pi, three seeds.

A feed-forward network with one input, one output and 32 units can be built so that its largest error is 0.04. Here such
networks are trained instead, on 201 places of the region, by Adam with a rate that falls in a line. Their biases start
at 0, so that all kinks lie at x = 0, or so that the kinks are spread over the region. Four rates with 1,000 steps, and
the lowest with 5,000. Recorded are the largest errors on 1,001 places of the region. About a minute of one core.
"""

import itertools
import math

import torch
from torch import Tensor

from ttutor.layers import FeedForward
from ttutor.training.fit import fit

import _record

SEEDS = [0, 1, 2]
N_UNITS, STEPS, LONG = 32, 1000, 5000
RATES, LONG_RATE = [0.003, 0.01, 0.03, 0.1], 0.003


def wave(x: Tensor) -> Tensor:
    return torch.sin(3 * x)


def largest_error(seed: int, rate: float, spread: bool, steps: int) -> float:
    """Train one network; its largest error on the region."""
    inside = torch.linspace(-math.pi, math.pi, 1001)[:, None]
    torch.manual_seed(seed)
    network = FeedForward(1, N_UNITS)
    if spread:
        with torch.no_grad():
            network.widen.bias.copy_(-network.widen.weight[:, 0] * math.pi * (2 * torch.rand(N_UNITS) - 1))
    fit(
        network,
        [inside[::5]],
        lambda net, points: (net(points) - wave(points)).square().mean(),
        steps=steps,
        learning_rate=lambda step: rate * (1 - (step - 1) / steps),
    )
    with torch.no_grad():
        return round((network(inside) - wave(inside)).abs().max().item(), 4)


def runs(rates: list[float], steps: int) -> list[dict]:
    """The largest errors of all seeds, for both starts and each rate."""
    return [
        {
            "spread": spread,
            "learning_rate": rate,
            "largest_error": [largest_error(seed, rate, spread, steps) for seed in SEEDS],
        }
        for spread, rate in itertools.product((False, True), rates)
    ]


def main() -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    started = _record.start()
    results = {
        "settings": {"n_units": N_UNITS, "steps": STEPS, "steps_longer": LONG},
        "runs": runs(RATES, STEPS),
        "longer": runs([LONG_RATE], LONG),
    }
    _record.write("transformer_approximation", results, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
