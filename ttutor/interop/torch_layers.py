"""PyTorch's own attention and Transformer layers as ours, with the same weights."""

from collections.abc import Callable
from typing import Any, TypeVar

from torch import Tensor, nn
from torch.nn import functional

from ttutor.decoder import Decoder, DecoderLayer
from ttutor.efficient import efficient_attention
from ttutor.encoder import Encoder, EncoderLayer
from ttutor.errors import SettingError
from ttutor.layers import FeedForward, LayerNorm
from ttutor.multihead import MultiHeadAttention

Attend = Callable[..., Tensor]
Layer = TypeVar("Layer", EncoderLayer, DecoderLayer)

ACTIVATIONS: dict[object, str] = {functional.relu: "relu", functional.gelu: "gelu", functional.silu: "silu"}
CLASSES = {nn.ReLU: "relu", nn.SiLU: "silu"}


def from_torch(module: nn.Module, *, attend: Attend = efficient_attention) -> nn.Module:
    """Our layer with the weights of one of PyTorch's, copied, in the same mode, dtype and place.

    `nn.MultiheadAttention` gives a `MultiHeadAttention`, `nn.TransformerEncoder` an `Encoder`, `nn.TransformerDecoder`
    a `Decoder`, their layers our layers, and `nn.Transformer`, which has no embeddings, a `nn.ModuleDict` with
    ``encoder`` and ``decoder``. The dropout is that of theirs, which reaches attention weights, too.

    What a call gives is equal in training and in evaluation, with three things to know. Masks are turned round (True
    means may attend). A decoder of ours is always causal, one of theirs only with a ``tgt_mask``. And in evaluation
    their encoder takes a fast path that writes zeros where the padding is; ours gives vectors there, as theirs does in
    training. Nobody looks at them.

    Args:
        module: one of the six, with ``batch_first=True``.
        attend: the attention function of all layers.

    Raises:
        SettingError: an option has no counterpart here; the message names it.
        TypeError: it is none of the six.

    Example:
        >>> import torch
        >>> theirs = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
        >>> ours, hidden = from_torch(theirs), torch.randn(2, 5, 8)
        >>> torch.allclose(ours(hidden), theirs(hidden), atol=1e-5)
        True
    """
    kinds: dict[type, Callable[[Any, Attend], nn.Module]] = {
        nn.MultiheadAttention: _attention,
        nn.TransformerEncoderLayer: _encoder_layer,
        nn.TransformerEncoder: _encoder,
        nn.TransformerDecoderLayer: _decoder_layer,
        nn.TransformerDecoder: _decoder,
        nn.Transformer: _both,
    }
    if type(module) not in kinds:
        names = ", ".join(f"nn.{kind.__name__}" for kind in kinds)
        raise TypeError(f"expected one of {names}, but came {type(module).__name__}")
    ours = kinds[type(module)](module, attend)
    weight = next(module.parameters())
    return ours.to(weight.device, weight.dtype).train(module.training)


def _attention(theirs: nn.MultiheadAttention, attend: Attend) -> MultiHeadAttention:
    _refuse(
        theirs,
        batch_first=(theirs.batch_first, True, "our axes are `batch tokens d_model`; set it and turn the inputs"),
        add_bias_kv=(theirs.bias_k is not None, False, "ours has no such key"),
        add_zero_attn=(theirs.add_zero_attn, False, "ours has no such key"),
        kdim=(theirs.kdim, theirs.embed_dim, "keys are as wide as queries"),
        vdim=(theirs.vdim, theirs.embed_dim, "values are as wide as queries"),
    )
    has_bias = theirs.in_proj_bias is not None
    ours = MultiHeadAttention(
        theirs.embed_dim, theirs.num_heads, bias=has_bias, dropout=theirs.dropout, attend=attend
    ).to(theirs.in_proj_weight.dtype)
    inputs = (ours.to_query, ours.to_key, ours.to_value)
    for projection, weight in zip(inputs, theirs.in_proj_weight.detach().chunk(3), strict=True):
        projection.weight = nn.Parameter(weight.clone())
    ours.to_output.weight = nn.Parameter(theirs.out_proj.weight.detach().clone())
    if has_bias:
        for projection, bias in zip(inputs, theirs.in_proj_bias.detach().chunk(3), strict=True):
            projection.bias = nn.Parameter(bias.clone())
        ours.to_output.bias = nn.Parameter(theirs.out_proj.bias.detach().clone())
    return ours


def _encoder_layer(theirs: nn.TransformerEncoderLayer, attend: Attend) -> EncoderLayer:
    ours = _with_feed_forward(EncoderLayer, theirs, attend)
    ours.around_attention.norm, ours.around_feed_forward.norm = _norm(theirs.norm1), _norm(theirs.norm2)
    ours.around_attention.dropout.p, ours.around_feed_forward.dropout.p = theirs.dropout1.p, theirs.dropout2.p
    return ours


