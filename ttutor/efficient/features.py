r"""Feature maps: what turns a query or key into the vector $\phi(x)$ whose dot products stand in for exponentials.

If the weight of a key is $\phi(q)^\top \phi(k)$ with $\phi > 0$, the sum over the keys can be taken before the query is
known; see `ttutor.efficient.linear`. Which function of $q$ and $k$ that is, the map decides: `elu_features` make one of
their own, `FavorFeatures` make one that is $e^{q^\top k}$ on average.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from einops import einsum, rearrange, reduce
from jaxtyping import Float
from torch import Tensor

from ttutor.shapes import check_shapes


class Features(NamedTuple):
    r"""The features of each token, $\phi = e^{c} f$ with $f$ of moderate size; $c = 0$ where ``log_size`` is None."""

    values: Float[Tensor, "batch heads tokens features"]
    log_size: Float[Tensor, "batch heads tokens"] | None = None


FeatureMap = Callable[[Float[Tensor, "batch heads tokens d_head"], float | None], Features]
"""Takes queries or keys and the scale of the scores; queries and keys go through the same map."""


def elu_features(inputs: Float[Tensor, "batch heads tokens d_head"], scale: float | None = None) -> Features:
    r"""One feature for each number: $\phi(x) = \mathrm{elu}(x) + 1$, which is $x + 1$ above zero and $e^x$ below.

    Katharopoulos et al. (2020), equation 7. It is positive and cheap, and no approximation of the softmax: a key may
    count at most in proportion to its length, not to the exponential of it.

    Args:
        inputs: queries or keys.
        scale: queries and keys are multiplied by its root each; 1 when left out, as in the paper.

    Example:
        >>> elu_features(torch.tensor([[[[-1.0, 0.0, 2.0]]]])).values
        tensor([[[[0.3679, 1.0000, 3.0000]]]])
    """
    inputs = inputs if scale is None else inputs * _root(scale)
    return Features(torch.nn.functional.elu(inputs) + 1)


class FavorFeatures:
    r"""Positive random features (FAVOR+), whose dot products are on average the softmax's exponentials.

    $$\phi(x) = \frac{e^{-|x|^2/2}}{\sqrt m}\,\big(e^{\omega_1^\top x}, \dots, e^{\omega_m^\top x}\big), \qquad
      \mathbb{E}\,\phi(q)^\top \phi(k) = e^{q^\top k}, \qquad \omega_i \sim \mathcal{N}(0, 1)$$

    Choromanski et al. (2021), lemma 1 and section 2.4: positive, so that no sum of weights can vanish, and orthogonal
    within groups of ``d_head`` directions, so that they repeat one another less. The error falls like $m^{-1/2}$ and
    grows exponentially with the lengths of $q$ and $k$.

    Differs from the paper: nothing is added to the features against division by zero. Each token's features are divided
    by the largest instead, and its logarithm is handed on; it cancels in the weights, or is accounted for.

    Args:
        directions: the $\omega_i$, one row each; `FavorFeatures.draw` draws them.

    Example:
        >>> features = FavorFeatures.draw(256, d_head=4, generator=torch.Generator().manual_seed(0))
        >>> features(torch.randn(1, 2, 5, 4)).values.shape
        torch.Size([1, 2, 5, 256])
    """

    def __init__(self, directions: Float[Tensor, "features d_head"]) -> None:
        check_shapes(directions=(directions, "features d_head"))
        self.directions = directions

    @classmethod
    def draw(cls, n_features: int, *, d_head: int, generator: torch.Generator) -> "FavorFeatures":
        """Draw random directions, orthogonal in groups of ``d_head``, each as long as a Gaussian vector would be.

        Args:
            n_features: how many.
            d_head: width of queries and keys.
            generator: where the chance comes from.
        """
        if n_features < 1 or d_head < 1:
            raise ValueError(f"n_features and d_head must be at least 1, but {n_features=} and {d_head=}")
        shape = (-(-n_features // d_head), d_head, d_head)
        draw = partial(torch.randn, shape, generator=generator, dtype=torch.float64, device=generator.device)
        lengths = torch.linalg.vector_norm(draw(), dim=-1, keepdim=True)
        basis, triangle = torch.linalg.qr(draw())
        signs = torch.diagonal(triangle, dim1=-2, dim2=-1).sign()  # without them not every turn is as likely
        drawn = lengths * basis * rearrange(signs, "groups columns -> groups 1 columns")
        return cls(rearrange(drawn, "groups rows d_head -> (groups rows) d_head")[:n_features])

    def __call__(self, inputs: Float[Tensor, "batch heads tokens d_head"], scale: float | None = None) -> Features:
        r"""The features of queries or keys.

        Args:
            inputs: queries or keys.
            scale: of the scores whose exponential is meant; $1/\sqrt{d_\mathrm{head}}$ when left out.
        """
        n_features, d_head = self.directions.shape
        check_shapes({"d_head": d_head}, inputs=(inputs, "batch heads tokens d_head"))
        inputs = inputs * _root(1 / math.sqrt(d_head) if scale is None else scale)
        half_square = reduce(inputs.square(), "batch heads tokens d_head -> batch heads tokens 1", "sum") / 2
        directions = self.directions.to(inputs)
        along = einsum(inputs, directions, "... tokens d_head, features d_head -> ... tokens features")
        exponents = along - half_square - math.log(n_features) / 2
        largest = exponents.detach().amax(dim=-1, keepdim=True)  # taken out and handed on: no gradient passes it
        return Features((exponents - largest).exp(), rearrange(largest, "batch heads tokens 1 -> batch heads tokens"))


def _root(scale: float) -> float:
    """What queries and keys are multiplied by, so that their products are multiplied by the scale."""
    if scale < 0:
        raise ValueError(f"a feature map needs a scale of at least 0, since it takes its root, but it is {scale}")
    return math.sqrt(scale)
