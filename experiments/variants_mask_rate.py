"""How much should be hidden? A small BERT at five rates of masking, three seeds each.

Language, sizes and training are those of chapter 9's BERTs: two layers of width 32, 700 steps of 32 sentences, Adam at
3e-3, 80 % masked, 10 % random, 10 % kept. Of each run: the mean over positions of the loss on test sentences with that
one position masked, less what nobody can know (ln 6 and ln 4 for the two free words, shared over eleven positions), and
the share of coherent sentences among 512 that it writes from masks alone, one mask at a time in a random order.
"""

import math

import torch
from torch.nn import functional

from experiments import _record
from experiments import variants_objectives as language
from ttutor.training.fit import fit
from ttutor.variants.bert import BERT, BERTConfig, BERTForMaskedLM
from ttutor.variants.objectives import mask_tokens

SEEDS, MASKED, STEPS = [0, 1, 2], [0.05, 0.15, 0.3, 0.5, 0.8], 700
COHERENT = {tuple(row) for row in language.SENTENCES.tolist()}


def train(share: float, seed: int) -> BERTForMaskedLM:
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = BERTForMaskedLM(BERT(BERTConfig(**language.SIZES, max_len=language.N_TOKENS, dropout=0.0), pooler=False))

    def loss(model, batch):
        inputs, labels = mask_tokens(
            batch, mask_id=language.MASK, vocab_size=language.VOCAB_SIZE, special_ids=language.SPECIAL,
            generator=generator, rate=share,
        )  # fmt: skip
        if (labels < 0).all():  # nothing was chosen in this batch
            labels[0, 0] = batch[0, 0]
        return language.token_loss(model(inputs), labels)

    fit(model, language.rows(STEPS), loss, steps=STEPS, learning_rate=language.RATE)
    return model


@torch.no_grad()
def above_the_floor(model: BERTForMaskedLM) -> float:
    total = -math.log(6) - math.log(4)
    for place in range(language.N_TOKENS):
        inputs = language.TEST.clone()
        inputs[:, place] = language.MASK
        total += functional.cross_entropy(model(inputs)[:, place], language.TEST[:, place]).item()
    return round(total / language.N_TOKENS, 3)


@torch.no_grad()
def coherent(model: BERTForMaskedLM, n: int = 512) -> float:
    generator = torch.Generator().manual_seed(9)
    text = torch.full((n, language.N_TOKENS), language.MASK)
    for place in torch.randperm(language.N_TOKENS, generator=generator):
        chances = model(text)[:, place].softmax(dim=-1)
        text[:, place] = torch.multinomial(chances, 1, generator=generator)[:, 0]
    return round(sum(tuple(row) in COHERENT for row in text.tolist()) / n, 3)


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    rows = []
    for share in MASKED:
        models = [train(share, seed) for seed in SEEDS]
        above, wrote = [above_the_floor(model) for model in models], [coherent(model) for model in models]
        rows.append({"masked": share, "above": above, "coherent": wrote})
        print(rows[-1], flush=True)
    _record.write("variants_mask_rate", {"rows": rows}, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
