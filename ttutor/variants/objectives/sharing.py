"""Layer sharing: a deep stack with the parameters of one layer (ALBERT)."""

from torch import nn


def repeat_layer(layer: nn.Module, n_layers: int) -> nn.ModuleList:
    """Use one layer ``n_layers`` times: the number of parameters no longer grows with the depth.

    Lan et al. (2020), section 3.1. Each use adds to the same gradient. Computing takes as long as with layers of their
    own: what is saved is memory for parameters, not work.

    Differs from the paper: there the layers may also share only their attention or only their feed-forward network
    (section 4.5).

    Args:
        layer: the layer that is used again and again.
        n_layers: how often.

    Example:
        >>> from ttutor.encoder import Encoder
        >>> encoder = Encoder(d_model=8, n_heads=2, d_ff=16, n_layers=1)
        >>> before = sum(parameter.numel() for parameter in encoder.parameters())
        >>> encoder.layers = repeat_layer(encoder.layers[0], 12)
        >>> len(encoder.layers), sum(parameter.numel() for parameter in encoder.parameters()) == before
        (12, True)
    """
    if n_layers < 1:
        raise ValueError(f"n_layers must be at least 1, but is {n_layers}")
    return nn.ModuleList([layer] * n_layers)
