"""How the loss falls with the size of a small language model, and whether the shape matters: five sizes, three shapes.

Decoder-only stacks (pre-norm, two heads, feed-forward networks four times as wide, embedding and projection tied)
predict the next word of the embedded corpus's French sentences: 300 steps of 64 sentences, none read twice. For each
model the learning rate is chosen among four with a seed of its own, by the loss on one half of the validation
sentences. Then it is trained with three other seeds; the losses reported are those on the other half, in nats a word.
Each size is then trained on twice the text, at the same rate and still without reading a sentence twice: what falls
there was no floor. Beside them a bigram and a trigram table of the same sentences, smoothed as serves them best on the
first half. About five minutes of one core.
"""

from collections import Counter

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

SEEDS, TUNING_SEED = [0, 1, 2], 3
RATES = [3e-3, 1e-2, 3e-2, 1e-1]
SIZES = [(2, 4), (2, 8), (2, 16), (2, 32), (2, 64)]
SHAPES = [(1, 44), (2, 32), (8, 16)]
N_HEADS, BATCH, WARMUP, STEPS, LONG = 2, 64, 30, 300, 600
MARKS = ["<pad>", "<unk>", "<bos>", "<eos>"]


class WordModel(nn.Module):
    """Token embedding, positions, a causal stack, and the embedding once more as projection."""

    def __init__(self, vocab_size: int, n_layers: int, d_model: int) -> None:
        super().__init__()
        self.token = TokenEmbedding(vocab_size, d_model)
        self.embeddings = Embeddings(self.token, SinusoidalPositions(d_model, 64))
        self.decoder = Decoder(d_model, N_HEADS, 4 * d_model, n_layers, cross_attention=False, norm="pre")

    def forward(self, token_ids: Tensor) -> Tensor:
        return nn.functional.linear(self.decoder(self.embeddings(token_ids)), self.token.table.weight)


def next_word_loss(model: nn.Module, token_ids: Tensor) -> Tensor:
    """Mean cross-entropy of each next word, padding left out, in nats."""
    logits = model(token_ids[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), token_ids[:, 1:].flatten(), ignore_index=0)


def sentences() -> tuple[list[list[int]], list[list[int]], int]:
    """French sentences as word ids with their marks: training, validation, and the size of the vocabulary."""
    corpus = embedded_corpus()
    words = MARKS + sorted({word for _, french in corpus.train for word in french.split()})
    index = {word: number for number, word in enumerate(words)}
    train, held_out = (
        [[2, *(index.get(word, 1) for word in french.split()), 3] for _, french in pairs]
        for pairs in (corpus.train, corpus.validation)
    )
    return train, held_out, len(words)


def losses_of(
    n_layers: int, d_model: int, rate: float, seed: int, data: tuple, steps: int = STEPS
) -> tuple[float, float, int, int]:
    """Train one model; its loss on both halves of the validation sentences, and its parameters, all and of layers."""
    train, held_out, vocab_size = data
    torch.manual_seed(seed)
    model = WordModel(vocab_size, n_layers, d_model)
    order = np.random.default_rng(seed).permutation(len(train))
    fit(
        model,
        [pad([train[row] for row in order[BATCH * step : BATCH * (step + 1)]]) for step in range(steps)],
        next_word_loss,
        steps=steps,
        learning_rate=lambda step: rate * min(1.0, step / WARMUP) * (1 - step / (steps + 1)),
    )
    half = len(held_out) // 2
    with torch.no_grad():
        first, second = (next_word_loss(model, pad(part)).item() for part in (held_out[:half], held_out[half:]))
    n_all, n_layer = (sum(p.numel() for p in part.parameters()) for part in (model, model.decoder))
    return first, second, n_all, n_layer


def measure(n_layers: int, d_model: int, data: tuple) -> dict:
    """One size: the rate that its tuning seed likes best, and the losses of the other seeds."""
    tried = {rate: losses_of(n_layers, d_model, rate, TUNING_SEED, data)[0] for rate in RATES}
    rate = min(tried, key=tried.get)
    runs = [losses_of(n_layers, d_model, rate, seed, data) for seed in SEEDS]
    return {
        "n_layers": n_layers,
        "d_model": d_model,
        "parameters": runs[0][2],
        "parameters_of_layers": runs[0][3],
        "learning_rate": rate,
        "tuning_loss": {f"{rate:g}": round(loss, 4) for rate, loss in tried.items()},
        "held_out_loss": [round(run[1], 4) for run in runs],
    }


def longer(size: dict, data: tuple) -> list[float]:
    """The losses of one size after twice the steps, at the rate that was chosen for the shorter training."""
    shape = size["n_layers"], size["d_model"], size["learning_rate"]
    return [round(losses_of(*shape, seed, data, steps=LONG)[1], 4) for seed in SEEDS]


def table_loss(n: int, data: tuple) -> float:
    """Loss on the second half of a table of n words, each order smoothed towards the one below it."""
    train, held_out, vocab_size = data
    counts, totals = Counter(), Counter()
    for row in np.random.default_rng(SEEDS[0]).permutation(len(train))[: BATCH * STEPS]:
        sentence = train[row]
        for place in range(1, len(sentence)):
            for length in range(n):
                history = tuple(sentence[max(0, place - length) : place])
                counts[length, history, sentence[place]] += 1
                totals[length, history] += 1

    def loss(part: list[list[int]], weight: float) -> float:
        surprise = []
        for sentence in part:
            for place in range(1, len(sentence)):
                probability = 1 / vocab_size
                for length in range(n):
                    history = tuple(sentence[max(0, place - length) : place])
                    seen = counts[length, history, sentence[place]]
                    probability = (seen + weight * probability) / (totals[length, history] + weight)
                surprise.append(-np.log(probability))
        return float(np.mean(surprise))

    half = len(held_out) // 2
    best = min((1.0, 3.0, 10.0, 30.0), key=lambda weight: loss(held_out[:half], weight))
    return round(loss(held_out[half:], best), 4)


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    data = sentences()
    tables = {"bigram": table_loss(2, data), "trigram": table_loss(3, data)}
    measured = {size: measure(*size, data) for size in dict.fromkeys(SIZES + SHAPES)}
    assert len(data[0]) >= BATCH * LONG, "a sentence would be read twice"
    for size in SIZES:
        measured[size]["held_out_loss_longer"] = longer(measured[size], data)
    settings = {
        "n_heads": N_HEADS,
        "batch": BATCH,
        "warmup": WARMUP,
        "rates": RATES,
        "steps": STEPS,
        "steps_longer": LONG,
    }
    results = {
        "settings": settings | {"vocab_size": data[2], "held_out_sentences": len(data[1]) // 2},
        "tables": tables,
        "sizes": [measured[size] for size in SIZES],
        "shapes": [measured[shape] for shape in SHAPES],
    }
    _record.write("training_scaling", results, seeds=SEEDS, started=started, embedded_corpus=True)


if __name__ == "__main__":
    main()
