"""Warm-up and peak, one at a time: a post-norm stack at three peak rates and three lengths of warm-up, three seeds.

Task and stack are those of ``training_warmup.py``, with batches half as large. The rate rises in a line for `warmup`
steps, and then stays at its peak, so that two runs of one peak differ in their first steps alone. A point of a curve is
the mean loss of 15 batches, in nats; `guessing` is the loss of one who knows how frequent each word is and nothing
else.

Attacked: is it the first steps? In `first_steps` both arms go on at 0.001 from step 101 on; only the hundred steps
before it differ, a rate of 0.003 at once or one that rises to it. About six minutes on one core.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from experiments import (
    _record,
    training_warmup,  # its text is the embedded_corpus
)
from ttutor.training.fit import fit

SEEDS = [0, 1, 2]
PEAKS, WARMUPS = [1e-3, 3e-3, 1e-2], [1, 30, 100]
STEPS, POINT, BATCH = 300, 15, 32
FIRST, LATER = 100, 1e-3  # of the attack: so many steps, and the rate of all others


def losses_of_steps(rate: Callable[[int], float], seed: int, data: tuple) -> list[float]:
    """Train one stack, and give its loss, averaged over `POINT` steps at a time."""
    train, _, vocab_size = data
    torch.manual_seed(seed)
    losses: list[float] = []

    def loss(model: nn.Module, token_ids: Tensor) -> Tensor:
        value = training_warmup.next_word_loss(model, token_ids)
        losses.append(value.item())
        return value

    model = training_warmup.WordModel(vocab_size, "post")
    halves = (half for batch in training_warmup.batches(train, seed) for half in batch.split(BATCH))
    fit(model, halves, loss, steps=STEPS, learning_rate=rate, clip_norm=None)
    return [round(value, 2) for value in np.reshape(losses, (-1, POINT)).mean(axis=1).tolist()]


def guessing(data: tuple) -> float:
    """Cross-entropy of the training words under their own frequencies, in nats."""
    train, _, vocab_size = data
    counts = np.bincount([word for sentence in train for word in sentence[1:]], minlength=vocab_size)
    shares = counts[counts > 0] / counts.sum()
    return round(float(-(shares * np.log(shares)).sum()), 2)


def rising(peak: float, warmup: int, first: int = STEPS, later: float = 0.0) -> Callable[[int], float]:
    """A rate that rises in a line to its peak and stays; after `first` steps it is `later`."""
    return lambda step: peak * min(1.0, step / warmup) if step <= first else later


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    data = training_warmup.sentences()
    runs = [
        {
            "peak": peak,
            "warmup": warmup,
            "losses": [losses_of_steps(rising(peak, warmup), seed, data) for seed in SEEDS],
        }
        for peak in PEAKS
        for warmup in WARMUPS
    ]
    first_steps = {
        name: [losses_of_steps(rising(3e-3, warmup, FIRST, LATER), seed, data) for seed in SEEDS]
        for name, warmup in (("at once", 1), ("rising", FIRST))
    }
    settings = {
        "n_layers": training_warmup.N_LAYERS, "d_model": training_warmup.D_MODEL, "batch": BATCH,
        "steps": STEPS, "point": POINT, "first": FIRST, "later": LATER,
    }  # fmt: skip
    results = {"settings": settings, "guessing": guessing(data), "runs": runs, "first_steps": first_steps}
    _record.write("training_warmup_curves", results, seeds=SEEDS, started=started, embedded_corpus=True)


if __name__ == "__main__":
    main()
