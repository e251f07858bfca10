"""The small models that the tests of this folder look into."""

import torch

from tests.torch_twins import randomised
from ttutor.transformer import Transformer, TransformerConfig
from ttutor.variants.gpt import GPT, GPTConfig

SOURCE_IDS = torch.tensor([[5, 6, 7, 8, 9, 3, 0], [4, 5, 6, 3, 0, 0, 0]])
TARGET_IDS = torch.tensor([[2, 10, 11, 12, 13], [2, 14, 15, 0, 0]])
TOKEN_IDS = torch.tensor([[2, 10, 11, 12, 13], [2, 14, 15, 9, 7]])


def translator(**changes) -> Transformer:
    """An encoder-decoder; call it with ``SOURCE_IDS, TARGET_IDS``."""
    sizes = {"vocab_size": 23, "d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 20, "max_len": 16, "norm": "pre"}
    return randomised(Transformer(TransformerConfig(**{**sizes, **changes})))


def language_model(**changes) -> GPT:
    """A decoder-only model; call it with ``TOKEN_IDS``."""
    sizes = {"vocab_size": 23, "d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 20, "max_len": 16, "dropout": 0.0}
    return randomised(GPT(GPTConfig(**{**sizes, **changes})))
