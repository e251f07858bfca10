"""What stands around attention in every block: normalisation, the feed-forward network, and the residual connection."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.shapes import check_shapes

__all__ = ["FeedForward", "LayerNorm", "PostNorm", "PreNorm", "layer_norm", "residual_sublayer"]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": nn.functional.relu, "gelu": nn.functional.gelu}


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

    Example:
        >>> layer_norm(torch.tensor([1.0, 2.0, 3.0]), torch.ones(3), torch.zeros(3))
        tensor([-1.2247,  0.0000,  1.2247])
    """
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


class FeedForward(nn.Module):
    r"""A two-layer network applied to every position alike: $\mathrm{FFN}(x) = \phi(x W_1 + b_1)\,W_2 + b_2$.

    Vaswani et al. (2017), equation 2, where $\phi$ is ReLU; BERT and GPT-2 use GELU.

    Args:
        d_model: width of what comes in and goes out.
        d_ff: width between the two maps.
        activation: ``"relu"`` or ``"gelu"``.
        dropout: probability of dropping an inner feature while training.

    Differs from the paper: section 5.4 drops features of the sublayer's output only, which `PreNorm` and `PostNorm` do;
    the dropout here is for models that drop inner features as well.

    Raises:
        ValueError: the activation is unknown.
    """

    def __init__(self, d_model: int, d_ff: int, *, activation: str = "relu", dropout: float = 0.0) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {sorted(ACTIVATIONS)}, but is {activation!r}")
        self.activation = ACTIVATIONS[activation]
        self.widen = nn.Linear(d_model, d_ff)
        self.narrow = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)
        for projection in (self.widen, self.narrow):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)

    def forward(self, hidden: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Transform each position by itself."""
        return self.narrow(self.dropout(self.activation(self.widen(hidden))))


class PostNorm(nn.Module):
    r"""Residual connection with the norm after the sum: $\mathrm{LayerNorm}(x + f(x))$.

    Vaswani et al. (2017), section 3.1; dropout on the sublayer's output by section 5.4.

    Args:
        d_model: number of features of a token.
        dropout: probability of dropping a feature of what the sublayer writes, while training.
    """

    def __init__(self, d_model: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, hidden: Float[Tensor, "batch tokens d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Add what the sublayer makes of the stream, then normalise the stream."""
        return self.norm(hidden + self.dropout(sublayer(hidden)))


class PreNorm(nn.Module):
    r"""Residual connection with the norm inside the branch: $x + f(\mathrm{LayerNorm}(x))$.

    Xiong et al. (2020), figure 1 (b). The stream itself is never normalised, so a stack ends with a norm of its own.

    Args:
        d_model: number of features of a token.
        dropout: probability of dropping a feature of what the sublayer writes, while training.
    """

    def __init__(self, d_model: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, hidden: Float[Tensor, "batch tokens d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Add what the sublayer makes of the normalised stream."""
        return hidden + self.dropout(sublayer(self.norm(hidden)))


def residual_sublayer(norm: str, d_model: int, dropout: float = 0.0) -> PreNorm | PostNorm:
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
    return kinds[norm](d_model, dropout)
