r"""Longer texts than in training: a larger rotary base (NTK), YaRN, and turning only some of the features.

Each gives frequencies for `ttutor.positions.RotaryPositions`. Linear scaling and Llama 3's are
`ttutor.positions.RotaryScaling`, which slows pairs down by the turns that they make. These two slow them down by their
place among the pairs.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ttutor.configs import Config
from ttutor.positions.rotary import rotary_frequencies

__all__ = ["YarnScaling", "ntk_base", "partial_frequencies"]


def ntk_base(d_head: int, factor: float) -> float:
    r"""A larger base, with which the slowest pair turns ``factor`` times slower and the fastest as before.

    $$b' = 10000\,f^{\,d/(d-2)}$$

    The name is from the neural tangent kernel, a theory of why networks need high frequencies. Peng et al. (2024),
    section 3.1, tell it; it was first posted by a user called bloc97. "Dynamic" NTK takes the factor anew as the text
    grows: $f\,n/m - (f - 1)$ for $n$ tokens, of which training saw $m$.

    Args:
        d_head: width of a head, $d$.
        factor: $f$, how many times longer the texts become.

    Example:
        >>> rotary_frequencies(8) / rotary_frequencies(8, ntk_base(8, 4.0))
        tensor([1.0000, 1.5874, 2.5198, 4.0000], dtype=torch.float64)
    """
    if d_head < 4 or d_head % 2:
        raise ValueError(
            f"there must be a fast and a slow pair, so d_head must be even and at least 4, but is {d_head}"
        )
    if not 1 <= factor < math.inf:
        raise ValueError(f"factor must be at least 1 and finite, but is {factor}")
    return 10_000.0 * factor ** (d_head / (d_head - 2))


def partial_frequencies(d_head: int, d_turned: int) -> Float[Tensor, " pairs"]:
    """Frequencies that turn the first features of a head and leave the others as they are.

    Black et al. (2022), section 2.1.1, turn a quarter of each head. For `RotaryPositions` in the layout
    ``"interleaved"``, in which the first pairs are the first features.

    Args:
        d_head: width of a head, even.
        d_turned: how many of its features are turned, even.

    Example:
        >>> partial_frequencies(8, 4)
        tensor([1.0000, 0.0100, 0.0000, 0.0000], dtype=torch.float64)
    """
    if d_turned > d_head or d_head % 2:
        raise ValueError(f"d_head must be even and at least d_turned, but d_head={d_head} and d_turned={d_turned}")
    turned = rotary_frequencies(d_turned)
    return torch.cat([turned, turned.new_zeros((d_head - d_turned) // 2)])


@dataclass(frozen=True, kw_only=True)
class YarnScaling(Config):
    r"""Slows the slow pairs down and leaves the fast ones: YaRN.

    $$\theta'_i = (1 - \gamma_i)\,\theta_i / f + \gamma_i\,\theta_i$$

    $\gamma_i$ falls linearly from 1 to 0 between the pair that makes ``many_turns`` within the trained length and the
    pair that makes ``few_turns``. Besides, scores are multiplied by $1/t = (0.1 \ln f + 1)^2$, since more keys would
    make the softmax flatter: `scale`. Peng et al. (2024), sections 3.2 and 3.4.

    Differs from the paper: there $\gamma$ is linear in the number of turns, as in `ttutor.positions.RotaryScaling`; in
    the authors' code, which the published models follow, and here, it is linear in the pair's number.

    Args:
        factor: $f$, how many times longer the texts become, at least 1.
        trained_len: the longest text in training, in tokens.
        few_turns, many_turns: which pairs bound the blending.
        base: of the frequencies, by which a number of turns is found among the pairs.
        in_whole_pairs: whether the bounds are moved outwards to whole pairs, as nearly all published models do; gpt-oss
            does not.

    Example:
        >>> yarn = YarnScaling(factor=4.0, trained_len=256)
        >>> yarn(rotary_frequencies(8)) / rotary_frequencies(8)
        tensor([1.0000, 0.6250, 0.2500, 0.2500], dtype=torch.float64)
    """

    factor: float
    trained_len: int
    few_turns: float = 1.0
    many_turns: float = 32.0
    base: float = 10_000.0
    in_whole_pairs: bool = True

    def errors(self) -> Iterable[str]:
        """What is wrong with these values."""
        yield from self.require_positive_number("factor", "few_turns", "many_turns", "base")
        yield from self.require_positive_int("trained_len")
        yield from self.require_bool("in_whole_pairs")
        if type(self.factor) in (int, float) and self.factor < 1:
            yield f"factor must be at least 1 (factor={self.factor!r})"
        turns = (self.few_turns, self.many_turns)
        if all(type(count) in (int, float) for count in turns) and self.few_turns >= self.many_turns:
            yield f"few_turns must be below many_turns ({self.few_turns!r}, {self.many_turns!r})"

    def __call__(self, frequencies: Float[Tensor, " pairs"]) -> Float[Tensor, " pairs"]:
        """The frequencies, slowed down; they must have this ``base``."""
        n_pairs = len(frequencies)
        first, last = (self._pair_that_makes(turns, n_pairs) for turns in (self.many_turns, self.few_turns))
        if self.in_whole_pairs:
            first, last = math.floor(first), math.ceil(last)
        first, last = max(first, 0), min(last, 2 * n_pairs - 1)
        pair = torch.arange(n_pairs, dtype=frequencies.dtype, device=frequencies.device)
        kept = 1 - ((pair - first) / max(last - first, 1e-3)).clamp(0, 1)
        return kept * frequencies + (1 - kept) * frequencies / self.factor

    def scale(self, d_head: int) -> float:
        r"""What multiplies the scores, for the ``scale`` of attention: $(0.1 \ln f + 1)^2 / \sqrt{d_\mathrm{head}}$.

        Example:
            >>> YarnScaling(factor=1.0, trained_len=256).scale(4)
            0.5
        """
        return (0.1 * math.log(self.factor) + 1) ** 2 / math.sqrt(d_head)

    def _pair_that_makes(self, turns: float, n_pairs: int) -> float:
        """The number of the pair, not whole, that turns so often within the trained length."""
        return n_pairs * math.log(self.trained_len / (turns * 2 * math.pi)) / math.log(self.base)
