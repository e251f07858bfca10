"""What makes words alike in a deep stack that was never trained: fading or mixing?

Ten words go through 48 fresh encoder layers of width 64. After each layer the spread is measured: the words' distance
from their common mean, relative to their length. In post-norm each norm divides what came before, so the old stream
fades; and attention replaces it by averages of all words. To tell the two apart the same layers, with the same
weights, are run three times: every word sees all words; each sees only itself (nothing is mixed); each sees one other
word (mixed, not averaged). The factor by which the norms multiply the old stream is stored beside the spread: it must
be the same in all three.

Three first weights (full: Xavier's; small: the last map of each sublayer times 1 / sqrt(2N); torch: a fresh layer of
PyTorch's), both places of the norm, five seeds. Attacks: 30 words; width 128; 96 layers; the feed-forward networks
taken out; a sentence of ten equal words with positions.
"""

from functools import partial

import torch
from torch import Tensor, nn

from experiments import _record
from ttutor.encoder import Encoder
from ttutor.layers import LayerNorm
from ttutor.positions import sinusoidal_encoding

SEEDS = [0, 1, 2, 3, 4]
SEEN = ["all words", "only itself", "one other word"]
ATTACKS: dict[str, dict[str, int | bool]] = {
    "30 words": {"n_words": 30},
    "width 128": {"d_model": 128},
    "96 layers": {"n_layers": 96},
    "no feed-forward networks": {"networks": False},
    "ten equal words": {"equal": True},
}


def spread(hidden: Tensor) -> float:
    """How far the tokens lie from their mean, relative to their size."""
    return ((hidden - hidden.mean(dim=-2, keepdim=True)).norm() / hidden.norm()).item()


@torch.no_grad()
def start(layers: nn.ModuleList, how: str, d_model: int) -> None:
    """Give fresh layers one of the three first weights."""
    for layer in layers:
        attention, network = layer.self_attention, layer.feed_forward
        if how == "small":
            for last in (attention.to_output, network.narrow):
                last.weight.mul_((2 * len(layers)) ** -0.5)
        if how == "torch":
            fresh = nn.TransformerEncoderLayer(d_model, 4, 4 * d_model)
            inward = [attention.to_query, attention.to_key, attention.to_value]
            for part, weight in zip(inward, fresh.self_attn.in_proj_weight.chunk(3), strict=True):
                part.weight.copy_(weight)
                part.bias.zero_()
            theirs = [fresh.self_attn.out_proj, fresh.linear1, fresh.linear2]
            for part, source in zip([attention.to_output, network.widen, network.narrow], theirs, strict=True):
                part.load_state_dict(source.state_dict())


def masks(n_words: int) -> dict[str, Tensor | None]:
    """Who sees whom in the three runs."""
    alone = torch.eye(n_words, dtype=torch.bool)
    return dict(zip(SEEN, (None, alone, alone.roll(1, dims=1)), strict=True))


@torch.no_grad()
def through(
    norm: str,
    how: str,
    seed: int,
    n_words: int = 10,
    d_model: int = 64,
    n_layers: int = 48,
    networks: bool = True,
    equal: bool = False,
) -> dict[str, dict[str, list[float] | float]]:
    """The spread after each layer in the three runs, and what a norm keeps of the old stream, on average."""
    torch.manual_seed(seed)
    words = torch.randn(1, 1 if equal else n_words, d_model).expand(1, n_words, d_model)
    words = words + sinusoidal_encoding(n_words, d_model).double()
    layers = Encoder(d_model, n_heads=4, d_ff=4 * d_model, n_layers=n_layers, norm=norm).layers
    start(layers, how, d_model)
    found: dict[str, dict[str, list[float] | float]] = {}
    kept: list[Tensor] = []
    for module in layers.modules():
        if isinstance(module, LayerNorm):
            module.register_forward_hook(
                lambda _, inputs, __: kept.append(inputs[0].std(dim=-1, correction=0).log().mean())
            )
    for seen, mask in masks(n_words).items():
        hidden, spreads = words, [spread(words)]
        kept.clear()
        for layer in layers:
            attend = partial(layer.self_attention, mask=mask)
            hidden = layer(hidden, mask) if networks else layer.around_attention(hidden, attend)
            spreads.append(spread(hidden))
        factor = (-torch.stack(kept).mean()).exp().item() if norm == "post" else 1.0
        found[seen] = {"spread": spreads, "kept": factor}
    return found


def summary(runs: list[dict], place: int = -1) -> dict[str, list[list[float]]]:
    """By what is seen: the last spread of each seed, and what a norm keeps."""
    return {
        seen: [
            [float(f"{run[seen]['spread'][place]:.2g}") for run in runs],
            [round(run[seen]["kept"], 3) for run in runs],
        ]
        for seen in SEEN
    }


def main() -> None:
    """Run all starts, then the attacks on post-norm with full first weights."""
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    started = _record.start()
    curves, ends = {}, {}
    for norm in ("post", "pre"):
        for how in ("full", "torch", "small"):
            runs = [through(norm, how, seed) for seed in SEEDS]
            name = f"{norm}, {how}"
            curves[name] = {
                seen: [[float(f"{value:.2g}") for value in run[seen]["spread"]] for run in runs] for seen in SEEN
            }
            ends[name] = summary(runs)
            print(name, ends[name], flush=True)
    attacks = {
        name: summary([through("post", "full", seed, **more) for seed in SEEDS]) for name, more in ATTACKS.items()
    }
    for name, found in attacks.items():
        print(name, found, flush=True)
    _record.write("encoder_alike", {"curves": curves, "ends": ends, "attacks": attacks}, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
