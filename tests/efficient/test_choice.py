"""Which backend is chosen, on machines that are not here too, and what a named backend says that cannot run."""

from __future__ import annotations

import itertools

import pytest
import torch

from tests.efficient.cases import MASKINGS, Case, assert_as_good_as_plain, inputs_of, large_cases, run, small_cases
from ttutor.attention import scaled_dot_product_attention
from ttutor.efficient import BackendError, Choice, Situation, choose, choose_backend, efficient_attention
from ttutor.efficient.call import structured
from ttutor.efficient.choice import MOST_SCORES, why_not
from ttutor.efficient.situation import situation_of
from ttutor.masks import Mask
from ttutor.shapes import ShapeError


def call(**facts) -> Situation:
    """A call on a CPU, 1,024 tokens long, as the facts change it."""
    return Situation(**{"n_queries": 1024, "n_keys": 1024, "n_heads": 8, "n_kv_heads": 8, **facts})


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, "sdpa"),
        ({"causal": True}, "sdpa"),
        ({"has_key_lengths": True}, "sdpa"),
        ({"has_key_lengths": True, "n_queries": 15, "n_keys": 15, "batch": 64}, "tiled"),
        ({"has_key_lengths": True, "n_queries": 5, "n_keys": 15, "batch": 64}, "sdpa"),  # a step of a beam search
        ({"has_dense": True}, "sdpa"),
        ({"window": 128, "causal": True}, "window"),
        ({"window": 128, "has_key_lengths": True}, "window"),
        ({"window": 128, "has_dense": True}, "sdpa"),
        ({"window": 1000}, "sdpa"),
        ({"dropout": 0.1}, "explicit"),
        ({"has_bias": True, "needs_gradient": True}, "explicit"),
        ({"has_bias": True}, "sdpa"),
        ({"dtype": torch.bfloat16, "n_queries": 15, "n_keys": 15, "batch": 64}, "explicit"),
        ({"dtype": torch.bfloat16, "n_queries": 15, "n_keys": 15, "batch": 64, "needs_gradient": True}, "explicit"),
        ({"dtype": torch.bfloat16, "n_queries": 4096, "n_keys": 4096}, "sdpa"),
        ({"dtype": torch.bfloat16, "n_queries": 1, "n_keys": 1024}, "explicit"),
        ({"dtype": torch.bfloat16, "n_queries": 1, "n_keys": 8, "n_heads": 4}, "sdpa"),
        ({"device": "mps", "causal": True}, "sdpa"),
        ({"device": "cuda", "capability": (9, 0), "dtype": torch.bfloat16}, "sdpa"),
        ({"device": "cuda", "capability": (9, 0), "dtype": torch.bfloat16, "causal": True}, "sdpa"),
        ({"device": "cuda", "capability": (9, 0), "has_dense": True}, "sdpa"),
        ({"device": "cuda", "capability": (9, 0), "has_triton": True, "window": 64, "causal": True}, "triton"),
        ({"device": "cuda", "capability": (9, 0), "has_triton": True, "has_key_lengths": True}, "triton"),
        ({"device": "cuda", "capability": (7, 5), "has_triton": True, "window": 64}, "window"),
        ({"device": "cuda", "capability": (9, 0), "window": 64}, "window"),
    ],
)
def test_what_is_chosen(facts, expected):
    choice = choose(call(**facts))
    assert choice.name == expected
    assert choice.reason
    assert why_not(choice.name, call(**facts)) is None


def test_whatever_is_chosen_can_run():
    truth = (False, True)
    for (
        device,
        dtype,
        causal,
        window,
        lengths,
        dense,
        bias,
        dropout,
        gradient,
        compiling,
        n_queries,
    ) in itertools.product(
        ("cpu", "cuda", "mps"),
        (torch.float32, torch.bfloat16),
        truth,
        (None, 64),
        truth,
        truth,
        truth,
        (0.0, 0.1),
        truth,
        truth,
        (1, 64, 2048),
    ):
        situation = call(
            device=device,
            capability=(8, 0) if device == "cuda" else None,
            dtype=dtype,
            causal=causal,
            window=window,
            has_key_lengths=lengths,
            has_dense=dense,
            has_bias=bias,
            dropout=dropout,
            needs_gradient=gradient,
            is_compiling=compiling,
            n_queries=n_queries,
            n_keys=2048,
        )
        name, reason = choose(situation)
        assert why_not(name, situation) is None, f"{name} was chosen for {situation}"
        assert reason


