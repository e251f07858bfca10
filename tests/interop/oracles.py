"""What the oracles of several families share."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from types import MethodType

import torch
from torch import nn

from ttutor.interop import from_huggingface


@contextmanager
def in_float64() -> Iterator[None]:
    """Let their code run in float64 where it asks for float32 by name: norms, softmax, rotary angles and routers.

    So everything can be compared to ten digits. Nothing of ours may run within.
    """
    kept = torch.float32, torch.float, torch.Tensor.float, torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = kept[:3]
        torch.set_default_dtype(kept[3])


def randomised(model: nn.Module, std: float = 0.3) -> nn.Module:
    """A model of theirs in evaluation mode, none of whose parameters is zero or one by design."""
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=std)
    return model.eval()


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
