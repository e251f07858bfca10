"""What a forgotten loss mask costs: instruction tuning of chapter 13, with the loss on the answers and on everything.

Five seeds: the stored language model of the seed, 120 steps of tuning on a hundred conversations, as on the page
(`_sums`). Only the mask differs: conversations, order, rate and model are the same.
"""

import torch

from experiments import _record
from experiments._sums import base, sft_loss, tune, unmasked_loss

SEEDS = [0, 1, 2, 3, 4]
STEPS = 120
ATTACKS = [
    "A fourth model, 60 steps at 3e-4: form .73 with the mask, .68 without; right .19 and .20.",
    "A fourth model, 60 steps at 1e-3: form .96 and .94; right .25 and .22.",
    "A fourth model, 60 steps at 3e-3: form .99 and .99; right .19 and .12.",
]
"""What was tried to refute the page's sentences, with the functions of `_sums`."""


def main() -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    started = _record.start()
    losses = {"answers": sft_loss, "everything": unmasked_loss}
    rows = [{name: tune(base(seed), seed, STEPS, loss=loss) for name, loss in losses.items()} for seed in SEEDS]
    print([{name: course[-1] for name, course in row.items()} for row in rows])
    _record.write("assistant_mask", {"rows": rows, "steps": STEPS, "attacks": ATTACKS}, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
