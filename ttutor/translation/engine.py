"""What searches for translations: our own search, or the program that an exported model runs in."""

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import nn

from ttutor.generation import Hypothesis, beam_search, greedy_search, length_penalty
from ttutor.generation.state import check_decodes
from ttutor.generation.step_decoder import made_for_search
from ttutor.tokenization import BOS_ID, EOS_ID
from ttutor.training.batching import pad
from ttutor.training.precision import products_in
from ttutor.transformer import TransformerConfig

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

    Args:
        model: an encoder-decoder, with ``config``, ``encode``, ``decode`` and ``project``.
        precision: the number format of the matrix products.
    """

    def __init__(self, model: nn.Module, precision: str = "fp32") -> None:
        self.model, self.config, self.precision = model, check_decodes(model), precision

    def search(
        self, sources: Sequence[Sequence[int]], *, beam_size: int, length_penalty: float, max_new_tokens: int
    ) -> list[list[Hypothesis]]:
        """What was found for each source, best first."""
        device = next((parameter.device for parameter in self.model.parameters()), torch.device("cpu"))
        source_ids = pad(sources).to(device)
        model = self.model if self.precision == "bf16" else made_for_search(self.model)
        with products_in(self.precision, device, keep=True):
            if beam_size == 1:
                found = greedy_search(model, source_ids, bos_id=BOS_ID, eos_id=EOS_ID, max_new_tokens=max_new_tokens)
                return [[hypothesis] for hypothesis in found]
            return beam_search(
                model,
                source_ids,
                bos_id=BOS_ID,
                eos_id=EOS_ID,
                max_new_tokens=max_new_tokens,
                beam_size=beam_size,
                alpha=length_penalty,
            )


def rank(found: Iterable[tuple[Sequence[int], float]], *, beam_size: int, alpha: float, limit: int) -> list[Hypothesis]:
    """Order what another program found as our beam search does: by log probability over our length penalty.

    Each program has a penalty of its own. Asked for all that its beam has finished, without any, it leaves the choice
    to us, and the best is the same.

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
