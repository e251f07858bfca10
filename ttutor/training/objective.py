"""The training loss: the mean over the real target tokens of a batch."""

from jaxtyping import Float
from torch import Tensor

from ttutor.corpora.tokenizer import PAD_ID
from ttutor.masks import padding_mask
from ttutor.training.batching import Batch
from ttutor.training.loss import chunked_linear_cross_entropy
from ttutor.transformer import Transformer


def batch_loss(model: Transformer, batch: Batch, smoothing: float) -> Float[Tensor, ""]:
    """Mean loss per real target token; only real positions are projected to the vocabulary."""
    memory = model.encode(batch.source)
    hidden = model.decode(batch.target_in, memory, padding_mask(batch.source, PAD_ID))
    real = batch.target_out != PAD_ID
    return chunked_linear_cross_entropy(
        hidden[real], model.to_logits.weight, batch.target_out[real], smoothing=smoothing
    )
