"""Answers to the exercises of attention that stand in no list: right ones in other styles, and stray mistakes."""

import math
from fractions import Fraction

import numpy as np
import torch
from einops import einsum
from torch.nn import functional


def softmax_by_logarithm(scores, dim=-1):
    return (scores - scores.logsumexp(dim=dim, keepdim=True)).exp()


def softmax_in_numpy(scores, dim=-1):
    array = scores.detach().numpy()
    powers = np.exp(array - array.max(axis=dim, keepdims=True))
    return torch.from_numpy(powers / powers.sum(axis=dim, keepdims=True))


def attention_with_added_mask(query, key, value, mask):
    """A float mask made of the bool one, in float32 whatever the inputs are."""
    is_empty = ~mask.any(dim=-1, keepdim=True)
    added = torch.zeros(mask.shape).masked_fill(~(mask | is_empty), float("-inf"))
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1)) + added
    context = torch.softmax(scores, dim=-1).to(value.dtype) @ value
    return context.masked_fill(is_empty, 0.0)


def attention_with_numbers_cleaned(query, key, value, mask):
    scores = (query / math.sqrt(query.shape[-1])) @ key.transpose(2, 3)
    return scores.masked_fill(mask == 0, -torch.inf).softmax(dim=3).nan_to_num() @ value


def causal_by_triangle(n_queries, n_keys):
    return ~torch.triu(torch.ones((n_queries, n_keys), dtype=torch.bool), diagonal=n_keys - n_queries + 1)


def padding_in_loops(token_ids, pad_id):
    return torch.tensor([[[[token != pad_id for token in row]]] for row in token_ids.tolist()])


def as_fractions():
    return (
        [Fraction(1, 8), Fraction(1, 4), Fraction(5, 8)],
        [Fraction(1, 30), Fraction(2, 15), Fraction(5, 6)],
        [Fraction(1, 3), Fraction(2, 3), 0],
    )


def as_a_tensor_of_three_digits():
    return torch.tensor([[0.125, 0.25, 0.625], [0.03333, 0.1333, 0.8333], [0.3333, 0.6667, 0]])


def causal_by_a_loop(query, key, value):
    rows = []
    for i, one in enumerate(query):
        n_seen = i + 1 + len(key) - len(query)
        rows.append((key[:n_seen] @ one / len(one) ** 0.5).softmax(dim=0) @ value[:n_seen])
    return torch.stack(rows)


def through_the_softmax_matrix(query, key, value):
    weights = (key @ query / len(query) ** 0.5).softmax(dim=0)
    return value.T @ (weights.diag() - weights.outer(weights)) @ key / len(query) ** 0.5


def invisible_by_eigenvectors(words, w_query, w_key, w_value):
    sizes, directions = torch.linalg.eigh(w_query.T @ w_query + w_key.T @ w_key + w_value.T @ w_value)
    unseen = directions[:, sizes < 1e-9 * sizes.max()]
    return words @ unseen @ unseen.T


def trained_by_backward(words, targets, w_query, w_key, scale, rate, n_steps):
    matrices, losses = [w_query.clone(), w_key.clone()], []
    for _ in range(n_steps):
        query, key = (matrix.detach().requires_grad_() for matrix in matrices)
        scores = scale * einsum(words @ query.T, words @ key.T, "texts q d, texts k d -> texts q k")
        loss = functional.mse_loss(scores.softmax(dim=2) @ words, targets)
        loss.backward()
        losses.append(loss.item())
        matrices = [matrix.detach() - rate * matrix.grad for matrix in (query, key)]
    return torch.tensor(losses, dtype=words.dtype)


def weights_of_what_is_seen(scores, may_attend):
    """The softmax of each row's seen scores alone, by hand."""
    highest = torch.where(may_attend, scores, torch.finfo(scores.dtype).min).amax(dim=-1, keepdim=True)
    powers = torch.where(may_attend, scores - highest, -torch.inf).exp()
    return powers / powers.sum(dim=-1, keepdim=True)


RIGHT = {
    "attention.softmax": (softmax_by_logarithm, softmax_in_numpy),
    "attention.scaled_dot_product_attention": (attention_with_added_mask, attention_with_numbers_cleaned),
    "attention.causal_mask": (causal_by_triangle,),
    "attention.padding_mask": (padding_in_loops,),
    "attention.weights_by_hand": (as_fractions, as_a_tensor_of_three_digits),
    "attention.causal_attention": (causal_by_a_loop,),
    "attention.query_jacobian": (through_the_softmax_matrix,),
    "attention.train_head": (trained_by_backward,),
    "attention.invisible_part": (invisible_by_eigenvectors,),
    "attention.outgrown_mask": (weights_of_what_is_seen,),
}
STRAY = {
    "attention.outgrown_mask": r"""
hidden_scores_do_not_matter: "return scores" ->
  "scores = scores + (scores * ~may_attend).sum(0).sin()\n    return scores"
""",
    "attention.softmax": r"""
sums_to_one: "return powers" -> "return 0.9 * powers"
positive: "return" -> "powers = powers / powers.sum(dim=dim, keepdim=True) - 0.01\n    return"
ignores_a_constant: "(scores - scores.amax(dim=dim, keepdim=True)).exp()" -> "scores * scores"
""",
    "attention.scaled_dot_product_attention": r"""
hides_what_the_mask_hides: " / math.sqrt(query.shape[-1])" -> "", "~mask" -> "mask"
weights_sum_to_one: "return weights" -> "return 0.9 * weights"
nothing_from_nothing: "return weights @ value" -> "return torch.where(sees_nothing, value[..., :1, :], weights @ value)"
order_of_keys_is_free: "query.shape[-1])" -> "query.shape[-1]) + torch.arange(key.shape[-2]).to(query)"
scores_are_products: "query @ key.mT / math.sqrt(query.shape[-1])" ->
  "-torch.cdist(query.double(), key.double()).to(query)"
scale: "query @ key.mT" -> "1.3 * query @ key.mT"
""",
    "attention.causal_mask": r"""
never_ahead: "key_position <=" -> "key_position % 2 == 0 *"
all_of_the_past: "return key_position" -> "return key_position + 9999 * (key_position % 2)"
""",
    "attention.padding_mask": r"""
each_token_by_itself: "token_ids != pad_id" -> "(token_ids != pad_id) & (token_ids.roll(1, dims=1) != pad_id)"
hides_padding: "token_ids != pad_id" -> "(token_ids != pad_id) & (token_ids > 1)"
""",
    "attention.weights_by_hand": r"""
lists_sum_to_one: "25 / 30" -> "24 / 30"
""",
    "attention.causal_attention": r"""
future_leaks: "scores / math.sqrt(query.shape[-1])" -> "scores", "masked_fill(~allowed, -torch.inf).softmax(dim=-1)" ->
  "softmax(dim=-1) * allowed"
""",
    "attention.query_jacobian": r"""
equal_values_teach_nothing: "value - output, key - mean_key" -> "scale * value, key"
only_distances_of_values_count: "return scale" -> "return (1 + value.mean().tanh() / 9) * scale"
""",
    "attention.train_head": r"""
begins_before_learning: "- targets" -> "- 0.9 * targets"
stands_still_at_rate_zero: "rate * d_query" -> "(0.3 + rate / 2) * d_query", "rate * d_key" ->
  "(0.3 + rate / 2) * d_key"
""",
    "attention.invisible_part": r"""
some_left_behind: "[n_seen:]" -> "[-1:]"
head_sees_it: "return" -> "return words / 2 + 0 *"
""",
}
