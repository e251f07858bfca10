"""The two circuits of a head against the layer itself, and the freedom of basis between its matrices."""

import pytest
import torch
from torch import nn

from ttutor.inside import capture, change_basis, composition_score, head_writes, ov_circuit, qk_circuit
from ttutor.multihead import MultiHeadAttention
from ttutor.shapes import ShapeError

HEADS = [(6, None, None), (6, 2, None), (6, 1, 5)]  # as many key/value heads, fewer, and heads of another width


def layer(n_heads, n_kv_heads, d_head, *, bias):
    attention = MultiHeadAttention(12, n_heads, n_kv_heads, d_head=d_head, bias=bias).double()
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=0.5)
    return attention


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


@pytest.mark.parametrize("sizes", HEADS)
def test_circuits_have_no_more_rank_than_a_head_is_wide(sizes):
    attention = layer(*sizes, bias=False)
    for circuit in (qk_circuit, ov_circuit):
        assert torch.linalg.matrix_rank(circuit(attention, 5)) == attention.d_head


def test_the_scale_of_the_layer_is_the_scale_of_its_circuit(hidden):
    attention = MultiHeadAttention(12, 3, bias=False, scale=1.0).double()
    with capture(attention, "q", "k") as seen:
        attention(hidden)
    scores = hidden @ qk_circuit(attention, 2) @ hidden.mT
    torch.testing.assert_close(scores, seen["q"][:, 2] @ seen["k"][:, 2].mT, rtol=0, atol=1e-12)


def test_what_heads_write_adds_up_to_the_output(hidden):
    attention = layer(6, 2, 3, bias=True)
    with capture(attention, "context", "output") as seen:
        attention(hidden)
    writes = head_writes(attention, seen["context"])
    assert writes.shape == (2, 6, 5, 12)
    torch.testing.assert_close(writes.sum(1) + attention.to_output.bias, seen["output"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("sizes", HEADS)
def test_another_basis_changes_weights_and_features_but_no_result(sizes, hidden):
    attention = layer(*sizes, bias=True)
    with capture(attention, "q", "v", "weights", "output") as before:
        attention(hidden)
    bases = torch.randn(2, attention.d_head, attention.d_head, dtype=torch.float64)
    change_basis(attention, attention.n_kv_heads - 1, query_key=bases[0], value_output=bases[1])
    with capture(attention, "q", "v", "weights", "output") as after:
        attention(hidden)
    for name in ("weights", "output"):
        torch.testing.assert_close(after[name], before[name], rtol=0, atol=1e-10)
    for name, basis in (("q", bases[0]), ("v", bases[1])):
        torch.testing.assert_close(after[name][:, -1], before[name][:, -1] @ basis)
        assert not torch.allclose(after[name][:, -1], before[name][:, -1])
    if attention.n_kv_heads > 1:  # the heads of the first group are left alone
        assert torch.equal(after["q"][:, 0], before["q"][:, 0])


def test_circuits_do_not_depend_on_the_basis():
    attention = layer(6, 2, None, bias=True)
    before = [circuit(attention, head) for circuit in (qk_circuit, ov_circuit) for head in range(6)]
    before = [matrix.detach().clone() for matrix in before]
    change_basis(attention, 0, query_key=torch.randn(2, 2, dtype=torch.float64))
    after = [circuit(attention, head) for circuit in (qk_circuit, ov_circuit) for head in range(6)]
    torch.testing.assert_close(after, before)


def test_one_pattern_and_other_values_give_another_output(hidden):
    """Why a picture of the weights does not show what a head does."""
    attention = layer(3, None, None, bias=True)
    with capture(attention, "weights", "output") as before:
        attention(hidden)
    nn.init.normal_(attention.to_value.weight)
    with capture(attention, "weights", "output") as after:
        attention(hidden)
    assert torch.equal(after["weights"], before["weights"])
    assert (after["output"] - before["output"]).abs().max() > 0.1


def test_composition_is_one_for_aligned_directions_and_zero_for_orthogonal_ones():
    a, b, c = torch.eye(3, dtype=torch.float64)
    writes_b = torch.outer(a, b)
    assert composition_score(writes_b, torch.outer(b, c)) == 1.0
    assert composition_score(writes_b, torch.outer(c, b)) == 0.0
    earlier, later = torch.randn(5, 7, dtype=torch.float64), torch.randn(7, 8, dtype=torch.float64)
    expected = torch.linalg.norm(earlier @ later) / (torch.linalg.norm(earlier) * torch.linalg.norm(later))
    torch.testing.assert_close(composition_score(3 * earlier, later), expected)


@pytest.mark.usefixtures("as_readers_run_it")
def test_heads_and_bases_that_do_not_exist_are_refused():
    attention = layer(6, 2, None, bias=True)
    with pytest.raises(IndexError, match="heads 0 to 5, but head 6 was asked for"):
        qk_circuit(attention, 6)
    with pytest.raises(IndexError, match="heads 0 to 5, but head -1"):
        ov_circuit(attention, -1)
    with pytest.raises(IndexError, match="heads 0 to 1, but head 2"):
        change_basis(attention, 2)
    with pytest.raises(ShapeError, match="axis 'd_head' is 3 in query_key but must be 2"):
        change_basis(attention, 0, query_key=torch.eye(3))
    with pytest.raises(ShapeError, match="axis 'heads' is 3 in context but must be 6"):
        head_writes(attention, torch.zeros(2, 3, 5, 2))
    with pytest.raises(ShapeError, match="axis 'between' is 3 in earlier but 4 in later"):
        composition_score(torch.zeros(2, 3), torch.zeros(4, 5))


@pytest.mark.parametrize("which", ["query_key", "value_output"])
def test_a_basis_without_an_inverse_leaves_the_layer_as_it_was(which):
    attention = layer(6, None, None, bias=True)
    before = {name: tensor.clone() for name, tensor in attention.state_dict().items()}
    with pytest.raises(RuntimeError, match="singular"):
        change_basis(attention, 0, **{which: torch.zeros(2, 2, dtype=torch.float64)})
    assert all(torch.equal(tensor, before[name]) for name, tensor in attention.state_dict().items())
