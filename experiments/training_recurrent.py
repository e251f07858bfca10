"""A Transformer and a recurrent translator of equal size on the same batches: what they know by step and by second.

The embedded corpus, 12,000 pairs, batches of 640 tokens. A Transformer (pre-norm, two layers each side) beside an LSTM
with additive attention that reads the source from both ends, as in Bahdanau et al. (2015), its embeddings tied like the
Transformer's, its width chosen so that both have about as many parameters. The LSTM comes twice: its table begins with
numbers of size 1, as PyTorch's embeddings do, or smaller, as suits a projection. Each model is trained at three or
four learning rates with three seeds, and the rate with the lowest mean validation loss is taken; all runs are stored,
and those stored before are not made again. Stored are the share of 200 test sentences translated exactly by greedy
search, and the processor seconds that the steps took (no translating among them). The Transformers also show, after 140
steps, how far a mistake spreads: how often a token behind a first mistake is right when a teacher repairs the
beginning, and when the model goes on from its own. The LSTM with the small table is trained for three times as long
at its two highest rates, to see whether it cannot learn or learns late. About fifteen minutes of one core.
"""

import time
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from experiments import _record
from ttutor import assets
from ttutor.corpora.corpus import embedded_corpus
from ttutor.generation import greedy_search
from ttutor.recurrence.seq2seq import Seq2Seq, Seq2SeqConfig
from ttutor.tokenization import BOS_ID, EOS_ID, PAD_ID
from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.training.batching import Batch, BucketedBatches, make_batch
from ttutor.training.trainer import token_pairs
from ttutor.transformer import Transformer, TransformerConfig

SEEDS = [0, 1, 2]
RATES = {
    "transformer": [2.5e-3, 5e-3, 1e-2],
    "recurrent": [5e-3, 1e-2, 2e-2, 4e-2],
    "recurrent_small_start": [5e-3, 1e-2, 2e-2, 4e-2],
}
STEPS, WARMUP, MARKS, HALFWAY, D_RECURRENT, LONGEST = 360, 40, [90, 180, 270, 360], 140, 84, 30
BATCH_TOKENS, VOCABULARY, N_TEST = 640, 1500, 200
LONG, LONG_MARKS = 1080, [360, 720, 1080]


def build(kind: str, vocab_size: int, seed: int) -> nn.Module:
    """One of the two, untrained."""
    torch.manual_seed(seed)
    if kind == "transformer":
        sizes = {"d_model": 64, "n_heads": 4, "n_layers": 2, "d_ff": 128, "max_len": 64}
        return Transformer(TransformerConfig(vocab_size=vocab_size, dropout=0.0, norm="pre", **sizes))
    model = Seq2Seq(
        Seq2SeqConfig(vocab_size=vocab_size, d_model=D_RECURRENT, cell="lstm", attention=True, bidirectional=True)
    )
    if kind == "recurrent_small_start":  # as large as suits a projection; PyTorch's embeddings begin with 1
        nn.init.normal_(model.source_embedding.weight, std=D_RECURRENT**-0.5)
    model.target_embedding.weight = model.to_logits.weight = model.source_embedding.weight
    return model


def loss(model: nn.Module, batch: Batch) -> Tensor:
    """Mean cross-entropy per real target token, in nats."""
    logits = model(batch.source, batch.target_in)
    return nn.functional.cross_entropy(logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=PAD_ID)


def endless(batches: BucketedBatches) -> Iterator[Batch]:
    epoch = 0
    while True:
        yield from batches.epoch(epoch)
        epoch += 1


def translations(model: nn.Module, pairs: list) -> list[list[int]]:
    """Token ids by greedy search, without marks."""
    source = make_batch(pairs).source
    if isinstance(model, Transformer):
        found = greedy_search(model, source, bos_id=BOS_ID, eos_id=EOS_ID, max_new_tokens=LONGEST)
        return [list(one.token_ids) for one in found]
    rows = model.greedy(source, bos_id=BOS_ID, eos_id=EOS_ID, max_new_tokens=LONGEST).tolist()
    return [[token for token in row[: row.index(EOS_ID) if EOS_ID in row else None] if token != PAD_ID] for row in rows]


