"""How fast the translator learns, beside other toolkits that do the same work, all in one run.

    TTUTOR_DATA=path/to/data python benchmarks/training.py [--rounds 7] [--sections speed wall ...] [--quick]

Transformer-Tiny on English-German Multi30k. Peers (`pip install -r benchmarks/requirements.txt` into an environment of
its own; one that is missing is named in the result with the reason): the tutorial's loop over ``nn.Transformer``,
Hugging Face's Marian, x-transformers' encoder-decoder, JoeyNMT's own trainer, and its model on sorted batches.

- speed: real target tokens by second of one processor core (process CPU time, one thread), each at the best of the
  batch sizes tried, in turn within each round; ratios within a round. Where the processor multiplies bfloat16 natively,
  all that can be run in it from outside, by autocast, are measured in it as well as in float32.
- wall: the same with two threads by wall clock; ours computes two batches side by side, the others one.
- curves: the training loss of each after as many real target tokens, on the same batches, from the same recipe.
- share: what part of the processor's own peak in matrix products that is, and where the rest goes, by operation.
- memory: the peak resident size of a fresh process that trains.

Writes benchmarks/results/training.json.
"""

import argparse
import gc
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch loads

import torch

from benchmarks import _in_turn, _training_joey, _training_peers
from experiments import _record
from ttutor.corpora.corpus import Corpus
from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.training.batching import TokenPair
from ttutor.training.dropout import drawing_from
from ttutor.training.precision import resolve_precision
from ttutor.training.preparation import token_pairs, train_tokenizer
from ttutor.training.recipe import TrainingRecipe
from ttutor.training.trainer import Trainer
from ttutor.transformer.accounting import account
from ttutor.translation.training_text import files_for, read_corpus

BENCHMARKS = Path(__file__).resolve().parent
RESULTS = BENCHMARKS / "results" / "training.json"
SECTIONS = ("speed", "wall", "curves", "share", "memory")
PACKAGES = ("torch", "transformers", "x-transformers", "joeynmt")
BATCH_SIZES = (1024, 2048, 4096)
MEASURED_TOKENS = 10_000
"""Real target tokens that each peer learns from in a round, at least."""

MAKERS: dict[str, Callable] = {
    "nn.Transformer": _training_peers.torch_transformer,
    "Marian": _training_peers.marian,
    "Marian, eager attention": partial(_training_peers.marian, attention="eager"),
    "x-transformers": _training_peers.x_transformers,
    "x-transformers, without flash": partial(_training_peers.x_transformers, flash=False),
    "JoeyNMT": _training_joey.joey_trainer,
    "JoeyNMT, sorted batches": _training_joey.joey_model,
}

OURS = {"ttutor": "adamw", "ttutor with Muon": "muon"}
"""Ours by name, with the optimizer: the one that the peers have, and that of the presets."""

IN_FLOAT32 = ("JoeyNMT",)
"""Peers whose own trainer has no other number format on a processor."""

Step = Callable[[], tuple[int, float]]


class Runner(NamedTuple):
    """What takes part in a race."""

    name: str
    precision: str

    def __str__(self) -> str:
        return f"{self.name}, {self.precision}"


# What is trained ------------------------------------------------------------------------------------------------------


@cache
def corpus() -> Corpus:
    """The text that the preset trains on."""
    recipe = TrainingRecipe.preset("multi30k-short")
    return read_corpus(files_for(recipe, {}), recipe.seed)


@cache
def tokenizer() -> SubwordTokenizer:
    return train_tokenizer(corpus(), TrainingRecipe.preset("multi30k-short"))


@cache
def pairs() -> list[TokenPair]:
    return token_pairs(corpus().train, tokenizer(), 128)[0]


def trainer(runner: Runner, tokens_per_batch: int, batches_per_step: int = 1) -> Trainer:
    """Ours, with the recipe that the peers have."""
    recipe = TrainingRecipe(
        name="peers",
        tokens_per_batch=tokens_per_batch,
        batches_per_step=batches_per_step,
        optimizer=OURS[runner.name],
        learning_rate=_training_peers.LEARNING_RATE,
        warmup=_training_peers.WARMUP,
        dropout=_training_peers.DROPOUT,
        label_smoothing=_training_peers.SMOOTHING,
        clip_norm=_training_peers.CLIP,
        decay_from=0.99,
        steps=1_000_000,
        **_training_peers.SIZES,
    )
    return Trainer(corpus(), recipe, tokenizer=tokenizer(), precision=runner.precision)


def ours(runner: Runner, tokens_per_batch: int, batches_per_step: int = 1) -> Step:
    """Our trainer, step by step, its moving average of weights included."""
    training = trainer(runner, tokens_per_batch, batches_per_step)

    def step() -> tuple[int, float]:
        batches = training.next_batches()
        return sum(batch.n_target_tokens for batch in batches), training.training_step(batches)

    return step


