"""What the oracles of several families share."""

from __future__ import annotations

import copy
from types import MethodType

import torch
from torch import nn

from ttutor.interop import from_huggingface


def _precise(norm: nn.Module, hidden: torch.Tensor) -> torch.Tensor:
    return norm.weight * hidden / (hidden.square().mean(dim=-1, keepdim=True) + norm.variance_epsilon).sqrt()


def with_precise_norms(model: nn.Module) -> nn.Module:
    """Let the RMS norms of a model of theirs compute in float64, where they go down to float32 whatever the weights.

    So everything else can be compared to ten digits; that the norms themselves agree is tested without this.
    """
    norms = [module for module in model.modules() if hasattr(module, "variance_epsilon")]
    assert norms
    for norm in norms:
        norm.forward = MethodType(_precise, norm)
    return model


def padded(side: str) -> torch.Tensor:
    """Which tokens of three rows of seven are real, with the padding on one side."""
    n_real, place = torch.tensor([[7], [4], [1]]), torch.arange(7)
    return place < n_real if side == "right" else place >= 7 - n_real


def assert_same_gradients(ours: nn.Module, theirs: nn.Module) -> None:
    """Hold the gradients of two models against each other.

    Theirs stand in for weights, so that the rules for weights bring them into our order.
    """
    borrowed = copy.deepcopy(theirs)
    with torch.no_grad():
        for parameter, source in zip(borrowed.parameters(), theirs.parameters(), strict=True):
            parameter.copy_(torch.zeros_like(source) if source.grad is None else source.grad)
    for (name, mine), other in zip(ours.named_parameters(), from_huggingface(borrowed).parameters(), strict=True):
        gradient = torch.zeros_like(mine) if mine.grad is None else mine.grad  # of a pooler that nobody asks
        torch.testing.assert_close(gradient, other, rtol=1e-9, atol=1e-9, msg=lambda m, name=name: f"{name}: {m}")


def assert_same_tokens(found: list, expected: list[list[int]], end: int) -> None:
    """Hold our hypotheses against their rows of tokens, which go on after the end mark."""
    for hypothesis, row in zip(found, expected, strict=True):
        assert list(hypothesis.token_ids) == row[: row.index(end) if end in row else None]


def assert_same_tensors(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    """Hold the tensors that we would write against those that they hold: the same names, and the same bits."""
    assert set(found) == set(expected)
    assert all(torch.equal(found[name], expected[name]) for name in expected)
