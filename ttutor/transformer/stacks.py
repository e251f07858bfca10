"""What a stack of layers costs: the formulas of `ttutor.transformer.costs`, summed over its layers."""

from collections import Counter

from ttutor.transformer import costs
from ttutor.transformer.blueprint import Stack


def stack_parameters(stack: Stack) -> dict[str, int]:
    """A stack's parameters by part; layers that share theirs count once.

    Example:
        >>> stack_parameters(Stack(name="s", n_layers=2, d_model=8, n_heads=2, n_kv_heads=2, d_head=4, d_ff=16))
        {'attention': 576, 'feed-forward': 560, 'norms': 80}
    """
    n_layers, n_attentions = stack.n_distinct_layers or stack.n_layers, 2 if stack.cross_attention else 1
    attention = costs.attention_parameters(
        stack.d_model,
        n_heads=stack.n_heads,
        d_head=stack.d_head,
        n_kv_heads=stack.n_kv_heads,
        bias=stack.attention_bias,
    )
    feed_forward = costs.feed_forward_parameters(
        stack.d_model, stack.d_ff, gated=stack.gated, bias=stack.feed_forward_bias
    )
    n_norms = n_layers * (n_attentions + 1) + stack.final_norm
    return {
        "attention": n_layers * n_attentions * attention,
        "feed-forward": n_layers * feed_forward,
        "norms": n_norms * costs.norm_parameters(stack.d_model, rms=stack.rms),
    }


def stack_flops(stack: Stack, n_tokens: int, n_memory: int = 0) -> dict[str, int]:
    """Operations of a stack's matrix products, going forward through one sequence, by kind.

    Args:
        stack: its sizes.
        n_tokens: length of the sequence.
        n_memory: length of the memory, where there is cross-attention. Its keys and values are counted here.

    Example:
        >>> sizes = {"n_layers": 1, "d_model": 8, "n_heads": 2, "n_kv_heads": 2, "d_head": 4, "d_ff": 32}
        >>> stack_flops(Stack(name="s", **sizes), 48)  # at 6 d_model tokens, half of all is scores and blend
        {'attention projections': 24576, 'scores and blend': 73728, 'feed-forward': 49152}
    """
    flops: Counter[str] = Counter()
    for n_keys in (n_tokens, n_memory) if stack.cross_attention else (n_tokens,):
        flops["attention projections"] += costs.attention_projection_flops(
            n_tokens,
            n_keys,
            d_model=stack.d_model,
            n_heads=stack.n_heads,
            d_head=stack.d_head,
            n_kv_heads=stack.n_kv_heads,
        )
        flops["scores and blend"] += costs.attention_flops(n_tokens, n_keys, n_heads=stack.n_heads, d_head=stack.d_head)
    flops["feed-forward"] = costs.feed_forward_flops(
        n_tokens, d_model=stack.d_model, d_ff=stack.d_ff, gated=stack.gated
    )
    return {kind: stack.n_layers * count for kind, count in flops.items()}
