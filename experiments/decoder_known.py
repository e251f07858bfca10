"""What a small decoder learns from a language of which every probability is known, with and without a leak.

The decoder of chapter 6 reads 6,400 sentences. Trained are, from five seeds, and from another start of three, one whose
mask is causal and one whose mask reaches one place too far; then, to attack what the page says, other rates, four times
the steps, and a model that is larger. Stored are the loss on 500 new sentences and on those of them that stood in no
batch, and the share of grammatical texts: exact for the causal models, of 1,000 drawn texts for the others, since
these say something else when they cannot see the next word. The attacks have one seed each.

For each causal model the probability of every sentence of the language is computed, at 13 temperatures and under
filters of nine settings: the share of grammatical texts, the distance from the language, and the part of the language
that can no longer be written. Six minutes, one core.
"""

import math

import torch
from einops import einsum, rearrange
from torch import nn

from experiments import _record
from ttutor.corpora.known_language import BOS, PAD, KnownLanguage
from ttutor.generation import top_k_only, top_p_only, with_temperature

SEEDS = [0, 1, 2, 3, 4]
STARTS = {"PyTorch's": None, "GPT-2's": 0.02}
RATES = [0.007, 0.06]
LARGER = {"four times the steps": {"steps": 800}, "twice as wide, two layers": {"d_model": 64, "n_layers": 2}}
TEMPERATURES = [0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.5, 2.0]
SHARES = [0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999]
COUNTS = [5]
N_NEW, N_WRITTEN = 500, 1000
SPLIT = "batch tokens (heads d_head) -> batch heads tokens d_head"
MERGE = "batch heads tokens d_head -> batch tokens (heads d_head)"

language = KnownLanguage()


def attention(query, key, value, mask):
    axes = "... queries d_head, ... keys d_head -> ... queries keys"
    scores = einsum(query, key, axes) / math.sqrt(query.shape[-1])
    weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)  # hidden: 0
    return weights @ value


class Layer(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(2))
        names = ("query", "key", "value", "output")
        self.maps = nn.ModuleDict({name: nn.Linear(d_model, d_model) for name in names})
        self.widen = nn.Linear(d_model, 4 * d_model)
        self.narrow = nn.Linear(4 * d_model, d_model)

    def split(self, name, y):
        return rearrange(self.maps[name](y), SPLIT, heads=self.n_heads)

    def forward(self, x, mask):
        y = self.norms[0](x)
        query, key, value = (self.split(name, y) for name in ("query", "key", "value"))
        blend = attention(query, key, value, mask)
        x = x + self.maps["output"](rearrange(blend, MERGE))
        inner = nn.functional.gelu(self.widen(self.norms[1](x)))
        return x + self.narrow(inner)


class Writer(nn.Module):
    make_layer = Layer

    def __init__(self, vocab_size, n_places, d_model=32, n_layers=1, ahead=0):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(n_places, d_model)
        layers = (self.make_layer(d_model, n_heads=4) for _ in range(n_layers))
        self.layers = nn.ModuleList(layers)
        self.last_norm = nn.LayerNorm(d_model)
        self.to_logits = nn.Linear(d_model, vocab_size, bias=False)
        self.ahead = ahead
        for table in (self.words, self.places):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, token_ids, n_before=0):
        place = torch.arange(n_before, n_before + token_ids.shape[1])
        key_place = torch.arange(n_before + token_ids.shape[1])
        mask = key_place <= place[:, None] + self.ahead  # True: may look
        x = self.words(token_ids) + self.places(place)
        for layer in self.layers:
            x = layer(x, mask)
        return self.to_logits(self.last_norm(x))


def loss_of(model, texts):
    logits, targets = model(texts[:, :-1]), texts[:, 1:]  # read, predict
    log_p = logits.log_softmax(dim=-1)  # texts places words
    charge = -log_p.gather(-1, targets[..., None])[..., 0]  # -ln p of the target
    return charge[targets != PAD].mean()


def train(model, seed, steps=200, peak=0.02):
    generator = torch.Generator().manual_seed(100 + seed)
    optimizer = torch.optim.Adam(model.parameters())
    losses = []
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:  # the rate: quickly up, slowly down
            group["lr"] = peak * min(1, step / 30) * (1 - step / (steps + 1))
        loss = loss_of(model, language.draw(32, generator))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def trained(
    seed: int,
    *,
    ahead: int = 0,
    std: float | None = None,
    steps: int = 200,
    peak: float = 0.02,
    d_model: int = 32,
    n_layers: int = 1,
) -> Writer:
    """A model of one seed; with ``std`` all matrices start normal with this standard deviation, as in GPT-2."""
    torch.manual_seed(seed)
    model = Writer(len(language.vocabulary), n_places=12, d_model=d_model, n_layers=n_layers, ahead=ahead)
    if std is not None:
        for weight in model.parameters():
            if weight.ndim == 2:
                nn.init.normal_(weight, std=std)
    train(model, seed, steps=steps, peak=peak)
    return model


def seen_by(steps: int) -> set[tuple[int, ...]]:
    """Every sentence that a batch of any seed has held."""
    seen = set()
    for seed in SEEDS:
        generator = torch.Generator().manual_seed(100 + seed)
        for _ in range(steps):
            seen |= {tuple(text) for text in language.draw(32, generator).tolist()}
    return seen


@torch.no_grad()
def grammatical_when_drawn(model: Writer, seed: int = 5) -> float:
    """The share of right texts among those that a model writes, word after word."""
    generator = torch.Generator().manual_seed(seed)
    texts = torch.full((N_WRITTEN, 1), BOS)
    while texts.shape[1] < 10:
        chances = model(texts)[:, -1].softmax(dim=-1)
        texts = torch.cat([texts, torch.multinomial(chances, 1, generator=generator)], dim=1)
    return sum(language.read(text) in language.probability for text in texts) / N_WRITTEN


