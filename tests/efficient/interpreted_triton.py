"""Runs our Triton kernels on a CPU in Triton's interpreter, and prints as JSON what came of each trial.

Triton decides when it is imported whether it compiles or interprets, so this is a program of its own, started by
`test_triton` with ``TRITON_INTERPRET=1``. A trial's result is "passed", or what its assertion said.
"""

from __future__ import annotations

import itertools
import json
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.efficient.cases import Case, assert_as_good_as_plain, inputs_of, run, small_cases
from ttutor.attention import scaled_dot_product_attention
from ttutor.efficient import triton_launch
from ttutor.efficient.triton import triton_attention
from ttutor.efficient.triton_launch import Plan
from ttutor.errors import SettingError
from ttutor.masks import Mask

STRUCTURES = ("none", "causal", "window", "causal+window", "lengths", "causal+lengths")
HALF = torch.float16
HEADS = {"n_heads": 2, "n_kv_heads": 1}

# Tiles of 16 and 32 make several blocks of short lengths, with edges and insides, and show when the two are confused.
QUICK_CASES = (
    Case(n_queries=36, n_keys=50, masking="causal", d_head=16, d_value=8, batch=1, strided=True, **HEADS),
    Case(n_queries=37, n_keys=33, masking="causal+lengths", d_head=8, d_value=12, dtype=HALF, n_heads=1, n_kv_heads=1),
    Case(n_queries=20, n_keys=130, masking="window", batch=1, n_heads=1, n_kv_heads=1, d_head=24, d_value=24),
    Case(n_queries=70, n_keys=67, masking="causal+window", batch=1, n_heads=1, n_kv_heads=1, dtype=HALF),
    Case(n_queries=35, n_keys=40, masking="lengths", scale=-0.3, n_heads=1, n_kv_heads=1),
    Case(n_queries=2, n_keys=19, masking="none", dtype=HALF, strided=True, batch=1, n_heads=4, n_kv_heads=2),
)


def soak_cases() -> Iterator[Case]:
    """Every structure at every dtype, the lengths around a block's end, and a few long ones."""
    for dtype in (torch.float32, HALF):
        yield from small_cases(STRUCTURES, dtype=dtype)
    one = Case(batch=1, n_heads=2, n_kv_heads=1, d_head=16, d_value=16)
    for n_queries, n_keys in itertools.product((1, 2, 63, 64, 65), repeat=2):
        for masking in STRUCTURES:
            yield replace(one, n_queries=n_queries, n_keys=n_keys, masking=masking)
    for masking in STRUCTURES:
        yield replace(one, n_queries=257, n_keys=257, masking=masking, d_head=64, d_value=64, dtype=HALF)
        yield replace(one, n_queries=257, n_keys=1000, masking=masking, d_head=128, d_value=128)
        yield replace(one, n_queries=1000, n_keys=257, masking=masking, strided=True, dtype=HALF)


def hold_to_the_contract(case: Case, *blocks: tuple[int, int]) -> None:
    """Output and gradients against the reference, with tiles of the given sizes."""
    for block_queries, block_keys in blocks:
        with_tiles(block_queries, block_keys)
        assert_as_good_as_plain(triton_attention, case, gradients=True)


def with_tiles(block_queries: int, block_keys: int) -> None:
    """Use tiles of this size from now on; what `plan` would choose is too large for short lengths to show anything."""
    triton_launch.plan = lambda *call: Plan(block_queries, block_keys, 4, 1)


def hidden_blocks_are_never_read() -> None:
    """What no query of a block sees may be no number: what the block gives and gets is the same, bit for bit.

    With tiles of 16 queries and 32 keys. The last two look from the keys: their gradients need no query that is hidden.
    """
    for mask, block, hidden, is_of_keys in (
        (Mask(causal=True), slice(16, 32), slice(32, None), False),
        (Mask(window=10), slice(64, 80), slice(0, 32), False),
        (Mask(window=10), slice(64, 80), slice(96, None), False),
        (Mask(causal=True), slice(64, 96), slice(0, 64), True),
        (Mask(window=10), slice(0, 32), slice(48, None), True),
    ):
        inputs = inputs_of(Case(n_queries=100, n_keys=100, batch=1, n_heads=1, n_kv_heads=1), requires_grad=True)
        inputs.keywords["mask"] = mask
        parts = slice(2, 4) if is_of_keys else slice(0, 2)  # of the output and the gradients of query, key and value
        clean = run(triton_attention, inputs, gradients=True)[parts]
        with torch.no_grad():
            for tensor in (inputs.query,) if is_of_keys else (inputs.key, inputs.value):
                tensor[:, :, hidden] = torch.nan
        for found, expected in zip(run(triton_attention, inputs, gradients=True)[parts], clean, strict=True):
            assert torch.equal(found[:, :, block], expected[:, :, block]), (mask, is_of_keys)


def padding_is_never_read() -> None:
    case = Case(n_queries=5, n_keys=37, masking="lengths", batch=3, n_heads=1, n_kv_heads=1)
    inputs = inputs_of(case, requires_grad=True)
    inputs.keywords["mask"] = Mask(key_lengths=torch.tensor([37, 20, 0]))
    clean = run(triton_attention, inputs, gradients=True)
    with torch.no_grad():
        for tensor in (inputs.key, inputs.value):
            tensor[1, :, 20:] = torch.nan
            tensor[2] = torch.inf
    for found, expected in zip(run(triton_attention, inputs, gradients=True), clean, strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=0)


