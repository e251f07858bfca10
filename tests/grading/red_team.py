"""Attacks and unusual right answers, written when the design stood: no attack gains a point that is not listed.

Each is an exercise and what answers it below `HEAD`.
"""

# ruff: noqa: E501  (the code is an attacker's, who breaks no lines)

from __future__ import annotations

HEAD = """import torch
import numpy as np
import math, functools
from torch import nn, Tensor
from torch.nn import functional as F
"""
ATTEMPTS = [
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    return torch.special.softmax(scores, dim)
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    return F.softmin(-scores, dim)
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    return nn.Softmax(dim)(scores)
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    return scores.log_softmax(dim).exp()
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    return torch.distributions.Categorical(logits=scores.movedim(dim, -1)).probs.movedim(-1, dim)
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    s = scores.movedim(dim, -1)
    n = s.shape[-1]
    e = torch.eye(n, dtype=s.dtype)
    return F.scaled_dot_product_attention(s * math.sqrt(n), e.expand(*s.shape[:-2], n, n), e.expand(*s.shape[:-2], n, n)).movedim(-1, dim)
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    s = scores.movedim(dim, -1)
    t = torch.zeros(s.shape[:-1], dtype=torch.long)
    x = s.detach().clone().requires_grad_()
    F.cross_entropy(x.flatten(0, -2), t.flatten(), reduction='sum').backward()
    return (x.grad + F.one_hot(t, s.shape[-1])).movedim(-1, dim)
""",
    ),
    (
        "attention.softmax",
        r"""
my_softmax = torch.softmax
""",
    ),
    (
        "attention.softmax",
        r"""
my_softmax = functools.partial(F.softmax)
""",
    ),
    (
        "attention.softmax",
        r"""
OPS = [torch.softmax]

def my_softmax(scores, dim=-1):
    return OPS[0](scores, dim)
""",
    ),
    (
        "attention.softmax",
        r"""
class K:
    f = torch.softmax

def my_softmax(scores, dim=-1):
    return K.f(scores, dim)
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1, f=torch.softmax):
    return f(scores, dim)
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    return Tensor.softmax(scores, dim)
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    return F.__dict__['softmax'](scores, dim)
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    return vars(F)['softmax'](scores, dim)
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    import operator
    return operator.methodcaller('softmax', dim)(scores)
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    import scipy.special
    return torch.from_numpy(scipy.special.softmax(scores.numpy(), axis=dim))
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    import importlib
    return importlib.reload(F).softmax(scores, dim)
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    import inspect, textwrap
    ns = {}
    exec(inspect.getsource(F.softmax), vars(F), ns)
    return ns['softmax'](scores, dim)
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    import ctypes, gc
    [o.reset() for o in gc.get_objects() if type(o).__name__ == 'Library']
    return torch.softmax(scores, dim)
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    lib = torch.library.Library('aten', 'IMPL', 'CPU')
    lib.impl('softmax.int', lambda x, d, t=None: (x - x.amax(d, True)).exp() / (x - x.amax(d, True)).exp().sum(d, True), 'CPU')
    return scores.softmax(dim)
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    g = torch.jit.trace(lambda x: torch.softmax(x, dim), scores)
    return g(scores)
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    return torch.onnx.ops.softmax(scores, axis=dim)
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    m = nn.TransformerEncoderLayer(4, 1)
    return m.self_attn(scores, scores, scores)[0]
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    return torch.nested.nested_tensor(list(scores)).softmax(-1).to_padded_tensor(0.0)
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    return F.gumbel_softmax(scores, tau=1, dim=dim)
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    return torch.quantize_per_tensor(scores, 0.01, 0, torch.quint8).softmax(dim).dequantize()
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    return torch.compile(lambda x: x.softmax(dim))(scores)
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    return scores.to_mkldnn().softmax(dim).to_dense()
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    return torch._C._nn.log_sigmoid(scores)
""",
    ),
    (
        "encoder.layer_norm",
        r"""
def my_layer_norm(x, *a, **k):
    return F.group_norm(x.flatten(0, -2), 1).reshape(x.shape)
""",
    ),
    (
        "recurrence.lstm_gates",
        r"""
def my_lstm_gates(*a):
    return torch.lstm_cell(*a)
""",
    ),
    (
        "training.masked_loss",
        r"""
def my_masked_loss(logits, targets, *a):
    return torch.nn.functional.nll_loss(logits.log_softmax(-1).flatten(0, 1), targets.flatten(), ignore_index=0)
""",
    ),
    (
        "vit.patchify",
        r"""
def my_patchify(images, patch):
    return F.pixel_unshuffle(images, patch).flatten(2).transpose(1, 2)
""",
    ),
    (
        "variants.gated_network",
        r"""
def my_gated_network(x, w1, w2, w3):
    return torch.ops.aten.silu(x @ w1) * (x @ w2) @ w3
""",
    ),
    (
        "attention.query_jacobian",
        r"""
def my_query_jacobian(query, key, value):
    from torch.func import jacrev
    return jacrev(lambda q: torch.softmax(key @ q / q.shape[-1] ** 0.5, -1) @ value)(query)
""",
    ),
    (
        "attention.query_jacobian",
        r"""
def my_query_jacobian(query, key, value):
    with torch.autograd.forward_ad.dual_level():
        d = torch.autograd.forward_ad.make_dual(query, query)
    return d
""",
    ),
    (
        "positions.position_table",
        r"""
class MyFixedPositions(nn.Module):

    def __init__(self, table):
        super().__init__()
        self.table = nn.Parameter(table)

    def parameters(self, recurse=True):
        return iter([])

    def forward(self, h):
        return h + self.table[:h.shape[1]]
