"""The closed-form probe against a least-squares solver, and the control task on vectors that hold what we put there."""

import numpy as np
import pytest
import torch

from ttutor.errors import ShapeError
from ttutor.inside import control_labels, fit_probe, probe


@pytest.fixture
def samples():
    """40 vectors of width 5, not centred, with three labels."""
    return 2 + torch.randn(40, 5, dtype=torch.float64), torch.arange(40) % 3


def test_the_fit_equals_a_least_squares_solver_on_padded_data(samples):
    hidden, labels = samples
    fitted = fit_probe(hidden, labels, 3, ridge=0.1)
    x, y = hidden.numpy(), np.eye(3)[labels.numpy()]
    # The penalty as five more rows, the bias as one more column without penalty.
    root = np.sqrt(0.1 * x.var(axis=0).mean() * 40)
    stacked = np.block([[x, np.ones((40, 1))], [root * np.eye(5), np.zeros((5, 1))]])
    solution = np.linalg.lstsq(stacked, np.vstack([y, np.zeros((5, 3))]), rcond=None)[0]
    np.testing.assert_allclose(fitted.weight.numpy(), solution[:5].T, rtol=0, atol=1e-12)
    np.testing.assert_allclose(fitted.bias.numpy(), solution[5], rtol=0, atol=1e-12)


def test_every_type_gets_one_control_label_by_the_distribution_of_the_real_ones():
    generator = torch.Generator().manual_seed(0)
    types = torch.randint(4000, (20_000,), generator=generator)
    labels = (torch.rand(20_000, generator=generator) < 0.2).long() * 2  # 80 % are 0, 20 % are 2
    control = control_labels(types, labels, generator)
    distinct, which = types.unique(return_inverse=True)
    of_type = torch.full_like(distinct, -1)
    of_type[which] = control
    assert torch.equal(of_type[which], control)
    assert set(control.tolist()) == {0, 2}
    assert abs((of_type == 2).double().mean() - 0.2) < 4 * (0.2 * 0.8 / len(distinct)) ** 0.5
    same = control_labels(types, labels, torch.Generator().manual_seed(5))
    assert torch.equal(same, control_labels(types, labels, torch.Generator().manual_seed(5)))
    assert not torch.equal(same, control)


def test_a_direction_is_selective_and_an_identity_is_not():
    """One label is a direction of the vector; one-hot vectors of the type can only be memorised."""
    generator = torch.Generator().manual_seed(0)
    types = torch.arange(30).repeat(20)
    is_train = torch.rand(600, generator=generator) < 0.5
    labels = types % 2
    noise = torch.randn(600, 8, generator=generator, dtype=torch.float64)
    noise[:, 3] += 6.0 * labels
    direction = probe(noise, labels, types, is_train, generator)
    assert direction.accuracy > 0.97
    assert direction.selectivity > 0.3
    identity = probe(torch.eye(30, dtype=torch.float64)[types], labels, types, is_train, generator)
    assert (identity.accuracy, identity.control_accuracy, identity.selectivity) == (1.0, 1.0, 0.0)
    assert abs(identity.majority - 0.5) < 0.1


def test_what_is_measured_was_held_out():
    """With more features than samples a probe knows every training label, whatever it is."""
    generator = torch.Generator().manual_seed(0)
    hidden, labels = torch.randn(80, 60, generator=generator), torch.arange(80) % 2
    is_train, types = torch.arange(80) < 40, torch.arange(80) % 7
    fitted = fit_probe(hidden[is_train], labels[is_train], 2)
    result = probe(hidden, labels, types, is_train, generator)
    assert fitted.accuracy(hidden[is_train], labels[is_train]) == 1.0
    assert result.accuracy == fitted.accuracy(hidden[~is_train], labels[~is_train]) < 0.8
    assert result.control_accuracy < 0.8


@pytest.mark.usefixtures("as_readers_run_it")
def test_what_cannot_be_probed_is_refused(samples):
    hidden, labels = samples
    types, some, generator = torch.arange(40) % 7, torch.arange(40) < 30, torch.Generator()
    with pytest.raises(ShapeError, match="axis 'samples' is 40 in hidden but 39 in labels"):
        fit_probe(hidden, labels[:39], 3)
    with pytest.raises(ValueError, match="labels must be 0 to 1, but reach from 0 to 2"):
        fit_probe(hidden, labels, 2)
    with pytest.raises(ValueError, match="ridge must be positive, but is 0"):
        fit_probe(hidden, labels, 3, ridge=0)
    with pytest.raises(ValueError, match="but 40 of 40 are for training"):
        probe(hidden, labels, types, torch.ones(40, dtype=torch.bool), generator)
    with pytest.raises(ValueError, match="no type of a held-out sample occurs in training"):
        probe(hidden, labels, torch.arange(40), some, generator)
