"""How fast each attention backend is, how much memory it takes, and whether `auto` chooses well.

    python benchmarks/attention.py [--rounds 9] [--sections cells structure modules decoding memory growth] [--quick]
    python benchmarks/attention.py --sections memory growth --only linear "state space"

Everything is measured as process CPU time with one thread, so that a busy machine disturbs it little. All that is
compared runs in turn, round by round, and only ratios within a round are compared: medians with 95 % intervals from a
bootstrap over the rounds. Peak memory is that of a fresh process for each figure. Peers are optional:
``pip install -r benchmarks/requirements.txt`` into an environment of its own; without one its row says so.

Writes benchmarks/results/attention.json: command, machine, versions, figures.
"""

import argparse
import importlib.metadata
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch loads

import torch
from einops import rearrange
from torch import Tensor, nn

from benchmarks._in_turn import ratio
from experiments import _record
from ttutor.attention import scaled_dot_product_attention
from ttutor.cache import KeyValueCache
from ttutor.efficient import Selection, choose_backend, efficient_attention, linear_attention, selective_scan
from ttutor.efficient.attention_call import call_of
from ttutor.efficient.choice import MOST_SCORES, unsupported_reason
from ttutor.masks import CAUSAL, Mask, lengths_mask
from ttutor.multihead import MultiHeadAttention

BENCHMARKS = Path(__file__).resolve().parent
SECTIONS = ("cells", "structure", "modules", "decoding", "memory", "growth")
N_HEADS, D_HEAD, N_TOKENS = 8, 64, 4096
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
TIMED = ("eager", "sdpa", "tiled", "window")
D_STATE = 16


# Measuring -----------------------------------------------------------------------------------------------------------


def seconds(run: Callable[[], object], least: float = 0.02) -> float:
    """CPU seconds of one run; short ones are repeated until they add up to something a clock can tell."""
    repeats, started = 0, time.process_time()
    while True:
        run()
        repeats += 1
        spent = time.process_time() - started
        if spent >= least:
            return spent / repeats


