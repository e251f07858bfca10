"""Several processes that train together, as a launcher starts them, without the seconds that a launcher takes.

They are forked from a clean server that has imported the trainer already.
"""

import multiprocessing
import os
import socket
from collections.abc import Callable

import torch
import torch._dynamo

from tests.training.tiny import tiny_corpus, tiny_recipe
from ttutor.training.processes import LAUNCHED, Processes
from ttutor.training.run_folder import RunFolder
from ttutor.training.trainer import Trainer

LIMIT = 120
"""Seconds after which a test takes processes for stuck."""

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.training.ranks"])


def in_processes(count: int, work: Callable, *arguments) -> list:
    """What `work(processes, *arguments)` gives in each process: its result, the error it raised, or None if it died."""
    port, started = _free_port(), []
    for rank in range(count):
        here, there = _context.Pipe(duplex=False)
        process = _context.Process(target=_work_at, args=(rank, count, port, there, work, arguments), daemon=True)
        process.start()
        there.close()
        started.append((process, here))
    return [_outcome(process, pipe) for process, pipe in started]


def _outcome(process, pipe):
    if not pipe.poll(LIMIT):
        process.kill()
        raise AssertionError(f"no word from process {process.pid} within {LIMIT} seconds")
    try:
        return pipe.recv()
    except EOFError:
        return None
    finally:
        process.join(LIMIT)


def _work_at(rank, count, port, pipe, work, arguments) -> None:
    values = (rank, count, rank, count, "127.0.0.1", port)
    os.environ.update(zip(LAUNCHED, map(str, values), strict=True))
    torch.set_num_threads(1)
    processes = Processes.launched()
    try:
        outcome = work(processes, *arguments)
    except (Exception, KeyboardInterrupt) as error:
        outcome = error
    pipe.send(outcome)
    pipe.close()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def tiny_trainer(processes: Processes | None = None, folder=None, **changes) -> Trainer:
    """A trainer of the tiny recipe, in float32; in the folder if there is one."""
    run = RunFolder(folder) if folder else None
    return Trainer(tiny_corpus(), tiny_recipe(**changes), run, precision="fp32", processes=processes)


def numbers(trainer: Trainer) -> dict:
    """All that a training leaves: its losses, and its weights and averages as bytes."""
    tensors = [*trainer.model.parameters(), *trainer.average.tensors.values()]
    return {
        "training": [record["training_loss"] for record in trainer.metrics],
        "validation": [record["validation_loss"] for record in trainer.metrics],
        "target_tokens": trainer.position.target_tokens,
        "bytes": b"".join(tensor.detach().numpy().tobytes() for tensor in tensors),
    }
