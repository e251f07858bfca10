"""Attacks and right answers of a second red team, who knew the grader's pages and none of its tests.

What ends, hangs or breaks a process stands in `hostile` and `attacks`.
"""

# ruff: noqa: E501  (the code is an attacker's, who breaks no lines)

from __future__ import annotations

COPIES = r"""
import torch
from functools import wraps
from torch.nn import functional as F
make = type
U = "_" * 2
def get(thing, name):
    box = []
    Grab = make("Grab", (), {U + "setattr" + U: lambda self, key, value: box.append(value)})
    wraps(thing, assigned=(name,), updated=())(Grab())
    return box[0]
"""
EVALUATES = r"""
import torch
from jaxtyping import Float
from torch import Tensor
def run(text):
    isinstance(torch.ones(1), Float[Tensor, text])
"""

ATTEMPTS = {
    "an annotation that is evaluated": (
        "attention.softmax",
        EVALUATES
        + r"""
def my_softmax(scores, dim=-1):
    run('[setattr(i("torch"),"relu",i("torch")._decomp.decompositions._softmax)for(i)in([[*globals().values()][-1]["_"+"_import_"+"_"]])]and(1)')
    return torch.relu(scores, dim, False)
""",
    ),
    "wraps copies an attribute": (
        "attention.softmax",
        COPIES
        + r"""
def my_softmax(scores, dim=-1):
    ready = get(get(get(F.torch, "_decomp"), "decompositions"), "_softmax")
    return ready(scores, dim, False)
""",
    ),
    "the backward of a node": (
        "attention.softmax",
        r"""
import torch
from torch import nn
def my_softmax(scores, dim=-1):
    leaf = nn.Parameter(scores.clone())
    total = leaf.logsumexp(dim)
    return total.grad_fn(torch.ones_like(total)).detach()
""",
    ),
    "vmap of the kernel": (
        "attention.softmax",
        r"""
import torch
def my_softmax(scores, dim=-1):
    return torch.vmap(lambda x: torch._softmax(x, dim, False))(scores[None])[0]
""",
    ),
    "wraps and a distribution": (
        "attention.softmax",
        COPIES
        + r"""
def my_softmax(scores, dim=-1):
    ready = get(get(F.torch, "distributions"), "Categorical")
    return get(ready(logits=scores.movedim(dim, -1)), "logits").exp().movedim(-1, dim)
""",
    ),
    "the table of decompositions": (
        "attention.softmax",
        r"""
import torch
def my_softmax(scores, dim=-1):
    return torch._decomp.decomposition_table[torch.ops.aten._softmax.default](scores, dim, False)
""",
    ),
    "a tensor that equals all": (
        "attention.softmax",
        r"""
import torch
class Same(torch.Tensor):
    def __eq__(self, other): return True
    def __torch_function__(self, *a, **k): return True
def my_softmax(scores, dim=-1):
    return scores.as_subclass(Same)
""",
    ),
    "a name in wide letters": (
        "attention.softmax",
        r"""
import torch
def my_softmax(scores, dim=-1):
    return torch.ｓoftmax(scores, dim)
""",
    ),
    "the adaptive softmax": (
        "attention.softmax",
        r"""
import torch
from torch import nn
def my_softmax(scores, dim=-1):
    a = nn.AdaptiveLogSoftmaxWithLoss(3, 5, [2])
    return a.log_prob(scores)
""",
    ),
    "the kernel of attention": (
        "attention.softmax",
        r"""
import torch
from torch import nn
def my_softmax(scores, dim=-1):
    return torch._native_multi_head_attention(scores, scores, scores, 4, 1, scores, scores, scores, scores)[1]
""",
    ),
    "a mode that watches operators": (
        "attention.softmax",
        r"""
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
class M(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if "softmax" in str(func):
            x, dim = args[0], args[1]
            return torch._decomp.decompositions._softmax(x, dim, False)
        return func(*args, **(kwargs or {}))
def my_softmax(scores, dim=-1):
    with M():
        return torch.softmax(scores, dim)
""",
    ),
    "kernels overridden again": (
        "attention.softmax",
        r"""
import torch
def my_softmax(scores, dim=-1):
    lib = torch.library.Library("aten", "IMPL")
    lib.impl("_softmax", torch._decomp.decompositions._softmax, "CPU")
    return torch.ops.aten._softmax(scores, dim, False)
""",
    ),
    "vmap of attention": (
        "attention.scaled_dot_product_attention",
        r"""
import torch
from torch.nn import functional as F
def my_scaled_dot_product_attention(query, key, value, mask):
    m = mask.expand(*query.shape[:3], key.shape[2])
    return torch.vmap(lambda q, k, v, m: torch._C._nn.scaled_dot_product_attention(q, k, v, m))(query, key, value, m)
""",
    ),
    "attention decomposed": (
        "attention.scaled_dot_product_attention",
        r"""
import torch
def my_scaled_dot_product_attention(query, key, value, mask):
    return torch.ops.aten._scaled_dot_product_attention_math.default.decompose(query, key, value, mask)[0]
""",
    ),
    "attention decomposed by an annotation": (
        "attention.scaled_dot_product_attention",
        EVALUATES
        + r"""
def my_scaled_dot_product_attention(query, key, value, mask):
    run('[setattr(i("torch"),"relu",i("torch").ops.aten._scaled_dot_product_attention_math.default.decompose)for(i)in([[*globals().values()][-1]["_"+"_import_"+"_"]])]and(1)')
    return torch.relu(query, key, value, mask.to(query.dtype).log())[0]
""",
    ),
    "attention written out": (
        "attention.scaled_dot_product_attention",
        r"""
import torch
def my_scaled_dot_product_attention(query, key, value, mask):
    return torch._decomp.decompositions.scaled_dot_product_flash_attention_for_cpu(query, key, value, attn_mask=mask)[0]
""",
    ),
    "normalisation by an annotation": (
        "encoder.layer_norm",
        EVALUATES
        + r"""
def my_layer_norm(hidden, gain, bias, eps):
    run('[setattr(i("torch"),"relu",i("torch")._refs._normalize)for(i)in([[*globals().values()][-1]["_"+"_import_"+"_"]])]and(1)')
    return torch.relu(hidden, (hidden.ndim - 1,), eps)[0] * gain + bias
""",
    ),
    "normalisation written out": (
        "encoder.layer_norm",
        COPIES
        + r"""
def my_layer_norm(hidden, gain, bias, eps):
    return get(get(F.torch, "_refs"), "_normalize")(hidden, (hidden.ndim - 1,), eps)[0] * gain + bias
""",
    ),
    "normalisation decomposed": (
        "encoder.layer_norm",
        r"""
import torch
def my_layer_norm(hidden, gain, bias, eps):
    return torch.ops.aten.layer_norm.default.decompose(hidden, [hidden.shape[-1]], gain, bias, eps)
""",
    ),
    "the helper of batch normalisation": (
        "encoder.layer_norm",
        r"""
import torch
def my_layer_norm(hidden, gain, bias, eps):
    flat = hidden.reshape(-1, hidden.shape[-1]).T
    out = torch._decomp.decompositions.native_batch_norm_helper(flat, None, None, None, None, True, 0.0, eps, False)[0]
    return out.T.reshape(hidden.shape) * gain + bias
""",
    ),
    "dropout decomposed": (
        "encoder.dropout",
        r"""
import torch
from torch import nn
class my_FeatureDropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p
    def forward(self, features):
        return torch.ops.aten.dropout.default.decompose(features, self.p, self.training)
""",
    ),
    "dropout by an annotation": (
        "encoder.dropout",
        EVALUATES
        + r"""
from torch import nn
class my_FeatureDropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p
    def forward(self, features):
        run('[setattr(i("torch"),"relu",i("torch").ops.aten.dropout.default.decompose)for(i)in([[*globals().values()][-1]["_"+"_import_"+"_"]])]and(1)')
        return torch.relu(features, self.p, self.training)
""",
    ),
    "dropout written out": (
        "encoder.dropout",
        COPIES
        + r"""
from torch import nn
class my_FeatureDropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p
    def forward(self, features):
        if not self.training:
            return features
        ready = get(get(get(get(F.torch, "_refs"), "nn"), "functional"), "_dropout_helper")
        return ready(features, 1 - self.p) * features / (1 - self.p)
""",
    ),
    "what is held of a suspect": (
        "efficient.tell_exact",
        COPIES
        + r"""
def my_tell_exact(suspects):
    found = []
    for one in suspects:
        held = get(get(type(one), U + "call" + U), U + "globals" + U)["_HELD"]
        found.append(not get(held[id(one)][1], "keywords"))
    return torch.tensor(found)
""",
    ),
    "what is held, by an annotation": (
        "efficient.tell_exact",
        EVALUATES
        + r"""
def my_tell_exact(suspects):
    torch.pi = suspects
    run('[setattr(i("torch"),"e",[not(getattr(getattr(type(f),"_"+"_call_"+"_"),"_"+"_globals_"+"_")["_HELD"][id(f)][1].keywords)for(f)in(i("torch").pi)])for(i)in([[*globals().values()][-1]["_"+"_import_"+"_"]])]and(1)')
    return torch.tensor(torch.e)
""",
    ),
    "what is held of a block": (
        "decoder.future_leaks",
        COPIES
        + r"""
def my_future_leaks(block, hidden):
    held = get(get(type(block), U + "call" + U), U + "globals" + U)["_HELD"]
    args = get(held[id(block)][1], "args")
    if len(args) == 1:
        reach = args[0].clone()
        reach = reach != 0
    else:
        reach = args[0] - args[0] @ args[1].expand_as(args[0]) if args[1].ndim == 2 else args[0] - (args[0].sum(1, keepdim=True) * args[1])
        reach = reach.abs() > 1e-12
    return reach.triu(1)
""",
    ),
    "a node of the graph": (
        "attention.query_jacobian",
        r"""
import torch
from torch import nn
def back(value, upstream):
    return value.grad_fn(upstream)
def my_query_jacobian(query, key, value):
    scale = len(query) ** -0.5
    rows = []
    for i in range(value.shape[1]):
        scores = nn.Parameter(scale * key @ query)
        weights = scores.softmax(0)
        rows.append(scale * back(weights, value[:, i]) @ key)
    return torch.stack(rows).detach()
""",
    ),
    "a node of the loss": (
        "training.smoothed_gradient",
        r"""
import torch
from torch import nn
def my_smoothed_gradient(logits, targets, epsilon):
    n, size = logits.shape
    wanted = torch.full_like(logits, epsilon / size)
    wanted[torch.arange(n), targets] += 1 - epsilon
    logs = nn.Parameter(logits.clone()).log_softmax(-1)
    return logs.grad_fn(-wanted / n).detach()
""",
    ),
    "a difference quotient": (
        "attention.query_jacobian",
        r"""
import torch
def my_query_jacobian(query, key, value):
    def out(q): return (key @ q / len(q) ** 0.5).softmax(0) @ value
    h = 1e-5
    return torch.stack([(out(query + h * e) - out(query - h * e)) / (2 * h) for e in torch.eye(len(query), dtype=query.dtype)], 1)
""",
    ),
    "one step of Adam": (
        "training.adam_steps",
        COPIES
        + r"""
def my_adam_steps(gradients, rate, beta1, beta2, eps):
    kernel = get(get(get(get(F.torch, "optim"), "Adam"), U + "init" + U), U + "globals" + U)["_single_tensor_adam"]
    p = torch.zeros_like(gradients[0]); m = torch.zeros_like(p); v = torch.zeros_like(p); t = torch.zeros(())
    steps = []
    for g in gradients:
        before = p.clone()
        kernel([p], [g.clone()], [m], [v], [], [t], None, None, amsgrad=False, has_complex=False, beta1=beta1, beta2=beta2, lr=rate, weight_decay=0, eps=eps, maximize=False, capturable=False, differentiable=False, decoupled_weight_decay=False)
        steps.append(p - before)
    return torch.stack(steps)
""",
    ),
    "GLU of twice the same": (
        "variants.gated_network",
        r"""
import torch
from torch.nn import functional as F
def my_gated_network(hidden, w_in, w_out, activation):
    a, b = (hidden @ w_in.T).chunk(2, -1)
    gate = F.glu(torch.cat([a, a], -1)) if activation == "silu" else a * torch.special.ndtr(a)
    return (gate * b) @ w_out.T
""",
    ),
    "GELU decomposed": (
        "variants.gated_network",
        r"""
import torch
def my_gated_network(hidden, w_in, w_out, activation):
    a, b = (hidden @ w_in.T).chunk(2, -1)
    if activation == "silu": gate = torch.nn.functional.hardswish(a)
    else: gate = torch.ops.aten.gelu.default.decompose(a)
    return (gate * b) @ w_out.T
""",
    ),
}
RIGHT = [
    r"""
import math
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from functools import reduce
from einops import einsum
my_softmax = lambda scores, dim=-1: torch.exp(scores - torch.logsumexp(scores, dim, keepdim=True))

def my_scaled_dot_product_attention(query, key, value, mask):
    scores = torch.einsum("bhqd,bhkd->bhqk", query / query.shape[-1] ** 0.5, key)
    low = torch.finfo(scores.dtype).min
    allowed = mask.expand_as(scores)
    weights = torch.where(allowed, scores, low).softmax(-1) * allowed
    return torch.einsum("bhqk,bhkv->bhqv", weights, value)

def my_layer_norm(hidden, gain, bias, eps):
    def centred(x):
        return x - x.mean(-1)[..., None]
    c = centred(hidden)
    return torch.addcmul(bias, gain, c * ((c * c).mean(-1)[..., None] + eps).rsqrt())

class my_FeatureDropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.keep = 1 - p
    def forward(self, features):
        match self.training:
            case True if self.keep > 0:
                return torch.bernoulli(torch.full_like(features, self.keep)) * features / self.keep
            case True:
                return features * 0
            case _:
                return features

def my_tell_exact(suspects):
    g = torch.Generator().manual_seed(3)
    def truth(q, k, v):
        s = q @ k.mT / q.shape[-1] ** .5
        e = (s - s.max(-1, keepdim=True).values).exp()
        return (e / e.sum(-1, keepdim=True)) @ v
    def trials():
        for n in (1, 7, 16, 33, 50):
            for shift in (-4000., 0., 4000.):
                for sign in (1, -1):
                    q, k, v = (torch.randn(n, 4, generator=g, dtype=torch.float64) for _ in range(3))
                    q[:, 0] = 2
                    k = k * torch.linspace(.1, 5, n, dtype=torch.float64)[:, None].flip(0) if sign < 0 else k * torch.linspace(.1, 5, n, dtype=torch.float64)[:, None]
                    k[:, 0] += shift
                    yield q, k, v
    tests = [*trials()]
    return torch.as_tensor([all(bool(((f(*t) - truth(*t)).abs() <= 1e-6).all()) for t in tests) for f in suspects])

def my_future_leaks(block, hidden):
    n = hidden.size(0)
    base = block(hidden)
    table = torch.zeros(n, n, dtype=torch.bool)
    for j in range(n):
        other = torch.cat([hidden[:j], 5 * torch.sin(torch.arange(1., hidden.size(1) + 1, dtype=hidden.dtype) * (j + 2))[None], hidden[j + 1:]])
        table[:j, j] = torch.any(torch.abs(block(other)[:j] - base[:j]) > 1e-9, dim=1)
    return table

def my_query_jacobian(query, key, value):
    c = 1 / math.sqrt(query.numel())
    a = torch.softmax(c * key @ query, 0)
    return c * value.T @ (torch.diag(a) - torch.outer(a, a)) @ key

def my_smoothed_gradient(logits, targets, epsilon):
    p = torch.softmax(logits, 1)
    q = (1 - epsilon) * F.one_hot(targets, logits.size(1)).to(p) + epsilon / logits.size(1)
    return p.sub(q).div(len(p))

def my_adam_steps(gradients, rate, beta1, beta2, eps):
    t = torch.arange(1, len(gradients) + 1, dtype=gradients.dtype)
    lag = (t[:, None] - t[None, :])
    m = torch.where(lag >= 0, (1 - beta1) * beta1 ** lag.clamp(min=0), 0.) @ gradients / (1 - beta1 ** t)[:, None]
    v = torch.where(lag >= 0, (1 - beta2) * beta2 ** lag.clamp(min=0), 0.) @ gradients ** 2 / (1 - beta2 ** t)[:, None]
    return -rate * m / (v ** .5 + eps)

def my_gated_network(hidden, w_in, w_out, activation):
    phi = {"silu": lambda z: z / (1 + (-z).exp()), "gelu": lambda z: z * torch.special.ndtr(z)}[activation]
    n = w_in.shape[0] >> 1
    return F.linear(phi(F.linear(hidden, w_in[:n])) * F.linear(hidden, w_in[n:]), w_out)
""",
    r"""
from __future__ import annotations
from dataclasses import dataclass
import torch, math
from torch import nn, Tensor
from einops import rearrange, reduce, repeat

class Softmax_:
    def __call__(self, scores, dim=-1):
        moved = scores.movedim(dim, 0)
        top = moved.max(0).values
        e = [torch.exp(row - top) for row in moved]
        return torch.stack([x / sum(e) for x in e]).movedim(0, dim)
my_softmax = Softmax_()

def my_scaled_dot_product_attention(query, key, value, mask):
    bias = torch.zeros(mask.shape, dtype=query.dtype).masked_fill(mask.logical_not(), -math.inf)
    scores = query.matmul(key.transpose(-2, -1)) / math.sqrt(query.size(-1)) + bias
    dead = ~mask.any(-1, keepdim=True)
    scores = torch.where(dead, torch.zeros_like(scores), scores)
    return torch.where(dead, torch.zeros_like(scores), scores.softmax(-1)) @ value

def my_layer_norm(hidden, gain, bias, eps):
    var, mean = torch.var_mean(hidden, dim=-1, keepdim=True, correction=0)
    return (hidden - mean).div((var + eps).sqrt()).mul(gain).add(bias)

class my_FeatureDropout(nn.Module):
    def __init__(self, p: float) -> None:
        super().__init__()
        self.register_buffer("p", torch.tensor(float(p)))
    def forward(self, features):
        if not self.training:
            return features
        keep = torch.rand(features.shape) >= self.p
        return torch.where(keep, features / (1 - self.p), torch.zeros(()))

def my_tell_exact(suspects):
    def attention(q, k, v):
        return torch.nn.functional.softmax(q @ k.t() * q.shape[1] ** -0.5, 1) @ v
    verdict = torch.ones(len(suspects), dtype=torch.bool)
    for _ in range(6):
        for n in (5, 16, 17, 40, 63):
            for place in (-9000, -800, 0, 800, 9000):
                q, k, v = torch.randn(3, n, 3, dtype=torch.double).unbind()
                k = k[torch.argsort(k[:, 0])] * 3; q[:, 0] = 1.5; k[:, 0] += place
                for i, f in enumerate(suspects):
                    verdict[i] &= torch.allclose(f(q, k, v), attention(q, k, v), atol=1e-6, rtol=0)
    return verdict

def my_future_leaks(block, hidden):
    def column(j):
        worst = torch.zeros(len(hidden))
        for k in range(3):
            x = hidden.clone(); x[j] = torch.randn(hidden.shape[1], dtype=hidden.dtype) * 10 ** k
            worst = torch.maximum(worst, (block(x) - block(hidden)).abs().amax(1).float())
        return worst > 1e-9
    out = torch.stack(list(map(column, range(len(hidden))))).T
    i, j = torch.meshgrid(torch.arange(len(hidden)), torch.arange(len(hidden)), indexing="ij")
    return out & (j > i)

def my_query_jacobian(query, key, value):
    s = key @ query * len(query) ** -.5
    e = (s - s.max()).exp(); a = e / e.sum()
    o = a @ value
    total = 0
    for w, v, k in zip(a, value, key):
        total = total + w * torch.outer(v - o, k)
    return total * len(query) ** -.5

def my_smoothed_gradient(logits, targets, epsilon):
    n, size = logits.size()
    g = (logits - logits.logsumexp(1, keepdim=True)).exp() - epsilon / size
    return g.scatter_add(1, targets[:, None], g.new_full((n, 1), epsilon - 1)) / n

@dataclass
class Adam_:
    m: float = 0.
    v: float = 0.
    t: int = 0

def my_adam_steps(gradients, rate, beta1, beta2, eps):
    s, out = Adam_(), []
    for g in gradients:
        s.t += 1
        s.m = g + beta1 * (s.m - g); s.v = torch.lerp(g ** 2, torch.as_tensor(s.v).to(g).expand_as(g), beta2)
        out += [-rate / (1 - beta1 ** s.t) * s.m / (torch.sqrt(s.v / (1 - beta2 ** s.t)) + eps)]
    return rearrange(out, "t p -> t p")

def my_gated_network(hidden, w_in, w_out, activation):
    gate, wide = rearrange(hidden @ w_in.mT, "t (two f) -> two t f", two=2)
    if activation == "silu":
        gate = gate * .5 * (1 + torch.tanh(gate / 2))
    else:
        gate = gate * .5 * torch.erfc(-gate / math.sqrt(2))
    return torch.einsum("tf,mf->tm", gate * wide, w_out)
""",
    r'''
import numpy as np
import torch
from torch import nn
import math

def my_softmax(scores, dim=-1):
    try:
        top = scores.detach().max(dim=dim, keepdim=True)[0]
    except RuntimeError as problem:
        raise ValueError(f"no axis {dim}") from problem
    powers = math.e ** (scores - top)
    return powers / powers.sum(dim, True)

def my_scaled_dot_product_attention(query, key, value, mask):
    b, h, q, d = query.shape
    out = []
    mask = mask.expand(b, h, q, key.shape[2])
    for i in range(b):
        heads = []
        for j in range(h):
            s = (query[i, j] * d ** -0.5) @ key[i, j].T
            s = s.masked_fill(~mask[i, j], float("-inf"))
            top = s.detach().amax(-1, keepdim=True).nan_to_num(neginf=0.0)
            e = (s - top).exp()
            z = e.sum(-1, keepdim=True)
            heads.append(e / z.masked_fill(z == 0, 1) @ value[i, j])
        out.append(torch.stack(heads))
    return torch.stack(out)

def my_layer_norm(hidden, gain, bias, eps):
    n = hidden.shape[-1]
    centre = torch.eye(n, dtype=hidden.dtype) - 1 / n
    c = hidden @ centre
    return torch.einsum("...d,...,d->...d", c, (c.square().sum(-1) / n + eps) ** -0.5, gain) + bias

class my_FeatureDropout(nn.Module):
    def __init__(self, p):
        super(my_FeatureDropout, self).__init__()
        self.p = p
    def forward(self, features):
        return self._drop(features) if self.training and self.p else features
    def _drop(self, features):
        if self.p >= 1: return features.mul(0.)
        mask = torch.empty_like(features).uniform_().gt(self.p).type_as(features)
        return features * mask.div_(1. - self.p)

def my_tell_exact(suspects):
    rng = np.random.default_rng(0)
    def once(f, n, place, order):
        q, k, v = (rng.standard_normal((n, 4)) for _ in range(3))
        q[:, 0], k[:, 0] = 1.0, 3 * np.sort(k[:, 0])[::order] + place
        s = q @ k.T / 2
        e = np.exp(s - s.max(1, keepdims=True))
        got = f(torch.from_numpy(q), torch.from_numpy(k), torch.from_numpy(v)).numpy()
        return bool(np.allclose(got, e / e.sum(1, keepdims=True) @ v, rtol=0, atol=1e-6))
    return torch.tensor([all([once(f, n, p, o) for n in (3, 16, 37, 50) for p in (0., 5e3, -5e3) for o in (1, -1) for _ in range(2)]) for f in suspects])

def my_future_leaks(block, hidden):
    n, d = hidden.shape
    x = np.random.default_rng(1).standard_normal((n, d))
    cols = []
    for j in range(n):
        y = hidden.numpy().copy(); y[j] = x[j]
        cols.append((block(torch.from_numpy(y)) - block(hidden)).norm(dim=1, p=float("inf")) > 1e-9)
    return torch.triu(torch.column_stack(cols), diagonal=1)

def my_query_jacobian(query, key, value):
    """Complex step: exact to rounding, no autograd."""
    h = 1e-30
    cols = []
    for i in range(len(query)):
        q = query.to(torch.complex128); q[i] = q[i] + complex(0, h)
        s = key.to(q.dtype) @ q / math.sqrt(len(query))
        e = (s - s.real.max()).exp()
        cols.append((e @ value.to(q.dtype) / e.sum()).imag / h)
    return torch.stack(cols, dim=1)

def my_smoothed_gradient(logits, targets, epsilon):
    z = logits.numpy()
    e = np.exp(z - z.max(1, keepdims=True)); p = e / e.sum(1, keepdims=True)
    p -= epsilon / z.shape[1]
    p[np.arange(len(z)), targets.numpy()] -= 1 - epsilon
    return torch.from_numpy(p / len(z))

def my_adam_steps(gradients, rate, beta1, beta2, eps):
    m = v = 0; a = b = 1; rows = []
    for g in gradients.unbind():
        m, v, a, b = beta1 * m + g * (1 - beta1), beta2 * v + g * g * (1 - beta2), a * beta1, b * beta2
        rows.append(m.div(1 - a).mul(-rate).div(v.div(1 - b).sqrt().add(eps)))
    return torch.vstack(rows)

def my_gated_network(hidden, w_in, w_out, activation):
    rows = []
    for x in hidden:
        z = torch.mv(w_in, x); a, b = z[: len(z) // 2], z[len(z) // 2:]
        f = torch.sigmoid(a) if activation == "silu" else torch.distributions.Normal(0., 1.).cdf(a)
        rows.append(w_out @ (a * f * b))
    return torch.stack(rows)
''',
]
"""Each answers ten exercises."""
