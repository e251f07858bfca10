"""Drawings of shapes: the same for a seed, all classes, what stands in them is what the class says."""

from __future__ import annotations

import torch

from ttutor.variants import drawings
from ttutor.variants.drawings import SHAPES, drawn_shapes


def test_a_seed_gives_the_same_drawings_and_another_gives_others():
    images, classes = drawn_shapes(20, seed=3)
    again, same = drawn_shapes(20, seed=3)
    assert torch.equal(images, again)
    assert torch.equal(classes, same)
    assert not torch.equal(images, drawn_shapes(20, seed=4)[0])


def test_only_a_cross_has_ink_at_the_middle_of_its_ink(monkeypatch):
    """Without noise the brightest strokes are the shape's: a cross is full where its bars meet, outlines are hollow."""
    monkeypatch.setattr(drawings, "_NOISE", 0.0)
    images, classes = drawn_shapes(600, seed=5)
    ink = (images[:, 0] > 0.65).float()
    rows, columns = torch.arange(24.0)[:, None], torch.arange(24.0)
    total = ink.sum(dim=(1, 2)).clamp_min(1)
    middle = torch.stack([(ink * axis).sum(dim=(1, 2)) / total for axis in (rows, columns)], dim=-1).round().long()
    at_middle = images[torch.arange(600), 0, middle[:, 0], middle[:, 1]] > 0.65
    is_cross = classes == SHAPES.index("cross")
    assert at_middle[is_cross].float().mean() > 0.9
    assert at_middle[~is_cross].float().mean() < 0.1
