"""How fast training and translating go beside other toolkits, out of the results of three benchmarks.

Measures nothing: `benchmarks/training.py`, `training_processes.py` and `decoding.py` did. Takes what the chapter shows:
rates of one core and of two, how many times as fast ours is with an interval, the share of the processor's own peak and
where the time goes, loss after as many tokens, BLEU, memory, and two processes beside one. A second on one core.
"""

import json
from pathlib import Path

from experiments import _record

RESULTS = Path(__file__).resolve().parent.parent / "benchmarks" / "results"


def training(found: dict) -> dict:
    """Real target tokens by second, by core and by clock."""
    kept = {}
    for section in ("speed", "wall"):
        kept[section] = [
            {
                "name": row["name"],
                "precision": row["precision"],
                "tokens_per_second": row["tokens_per_second"]["median"],
                "ratio": row.get("ttutor_to_it"),
            }
            for row in found[section]["rows"]
        ]
    last = {(row["name"], row["precision"]): row["points"][-1]["loss"] for row in found["curves"]["rows"]}
    kept["loss"] = [{"name": name, "precision": precision, "nats": loss} for (name, precision), loss in last.items()]
    kept["loss_after_tokens"] = found["curves"]["rows"][0]["points"][-1]["tokens"]
    kept["share"] = {key: found["share"][key] for key in ("precision", "share_of_peak", "operations")}
    kept["memory"] = found["memory"]["rows"]
    kept["machine"] = found["speed"]["machine"]
    return kept


def translating(found: dict) -> dict:
    """Output tokens by second of one core, greedily and with a beam, and BLEU with the same weights."""
    rows = [
        {
            "name": row["name"],
            "search": row["search"],
            "tokens_per_second": row["tokens_per_second"]["median"],
            "ratio": row.get("ttutor_to_it"),
            "bleu": row["bleu"],
            "n_sentences": row["sentences_scored"],
        }
        for row in found["cpu"]["rows"]
    ]
    return {"cpu": rows, "machine": found["cpu"]["machine"]}


def in_processes(found: dict) -> list[dict]:
    """The same training by one process and by two: rates by CPU second and by clock, how far apart the losses are."""
    return [
        {
            "optimizer": one["optimizer"],
            "largest_difference_of_losses": one["largest_difference_of_losses"],
            "forms": {
                name: {key: form[key] for key in ("target_tokens_per_second", "target_tokens_per_cpu_second")}
                for name, form in one["forms"].items()
            },
        }
        for one in found["optimizers"]
    ]


def read(name: str) -> dict:
    """A benchmark's result."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def main() -> None:
    """Write what the chapter shows."""
    started = _record.start()
    result = {
        "training": training(read("training")),
        "processes": in_processes(read("training_processes")),
        "translating": translating(read("decoding")),
    }
    _record.write("training_speed", result, seeds=[0], started=started)


if __name__ == "__main__":
    main()