def make(runner: Runner, tokens_per_batch: int, batches_per_step: int = 1) -> Step:
    """A runner ready to train; a peer in bfloat16 under autocast, as its user would write it.

    Raises:
        ModuleNotFoundError: its package is not installed.
    """
    torch.manual_seed(0)
    if runner.name in OURS:
        return ours(runner, tokens_per_batch, batches_per_step)
    step = MAKERS[runner.name](pairs(), tokenizer().vocab_size, tokens_per_batch)
    if runner.precision != "fp32":
        step.precision = runner.precision
    return step


def present() -> tuple[list[Runner], dict[str, str]]:
    """Those that can be measured here, and for the others the reason why not; ours in its own number format first."""
    native, missing = resolve_precision("auto"), {}
    runners = [Runner(name, native) for name in OURS]
    if native != "fp32":
        runners.append(Runner("ttutor", "fp32"))
    for name in MAKERS:
        try:
            make(Runner(name, "fp32"), 2048)
        except ModuleNotFoundError as error:
            missing[name] = f"{error.name} is not installed; benchmarks/requirements*.txt say how"
        else:
            precisions = {"fp32"} if name in IN_FLOAT32 else {"fp32", native}
            runners += [Runner(name, precision) for precision in sorted(precisions)]
    return runners, missing


# Measuring ------------------------------------------------------------------------------------------------------------


def tokens_by_second(step: Step, clock: Callable[[], float], least: int = MEASURED_TOKENS) -> float:
    """Real target tokens by second of this clock, over steps that learn from at least so many."""
    n_tokens, started = 0, clock()
    while n_tokens < least:
        n_tokens += step()[0]
    return n_tokens / (clock() - started)


def best_sizes(
    runners: list[Runner], clock: Callable[[], float], quick: bool, batches_per_step: int = 1
) -> dict[Runner, int]:
    """For each the batch size at which it is fastest; a first step warms it up."""
    least, best = (1 if quick else MEASURED_TOKENS), {}
    for runner in runners:
        rates = {}
        for size in BATCH_SIZES[1:2] if quick else BATCH_SIZES:
            step = make(runner, size, batches_per_step)
            step()
            rates[size] = tokens_by_second(step, clock, least)
            gc.collect()
        best[runner] = max(rates, key=rates.get)
        print(f"{runner}: { ({size: round(rate) for size, rate in rates.items()}) }", flush=True)
    return best


def race(rounds: int, quick: bool, clock: Callable[[], float], batches_per_step: int) -> dict:
    """All in turn, in each round in another order; rates, and how many times as fast the first, ours, is."""
    runners, missing = present()
    sizes = best_sizes(runners, clock, quick, batches_per_step)
    steps = {runner: make(runner, sizes[runner], batches_per_step) for runner in runners}
    for step in steps.values():
        step()
    rates: dict[Runner, list[float]] = {runner: [] for runner in runners}
    for order in _in_turn.shuffled(runners, rounds):
        for runner in order:
            rates[runner].append(tokens_by_second(steps[runner], clock, 1 if quick else MEASURED_TOKENS))
    first, rows = runners[0], []
    for runner in runners:
        row = {
            **runner._asdict(),
            "tokens_per_batch": sizes[runner],
            "tokens_per_second": _in_turn.spread(rates[runner]),
        }
        rows.append(row | ({"ttutor_to_it": _in_turn.ratio(rates[first], rates[runner])} if runner != first else {}))
    return {"rounds": rounds, "rows": rows, "missing": missing}


def speed(rounds: int, quick: bool) -> dict:
    """One thread, process CPU time."""
    torch.set_num_threads(1)
    return race(rounds, quick, time.process_time, batches_per_step=1)


def wall(rounds: int, quick: bool) -> dict:
    """Two threads, wall clock: ours takes two batches at a time, the others compute one with two threads."""
    torch.set_num_threads(2)
    try:
        return race(rounds, quick, time.perf_counter, batches_per_step=2)
    finally:
        torch.set_num_threads(1)


def curves(rounds: int, quick: bool) -> dict:
    """Mean training loss by twenty thousand real target tokens, one seed each, batches of 2,048 tokens.

    The loss is smoothed cross-entropy, in nats by token; x-transformers has none to smooth, and is left out here.
    """
    runners, missing = present()
    every, until = (4_000, 8_000) if quick else (20_000, 160_000)
    rows = []
    for runner in runners:
        if runner.name.startswith("x-transformers"):
            continue
        step, n_tokens, total, seen, points = make(runner, 2048), 0, 0.0, 0, []
        while n_tokens < until:
            more, loss = step()
            n_tokens, total, seen = n_tokens + more, total + loss * more, seen + more
            if seen >= every:
                points.append({"tokens": n_tokens, "loss": round(total / seen, 4)})
                total, seen = 0.0, 0
        rows.append({**runner._asdict(), "points": points})
        print(json.dumps(rows[-1]), flush=True)
    return {"rows": rows, "missing": missing}


