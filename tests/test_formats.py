"""Every public function that takes numbers with a point, in half precision beside float64, at sizes that models have.

Inputs stand in the hundreds, so that a square or a sum that is taken in float16 overflows, and one in bfloat16 is
rounded away. What comes out may be off by a few roundings of the format, measured by the largest number of all.
"""

from __future__ import annotations

import ast
from functools import partial
from pathlib import Path

import pytest
import torch

import ttutor
from ttutor.attention import attention_weights, scaled_dot_product_attention
from ttutor.efficient import efficient_attention
from ttutor.efficient.features import elu_features
from ttutor.efficient.linear import linear_attention
from ttutor.efficient.linear_state import linear_attention_recurrent
from ttutor.efficient.sparse import sparse_attention
from ttutor.efficient.state_space import Selection, discretise, selective_loop, selective_scan
from ttutor.generation.filters import min_p_only, renormalised, top_k_only, top_p_only, with_temperature
from ttutor.generation.ranking import most_probable
from ttutor.generation.repetition import with_repetition_penalty
from ttutor.generation.speculative import accepted_share, leftover
from ttutor.inside.heads import attention_entropy, weight_on
from ttutor.inside.rollout import attention_rollout
from ttutor.inside.taps import blend
from ttutor.layers.norms import layer_norm, rms_norm
from ttutor.positions.rotary import half_to_interleaved
from ttutor.recurrence.additive import additive_weights
from ttutor.recurrence.convolution import convolve
from ttutor.recurrence.decay import decay_recurrent
from ttutor.recurrence.scan import linear_scan
from ttutor.training.assistant import (
    answer_log_probabilities,
    group_advantages,
    masked_answer_loss,
    policy_gradient_loss,
    preference_loss,
)
from ttutor.training.loss import chunked_linear_cross_entropy, smoothed_cross_entropy
from ttutor.training.muon import newton_schulz
from ttutor.variants.clip import contrastive_loss
from ttutor.variants.heads import first_token, mean_over_tokens
from ttutor.variants.patches import interpolate_positions, patchify, unpatchify
from ttutor.variants.quantised import quantise
from ttutor.variants.scores import soft_cap

SEEDED = torch.Generator().manual_seed(0)


def normal(*shape: int, size: float = 1.0) -> torch.Tensor:
    return size * torch.randn(*shape, dtype=torch.float64, generator=SEEDED)


def rates(*shape: int) -> torch.Tensor:
    return 0.5 + 0.5 * torch.rand(*shape, dtype=torch.float64, generator=SEEDED)


def shares(*shape: int) -> torch.Tensor:
    return normal(*shape, size=2).softmax(dim=-1)


def heads() -> tuple[torch.Tensor, ...]:
    """Queries and keys whose scores differ by a few units, and values in the hundreds.

    (Scores of a thousand are themselves rounded by half a unit: no formula can mend that.)
    """
    return normal(2, 2, 40, 8), normal(2, 2, 40, 8), normal(2, 2, 40, 8, size=400)


def log_probabilities() -> torch.Tensor:
    return normal(3, 5000, size=3).log_softmax(dim=-1)


def of_state_space(kind, step, rate, write, read, inputs):
    return kind(inputs, Selection(step, -rate, write, read))


STATE_SPACE = (rates(2, 60, 4) * 0.1, rates(4, 3), normal(2, 60, 3), normal(2, 60, 3), normal(2, 60, 4, size=300))
IDS = torch.randint(1, 5000, (3, 7), generator=SEEDED)
ANSWERS = (torch.arange(7) > 3).expand(3, 7)
TARGETS = torch.randint(1, 200, (70,), generator=SEEDED)

