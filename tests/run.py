"""Run every check of `make test` and print what each stage cost against its budget.

Needs the project installed with its ``dev`` extra in the Python that runs it; ``make test`` sees to that, and where
there is no make, ``python -m tests.run`` is the same. All stages run even when one fails; the exit status is 0 only if
all passed. The budgets are for two cores with no other work; a slow machine goes over them and fails nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from book._tools.notebook_io import notebooks as all_notebooks
from book._tools.notebook_io import unsupported_reason
from tests import arithmetic

ROOT = Path(__file__).resolve().parent.parent
INSTALL_BUDGET = 180
COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed)\b")
CLOSING = re.compile(r"^=* ?(\d+ (?:passed|failed|errors?|skipped|deselected|xfailed|xpassed)\b.*) in [\d.]+s")
# Where tests with a mark of their own stand: collecting all others takes longer than some of the stages.
MARKED = {
    "browser": ("tests/book", "tests/widgets", "tests/release"),
    "trainer": ("tests/training", "tests/translation"),
}
FOLDERS = ("benchmarks", "book", "experiments", "release", "tests", "ttutor")
LINT = [
    (sys.executable, "-m", "ruff", "check"),
    (sys.executable, "-m", "ruff", "format", "--check"),
    (sys.executable, "-m", "mypy"),
    (str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache"),
    (sys.executable, "-m", "deptry", *FOLDERS),
]
# These go first, so that at the end no worker waits for a long one; the others follow by name.
LONGEST = "12-inside-deeper 06-decoder-deeper 12-inside 04-positions-exercises minimal 01-recurrence 10-vit".split()
LONGEST += "03-multihead-exercises 08-training 11-efficient 02-attention-deeper".split()
PYTEST = (sys.executable, "-m", "pytest", "-q", "--color=no", "-p", "no:cacheprovider", "-p", "tests.without_grammar")
UNCHECKED = "--jaxtyping-packages="  # of no package: the unit tests have checked the annotations


@dataclass(frozen=True)
class Stage:
    """One stage: the commands it runs in turn, and the seconds it should take on two cores."""

    name: str
    budget: int
    commands: list[tuple[str, ...]]
    beside: list[tuple[str, ...]] = field(default_factory=list)  # run one after the other while those run


@dataclass
class Outcome:
    """What a stage came to."""

    stage: Stage
    seconds: float = 0.0
    failed: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


def plan(lax: bool) -> list[Stage]:
    """Return the stages in the order they run."""
    first = [f"book/{name}.ipynb" for name in LONGEST]
    notebooks = [str(path.relative_to(ROOT)) for path in all_notebooks() if not unsupported_reason(path)]
    kind, drawn = ("", []) if lax else arithmetic.draw(notebooks)
    usual = [path for path in dict.fromkeys([*first, *notebooks]) if path not in drawn]
    compare = ("--nbval-lax" if lax else "--nbval", "--nbval-cell-timeout=120")
    compare += ("--nbval-sanitize-with=tests/pictures.ini",)
    warm = ("-p", "tests.warm_kernels") if sys.platform == "linux" else ()
    by_file = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")
    # Every notebook is executed once: most in the arithmetic of this machine, those that are drawn in another.
    executed = [(*PYTEST, *warm, *compare, *by_file, *usual)]
    executed += [(sys.executable, "-m", "tests.arithmetic", "--only", kind, *drawn)] if drawn else []
    build = (sys.executable, "-m", "book._tools.build", "--all")
    looking = ("-n", "3")  # a tab often waits, for what moves late
    return [
        Stage("unit", 240, [(*PYTEST, "-n", "2", "-m", "not soak and not trainer and not browser")], beside=LINT),
        Stage("notebooks", 200, executed),
        Stage("book", 160, [build, (*PYTEST, UNCHECKED, *looking, "-m", "browser and not soak", *MARKED["browser"])]),
        Stage("trainer", 120, [(*PYTEST, UNCHECKED, *by_file, "-m", "trainer and not soak", *MARKED["trainer"])]),
    ]


def environment() -> dict[str, str]:
    """Return the variables that all commands run with."""
    variables = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUTF8": "1", "TTUTOR_PROGRESS": "none"}
    if variables.pop("PYTHONDONTWRITEBYTECODE", ""):
        # Without bytecode each of the many processes would compile PyTorch again: it has a place of its own instead.
        variables["PYTHONPYCACHEPREFIX"] = str(ROOT / "_build" / "bytecode")
    return variables


def shown(command: tuple[str, ...]) -> str:
    """Return a command as it is typed."""
    return " ".join(command).replace(sys.executable, "python")


def run_command(command: tuple[str, ...], outcome: Outcome) -> None:
    """Run one command, pass its output on as it comes, and add what pytest counted in its closing line."""
    print(f"\n$ {shown(command)}", flush=True)
    output = bytearray()
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        while chunk := process.stdout.read1():
            output += chunk
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
    lines = output.decode("utf-8", "replace").splitlines()
    closing = next((line for line in reversed(lines) if CLOSING.match(line)), "")
    for count, kind in COUNT.findall(closing):
        outcome.counts[kind] = outcome.counts.get(kind, 0) + int(count)
    if process.returncode != 0:
        outcome.failed.append(f"{shown(command)} (exit status {process.returncode})")


def run_beside(stage: Stage) -> list[tuple[tuple[str, ...], int, str]]:
    """Run the commands that need no more than one core, quietly; return each with its exit status and its output."""
    how = {"cwd": ROOT, "env": environment(), "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
    ran = [(one, subprocess.run(one, **how, stderr=subprocess.STDOUT)) for one in stage.beside]
    return [(one, done.returncode, done.stdout.decode("utf-8", "replace")) for one, done in ran]


def run_stage(stage: Stage) -> Outcome:
    """Run all commands of a stage, also those after a failed one."""
    outcome, started = Outcome(stage), time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(run_beside, stage)
        for command in stage.commands:
            run_command(command, outcome)
    for command, status, output in beside.result():
        print(f"\n$ {shown(command)}\n{output}", flush=True)
        outcome.failed += [f"{shown(command)} (exit status {status})"] * (status != 0)
    outcome.seconds = time.monotonic() - started
    return outcome


def install_row() -> str:
    """Return the table's row for the installation, as ``make`` measured it when it last installed."""
    measured = Path(sys.prefix) / ".install-seconds"
    if not measured.exists():
        return f"  {'install':<12}{'?':>7} of {INSTALL_BUDGET:>4} s   (not set up by make)"
    seconds = int(measured.read_text())
    note = "over budget" if seconds > INSTALL_BUDGET else "when it was last done"
    return f"  {'install':<12}{seconds:>7} of {INSTALL_BUDGET:>4} s   ({note})"


