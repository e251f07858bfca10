"""Which backend is chosen, on machines that are not here too, and what a named backend says that cannot run."""

from __future__ import annotations

import itertools
from functools import partial

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.efficient.cases import MASKINGS, SMALL_SIZES, Case, assert_as_good_as_plain, inputs_of, run, small_cases
from ttutor.attention import scaled_dot_product_attention
from ttutor.efficient import BACKENDS, AttentionCall, choose, choose_backend, efficient_attention
from ttutor.efficient.attention_call import call_of, infer_key_lengths
from ttutor.efficient.choice import unsupported_reason
from ttutor.errors import SettingError, ShapeError
from ttutor.masks import Mask


def call(**facts) -> AttentionCall:
    """A call on a CPU, 1,024 tokens long, as the facts change it."""
    return AttentionCall(**{"n_queries": 1024, "n_keys": 1024, "n_heads": 8, **facts})


def on_a_gpu(**facts) -> AttentionCall:
    return call(**{"device": "cuda", "capability": (9, 0), "dtype": torch.bfloat16, "has_triton": True, **facts})


SHORT = {"n_queries": 15, "n_keys": 15, "batch": 64}


@pytest.mark.parametrize(
    ("facts", "expected", "reason"),
    [
        (call(n_queries=5, n_keys=20, batch=32), "eager", "beam search"),
        (call(has_key_lengths=True, needs_gradient=True, **SHORT), "eager", "too short"),
        (call(window=128, causal=True), "window", "outside the band"),
        (call(dropout=0.1), "eager", "dropout"),
        (call(has_bias=True, needs_gradient=True), "eager", "no gradient for a bias"),
        (call(has_bias=True, n_queries=2**16, n_keys=2**16), "tiled", "would not fit"),
        (call(n_queries=40, n_keys=40, needs_gradient=True), "eager", "backward pass"),
        (call(dtype=torch.bfloat16, **SHORT), "eager", "half precision"),
        (call(dtype=torch.bfloat16, n_queries=2**16, n_keys=2**16), "sdpa", "knows this structure"),
        (call(device="mps", window=64), "sdpa", "for mps, handed the mask as a table; not measured here"),
        (on_a_gpu(causal=True), "sdpa", "flash kernel"),
        (on_a_gpu(causal=True, capability=(7, 5)), "sdpa", "memory-efficient kernel knows"),
        (on_a_gpu(causal=True, dtype=torch.float32), "sdpa", "memory-efficient kernel knows"),
        (on_a_gpu(has_dense=True), "sdpa", "mask as a table"),
        (on_a_gpu(window=64, causal=True), "flex", "blocks outside it; not measured here"),
        (on_a_gpu(window=64, dropout=0.1), "sdpa", "mask as a table"),
        (on_a_gpu(window=64, dtype=torch.float64), "sdpa", "plain products"),
        (on_a_gpu(has_key_lengths=True), "sdpa", "mask as a table; not measured here"),
    ],
)
def test_what_is_chosen(facts, expected, reason):
    choice = choose(facts)
    assert choice.name == expected
    assert reason in choice.reason


def test_whatever_is_chosen_can_run():
    facts = {
        "device": ("cpu", "cuda", "mps"),
        "dtype": (torch.float32, torch.bfloat16, torch.float64),
        "causal": (False, True),
        "window": (None, 64),
        "has_key_lengths": (False, True),
        "has_dense": (False, True),
        "has_bias": (False, True),
        "dropout": (0.0, 0.1),
        "needs_gradient": (False, True),
        "is_recorded": (False, True),
        "has_triton": (False, True),
        "n_queries": (1, 64, 2048),
    }
    for values in itertools.product(*facts.values()):
        asked = call(**dict(zip(facts, values, strict=True)), n_keys=2048, capability=(8, 0))
        name, reason = choose(asked)
        assert unsupported_reason(name, asked) is None, f"{name} was chosen for {asked}"
        assert reason.endswith("not measured here") == (asked.device != "cpu")
        assert asked.device == "cpu" or name in ("sdpa", "flex")


# What is said against what runs --------------------------------------------------------------------------------------


