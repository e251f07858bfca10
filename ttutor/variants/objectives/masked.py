"""Tokens hidden or replaced in place: masked language modelling and replaced-token detection."""

from collections.abc import Collection
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ttutor.shapes import check_shapes
from ttutor.variants.objectives.chance import check_rate, uniform_like

IGNORE_ID = -100
"""The label of a position that does not count; `torch.nn.functional.cross_entropy` leaves it out by default."""


class MaskedTokens(NamedTuple):
    """What a masked language model reads, and what it must say.

    Attributes:
        inputs: the token ids, some hidden.
        labels: the original token ids where one was chosen, `IGNORE_ID` elsewhere.
    """

    inputs: Int[Tensor, "batch tokens"]
    labels: Int[Tensor, "batch tokens"]


def mask_tokens(
    token_ids: Int[Tensor, "batch tokens"],
    *,
    mask_id: int,
    vocab_size: int,
    special_ids: Collection[int],
    generator: torch.Generator,
    rate: float = 0.15,
    mask_share: float = 0.8,
    random_share: float = 0.1,
) -> MaskedTokens:
    """Choose some tokens, hide most of those, and ask for the originals of all that were chosen.

    Of the chosen tokens 80 % become the mask, 10 % a random token and 10 % stay, since the mask never comes in the
    texts of later tasks. So 12 % of all tokens are masked, not 15 %.

    Devlin et al. (2019), section 3.1, task 1. RoBERTa draws anew each time a text is read (Liu et al. 2019, section
    4.1), as calling this in every epoch does.

    Differs from the paper: each token is chosen by its own draw, so that 15 % is the mean and a short text may have
    none; the random token is never a special one, which the paper leaves open.

    Args:
        token_ids: the text.
        mask_id: the token that hides; it is never chosen itself.
        vocab_size: how many tokens there are to draw random ones from.
        special_ids: tokens that are never chosen and never drawn, such as padding and separators.
        generator: where chance comes from.
        rate: share of tokens that are chosen.
        mask_share, random_share: what becomes of the chosen; the rest stays. ELECTRA's generator has 1 and 0.

    Example:
        >>> text, generator = torch.arange(10, 20).reshape(2, 5), torch.Generator().manual_seed(0)
        >>> inputs, labels = mask_tokens(
        ...     text, mask_id=4, vocab_size=20, special_ids=range(4), generator=generator, rate=0.5, mask_share=1.0,
        ...     random_share=0.0,
        ... )
        >>> torch.equal(torch.where(inputs == 4, labels, inputs), text)
        True
    """
    check_shapes(token_ids=(token_ids, "batch tokens"))
    check_rate("rate", rate)
    check_rate("mask_share", mask_share)
    check_rate("random_share", random_share)
    check_rate("mask_share + random_share", mask_share + random_share)
    special = torch.tensor(sorted({mask_id, *special_ids}), device=token_ids.device)
    ordinary = _ordinary_ids(token_ids, special, vocab_size)
    chosen = (uniform_like(token_ids, generator) < rate) & ~torch.isin(token_ids, special)
    fate = uniform_like(token_ids, generator)
    draws = torch.randint(len(ordinary), token_ids.shape, generator=generator, device=token_ids.device)
    hidden = torch.where(fate < mask_share + random_share, ordinary[draws], token_ids)
    hidden = torch.where(fate < mask_share, mask_id, hidden)
    return MaskedTokens(torch.where(chosen, hidden, token_ids), torch.where(chosen, token_ids.long(), IGNORE_ID))


def _ordinary_ids(token_ids: Tensor, special: Int[Tensor, " special"], vocab_size: int) -> Int[Tensor, " ordinary"]:
    """The tokens of the vocabulary that are not special, after a check that the vocabulary has all that came."""
    outside = [
        token_id for token_id in [*token_ids.unique().tolist(), *special.tolist()] if not 0 <= token_id < vocab_size
    ]
    if outside:
        raise ValueError(f"token ids must be between 0 and vocab_size - 1 = {vocab_size - 1}, but {outside} came")
    every = torch.arange(vocab_size, dtype=token_ids.dtype, device=token_ids.device)
    ordinary = every[~torch.isin(every, special)]
    if len(ordinary) == 0:
        raise ValueError(f"all {vocab_size} tokens of the vocabulary are special: there is none to draw")
    return ordinary


class ReplacedTokens(NamedTuple):
    """What a discriminator reads, and what it must say.

    Attributes:
        inputs: the token ids, some replaced.
        is_replaced: True where the token is not the original one. Every position counts.
    """

    inputs: Int[Tensor, "batch tokens"]
    is_replaced: Bool[Tensor, "batch tokens"]


def replace_tokens(
    token_ids: Int[Tensor, "batch tokens"],
    chosen: Bool[Tensor, "batch tokens"],
    logits: Float[Tensor, "batch tokens vocab_size"],
    *,
    generator: torch.Generator,
) -> ReplacedTokens:
    """Put what a small masked language model guesses in the place of the chosen tokens; which ones are not original?

    A guess drawn from the generator's distribution may be right; the token then counts as original. No gradient flows
    through the draw, so the generator learns from its own masked-language-model loss alone.

    Clark et al. (2020), section 2.

    Args:
        token_ids: the original text.
        chosen: True where a token was hidden from the generator: ``labels != IGNORE_ID`` of `mask_tokens`.
        logits: what the generator made of the text with those tokens hidden.
        generator: where chance comes from (not the network of that name).

    Example:
        >>> text, chosen = torch.tensor([[5, 6, 7]]), torch.tensor([[True, False, True]])
        >>> sure_of_six = torch.full((1, 3, 8), -torch.inf).index_fill(2, torch.tensor([6]), 0.0)
        >>> replace_tokens(text, chosen, sure_of_six, generator=torch.Generator())
        ReplacedTokens(inputs=tensor([[6, 6, 6]]), is_replaced=tensor([[ True, False,  True]]))
    """
    check_shapes(
        token_ids=(token_ids, "batch tokens"),
        chosen=(chosen, "batch tokens"),
        logits=(logits, "batch tokens vocab_size"),
    )
    probabilities = logits.detach()[chosen].softmax(dim=-1)
    guesses = torch.multinomial(probabilities, num_samples=1, generator=generator)
    inputs = token_ids.masked_scatter(chosen, guesses.to(token_ids.dtype))
    return ReplacedTokens(inputs, inputs != token_ids)
