"""The two circuits of a head against the layer itself, and the freedom of basis between its matrices."""

import pytest
import torch

from tests.torch_twins import randomised
from ttutor.errors import ShapeError
from ttutor.inside import capture, head_writes, ov_circuit, qk_circuit
from ttutor.multihead import MultiHeadAttention

HEADS = [(6, None, None), (6, 2, None), (6, 1, 5)]  # as many key/value heads, fewer, and heads of another width


def layer(n_heads, n_kv_heads, d_head, *, bias):
    return randomised(MultiHeadAttention(12, n_heads, n_kv_heads, d_head=d_head, bias=bias))


@pytest.fixture
def hidden():
    return torch.randn(2, 5, 12, dtype=torch.float64)


@pytest.mark.parametrize("sizes", HEADS)
def test_circuits_say_where_a_head_looks_and_what_it_writes(sizes, hidden):
    attention = layer(*sizes, bias=False)
    with capture(attention, "weights", "output") as seen:
        attention(hidden)
    written = torch.zeros_like(hidden)
    for head in range(6):
        weights = (hidden @ qk_circuit(attention, head) @ hidden.mT).softmax(dim=-1)
        torch.testing.assert_close(weights, seen["weights"][:, head], rtol=0, atol=1e-12)
        written += weights @ hidden @ ov_circuit(attention, head)
    torch.testing.assert_close(written, seen["output"], rtol=0, atol=1e-12)


def test_what_heads_write_adds_up_to_the_output(hidden):
    attention = layer(6, 2, 3, bias=True)
    with capture(attention, "context", "output") as seen:
        attention(hidden)
    writes = head_writes(attention, seen["context"])
    assert writes.shape == (2, 6, 5, 12)
    torch.testing.assert_close(writes.sum(1) + attention.to_output.bias, seen["output"], rtol=0, atol=1e-12)


@pytest.mark.usefixtures("as_readers_run_it")
def test_heads_that_do_not_exist_are_refused():
    attention = layer(6, 2, None, bias=True)
    with pytest.raises(IndexError, match="heads 0 to 5, but head 6 was asked for"):
        qk_circuit(attention, 6)
    with pytest.raises(ShapeError, match="axis 'heads' is 3 in context but must be 6"):
        head_writes(attention, torch.zeros(2, 3, 5, 2))
