"""Run notebooks or tests in other kinds of arithmetic of this processor: the same sums, added up in another order.

Which instructions PyTorch, MKL and oneDNN take depends on the processor, and with them the last bits of every sum; so
does the number of threads. What a page prints, and what a test asserts, must not. ``python -m tests.arithmetic
book/05-encoder.ipynb`` executes a notebook in each of these kinds of arithmetic and compares its outputs; a folder or
file of tests is tested; ``--only plain`` takes one. ``make soak`` does it with everything that trains.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

KINDS = {
    "plain": {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"},
    "plain MKL": {"MKL_CBWR": "COMPATIBLE"},
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
    "avx512": {"ATEN_CPU_CAPABILITY": "avx512", "MKL_CBWR": "AVX512", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE"},
    "two threads": {"OMP_NUM_THREADS": "2"},
}
"""What PyTorch, MKL (``MKL_CBWR``) and oneDNN read when they load; the usual arithmetic is one thread and no more."""

USUAL = {"OMP_NUM_THREADS": "1", "TTUTOR_PROGRESS": "none", "PYTHONUTF8": "1"}
MOST_DRAWN = 2
"""Changed notebooks that ``make test`` executes in another arithmetic, at most; ``make soak`` takes them all."""


def here() -> dict[str, dict[str, str]]:
    """Return the kinds of arithmetic that this processor has: AVX-512 is not asked of one that would crash on it."""
    import torch

    return {name: KINDS[name] for name in KINDS if name != "avx512" or torch.cpu._is_avx512_supported()}


def describe() -> str:
    """Return this machine's processor and the arithmetic that PyTorch takes here, in a line."""
    import torch

    from ttutor.doctor import processor_name

    library = "MKL" if torch.backends.mkl.is_available() else "no MKL"
    settings = {setting for arithmetic in KINDS.values() for setting in arithmetic}
    parts = [
        f"{processor_name()} ({platform.machine()}), {os.cpu_count()} cores",
        f"PyTorch {torch.__version__}: {torch.backends.cpu.get_cpu_capability()}, {library}",
        *(f"{setting}={os.environ[setting]}" for setting in sorted(settings & set(os.environ))),
    ]
    return "; ".join(parts)


def git(*arguments: str) -> str:
    """Return what git prints, or nothing where this is no checkout or git is missing."""
    try:
        return subprocess.run(("git", *arguments), cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def draw(known: list[str]) -> tuple[str, list[str]]:
    """Return an arithmetic and the changed notebooks to try in it, both drawn by the commit: the same everywhere.

    Changed are those that differ from the commit, and those that the commits of the day before it have touched.
    """
    commit = git("rev-parse", "HEAD").strip()
    if not commit:
        return "plain", []
    day_before = int(git("log", "-1", "--format=%ct")) - 24 * 3600
    changed = git("log", f"--since={day_before}", "--name-only", "--format=", "--", "book/*.ipynb")
    changed += git("diff", "HEAD", "--name-only", "--", "book/*.ipynb")
    notebooks = sorted(set(known) & set(changed.split()))
    number, names = int(commit, 16), list(here())
    start = number // len(names) % max(len(notebooks), 1)
    return names[number % len(names)], (notebooks[start:] + notebooks[:start])[:MOST_DRAWN]


def run(name: str, paths: list[str]) -> int:
    """Execute the notebooks, and test the rest, under one arithmetic; return pytest's exit status."""
    notebooks = [path for path in paths if path.endswith(".ipynb")]
    tests = [path for path in paths if not path.endswith(".ipynb")]
    warm = ("-p", "tests.warm_kernels") if sys.platform == "linux" else ()
    # Two processes of two threads each would wait for one another on two cores.
    n_processes = "1" if "OMP_NUM_THREADS" in KINDS[name] else "2"
    pytest = (sys.executable, "-m", "pytest", "-q", "--color=no", "-p", "no:cacheprovider", "-n", n_processes)
    commands = []
    if notebooks:
        compare = ("--nbval", "--nbval-cell-timeout=1200", "--nbval-sanitize-with=tests/pictures.ini")
        commands.append((*pytest, *warm, *compare, "--dist", "loadfile", *notebooks))
    if tests:
        # The plainest arithmetic has no bfloat16: what trains in it takes many times as long.
        commands.append((*pytest, "--timeout=3600", "-m", "not soak and not browser", *tests))
    print(f"\nArithmetic '{name}': {' '.join(f'{k}={v}' for k, v in KINDS[name].items())}", flush=True)
    environment = os.environ | USUAL | KINDS[name]
    return max(subprocess.run(command, cwd=ROOT, env=environment).returncode for command in commands)


def main() -> int:
    """Run what is named in all kinds of arithmetic of this machine, or one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", help="notebooks, files or folders of tests")
    parser.add_argument("--only", choices=KINDS, help="one arithmetic in place of all")
    arguments = parser.parse_args()
    if not arguments.paths:
        parser.error("name notebooks or tests, for example book/05-encoder.ipynb")
    names = [arguments.only] if arguments.only else list(here())
    failed = [name for name in names if run(name, arguments.paths)]
    print(
        f"\nThe same under {len(names) - len(failed)} of {len(names)} kinds of arithmetic",
        *(f"; not {name}" for name in failed),
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
