"""The Transformer of "Attention Is All You Need": encoder, decoder, embeddings and output projection, put together.

Beside it stands what any model costs: `account`, from a config alone.
"""

from ttutor.names import answer_other_names
from ttutor.transformer.accounting import Account, account
from ttutor.transformer.blueprint import Blueprint, Experts, Latent, Projection, Stack
from ttutor.transformer.config import TransformerConfig
from ttutor.transformer.costs import (
    adam_bytes,
    approximate_training_flops,
    attention_flops,
    attention_parameters,
    attention_projection_flops,
    cache_bytes,
    crossover_length,
    feed_forward_flops,
    feed_forward_parameters,
    latent_attention_parameters,
    latent_cache_bytes,
    norm_parameters,
    projection_flops,
    projection_parameters,
    weights_bytes,
)
from ttutor.transformer.model import Transformer

__all__ = [
    "Account",
    "Blueprint",
    "Experts",
    "Latent",
    "Projection",
    "Stack",
    "Transformer",
    "TransformerConfig",
    "account",
    "adam_bytes",
    "approximate_training_flops",
    "attention_flops",
    "attention_parameters",
    "attention_projection_flops",
    "cache_bytes",
    "crossover_length",
    "feed_forward_flops",
    "feed_forward_parameters",
    "latent_attention_parameters",
    "latent_cache_bytes",
    "norm_parameters",
    "projection_flops",
    "projection_parameters",
    "weights_bytes",
]

answer_other_names(__name__)
