"""What the experiments on positions share: two tasks, a small causal reader for every scheme, training and testing.

*Three back*: name the symbol three places before. *After the mark*: a mark stands at a random place, and from the
second place after it on, the symbol that followed it is to be named. Texts are 32 tokens long in training, with the
mark among the first 16. In longer texts the mark is *far*, among the first 16 places of the whole text, or *near*,
among the first 16 of the last 32: then every distance is one of training, and only the places are new. Right answers
are counted at the last 32 places. There are 16 symbols, so guessing is right once in 16.

Words and places are about equally loud from the start: a word has norm √32 = 5.7, a wave or a row of the learned table
norm 4.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from ttutor.decoder import Decoder, DecoderLayer
from ttutor.efficient import efficient_attention
from ttutor.embeddings import Embeddings, TokenEmbedding
from ttutor.positions import (
    AlibiPositions,
    LearnedPositions,
    NoPositions,
    RotaryPositions,
    SinusoidalPositions,
    rotary_frequencies,
)
from ttutor.training.fit import fit

SEEDS = [0, 1, 2, 3, 4]
TRAINED_LEN, TIMES, N_TEXTS = 32, [1, 2, 4, 8, 16, 64], [128, 128, 128, 128, 64, 64]
N_SYMBOLS, OFFSET = 16, 3
MARK = N_SYMBOLS  # one more token, which is never an answer
D_MODEL, N_LAYERS, BATCH, STEPS, WARMUP, PEAK = 32, 2, 32, 400, 40, 5e-3
Task = Callable[[int, int, torch.Generator], tuple[Tensor, Tensor]]


def three_back(n_rows: int, n_tokens: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Symbols, and at each place the one three places before; -100 where there is none."""
    token_ids = torch.randint(N_SYMBOLS, (n_rows, n_tokens), generator=generator)
    target = torch.full_like(token_ids, -100)
    target[:, OFFSET:] = token_ids[:, :-OFFSET]
    return token_ids, target


def after_the_mark(n_rows: int, n_tokens: int, generator: torch.Generator, near: bool = False) -> tuple[Tensor, Tensor]:
    """Symbols with one mark, and from two places after it on the symbol that followed it."""
    token_ids = torch.randint(N_SYMBOLS, (n_rows, n_tokens), generator=generator)
    first = n_tokens - TRAINED_LEN if near else 0
    place = first + torch.randint(TRAINED_LEN // 2, (n_rows, 1), generator=generator)
    token_ids.scatter_(1, place, MARK)
    answer, after = token_ids.gather(1, place + 1), torch.arange(n_tokens) > place + 1
    return token_ids, torch.where(after, answer, -100)


TASKS: dict[str, dict[str, Task]] = {
    "three back": {"three back": three_back},
    "after the mark": {"after the mark": after_the_mark, "after a near mark": partial(after_the_mark, near=True)},
}
"""Each task, and what it is tested by."""


class Reader(nn.Module):
    """Embed, tell the order by one scheme, two causal layers, name a symbol at every place.

    Args:
        scheme: none, sinusoidal, learned, rotary or alibi.
        frequencies: of rotary positions, where they are not the usual ones.
        pytorch: whether all maps start as `nn.Linear` does, instead of by Xavier's rule.
        loudness: the standard deviation of the learned table's entries at the start.
    """

    def __init__(
        self, scheme: str, *, frequencies: Tensor | None = None, pytorch: bool = False, loudness: float = 0.5**0.5
    ) -> None:
        super().__init__()
        longest, n_heads = TRAINED_LEN * max(TIMES), 8 if scheme == "alibi" else 4
        self.d_head = D_MODEL // n_heads
        added: nn.Module = NoPositions()
        if scheme == "sinusoidal":
            added = SinusoidalPositions(D_MODEL, longest)
        if scheme == "learned":
            added = LearnedPositions(D_MODEL, longest)
            nn.init.normal_(added.table.weight, std=loudness)
        self.embeddings = Embeddings(TokenEmbedding(N_SYMBOLS + 1, D_MODEL), added)
        self.rotary: nn.Module | None = None
        self.bias: nn.Module | None = None
        if scheme == "alibi":
            self.bias = AlibiPositions(n_heads)
        make_layer = partial(DecoderLayer, attend=efficient_attention)
        self.stack = Decoder(
            D_MODEL, n_heads, 4 * D_MODEL, N_LAYERS, cross_attention=False, norm="pre", make_layer=make_layer
        )
        self.to_logits = nn.Linear(D_MODEL, N_SYMBOLS, bias=False)
        if scheme == "rotary":
            self.turn(rotary_frequencies(self.d_head) if frequencies is None else frequencies)
        if pytorch:
            for part in self.modules():
                if isinstance(part, nn.Linear):
                    part.reset_parameters()

    def turn(self, frequencies: Tensor, scale: float | None = None) -> None:
        """Turn queries and keys by these frequencies from now on, and multiply scores by this factor."""
        self.rotary = RotaryPositions(self.d_head, layout="interleaved", frequencies=frequencies)
        for layer in self.stack.layers:
            layer.self_attention.scale = scale

    def forward(self, token_ids: Tensor) -> Tensor:
        places, told = torch.arange(token_ids.shape[1])[None], {}
        if self.rotary is not None:
            told["rotation"] = self.rotary(places)
        if self.bias is not None:
            told["bias"] = self.bias(places, places)
        return self.to_logits(self.stack(self.embeddings(token_ids), **told))


def answer_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    token_ids, target = batch
    return nn.functional.cross_entropy(model(token_ids).flatten(0, 1), target.flatten(), ignore_index=-100)


def train(
    scheme: str, task: str, seed: int, *, steps: int = STEPS, peak: float = PEAK, **choices
) -> tuple[Reader, float]:
    """A trained reader, and its mean loss over the last twenty steps."""
    torch.manual_seed(seed)
    model = Reader(scheme, **choices)
    generator = torch.Generator().manual_seed(seed)
    texts = (TASKS[task][task](BATCH, TRAINED_LEN, generator) for _ in range(steps))

    def rate(step: int) -> float:
        return peak * min(1.0, step / WARMUP) * (1 - step / (steps + 1))

    losses = fit(model, texts, answer_loss, steps=steps, learning_rate=rate)
    return model, round(sum(losses[-20:]) / 20, 4)


@torch.no_grad()
def accuracy(model: Reader, test: Task, times: int) -> float:
    """Share of right answers at the last places of texts so many times as long; the test texts are fixed."""
    n_texts = N_TEXTS[TIMES.index(times)]
    token_ids, target = test(n_texts, times * TRAINED_LEN, torch.Generator().manual_seed(1000 + times))
    rows = max(1, 4096 // token_ids.shape[1])  # at a time
    answers = torch.cat([model(some)[:, -TRAINED_LEN:].argmax(dim=-1) for some in token_ids.split(rows)])
    target = target[:, -TRAINED_LEN:]
    return round((answers == target)[target >= 0].double().mean().item(), 4)


def accuracies(model: Reader, task: str, times: list[int] = TIMES) -> dict[str, list[float]]:
    """By each test of a task, at each length."""
    return {name: [accuracy(model, test, n) for n in times] for name, test in TASKS[task].items()}
