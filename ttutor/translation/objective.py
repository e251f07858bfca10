"""What a training makes small: the mean loss of a batch's real target tokens."""

from jaxtyping import Float
from torch import Tensor

from ttutor.masks import padding_mask
from ttutor.transformer import Transformer
from ttutor.translation.batching import Batch
from ttutor.translation.loss import projected_cross_entropy
from ttutor.translation.tokenizer import PAD_ID


def batch_loss(model: Transformer, batch: Batch, smoothing: float) -> Float[Tensor, ""]:
    """Mean loss per real target token; only real positions are projected to the vocabulary."""
    memory = model.encode(batch.source)
    hidden = model.decode(batch.target_in, memory, padding_mask(batch.source, PAD_ID))
    real = batch.target_out != PAD_ID
    return projected_cross_entropy(hidden[real], model.to_logits.weight, batch.target_out[real], smoothing=smoothing)