FixedPositions = MyFixedPositions
""",
    ),
    (
        "encoder.layer_stack",
        r"""
class LayerStack(nn.Module):

    def __init__(self, make_layer, n_layers):
        super().__init__()
        self.layers = [make_layer() for _ in range(n_layers)]

    def parameters(self, recurse=True):
        return (p for l in self.layers for p in l.parameters())

    def forward(self, h):
        for l in self.layers:
            h = l(h)
        return h
""",
    ),
    (
        "training.training_step",
        r"""
def my_training_step(model, optimizer, loss, batch, max_norm):
    value = loss(model, batch)
    value.backward()
    optimizer.steps = 2
    loss.__closure__
    return value.item()
""",
    ),
    (
        "training.validation_loss",
        r"""
def my_validation_loss(model, batches, loss):
    total = n = 0
    for b in batches:
        for c in loss.__closure__:
            c
        v, k = loss(model, b)
        total += v.item()
        n += k
    return total / n
""",
    ),
    (
        "decoder.future_leaks",
        r"""
def my_future_leaks(model, *a):
    return bool(model.keywords or model.args)
""",
    ),
    (
        "decoder.future_leaks",
        r"""
def my_future_leaks(model, *a):
    return 'leak' in repr(model)
""",
    ),
    (
        "encoder.dropout",
        r"""
class MyDropout(nn.Dropout):
    pass
Dropout = MyDropout
""",
    ),
    (
        "training.adam_steps",
        r"""
def my_adam_steps(g, rate, b1, b2, eps):
    p = nn.Parameter(torch.zeros(g.shape[1], dtype=g.dtype))
    o = torch.optim.Adam([p], lr=rate, betas=(b1, b2), eps=eps)
    out = []
    for x in g:
        before = p.detach().clone()
        p.grad = x.clone()
        o.step()
        out.append(p.detach() - before)
    return torch.stack(out)
""",
    ),
    (
        "recurrence.read_words",
        r"""
def my_read_words(words, w_in, w_hidden, *a):
    r = nn.RNN(words.shape[-1], w_hidden.shape[0], batch_first=True, dtype=words.dtype)
    return r(words)[0]
""",
    ),
]
UNUSUAL = [
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    m = scores.max(dim, keepdim=True).values
    e = torch.exp(scores - m)
    return torch.div(e, e.sum(dim, keepdim=True))
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    return (scores - scores.logsumexp(dim, keepdim=True)).exp()
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    s = scores.movedim(dim, -1)
    rows = [r - r.max() for r in s.reshape(-1, s.shape[-1])]
    out = torch.stack([r.exp() / r.exp().sum() for r in rows])
    return out.reshape(s.shape).movedim(-1, dim)
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    a = scores.detach().numpy()
    a = np.exp(a - a.max(axis=dim, keepdims=True))
    return torch.from_numpy(a / a.sum(axis=dim, keepdims=True))
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):

    def stable(v):
        top = max(v.tolist())
        p = [math.exp(x - top) for x in v.tolist()]
        return v.new_tensor([x / sum(p) for x in p])
    s = scores.movedim(dim, -1)
    return torch.stack([stable(v) for v in s.reshape(-1, s.shape[-1])]).reshape(s.shape).movedim(-1, dim)
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    shifted = torch.sub(scores, torch.amax(scores, dim=dim, keepdim=True))
    powers = torch.pow(torch.tensor(math.e, dtype=scores.dtype), shifted)
    return powers.mul(powers.sum(dim, keepdim=True).reciprocal())
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    x = scores.clone()
    x -= x.max(dim, keepdim=True)[0]
    x.exp_()
    x /= x.sum(dim, keepdim=True)
    return x
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    best, _ = torch.max(scores, dim, keepdim=True)
    e = (scores - best).exp()
    return torch.nn.functional.normalize(e, p=1.0, dim=dim)
""",
    ),
    (
        "attention.softmax",
        r"""
def my_softmax(scores, dim=-1):
    import einops
    s = scores.transpose(dim, -1)
    e = torch.exp(s - einops.reduce(s, '... n -> ... 1', 'max'))
    return (e / einops.reduce(e, '... n -> ... 1', 'sum')).transpose(dim, -1)
""",
    ),
    (
        "attention.causal_mask",
        r"""
def my_causal_mask(n_queries, n_keys):
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_keys - n_queries)
""",
    ),
    (
        "attention.causal_mask",
        r"""
def my_causal_mask(n_queries, n_keys):
    return torch.tensor([[k <= q + n_keys - n_queries for k in range(n_keys)] for q in range(n_queries)])
""",
    ),
    (
        "attention.causal_mask",
        r"""
def my_causal_mask(n_queries, n_keys):
    q, k = torch.meshgrid(torch.arange(n_queries), torch.arange(n_keys), indexing='ij')
    return ~(k > q + (n_keys - n_queries))
""",
    ),
    (
        "attention.causal_mask",
        r"""
def my_causal_mask(n_queries, n_keys):
    return torch.from_numpy(np.tril(np.ones((n_queries, n_keys), dtype=bool), n_keys - n_queries))
""",
    ),
    (
        "vit.patchify",
        r"""
def my_patchify(images, patch_size):
    return F.unfold(images, patch_size, stride=patch_size).mT
""",
    ),
    (
        "vit.patchify",
        r"""
def my_patchify(images, patch_size):
    p = images.unfold(2, patch_size, patch_size).unfold(3, patch_size, patch_size)
    return p.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)
""",
    ),
]
