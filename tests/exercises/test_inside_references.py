"""The references of chapter 12's exercises against the package and against statements that do not share their code."""

import torch
from torch import nn

from ttutor.exercises import find
from ttutor.inside import ablate, fit_probe, induction_score, key_covariance, patch, rank_one_edit
from ttutor.layers import LayerNorm
from ttutor.multihead import MultiHeadAttention


def inputs_of(exercise_id: str, seed: int = 0) -> tuple:
    return find(exercise_id).cases[0].inputs(torch.Generator().manual_seed(seed))


def test_the_lens_is_the_packages_norm_and_a_projection():
    streams, gain, bias, unembedding = inputs_of("inside.lens_readings")
    norm = LayerNorm(len(gain)).double()
    with torch.no_grad():
        norm.gain.copy_(gain)
        norm.bias.copy_(bias)
        expected = nn.functional.linear(norm(streams), unembedding).softmax(dim=-1)
    torch.testing.assert_close(find("inside.lens_readings").reference(streams, gain, bias, unembedding), expected)


def test_the_stricter_score_is_the_packages_where_every_token_has_one_twin():
    token_ids = torch.tensor([3, 1, 4, 2, 3, 1, 4, 2])
    weights = torch.randn(3, 8, 8, generator=torch.Generator().manual_seed(0)).softmax(dim=-1)
    theirs = induction_score(weights[None], token_ids[None])
    torch.testing.assert_close(find("inside.twin_score").reference(weights, token_ids), theirs)


def test_the_written_fact_is_the_packages_edit():
    weight, bias, key, output, other_keys = inputs_of("inside.written_fact")
    theirs = rank_one_edit(weight, key, output - bias, key_covariance(other_keys))
    torch.testing.assert_close(find("inside.written_fact").reference(weight, bias, key, output, other_keys), theirs)


def test_the_layer_without_a_head_is_the_packages_ablation():
    torch.manual_seed(0)
    attention = MultiHeadAttention(d_model=12, n_heads=4, bias=False).double()
    context, typical = torch.randn(2, 4, 5, 3).double(), torch.randn(6, 4, 7, 3).double()
    hidden = torch.randn(2, 5, 12).double()
    by = typical[:, 2].mean(dim=(0, 1))
    with torch.no_grad(), patch(attention, {"context": context}), ablate(attention, "context", heads=[2], by=by):
        theirs = attention(hidden)
    ours = find("inside.without_head").reference(context, typical, 2, attention.to_output.weight.detach())
    torch.testing.assert_close(ours, theirs)


def test_the_honest_probe_is_the_packages_without_a_ridge():
    hidden, labels, is_train, n_labels = inputs_of("inside.honest_probe")
    theirs = fit_probe(hidden[is_train], labels[is_train], n_labels, ridge=1e-10)
    expected = theirs.accuracy(hidden[~is_train], labels[~is_train])
    assert find("inside.honest_probe").reference(hidden, labels, is_train, n_labels) == expected
