"""A page of a real book: what do a plain network and an LSTM learn from it, and how far back do they look? Five seeds.

The text is the first chapter of *Alice's Adventures in Wonderland* (Lewis Carroll, 1865), and the beginning of the
second; it is in the public domain. Networks of width 64 learn to predict the next character from the first 10,000 of
chapter I, in pieces of 64. After every 20 steps their loss on the rest of chapter I is measured; the weights with the
lowest are kept. The test is the beginning of chapter II. Each rate of a grid is tried on one seed, the best one run on
five others.

Stored are the perplexities on the test; the same when only the last 1, 2, 4, ... 64 characters are read; those of
counting, which blends what followed the last 0, 1, ... 6 characters in the training text (Witten and Bell 1991); and
what the LSTM writes while it learns. Under ten minutes, one core.
"""

import copy
import math
from collections import Counter, defaultdict
from pathlib import Path

import torch
from torch import Tensor, nn

from experiments import _record

NAME, SEEDS, CHOOSING = "recurrence_book", [0, 1, 2, 3, 4], 100
KINDS = ["RNN", "LSTM"]
RATES = [3e-3, 1e-2, 3e-2]
D_MODEL, BATCH, N_CHARACTERS, EVERY, MOST_STEPS = 64, 16, 64, 20, 400
N_TRAIN, CONTEXTS, ORDERS = 10_000, [1, 2, 4, 8, 16, 32, 64], range(7)
WRITES_AT, WRITTEN = [0, 20, 100], 160

TEXT = Path(__file__).with_suffix(".txt").read_text(encoding="ascii")
FIRST, SECOND = TEXT.strip().split("\n\n")
ALPHABET = "".join(sorted(set(TEXT)))


def encode(text: str) -> Tensor:
    return torch.tensor([ALPHABET.index(character) for character in text])


TRAIN, VALIDATION, TEST = encode(FIRST[:N_TRAIN]), encode(FIRST[N_TRAIN:]), encode(SECOND)


class Reader(nn.Module):
    """Embed, read, and predict every next character. The layer is torch's."""

    def __init__(self, kind: str, width: int = D_MODEL) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(ALPHABET), width)
        layer = nn.RNN if kind == "RNN" else nn.LSTM
        self.reader = layer(width, width, batch_first=True)
        self.to_logits = nn.Linear(width, len(ALPHABET))

    def forward(self, token_ids: Tensor) -> Tensor:
        return self.to_logits(self.reader(self.embedding(token_ids))[0])


def loss_of(model: nn.Module, pieces: Tensor) -> Tensor:
    return nn.functional.cross_entropy(model(pieces[:, :-1]).flatten(0, 1), pieces[:, 1:].flatten())


@torch.no_grad()
def loss_by_context(model: nn.Module, text: Tensor, n_read: int) -> float:
    """Mean loss where exactly the last few characters are read; the places are the same for every number of them."""
    longest = max(CONTEXTS)
    pieces = text.unfold(0, longest + 1, 1)[:, longest - n_read :]
    return nn.functional.cross_entropy(model(pieces[:, :-1])[:, -1], pieces[:, -1]).item()


@torch.no_grad()
def writes(model: nn.Module) -> str:
    """What the model writes after the first words of the book, each character drawn from what it expects."""
    generator, text = torch.Generator().manual_seed(0), "Alice was "
    while len(text) < WRITTEN:
        expected = model(encode(text)[None])[0, -1].softmax(dim=-1)
        text += ALPHABET[int(torch.multinomial(expected, 1, generator=generator))]
    return text


def train(kind: str, seed: int, rate: float, width: int = D_MODEL) -> tuple[nn.Module, dict]:
    """Train one model; keep the weights that are best on the rest of the chapter."""
    torch.manual_seed(seed)
    model, generator = Reader(kind, width), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    best, kept, at, written, last = math.inf, {}, 0, {}, 0.0
    for step in range(MOST_STEPS + 1):
        if step in WRITES_AT:
            written[str(step)] = writes(model)
        if step % EVERY == 0:
            with torch.no_grad():
                last = loss_of(model, VALIDATION[None]).item()
            if last < best:
                best, kept, at = last, copy.deepcopy(model.state_dict()), step
        starts = torch.randint(N_TRAIN - N_CHARACTERS - 1, (BATCH,), generator=generator).tolist()
        value = loss_of(model, torch.stack([TRAIN[start : start + N_CHARACTERS + 1] for start in starts]))
        optimizer.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.load_state_dict(kept)
    written[str(at)] = writes(model)
    return model, {"validation": round(best, 4), "at_the_end": round(last, 4), "steps": at, "writes": written}


def counted(order: int) -> float:
    """The perplexity of counting what followed the last few characters, blended with shorter pasts."""
    follows: dict[str, Counter] = defaultdict(Counter)
    past = FIRST[:N_TRAIN]
    for place, character in enumerate(past):
        for length in range(order + 1):
            if length <= place:
                follows[past[place - length : place]][character] += 1

    def probability(before: str, character: str) -> float:
        shorter = probability(before[1:], character) if before else 1 / len(ALPHABET)
        seen = follows[before]
        return (seen[character] + len(seen) * shorter) / (seen.total() + len(seen)) if seen else shorter

    longest = max(CONTEXTS)
    places = range(longest, len(SECOND))
    loss = -sum(math.log(probability(SECOND[place - order : place], SECOND[place])) for place in places)
    return round(math.exp(loss / len(places)), 2)


def run_of(kind: str) -> dict:
    """Choose a rate on a seed of its own, then train and test the five others."""
    tried = {rate: train(kind, CHOOSING, rate)[1]["validation"] for rate in RATES}
    rate, found = min(tried, key=tried.get), []
    for seed in SEEDS:
        model, run = train(kind, seed, rate)
        read = {str(n): round(math.exp(loss_by_context(model, TEST, n)), 2) for n in CONTEXTS}
        found.append({"seed": seed, **run, "perplexity_by_characters_read": read})
        print(kind, rate, found[-1], flush=True)
    return {"rate": rate, "validation_by_rate": {f"{rate:g}": loss for rate, loss in tried.items()}, "runs": found}


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    settings = {
        "d_model": D_MODEL, "batch": BATCH, "piece": N_CHARACTERS, "most_steps": MOST_STEPS, "rates": RATES,
        "alphabet": len(ALPHABET), "train": N_TRAIN, "validation": len(VALIDATION), "test": len(TEST),
        "tested_places": len(TEST) - max(CONTEXTS),
    }  # fmt: skip
    result = {"settings": settings, "opening": FIRST[:300]}
    result["counting"] = {str(order): counted(order) for order in ORDERS}
    print(result["counting"], flush=True)
    _record.write(NAME, result | {kind: run_of(kind) for kind in KINDS}, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
