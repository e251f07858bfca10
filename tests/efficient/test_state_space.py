"""A selective state space: three programs for one function, and a block around it that decodes token by token."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ttutor.efficient.mamba import SelectiveStateSpace, StateSpaceState
from ttutor.efficient.state_space import Selection, discretise, selective_loop, selective_matrix, selective_scan
from ttutor.errors import ShapeError


def drawn(batch=2, tokens=7, d_inner=3, d_state=5, seed=0):
    """Inputs and a selection, in float64."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    step = torch.nn.functional.softplus(normal(batch, tokens, d_inner))
    rate = -normal(d_inner, d_state).exp()
    return normal(batch, tokens, d_inner), Selection(
        step, rate, normal(batch, tokens, d_state), normal(batch, tokens, d_state)
    )


def by_hand(inputs, selection):
    """The definition, number by number, with Python's own floats."""
    batch, n_tokens, d_inner = inputs.shape
    d_state = selection.rate.shape[1]
    outputs = torch.zeros_like(inputs)
    for b in range(batch):
        for d in range(d_inner):
            for n in range(d_state):
                state, rate = 0.0, float(selection.rate[d, n])
                for t in range(n_tokens):
                    remains = math.exp(float(selection.step[b, t, d]) * rate)
                    added = (remains - 1) / rate * float(selection.write[b, t, n])
                    state = remains * state + added * float(inputs[b, t, d])
                    outputs[b, t, d] += float(selection.read[b, t, n]) * state
    return outputs


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(1, 3), st.integers(1, 70), st.integers(1, 4), st.integers(1, 6), st.integers(0, 99))
def test_loop_scan_and_matrix_are_one_function(batch, tokens, d_inner, d_state, seed):
    inputs, selection = drawn(batch, tokens, d_inner, d_state, seed)
    looped, last = selective_loop(inputs, selection)
    scanned, same = selective_scan(inputs, selection)
    by_table = (selective_matrix(selection) @ inputs.mT.unsqueeze(-1)).squeeze(-1).mT
    size = float(looped.abs().max())
    for found in (scanned, by_table):
        torch.testing.assert_close(found, looped, rtol=0, atol=1e-12 * max(1.0, size))
    torch.testing.assert_close(same, last, rtol=0, atol=1e-12 * max(1.0, float(last.abs().max())))


def test_all_three_are_what_the_definition_says_number_by_number():
    inputs, selection = drawn()
    expected = by_hand(inputs, selection)
    for found in (
        selective_loop(inputs, selection)[0],
        selective_scan(inputs, selection)[0],
        torch.einsum("bdqk,bkd->bqd", selective_matrix(selection), inputs),
    ):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("program", [selective_loop, selective_scan])
@pytest.mark.parametrize("cut", [0, 1, 4, 7])
def test_a_state_continues_where_it_was_left(program, cut):
    inputs, selection = drawn()
    whole, last = selective_loop(inputs, selection)

    def part(tokens):
        return inputs[:, tokens], Selection(
            selection.step[:, tokens], selection.rate, selection.write[:, tokens], selection.read[:, tokens]
        )

    first, state = program(*part(slice(0, cut)))
    second, end = program(*part(slice(cut, None)), state)
    torch.testing.assert_close(torch.cat([first, second], dim=1), whole, rtol=0, atol=1e-12)
    torch.testing.assert_close(end, last, rtol=0, atol=1e-12)


def block():
    torch.manual_seed(1)
    return SelectiveStateSpace(d_model=5, d_state=3).double()


def test_the_block_is_the_papers_drawing():
    """Convolution, selection, state space and gate, written out with other calls."""
    mixer, hidden = block(), torch.randn(2, 8, 5, dtype=torch.float64)
    inner, gate = hidden @ mixer.to_inner.weight.T, hidden @ mixer.to_gate.weight.T
    depthwise = torch.nn.Conv1d(10, 10, 4, groups=10, padding=3).double()
    depthwise.weight.data = mixer.taps.data.T.unsqueeze(1)
    depthwise.bias.data = mixer.tap_bias.data.normal_()
    inner = torch.nn.functional.silu(depthwise(inner.mT)[..., :8].mT)
    step = (1 + (inner @ mixer.to_waist.weight.T @ mixer.to_step.weight.T + mixer.to_step.bias).exp()).log()
    selection = Selection(step, -mixer.log_rate.exp(), inner @ mixer.to_write.weight.T, inner @ mixer.to_read.weight.T)
    out = by_hand(inner.detach(), Selection(*(tensor.detach() for tensor in selection))) + mixer.skip * inner
    expected = (out * gate * gate.sigmoid()) @ mixer.to_output.weight.T
    torch.testing.assert_close(mixer(hidden), expected, rtol=0, atol=1e-12)


def test_decoding_token_by_token_equals_reading_at_once_and_the_state_does_not_grow():
    mixer, hidden = block(), torch.randn(2, 11, 5, dtype=torch.float64)
    whole, end = mixer.read(hidden)
    assert torch.equal(whole, mixer(hidden))
    prefix, state = mixer.read(hidden[:, :4])
    outputs, sizes = [prefix], set()
    for t in range(4, 11):
        output, state = mixer.read(hidden[:, t : t + 1], state)
        outputs.append(output)
        sizes.add(tuple(part.shape for part in state))
    torch.testing.assert_close(torch.cat(outputs, dim=1), whole, rtol=0, atol=1e-12)
    assert sizes == {((2, 3, 10), (2, 10, 3))}
    assert isinstance(state, StateSpaceState)
    for mine, expected in zip(state, end, strict=True):
        torch.testing.assert_close(mine, expected, rtol=0, atol=1e-12)


def test_no_later_token_changes_a_bit_of_an_earlier_output():
    mixer, hidden = block(), torch.randn(1, 12, 5, dtype=torch.float64)
    before = mixer(hidden)
    for t in (1, 6, 11):
        changed = hidden.clone()
        changed[:, t:] = torch.randn(1, 12 - t, 5, dtype=torch.float64)
        after = mixer(changed)
        assert torch.equal(after[:, :t], before[:, :t])
        assert not torch.equal(after[:, t], before[:, t])


@pytest.mark.usefixtures("as_readers_run_it")
def test_misfits_are_named():
    inputs, selection = drawn()
    with pytest.raises(ShapeError, match="axis 'tokens' is 6 in inputs but 7 in step"):
        selective_scan(inputs[:, :6], selection)
    with pytest.raises(ShapeError, match="axis 'd_state' is 5 in rate but 4 in write"):
        discretise(selection.step, selection.rate, selection.write[..., :4])
    with pytest.raises(ShapeError, match="axis 'd_model' is 4 in hidden but must be 5"):
        block()(torch.zeros(1, 3, 4, dtype=torch.float64))
    with pytest.raises(ValueError, match="all widths must be at least 1"):
        SelectiveStateSpace(d_model=8, d_state=0)
