"""Three small language models on a toy language, with their weights, so that the chapter can look inside.

Sentences such as "the old cooks near the park watch .", in which many words may be nouns or verbs, the verb agrees with
the first noun, and the next sentence may go on with "it" or "they". A `GPT` of four pre-norm layers reads 32 tokens;
every step has 16 texts that were never used before; the rate rises over 50 steps and falls in a line to zero. The peak
is the best of three by seed 0. The weights are stored as float16, each model's in one piece, in the order of
``parameters()``; losses are those of the stored weights on 300 other texts, in nats a token.
"""

import random

import torch
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from ttutor.training.fit import fit
from ttutor.variants.gpt import GPT, GPTConfig

SEEDS = [0, 1, 2]
PEAKS = [5e-3, 1e-2, 2e-2]
STEPS, BATCH, WARMUP, N_TOKENS = 400, 16, 50, 32
N_TEST, TEST_SEED = 300, 99
EITHER = ["cook", "watch", "guard", "dance", "park", "point"]  # nouns or verbs
NOUNS = ["cat", "king", "tree", "house"]
VERBS = ["sleep", "sing", "wait", "fall"]
ADJECTIVES = ["old", "small", "red", "quiet"]
PRONOUNS = ["it", "they"]
VOCABULARY = ["<bos>", ".", "the", "near", *PRONOUNS, *ADJECTIVES]
VOCABULARY += [stem + ending for stem in EITHER + NOUNS + VERBS for ending in ("", "s")]
INDEX_OF = {word: index for index, word in enumerate(VOCABULARY)}


def noun_phrase(chance: random.Random, is_plural: int) -> list[str]:
    """The article, an adjective in two cases of five, a noun."""
    adjective = [chance.choice(ADJECTIVES)] if chance.random() < 0.4 else []
    return ["the", *adjective, chance.choice(EITHER + NOUNS) + "s" * is_plural]


def text(chance: random.Random) -> list[str]:
    """A start mark and sentences, cut off at one token more than a model reads."""
    words, is_plural = ["<bos>"], None
    while len(words) < N_TOKENS + 1:
        if is_plural is not None and chance.random() < 0.4:
            words.append(PRONOUNS[is_plural])
        else:
            is_plural = chance.randrange(2)
            words += noun_phrase(chance, is_plural)
            if chance.random() < 0.5:
                words += ["near", *noun_phrase(chance, chance.randrange(2))]
        words += [chance.choice(EITHER + VERBS) + "s" * (1 - is_plural), "."]
    return words[: N_TOKENS + 1]


def texts(n: int, seed: int) -> Tensor:
    """Token ids of texts, one longer than a model reads."""
    chance = random.Random(seed)
    return torch.tensor([[INDEX_OF[word] for word in text(chance)] for _ in range(n)])


def config() -> GPTConfig:
    """The sizes of the models."""
    return GPTConfig(
        vocab_size=len(VOCABULARY), d_model=32, n_heads=4, n_layers=4, d_ff=64, max_len=N_TOKENS, dropout=0.0
    )


def fresh(seed: int) -> GPT:
    """A model at its start: all matrices of standard deviation 0.15."""
    torch.manual_seed(seed)
    model = GPT(config())
    for parameter in model.parameters():
        if parameter.ndim == 2:
            nn.init.normal_(parameter, std=0.15)
    return model


def loss(model: nn.Module, batch: Tensor) -> Tensor:
    """Mean cross-entropy of the next token, in nats."""
    logits = model(batch[:, :-1])
    return functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())


def trained(model: GPT, data: list[Tensor], test: Tensor, peak: float) -> tuple[Tensor, float]:
    """Train a model; its weights in one piece, and their loss on new texts."""
    fit(
        model,
        data,
        loss,
        steps=STEPS,
        learning_rate=lambda step: peak * min(1.0, step / WARMUP) * (1 - step / (STEPS + 1)),
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half())
        flat = torch.cat([parameter.flatten().half() for parameter in model.parameters()])
        return flat, round(loss(model, test).item(), 4)


def run(name: str, make) -> None:
    """Choose the peak by the first seed, train the other seeds with it, and write all down."""
    torch.set_num_threads(1)
    started = _record.start()
    data, test = list(texts(BATCH * STEPS, seed=1).split(BATCH)), texts(N_TEST, TEST_SEED)
    first = {peak: trained(make(SEEDS[0]), data, test, peak) for peak in PEAKS}
    peak = min(first, key=lambda peak: first[peak][1])
    runs = [first[peak], *(trained(make(seed), data, test, peak) for seed in SEEDS[1:])]
    results = {
        "settings": {"steps": STEPS, "batch": BATCH, "peak": peak, "test_seed": TEST_SEED},
        "loss_by_peak": {str(peak): value for peak, (_, value) in first.items()},
        "vocabulary": VOCABULARY,
        "losses": [value for _, value in runs],
    }
    print(results["loss_by_peak"], results["losses"], flush=True)
    weights = {str(seed): flat for seed, (flat, _) in zip(SEEDS, runs, strict=True)}
    _record.write(name, results, seeds=SEEDS, started=started, weights=weights)


if __name__ == "__main__":
    run("inside_language", fresh)
