"""Is a running parity learned, and does it carry on to longer texts? Attention and a recurrent network, three seeds.

At every position of a text of random bits the model says whether the number of ones so far is odd, so that each text
gives as many lessons as it has bits. Every model is trained on texts of up to 8 bits and asked about its last bit at
lengths 4 to 64. Two causal pre-norm layers of attention with sinusoidal positions, against a recurrent network of
about two hundred parameters. In one variant every text of the training begins at a random position, so that all 64
positions are seen; it learns more slowly and gets more steps. Four minutes on one core.
"""

import torch
from torch import Tensor, nn

from experiments import _record
from ttutor.decoder import Decoder
from ttutor.positions import sinusoidal_encoding
from ttutor.recurrence import RNNCell, hidden_of, unroll
from ttutor.training.fit import fit

SEEDS = [0, 1, 2]
LENGTHS = [4, 8, 12, 16, 32, 64]
TRAINED, BATCH, N_TEST = 8, 64, 1000
D_MODEL, N_HEADS, N_LAYERS, HIDDEN = 32, 4, 2, 8


class AttentionReader(nn.Module):
    """Two causal layers over the bits; what it says at a position depends on the bits up to there."""

    def __init__(self, shifted: bool = False) -> None:
        super().__init__()
        self.shifted = shifted
        self.embedding = nn.Embedding(2, D_MODEL)
        self.stack = Decoder(D_MODEL, N_HEADS, 4 * D_MODEL, N_LAYERS, cross_attention=False, norm="pre")
        self.to_logits = nn.Linear(D_MODEL, 2)

    def forward(self, bits: Tensor) -> Tensor:
        hidden = self.embedding(bits)
        n_tokens = bits.shape[1]
        first = int(torch.randint(0, LENGTHS[-1] - n_tokens + 1, ())) if self.shifted and self.training else 0
        positions = sinusoidal_encoding(LENGTHS[-1], D_MODEL)[first : first + n_tokens].to(hidden.dtype)
        return self.to_logits(self.stack(hidden + positions))


class RecurrentReader(nn.Module):
    """One recurrent cell that reads the bits from left to right."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(2, HIDDEN)
        self.cell = RNNCell(HIDDEN, HIDDEN)
        self.to_logits = nn.Linear(HIDDEN, 2)

    def forward(self, bits: Tensor) -> Tensor:
        return self.to_logits(hidden_of(unroll(self.cell, self.embedding(bits))))


MODELS = {  # how it is made, and its steps of training
    "attention": (AttentionReader, 2000),
    "attention, shifted": (lambda: AttentionReader(shifted=True), 4500),
    "recurrent network": (RecurrentReader, 2000),
}


def parity_loss(model: nn.Module, bits: Tensor) -> Tensor:
    """Mean cross-entropy of the parity so far, at every position, in nats."""
    return nn.functional.cross_entropy(model(bits).flatten(0, 1), (bits.cumsum(dim=1) % 2).flatten())


def right_at_the_end(model: nn.Module, length: int, generator: torch.Generator) -> float:
    """Share of texts of this length whose parity is right at the last bit."""
    bits = torch.randint(2, (N_TEST, length), generator=generator)
    with torch.no_grad():
        return (model(bits)[:, -1].argmax(dim=-1) == bits.sum(dim=1) % 2).double().mean().item()


def learn(name: str, seed: int) -> dict:
    """Train one model; give the loss of its last steps and its answers by length."""
    torch.manual_seed(seed)
    make, steps = MODELS[name]
    model = make()
    generator = torch.Generator().manual_seed(seed)
    texts = (
        torch.randint(2, (BATCH, int(torch.randint(2, TRAINED + 1, (), generator=generator))), generator=generator)
        for _ in range(steps)
    )
    losses = fit(model, texts, parity_loss, steps=steps, learning_rate=3e-3)
    right = [round(right_at_the_end(model, length, generator), 3) for length in LENGTHS]
    return {"loss": round(sum(losses[-100:]) / 100, 4), "right": right}


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    runs = {name: [learn(name, seed) for seed in SEEDS] for name in MODELS}
    sizes = {name: sum(parameter.numel() for parameter in make().parameters()) for name, (make, _) in MODELS.items()}
    settings = {
        "trained_up_to": TRAINED,
        "steps": {name: steps for name, (_, steps) in MODELS.items()},
        "batch": BATCH,
        "n_test": N_TEST,
        "d_model": D_MODEL,
        "n_heads": N_HEADS,
        "n_layers": N_LAYERS,
    }
    results = {"settings": settings, "lengths": LENGTHS, "parameters": sizes, "runs": runs}
    _record.write("attention_parity", results, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
