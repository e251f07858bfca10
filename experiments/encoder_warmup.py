"""Does a deep encoder need a warm-up? Post-norm and pre-norm, with and without, at three learning rates, three seeds.

An encoder of eight layers reads eight symbols and has to give, at every position, the symbol that stands at the
mirrored position. Only the place of the norm, the learning rate and the length of the warm-up differ; after the warm-up
the rate is constant. Adam as in torch (betas 0.9 and 0.999), no clipping, no dropout. The figure is the mean training
loss per symbol of the last 20 steps, in nats; every batch is new. Guessing gives ln 20. The runs at one rate are stored
as curves, too: means over ten steps.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from ttutor.embeddings import Embeddings, TokenEmbedding
from ttutor.encoder import Encoder
from ttutor.positions import SinusoidalPositions
from ttutor.training.fit import fit

import _record

SEEDS = [0, 1, 2]
RATES = [1e-3, 3e-3, 1e-2]
WARMUPS = [1, 100]
CURVES_AT = 3e-3
N_SYMBOLS, N_TOKENS, N_LAYERS, D_MODEL, N_HEADS, STEPS, BATCH = 20, 8, 8, 32, 4, 300, 16


class Mirror(nn.Module):
    """Embed, run the encoder, score every symbol at every position."""

    def __init__(self, norm: str) -> None:
        super().__init__()
        self.embeddings = Embeddings(TokenEmbedding(N_SYMBOLS, D_MODEL), SinusoidalPositions(D_MODEL, N_TOKENS))
        self.encoder = Encoder(D_MODEL, N_HEADS, 4 * D_MODEL, N_LAYERS, norm=norm)
        self.to_logits = nn.Linear(D_MODEL, N_SYMBOLS)

    def forward(self, token_ids: Tensor) -> Tensor:
        return self.to_logits(self.encoder(self.embeddings(token_ids)))


def mirror_loss(model: nn.Module, token_ids: Tensor) -> Tensor:
    """Mean cross-entropy of the symbols read backwards, in nats."""
    return functional.cross_entropy(model(token_ids).flatten(0, 1), token_ids.flip(1).flatten())


def run(norm: str, rate: float, warmup: int, seed: int) -> list[float]:
    """The loss of every step of one training."""
    torch.manual_seed(seed)
    model = Mirror(norm)
    batches = (torch.randint(N_SYMBOLS, (BATCH, N_TOKENS)) for _ in range(STEPS))
    return fit(
        model,
        batches,
        mirror_loss,
        steps=STEPS,
        learning_rate=lambda step: rate * min(1.0, step / warmup),
        clip_norm=None,
    )


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    rows = []
    for norm in ("post", "pre"):
        for warmup in WARMUPS:
            for rate in RATES:
                losses = torch.tensor([run(norm, rate, warmup, seed) for seed in SEEDS])
                row = {"norm": norm, "warmup": warmup, "rate": rate}
                row["last"] = [round(value, 3) for value in losses[:, -20:].mean(dim=1).tolist()]
                if rate == CURVES_AT:
                    means = losses.unflatten(1, (-1, 10)).mean(dim=-1)
                    row["curves"] = [[round(value, 2) for value in curve] for curve in means.tolist()]
                rows.append(row)
                print(norm, warmup, rate, row["last"], flush=True)
    settings = {"steps": STEPS, "batch": BATCH, "n_layers": N_LAYERS, "d_model": D_MODEL, "n_heads": N_HEADS}
    results = {"settings": settings, "guessing": round(math.log(N_SYMBOLS), 3), "rows": rows}
    _record.write("encoder_warmup", results, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
