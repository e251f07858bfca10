"""Where the norm stands, how a stack starts, and warm-up: what does each decide, at a tuned learning rate?

An encoder of eight layers reads eight symbols and has to give, at every position, the symbol that stands at the
mirrored position. Three starts:

- ``full``: this package's (Xavier in every map);
- ``small``: the same, with the last map of each sublayer times 1 / sqrt(2N) for N layers, as in GPT-2;
- ``torch``: every weight as a fresh `torch.nn.TransformerEncoderLayer` has it.

Each in post-norm and pre-norm, with and without 100 steps of warm-up (constant afterwards), at five learning rates.
Adam as in torch (betas 0.9 and 0.999), no clipping, no dropout. The figure is the mean training loss per symbol of the
last 20 of 300 steps, in nats; every batch is new, and runs with the same seed read the same batches. Guessing gives
ln 20. All seeds and rates of one arm are trained side by side, as slices of one stack of weights. The loss curves are
stored for the rate with the lowest mean loss over the seeds: means over ten steps.
"""

import math

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap
from torch.nn import functional

from experiments import _record
from ttutor.encoder import Encoder
from ttutor.positions import sinusoidal_encoding

SEEDS = [0, 1, 2]
RATES = [3e-4, 1e-3, 3e-3, 1e-2, 3e-2]
WARMUPS = [1, 100]
STARTS = ["full", "small", "torch"]
N_SYMBOLS, N_TOKENS, N_LAYERS, D_MODEL, N_HEADS, STEPS, BATCH = 20, 8, 8, 32, 4, 300, 16


class Mirror(nn.Module):
    """Embed, run the encoder, score every symbol at every position."""

    def __init__(self, norm: str, start: str) -> None:
        super().__init__()
        self.symbols = nn.Embedding(N_SYMBOLS, D_MODEL)  # mean 0, variance 1, as TokenEmbedding after its scaling
        self.register_buffer("places", sinusoidal_encoding(N_TOKENS, D_MODEL))
        self.encoder = Encoder(D_MODEL, N_HEADS, 4 * D_MODEL, N_LAYERS, norm=norm)
        self.to_logits = nn.Linear(D_MODEL, N_SYMBOLS)
        for layer in self.encoder.layers:
            attention, network = layer.self_attention, layer.feed_forward
            with torch.no_grad():
                if start == "small":
                    for last in (attention.to_output, network.narrow):
                        last.weight.mul_(1 / math.sqrt(2 * N_LAYERS))
                if start == "torch":
                    fresh = nn.TransformerEncoderLayer(D_MODEL, N_HEADS, 4 * D_MODEL)
                    inward = [attention.to_query, attention.to_key, attention.to_value]
                    theirs = [fresh.self_attn.out_proj, fresh.linear1, fresh.linear2]
                    for part, weight in zip(inward, fresh.self_attn.in_proj_weight.chunk(3), strict=True):
                        part.weight.copy_(weight)
                        part.bias.zero_()
                    for part, source in zip([attention.to_output, network.widen, network.narrow], theirs, strict=True):
                        part.weight.copy_(source.weight)
                        part.bias.copy_(source.bias)

    def forward(self, token_ids: Tensor) -> Tensor:
        return self.to_logits(self.encoder(self.symbols(token_ids) + self.places))


def train(norm: str, start: str, warmup: int) -> Tensor:
    """The loss of every step, ``steps rates seeds``."""
    models = []
    for _ in RATES:
        for seed in SEEDS:
            torch.manual_seed(seed)
            models.append(Mirror(norm, start))
    generators = [torch.Generator().manual_seed(1000 + seed) for seed in SEEDS]
    weights, buffers = stack_module_state(models)
    rates = torch.tensor(RATES).repeat_interleave(len(SEEDS))
    first = {name: torch.zeros_like(weight) for name, weight in weights.items()}
    second = {name: torch.zeros_like(weight) for name, weight in weights.items()}

    def loss_of(one: dict[str, Tensor], constants: dict[str, Tensor], token_ids: Tensor) -> Tensor:
        logits = functional_call(models[0], (one, constants), (token_ids,))
        return functional.cross_entropy(logits.flatten(0, 1), token_ids.flip(1).flatten())

    step_of_all = vmap(grad_and_value(loss_of))
    losses = []
    for step in range(1, STEPS + 1):
        batch = torch.stack([torch.randint(N_SYMBOLS, (BATCH, N_TOKENS), generator=each) for each in generators])
        gradients, loss = step_of_all(weights, buffers, batch.repeat(len(RATES), 1, 1))
        losses.append(loss.detach())
        with torch.no_grad():  # Adam, with a rate for each slice
            for name, weight in weights.items():
                first[name].lerp_(gradients[name], 0.1)
                second[name].lerp_(gradients[name].square(), 0.001)
                size = (second[name] / (1 - 0.999**step)).sqrt() + 1e-8
                rate = (rates * min(1.0, step / warmup)).view(-1, *[1] * (weight.ndim - 1))
                weight.sub_(rate * first[name] / (1 - 0.9**step) / size)
    return torch.stack(losses).unflatten(1, (len(RATES), len(SEEDS)))


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    rows = []
    for start in STARTS:
        for norm in ("post", "pre"):
            for warmup in WARMUPS:
                losses = train(norm, start, warmup)
                last = losses[-20:].mean(dim=0)
                best = last.mean(dim=1).argmin().item()
                curves = losses[:, best].unflatten(0, (-1, 10)).mean(dim=1)
                rows.append(
                    {
                        "start": start,
                        "norm": norm,
                        "warmup": warmup,
                        "rates": [
                            {"rate": rate, "last": [round(value, 3) for value in values]}
                            for rate, values in zip(RATES, last.tolist(), strict=True)
                        ],
                        "best": RATES[best],
                        "curves": [[round(value, 2) for value in curve] for curve in curves.T.tolist()],
                    }
                )
                print(start, norm, warmup, RATES[best], rows[-1]["rates"], flush=True)
    settings = {"steps": STEPS, "batch": BATCH, "n_layers": N_LAYERS, "d_model": D_MODEL, "n_heads": N_HEADS}
    results = {"settings": settings, "guessing": round(math.log(N_SYMBOLS), 3), "rows": rows}
    _record.write("encoder_start", results, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
