r"""Convolution over a sequence: every token sees its neighbours, all tokens at once, and depth widens the view."""

from collections.abc import Sequence

import torch
from einops import einsum, rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ttutor.shapes import check_shapes


def convolve(
    hidden: Float[Tensor, "batch tokens d_input"],
    weight: Float[Tensor, "taps d_input d_model"],
    *,
    dilation: int = 1,
    causal: bool = False,
) -> Float[Tensor, "batch tokens d_model"]:
    r"""Each token receives a linear map of each of its neighbours, one map for each distance.

    $$y_t = \sum_{j=0}^{k-1} x_{t + \delta(j - a)}\,W_j$$

    with $k$ taps, dilation $\delta$, and $a = k - 1$ (causal: the token itself comes last) or $a = (k-1)/2$ (centred).
    Beyond the ends of the sequence there are zeros. LeCun et al. (1989); dilated: Yu and Koltun (2016), section 2;
    causal: van den Oord et al. (2016), section 2.1.

    Args:
        hidden: one vector for each token.
        weight: one matrix for each tap, the leftmost neighbour's first.
        dilation: the distance between neighbouring taps.
        causal: look only at the token itself and to its left.

    Example:
        >>> hidden = torch.tensor([[[1.0], [10.0], [100.0]]])
        >>> convolve(hidden, torch.ones(3, 1, 1)).flatten()
        tensor([ 11., 111., 110.])
        >>> convolve(hidden, torch.ones(3, 1, 1), causal=True).flatten()
        tensor([  1.,  11., 111.])
    """
    check_shapes(hidden=(hidden, "batch tokens d_input"), weight=(weight, "taps d_input d_model"))
    n_tokens, n_taps = hidden.shape[1], weight.shape[0]
    _check_taps(n_taps, dilation, causal)
    reach = dilation * (n_taps - 1)
    left = reach if causal else reach // 2
    padded = nn.functional.pad(hidden, (0, 0, left, reach - left))  # torch counts axes from the last: features, tokens
    shifted = torch.stack([padded[:, j * dilation : j * dilation + n_tokens] for j in range(n_taps)])
    return einsum(shifted, weight, "taps batch tokens d_input, taps d_input d_model -> batch tokens d_model")


def receptive_field(kernel_size: int, dilations: Sequence[int]) -> int:
    r"""How many input tokens one output token can depend on: $1 + (k - 1) \sum_l \delta_l$.

    For $L$ contiguous layers ($\delta = 1$) that is $1 + L(k - 1)$, linear in depth; with $\delta = 1, k, k^2, \dots$
    it is $k^L$, and nothing in between is missed (except near the ends of the sequence). Yu and Koltun (2016), section
    2, double the dilation from layer to layer.

    Args:
        kernel_size: $k$, the number of taps of each layer.
        dilations: $\delta_l$, one for each layer.

    Example:
        >>> receptive_field(3, [1] * 5), receptive_field(3, [1, 3, 9, 27, 81])
        (11, 243)
    """
    for dilation in dilations:
        _check_taps(kernel_size, dilation, causal=True)
    return 1 + (kernel_size - 1) * sum(dilations)


class Convolution(nn.Module):
    """`convolve` with its parameters, and a bias.

    Args:
        d_input: width of what comes in.
        d_model: width of what goes out.
        kernel_size: number of taps; odd unless causal.
        dilation: the distance between neighbouring taps.
        causal: look only at the token itself and to its left.
    """

    def __init__(
        self, d_input: int, d_model: int, kernel_size: int, *, dilation: int = 1, causal: bool = False
    ) -> None:
        super().__init__()
        _check_taps(kernel_size, dilation, causal)
        self.dilation, self.causal = dilation, causal
        bound = (d_input * kernel_size) ** -0.5
        self.weight = nn.Parameter(torch.empty(kernel_size, d_input, d_model).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(
        self,
        hidden: Float[Tensor, "batch tokens d_input"],
        is_real: Bool[Tensor, "batch tokens"] | None = None,
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Mix neighbours; padding counts as the zeros beyond the ends."""
        if is_real is not None:
            check_shapes(hidden=(hidden, "batch tokens d_input"), is_real=(is_real, "batch tokens"))
            hidden = hidden.masked_fill(~rearrange(is_real, "batch tokens -> batch tokens 1"), 0.0)
        return convolve(hidden, self.weight, dilation=self.dilation, causal=self.causal) + self.bias


class ConvolutionEncoder(nn.Module):
    r"""A stack of convolutions with ReLU and residual connections: $x + \mathrm{ReLU}(\mathrm{conv}(x))$ in each layer.

    A baseline in the spirit of Kalchbrenner et al. (2016), with neither their norm nor their gates.

    Args:
        d_model: width of the stream.
        kernel_size: taps of each layer; odd unless causal.
        dilations: one for each layer: ``[1] * 5`` is contiguous, ``[1, 2, 4, 8]`` doubles the reach at each layer.
        causal: look only at each token itself and to its left.
    """

    def __init__(self, d_model: int, kernel_size: int, dilations: Sequence[int], *, causal: bool = False) -> None:
        super().__init__()
        self.receptive_field = receptive_field(kernel_size, dilations)
        self.layers = nn.ModuleList(
            Convolution(d_model, d_model, kernel_size, dilation=dilation, causal=causal) for dilation in dilations
        )

    def forward(
        self,
        hidden: Float[Tensor, "batch tokens d_model"],
        is_real: Bool[Tensor, "batch tokens"] | None = None,
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Send the stream through all layers; at padding the result has no meaning."""
        for layer in self.layers:
            hidden = hidden + torch.relu(layer(hidden, is_real))
        return hidden


def _check_taps(n_taps: int, dilation: int, causal: bool) -> None:
    if n_taps < 1 or dilation < 1:
        raise ValueError(f"kernel_size and dilation must be at least 1, but are {n_taps} and {dilation}")
    if not causal and n_taps % 2 == 0:
        raise ValueError(f"a centred convolution needs an odd number of taps, but has {n_taps}; or make it causal")
