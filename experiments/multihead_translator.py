"""Do several heads help a translator? One small model that reads English and writes French, with 1 to 8 heads.

A decoder alone: "<bos> the red car | la voiture rouge ." is one sequence, and only the words after the bar are asked
for. `SmallTranslator` stands here as it stands on the chapter's deeper page; a test holds that. Any number of heads has
as many parameters. The models start in two ways: as the page's does, with Xavier's rule in attention, and with torch's
rule there. Of each setting the learning rate, each 1.5 times the one before, is chosen on a seed of its own by
validation loss; five seeds are then run at that rate and tested on combinations of words that training never shows. One
head and four are also trained twice as long, three seeds.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from ttutor.corpora.corpus import Pair, embedded_corpus
from ttutor.masks import causal_mask
from ttutor.multihead import MultiHeadAttention

SEEDS, CHOOSING = [0, 1, 2, 3, 4], 100
BATCH, STEPS, LONG = 32, 300, 600
SETTINGS = {"Xavier": [1, 4, 8], "torch": [1, 4]}
RATES = [0.006, 0.009, 0.0135, 0.02, 0.03]


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


class SmallTranslator(nn.Module):
    def __init__(self, n_words, n_heads, d_model=64):
        super().__init__()
        self.embedding = nn.Embedding(n_words, d_model)
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.places = nn.Parameter(0.1 * torch.randn(32, d_model))
        self.norm = nn.LayerNorm(d_model)
        self.attention = MultiHeadAttention(d_model, n_heads, bias=False)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(d_model),
            nn.Linear(d_model, 4 * d_model),
            nn.ReLU(),
            nn.Linear(4 * d_model, d_model),
        )
        self.to_logits = nn.Linear(d_model, n_words)

    def forward(self, token_ids):
        hidden = self.embedding(token_ids) + self.places[: token_ids.shape[1]]
        mask = causal_mask(token_ids.shape[1])
        hidden = hidden + self.attention(self.norm(hidden), mask=mask)
        return self.to_logits(hidden + self.feed_forward(hidden))


def word_loss(model: nn.Module, token_ids: Tensor) -> Tensor:
    """Mean cross-entropy of a French word, in nats."""
    token_ids = token_ids[:, : int((token_ids != 0).sum(dim=1).max())]
    return functional.cross_entropy(model(token_ids[:, :-1]).mT, wanted(token_ids))


def run(n_heads: int, start: str, peak: float, seed: int, steps: int = STEPS) -> dict:
    """Train one model; validation loss, test loss, and the share of test sentences that are wholly right."""
    torch.manual_seed(seed)
    model, training = SmallTranslator(len(VOCABULARY), n_heads), encode(CORPUS.train)
    if start == "torch":
        for part in ("query", "key", "value", "output"):
            getattr(model.attention, f"to_{part}").reset_parameters()
    optimiser = torch.optim.Adam(model.parameters(), lr=peak)
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = peak * min(step / 40, 1) * (1 - step / steps)
        loss = word_loss(model, training[torch.randint(len(training), (BATCH,))])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
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


def setting(start: str, n_heads: int) -> dict:
    """One setting: what each rate gave on the seed that chooses, the rate that was chosen, and the runs."""
    tried = {peak: run(n_heads, start, peak, CHOOSING)["validation_loss"] for peak in RATES}
    chosen = min(tried, key=tried.get)
    row = {"start": start, "n_heads": n_heads, "rate": chosen}
    row |= {"tried": {str(peak): loss for peak, loss in tried.items()}}
    row["runs"] = [run(n_heads, start, chosen, seed) for seed in SEEDS]
    if start == "Xavier" and n_heads in (1, 4):
        row["longer"] = [run(n_heads, start, chosen, seed, LONG) for seed in SEEDS[:3]]
    print(start, n_heads, tried, [one["sentences_right"] for one in row["runs"]], flush=True)
    return row


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    rows = [setting(start, n_heads) for start, heads in SETTINGS.items() for n_heads in heads]
    results = {"steps": STEPS, "longer": LONG, "rows": rows}
    _record.write("multihead_translator", results, seeds=SEEDS, started=started, embedded_corpus=True)


if __name__ == "__main__":
    main()