def report(outcomes: list[Outcome]) -> None:
    """Print the table of seconds against budgets, the commands that failed, and one closing line of counts."""
    print("\nSeconds against the budget on two cores")
    print(install_row())
    totals = dict.fromkeys(("passed", "failed", "skipped"), 0)
    for outcome in outcomes:
        verdict = "FAILED" if outcome.failed else "passed"
        over = ", over budget" if outcome.seconds > outcome.stage.budget else ""
        counts = ", ".join(f"{count} {kind}" for kind, count in outcome.counts.items())
        spent = f"{outcome.seconds:>7.0f} of {outcome.stage.budget:>4.0f} s"
        print(f"  {outcome.stage.name:<12}{spent}   {verdict}{over}: {counts}")
        totals["passed"] += outcome.counts.get("passed", 0)
        totals["skipped"] += outcome.counts.get("skipped", 0)
        totals["failed"] += sum(outcome.counts.get(kind, 0) for kind in ("failed", "error", "errors"))
    for outcome in outcomes:
        for command in outcome.failed:
            print(f"FAILED in {outcome.stage.name}: {command}")
    print(f"\n{totals['passed']} passed, {totals['failed']} failed, {totals['skipped']} skipped")


def main() -> int:
    """Run the chosen stages, or all of them."""
    names = [stage.name for stage in plan(lax=False)]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stages", nargs="*", metavar="stage", help=f"of {', '.join(names)}; all when left out")
    parser.add_argument("--lax", action="store_true", help="execute notebooks without comparing their outputs")
    arguments = parser.parse_args()
    if unknown := set(arguments.stages) - set(names):
        parser.error(f"no stage is called {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    print(arithmetic.describe())
    print(*filter(None, map(unsupported_reason, all_notebooks())), sep="\n", flush=True)
    outcomes = [run_stage(s) for s in plan(arguments.lax) if not arguments.stages or s.name in arguments.stages]
    report(outcomes)
    return 1 if any(outcome.failed for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
