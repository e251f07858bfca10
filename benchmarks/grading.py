"""How long the grader takes for a submission, and how many it marks in a minute.

    python benchmarks/grading.py [--submissions 40] [--jobs 1 2] [--trusted]

A class of made-up submissions of ten exercises is graded as `ttutor grade` does: of every ten, seven are right, two
have a wrong answer, one is the untouched stubs; one of fifty has an answer that never ends, which costs its deadline
for each case.

Writes benchmarks/results/grading.json: command, machine, versions, figures.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch loads

BENCHMARKS = Path(__file__).resolve().parent

from experiments import _record  # noqa: E402
from ttutor.exercises import find  # noqa: E402
from ttutor.exercises.source import imports, solution_source, stub_source  # noqa: E402
from ttutor.grading.grade_request import GradeRequest, grade_class  # noqa: E402
from ttutor.grading.sandbox import BUBBLEWRAP, TRUSTED, bytecode  # noqa: E402
from ttutor.grading.self_test import everything  # noqa: E402

IDS = (
    "recurrence.read_words attention.softmax attention.scaled_dot_product_attention attention.causal_mask "
    "multihead.split_heads positions.sinusoidal_encoding encoder.layer_norm encoder.lost_stream decoder.top_p "
    "training.masked_loss"
).split()
HANGS = "def my_softmax(scores, dim=-1):\n    while True:\n        pass\n"
WRONG = "def my_softmax(scores, dim=-1):\n    powers = scores.exp()\n    return powers / powers.sum()\n"


def submission(number: int) -> str:
    """One of the class."""
    exercises = [find(one) for one in IDS]
    if number % 10 == 9:
        parts = [stub_source(one) for one in exercises]
    else:
        parts = [solution_source(one, f"my_{one.name}") for one in exercises]
    parts += [WRONG] if number % 10 in (6, 7) else []
    parts += [HANGS] if number % 50 == 25 else []
    return "\n\n".join(["\n".join(imports(*exercises)), *parts])


def measure(sandbox: str, n_submissions: int, jobs: int) -> dict[str, float]:
    """Grade a class, and return the figures."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "in").mkdir()
        for number in range(n_submissions):
            (folder / "in" / f"s{number:03}.py").write_text(submission(number), encoding="utf-8")
        asked = everything(map(find, IDS))
        request = GradeRequest(
            submissions=folder / "in", assignment=asked, out=folder / "out", jobs=jobs, sandbox=sandbox
        )
        started = time.monotonic()
        with bytecode() as compiled:
            grade_class(replace(request, bytecode=compiled))
        wall = time.monotonic() - started
        timings = [json.loads(path.read_text()) for path in sorted((folder / "out" / "timings").glob("*.json"))]
    return {
        "sandbox": sandbox,
        "jobs": jobs,
        "submissions": n_submissions,
        "submissions_per_minute": round(60 * n_submissions / wall, 1),
        "median_seconds": round(statistics.median(one["seconds"] for one in timings), 2),
        "median_core_seconds": round(statistics.median(one["cpu_seconds"] for one in timings), 2),
        "worker_mib": round(statistics.median(one["memory_bytes"] for one in timings) / 2**20),
        "load_average": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--submissions", type=int, default=40)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--trusted", action="store_true", help="without bubblewrap")
    parser.add_argument("--no-record", action="store_true", help="print alone")
    wish = parser.parse_args()
    rows = []
    for jobs in wish.jobs:
        rows.append(measure(TRUSTED if wish.trusted else BUBBLEWRAP, wish.submissions, jobs))
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
