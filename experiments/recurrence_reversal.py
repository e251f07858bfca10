"""One vector or a look back? GRUs that write rows of words backwards, trained until they stop improving.

The source is a row of random words and the end mark, the target the same words in reverse. Encoder-decoders whose
encoder reads from both ends learn it from rows of 2 to 8 words. Without attention the decoder begins in the encoder's
last state and gets nothing else (Sutskever et al. 2014), at widths of 64, 128 and 256; with it the decoder looks
back at every hidden vector of the encoder before every word (Bahdanau et al. 2015), at a width of 64.

Every model is trained until it stops improving: every 200 steps its loss on fresh rows is measured; after three such
measurements without a gain of one per cent the learning rate is halved, and after four halvings training ends. It ends
sooner when that loss is below 0.02, and in any case after 16,000 steps, which is then said (``"ended"``). The first
rate is the one of three with the lowest loss after 1,000 steps on a seed that is used for nothing else.

Counted is the share of words that are right in their place, in freshly drawn rows written greedily, word after word:
for eight words after every 200 steps, and at the end by length, also beyond the lengths of training. Stored besides:
where the decoder looked while it wrote one row. A stored run is not made again. About an hour, one core.
"""

import torch
from einops import rearrange
from torch import Tensor, nn

from experiments import _record
from ttutor import assets
from ttutor.recurrence import AdditiveAttention

NAME, SEEDS, CHOOSING = "recurrence_reversal", [0, 1, 2, 3, 4], 100
KINDS = [("look back", 64), ("one vector", 64), ("one vector", 128), ("one vector", 256)]
SEEDS_OF = {64: SEEDS, 128: SEEDS[:3], 256: SEEDS[:3]}
RATES = [1e-3, 3e-3, 1e-2]
N_WORDS, BATCH, LONGEST, LENGTHS = 20, 32, 8, [2, 4, 6, 8, 10, 12]
EVERY, PATIENCE, HALVINGS, SOLVED, MOST_STEPS, TRIED_STEPS = 200, 3, 4, 0.02, 16_000, 1_000
BOS, EOS, FIRST_WORD, N_TEST = 2, 3, 4, 300

Rows = tuple[Tensor, Tensor, Tensor]


class OneVector(nn.Module):
    """PyTorch's GRUs, in one call each: all that the decoder learns of the row is the encoder's last state."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.source_embedding = nn.Embedding(FIRST_WORD + N_WORDS, d_model)
        self.target_embedding = nn.Embedding(FIRST_WORD + N_WORDS, d_model)
        self.encoder = nn.GRU(d_model, d_model // 2, bidirectional=True, batch_first=True)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.to_logits = nn.Linear(d_model, FIRST_WORD + N_WORDS)

    def read(self, source: Tensor) -> Tensor:
        """The last state of both directions, side by side."""
        _, ends = self.encoder(self.source_embedding(source))
        return rearrange(ends, "directions batch half -> 1 batch (directions half)")

    def forward(self, source: Tensor, target_in: Tensor) -> Tensor:
        """The logits of the next word at every place of the target."""
        return self.to_logits(self.decoder(self.target_embedding(target_in), self.read(source))[0])

    def greedy(self, source: Tensor, n_words: int) -> Tensor:
        """The most probable word at every step."""
        state, last, written = self.read(source), torch.full((len(source), 1), BOS), []
        for _ in range(n_words):
            hidden, state = self.decoder(self.target_embedding(last), state)
            last = self.to_logits(hidden).argmax(dim=-1)
            written.append(last)
        return torch.cat(written, dim=1)


class LookBack(OneVector):
    """The same encoder; before every word the decoder looks back at all its pages."""

    def __init__(self, d_model: int) -> None:
        super().__init__(d_model)
        self.attention = AdditiveAttention(d_model, d_model, d_model)
        self.decoder = nn.GRUCell(2 * d_model, d_model)

    def steps(self, source: Tensor, target_in: Tensor | None, n_words: int) -> tuple[Tensor, Tensor]:
        """Logits and attention weights of each step, reading the target or, without one, its own words."""
        memory, ends = self.encoder(self.source_embedding(source))
        state, k = rearrange(ends, "directions batch half -> batch (directions half)"), self.attention.to_key(memory)
        last, logits, looked = torch.full((len(source),), BOS), [], []
        for place in range(n_words):
            last = last if target_in is None else target_in[:, place]
            weights = self.attention.weights(rearrange(state, "batch d_model -> batch 1 d_model"), memory, k=k)
            context = (weights @ memory)[:, 0]
            state = self.decoder(torch.cat([self.target_embedding(last), context], dim=-1), state)
            logits.append(self.to_logits(state))
            looked.append(weights[:, 0])
            last = logits[-1].argmax(dim=-1)
        return torch.stack(logits, dim=1), torch.stack(looked, dim=1)

    def forward(self, source: Tensor, target_in: Tensor) -> Tensor:
        """The logits of the next word at every place of the target."""
        return self.steps(source, target_in, target_in.shape[1])[0]

    def greedy(self, source: Tensor, n_words: int) -> Tensor:
        """The most probable word at every step."""
        return self.steps(source, None, n_words)[0].argmax(dim=-1)


def rows(n_rows: int, n_words: int, generator: torch.Generator) -> Rows:
    """Source, what the decoder reads, and what it has to write."""
    words = torch.randint(FIRST_WORD, FIRST_WORD + N_WORDS, (n_rows, n_words), generator=generator)
    start, end = torch.full((n_rows, 1), BOS), torch.full((n_rows, 1), EOS)
    backwards = words.flip(1)
    return torch.cat([words, end], 1), torch.cat([start, backwards], 1), torch.cat([backwards, end], 1)


def loss_of(model: nn.Module, batch: Rows) -> Tensor:
    """Mean cross-entropy of each word that is to be written, the end mark included."""
    source, target_in, target_out = batch
    return nn.functional.cross_entropy(model(source, target_in).flatten(0, 1), target_out.flatten())


@torch.no_grad()
def validation_loss(model: nn.Module) -> float:
    """Mean loss on fresh rows of lengths of training."""
    generator = torch.Generator().manual_seed(2_000)
    return torch.stack([loss_of(model, rows(N_TEST, n, generator)) for n in (2, 4, 6, 8)]).mean().item()


@torch.no_grad()
def right(model: nn.Module, n_words: int) -> list[float]:
    """The share of right words at each place of the source, first word first, in rows written greedily."""
    source, _, wanted = rows(N_TEST, n_words, torch.Generator().manual_seed(1_000 + n_words))
    places = (model.greedy(source, n_words) == wanted[:, :n_words]).float().mean(dim=0).flip(0)
    return [round(share, 3) for share in places.tolist()]


def build(kind: str, width: int, seed: int) -> nn.Module:
    """A fresh model."""
    torch.manual_seed(seed)
    return (OneVector if kind == "one vector" else LookBack)(width)


def train(model: nn.Module, seed: int, rate: float, most_steps: int = MOST_STEPS, patience: int = PATIENCE) -> dict:
    """Train until it stops improving; give how it went."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    best, waited, step, curve, lowest = float("inf"), 0, 0, [], rate / 2**HALVINGS
    while step < most_steps and best >= SOLVED and optimizer.param_groups[0]["lr"] > lowest:
        for _ in range(EVERY):
            n_words = int(torch.randint(2, LONGEST + 1, (1,), generator=generator))
            value = loss_of(model, rows(BATCH, n_words, generator))
            optimizer.zero_grad()
            value.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        step += EVERY
        loss, places = validation_loss(model), right(model, LONGEST)
        curve.append([step, round(loss, 3), round(sum(places) / LONGEST, 3)])
        best, waited = (loss, 0) if loss < 0.99 * best else (best, waited + 1)
        if waited == patience:
            waited = 0
            optimizer.param_groups[0]["lr"] /= 2
    ended = "solved" if best < SOLVED else "still moving" if step >= most_steps else "stopped improving"
    return {"ended": ended, "steps": step, "loss": round(best, 4), "curve": curve}


