"""T5 in Hugging Face's form: blocks of numbered sublayers; the first block of a stack holds the biases for all."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from ttutor.interop.families import Family, agree, choose
from ttutor.interop.rules import Rule, copied, linear, norm, same
from ttutor.variants.t5 import T5, T5Config

FEED_FORWARDS = {"relu": "relu", "gated-gelu": "geglu", "gated-silu": "swiglu"}
NAMES = {
    "vocab_size": "vocab_size",
    "d_model": "d_model",
    "d_kv": "d_head",
    "num_heads": "n_heads",
    "num_layers": "n_layers",
    "d_ff": "d_ff",
    "relative_attention_num_buckets": "n_buckets",
    "dropout_rate": "dropout",
    "pad_token_id": "pad_id",
}
UNUSED = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"


def build(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> T5:
    """Our model with the sizes of their config."""
    feed_forward, derived = config["feed_forward_proj"], ("num_decoder_layers", "dense_act_fn", "is_gated_act")
    agree(
        {name: value for name, value in config.items() if name not in derived or value is not None},
        layer_norm_epsilon=1e-6,
        num_decoder_layers=config["num_layers"],
        dense_act_fn="gelu_new" if feed_forward == "gated-gelu" else feed_forward.removeprefix("gated-"),
        is_gated_act=feed_forward.startswith("gated-"),
    )
    # Since transformers 5 tie_word_embeddings always holds, and another entry says whether the logits are T5 1.1's.
    scales = config["scale_decoder_outputs"]
    is_first_version = config["tie_word_embeddings"] is not False if scales is None else scales
    return T5(
        T5Config(
            **{ours: config[theirs] for theirs, ours in NAMES.items()},
            max_distance=config["relative_attention_max_distance"],
            feed_forward=choose(config, "feed_forward_proj", FEED_FORWARDS),
            tie_embeddings=is_first_version,
        )
    )


def describe(model: T5) -> dict[str, Any]:
    """Their config of our model."""
    config = model.config
    return {
        "architectures": ["T5ForConditionalGeneration"],
        **{theirs: getattr(config, ours) for theirs, ours in NAMES.items()},
        "num_decoder_layers": config.n_layers,
        "relative_attention_max_distance": config.max_distance,
        "feed_forward_proj": {ours: theirs for theirs, ours in FEED_FORWARDS.items()}[config.feed_forward],
        "tie_word_embeddings": config.tie_embeddings,
        "is_encoder_decoder": True,
        "decoder_start_token_id": config.pad_id,
    }


def rules(model: T5) -> Iterator[Rule]:
    """How Hugging Face's tensor names map to ours."""
    yield same("shared.weight", "embedding.table.weight")
    kind = model.config.feed_forward
    maps = {"wi": "widen", "wo": "narrow"} if kind == "relu" else {"wi_0": "gate", "wi_1": "widen", "wo": "narrow"}
    for stack, sublayers in [
        ("encoder", {"self_attention": "SelfAttention"}),
        ("decoder", {"self_attention": "SelfAttention", "cross_attention": "EncDecAttention"}),
    ]:
        yield copied(f"{stack}.embed_tokens.weight", "embedding.table.weight")
        yield same(
            f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight", f"{stack}.positions.table.weight"
        )
        for i in range(model.config.n_layers):
            ours = f"{stack}.layers.{i}"
            for place, (mine, other) in enumerate(sublayers.items()):
                theirs = f"{stack}.block.{i}.layer.{place}"
                yield from norm(f"{theirs}.layer_norm", f"{ours}.around_{mine}.norm", bias=False)
                for letter, part in zip("qkvo", ("query", "key", "value", "output"), strict=True):
                    yield from linear(f"{theirs}.{other}.{letter}", f"{ours}.{mine}.to_{part}", bias=False)
            theirs = f"{stack}.block.{i}.layer.{len(sublayers)}"
            yield from norm(f"{theirs}.layer_norm", f"{ours}.around_feed_forward.norm", bias=False)
            for other, mine in maps.items():
                yield from linear(f"{theirs}.DenseReluDense.{other}", f"{ours}.feed_forward.{mine}", bias=False)
        yield from norm(f"{stack}.final_layer_norm", f"{stack}.final_norm", bias=False)
    if model.config.tie_embeddings:
        yield copied("lm_head.weight", "embedding.table.weight")
    else:
        yield same("lm_head.weight", "to_logits.weight")


def normalise(tensors: dict[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
    """Drop a table that the first checkpoints hold for nothing; a projection that is not there is the embedding table.

    The latter is what `transformers` does, in both versions of T5.
    """
    kept = {name: tensor for name, tensor in tensors.items() if name != UNUSED}
    if "shared.weight" in kept:
        kept.setdefault("lm_head.weight", kept["shared.weight"])
    return kept


FAMILY = Family("t5", T5, build, describe, rules, normalise)