def share(rounds: int, quick: bool) -> dict:
    """Operations by real target token, the processor's own peak, and where the time goes."""
    training = trainer(Runner("ttutor", resolve_precision("auto")), 2048)
    training.training_step(training.next_batches())
    rates = [training_rate(training, quick) for _ in range(1 if quick else rounds)]
    flops = flops_by_token(training)
    peak = statistics.median(peak_flops(256 if quick else 2048, training.precision) for _ in range(rounds))
    reached = statistics.median(rates) * flops
    return {
        "megaflops_per_target_token": _in_turn.digits(flops / 1e6),
        "peak_gigaflops_per_second": _in_turn.digits(peak / 1e9),
        "reached_gigaflops_per_second": _in_turn.digits(reached / 1e9),
        "share_of_peak": _in_turn.digits(reached / peak),
        "precision": training.precision,
        "operations": profile(training, 1 if quick else 8),
    }


def training_rate(training: Trainer, quick: bool) -> float:
    """Real target tokens by second of CPU time."""

    def step() -> tuple[int, float]:
        batches = training.next_batches()
        return batches[0].n_target_tokens, training.training_step(batches)

    return tokens_by_second(step, time.process_time, 1 if quick else MEASURED_TOKENS)


def flops_by_token(training: Trainer) -> float:
    """Matrix products of a step, forward and backward, by real target token, padding of the source counted in."""
    total = tokens = 0
    for batch in training.batches.epoch(0):
        (rows, n_source), n_target = batch.source.shape, batch.target_in.shape[1]
        cost = account(training.model.config, n_tokens=n_target, n_memory=n_source, batch=rows)
        total += cost.training_flops
        tokens += batch.n_target_tokens
    return total / tokens


def peak_flops(size: int, precision: str) -> float:
    """What one thread reaches in one large product."""
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    first, second = torch.randn(size, size, dtype=dtype), torch.randn(size, size, dtype=dtype)
    first @ second
    started = time.process_time()
    for _ in range(3):
        first @ second
    return 3 * 2 * size**3 / (time.process_time() - started)


def profile(training: Trainer, n_steps: int) -> dict[str, float]:
    """The share of CPU time of each kind of operation, the largest first; what is under 1 % stands together."""
    place = training.lanes.generators[0]

    def here(work: Callable, items: list) -> list:
        with drawing_from(place):
            return [work(item) for item in items]

    training.lanes.map = here  # in this thread, where the profiler looks
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as recorded:
        for _ in range(n_steps):
            training.training_step(training.next_batches())
    spent: Counter = Counter()
    for event in recorded.key_averages():
        spent[event.key] += event.self_cpu_time_total
    total = sum(spent.values())
    shares = {name: time / total for name, time in spent.most_common() if time >= 0.01 * total}
    return {name: round(part, 3) for name, part in (shares | {"the rest": 1 - sum(shares.values())}).items()}


def memory(rounds: int, quick: bool) -> dict:
    """Peak resident megabytes of a fresh process that trains ten steps of 2,048 tokens, and of one that only loads."""
    runners, missing = present()
    rows = []
    for runner in [Runner("nothing", "fp32"), *runners]:
        command = [sys.executable, str(Path(__file__)), "--peak-of", *runner]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rows.append({**runner._asdict(), "peak_megabytes": int(done.stdout.split()[-1]) // 1_000_000})
        print(json.dumps(rows[-1]), flush=True)
    return {"rows": rows, "missing": missing}


def print_peak(runner: Runner) -> None:
    """Train a little and print this process's peak resident size in bytes."""
    torch.set_num_threads(1)
    if runner.name == "nothing":
        pairs()
    else:
        step = make(runner, 2048)
        for _ in range(10):
            step()
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    print(int(line.split()[1]) * 1024)


# The command ----------------------------------------------------------------------------------------------------------


def main() -> None:
    """Run the sections and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sections", nargs="+", default=SECTIONS, choices=SECTIONS)
    parser.add_argument("--quick", action="store_true", help="a step each, nothing written: to see whether it runs")
    parser.add_argument("--peak-of", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak_of:
        return print_peak(Runner(*options.peak_of))
    torch.set_num_threads(1)
    found = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() and not options.quick else {}
    for name in options.sections:
        print(f"# {name}", flush=True)
        started = time.monotonic()
        figures = globals()[name](2 if options.quick else options.rounds, options.quick)
        found[name] = {
            "command": f"python benchmarks/training.py --sections {name} --rounds {options.rounds}",
            "minutes": round((time.monotonic() - started) / 60, 1),
            "machine": _record.machine() | {"load_average": [round(load, 1) for load in os.getloadavg()]},
            "versions": versions(),
            **figures,
        }
        if not options.quick:
            RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(json.dumps(found[name], indent=1), flush=True)


def versions() -> dict[str, str]:
    """Of what was measured."""
    installed = {distribution.name.lower(): distribution.version for distribution in importlib.metadata.distributions()}
    return {name: installed[name] for name in PACKAGES if name in installed}


if __name__ == "__main__":
    main()
