"""Which norm, and does it need its gain and bias? Four kinds in a pre-norm encoder, two rates, three seeds.

The task is that of `encoder_start.py`: an encoder reads eight symbols and gives, at every position, the symbol at the
mirrored position. Four layers, pre-norm, the same sizes for all. The norms are layer normalisation with gain and bias,
without both, RMS normalisation with its gain, and none at all. Adam with a constant learning rate, no warm-up,
gradients clipped to norm 1. Of each run: the mean training loss per symbol of the last 20 steps, in nats (every batch
is new), and the *drift*: how far the mean of each feature that the last feed-forward network reads moves in one step on
a fixed batch, as a root mean square over features, divided by that of the features' standard deviations; the mean over
the steps. ``null`` stands for a run that met a number that is not finite.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from ttutor.embeddings import Embeddings, TokenEmbedding
from ttutor.encoder import Encoder
from ttutor.inside import capture
from ttutor.layers import LayerNorm, RMSNorm
from ttutor.positions import SinusoidalPositions
from ttutor.training.fit import fit

SEEDS = [0, 1, 2]
RATES = [3e-3, 1e-2]
N_SYMBOLS, N_TOKENS, N_LAYERS, D_MODEL, N_HEADS, STEPS, BATCH = 20, 8, 4, 32, 4, 300, 16
WATCHED = f"encoder.layers.{N_LAYERS - 1}.feed_forward.input"


def plain_norm(d_model: int) -> nn.Module:
    """Layer normalisation whose gain stays 1 and whose bias stays 0."""
    return LayerNorm(d_model).requires_grad_(False)


NORMS = {
    "LayerNorm": LayerNorm,
    "LayerNorm without gain and bias": plain_norm,
    "RMSNorm": RMSNorm,
    "none": lambda d_model: nn.Identity(),
}


class Mirror(nn.Module):
    """Embed, run the encoder, score every symbol at every position."""

    def __init__(self, make_norm) -> None:
        super().__init__()
        self.embeddings = Embeddings(TokenEmbedding(N_SYMBOLS, D_MODEL), SinusoidalPositions(D_MODEL, N_TOKENS))
        self.encoder = Encoder(D_MODEL, N_HEADS, 4 * D_MODEL, N_LAYERS, norm="pre", make_norm=make_norm)
        self.to_logits = nn.Linear(D_MODEL, N_SYMBOLS)

    def forward(self, token_ids: Tensor) -> Tensor:
        return self.to_logits(self.encoder(self.embeddings(token_ids)))


def mirror_loss(model: nn.Module, token_ids: Tensor) -> Tensor:
    """Mean cross-entropy of the symbols read backwards, in nats."""
    return functional.cross_entropy(model(token_ids).flatten(0, 1), token_ids.flip(1).flatten())


def run(make_norm, rate: float, seed: int) -> tuple[float | None, float | None]:
    """The final loss and the drift of one training."""
    torch.manual_seed(seed)
    model = Mirror(make_norm)
    fixed = torch.randint(N_SYMBOLS, (64, N_TOKENS))
    means, spreads = [], []

    def watched_loss(model: nn.Module, token_ids: Tensor) -> Tensor:
        with torch.no_grad(), capture(model, WATCHED) as seen:
            model(fixed)
        read = seen[WATCHED].flatten(0, 1)
        means.append(read.mean(dim=0))
        spreads.append(read.var(dim=0).mean().sqrt())
        return mirror_loss(model, token_ids)

    batches = (torch.randint(N_SYMBOLS, (BATCH, N_TOKENS)) for _ in range(STEPS))
    try:
        losses = fit(model, batches, watched_loss, steps=STEPS, learning_rate=rate)
    except FloatingPointError:
        return None, None
    moves = torch.stack(means).diff(dim=0).square().mean(dim=1).sqrt() / torch.stack(spreads)[1:]
    return round(sum(losses[-20:]) / 20, 3), round(moves.mean().item(), 4)


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    rows = []
    for name, make_norm in NORMS.items():
        for rate in RATES:
            runs = [run(make_norm, rate, seed) for seed in SEEDS]
            rows.append({"norm": name, "rate": rate, "last": [a for a, _ in runs], "drift": [b for _, b in runs]})
            print(rows[-1], flush=True)
    results = {"settings": {"steps": STEPS, "batch": BATCH, "n_layers": N_LAYERS}, "guessing": round(math.log(20), 3)}
    _record.write("encoder_norms", {**results, "rows": rows}, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
