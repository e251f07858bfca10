"""Eight bits a number, against torch's own quantisation."""

import torch

from ttutor.variants.quantised import quantise


def test_equals_torchs_rounding_by_row():
    vectors = torch.randn(5, 7)
    vectors[2] = 0
    ours = quantise(vectors)
    scales, zeros = ours.scales.flatten(), torch.zeros(5, dtype=torch.int32)
    rounded = torch.fake_quantize_per_channel_affine(vectors, scales, zeros, 0, -127, 127)
    torch.testing.assert_close(ours.restored(), rounded)
    assert (ours.codes.abs().amax(dim=1) == torch.tensor([127, 127, 0, 127, 127])).all()
    assert ((vectors - ours.restored()).abs() <= ours.scales * 0.5001).all()


def test_the_largest_number_keeps_its_sign_in_half_precision():
    """1368 / 127 is rounded down in bfloat16, so that 1368 would be 128 steps, which eight bits do not have."""
    restored = quantise(torch.tensor([[1368.0, -760.0], [-1368.0, 760.0]], dtype=torch.bfloat16)).restored()
    assert restored.sign().tolist() == [[1, -1], [-1, 1]]
    torch.testing.assert_close(
        restored.abs().amax(dim=1), torch.full((2,), 1368.0), rtol=0.01, atol=0, check_dtype=False
    )
