"""Who can fetch one pair among many: softmax attention, a window, linear attention, a selective state space.

A text is a list of pairs, key and value, each key once, followed by questions: keys without a value. The answer to a
question is the value that stood beside that key (the task of associative recall, as in Arora et al. 2024). Key and
value stand in one token, so that a single look-up suffices. Two layers of width 32, pre-norm, each of a mixer and a
feed-forward network; all that differs is the mixer, with nearly the same number of parameters: softmax attention of two
heads, the same with a causal window of 8, linear attention with elu + 1, the same with 64 random features a head
(FAVOR+), and a selective state space. No positions. The number of pairs is drawn anew for each batch. Each mixer has
its rate chosen in the same way, the best of three by the loss of one run with a seed used for nothing else; then three
seeds, measured on 200 new texts of each length. Adam, rate falling linearly to zero, gradients clipped to norm 1. Where
the mixer is linear or a state space, one more run of twice the steps, to see whether it was short of training.
"""

from functools import partial

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional

from ttutor.efficient import FavorFeatures, SelectiveStateSpace, efficient_attention, linear_attention
from ttutor.layers import FeedForward, LayerNorm
from ttutor.masks import CAUSAL
from ttutor.multihead import MultiHeadAttention
from ttutor.training.fit import fit

import _record

SEEDS, SEED_OF_CHOICE, RATES, STEPS, BATCH = [0, 1, 2], 100, [3e-3, 1e-2, 3e-2], 600, 32
N_SYMBOLS, N_PAIRS, N_QUESTIONS, D_MODEL, WINDOW = 64, [4, 8, 16, 32], 8, 32, 8
NO_VALUE = N_SYMBOLS


def texts(n: int, n_pairs: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Keys and values of pairs and questions, and the answers."""
    keys = torch.rand(n, N_SYMBOLS, generator=generator).argsort(dim=-1)[:, :n_pairs]
    values = torch.randint(N_SYMBOLS, (n, n_pairs), generator=generator)
    asked = torch.randint(n_pairs, (n, N_QUESTIONS), generator=generator)
    all_keys = torch.cat([keys, keys.gather(1, asked)], dim=1)
    all_values = functional.pad(values, (0, N_QUESTIONS), value=NO_VALUE)
    return all_keys, all_values, values.gather(1, asked)


class Mixed(nn.Module):
    """A mixer under a causal mask."""

    def __init__(self, name: str) -> None:
        super().__init__()
        if name == "state space":
            self.mix = SelectiveStateSpace(D_MODEL, d_inner=32, d_state=8)
            return
        drawn = FavorFeatures.draw(64, d_head=D_MODEL // 2, generator=torch.Generator().manual_seed(0))
        attend = {
            "softmax": efficient_attention,
            "window": partial(efficient_attention, window=WINDOW),
            "elu + 1": linear_attention,
            "random features": partial(linear_attention, feature_map=drawn),
        }[name]
        self.mix = MultiHeadAttention(D_MODEL, 2, bias=False, attend=attend)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.mix(hidden, mask=CAUSAL) if isinstance(self.mix, MultiHeadAttention) else self.mix(hidden)


class Reader(nn.Module):
    """Two layers of one mixer."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.key, self.value = nn.Embedding(N_SYMBOLS, D_MODEL), nn.Embedding(N_SYMBOLS + 1, D_MODEL)
        self.layers = nn.ModuleList(
            nn.ModuleList([LayerNorm(D_MODEL), Mixed(name), LayerNorm(D_MODEL), FeedForward(D_MODEL, 2 * D_MODEL)])
            for _ in range(2)
        )
        self.norm, self.to_logits = LayerNorm(D_MODEL), nn.Linear(D_MODEL, N_SYMBOLS)

    def forward(self, keys: Tensor, values: Tensor) -> Tensor:
        hidden = self.key(keys) + self.value(values)
        for norm, mix, norm_again, feed_forward in self.layers:
            hidden = hidden + mix(norm(hidden))
            hidden = hidden + feed_forward(norm_again(hidden))
        return self.to_logits(self.norm(hidden[:, -N_QUESTIONS:]))


def loss(model: nn.Module, batch: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    keys, values, answers = batch
    return functional.cross_entropy(
        rearrange(model(keys, values), "batch questions symbols -> (batch questions) symbols"),
        rearrange(answers, "batch questions -> (batch questions)"),
    )


def batches(steps: int, generator: torch.Generator):
    for _ in range(steps):
        n_pairs = N_PAIRS[int(torch.randint(len(N_PAIRS), (1,), generator=generator))]
        yield texts(BATCH, n_pairs, generator)


def run(name: str, rate: float, seed: int, steps: int = STEPS) -> dict:
    """Train one reader; share of right answers by number of pairs, and the mean loss."""
    torch.manual_seed(seed)
    model = Reader(name)
    drawn = batches(steps, torch.Generator().manual_seed(seed))
    fit(model, drawn, loss, steps=steps, learning_rate=lambda step: rate * (1 - step / (steps + 1)))
    right, losses = [], []
    with torch.no_grad():
        for n_pairs in N_PAIRS:
            new = texts(200, n_pairs, torch.Generator().manual_seed(10_000 + seed))
            right.append(round((model(*new[:2]).argmax(dim=-1) == new[2]).float().mean().item(), 3))
            losses.append(loss(model, new).item())
    return {"right": right, "loss": round(sum(losses) / len(losses), 3)}


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    rows = {}
    for name in ("softmax", "window", "elu + 1", "random features", "state space"):
        tried = [run(name, rate, SEED_OF_CHOICE)["loss"] for rate in RATES]
        rate = RATES[tried.index(min(tried))]
        found = [run(name, rate, seed) for seed in SEEDS]
        n_parameters = sum(p.numel() for p in Reader(name).layers[0][1].parameters())
        rows[name] = {"tried": tried, "rate": rate, "mixer_parameters": n_parameters, "runs": found}
        if name in ("elu + 1", "state space"):
            rows[name]["longer"] = run(name, rate, SEEDS[0], steps=2 * STEPS)
        print(name, rows[name], flush=True)
    settings = {"n_pairs": N_PAIRS, "steps": STEPS, "rates": RATES, "window": WINDOW, "n_symbols": N_SYMBOLS}
    _record.write(
        "efficient_recall", {"settings": settings, "rows": rows}, seeds=[*SEEDS, SEED_OF_CHOICE], started=started
    )


if __name__ == "__main__":
    main()
