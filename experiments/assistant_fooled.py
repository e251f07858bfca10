"""A verifier that can be fooled: the assistants of chapter 13, rewarded where the right number stands anywhere.

Three seeds: the stored language model of the seed, 60 steps of instruction tuning, 150 steps of GRPO, as on the page
(`_sums`). The control is the same with the strict verifier: only that function differs (for three seeds in
`assistant_reward`, after 60 steps). The rate is the one chosen there.
"""

import torch

from experiments import _record
from experiments._sums import answers_in, base, lenient, questions, reinforce, splits, tune, write

SEEDS = [0, 1, 2]
STEPS = 150
ATTACKS = [
    "A fourth model: reward .315 to .675, right and nothing else .25 to .005, two numbers .115 to .98.",
    "In development, 90 steps, two seeds: reward .23 to .76, right and nothing else .21 to .01.",
    "Control: the strict verifier, same seeds: two numbers in .02 of the answers or less, see `assistant_reward`.",
]
"""What was tried to refute the page's sentences, with the functions of `_sums`."""


def main() -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    started = _record.start()
    rows = []
    for seed in SEEDS:
        model = base(seed)
        tune(model, seed)
        learner, course, _ = reinforce(model, lenient, seed, STEPS)
        rows.append({"course": course, "answers": answers_in(write(learner, questions(splits()[2][:5])))})
        print(course[-1], rows[-1]["answers"], flush=True)
    _record.write(
        "assistant_fooled", {"rows": rows, "steps": STEPS, "attacks": ATTACKS}, seeds=SEEDS,
        started=started,
    )  # fmt: skip


if __name__ == "__main__":
    main()
