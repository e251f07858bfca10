"""What a stack of layers costs: the formulas of `ttutor.transformer.costs`, summed over its layers."""

from collections import Counter
from typing import Any

import torch

from ttutor.transformer import costs
from ttutor.transformer.blueprint import Experts, Stack


def stack_parameters(stack: Stack, *, only_active: bool = False) -> dict[str, int]:
    """A stack's parameters by part; layers that share theirs count once.

    Args:
        stack: its sizes.
        only_active: whether to leave out the experts that a token does not visit.
    """
    n_layers, n_attentions = stack.n_distinct_layers or stack.n_layers, 2 if stack.cross_attention else 1
    n_norms = n_layers * (n_attentions + 1) + stack.final_norm
    norms = n_norms * costs.norm_parameters(stack.d_model, rms=stack.rms)
    if stack.latent is None:
        attention = costs.attention_parameters(
            stack.d_model,
            n_heads=stack.n_heads,
            d_head=stack.d_head,
            n_kv_heads=stack.n_kv_heads,
            bias=stack.attention_bias,
        )
    else:
        widths: dict[str, Any] = stack.latent.to_dict()
        attention = costs.latent_attention_parameters(stack.d_model, n_heads=stack.n_heads, **widths)
        norms += n_layers * (stack.latent.d_latent + (stack.latent.d_query_latent or 0))
    feed_forward = costs.feed_forward_parameters(
        stack.d_model, stack.d_ff, gated=stack.gated, bias=stack.feed_forward_bias
    )
    n_dense = n_layers if stack.experts is None else stack.experts.n_dense_layers
    mixture = 0 if stack.experts is None else _mixture_parameters(stack, stack.experts, only_active)
    return {
        "attention": n_layers * n_attentions * attention,
        "feed-forward": n_dense * feed_forward + (n_layers - n_dense) * mixture,
        "norms": norms,
    }


def _mixture_parameters(stack: Stack, experts: Experts, only_active: bool) -> int:
    """The router, the experts and those that are shared, of one layer."""
    one = costs.feed_forward_parameters(stack.d_model, experts.d_ff, gated=stack.gated, bias=experts.bias)
    shared = costs.feed_forward_parameters(
        stack.d_model, experts.n_shared * experts.d_ff, gated=stack.gated, bias=False
    )
    router = costs.projection_parameters(stack.d_model, experts.n_experts, bias=experts.bias)
    return router + (experts.n_chosen if only_active else experts.n_experts) * one + shared


def stack_flops(stack: Stack, n_tokens: int, n_memory: int = 0) -> dict[str, int]:
    """Operations of a stack's matrix products, going forward through one sequence, by kind.

    Args:
        stack: its sizes.
        n_tokens: length of the sequence.
        n_memory: length of the memory, where there is cross-attention. Its keys and values are counted here.
    """
    flops: Counter[str] = Counter()
    widths: dict[str, Any] = {"n_heads": stack.n_heads, "d_head": stack.d_head}
    for n_keys in (n_tokens, n_memory) if stack.cross_attention else (n_tokens,):
        if stack.latent is None:
            flops["attention projections"] += costs.attention_projection_flops(
                n_tokens, n_keys, d_model=stack.d_model, n_kv_heads=stack.n_kv_heads, **widths
            )
        else:
            own: dict[str, Any] = stack.latent.to_dict()
            maps = costs.latent_attention_parameters(stack.d_model, n_heads=stack.n_heads, **own)
            flops["attention projections"] += 2 * n_tokens * maps
            widths |= {"d_head": stack.latent.d_head + stack.latent.d_rotary, "d_value": stack.latent.d_value}
        flops["scores and blend"] += costs.attention_flops(n_tokens, n_keys, **widths)
    counts = {kind: stack.n_layers * count for kind, count in flops.items()}
    dense = costs.feed_forward_flops(n_tokens, d_model=stack.d_model, d_ff=stack.d_ff, gated=stack.gated)
    n_dense = stack.n_layers if stack.experts is None else stack.experts.n_dense_layers
    counts["feed-forward"] = n_dense * dense
    if stack.experts is not None:
        visited = (stack.experts.n_chosen + stack.experts.n_shared) * stack.experts.d_ff
        mixture = costs.feed_forward_flops(n_tokens, d_model=stack.d_model, d_ff=visited, gated=stack.gated)
        router = costs.projection_flops(n_tokens, stack.d_model, stack.experts.n_experts)
        counts["feed-forward"] += (stack.n_layers - n_dense) * (mixture + router)
    return counts


def stack_cache_bytes(stack: Stack, n_tokens: int, *, rolling: bool = False, dtype: torch.dtype = torch.float16) -> int:
    """What generation keeps of one sequence: keys and values, or latent vectors, of all layers.

    Args:
        stack: its sizes.
        n_tokens: length of the sequence.
        rolling: whether layers with a window keep only what it reaches (``DecoderCache(windows=...)``).
        dtype: of what is kept.
    """
    n_kept = stack.n_layers * n_tokens
    if rolling and stack.windows is not None:
        n_kept = sum(n_tokens if window is None else min(n_tokens, window) for window in stack.windows)
    if stack.latent is not None:
        widths = {"d_latent": stack.latent.d_latent, "d_rotary": stack.latent.d_rotary}
        return costs.latent_cache_bytes(n_kept, n_layers=1, **widths, dtype=dtype)
    return costs.cache_bytes(n_kept, n_layers=1, n_kv_heads=stack.n_kv_heads, d_head=stack.d_head, dtype=dtype)
