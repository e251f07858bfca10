r"""From a language model to an assistant: the losses of chapter 13.

Instruction tuning (SFT) learns from the tokens of an answer alone; preferences learn from pairs by DPO; reinforcement
learns from rewards by the policy gradient, with the mean of a group as baseline (GRPO); ``pass_at_k`` says what several
tries are worth. All take log-probabilities or counts, so they fit any model that gives logits.
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from ttutor.shapes import check_shapes

__all__ = [
    "answer_log_probabilities",
    "group_advantages",
    "masked_answer_loss",
    "pass_at_k",
    "policy_gradient_loss",
    "preference_loss",
]


def answer_log_probabilities(
    logits: Float[Tensor, "batch tokens vocab_size"],
    token_ids: Int[Tensor, "batch tokens"],
    is_answer: Bool[Tensor, "batch tokens"],
) -> Float[Tensor, "batch tokens"]:
    r"""How probable each token of the answers was to the model, as logarithms; zero at all other tokens.

    $\log p(x_t \mid x_{<t})$ stands at $t$ and is read from the logits at $t - 1$, so a sum over the tokens is the
    log-probability of the whole answer.

    Args:
        logits: of the token after each token.
        token_ids: prompt and answer in one row, and whatever fills the row up.
        is_answer: True at the tokens of the answer, its end mark included.

    Raises:
        ValueError: a row's first token is called an answer: nothing stands before it, so no logits predict it.

    >>> even = answer_log_probabilities(torch.zeros(1, 3, 4), torch.tensor([[3, 1, 2]]), torch.tensor([[0, 0, 1]]) > 0)
    >>> even.exp()
    tensor([[1.0000, 1.0000, 0.2500]])
    """
    check_shapes(
        logits=(logits, "batch tokens vocab_size"),
        token_ids=(token_ids, "batch tokens"),
        is_answer=(is_answer, "batch tokens"),
    )
    if is_answer[:, 0].any():
        raise ValueError("is_answer is True at a row's first token, which no logits predict: begin with a prompt")
    log_p = logits[:, :-1].log_softmax(dim=-1).gather(-1, token_ids[:, 1:, None])[..., 0]
    return functional.pad(log_p.masked_fill(~is_answer[:, 1:], 0.0), (1, 0))


def masked_answer_loss(
    logits: Float[Tensor, "batch tokens vocab_size"],
    token_ids: Int[Tensor, "batch tokens"],
    is_answer: Bool[Tensor, "batch tokens"],
) -> Float[Tensor, ""]:
    r"""The loss of instruction tuning: mean surprise per token of the answers, in nats; prompts do not count.

    $$L = -\frac{1}{N} \sum_{t \,\in\, \text{answers}} \log p(x_t \mid x_{<t})$$

    $N$ counts the answers' tokens of the whole batch. The arguments are those of `answer_log_probabilities`.
    Ouyang et al. (2022), section 3.5. It is transformers' loss with the label -100 at all tokens of the prompt.

    Raises:
        ValueError: no token of the batch belongs to an answer, so that there is no mean.

    >>> logits, token_ids = torch.zeros(1, 3, 4), torch.tensor([[3, 1, 2]])
    >>> masked_answer_loss(logits, token_ids, torch.tensor([[False, False, True]])).exp()
    tensor(4.)
    """
    log_p = answer_log_probabilities(logits, token_ids, is_answer)
    n_answer_tokens = is_answer.sum()
    if n_answer_tokens == 0:
        raise ValueError(
            "no token of the batch belongs to an answer, so there is no loss to average; leave such a batch out, or "
            "add up losses and counts of several batches before you divide"
        )
    return -log_p.sum() / n_answer_tokens


def preference_loss(
    chosen: Float[Tensor, " pairs"],
    rejected: Float[Tensor, " pairs"],
    reference_chosen: Float[Tensor, " pairs"],
    reference_rejected: Float[Tensor, " pairs"],
    *,
    beta: float = 0.1,
) -> Float[Tensor, ""]:
    r"""Direct preference optimisation, DPO: Rafailov et al. (2023), equation 7; the mean over the pairs.

    $$L = -\log \sigma\Big(\beta \Big[\log\frac{p(y_+)}{p_\text{ref}(y_+)} - \log\frac{p(y_-)}{p_\text{ref}(y_-)}
    \Big]\Big)$$

    Args:
        chosen: log-probability of each whole answer that was preferred, under the model that learns.
        rejected: that of the other answer to the same prompt.
        reference_chosen: of the preferred answers under the frozen copy of the model from before.
        reference_rejected: of the others.
        beta: how fast the loss is content: a margin of ``1 / beta`` nats is a step of one on the sigmoid.

    It is the loss of trl's ``DPOTrainer``, there called ``"sigmoid"`` (compared with version 1.16: the same).

    Raises:
        ValueError: ``beta`` is not positive.

    >>> nothing = torch.zeros(1)
    >>> round(preference_loss(nothing, nothing, nothing, nothing).item(), 4) == round(math.log(2), 4)
    True
    """
    check_shapes(
        chosen=(chosen, "pairs"),
        rejected=(rejected, "pairs"),
        reference_chosen=(reference_chosen, "pairs"),
        reference_rejected=(reference_rejected, "pairs"),
    )
    if beta <= 0:
        raise ValueError(f"beta must be positive, got {beta}")
    margin = (chosen - reference_chosen) - (rejected - reference_rejected)
    return -functional.logsigmoid(beta * margin).mean()


def group_advantages(rewards: Float[Tensor, "prompts answers"]) -> Float[Tensor, "prompts answers"]:
    r"""How much better each answer is than the mean of its group: $A_i = r_i - \bar r$, for each prompt by itself.

    Where all answers of a group have one reward, all advantages are zero and nothing is learned from that prompt.

    Differs from GRPO as it was at first (Shao et al. 2024, section 4.1.2): it also divided by the group's standard
    deviation, by which prompts that nearly always or nearly never go right weigh more (Liu et al. 2025).

    Args:
        rewards: of several answers to each prompt.

    >>> group_advantages(torch.tensor([[1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0]]))
    tensor([[ 0.5000, -0.5000, -0.5000,  0.5000],
            [ 0.0000,  0.0000,  0.0000,  0.0000]])
    """
    check_shapes(rewards=(rewards, "prompts answers"))
    return rewards - rewards.mean(dim=1, keepdim=True)


def policy_gradient_loss(
    log_probabilities: Float[Tensor, "batch tokens"],
    advantages: Float[Tensor, " batch"],
    *,
    reference: Float[Tensor, "batch tokens"] | None = None,
    kl_weight: float = 0.0,
) -> Float[Tensor, ""]:
    r"""A loss whose gradient is the policy gradient (REINFORCE: Williams 1992), for answers that were just sampled.

    $$L = -\frac{1}{B} \sum_{i=1}^{B} A_i \sum_t \log p(x_{i,t} \mid x_{i,<t}) \;+\; w\,\widehat{\mathrm{KL}}$$

    Only its gradient means something: its value does not say how good the answers are.
    trl's ``GRPOTrainer`` with ``loss_type="dr_grpo"`` and ``scale_rewards="none"`` has this gradient, divided by
    ``max_completion_length`` (compared with version 1.16).

    Args:
        log_probabilities: of each token of the answers, zero elsewhere: see `answer_log_probabilities`.
        advantages: of each answer; no gradient flows into them.
        reference: the same tokens' log-probabilities under a frozen model from which the new one should not go far.
        kl_weight: the price $w$ of going far, in reward per nat. The estimate, for each answer the sum over its tokens
            of $e^{d} - d - 1$ with $d = \log p_\text{ref} - \log p$, is never negative: Shao et al. (2024), equation 4.

    Raises:
        ValueError: ``kl_weight`` is negative, or is not zero and there is no ``reference``.

    >>> log_p = torch.tensor([[0.0, -1.0], [0.0, -2.0]], requires_grad=True)
    >>> policy_gradient_loss(log_p, torch.tensor([0.5, -0.5])).backward()
    >>> log_p.grad[:, 1]  # a step against it makes the first answer more probable, and the second less
    tensor([-0.2500,  0.2500])
    """
    check_shapes(log_probabilities=(log_probabilities, "batch tokens"), advantages=(advantages, "batch"))
    if kl_weight < 0 or (kl_weight > 0 and reference is None):
        raise ValueError(
            f"kl_weight must be zero, or positive with a reference to stay near to; got {kl_weight} "
            f"{'without' if reference is None else 'with'} one"
        )
    loss = -(advantages.detach() * log_probabilities.sum(dim=1)).mean()
    if reference is None or kl_weight == 0:
        return loss
    check_shapes(log_probabilities=(log_probabilities, "batch tokens"), reference=(reference, "batch tokens"))
    difference = reference.detach() - log_probabilities
    return loss + kl_weight * (difference.exp() - difference - 1).sum(dim=1).mean()


def pass_at_k(n_right: Int[Tensor, " problems"], n_samples: int, k: int) -> Float[Tensor, " problems"]:
    r"""Chance that at least one of $k$ answers is right, for each problem, from $n$ sampled answers.

    $$\text{pass@}k = 1 - \binom{n - c}{k} \Big/ \binom{n}{k}$$

    with $c$ right answers among $n$: the share of all choices of $k$ that hold a right one. Unbiased, unlike
    $1 - (1 - c/n)^k$: Chen et al. (2021), section 2.1.

    Args:
        n_right: how many of a problem's answers were right.
        n_samples: how many answers were sampled for each problem.
        k: how many tries count; at most ``n_samples``.

    Raises:
        ValueError: ``k`` is not between 1 and ``n_samples``, or a count not between 0 and ``n_samples``.

    >>> pass_at_k(torch.tensor([0, 1, 3, 4]), n_samples=4, k=2)
    tensor([0.0000, 0.5000, 1.0000, 1.0000])
    """
    check_shapes(n_right=(n_right, "problems"))
    if not 1 <= k <= n_samples:
        raise ValueError(f"k must lie between 1 and the {n_samples} samples, got {k}")
    if ((n_right < 0) | (n_right > n_samples)).any():
        raise ValueError(f"between 0 and {n_samples} answers can be right, got {n_right.tolist()}")
    shares = [1 - math.comb(n_samples - count, k) / math.comb(n_samples, k) for count in n_right.tolist()]
    return torch.tensor(shares, device=n_right.device)