def in_turn(runs: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """CPU seconds of each run in each round, the order shuffled anew every round."""
    for run in runs.values():
        run()  # warm up: the first call allocates, and may compile
    times: dict[str, list[float]] = {name: [] for name in runs}
    shuffle = random.Random(0)
    for _ in range(rounds):
        for name in shuffle.sample(list(runs), len(runs)):
            times[name].append(seconds(runs[name]))
    return times


def milliseconds(times: list[float]) -> float:
    """The median, in milliseconds, to three digits."""
    value = statistics.median(times) * 1000
    return float(f"{value:.3g}")


def training(attend: Callable[..., Tensor], tensors: tuple[Tensor, ...], **options: object) -> Callable[[], None]:
    """A run of forward and backward pass."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in tensors]
    weighting = torch.randn_like(tensors[0])

    def run() -> None:
        torch.autograd.grad(attend(*leaves, **options), leaves, weighting)

    return run


def inference(attend: Callable[..., Tensor], tensors: tuple[Tensor, ...], **options: object) -> Callable[[], None]:
    """A run of the forward pass alone."""

    def run() -> None:
        with torch.no_grad():
            attend(*tensors, **options)

    return run


def tokens_of(length: int, dtype: torch.dtype, batch: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value of a length; shorter ones come in larger batches, so that a cell is worth timing."""
    batch = max(1, N_TOKENS // length) if batch is None else batch
    return tuple(torch.randn(batch, N_HEADS, length, D_HEAD, dtype=dtype) for _ in range(3))


def padded(batch: int, length: int) -> Tensor:
    """Lengths of rows of which a quarter is padding in the mean, the longest whole."""
    if batch == 1:
        return torch.tensor([length * 3 // 4])
    return torch.linspace(length // 2, length, batch).round().long()


def masks_of(batch: int, length: int) -> dict[str, Mask]:
    """The kinds of mask that are timed."""
    return {
        "none": Mask(),
        "causal": CAUSAL,
        "padding": Mask(key_lengths=padded(batch, length)),
        "window": Mask(causal=True, window=256),
    }


def state_space(query: Tensor, key: Tensor, value: Tensor, mask: Mask | None = None, *, causal: bool = True) -> Tensor:
    """A selective scan over as wide a text: a state of 16 numbers a feature, its selection made of the same tensors.

    It is causal whatever the mask; the argument is there so that it can stand where an attention function stands.
    """
    together = "batch heads tokens d_head -> batch tokens (heads d_head)"
    steps = nn.functional.softplus(rearrange(query, together) - 2)
    rates = -torch.arange(1.0, 1 + D_STATE).expand(N_HEADS * D_HEAD, D_STATE)
    selection = Selection(step=steps, rate=rates, write=key[:, 0, :, :D_STATE], read=key[:, 1, :, :D_STATE])
    return selective_scan(rearrange(value, together), selection)[0]


# Sections ------------------------------------------------------------------------------------------------------------


def cells(rounds: int, quick: bool, only: list[int] | None = None) -> list[dict]:
    """For each length, mask, dtype and direction: every backend that can, and how far `auto` is from the best."""
    rows = []
    for dtype_name, dtype in DTYPES.items():
        for length in (15, 64, 256, 1024) if quick else (15, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384):
            if only and length not in only:
                continue
            tensors = tokens_of(length, dtype)
            for mask_name, mask in masks_of(tensors[0].shape[0], length).items():
                if mask_name == "window" and length < 512:
                    continue
                for direction, make in (("forward", inference), ("training", training)):
                    if direction == "training" and length > 4096:
                        continue
                    row = cell(tensors, mask, direction == "training", make, rounds if length <= 4096 else 5)
                    rows.append(
                        {"length": length, "mask": mask_name, "dtype": dtype_name, "direction": direction, **row}
                    )
                    print(json.dumps(rows[-1]), flush=True)
    return rows


def cell(tensors: tuple[Tensor, ...], mask: Mask, is_training: bool, make: Callable, rounds: int) -> dict:
    """One cell: times of all backends that can run it in the memory there is, and `auto` against the best of them."""
    facts = call_of(*tensors, mask)
    facts = facts._replace(needs_gradient=is_training)
    n_scores = facts.batch * facts.n_heads * facts.n_queries * facts.n_keys
    able = [
        name
        for name in TIMED
        if unsupported_reason(name, facts) is None and (name != "eager" or n_scores <= MOST_SCORES)
    ]
    runs = {name: make(partial(efficient_attention, backend=name), tensors, mask=mask) for name in able}
    runs["auto"] = make(efficient_attention, tensors, mask=mask)
    times = in_turn(runs, rounds)
    best = min(able, key=lambda name: statistics.median(times[name]))
    with torch.set_grad_enabled(is_training):
        leaves = [tensor.detach().requires_grad_(is_training) for tensor in tensors]
        chosen = choose_backend(*leaves, mask).name
    return {
        "ms": {name: milliseconds(times[name]) for name in runs},
        "chosen": chosen,
        "best": best,
        "auto_to_best": ratio(times["auto"], times[best]),
    }


def structure(rounds: int, quick: bool) -> list[dict]:
    """What knowing the structure is worth: against PyTorch's kernel that is told the same as a table, or less."""
    torch_sdpa = nn.functional.scaled_dot_product_attention
    rows = []
    for batch, length in ((4, 1024),) if quick else ((16, 512), (4, 1024), (2, 2048), (4, 2048)):
        tensors, lengths = tokens_of(length, torch.float32, batch), padded(batch, length)
        table = lengths_mask(lengths, length)
        for direction, make in (("forward", inference), ("training", training)):
            times = in_turn(
                {
                    "plain": make(torch_sdpa, tensors, attn_mask=table),
                    "auto": make(efficient_attention, tensors, mask=table),
                },
                rounds,
            )
            real = float(lengths.double().mean() / length)
            rows.append({"what": f"padding, {1 - real:.0%} of {batch} x {length} tokens", "direction": direction})
            rows[-1] |= {
                "ms": {name: milliseconds(t) for name, t in times.items()},
                **ratio(times["plain"], times["auto"]),
            }
            print(json.dumps(rows[-1]), flush=True)
    for length in (4096,) if quick else (4096, 16384):
        tensors = tokens_of(length, torch.float32, 1)
        times = in_turn(
            {
                "plain": inference(torch_sdpa, tensors, is_causal=True),
                "auto": inference(efficient_attention, tensors, causal=True, window=256),
            },
            rounds if length <= 4096 else 5,
        )
        rows.append({"what": f"causal window of 256 at {length}, against causal", "direction": "forward"})
        rows[-1] |= {"ms": {name: milliseconds(t) for name, t in times.items()}, **ratio(times["plain"], times["auto"])}
        print(json.dumps(rows[-1]), flush=True)
    return rows


def modules(rounds: int, quick: bool) -> list[dict]:
    """`MultiHeadAttention`, forward and backward, against other people's layers of the same sizes."""
    rows = []
    sizes = ((128, 4, 270, 15), (512, 8, 4, 256), (512, 8, 2, 1024))
    for dtype_name, dtype in DTYPES.items():
        for d_model, n_heads, batch, length in sizes[:2] if quick else sizes:
            hidden = torch.randn(batch, length, d_model, dtype=dtype)
            ours = MultiHeadAttention(d_model, n_heads, attend=efficient_attention)
            layers = {"ttutor": ours, **peers(d_model, n_heads)}
            runs = {
                name: step(layer.to(dtype), hidden) for name, layer in layers.items() if isinstance(layer, nn.Module)
            }
            times = in_turn(runs, rounds)
            row = {"d_model": d_model, "n_heads": n_heads, "batch": batch, "length": length, "dtype": dtype_name}
            row["ms"] = {name: milliseconds(t) for name, t in times.items()}
            row["to_ttutor"] = {name: ratio(t, times["ttutor"]) for name, t in times.items() if name != "ttutor"}
            row["left_out"] = {name: why for name, why in layers.items() if isinstance(why, str)}
            rows.append(row)
            print(json.dumps(row), flush=True)
    return rows


class TorchSelfAttention(nn.Module):
    """`nn.MultiheadAttention` as self-attention."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, n_heads, batch_first=True)

    def forward(self, hidden: Tensor) -> Tensor:
        """Attend; its weights are not asked for, so that it may use a fused kernel."""
        return self.attention(hidden, hidden, hidden, need_weights=False)[0]


class BertAttention(nn.Module):
    """Self-attention of Hugging Face's BERT with its output projection, without residual connection and norm."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        from transformers import BertConfig
        from transformers.models.bert.modeling_bert import BertSelfAttention

        super().__init__()
        config = BertConfig(
            hidden_size=d_model,
            num_attention_heads=n_heads,
            attention_probs_dropout_prob=0.0,
            attn_implementation="sdpa",
        )
        self.attention = BertSelfAttention(config)
        self.output = nn.Linear(d_model, d_model)

    def forward(self, hidden: Tensor) -> Tensor:
        """Attend and project."""
        return self.output(self.attention(hidden)[0])


class XTransformersAttention(nn.Module):
    """x-transformers' layer with its fused kernel, projections with a bias as far as it has them."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        from x_transformers.x_transformers import Attention

        super().__init__()
        self.attention = Attention(d_model, heads=n_heads, dim_head=d_model // n_heads, flash=True)

    def forward(self, hidden: Tensor) -> Tensor:
        """Attend."""
        found = self.attention(hidden)
        return found[0] if isinstance(found, tuple) else found


def peers(d_model: int, n_heads: int) -> dict[str, nn.Module | str]:
    """Other people's layers; in place of one that is not installed, the reason."""
    kinds = {
        "nn.MultiheadAttention": TorchSelfAttention,
        "transformers BERT": BertAttention,
        "x-transformers": XTransformersAttention,
    }
    found: dict[str, nn.Module | str] = {}
    for name, kind in kinds.items():
        try:
            found[name] = kind(d_model, n_heads)
        except ModuleNotFoundError as missing:
            found[name] = f"{missing.name} is not installed"
    return found


def step(layer: nn.Module, hidden: Tensor) -> Callable[[], None]:
    """Forward and backward through a layer, gradients of parameters and input."""
    leaf = hidden.clone().requires_grad_()
    weighting = torch.randn_like(hidden)

    def run() -> None:
        layer.zero_grad()
        leaf.grad = None
        layer(leaf).backward(weighting)

    return run


def decoding(rounds: int, quick: bool) -> list[dict]:
    """One layer decodes a text token by token, with a cache and by starting over for each token."""
    rows = []
    layer = MultiHeadAttention(512, N_HEADS, attend=efficient_attention).eval()
    for length in (16, 64) if quick else (16, 32, 64, 128, 256, 512):
        hidden = torch.randn(1, length, 512)

        def cached(hidden: Tensor = hidden, length: int = length) -> None:
            cache = KeyValueCache()
            for i in range(length):
                layer(hidden[:, i : i + 1], mask=CAUSAL, cache=cache)

        def anew(hidden: Tensor = hidden, length: int = length) -> None:
            for i in range(length):
                layer(hidden[:, : i + 1], mask=CAUSAL)

        with torch.no_grad():
            times = in_turn({"cached": cached, "anew": anew}, min(rounds, 5))
        rows.append({"length": length, "ms": {name: milliseconds(t) for name, t in times.items()}})
        rows[-1] |= ratio(times["anew"], times["cached"])
        print(json.dumps(rows[-1]), flush=True)
    return rows


MEMORY_SCRIPT = """
import sys
import torch
from functools import partial
from pathlib import Path
from benchmarks.attention import state_space
from ttutor.efficient import efficient_attention, linear_attention
def resident(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
name, length, training = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "training"
window = 256 if name == "window" else None
others = {"linear": linear_attention, "state space": state_space}
attend = others[name] if name in others else partial(efficient_attention, window=window, backend=name)
make = lambda: torch.randn(1, 8, length, 64, requires_grad=training)
query, key, value = make(), make(), make()
warm = attend(*(t[:, :, :64] for t in (query, key, value)), causal=True)
if training:
    warm.sum().backward()
    query.grad = key.grad = value.grad = None
Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
before = resident("VmRSS:")
with torch.set_grad_enabled(training):
    output = attend(query, key, value, causal=True)
    if training:
        output.sum().backward()
print(resident("VmHWM:") - before)
"""


def memory(rounds: int, quick: bool, only: list[str] | None = None) -> list[dict]:
    """What a causal call adds to the peak memory of a fresh process (8 heads of 64, float32)."""
    lengths = (1024, 2048) if quick else (1024, 2048, 4096, 8192, 16384, 32768, 65536)
    rows = []
    for backend in only or (*TIMED, "linear", "state space"):
        for direction in ("forward", "training"):
            for length in lengths:
                if N_HEADS * length**2 > MOST_SCORES and backend == "eager":
                    continue
                if length > 16384 and (backend == "sdpa" or direction == "training"):
                    continue  # minutes of time for a figure that the shorter ones tell
                if backend == "state space" and (length > 8192 or direction == "training"):
                    continue  # gigabytes: each round writes the states of all tokens
                command = [sys.executable, "-c", MEMORY_SCRIPT, backend, str(length), direction]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                rows.append({"backend": backend, "direction": direction, "length": length, "bytes": int(done.stdout)})
                print(json.dumps(rows[-1]), flush=True)
    return rows


def growth(rounds: int, quick: bool, only: list[str] | None = None) -> list[dict]:
    """The exponent by which the time of a causal forward pass grows with the length, fitted, with its interval."""
    lengths = (512, 1024, 2048) if quick else (1024, 2048, 4096, 8192)
    far = (4096, 8192, 16384) if quick else (8192, 16384, 32768, 65536, 131072)
    attends: dict[str, tuple[Callable[..., Tensor], tuple[int, ...]]] = {
        "reference": (scaled_dot_product_attention, lengths[:-1]),
        "eager": (partial(efficient_attention, backend="eager"), lengths[:-1]),
        "sdpa": (partial(efficient_attention, backend="sdpa"), lengths),
        "tiled": (partial(efficient_attention, backend="tiled"), lengths),
        "window": (partial(efficient_attention, backend="window", window=256), far),
        "linear": (linear_attention, far),
        "state space": (state_space, lengths),
    }
    rows = []
    for name, (attend, at) in attends.items():
        if only and name not in only:
            continue
        runs = {str(n): inference(attend, tokens_of(n, torch.float32, 1), mask=CAUSAL) for n in at}
        times = in_turn(runs, min(rounds, 5))
        slopes = [slope(at, [times[str(n)][i] for n in at]) for i in range(min(rounds, 5))]
        points = {str(n): milliseconds(times[str(n)]) for n in at}
        rows.append({"backend": name, "ms": points, "exponent": round(statistics.median(slopes), 3)})
        rows[-1] |= {"low": round(min(slopes), 3), "high": round(max(slopes), 3)}
        print(json.dumps(rows[-1]), flush=True)
    return rows


def slope(lengths: tuple[int, ...], values: list[float]) -> float:
    """The exponent of a power law by least squares in the logarithms."""
    x, y = [math.log(n) for n in lengths], [math.log(v) for v in values]
    mean_x, mean_y = statistics.mean(x), statistics.mean(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / sum((a - mean_x) ** 2 for a in x)


# The command ---------------------------------------------------------------------------------------------------------


def main() -> None:
    """Run the sections and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--sections", nargs="+", default=SECTIONS, choices=SECTIONS)
    parser.add_argument("--lengths", nargs="+", type=int, help="measure these cells again, and keep the others")
    parser.add_argument("--only", nargs="+", help="measure the growth or memory of these again, and keep the others")
    parser.add_argument("--quick", action="store_true", help="few sizes, nothing written: to see whether it runs")
    options = parser.parse_args()
    if options.quick and (options.lengths or options.only):
        parser.error("--lengths and --only keep what is stored of the others, and --quick stores nothing")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    path = BENCHMARKS / "results" / "attention.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() and not options.quick else {}
    for name in options.sections:
        print(f"# {name}", flush=True)
        started = time.monotonic()
        command = f"python benchmarks/attention.py --sections {name} --rounds {options.rounds}"
        if name == "cells" and options.lengths:
            command = f"{found[name]['command']}; then --lengths {' '.join(map(str, options.lengths))}"
            kept = [row for row in found[name]["figures"] if row["length"] not in options.lengths]
            figures = kept + cells(options.rounds, options.quick, options.lengths)
        elif name in ("memory", "growth") and options.only:
            command = f"{found[name]['command']}; then --only {' '.join(options.only)}"
            kept = [row for row in found[name]["figures"] if row["backend"] not in options.only]
            figures = kept + globals()[name](options.rounds, options.quick, options.only)
        else:
            figures = globals()[name](options.rounds, options.quick)
        found[name] = {
            "command": command,
            "minutes": round((time.monotonic() - started) / 60, 1),
            "machine": _record.machine(),
            "versions": versions(),
            "figures": figures,
        }
        if not options.quick:
            path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def versions() -> dict[str, str]:
    """Of what was measured."""
    present = {dist.name.lower(): dist.version for dist in importlib.metadata.distributions()}
    return {name: present[name] for name in ("torch", "transformers", "x-transformers") if name in present}


if __name__ == "__main__":
    main()
