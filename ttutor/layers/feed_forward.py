"""The feed-forward network, plain and gated: what a block does to each position by itself."""

from collections.abc import Callable
from functools import partial

from jaxtyping import Float
from torch import Tensor, nn

from ttutor.names import AnsweringLayer
from ttutor.shapes import check_shapes

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": nn.functional.relu,
    "gelu": nn.functional.gelu,
    "gelu_tanh": partial(nn.functional.gelu, approximate="tanh"),
    "quick_gelu": lambda value: value * (1.702 * value).sigmoid(),
    "silu": nn.functional.silu,
}
"""Elementwise functions between the two maps of a feed-forward network, by name.

GELU is $x\\,\\Phi(x)$ (Hendrycks and Gimpel 2016); ``gelu_tanh`` is their approximation of it, which GPT-2 and T5 1.1
compute; ``quick_gelu``, $x\\,\\sigma(1.702\\,x)$, is another of theirs, in CLIP. SiLU, or Swish, is $x\\,\\sigma(x)$.
"""


class FeedForward(AnsweringLayer, nn.Module):
    r"""A two-layer network applied to every position alike: $\mathrm{FFN}(x) = \phi(x W_1 + b_1)\,W_2 + b_2$.

    Vaswani et al. (2017), equation 2, where $\phi$ is ReLU; BERT and GPT-2 use GELU.

    Args:
        d_model: width of what comes in and goes out.
        d_ff: width between the two maps.
        activation: one of `ACTIVATIONS`.
        dropout: probability of dropping an inner feature while training.
        bias: whether the two maps add a constant.

    Differs from the paper: section 5.4 drops features of the sublayer's output only, which `PreNorm` and `PostNorm` do;
    the dropout here is for models that drop inner features as well.
    """

    def __init__(
        self, d_model: int, d_ff: int, *, activation: str = "relu", dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        self.activation = _activation(activation)
        self.widen = nn.Linear(d_model, d_ff, bias=bias)
        self.narrow = nn.Linear(d_ff, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)
        _initialise(self.widen, self.narrow)

    def forward(self, hidden: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Transform each position by itself."""
        check_shapes({"d_model": self.widen.in_features}, hidden=(hidden, "... d_model"))
        return self.narrow(self.dropout(self.activation(self.widen(hidden))))


class GatedFeedForward(AnsweringLayer, nn.Module):
    r"""A feed-forward network in which one map opens and closes the other: $(\phi(x W_g) \odot x W_1)\,W_2$.

    Shazeer (2020), section 2: with SiLU it is SwiGLU, with GELU it is GeGLU. Its three matrices have as many parameters
    as the two of `FeedForward` when ``d_ff`` is two thirds as wide.

    Args:
        d_model, d_ff, dropout: as for `FeedForward`.
        activation: of the gate, one of `ACTIVATIONS`.
        bias: whether the three maps add a constant; the paper leaves it out.
    """

    def __init__(
        self, d_model: int, d_ff: int, *, activation: str = "silu", dropout: float = 0.0, bias: bool = False
    ) -> None:
        super().__init__()
        self.activation = _activation(activation)
        self.gate = nn.Linear(d_model, d_ff, bias=bias)
        self.widen = nn.Linear(d_model, d_ff, bias=bias)
        self.narrow = nn.Linear(d_ff, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)
        _initialise(self.gate, self.widen, self.narrow)

    def forward(self, hidden: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Transform each position by itself."""
        check_shapes({"d_model": self.widen.in_features}, hidden=(hidden, "... d_model"))
        return self.narrow(self.dropout(self.activation(self.gate(hidden)) * self.widen(hidden)))


class ClampedFeedForward(GatedFeedForward):
    r"""The gated network of gpt-oss: $\big(g\,\sigma(1.702\,g) \odot (u + 1)\big)\,W_2 + b_2$, bounded inside.

    $g = \min(x W_g + b_g, 7)$ and $u = \mathrm{clip}(x W_1 + b_1, -7, 7)$. The gate is a GELU by the approximation of
    Hendrycks and Gimpel (2016), section 2; with $u + 1$ the network begins near an ungated one. The report (OpenAI et
    al. 2025, section 2.1) calls it an unconventional SwiGLU with clamping and a residual; the numbers are those of the
    released code.

    Args:
        d_model, d_ff, dropout: as for `FeedForward`.
    """

    LIMIT = 7.0
    """What the gate and what passes it are bounded by."""

    def __init__(self, d_model: int, d_ff: int, *, dropout: float = 0.0) -> None:
        super().__init__(d_model, d_ff, dropout=dropout, bias=True)

    def forward(self, hidden: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Transform each position by itself."""
        check_shapes({"d_model": self.widen.in_features}, hidden=(hidden, "... d_model"))
        gate = self.gate(hidden).clamp(max=self.LIMIT)
        passed = self.widen(hidden).clamp(-self.LIMIT, self.LIMIT) + 1
        return self.narrow(self.dropout(ACTIVATIONS["quick_gelu"](gate) * passed))


def _activation(name: str) -> Callable[[Tensor], Tensor]:
    if name not in ACTIVATIONS:
        raise ValueError(f"activation must be one of {sorted(ACTIVATIONS)}, but is {name!r}")
    return ACTIVATIONS[name]


def _initialise(*projections: nn.Linear) -> None:
    """Start weights by Glorot and Bengio (2010), biases at zero."""
    for projection in projections:
        nn.init.xavier_uniform_(projection.weight)
        if projection.bias is not None:
            nn.init.zeros_(projection.bias)