def test_the_choice_is_pure():
    assert choose(call()) == choose(call()) == Choice(*choose(call()))


def test_a_table_of_scores_that_would_fill_the_memory_is_not_written():
    huge = {"n_queries": 2**16, "n_keys": 2**16}
    assert MOST_SCORES < 2**32
    assert choose(call(**huge, dtype=torch.bfloat16)).name == "sdpa"
    assert choose(call(**huge, has_bias=True)).name == "tiled"


@pytest.mark.parametrize("masking", MASKINGS)
def test_the_facts_of_a_call(masking):
    inputs = inputs_of(Case(n_heads=4, n_kv_heads=2, d_value=9, masking=masking, bias=True), requires_grad=True)
    mask = inputs.keywords["mask"] or Mask()
    facts = situation_of(*inputs.tensors(), mask, bias=inputs.keywords["bias"], dropout=0.5)
    assert facts == Situation(
        device="cpu",
        dtype=torch.float32,
        batch=2,
        n_heads=4,
        n_kv_heads=2,
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
        assert not situation_of(*inputs.tensors(), mask).needs_gradient


def test_choose_backend_asks_about_tensors():
    query = torch.zeros(1, 8, 2048, 64)
    assert choose_backend(query, query, query, causal=True) == choose(call(n_queries=2048, n_keys=2048, causal=True))
    assert choose_backend(query, query, query, Mask(causal=True), window=64).name == "window"


# The public call ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", small_cases(), ids=str)
@pytest.mark.parametrize("gradients", [False, True], ids=["forward", "gradients"])
def test_auto_is_as_good_as_plain(case, gradients):
    assert_as_good_as_plain(efficient_attention, case, gradients=gradients)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("masking", MASKINGS)
def test_auto_in_other_dtypes(dtype, masking):
    case = Case(n_queries=40, n_keys=65, masking=masking, dtype=dtype, strided=True, bias=masking == "dense")
    assert_as_good_as_plain(efficient_attention, case, gradients=True)


@pytest.mark.parametrize("name", ["reference", "explicit", "sdpa", "tiled"])
def test_a_backend_by_name(name):
    inputs = inputs_of(Case(masking="everything", dtype=torch.float64))
    (mine,) = run(lambda *tensors, **options: efficient_attention(*tensors, **options, backend=name), inputs)
    (expected,) = run(scaled_dot_product_attention, inputs)
    torch.testing.assert_close(mine, expected, rtol=0, atol=1e-12)


def test_a_backend_that_cannot_says_why_and_what_can():
    tensors = inputs_of(Case()).tensors()
    with pytest.raises(BackendError, match=r"backend 'window' cannot run this call: there is no window; .*sdpa.* can"):
        efficient_attention(*tensors, backend="window")
    with pytest.raises(
        BackendError, match=r"backend 'tiled' cannot run this call: .*drop.*; reference, explicit, sdpa can"
    ):
        efficient_attention(*tensors, dropout=0.5, backend="tiled")
    with pytest.raises(BackendError, match=r'backend must be "auto" or one of .*\'triton\'\], but is \'flash\''):
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
    found = structured(Mask(causal=True, dense=dense), torch.zeros(2, 1, 3, 4))
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
    with pytest.raises(ShapeError, match="mask has shape"):
        efficient_attention(query, key, value, torch.ones(4, 7, dtype=torch.bool))
    with pytest.raises(TypeError, match="bool tensor"):
        efficient_attention(query, key, value, torch.zeros(5, 7))
    with pytest.raises(ValueError, match="dropout must be at least 0 and below 1, but is 1"):
        efficient_attention(query, key, value, dropout=1.0)
    with pytest.raises(TypeError, match=r"query is torch.float32, key torch.float64"):
        efficient_attention(query, key.double(), value)


@pytest.mark.soak
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_auto_over_the_whole_grid(dtype):
    for case in large_cases(dtype=dtype):
        gradients = case.n_queries * case.n_keys <= 257**2
        assert_as_good_as_plain(efficient_attention, case, gradients=gradients)
