"""Right answers as students write them, in many styles: an exercise and a file that answers it.

They were written without a look at the words that the grader knows. `ORDINARY` is what most hand in; `UNUSUAL` is right
in a way that nobody expects.
"""

from __future__ import annotations

ORDINARY = [
    (
        "recurrence.read_words",
        '''
import torch


def read_words(words, w_input, w_hidden, bias):
    """Run the recurrent network over every sentence of the batch."""
    B, T, _ = words.size()
    H = w_hidden.size(0)
    h = words.new_zeros(B, H)
    outputs = words.new_zeros(B, T, H)
    for t in range(T):
        x_t = words[:, t, :]
        h = torch.tanh(x_t.matmul(w_input) + h.matmul(w_hidden) + bias)
        outputs[:, t] = h
    assert outputs.shape == (B, T, H), f"expected {(B, T, H)}, got {tuple(outputs.shape)}"
    return outputs
''',
    ),
    (
        "recurrence.lstm_gates",
        """
import torch
from torch import Tensor
from typing import Tuple

def lstm_gates(affine: Tensor, memory_cell: Tensor) -> Tuple[Tensor, Tensor]:
    input_gate, forget_gate, candidate, output_gate = torch.chunk(affine, chunks=4, dim=1)
    input_gate = torch.sigmoid(input_gate)
    forget_gate = torch.sigmoid(forget_gate)
    output_gate = torch.sigmoid(output_gate)
    new_cell = forget_gate * memory_cell + input_gate * torch.tanh(candidate)
    new_hidden = output_gate * torch.tanh(new_cell)
    return new_hidden, new_cell
""",
    ),
    (
        "recurrence.forget_bias",
        """
import math
import torch

LN2 = math.log(2)

def forget_bias(half_life):
    # sigmoid(b) = 2 ** (-1/n)  =>  exp(-b) = 2 ** (1/n) - 1
    return -torch.log(torch.expm1(LN2 / half_life))
""",
    ),
    (
        "recurrence.look_back_weights",
        """
import torch
import torch.nn.functional as F

def look_back_weights(asked, offered, direction, is_real):
    summed = torch.tanh(asked.unsqueeze(2) + offered.unsqueeze(1))
    scores = torch.matmul(summed, direction)
    scores = scores.masked_fill(is_real.logical_not().unsqueeze(1), float("-inf"))
    return F.softmax(scores, dim=2)
""",
    ),
    (
        "recurrence.scan_rounds",
        """
import torch

def shift(tensor, by):
    empty = torch.zeros_like(tensor[:by])
    return torch.cat((empty, tensor[:-by]), 0)

def my_scan_rounds(factor, added):
    a, b = factor.clone(), added.clone()
    step = 1
    rounds = 0
    while step < a.shape[0]:
        b = a * shift(b, step) + b
        a = a * shift(a, step)
        step *= 2
        rounds += 1
    return b, rounds
""",
    ),
    (
        "attention.softmax",
        '''
import torch

def softmax(scores: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """Numerically stable softmax.

    Args:
        scores: any shape
        dim: the axis over which the weights sum to one

    >>> softmax(torch.zeros(2))
    tensor([0.5000, 0.5000])
    """
    maximum, _ = scores.max(dim=dim, keepdim=True)
    exponentials = torch.exp(scores - maximum)
    total = torch.sum(exponentials, dim=dim, keepdim=True)
    result = exponentials / total
    return result


if __name__ == "__main__":
    print(softmax(torch.randn(2, 3)))
''',
    ),
    (
        "attention.scaled_dot_product_attention",
        """
import math
import torch
import torch.nn.functional as F
from einops import einsum

def scaled_dot_product_attention(query, key, value, mask):
    d_k = query.shape[-1]
    scores = einsum(query, key, "b h q d, b h k d -> b h q k") / math.sqrt(d_k)
    nothing = ~mask.any(dim=-1, keepdim=True)
    # a row without any key would give nan: let it see everything, and zero it afterwards
    scores = torch.where(mask | nothing, scores, torch.full_like(scores, float("-inf")))
    attn = F.softmax(scores, dim=-1)
    attn = torch.where(nothing, torch.zeros_like(attn), attn)
    return einsum(attn, value, "b h q k, b h k d -> b h q d")
""",
    ),
    (
        "attention.causal_mask",
        """
import torch

def my_causal_mask(n_queries, n_keys):
    mask = torch.zeros(n_queries, n_keys, dtype=torch.bool)
    offset = n_keys - n_queries
    for i in range(n_queries):
        mask[i, : offset + i + 1] = True
    return mask
""",
    ),
    (
        "attention.padding_mask",
        """
import torch

def padding_mask(token_ids, pad_id):
    batch_size, seq_len = token_ids.shape
    mask = torch.ne(token_ids, pad_id)
    mask = mask.view(batch_size, 1, 1, seq_len)
    return mask
""",
    ),
    (
        "attention.causal_attention",
        """
import math
import torch

def causal_attention(query, key, value):
    n, m = query.shape[0], key.shape[0]
    scores = (query @ key.transpose(0, 1)) / math.sqrt(query.shape[1])
    future = torch.ones(n, m).triu(diagonal=m - n + 1).bool()
    scores[future] = float("-inf")
    weights = torch.softmax(scores, dim=1)
    return weights @ value
""",
    ),
    (
        "attention.query_jacobian",
        """
import torch

def query_jacobian(query, key, value):
    c = query.shape[0] ** -0.5
    A = torch.softmax(c * key @ query, dim=0)
    o = A @ value
    k_bar = A @ key
    result = torch.zeros(value.shape[1], query.shape[0], dtype=query.dtype)
    for A_j, v_j, k_j in zip(A, value, key):
        result += c * A_j * torch.outer(v_j - o, k_j - k_bar)
    return result
""",
    ),
    (
        "multihead.split_heads",
        """
def split_heads(vectors, n_heads):
    batch, tokens, d_model = vectors.shape
    assert d_model % n_heads == 0
    return vectors.reshape(batch, tokens, n_heads, d_model // n_heads).permute(0, 2, 1, 3)
""",
    ),
    (
        "multihead.head_contributions",
        """
import torch

def head_contributions(context, w_output):
    n_heads, d_head = context.size(1), context.size(3)
    parts = []
    for h in range(n_heads):
        columns = w_output[:, h * d_head : (h + 1) * d_head]
        parts.append(context[:, h] @ columns.t())
    return torch.stack(parts, dim=1)
""",
    ),
    (
        "multihead.grouped_attention",
        """
import torch
import math

def grouped_attention(query, key, value):
    n_rep = query.shape[1] // key.shape[1]
    key = key.repeat_interleave(n_rep, dim=1)
    value = value.repeat_interleave(n_rep, dim=1)
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) / math.sqrt(query.size(-1))
    probs = scores.softmax(-1)
    return torch.einsum("bhqk,bhkd->bhqd", probs, value)
""",
    ),
    (
        "multihead.multi_head_attention",
        """
import math
import torch
from torch import nn

class SelfAttention(nn.Module):
    def __init__(self, n_heads):
        super().__init__()
        self.n_heads = n_heads

    def split(self, x):
        b, t, d = x.shape
        return x.view(b, t, self.n_heads, d // self.n_heads).transpose(1, 2)

    def forward(self, x, wq, wk, wv, wo):
        b, t, d = x.shape
        q, k, v = [self.split(nn.functional.linear(x, w)) for w in (wq, wk, wv)]
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(d // self.n_heads)
        causal = torch.tril(torch.ones(t, t, dtype=torch.bool, device=x.device))
        scores = scores.masked_fill(causal == False, float("-inf"))
        out = torch.matmul(torch.softmax(scores, dim=-1), v)
        out = out.transpose(1, 2).contiguous().view(b, t, d)
        return nn.functional.linear(out, wo)

def multi_head_attention(hidden, w_query, w_key, w_value, w_output, n_heads):
    layer = SelfAttention(n_heads)
    return layer(hidden, w_query, w_key, w_value, w_output)
""",
    ),
    (
        "positions.sinusoidal_encoding",
        """
import numpy as np
import torch

def sinusoidal_encoding(max_len, d_model):
    pe = np.zeros((max_len, d_model))
    for pos in range(max_len):
        for i in range(d_model):
            angle = pos / np.power(10000, (2 * (i // 2)) / d_model)
            pe[pos, i] = np.sin(angle) if i % 2 == 0 else np.cos(angle)
    return torch.tensor(pe, dtype=torch.float32)
""",
    ),
    (
        "positions.rotary",
        """
import torch

def rotary(vectors, positions):
    d = vectors.shape[-1]
    theta = 1.0 / (10000 ** (torch.arange(0, d, 2).to(vectors.dtype) / d))
    angles = torch.outer(positions.to(vectors.dtype), theta)
    sin = angles.sin()
    cos = angles.cos()
    even = vectors[..., ::2]
    odd = vectors[..., 1::2]
    rotated = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)
    return rotated.flatten(-2)
""",
    ),
    (
        "positions.alibi_bias",
        """
import torch

def alibi_bias(n_heads, n_queries, n_keys):
    m = torch.tensor([2 ** (-8 * h / n_heads) for h in range(1, n_heads + 1)])
    q_pos = torch.arange(n_queries)[:, None] + (n_keys - n_queries)
    k_pos = torch.arange(n_keys)[None, :]
    dist = torch.abs(q_pos - k_pos)
    return -m[:, None, None] * dist[None]
""",
    ),
    (
        "positions.position_table",
        '''
import torch
import torch.nn as nn

class FixedPositions(nn.Module):
    """Adds a fixed position encoding."""

    def __init__(self, table):
        super(FixedPositions, self).__init__()
        self.register_buffer("pe", table.clone().detach())

    def forward(self, hidden):
        seq_len = hidden.size(1)
        return hidden + self.pe[:seq_len, :].unsqueeze(0)
''',
    ),
    (
        "encoder.layer_norm",
        """
import torch

def layer_norm(hidden, gain, bias, eps):
    mu = hidden.mean(-1, keepdim=True)
    sigma2 = ((hidden - mu) ** 2).mean(-1, keepdim=True)
    x_hat = (hidden - mu) * torch.rsqrt(sigma2 + eps)
    return x_hat * gain + bias
""",
    ),
    (
        "encoder.dropout",
        """
import torch
from torch import nn

class FeatureDropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p
        self.scale = 1.0 / (1.0 - p)

    def forward(self, features):
        if self.training:
            mask = (torch.rand(features.shape, device=features.device) > self.p).float()
            return features * mask * self.scale
        else:
            return features

    def extra_repr(self):
        return f"p={self.p}"
""",
    ),
    (
        "encoder.layer_stack",
        """
import torch.nn as nn

class LayerStack(nn.Module):
    def __init__(self, make_layer, n_layers):
        super().__init__()
        layers = []
        for i in range(n_layers):
            layers.append(make_layer())
        self.layers = nn.ModuleList(layers)
        self.n_layers = n_layers

    def forward(self, hidden):
        x = hidden
        for i, layer in enumerate(self.layers):
            x = layer(x)
        return x
""",
    ),
    (
        "decoder.greedy_decode",
        """
import torch

@torch.no_grad()
def greedy_decode(step, bos_id, eos_id, max_len):
    output = []
    cache = None
    current = torch.LongTensor([[bos_id]])
    for _ in range(max_len):
        logits, cache = step(current, cache)
        next_token = torch.argmax(logits[:, -1, :], dim=-1).item()
        if next_token == eos_id:
            break
        output.append(next_token)
        current = torch.LongTensor([[next_token]])
    return output
""",
    ),
    (
        "decoder.top_p",
        """
import torch

def top_p(logits, p, temperature):
    probs = (logits / temperature).softmax(dim=-1)
    sorted_probs, sorted_idx = torch.sort(probs, descending=True, dim=-1)
    cumulative = torch.cumsum(sorted_probs, dim=-1)
    remove = cumulative - sorted_probs >= p
    sorted_probs = sorted_probs.masked_fill(remove, 0.0)
    sorted_probs = sorted_probs / sorted_probs.sum(dim=-1, keepdim=True)
    out = torch.empty_like(probs)
    out.scatter_(-1, sorted_idx, sorted_probs)
    return out
""",
    ),
    (
        "decoder.decoder_pair",
        """
import torch

def decoder_pair(token_ids, bos_id, eos_id, pad_id):
    B, T = token_ids.shape
    inp = torch.full((B, T + 1), pad_id, dtype=token_ids.dtype)
    tgt = torch.full((B, T + 1), pad_id, dtype=token_ids.dtype)
    for b in range(B):
        n = int((token_ids[b] != pad_id).sum())
        inp[b, 0] = bos_id
        inp[b, 1 : n + 1] = token_ids[b, :n]
        tgt[b, :n] = token_ids[b, :n]
        tgt[b, n] = eos_id
    return inp, tgt
""",
    ),
    (
        "transformer.embedding_scale",
        """
import torch
import torch.nn.functional as F

def embed_tokens(token_ids, table):
    vectors = F.embedding(token_ids, table)
    d_model = table.size(1)
    return vectors * (d_model ** 0.5)
""",
    ),
    (
        "transformer.next_merge",
        """
from collections import defaultdict

def count(words, times):
    singles, pairs = defaultdict(int), defaultdict(int)
    for word, n in zip(words, times):
        for i, token in enumerate(word):
            singles[token] += n
            if i + 1 < len(word):
                pairs[(token, word[i + 1])] += n
    return singles, pairs

def next_merge(words, times, at_least):
    singles, pairs = count(words, times)
    best, best_score = None, -1.0
    for (a, b), n in pairs.items():
        if n < at_least:
            continue
        score = n / (singles[a] * singles[b])
        if score > best_score:
            best, best_score = (a, b), score
    return best
""",
    ),
    (
        "training.masked_loss",
        """
import torch
import torch.nn.functional as F

def masked_loss(logits, targets, pad_id):
    log_probs = F.log_softmax(logits, dim=-1)
    nll = -torch.gather(log_probs, dim=2, index=targets.unsqueeze(-1)).squeeze(-1)
    keep = targets.ne(pad_id)
    return torch.masked_select(nll, keep).mean()
""",
    ),
    (
        "training.warmup_rate",
        """
def warmup_rate(step, d_model, warmup, factor):
    if step == 0:
        step = 1
    if step < warmup:
        rate = step / warmup ** 1.5
    else:
        rate = 1 / step ** 0.5
    return factor * rate / d_model ** 0.5
""",
    ),
    (
        "training.training_step",
        """
import torch

def training_step(model, optimizer, loss, batch, max_norm):
    model.train()
    optimizer.zero_grad(set_to_none=True)
    out = loss(model, batch)
    out.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=max_norm)
    optimizer.step()
    return float(out.detach())
""",
    ),
    (
        "training.adam_steps",
        """
import torch

class AdamState:
    def __init__(self, like):
        self.m = torch.zeros_like(like)
        self.v = torch.zeros_like(like)
        self.t = 0

    def step(self, g, lr, b1, b2, eps):
        self.t += 1
        self.m = b1 * self.m + (1 - b1) * g
        self.v = b2 * self.v + (1 - b2) * g ** 2
        m_hat = self.m / (1 - b1 ** self.t)
        v_hat = self.v / (1 - b2 ** self.t)
        return -lr * m_hat / (torch.sqrt(v_hat) + eps)

def adam_steps(gradients, rate, beta1, beta2, eps):
    state = AdamState(gradients[0])
    return torch.stack([state.step(g, rate, beta1, beta2, eps) for g in gradients])
""",
    ),
    (
        "variants.expert_shares",
        """
import torch

def expert_shares(scores, n_chosen):
    values, indices = torch.topk(scores, k=n_chosen, dim=1)
    shares = torch.zeros_like(scores)
    shares.scatter_(1, indices, torch.softmax(values, dim=1))
    return shares
""",
    ),
    (
        "vit.patchify",
        """
import torch

def patchify(images, patch_size):
    B, C, H, W = images.shape
    patches = []
    for top in range(0, H, patch_size):
        for left in range(0, W, patch_size):
            patch = images[:, :, top : top + patch_size, left : left + patch_size]
            patches.append(patch.reshape(B, -1))
    return torch.stack(patches, dim=1)
""",
    ),
    (
        "efficient.merge_blocks",
        """
import torch

def merge_blocks(context_a, log_sum_a, context_b, log_sum_b):
    L = torch.logaddexp(log_sum_a, log_sum_b)
    w_a = torch.exp(log_sum_a - L)[:, None]
    w_b = torch.exp(log_sum_b - L)[:, None]
    return w_a * context_a + w_b * context_b, L
""",
    ),
    (
        "inside.lens_readings",
        """
import torch

def lens_readings(streams, gain, bias, unembedding):
    mean = streams.mean(dim=-1, keepdim=True)
    var = streams.var(dim=-1, keepdim=True, unbiased=False)
    normed = (streams - mean) / torch.sqrt(var + 1e-5) * gain + bias
    logits = torch.einsum("ltd,vd->ltv", normed, unembedding)
    return torch.softmax(logits, -1)
""",
    ),
]
UNUSUAL = [
    (
        "recurrence.read_words",
        """
import torch
from functools import reduce

def read_words(words, w_input, w_hidden, bias):
    step = lambda pages, word: [*pages, torch.tanh(word @ w_input + pages[-1] @ w_hidden + bias)]
    blank = torch.zeros(len(words), len(w_hidden)).to(words)
    return torch.stack(reduce(step, words.unbind(1), [blank])[1:], 1)
""",
    ),
    (
        "attention.softmax",
        """
import torch

def softmax(scores, dim=-1):
    # 1 / sum_j exp(s_j - s_i), by all differences of pairs
    rows = scores.movedim(dim, -1)
    differences = rows.unsqueeze(-2) - rows.unsqueeze(-1)
    return (1 / differences.exp().sum(-1)).movedim(-1, dim)
""",
    ),
    (
        "attention.causal_mask",
        """
import torch

def causal_mask(n_queries, n_keys):
    counts = torch.ones(n_queries, n_keys, dtype=torch.long)
    return counts.cumsum(1) - counts.cumsum(0) <= n_keys - n_queries
""",
    ),
    (
        "attention.padding_mask",
        """
import numpy as np
import torch

def padding_mask(token_ids, pad_id):
    array = np.asarray(token_ids)
    return torch.as_tensor(np.expand_dims(~np.isin(array, [pad_id]), axis=(1, 2)))
""",
    ),
    (
        "attention.causal_attention",
        """
import torch

def causal_attention(query, key, value):
    shift = len(key) - len(query)
    def attend(i):
        seen = slice(0, shift + i + 1)
        s = key[seen].mv(query[i]) * query.shape[1] ** -0.5
        e = (s - s.max()).exp()
        return (e / e.sum()).matmul(value[seen])
    return torch.stack(list(map(attend, range(len(query)))))
""",
    ),
    (
        "multihead.split_heads",
        """
import torch

def split_heads(vectors, n_heads):
    return torch.stack(torch.tensor_split(vectors, n_heads, dim=-1), dim=-3)
""",
    ),
    (
        "multihead.grouped_attention",
        """
import torch

def grouped_attention(query, key, value):
    group = query.shape[1] // key.shape[1]
    heads = []
    for h in range(query.shape[1]):
        k, v = key[:, h // group], value[:, h // group]
        s = torch.bmm(query[:, h], k.transpose(1, 2)).div(k.shape[-1] ** 0.5)
        heads += [torch.bmm(s.softmax(-1), v)]
    return torch.stack(heads, 1)
""",
    ),
    (
        "positions.sinusoidal_encoding",
        """
import torch

def sinusoidal_encoding(max_len, d_model):
    pairs = (d_model + 1) // 2
    turn = torch.polar(torch.ones(pairs).double(), 10000.0 ** (-2 * torch.arange(pairs).double() / d_model))
    hands = torch.stack([turn**p for p in range(max_len)])
    return torch.stack([hands.imag, hands.real], dim=-1).flatten(1)[:, :d_model].float()
""",
    ),
    (
        "positions.rotary",
        """
import torch

def rotary(vectors, positions):
    d = vectors.shape[-1]
    z = torch.view_as_complex(vectors.double().unflatten(-1, (-1, 2)).contiguous())
    angle = positions.double()[:, None] * 10000 ** (-torch.arange(0, d, 2).double() / d)
    return torch.view_as_real(z * torch.exp(1j * angle)).flatten(-2).to(vectors.dtype)
""",
    ),
    (
        "encoder.layer_norm",
        """
import torch

def layer_norm(hidden, gain, bias, eps):
    d = hidden.shape[-1]
    centring = torch.eye(d).to(hidden) - 1 / d
    x = (hidden - hidden[..., :1]) @ centring
    return torch.addcmul(bias, gain, x / (x.norm(dim=-1, keepdim=True) ** 2 / d + eps) ** 0.5)
""",
    ),
    (
        "encoder.layer_stack",
        """
import torch
from torch import nn

class LayerStack(nn.Module):
    def __init__(self, make_layer, n_layers):
        super().__init__()
        self.first = make_layer()
        self.rest = LayerStack(make_layer, n_layers - 1) if n_layers > 1 else nn.Identity()

    def forward(self, hidden):
        return self.rest(self.first(hidden))
""",
    ),
    (
        "decoder.top_p",
        """
import torch

def top_p(logits, p, temperature):
    probabilities = torch.softmax(logits / temperature, -1)
    larger = probabilities[..., None, :] > probabilities[..., :, None]
    before = (larger * probabilities[..., None, :]).sum(-1)
    kept = probabilities * (before < p)
    return kept / kept.sum(-1, keepdim=True)
""",
    ),
    (
        "training.label_smoothing",
        """
import torch

def label_smoothing(targets, vocab_size, pad_id, smoothing):
    def row(target):
        if target == pad_id:
            return [0.0] * vocab_size
        share = smoothing / (vocab_size - 2)
        return [0.0 if v == pad_id else 1 - smoothing if v == target else share for v in range(vocab_size)]
    return torch.tensor([row(t) for t in targets.tolist()], dtype=torch.float32)
""",
    ),
    (
        "vit.patchify",
        """
import torch

def patchify(images, patch_size):
    rows = torch.stack(images.split(patch_size, dim=2), dim=1)
    squares = torch.stack(rows.split(patch_size, dim=4), dim=2)
    return squares.flatten(start_dim=3).flatten(1, 2)
""",
    ),
    (
        "efficient.rolling_slots",
        """
import torch

def rolling_slots(n_seen, window):
    last = {p % window: p for p in range(n_seen)}
    return torch.tensor([last.get(slot, -1) for slot in range(window)])
""",
    ),
]
