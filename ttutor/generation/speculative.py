r"""Speculative decoding: a small model drafts several tokens, the large one checks them all in one pass.

A pass over five tokens takes a large model hardly longer than one over a single token: it waits for its weights, not
for arithmetic. A drafted token $x$, drawn from the draft's distribution $q$, is kept with probability
$\min(1, p(x)/q(x))$, where $p$ is the large model's. At the first one that is not kept, a token is drawn instead from
what the draft proposes too rarely:

$$p'(x) \propto \max(0,\; p(x) - q(x))$$

Leviathan et al. (2023), algorithm 1. What comes out is distributed exactly by $p$, whatever the draft: the draft
decides the speed alone.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from einops import rearrange, reduce
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ttutor.cache import DecoderCache, check_is_real
from ttutor.evaluating import evaluating
from ttutor.generation.hypothesis import Hypothesis
from ttutor.generation.search import Sampler
from ttutor.generation.streaming import check_max_new_tokens
from ttutor.generation.writer import Writer, WritingState, check_prompts, check_writes, max_len
from ttutor.shapes import check_shapes

__all__ = ["Speculation", "accepted_share", "leftover", "speculative_batch", "speculative_sample"]


class Speculation(NamedTuple):
    """One sequence written by speculative decoding, and how much of the draft was kept.

    Attributes:
        hypothesis: the sequence.
        drafted: how many tokens were drafted in each round.
        kept: how many of them were kept; the large model adds one of its own to each round.
    """

    hypothesis: Hypothesis
    drafted: tuple[int, ...]
    kept: tuple[int, ...]


def accepted_share(
    wanted: Float[Tensor, "... vocab_size"], drafted: Float[Tensor, "... vocab_size"]
) -> Float[Tensor, "..."]:
    r"""How probable it is that a drafted token is kept: $\sum_x \min(p(x), q(x))$.

    Leviathan et al. (2023), theorem 3.5. It is 1 where both distributions agree, and 0 where they share nothing.

    Args:
        wanted: $p$, the large model's distribution.
        drafted: $q$, the draft's.

    Example:
        >>> accepted_share(torch.tensor([0.5, 0.5, 0.0]), torch.tensor([0.2, 0.2, 0.6]))
        tensor(0.4000)
    """
    return reduce(torch.minimum(wanted, drafted), "... vocab_size -> ...", "sum")


def leftover(
    wanted: Float[Tensor, "... vocab_size"], drafted: Float[Tensor, "... vocab_size"]
) -> Float[Tensor, "... vocab_size"]:
    r"""What is drawn from instead of a token that was not kept: $\max(0, p - q)$, made to sum to one.

    Args:
        wanted, drafted: as for `accepted_share`.

    Example:
        >>> leftover(torch.tensor([0.5, 0.5, 0.0]), torch.tensor([0.2, 0.4, 0.4]))
        tensor([0.7500, 0.2500, 0.0000])
    """
    missing = (wanted - drafted).clamp(min=0)
    total = reduce(missing, "... vocab_size -> ... 1", "sum")
    return torch.where(total > 0, missing / total, wanted)  # equal distributions but for rounding: nothing is missing


def speculative_sample(
    model: nn.Module, draft: nn.Module, token_ids: Int[Tensor, "1 tokens"], **options: Any
) -> Speculation:
    """Continue one prompt as `sample` would with the model alone, in fewer passes of the model.

    Args:
        model, draft, token_ids, options: as for `speculative_batch`.

    Example:
        >>> from ttutor.variants.gpt import GPT, GPTConfig
        >>> config = GPTConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=2, d_ff=48, max_len=32)
        >>> model = GPT(config)
        >>> generator = torch.Generator().manual_seed(0)
        >>> made = speculative_sample(model, model, torch.tensor([[7, 8]]), generator=generator, max_new_tokens=10)
        >>> made.drafted, made.kept  # a draft that is the model itself: all is kept
        ((4, 4), (4, 4))
    """
    check_shapes(token_ids=(token_ids, "1 tokens"))
    (made,) = speculative_batch(model, draft, token_ids, **options)
    return made


@torch.inference_mode()
def speculative_batch(
    model: nn.Module,
    draft: nn.Module,
    token_ids: Int[Tensor, "batch tokens"],
    *,
    generator: torch.Generator,
    max_new_tokens: int,
    is_real: Bool[Tensor, "batch tokens"] | None = None,
    n_drafted: int = 4,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    eos_id: int | None = None,
) -> list[Speculation]:
    """Continue many prompts at once, each row keeping as many drafted tokens as it may.

    Rows grow at different speeds, so the caches are padded on the left anew after each round; finished rows leave.

    Args:
        model: the large decoder-only model, whose distribution counts.
        draft: a small one with the same vocabulary.
        token_ids: the prompts.
        generator: the source of randomness, for all rows in turn.
        max_new_tokens: at most this many, the end mark included, and no more than both models have positions for.
        is_real: which tokens are no padding, wherever it stands; all of them when left out.
        n_drafted: how many tokens are drafted before each pass of the large model; fewer in all rows when one of them
            is about to end.
        temperature, top_k, top_p: as for `Sampler`, for both models alike.
        eos_id: the token that ends a sequence.
    """
    check_shapes(token_ids=(token_ids, "batch tokens"))
    check_max_new_tokens(max_new_tokens)
    writers = [check_writes(each) for each in (model, draft)]
    large, small = (writer.config for writer in writers)
    if n_drafted < 1:
        raise ValueError(f"n_drafted must be at least 1, but is {n_drafted}")
    if large.vocab_size != small.vocab_size:
        raise ValueError(
            f"both models must have one vocabulary, but their sizes are {large.vocab_size} and {small.vocab_size}"
        )
    sampler = Sampler(generator, temperature=temperature, top_k=top_k, top_p=top_p)
    is_real = torch.ones_like(token_ids, dtype=torch.bool) if is_real is None else is_real
    check_is_real(is_real)
    check_shapes(token_ids=(token_ids, "batch tokens"), is_real=(is_real, "batch tokens"))
    longest = min(max_len(large), max_len(small))
    rows = [_Row(ids[real].tolist(), max_new_tokens, longest) for ids, real in zip(token_ids, is_real, strict=True)]
    check_prompts([row.n_prompt for row in rows], longest)
    with evaluating(model), evaluating(draft):
        checker, guesser = (_Reader(each, sampler, token_ids) for each in writers)
        going = rows
        while going:
            # A round adds one token more than are kept.
            n_new = min(n_drafted, *(row.end - len(row.tokens) - 1 for row in going))
            texts, proposals = _guess(guesser, [row.tokens for row in going], n_new, generator)
            log_p, wanted = checker.read(texts, n_new + 1)
            for number, row in enumerate(going):
                guesses = texts[number][len(row.tokens) :]
                kept = _kept(guesses, wanted[number], [one[number] for one in proposals], generator)
                row.drafted.append(n_new)
                row.kept.append(len(kept) - 1)
                row.extend(kept, log_p[number], eos_id)
            numbers = [number for number, row in enumerate(going) if not row.ended_by]
            going = [going[number] for number in numbers]
            for reader in (checker, guesser):
                reader.keep(numbers, [len(row.tokens) - 1 for row in going])
    return [row.result() for row in rows]


class _Row:
    """A text under way."""

    def __init__(self, prompt: list[int], max_new_tokens: int, longest: int | float) -> None:
        self.tokens, self.n_prompt, self.total, self.ended_by = prompt, len(prompt), 0.0, ""
        self.end = int(min(len(prompt) + max_new_tokens, longest + 1))
        self.limit = "max_new_tokens" if self.end == len(prompt) + max_new_tokens else "max_len"
        self.drafted: list[int] = []
        self.kept: list[int] = []

    def extend(self, new: Sequence[int], log_p: Float[Tensor, "places vocab_size"], eos_id: int | None) -> None:
        """Take in what a round gave, up to the end mark."""
        for place, token in enumerate(new):
            self.tokens.append(token)
            self.total += float(log_p[place, token])
            if token == eos_id:
                self.ended_by = "eos_id"
                return
        self.ended_by = self.limit if len(self.tokens) == self.end else ""

    def result(self) -> Speculation:
        is_finished = self.ended_by == "eos_id"
        made = tuple(self.tokens[self.n_prompt : len(self.tokens) - is_finished])
        hypothesis = Hypothesis(made, self.total, is_finished, self.total, self.ended_by)
        return Speculation(hypothesis, tuple(self.drafted), tuple(self.kept))


class _Reader:
    """A model with its cache, which holds a beginning of each text."""

    def __init__(self, model: Writer, sampler: Sampler, token_ids: Int[Tensor, "batch tokens"]) -> None:
        self.model, self.sampler, self.device = model, sampler, token_ids.device
        self.state = WritingState(token_ids[:, :0], DecoderCache(model.config.n_layers))

    def read(self, texts: list[list[int]], n_last: int) -> tuple[Tensor, Tensor]:
        """Read what is new; for each of the last tokens, the next one's log probabilities and those to draw by."""
        held = (self.state.history >= 0).sum(dim=-1).tolist()
        new = [text[n:] for text, n in zip(texts, held, strict=True)]
        width = max(map(len, new))
        token_ids = torch.tensor([[0] * (width - len(ids)) + ids for ids in new], device=self.device)
        is_real = torch.tensor([[False] * (width - len(ids)) + [True] * len(ids) for ids in new], device=self.device)
        logits = self.model.project(self.model.step(self.state, token_ids, is_real)[:, -n_last:])
        log_probabilities = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(dim=-1)
        return log_probabilities, self.sampler.distribution(log_probabilities).exp()

    def keep(self, rows: list[int], n_tokens: list[int]) -> None:
        """Go on with these rows, and of each with so many of its first tokens."""
        if not self.state.history.shape[1] or not rows:  # nothing was drafted, or all is done
            return
        self.state.select(torch.tensor(rows, device=self.device))
        cache, first = self.state.cache, rearrange(torch.tensor(n_tokens, device=self.device), "rows -> rows 1")
        self.state.keep_tokens(cache.is_real & (cache.positions() < first))


