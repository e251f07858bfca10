"""Who reads one head's mixture? One attention layer and a reader name the last four symbols, five seeds.

The task and the layer of `multihead_lookups` (four of 32 symbols, causal attention without residual connection, as many
parameters for any number of heads). Behind the layer stands one of three readers: a linear map; a norm and a linear
map; or a norm and a feed-forward network, four times the width and a ReLU. The models start in two ways: as our package
does (Xavier's rule, embeddings of deviation .3), and as torch does (its rule for linear layers, embeddings of deviation
1). Of each setting the learning rate is chosen on a seed of its own by the loss on unseen sequences; the others are run
at that rate. Kept are the share of right answers (guessing gives 1/32) and where each head looks. Some five minutes on
one core.
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

SEEDS, CHOOSING = [0, 1, 2, 3, 4], 100
N_SYMBOLS, N_PLACES, N_TOKENS, D_MODEL, BATCH, WARMUP = 32, 4, 16, 32, 32, 50
SETTINGS = [
    ("feed-forward", "ours", [1, 2, 4]),
    ("feed-forward", "torch", [1, 4]),
    ("linear", "ours", [1, 2, 4]),
    ("norm, linear", "ours", [1]),
]
STEPS = 1000
RATES = [0.004, 0.01, 0.025, 0.06, 0.15]


class OneLayer(nn.Module):
    """Embed, attend once, name several earlier symbols at every position."""

    def __init__(self, reader: str, start: str, n_heads: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(N_SYMBOLS, D_MODEL)
        self.positions = nn.Parameter(torch.randn(N_TOKENS, D_MODEL))
        self.attention = MultiHeadAttention(D_MODEL, n_heads, bias=False)
        if start == "ours":
            nn.init.normal_(self.embedding.weight, std=0.3)
            nn.init.normal_(self.positions, std=0.3)
        else:
            for part in ("query", "key", "value", "output"):
                getattr(self.attention, f"to_{part}").reset_parameters()
        norm, width = [nn.LayerNorm(D_MODEL)] if reader != "linear" else [], D_MODEL
        hidden = []
        if reader == "feed-forward":
            width = 4 * D_MODEL
            hidden = [nn.Linear(D_MODEL, width), nn.ReLU()]
        self.reader = nn.Sequential(*norm, *hidden, nn.Linear(width, N_PLACES * N_SYMBOLS))

    def forward(self, token_ids: Tensor) -> Tensor:
        found = self.attention(self.embedding(token_ids) + self.positions, mask=causal_mask(N_TOKENS))
        split = "batch tokens (places symbols) -> batch tokens places symbols"
        return rearrange(self.reader(found), split, places=N_PLACES)


def answers(token_ids: Tensor) -> Tensor:
    """What stands one, two, ... places before each position that has so many before it."""
    earlier = [token_ids.roll(place, dims=1) for place in range(1, N_PLACES + 1)]
    return torch.stack(earlier, dim=-1)[:, N_PLACES:]


def places_loss(model: nn.Module, token_ids: Tensor) -> Tensor:
    """Mean cross-entropy of a place, in nats."""
    logits = model(token_ids)[:, N_PLACES:]
    return functional.cross_entropy(logits.flatten(0, 2), answers(token_ids).flatten())


def run(reader: str, start: str, n_heads: int, peak: float, seed: int) -> dict:
    """Train one layer; the share of right answers, the loss, and where its heads look."""
    torch.manual_seed(seed)
    model = OneLayer(reader, start, n_heads)
    batches = (torch.randint(N_SYMBOLS, (BATCH, N_TOKENS)) for _ in range(STEPS))

    def rate(step: int) -> float:
        return peak * min(1.0, step / WARMUP) * (1 - step / (STEPS + 1))

    fit(model, batches, places_loss, steps=STEPS, learning_rate=rate)
    unseen = torch.randint(N_SYMBOLS, (1000, N_TOKENS))
    with torch.no_grad(), capture(model, "attention.weights") as seen:
        loss = places_loss(model, unseen).item()
        right = model(unseen)[:, N_PLACES:].argmax(dim=-1) == answers(unseen)
    weights = seen["attention.weights"].mean(dim=0)
    looks = [weights.diagonal(-place, 1, 2)[:, N_PLACES - place :].mean(dim=1) for place in range(N_PLACES + 1)]
    return {
        "right": round(right.double().mean().item(), 3),
        "loss": round(loss, 3),
        "looks": [[round(weight, 3) for weight in head] for head in torch.stack(looks, dim=-1).tolist()],
        "n_parameters": sum(parameter.numel() for parameter in model.parameters()),
    }


def setting(reader: str, start: str, n_heads: int) -> dict:
    """One setting: what each rate gave on the seed that chooses, the rate that was chosen, and the runs."""
    tried = {peak: run(reader, start, n_heads, peak, CHOOSING)["loss"] for peak in RATES}
    chosen = min(tried, key=tried.get)
    runs = [run(reader, start, n_heads, chosen, seed) for seed in SEEDS]
    print(reader, start, n_heads, tried, [one["right"] for one in runs], flush=True)
    losses = {str(peak): loss for peak, loss in tried.items()}
    return {"reader": reader, "start": start, "n_heads": n_heads, "rate": chosen, "tried": losses, "runs": runs}


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    rows = [setting(reader, start, n_heads) for reader, start, heads in SETTINGS for n_heads in heads]
    _record.write("multihead_readers", {"steps": STEPS, "rows": rows}, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
