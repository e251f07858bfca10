"""What happens beyond the trained length? Eight models, two tasks, three seeds, at 1, 2, 4 and 8 times the length.

A causal stack of two pre-norm layers is trained on 32 tokens and tested on 32, 64, 128 and 256; the figure is the share
of right answers at the last 32 places. *Three back*: name the token three places before. *After the mark*: a mark
stands at one random place, and from the second place after it on, name the token that followed it. Where a scheme has a
table (learned), the table is long enough from the start and only its first 32 rows are trained. Rotary is tested five
times: as trained, with each of the two kinds of `RotaryScaling`, with the second of its four pairs slowed alone, and
with the two slowest alone. About four minutes of one core, in two processes.
"""

import multiprocessing
import time

import torch
from torch import Tensor, nn

from ttutor.decoder import Decoder
from ttutor.embeddings import Embeddings, TokenEmbedding
from ttutor.layers import FeedForward, LayerNorm
from ttutor.positions import (
    AlibiPositions,
    LearnedPositions,
    NoPositions,
    RelativePositions,
    RotaryPositions,
    RotaryScaling,
    SinusoidalPositions,
    rotary_frequencies,
)
from ttutor.recurrence.decay import DecayMixing
from ttutor.training.fit import fit

import _record

SEEDS = [0, 1, 2]
SCHEMES = ["none", "sinusoidal", "learned", "rotary", "alibi", "alibi, 8 heads", "buckets", "decay"]
TRAINED_LEN, TIMES = 32, [1, 2, 4, 8]
N_SYMBOLS, OFFSET = 16, 3
MARK = N_SYMBOLS  # one more token, which is never an answer
D_MODEL, N_HEADS, N_LAYERS, BATCH, STEPS, WARMUP, PEAK = 32, 4, 2, 32, 400, 40, 5e-3


class DecayStack(nn.Module):
    """The same two layers with a decaying recurrence where attention stood."""

    def __init__(self) -> None:
        super().__init__()
        self.mixers = nn.ModuleList(DecayMixing(D_MODEL) for _ in range(N_LAYERS))
        self.transforms = nn.ModuleList(FeedForward(D_MODEL, 4 * D_MODEL) for _ in range(N_LAYERS))
        self.norms = nn.ModuleList(LayerNorm(D_MODEL) for _ in range(2 * N_LAYERS + 1))

    def forward(self, hidden: Tensor) -> Tensor:
        for i, (mixer, transform) in enumerate(zip(self.mixers, self.transforms, strict=True)):
            hidden = hidden + mixer(self.norms[2 * i](hidden))
            hidden = hidden + transform(self.norms[2 * i + 1](hidden))
        return self.norms[-1](hidden)


