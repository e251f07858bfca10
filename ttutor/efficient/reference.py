"""The reference as a backend: the arithmetic that the book shows, on any device and for any call."""

from ttutor.attention import scaled_dot_product_attention
from ttutor.efficient.attention_call import AttentionCall

__all__ = ["reference_attention", "why_not"]

reference_attention = scaled_dot_product_attention


def why_not(call: AttentionCall) -> str | None:
    """Why this backend cannot run such a call: it always can."""
    return None
