"""Who was too big? Language models of little stories that end by naming the noun, five seeds each at a chosen rate.

"the trophy did not fit into the suitcase (clauses) because it was too big : so big was the trophy ." A model reads a
story word by word and predicts every next word. The loss is the mean over all words, and the word that names the noun
once more in full. There are sixteen nouns; the ordered pairs of them are divided, three fifths to learn from, a fifth
to choose the learning rate, a fifth for the test. Training has up to two clauses of seven words between the second noun
and "because", the test up to four. Counted are right nouns, answers that name one of the two nouns of the story, twins
(the same story with "big" and with "small", both right), and whether the adjective is repeated three words later.

The plain network comes as torch starts it and as Keras does (orthogonal recurrent matrix, Glorot's rule for the input,
no biases), the LSTM as torch starts it and with its forget bias at 1 and at 3. Each rate of a grid is tried on one
seed; the one with the lowest validation loss of the noun is run on five others, for 400 steps, and with a rate chosen
anew for 1,600. Some fifteen minutes on one core.
"""

import random

import torch
from torch import Tensor, nn

from experiments import _record
from ttutor.training.fit import fit

SEEDS, CHOOSING = [0, 1, 2, 3, 4], 100
D_MODEL, BATCH, STEPS, LONGER, LONGEST = 64, 32, 400, 1600, 2
RATES = [1e-3, 3e-3, 1e-2, 3e-2]
N_CLAUSES, N_DRAWS = [0, 1, 2, 3, 4], 4
NOUNS = "trophy suitcase piano crate tent car ladder basket parcel drawer kettle box pillow trunk bicycle shed".split()
CLAUSE = [
    "that which",
    "we they you I",
    "bought found saw sold",
    "in near",
    "town rome paris",
    "last this",
    "week year month",
]
VOCABULARY = sorted(
    {*NOUNS, *" ".join(CLAUSE).split(), *"the did not fit into and because it was too big small so : .".split()}
)
INDEX = {word: index for index, word in enumerate(VOCABULARY)}
KINDS = ["RNN", "RNN, Keras", "LSTM", "LSTM, forget bias 1", "LSTM, forget bias 3"]

Pair = tuple[str, str]


def story(first: str, second: str, adjective: str, n_clauses: int, rng: random.Random) -> list[str]:
    """One story, which begins with the full stop of the one before."""
    clauses = [" ".join(rng.choice(words.split()) for words in CLAUSE) for _ in range(n_clauses)]
    answer = first if adjective == "big" else second
    text = f". the {first} did not fit into the {second} {' and '.join(clauses)} because it was too {adjective}"
    return f"{text} : so {adjective} was the {answer} .".split()


def encode(stories: list[list[str]]) -> Tensor:
    return torch.tensor([[INDEX[word] for word in words] for words in stories])


def pairs_of_nouns(seed: int) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Ordered pairs of different nouns: to learn from, to choose the rate by, to test."""
    pairs = [(first, second) for first in NOUNS for second in NOUNS if first != second]
    random.Random(seed).shuffle(pairs)
    fifth = len(pairs) // 5
    return pairs[2 * fifth :], pairs[fifth : 2 * fifth], pairs[:fifth]


class LanguageModel(nn.Module):
    """Embed, read, and predict every next word. The layer is torch's."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(VOCABULARY), D_MODEL)
        name, _, start = kind.partition(", ")
        layers = {"RNN": nn.RNN, "LSTM": nn.LSTM}
        self.reader = layers[name](D_MODEL, D_MODEL, batch_first=True)
        if start == "Keras":
            for parameter in (self.reader.bias_ih_l0, self.reader.bias_hh_l0):
                nn.init.zeros_(parameter)
            nn.init.xavier_uniform_(self.reader.weight_ih_l0)
            nn.init.orthogonal_(self.reader.weight_hh_l0)
        if start.startswith("forget bias"):
            forget = slice(D_MODEL, 2 * D_MODEL)  # torch's order: i, f, g, o
            nn.init.constant_(self.reader.bias_ih_l0[forget], float(start.removeprefix("forget bias ")))
        self.to_logits = nn.Linear(D_MODEL, len(VOCABULARY))

    def forward(self, token_ids: Tensor) -> Tensor:
        return self.to_logits(self.reader(self.embedding(token_ids))[0])


