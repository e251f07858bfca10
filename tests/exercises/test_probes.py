"""The ready-made properties see what they should, and nothing in a right answer."""

from __future__ import annotations

import pytest
import torch

from ttutor.exercises import Trial
from ttutor.exercises.encoder.gradient import gradient_like
from ttutor.exercises.probes import batch_independent, causal, dependencies, depends, gradient_reaches
from ttutor.exercises.running import gradients_of


def attend(hidden, mask=None):
    scores = hidden @ hidden.mT
    return (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(-1) @ hidden


def causal_attend(hidden):
    return attend(hidden, torch.ones(hidden.shape[1], hidden.shape[1]).tril().bool())


def trial(run, *inputs) -> Trial:
    return Trial(run=run, inputs=inputs, value=run(*inputs), gradients=lambda *others: gradients_of(run, others))


HIDDEN = torch.randn(2, 4, 5, generator=torch.Generator().manual_seed(0))


def test_the_dependency_map_shows_which_output_moves_with_which_input() -> None:
    seen = dependencies(trial(causal_attend, HIDDEN))
    assert torch.equal(seen, torch.ones(4, 4).tril().bool())
    assert dependencies(trial(attend, HIDDEN)).all()


@pytest.mark.parametrize(
    ("run", "given", "axis"),
    [
        (lambda hidden: torch.nn.functional.layer_norm(hidden, (5,)), HIDDEN, 1),  # a norm does not hide a change
        (lambda ids: torch.arange(14.0).reshape(7, 2)[ids], torch.tensor([[0, 5, 1]]), 1),
        (lambda mask: ~mask, torch.tensor([True, False]), 0),
    ],
)
def test_vectors_token_ids_and_masks_can_be_changed(run, given: torch.Tensor, axis: int) -> None:
    before = given.clone()
    seen = dependencies(trial(run, given), axis=axis)
    assert torch.equal(seen, torch.eye(given.shape[axis]).bool())
    assert torch.equal(given, before)


def test_a_leak_from_the_future_is_seen_and_drawn() -> None:
    prop = causal("No future.")
    assert prop.broken(trial(causal_attend, HIDDEN)) is None
    finding = prop.broken(trial(attend, HIDDEN))
    assert finding.text == "Changing position 1 moves the result at position 0."
    assert finding.depends.all()
    assert torch.equal(finding.expected, torch.ones(4, 4).tril().bool())


def test_with_a_cache_the_last_output_stands_at_the_last_input() -> None:
    def newest(hidden):
        return causal_attend(hidden)[:, -2:]

    assert causal("No future.").broken(trial(newest, HIDDEN)) is None
    assert causal("No future.").broken(trial(lambda hidden: attend(hidden)[:, -2:], HIDDEN)) is not None


def test_a_missing_dependency_is_seen_too() -> None:
    prop = depends("Everyone sees everyone.", lambda hidden: torch.ones(4, 4).bool(), id="all")
    assert prop.broken(trial(attend, HIDDEN)) is None
    assert prop.broken(trial(causal_attend, HIDDEN)).text == (
        "When position 1 is changed, the result at position 0 does not move."
    )


def test_items_of_a_batch_that_mix_are_seen() -> None:
    prop = batch_independent("Keep them apart.")
    assert prop.broken(trial(attend, HIDDEN)) is None
    assert prop.broken(trial(lambda hidden: hidden - hidden.mean(0), HIDDEN)) is not None


def test_gradients_that_do_not_come_back_are_named() -> None:
    prop = gradient_reaches("Stay in autograd.", arguments=(0, 1))
    other = torch.randn(2, 4, 5)
    assert prop.always
    assert prop.broken(trial(lambda a, b: (a * b).softmax(-1), HIDDEN, other)) is None
    assert prop.broken(trial(lambda a, b: a.detach() * b.detach(), HIDDEN, other)) == (
        "Your result carries no gradient at all."
    )
    assert prop.broken(trial(lambda a, b: a * b.detach(), HIDDEN, other)) == "No gradient reaches input 2."
    assert prop.broken(trial(lambda a, b: (a * 0).sqrt() * b, HIDDEN, other)) == (
        "The gradient of input 1 is not finite."
    )


def overwritten(numbers, shift, name):
    root = numbers.exp()
    result = root.sin()
    root += 1
    return result + shift


@pytest.mark.parametrize(
    ("answer", "first", "words"),
    [
        (lambda numbers, shift, name: numbers**2 + shift.detach(), 1.0, "No gradient reaches `shift`"),
        (lambda numbers, shift, name: numbers * numbers.detach() + shift, 1.0, "gradient of `numbers` is off by 0.5"),
        (lambda numbers, shift, name: numbers.abs().sqrt() ** 4 + shift, 0.0, "of `numbers` is not finite"),
        (lambda numbers, shift, name: (numbers**2 + shift).detach(), 1.0, "remembers nothing"),
        (overwritten, 1.0, "The backward pass fails"),
    ],
)
def test_a_gradient_that_is_not_the_references_is_told(answer, first: float, words: str) -> None:
    prop = gradient_like(lambda numbers, shift, name: numbers**2 + shift, ("numbers", "shift", "name"), "Look.")
    inputs = torch.tensor([first, 2.0]), torch.ones(1), "no tensor"
    assert prop.broken(trial(lambda numbers, shift, name: numbers * numbers + shift, *inputs)) is None
    assert words in prop.broken(trial(answer, *inputs))