def _guess(
    guesser: _Reader, texts: list[list[int]], n_new: int, generator: torch.Generator
) -> tuple[list[list[int]], list[Float[Tensor, "rows vocab_size"]]]:
    """The texts with so many drafted tokens more, and the probabilities by which each of these was drawn."""
    proposals: list[Tensor] = []
    for _ in range(n_new):
        proposals.append(guesser.read(texts, 1)[1][:, 0])
        drawn = [_draw(proposal, generator) for proposal in proposals[-1]]
        texts = [[*text, token] for text, token in zip(texts, drawn, strict=True)]
    return texts, proposals


def _kept(
    guesses: list[int],
    wanted: Float[Tensor, "places vocab_size"],
    proposals: list[Float[Tensor, " vocab_size"]],
    generator: torch.Generator,
) -> list[int]:
    """The guesses of one text up to the first that is refused, and one token more, by what is left to be drawn."""
    n_kept = 0
    while n_kept < len(guesses) and _is_kept(wanted[n_kept], proposals[n_kept], guesses[n_kept], generator):
        n_kept += 1
    p = wanted[n_kept]
    rest = p if n_kept == len(guesses) else leftover(p, proposals[n_kept])
    return [*guesses[:n_kept], _draw(rest, generator)]


def _draw(probabilities: Float[Tensor, " vocab_size"], generator: torch.Generator) -> int:
    return int(torch.multinomial(probabilities, 1, generator=generator))


def _is_kept(
    wanted: Float[Tensor, " vocab_size"],
    drafted: Float[Tensor, " vocab_size"],
    token: int,
    generator: torch.Generator,
) -> bool:
    chance = torch.rand((), generator=generator, device=wanted.device, dtype=wanted.dtype)
    return bool(chance * drafted[token] < wanted[token])
