"""What does depth buy without a feed-forward network? Copying the past, with one and two layers, three seeds.

A sequence of 48 symbols repeats a random block of 6 to 16 symbols. At every position the model names the next symbol;
from the second block on that can be known. To find it a layer has to know which symbol stands *after* an earlier copy
of the present one. Each model is a causal pre-norm stack with learned positions and skips; layers are attention alone,
or attention and a feed-forward network. The learning rate, constant after 50 steps of warm-up, is the better of two for
each kind of model by its mean over the seeds; all are stored. Of each run: the share of right answers on new sequences
from the second block on, and the number of parameters.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from ttutor.layers import FeedForward, LayerNorm, PreNorm
from ttutor.masks import causal_mask
from ttutor.multihead import MultiHeadAttention
from ttutor.training.fit import fit

SEEDS = [0, 1, 2]
RATES = [3e-3, 1e-2]
N_SYMBOLS, N_TOKENS, D_MODEL, N_HEADS, STEPS, BATCH = 24, 48, 32, 4, 600, 32
KINDS = {
    "1 attention layer": (1, False),
    "2 attention layers": (2, False),
    "1 attention layer and a feed-forward network": (1, True),
}


class Copier(nn.Module):
    """Embed, some layers of attention with or without a feed-forward network after each, score the next symbol."""

    def __init__(self, n_layers: int, feeds_forward: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(N_SYMBOLS, D_MODEL)
        self.positions = nn.Parameter(0.3 * torch.randn(N_TOKENS, D_MODEL))
        parts = [MultiHeadAttention(D_MODEL, N_HEADS) for _ in range(n_layers)]
        if feeds_forward:
            parts.append(FeedForward(D_MODEL, 4 * D_MODEL))
        self.parts = nn.ModuleList(parts)
        self.arounds = nn.ModuleList(PreNorm(D_MODEL) for _ in parts)
        self.final_norm = LayerNorm(D_MODEL)
        self.to_logits = nn.Linear(D_MODEL, N_SYMBOLS)

    def forward(self, token_ids: Tensor) -> Tensor:
        hidden = self.embedding(token_ids) + self.positions[: token_ids.shape[1]]
        mask = causal_mask(token_ids.shape[1])
        for part, around in zip(self.parts, self.arounds, strict=True):
            attends = isinstance(part, MultiHeadAttention)
            hidden = around(hidden, (lambda stream, part=part: part(stream, mask=mask)) if attends else part)
        return self.to_logits(self.final_norm(hidden))


def repeated(batch: int) -> tuple[Tensor, Tensor]:
    """Sequences of repeated blocks, one symbol longer than a model reads; and which next symbols can be known."""
    periods = torch.randint(6, 17, (batch, 1))
    blocks = torch.randint(N_SYMBOLS, (batch, 16))
    places = torch.arange(N_TOKENS + 1).expand(batch, -1)
    return blocks.gather(1, places % periods), places[:, 1:] >= periods


def known_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Mean cross-entropy of the next symbols that can be known, in nats."""
    token_ids, known = batch
    return functional.cross_entropy(model(token_ids[:, :-1])[known], token_ids[:, 1:][known])


def run(n_layers: int, feeds_forward: bool, rate: float, seed: int) -> tuple[float, int]:
    """Train one model; the share of right answers, and its parameters."""
    torch.manual_seed(seed)
    model = Copier(n_layers, feeds_forward)
    batches = (repeated(BATCH) for _ in range(STEPS))
    fit(model, batches, known_loss, steps=STEPS, learning_rate=lambda step: rate * min(1.0, step / 50))
    token_ids, known = repeated(500)
    with torch.no_grad():
        right = (model(token_ids[:, :-1]).argmax(dim=-1) == token_ids[:, 1:])[known]
    return right.double().mean().item(), sum(parameter.numel() for parameter in model.parameters())


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    rows = []
    for name, kind in KINDS.items():
        for rate in RATES:
            runs = [run(*kind, rate, seed) for seed in SEEDS]
            rows.append({"kind": name, "rate": rate, "right": [round(share, 3) for share, _ in runs]})
            rows[-1]["n_parameters"] = runs[0][1]
            print(rows[-1], flush=True)
    results = {"settings": {"steps": STEPS, "batch": BATCH}, "guessing": round(1 / N_SYMBOLS, 3), "rows": rows}
    _record.write("encoder_induction", results, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
