"""Were they trained long enough? The weak ones of `positions_extrapolation.py` once more, with three times the steps.

Three schemes had not learned to name the token three places before within 400 steps: none, the learned table, ALiBi.
Here they get 1,200 steps, everything else being equal. About two minutes of one core, in three processes.
"""

import multiprocessing
import time

import positions_extrapolation as study
import torch

import _record

SCHEMES = ["learned", "alibi, 8 heads", "none"]
TIMES_AS_LONG = 3


def measure(scheme: str) -> tuple[dict, float]:
    """All seeds of one scheme, and the seconds of processor time they took."""
    torch.set_num_threads(1)
    began = time.process_time()
    study.STEPS = TIMES_AS_LONG * 400
    models = [study.train(scheme, study.three_back, seed) for seed in study.SEEDS]
    run = {
        "task": "three back",
        "scheme": scheme,
        "training_loss": [loss for _, loss in models],
        "accuracy": [study.accuracies(model, study.three_back) for model, _ in models],
    }
    return run, time.process_time() - began


def main() -> None:
    started = _record.start()
    with multiprocessing.get_context("spawn").Pool(len(SCHEMES)) as pool:
        measured = pool.map(measure, SCHEMES, chunksize=1)
    settings = {
        "steps": TIMES_AS_LONG * 400,
        "trained_len": study.TRAINED_LEN,
        "times": study.TIMES,
        "core_minutes": round(sum(seconds for _, seconds in measured) / 60, 1),
    }
    runs = [run for run, _ in measured]
    _record.write("positions_patience", {"settings": settings, "runs": runs}, seeds=study.SEEDS, started=started)
    print(*runs, settings, sep="\n")


if __name__ == "__main__":
    main()
