"""Several batches at the same time, each on a thread of its own, with random numbers of its own.

At the sizes of a small translator one batch cannot keep two cores busy: each operation is over before a second thread
has been woken for it. Two batches can. Their results do not depend on how many threads there are, nor on which of them
is done first.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import torch

from ttutor.errors import FileError
from ttutor.training.dropout import drawing_from

CPU = torch.device("cpu")
Item = TypeVar("Item")
Result = TypeVar("Result")


class ParallelBatches:
    """Lanes at which work is done at the same time; what dropout drops in one lane depends on that lane alone.

    PyTorch's operations let other Python threads run while they compute, so threads will do and no second process is
    needed. Where there are fewer threads than lanes, lanes wait for each other; the results stay the same. So they do
    where several processes share the lanes, if each has the same items in its lanes.

    A GPU works on one thing at a time as fast as on two: there, one lane is worked in after another. Its random
    numbers begin anew at each call of `map`, from a seed that the lane's generator on the CPU draws. Thus the states
    are those of generators on the CPU everywhere, and a training may go on on another device.

    Args:
        n_lanes: how many items are worked on at one time.
        seed: of the random numbers of all lanes.
        here: which of the lanes are in this process; all, if not given.
        device: where the work is done.
    """

    def __init__(
        self,
        n_lanes: int,
        seed: int,
        *,
        here: Sequence[int] | None = None,
        device: torch.device = CPU,
    ):
        n_threads, here = torch.get_num_threads(), range(n_lanes) if here is None else here
        self.generators = [torch.Generator().manual_seed(_seed_of(seed, lane)) for lane in here]
        self._device = device
        self._in_turn = device.type != "cpu"
        self._threads = ThreadPoolExecutor(
            max_workers=min(len(here), n_threads),
            thread_name_prefix="ttutor",
            initializer=torch.set_num_threads,
            initargs=(max(1, n_threads // len(here)),),
        )

    def map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """The results of `work`, in the order of the items; item i is worked on in lane i modulo their number."""

        def at(lane: int) -> list[Result]:
            with drawing_from(self._source(lane)):
                return [work(item) for item in items[lane :: len(self.generators)]]

        map_lanes = map if self._in_turn else self._threads.map
        found = list(map_lanes(at, range(min(len(items), len(self.generators)))))
        return [found[index % len(found)][index // len(found)] for index in range(len(items))]

    def _source(self, lane: int) -> torch.Generator:
        """Where a lane's dropout draws from, during one call of `map`."""
        if not self._in_turn:
            return self.generators[lane]
        seed = int(torch.randint(2**63 - 1, (), generator=self.generators[lane]))
        return torch.Generator(self._device).manual_seed(seed)

    def states(self) -> list[torch.Tensor]:
        """The state of the random numbers of each lane here, to go on from."""
        return [generator.get_state() for generator in self.generators]

    def restore(self, states: Sequence[torch.Tensor]) -> None:
        """Go on from states that `states` gave."""
        try:
            for generator, state in zip(self.generators, states, strict=True):
                generator.set_state(state)
        except (RuntimeError, TypeError, ValueError) as error:
            raise FileError(f"this checkpoint's random numbers are of another training ({error}); train anew") from None


def _seed_of(seed: int, lane: int) -> int:
    """A seed for one lane, so that neighbouring seeds and lanes share no random numbers."""
    first, second = np.random.SeedSequence([seed, lane]).generate_state(2, dtype=np.uint32)
    return int(first) << 32 | int(second)
