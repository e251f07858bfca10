"""Answers to the exercises of multihead that stand in no list: right ones in other styles, and stray mistakes."""

import torch
from torch.nn import functional


def by_einsum(hidden, w_query, w_key, w_value, w_output, n_heads):
    d_model = hidden.shape[-1]
    queries, keys, values = (weight.reshape(n_heads, -1, d_model) for weight in (w_query, w_key, w_value))
    q = torch.einsum("btm,hdm->bhtd", hidden, queries) * (d_model // n_heads) ** -0.5
    k, v = (torch.einsum("btm,hdm->bhtd", hidden, weight) for weight in (keys, values))
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k)
    tokens = torch.arange(hidden.shape[1])
    weights = torch.where(tokens[:, None] >= tokens, scores, -1e9).softmax(-1)
    return torch.einsum("bhqk,bhkd,mhd->bqm", weights, v, w_output.reshape(d_model, n_heads, -1))


def split_by_slices(vectors, n_heads):
    width = vectors.shape[-1] // n_heads
    return torch.stack([vectors[..., head * width : (head + 1) * width] for head in range(n_heads)], dim=1)


def writes_by_masking(context, w_output):
    batch, heads, queries, d_head = context.shape
    parts = []
    for head in range(heads):
        alone = torch.zeros_like(context)
        alone[:, head] = context[:, head]
        parts.append(functional.linear(alone.transpose(1, 2).reshape(batch, queries, heads * d_head), w_output))
    return torch.stack(parts, dim=1)


def grouped_head_by_head(query, key, value):
    group = query.shape[1] // key.shape[1]
    out = []
    for head in range(query.shape[1]):
        scores = query[:, head] @ key[:, head // group].transpose(-1, -2) * query.shape[-1] ** -0.5
        out.append(torch.softmax(scores, dim=-1) @ value[:, head // group])
    return torch.stack(out, 1)


def loaded_by_torch(hidden, w_in, w_output, n_heads):
    batch, tokens, d_model = hidden.shape
    q, k, v = functional.linear(hidden, w_in).view(batch, tokens, 3, n_heads, -1).permute(2, 0, 3, 1, 4)
    weights = torch.softmax(q @ k.mT / (d_model // n_heads) ** 0.5, dim=-1)
    return functional.linear((weights @ v).transpose(1, 2).flatten(2), w_output)


def overlap_by_projections(w_one, w_other):
    one, other = (w.T @ torch.linalg.inv(w @ w.T) @ w for w in (w_one, w_other))
    return torch.linalg.svdvals(one @ other)[: min(len(w_one), len(w_other))]


RIGHT = {
    "multihead.multi_head_attention": (by_einsum,),
    "multihead.split_heads": (split_by_slices,),
    "multihead.head_contributions": (writes_by_masking,),
    "multihead.grouped_attention": (grouped_head_by_head,),
    "multihead.loaded_heads": (loaded_by_torch,),
    "multihead.subspace_overlap": (overlap_by_projections,),
}
STRAY = {
    "multihead.split_heads": r"""
each_number_in_its_place: "return vectors" -> "return vectors.roll(1, dims=-1)"
""",
    "multihead.multi_head_attention": r"""
causal: " / math.sqrt(q.shape[-1])" -> "", "rearrange(hidden @ weight.mT, split, heads=n_heads)" ->
  "(hidden @ weight.mT).reshape(len(hidden), n_heads, hidden.shape[1], -1)"
sees_the_past: ".tril()" -> ".tril().triu(-1)"
batch_independent: "hidden @ weight" -> "(hidden - 0.1 * hidden.mean(dim=0, keepdim=True)) @ weight"
linear_in_output_weights: "@ w_output.mT" -> "@ (w_output / w_output.norm()).mT"
linear_in_value_weights: "w_key, w_value)" -> "w_key, w_value * w_value.abs())"
weights_sum_to_one: "weights @ v" -> "0.9 * weights @ v"
scores_are_products: "w_key, w_value)" -> "w_key / w_key.norm(), w_value)"
heads_are_alike: "scores = q" -> "scores = torch.arange(1, n_heads + 1).to(q)[:, None, None] * q"
""",
    "multihead.loaded_heads": r"""
heads_one_by_one: "query, key, value = (hidden" -> "value, key, query = (hidden"
""",
    "multihead.head_contributions": r"""
sum_is_the_output: "return" -> "return 0.01 +"
silent_head_writes_nothing: "return" -> "return (lambda parts: 0.5 * parts + 0.5 * parts.roll(1, dims=1))(",
  '-> batch heads queries d_model")' -> '-> batch heads queries d_model"))'
""",
    "multihead.grouped_attention": r"""
wrong_partner: "grouped, key, pairs" -> "grouped, key.flip(1), pairs", "weights, value, blend" ->
  "weights, value.flip(1), blend"
no_blend: "return" -> "return 0.9 *"
""",
    "multihead.subspace_overlap": r"""
between_0_and_1: "basis_one.T @ basis_other)" -> "w_one @ w_other.T).sqrt()"
equal_spaces: "return" -> "return 0.9 *"
""",
}
