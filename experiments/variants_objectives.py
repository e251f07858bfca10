"""Six objectives on one small language: what each learns, beside what anybody could know.

The language is that of chapter 9: "the old dog barked beside the boat in the harbour today". Six adjectives and four
times are free; each of eight animals has one verb and each of eight things one place, so that either tells the other.
1,200 of its 1,536 sentences are for training, the rest for testing. Every run: Adam at 3e-3, constant, batches of 32,
gradients clipped to norm 1, pre-norm or post-norm as the family has it; no rate was tuned, since nothing is compared
across objectives. Three seeds each. Losses in nats per predicted token, on the test sentences.

- spans: a `T5` on span corruption (15 %, mean length 3: two neighbouring tokens of eleven).
- infilling: the same `T5`, reading BART's infilled text (30 %) and writing the whole sentence.
- permutation: two streams as XLNet has them, trained on random orders; nats per sentence in three kinds of order.
- replaced: a small generator fills masks, a `BERT` says which tokens are not original; area under the curve.
- pairs: two sentences, trained on "does it follow?" or on "are they in order?"; accuracy on both questions.
- sharing: masked language modelling by four layers of their own, or by one layer used four times.
"""

import math
from itertools import product

import torch
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from ttutor.layers import FeedForward, LayerNorm
from ttutor.multihead import MultiHeadAttention
from ttutor.training.fit import fit
from ttutor.variants.bert import BERT, BERTConfig, BERTForMaskedLM
from ttutor.variants.heads import TransformerForSequenceClassification, TransformerForTokenClassification
from ttutor.variants.objectives import (
    IGNORE_ID,
    factorisation_order,
    mask_tokens,
    next_sentence_pairs,
    permutation_masks,
    repeat_layer,
    replace_tokens,
    sentence_order_pairs,
    span_corruption,
    text_infilling,
)
from ttutor.variants.t5 import T5, T5Config

SEEDS, RATE, BATCH = [0, 1, 2], 3e-3, 32
CLS, SEP, MASK, SENTINELS = 2, 3, 4, [5, 6, 7]
SPECIAL = range(8)
ADJECTIVES = ["old", "young", "small", "big", "grey", "wild"]
CALLS = {
    "dog": "barked", "cat": "purred", "lion": "roared", "wolf": "howled",
    "bee": "buzzed", "horse": "neighed", "snake": "hissed", "owl": "hooted",
}  # fmt: skip
PLACES = {
    "boat": "harbour", "train": "station", "plane": "airport", "tent": "camp",
    "desk": "office", "bed": "hospital", "stage": "theatre", "altar": "church",
}  # fmt: skip
TIMES = ["yesterday", "today", "early", "late"]
ORDER_OF_STORY = ["first", "then", "later", "last"]
WORDS = [
    "the",
    "beside",
    "in",
    *ADJECTIVES,
    *CALLS,
    *CALLS.values(),
    *PLACES,
    *PLACES.values(),
    *TIMES,
    *ORDER_OF_STORY,
]
INDEX = {word: index for index, word in enumerate(WORDS, start=8)}
VOCAB_SIZE = 8 + len(WORDS)
SIZES = {"vocab_size": VOCAB_SIZE, "d_model": 32, "n_heads": 4, "n_layers": 2, "d_ff": 128}


def write(adjective: str, animal: str, thing: str, time: str) -> list[int]:
    text = f"the {adjective} {animal} {CALLS[animal]} beside the {thing} in the {PLACES[thing]} {time}"
    return [INDEX[word] for word in text.split()]


SENTENCES = torch.tensor([write(*parts) for parts in product(ADJECTIVES, CALLS, PLACES, TIMES)])
SHUFFLED = SENTENCES[torch.randperm(len(SENTENCES), generator=torch.Generator().manual_seed(0))]
TRAIN, TEST = SHUFFLED[:1200], SHUFFLED[1200:]
FREE = [1, 10]
N_TOKENS = 11


def rows(steps: int, sentences: Tensor = TRAIN) -> list[Tensor]:
    return [sentences[torch.randint(len(sentences), (BATCH,))] for _ in range(steps)]


def token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def padded(texts: list[list[int]], value: int) -> Tensor:
    return nn.utils.rnn.pad_sequence([torch.tensor(text) for text in texts], batch_first=True, padding_value=value)


