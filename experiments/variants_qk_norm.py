"""Where training breaks without a norm of queries and keys: the loss at learning rates up to those that are too high.

A causal language model of two layers reads the English side of the embedded corpus, character by character. Three kinds
that differ in nothing else: plain, with an RMSNorm on the queries and keys of each head, and with a soft cap of 50 on
the scores. Two starts: ours (Glorot's in attention and feed-forward network) and GPT-2's (deviation 0.02, what writes
to the stream smaller). Adam at a constant rate after 20 steps of warm-up, gradients clipped to norm 1; five rates,
three seeds, the loss on test text in nats per character, and the largest score that the last layer gives there.
"""

import torch
from _characters import characters_of, loss_on, next_character_loss
from torch import Tensor, nn

from ttutor.corpora.corpus import embedded_corpus
from ttutor.training.fit import fit
from ttutor.variants.modern_decoder import ModernDecoder, ModernDecoderConfig

import _record

SEEDS = [0, 1, 2]
RATES = [1e-3, 3e-3, 1e-2, 3e-2, 1e-1]
KINDS = {"plain": {}, "QK-norm": {"qk_norm": "each head"}, "soft cap": {"score_cap": 50.0}}
STEPS, WARMUP, N_LAYERS = 200, 20, 2


def start_as_gpt2(model: nn.Module) -> None:
    """What writes to the stream is smaller the more layers write."""
    for name, parameter in model.named_parameters():
        if name.endswith(("to_output.weight", "narrow.weight")):
            nn.init.normal_(parameter, std=0.02 * (2 * N_LAYERS) ** -0.5)


def start_as_glorot(model: nn.Module) -> None:
    """The matrices of attention and feed-forward networks by their two widths."""
    for name, parameter in model.named_parameters():
        if name.startswith("layers.") and parameter.ndim == 2:
            nn.init.xavier_uniform_(parameter)


STARTS = {"GPT-2's": start_as_gpt2, "Glorot's": start_as_glorot}


@torch.no_grad()
def largest_score(model: ModernDecoder, pieces: Tensor) -> float:
    """The largest score of the last layer, scaled, before any cap; queries and keys are not turned for it."""
    seen = {}
    attention = model.layers[-1].self_attention
    hooks = [
        norm.register_forward_hook(lambda _, __, result, name=name: seen.update({name: result}))
        for name, norm in {"q": attention.query_norm, "k": attention.key_norm}.items()
    ]
    model(pieces[:, :-1])
    for hook in hooks:
        hook.remove()
    return round(float((seen["q"] @ seen["k"].mT).abs().max()) / attention.d_head**0.5, 1)


def run(task, n_characters: int, kind: str, start: str, rate: float, seed: int) -> tuple[float, float]:
    """The loss on test text, and the largest score; no number where training broke off."""
    torch.manual_seed(seed)
    sizes = {"d_model": 64, "n_heads": 4, "n_layers": N_LAYERS, "d_ff": 168, "max_len": 64}
    model = ModernDecoder(ModernDecoderConfig(vocab_size=n_characters, **sizes, **KINDS[kind]))
    STARTS[start](model)
    fit(
        model,
        task.batches(STEPS),
        next_character_loss,
        steps=STEPS,
        learning_rate=lambda step: rate * min(1.0, step / WARMUP),
    )
    return loss_on(model, task.test[:128]), largest_score(model, task.test[:32])


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    corpus = embedded_corpus(sizes={"train": 10_000, "validation": 1000, "test": 2000})
    task, letters = characters_of(corpus)
    rows = []
    for start in STARTS:
        for kind in KINDS:
            for rate in RATES:
                made = [run(task, len(letters), kind, start, rate, seed) for seed in SEEDS]
                losses, scores = map(list, zip(*made, strict=True))
                rows.append({"start": start, "kind": kind, "rate": rate, "loss": losses, "largest_score": scores})
                print(rows[-1], flush=True)
    settings = {"steps": STEPS, "warmup": WARMUP, "frequencies_alone": task.frequency_loss(len(letters))}
    _record.write(
        "variants_qk_norm", {"settings": settings, "rows": rows}, seeds=SEEDS, started=started, embedded_corpus=True
    )


if __name__ == "__main__":
    main()
