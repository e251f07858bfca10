"""What searches for translations: our own search, or the program that an exported model runs in."""

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any, Protocol, runtime_checkable

import torch
from torch import nn

from ttutor.generation import Hypothesis, beam_search, greedy_search, length_penalty
from ttutor.generation.writer import check_writes
from ttutor.tokenization import BOS_ID, EOS_ID
from ttutor.training.batching import pad
from ttutor.training.precision import products_in
from ttutor.transformer import Transformer, TransformerConfig
from ttutor.translation.fast_decoder import FastTransformer, can_be_fast

__all__ = ["Engine", "OwnEngine", "rank"]


@runtime_checkable
class Engine(Protocol):
    """What finds translations of token ids.

    Attributes:
        config: the sizes of the model that it runs.
    """

    config: TransformerConfig

    def search(
        self, sources: Sequence[Sequence[int]], *, beam_size: int, length_penalty: float, max_new_tokens: int
    ) -> list[list[Hypothesis]]:
        """What was found for each source, best first.

        Args:
            sources: token ids of each sentence, with its end mark.
            beam_size: how many partial translations are kept; 1 is greedy search.
            length_penalty: the exponent of Wu et al. (2016), equation 14.
            max_new_tokens: how long a translation may become.
        """
        ...


class OwnEngine:
    """The package's search over one of its models.

    On a CPU the model is prepared for it once (`ttutor.translation.fast_decoder`), and anew when its weights have
    changed. What is written through ``.data``, which PyTorch does not count as a change, is not noticed.

    Args:
        model: an encoder-decoder, as `ttutor.generation.EncoderDecoder`.
        precision: the number format of the matrix products.
    """

    def __init__(self, model: nn.Module, precision: str = "fp32") -> None:
        self.model, self.config, self.precision = model, check_writes(model).config, precision
        self._prepared: tuple[list[tuple[int, int]], Any] | None = None
        self._preparing = Lock()

    def search(
        self, sources: Sequence[Sequence[int]], *, beam_size: int, length_penalty: float, max_new_tokens: int
    ) -> list[list[Hypothesis]]:
        """What was found for each source, best first."""
        device = next((parameter.device for parameter in self.model.parameters()), torch.device("cpu"))
        source_ids, writer = pad(sources).to(device), self.prepare()
        # The fast decoder knows its number format itself.
        precision = self.precision if writer is self.model else "fp32"
        with products_in(precision, device, keep=True):
            if beam_size == 1:
                found = greedy_search(writer, source_ids, bos_id=BOS_ID, eos_id=EOS_ID, max_new_tokens=max_new_tokens)
                return [[hypothesis] for hypothesis in found]
            return beam_search(
                writer,
                source_ids,
                bos_id=BOS_ID,
                eos_id=EOS_ID,
                max_new_tokens=max_new_tokens,
                beam_size=beam_size,
                alpha=length_penalty,
            )

    def prepare(self) -> Any:
        """What the search writes with: the model as it is now, prepared where it can be."""
        if not isinstance(self.model, Transformer) or not can_be_fast(self.model):
            return self.model
        with self._preparing:
            versions = [(weight.data_ptr(), weight._version) for weight in self.model.parameters()]
            if self._prepared is None or self._prepared[0] != versions:
                dtype = torch.bfloat16 if self.precision == "bf16" else torch.float32
                self._prepared = versions, FastTransformer(self.model, dtype)
            return self._prepared[1]


def rank(found: Iterable[tuple[Sequence[int], float]], *, beam_size: int, alpha: float, limit: int) -> list[Hypothesis]:
    """Order another program's hypotheses as our beam search does: by log probability over our length penalty.

    Each program penalises length by a formula of its own. So we ask it for every finished hypothesis without a
    penalty, and rank them ourselves.

    Args:
        found: tokens without start and end mark, and the log probability, of each hypothesis of one sentence.
        beam_size: 1 scores by the log probability alone, as greedy search does.
        alpha: strength of the penalty.
        limit: how long they could become; one that is as long was cut off.

    Example:
        >>> [one.token_ids for one in rank([((5,), -1.0), ((5, 6, 7), -1.1)], beam_size=2, alpha=1.0, limit=9)]
        [(5, 6, 7), (5,)]
    """
    hypotheses = []
    for ids, log_probability in found:
        is_finished = len(ids) < limit
        penalty = length_penalty(len(ids) + is_finished, alpha) if beam_size > 1 else 1.0  # the end mark counts
        ended_by = "eos_id" if is_finished else "max_new_tokens"
        hypotheses.append(Hypothesis(tuple(ids), log_probability, is_finished, log_probability / penalty, ended_by))
    return sorted(hypotheses, key=lambda one: (not one.is_finished, -one.score))