def pieces(sentences: Tensor, objective: str, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sources and targets of an encoder-decoder, padded."""
    if objective == "spans":
        made = [span_corruption(row, sentinel_ids=SENTINELS, generator=generator) for row in sentences.tolist()]
        return padded([one.inputs for one in made], 0), padded([one.targets for one in made], IGNORE_ID)
    damaged = [text_infilling(row, mask_id=MASK, generator=generator) for row in sentences.tolist()]
    return padded(damaged, 0), torch.cat([sentences, torch.full((len(sentences), 1), SEP)], dim=1)


def shifted(target: Tensor) -> Tensor:
    """What the decoder reads: a start token, then all of the target but its last."""
    return functional.pad(target[:, :-1].clamp(min=0), (1, 0))


def denoising(objective: str, seed: int) -> dict:
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = T5(T5Config(**SIZES, d_head=8, dropout=0.0))

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        source, target = pieces(batch, objective, generator)
        return token_loss(model(source, shifted(target)), target)

    fit(model, rows(600), loss, steps=600, learning_rate=RATE)
    source, target = pieces(TEST, objective, torch.Generator().manual_seed(1000))
    _, seen = pieces(TRAIN, objective, torch.Generator().manual_seed(1001))
    with torch.no_grad():
        logits = model(source, shifted(target))
    counts = torch.bincount(seen[seen >= 0], minlength=VOCAB_SIZE).double() + 1
    share = counts / counts.sum()
    right = (logits.argmax(-1) == target) | (target == IGNORE_ID)
    result = {
        "loss": token_loss(logits, target).item(),
        "unigram": -share[target[target >= 0]].log().mean().item(),
        "whole": right.all(-1).float().mean().item(),
    }
    if objective == "spans":  # a span of two is told by the rest where neither is free and they are no pair
        start = (source == SENTINELS[0]).int().argmax(-1)
        told = (start >= 3) & (start <= 8)
        result |= {"told": told.float().mean().item(), "whole_told": right[told].all(-1).float().mean().item()}
    return {name: round(value, 4) for name, value in result.items()}


class TwoStreams(nn.Module):
    """XLNet's two streams, two layers deep: content that knows its token, queries that know their place only."""

    def __init__(self, n_layers: int = 2, d_model: int = 32) -> None:
        super().__init__()
        self.token = nn.Embedding(VOCAB_SIZE, d_model)
        self.place = nn.Embedding(N_TOKENS, d_model)
        self.start = nn.Parameter(torch.randn(d_model))
        self.attentions = nn.ModuleList(MultiHeadAttention(d_model, 4) for _ in range(n_layers))
        self.networks = nn.ModuleList(FeedForward(d_model, 4 * d_model, activation="gelu") for _ in range(n_layers))
        self.norms = nn.ModuleList(LayerNorm(d_model) for _ in range(2 * n_layers))
        self.to_logits = nn.Linear(d_model, VOCAB_SIZE)

    def forward(self, token_ids: Tensor, order: Tensor) -> Tensor:
        masks = permutation_masks(order)
        places = self.place.weight[: token_ids.shape[1]]
        content, query = self.token(token_ids) + places, (self.start + places).expand(len(token_ids), -1, -1)
        for i, (attention, network) in enumerate(zip(self.attentions, self.networks, strict=True)):
            near, after = self.norms[2 * i], self.norms[2 * i + 1]
            looked = attention(query, content, mask=masks.query)
            content = near(content + attention(content, mask=masks.content))
            query = near(query + looked)
            content, query = after(content + network(content)), after(query + network(query))
        return self.to_logits(query)


def permuted(seed: int) -> dict:
    torch.manual_seed(seed)
    model, generator = TwoStreams(), torch.Generator().manual_seed(seed)

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        return token_loss(model(batch, factorisation_order(len(batch), N_TOKENS, generator=generator)), batch)

    fit(model, rows(1500), loss, steps=1500, learning_rate=RATE)
    orders = {
        "left to right": torch.arange(N_TOKENS).expand(len(TEST), -1),
        "right to left": torch.arange(N_TOKENS).flip(0).expand(len(TEST), -1),
        "random": factorisation_order(len(TEST), N_TOKENS, generator=torch.Generator().manual_seed(1000)),
    }
    with torch.no_grad():
        return {
            name: round(N_TOKENS * token_loss(model(TEST, order), TEST).item(), 3) for name, order in orders.items()
        }


def area(scores: Tensor, is_positive: Tensor) -> float:
    """The share of pairs of a replaced and an original token in which the replaced one has the higher score."""
    gap = scores[is_positive][:, None] - scores[~is_positive][None]
    return ((gap > 0).double() + 0.5 * (gap == 0)).mean().item()


def replaced(seed: int) -> dict:
    torch.manual_seed(seed)
    chance = torch.Generator().manual_seed(seed)
    small = {**SIZES, "d_model": 16, "d_ff": 64, "n_layers": 1}
    config = {"max_len": N_TOKENS, "dropout": 0.0}
    writer = BERTForMaskedLM(BERT(BERTConfig(**small, **config), pooler=False))
    judge = TransformerForTokenClassification(BERT(BERTConfig(**SIZES, **config), pooler=False), 32, 1, dropout=0.0)
    both = nn.ModuleList([writer, judge])

    def make(batch: Tensor, chance: torch.Generator):
        masked = mask_tokens(
            batch, mask_id=MASK, vocab_size=VOCAB_SIZE, special_ids=SPECIAL, generator=chance, mask_share=1.0,
            random_share=0.0,
        )  # fmt: skip
        logits = writer(masked.inputs)
        chosen = masked.labels != IGNORE_ID
        return masked.labels, chosen, logits, replace_tokens(batch, chosen, logits, generator=chance)

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        labels, _, logits, damaged = make(batch, chance)
        judged = judge(damaged.inputs)[..., 0]
        wrong = functional.binary_cross_entropy_with_logits(judged, damaged.is_replaced.float())
        return token_loss(logits, labels) + 50 * wrong

    fit(both, rows(600), loss, steps=600, learning_rate=RATE)
    with torch.no_grad():
        _, chosen, _, damaged = make(TEST, torch.Generator().manual_seed(1000))
        scores = judge(damaged.inputs)[..., 0]
    told = torch.ones(N_TOKENS, dtype=torch.bool)
    told[FREE] = False
    result = {
        "chosen": chosen.float().mean().item(),
        "replaced": damaged.is_replaced.float().mean().item(),
        "area": area(scores, damaged.is_replaced),
        "area_told": area(scores[:, told], damaged.is_replaced[:, told]),
    }
    return {name: round(value, 4) for name, value in result.items()}


def stories(n: int, seed: int) -> list[list[list[int]]]:
    """Documents of four sentences: one animal, four things, told in order."""
    chance = torch.Generator().manual_seed(seed)

    def draw(words: list[str]) -> str:
        return words[int(torch.randint(len(words), (), generator=chance))]

    animals = [draw(list(CALLS)) for _ in range(n)]
    return [
        [write(draw(ADJECTIVES), animal, draw(list(PLACES)), time) for time in ORDER_OF_STORY] for animal in animals
    ]


def pairs(question: str, seed: int) -> dict:
    torch.manual_seed(seed)
    make = {"follows": next_sentence_pairs, "in order": sentence_order_pairs}

    def examples(question: str, n: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
        generator = torch.Generator().manual_seed(seed)
        made = make[question](stories(n, seed), cls_id=CLS, sep_id=SEP, generator=generator)
        columns = zip(*made, strict=True)
        return tuple(torch.tensor(column) for column in columns)

    bert = BERT(BERTConfig(**SIZES, max_len=26, dropout=0.0))
    model = TransformerForSequenceClassification(bert, 32, 2, dropout=0.0)
    token_ids, segment_ids, label = examples(question, 800, seed)
    picks = [torch.randint(len(label), (BATCH,)) for _ in range(600)]

    def loss(model: nn.Module, pick: Tensor) -> Tensor:
        logits = model(token_ids[pick], segment_ids=segment_ids[pick])
        return functional.cross_entropy(logits, label[pick].long())

    fit(model, picks, loss, steps=600, learning_rate=1e-3)
    result = {}
    for asked in make:
        test_ids, test_segments, test_label = examples(asked, 400, 1000)
        with torch.no_grad():
            answer = model(test_ids, segment_ids=test_segments).argmax(-1)
        result[asked] = round((answer == test_label).float().mean().item(), 3)
    return result


def sharing(is_shared: bool, seed: int) -> dict:
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    bert = BERT(BERTConfig(**{**SIZES, "n_layers": 4}, max_len=N_TOKENS, dropout=0.0), pooler=False)
    if is_shared:
        bert.encoder.layers = repeat_layer(bert.encoder.layers[0], 4)
    model = BERTForMaskedLM(bert)

    def loss(model: nn.Module, batch: Tensor, generator: torch.Generator = generator) -> Tensor:
        masked = mask_tokens(batch, mask_id=MASK, vocab_size=VOCAB_SIZE, special_ids=SPECIAL, generator=generator)
        return token_loss(model(masked.inputs), masked.labels)

    fit(model, rows(600), loss, steps=600, learning_rate=RATE)
    with torch.no_grad():
        last = loss(model, TEST, torch.Generator().manual_seed(1000)).item()
    return {"layers": sum(p.numel() for p in bert.encoder.parameters()), "loss": round(last, 4)}


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    entropy = math.log(6) + math.log(8) + math.log(8) + math.log(4)
    results = {"entropy": round(entropy, 3)}
    runs = {
        "spans": lambda seed: denoising("spans", seed),
        "infilling": lambda seed: denoising("infilling", seed),
        "permutation": permuted,
        "replaced": replaced,
        "trained on follows": lambda seed: pairs("follows", seed),
        "trained on in order": lambda seed: pairs("in order", seed),
        "own layers": lambda seed: sharing(False, seed),
        "one layer shared": lambda seed: sharing(True, seed),
    }
    for name, run in runs.items():
        results[name] = [run(seed) for seed in SEEDS]
        print(name, results[name], flush=True)
    _record.write("variants_objectives", results, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
