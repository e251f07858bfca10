r"""Rotary positions: turn queries and keys, so that their product knows how far apart they stand and nothing else.

$$\langle R_p\,q,\; R_{p'}\,k\rangle = \langle q,\; R_{p'-p}\,k\rangle$$

Su et al. (2021), section 3.2. Features are taken in pairs; each pair is turned like the hand of a clock, the first
pairs fast, the last ones slowly.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from ttutor.configs import Config
from ttutor.names import Answering
from ttutor.shapes import check_shapes, is_recorded

# Which features make a pair: i and i + d_head/2 (Llama in Hugging Face's form), or 2i and 2i + 1 (the paper).
SPLIT = {
    "half": "batch heads tokens (two pairs) -> two batch heads tokens pairs",
    "interleaved": "batch heads tokens (pairs two) -> two batch heads tokens pairs",
}
MERGE = {
    "half": "two batch heads tokens pairs -> batch heads tokens (two pairs)",
    "interleaved": "two batch heads tokens pairs -> batch heads tokens (pairs two)",
}


def rotary_frequencies(d_head: int, base: float = 10_000.0) -> Float[Tensor, " pairs"]:
    r"""How far each pair of features turns per position, in radians: $\theta_i = b^{-2i/d_\mathrm{head}}$.

    Su et al. (2021), equation 15, with $b = 10000$; there the pairs are counted from 1, here from 0. In float64, since
    an angle's error grows with the position.

    Args:
        d_head: width of a head, even.
        base: $b$.

    Example:
        >>> rotary_frequencies(4)
        tensor([1.0000, 0.0100], dtype=torch.float64)
    """
    if d_head < 2 or d_head % 2:
        raise ValueError(f"rotary positions take features in pairs, so d_head must be even, but is {d_head}")
    if not 0 < base < math.inf:
        raise ValueError(f"base must be positive and finite, but is {base}")
    # On the CPU by name, so that the numbers are real even where a model is built on the device `meta`.
    even_feature = torch.arange(0, d_head, 2, dtype=torch.float64, device="cpu")
    return base ** (-even_feature / d_head)


@dataclass(frozen=True, kw_only=True)
class RotaryScaling(Config):
    r"""Slows the turning down, so that a trained model can read longer texts without meeting angles it never saw.

    $$\theta'_i = \kappa_i\,\theta_i + (1 - \kappa_i)\,\theta_i / f$$

    Without ``trained_len`` all $\kappa_i = 0$: every pair turns $f$ times slower, so that position $p$ stands where
    $p / f$ stood (position interpolation, Chen et al. 2023, equation 4). With it, a pair's $\kappa_i$ depends on how
    many turns it makes within that length: 0 up to ``few_turns``, 1 from ``many_turns`` on, and growing linearly
    between. So the fast pairs, which tell neighbours apart, stay as they are. That is the scheme of Llama 3.1's
    released code (2024).

    Args:
        factor: $f$, how many times longer the texts become, at least 1.
        trained_len: the longest text in training, in tokens.
        few_turns, many_turns: between which numbers of turns within ``trained_len`` the blending goes on.

    Example:
        >>> RotaryScaling(factor=8.0)(rotary_frequencies(4))
        tensor([0.1250, 0.0013], dtype=torch.float64)
        >>> RotaryScaling(factor=8.0, trained_len=64)(rotary_frequencies(4))
        tensor([1.0000, 0.0013], dtype=torch.float64)
    """

    factor: float
    trained_len: int | None = None
    few_turns: float = 1.0
    many_turns: float = 4.0

    def errors(self) -> Iterable[str]:
        """What is wrong with these values."""
        yield from self.require_positive_number("factor")
        if type(self.factor) in (int, float) and self.factor < 1:
            yield f"factor must be at least 1 (factor={self.factor!r})"
        if self.trained_len is not None:
            yield from self.require_positive_int("trained_len")
        if any(type(turns) not in (int, float) for turns in (self.few_turns, self.many_turns)):
            yield f"few_turns and many_turns must be numbers ({self.few_turns!r}, {self.many_turns!r})"
        elif not 0 <= self.few_turns < self.many_turns:
            yield f"few_turns must be below many_turns ({self.few_turns!r}, {self.many_turns!r})"

    def __call__(self, frequencies: Float[Tensor, " pairs"]) -> Float[Tensor, " pairs"]:
        """The frequencies, slowed down."""
        if self.trained_len is None:
            return frequencies / self.factor
        turns = self.trained_len * frequencies / (2 * math.pi)
        kept = ((turns - self.few_turns) / (self.many_turns - self.few_turns)).clamp(0, 1)
        return kept * frequencies + (1 - kept) * frequencies / self.factor


@dataclass(frozen=True, eq=False)
class Rotation:
    r"""The turns that belong to certain positions, ready to be applied to queries and keys of every layer.

    A pair of features $(x, y)$ at position $p$, whose angle is $\alpha = p\,\theta_i$, becomes
    $(x \cos\alpha - y \sin\alpha,\; x \sin\alpha + y \cos\alpha)$. Su et al. (2021), equations 14 and 15.

    Attributes:
        cos, sin: of each pair's angle.
        layout: which features make a pair, ``"half"`` or ``"interleaved"``.
    """

    cos: Float[Tensor, "batch 1 tokens pairs"]
    sin: Float[Tensor, "batch 1 tokens pairs"]
    layout: str = "half"

    def __call__(
        self, vectors: Float[Tensor, "batch heads tokens d_head"]
    ) -> Float[Tensor, "batch heads tokens d_head"]:
        """Turn each pair of features by its angle; lengths stay as they are."""
        sizes = {"tokens": self.cos.shape[-2], "d_head": 2 * self.cos.shape[-1]}
        if not is_recorded() and self.cos.shape[0] != 1:  # positions of one row serve every batch
            sizes["batch"] = self.cos.shape[0]
        check_shapes(sizes, vectors=(vectors, "batch heads tokens d_head"))
        first, second = rearrange(vectors, SPLIT[self.layout], two=2)
        cos, sin = self.cos.to(vectors.dtype), self.sin.to(vectors.dtype)
        return rearrange([first * cos - second * sin, first * sin + second * cos], MERGE[self.layout])


class RotaryPositions(Answering, nn.Module):
    """Gives the rotation of each position; it has no parameters and no last position.

    Su et al. (2021), section 3.2.2.

    Args:
        d_head: width of a head, even.
        base: the larger, the slower the last pairs turn; 10,000 in the paper, 500,000 in Llama 3.
        layout: ``"half"`` or ``"interleaved"``; the two are one scheme with the features named differently, and
            `half_to_interleaved` renames them in a projection's weight.
        frequencies: the turn of each pair from one position to the next, where it is not `rotary_frequencies`.

    Example:
        >>> rotation = RotaryPositions(d_head=4)(torch.tensor([[0, 1]]))
        >>> rotation(torch.tensor([[[[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]]]]))
        tensor([[[[1.0000, 1.0000, 0.0000, 0.0000],
                  [0.5403, 0.9999, 0.8415, 0.0100]]]])
    """

    def __init__(
        self,
        d_head: int,
        *,
        base: float = 10_000.0,
        layout: str = "half",
        frequencies: Float[Tensor, " pairs"] | None = None,
    ) -> None:
        super().__init__()
        if layout not in SPLIT:
            raise ValueError(f"layout must be one of {sorted(SPLIT)}, but is {layout!r}")
        self.layout = layout
        # A tuple, not a buffer: a model that is cast to bfloat16 would cast its buffers too, and the angles with them.
        self.frequencies = tuple((rotary_frequencies(d_head, base) if frequencies is None else frequencies).tolist())

    def forward(self, positions: Int[Tensor, "batch tokens"] | Float[Tensor, "batch tokens"]) -> Rotation:
        """The turns of tokens that stand at these positions, which need not be whole numbers."""
        check_shapes(positions=(positions, "batch tokens"))
        precise = torch.float32 if positions.device.type == "mps" else torch.float64  # that device has no float64
        frequencies = torch.tensor(self.frequencies, dtype=precise, device=positions.device)
        angle = rearrange(positions.to(precise), "batch tokens -> batch 1 tokens 1") * frequencies
        return Rotation(angle.cos(), angle.sin(), self.layout)


def half_to_interleaved(weight: Float[Tensor, "out ..."], n_heads: int) -> Float[Tensor, "out ..."]:
    """Rename the features of a query or key projection from the half-split layout to the interleaved one.

    Scores stay the same if queries and keys are both renamed.

    Args:
        weight: a projection's weight, ``(heads d_head) d_model``, or its bias.
        n_heads: how many heads its rows make.

    Example:
        >>> half_to_interleaved(torch.tensor([0.0, 1.0, 0.5, 1.5]), n_heads=1)
        tensor([0.0000, 0.5000, 1.0000, 1.5000])
    """
    return rearrange(weight, "(heads two pairs) ... -> (heads pairs two) ...", heads=n_heads, two=2)
