"""What importing costs: time and memory of the package and of its main modules, each in processes of its own.

    python benchmarks/imports.py [--runs 5] [--modules ttutor torch]

A run starts a fresh Python for one import and measures that import: wall time, processor time, and by how much the
process's largest memory exceeds that of a Python that imports nothing. Bytecode is there, as after a first import. The
median of the runs is kept, of the wall time also the fastest, since other work on the machine only adds to it.

Writes benchmarks/results/imports.json: command, machine, versions, figures.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from experiments import _record

BENCHMARKS = Path(__file__).resolve().parent
RESULTS = BENCHMARKS / "results" / "imports.json"
MODULES = ("ttutor", "ttutor.claims", "ttutor.doctor", "ttutor.cli", "ttutor.widgets")
MODULES += ("torch", "ttutor.attention", "ttutor.variants.gpt", "ttutor.translation.translator")
MODULES += ("ttutor.widgets.attention", "ttutor.exercises")
PROBE = """\
import json, sys, time
started, cpu = time.perf_counter(), time.process_time()
{statement}
seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
def largest():
    try:  # counted from this process's start; what getrusage tells may be the parent's
        lines = open("/proc/self/status").read().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**10
    except FileNotFoundError:
        import resource
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
print(json.dumps({{
    "seconds": seconds,
    "cpu_seconds": cpu,
    "mib": largest(),
    "modules": len(sys.modules),
    "torch": "torch" in sys.modules,
}}))
"""


def probe(statement: str, bytecode: str) -> dict[str, float]:
    """What one statement costs a fresh process whose bytecode is kept in a folder."""
    settings = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(statement=statement)],
        capture_output=True,
        text=True,
        check=True,
        env=settings | {"OMP_NUM_THREADS": "1", "PYTHONPYCACHEPREFIX": bytecode},
    )
    return json.loads(done.stdout)


def measure(module: str, runs: int, bare: dict[str, float], bytecode: str) -> dict[str, float | bool]:
    """The cost of one import; a first one, which writes the bytecode, does not count."""
    found = [probe(f"import {module}", bytecode) for _ in range(runs + 1)][1:]
    return {
        "milliseconds": round(1000 * statistics.median(one["seconds"] for one in found), 1),
        "milliseconds_fastest": round(1000 * min(one["seconds"] for one in found), 1),
        "cpu_milliseconds": round(1000 * statistics.median(one["cpu_seconds"] for one in found), 1),
        "mib_added": round(statistics.median(one["mib"] for one in found) - bare["mib"], 1),
        "modules_added": found[0]["modules"] - bare["modules"],
        "loads_torch": found[0]["torch"],
    }


def main() -> None:
    """Measure every module and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="fresh processes for each module (default 5)")
    parser.add_argument("--modules", nargs="+", default=MODULES, metavar="MODULE", help="only these")
    options = parser.parse_args()
    figures = {}
    with tempfile.TemporaryDirectory() as bytecode:
        bare = [probe("pass", bytecode) for _ in range(2)][1]  # the first writes bytecode here, too
        for module in options.modules:
            figures[module] = measure(module, options.runs, bare, bytecode)
            print(f"{module:<32} {figures[module]}", flush=True)
    result = {
        "command": f"python benchmarks/imports.py --runs {options.runs} --modules {' '.join(options.modules)}",
        "machine": _record.machine() | {"load_average": round(os.getloadavg()[0], 1)},
        "versions": _record.versions(),
        "imports": figures,
    }
    RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