class Reader(nn.Module):
    """Embed, tell the order by one scheme, two causal layers, name a symbol at every place."""

    def __init__(self, scheme: str) -> None:
        super().__init__()
        longest, n_heads = TRAINED_LEN * max(TIMES), 8 if scheme == "alibi, 8 heads" else N_HEADS
        added = {
            "sinusoidal": lambda: SinusoidalPositions(D_MODEL, longest),
            "learned": lambda: LearnedPositions(D_MODEL, longest),
        }.get(scheme, NoPositions)()
        self.embeddings = Embeddings(TokenEmbedding(N_SYMBOLS + 1, D_MODEL), added)
        self.rotary = RotaryPositions(D_MODEL // N_HEADS) if scheme == "rotary" else None
        self.bias = {
            "alibi": lambda: AlibiPositions(n_heads),
            "alibi, 8 heads": lambda: AlibiPositions(n_heads),
            # T5's largest distance is a quarter of the length it was trained on; so it is here, in the same proportion.
            "buckets": lambda: RelativePositions(n_heads, n_buckets=8, max_distance=8, is_bidirectional=False),
        }.get(scheme, lambda: None)()
        self.stack = (
            DecayStack()
            if scheme == "decay"
            else Decoder(D_MODEL, n_heads, 4 * D_MODEL, N_LAYERS, cross_attention=False, norm="pre")
        )
        self.to_logits = nn.Linear(D_MODEL, N_SYMBOLS, bias=False)

    def forward(self, token_ids: Tensor) -> Tensor:
        hidden = self.embeddings(token_ids)
        places = torch.arange(token_ids.shape[1])[None]
        told = {}
        if self.rotary is not None:
            told["rotation"] = self.rotary(places)
        if self.bias is not None:
            told["bias"] = self.bias(places, places)
        return self.to_logits(self.stack(hidden, **told))


def three_back(n_rows: int, n_tokens: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Symbols, and at each place the one three places before; -100 where there is none."""
    token_ids = torch.randint(N_SYMBOLS, (n_rows, n_tokens), generator=generator)
    target = torch.full_like(token_ids, -100)
    target[:, OFFSET:] = token_ids[:, :-OFFSET]
    return token_ids, target


def after_the_mark(n_rows: int, n_tokens: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Symbols with one mark in the first half, and from two places after it on the symbol that followed it."""
    token_ids = torch.randint(N_SYMBOLS, (n_rows, n_tokens), generator=generator)
    place = torch.randint(n_tokens // 2, (n_rows, 1), generator=generator)
    token_ids.scatter_(1, place, MARK)
    answer = token_ids.gather(1, place + 1)
    after = torch.arange(n_tokens) > place + 1
    return token_ids, torch.where(after, answer, -100)


TASKS = {"three back": three_back, "after the mark": after_the_mark}


def answer_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    token_ids, target = batch
    return nn.functional.cross_entropy(model(token_ids).flatten(0, 1), target.flatten(), ignore_index=-100)


@torch.no_grad()
def accuracies(model: nn.Module, task) -> list[float]:
    """Share of right answers at the last places, at each multiple of the trained length; the test texts are fixed."""
    shares = []
    for times in TIMES:
        token_ids, target = task(128, times * TRAINED_LEN, torch.Generator().manual_seed(1000 + times))
        answers = model(token_ids).argmax(dim=-1)[:, -TRAINED_LEN:]
        target = target[:, -TRAINED_LEN:]
        shares.append(round((answers == target)[target >= 0].double().mean().item(), 4))
    return shares


def train(scheme: str, task, seed: int) -> tuple[Reader, float]:
    torch.manual_seed(seed)
    model = Reader(scheme)
    generator = torch.Generator().manual_seed(seed)
    texts = (task(BATCH, TRAINED_LEN, generator) for _ in range(STEPS))

    def rate(step: int) -> float:
        return PEAK * min(1.0, step / WARMUP) * (1 - step / (STEPS + 1))

    losses = fit(model, texts, answer_loss, steps=STEPS, learning_rate=rate)
    return model, round(sum(losses[-20:]) / 20, 4)


def scaled(model: Reader, task, trained_len: int | None) -> list[float]:
    """The accuracies of a trained rotary model whose pairs are slowed down at each length, by as much as it needs."""
    frequencies, original, shares = rotary_frequencies(D_MODEL // N_HEADS), model.rotary, []
    for place, times in enumerate(TIMES):
        slower = RotaryScaling(factor=float(times), trained_len=trained_len)(frequencies)
        model.rotary = RotaryPositions(D_MODEL // N_HEADS, frequencies=slower)
        shares.append(accuracies(model, task)[place])
    model.rotary = original
    return shares


def scaled_alone(model: Reader, task, pairs: list[int]) -> list[float]:
    """The same with these pairs slowed by the whole factor, and the others as they were trained."""
    original, shares = model.rotary, []
    for place, times in enumerate(TIMES):
        slower = rotary_frequencies(D_MODEL // N_HEADS).clone()
        slower[pairs] /= times
        model.rotary = RotaryPositions(D_MODEL // N_HEADS, frequencies=slower)
        shares.append(accuracies(model, task)[place])
    model.rotary = original
    return shares


def measure(job: tuple[str, str]) -> tuple[list[dict], float]:
    """All seeds of one scheme on one task, and the seconds of processor time it took."""
    torch.set_num_threads(1)
    began, (name, scheme) = time.process_time(), job
    task = TASKS[name]
    models = [train(scheme, task, seed) for seed in SEEDS]
    accuracy = {scheme: [accuracies(model, task) for model, _ in models]}
    if scheme == "rotary":
        accuracy["rotary, all pairs slowed"] = [scaled(model, task, None) for model, _ in models]
        accuracy["rotary, slow pairs slowed"] = [scaled(model, task, TRAINED_LEN) for model, _ in models]
        accuracy["rotary, second pair slowed"] = [scaled_alone(model, task, [1]) for model, _ in models]
        accuracy["rotary, two slowest slowed"] = [scaled_alone(model, task, [2, 3]) for model, _ in models]
    losses = [loss for _, loss in models]
    runs = [
        {"task": name, "scheme": one, "training_loss": losses, "accuracy": shares} for one, shares in accuracy.items()
    ]
    return runs, time.process_time() - began


def main() -> None:
    started = _record.start()
    jobs = [(name, scheme) for name in TASKS for scheme in SCHEMES]
    runs, seconds = [], 0.0
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for more, spent in pool.imap(measure, jobs):
            runs += more
            seconds += spent
            print(*more, f"{seconds:.0f} s of one core", sep="\n", flush=True)
    settings = {
        "n_layers": N_LAYERS,
        "d_model": D_MODEL,
        "n_heads": N_HEADS,
        "steps": STEPS,
        "batch": BATCH,
        "peak": PEAK,
        "trained_len": TRAINED_LEN,
        "times": TIMES,
        "chance": 1 / N_SYMBOLS,
        "core_minutes": round(seconds / 60, 1),
    }
    _record.write("positions_extrapolation", {"settings": settings, "runs": runs}, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
