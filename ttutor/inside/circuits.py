r"""A head as two circuits: one decides where to look, the other what is carried over.

The four matrices of a head act in pairs. For streams $x_i$ (rows), and leaving biases out,

$$\mathrm{score}_{ij} = x_i \, W_{QK} \, x_j^\top, \qquad
  \mathrm{written}_i = \sum_j A_{ij} \, x_j \, W_{OV},$$

with $W_{QK} = s\,W_Q^\top W_K$ and $W_{OV} = W_V^\top W_O^\top$ in terms of the stored weights of one head. Both are
``d_model`` by ``d_model`` but only of rank ``d_head``. Nothing else of the four matrices can be seen from outside.

Elhage et al. (2021), "A Mathematical Framework for Transformer Circuits". Differs from the paper: our vectors are rows,
theirs columns, so each matrix here is the transpose of theirs or stands on the other side.
"""

from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor

from ttutor.multihead import MultiHeadAttention
from ttutor.shapes import check_shapes


def qk_circuit(attention: MultiHeadAttention, head: int) -> Float[Tensor, "d_model d_model"]:
    """Where to look: query stream times this matrix times key stream is the head's score, scale included.

    Biases add terms that depend on the key alone (which matter) and on the query alone (which the softmax removes);
    rotary positions stand between the two factors and are left out.

    Example:
        >>> import torch
        >>> _ = torch.manual_seed(0)
        >>> attention, hidden = MultiHeadAttention(d_model=6, n_heads=3, bias=False), torch.randn(1, 4, 6)
        >>> weights = (hidden[0] @ qk_circuit(attention, 1) @ hidden[0].T).softmax(dim=-1)
        >>> from ttutor.inside import capture
        >>> with capture(attention, "weights") as seen:
        ...     _ = attention(hidden)
        >>> torch.allclose(weights, seen["weights"][0, 1], atol=1e-6)
        True
    """
    to_query, to_key, _, _ = _head_weights(attention, head)
    scale = attention.d_head**-0.5 if attention.scale is None else attention.scale
    return scale * einsum(to_query, to_key, "d_head queries, d_head keys -> queries keys")


def ov_circuit(attention: MultiHeadAttention, head: int) -> Float[Tensor, "d_model d_model"]:
    """What is carried over: a token's stream times this matrix is what the head writes per unit of weight on it."""
    _, _, to_value, to_output = _head_weights(attention, head)
    return einsum(to_value, to_output, "d_head read, written d_head -> read written")


def head_writes(
    attention: MultiHeadAttention, context: Float[Tensor, "batch heads queries d_head"]
) -> Float[Tensor, "batch heads queries d_model"]:
    """What each head adds to the layer's output; with the output bias they add up to it.

    Args:
        attention: the layer.
        context: its captured ``context``.
    """
    sizes = {"heads": attention.n_heads, "d_head": attention.d_head}
    check_shapes(sizes, context=(context, "batch heads queries d_head"))
    to_output = rearrange(
        attention.to_output.weight, "d_model (heads d_head) -> heads d_head d_model", heads=attention.n_heads
    )
    pattern = "batch heads queries d_head, heads d_head d_model -> batch heads queries d_model"
    return einsum(context, to_output, pattern)


def _head_weights(attention: MultiHeadAttention, head: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The weights of one head's four projections; its keys and values may be shared with other heads."""
    _check_head(head, attention.n_heads)
    kv_head = head * attention.n_kv_heads // attention.n_heads
    rows, kv_rows = (slice(i * attention.d_head, (i + 1) * attention.d_head) for i in (head, kv_head))
    return (
        attention.to_query.weight[rows],
        attention.to_key.weight[kv_rows],
        attention.to_value.weight[kv_rows],
        attention.to_output.weight[:, rows],
    )


def _check_head(head: int, n_heads: int) -> None:
    if not 0 <= head < n_heads:
        raise IndexError(f"this layer has heads 0 to {n_heads - 1}, but head {head} was asked for")
