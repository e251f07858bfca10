"""Additive attention against loops over pairs, with masks, and in its gradients."""

import pytest
import torch

from ttutor.errors import ShapeError
from ttutor.recurrence import AdditiveAttention, additive_weights


@pytest.fixture
def attention():
    return AdditiveAttention(d_query=4, d_memory=6, d_head=3).double()


@pytest.fixture
def query():
    return torch.randn(2, 5, 4, dtype=torch.float64)


@pytest.fixture
def memory():
    return torch.randn(2, 7, 6, dtype=torch.float64)


def by_loops(attention, query, memory, is_real):
    """The paper's equations 5 and 6 and its appendix A.1.2, one number at a time."""
    weights = torch.zeros(2, 5, 7, dtype=torch.float64)
    for b in range(2):
        for i in range(5):
            for j in range(7):
                if is_real[b, j]:
                    inner = attention.to_query.weight @ query[b, i] + attention.to_key.weight @ memory[b, j]
                    weights[b, i, j] = torch.exp(torch.dot(attention.direction, torch.tanh(inner)))
    return weights / weights.sum(dim=-1, keepdim=True)


@pytest.mark.parametrize("padded", [False, True])
def test_weights_and_context_equal_loops_over_pairs(attention, query, memory, is_real, padded):
    is_real = is_real if padded else torch.ones_like(is_real)
    expected = by_loops(attention, query, memory, is_real)
    given = is_real if padded else None
    torch.testing.assert_close(attention.weights(query, memory, given), expected, rtol=0, atol=1e-13)
    torch.testing.assert_close(attention(query, memory, given), expected @ memory, rtol=0, atol=1e-13)


def test_padding_gets_no_weight_and_its_values_never_matter(attention, query, memory, is_real):
    weights = attention.weights(query, memory, is_real)
    assert (weights.movedim(1, 2)[~is_real] == 0).all()
    other = memory.masked_fill(~is_real[..., None], 1e6)
    assert torch.equal(attention.weights(query, other, is_real), weights)


def test_a_memory_of_padding_gives_zeros_and_finite_gradients(attention, query, memory):
    memory = memory.requires_grad_()
    context = attention(query, memory, torch.zeros(2, 7, dtype=torch.bool))
    assert torch.equal(context, torch.zeros_like(context))
    context.sum().backward()
    assert all(p.grad.isfinite().all() for p in [memory, *attention.parameters()])


@pytest.mark.usefixtures("as_readers_run_it")
def test_what_does_not_fit_is_named(attention, query, memory, is_real):
    with pytest.raises(ShapeError, match="axis 'd_query' is 3 in query but must be 4"):
        attention(query[..., :3], memory)
    q, k = torch.zeros(2, 5, 3), torch.zeros(2, 7, 3)
    with pytest.raises(ShapeError, match="axis 'keys' is 7 in k but 6 in is_real"):
        additive_weights(q, k, torch.zeros(3), is_real[:, :6])
