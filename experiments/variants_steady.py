"""Do norms on queries and keys, or soft caps, keep a training alive at high learning rates?

A `ModernDecoder` of two layers reads the English side of the embedded corpus, character by character, for 150 steps:
with Llama's parts alone, with an RMSNorm on queries and keys, or with the soft caps of Gemma 2 on scores and on logits.
Each is trained at five learning rates, with a warm-up of 15 steps and a rate that falls to zero, Adam, gradients
clipped to norm 1; three seeds; and from two initialisations, GPT-2's and that of PyTorch's linear maps.

Of each run: the loss on validation sentences, in nats per character (None where loss or gradient stopped being a
number), and the largest score of its attention there, before any cap. A run has broken down where it ends worse than
whoever knows how frequent each character is and nothing else.
"""

import torch
from torch import Tensor, nn

from experiments import _record
from experiments._characters import characters_of, loss_on, next_character_loss
from ttutor.corpora.corpus import embedded_corpus
from ttutor.efficient import efficient_attention
from ttutor.training.fit import fit
from ttutor.variants.modern_decoder import ModernDecoder, ModernDecoderConfig

SEEDS = [0, 1, 2]
RATES = [3e-3, 1e-2, 3e-2, 1e-1, 3e-1]
STEPS, WARMUP = 150, 15
SIZES = {"d_model": 32, "n_heads": 4, "n_layers": 2, "d_ff": 86, "max_len": 64}
PARTS = {
    "Llama's parts": {},
    "QK-norm": {"qk_norm": "each head"},
    "soft caps": {"score_cap": 50.0, "logit_cap": 30.0},
}


class Watched:
    """Attention that notes the largest score of every call, once it is asked to."""

    def __init__(self) -> None:
        self.is_watching, self.largest = False, 0.0

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, mask=None, *, scale: float, **rest) -> Tensor:
        if self.is_watching:
            scores = scale * query @ key.transpose(-2, -1)
            seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()  # what the causal mask allows
            self.largest = max(self.largest, scores.masked_fill(~seen, 0).abs().max().item())
        return efficient_attention(query, key, value, mask, scale=scale, **rest)


def run(task, n_characters: int, parts: dict, start: str, rate: float, seed: int) -> dict:
    """One training."""
    torch.manual_seed(seed)
    attend = Watched()
    model = ModernDecoder(ModernDecoderConfig(vocab_size=n_characters, **SIZES, **parts), attend=attend)
    if start == "PyTorch":
        for part in model.modules():
            if isinstance(part, nn.Linear):
                part.reset_parameters()

    def rate_at(step: int) -> float:
        return rate * min(1.0, step / WARMUP) * (1 - step / (STEPS + 1))

    try:
        fit(model, task.batches(STEPS), next_character_loss, steps=STEPS, learning_rate=rate_at)
    except FloatingPointError:
        return {"rate": rate, "seed": seed, "loss": None, "largest_score": None}
    attend.is_watching = True
    return {"rate": rate, "seed": seed, "loss": loss_on(model, task.validation), "largest_score": round(attend.largest)}


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    task, letters = characters_of(embedded_corpus(sizes={"train": 10_000, "validation": 1000, "test": 2000}))
    rows = []
    for start in ("GPT-2", "PyTorch"):
        for name, parts in PARTS.items():
            runs = [run(task, len(letters), parts, start, rate, seed) for rate in RATES for seed in SEEDS]
            rows.append({"start": start, "parts": name, "runs": runs})
            print(rows[-1], flush=True)
    settings = {"steps": STEPS, "warmup": WARMUP, "rates": RATES, "frequencies": task.frequency_loss(len(letters))}
    _record.write(
        "variants_steady", {"settings": settings, "rows": rows}, seeds=SEEDS, started=started, embedded_corpus=True
    )


if __name__ == "__main__":
    main()
