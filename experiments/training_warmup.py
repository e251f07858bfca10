"""Does a deep stack need a warm-up? Post-norm and pre-norm, with and without, at three learning rates, three seeds.

A decoder-only stack of eight layers learns to predict the next word of the embedded corpus's French sentences. Only the
place of the norm, the peak learning rate and the length of the warm-up differ; after the warm-up the rate is constant.
Adam as in torch (betas 0.9 and 0.999), no clipping, no dropout. The figure is the mean loss per word of held-out
sentences, in nats. About ten minutes on one core.
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
RATES = [1e-3, 3e-3, 1e-2]
WARMUPS = [1, 100]
N_LAYERS, D_MODEL, N_HEADS, STEPS, BATCH = 8, 32, 4, 300, 64
MARKS = ["<pad>", "<unk>", "<bos>", "<eos>"]


class WordModel(nn.Module):
    """Token embedding, positions, a causal stack without cross-attention, and the embedding once more as projection."""

    def __init__(self, vocab_size: int, norm: str) -> None:
        super().__init__()
        self.token = TokenEmbedding(vocab_size, D_MODEL)
        self.embeddings = Embeddings(self.token, SinusoidalPositions(D_MODEL, 64))
        self.decoder = Decoder(D_MODEL, N_HEADS, 4 * D_MODEL, N_LAYERS, cross_attention=False, norm=norm)

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


def held_out_loss(norm: str, rate: float, warmup: int, seed: int, data: tuple) -> float:
    """Train one model and give its loss on the held-out sentences."""
    train, held_out, vocab_size = data
    torch.manual_seed(seed)
    model = WordModel(vocab_size, norm)
    fit(
        model,
        batches(train, seed),
        next_word_loss,
        steps=STEPS,
        learning_rate=lambda step: rate * min(1.0, step / warmup),
        clip_norm=None,
    )
    with torch.no_grad():
        return round(next_word_loss(model, held_out).item(), 4)


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    data = sentences()
    runs = [
        {
            "norm": norm,
            "learning_rate": rate,
            "warmup": warmup,
            "held_out_loss": [held_out_loss(norm, rate, warmup, seed, data) for seed in SEEDS],
        }
        for norm in ("post", "pre")
        for rate in RATES
        for warmup in WARMUPS
    ]
    settings = {"n_layers": N_LAYERS, "d_model": D_MODEL, "n_heads": N_HEADS, "steps": STEPS, "batch": BATCH}
    _record.write(
        "training_warmup", {"settings": settings, "runs": runs}, seeds=SEEDS, started=started, embedded_corpus=True
    )


if __name__ == "__main__":
    main()
