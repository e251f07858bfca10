r"""What a training step must keep between the forward and the backward pass, in bytes.

Korthikanti et al. (2022), section 4, count $34\,n\,d + 5\,h\,n^2$ bytes for each layer and sequence, in half precision,
with dropout everywhere and $d_\mathrm{ff} = 4d$. Here it is the same sum with each term named, for the modules of this
package. For a layer it holds to the byte in float32 and float64 on a CPU, which the tests make sure of by watching what
autograd keeps.

Differs from the paper: two numbers for each token and norm (mean and deviation) are counted too; and where a mask is
given but no weights are dropped, ours keep the weights twice, once for the gradient of the softmax and once, with the
rows of blind queries emptied, for that of the blend. Dropout keeps a value for each value, as on a CPU; the paper
counts the one byte that a GPU keeps.
"""

from collections import Counter
from dataclasses import dataclass

import torch

from ttutor.transformer.blueprint import Blueprint, Stack


@dataclass(frozen=True, kw_only=True)
class ActivationPolicy:
    """How values are kept.

    Attributes:
        dtype: of all values.
        is_tiled: whether the attention function keeps no weights and makes them anew for the backward pass, as
            FlashAttention does (Dao et al. 2022, section 3.1); it keeps a float32 for each head and query instead.
    """

    dtype: torch.dtype = torch.float32
    is_tiled: bool = False


PLAIN = ActivationPolicy()


def layer_activations(
    stack: Stack, n_tokens: int, n_memory: int = 0, *, batch: int = 1, policy: ActivationPolicy = PLAIN
) -> dict[str, int]:
    r"""The bytes that one layer keeps, by what they are.

    For each token, in values: $2d$ for each norm and what follows it, $4\,h\,d_\mathrm{head}$ for each attention
    (queries, keys, values, context), $d_\mathrm{ff}$ for each factor and function of the feed-forward network. For each
    pair of tokens: a weight for each head, twice with a mask.

    Args:
        stack: the layer's sizes.
        n_tokens: length of the sequence.
        n_memory: length of the memory, where there is cross-attention.
        batch: how many sequences.
        policy: how values are kept.

    Left out: the angles of rotary positions, and float32 copies that RMSNorm makes of half-precision values.
    """
    n_sublayers = 3 if stack.cross_attention else 2
    per_value = policy.dtype.itemsize
    kept = Counter(
        {
            "norms": n_sublayers * n_tokens * (stack.d_model + _beside_its_input(stack)) * per_value,
            "inputs of the sublayers": n_sublayers * n_tokens * stack.d_model * per_value,
            "feed-forward": n_tokens * stack.d_ff * _inner_vectors(stack) * per_value,
        }
    )
    if stack.dropout:
        dropped = n_sublayers * stack.d_model + (stack.d_ff if stack.drops_inside else 0)
        kept["dropout"] = n_tokens * dropped * per_value
    kept.update(_attention(stack, n_tokens, n_tokens, stack.is_causal, policy))
    if stack.cross_attention:
        kept.update(_attention(stack, n_tokens, n_memory, False, policy))
    return {what: batch * count for what, count in kept.items()}


def _beside_its_input(stack: Stack) -> int:
    """What a norm keeps for each token besides its input: mean and deviation, or its result before the gain."""
    return 1 + stack.d_model if stack.rms else 2


def _inner_vectors(stack: Stack) -> int:
    """How many vectors of width ``d_ff`` a feed-forward network keeps for each token."""
    if stack.gated:
        n_factors = 3  # the open gate, what passes it, and their product
        return n_factors if stack.activation == "relu" else n_factors + 1
    result_is_input_of_next = stack.activation == "relu" and not (stack.drops_inside and stack.dropout)
    return 1 if result_is_input_of_next else 2  # ReLU's gradient follows from its result, others' from their argument


