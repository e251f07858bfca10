"""What stands around attention in every block: normalisation, the feed-forward network, and the residual connection."""

from ttutor.layers.feed_forward import ACTIVATIONS, FeedForward, GatedFeedForward
from ttutor.layers.norms import LayerNorm, RMSNorm, layer_norm, rms_norm
from ttutor.layers.residual import PostNorm, PreNorm, residual_sublayer

__all__ = [
    "ACTIVATIONS",
    "FeedForward",
    "GatedFeedForward",
    "LayerNorm",
    "PostNorm",
    "PreNorm",
    "RMSNorm",
    "layer_norm",
    "residual_sublayer",
    "rms_norm",
]
