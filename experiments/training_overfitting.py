"""Real text, little or much of it: the loss on what was read, on other text, and with averaged weights.

A small translator (two layers a side, d_model 64) learns captions of Multi30k, English to German, for the same steps
with batches of the same size. The arms: all 29,000 captions; 500 of them; the same 500 with dropout; and all of them
with a rate that comes down. After every 30 steps it keeps the loss on 300 captions that the model learns from (no
dropout, no smoothing), the loss on 300 validation captions, and that of a moving average of the weights. One peak rate
serves all arms; it was not tuned, so that arms with different rates afterwards are not ranked by it. No sentence is
stored. About ten minutes of one core.

    ttutor fetch multi30k
    python experiments/training_overfitting.py
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from experiments import _record
from ttutor.corpora.corpus import read_aligned
from ttutor.corpora.datasets import find_dataset
from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.training.averaging import AveragedWeights
from ttutor.training.batching import Batch, BucketedBatches, make_batch
from ttutor.training.trainer import token_pairs
from ttutor.transformer import Transformer, TransformerConfig

SEEDS, RATE = [0, 1, 2], 5e-3
STEPS, WARMUP, EVERY, AVERAGING = 300, 30, 30, 0.95
VOCABULARY, BATCH, FEW, DROPOUT, MEASURED = 2000, 640, 500, 0.3, 300
ARMS = {
    "all": {"few": False, "dropout": 0.0, "declines": False},
    "all, declining": {"few": False, "dropout": 0.0, "declines": True},
    "few": {"few": True, "dropout": 0.0, "declines": False},
    "few, dropout": {"few": True, "dropout": DROPOUT, "declines": False},
}


def loss_of(model: nn.Module, batch: Batch) -> Tensor:
    """Mean cross-entropy per real target token, in nats."""
    logits = model(batch.source, batch.target_in)
    return nn.functional.cross_entropy(logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=0)


def endless(pairs: list, seed: int) -> Iterator[Batch]:
    batches, epoch = BucketedBatches(pairs, max_tokens=BATCH, seed=seed), 0
    while True:
        yield from batches.epoch(epoch)
        epoch += 1


def train(arm: dict, seed: int, data: dict) -> list[dict]:
    """Train one arm; the losses on the way."""
    pairs = data["train"][:FEW] if arm["few"] else data["train"]
    parts = {"read": make_batch(pairs[:MEASURED]), "validation": make_batch(data["validation"][:MEASURED])}
    torch.manual_seed(seed)
    config = TransformerConfig(
        vocab_size=data["vocab_size"], d_model=64, n_heads=4, n_layers=2, d_ff=128, norm="pre", dropout=arm["dropout"]
    )
    model = Transformer(config)
    average = AveragedWeights(model, AVERAGING)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    curve, source = [], endless(pairs, seed)
    for step in range(1, STEPS + 1):
        model.train()
        optimizer.zero_grad()
        loss_of(model, next(source)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        down = 1 - step / (STEPS + 1) if arm["declines"] else 1.0
        optimizer.param_groups[0]["lr"] = RATE * min(1.0, step / WARMUP) * down
        optimizer.step()
        average.update(model, step)
        if step % EVERY == 0:
            curve.append({"step": step} | losses(model, average, parts))
    return curve


@torch.no_grad()
def losses(model: nn.Module, average: AveragedWeights, parts: dict[str, Batch]) -> dict[str, float]:
    model.eval()
    found = {name: loss_of(model, part).item() for name, part in parts.items()}
    with average.applied_to(model):
        found["validation_averaged"] = loss_of(model, parts["validation"]).item()
    return {name: round(value, 4) for name, value in found.items()}


def read_data() -> dict:
    files = find_dataset("multi30k", "en-de")
    train_text, validation_text = (read_aligned(*files[part]) for part in ("train", "validation"))
    tokenizer = SubwordTokenizer.train([text for pair in train_text for text in pair], vocab_size=VOCABULARY)
    pairs, _ = token_pairs(train_text, tokenizer, max_tokens=64)
    held_out, _ = token_pairs(validation_text, tokenizer, max_tokens=64)
    return {"train": pairs, "validation": held_out, "vocab_size": tokenizer.vocab_size}


def frequency_loss(data: dict) -> float:
    """The validation loss of a model that knows how often each token occurs, and nothing else."""
    counts = torch.ones(data["vocab_size"], dtype=torch.float64)
    targets = make_batch(data["train"]).target_out
    counts += torch.bincount(targets[targets != 0], minlength=data["vocab_size"])
    held_out = make_batch(data["validation"][:MEASURED]).target_out
    return round(-(counts / counts.sum()).log()[held_out[held_out != 0]].mean().item(), 4)


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    data = read_data()
    arms = {}
    for name, arm in ARMS.items():
        arms[name] = [train(arm, seed, data) for seed in SEEDS]
        print(name, [curve[-1] for curve in arms[name]], flush=True)
    settings = {
        "captions": len(data["train"]),
        "few": FEW,
        "steps": STEPS,
        "learning_rate": RATE,
        "tokens_per_batch": BATCH,
        "dropout": DROPOUT,
        "averaging": AVERAGING,
        "measured": MEASURED,
        "vocab_size": data["vocab_size"],
    }
    results = {"settings": settings, "frequency_loss": frequency_loss(data), "arms": arms}
    _record.write("training_overfitting", results, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