class FusedCalls(TorchDispatchMode):
    """Records for each call of PyTorch's fused CPU kernel whether it was handed a mask as a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.with_table: list[bool] = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        """Note the call, and run it."""
        if operation.overloadpacket is torch.ops.aten._scaled_dot_product_flash_attention_for_cpu:
            self.with_table.append((kwargs or {}).get("attn_mask") is not None)
        return operation(*args, **(kwargs or {}))


def masks_for(n_queries: int, n_keys: int) -> dict[str, dict[str, object]]:
    """Masks of every kind for two rows, as arguments of a call."""
    real = torch.arange(n_keys) < torch.tensor([[n_keys], [max(1, n_keys // 2)]])
    return {
        "none": {},
        "causal": {"causal": True},
        "narrow window": {"window": 3},
        "wide window": {"causal": True, "window": n_keys},
        "lengths": {"mask": Mask(key_lengths=real.sum(dim=-1))},
        "causal, lengths": {"mask": Mask(causal=True, key_lengths=real.sum(dim=-1))},
        "padding on the right": {"mask": real[:, None, None]},
        "padding on the left": {"mask": real.flip(-1)[:, None, None]},
        "no padding at all": {"mask": torch.ones(2, 1, 1, n_keys, dtype=torch.bool), "causal": True},
        "table": {"mask": torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_keys)},
        "table for each head": {"mask": torch.ones(4, n_queries, n_keys, dtype=torch.bool).tril(n_keys)},
        "bias": {"bias": torch.zeros(n_queries, n_keys)},
        "dropout": {"dropout": 0.5},
    }


@pytest.mark.parametrize("sizes", [(5, 7), (1, 9), (40, 40), (130, 130), (130, 140), (520, 520)], ids=str)
@pytest.mark.parametrize("masking", masks_for(1, 1))
def test_what_is_said_is_what_runs(monkeypatch, masking, sizes):
    ran = []
    for name, backend in BACKENDS.items():
        attend = partial(lambda name, attend, *a, **k: ran.append(name) or attend(*a, **k), name, backend.attend)
        monkeypatch.setitem(BACKENDS, name, backend._replace(attend=attend))
    for dtype, d_value, training in itertools.product((torch.float32, torch.bfloat16), (8, 5), (False, True)):
        shapes = ((2, 4, sizes[0], 8), (2, 2, sizes[1], 8), (2, 2, sizes[1], d_value))
        tensors = [torch.randn(shape, dtype=dtype, requires_grad=training) for shape in shapes]
        options = masks_for(*sizes)[masking]
        choice = choose_backend(*tensors, **options)
        with FusedCalls() as fused:
            efficient_attention(*tensors, **options)
        assert ran.pop() == choice.name
        assert not ran
        if choice.name == "sdpa":
            assert (
                set(fused.with_table)
                == {
                    "a fused kernel that knows this structure": {False},
                    "a fused kernel that reads the mask as a table": {True},
                    "PyTorch's plain products: its fused CPU kernel needs values as wide as keys": set(),
                }[choice.reason]
            )
        if choice.name in ("eager", "tiled"):
            assert not fused.with_table


@pytest.mark.parametrize("masking", MASKINGS)
def test_the_facts_of_a_call(masking):
    inputs = inputs_of(Case(n_heads=4, n_kv_heads=2, d_value=9, masking=masking, bias=True), requires_grad=True)
    mask = inputs.keywords["mask"] or Mask()
    facts = call_of(*inputs.tensors(), mask, bias=inputs.keywords["bias"], dropout=0.5)
    assert facts == AttentionCall(
        device="cpu",
        dtype=torch.float32,
        batch=2,
        n_heads=4,
        n_queries=5,
        n_keys=7,
        d_head=8,
        d_value=9,
        causal=mask.causal,
        window=mask.window,
        has_key_lengths=mask.key_lengths is not None,
        has_dense=mask.dense is not None,
        has_bias=True,
        dropout=0.5,
        needs_gradient=True,
        has_triton=facts.has_triton,
    )
    with torch.no_grad():
        assert not call_of(*inputs.tensors(), mask).needs_gradient


# The public call ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", SMALL_SIZES, ids=str)
@pytest.mark.parametrize("gradients", [False, True], ids=["forward", "gradients"])
def test_auto_is_as_good_as_plain(sizes, gradients):
    for case in small_cases(sizes=(sizes,)):
        assert_as_good_as_plain(efficient_attention, case, gradients=gradients)


@pytest.mark.parametrize("name", ["reference", "eager", "sdpa", "tiled"])
def test_a_backend_by_name(name):
    inputs = inputs_of(Case(masking="everything", dtype=torch.float64))
    (mine,) = run(lambda *tensors, **options: efficient_attention(*tensors, **options, backend=name), inputs)
    (expected,) = run(scaled_dot_product_attention, inputs)
    torch.testing.assert_close(mine, expected, rtol=0, atol=1e-12)


def test_a_backend_that_cannot_says_why_and_what_can():
    tensors = inputs_of(Case()).tensors()
    with pytest.raises(SettingError, match=r"backend 'window' cannot run this call: there is no window; .*sdpa.* can"):
        efficient_attention(*tensors, backend="window")
    with pytest.raises(
        SettingError, match=r"backend 'tiled' cannot run this call: .*drop.*; reference, eager, sdpa can"
    ):
        efficient_attention(*tensors, dropout=0.5, backend="tiled")
    with pytest.raises(SettingError, match=r'backend must be "auto" or one of .*\'flex\'\], but is \'flash\''):
        efficient_attention(*tensors, backend="flash")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([[1, 1, 1], [1, 1, 1]], None),
        ([[1, 1, 0], [1, 1, 1]], [2, 3]),
        ([[0, 0, 0], [1, 0, 0]], [0, 1]),
        ([[0, 1, 1], [1, 1, 1]], "dense"),
        ([[1, 0, 1], [1, 1, 1]], "dense"),
    ],
)
def test_lengths_are_found_behind_a_mask_of_padding(rows, expected):
    dense = torch.tensor(rows, dtype=torch.bool)[:, None, None]
    found = infer_key_lengths(Mask(causal=True, dense=dense), torch.zeros(2, 1, 3, 4))
    assert found.causal
    assert (found.dense is not None) == (expected == "dense")
    lengths = None if found.key_lengths is None else found.key_lengths.tolist()
    assert lengths == (expected if isinstance(expected, list) else None)
    drawn = found.materialise(3, 3).expand(2, 1, 3, 3)
    assert torch.equal(drawn, Mask(causal=True, dense=dense).materialise(3, 3))


@pytest.mark.usefixtures("as_readers_run_it")
def test_wrong_calls_are_named():
    query, key, value = inputs_of(Case()).tensors()
    with pytest.raises(ShapeError, match="axis 'keys' is 7 in key but 6 in value"):
        efficient_attention(query, key, value[:, :, :6])
    with pytest.raises(ShapeError, match="must have 4 axes"):
        efficient_attention(query[0], key[0], value[0])
    with pytest.raises(ShapeError, match="3 query heads cannot share 2 key/value heads"):
        efficient_attention(query, key[:, :2], value[:, :2])
    with pytest.raises(ValueError, match="dropout must be at least 0 and below 1, but is 1"):
        efficient_attention(query, key, value, dropout=1.0)
    with pytest.raises(TypeError, match="query is float32, key is float64"):
        efficient_attention(query, key.double(), value)
