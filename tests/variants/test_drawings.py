"""Drawings of shapes: the same for a seed, all classes, what stands in them is what the class says."""

from __future__ import annotations

import pytest
import torch

from ttutor.variants.drawings import SHAPES, drawn_shapes


def test_a_seed_gives_the_same_drawings_and_another_gives_others():
    images, classes = drawn_shapes(20, seed=3)
    again, same = drawn_shapes(20, seed=3)
    assert torch.equal(images, again)
    assert torch.equal(classes, same)
    assert not torch.equal(images, drawn_shapes(20, seed=4)[0])


@pytest.mark.parametrize("size", [16, 24, 40])
def test_drawings_are_grey_between_black_and_white_and_of_all_classes(size):
    images, classes = drawn_shapes(400, image_size=size)
    assert images.shape == (400, 1, size, size)
    assert images.min() >= 0
    assert images.max() <= 1
    assert images.amax(dim=(1, 2, 3)).min() > 0.5  # something is drawn on each
    shares = torch.bincount(classes, minlength=len(SHAPES)) / 400
    assert ((shares > 0.15) & (shares < 0.35)).all()


def test_only_a_cross_has_ink_at_the_middle_of_its_ink():
    """Without noise the brightest strokes are the shape's: a cross is full where its bars meet, outlines are hollow."""
    images, classes = drawn_shapes(600, noise=0.0, seed=5)
    ink = (images[:, 0] > 0.65).float()
    rows, columns = torch.arange(24.0)[:, None], torch.arange(24.0)
    total = ink.sum(dim=(1, 2)).clamp_min(1)
    middle = torch.stack([(ink * axis).sum(dim=(1, 2)) / total for axis in (rows, columns)], dim=-1).round().long()
    at_middle = images[torch.arange(600), 0, middle[:, 0], middle[:, 1]] > 0.65
    is_cross = classes == SHAPES.index("cross")
    assert at_middle[is_cross].float().mean() > 0.9
    assert at_middle[~is_cross].float().mean() < 0.1


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="image_size must be at least 16 and noise not negative, not 8 and 0.08"):
        drawn_shapes(1, image_size=8)
    with pytest.raises(ValueError, match="not 24 and -1"):
        drawn_shapes(1, noise=-1.0)
