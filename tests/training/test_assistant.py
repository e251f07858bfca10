"""The losses of chapter 13, against numbers worked out by hand and against sums written out."""

import math
from itertools import combinations

import pytest
import torch
from torch.nn import functional

from ttutor.errors import ShapeError
from ttutor.training.assistant import (
    answer_log_probabilities,
    group_advantages,
    masked_answer_loss,
    pass_at_k,
    policy_gradient_loss,
    preference_loss,
)

BATCH, TOKENS, VOCAB = 3, 7, 5


@pytest.fixture
def random():
    return torch.Generator().manual_seed(0)


def problem(random):
    logits = torch.randn(BATCH, TOKENS, VOCAB, generator=random, dtype=torch.float64, requires_grad=True)
    token_ids = torch.randint(VOCAB, (BATCH, TOKENS), generator=random)
    is_answer = torch.zeros(BATCH, TOKENS, dtype=torch.bool)
    for row, (start, end) in enumerate([(3, 6), (5, 7), (1, 2)]):
        is_answer[row, start:end] = True
    return logits, token_ids, is_answer


def test_log_probabilities_equal_a_softmax_read_entry_by_entry(random):
    logits, token_ids, is_answer = problem(random)
    found = answer_log_probabilities(logits, token_ids, is_answer)
    for row in range(BATCH):
        for token in range(TOKENS):
            expected = 0.0
            if is_answer[row, token]:
                before = logits[row, token - 1].detach().exp()
                expected = math.log(before[token_ids[row, token]] / before.sum())
            assert found[row, token].item() == pytest.approx(expected)


def test_the_answer_loss_by_hand():
    """Two tokens of an answer, which the model gives 3/4 and 1/4: the mean surprise is (ln 4/3 + ln 4) / 2."""
    logits = torch.tensor([[[9.0, 0.0], [math.log(3.0), 0.0], [0.0, math.log(3.0)], [5.0, 5.0]]], dtype=torch.float64)
    loss = masked_answer_loss(logits, torch.tensor([[1, 1, 0, 0]]), torch.tensor([[False, False, True, True]]))
    assert loss.item() == pytest.approx((math.log(4 / 3) + math.log(4)) / 2)


def test_the_answer_loss_equals_torch_s_with_the_label_minus_100(random):
    """What transformers computes: labels -100 in the prompt, logits shifted by one."""
    logits, token_ids, is_answer = problem(random)
    labels = token_ids.masked_fill(~is_answer, -100)
    expected = functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
    torch.testing.assert_close(masked_answer_loss(logits, token_ids, is_answer), expected)


def test_the_answer_loss_equals_that_of_a_model_of_transformers(random):
    modeling = pytest.importorskip("transformers.loss.loss_utils", reason="transformers is not installed")
    logits, token_ids, is_answer = problem(random)
    logits = logits.detach().float()  # transformers computes its loss in float32
    labels = token_ids.masked_fill(~is_answer, -100)
    expected = modeling.ForCausalLMLoss(logits, labels, vocab_size=VOCAB)
    torch.testing.assert_close(masked_answer_loss(logits, token_ids, is_answer), expected)


def test_prompt_and_padding_get_no_gradient(random):
    logits, token_ids, is_answer = problem(random)
    masked_answer_loss(logits, token_ids, is_answer).backward()
    learns = functional.pad(is_answer[:, 1:], (0, 1))  # the logits at t - 1 are those for t
    assert (logits.grad.abs().sum(dim=-1) > 0).equal(learns)


def test_an_answer_that_the_model_rules_out_does_not_touch_the_others(random):
    """Infinite surprise outside the answer must not become NaN by a multiplication with zero."""
    logits, token_ids, is_answer = problem(random)
    ruled_out = logits.detach().clone()
    ruled_out[0, 0, token_ids[0, 1]] = -torch.inf
    torch.testing.assert_close(
        masked_answer_loss(ruled_out, token_ids, is_answer), masked_answer_loss(logits.detach(), token_ids, is_answer)
    )


def test_a_batch_without_an_answer_and_an_answer_without_a_prompt_are_refused(random):
    logits, token_ids, is_answer = problem(random)
    with pytest.raises(ValueError, match="no token of the batch belongs to an answer"):
        masked_answer_loss(logits, token_ids, torch.zeros_like(is_answer))
    with pytest.raises(ValueError, match="first token"):
        masked_answer_loss(logits, token_ids, torch.ones_like(is_answer))
    with pytest.raises((ShapeError, TypeError)):
        masked_answer_loss(logits, token_ids, is_answer[:, 1:])


def test_the_preference_loss_by_hand():
    """Chosen: -1 from -2, so +1. Rejected: -4 from -3, so -1. With beta 0.5 the loss is ln(1 + 1/e)."""
    numbers = [torch.tensor([x], dtype=torch.float64) for x in (-1.0, -4.0, -2.0, -3.0)]
    assert preference_loss(*numbers, beta=0.5).item() == pytest.approx(math.log(1 + math.exp(-1)))


def test_the_preference_loss_is_content_where_both_answers_lose_as_long_as_the_margin_grows():
    """It sees the margin alone: log-probabilities lowered by one number leave it as it is."""
    numbers = [torch.tensor(x, dtype=torch.float64) for x in ([-1.0, -2.0], [-4.0, -2.5], [-2.0, -2.0], [-3.0, -2.0])]
    lowered = preference_loss(numbers[0] - 7, numbers[1] - 7, *numbers[2:])
    torch.testing.assert_close(lowered, preference_loss(*numbers))


