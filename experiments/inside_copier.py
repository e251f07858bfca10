"""Small models of attention alone that learn to copy: one layer and two, five seeds.

Two layers learn for 300 steps, after which nothing changes any more; one layer for 1,000, after which it still creeps.
Texts repeat a block of four to ten different symbols, so that a fixed distance does not help. Noted on the way are the
share of right answers on 100 texts that are used for nothing else, and the induction score: the weight of the last
layer's better head on what followed an earlier copy of the present symbol. The weights of the models with two layers
are stored as float16, each model's in one piece, in the order of ``parameters()``; the page reads them and cuts wires.

Under ``attacks``: one layer again, at a third and three times the rate, and twice as wide.
"""

import torch
from einops import repeat
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from ttutor.inside import capture, induction_score
from ttutor.layers import LayerNorm, PreNorm
from ttutor.masks import causal_mask
from ttutor.multihead import MultiHeadAttention
from ttutor.training.fit import fit

SEEDS = [0, 1, 2, 3, 4]
STEPS = {1: 1000, 2: 300}
RATE, WARMUP, BATCH = 0.015, 30, 32
N_SYMBOLS, LENGTH, WIDTH = 16, 24, 32


class Copier(nn.Module):
    """Symbols and places in, layers of attention alone (pre-norm), next symbol out."""

    def __init__(self, n_layers: int, width: int = WIDTH) -> None:
        super().__init__()
        self.words = nn.Embedding(N_SYMBOLS, width)
        self.places = nn.Parameter(0.3 * torch.randn(LENGTH, width))
        self.attentions = nn.ModuleList(MultiHeadAttention(width, 2) for _ in range(n_layers))
        self.arounds = nn.ModuleList(PreNorm(width) for _ in range(n_layers))
        self.final_norm = LayerNorm(width)
        self.to_logits = nn.Linear(width, N_SYMBOLS)

    def forward(self, ids: Tensor) -> Tensor:
        """Give the logits of the next symbols."""
        hidden, mask = self.words(ids) + self.places, causal_mask(LENGTH)
        for attend, around in zip(self.attentions, self.arounds, strict=True):
            hidden = around(hidden, lambda x, attend=attend: attend(x, mask=mask))
        return self.to_logits(self.final_norm(hidden))


def repeats(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Blocks of 4 to 10 different symbols, repeated; and which next symbols are known."""
    period = torch.randint(4, 11, (n, 1), generator=generator)
    block = torch.rand(n, N_SYMBOLS, generator=generator).argsort(dim=-1)
    place = repeat(torch.arange(LENGTH + 1), "tokens -> texts tokens", texts=n)
    return block.gather(1, place % period), place[:, 1:] >= period


@torch.no_grad()
def look(model: nn.Module) -> list[float]:
    """Share of right answers, and the best induction score in the last layer."""
    ids, known = repeats(100, torch.Generator().manual_seed(9))
    with capture(model, "**.weights") as seen:
        right = (model(ids[:, :-1]).argmax(dim=-1) == ids[:, 1:])[known].double().mean()
    score = induction_score(seen.stack()[-1], ids[:, :-1]).max()
    return [round(right.item(), 3), round(score.item(), 3)]


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Mean cross-entropy of the symbols that are known, in nats."""
    ids, known = batch
    return functional.cross_entropy(model(ids[:, :-1])[known], ids[:, 1:][known])


def watch(n_layers: int, seed: int, steps: int, rate: float = RATE, width: int = WIDTH) -> tuple[Copier, dict]:
    """Train a copier; note now and then what it gets right and its induction score."""
    torch.manual_seed(seed)
    model, generator = Copier(n_layers, width), torch.Generator().manual_seed(100 + seed)
    notes = {}

    def batches():
        for step in range(steps):
            if step % (10 if step < 300 else 100) == 0:
                notes[step] = look(model)
            yield repeats(BATCH, generator)

    fit(model, batches(), loss, steps=steps, learning_rate=lambda step: rate * min(1.0, step / WARMUP))
    notes[steps] = look(model)
    return model, notes


def ends(notes: dict) -> list[float]:
    """Share right at the end."""
    return [one[max(one)][0] for one in notes]


def main() -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    started = _record.start()
    runs = {n: [watch(n, seed, steps) for seed in SEEDS] for n, steps in STEPS.items()}
    weights = {}
    for seed, (model, _) in zip(SEEDS, runs[2], strict=True):
        weights[str(seed)] = torch.cat([p.detach().flatten().half() for p in model.parameters()])
    attacks = {
        f"one layer, {what}, 600 steps: share right": ends([watch(1, seed, 600, **how)[1] for seed in SEEDS[:3]])
        for what, how in {
            "a third of the rate": {"rate": RATE / 3},
            "three times the rate": {"rate": 3 * RATE},
            "twice as wide": {"width": 2 * WIDTH},
        }.items()
    }
    results = {
        "settings": {"rate": RATE, "warmup": WARMUP, "batch": BATCH, "steps": STEPS},
        "notes": {str(n): [notes for _, notes in group] for n, group in runs.items()},
        "attacks": attacks,
    }
    for n, group in runs.items():
        print(n, [notes[max(notes)] for _, notes in group], flush=True)
    print(attacks)
    _record.write("inside_copier", results, seeds=SEEDS, started=started, weights=weights)


if __name__ == "__main__":
    main()
