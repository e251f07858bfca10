"""Do other recipes change what the race of `positions_extrapolation.py` shows?

*Three back* once more, two seeds, tested up to eight times the length: with a peak of the learning rate three times
lower and three times higher, from PyTorch's starting values, and with three times the steps. And the learned table
with rows that start as small as usual (standard deviation .02), beside words of standard deviation 1. About five
minutes of one core.
"""

import time

import torch

from experiments import _positions as study
from experiments import _record

TIMES = [1, 2, 4, 8]
SCHEMES = ["none", "sinusoidal", "learned", "rotary", "alibi"]
RECIPES: dict[str, tuple[list[str], dict]] = {
    "peak .0015": (SCHEMES, {"peak": 1.5e-3}),
    "peak .015": (SCHEMES, {"peak": 1.5e-2}),
    "PyTorch's starting values": (SCHEMES, {"pytorch": True}),
    "1,200 steps": (["none", "alibi"], {"steps": 1200}),
    "quiet rows": (["learned"], {"loudness": 0.02}),
}


def main() -> None:
    torch.set_num_threads(1)
    started, began, runs = _record.start(), time.process_time(), []
    for recipe, (schemes, choices) in RECIPES.items():
        for scheme in schemes:
            trained = [study.train(scheme, "three back", seed, **choices) for seed in study.SEEDS[:2]]
            shares = [study.accuracies(model, "three back", TIMES)["three back"] for model, _ in trained]
            runs.append(
                {"recipe": recipe, "scheme": scheme, "training_loss": [loss for _, loss in trained], "accuracy": shares}
            )
            print(runs[-1], f"{time.process_time() - began:.0f} s of one core", flush=True)
    settings = {"times": TIMES, "core_minutes": round((time.process_time() - began) / 60, 1)}
    results = {"settings": settings, "runs": runs}
    _record.write("positions_recipes", results, seeds=study.SEEDS[:2], started=started)


if __name__ == "__main__":
    main()
