"""What a warm-up saves: the paper's schedule with six lengths of warm-up, and the loss of every step, three seeds.

The task and the post-norm stack of eight layers are those of ``training_warmup.py``. The learning rate is that of
equation 3 of Vaswani et al. (2017) for the width of their base model, 512, though the stack is narrower: of its own
width the formula asks for four times the rate. A point of a curve is the mean loss of 15 batches, in nats; `guessing`
is the loss of one who knows how frequent each word is and nothing else. About twenty minutes on one core.
"""

import numpy as np
import torch
from torch import Tensor, nn

from experiments import (
    _record,
    training_warmup,  # its text is the embedded_corpus
)
from ttutor.training.fit import fit
from ttutor.training.schedule import noam_rate

SEEDS = [0, 1, 2]
WARMUPS = [1, 25, 50, 100, 200, 400]
WIDTH_OF_SCHEDULE, STEPS, POINT = 512, 600, 15


def losses_of_steps(warmup: int, seed: int, data: tuple) -> list[float]:
    """Train one stack, and give its loss, averaged over `POINT` steps at a time."""
    train, _, vocab_size = data
    torch.manual_seed(seed)
    losses: list[float] = []

    def loss(model: nn.Module, token_ids: Tensor) -> Tensor:
        value = training_warmup.next_word_loss(model, token_ids)
        losses.append(value.item())
        return value

    fit(
        training_warmup.WordModel(vocab_size, "post"),
        training_warmup.batches(train, seed),
        loss,
        steps=STEPS,
        learning_rate=lambda step: noam_rate(step, WIDTH_OF_SCHEDULE, warmup),
        clip_norm=None,
    )
    return [round(value, 2) for value in np.reshape(losses, (-1, POINT)).mean(axis=1).tolist()]


def guessing(data: tuple) -> float:
    """Cross-entropy of the training words under their own frequencies, in nats."""
    train, _, vocab_size = data
    counts = np.bincount([word for sentence in train for word in sentence[1:]], minlength=vocab_size)
    shares = counts[counts > 0] / counts.sum()
    return round(float(-(shares * np.log(shares)).sum()), 2)


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    data = training_warmup.sentences()
    runs = [{"warmup": warmup, "losses": [losses_of_steps(warmup, seed, data) for seed in SEEDS]} for warmup in WARMUPS]
    settings = {
        "n_layers": training_warmup.N_LAYERS, "d_model": training_warmup.D_MODEL, "batch": training_warmup.BATCH,
        "width_of_schedule": WIDTH_OF_SCHEDULE, "steps": STEPS, "point": POINT,
    }  # fmt: skip
    results = {"settings": settings, "guessing": guessing(data), "runs": runs}
    _record.write("training_warmup_curves", results, seeds=SEEDS, started=started, embedded_corpus=True)


if __name__ == "__main__":
    main()
