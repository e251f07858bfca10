"""No positions at all: the baseline that every scheme has to beat."""

import math

import torch
from einops import rearrange
from jaxtyping import Int
from torch import Tensor, nn


class NoPositions(nn.Module):
    """Adds nothing to any embedding, at any position.

    Without a mask such a model sees a bag of words. Under a causal mask it does not: the number of keys that a token
    can see tells how far it stands from the start (Haviv et al. 2022; Kazemnejad et al. 2023).

    Example:
        >>> NoPositions()(torch.tensor([[0, 1, 2]])).flatten()
        tensor([0, 0, 0])
    """

    max_len = math.inf

    def forward(self, positions: Int[Tensor, "batch tokens"]) -> Int[Tensor, "batch tokens 1"]:
        """Zeros, as integers, so that a sum keeps the dtype of the embeddings."""
        return rearrange(torch.zeros_like(positions), "batch tokens -> batch tokens 1")
