"""The references of chapter 11's exercises against the package and PyTorch's own derivatives."""

import math

import torch

from ttutor.efficient import linear_attention_recurrent, sparse_mask
from ttutor.efficient.linear_state import LinearState
from ttutor.exercises import find
from ttutor.exercises.efficient.tell_exact import SUSPECTS
from ttutor.transformer.costs import crossover_length


def test_merged_blocks_are_the_softmax_of_both():
    random = torch.Generator().manual_seed(0)
    scores = 3 * torch.randn(4, 9, generator=random, dtype=torch.float64)
    values = torch.randn(9, 2, generator=random, dtype=torch.float64)
    parts = []
    for block in (slice(0, 5), slice(5, 9)):
        parts += [scores[:, block].softmax(dim=-1) @ values[block], scores[:, block].logsumexp(dim=-1)]
    context, log_sum = find("efficient.merge_blocks").reference(*parts)
    torch.testing.assert_close(context, scores.softmax(dim=-1) @ values)
    torch.testing.assert_close(log_sum, scores.logsumexp(dim=-1))


def test_entries_are_those_of_the_packages_mask():
    exercise = find("efficient.window_entries")
    for sizes in ((30, 7, 3), (12, 20, 5), (44, 40, 10), (25, 1, 0)):
        n_tokens, window, n_global = sizes
        drawn = sparse_mask(n_tokens, window=window, n_global=n_global, causal=True)
        assert exercise.reference(*sizes) == exercise.solution(*sizes) == int(drawn.sum())


def test_a_linear_step_is_the_packages():
    exercise = find("efficient.linear_step")
    summed, normaliser, *token = exercise.cases[0].inputs(torch.Generator().manual_seed(1))
    state = LinearState(summed[None, None], normaliser[None, None], torch.zeros(1, 1, dtype=torch.float64))
    context, after = linear_attention_recurrent(*(part[None, None, None] for part in token), state)
    ours = exercise.reference(summed, normaliser, *token)
    torch.testing.assert_close(ours[0], context[0, 0, 0])
    torch.testing.assert_close(ours[1], after.summed[0, 0])
    torch.testing.assert_close(ours[2], after.normaliser[0, 0])


def test_the_crossover_of_gpt3():
    exercise = find("efficient.crossover")
    assert exercise.solution(12_288, 96, 96, 128, 4 * 12_288, False, False) == 73_728
    theirs = crossover_length(d_model=64, n_heads=4, n_kv_heads=2, d_head=16, d_ff=100, gated=True)
    assert math.isclose(exercise.solution(64, 4, 2, 16, 100, True, True), 2 * theirs)


def test_the_suspects_are_told_apart():
    exercise = find("efficient.tell_exact")
    found = exercise.reference([suspect for suspect, _ in SUSPECTS])
    assert found.tolist() == [is_right for _, is_right in SUSPECTS]


def test_the_gradients_of_all_blocks_are_those_of_attention():
    random = torch.Generator().manual_seed(2)
    tensors = [torch.randn(n, 6, generator=random, dtype=torch.float64).requires_grad_() for n in (4, 11, 11)]
    query, key, value = tensors
    scores = query @ key.T / math.sqrt(6)
    context, log_sum = scores.softmax(dim=-1) @ value, scores.logsumexp(dim=-1)
    d_context = torch.randn(4, 6, generator=random, dtype=torch.float64)
    expected = torch.autograd.grad((context * d_context).sum(), tensors)
    with torch.no_grad():
        blocks = [
            find("efficient.block_gradients").reference(query, k, v, context, log_sum, d_context)
            for k, v in zip(key.split(4), value.split(4), strict=True)
        ]
    torch.testing.assert_close(sum(block[0] for block in blocks), expected[0])
    torch.testing.assert_close(torch.cat([block[1] for block in blocks]), expected[1])
    torch.testing.assert_close(torch.cat([block[2] for block in blocks]), expected[2])
