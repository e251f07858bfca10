"""What stands around attention in every block: normalisation, the feed-forward network, and the residual connection."""

from ttutor.layers.feed_forward import ACTIVATIONS, ClampedFeedForward, FeedForward, GatedFeedForward
from ttutor.layers.norms import LayerNorm, RMSNorm, layer_norm, rms_norm
from ttutor.layers.residual import OutputNorm, PostNorm, PreNorm, SandwichNorm, ScaledPreNorm, residual_sublayer
from ttutor.names import answer_other_names

__all__ = [
    "ACTIVATIONS",
    "ClampedFeedForward",
    "FeedForward",
    "GatedFeedForward",
    "LayerNorm",
    "OutputNorm",
    "PostNorm",
    "PreNorm",
    "RMSNorm",
    "SandwichNorm",
    "ScaledPreNorm",
    "layer_norm",
    "residual_sublayer",
    "rms_norm",
]

answer_other_names(__name__)
