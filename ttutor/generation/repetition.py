"""Against repetition: filters that look at the tokens a sequence holds already.

Their second argument, the history, has a row of token ids for each row of the distribution, the prompt (or the start
token) included; -1 stands where a row has no token.
"""

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor

from ttutor.generation.filters import renormalised
from ttutor.shapes import check_shapes


def with_repetition_penalty(
    log_probabilities: Float[Tensor, "rows vocab_size"], history: Int[Tensor, "rows tokens"], penalty: float
) -> Float[Tensor, "rows vocab_size"]:
    r"""Make tokens less probable that came already.

    $$p'_i \propto p_i^{\theta} \text{ for the tokens } i \text{ of the history}, \qquad p'_i \propto p_i \text{ else}$$

    Keskar et al. (2019), section 4.1, who find $\theta \approx 1.2$ a good balance.

    Differs from the paper: there the logit is divided by $\theta$, which makes a token whose logit is negative *more*
    probable. A log probability is never positive, so multiplying it always does what is meant, and adding a constant
    to all logits changes nothing.

    Args:
        log_probabilities: of the next token.
        history: the tokens so far, -1 for none.
        penalty: $\theta$; above 1 discourages repetition, below 1 encourages it.

    Example:
        >>> p = torch.tensor([[0.5, 0.25, 0.25]])
        >>> with_repetition_penalty(p.log(), torch.tensor([[0, 0]]), 2.0).exp()  # 0.25 each
        tensor([[0.3333, 0.3333, 0.3333]])
    """
    check_shapes(log_probabilities=(log_probabilities, "rows vocab_size"), history=(history, "rows tokens"))
    if not penalty > 0:
        raise ValueError(f"penalty must be positive (1 changes nothing), but is {penalty}")
    rows, columns = (history >= 0).nonzero(as_tuple=True)
    came = torch.zeros_like(log_probabilities, dtype=torch.bool)
    came[rows, history[rows, columns]] = True
    return torch.where(came, log_probabilities * penalty, log_probabilities).log_softmax(dim=-1)


def without_repeated_ngrams(
    log_probabilities: Float[Tensor, "rows vocab_size"], history: Int[Tensor, "rows tokens"], size: int
) -> Float[Tensor, "rows vocab_size"]:
    r"""Forbid every token that would repeat ``size`` tokens in a row.

    $$w_i = [\,(y_{t-n+1}, \dots, y_{t-1}, i) \text{ does not occur in } y_1 \dots y_{t-1}\,]$$

    Paulus, Xiong and Socher (2018), section 2.5, with $n = 3$. The history counts as one sequence, the prompt included.
    Where everything is forbidden the result is no distribution (NaN), and `stream` says so.

    Example:
        >>> p = torch.tensor([[0.5, 0.25, 0.25]])
        >>> without_repeated_ngrams(p.log(), torch.tensor([[1, 0, 1]]), 2).exp()  # 1 was followed by 0
        tensor([[0.0000, 0.5000, 0.5000]])
    """
    check_shapes(log_probabilities=(log_probabilities, "rows vocab_size"), history=(history, "rows tokens"))
    if size < 1:
        raise ValueError(f"an n-gram has at least 1 token, but size is {size}")
    repeats = torch.zeros_like(log_probabilities, dtype=torch.bool)
    if history.shape[-1] >= size:
        ngrams = history.unfold(-1, size, 1)  # every run of `size` tokens
        ending = rearrange(history[:, history.shape[-1] - size + 1 :], "rows tokens -> rows 1 tokens")
        is_match = (ngrams[..., :-1] == ending).all(dim=-1) & (ngrams >= 0).all(dim=-1)
        rows, places = is_match.nonzero(as_tuple=True)
        repeats[rows, ngrams[rows, places, -1]] = True
    return renormalised(log_probabilities, repeats)
