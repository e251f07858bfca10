"""[CLS] or the mean: which vector of a small BERT tells better whether a sentence is coherent?

The language is that of chapter 9 (`variants_objectives.py` has it too). A sentence stands behind ``[CLS]``; in half of
the sentences the verb is another animal's. A BERT of two layers and width 32 is trained from random weights, 1,500
steps of 32 new sentences, with the classifier on ``[CLS]`` (through BERT's pooler) or on the mean of all tokens. Each
has its rate chosen in the same way: the largest share right of one run with a seed used for nothing else, out of three.
Then three seeds, measured on 2,000 new sentences; half of them are coherent, so guessing gives 0.5. Adam, constant
rate, gradients clipped to norm 1, no dropout.
"""

import torch
from torch import Tensor
from torch.nn import functional

from experiments import _record
from experiments import variants_objectives as language
from ttutor.training.fit import fit
from ttutor.variants.bert import BERT, BERTConfig
from ttutor.variants.heads import TransformerForSequenceClassification

SEEDS, SEED_OF_CHOICE, RATES, STEPS = [0, 1, 2], 100, [3e-4, 1e-3, 3e-3], 1500
CALLS = torch.tensor([language.INDEX[call] for call in language.CALLS.values()])


def judged(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sentences behind [CLS], half of them with another animal's verb, and which half."""
    rows = language.SENTENCES[torch.randint(len(language.SENTENCES), (n,), generator=generator)].clone()
    is_wrong = torch.arange(n) % 2 == 1
    own = (rows[:, 3:4] == CALLS).int().argmax(dim=-1)
    shift = torch.randint(1, 8, (n,), generator=generator)
    rows[:, 3] = torch.where(is_wrong, CALLS[(own + shift) % 8], rows[:, 3])
    return functional.pad(rows, (1, 0), value=language.CLS), is_wrong.long()


def run(pooling: str, rate: float, seed: int) -> float:
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    bert = BERT(BERTConfig(**language.SIZES, max_len=12, dropout=0.0), pooler=pooling == "cls")
    model = TransformerForSequenceClassification(bert, 32, 2, pooling=pooling, dropout=0.0)
    batches = (judged(language.BATCH, generator) for _ in range(STEPS))
    fit(model, batches, lambda m, b: functional.cross_entropy(m(b[0]), b[1]), steps=STEPS, learning_rate=rate)
    new, is_wrong = judged(2000, torch.Generator().manual_seed(10_000 + seed))
    with torch.no_grad():
        return round((model(new).argmax(dim=-1) == is_wrong).float().mean().item(), 3)


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    rows = []
    for pooling in ("cls", "mean"):
        tried = [run(pooling, rate, SEED_OF_CHOICE) for rate in RATES]
        rate = RATES[tried.index(max(tried))]
        right = [run(pooling, rate, seed) for seed in SEEDS]
        rows.append({"pooling": pooling, "tried": tried, "rate": rate, "right": right})
        print(rows[-1], flush=True)
    results = {"settings": {"rates": RATES, "steps": STEPS}, "rows": rows}
    _record.write("variants_pooling", results, seeds=[*SEEDS, SEED_OF_CHOICE], started=started)


if __name__ == "__main__":
    main()
