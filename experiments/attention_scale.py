r"""Why the scores are divided by $\sqrt{d_\mathrm{head}}$: the start and the length of the steps, taken apart.

Dividing the scores by $\sqrt{d}$ is the same function as dividing $W_Q$ and $W_K$ by $\sqrt[4]{d}$ each. So a head
without the scale differs from one with it in two things only: its scores start $\sqrt d$ times as large, and a step
of Adam, whose length does not depend on the gradient's, moves them further. Each can be set alone: divide both matrices
at the start, or divide their learning rate. Four arms, one for each combination; the arm with both is the head with the
scale, but for rounding.

Task, model and training are those of chapter 2's road: eight-word sentences, one head, cross-entropy at every word,
embeddings of variance 1. Reported is the share of right answers at pronouns of held-out sentences.
"""

import math
from itertools import permutations, product

import torch
from torch import nn
from torch.nn import functional

from experiments import _record

SEEDS = [0, 1, 2, 3, 4]
RATES = [0.0005, 0.001, 0.002, 0.003, 0.005, 0.01]
WIDER_RATES = [0.001, 0.003, 0.005, 0.01]
STEPS, EVERY, LONG = 300, 10, 1200
CHECKED = [150, 300]
ARMS = {"both, as the scale does": (True, True), "small start": (True, False), "short steps": (False, True)}
ARMS["neither, no scale"] = (False, False)
NOUNS = {
    "she": ["queen", "girl", "aunt", "sister"],
    "he": ["king", "boy", "uncle", "brother"],
    "it": ["ball", "book", "coin", "lamp"],
}
SLOTS = "the a one this|saw met found liked|and but so then|fell turned waited vanished"


def sentences() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    """The road's sentences: tokens, what must be named, which are held out, and the size of the vocabulary."""
    generator = torch.Generator().manual_seed(0)

    def draw(words: str) -> list[str]:
        places = torch.randperm(4, generator=generator)[: 1 + words.startswith("the")]
        return [words.split()[place] for place in places]

    texts, held_out = [], []
    for first, second in permutations(NOUNS, 2):
        for i, j in product(range(4), repeat=2):
            for pronoun in (first, second) * 4:
                articles, verb, joint, last = map(draw, SLOTS.split("|"))
                opening = [articles[0], NOUNS[first][i], *verb, articles[1]]
                texts.append([*opening, NOUNS[second][j], *joint, pronoun, *last])
                held_out.append((i + j) % 4 == 0)
    vocabulary = sorted({word for text in texts for word in text})
    source = torch.tensor([[vocabulary.index(word) for word in text] for text in texts])
    target = source.clone()
    for row, text in enumerate(texts):
        target[row, 6] = vocabulary.index(next(word for word in text if word in NOUNS[text[6]]))
    return source, target, torch.tensor(held_out), len(vocabulary)


