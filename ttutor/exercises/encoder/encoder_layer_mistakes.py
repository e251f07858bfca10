"""Wrong answers to the exercise on the encoder layer, as students write them."""

import math

import torch
from einops import rearrange
from torch.nn import functional

from ttutor.attention import scaled_dot_product_attention
from ttutor.layers import layer_norm

SPLIT = "batch tokens (heads d_head) -> batch heads tokens d_head"


def _norm(hidden, norm, eps=1e-5):
    return layer_norm(hidden, *norm, eps)


def _attend(hidden, attention, n_heads, **options):
    """Multi-head self-attention; the options go to the attention function."""
    w_query, w_key, w_value, w_output = attention
    q, k, v = (rearrange(hidden @ weight.T, SPLIT, heads=n_heads) for weight in (w_query, w_key, w_value))
    context = scaled_dot_product_attention(q, k, v, **options)
    return rearrange(context, "batch heads tokens d_head -> batch tokens (heads d_head)") @ w_output.T


def _transform(hidden, feed_forward, activation=torch.relu):
    w_1, b_1, w_2, b_2 = feed_forward
    return activation(hidden @ w_1.T + b_1) @ w_2.T + b_2


def _layer(hidden, norm_1, attention, norm_2, feed_forward, n_heads, norm=_norm, attend=_attend, transform=_transform):
    """The right layer, of which one part may be another."""
    hidden = hidden + attend(norm(hidden, norm_1), attention, n_heads)
    return hidden + transform(norm(hidden, norm_2), feed_forward)


