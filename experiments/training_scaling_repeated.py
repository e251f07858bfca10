"""Was it more text or more steps? The sizes of ``training_scaling.py``, with twice the steps on the same text.

There each size is trained for 300 steps on 19,200 sentences, and for 600 steps on 38,400; so twice the text was also
twice the steps. Here is the arm between: 600 steps on 19,200 sentences, each read twice. Same rates, seeds and
held-out sentences. About two minutes of one core.
"""

import json

import numpy as np
import torch

from experiments import (
    _record,
    training_scaling,  # its text is the embedded_corpus
)
from ttutor.training.batching import pad
from ttutor.training.fit import fit


def loss_of(size: dict, seed: int, data: tuple) -> float:
    """The held-out loss after two passes over the sentences of the shorter training, the second in another order."""
    train, held_out, vocab_size = data
    torch.manual_seed(seed)
    model = training_scaling.WordModel(vocab_size, size["n_layers"], size["d_model"])
    batch, steps = training_scaling.BATCH, training_scaling.LONG
    random = np.random.default_rng(seed)
    order = random.permutation(len(train))[: batch * training_scaling.STEPS]
    order = np.concatenate([order, random.permutation(order)])
    fit(
        model,
        [pad([train[row] for row in order[batch * step : batch * (step + 1)]]) for step in range(steps)],
        training_scaling.next_word_loss,
        steps=steps,
        learning_rate=lambda step: (
            size["learning_rate"] * min(1.0, step / training_scaling.WARMUP) * (1 - step / (steps + 1))
        ),
    )
    with torch.no_grad():
        return training_scaling.next_word_loss(model, pad(held_out[len(held_out) // 2 :])).item()


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    earlier = json.loads((_record.ASSETS / "training_scaling.json").read_text(encoding="utf-8"))
    data = training_scaling.sentences()
    sizes = []
    for size in earlier["sizes"]:
        losses = [round(loss_of(size, seed, data), 4) for seed in training_scaling.SEEDS]
        sizes.append({"d_model": size["d_model"], "held_out_loss": losses})
        print(sizes[-1], size["held_out_loss"], size["held_out_loss_longer"], flush=True)
    settings = {"steps": training_scaling.LONG, "passes": 2}
    _record.write(
        "training_scaling_repeated",
        {"settings": settings, "sizes": sizes},
        seeds=training_scaling.SEEDS,
        started=started,
        embedded_corpus=True,
    )


if __name__ == "__main__":
    main()
