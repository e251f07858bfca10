"""A small translator on its way: every tenth step of one training, for the explorer of learning.

The training is that of chapter 8's road: 12,000 sentences of the embedded grammar, a pre-norm Transformer of two layers
a side and 64 features, 360 steps of AdamW, seed 0. Recorded at each stop: the loss on 300 validation sentences; on 600
test sentences, how often the attention (the mean of all layers and heads) is greatest on the right English noun, and
how often the French noun is the first guess; and for a few sentences, after the right beginning, the attention of every
place, its first guess and the probability of the right token, and what the model writes on its own. The first sentence
holds "red cars", which stands nowhere in the training text. Each sentence is stored as one line of JSON text.
"""

import json

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from ttutor.corpora.corpus import embedded_corpus
from ttutor.corpora.lexicon import NOUNS
from ttutor.generation import greedy_search
from ttutor.tokenization import BOS_ID, EOS_ID, PAD_ID
from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.training.batching import Batch, BucketedBatches, make_batch, pad
from ttutor.training.trainer import token_pairs
from ttutor.transformer import Transformer, TransformerConfig
from ttutor.translation.alignment import cross_attention

SEED, STEPS, EVERY = 0, 360, 10
PEAK, WARMUP, SMOOTHING = 5e-3, 40, 0.1
OWN = ("the red cars do not sleep", "les voitures rouges ne dorment pas")
N_MORE = 2
Pair = tuple[list[int], list[int]]


def loss_of(model: Transformer, batch: Batch, smoothing: float = 0.0) -> Tensor:
    """Cross-entropy in nats a token."""
    logits = model(batch.source, batch.target_in)
    return functional.cross_entropy(
        rearrange(logits, "batch target vocab_size -> (batch target) vocab_size"),
        rearrange(batch.target_out, "batch target -> (batch target)"),
        ignore_index=PAD_ID,
        label_smoothing=smoothing,
    )


def nouns_of(tokenizer: SubwordTokenizer) -> dict[int, int]:
    """French nouns to English ones, where both are one token."""
    found = {}
    for noun in NOUNS:
        for plural in (False, True):
            english, french = (tokenizer.encode(form) for form in (noun.in_english(plural), noun.in_french(plural)))
            if len(english) == len(french) == 1:
                found[french[0]] = english[0]
    return found


def noun_shares(model: Transformer, tokenizer: SubwordTokenizer, pairs: list[Pair]) -> tuple[float, float]:
    """Over all nouns that stand in the source once: attention greatest on the English one, the French one first."""
    nouns = nouns_of(tokenizer)
    sources, targets = ([[*ids, EOS_ID] for ids in side] for side in zip(*pairs, strict=True))
    batch = make_batch(pairs)
    is_right = model(batch.source, batch.target_in).argmax(dim=-1) == batch.target_out
    looked, said = [], []
    for row, seen in enumerate(cross_attention(model, tokenizer, sources, targets)):
        weights = seen.mean()
        for place, token in enumerate(targets[row]):
            if sources[row].count(nouns.get(token)) == 1:
                looked.append(sources[row][int(weights[place].argmax())] == nouns[token])
                said.append(bool(is_right[row, place]))
    return sum(looked) / len(looked), sum(said) / len(said)


def written(model: Transformer, tokenizer: SubwordTokenizer, pair: Pair) -> str:
    """What the model writes by itself, the most probable token at each step."""
    (found,) = greedy_search(
        model, pad([[*pair[0], EOS_ID]]), bos_id=BOS_ID, eos_id=EOS_ID, max_new_tokens=len(pair[1]) + 2
    )
    return tokenizer.decode(found.token_ids)


def look(model: Transformer, tokenizer: SubwordTokenizer, pair: Pair) -> dict:
    """Attention, guesses and probabilities of one sentence after its right beginnings."""
    source, target = ([*ids, EOS_ID] for ids in pair)
    batch = make_batch([pair])
    chances = model(batch.source, batch.target_in)[0].softmax(dim=-1)
    (seen,) = cross_attention(model, tokenizer, [source], [target])
    return {
        "weights": [[round(weight, 2) for weight in row] for row in seen.mean().tolist()],
        "guesses": tokenizer.tokens(chances.argmax(dim=-1).tolist()),
        "chances": [round(chances[place, token].item(), 2) for place, token in enumerate(target)],
        "written": written(model, tokenizer, pair),
    }


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    corpus = embedded_corpus(sizes={"train": 12_000, "validation": 300, "test": 600})
    texts = [sentence for pair in corpus.train for sentence in pair]
    tokenizer = SubwordTokenizer.train(texts, vocab_size=1500)
    train, validation, test = (
        token_pairs(pairs, tokenizer, max_tokens=64)[0] for pairs in (corpus.train, corpus.validation, corpus.test)
    )
    own = (tokenizer.encode(OWN[0]), tokenizer.encode(OWN[1]))
    shown = [own, *test[:N_MORE]]
    held_out, batches = make_batch(validation), BucketedBatches(train, max_tokens=640, seed=SEED)

    torch.manual_seed(SEED)
    sizes = {"d_model": 64, "n_heads": 4, "n_layers": 2, "d_ff": 128}
    model = Transformer(
        TransformerConfig(vocab_size=tokenizer.vocab_size, dropout=0.0, norm="pre", max_len=64, **sizes)
    )
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), eps=1e-9, weight_decay=0.01)
    stops: list[dict] = []
    views: list[list[dict]] = [[] for _ in shown]

    def stop(step: int) -> None:
        with torch.no_grad():
            loss, (looked, said) = loss_of(model, held_out).item(), noun_shares(model, tokenizer, test)
            for view, pair in zip(views, shown, strict=True):
                view.append(look(model, tokenizer, pair))
        stops.append({"step": step, "loss": round(loss, 3), "looked": round(looked, 3), "said": round(said, 3)})
        print(stops[-1], views[0][-1]["written"], views[0][-1]["guesses"], flush=True)

    stop(0)
    source, epoch = batches.epoch(0), 0
    for step in range(1, STEPS + 1):
        batch = next(source, None)
        if batch is None:
            epoch += 1
            source = batches.epoch(epoch)
            batch = next(source)
        optimizer.zero_grad()
        loss_of(model, batch, SMOOTHING).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.param_groups[0]["lr"] = PEAK * min(1, step / WARMUP, (1 - step / STEPS) / 0.6)
        optimizer.step()
        if step % EVERY == 0:
            stop(step)

    sentences = []
    for pair, view in zip(shown, views, strict=True):
        names = {name: [*tokenizer.tokens(ids), "<eos>"] for name, ids in zip(("source", "target"), pair, strict=True)}
        series = {name: [one[name] for one in view] for name in view[0]}
        sentences.append(json.dumps({**names, **series}, ensure_ascii=False, separators=(",", ":")))
    results = {
        "settings": {**sizes, "steps": STEPS, "peak": PEAK, "warmup": WARMUP, "smoothing": SMOOTHING},
        "n_parameters": sum(parameter.numel() for parameter in model.parameters()),
        "n_test": len(test),
        **{name: [one[name] for one in stops] for name in ("step", "loss", "looked", "said")},
        "sentences": sentences,
    }
    _record.write("training_recording", results, seeds=[SEED], started=started, embedded_corpus=True)


if __name__ == "__main__":
    main()
