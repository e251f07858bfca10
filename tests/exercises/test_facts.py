"""Facts in words, and inputs through which gradients can be asked for."""

import torch
from torch import nn

from ttutor.exercises.exercise import Trial
from ttutor.exercises.facts import fact, gradients, numbers_in, traced, trainable_numbers_in


def trial(value):
    return Trial(run=lambda: value, inputs=(), value=value)


def test_a_fact_that_is_as_expected_says_nothing():
    expected = fact("losses taken", 2, "Take the loss once a step.", id="once")
    assert expected.broken(trial({"losses taken": 2})) is None


def test_a_fact_that_is_otherwise_says_what_was_seen():
    assert "losses taken: 3" in fact("losses taken", 2, "", id="once").broken(trial({"losses taken": 3}))
    assert "draws anew: no" in fact("draws anew", True, "", id="anew").broken(trial({"draws anew": False}))


def test_what_an_answer_writes_into_its_input_is_seen_by_the_judge():
    tensor = torch.tensor([1.0, 2.0])
    with traced(tensor) as (_, (handed,)):
        handed += 1
    assert tensor.tolist() == [2.0, 3.0]
    assert not tensor.requires_grad


def test_gradients_come_back_to_the_leaves():
    tensor = torch.tensor([1.0, 2.0])
    with traced(tensor, tensor * 2) as (leaves, handed):
        value = (handed[0] * 3).sum() + handed[1].detach().sum()
    to_first, to_second = gradients(value, leaves, handed)
    assert to_first.tolist() == [3.0, 3.0]
    assert to_second.tolist() == [0.0, 0.0]


def test_no_gradient_is_asked_of_a_graph_that_was_written_into():
    with traced(torch.tensor([1.0, 2.0])) as (leaves, handed):
        value = handed[0].exp().sum()
        handed[0].zero_()
    assert [gradient.tolist() for gradient in gradients(value, leaves, handed)] == [[0.0, 0.0]]


def test_each_number_of_a_module_counts_once():
    module = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
    module[1].weight = module[0].weight
    module[0].bias.requires_grad_(False)
    assert (numbers_in(module), trainable_numbers_in(module)) == (6 + 3 + 2, 6 + 2)