# The function, and its inputs in float64.
CASES = {
    "attention_weights": (attention_weights, heads()[:2]),
    "scaled_dot_product_attention": (partial(scaled_dot_product_attention, causal=True), heads()),
    **{
        f"{backend}_attention": (partial(efficient_attention, causal=True, window=window, backend=backend), heads())
        for backend, window in (("eager", None), ("sdpa", None), ("tiled", None), ("window", 5))
    },
    "efficient_attention": (efficient_attention, heads()),
    "sparse_attention": (partial(sparse_attention, window=9, causal=True, block_size=8), heads()),
    "elu_features": (lambda inputs: elu_features(inputs)[0], (normal(2, 2, 9, 8, size=20),)),
    "linear_attention": (partial(linear_attention, causal=True), heads()),
    "linear_attention_recurrent": (lambda *given: linear_attention_recurrent(*given)[0], heads()),
    "discretise": (discretise, (STATE_SPACE[0], -STATE_SPACE[1], STATE_SPACE[2])),
    "selective_loop": (lambda *given: of_state_space(selective_loop, *given)[0], STATE_SPACE),
    "selective_scan": (lambda *given: of_state_space(selective_scan, *given)[0], STATE_SPACE),
    "renormalised": (lambda one: renormalised(one, one < one.median()).exp(), (log_probabilities(),)),
    "with_temperature": (lambda one: with_temperature(one, 0.7).exp(), (log_probabilities(),)),
    "top_k_only": (lambda one: top_k_only(one, 50).exp(), (log_probabilities(),)),
    "top_p_only": (lambda one: top_p_only(one, 0.9).exp(), (log_probabilities(),)),
    "min_p_only": (lambda one: min_p_only(one, 0.1).exp(), (log_probabilities(),)),
    "most_probable": (lambda one: most_probable(one, [2, 0]).double(), (log_probabilities(),)),
    "with_repetition_penalty": (lambda one: with_repetition_penalty(one, IDS, 1.3).exp(), (log_probabilities(),)),
    "accepted_share": (accepted_share, (shares(3, 900), shares(3, 900))),
    "leftover": (leftover, (shares(3, 900), shares(3, 900))),
    "attention_entropy": (attention_entropy, (shares(2, 2, 2, 300, 300),)),
    "weight_on": (lambda one: weight_on(one, torch.eye(30).bool().expand(2, 30, 30)), (shares(2, 2, 30, 30),)),
    "attention_rollout": (attention_rollout, (shares(3, 2, 2, 30, 30),)),
    "blend": (blend, (shares(2, 2, 30, 30), normal(2, 2, 30, 8, size=400))),
    "layer_norm": (layer_norm, (normal(3, 512, size=400), normal(512), normal(512))),
    "rms_norm": (rms_norm, (normal(3, 512, size=400), normal(512))),
    "half_to_interleaved": (partial(half_to_interleaved, n_heads=2), (normal(16, 5, size=400),)),
    "additive_weights": (additive_weights, (normal(2, 5, 8, size=9), normal(2, 7, 8, size=9), normal(8))),
    "convolve": (convolve, (normal(2, 9, 64, size=100), normal(3, 64, 8))),
    "decay_recurrent": (
        lambda *given: decay_recurrent(*given)[0],
        (normal(2, 60, 4, size=9), normal(2, 60, 4, size=400), rates(4), normal(4)),
    ),
    "linear_scan": (lambda *given: linear_scan(*given)[0], (rates(2, 60, 4), normal(2, 60, 4, size=300))),
    "smoothed_cross_entropy": (
        lambda one: smoothed_cross_entropy(one, TARGETS, smoothing=0.1),
        (normal(70, 5000, size=20),),
    ),
    "chunked_linear_cross_entropy": (
        lambda *given: chunked_linear_cross_entropy(*given, TARGETS, smoothing=0.1),
        (normal(70, 64, size=3), normal(300, 64)),
    ),
    "answer_log_probabilities": (lambda one: answer_log_probabilities(one, IDS, ANSWERS), (normal(3, 7, 5000),)),
    "masked_answer_loss": (lambda one: masked_answer_loss(one, IDS, ANSWERS), (normal(3, 7, 5000, size=20),)),
    "preference_loss": (preference_loss, tuple(normal(40, size=20) for _ in range(4))),
    "group_advantages": (group_advantages, (normal(9, 8),)),
    "policy_gradient_loss": (policy_gradient_loss, (-rates(40, 30), rates(40))),
    "newton_schulz": (partial(newton_schulz, dtype=torch.float64), (normal(2, 12, 9, size=400),)),
    "contrastive_loss": (contrastive_loss, (normal(40, 40, size=30),)),
    "first_token": (first_token, (normal(2, 9, 4, size=400),)),
    "mean_over_tokens": (
        lambda one: mean_over_tokens(one, torch.ones(2, 400).bool()),
        (400 + normal(2, 400, 4, size=100),),
    ),
    "mean_over_tokens, all": (mean_over_tokens, (400 + normal(2, 400, 4, size=100),)),
    "patchify": (partial(patchify, patch_size=2), (normal(2, 3, 4, 6, size=400),)),
    "unpatchify": (partial(unpatchify, patch_size=2, n_rows=2), (normal(2, 6, 12, size=400),)),
    "interpolate_positions": (partial(interpolate_positions, n_rows=5, n_columns=6), (normal(17, 8, size=400),)),
    "quantise": (lambda one: quantise(one).restored(), (normal(9, 64, size=400),)),
    "soft_cap": (partial(soft_cap, cap=50.0), (normal(9, 64, size=400),)),
}
ELSEWHERE = {
    "prepare, infer_key_lengths, choose_backend, real_keys": "only look at shapes and masks",
    "flex_attention": "is compiled; tests/efficient holds them against float64",
    "best_extensions, without_repeated_ngrams, replace_tokens": "choose tokens, and compute nothing",
    "head_writes, read_out, memory_coefficients, top_inputs, edited, switched_off, what_if, grad_cam": "run a model",
    "key_covariance, rank_one_edit, fit_probe, probe": "solve linear systems, which PyTorch has in no half precision",
    "jacobians_through_time, gradient_norms, depends_on, unroll": "run the cell or function that they are given",
    "eager_attention, sdpa_attention, tiled_attention, window_attention": "stand above, by their backends",
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_half_precision_is_float64_but_for_its_roundings(name, dtype):
    function, inputs = CASES[name]
    given = tuple(one.to(dtype) for one in inputs)
    found, expected = function(*given), function(*(one.double() for one in given))
    for one, other in zip(*((x if isinstance(x, tuple) else (x,)) for x in (found, expected)), strict=True):
        assert one.isfinite().all()
        largest, error = other.abs().max().item(), (one.double() - other).abs().max().item()
        assert error <= 16 * torch.finfo(dtype).eps * largest, f"off by {error:.4g}, of numbers up to {largest:.4g}"


def test_every_public_function_that_takes_such_numbers_is_tried():
    """A new one belongs into the table, or is named with the reason why not."""
    root, found = Path(ttutor.__file__).parent, set()
    for path in root.rglob("*.py"):
        if path.relative_to(root).parts[0] not in ("exercises", "grading", "widgets", "interop"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                    notes = (ast.unparse(one.annotation) for one in arguments if one.annotation)
                    found |= {node.name} if any("Float[" in note for note in notes) else set()
    named = {name.strip() for names in ELSEWHERE for name in names.split(",")}
    assert found <= named | {name.partition(",")[0] for name in CASES}
    assert named <= found, "named, and not there any more"
