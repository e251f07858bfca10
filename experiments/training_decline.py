"""Is it worth while to bring the learning rate down at the end? Constant against linear to zero, three seeds.

One pre-norm layer learns to predict the next word of the embedded corpus's French sentences, from the same weights and
the same batches, with a rate that stays at its peak after 20 steps of warm-up and with one that also falls linearly to
zero. Seven peaks, since the best peak of one is not that of the other; three lengths. The figure is the mean loss per
word of held-out sentences, in nats. About three minutes on one core.
"""

import numpy as np
import torch
from torch import Tensor, nn

from experiments import _record
from ttutor.corpora.corpus import embedded_corpus
from ttutor.decoder import Decoder
from ttutor.embeddings import Embeddings, TokenEmbedding
from ttutor.positions import SinusoidalPositions
from ttutor.training.batching import pad
from ttutor.training.fit import fit

SEEDS = [0, 1, 2]
PEAKS = [2.5e-3, 5e-3, 1e-2, 3e-2, 6e-2, 1e-1, 2e-1]
LENGTHS = [50, 200, 400]
D_MODEL, N_HEADS, BATCH, WARMUP = 32, 4, 32, 20
MARKS = ["<pad>", "<unk>", "<bos>", "<eos>"]


class WordModel(nn.Module):
    """Token embedding, positions, one causal layer, and the embedding once more as projection."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.token = TokenEmbedding(vocab_size, D_MODEL)
        self.embeddings = Embeddings(self.token, SinusoidalPositions(D_MODEL, 64))
        self.decoder = Decoder(D_MODEL, N_HEADS, 4 * D_MODEL, n_layers=1, cross_attention=False, norm="pre")

    def forward(self, token_ids: Tensor) -> Tensor:
        return nn.functional.linear(self.decoder(self.embeddings(token_ids)), self.token.table.weight)


def next_word_loss(model: nn.Module, token_ids: Tensor) -> Tensor:
    """Mean cross-entropy of each next word, padding left out, in nats."""
    logits = model(token_ids[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), token_ids[:, 1:].flatten(), ignore_index=0)


def sentences() -> tuple[list[list[int]], Tensor, int]:
    """French sentences as word ids with their marks: training, held out (padded), and the size of the vocabulary."""
    corpus = embedded_corpus(sizes={"train": 6000, "validation": 500, "test": 1})
    words = MARKS + sorted({word for _, french in corpus.train for word in french.split()})
    index = {word: number for number, word in enumerate(words)}
    train, held_out = (
        [[2, *(index.get(word, 1) for word in french.split()), 3] for _, french in pairs]
        for pairs in (corpus.train, corpus.validation)
    )
    return train, pad(held_out), len(words)


def batches(train: list[list[int]], seed: int):
    """Batches of sentences in random order, without end."""
    random = np.random.default_rng(seed)
    while True:
        order = random.permutation(len(train))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            yield pad([train[row] for row in order[start : start + BATCH]])


def held_out_loss(declines: bool, peak: float, steps: int, seed: int, data: tuple) -> float:
    """Train one model and give its loss on the held-out sentences."""
    train, held_out, vocab_size = data
    torch.manual_seed(seed)
    model = WordModel(vocab_size)

    def rate(step: int) -> float:
        return peak * min(1.0, step / WARMUP) * (1 - step / (steps + 1) if declines else 1.0)

    fit(model, batches(train, seed), next_word_loss, steps=steps, learning_rate=rate)
    with torch.no_grad():
        return round(next_word_loss(model, held_out).item(), 4)


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    data = sentences()
    runs = [
        {
            "peak": peak,
            "steps": steps,
            "constant": [held_out_loss(False, peak, steps, seed, data) for seed in SEEDS],
            "declining": [held_out_loss(True, peak, steps, seed, data) for seed in SEEDS],
        }
        for peak in PEAKS
        for steps in LENGTHS
    ]
    settings = {"n_layers": 1, "d_model": D_MODEL, "n_heads": N_HEADS, "batch": BATCH, "warmup": WARMUP}
    _record.write(
        "training_decline", {"settings": settings, "runs": runs}, seeds=SEEDS, started=started, embedded_corpus=True
    )


if __name__ == "__main__":
    main()
