"""Normalisation: LayerNorm and RMSNorm, each as its formula and as a module."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.names import Answering
from ttutor.shapes import check_shapes


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
    check_shapes(hidden=(hidden, "... d_model"), gain=(gain, "d_model"), bias=(bias, "d_model"))
    wide = hidden.to(torch.promote_types(hidden.dtype, torch.float32))  # the square of 256 overflows float16
    centred = wide - wide.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    return (gain * centred * torch.rsqrt(variance + eps) + bias).to(hidden.dtype)


class LayerNorm(Answering, nn.Module):
    """`layer_norm` with its parameters; it runs torch's fused kernel, which the tests hold equal to the formula.

    Args:
        d_model: number of features of a token.
        eps: added to the variance, inside the root.
        bias: whether a learned bias is added.
    """

    def __init__(self, d_model: int, eps: float = 1e-5, *, bias: bool = True) -> None:
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model)) if bias else None

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

    Example:
        >>> rms_norm(torch.tensor([1.0, -1.0, 2.0, -2.0]), torch.ones(4))
        tensor([ 0.6325, -0.6325,  1.2649, -1.2649])
    """
    check_shapes(hidden=(hidden, "... d_model"), gain=(gain, "d_model"))
    wide = hidden.to(torch.promote_types(hidden.dtype, torch.float32))  # the square of 256 overflows float16
    mean_square = wide.square().mean(dim=-1, keepdim=True)
    return (gain * wide * torch.rsqrt(mean_square + eps)).to(hidden.dtype)


class RMSNorm(Answering, nn.Module):
    """`rms_norm` with its parameter; it runs torch's function, which the tests hold equal to the formula.

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