def batches(seed: int):
    """Stories without end, from the pairs to learn from; each batch has one number of clauses."""
    rng = random.Random(seed)
    pairs, _, _ = pairs_of_nouns(seed)
    while True:
        n_clauses = rng.randint(0, LONGEST)
        yield encode([story(*rng.choice(pairs), rng.choice(["big", "small"]), n_clauses, rng) for _ in range(BATCH)])


def story_loss(model: nn.Module, token_ids: Tensor) -> Tensor:
    """Mean loss of all words, and the loss of the noun that is named, the last but one, once more."""
    logits, wanted = model(token_ids[:, :-1]), token_ids[:, 1:]
    every_word = nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())
    return every_word + nn.functional.cross_entropy(logits[:, -2], wanted[:, -2])


@torch.no_grad()
def tested(model: nn.Module, pairs: list[Pair], n_clauses: int) -> dict[str, float]:
    """Shares of stories with these pairs of nouns, each told several times, with both adjectives."""
    right, either, repeated, losses = [], [], [], []
    for adjective in ("big", "small"):
        rng = random.Random(1_000)  # the same clauses for both twins
        stories = [story(*pair, adjective, n_clauses, rng) for _ in range(N_DRAWS) for pair in pairs]
        token_ids = encode(stories)
        logits = model(token_ids[:, :-1])
        named = logits[:, -2].argmax(dim=-1)
        right.append(named == token_ids[:, -2])
        either.append((named == token_ids[:, 2]) | (named == token_ids[:, 8]))
        repeated.append(logits[:, -5].argmax(dim=-1) == token_ids[:, -5])
        losses.append(nn.functional.cross_entropy(logits[:, -2], token_ids[:, -2]))
    return {
        "right": round(torch.stack(right).float().mean().item(), 3),
        "twins": round((right[0] & right[1]).float().mean().item(), 3),
        "one_of_the_two": round(torch.stack(either).float().mean().item(), 3),
        "adjective_repeated": round(torch.stack(repeated).float().mean().item(), 3),
        "noun_loss": round(torch.stack(losses).mean().item(), 3),
    }


def train(kind: str, seed: int, peak: float, steps: int) -> LanguageModel:
    """Train one model; the rate rises for twenty steps and then falls linearly to zero."""
    torch.manual_seed(seed)
    model = LanguageModel(kind)
    fit(
        model, batches(seed), story_loss, steps=steps,
        learning_rate=lambda step: peak * min(1, step / 20) * (1 - (step - 1) / steps),
    )  # fmt: skip
    return model


def run_of(kind: str, steps: int) -> dict:
    """Choose a rate on a seed of its own, then train and test the five others."""
    _, validation, _ = pairs_of_nouns(CHOOSING)
    tried = {peak: tested(train(kind, CHOOSING, peak, steps), validation, 1)["noun_loss"] for peak in RATES}
    peak = min(tried, key=tried.get)
    models = [(train(kind, seed, peak, steps), seed) for seed in SEEDS]
    parameters = sum(parameter.numel() for parameter in models[0][0].parameters())
    run = {"model": kind, "parameters": parameters, "peak_rate": peak}
    run["noun_loss_by_rate"] = {f"{rate:g}": loss for rate, loss in tried.items()}
    for name, part, distances in (("trained pairs", 0, [1]), ("new pairs", 2, N_CLAUSES)):
        for n_clauses in distances:
            results = [tested(model, pairs_of_nouns(seed)[part], n_clauses) for model, seed in models]
            run[f"{name}, {n_clauses} clauses"] = {key: [r[key] for r in results] for key in results[0]}
    print(kind, steps, peak, tried, run["new pairs, 0 clauses"], run["new pairs, 2 clauses"], flush=True)
    return run


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    runs = [run_of(kind, STEPS) for kind in KINDS]
    longer = [run_of(kind, LONGER) for kind in KINDS]
    settings = {
        "d_model": D_MODEL, "batch": BATCH, "steps": STEPS, "longer": LONGER, "rates": RATES, "longest": LONGEST,
        "n_nouns": len(NOUNS), "n_test_pairs": len(pairs_of_nouns(0)[2]), "n_draws": N_DRAWS,
    }  # fmt: skip
    result = {"settings": settings, "runs": runs, "longer": longer}
    _record.write("recurrence_suitcase", result, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
