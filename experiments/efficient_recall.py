"""Who can fetch one pair among many: softmax attention, a window, and three recurrences.

A text is a list of pairs, key and value, each key once, followed by questions: keys without a value. The answer to a
question is the value that stood beside that key (the task of associative recall, as in Arora et al. 2024). Key and
value stand in one token, so that a single look-up suffices. One layer of width 32, pre-norm, with one head and no
feed-forward network; all that differs is the mixer, with nearly the same number of parameters: softmax attention, the
same with a causal window of 8, linear attention with elu + 1, the same with 64 random features (FAVOR+), and the delta
rule (as in Yang et al. 2025, without forgetting), which writes the difference to what the state said for a key. No
positions. The number of pairs is drawn anew for each batch.

Each mixer has its rate chosen in the same way, by the worse of two runs with seeds used for nothing else: the best of
three, and where that is the smallest or the largest, further ones until it is neither. Then three seeds, measured on
200 new texts of each length, and for a recurrence one more run of four times the steps, to see whether it was short of
training. Adam, rate rising for a tenth of the steps and falling linearly to zero, gradients clipped to norm 1.
"""

from functools import partial

import torch
from einops import einsum, rearrange
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from ttutor.efficient import FavorFeatures, efficient_attention, linear_attention
from ttutor.layers import LayerNorm
from ttutor.masks import CAUSAL
from ttutor.multihead import MultiHeadAttention
from ttutor.training.fit import fit

SEEDS, SEEDS_OF_CHOICE, RATES, STEPS, BATCH = [0, 1, 2], [100, 101], [1e-2, 3e-2, 1e-1], 600, 32
N_SYMBOLS, N_PAIRS, N_QUESTIONS, D_MODEL, WINDOW, N_FEATURES = 64, [4, 8, 16, 32], 8, 32, 8, 64
NO_VALUE, LONGER, DIVERGED = N_SYMBOLS, 4, 99.0
STATES = {  # numbers that a recurrence keeps between two tokens
    "elu + 1": D_MODEL * (D_MODEL + 1),
    "random features": N_FEATURES * (D_MODEL + 1),
    "delta rule": D_MODEL * D_MODEL,
}


