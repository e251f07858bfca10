"""Do several heads help? One small model that reads an English sentence and writes it in French, with 0 to 8 heads.

A decoder alone: "<bos> the red car | la voiture rouge ." is one sequence, and only the words after the bar are asked
for. Blocks are attention and a feed-forward network, each behind a norm and added to what came in; d_model is 64, and
whatever the number of heads, the parameters are the same. Without any head (0) the attention is left out: what remains
knows a word and its place. One block and two, started in two ways: as our package does, and as torch does. Of each
setting the learning rate is chosen on a seed of its own by validation loss; five seeds are then run at that rate and
tested on combinations of words that training never shows. One head and four are also trained four times as long, three
seeds. Counted are the loss of a French word in nats, and sentences that are wholly right. Some ten minutes on one core.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from ttutor.corpora.corpus import Pair, embedded_corpus
from ttutor.masks import causal_mask
from ttutor.multihead import MultiHeadAttention
from ttutor.training.fit import fit

SEEDS, CHOOSING = [0, 1, 2, 3, 4], 100
D_MODEL, BATCH, STEPS, LONG, WARMUP = 64, 32, 300, 1200, 50
SETTINGS = {(1, "ours"): [0, 1, 2, 4, 8], (1, "torch"): [1, 4], (2, "ours"): [1, 4]}
RATES = [0.003, 0.01, 0.03]


def words_of(pair: Pair) -> list[str]:
    """English, a bar, French, a full stop; an elided article is a word."""
    return ["<bos>", *pair[0].split(), "|", *pair[1].replace("'", "' ").split(), "."]


CORPUS = embedded_corpus(sizes={"train": 20_000, "validation": 500, "test": 1_000})
VOCABULARY = ["<pad>", *sorted({word for pair in CORPUS.train for word in words_of(pair)})]
INDEX = {word: index for index, word in enumerate(VOCABULARY)}


def encode(pairs: list[Pair]) -> Tensor:
    rows = [torch.tensor([INDEX[word] for word in words_of(pair)]) for pair in pairs]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


def wanted(token_ids: Tensor) -> Tensor:
    """The next word where it is French, -100 elsewhere."""
    is_french = (token_ids[:, :-1] == INDEX["|"]).cumsum(dim=1).bool() & (token_ids[:, 1:] != 0)
    return torch.where(is_french, token_ids[:, 1:], -100)


class Block(nn.Module):
    """Attention and a feed-forward network, each behind a norm and added to what came in."""

    def __init__(self, n_heads: int, start: str) -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(D_MODEL), None
        if n_heads:
            self.attention = MultiHeadAttention(D_MODEL, n_heads)
            if start == "torch":
                for part in ("query", "key", "value", "output"):
                    getattr(self.attention, f"to_{part}").reset_parameters()
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(D_MODEL), nn.Linear(D_MODEL, 4 * D_MODEL), nn.ReLU(), nn.Linear(4 * D_MODEL, D_MODEL)
        )

    def forward(self, hidden: Tensor) -> Tensor:
        if self.attention is not None:
            hidden = hidden + self.attention(self.norm(hidden), mask=causal_mask(hidden.shape[1]))
        return hidden + self.feed_forward(hidden)


class SmallTranslator(nn.Module):
    """Words and places, blocks, and a number for each word of the vocabulary."""

    def __init__(self, n_heads: int, n_blocks: int, start: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(VOCABULARY), D_MODEL)
        self.positions = nn.Parameter(torch.randn(32, D_MODEL))
        if start == "ours":
            nn.init.normal_(self.embedding.weight, std=0.1)
            nn.init.normal_(self.positions, std=0.1)
        self.blocks = nn.Sequential(*(Block(n_heads, start) for _ in range(n_blocks)))
        self.to_logits = nn.Sequential(nn.LayerNorm(D_MODEL), nn.Linear(D_MODEL, len(VOCABULARY)))

    def forward(self, token_ids: Tensor) -> Tensor:
        return self.to_logits(self.blocks(self.embedding(token_ids) + self.positions[: token_ids.shape[1]]))


def word_loss(model: nn.Module, token_ids: Tensor) -> Tensor:
    """Mean cross-entropy of a French word, in nats."""
    token_ids = token_ids[:, : int((token_ids != 0).sum(dim=1).max())]
    logits, targets = model(token_ids[:, :-1]), wanted(token_ids)
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)


def run(n_heads: int, n_blocks: int, start: str, peak: float, seed: int, steps: int = STEPS) -> dict:
    """Train one model; validation loss, test loss, and the share of test sentences that are wholly right."""
    torch.manual_seed(seed)
    model, training = SmallTranslator(n_heads, n_blocks, start), encode(CORPUS.train)
    batches = (training[torch.randint(len(training), (BATCH,))] for _ in range(steps))

    def rate(step: int) -> float:
        return peak * min(1.0, step / WARMUP) * (1 - step / (steps + 1))

    fit(model, batches, word_loss, steps=steps, learning_rate=rate)
    validation, test = encode(CORPUS.validation), encode(CORPUS.test)
    with torch.no_grad():
        targets = wanted(test)
        is_right = (model(test[:, :-1]).argmax(dim=-1) == targets) | (targets == -100)
        return {
            "validation_loss": round(word_loss(model, validation).item(), 3),
            "test_loss": round(word_loss(model, test).item(), 3),
            "sentences_right": round(is_right.all(dim=1).double().mean().item(), 3),
            "n_parameters": sum(parameter.numel() for parameter in model.parameters()),
        }


def setting(n_blocks: int, start: str, n_heads: int) -> dict:
    """One setting: what each rate gave on the seed that chooses, the rate that was chosen, and the runs."""
    tried = {peak: run(n_heads, n_blocks, start, peak, CHOOSING)["validation_loss"] for peak in RATES}
    chosen = min(tried, key=tried.get)
    row = {"n_blocks": n_blocks, "start": start, "n_heads": n_heads, "rate": chosen}
    row |= {"tried": {str(peak): loss for peak, loss in tried.items()}}
    row["runs"] = [run(n_heads, n_blocks, start, chosen, seed) for seed in SEEDS]
    if (n_blocks, start) == (1, "ours") and n_heads in (1, 4):
        row["longer"] = [run(n_heads, n_blocks, start, chosen, seed, LONG) for seed in SEEDS[:3]]
    print(n_blocks, start, n_heads, tried, [one["sentences_right"] for one in row["runs"]], flush=True)
    return row


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    rows = [setting(*one, n_heads) for one, heads in SETTINGS.items() for n_heads in heads]
    results = {"steps": STEPS, "longer": LONG, "rows": rows}
    _record.write("multihead_translator", results, seeds=SEEDS, started=started, embedded_corpus=True)


if __name__ == "__main__":
    main()
