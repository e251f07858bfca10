"""Things measured in turn, round by round, so that what disturbs one disturbs them all; ratios within a round."""

import random
import statistics
from collections.abc import Sequence


def shuffled(names: Sequence[str], rounds: int, seed: int = 0) -> list[list[str]]:
    """For each round, all names in an order of its own."""
    shuffle = random.Random(seed)
    return [shuffle.sample(list(names), len(names)) for _ in range(rounds)]


def ratio(first: Sequence[float], second: Sequence[float], draws: int = 2000) -> dict[str, float]:
    """The first by the second: the median over the rounds, with a 95 % interval from a bootstrap over them."""
    ratios = [a / b for a, b in zip(first, second, strict=True)]
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(draws))
    low, high = medians[int(0.025 * draws)], medians[int(0.975 * draws) - 1]
    return {"ratio": round(statistics.median(ratios), 3), "low": round(low, 3), "high": round(high, 3)}


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, smallest and largest."""
    return {"median": digits(statistics.median(values)), "least": digits(min(values)), "most": digits(max(values))}


def digits(value: float) -> float:
    """Three digits: more would be noise."""
    return float(f"{value:.3g}")