def _decoder_layer(theirs: nn.TransformerDecoderLayer, attend: Attend) -> DecoderLayer:
    ours = _with_feed_forward(DecoderLayer, theirs, attend)
    ours.cross_attention = _attention(theirs.multihead_attn, attend)
    around = (ours.around_self_attention, ours.around_cross_attention, ours.around_feed_forward)
    for number, one in enumerate(around, start=1):
        one.norm = _norm(getattr(theirs, f"norm{number}"))
        one.dropout.p = getattr(theirs, f"dropout{number}").p
    return ours


def _with_feed_forward(kind: type[Layer], theirs: Any, attend: Attend) -> Layer:
    """What both kinds of layers share: self-attention, the feed-forward network, the place of the norms."""
    n_heads, (d_ff, d_model) = theirs.self_attn.num_heads, theirs.linear1.weight.shape
    ours = kind(d_model, n_heads, d_ff, norm="pre" if theirs.norm_first else "post")
    ours.self_attention = _attention(theirs.self_attn, attend)
    has_bias = theirs.linear1.bias is not None
    network = FeedForward(
        d_model, d_ff, activation=_activation(theirs.activation), dropout=theirs.dropout.p, bias=has_bias
    ).to(theirs.linear1.weight.dtype)
    network.widen.load_state_dict(theirs.linear1.state_dict())
    network.narrow.load_state_dict(theirs.linear2.state_dict())
    ours.feed_forward = network
    return ours


def _encoder(theirs: nn.TransformerEncoder, attend: Attend) -> Encoder:
    layers = [_encoder_layer(_only(layer, nn.TransformerEncoderLayer), attend) for layer in theirs.layers]
    return _stack(Encoder, layers, theirs.norm)


def _decoder(theirs: nn.TransformerDecoder, attend: Attend) -> Decoder:
    layers = [_decoder_layer(_only(layer, nn.TransformerDecoderLayer), attend) for layer in theirs.layers]
    return _stack(Decoder, layers, theirs.norm)


def _both(theirs: nn.Transformer, attend: Attend) -> nn.ModuleDict:
    encoder, decoder = _only(theirs.encoder, nn.TransformerEncoder), _only(theirs.decoder, nn.TransformerDecoder)
    return nn.ModuleDict({"encoder": _encoder(encoder, attend), "decoder": _decoder(decoder, attend)})


def _stack(kind: type[Any], layers: list[Any], norm: nn.Module | None) -> Any:
    """Layers with a last norm where theirs have one: `nn.Transformer` has it with either place of the norms."""
    attention = layers[0].self_attention
    ours = kind(attention.d_model, attention.n_heads, layers[0].feed_forward.widen.out_features, n_layers=0)
    ours.layers = nn.ModuleList(layers)
    ours.final_norm = nn.Identity() if norm is None else _norm(norm)
    return ours


def _norm(module: nn.Module) -> LayerNorm:
    theirs: nn.LayerNorm = _only(module, nn.LayerNorm)
    if theirs.weight is None or len(theirs.normalized_shape) != 1:
        raise SettingError("nn.LayerNorm without weights, or over several axes, has no counterpart in ttutor")
    ours = LayerNorm(theirs.normalized_shape[0], theirs.eps, bias=theirs.bias is not None).to(theirs.weight.dtype)
    ours.gain = nn.Parameter(theirs.weight.detach().clone())
    if theirs.bias is not None:
        ours.bias = nn.Parameter(theirs.bias.detach().clone())
    return ours


def _activation(theirs: object) -> str:
    if isinstance(theirs, nn.GELU):
        return "gelu" if theirs.approximate == "none" else "gelu_tanh"
    name = ACTIVATIONS.get(theirs) or CLASSES.get(type(theirs))  # type: ignore[arg-type]
    if name is None:
        raise SettingError(f"activation={theirs!r} has no counterpart in ttutor; known are relu, gelu and silu")
    return name


def _only(theirs: Any, kind: type[Any]) -> Any:
    """Refuse a part of another class, such as a subclass with a forward of its own."""
    if type(theirs) is not kind:
        raise SettingError(f"expected nn.{kind.__name__}, but this part is {type(theirs).__name__}")
    return theirs


def _refuse(theirs: nn.Module, **options: tuple[object, object, str]) -> None:
    """Refuse every option whose value is not the one that ours has; each comes with both and the reason."""
    wrong = [f"{name}={value!r} ({reason})" for name, (value, ours, reason) in options.items() if value != ours]
    if wrong:
        raise SettingError(f"nn.{type(theirs).__name__} has what ours has not: {'; '.join(wrong)}")
