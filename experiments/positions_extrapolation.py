"""What happens beyond the trained length? Five schemes, two tasks, texts up to 64 times as long as in training.

Task, model and training are those of `_positions.py`. Five seeds. The learned table is long
enough from the start, and training meets its first 32 rows only. About fifteen minutes of one core.
"""

import time

import torch

from experiments import _positions as study
from experiments import _record

SCHEMES = ["none", "sinusoidal", "learned", "rotary", "alibi"]


def main() -> None:
    torch.set_num_threads(1)
    started, began, runs = _record.start(), time.process_time(), []
    for scheme in SCHEMES:
        for task, tests in study.TASKS.items():
            models, losses = zip(*(study.train(scheme, task, seed) for seed in study.SEEDS), strict=True)
            found = [study.accuracies(model, task) for model in models]
            runs += [
                {
                    "task": test,
                    "scheme": scheme,
                    "training_loss": list(losses),
                    "accuracy": [one[test] for one in found],
                }
                for test in tests
            ]
            print(*runs[-len(tests) :], f"{time.process_time() - began:.0f} s of one core", sep="\n", flush=True)
    settings = {
        "n_layers": study.N_LAYERS,
        "d_model": study.D_MODEL,
        "steps": study.STEPS,
        "batch": study.BATCH,
        "peak": study.PEAK,
        "trained_len": study.TRAINED_LEN,
        "times": study.TIMES,
        "chance": 1 / study.N_SYMBOLS,
        "core_minutes": round((time.process_time() - began) / 60, 1),
    }
    _record.write("positions_extrapolation", {"settings": settings, "runs": runs}, seeds=study.SEEDS, started=started)


if __name__ == "__main__":
    main()
