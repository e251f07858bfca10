"""Inputs that the tests of recurrence share; all axes differ in size."""

import pytest
import torch

D_INPUT, D_MODEL = 3, 5


@pytest.fixture
def inputs():
    """Two rows of seven tokens, three features wide."""
    return torch.randn(2, 7, D_INPUT, dtype=torch.float64)


@pytest.fixture
def is_real():
    """The second row is padded: on both sides and in between."""
    return torch.tensor([[True] * 7, [False, True, True, False, True, False, False]])
