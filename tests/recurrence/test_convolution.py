"""Convolutions against torch's, receptive fields against the support of the Jacobian, and padding."""

import pytest
import torch
from torch import nn

from ttutor.errors import ShapeError
from ttutor.recurrence import Convolution, ConvolutionEncoder, convolve, depends_on, receptive_field


@pytest.mark.parametrize("dilation", [1, 2, 4])
@pytest.mark.parametrize("kernel_size", [1, 3, 5])
@pytest.mark.parametrize("causal", [False, True])
def test_equals_torch_in_values_and_gradients(inputs, kernel_size, dilation, causal):
    ours = Convolution(3, 5, kernel_size, dilation=dilation, causal=causal).double()
    nn.init.normal_(ours.bias)
    theirs = nn.Conv1d(3, 5, kernel_size, dilation=dilation).double()
    theirs.weight.data, theirs.bias.data = ours.weight.detach().permute(2, 1, 0).clone(), ours.bias.detach().clone()
    reach = dilation * (kernel_size - 1)
    left = reach if causal else reach // 2
    mine = ours(inputs)
    expected = theirs(nn.functional.pad(inputs.transpose(1, 2), (left, reach - left))).transpose(1, 2)
    torch.testing.assert_close(mine, expected, rtol=0, atol=1e-13)
    slope = torch.randn_like(mine)
    (mine * slope).sum().backward()
    (expected * slope).sum().backward()
    torch.testing.assert_close(ours.weight.grad, theirs.weight.grad.permute(2, 1, 0))
    torch.testing.assert_close(ours.bias.grad, theirs.bias.grad)


def test_an_even_number_of_taps_may_be_causal(inputs):
    weight = torch.randn(4, 3, 5, dtype=torch.float64)
    expected = nn.functional.conv1d(nn.functional.pad(inputs.transpose(1, 2), (3, 0)), weight.permute(2, 1, 0))
    torch.testing.assert_close(convolve(inputs, weight, causal=True), expected.transpose(1, 2))


def positive(encoder: ConvolutionEncoder) -> ConvolutionEncoder:
    """With positive weights no path cancels another and no ReLU shuts, so every possible dependence is felt."""
    for parameter in encoder.parameters():
        nn.init.uniform_(parameter, 0.5, 1.0)
    return encoder.double()


@pytest.mark.parametrize(
    ("kernel_size", "dilations"),
    [(3, [1]), (3, [1] * 4), (5, [1] * 3), (3, [1, 2, 4]), (3, [1, 3, 9]), (5, [1, 2])],
)
@pytest.mark.parametrize("causal", [False, True])
def test_the_jacobians_support_is_the_receptive_field(kernel_size, dilations, causal):
    n_tokens = 41
    encoder = positive(ConvolutionEncoder(2, kernel_size, dilations, causal=causal))
    support = depends_on(encoder, torch.rand(n_tokens, 2, dtype=torch.float64))
    size = receptive_field(kernel_size, dilations)
    distance = torch.arange(n_tokens)[:, None] - torch.arange(n_tokens)
    expected = (distance >= 0) & (distance < size) if causal else distance.abs() <= (size - 1) // 2
    # Near an end, a centred path that would leave the sequence and come back is cut; elsewhere nothing is missing.
    far_from_ends = slice(0, n_tokens) if causal else slice(size // 2, n_tokens - size // 2)
    assert torch.equal(support[far_from_ends], expected[far_from_ends])
    assert not (support & ~expected).any()
    assert support.sum(dim=-1).max().item() == size == encoder.receptive_field


@pytest.mark.parametrize("causal", [False, True])
def test_a_padded_row_equals_the_row_alone(causal):
    encoder = ConvolutionEncoder(3, 3, [1, 2, 1], causal=causal).double()
    for layer in encoder.layers:
        nn.init.normal_(layer.bias)
    hidden = torch.randn(2, 7, 3, dtype=torch.float64)
    is_real = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    mine = encoder(hidden, is_real)
    torch.testing.assert_close(mine[1, :4], encoder(hidden[1:, :4])[0])
    torch.testing.assert_close(mine[0], encoder(hidden[:1])[0])
    left = encoder(hidden[1:].roll(3, dims=1), is_real[1:].roll(3, dims=1))
    torch.testing.assert_close(left[0, 3:], mine[1, :4])


@pytest.mark.usefixtures("as_readers_run_it")
def test_what_does_not_fit_is_named(inputs, is_real):
    with pytest.raises(ShapeError, match="axis 'd_input' is 3 in hidden but 4 in weight"):
        convolve(inputs, torch.zeros(3, 4, 5))
    with pytest.raises(ShapeError, match="axis 'tokens' is 7 in hidden but 6 in is_real"):
        Convolution(3, 5, 3).double()(inputs, is_real[:, :6])
    with pytest.raises(ValueError, match="needs an odd number of taps, but has 4"):
        Convolution(3, 5, 4)
    with pytest.raises(ValueError, match="must be at least 1, but are 3 and 0"):
        ConvolutionEncoder(3, 3, [1, 0])
