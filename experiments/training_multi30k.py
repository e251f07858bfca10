"""BLEU, loss and learning rate by minutes, of the small translator on real text (Multi30k).

    ttutor fetch multi30k
    python benchmarks/multi30k.py --seed 0      # and --seed 1, --seed 2: each adds its run
    python experiments/training_multi30k.py

The first measures and writes ``benchmarks/results/multi30k.json``; this keeps for the book what the chapters show of
it: of each preset and pair of languages the mean and the spread over the seeds, and the whole run of the first seed,
with its own command, machine and minutes. Only numbers are stored, no sentence of the corpus.
"""

import json

from experiments import _record

MEASURED = _record.EXPERIMENTS.parent / "benchmarks" / "results" / "multi30k.json"
KEPT = ("step", "seconds", "target_tokens", "learning_rate", "training_loss", "validation_loss", "test_bleu")


def for_the_book(series: dict) -> dict:
    """One series without what a chapter does not show."""
    first, *_ = series["runs"]
    curve = [{name: point[name] for name in KEPT} for point in first["curve"]]
    names = ("preset", "languages", "recipe", "summary")
    return {name: series[name] for name in names} | {"first_run": first | {"curve": curve}}


def main() -> None:
    started = _record.start()
    stored = json.loads(MEASURED.read_text(encoding="utf-8"))["series"]
    seeds = sorted({run["seed"] for series in stored for run in series["runs"]})
    _record.write("training_multi30k", {"series": list(map(for_the_book, stored))}, seeds=seeds, started=started)


if __name__ == "__main__":
    main()
