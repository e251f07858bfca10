"""How many lookups fit into one head? One attention layer is to name the last two or four symbols, three seeds.

Each position names the symbols one, two (three, four) places before it, from one blend of values or from several. The
layer has causal attention without bias, learned positions, no residual connection and no feed-forward network; whatever
the number of heads, it has the same parameters. Of each run: the share of right answers for each place on unseen
sequences (guessing gives one over the number of symbols), and the mean weight of each head on each place. One row has a
single head in a layer four times as wide. The result says how long it took.
"""

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from ttutor.inside import capture
from ttutor.masks import causal_mask
from ttutor.multihead import MultiHeadAttention
from ttutor.training.fit import fit

SEEDS = [0, 1, 2]
N_TOKENS, BATCH, STEPS, WARMUP, PEAK = 16, 32, 1000, 50, 0.02
TASKS = [(8, 2), (32, 2), (32, 4)]
D_MODEL, WIDE = 32, 128
HEADS = [1, 2, 4]


class OneLayer(nn.Module):
    """Embed, attend once, name several earlier symbols at every position."""

    def __init__(self, n_symbols: int, n_places: int, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_places = n_places
        self.embedding = nn.Embedding(n_symbols, d_model)
        nn.init.normal_(self.embedding.weight, std=0.3)
        self.positions = nn.Parameter(0.3 * torch.randn(N_TOKENS, d_model))
        self.attention = MultiHeadAttention(d_model, n_heads, bias=False)
        self.to_logits = nn.Linear(d_model, n_places * n_symbols)

    def forward(self, token_ids: Tensor) -> Tensor:
        hidden = self.embedding(token_ids) + self.positions[: token_ids.shape[1]]
        logits = self.to_logits(self.attention(hidden, mask=causal_mask(token_ids.shape[1])))
        return rearrange(logits, "batch tokens (places symbols) -> batch tokens places symbols", places=self.n_places)


def answers(token_ids: Tensor, n_places: int) -> Tensor:
    """What stands one, two, ... places before each position that has so many before it."""
    earlier = [token_ids.roll(place, dims=1) for place in range(1, n_places + 1)]
    return torch.stack(earlier, dim=-1)[:, n_places:]


def places_loss(model: OneLayer, token_ids: Tensor) -> Tensor:
    """Mean cross-entropy of a place, in nats."""
    logits = model(token_ids)[:, model.n_places :]
    return functional.cross_entropy(logits.flatten(0, 2), answers(token_ids, model.n_places).flatten())


def run(n_symbols: int, n_places: int, d_model: int, n_heads: int, seed: int) -> dict:
    """Train one layer; the share of right answers by place, and where its heads look."""
    torch.manual_seed(seed)
    model = OneLayer(n_symbols, n_places, d_model, n_heads)
    batches = (torch.randint(n_symbols, (BATCH, N_TOKENS)) for _ in range(STEPS))

    def rate(step: int) -> float:
        return PEAK * min(1.0, step / WARMUP) * (1 - step / (STEPS + 1))

    fit(model, batches, places_loss, steps=STEPS, learning_rate=rate)
    unseen = torch.randint(n_symbols, (1000, N_TOKENS))
    with torch.no_grad(), capture(model, "attention.weights") as seen:
        right = model(unseen)[:, n_places:].argmax(dim=-1) == answers(unseen, n_places)
    weights = seen["attention.weights"].mean(dim=0)
    looks = torch.stack(
        [weights.diagonal(-place, 1, 2)[:, n_places - place :].mean(dim=1) for place in range(n_places + 1)], dim=-1
    )
    return {
        "right": [round(share, 3) for share in right.double().mean(dim=(0, 1)).tolist()],
        "looks": [[round(weight, 3) for weight in head] for head in looks.tolist()],
        "n_parameters": sum(parameter.numel() for parameter in model.parameters()),
    }


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    settings = [(*task, D_MODEL, n_heads) for task in TASKS for n_heads in HEADS] + [(32, 4, WIDE, 1)]
    rows = [
        {
            **dict(zip(("n_symbols", "n_places", "d_model", "n_heads"), one, strict=True)),
            "runs": [run(*one, seed) for seed in SEEDS],
        }
        for one in settings
    ]
    _record.write("multihead_lookups", {"steps": STEPS, "rows": rows}, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
