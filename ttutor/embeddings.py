"""Embeddings: from token ids to the vectors that the layers work on."""

import math
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ttutor.cache import DecoderCache, layer_caches
from ttutor.names import Answering, answer_other_names
from ttutor.shapes import check_shapes, has_values

__all__ = ["Embeddings", "TokenEmbedding", "check_ids", "extend_cache"]


class TokenEmbedding(Answering, nn.Module):
    r"""A row of a learned table for each token, times $\sqrt{d_\mathrm{model}}$.

    Vaswani et al. (2017), section 3.4. The table starts with standard deviation $1/\sqrt{d_\mathrm{model}}$, which
    suits its second use as the output projection; the factor gives the rows unit variance where they are inputs.

    Args:
        vocab_size: number of rows.
        d_model: width of each row.
        factor: what the rows are multiplied by where they are inputs; $\sqrt{d_\mathrm{model}}$ when left out, 1 in
            BERT and the GPTs.

    Raises:
        IndexError: a token id lies outside the table (on a CPU; a GPU would have to be waited for).
    """

    def __init__(self, vocab_size: int, d_model: int, *, factor: float | None = None) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model)
        self.factor = math.sqrt(d_model) if factor is None else factor
        nn.init.normal_(self.table.weight, std=d_model**-0.5)

    def forward(self, token_ids: Int[Tensor, "batch tokens"]) -> Float[Tensor, "batch tokens d_model"]:
        """Look the tokens up."""
        check_ids("token_ids", token_ids, self.table.num_embeddings)
        vectors = self.table(token_ids)
        return vectors if self.factor == 1 else vectors * self.factor


def check_ids(name: str, ids: Int[Tensor, "batch tokens"], n_rows: int) -> None:
    """Refuse ids that a table has no row for; whether they are too large, only on a CPU."""
    if ids.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{name} must be whole numbers, torch.int64 or torch.int32, but came with dtype {ids.dtype}")
    if not has_values(ids) or ids.numel() == 0:
        return
    low, high = (int(bound) for bound in ids.aminmax())
    if low < 0 or high >= n_rows:
        raise IndexError(
            f"{name} run from {low} to {high}, but this model knows 0 to {n_rows - 1}; do tokenizer and model "
            "belong together?"
        )


class Embeddings(nn.Module):
    """Token embedding plus position, then dropout: what enters the first layer.

    Vaswani et al. (2017), sections 3.4, 3.5 and 5.4.

    Args:
        token: maps token ids to vectors; encoder and decoder may share one.
        position: maps positions to vectors, and says by ``max_len`` how many it knows.
        dropout: probability of setting a feature to zero while training.
    """

    def __init__(self, token: nn.Module, position: nn.Module, dropout: float = 0.0) -> None:
        super().__init__()
        self.token: Any = token
        self.position: Any = position
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, token_ids: Int[Tensor, "batch tokens"], positions: Int[Tensor, "batch tokens"] | None = None
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Embed tokens that stand at these positions; at 0, 1, 2, ... when none are given."""
        check_shapes(token_ids=(token_ids, "batch tokens"))
        if positions is None:
            self.check_length(token_ids.shape[-1])
            positions = rearrange(torch.arange(token_ids.shape[-1], device=token_ids.device), "tokens -> 1 tokens")
        vectors = self.token(token_ids)
        return self.dropout(vectors + self.position(positions).to(vectors.dtype))

    def check_length(self, n_tokens: int) -> None:
        """Refuse more tokens than the position module's ``max_len``."""
        if n_tokens > self.position.max_len:
            raise ValueError(
                f"{n_tokens} tokens are more than the {self.position.max_len} positions this model knows; "
                f"shorten the sequence or build the model with max_len={n_tokens} or more"
            )


def extend_cache(
    cache: DecoderCache | None,
    is_real: Bool[Tensor, "batch tokens"],
    config: Any,
    embeddings: Embeddings | None = None,
    **ids: Int[Tensor, "batch tokens"],
) -> tuple[Int[Tensor, "batch tokens"], Bool[Tensor, "batch 1 queries keys"]]:
    """Announce tokens to a decoder's cache: their positions, and which of all keys are real.

    Whatever is wrong is said before the cache is extended, so that a refused call leaves it as it was.

    Args:
        cache: earlier tokens, as for the model's ``decode``; without one the tokens are the first.
        is_real: which of the tokens are no padding.
        config: the model's, or anything with ``n_layers`` and ``vocab_size``.
        embeddings: what knows how many positions there are, in a model with a last one.
        **ids: the tokens, under the name that the model's caller knows.
    """
    ((name, token_ids),) = ids.items()
    check_shapes(**{name: (token_ids, "batch tokens")}, is_real=(is_real, "batch tokens"))
    layer_caches(cache, config.n_layers)
    check_ids(name, token_ids, config.vocab_size)
    seen = DecoderCache(0) if cache is None else cache
    if embeddings is not None:
        embeddings.check_length(seen.n_tokens + token_ids.shape[-1])
    return seen.extend(is_real)


answer_other_names(__name__)
