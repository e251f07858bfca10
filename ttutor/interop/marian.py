"""Marian's translation models (OPUS-MT) in Hugging Face's form: the Transformer of 2017, with three habits of its own.

Pegasus is the same model with the norm before each sublayer and one after each stack, so it is read and written here.

- Its sinusoidal encoding holds all sines, then all cosines, where the paper alternates them. No switch is needed for
  that: a model does not know in which order its features come, so reordering them everywhere gives the same model.
- A target starts with the padding token. Say ``is_real`` when you decode, as `ttutor.generation` does.
- The logits have a bias.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from einops import rearrange
from torch import Tensor

from ttutor.interop.entries import OLDER
from ttutor.interop.families import Family, agree, choose
from ttutor.interop.rules import Rule, fixed, rearranged, same
from ttutor.positions import sinusoidal_encoding
from ttutor.transformer import Transformer, TransformerConfig

ACTIVATIONS = {"swish": "silu", "silu": "silu", "gelu": "gelu", "relu": "relu"}


def build(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Transformer:
    """Our model with the sizes of their config."""
    agree(
        config,
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        decoder_layers=config["encoder_layers"],
        decoder_attention_heads=config["encoder_attention_heads"],
        decoder_ffn_dim=config["encoder_ffn_dim"],
        decoder_vocab_size=config["vocab_size"] if config["decoder_vocab_size"] is not None else None,
        is_decoder=False,
        **OLDER[config["model_type"]],
    )
    return Transformer(
        TransformerConfig(
            vocab_size=config["vocab_size"],
            d_model=config["d_model"],
            n_heads=config["encoder_attention_heads"],
            n_layers=config["encoder_layers"],
            d_ff=config["encoder_ffn_dim"],
            dropout=config["dropout"],
            activation=choose(config, "activation_function", ACTIVATIONS),
            norm="pre" if config["model_type"] == "pegasus" else "post",
            max_len=config["max_position_embeddings"],
            pad_id=config["pad_token_id"],
            logits_bias=True,
        )
    )


def describe(model: Transformer) -> dict[str, Any]:
    """Their config of our model."""
    config = model.config
    model_type = "pegasus" if config.norm == "pre" else "marian"
    ours = {"model_type": model_type, **config.to_dict()}
    agree(ours, positions="sinusoidal", tie_embeddings=True)
    words = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    agree(ours, activation=config.activation if config.activation in words else "silu")
    sizes = {"layers": config.n_layers, "attention_heads": config.n_heads, "ffn_dim": config.d_ff}
    return {
        "model_type": model_type,
        "architectures": ["PegasusForConditionalGeneration" if config.norm == "pre" else "MarianMTModel"],
        "vocab_size": config.vocab_size,
        "decoder_vocab_size": config.vocab_size,
        "d_model": config.d_model,
        **{f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in sizes.items()},
        "max_position_embeddings": config.max_len,
        "activation_function": words[config.activation],
        "dropout": config.dropout,
        "scale_embedding": True,
        "pad_token_id": config.pad_id,
        # Which tokens start and end a target is not part of our model: whoever generates says it.
        "decoder_start_token_id": config.pad_id,
        "bos_token_id": None,
        "eos_token_id": None,
        "forced_eos_token_id": None,
    }


def rules(model: Transformer) -> Iterator[Rule]:
    """How Hugging Face's tensor names map to ours; every axis of the stream's width has its features reordered."""
    table = "source_embeddings.token.table.weight"
    yield _columns("model.shared.weight", table)
    yield _columns("model.encoder.embed_tokens.weight", table, is_optional=True)
    yield _columns("model.decoder.embed_tokens.weight", table, is_optional=True)
    yield _columns("lm_head.weight", table, is_optional=True)
    yield _logits_bias(model)
    encoding = sinusoidal_encoding(model.config.max_len, model.config.d_model)
    waves = rearrange(encoding, "positions (pairs two) -> positions (two pairs)", two=2)
    for side in ("encoder", "decoder"):
        yield fixed(f"model.{side}.embed_positions.weight", waves)
        for i in range(model.config.n_layers):
            yield from _layer(f"model.{side}.layers.{i}", f"{side}.layers.{i}", is_decoder=side == "decoder")
        if model.config.norm == "pre":
            yield from _norm(f"model.{side}.layer_norm", f"{side}.final_norm")


def _layer(theirs: str, ours: str, *, is_decoder: bool) -> Iterator[Rule]:
    own = "around_self_attention" if is_decoder else "around_attention"
    yield from _attention(f"{theirs}.self_attn", f"{ours}.self_attention")
    yield from _norm(f"{theirs}.self_attn_layer_norm", f"{ours}.{own}.norm")
    if is_decoder:
        yield from _attention(f"{theirs}.encoder_attn", f"{ours}.cross_attention")
        yield from _norm(f"{theirs}.encoder_attn_layer_norm", f"{ours}.around_cross_attention.norm")
    yield _columns(f"{theirs}.fc1.weight", f"{ours}.feed_forward.widen.weight")
    yield same(f"{theirs}.fc1.bias", f"{ours}.feed_forward.widen.bias")
    yield _rows(f"{theirs}.fc2.weight", f"{ours}.feed_forward.narrow.weight")
    yield _rows(f"{theirs}.fc2.bias", f"{ours}.feed_forward.narrow.bias")
    yield from _norm(f"{theirs}.final_layer_norm", f"{ours}.around_feed_forward.norm")


def _attention(theirs: str, ours: str) -> Iterator[Rule]:
    for their_part, our_part in (("q_proj", "to_query"), ("k_proj", "to_key"), ("v_proj", "to_value")):
        yield _columns(f"{theirs}.{their_part}.weight", f"{ours}.{our_part}.weight")
        yield same(f"{theirs}.{their_part}.bias", f"{ours}.{our_part}.bias")
    yield _rows(f"{theirs}.out_proj.weight", f"{ours}.to_output.weight")
    yield _rows(f"{theirs}.out_proj.bias", f"{ours}.to_output.bias")


def _norm(theirs: str, ours: str) -> Iterator[Rule]:
    yield _rows(f"{theirs}.weight", f"{ours}.gain")
    yield _rows(f"{theirs}.bias", f"{ours}.bias")


def _rows(theirs: str, ours: str) -> Rule:
    """A tensor whose first axis is the stream's: sines and cosines apart on their side, alternating on ours."""
    return rearranged(theirs, ours, "(two pairs) ... -> (pairs two) ...", "(pairs two) ... -> (two pairs) ...", two=2)


def _columns(theirs: str, ours: str, *, is_optional: bool = False) -> Rule:
    """A tensor whose second axis is the stream's."""
    forwards, backwards = "rows (two pairs) -> rows (pairs two)", "rows (pairs two) -> rows (two pairs)"
    rule = rearranged(theirs, ours, forwards, backwards, two=2)
    return Rule(rule.theirs, rule.ours, rule.forwards, rule.backwards, is_optional)


def _logits_bias(model: Transformer) -> Rule:
    if model.config.logits_bias:
        patterns = "1 vocab_size -> vocab_size", "vocab_size -> 1 vocab_size"
        return rearranged("final_logits_bias", "to_logits.bias", *patterns)
    return fixed("final_logits_bias", torch.zeros(1, model.config.vocab_size))


FAMILY = Family("marian", Transformer, build, describe, rules)
