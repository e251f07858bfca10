"""What waiting costs: the same products with one matrix, word after word and all words at once, on one core.

A recurrence carries its page over by h U at each word, and word t has to wait for word t - 1; a layer without a
recurrence multiplies all T words by its matrix in one call. The multiplications are as many, so the ratio of the times
is what the waiting costs on this processor: at each step the matrix is fetched anew, and a call has its fixed price.
Processor seconds, the smallest of some repetitions, for one sentence and for 32 side by side. Less than a minute.
"""

import time
from collections.abc import Callable

import torch

from experiments import _record

N_TOKENS, WIDTHS, BATCHES, REPEATS = 256, [64, 256, 1024], [1, 32], 7


def seconds(run: Callable[[], object]) -> float:
    """Processor seconds of the fastest of some runs."""
    taken = []
    for _ in range(REPEATS):
        started = time.process_time()
        run()
        taken.append(time.process_time() - started)
    return min(taken)


def word_by_word(matrix: torch.Tensor, page: torch.Tensor) -> torch.Tensor:
    for _ in range(N_TOKENS):
        page = page @ matrix
    return page


@torch.no_grad()
def main() -> None:
    torch.set_num_threads(1)
    started, rows = _record.start(), []
    for width in WIDTHS:
        for batch in BATCHES:
            torch.manual_seed(0)
            matrix, page = torch.randn(width, width) / width**0.5, torch.randn(batch, width)
            words = torch.randn(batch * N_TOKENS, width)
            waits = seconds(lambda matrix=matrix, page=page: word_by_word(matrix, page))
            at_once = seconds(lambda matrix=matrix, words=words: words @ matrix)
            rows.append({"width": width, "sentences": batch, "word_by_word": round(1000 * waits, 2)})
            rows[-1] |= {"at_once": round(1000 * at_once, 2), "ratio": round(waits / at_once, 1)}
            print(rows[-1], flush=True)
    result = {"settings": {"n_tokens": N_TOKENS, "repeats": REPEATS, "unit": "milliseconds"}, "rows": rows}
    _record.write("recurrence_waiting", result, seeds=[0], started=started)


if __name__ == "__main__":
    main()
