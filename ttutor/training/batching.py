"""Batches of sentence pairs of similar length, filled by a budget of target tokens.

A batch is a rectangle, as wide as its longest sentence; what shorter ones leave over is padding, computed and thrown
away. Sorting by length before cutting into batches keeps nearly every computed token a real one.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from ttutor.device import to_device
from ttutor.errors import InputError
from ttutor.tokenization import BOS_ID, EOS_ID, PAD_ID

TokenPair = tuple[Sequence[int], Sequence[int]]


@dataclass(frozen=True)
class Batch:
    """Rectangles of token ids, padded on the right.

    `target_in` is what the decoder sees, `target_out` the same sentence one step ahead, which it must predict: the
    shift that makes every position's loss computable in one pass (teacher forcing).
    """

    source: Int[Tensor, "batch source"]
    target_in: Int[Tensor, "batch target"]
    target_out: Int[Tensor, "batch target"]
    n_target_tokens: int

    def to(self, device: torch.device) -> "Batch":
        """The batch on a device; the way to a GPU is taken from pinned memory, without waiting for its end."""
        source, target_in, target_out = (
            to_device(part, device) for part in (self.source, self.target_in, self.target_out)
        )
        return Batch(source, target_in, target_out, self.n_target_tokens)


def pad(sequences: Sequence[Sequence[int]]) -> Int[Tensor, "batch tokens"]:
    """One row per sequence, filled up with the padding id on the right.

    >>> pad([[5, 6, 7], [8]]).tolist()
    [[5, 6, 7], [8, 0, 0]]
    """
    if not sequences:
        raise ValueError("expected at least one sequence of token ids to pad, got none; leave empty batches out")
    rectangle = np.full((len(sequences), max(map(len, sequences))), PAD_ID, dtype=np.int64)
    for row, sequence in enumerate(sequences):
        rectangle[row, : len(sequence)] = sequence
    return torch.from_numpy(rectangle)


def make_batch(pairs: Sequence[TokenPair]) -> Batch:
    """Put pairs of token ids into rectangles, with the end mark after each, and the beginning mark before the input.

    >>> batch = make_batch([([7, 8], [9]), ([7], [9, 10])])
    >>> batch.target_in.tolist(), batch.target_out.tolist(), batch.n_target_tokens
    ([[2, 9, 0], [2, 9, 10]], [[9, 3, 0], [9, 10, 3]], 5)
    """
    return Batch(
        source=pad([[*source, EOS_ID] for source, _ in pairs]),
        target_in=pad([[BOS_ID, *target] for _, target in pairs]),
        target_out=pad([[*target, EOS_ID] for _, target in pairs]),
        n_target_tokens=sum(len(target) + 1 for _, target in pairs),
    )


def loss_by_frequency(training: Sequence[TokenPair], validation: Sequence[TokenPair]) -> float:
    r"""Mean loss in nats of a model that knows how often each token comes and nothing else: what learning must beat.

    $$-\frac{1}{N}\sum_{t} \ln \frac{c_t + 1}{C + V}$$

    over all $N$ target tokens of the validation text, the end of each sentence with them; $c_t$ is how often the token
    comes in the training text, $C$ the sum of all $c$, and $V$ how many different tokens both texts have.

    >>> loss = loss_by_frequency([([5], [7]), ([6], [8])], [([5], [7])])
    >>> math.exp(-2 * loss), 3 / 7 * 2 / 7  # the end of a sentence, and token 7
    (0.1224489795918..., 0.1224489795918...)
    """
    counts = Counter(token for _, target in training for token in (*target, EOS_ID))
    asked = [token for _, target in validation for token in (*target, EOS_ID)]
    total = counts.total() + len(counts.keys() | set(asked))
    return -sum(math.log((counts[token] + 1) / total) for token in asked) / len(asked)


class BucketedBatches:
    """Batches over a corpus, each at most `max_tokens` computed tokens on either side, padding counted in.

    Within an epoch every pair comes exactly once. The order follows from seed and epoch alone, so a training resumes
    anywhere by asking for the same `batch` of the same epoch.

    Args:
        pairs: token ids of source and target, without marks.
        max_tokens: the budget of a batch: rows times the length of the longest, for source and for target.
        seed: decides which pairs of equal length meet, and the order of the batches.

    >>> batches = BucketedBatches([([5], [6]), ([7, 8], [9, 10]), ([5], [7])], max_tokens=4, seed=0)
    >>> sorted(len(batch.source) for batch in batches.epoch(0))
    [1, 2]
    """

    def __init__(self, pairs: Sequence[TokenPair], max_tokens: int, seed: int = 0):
        if not pairs:
            raise InputError("there is no sentence pair to make batches of")
        lengths = np.array([(len(target) + 1, len(source) + 1) for source, target in pairs])
        longest = int(lengths.max(axis=1).argmax())
        if lengths[longest].max() > max_tokens:
            raise InputError(
                f"pair {longest + 1} has {lengths[longest].max()} tokens, but a batch may hold {max_tokens}; "
                "raise tokens_per_batch or leave the pair out"
            )
        self.pairs = pairs
        self.max_tokens = max_tokens
        self.seed = seed
        self._lengths = lengths
        self._plans: dict[int, list[list[int]]] = {}

    def plan(self, epoch: int) -> list[list[int]]:
        """Which pairs stand in which batch of this epoch, in order; the plan last asked for is kept."""
        if epoch not in self._plans:
            self._plans = {epoch: self._make_plan(np.random.default_rng([self.seed, epoch]))}
        return self._plans[epoch]

    def _make_plan(self, random: np.random.Generator) -> list[list[int]]:
        """Shuffle, sort by length (equal lengths stay shuffled), cut where the budget is full, shuffle the batches."""
        shuffled = random.permutation(len(self.pairs))
        target, source = self._lengths[shuffled, 0], self._lengths[shuffled, 1]
        batches: list[list[int]] = []
        current: list[int] = []
        widest = 0
        for index in shuffled[np.lexsort((source, target))].tolist():
            widest = max(widest, int(self._lengths[index].max()))
            if (len(current) + 1) * widest > self.max_tokens:
                batches.append(current)
                current, widest = [], int(self._lengths[index].max())
            current.append(index)
        batches.append(current)
        return [batches[position] for position in random.permutation(len(batches))]

    def epoch(self, number: int) -> Iterator[Batch]:
        """The batches of an epoch."""
        for position in range(self.per_epoch(number)):
            yield self.batch(number, position)

    def batch(self, epoch: int, position: int) -> Batch:
        """One batch of an epoch."""
        return make_batch([self.pairs[index] for index in self.plan(epoch)[position]])

    def per_epoch(self, epoch: int = 0) -> int:
        """How many batches the epoch has."""
        return len(self.plan(epoch))

    def real_share(self) -> float:
        """The share of computed target tokens that are real, the rest being padding."""
        target = self._lengths[:, 0]
        computed = sum(len(indices) * int(target[indices].max()) for indices in self.plan(0))
        return float(target.sum()) / computed
