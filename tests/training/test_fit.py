"""The short training loop."""

import sys

import pytest
import torch
from torch import nn

from ttutor.training.fit import fit


def squared_error(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    return (model(batch[0]) - batch[1]).square().mean()


@pytest.fixture
def batches():
    inputs = torch.randn(3, 16, 4)
    return [(x, 2 * x.sum(dim=-1, keepdim=True)) for x in inputs]


def test_learns_a_linear_map_and_leaves_evaluation_mode(batches):
    model = nn.Linear(4, 1)
    losses = fit(model, batches, squared_error, steps=600, learning_rate=0.05)
    assert len(losses) == 600
    assert losses[-1] < 1e-3 < losses[0]
    assert not model.training
    torch.testing.assert_close(model.weight, torch.full((1, 4), 2.0), rtol=0, atol=0.05)


def test_equals_a_loop_written_out(batches):
    torch.manual_seed(1)
    ours, theirs = nn.Linear(4, 1), nn.Linear(4, 1)
    theirs.load_state_dict(ours.state_dict())
    losses = fit(ours, batches, squared_error, steps=5, learning_rate=0.01, clip_norm=None)
    optimizer, expected = torch.optim.Adam(theirs.parameters(), lr=0.01), []
    for step in range(5):
        optimizer.zero_grad()
        loss = squared_error(theirs, batches[step % 3])
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    assert losses == expected
    assert torch.equal(ours.weight, theirs.weight)


def test_learning_rate_may_depend_on_the_step(batches):
    model, seen = nn.Linear(4, 1), []

    def rate(step: int) -> float:
        seen.append(step)
        return 0.0

    before = model.weight.clone()
    fit(model, batches, squared_error, steps=3, learning_rate=rate)
    assert torch.equal(model.weight, before)
    assert seen[-3:] == [1, 2, 3]


def test_long_gradients_are_cut_to_the_given_norm(batches):
    model = nn.Linear(4, 1)
    fit(model, [(1e4 * x, y) for x, y in batches], squared_error, steps=1, clip_norm=0.5)
    norm = torch.cat([p.grad.flatten() for p in model.parameters()]).norm()
    assert norm.item() == pytest.approx(0.5, rel=1e-3)


@pytest.mark.usefixtures("as_readers_run_it")
def test_arguments_in_another_order_and_one_tensor_are_named(batches):
    with pytest.raises(TypeError, match=f"came {type(batches).__name__} and Linear"):
        fit(batches, nn.Linear(4, 1), squared_error, steps=1)
    with pytest.raises(TypeError, match="came Linear and Tensor"):
        fit(nn.Linear(4, 1), torch.zeros(8, 4), squared_error, steps=1)


def test_too_few_batches_and_a_loss_that_is_no_number(batches):
    with pytest.raises(ValueError, match="at its end after 0 of 1 steps"):
        fit(nn.Linear(4, 1), [], squared_error, steps=1)
    with pytest.raises(ValueError, match=f"at its end after {len(batches)} of 99 steps .*: pass a list"):
        fit(nn.Linear(4, 1), (batch for batch in batches), squared_error, steps=99)
    with pytest.raises(ValueError, match=r"one number, but has shape \(\d+, 1\); take its mean"):
        fit(nn.Linear(4, 1), batches, lambda model, batch: model(batch[0]), steps=1)
    with pytest.raises(FloatingPointError, match="the loss is nan and the gradient.s norm nan at step 1"):
        fit(nn.Linear(4, 1), batches, lambda model, batch: squared_error(model, batch) * torch.nan, steps=1)


def test_a_gradient_that_is_no_number_leaves_the_weights_alone(batches):
    model = nn.Linear(4, 1)
    before = model.weight.clone()

    def loss(model, batch):
        return (model(batch[0]) * 0).abs().sqrt().sum()  # zero, with an infinite slope

    with pytest.raises(FloatingPointError, match="the gradient's norm nan at step 1"):
        fit(model, batches, loss, steps=1)
    assert torch.equal(model.weight, before)
    with pytest.raises(ValueError, match="steps must not be negative, but is -3"):
        fit(model, batches, squared_error, steps=-3)


@pytest.mark.parametrize(
    ("terminal", "quiet", "shown"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_shows_a_bar_on_a_terminal_after_a_second(batches, terminal, quiet, shown, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    clock = iter(range(0, 10_000, 2))
    monkeypatch.setattr("tqdm.std.time", lambda: float(next(clock)))
    fit(nn.Linear(4, 1), batches, squared_error, steps=5, quiet=quiet)
    assert ("training:" in capsys.readouterr().err) == shown
