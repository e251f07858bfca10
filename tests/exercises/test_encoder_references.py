"""The encoder's exercises put weights into the package's layers: here torch checks that each found its place."""

import pytest
import torch
from torch import nn

from ttutor.exercises import find
from ttutor.exercises.encoder.gradient import gradient_like
from ttutor.exercises.exercise import Trial
from ttutor.layers import LayerNorm, PreNorm


@pytest.mark.parametrize("number", range(2))
def test_the_encoder_layer_is_torchs(number):
    exercise = find("encoder.encoder_layer")
    hidden, norm_1, attention, norm_2, feed_forward, n_heads = exercise.cases[number].inputs(
        torch.Generator().manual_seed(7)
    )
    theirs = nn.TransformerEncoderLayer(
        hidden.shape[-1], n_heads, len(feed_forward[0]), dropout=0.0, batch_first=True, norm_first=True
    )
    weights = dict(zip(["norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias"], norm_1 + norm_2, strict=True))
    names = ["linear1.weight", "linear1.bias", "linear2.weight", "linear2.bias"]
    weights |= dict(zip(names, feed_forward, strict=True))
    weights |= {"self_attn.in_proj_weight": torch.cat(attention[:3]), "self_attn.out_proj.weight": attention[3]}
    weights |= {name: torch.zeros_like(part) for name, part in theirs.state_dict().items() if name not in weights}
    theirs.load_state_dict(weights)
    ours = exercise.reference(hidden, norm_1, attention, norm_2, feed_forward, n_heads)
    torch.testing.assert_close(ours, theirs(hidden), rtol=1e-4, atol=1e-4)


def test_embeddings_are_rows_of_their_table_at_their_scale():
    table = torch.arange(12.0).reshape(3, 4)
    expected = torch.tensor([[[16.0, 18, 20, 22], [0, 2, 4, 6]]])  # rows 2 and 0, times the root of 4
    torch.testing.assert_close(find("transformer.embedding_scale").reference(torch.tensor([[2, 0]]), table), expected)


def square_and_add(numbers, shift, name):
    return numbers**2 + shift


def observation(answer, numbers=(1.0, 2.0)):
    """What the gradient property says of an answer that should square and add."""
    inputs = (torch.tensor(numbers), torch.ones(1), "no tensor")
    return gradient_like(square_and_add, ("numbers", "shift", "name"), "Look.").broken(
        Trial(run=answer, inputs=inputs, value=answer(*inputs))
    )


def test_the_right_gradient_is_left_alone():
    assert observation(lambda numbers, shift, name: numbers * numbers + shift) is None


def test_a_gradient_that_goes_missing_is_told():
    assert "No gradient reaches `shift`" in observation(lambda numbers, shift, name: numbers**2 + shift.detach())


def test_a_gradient_of_another_size_is_told():
    half_detached = observation(lambda numbers, shift, name: numbers * numbers.detach() + shift)
    assert "gradient of `numbers` is off by 0.5" in half_detached


def test_a_gradient_that_is_no_number_is_told():
    hidden_root = observation(lambda numbers, shift, name: numbers.abs().sqrt() ** 4 + shift, numbers=(0.0, 2.0))
    assert "gradient of `numbers` is not finite" in hidden_root


def test_a_result_without_history_is_told():
    assert "remembers nothing" in observation(lambda numbers, shift, name: (numbers**2 + shift).detach())


def test_a_way_back_that_fails_is_told():
    def overwritten(numbers, shift, name):
        root = numbers.exp()
        result = root.sin()
        root += 1
        return result + shift

    assert "The backward pass fails" in observation(overwritten)


def test_a_folded_norm_reads_a_bare_norm_as_well():
    exercise = find("encoder.folded_norm")
    gain, bias, weight, constant = exercise.cases[0].inputs(torch.Generator().manual_seed(7))
    hidden = torch.randn(5, len(gain), generator=torch.Generator().manual_seed(8), dtype=torch.float64)
    new_weight, new_constant = exercise.reference(gain, bias, weight, constant)
    with_both = nn.functional.linear(nn.functional.layer_norm(hidden, gain.shape, gain, bias), weight, constant)
    bare = nn.functional.linear(nn.functional.layer_norm(hidden, gain.shape), new_weight, new_constant)
    torch.testing.assert_close(with_both, bare)


def test_the_mended_stream_is_the_packages():
    exercise = find("encoder.lost_stream")
    hidden, sublayers = exercise.cases[0].inputs(torch.Generator().manual_seed(7))
    stream = hidden[None]  # the package's layers want a batch
    for sublayer in sublayers:
        stream = PreNorm(hidden.shape[-1]).double()(stream, sublayer)
    expected = LayerNorm(hidden.shape[-1]).double()(stream)[0]
    torch.testing.assert_close(exercise.reference(hidden, sublayers), expected)
