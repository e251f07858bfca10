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
    token_ids, chosen, guesses = find("variants.replaced_labels").cases[0].inputs(torch.Generator().manual_seed(1))
    logits = torch.nn.functional.one_hot(guesses, 25).double().log()
    theirs = replace_tokens(token_ids, chosen, logits, generator=torch.Generator())
    ours = find("variants.replaced_labels").reference(token_ids, chosen, guesses)
    assert torch.equal(ours[0], theirs.inputs)
    assert torch.equal(ours[1], theirs.is_replaced)


def test_span_targets_can_be_put_back():
    exercise = find("variants.span_targets")
    for case in exercise.cases:
        token_ids, spans, sentinel_ids = case.inputs(torch.Generator())
        inputs, targets = exercise.reference(token_ids, spans, sentinel_ids)
        assert restore_spans(inputs, targets, sentinel_ids=sentinel_ids) == token_ids


def test_masked_labels_follow_the_packages_draws():
    token_ids = torch.randint(5, 40, (7, 30), generator=torch.Generator().manual_seed(3))
    theirs = mask_tokens(
        token_ids, mask_id=4, vocab_size=40, special_ids=range(4), generator=torch.Generator().manual_seed(5)
    )
    again = torch.Generator().manual_seed(5)
    chosen, fate = torch.rand(7, 30, generator=again) < 0.15, torch.rand(7, 30, generator=again)
    random_ids = 5 + torch.randint(35, (7, 30), generator=again)
    ours = find("variants.masked_labels").reference(token_ids, chosen, fate, random_ids, 4)
    assert torch.equal(ours[0], theirs.inputs)
    assert torch.equal(ours[1], theirs.labels)


def test_the_gated_network_is_the_packages():
    exercise = find("variants.gated_network")
    for case in exercise.cases:
        hidden, *maps, activation = case.inputs(torch.Generator().manual_seed(2))
        layer = GatedFeedForward(6, 8, activation=activation).double()
        for part, matrix in zip((layer.gate, layer.widen, layer.narrow), maps, strict=True):
            part.weight.data = matrix
        torch.testing.assert_close(exercise.reference(hidden, *maps, activation), layer(hidden))
