"""Answers to LayerNorm and the encoder layer: right ones in other styles, and mistakes that stand in no list."""

import math

import torch
from einops import reduce
from torch.nn import functional

# LayerNorm


def norm_by_var_mean(hidden, gain, bias, eps):
    """Both statistics in one call, and a power instead of a root."""
    variance, mean = torch.var_mean(hidden, dim=-1, correction=0, keepdim=True)
    return torch.addcmul(bias, gain, (hidden - mean) * (variance + eps) ** -0.5)


def norm_by_einops(hidden, gain, bias, eps):
    """With the axes by name."""
    centred = hidden - reduce(hidden, "... d_model -> ... 1", "mean")
    return bias + gain * centred * torch.rsqrt(reduce(centred**2, "... d_model -> ... 1", "mean") + eps)


def norm_in_place_of_a_copy(hidden, gain, bias, eps):
    """Edits what is its own."""
    result = hidden - hidden.mean(-1, keepdim=True)
    result = result / torch.sqrt(result.pow(2).mean(-1, keepdim=True) + eps)
    result *= gain
    result += bias
    return result


def norm_with_neighbours(hidden, gain, bias, eps):
    """Statistics of each token and the one before it, together."""
    pairs = torch.cat([hidden, hidden.roll(1, dims=-2)], dim=-1)
    variance, mean = torch.var_mean(pairs, dim=-1, correction=0, keepdim=True)
    return gain * (hidden - mean) / torch.sqrt(variance + eps) + bias


def norm_about_the_median(hidden, gain, bias, eps):
    """Robust, and no LayerNorm."""
    centred = hidden - hidden.median(dim=-1, keepdim=True).values
    return gain * centred / torch.sqrt(hidden.var(dim=-1, correction=0, keepdim=True) + eps) + bias


def norm_by_the_largest(hidden, gain, bias, eps):
    """Centred, then divided by the largest distance."""
    centred = hidden - hidden.mean(dim=-1, keepdim=True)
    return gain * centred / (centred.abs().amax(dim=-1, keepdim=True) + eps) + bias


def norm_that_does_not_train_its_gain(hidden, gain, bias, eps):
    """Right but for one gradient."""
    return norm_by_var_mean(hidden, gain.detach(), bias, eps)


# The encoder layer


def layer_by_torch(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    """Out of torch's functions."""
    w_query, w_key, w_value, w_output = attention
    w_1, b_1, w_2, b_2 = feed_forward
    normed = functional.layer_norm(hidden, hidden.shape[-1:], *norm_1)
    q, k, v = (
        functional.linear(normed, weight).unflatten(-1, (n_heads, -1)).transpose(1, 2)
        for weight in (w_query, w_key, w_value)
    )
    context = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    hidden = torch.add(hidden, functional.linear(context, w_output))
    normed = functional.layer_norm(hidden, hidden.shape[-1:], *norm_2)
    return hidden + functional.linear(functional.linear(normed, w_1, b_1).relu(), w_2, b_2)


def layer_head_by_head(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    """Loops over sequences and heads; each head's share of the output map is applied to it alone."""
    w_query, w_key, w_value, w_output = attention
    w_1, b_1, w_2, b_2 = feed_forward
    d_head = hidden.shape[-1] // n_heads
    done = []
    for stream in hidden:
        normed = norm_by_var_mean(stream, *norm_1, 1e-5)
        for head in range(n_heads):
            rows = slice(head * d_head, (head + 1) * d_head)
            q, k, v = normed @ w_query[rows].T, normed @ w_key[rows].T, normed @ w_value[rows].T
            stream = stream + torch.softmax(q @ k.T / math.sqrt(d_head), dim=-1) @ v @ w_output[:, rows].T
        inner = norm_by_var_mean(stream, *norm_2, 1e-5) @ w_1.T + b_1
        done.append(stream + inner.clamp(min=0) @ w_2.T + b_2)
    return torch.stack(done)


def _layer(hidden, norm_1, attention, norm_2, feed_forward, n_heads, norm=norm_by_var_mean, mask=None):
    """The right layer, of which the norm or the mask may be another."""
    w_query, w_key, w_value, w_output = attention
    w_1, b_1, w_2, b_2 = feed_forward
    normed = norm(hidden, *norm_1, 1e-5)
    q, k, v = ((normed @ w.T).unflatten(-1, (n_heads, -1)).transpose(1, 2) for w in (w_query, w_key, w_value))
    context = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    hidden = hidden + context.transpose(1, 2).flatten(2) @ w_output.T
    return hidden + torch.relu(norm(hidden, *norm_2, 1e-5) @ w_1.T + b_1) @ w_2.T + b_2


def layer_that_normalises_its_end(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    """A last norm with the first norm's gain."""
    return norm_by_var_mean(_layer(hidden, norm_1, attention, norm_2, feed_forward, n_heads), *norm_1, 1e-5)


def layer_without_norms(*inputs):
    """Two listed mistakes at once."""
    return _layer(*inputs, norm=lambda hidden, gain, bias, eps: hidden)


def layer_with_narrow_sight(*inputs):
    """Each token sees itself and its neighbours only."""
    tokens = torch.arange(inputs[0].shape[1])
    return _layer(*inputs, mask=(tokens[:, None] - tokens).abs() < 2)


def layer_with_batch_norm(*inputs):
    """Statistics over the sequences of the batch."""

    def norm(hidden, gain, bias, eps):
        variance, mean = torch.var_mean(hidden, dim=(0, -1), correction=0, keepdim=True)
        return gain * (hidden - mean) / torch.sqrt(variance + eps) + bias

    return _layer(*inputs, norm=norm)


def layer_with_one_map_for_queries_and_keys(hidden, norm_1, attention, *rest):
    return _layer(hidden, norm_1, (attention[0], attention[0], *attention[2:]), *rest)


def layer_with_a_leaky_network(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    """The negative half is not quite closed."""
    w_1, b_1, w_2, b_2 = feed_forward
    silent = (w_1, b_1, torch.zeros_like(w_2), torch.zeros_like(b_2))
    hidden = _layer(hidden, norm_1, attention, norm_2, silent, n_heads)
    inner = norm_by_var_mean(hidden, *norm_2, 1e-5) @ w_1.T + b_1
    return hidden + functional.leaky_relu(inner, 0.1) @ w_2.T + b_2


RIGHT = {
    "encoder.layer_norm": (
        norm_by_var_mean,
        norm_by_einops,
        norm_in_place_of_a_copy,
    ),
    "encoder.encoder_layer": (layer_by_torch, layer_head_by_head),
}
STRAY = {
    "encoder.layer_norm": (
        (norm_with_neighbours, "tokens_apart"),
        (norm_about_the_median, "mean_zero"),
        (norm_by_the_largest, "variance_one"),
        (norm_that_does_not_train_its_gain, "gradient"),
    ),
    "encoder.encoder_layer": (
        (layer_that_normalises_its_end, "identity_without_writing"),
        (layer_without_norms, "norms_come_first"),
        (layer_with_narrow_sight, "looks_both_ways"),
        (layer_with_batch_norm, "sequences_apart"),
        (layer_with_one_map_for_queries_and_keys, "maps_in_their_places"),
        (layer_with_a_leaky_network, "one_half_is_off"),
    ),
}
