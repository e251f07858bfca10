"""Answers to the exercises on encoder that stand in no list: right ones in other styles, and stray mistakes."""

import math

import torch
from torch import nn
from torch.nn import functional


class DropoutByBernoulli(nn.Module):
    """Draws what stays, and picks."""

    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, features):
        if self.training:
            stays = torch.bernoulli(torch.full_like(features, 1 - self.p))
            return torch.where(stays == 1, features / (1 - self.p), 0.0)
        return features


class DropoutByMaskedFill(nn.Module):
    """Scales first, and fills with zeros where a uniform number is small."""

    def __init__(self, p):
        super().__init__()
        self.p, self.scale = p, 1 / (1 - p)

    def forward(self, features):
        if not self.training:
            return features
        return (features * self.scale).masked_fill(torch.rand(features.shape) < self.p, 0)


class DropsHalf(DropoutByBernoulli):
    """Loses half of the features, whatever p is."""

    def __init__(self, p):
        super().__init__(0.5)


class DropsTheLastFeature(DropoutByBernoulli):
    """Loses the last feature in evaluation."""

    def forward(self, features):
        features = super().forward(features)
        return features if self.training else features * (torch.arange(features.shape[-1]) < features.shape[-1] - 1)


class ScaledByTwo(DropoutByBernoulli):
    """Scales by 2, as if p were a half."""

    def forward(self, features):
        features = super().forward(features)
        return features * (2 * (1 - self.p)) if self.training else features


class FlattensFeatures(DropoutByBernoulli):
    """Returns the features of a sentence in one line."""

    def forward(self, features):
        return super().forward(features).flatten(1)


class HalfTheGradient(DropoutByBernoulli):
    """Right values, half of the gradient."""

    def forward(self, features):
        features = super().forward(features)
        return features / 2 + features.detach() / 2


class StackWithModules(nn.Module):
    """Registers each module in a list that torch knows."""

    def __init__(self, make_layer, n_layers):
        super().__init__()
        self.blocks = nn.ModuleList()
        for _ in range(n_layers):
            self.blocks.append(make_layer())

    def forward(self, hidden):
        for block in self.blocks:
            hidden = block(hidden)
        return hidden


class StackInSequence(nn.Module):
    """The container of torch that runs its modules itself."""

    def __init__(self, make_layer, n_layers):
        super().__init__()
        self.blocks = nn.Sequential(*[make_layer() for _ in range(n_layers)])

    def forward(self, hidden):
        return self.blocks(hidden)


class StackWithALayerToSpare(StackWithModules):
    """Makes one layer more and never uses it."""

    def __init__(self, make_layer, n_layers):
        super().__init__(make_layer, n_layers)
        self.spare = make_layer()

    def forward(self, hidden):
        return super().forward(hidden) / 2


class StackThatRepeats(StackWithModules):
    """Only the first layer works, as often as there are layers."""

    def forward(self, hidden):
        for _ in self.blocks:
            hidden = self.blocks[0](hidden)
        return hidden


class StackOfItsOwn(nn.Module):
    """Makes layers without asking the function."""

    def __init__(self, make_layer, n_layers):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(n_layers))

    def forward(self, hidden):
        for block in self.blocks:
            hidden = block(hidden)
        return hidden


# The folded norm


def folded_by_a_diagonal(gain, bias, weight, constant):
    return weight @ torch.diag(gain), functional.linear(bias, weight, constant)


def folded_by_probing(gain, bias, weight, constant):
    """Sends zero and the unit vectors through norm's end and map."""

    def through(normed):
        return functional.linear(gain * normed + bias, weight, constant)

    nothing = through(torch.zeros_like(gain))
    return (through(torch.eye(len(gain), dtype=gain.dtype)) - nothing).T, nothing


def folded_and_halved(gain, bias, weight, constant):
    return 0.5 * weight * gain, constant + weight @ bias


# The lost stream


def stream_by_torch(hidden, sublayers):
    width = hidden.shape[-1:]
    for sublayer in sublayers:
        hidden = torch.add(hidden, sublayer(functional.layer_norm(hidden, width)))
    return functional.layer_norm(hidden, width)


def stream_by_recursion(hidden, sublayers):
    normed = functional.layer_norm(hidden, hidden.shape[-1:])
    return normed if not sublayers else stream_by_recursion(hidden + sublayers[0](normed), sublayers[1:])


def stream_that_reads_twice_as_loud(hidden, sublayers):
    width = hidden.shape[-1:]
    for sublayer in sublayers:
        hidden = hidden + sublayer(2 * functional.layer_norm(hidden, width))
    return functional.layer_norm(hidden, width)


def stream_that_fades(hidden, sublayers):
    width = hidden.shape[-1:]
    for sublayer in sublayers:
        hidden = 0.9 * hidden + sublayer(functional.layer_norm(hidden, width))
    return functional.layer_norm(hidden, width)


# LayerNorm


def norm_by_var_mean(hidden, gain, bias, eps):
    """Both statistics in one call, and a power instead of a root."""
    variance, mean = torch.var_mean(hidden, dim=-1, correction=0, keepdim=True)
    return torch.addcmul(bias, gain, (hidden - mean) * (variance + eps) ** -0.5)


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
    "encoder.dropout": (DropoutByBernoulli, DropoutByMaskedFill),
    "encoder.layer_stack": (StackWithModules, StackInSequence),
    "encoder.folded_norm": (folded_by_a_diagonal, folded_by_probing),
    "encoder.lost_stream": (stream_by_torch, stream_by_recursion),
    "encoder.layer_norm": (
        norm_by_var_mean,
        norm_in_place_of_a_copy,
    ),
    "encoder.encoder_layer": (layer_by_torch, layer_head_by_head),
}
STRAY = {
    "encoder.dropout": (
        (DropsHalf, "share_is_p"),
        (DropsTheLastFeature, "idle_in_evaluation"),
        (ScaledByTwo, "keeps_the_mean"),
        (FlattensFeatures, "keeps_the_shape"),
        (HalfTheGradient, "gradient_follows"),
    ),
    "encoder.layer_stack": (
        (StackWithALayerToSpare, "optimiser_sees_all"),
        (StackThatRepeats, "gradient_reaches_all"),
        (StackOfItsOwn, "makes_each"),
    ),
    "encoder.folded_norm": ((folded_and_halved, "both_ways_agree"),),
    "encoder.lost_stream": (
        (stream_that_reads_twice_as_loud, "reads_are_normalised"),
        (stream_that_fades, "writes_add_up"),
    ),
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