def run_of(kind: str, width: int, seed: int, rate: float) -> dict:
    """Train one model and let it write."""
    model = build(kind, width, seed)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    run = {"kind": kind, "width": width, "seed": seed, "rate": rate, "parameters": parameters}
    run |= train(model, seed, rate, TRIED_STEPS if seed == CHOOSING else MOST_STEPS)
    places = {n_words: right(model, n_words) for n_words in LENGTHS}
    run["right"] = {str(n_words): round(sum(shares) / n_words, 3) for n_words, shares in places.items()}
    run["right_by_place"] = places[LONGEST]
    if kind == "look back":
        source, target_in, _ = rows(1, LONGEST, torch.Generator().manual_seed(7))
        with torch.no_grad():
            looked = model.steps(source, target_in, LONGEST)[1][0]
        run["looked"] = [[round(weight, 2) for weight in row] for row in looked.tolist()]
    print({key: value for key, value in run.items() if key not in ("curve", "looked")}, flush=True)
    return run


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    settings = {
        "n_words": N_WORDS, "batch": BATCH, "longest": LONGEST, "rates": RATES, "n_test": N_TEST, "every": EVERY,
        "patience": PATIENCE, "halvings": HALVINGS, "solved": SOLVED, "most_steps": MOST_STEPS, "tried": TRIED_STEPS,
    }  # fmt: skip
    before = assets.load(NAME) if NAME in assets.names() else {}
    known = before["runs"] if before.get("settings") == settings else []
    started -= 60 * before["provenance"]["minutes"] if known else 0
    runs: list[dict] = []

    def once(kind: str, width: int, seed: int, rate: float) -> dict:
        wanted = {"kind": kind, "width": width, "seed": seed, "rate": rate}
        run = next((run for run in known if wanted.items() <= run.items()), None) or run_of(**wanted)
        runs.append(run)
        if run not in known:
            later = [run for run in known if run not in runs]
            _record.write(NAME, {"settings": settings, "runs": [*runs, *later]}, seeds=SEEDS, started=started)
        return run

    for kind, width in KINDS:
        best = min((once(kind, width, CHOOSING, rate) for rate in RATES), key=lambda run: run["loss"])
        for seed in SEEDS_OF[width]:
            once(kind, width, seed, best["rate"])
    _record.write(NAME, {"settings": settings, "runs": runs}, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