def texts(n: int, n_pairs: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Keys and values of pairs and questions, and the answers."""
    keys = torch.rand(n, N_SYMBOLS, generator=generator).argsort(dim=-1)[:, :n_pairs]
    values = torch.randint(N_SYMBOLS, (n, n_pairs), generator=generator)
    asked = torch.randint(n_pairs, (n, N_QUESTIONS), generator=generator)
    all_keys = torch.cat([keys, keys.gather(1, asked)], dim=1)
    all_values = functional.pad(values, (0, N_QUESTIONS), value=NO_VALUE)
    return all_keys, all_values, values.gather(1, asked)


class DeltaRule(nn.Module):
    r"""$H_t = H_{t-1} + \beta_t\,k_t\,(v_t - H_{t-1}^\top k_t)^\top$, read by $q_t$; queries and keys of length one."""

    def __init__(self) -> None:
        super().__init__()
        self.to_qkv = nn.Linear(D_MODEL, 3 * D_MODEL, bias=False)
        self.to_share, self.to_output = nn.Linear(D_MODEL, 1), nn.Linear(D_MODEL, D_MODEL, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        query, key, value = self.to_qkv(hidden).chunk(3, dim=-1)
        query, key = functional.normalize(query, dim=-1), functional.normalize(key, dim=-1)
        share = self.to_share(hidden).sigmoid()
        state, outputs = hidden.new_zeros(len(hidden), D_MODEL, D_MODEL), []
        for q, k, v, b in zip(*(x.unbind(dim=1) for x in (query, key, value, share)), strict=True):
            news = b * (v - einsum(k, state, "batch d_key, batch d_key d_value -> batch d_value"))
            state = state + einsum(k, news, "batch d_key, batch d_value -> batch d_key d_value")
            outputs.append(einsum(q, state, "batch d_key, batch d_key d_value -> batch d_value"))
        return self.to_output(torch.stack(outputs, dim=1))


def mixer(name: str) -> nn.Module:
    """A mixer of nearly as many parameters as the others."""
    if name == "delta rule":
        return DeltaRule()
    drawn = FavorFeatures.draw(N_FEATURES, d_head=D_MODEL, generator=torch.Generator().manual_seed(0))
    attend = {
        "softmax": efficient_attention,
        "window": partial(efficient_attention, window=WINDOW),
        "elu + 1": linear_attention,
        "random features": partial(linear_attention, feature_map=drawn),
    }[name]
    return MultiHeadAttention(D_MODEL, 1, bias=False, attend=attend)


class Reader(nn.Module):
    """One layer of a mixer between two tables and an output map, as in the chapter."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.key, self.value = nn.Embedding(N_SYMBOLS, D_MODEL), nn.Embedding(N_SYMBOLS + 1, D_MODEL)
        self.norm, self.mix = LayerNorm(D_MODEL), mixer(name)
        self.to_logits = nn.Linear(D_MODEL, N_SYMBOLS)

    def forward(self, keys: Tensor, values: Tensor) -> Tensor:
        hidden = self.key(keys) + self.value(values)
        mask = {"mask": CAUSAL} if isinstance(self.mix, MultiHeadAttention) else {}  # a recurrence needs none
        hidden = hidden + self.mix(self.norm(hidden), **mask)
        return self.to_logits(hidden[:, -N_QUESTIONS:])


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
    fit(
        model,
        drawn,
        loss,
        steps=steps,
        learning_rate=lambda step: rate * min(10 * step / steps, 1 - step / (steps + 1)),
    )
    right, losses = [], []
    with torch.no_grad():
        for n_pairs in N_PAIRS:
            new = texts(200, n_pairs, torch.Generator().manual_seed(10_000 + seed))
            right.append(round((model(*new[:2]).argmax(dim=-1) == new[2]).float().mean().item(), 3))
            losses.append(loss(model, new).item())
    return {"right": right, "loss": round(sum(losses) / len(losses), 4)}


def tried_rates(name: str) -> dict[float, float]:
    """The loss at each rate tried: three, and more below or above them while the best is the first or the last."""

    def worse(rate: float) -> float:
        try:
            return max(run(name, rate, seed)["loss"] for seed in SEEDS_OF_CHOICE)
        except FloatingPointError:  # a rate at which training diverges is none to choose
            return DIVERGED

    tried = {rate: worse(rate) for rate in RATES}
    while len(tried) < 8:
        best, rates = min(tried, key=lambda rate: tried[rate]), sorted(tried)
        if best not in (rates[0], rates[-1]):
            break
        further = round(best / 3 if best == rates[0] else best * 3, 5)
        tried[further] = worse(further)
    return dict(sorted(tried.items()))


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    rows = {}
    for name in ("softmax", "window", "elu + 1", "random features", "delta rule"):
        tried = tried_rates(name)
        rate = min(tried, key=lambda rate: tried[rate])
        found = [run(name, rate, seed) for seed in SEEDS]
        rows[name] = {
            "tried": tried,
            "rate": rate,
            "state": STATES.get(name),
            "mixer_parameters": sum(p.numel() for p in Reader(name).mix.parameters()),
            "runs": found,
        }
        if name in STATES:
            rows[name]["longer"] = run(name, rate, SEEDS[0], steps=LONGER * STEPS)
        print(name, rows[name], flush=True)
    settings = {"n_pairs": N_PAIRS, "steps": STEPS, "longer": LONGER, "window": WINDOW, "n_symbols": N_SYMBOLS}
    _record.write(
        "efficient_recall", {"settings": settings, "rows": rows}, seeds=[*SEEDS, *SEEDS_OF_CHOICE], started=started
    )


if __name__ == "__main__":
    main()
