"""What stands around attention in every block: normalisation, the feed-forward network, and the residual connection."""

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.shapes import ShapeError, check_shapes

__all__ = [
    "ACTIVATIONS",
    "FeedForward",
    "GatedFeedForward",
    "LayerNorm",
    "PostNorm",
    "PreNorm",
    "RMSNorm",
    "layer_norm",
    "residual_sublayer",
    "rms_norm",
]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": nn.functional.relu,
    "gelu": nn.functional.gelu,
    "gelu_tanh": partial(nn.functional.gelu, approximate="tanh"),
    "silu": nn.functional.silu,
}
"""Elementwise functions between the two maps of a feed-forward network, by name.

GELU is $x\\,\\Phi(x)$ (Hendrycks and Gimpel 2016); ``gelu_tanh`` is their approximation of it, which GPT-2 and T5 1.1
compute. SiLU, or Swish, is $x\\,\\sigma(x)$.
"""


def layer_norm(
    hidden: Float[Tensor, "... d_model"],
    gain: Float[Tensor, " d_model"],
    bias: Float[Tensor, " d_model"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d_model"]:
    r"""Give each token's vector mean 0 and variance 1, then a learned gain and bias for each feature.

    $$\mathrm{LayerNorm}(x) = \gamma \odot \frac{x - \bar{x}}{\sqrt{\mathrm{var}(x) + \epsilon}} + \beta$$

    Ba et al. (2016), section 3. Mean and (biased) variance run over the features of one token, so no token's result
    depends on any other token. Note that $\epsilon$ stands inside the root.

    Raises:
        ShapeError: gain or bias is not as wide as the hidden vectors.

    Example:
        >>> layer_norm(torch.tensor([1.0, 2.0, 3.0]), torch.ones(3), torch.zeros(3))
        tensor([-1.2247,  0.0000,  1.2247])
    """
    check_shapes(hidden=(hidden, "... d_model"), gain=(gain, "d_model"), bias=(bias, "d_model"))
    centred = hidden - hidden.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    return gain * centred * torch.rsqrt(variance + eps) + bias


class LayerNorm(nn.Module):
    """`layer_norm` with its parameters; it runs torch's fused kernel, which the tests hold equal to the formula.

    Args:
        d_model: number of features of a token.
        eps: added to the variance, inside the root.
    """

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, hidden: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Normalise each token's vector."""
        check_shapes({"d_model": len(self.gain)}, hidden=(hidden, "... d_model"))
        return nn.functional.layer_norm(hidden, self.gain.shape, self.gain, self.bias, self.eps)


def rms_norm(
    hidden: Float[Tensor, "... d_model"], gain: Float[Tensor, " d_model"], eps: float = 1e-6
) -> Float[Tensor, "... d_model"]:
    r"""Give each token's vector a mean square of 1, then a learned gain for each feature; the mean is left alone.

    $$\mathrm{RMSNorm}(x) = \gamma \odot \frac{x}{\sqrt{\frac{1}{d}\sum_i x_i^2 + \epsilon}}$$

    Zhang and Sennrich (2019), equation 4. On a vector whose mean is zero it is `layer_norm` without its bias.

    Raises:
        ShapeError: the gain is not as wide as the hidden vectors.

    Example:
        >>> rms_norm(torch.tensor([1.0, -1.0, 2.0, -2.0]), torch.ones(4))
        tensor([ 0.6325, -0.6325,  1.2649, -1.2649])
    """
    check_shapes(hidden=(hidden, "... d_model"), gain=(gain, "d_model"))
    mean_square = hidden.square().mean(dim=-1, keepdim=True)
    return gain * hidden * torch.rsqrt(mean_square + eps)


class RMSNorm(nn.Module):
    """`rms_norm` with its parameter; it runs torch's fused kernel, which the tests hold equal to the formula.

    Args:
        d_model: number of features of a token.
        eps: added to the mean square, inside the root.
    """

    def __init__(self, d_model: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(d_model))

    def forward(self, hidden: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Normalise each token's vector."""
        check_shapes({"d_model": len(self.gain)}, hidden=(hidden, "... d_model"))
        return nn.functional.rms_norm(hidden, self.gain.shape, self.gain, self.eps)


class FeedForward(nn.Module):
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

    Raises:
        ValueError: the activation is unknown.
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


class GatedFeedForward(nn.Module):
    r"""A feed-forward network in which one map opens and closes the other: $(\phi(x W_g) \odot x W_1)\,W_2$.

    Shazeer (2020), section 2: with SiLU it is SwiGLU, with GELU it is GeGLU. Its three matrices have as many parameters
    as the two of `FeedForward` when ``d_ff`` is two thirds as wide.

    Args:
        d_model, d_ff, dropout: as for `FeedForward`.
        activation: of the gate, one of `ACTIVATIONS`.
        bias: whether the three maps add a constant; the paper leaves it out.

    Raises:
        ValueError: the activation is unknown.

    Example:
        >>> GatedFeedForward(d_model=8, d_ff=16, activation="silu")(torch.randn(2, 5, 8)).shape
        torch.Size([2, 5, 8])
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


class PostNorm(nn.Module):
    r"""Residual connection with the norm after the sum: $\mathrm{LayerNorm}(x + f(x))$.

    Vaswani et al. (2017), section 3.1; dropout on the sublayer's output by section 5.4.

    Args:
        d_model: number of features of a token.
        dropout: probability of dropping a feature of what the sublayer writes, while training.
        make_norm: makes the norm from ``d_model``.
    """

    def __init__(
        self, d_model: int, dropout: float = 0.0, *, make_norm: Callable[[int], nn.Module] = LayerNorm
    ) -> None:
        super().__init__()
        self.norm = make_norm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, hidden: Float[Tensor, "batch tokens d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Add what the sublayer makes of the stream, then normalise the stream."""
        return self.norm(_sum(hidden, self.dropout(sublayer(hidden))))


class PreNorm(nn.Module):
    r"""Residual connection with the norm inside the branch: $x + f(\mathrm{LayerNorm}(x))$.

    Xiong et al. (2020), figure 1 (b). The stream itself is never normalised, so a stack ends with a norm of its own.

    Args:
        d_model: number of features of a token.
        dropout: probability of dropping a feature of what the sublayer writes, while training.
        make_norm: makes the norm from ``d_model``.
    """

    def __init__(
        self, d_model: int, dropout: float = 0.0, *, make_norm: Callable[[int], nn.Module] = LayerNorm
    ) -> None:
        super().__init__()
        self.norm = make_norm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, hidden: Float[Tensor, "batch tokens d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Add what the sublayer makes of the normalised stream."""
        return _sum(hidden, self.dropout(sublayer(self.norm(hidden))))


def _sum(hidden: Float[Tensor, "..."], written: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Stream and what a sublayer wrote, which must be of one shape: broadcasting would hide a sublayer's fault."""
    if written.shape != hidden.shape:
        raise ShapeError(f"a sublayer must give what it got, {tuple(hidden.shape)}, but gave {tuple(written.shape)}")
    return hidden + written


def residual_sublayer(
    norm: str, d_model: int, dropout: float = 0.0, *, make_norm: Callable[[int], nn.Module] = LayerNorm
) -> PreNorm | PostNorm:
    """Pick the residual connection by the place of its norm, ``"post"`` (2017) or ``"pre"`` (most models since 2019).

    Raises:
        ValueError: the place is neither.

    Example:
        >>> residual_sublayer("pre", 8)  # doctest: +ELLIPSIS
        PreNorm(...
    """
    kinds = {"post": PostNorm, "pre": PreNorm}
    if norm not in kinds:
        raise ValueError(f'norm must be "post" or "pre", but is {norm!r}')
    return kinds[norm](d_model, dropout, make_norm=make_norm)
