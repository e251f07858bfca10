"""Four rules for a step, on the road's translator: gradient descent, momentum, RMSProp, Adam; five rates, three seeds.

Model, text, batches, clipping and the shape of the schedule are those of the road of chapter 8; a third of its steps.
All rules share one piece of code, with averages that begin at zero and are corrected for it (beta 0.9 and 0.98, epsilon
1e-9), and no weight decay. The figure is the validation loss at the end, in nats a token.

Attacked: three more rates between the best two of momentum, in case the grid missed its best; and plain momentum with
three times the steps. About six minutes on one core.
"""

import torch
from torch import Tensor, nn

from experiments import _record
from ttutor.corpora.corpus import embedded_corpus
from ttutor.tokenization import PAD_ID
from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.training.batching import BucketedBatches, make_batch
from ttutor.training.trainer import token_pairs
from ttutor.transformer import Transformer, TransformerConfig

SEEDS = [0, 1, 2]
RATES = {
    "gradient descent": [0.1, 0.3, 1.0, 3.0, 10.0],
    "momentum": [0.1, 0.3, 1.0, 3.0, 10.0],
    "RMSProp": [3e-4, 1e-3, 3e-3, 1e-2, 3e-2],
    "Adam": [1e-3, 2.5e-3, 5e-3, 1e-2, 2e-2],
}
STEPS, WARMUP, BETA1, BETA2, EPSILON = 120, 30, 0.9, 0.98, 1e-9


class Rule:
    """One rule for all parameters, flat in one vector."""

    def __init__(self, model: nn.Module, name: str) -> None:
        self.parameters, self.name, self.t = list(model.parameters()), name, 0
        self.m = torch.zeros(sum(parameter.numel() for parameter in self.parameters))
        self.v = torch.zeros_like(self.m)

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Move the parameters once."""
        self.t += 1
        g = nn.utils.parameters_to_vector([parameter.grad for parameter in self.parameters])
        self.m.lerp_(g, 1 - BETA1)
        self.v.lerp_(g * g, 1 - BETA2)
        m_hat, v_hat = self.m / (1 - BETA1**self.t), self.v / (1 - BETA2**self.t)
        direction = m_hat if self.name in ("momentum", "Adam") else g
        if self.name in ("RMSProp", "Adam"):
            direction = direction / (v_hat.sqrt() + EPSILON)
        where = nn.utils.parameters_to_vector(self.parameters)
        nn.utils.vector_to_parameters(where - rate * direction, self.parameters)


def rate_at(step: int, peak: float, steps: int) -> float:
    """Up in a line, level, and down to zero over the last 60 %."""
    return peak * min(1.0, step / WARMUP, (1 - step / steps) / 0.6)


def loss_of(model: nn.Module, batch: object, smoothing: float) -> Tensor:
    """Mean cross-entropy of the real target tokens, in nats."""
    logits = model(batch.source, batch.target_in).flatten(0, 1)
    targets = batch.target_out.flatten()
    return nn.functional.cross_entropy(logits, targets, ignore_index=PAD_ID, label_smoothing=smoothing)


def validation_loss(name: str, peak: float, seed: int, data: tuple, steps: int = STEPS) -> float:
    """Train one translator by one rule, and give its loss on the validation sentences."""
    config, batches, held_out = data
    torch.manual_seed(seed)
    model = Transformer(config)
    rule, step = Rule(model, name), 0
    for epoch in range(100):
        for batch in batches.epoch(100 * seed + epoch):
            step += 1
            if step > steps:
                with torch.no_grad():
                    return round(loss_of(model.eval(), held_out, 0.0).item(), 3)
            model.zero_grad()
            loss_of(model, batch, 0.1).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            rule.step(rate_at(step, peak, steps))
    raise RuntimeError("the text ran out")


def prepared() -> tuple:
    """The configuration, the batches, and the validation sentences as one batch."""
    corpus = embedded_corpus(sizes={"train": 12_000, "validation": 300, "test": 600})
    tokenizer = SubwordTokenizer.train([sentence for pair in corpus.train for sentence in pair], vocab_size=1500)
    training, validation = (
        token_pairs(part, tokenizer, max_tokens=64)[0] for part in (corpus.train, corpus.validation)
    )
    sizes = {"d_model": 64, "n_heads": 4, "n_layers": 2, "d_ff": 128, "max_len": 64}
    config = TransformerConfig(vocab_size=tokenizer.vocab_size, norm="pre", dropout=0.0, **sizes)
    return config, BucketedBatches(training, max_tokens=640, seed=0), make_batch(validation)


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    data = prepared()
    rules = {
        name: [{"rate": rate, "loss": [validation_loss(name, rate, seed, data) for seed in SEEDS]} for rate in rates]
        for name, rates in RATES.items()
    }
    attacks = {
        "momentum, rates between": {str(rate): validation_loss("momentum", rate, 0, data) for rate in (0.6, 1.7, 5.5)},
        "momentum, three times the steps": {
            str(rate): validation_loss("momentum", rate, 0, data, 3 * STEPS) for rate in (1.0, 3.0)
        },
    }
    settings = {"steps": STEPS, "warmup": WARMUP, "betas": [BETA1, BETA2], "epsilon": EPSILON, "clip": 1.0}
    results = {"settings": settings, "rules": rules, "attacks": attacks}
    _record.write("training_rules", results, seeds=SEEDS, started=started, embedded_corpus=True)


if __name__ == "__main__":
    main()
