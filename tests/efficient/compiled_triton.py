"""Compiles our Triton kernels for GPUs that need not be there, and prints what shared memory each takes.

Triton compiles for any target it is told. A program of its own, because it must not be interpreting (see
`interpreted_triton`) and because what it loads does not belong into the other tests' process.
"""

from __future__ import annotations

import itertools
import json
import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from ttutor.efficient import triton_kernels
from ttutor.efficient.triton_launch import PLANS, Plan, padded, plan

KERNELS = {
    "output": triton_kernels.attend_kernel,
    "query_gradient": triton_kernels.query_gradient_kernel,
    "key_value_gradient": triton_kernels.key_value_gradient_kernel,
}
FLOAT32 = ("log_total", "projection")


def shared_memory(direction: str, number: str, width: int, capability: tuple[int, int], sizes: Plan, how: dict) -> int:
    """Compile one kernel and give the bytes of shared memory that it asks for."""
    kernel = KERNELS[direction]
    known = {
        "CAUSAL": how["causal"],
        "WINDOW": how["window"],
        "D_HEAD": width,
        "D_VALUE": width,
        "PADDED_HEAD": padded(width),
        "PADDED_VALUE": padded(width),
        "PRECISION": "ieee",
        "BLOCK_QUERIES": sizes.block_queries,
        "BLOCK_KEYS": sizes.block_keys,
    }
    if not how["lengths"]:
        known["key_lengths"] = None
    signature, aligned = {}, {}
    for index, name in enumerate(kernel.arg_names):
        if name in known:
            signature[name] = "constexpr"
        elif name.endswith("_strides"):
            signature[name] = ("i32", "i32", "i32")
            aligned |= {(index, axis): [["tt.divisibility", 16]] for axis in range(3)}
        elif name in ("n_heads", "group", "n_queries", "n_keys", "window"):
            signature[name] = "i32"
        elif name == "scale":
            signature[name] = "fp32"
        else:
            signature[name] = "*i64" if name == "key_lengths" else "*fp32" if name in FLOAT32 else f"*{number}"
            aligned[(index,)] = [["tt.divisibility", 16]]
    constants = {(kernel.arg_names.index(name),): value for name, value in known.items()}
    target = GPUTarget("cuda", 10 * capability[0] + capability[1], 32)
    options = {"num_warps": sizes.num_warps, "num_stages": sizes.num_stages, "enable_fp_fusion": True}
    return triton.compile(
        ASTSource(kernel, signature, constants, aligned), target=target, options=options
    ).metadata.shared


def quick() -> dict[str, int]:
    """Each kernel once, with small tiles: enough to see that the compiler takes what the interpreter took."""
    everything = {"causal": True, "window": True, "lengths": True}
    sizes = Plan(16, 16, 1, 1)
    return {name: shared_memory(name, "fp16", 16, (8, 0), sizes, everything) for name in KERNELS}


def soak() -> dict[str, int]:
    """Every size that `plan` gives, for three generations of GPUs, with the least and the most of structure."""
    found = {}
    for capability, (direction, n_bytes) in itertools.product(((8, 0), (8, 6), (9, 0)), PLANS):
        for width, has_all in itertools.product((20, 64, 128), (False, True)):
            sizes = plan(direction, width, width, n_bytes, capability, 4096)
            how = {"causal": has_all, "window": has_all, "lengths": has_all}
            number = {2: "bf16", 4: "fp32"}[n_bytes]
            name = f"{capability[0]}.{capability[1]} {direction} {number} {width} {'everything' if has_all else 'none'}"
            found[name] = shared_memory(direction, number, width, capability, sizes, how)
    return found


if __name__ == "__main__":
    print(json.dumps({"quick": quick, "soak": soak}[sys.argv[1]]()))
