"""One process with two threads against two processes with one thread each: the same training, its speed and its curve.

    python benchmarks/training_processes.py [--rounds 8] [--steps 6]

Both train the preset `embedded` from the same start, with Muon and with AdamW, in turn within each round, each in
processes of its own; the first step of each round is not timed. Beside them stands one process with one thread, which
has nobody to wait for. The result says how many real target tokens each computes in a second, and in a second of CPU
time of all its processes; what of that the optimizer's steps take; how long a process waits for the others and sends;
and how far the losses are apart, step by step.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

from experiments import _record
from ttutor.corpora.corpus import embedded_corpus
from ttutor.training.processes import LAUNCHED, Processes
from ttutor.training.recipe import TrainingRecipe
from ttutor.training.trainer import Trainer

BENCHMARKS = Path(__file__).resolve().parent
RESULTS = BENCHMARKS / "results" / "training_processes.json"
OPTIMIZERS = ("muon", "adamw")
SIZES = {"train": 3000, "validation": 20, "test": 1}
FORMS = {
    "one process, two threads": (1, 2),
    "two processes, one thread each": (2, 1),
    "one process, one thread": (1, 1),
}
"""How many processes, and how many threads in each."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=6, help="timed in each round")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


class Stopwatch:
    """Wraps functions, and adds up the seconds and the seconds of CPU time that are spent in them."""

    def __init__(self) -> None:
        self.seconds = self.cpu_seconds = 0.0

    def on(self, work):
        def timed(*arguments):
            seconds, cpu_seconds = time.perf_counter(), time.process_time()
            try:
                return work(*arguments)
            finally:
                self.seconds += time.perf_counter() - seconds
                self.cpu_seconds += time.process_time() - cpu_seconds

        return timed


class Worker:
    """One process of a form: trains some steps of the optimizer that a line of its input names, and answers by a line.

    All forms are there all the time, and one of them works; what importing and beginning cost is not measured.
    """

    def __init__(self, steps: int) -> None:
        self.processes, self.steps, self.trainers = Processes.launched(), steps, {}
        corpus = embedded_corpus(sizes=SIZES)
        for optimizer in OPTIMIZERS:
            recipe = TrainingRecipe.preset("embedded").replace(optimizer=optimizer)
            self.trainers[optimizer] = Trainer(corpus, recipe, processes=self.processes)

    def serve(self) -> None:
        for line in sys.stdin:
            found = self.round(self.trainers[line.strip()])
            if self.processes.is_first:
                print(json.dumps(found), flush=True)

    def round(self, trainer: Trainer) -> dict:
        """Time the next steps; the first of them is not timed."""
        whole, sending, optimizing = Stopwatch(), Stopwatch(), Stopwatch()
        originals = trainer.optimizers.step, self.processes.add_up, self.processes.merged
        losses = [trainer.training_step(trainer.next_batches())]
        trainer.optimizers.step = optimizing.on(trainer.optimizers.step)
        self.processes.add_up, self.processes.merged = map(sending.on, originals[1:])
        step, before = whole.on(lambda: trainer.training_step(trainer.next_batches())), trainer.position.target_tokens
        losses += [step() for _ in range(self.steps)]
        trainer.optimizers.step, self.processes.add_up, self.processes.merged = originals
        spent = torch.tensor([[whole.cpu_seconds, optimizing.cpu_seconds, sending.seconds]], dtype=torch.float64)
        totals = self.processes.merged_rows(spent, self.processes.count).sum(dim=0).tolist()
        return {
            "target_tokens": trainer.position.target_tokens - before,
            "seconds": whole.seconds,
            "cpu_seconds": totals[0],
            "optimizer_cpu_seconds": totals[1],
            "waiting_and_sending_seconds": totals[2] / self.processes.count,
            "gradient_bytes": 4 * trainer.model.n_parameters(),
            "precision": trainer.precision,
            "losses": losses,
        }