def behind_a_mistake(model: nn.Module, pairs: list) -> dict:
    """For the places behind a first mistake, one after the other: how many there are, and how many tokens are right."""
    batch = make_batch(pairs)
    with torch.no_grad():
        forced = (model(batch.source, batch.target_in).argmax(dim=-1) == batch.target_out).tolist()
    counted = np.zeros((3, 4), dtype=int)
    for said, right, (_, target) in zip(translations(model, pairs), forced, pairs, strict=True):
        if said == list(target) or len(said) != len(target):
            continue
        first = next(place for place, token in enumerate(said) if token != target[place])
        for place in range(first + 1, len(target)):
            counted[:, min(place - first, 4) - 1] += (1, right[place], said[place] == target[place])
    return dict(zip(("places", "repaired", "own"), counted.tolist(), strict=True))


def train(kind: str, rate: float, seed: int, data: dict, steps: int = STEPS, marks: tuple = tuple(MARKS)) -> dict:
    """Train one model; at each mark the share of exact translations and the seconds so far."""
    model, source = (
        build(kind, data["vocab_size"], seed),
        endless(BucketedBatches(data["train"], BATCH_TOKENS, seed=seed)),
    )
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    found: dict = {"seconds": [], "exact": []}
    seconds = 0.0
    for step in range(1, steps + 1):
        batch, started = next(source), time.process_time()
        optimizer.param_groups[0]["lr"] = rate * min(1.0, step / WARMUP, (1 - step / (steps + 1)) / 0.6)
        value = loss(model, batch)
        optimizer.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seconds += time.process_time() - started
        if step in marks:
            answers = translations(model, data["test"][:N_TEST])
            hits = [said == list(target) for said, (_, target) in zip(answers, data["test"], strict=False)]
            found["seconds"].append(round(seconds, 2))
            found["exact"].append(round(float(np.mean(hits)), 4))
        if step == HALFWAY and kind == "transformer":
            found["behind_a_mistake"] = behind_a_mistake(model, data["test"])
    with torch.no_grad():
        found["validation_loss"] = round(loss(model, make_batch(data["validation"])).item(), 4)
    found["parameters"] = sum(parameter.numel() for parameter in model.parameters())
    return found


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    corpus = embedded_corpus(sizes={"train": 12_000, "validation": 300, "test": 600})
    tokenizer = SubwordTokenizer.train([text for pair in corpus.train for text in pair], vocab_size=VOCABULARY)
    data = {
        name: token_pairs(getattr(corpus, name), tokenizer, max_tokens=64)[0]
        for name in ("train", "validation", "test")
    }
    data["vocab_size"] = tokenizer.vocab_size
    settings = {"steps": STEPS, "marks": MARKS, "halfway": HALFWAY, "batch_tokens": BATCH_TOKENS, "n_test": N_TEST}
    before = assets.load("training_recurrent") if "training_recurrent" in assets.names() else {}
    if before.get("settings") == settings:
        started -= 60 * before["provenance"]["minutes"]
    else:
        before = {}
    results = {}
    for kind, rates in RATES.items():
        known = before.get(kind, {}).get("runs", {})
        tried = {rate: known.get(f"{rate:g}") or [train(kind, rate, seed, data) for seed in SEEDS] for rate in rates}
        means = {rate: float(np.mean([run["validation_loss"] for run in runs])) for rate, runs in tried.items()}
        results[kind] = {
            "learning_rate": min(means, key=means.get),
            "runs": {f"{rate:g}": runs for rate, runs in tried.items()},
        }
    slow = "recurrent_small_start"
    results["small_start_longer"] = {
        "marks": LONG_MARKS,
        "runs": {
            f"{rate:g}": [train(slow, rate, seed, data, steps=LONG, marks=tuple(LONG_MARKS)) for seed in SEEDS]
            for rate in RATES[slow][-2:]
        },
    }
    _record.write(
        "training_recurrent", {"settings": settings, **results}, seeds=SEEDS, started=started, embedded_corpus=True
    )


if __name__ == "__main__":
    main()
