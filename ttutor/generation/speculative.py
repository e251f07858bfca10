r"""Speculative decoding: a small model drafts several tokens, the large one checks them all in one pass.

A pass over five tokens takes a large model hardly longer than one over a single token: it waits for its weights, not
for arithmetic. A drafted token $x$, drawn from the draft's distribution $q$, is kept with probability
$\min(1, p(x)/q(x))$, where $p$ is the large model's. At the first one that is not kept, a token is drawn instead from
what the draft proposes too rarely:

$$p'(x) \propto \max(0,\; p(x) - q(x))$$

Leviathan et al. (2023), algorithm 1. What comes out is distributed exactly by $p$, whatever the draft: the draft
decides the speed alone.
"""

from typing import Any, NamedTuple

import torch
from einops import reduce
from jaxtyping import Float, Int
from torch import Tensor, nn

from ttutor.cache import DecoderCache
from ttutor.evaluating import evaluating
from ttutor.generation.hypothesis import Hypothesis
from ttutor.generation.search import Sampler
from ttutor.generation.state import check_decodes
from ttutor.generation.streaming import check_max_new_tokens
from ttutor.shapes import check_shapes

__all__ = ["Speculation", "accepted_share", "leftover", "speculative_sample"]


class Speculation(NamedTuple):
    """What came out, and how well the draft did.

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


@torch.inference_mode()
def speculative_sample(
    model: nn.Module,
    draft: nn.Module,
    token_ids: Int[Tensor, "1 tokens"],
    *,
    generator: torch.Generator,
    max_new_tokens: int,
    n_drafted: int = 4,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    eos_id: int | None = None,
) -> Speculation:
    """Continue one prompt as `sample` would with the model alone, in fewer passes of the model.

    Args:
        model: the large decoder-only model, whose distribution counts.
        draft: a small one with the same vocabulary.
        token_ids: the prompt.
        generator: the source of randomness.
        max_new_tokens: at most this many, the end mark included, and no more than both models have positions for.
        n_drafted: how many tokens are drafted before each pass of the large model.
        temperature, top_k, top_p: as for `Sampler`, for both models alike.
        eos_id: the token that ends the sequence.

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
    check_max_new_tokens(max_new_tokens)
    large, small = check_decodes(model), check_decodes(draft)
    if n_drafted < 1:
        raise ValueError(f"n_drafted must be at least 1, but is {n_drafted}")
    if token_ids.shape[-1] == 0:
        raise ValueError("the prompt has no token: a decoder-only model needs one to go on from")
    if large.vocab_size != small.vocab_size:
        raise ValueError(
            f"both models must have one vocabulary, but their sizes are {large.vocab_size} and {small.vocab_size}"
        )
    sampler = Sampler(generator, temperature=temperature, top_k=top_k, top_p=top_p)
    tokens, n_prompt = token_ids[0].tolist(), token_ids.shape[-1]
    longest = min(large.max_len, small.max_len)
    if n_prompt > longest:
        raise ValueError(f"the prompt has {n_prompt} tokens, more than the {longest} positions that both models know")
    end, total, ended_by = min(n_prompt + max_new_tokens, longest + 1), 0.0, ""
    drafted: list[int] = []
    kept: list[int] = []
    with evaluating(model), evaluating(draft):
        checker, guesser = (_Reader(each, sampler, token_ids.device) for each in (model, draft))
        while not ended_by:
            n_new = min(n_drafted, end - len(tokens) - 1)  # a round adds one token more than are kept
            guesses: list[int] = []
            proposals: list[Tensor] = []
            for _ in range(n_new):
                proposals.append(guesser.read(tokens + guesses, 1)[1][0])
                guesses.append(_draw(proposals[-1], generator))
            log_p, wanted = checker.read(tokens + guesses, n_new + 1)
            n_kept = 0
            while n_kept < n_new and _is_kept(wanted[n_kept], proposals[n_kept], guesses[n_kept], generator):
                n_kept += 1
            rest = wanted[n_kept] if n_kept == n_new else leftover(wanted[n_kept], proposals[n_kept])
            new = [*guesses[:n_kept], _draw(rest, generator)]
            drafted.append(n_new)
            kept.append(n_kept)
            for place, token in enumerate(new):
                tokens.append(token)
                total += float(log_p[place, token])
                if token == eos_id:
                    ended_by = "eos_id"
                    break
            checker.forget_after(len(tokens) - 1)
            guesser.forget_after(len(tokens) - 1)
            if not ended_by and len(tokens) == end:
                ended_by = "max_new_tokens" if end == n_prompt + max_new_tokens else "max_len"
    is_finished = ended_by == "eos_id"
    made = tuple(tokens[n_prompt : len(tokens) - is_finished])
    return Speculation(Hypothesis(made, total, is_finished, total, ended_by), tuple(drafted), tuple(kept))


class _Reader:
    """A model with its cache, which holds a beginning of the tokens."""

    def __init__(self, model: Any, sampler: Sampler, device: torch.device) -> None:
        self.model, self.sampler, self.device = model, sampler, device
        self.cache = DecoderCache(model.config.n_layers)

    def read(self, tokens: list[int], n_last: int) -> tuple[Tensor, Tensor]:
        """Read what is new; for each of the last tokens, the next one's log probabilities and those to draw by."""
        new = torch.tensor([tokens[self.cache.n_tokens :]], device=self.device)
        logits = self.model.project(self.model.decode(new, None, self.cache)[:, -n_last:])[0]
        log_probabilities = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(dim=-1)
        return log_probabilities, self.sampler.distribution(log_probabilities).exp()

    def forget_after(self, n_tokens: int) -> None:
        """Drop what was read beyond the first tokens."""
        self.cache.forget(max(0, self.cache.n_tokens - n_tokens))


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