def large_scores_do_not_overflow() -> None:
    inputs = inputs_of(Case(n_queries=5, n_keys=40, scale=300.0, batch=1), requires_grad=True)
    expected = run(scaled_dot_product_attention, inputs, gradients=True)
    torch.testing.assert_close(run(triton_attention, inputs, gradients=True), expected, rtol=1e-3, atol=1e-3)


def no_keys_give_zeros() -> None:
    query = torch.ones(2, 3, 5, 8, requires_grad=True)
    key = torch.ones(2, 3, 0, 8, requires_grad=True)
    output = triton_attention(query, key, key)
    assert torch.equal(output, torch.zeros(2, 3, 5, 8))
    assert torch.equal(torch.autograd.grad(output.sum(), query)[0], torch.zeros(2, 3, 5, 8))
    assert triton_attention(query[:, :, :0], query, query).shape == (2, 3, 0, 8)
    assert triton_attention(query[:0], query[:0], query[:0]).shape == (0, 3, 5, 8)


def bfloat16_is_refused_here() -> None:
    query = torch.ones(1, 1, 2, 8, dtype=torch.bfloat16)
    with pytest.raises(SettingError, match="bit patterns of bfloat16"):
        triton_attention(query, query, query)


def it_compiles_into_one_graph() -> None:
    inputs = inputs_of(
        Case(n_queries=5, n_keys=7, masking="causal+lengths", n_heads=1, n_kv_heads=1), requires_grad=True
    )
    compiled = torch.compile(triton_attention, fullgraph=True, backend="aot_eager")
    expected = run(triton_attention, inputs, gradients=True)
    torch.testing.assert_close(run(compiled, inputs, gradients=True), expected, rtol=0, atol=0)


def its_operators_are_sound() -> None:
    case = Case(n_queries=20, n_keys=23, n_heads=4, n_kv_heads=2, d_value=12)
    lengths, how = torch.tensor([23, 9]), (True, 20, 0.25)
    tensors = inputs_of(case, requires_grad=True).tensors()
    torch.library.opcheck(triton_launch.forward, (*tensors, lengths, *how))
    tensors = inputs_of(case).tensors()
    outputs = triton_launch.forward(*tensors, lengths, *how)
    torch.library.opcheck(triton_launch.backward, (outputs[0], *tensors, lengths, *outputs, *how))


sizes = st.integers(min_value=1, max_value=40)


@st.composite
def any_case(draw: Callable) -> Case:
    """A call of any size and structure that the kernels take."""
    n_kv_heads = draw(st.integers(1, 2))
    return Case(
        n_queries=draw(sizes),
        n_keys=draw(sizes),
        batch=draw(st.integers(1, 2)),
        n_heads=n_kv_heads * draw(st.integers(1, 2)),
        n_kv_heads=n_kv_heads,
        d_head=draw(st.integers(1, 33)),
        d_value=draw(st.integers(1, 33)),
        masking=draw(st.sampled_from(STRUCTURES)),
        dtype=draw(st.sampled_from((torch.float32, HALF))),
        strided=draw(st.booleans()),
        seed=draw(st.integers(0, 99)),
    )


def fuzz(examples: int) -> Callable[[], None]:
    """Hold that many calls to the contract, the same ones every time."""
    relaxed = list(HealthCheck)

    @settings(max_examples=examples, derandomize=True, deadline=None, database=None, suppress_health_check=relaxed)
    @given(any_case(), st.sampled_from(((16, 32), (32, 16))))
    def hold(case: Case, block: tuple[int, int]) -> None:
        with_tiles(*block)
        assert_as_good_as_plain(triton_attention, case, gradients=True)

    return hold


SMALL, LARGE = ((16, 32), (32, 16)), ((128, 64),)
QUICK: dict[str, Callable[[], None]] = {}
for case, block in zip(QUICK_CASES, itertools.cycle(SMALL), strict=False):
    QUICK[str(case)] = partial(hold_to_the_contract, case, block)
for check in (
    hidden_blocks_are_never_read,
    padding_is_never_read,
    large_scores_do_not_overflow,
    no_keys_give_zeros,
    bfloat16_is_refused_here,
    it_compiles_into_one_graph,
):
    QUICK[check.__name__] = check
QUICK["fuzz"] = fuzz(5)

SOAK: dict[str, Callable[[], None]] = {"its_operators_are_sound": its_operators_are_sound, "fuzz": fuzz(100)}
for index, case in enumerate(soak_cases()):
    SOAK[f"{index}-{case}"] = partial(hold_to_the_contract, case, *(SMALL if case.n_keys < 200 else LARGE))


def main(trials: dict[str, Callable[[], None]]) -> None:
    results = {}
    for name, trial in trials.items():
        torch.manual_seed(0)
        with_tiles(16, 32)
        try:
            trial()
            results[name] = "passed"
        except Exception:  # reported by the test of this name
            results[name] = traceback.format_exc(limit=-4)
    print(json.dumps(results))


if __name__ == "__main__":
    main({"quick": QUICK, "soak": SOAK}[sys.argv[1]])
