"""Additive attention: the lookup of 2014, which let a decoder look back at every word instead of at one vector."""

import torch
from einops import einsum, rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ttutor.attention import attention_weights
from ttutor.shapes import check_shapes


def additive_weights(
    q: Float[Tensor, "batch queries d_head"],
    k: Float[Tensor, "batch keys d_head"],
    direction: Float[Tensor, " d_head"],
    is_real: Bool[Tensor, "batch keys"] | None = None,
) -> Float[Tensor, "batch queries keys"]:
    r"""How much each query looks at each key, where a small network with one hidden layer gives the score.

    $$A_{ij} = \mathrm{softmax}_j(e_{ij}), \qquad e_{ij} = v^\top \tanh(q_i + k_j)$$

    Bahdanau et al. (2015), section 3.1, equation 6, and appendix A.1.2. Mask and softmax are those of
    `ttutor.attention.attention_weights`: its scores are dot products plus a bias, and here the bias is all there is.

    Args:
        q: the queries after their projection.
        k: the keys after theirs.
        direction: the vector $v$ that turns the hidden layer into a score.
        is_real: which keys count (True = real); all when left out.

    Example:
        >>> q, k = torch.zeros(1, 1, 2), torch.tensor([[[2.0, 0.0], [0.0, 2.0], [2.0, 0.0]]])
        >>> additive_weights(q, k, torch.tensor([3.0, 0.0]))
        tensor([[[0.4865, 0.0270, 0.4865]]])
    """
    named = {"is_real": (is_real, "batch keys")} if is_real is not None else {}
    check_shapes(q=(q, "batch queries d_head"), k=(k, "batch keys d_head"), direction=(direction, "d_head"), **named)
    pairs = rearrange(q, "batch queries d_head -> batch queries 1 d_head") + rearrange(
        k, "batch keys d_head -> batch 1 keys d_head"
    )
    scores = einsum(torch.tanh(pairs), direction, "batch queries keys d_head, d_head -> batch queries keys")
    mask = None if is_real is None else rearrange(is_real, "batch keys -> batch 1 keys")
    no_features = slice(0, 0)  # the dot product of no features is 0
    return attention_weights(q[..., no_features], k[..., no_features], mask, bias=scores, scale=1.0)


class AdditiveAttention(nn.Module):
    r"""`additive_weights` with its parameters $W$, $U$ and $v$: $e_{ij} = v^\top \tanh(s_i W + h_j U)$.

    Bahdanau et al. (2015), section 3.1 and appendix A.1.2.

    Args:
        d_query: width of what looks, the decoder's hidden vector.
        d_memory: width of what is looked at, the encoder's hidden vectors.
        d_head: width of the space in which the two meet.
    """

    def __init__(self, d_query: int, d_memory: int, d_head: int) -> None:
        super().__init__()
        self.d_query, self.d_memory = d_query, d_memory
        self.to_query = nn.Linear(d_query, d_head, bias=False)
        self.to_key = nn.Linear(d_memory, d_head, bias=False)
        self.direction = nn.Parameter(torch.empty(d_head).uniform_(-(d_head**-0.5), d_head**-0.5))

    def forward(
        self,
        query: Float[Tensor, "batch queries d_query"],
        memory: Float[Tensor, "batch keys d_memory"],
        is_real: Bool[Tensor, "batch keys"] | None = None,
        k: Float[Tensor, "batch keys d_head"] | None = None,
    ) -> Float[Tensor, "batch queries d_memory"]:
        """The blend of the memory that each query receives; arguments as for `weights`."""
        weights = self.weights(query, memory, is_real, k)
        return einsum(weights, memory, "batch queries keys, batch keys d_memory -> batch queries d_memory")

    def weights(
        self,
        query: Float[Tensor, "batch queries d_query"],
        memory: Float[Tensor, "batch keys d_memory"],
        is_real: Bool[Tensor, "batch keys"] | None = None,
        k: Float[Tensor, "batch keys d_head"] | None = None,
    ) -> Float[Tensor, "batch queries keys"]:
        """How much each query looks at each vector of the memory.

        Args:
            query: what looks.
            memory: what is looked at.
            is_real: which vectors of the memory count (True = real); all when left out.
            k: ``to_key(memory)``, if it is at hand: it is the same at every step of a decoder.
        """
        check_shapes(
            {"d_query": self.d_query, "d_memory": self.d_memory},
            query=(query, "batch queries d_query"),
            memory=(memory, "batch keys d_memory"),
        )
        return additive_weights(self.to_query(query), self.to_key(memory) if k is None else k, self.direction, is_real)