@torch.no_grad()
def at_all_places(model: Writer) -> torch.Tensor:
    """The log probabilities of all words at every place of every sentence."""
    return torch.cat([model(part[:, :-1]).log_softmax(dim=-1) for part in language.texts.split(500)])


def judge(log_p: torch.Tensor) -> list[float]:
    """The share of grammatical texts, the distance from the language, and the share of it that is lost."""
    true, ours = language.shares, language.log_probabilities(log_p).exp()
    right = ours.sum()
    distance = ((ours - true).abs().sum() + 1 - right) / 2
    return [round(value.item(), 4) for value in (right, distance, true[ours == 0].sum())]


def greedy(table: torch.Tensor) -> torch.Tensor:
    """The likeliest word alone."""
    return torch.full_like(table, -torch.inf).scatter(-1, table.argmax(dim=-1, keepdim=True), 0.0)


def choices(table: torch.Tensor) -> dict[str, list]:
    """A model under every temperature and every filter."""
    filters = {"greedy": greedy(table)}
    filters |= {f"top-k {k}": top_k_only(table, k) for k in COUNTS}
    filters |= {f"top-p {p}": top_p_only(table, p) for p in SHARES}
    return {
        "temperatures": [judge(with_temperature(table, tau)) for tau in TEMPERATURES],
        **{name: judge(changed) for name, changed in filters.items()},
    }


def lost_after_the(model: Writer) -> list[str]:
    """The right words that top-p .9 can no longer write after "the"."""
    with torch.no_grad():
        kept = top_p_only(model(language.beginning("the"))[0, -1].log_softmax(dim=-1), 0.9).isfinite()
    return sorted(word for word in language.next_words("the") if not kept[language.vocabulary.index(word)])


def main() -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    started = _record.start()
    new = language.draw(N_NEW, torch.Generator().manual_seed(9))
    seen = seen_by(200)
    unseen = new[torch.tensor([tuple(text) not in seen for text in new.tolist()])]

    def measured(model: Writer) -> dict:
        with torch.no_grad():
            loss = [round(loss_of(model, texts).item(), 4) for texts in (new, unseen)]
        exact = None if model.ahead else judge(at_all_places(model))[:2]
        return {"loss": loss, "drawn": grammatical_when_drawn(model), "exact": exact}

    models = {
        (start, ahead): [trained(seed, ahead=ahead, std=std) for seed in (SEEDS if std is None else SEEDS[:3])]
        for start, std in STARTS.items()
        for ahead in (0, 1)
    }
    runs = {
        f"ahead {ahead}, {start} start": [measured(model) for model in group]
        for (start, ahead), group in models.items()
    }
    print(runs, flush=True)
    for ahead in (0, 1):
        for name, change in LARGER.items():
            runs[f"ahead {ahead}, {name}"] = [measured(trained(seed, ahead=ahead, **change)) for seed in SEEDS[:1]]
    rates = {
        rate: [[measured(trained(seed, ahead=ahead, peak=rate))["loss"][0] for seed in SEEDS[:1]] for ahead in (0, 1)]
        for rate in RATES
    }
    chosen = {"page's models": [choices(at_all_places(model)) for model in models["PyTorch's", 0]]}
    attackers = {"GPT-2's start": {"std": 0.02}, "four times the steps": {"steps": 800}}
    for name, change in attackers.items():
        chosen[name] = [choices(at_all_places(trained(seed, **change))) for seed in SEEDS[:1]]
    _record.write(
        "decoder_known",
        {
            "true_loss": [round(language.true_loss(texts), 4) for texts in (new, unseen)],
            "n_unseen": len(unseen),
            "n_written": N_WRITTEN,
            "runs": runs,
            "rates": {str(rate): losses for rate, losses in rates.items()},
            "temperatures": TEMPERATURES,
            "choices": chosen,
            "lost after the": [lost_after_the(model) for model in models["PyTorch's", 0]],
            "attacks": attacks(runs, chosen),
        },
        seeds=SEEDS,
        started=started,
    )


def attacks(runs: dict, chosen: dict) -> list[str]:
    """What was tried to refute the page's sentences, one line each."""
    lines = []
    for name, group in runs.items():
        loss, drawn = [run["loss"][1] for run in group], [run["drawn"] for run in group]
        lines.append(
            f"{name}: loss on unseen sentences {min(loss):.3f} to {max(loss):.3f}, grammatical "
            f"{min(drawn):.3f} to {max(drawn):.3f}, {len(group)} seeds"
        )
    for name, group in chosen.items():
        nearest = [
            TEMPERATURES[min(range(len(TEMPERATURES)), key=lambda at: one["temperatures"][at][1])] for one in group
        ]
        mild = [min(SHARES, key=lambda p: one[f"top-p {p}"][1]) for one in group]
        plain = [one["temperatures"][TEMPERATURES.index(1.0)][1] for one in group]
        best = [min(one[f"top-p {p}"][1] for p in SHARES) for one in group]
        lines.append(f"{name}: nearest temperatures {nearest}; nearest p {mild}, at {best} against {plain} uncut")
        right = torch.tensor([[grammatical for grammatical, *_ in one["temperatures"]] for one in group])
        falls = int((right.diff(dim=1) < 0).all(dim=1).sum())
        lines.append(f"{name}: the grammatical share falls at every step of temperature in {falls} of {len(group)}")
    return lines


if __name__ == "__main__":
    main()
