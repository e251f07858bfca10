"""The two tasks that BERT is trained on: fill in masked tokens, and tell whether a sentence follows another."""

from typing import NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ttutor.variants.bert.model import BERT
from ttutor.variants.heads import MaskedTokenHead, initialise_normal


class BERTForMaskedLM(nn.Module):
    """Fills in masked tokens: a `BERT` and a `MaskedTokenHead`.

    A trainer that needs the logits of the masked tokens only calls ``model.bert`` and gives ``model.head`` those rows.
    Devlin et al. (2019), section 3.1, task 1.

    Args:
        bert: the encoder; it is taken as it is, not copied.
    """

    def __init__(self, bert: BERT) -> None:
        super().__init__()
        self.bert = bert
        self.head = MaskedTokenHead(bert.embeddings.token.table, bert.config.activation)

    def forward(
        self,
        token_ids: Int[Tensor, "batch tokens"],
        is_real: Bool[Tensor, "batch tokens"] | None = None,
        segment_ids: Int[Tensor, "batch tokens"] | None = None,
    ) -> Float[Tensor, "batch tokens vocab_size"]:
        """Logits of what stands at each token; arguments as for `BERT.forward`."""
        return self.head(self.bert(token_ids, is_real, segment_ids))


class PreTrainingLogits(NamedTuple):
    """What the two tasks of pre-training answer."""

    tokens: Float[Tensor, "batch tokens vocab_size"]
    next_sentence: Float[Tensor, "batch 2"]


class BERTForPreTraining(nn.Module):
    """Both tasks of pre-training at once: masked tokens, and whether the second sentence follows the first.

    Devlin et al. (2019), section 3.1. Class 0 of the second task means that it follows, as in the authors' code.

    Args:
        bert: the encoder, with its pooler; it is taken as it is, not copied.

    Example:
        >>> import torch
        >>> from ttutor.variants.bert import BERTConfig
        >>> bert = BERT(BERTConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=2, d_ff=48, max_len=16))
        >>> tokens, next_sentence = BERTForPreTraining(bert)(torch.tensor([[2, 7, 4, 3]]))
        >>> tokens.shape, next_sentence.shape
        (torch.Size([1, 4, 50]), torch.Size([1, 2]))
    """

    def __init__(self, bert: BERT) -> None:
        super().__init__()
        self.bert = bert
        self.head = MaskedTokenHead(bert.embeddings.token.table, bert.config.activation)
        self.next_sentence = initialise_normal(nn.Linear(bert.config.d_model, 2))

    def forward(
        self,
        token_ids: Int[Tensor, "batch tokens"],
        is_real: Bool[Tensor, "batch tokens"] | None = None,
        segment_ids: Int[Tensor, "batch tokens"] | None = None,
    ) -> PreTrainingLogits:
        """Logits of both tasks; arguments as for `BERT.forward`."""
        hidden = self.bert(token_ids, is_real, segment_ids)
        return PreTrainingLogits(self.head(hidden), self.next_sentence(self.bert.pool(hidden, is_real)))
