"""Beside a busy program: is what a command does by default ever slower than with one thread?

    python benchmarks/beside.py [--works chat gpt ...] [--rounds 4]

Each work runs in two processes, one as its command starts and one with ``OMP_NUM_THREADS=1``, in turn within each
round, once alone and once beside a program that does nothing but use a core. ``default_to_one`` is the time by the
clock of the first by that of the second in the same round: below 1 the default is faster.

- chat: 16 tokens of SmolLM2, as `ttutor chat` writes them (``ttutor fetch smollm2`` brings it).
- gpt: two steps of `ttutor gpt` at size small, on the changelog.
- train: four steps of `ttutor train` on its embedded sentences.
- translate: 256 sentences by the translator that ships, beam 5.
- check: the solutions of chapter 2's exercises.
- products: no command, but one product by size, all of PyTorch's threads against one: 128 columns by a square matrix,
  and one row by a matrix in eight bits.

Writes benchmarks/results/beside.json after every round.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks import _in_turn

BENCHMARKS = Path(__file__).resolve().parent
RESULTS = BENCHMARKS / "results" / "beside.json"
WAYS = ("default", "one")
Times = dict[str, float]
"""What was measured, and the seconds that it took."""


def timed(name: str, work: Callable[[], object]) -> Callable[[], Times]:
    """The same work, which says how long it took by the clock."""

    def run() -> Times:
        started = time.perf_counter()
        work()
        return {name: time.perf_counter() - started}

    return run


def chat() -> Callable[[], Times]:
    from ttutor.pretrained.chat_command import _open

    conversation = _open(None, None, 0.0, 1.0, 0, 16)

    def write() -> None:
        conversation.messages.clear()
        for _ in conversation.answer("Tell me a long story about a fox who wanted to learn how to read."):
            pass

    return timed("chat", write)


def gpt() -> Callable[[], Times]:
    import torch

    from ttutor.device import choose_threads
    from ttutor.language_model.text_training import TextTraining

    text = (BENCHMARKS.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    training = TextTraining(text, size="small", steps=1_000_000)
    torch.set_num_threads(choose_threads(training.largest_product()))
    return timed("gpt", lambda: [training.training_step(1e-3) for _ in range(2)])


def train() -> Callable[[], Times]:
    from ttutor.corpora.corpus import embedded_corpus
    from ttutor.training.recipe import TrainingRecipe
    from ttutor.training.trainer import Trainer

    trainer = Trainer(embedded_corpus(), TrainingRecipe.preset("embedded").replace(steps=1_000_000))
    return timed("train", lambda: [trainer.training_step(trainer.next_batches()) for _ in range(4)])


def translate() -> Callable[[], Times]:
    from ttutor.corpora.corpus import embedded_corpus
    from ttutor.translation.packed import load_default

    sentences = [source for source, _ in embedded_corpus().train[:256]]
    return timed("translate", lambda: load_default().translate(sentences))


def check() -> Callable[[], Times]:
    import torch

    from ttutor.device import choose_threads
    from ttutor.exercises import check, exercises

    torch.set_num_threads(choose_threads())
    handed_in = [(one.id, one.solution or one.reference) for one in exercises("attention")]
    return timed("check", lambda: [check(*one) for one in handed_in])


def products() -> Callable[[], Times]:
    import torch
    from torch.nn.functional import linear

    made: dict[str, Callable[[], object]] = {}
    for power in range(17, 32, 2):
        width = 128 if power < 25 else 512
        rows, weight = torch.randn(2**power // width**2, width), torch.randn(width, width)
        made[f"2^{power} multiplications"] = partial(linear, rows, weight)
    for width in (1536, 49152):
        codes, scales = torch.ones(width, 576, dtype=torch.int8), torch.ones(width, dtype=torch.bfloat16)
        row = torch.randn(1, 576, dtype=torch.bfloat16)
        made[f"a row by 576 x {width} in eight bits"] = partial(torch._weight_int8pack_mm, row, codes, scales)

    @torch.inference_mode()
    def run() -> Times:
        found = {}
        for name, product in made.items():
            seconds = min(timed(name, product)()[name] for _ in range(3))
            times = max(1, round(0.02 / seconds))
            found[name] = timed(name, lambda product=product, times=times: [product() for _ in range(times)])()[name]
            found[name] /= times
        return found

    return run


WORKS = {work.__name__: work for work in (chat, gpt, train, translate, check, products)}


class Worker:
    """A work in a process of its own, which does it whenever it is asked to."""

    def __init__(self, work: str, way: str) -> None:
        settings = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
        settings |= {"OMP_NUM_THREADS": "1"} if way == "one" else {}
        command = [sys.executable, "-W", "ignore", str(Path(__file__)), "--serve", work]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=settings)

    def __call__(self) -> Times:
        """Do it, and say how long it took."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print("again", file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


def serve(work: str) -> None:
    """Do a work at every line that comes in, and answer with its times; the first time warms up."""
    run = WORKS[work]()
    run()
    for _ in sys.stdin:
        print(json.dumps(run()), flush=True)


@contextmanager
def beside(company: str) -> Iterator[None]:
    """While this is open, a program uses a core, or nothing does."""
    program = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if company == "busy" else None
    time.sleep(0.1)
    try:
        yield
    finally:
        if program:
            program.kill()
            program.wait()


def rows_of(seen: dict[tuple[str, str, str], list[float]]) -> list[dict]:
    """For each thing measured, alone and beside the program, the seconds of both ways and their ratio."""
    rows = []
    for name, company in dict.fromkeys((name, company) for name, company, _ in seen):
        seconds = {way: seen[name, company, way] for way in WAYS}
        row = {"name": name, "beside": company} | {
            f"seconds_{way}": _in_turn.digits(statistics.median(values)) for way, values in seconds.items()
        }
        rows.append(row | {"default_to_one": _in_turn.ratio(seconds["default"], seconds["one"])})
    return rows


def main() -> None:
    """Measure round by round, and write the file after each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--works", nargs="+", default=list(WORKS), choices=WORKS)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--serve", choices=WORKS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve)
    from experiments import _record

    workers = {(work, way): Worker(work, way) for work in options.works for way in WAYS}
    for worker in workers.values():
        worker()  # until all are there
    seen: dict[tuple[str, str, str], list[float]] = {}
    order = random.Random(0)
    for n_rounds in range(1, options.rounds + 1):
        for work in options.works:
            for company in ("nothing", "busy"):
                with beside(company):
                    for way in order.sample(WAYS, len(WAYS)):
                        for name, seconds in workers[work, way]().items():
                            seen.setdefault((name, company, way), []).append(seconds)
        found = {
            "command": f"python benchmarks/beside.py --rounds {options.rounds} --works {' '.join(options.works)}",
            "machine": _record.machine() | {"load_average": [round(load, 1) for load in os.getloadavg()]},
            "versions": _record.versions(),
            "rounds": n_rounds,
            "rows": rows_of(seen),
        }
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for row in rows_of(seen):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
