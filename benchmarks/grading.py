"""How many submissions a minute the grader marks, and where the time goes.

    python benchmarks/grading.py [--submissions 300] [--lanes 1 2] [--levels bubblewrap rlimits] [--fresh 12]

A class of made-up submissions of ten exercises is graded: of every ten, seven are right, two have a wrong answer, one
is the untouched stubs; one of fifty has an answer that never ends, which costs its deadline four times. ``--fresh`` is
how many are graded at levels that start a process for each submission. The first submission of a lane, which waits for
PyTorch, is counted.

Writes benchmarks/results/grading.json: command, machine, versions, figures.
"""

import argparse
import json
import multiprocessing
import os
import resource
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch loads

BENCHMARKS = Path(__file__).resolve().parent
sys.path.insert(0, str(BENCHMARKS.parent / "experiments"))

from ttutor.exercises import find  # noqa: E402
from ttutor.exercises.source import imports, solution_source, stub_source  # noqa: E402
from ttutor.grading.assignment import Worth  # noqa: E402
from ttutor.grading.judging import Grader  # noqa: E402
from ttutor.grading.marks import SourceFile, Submission  # noqa: E402

import _record  # noqa: E402

IDS = (
    "recurrence.read_words attention.softmax attention.scaled_dot_product_attention attention.causal_mask "
    "multihead.split_heads positions.sinusoidal_encoding encoder.layer_norm encoder.lost_stream decoder.top_p "
    "training.masked_loss"
).split()
HANGS = "def my_softmax(scores, dim=-1):\n    while True:\n        pass\n"
WRONG = "def my_softmax(scores, dim=-1):\n    powers = scores.exp()\n    return powers / powers.sum()\n"


@dataclass(frozen=True)
class Homework:
    exercises: tuple[Worth, ...] = tuple(Worth(one, 10.0) for one in IDS)
    seed: str = "the seed of the benchmark"
    seconds: float = 5.0
    memory: int = 2048


def submission(number: int) -> Submission:
    """One of the class."""
    exercises = [find(one) for one in IDS]
    if number % 10 == 9:
        parts = [stub_source(one) for one in exercises]
    else:
        parts = [solution_source(one, f"my_{one.name}") for one in exercises]
    parts += [WRONG] if number % 10 in (6, 7) else []
    parts += [HANGS] if number % 50 == 25 else []
    text = "\n\n".join(["\n".join(imports(*exercises)), *parts])
    return Submission(student=f"s{number:03}", shown="", files=(SourceFile("homework.py", text.encode()),))


def lane(level: str, numbers: list[int], answers: "multiprocessing.Queue") -> None:
    """Grade some submissions in one lane; tell the seconds and the memory of each."""
    started = time.monotonic()
    with Grader(Homework(), sandbox=level) as grader:
        marks = [grader.grade(submission(number)) for number in numbers]
    usage = resource.getrusage(resource.RUSAGE_SELF)
    answers.put(
        {
            "seconds": time.monotonic() - started,
            "judge_cpu_seconds": usage.ru_utime + usage.ru_stime,
            "judge_mib": usage.ru_maxrss / 1024,
            "each": [(mark.seconds, mark.memory_bytes / 2**20, mark.earned) for mark in marks],
        }
    )


def measure(level: str, n_submissions: int, n_lanes: int) -> dict[str, float]:
    """Grade a class, and return the figures."""
    context = multiprocessing.get_context("spawn")
    answers, started = context.Queue(), time.monotonic()
    numbers = [list(range(first, n_submissions, n_lanes)) for first in range(n_lanes)]
    lanes = [context.Process(target=lane, args=(level, mine, answers)) for mine in numbers]
    for one in lanes:
        one.start()
    told = [answers.get() for _ in lanes]
    for one in lanes:
        one.join()
    wall = time.monotonic() - started
    each = [row for one in told for row in one["each"]]
    firsts = [one["each"][0][0] for one in told]
    usual = [row[0] for row in each if row[0] < 4.0] or [row[0] for row in each]
    return {
        "level": level,
        "lanes": n_lanes,
        "submissions": n_submissions,
        "submissions_per_minute": round(60 * n_submissions / wall, 1),
        "median_seconds": round(statistics.median(usual), 3),
        "first_seconds": round(statistics.mean(firsts), 2),
        "start_share": round((sum(firsts) - len(firsts) * statistics.median(usual)) / (wall * n_lanes), 3),
        "hanging_seconds": round(statistics.mean([row[0] for row in each if row[0] >= 4.0] or [0.0]), 2),
        "worker_mib": round(statistics.median(row[1] for row in each), 0),
        "judge_mib": round(max(one["judge_mib"] for one in told), 0),
        "judge_cpu_seconds_per_submission": round(sum(one["judge_cpu_seconds"] for one in told) / n_submissions, 3),
        "load_average": os.getloadavg()[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--submissions", type=int, default=300)
    parser.add_argument("--fresh", type=int, default=12)
    parser.add_argument("--lanes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--levels", nargs="+", default=["bubblewrap", "rlimits"])
    parser.add_argument("--no-record", action="store_true", help="print alone")
    wish = parser.parse_args()
    rows = []
    for level in wish.levels:
        for n_lanes in wish.lanes:
            rows.append(measure(level, wish.submissions if level == "bubblewrap" else wish.fresh, n_lanes))
            print(json.dumps(rows[-1]), flush=True)
    if not wish.no_record:
        record = {
            "command": _record.command_line("grading", sys.argv[1:]).replace("experiments/", "benchmarks/"),
            "machine": _record.machine(),
            "versions": _record.versions(),
            "rows": rows,
        }
        place = BENCHMARKS / "results" / "grading.json"
        place.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        print(place)


if __name__ == "__main__":
    main()