def _attention(stack: Stack, n_queries: int, n_keys: int, is_causal: bool, policy: ActivationPolicy) -> dict[str, int]:
    """What one attention keeps for a sequence, besides its input."""
    width, n_weights = stack.n_heads * stack.d_head, stack.n_heads * n_queries * n_keys
    if policy.is_tiled:
        keys_and_values = 2 * n_keys * stack.n_kv_heads * stack.d_head
        return {
            "queries, keys, values, context": (2 * n_queries * width + keys_and_values) * policy.dtype.itemsize,
            "weights": n_queries * stack.n_heads * torch.float32.itemsize,
        }
    drops_weights = stack.drops_inside and stack.dropout > 0
    kept = {
        "queries, keys, values, context": 2 * (n_queries + n_keys) * width * policy.dtype.itemsize,
        "weights": n_weights * policy.dtype.itemsize * (2 if stack.is_masked or drops_weights else 1),
    }
    if drops_weights:
        kept["dropout"] = n_weights * policy.dtype.itemsize
    if stack.is_masked:
        allowed = n_queries * n_keys if is_causal else n_keys
        kept["masks"] = allowed + stack.n_heads * n_queries  # which queries are blind; a byte each
    return kept


def stack_activations(
    stack: Stack, n_tokens: int, n_memory: int = 0, *, batch: int = 1, policy: ActivationPolicy = PLAIN
) -> dict[str, int]:
    """The bytes that all layers of a stack keep, by what they are.

    Arguments as for `layer_activations`. Of a mixture of experts it counts the networks that a token visits, of latent
    attention the plain form; routers and latent vectors are left out.
    """
    if stack.latent is not None:
        width = stack.latent.d_head + stack.latent.d_rotary
        stack = stack.replace(latent=None, n_kv_heads=stack.n_heads, d_head=width)
    layers = [(stack.n_layers, stack)]
    if stack.experts is not None:
        visited = (stack.experts.n_chosen + stack.experts.n_shared) * stack.experts.d_ff
        n_dense = stack.experts.n_dense_layers
        layers = [(n_dense, stack), (stack.n_layers - n_dense, stack.replace(d_ff=visited))]
    kept: Counter[str] = Counter()
    for n_layers, layer in layers:
        of_one = layer_activations(layer, n_tokens, n_memory, batch=batch, policy=policy)
        kept.update({what: n_layers * count for what, count in of_one.items()})
    return dict(kept)


def activations_around(
    blueprint: Blueprint, n_tokens: int, n_memory: int, *, batch: int = 1, policy: ActivationPolicy = PLAIN
) -> dict[str, int]:
    """The bytes that are kept around the layers: each stack's last norm, its memory, embeddings and projections.

    Of the embeddings it is the dropout, of the projections the inputs, and of the output projection the
    log-probabilities as well, which the cross-entropy keeps. Arguments as for `activation_bytes`.
    """
    kept: Counter[str] = Counter()
    for stack, length in zip(blueprint.stacks, blueprint.lengths(n_tokens, n_memory), strict=True):
        if stack.final_norm:
            kept[stack.name] += length * (stack.d_model + _beside_its_input(stack))
        if stack.cross_attention:  # all layers share the memory
            kept[stack.name] += n_memory * stack.d_model
        if stack.dropout:
            kept["embeddings"] += length * stack.d_model
    for projection in blueprint.projections:
        width = projection.d_in + (projection.d_out if projection.part == "output projection" else 0)
        kept[projection.part] += projection.n_rows(n_tokens) * width
    return {what: batch * policy.dtype.itemsize * count for what, count in kept.items()}


def activation_bytes(
    blueprint: Blueprint,
    n_tokens: int,
    n_memory: int | None = None,
    *,
    batch: int = 1,
    policy: ActivationPolicy = PLAIN,
) -> dict[str, int]:
    """The bytes that a whole model keeps until the backward pass, by stack and in what stands around them.

    Left out besides what `layer_activations` leaves out: token ids and other integers, norms outside the stacks, and
    whatever a head does between two projections.

    Args:
        blueprint: the model.
        n_tokens: length of the sequence; the target's, if there are two stacks.
        n_memory: length of the source, if there are two; as long when left out.
        batch, policy: as for `layer_activations`.
    """
    n_memory = n_tokens if n_memory is None else n_memory
    kept = Counter(activations_around(blueprint, n_tokens, n_memory, batch=batch, policy=policy))
    for stack, length in zip(blueprint.stacks, blueprint.lengths(n_tokens, n_memory), strict=True):
        kept[stack.name] += sum(stack_activations(stack, length, n_memory, batch=batch, policy=policy).values())
    return dict(kept)