def test_the_gradient_of_the_preference_loss_is_large_where_the_order_is_wrong():
    """By Rafailov et al. (2023), section 4: each pair weighs beta times the sigmoid of minus its margin."""
    chosen = torch.tensor([-1.0, -9.0], dtype=torch.float64, requires_grad=True)
    zero = torch.zeros(2, dtype=torch.float64)
    preference_loss(chosen, zero - 5, zero - 5, zero - 5, beta=0.3).backward()
    margins = torch.tensor([4.0, -4.0], dtype=torch.float64)
    torch.testing.assert_close(chosen.grad, -0.3 * torch.sigmoid(-0.3 * margins) / 2)


def test_a_beta_of_zero_is_refused():
    with pytest.raises(ValueError, match="beta must be positive, got 0"):
        preference_loss(*torch.zeros(4, 2), beta=0.0)


def test_advantages_by_hand():
    rewards = torch.tensor([[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0], [2.0, 4.0, 6.0, 8.0]])
    expected = torch.tensor([[0.75, -0.25, -0.25, -0.25], [0.0, 0.0, 0.0, 0.0], [-3.0, -1.0, 1.0, 3.0]])
    assert group_advantages(rewards).equal(expected)


def test_a_group_of_one_teaches_nothing(random):
    assert (group_advantages(torch.rand(6, 1, generator=random)) == 0).all()


def test_the_policy_gradient_is_the_gradient_of_the_expected_reward():
    """Over all answers of one token, each weighed by its probability: exactly, without sampling."""
    scores = torch.tensor([0.3, -1.2, 0.8, 0.1], dtype=torch.float64, requires_grad=True)
    rewards = torch.tensor([0.0, 1.0, 0.0, 2.0], dtype=torch.float64)
    (expected,) = torch.autograd.grad((scores.softmax(dim=0) * rewards).sum(), scores)
    shares, found = scores.softmax(dim=0).detach(), torch.zeros(4, dtype=torch.float64)
    for answer, share in enumerate(shares):
        log_p = scores.log_softmax(dim=0)[answer].view(1, 1)
        baseline = (shares * rewards).sum()  # any baseline that does not depend on the answer leaves the sum alone
        (gradient,) = torch.autograd.grad(policy_gradient_loss(log_p, (rewards[answer] - baseline).view(1)), scores)
        found -= share * gradient
    torch.testing.assert_close(found, expected)


def test_no_gradient_flows_into_advantages():
    advantages = torch.tensor([0.5, -0.5], requires_grad=True)
    log_p = torch.tensor([[-1.0], [-2.0]], requires_grad=True)
    policy_gradient_loss(log_p, advantages).backward()
    assert advantages.grad is None


def test_the_price_of_going_far_by_hand():
    """One token at probability 1/2, in the reference at 1/4: the estimate is 1/2 - ln(1/2) - 1."""
    log_p, reference = torch.tensor([[0.0, math.log(0.5)]]), torch.tensor([[0.0, math.log(0.25)]])
    loss = policy_gradient_loss(log_p, torch.zeros(1), reference=reference, kl_weight=2.0)
    assert loss.item() == pytest.approx(2 * (0.5 + math.log(2) - 1))


def test_the_price_is_on_average_the_divergence():
    """Weighed by the model's probabilities, the estimate sums to KL(model, reference)."""
    random = torch.Generator().manual_seed(1)
    model, reference = torch.randn(2, 6, generator=random, dtype=torch.float64).log_softmax(dim=1)
    estimate = sum(
        p.exp() * policy_gradient_loss(p.view(1, 1), torch.zeros(1), reference=q.view(1, 1), kl_weight=1.0)
        for p, q in zip(model, reference, strict=True)
    )
    torch.testing.assert_close(estimate, (model.exp() * (model - reference)).sum())


@pytest.mark.parametrize(("weight", "reference"), [(-0.1, torch.zeros(2, 3)), (0.1, None)])
def test_a_price_without_a_reference_or_below_zero_is_refused(weight, reference):
    with pytest.raises(ValueError, match="kl_weight must be zero, or positive with a reference"):
        policy_gradient_loss(torch.zeros(2, 3), torch.zeros(2), reference=reference, kl_weight=weight)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_pass_at_k_is_the_share_of_all_choices_that_hold_a_right_answer(k):
    for n_right in range(6):
        answers = [True] * n_right + [False] * (5 - n_right)
        choices = [any(chosen) for chosen in combinations(answers, k)]
        found = pass_at_k(torch.tensor([n_right]), 5, k)
        assert found.item() == pytest.approx(sum(choices) / len(choices))


def test_pass_at_k_is_unbiased_where_the_plain_formula_is_not():
    """Over all outcomes of four samples of an answer that is right with probability 0.3: two tries, 1 - 0.7 ** 2."""
    chance = [math.comb(4, c) * 0.3**c * 0.7 ** (4 - c) for c in range(5)]
    found = pass_at_k(torch.arange(5), 4, 2).double() @ torch.tensor(chance, dtype=torch.float64)
    plain = sum(p * (1 - (1 - c / 4) ** 2) for c, p in enumerate(chance))
    assert found.item() == pytest.approx(1 - 0.7**2)
    assert plain < 1 - 0.7**2 - 0.05


def test_impossible_counts_are_refused():
    with pytest.raises(ValueError, match="k must lie between 1 and the 4 samples, got 5"):
        pass_at_k(torch.tensor([1]), 4, 5)
    with pytest.raises(ValueError, match="between 0 and 4 answers can be right"):
        pass_at_k(torch.tensor([1, 5]), 4, 2)
