"""Would attention alone learn the jobs if it had longer, or learned vectors? The task of `encoder_facts`, two ways
harder.

First ten times the steps: three layers of attention, which have as many weights as the whole layer, with 2 heads and
with 16, and the whole layer without its ReLU; two learning rates, two further seeds. Then four times the people,
4,096 of 64 first names and 64 surnames, with the two names as two words of a sentence whose vectors are learned,
4,000 steps: the whole layer and the attention of its size. The rate falls to zero; stored are the shares of right
jobs.
"""

import torch

from experiments import _record, encoder_facts
from experiments.encoder_facts import ARMS, STEPS, rounded, share

SEEDS, RATES, TIMES, MORE_NAMES = [10, 11], [3e-3, 1e-2], 10, 64
ATTENTION = ["three layers of attention", "three of attention, 16 heads"]


def by_rate(name: str, **more: object) -> dict[str, list[float]]:
    """The shares of one arm at each rate."""
    found = share(ARMS[name], RATES, SEEDS, **more)
    rows = {str(rate): rounded(shares) for rate, shares in zip(RATES, found, strict=True)}
    print(name, more, rows, flush=True)
    return rows


def main() -> None:
    """Train for longer, then with more people."""
    torch.set_num_threads(1)
    started = _record.start()
    longer = {name: by_rate(name, steps=TIMES * STEPS) for name in [*ATTENTION, "whole, without ReLU"]}
    encoder_facts.NAMES = MORE_NAMES
    people = {name: by_rate(name, steps=4 * STEPS, vectors="words") for name in ["whole layer", *ATTENTION]}
    results = {"steps": TIMES * STEPS, "longer": longer, "more people": people, "people": MORE_NAMES**2}
    _record.write("encoder_facts_longer", results, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
