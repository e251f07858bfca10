"""One reversal by two kinds of model of about equal size: a decoder with a separator, and an encoder-decoder.

The task: read eight symbols out of twelve and write them backwards. The decoder-only model reads "symbols, separator,
symbols backwards" as one text, and its loss counts the second half alone; the encoder-decoder reads the symbols in
its encoder. Both are pre-norm with GELU, learned positions, tied embeddings, width 32 and four heads; each starts as
its class does (GPT-2's way and the 2017 paper's). The decoder has two layers, the other model one and one, and the
decoder's ``d_ff`` is chosen so that the number of parameters comes as near as it can. The rate of each is chosen in
the same way: the largest share of sequences written right by one run with a seed used for nothing else, out of five
rates (the lower loss on a tie). Then three seeds. Adam, constant rate, batches of 32, gradients clipped to norm 1.
Right: all eight symbols, each given the right ones before it (teacher forcing), on 1,000 new sequences.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from ttutor.training.fit import fit
from ttutor.transformer import Transformer, TransformerConfig
from ttutor.variants.gpt import GPT, GPTConfig

SEEDS, SEED_OF_CHOICE, RATES = [0, 1, 2], 100, [3e-4, 1e-3, 3e-3, 1e-2, 3e-2]
N_SYMBOLS, LENGTH, BATCH, STEPS = 12, 8, 32, 800
SEPARATOR, VOCAB_SIZE = 2, 4 + N_SYMBOLS
SIZES = {"vocab_size": VOCAB_SIZE, "d_model": 32, "n_heads": 4, "dropout": 0.0}


class ByDecoder(nn.Module):
    """Logits of the second half, by a decoder-only model."""

    def __init__(self, d_ff: int) -> None:
        super().__init__()
        self.model = GPT(GPTConfig(**SIZES, n_layers=2, d_ff=d_ff, max_len=2 * LENGTH))

    def forward(self, symbols: Tensor) -> Tensor:
        separator = torch.full((len(symbols), 1), SEPARATOR)
        return self.model(torch.cat([symbols, separator, symbols.flip(1)[:, :-1]], dim=1))[:, LENGTH:]


class ByBoth(nn.Module):
    """The same logits, by an encoder-decoder."""

    def __init__(self, d_ff: int) -> None:
        super().__init__()
        config = TransformerConfig(
            **SIZES, n_layers=1, d_ff=d_ff, max_len=LENGTH, norm="pre", positions="learned", activation="gelu"
        )
        self.model = Transformer(config)

    def forward(self, symbols: Tensor) -> Tensor:
        start = torch.full((len(symbols), 1), SEPARATOR)
        return self.model(symbols, torch.cat([start, symbols.flip(1)[:, :-1]], dim=1))


def size(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def reversal_loss(model: nn.Module, symbols: Tensor) -> Tensor:
    return functional.cross_entropy(model(symbols).flatten(0, 1), symbols.flip(1).flatten())


def run(kind: type[nn.Module], d_ff: int, rate: float, seed: int) -> tuple[float, float]:
    """Share of new sequences written right, and the loss on them."""
    torch.manual_seed(seed)
    model = kind(d_ff)
    batches = (torch.randint(4, VOCAB_SIZE, (BATCH, LENGTH)) for _ in range(STEPS))
    fit(model, batches, reversal_loss, steps=STEPS, learning_rate=rate)
    new = torch.randint(4, VOCAB_SIZE, (1000, LENGTH), generator=torch.Generator().manual_seed(10_000 + seed))
    with torch.no_grad():
        right = (model(new).argmax(dim=-1) == new.flip(1)).all(dim=-1).float().mean().item()
        return round(right, 3), round(reversal_loss(model, new).item(), 4)


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    wanted = size(ByBoth(128))
    d_ff = min(range(64, 256), key=lambda d_ff: abs(size(ByDecoder(d_ff)) - wanted))
    rows = []
    for name, kind, inner in (("decoder-only", ByDecoder, d_ff), ("encoder-decoder", ByBoth, 128)):
        tried = [run(kind, inner, rate, SEED_OF_CHOICE) for rate in RATES]
        rate = RATES[max(range(len(RATES)), key=lambda i: (tried[i][0], -tried[i][1]))]
        runs = [run(kind, inner, rate, seed) for seed in SEEDS]
        rows.append(
            {
                "model": name,
                "parameters": size(kind(inner)),
                "tried": tried,
                "rate": rate,
                "right": [right for right, _ in runs],
                "loss": [loss for _, loss in runs],
            }
        )
        print(rows[-1], flush=True)
    settings = {"length": LENGTH, "n_symbols": N_SYMBOLS, "steps": STEPS, "batch": BATCH, "rates": RATES}
    results = {"settings": settings, "rows": rows}
    _record.write("variants_reversal", results, seeds=[*SEEDS, SEED_OF_CHOICE], started=started)


if __name__ == "__main__":
    main()
