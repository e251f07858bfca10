"""What is lost when one part of the Transformer is taken out? The one-scroll model on one task, part after part.

English to French in a third of the embedded grammar: every third noun, verb and adjective of its lexicon, sentences of
at most six English words, a word a token. Every test sentence holds a combination of words that training never
showed; a validation sentence holds none. The model is `ttutor.minimal.Transformer` with two layers in each stack,
width 64, four heads and pre-norm. All models are trained for the same number of steps on the same number of sentences,
by AdamW, with a rate that climbs for a tenth of the steps and then falls in a line to zero.

Taken out in turn: the division of the scores by sqrt(d_head); every residual connection; every norm, the last included;
the position waves of both sentences; several heads (one head of the whole width is left); every feed-forward network;
the mask over later words. Without the feed-forward networks a model has fewer weights, so another such model has three
layers in each stack.

Each model's rate is the one with the highest share of right words on the validation sentences, mean of two seeds; as
long as the best rate is the least or the greatest of the grid, the grid grows. Five other seeds are then trained at
that rate and write the test sentences, word after word, the likeliest word each time. All of this is done from two
starts: that of the scroll, whose maps start as PyTorch's do, and Glorot's.

The answer for comparison is a dictionary: each English word is replaced by the French word that goes along with it best
in the training text (Dice coefficient). About a quarter of an hour of one core. A number after the command says how
many processes share the models; it changes no result.
"""

import json
import math
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from experiments import _record
from ttutor import minimal
from ttutor.corpora.embedded import embedded_sentences
from ttutor.corpora.grammar import NounPhrase, Sentence
from ttutor.corpora.lexicon import ADJECTIVES, NOUNS, VERBS

SEEDS, TUNING_SEEDS = [0, 1, 2, 3, 4], [100, 101]
RATES = [0.003, 0.006, 0.012]
SLOWEST, FASTEST = 0.0001, 0.1
STEPS, BATCH, LONGEST = 250, 32, 6
N_DRAWN = {"train": 120_000, "validation": 8_000, "test": 25_000}
N_KEPT = {"train": 4_000, "validation": 200, "test": 400}
D_MODEL, N_HEADS, D_FF, N_LAYERS = 64, 4, 128, 2
START, END = 1, 2
STARTS = ["scroll", "glorot"]
PARTS = ["nothing", "scale", "residuals", "norm", "positions", "several heads", "feed-forward", "mask"]
DEEPER = "feed-forward, a layer more"


def in_third(sentence: Sentence) -> bool:
    """Whether a sentence is short, and all its nouns, verbs and adjectives are in every third line of the lexicon."""
    words = {word.english for words in (NOUNS, VERBS, ADJECTIVES) for word in words[::3]}
    used = [sentence.verb, sentence.quality]
    for phrase in (sentence.subject, sentence.object, sentence.place):
        if isinstance(phrase, NounPhrase):
            used += [phrase.noun, phrase.before, phrase.after]
    short = len(sentence.english().split()) <= LONGEST
    return short and all(word.english in words for word in used if word)


def pairs() -> dict[str, list[tuple[str, str]]]:
    """English and French of each split."""
    found = {}
    for name, sentences in embedded_sentences(0, N_DRAWN).items():
        kept = [sentence for sentence in sentences if in_third(sentence)][: N_KEPT[name]]
        assert len(kept) == N_KEPT[name], (name, len(kept))
        found[name] = [(sentence.english(), sentence.french()) for sentence in kept]
    return found


def encode(texts: list[str], ids: dict[str, int]) -> Tensor:
    rows = [[START, *(ids[word] for word in text.split()), END] for text in texts]
    n_tokens = max(map(len, rows))
    return torch.tensor([row + [minimal.PADDING] * (n_tokens - len(row)) for row in rows])


def finite(loss: float) -> float | None:
    """A loss for JSON; None where a training has diverged to a number that is none."""
    return round(loss, 4) if math.isfinite(loss) else None