def post_norm(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    hidden = _norm(hidden + _attend(hidden, attention, n_heads), norm_1)
    return _norm(hidden + _transform(hidden, feed_forward), norm_2)


def norm_after_sublayer(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    hidden = hidden + _norm(_attend(hidden, attention, n_heads), norm_1)
    return hidden + _norm(_transform(hidden, feed_forward), norm_2)


def no_residual_attn(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    hidden = _attend(_norm(hidden, norm_1), attention, n_heads)
    return hidden + _transform(_norm(hidden, norm_2), feed_forward)


def no_residual_ff(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    hidden = hidden + _attend(_norm(hidden, norm_1), attention, n_heads)
    return _transform(_norm(hidden, norm_2), feed_forward)


def no_residuals(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    return _transform(_norm(_attend(_norm(hidden, norm_1), attention, n_heads), norm_2), feed_forward)


def residual_from_normed(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    hidden = _norm(hidden, norm_1)
    hidden = hidden + _attend(hidden, attention, n_heads)
    hidden = _norm(hidden, norm_2)
    return hidden + _transform(hidden, feed_forward)


def first_residual_from_normed(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    hidden = _norm(hidden, norm_1)
    hidden = hidden + _attend(hidden, attention, n_heads)
    return hidden + _transform(_norm(hidden, norm_2), feed_forward)


def second_residual_from_normed(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    hidden = hidden + _attend(_norm(hidden, norm_1), attention, n_heads)
    hidden = _norm(hidden, norm_2)
    return hidden + _transform(hidden, feed_forward)


def residual_from_input(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    middle = hidden + _attend(_norm(hidden, norm_1), attention, n_heads)
    return hidden + _transform(_norm(middle, norm_2), feed_forward)


def residual_twice(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    return hidden + _layer(hidden, norm_1, attention, norm_2, feed_forward, n_heads)


def no_first_norm(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    hidden = hidden + _attend(hidden, attention, n_heads)
    return hidden + _transform(_norm(hidden, norm_2), feed_forward)


def no_second_norm(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    hidden = hidden + _attend(_norm(hidden, norm_1), attention, n_heads)
    return hidden + _transform(hidden, feed_forward)


def norms_exchanged(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    return _layer(hidden, norm_2, attention, norm_1, feed_forward, n_heads)


def first_norm_twice(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    return _layer(hidden, norm_1, attention, norm_1, feed_forward, n_heads)


def norm_for_queries_only(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    w_query, w_key, w_value, w_output = attention
    q = rearrange(_norm(hidden, norm_1) @ w_query.T, SPLIT, heads=n_heads)
    k, v = (rearrange(hidden @ weight.T, SPLIT, heads=n_heads) for weight in (w_key, w_value))
    context = scaled_dot_product_attention(q, k, v)
    hidden = hidden + rearrange(context, "batch heads tokens d_head -> batch tokens (heads d_head)") @ w_output.T
    return hidden + _transform(_norm(hidden, norm_2), feed_forward)


def no_affine(*inputs):
    def norm(hidden, norm):
        return functional.layer_norm(hidden, hidden.shape[-1:])

    return _layer(*inputs, norm=norm)


def no_eps(*inputs):
    def norm(hidden, norm):
        return _norm(hidden, norm, eps=0.0)

    return _layer(*inputs, norm=norm)


def ff_no_activation(*inputs):
    def transform(hidden, feed_forward):
        return _transform(hidden, feed_forward, activation=lambda inner: inner)

    return _layer(*inputs, transform=transform)


def gelu_not_relu(*inputs):
    def transform(hidden, feed_forward):
        return _transform(hidden, feed_forward, activation=functional.gelu)

    return _layer(*inputs, transform=transform)


def relu_at_the_end(*inputs):
    def transform(hidden, feed_forward):
        return torch.relu(_transform(hidden, feed_forward))

    return _layer(*inputs, transform=transform)


def no_ff_bias(*inputs):
    def transform(hidden, feed_forward):
        w_1, _, w_2, _ = feed_forward
        return torch.relu(hidden @ w_1.T) @ w_2.T

    return _layer(*inputs, transform=transform)


def extra_final_norm(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    return _norm(_layer(hidden, norm_1, attention, norm_2, feed_forward, n_heads), norm_2)


def plain_final_norm(*inputs):
    return functional.layer_norm(_layer(*inputs), inputs[0].shape[-1:])


def ff_before_attn(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    hidden = hidden + _transform(_norm(hidden, norm_2), feed_forward)
    return hidden + _attend(_norm(hidden, norm_1), attention, n_heads)


def ff_before_attn_in_order_of_norms(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    hidden = hidden + _transform(_norm(hidden, norm_1), feed_forward)
    return hidden + _attend(_norm(hidden, norm_2), attention, n_heads)


def parallel(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    attended = _attend(_norm(hidden, norm_1), attention, n_heads)
    return hidden + attended + _transform(_norm(hidden, norm_2), feed_forward)


def causal_encoder(*inputs):
    def attend(hidden, attention, n_heads):
        return _attend(hidden, attention, n_heads, causal=True)

    return _layer(*inputs, attend=attend)


def no_scale(*inputs):
    def attend(hidden, attention, n_heads):
        return _attend(hidden, attention, n_heads, scale=1.0)

    return _layer(*inputs, attend=attend)


def scale_d_model(*inputs):
    def attend(hidden, attention, n_heads):
        return _attend(hidden, attention, n_heads, scale=1 / math.sqrt(hidden.shape[-1]))

    return _layer(*inputs, attend=attend)


def one_head(*inputs):
    def attend(hidden, attention, n_heads):
        return _attend(hidden, attention, 1)

    return _layer(*inputs, attend=attend)


def no_output_map(*inputs):
    def attend(hidden, attention, n_heads):
        return _attend(hidden, (*attention[:3], torch.eye(hidden.shape[-1], dtype=hidden.dtype)), n_heads)

    return _layer(*inputs, attend=attend)


def weights_transposed(*inputs):
    def attend(hidden, attention, n_heads):
        return _attend(hidden, tuple(weight.T for weight in attention), n_heads)

    return _layer(*inputs, attend=attend)


def inplace(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    hidden += _attend(_norm(hidden, norm_1), attention, n_heads)
    hidden += _transform(_norm(hidden, norm_2), feed_forward)
    return hidden
