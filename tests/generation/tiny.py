"""Small models with opinions, and what they say of a sequence when asked without a cache."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import cache

import torch

from ttutor.generation import length_penalty
from ttutor.transformer import Transformer, TransformerConfig
from ttutor.variants.gpt import GPT, GPTConfig

VOCAB = 11
EOS = 3
PAD = 0
PROMPTS = [[5, 6, 7, 8, 9], [4, 3, 5], [10], [7, 7, 2, 7]]


def opinionated(model: torch.nn.Module) -> torch.nn.Module:
    """The model in float64, its matrices so large that every token of the past can change what comes next."""
    for parameter in model.parameters():
        if parameter.ndim == 2:
            torch.nn.init.normal_(parameter, std=0.7)
    return model.double().eval()


@cache
def gpt(seed: int = 0, positions: str = "learned", max_len: int = 24, vocab_size: int = VOCAB) -> GPT:
    """A decoder-only model; never change it, it is shared."""
    torch.manual_seed(seed)
    sizes = {"d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 20, "dropout": 0.5}
    return opinionated(
        GPT(GPTConfig(vocab_size=vocab_size, positions=positions, max_len=max_len, tie_embeddings=False, **sizes))
    )


@cache
def translator(seed: int = 0) -> Transformer:
    """An encoder-decoder; never change it, it is shared."""
    torch.manual_seed(seed)
    sizes = {"d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 20, "dropout": 0.5, "max_len": 24}
    return opinionated(Transformer(TransformerConfig(vocab_size=VOCAB, norm="pre", tie_embeddings=False, **sizes)))


def padded(prompts: Sequence[Sequence[int]], side: str, junk: int = PAD) -> tuple[torch.Tensor, torch.Tensor]:
    """The prompts as one batch, padded on the left, on the right, or with the padding strewn among the tokens."""
    width = max(len(prompt) for prompt in prompts) + 2
    token_ids, is_real = torch.full((len(prompts), width), junk), torch.zeros(len(prompts), width, dtype=torch.bool)
    for row, prompt in enumerate(prompts):
        places = {
            "left": range(width - len(prompt), width),
            "right": range(len(prompt)),
            "strewn": sorted(torch.randperm(width)[: len(prompt)].tolist()),
        }[side]
        for place, token in zip(places, prompt, strict=True):
            token_ids[row, place], is_real[row, place] = token, True
    return token_ids, is_real


def next_distribution(model: GPT, tokens: Sequence[int]) -> torch.Tensor:
    """Log probabilities of the token after these, from one pass without cache, padding or batch."""
    with torch.no_grad():
        return model(torch.tensor([list(tokens)]))[0, -1].log_softmax(dim=-1)


def log_probabilities(model: GPT, prompt: Sequence[int], news: Sequence[Sequence[int]]) -> list[float]:
    """Log probability of each of some continuations of one length, from one pass without cache or padding."""
    with torch.no_grad():
        table = model(torch.tensor([[*prompt, *new] for new in news])).log_softmax(dim=-1)
    taken = table[:, len(prompt) - 1 : -1].gather(2, torch.tensor(news)[..., None])
    return taken.sum(dim=(1, 2)).tolist()


def log_probability(model: GPT, prompt: Sequence[int], new: Sequence[int]) -> float:
    """Log probability of new tokens after a prompt."""
    return log_probabilities(model, prompt, [list(new)])[0]


def all_sequences(model: GPT, prompt: Sequence[int], n_tokens: int) -> dict[tuple[int, ...], float]:
    """Every continuation of this length, with its log probability."""
    news = list(itertools.product(range(model.config.vocab_size), repeat=n_tokens))
    return dict(zip(news, log_probabilities(model, prompt, news), strict=True))


def greedy_by_hand(model: GPT, prompt: Sequence[int], n_tokens: int, eos_ids: Sequence[int] = ()) -> list[int]:
    """The greedy continuation, end mark included, the whole sequence computed anew for every token."""
    new = _greedy_by_hand(model, tuple(prompt), n_tokens)
    ends = [i for i, token in enumerate(new) if token in eos_ids]
    return new[: ends[0] + 1] if ends else list(new)


@cache
def _greedy_by_hand(model: GPT, prompt: tuple[int, ...], n_tokens: int) -> list[int]:
    new: list[int] = []
    while len(new) < n_tokens:
        new.append(int(next_distribution(model, [*prompt, *new]).argmax()))
    return new


@torch.no_grad()
def beam_by_hand(
    log_probabilities: Callable, n_tokens: int, beam_size: int, alpha: float, eos_ids: Sequence[int]
) -> list[tuple[tuple[int, ...], bool, float]]:
    """Tokens, whether they ended, score: a beam written with lists, every extension of every hypothesis ranked."""
    hypotheses, finished = [((), 0.0)], []
    for step in range(1, n_tokens + 1):
        table = log_probabilities([new for new, _ in hypotheses]).tolist()
        candidates = [
            ((*new, token), total + gain)
            for (new, total), gains in zip(hypotheses, table, strict=True)
            for token, gain in enumerate(gains)
        ]
        ranked = sorted(candidates, key=lambda candidate: -candidate[1])
        ended = [(new[:-1], True, total) for new, total in ranked[:beam_size] if new[-1] in eos_ids]
        finished += [(new, True, total / length_penalty(step, alpha)) for new, _, total in ended]
        hypotheses = [candidate for candidate in ranked if candidate[0][-1] not in eos_ids][:beam_size]
        if len(finished) >= beam_size:
            break
    else:
        finished += [(new, False, total / length_penalty(n_tokens, alpha)) for new, total in hypotheses]
    return sorted(finished[:beam_size], key=lambda found: (not found[1], -found[2]))
