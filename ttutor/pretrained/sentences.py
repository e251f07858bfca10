"""One vector for each sentence, whose directions say how near two sentences are in meaning."""

from collections.abc import Sequence
from typing import Any

import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from ttutor.pretrained.loading import Pretrained


@torch.inference_mode()
def sentence_vectors(
    encoder: Pretrained, sentences: Sequence[str], *, batch_size: int = 32
) -> Float[Tensor, "sentences d_model"]:
    r"""The mean of each sentence's last hidden vectors, of length 1, so that a product of two is the cosine.

    $$v = \frac{\sum_i h_i}{\lVert \sum_i h_i \rVert}$$

    Reimers and Gurevych (2019), section 3. What is longer than the model's positions is cut off there.

    Args:
        encoder: what ``load("minilm")`` gives.
        sentences: the texts.
        batch_size: how many the model reads at a time.
    """
    if isinstance(sentences, str):
        raise TypeError(f"sentences is a list of texts, not one; write [{sentences!r}]")
    config: Any = encoder.model.config
    if not sentences:
        return torch.zeros(0, config.d_model)
    ids = [
        torch.tensor(one.ids[: config.max_len - 1] + one.ids[-1:])
        for one in encoder.tokenizer.encode_batch(list(sentences))
    ]
    order = sorted(range(len(ids)), key=lambda place: len(ids[place]))  # texts of about one length read together
    vectors: list[Tensor] = [torch.empty(0)] * len(ids)
    for start in range(0, len(order), batch_size):
        places = order[start : start + batch_size]
        token_ids = pad_sequence([ids[place] for place in places], batch_first=True)
        lengths = torch.tensor([len(ids[place]) for place in places])
        is_real = torch.arange(token_ids.shape[1]) < rearrange(lengths, "batch -> batch 1")
        hidden = encoder.model(token_ids, is_real)
        total = einsum(hidden, is_real.to(hidden.dtype), "batch tokens d_model, batch tokens -> batch d_model")
        for place, vector in zip(places, functional.normalize(total, dim=-1), strict=True):
            vectors[place] = vector
    return torch.stack(vectors)
