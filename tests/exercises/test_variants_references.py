"""The references of chapter 9's exercises against the package and arithmetic of another kind."""

import torch

from ttutor.exercises import find
from ttutor.layers import GatedFeedForward
from ttutor.transformer import account
from ttutor.variants.llama import LlamaConfig
from ttutor.variants.objectives import mask_tokens, replace_tokens, restore_spans


def test_the_cache_weighs_what_the_account_says():
    costs = account(LlamaConfig.llama2_70b(), n_tokens=4096, batch=1, dtype=torch.bfloat16)
    assert find("variants.cache_bytes").reference(80, 8, 128, 4096, 1, None) == costs.cache_bytes == 1_342_177_280


def test_replaced_labels_are_those_of_the_package():
    exercise = find("variants.replaced_labels")
    token_ids, chosen, guesses, pad_id = exercise.cases[0].inputs(torch.Generator().manual_seed(1))
    everywhere = token_ids.masked_scatter(chosen, guesses)
    logits = torch.nn.functional.one_hot(everywhere, 25).double().log()
    theirs = replace_tokens(token_ids, chosen, logits, generator=torch.Generator())
    inputs, labels = exercise.reference(token_ids, chosen, guesses, pad_id)
    assert torch.equal(inputs, theirs.inputs)
    assert torch.equal(labels == 1, theirs.is_replaced)
    assert torch.equal(labels == -100, token_ids == pad_id)


def test_span_targets_can_be_put_back():
    exercise = find("variants.span_targets")
    for case in exercise.cases:
        token_ids, taken, sentinel_ids = case.inputs(torch.Generator())
        inputs, targets = exercise.reference(token_ids, taken, sentinel_ids)
        assert [one for one in inputs if one < 90] == [
            one for one, gone in zip(token_ids, taken, strict=True) if not gone
        ]
        assert restore_spans(inputs, targets, sentinel_ids=sentinel_ids) == token_ids


def test_masked_labels_have_the_shares_of_the_package():
    shape = (1, 400_000)
    token_ids = torch.randint(5, 40, shape, generator=torch.Generator().manual_seed(3))
    chance = torch.Generator().manual_seed(5)
    theirs = mask_tokens(token_ids, mask_id=4, vocab_size=40, special_ids=range(4), generator=chance)
    draw = torch.rand(shape, generator=chance)
    random_ids = 5 + torch.randint(35, shape, generator=chance)
    ours = find("variants.masked_labels").solution(token_ids, draw, random_ids, 4)
    for inputs, labels in (ours, theirs):
        chosen = labels != -100
        assert torch.equal(labels[chosen], token_ids[chosen])
        assert torch.equal(inputs[~chosen], token_ids[~chosen])
        kinds = (chosen, inputs == 4, chosen & (inputs != 4) & (inputs != token_ids))
        shares = torch.stack([kind.double().mean() for kind in kinds])
        torch.testing.assert_close(shares, torch.tensor([0.15, 0.12, 0.015 * 34 / 35]).double(), atol=0.003, rtol=0)


def test_the_gated_network_is_the_packages():
    exercise = find("variants.gated_network")
    for case in exercise.cases:
        hidden, w_in, w_out, activation = case.inputs(torch.Generator().manual_seed(2))
        layer = GatedFeedForward(6, 8, activation=activation).double()
        for part, matrix in zip((layer.gate, layer.widen, layer.narrow), (w_in[:8], w_in[8:], w_out), strict=True):
            part.weight.data = matrix
        torch.testing.assert_close(exercise.reference(hidden, w_in, w_out, activation), layer(hidden))
