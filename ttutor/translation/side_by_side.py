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

from ttutor.layers import drawing_from

Item, Result = TypeVar("Item"), TypeVar("Result")


class SideBySide:
    """Places at which work is done at the same time; what dropout drops at one place depends on that place alone.

    PyTorch's operations let other Python threads run while they compute, so threads will do and no second process is
    needed. Where there are fewer threads than places, places wait for each other; the results stay the same.

    Args:
        n_places: how many items are worked on at one time.
        seed: of the random numbers of all places.

    >>> places = SideBySide(2, seed=0)
    >>> places.map(lambda number: number**2, [1, 2, 3])
    [1, 4, 9]
    """

    def __init__(self, n_places: int, seed: int):
        n_threads = torch.get_num_threads()
        self.generators = [torch.Generator().manual_seed(_seed_of(seed, place)) for place in range(n_places)]
        self._threads = ThreadPoolExecutor(
            max_workers=min(n_places, n_threads),
            thread_name_prefix="ttutor",
            initializer=torch.set_num_threads,
            initargs=(max(1, n_threads // n_places),),
        )

    def map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """The results of `work`, in the order of the items; item i is worked on at place i modulo their number.

        Raises:
            Exception: what `work` raised, of the first item that failed.
        """

        def at(place: int) -> list[Result]:
            with drawing_from(self.generators[place]):
                return [work(item) for item in items[place :: len(self.generators)]]

        found = list(self._threads.map(at, range(min(len(items), len(self.generators)))))
        return [found[index % len(found)][index // len(found)] for index in range(len(items))]

    def states(self) -> list[torch.Tensor]:
        """The state of each place's random numbers, to go on from."""
        return [generator.get_state() for generator in self.generators]

    def restore(self, states: Sequence[torch.Tensor]) -> None:
        """Go on from states that `states` gave."""
        for generator, state in zip(self.generators, states, strict=True):
            generator.set_state(state)


def _seed_of(seed: int, place: int) -> int:
    """A seed for one place, so that neighbouring seeds and places share no random numbers."""
    first, second = np.random.SeedSequence([seed, place]).generate_state(2, dtype=np.uint32)
    return int(first) << 32 | int(second)