class OneHead(nn.Module):
    """The road's model, with a scale of its own choice."""

    def __init__(self, vocab_size: int, d_model: int, d_head: int, scale: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.to_query = nn.Linear(d_model, d_head, bias=False)
        self.to_key = nn.Linear(d_model, d_head, bias=False)
        self.to_value = nn.Linear(d_model, d_head, bias=False)
        self.to_logits = nn.Linear(d_head, vocab_size, bias=False)
        self.scale = scale

    def weights(self, source: torch.Tensor) -> torch.Tensor:
        words = self.embedding(source)
        return (self.scale * self.to_query(words) @ self.to_key(words).mT).softmax(dim=-1)

    def forward(self, source: torch.Tensor) -> torch.Tensor:
        return self.to_logits(self.weights(source) @ self.to_value(self.embedding(source)))


def run(
    seed: int, rate: float, small: bool, short: bool, *, d_head: int = 64, scaled: bool = False, steps: int = 0
) -> list[float]:
    """Train one head, and return the share right every few steps, and its largest weights at the start before them."""
    source, target, test, vocab_size = sentences()
    torch.manual_seed(seed)
    model = OneHead(vocab_size, d_head, d_head, 1 / math.sqrt(d_head) if scaled else 1.0)
    factor, matrices = d_head**-0.25, [model.to_query.weight, model.to_key.weight]
    if small:
        for matrix in matrices:
            matrix.data *= factor
    others = [parameter for parameter in model.parameters() if all(parameter is not matrix for matrix in matrices)]
    groups = [{"params": others, "lr": rate}, {"params": matrices, "lr": rate * (factor if short else 1.0)}]
    optimiser = torch.optim.Adam(groups)
    right = []
    with torch.no_grad():
        start = float(model.weights(source[test]).amax(dim=-1).mean())
    for step in range((steps or STEPS) + 1):
        if step % EVERY == 0:
            with torch.no_grad():
                answers = model(source[test])[:, 6].argmax(dim=-1)
                right.append(float((answers == target[test][:, 6]).double().mean()))
        rows = torch.randint(int((~test).sum()), (64,))
        logits = model(source[~test][rows])
        loss = functional.cross_entropy(logits.flatten(0, 1), target[~test][rows].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return [start, *right]


def study(d_head: int, rates: list[float]) -> dict:
    """All arms at all rates, five seeds each."""
    table: dict = {}
    for (name, (small, short)), rate in product(ARMS.items(), rates):
        runs = [run(seed, rate, small, short, d_head=d_head) for seed in SEEDS]
        table.setdefault(name, {})[str(rate)] = {
            "largest weight at the start": round(sum(one[0] for one in runs) / len(runs), 2),
            "right": {str(at): [round(one[1 + at // EVERY], 3) for one in runs] for at in CHECKED},
            "curves": [[round(x, 3) for x in one[1:]] for one in runs],
        }
        print(d_head, name, rate, table[name][str(rate)]["right"], flush=True)
    return table


def best_rates(table: dict, at: str) -> dict:
    """Of each arm the rate with the best mean after so many steps, that mean, and the lowest of its seeds."""
    found = {}
    for name, arm in table.items():
        means = {rate: sum(one["right"][at]) / len(one["right"][at]) for rate, one in arm.items()}
        rate = max(means, key=means.__getitem__)
        found[name] = [float(rate), round(means[rate], 3), min(arm[rate]["right"][at])]
    return found


def main() -> None:
    """Width 64 on the whole grid, width 128 on part of it, and the arm with both beside the head with the scale."""
    started = _record.start()
    torch.set_default_dtype(torch.float64)
    same = [
        (torch.tensor(run(seed, 0.005, True, True)) - torch.tensor(run(seed, 0.005, False, False, scaled=True))).abs()
        for seed in SEEDS
    ]
    wide = study(64, RATES)
    wider = study(128, WIDER_RATES)
    for one in (one for arm in wider.values() for one in arm.values()):
        del one["curves"]
    long = {
        name: [round(run(seed, 0.002, *arm, steps=LONG)[-1], 3) for seed in SEEDS[:3]] for name, arm in ARMS.items()
    }
    results = {
        f"right after {LONG} steps at rate 0.002": long,
        "every": EVERY,
        "rates": RATES,
        "largest difference of the curves, both arms against the scale": round(float(torch.stack(same).max()), 3),
        "width 64": wide,
        "width 128": wider,
        "best rates": {at: best_rates(wide, at) for at in ("150", "300")},
        "best rates, width 128": {at: best_rates(wider, at) for at in ("150", "300")},
        "attacks": [
            f"Six rates and twice the steps, the best rates: {best_rates(wide, '300')}.",
            f"At rate 0.002 after {LONG} steps, three seeds: {long}.",
            f"Twice the width, after 150 steps, the best of four rates: {best_rates(wider, '150')}.",
            "The arm with both was run beside a head with the scale: the largest difference of their curves is stored.",
            "At its best rate each arm is judged beside the others, not only at one rate for all.",
        ],
    }
    _record.write("attention_scale", results, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
