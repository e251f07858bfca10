"""How fast one core reads and writes memory, by the number of bytes that it goes over again and again; and computes.

A tensor is copied into another of its size, many times in a row; both together are the working set. Small sets stay in
the caches on the processor, large ones have to come from main memory each time. Bytes read and written are counted
once each. Three rounds of all sizes (the "seeds"); of each size and round the best of several repetitions counts, since
other work on the machine can only slow a copy down. Below 64 KiB starting the copy costs more than copying, so that
smaller sets are not measured.
"""

import time

import torch

from experiments import _record

KIB = 1024
SIZES = [64 * KIB << doubling for doubling in range(14)]  # 64 KiB to 512 MiB, both tensors together
ROUNDS, REPETITIONS, TRAFFIC = 3, 9, 2**28
WIDTH = 1024  # of the square matrices


def gigabytes_per_second(working_set: int, repetitions: int = REPETITIONS) -> float:
    """Bytes read and written, in billions a second, best of some repetitions."""
    source = torch.ones(working_set // 2, dtype=torch.uint8)
    target = torch.empty_like(source)
    n_copies = max(1, TRAFFIC // working_set)
    best = float("inf")
    for _ in range(repetitions):
        started = time.perf_counter()
        for _ in range(n_copies):
            target.copy_(source)
        best = min(best, time.perf_counter() - started)
    return n_copies * working_set / best / 1e9


def gigaflops(repetitions: int = REPETITIONS) -> float:
    """Operations of a matrix product, in billions a second, best of some repetitions."""
    left, right = torch.ones(WIDTH, WIDTH), torch.ones(WIDTH, WIDTH)
    product = torch.empty(WIDTH, WIDTH)
    best = float("inf")
    for _ in range(repetitions):
        started = time.perf_counter()
        torch.mm(left, right, out=product)
        best = min(best, time.perf_counter() - started)
    return 2 * WIDTH**3 / best / 1e9


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    rounds = [[round(gigabytes_per_second(size), 1) for size in SIZES] for _ in range(ROUNDS)]
    products = [round(gigaflops(), 1) for _ in range(ROUNDS)]
    results = {"working_set_bytes": SIZES, "gigabytes_per_second": rounds, "gigaflops": products}
    print(results, flush=True)
    _record.write("efficient_bandwidth", results, seeds=list(range(ROUNDS)), started=started)


if __name__ == "__main__":
    main()
