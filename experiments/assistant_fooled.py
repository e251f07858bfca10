"""A verifier that can be fooled: the assistants of chapter 13, rewarded where the right number stands anywhere.

Five seeds: the stored language model of the seed, 60 steps of instruction tuning, 150 steps of GRPO, as on the page
(`_sums`). The control is the same with the strict verifier: only that function differs (in `assistant_reward`, after 60
steps). The rate is the one chosen there.
"""

import torch

from experiments import _record
from experiments._sums import answers_in, base, lenient, questions, reinforce, splits, tune, write

SEEDS = [0, 1, 2, 3, 4]
STEPS = 150
ATTACKS = [
    "A fourth model: reward .315 to .675, right and nothing else .25 to .005, two numbers .115 to .98.",
    "Control, the strict verifier for 150 steps, seeds 3 and 4: no lists, right .32 to .555 and .345 to .6.",
    "In development, 90 steps, two seeds: reward .23 to .76, right and nothing else .21 to .01.",
]
"""What was tried to refute the page's sentences, with the functions of `_sums`."""


def one_seed(seed: int) -> dict:
    model = base(seed)
    tune(model, seed)
    learner, course, _ = reinforce(model, lenient, seed, STEPS)
    answers = answers_in(write(learner, questions(splits()[2][:5])))
    print(course[-1], answers, flush=True)
    return {"course": course, "answers": answers}


def main() -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    started = _record.start()
    results = {"rows": [one_seed(seed) for seed in SEEDS], "steps": STEPS, "attacks": ATTACKS}
    _record.write("assistant_fooled", results, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
