"""Torch's own layers with the weights of ours, and modules whose weights hide nothing."""

from __future__ import annotations

import torch
from torch import nn

from ttutor.decoder import DecoderLayer
from ttutor.encoder import EncoderLayer
from ttutor.multihead import MultiHeadAttention
from ttutor.transformer import Transformer


def randomised(module: nn.Module, std: float = 0.4) -> nn.Module:
    """A module in float64 and evaluation mode none of whose parameters is zero or one by design."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=std)
    return module.double().eval()


def attention_twin(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    theirs = nn.MultiheadAttention(ours.d_model, ours.n_heads, batch_first=True).double().eval()
    projections = (ours.to_query, ours.to_key, ours.to_value)
    theirs.in_proj_weight.data = torch.cat([p.weight.data for p in projections])
    theirs.in_proj_bias.data = torch.cat([p.bias.data for p in projections])
    theirs.out_proj.load_state_dict(ours.to_output.state_dict())
    return theirs


def layer_twin(ours: EncoderLayer | DecoderLayer, norm: str, activation: str = "relu") -> nn.Module:
    """Torch's encoder or decoder layer."""
    attention, widen = ours.self_attention, ours.feed_forward.widen
    is_decoder = isinstance(ours, DecoderLayer)
    kind = nn.TransformerDecoderLayer if is_decoder else nn.TransformerEncoderLayer
    options = {"dropout": 0.0, "batch_first": True, "norm_first": norm == "pre", "activation": activation}
    theirs = kind(attention.d_model, attention.n_heads, widen.out_features, **options).double().eval()
    theirs.self_attn = attention_twin(attention)
    theirs.linear1.load_state_dict(widen.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.narrow.state_dict())
    if is_decoder:
        theirs.multihead_attn = attention_twin(ours.cross_attention)
        norms = (ours.around_self_attention, ours.around_cross_attention, ours.around_feed_forward)
    else:
        norms = (ours.around_attention, ours.around_feed_forward)
    for number, around in enumerate(norms, 1):
        copy_norm(around.norm, getattr(theirs, f"norm{number}"))
    return theirs


def copy_norm(ours: nn.Module, theirs: nn.LayerNorm) -> None:
    theirs.weight.data, theirs.bias.data = ours.gain.data, ours.bias.data


def model_twin(ours: Transformer) -> nn.Transformer:
    """`nn.Transformer` with the weights of ours."""
    config = ours.config
    options = {"dropout": 0.0, "batch_first": True, "norm_first": config.norm == "pre"}
    theirs = nn.Transformer(
        config.d_model, config.n_heads, config.n_layers, config.n_layers, config.d_ff, **options
    ).double()
    for mine, other in ((ours.encoder, theirs.encoder), (ours.decoder, theirs.decoder)):
        other.layers = nn.ModuleList(layer_twin(layer, config.norm) for layer in mine.layers)
        if config.norm == "post":  # torch puts a last norm there too, which the paper does not have
            other.norm = None
        else:
            copy_norm(mine.final_norm, other.norm)
    return theirs
