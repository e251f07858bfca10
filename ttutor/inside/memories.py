r"""The feed-forward network as a memory of keys and values.

$$\mathrm{FFN}(x) = \sum_{i=1}^{d_\mathrm{ff}} c_i\, v_i + b_2, \qquad c_i = \phi(x \cdot k_i + b_{1,i})$$

The rows $k_i$ of the first matrix are patterns that the input is compared with, the columns $v_i$ of the second what is
added to the stream, by as much as the pattern fits. Geva et al. (2021), section 2. The sum is an identity; that a key
stands for something a reader would recognise is an observation, to be checked key by key.
"""

from typing import NamedTuple

from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from ttutor.inside.capture import capture
from ttutor.layers import FeedForward, GatedFeedForward
from ttutor.shapes import check_shapes


class Activation(NamedTuple):
    """One place where a key fits: the row of the batch, the token, and by how much."""

    row: int
    token: int
    coefficient: float


def memory_keys(feed_forward: FeedForward | GatedFeedForward) -> Float[Tensor, "d_ff d_model"]:
    """What each memory responds to: the rows of the first matrix (of the gate, where there is one)."""
    return (feed_forward.gate if isinstance(feed_forward, GatedFeedForward) else feed_forward.widen).weight


def memory_values(feed_forward: FeedForward | GatedFeedForward) -> Float[Tensor, "d_ff d_model"]:
    """What each memory adds to the stream: the columns of the last matrix.

    Read them as words by `ttutor.inside.read_out`.
    """
    return rearrange(feed_forward.narrow.weight, "d_model d_ff -> d_ff d_model")


def memory_coefficients(
    feed_forward: FeedForward | GatedFeedForward, hidden: Float[Tensor, "... d_model"]
) -> Float[Tensor, "... d_ff"]:
    """How much of each memory is taken for each input: what the last matrix is multiplied with.

    Inside a model, capture ``"....feed_forward.narrow.input"``, which is the same.

    Example:
        >>> import torch
        >>> network, hidden = FeedForward(d_model=4, d_ff=8), torch.randn(5, 4)
        >>> total = memory_coefficients(network, hidden) @ memory_values(network) + network.narrow.bias
        >>> torch.allclose(total, network(hidden), atol=1e-6)
        True
    """
    with capture(feed_forward, "narrow.input") as seen:
        feed_forward(hidden)
    return seen["narrow.input"]


def top_inputs(coefficients: Float[Tensor, "batch tokens d_ff"], key: int, n: int = 10) -> list[Activation]:
    """The tokens to which one key responds most, the strongest first.

    Geva et al. (2021), section 3, read what such inputs have in common. Padding should be set to minus infinity first.

    Example:
        >>> import torch
        >>> top_inputs(torch.tensor([[[0.5], [2.0]], [[1.0], [0.0]]]), key=0, n=2)
        [Activation(row=0, token=1, coefficient=2.0), Activation(row=1, token=0, coefficient=1.0)]
    """
    _, n_tokens, d_ff = check_shapes(coefficients=(coefficients, "batch tokens d_ff")).values()
    if not 0 <= key < d_ff:
        raise IndexError(f"there are keys 0 to {d_ff - 1}, but key {key} was asked for")
    flat = rearrange(coefficients[..., key], "batch tokens -> (batch tokens)")
    values, places = flat.topk(min(n, len(flat)))
    return [
        Activation(place // n_tokens, place % n_tokens, value)
        for place, value in zip(places.tolist(), values.tolist(), strict=True)
    ]
