"""The best extensions of a beam, found without ranking a vocabulary.

Of ten thousand next tokens a search wants ten. They stand in those ten blocks of the vocabulary whose largest values
are the largest, and finding the largest value of every block is one pass that a processor does many numbers at a time.
Only the ten blocks are ranked token by token: the same answer as from ``topk`` over everything, sooner.
"""

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor

BLOCK = 64
"""Tokens in a block: many enough for the one pass, few enough for the ranking. Any number gives the same answer."""


def best_extensions(
    log_probabilities: Float[Tensor, "rows vocab_size"], totals: Float[Tensor, "group beam"], n: int
) -> tuple[Float[Tensor, "group ranked"], Int[Tensor, "group ranked"], Int[Tensor, "group ranked"]]:
    """The ``n`` most probable ways to extend the partial hypotheses of each group by a token, best first.

    Args:
        log_probabilities: of every token as the next one of each partial hypothesis.
        totals: the log probability of each partial hypothesis; those of a group stand in consecutive rows.
        n: how many; no more than a group has extensions.

    Returns:
        Their log probabilities, which rows they extend, and by which tokens.

    Example:
        >>> log_probabilities = torch.tensor([[0.9, 0.1, 0.0], [0.2, 0.5, 0.3]]).log()
        >>> best, rows, tokens = best_extensions(log_probabilities, torch.tensor([[0.4, 0.6]]).log(), n=2)
        >>> best.exp(), rows, tokens
        (tensor([[0.3600, 0.3000]]), tensor([[0, 1]]), tensor([[0, 1]]))
    """
    (n_groups, n_beams), vocab_size = totals.shape, log_probabilities.shape[-1]
    maxima = rearrange(_block_maxima(log_probabilities), "(group beam) block -> group beam block", beam=n_beams)
    n_blocks = maxima.shape[-1]
    reached = rearrange(maxima + totals[..., None], "group beam block -> group (beam block)")
    chosen = reached.topk(min(n, n_beams * n_blocks), dim=-1).indices
    beam, block = chosen // n_blocks, chosen % n_blocks
    row = beam + torch.arange(0, n_groups * n_beams, n_beams, device=beam.device)[:, None]
    token = block[..., None] * BLOCK + torch.arange(BLOCK, device=block.device)
    is_beyond, token = token >= vocab_size, token.clamp(max=vocab_size - 1)  # the last block may be shorter
    values = log_probabilities.take(row[..., None] * vocab_size + token) + totals.gather(1, beam)[..., None]
    best, place = values.masked_fill(is_beyond, float("-inf")).flatten(1).topk(n, dim=-1)
    return best, row.gather(1, place // BLOCK), token.flatten(1).gather(1, place)


def most_probable(log_probabilities: Float[Tensor, "rows vocab_size"], rows: list[int]) -> Int[Tensor, " rows"]:
    """The greedy choice; it looks at each row alone, so the other sequences of the batch do not matter."""
    _, _, token = best_extensions(log_probabilities, log_probabilities.new_zeros(len(log_probabilities), 1), n=1)
    return rearrange(token, "rows 1 -> rows")


def _block_maxima(values: Float[Tensor, "rows vocab_size"]) -> Float[Tensor, "rows blocks"]:
    """The largest value of each block; the last block has what is left over."""
    n_whole = values.shape[-1] - values.shape[-1] % BLOCK
    maxima = [values[:, :n_whole].unflatten(-1, (-1, BLOCK)).amax(dim=-1)] if n_whole else []
    maxima += [values[:, n_whole:].amax(dim=-1, keepdim=True)] if n_whole < values.shape[-1] else []
    return torch.cat(maxima, dim=-1)
