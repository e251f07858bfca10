"""Work at several lanes: the order of the results, random numbers that depend on the lane alone, and errors."""

import threading
import time

import pytest
import torch

from ttutor.training.dropout import FastDropout
from ttutor.training.parallel_batches import ParallelBatches

ONES = torch.ones(64)


def drop(_) -> torch.Tensor:
    return FastDropout(0.5)(ONES)


@pytest.mark.parametrize("n_items", [1, 2, 3, 7])
@pytest.mark.parametrize("n_lanes", [1, 2, 3])
def test_results_come_in_the_order_of_the_items(n_lanes, n_items):
    def slow_at_first(number: int) -> int:
        time.sleep(0.01 / (1 + number))
        return 10 * number

    assert ParallelBatches(n_lanes, seed=0).map(slow_at_first, range(n_items)) == [10 * item for item in range(n_items)]


def test_two_threads_work_at_the_same_time(threads):
    threads(2)
    both = threading.Barrier(2, timeout=20)
    lanes = ParallelBatches(2, seed=0).map(lambda _: both.wait(), [1, 2])  # a barrier that one alone would never pass
    assert sorted(lanes) == [0, 1]


@pytest.mark.parametrize("n_lanes", [2, 3])
def test_what_is_dropped_does_not_depend_on_the_number_of_threads(threads, n_lanes):
    found = []
    for n_threads in (1, 2, 4):
        threads(n_threads)
        lanes = ParallelBatches(n_lanes, seed=5)
        found.append([torch.stack(lanes.map(drop, range(n_lanes))) for _ in range(20)])
    one, *others = found
    for other in others:
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(one, other, strict=True))


def test_lanes_and_seeds_have_random_numbers_of_their_own():
    drawn = [drawn for seed in (0, 1) for drawn in ParallelBatches(2, seed=seed).map(drop, [1, 2])]
    assert len({tuple(mask.tolist()) for mask in drawn}) == 4


def test_the_states_of_the_random_numbers_can_be_gone_back_to():
    lanes = ParallelBatches(2, seed=0)
    states = lanes.states()
    first = lanes.map(drop, [1, 2])
    lanes.map(drop, [1, 2])
    lanes.restore(states)
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(lanes.map(drop, [1, 2]), first, strict=True))


def test_an_error_comes_through():
    def fails(number: int) -> int:
        if number == 2:
            raise FloatingPointError("item 2")
        return number

    lanes = ParallelBatches(2, seed=0)
    with pytest.raises(FloatingPointError, match="item 2"):
        lanes.map(fails, [1, 2, 3])
    assert lanes.map(fails, [1, 3]) == [1, 3]


@pytest.mark.parametrize("n_items", [1, 2, 3, 7])
def test_one_place_after_another_as_on_a_gpu_works_in_the_callers_thread(n_items):
    lanes = ParallelBatches(2, seed=0)
    lanes._in_turn = True
    assert lanes.map(lambda number: (10 * number, threading.get_ident()), range(n_items)) == [
        (10 * item, threading.get_ident()) for item in range(n_items)
    ]


def test_lanes_shared_by_processes_drop_what_they_drop_in_one():
    whole = ParallelBatches(3, seed=5).map(drop, range(3))
    shared = [ParallelBatches(3, seed=5, here=here).map(drop, here) for here in ([0, 2], [1])]
    assert all(torch.equal(*pair) for pair in zip(whole, [shared[0][0], shared[1][0], shared[0][1]], strict=True))
