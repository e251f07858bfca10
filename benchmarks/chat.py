"""How fast one text is written, token by token: `ttutor chat` beside transformers and llama.cpp, all with one file.

    python benchmarks/chat.py [--sections cpu wall] [--rounds 5] [--tokens 48] [--llama FOLDER] [--quick]

SmolLM2-135M-Instruct as `ttutor fetch smollm2` brings it, one conversation, always the best token. Ours
opens its weights to 32 bits or, as `ttutor chat` does, rounds them to 8; transformers has 32, or bfloat16; llama.cpp
computes with the four bits of the file.
llama.cpp comes built with the npm package node-llama-cpp: run ``npm install node-llama-cpp@3.21.1`` in a folder outside
the checkout and give that folder; where it is missing, the result says so.

- cpu: tokens by second of processor time, one thread each.
- wall: tokens by second of the clock, two threads each.

All run in turn within each round, in another order each time; ratios are within a round. The prompt is read before the
clock starts. ``same_as_ttutor`` says how many of the first tokens are those that ours writes in float32. Writes
benchmarks/results/chat.json.
"""

import argparse
import importlib.metadata
import json
import os
import shutil
import time
from pathlib import Path

from benchmarks import _chat_peers as peers
from benchmarks import _in_turn
from experiments import _record

RESULTS = Path(__file__).resolve().parent / "results" / "chat.json"
OURS = "ttutor, 8 bits"
THREADS = {"cpu": 1, "wall": 2}


def missing(llama: Path) -> dict[str, str]:
    """Who cannot run here, and why."""
    if not (llama / "node_modules" / "node-llama-cpp").is_dir() or shutil.which("node") is None:
        how = "npm install node-llama-cpp@3.21.1 in a folder outside the checkout, and give it by --llama FOLDER"
        return {peers.LLAMA: f"not installed: {how}"}
    return {}


def race(names: list[str], kind: str, rounds: int, n_tokens: int, llama: Path) -> list[dict]:
    """All in turn: rates of each round, and ours by theirs."""
    running = {name: peers.Peer(name, THREADS[kind], llama) for name in names}
    rates: dict[str, list[float]] = {name: [] for name in names}
    last = {name: one.write(min(8, n_tokens)) for name, one in running.items()}  # warms up
    for order in _in_turn.shuffled(names, rounds):
        for name in order:
            last[name] = running[name].write(n_tokens)
            rates[name].append(last[name]["tokens"] / last[name][kind])
    for one in running.values():
        one.close()
    rows = []
    for name in names:
        same = [a == b for a, b in zip(last[name]["ids"], last["ttutor"]["ids"], strict=True)]
        row = {"name": name, "tokens_per_second": _in_turn.spread(rates[name])}
        row |= {"ttutor_to_it": _in_turn.ratio(rates[OURS], rates[name])} if name != OURS else {}
        first = same.index(False) if False in same else len(same)
        rows.append(row | {"same_as_ttutor": first, "peak_megabytes": last[name]["peak_megabytes"]})
        print(json.dumps(rows[-1]), flush=True)
    return rows


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=48, help="how many are written in each round")
    parser.add_argument("--sections", nargs="+", default=THREADS, choices=THREADS)
    parser.add_argument("--llama", type=Path, default=Path(), help="where node-llama-cpp is installed")
    parser.add_argument("--quick", action="store_true", help="one round, nothing written: to see whether it runs")
    parser.add_argument("--serve", choices=list(peers.MAKERS), help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Run both races and write the file."""
    options = arguments()
    if options.serve:
        return peers.serve(options.serve, options.threads)
    absent = missing(options.llama)
    names = [name for name in peers.NAMES if name not in absent]
    rounds, n_tokens = (1, 8) if options.quick else (options.rounds, options.tokens)
    found = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() and not options.quick else {}
    for kind in options.sections:
        print(f"# {kind}", flush=True)
        started = time.monotonic()
        found[kind] = {
            "command": f"python benchmarks/chat.py --sections {kind} --rounds {rounds} --tokens {n_tokens}",
            "machine": _record.machine() | {"load_average": [round(load, 1) for load in os.getloadavg()]},
            "versions": _record.versions() | versions(),
            "missing": absent,
            "rounds": rounds,
            "rows": race(names, kind, rounds, n_tokens, options.llama),
        }
        found[kind]["minutes"] = round((time.monotonic() - started) / 60, 1)
        if not options.quick:
            RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
            print(f"written: {RESULTS.name}", flush=True)


def versions() -> dict[str, str]:
    """Of what else was measured."""
    return {"transformers": importlib.metadata.version("transformers"), "node-llama-cpp": "3.21.1"}


if __name__ == "__main__":
    main()