class Factor(nn.Module):
    """Multiply by a number."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden * self.factor


class NoSum(minimal.Residual):
    """Hand on what a sublayer writes, and forget what came in."""

    def forward(self, hidden: Tensor, sublayer: Any) -> Tensor:
        return sublayer(self.norm(hidden))


class NoPart(nn.Module):
    """A sublayer that is left out."""

    def forward(self, hidden: Tensor, sublayer: Any) -> Tensor:
        return hidden


class NoWaves(minimal.Embeddings):
    """The words' own vectors, the same at every place."""

    def forward(self, token_ids: Tensor) -> Tensor:
        return self.table(token_ids) * self.table.embedding_dim**0.5


class NoMask(minimal.Transformer):
    """A decoder that may look at all words of its sentence while it learns."""

    def forward(self, source_ids: Tensor, target_ids: Tensor) -> Tensor:
        readable, writable = minimal.may_look_at(source_ids), minimal.may_look_at(target_ids)
        memory = self.encoder(self.embeddings(source_ids), readable)
        hidden = self.decoder(self.embeddings(target_ids), writable, memory, readable)
        return self.embeddings.to_logits(hidden)


def swap(model: nn.Module, kind: type, make: Any) -> None:
    """Put ``make(module)`` in the place of every module of a kind."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is kind:
                setattr(parent, name, make(child))


def model_without(part: str, vocab_size: int, start: str, seed: int) -> minimal.Transformer:
    """The model of the scroll, with one part taken out."""
    torch.manual_seed(seed)
    size = minimal.Size(
        vocab_size=vocab_size,
        d_model=D_MODEL,
        n_heads=1 if part == "several heads" else N_HEADS,
        d_ff=D_FF,
        n_layers=N_LAYERS + (part == DEEPER),
        dropout=0.0,
        pre_norm=True,
    )
    model = NoMask(size) if part == "mask" else minimal.Transformer(size)
    if start == "glorot":
        for name, parameter in model.named_parameters():
            if "table" not in name and parameter.ndim == 2:
                nn.init.xavier_uniform_(parameter)
            elif "to_" in name or "widen" in name or "narrow" in name:
                nn.init.zeros_(parameter)
    if part == "scale":
        for module in model.modules():
            if isinstance(module, minimal.MultiHeadAttention):
                module.to_query = nn.Sequential(module.to_query, Factor((D_MODEL // N_HEADS) ** 0.5))
    elif part == "residuals":
        swap(model, minimal.Residual, lambda _: NoSum(size))
    elif part == "norm":
        swap(model, minimal.LayerNorm, lambda _: nn.Identity())
    elif part == "positions":
        waveless = NoWaves(size)
        waveless.load_state_dict(model.embeddings.state_dict())
        model.embeddings = waveless
    elif part.startswith("feed-forward"):
        for layer in [*model.encoder.layers, *model.decoder.layers]:
            layer.around_feed_forward, layer.feed_forward = NoPart(), nn.Identity()
    return model


def loss_of(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
    """Mean loss of a word of the target, in nats, the words before it given."""
    logits = model(source, target[:, :-1])
    return cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=minimal.PADDING)


def train(model: nn.Module, source: Tensor, target: Tensor, rate: float, seed: int) -> float:
    """Train a model; its mean loss over the last 20 steps."""
    choose = torch.Generator().manual_seed(seed)  # of its own: all models of a seed see the same batches
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, fused=True)
    losses = []
    for step in range(STEPS):
        climb, fall = (step + 1) / (STEPS / 10), (STEPS - step) / (STEPS * 0.9)
        optimiser.param_groups[0]["lr"] = rate * min(climb, fall)
        rows = torch.randint(len(source), (BATCH,), generator=choose)
        loss = loss_of(model, source[rows], target[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return sum(losses[-20:]) / 20


@torch.no_grad()
def scores(model: nn.Module, source: Tensor, target: Tensor) -> dict[str, float | None]:
    """The loss of the right words, and what a model writes by itself: share of right sentences, of right words."""
    written = torch.full((len(source), 1), START)
    for _ in range(target.shape[1] - 1):
        likeliest = model(source, written)[:, -1].argmax(dim=-1)
        written = torch.cat([written, likeliest[:, None]], dim=1)
    counts = target[:, 1:] != minimal.PADDING
    right = (written[:, 1:] == target[:, 1:]) | ~counts
    return {
        "loss": finite(loss_of(model, source, target).item()),
        "sentences": round(right.all(dim=1).float().mean().item(), 4),
        "words": round(right[counts].float().mean().item(), 4),
    }


def dictionary(train_pairs: list[tuple[str, str]], test_pairs: list[tuple[str, str]]) -> float:
    """The share of test sentences that a dictionary gets right, word for word."""
    english, french, both = Counter(), Counter(), Counter()
    for one, other in train_pairs:
        english.update(set(one.split()))
        french.update(set(other.split()))
        both.update((word, translation) for word in set(one.split()) for translation in set(other.split()))
    best: dict[str, tuple[float, str]] = {}
    for (word, translation), count in both.items():
        dice = 2 * count / (english[word] + french[translation])
        best[word] = max(best.get(word, (0.0, "")), (dice, translation))
    right = [" ".join(best[word][1] for word in one.split()) == other for one, other in test_pairs]
    return round(sum(right) / len(right), 4)


def data() -> tuple[dict[str, list[tuple[str, str]]], dict[str, list[Tensor]], int]:
    """The pairs of each split, their ids, and how many words there are, the three signs included."""
    texts = pairs()
    words = sorted({word for pair in texts["train"] for text in pair for word in text.split()})
    ids = {word: place for place, word in enumerate(["<padding>", "<start>", "<end>", *words])}
    sides = {
        name: [encode(list(texts_of), ids) for texts_of in zip(*split, strict=True)] for name, split in texts.items()
    }
    return texts, sides, len(ids)


def tuned(part: str, start: str) -> dict[str, Any]:
    """Find the rate on validation, then train the seeds that count."""
    torch.set_num_threads(1)
    _, sides, vocab_size = data()

    def run(rate: float, seed: int, split: str) -> dict[str, float | None]:
        model = model_without(part, vocab_size, start, seed)
        loss = train(model, *sides["train"], rate, seed)
        return {"train_loss": finite(loss), **scores(model, *sides[split])}

    tried: dict[float, list[dict[str, Any]]] = {}
    todo = list(RATES)
    while todo:
        for rate in todo:
            tried[rate] = [run(rate, seed, "validation") for seed in TUNING_SEEDS]
        best = max(tried, key=lambda rate: sum(one["words"] for one in tried[rate]))
        beyond = [best / 2] * (best == min(tried)) + [best * 2] * (best == max(tried))
        todo = [rate for rate in beyond if SLOWEST < rate < FASTEST]
    test = [run(best, seed, "test") for seed in SEEDS]
    n_weights = sum(weight.numel() for weight in model_without(part, vocab_size, start, 0).parameters())
    rates = [{"rate": rate, "validation": tried[rate]} for rate in sorted(tried)]
    return {"part": part, "start": start, "n_weights": n_weights, "rate": best, "test": test, "rates": rates}


def main() -> None:
    started = _record.start()
    workers = ProcessPoolExecutor(int(sys.argv[1]) if len(sys.argv) > 1 else 1)

    models = [(part, start) for start in STARTS for part in [*PARTS, DEEPER]]
    rows = []
    for row in workers.map(tuned, *zip(*models, strict=True)):
        print(json.dumps(row), flush=True)
        rows.append(row)
    texts, _, vocab_size = data()
    settings = {
        "steps": STEPS,
        "batch": BATCH,
        "d_model": D_MODEL,
        "n_heads": N_HEADS,
        "d_ff": D_FF,
        "n_layers": N_LAYERS,
        "vocab_size": vocab_size,
        "sentences": N_KEPT,
    }
    results = {"settings": settings, "dictionary": dictionary(texts["train"], texts["test"]), "rows": rows}
    _record.write("outlook_parts", results, seeds=SEEDS, started=started, embedded_corpus=True)


if __name__ == "__main__":
    main()
