"""`ttutor.exercises.forbidden`: whatever road leads to a forbidden function, it raises, and afterwards it is whole."""

from __future__ import annotations

import sys

import pytest
import torch
from torch.nn import functional

from ttutor.exercises.forbidden import Shortcut, without

X, HEADS = torch.ones(3, 4), torch.ones(2, 3, 4, 8)
ATEN, NEURAL = torch.ops.aten, torch._C._nn
ROADS = {
    "softmax": {
        "method": lambda: X.softmax(-1),
        "kernel": lambda: torch._softmax(X, -1, False),
        "module": lambda: torch.nn.Softmax(-1)(X),
        "vmap": lambda: torch.vmap(lambda x: torch._softmax(x, -1, False))(X),
        "script": lambda: torch.jit.CompilationUnit("def f(x):\n  return x.softmax(1)\n").f(X),
        "decomposition": lambda: torch._decomp.decompositions._softmax(X, -1, False),
        "table": lambda: torch._decomp.decomposition_table[ATEN._softmax.default](X, -1, False),
        "reference": lambda: torch._refs.softmax(X, -1),
        "composite": lambda: ATEN.softmax.int.decompose(X, -1),
        "sparse": lambda: torch.sparse.softmax(X.to_sparse(), 1),
        "distribution": lambda: torch.distributions.Categorical(logits=X).probs,
        "attention": lambda: functional.scaled_dot_product_attention(HEADS, HEADS, HEADS),
    },
    "scaled_dot_product_attention": {
        "function": lambda: functional.scaled_dot_product_attention(HEADS, HEADS, HEADS),
        "vmap": lambda: torch.vmap(NEURAL.scaled_dot_product_attention)(HEADS, HEADS, HEADS),
        "vmap of the composite": lambda: torch.vmap(torch._scaled_dot_product_attention_math)(HEADS, HEADS, HEADS),
        "composite": lambda: ATEN._scaled_dot_product_attention_math.default.decompose(HEADS, HEADS, HEADS),
        "decomposition": lambda: torch._decomp.decompositions.scaled_dot_product_flash_attention_for_cpu(
            HEADS, HEADS, HEADS
        ),
    },
    "layer_norm": {
        "function": lambda: functional.layer_norm(X, (4,)),
        "vmap": lambda: torch.vmap(lambda x: torch.layer_norm(x, [4]))(X),
        "composite": lambda: ATEN.layer_norm.default.decompose(X, [4]),
        "reference": lambda: torch._refs._normalize(X, (1,), 1e-5),
        "another norm": lambda: functional.instance_norm(X[None]),
        "decomposition": lambda: torch._decomp.decompositions.native_batch_norm_helper(
            X.T, None, None, None, None, True, 0.0, 1e-5, False
        ),
    },
    "dropout": {
        "function": lambda: functional.dropout(X),
        "vmap": lambda: torch.vmap(lambda x: torch.dropout(x, 0.5, True), randomness="different")(X),
        "composite": lambda: ATEN.dropout.default.decompose(X, 0.5, True),
        "reference": lambda: torch._refs.nn.functional._dropout_helper(X, 0.5),
    },
    "gelu": {
        "function": lambda: functional.gelu(X),
        "vmap": lambda: torch.vmap(NEURAL.gelu)(X),
        "reference": lambda: torch._refs.nn.functional.gelu(X),
    },
    "silu": {"table": lambda: torch._decomp.decomposition_table[ATEN.silu.default](X)},
    "glu": {"function": lambda: functional.glu(X), "module": lambda: torch.nn.GLU()(X)},
    "pixel_unshuffle": {
        "function": lambda: functional.pixel_unshuffle(HEADS[:, :2], 2),
        "vmap": lambda: torch.vmap(lambda x: torch.pixel_unshuffle(x, 2))(HEADS),
        "reference": lambda: torch._refs.nn.functional.pixel_unshuffle(HEADS, 2),
    },
    "LSTMCell": {
        "kernel": lambda: torch.lstm_cell(X, (X, X), torch.ones(16, 4), torch.ones(16, 4)),
        "composite": lambda: ATEN.lstm_cell.default.decompose(X, (X, X), torch.ones(16, 4), torch.ones(16, 4)),
    },
    "cross_entropy": {
        "function": lambda: functional.cross_entropy(X, torch.arange(3)),
        "vmap": lambda: torch.vmap(lambda x: functional.cross_entropy(x, torch.tensor(1)))(X),
        "decomposition": lambda: torch._decomp.decompositions._nll_loss_forward(X, torch.arange(3), None, 1, -100),
    },
    "Adam": {
        "optimiser": lambda: torch.optim.Adam([torch.nn.Parameter(X)]).step(),
        "one step": lambda: sys.modules["torch.optim.adam"]._single_tensor_adam(
            [X.clone()], [X], [X.clone()], [X.clone()], [], [torch.zeros(())], None, None, amsgrad=False,
            has_complex=False, beta1=0.9, beta2=0.99, lr=0.1, weight_decay=0, eps=1e-8, maximize=False,
            capturable=False, differentiable=False, decoupled_weight_decay=False,
        ),
    },
}  # fmt: skip
ALL = [(name, road) for name, roads in ROADS.items() for road in roads]


@pytest.mark.parametrize(("name", "road"), ALL, ids=lambda one: one)
def test_a_road_to_a_forbidden_function_raises_and_is_open_again_afterwards(name, road):
    with without([name]), pytest.raises(RuntimeError) as caught:
        ROADS[name][road]()
    assert isinstance(caught.value, Shortcut) or "Shortcut" in str(caught.value), caught.value
    ROADS[name][road]()
