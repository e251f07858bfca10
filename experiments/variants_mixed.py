"""Two controls of `variants_labels.py`: pre-training without the pairs, and a map on the verb in place of [CLS].

*Is it the pairs that pre-training brings, or a better start?* A BERT fills gaps in mixed sentences: at each place the
words of all 1,200 are permuted. So it sees every word where it belongs, as often as the other one did, and no pair more
than by chance. Then it is tuned as that one was, on 32, 64 and 128 labels, with a rate of its own; the five seeds and
their labelled sentences are the same.

*Why do labels bring less than a question that is asked as a gap?* Pre-training asked nothing at [CLS]. So the same BERT
is tuned with the new map on the vector of the verb, at the rate that was chosen for [CLS].
"""

import copy

import torch
from torch import Tensor

from experiments import _record
from experiments.variants_labels import (
    LABELS,
    SEED_OF_CHOICE,
    SEEDS,
    VERB,
    Classifier,
    by_gaps,
    fine_tune,
    judged,
    labelled,
    pretrained,
    seeded,
    share_right,
    test,
    train,
    tried_and_tested,
)

RATE = 1e-3


class AtTheVerb(Classifier):
    def forward(self, token_ids: Tensor) -> Tensor:
        return self.to_classes(self.encoder(token_ids)[:, VERB + 1])


def at_the_verb(seed: int) -> list[float]:
    """Share right with each number of labels."""
    bert, right = pretrained(train, seed), []
    for n_labels in LABELS:
        torch.manual_seed(seed + 1)
        model = AtTheVerb(copy.deepcopy(bert).bert)
        right.append(share_right(fine_tune(model, *labelled(n_labels, seed), 300, RATE), *judged(test, 1)))
    print(right, flush=True)
    return right


def main() -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    started = _record.start()
    chance = seeded(7)  # one permutation after another
    mixed = torch.stack([column[torch.randperm(len(column), generator=chance)] for column in train.T], dim=1)
    models = {seed: pretrained(mixed, seed) for seed in (*SEEDS, SEED_OF_CHOICE)}
    without = [by_gaps(models[seed], judged(test, 1), is_bert=True) for seed in SEEDS]
    rows = tried_and_tested("mixed", models, SEEDS)
    at_verb = zip(*[at_the_verb(seed) for seed in SEEDS], strict=True)
    rows += [
        {"method": "at the verb", "labels": n_labels, "tried": [], "rate": RATE, "right": list(right)}
        for n_labels, right in zip(LABELS, at_verb, strict=True)
    ]
    results = {"rows": rows, "without a label": without}
    _record.write("variants_mixed", results, seeds=[*SEEDS, SEED_OF_CHOICE], started=started)


if __name__ == "__main__":
    main()
