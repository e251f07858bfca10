"""The Transformer of "Attention Is All You Need": encoder, decoder, embeddings and output projection, put together.

Beside it stands what any model costs: `account`, from a config alone.
"""

from ttutor.transformer.accounting import Account, account
from ttutor.transformer.blueprint import Blueprint, Experts, Latent, Projection, Stack
from ttutor.transformer.config import TransformerConfig
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
]
