"""What attention costs by the length: measured figures out of benchmarks/results/attention.json, and counted ones.

Measures nothing: `benchmarks/attention.py` did. Takes what chapter 11 draws: causal attention of 8 heads of
64 in float32, times of a sequence that ran alone apart from those of one among 4,096 tokens in a batch. The counts are
those of `ttutor.efficient.attention_operations` on the same sizes. A few seconds on one core.
"""

import json
from functools import partial
from pathlib import Path

import torch

from experiments import _record
from ttutor.attention import scaled_dot_product_attention
from ttutor.efficient import attention_operations, efficient_attention, linear_attention, linear_attention_recurrent
from ttutor.masks import CAUSAL
from ttutor.transformer.costs import cache_bytes

RESULTS = Path(__file__).resolve().parent.parent / "benchmarks" / "results" / "attention.json"
N_HEADS, D_HEAD, N_TOKENS, WINDOW = 8, 64, 4096, 256
SIZES = {"n_heads": N_HEADS, "d_head": D_HEAD}
LENGTHS = [256, 512, 1024, 2048, 4096, 8192, 16384]
STEPS = 16  # a recurrence does the same for each token, so that a few are enough
BYTES = torch.float32.itemsize


def measured(found: dict) -> dict:
    """Milliseconds and bytes of one sequence by length: of each quantity and way to run, for each line."""
    time: dict = {"alone": {}, "batch": {}, "training": {}}
    for row in found["cells"]["figures"]:
        if row["dtype"] != "fp32" or row["mask"] not in ("causal", "window"):
            continue
        n, batch = row["length"], max(1, N_TOKENS // row["length"])
        ways = (
            ["training"] if row["direction"] == "training" else ["batch"] * (n <= N_TOKENS) + ["alone"] * (batch == 1)
        )
        for name, ms in row["ms"].items():
            for way in ways:
                if name != "auto" and (name == "window") == (row["mask"] == "window"):
                    time[way].setdefault(name, {})[n] = ms / batch
    for row in found["growth"]["figures"]:
        time["alone"].setdefault(row["backend"], {}).update({int(n): ms for n, ms in row["ms"].items()})
    memory: dict = {"forward": {}, "training": {}}
    for row in found["memory"]["figures"]:
        memory[row["direction"]].setdefault(row["backend"], {})[row["length"]] = row["bytes"]
    return {"time": _pairs(time), "memory": _pairs(memory)}


def _pairs(by_direction: dict) -> dict:
    return {
        direction: {name: [[n, float(f"{points[n]:.4g}")] for n in sorted(points)] for name, points in lines.items()}
        for direction, lines in by_direction.items()
    }


def counted(lengths: list[int] = LENGTHS) -> dict:
    """Multiply-adds, the bytes of the largest tensor that is made, and the bytes kept to go on writing, by length."""
    attends = {
        "reference": scaled_dot_product_attention,
        "sdpa": partial(efficient_attention, backend="sdpa"),
        "tiled": partial(efficient_attention, backend="tiled"),
        "window": partial(efficient_attention, backend="window", window=WINDOW),
        "linear": linear_attention,
    }
    found: dict = {"multiply_adds": {}, "largest": {}, "kept": {}}
    for name, attend in attends.items():
        device = "cpu" if name == "sdpa" else "meta"  # elsewhere it would not be the fused kernel
        counts = [attention_operations(attend, n, device=device, mask=CAUSAL, **SIZES) for n in lengths]
        found["multiply_adds"][name] = [[n, one.multiply_adds] for n, one in zip(lengths, counts, strict=True)]
        found["largest"][name] = [[n, BYTES * one.largest] for n, one in zip(lengths, counts, strict=True)]
    steps, state = recurrence(STEPS)
    found["multiply_adds"]["recurrent"] = [[n, steps // STEPS * n] for n in lengths]
    kept = {
        name: cache_bytes(1, n_layers=1, n_kv_heads=N_HEADS, d_head=D_HEAD, dtype=torch.float32) for name in attends
    }
    found["kept"]["reference"] = [[n, kept["reference"] * n] for n in lengths]
    found["kept"]["window"] = [[n, kept["window"] * min(n, WINDOW)] for n in lengths]
    found["kept"]["recurrent"] = [[n, state] for n in lengths]
    return found


def recurrence(n_tokens: int) -> tuple[int, int]:
    """Multiply-adds of a few steps of linear attention as a recurrence, and the bytes of its state."""
    states = []

    def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        context, state = linear_attention_recurrent(query, key, value)
        states.append(state)
        return context

    operations = attention_operations(attend, n_tokens, **SIZES)
    return operations.multiply_adds, BYTES * sum(part.numel() for part in states[-1])


def sources(found: dict) -> dict:
    """By which commands, on which machine."""
    return {
        name: {key: found[name][key] for key in ("command", "machine", "versions")}
        for name in ("growth", "cells", "memory")
    }


def main() -> None:
    started = _record.start()
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    results = {"measured": measured(found), "counted": counted(), "sources": sources(found)}
    _record.write("attention_costs", results, seeds=[0], started=started)


if __name__ == "__main__":
    main()