class Form:
    """The processes of one form, as torchrun would start them."""

    def __init__(self, n_processes: int, n_threads: int, steps: int) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.workers = []
        for rank in range(n_processes):
            values = (rank, n_processes, rank, n_processes, "127.0.0.1", port)
            environment = os.environ | dict(zip(LAUNCHED, map(str, values), strict=True))
            command = [sys.executable, __file__, "--worker", "--steps", str(steps)]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            environment["OMP_NUM_THREADS"] = str(n_threads)
            self.workers.append(subprocess.Popen(command, env=environment, **pipes))

    def round(self, optimizer: str) -> dict:
        for worker in self.workers:
            print(optimizer, file=worker.stdin, flush=True)
        return json.loads(self.workers[0].stdout.readline())

    def close(self) -> None:
        for worker in self.workers:
            worker.stdin.close()
        for worker in self.workers:
            worker.wait()


def summary(rounds: list[dict]) -> dict:
    """Medians over the rounds, and the lowest and highest speed among them."""
    speeds = [one["target_tokens"] / one["seconds"] for one in rounds]
    per_cpu_second = [one["target_tokens"] / one["cpu_seconds"] for one in rounds]
    steps = len(rounds[0]["losses"]) - 1
    per_step = {
        name: round(1000 * statistics.median(one[name] for one in rounds) / steps, 1)
        for name in ("cpu_seconds", "optimizer_cpu_seconds", "waiting_and_sending_seconds")
    }
    return {
        "target_tokens_per_second": round(statistics.median(speeds)),
        "target_tokens_per_second_range": [round(min(speeds)), round(max(speeds))],
        "target_tokens_per_cpu_second": round(statistics.median(per_cpu_second)),
        "target_tokens_per_cpu_second_range": [round(min(per_cpu_second)), round(max(per_cpu_second))],
    } | {name.replace("seconds", "milliseconds_a_step"): value for name, value in per_step.items()}


def measure(options: argparse.Namespace) -> list[dict]:
    """All forms in turn within each round, for each optimizer."""
    forms = {name: Form(*counts, options.steps) for name, counts in FORMS.items()}
    found = {optimizer: {name: [] for name in forms} for optimizer in OPTIMIZERS}
    for number in range(options.rounds):
        for optimizer in OPTIMIZERS:
            for name in list(forms)[:: 1 if number % 2 else -1]:  # none always goes first
                found[optimizer][name].append(forms[name].round(optimizer))
            print(f"round {number + 1}, {optimizer}", flush=True)
    for form in forms.values():
        form.close()
    return [compared(optimizer, rounds) for optimizer, rounds in found.items()]


def compared(optimizer: str, found: dict[str, list[dict]]) -> dict:
    """What the rounds of all forms say about one optimizer."""
    curves = {name: [loss for one in rounds for loss in one["losses"]] for name, rounds in found.items()}
    reference = curves["one process, two threads"]
    apart = [abs(one - other) for mine in curves.values() for one, other in zip(mine, reference, strict=True)]
    first = found["one process, two threads"][0]
    return {
        "optimizer": optimizer,
        "precision": first["precision"],
        "gradient_bytes": first["gradient_bytes"],
        "target_tokens_a_step": round(first["target_tokens"] / (len(first["losses"]) - 1)),
        "largest_difference_of_losses": max(apart),
        "losses": [round(loss, 4) for loss in reference],
        "forms": {name: summary(rounds) for name, rounds in found.items()},
    }


def main(options: argparse.Namespace) -> None:
    load = [round(value, 1) for value in os.getloadavg()]
    body = {
        "command": _record.command_line("training_processes", sys.argv[1:]).replace("experiments", "benchmarks"),
        "machine": _record.machine() | {"load_average_before": load},
        "versions": _record.versions(),
        "rounds": options.rounds,
        "steps": options.steps,
        "optimizers": measure(options),
    }
    RESULTS.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
    print(f"written: {RESULTS.name}")


if __name__ == "__main__":
    given = arguments()
    if given.worker:
        Worker(given.steps).serve()
    else:
        main(given)
