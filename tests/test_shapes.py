"""The one shape check, and whether its message names what is wrong."""

import pytest
import torch

from ttutor.errors import ShapeError
from ttutor.shapes import check_shapes


def test_gives_the_size_of_every_named_axis():
    sizes = check_shapes(query=(torch.zeros(2, 3, 5), "batch queries d_head"), key=(torch.zeros(7, 5), "keys d_head"))
    assert sizes == {"batch": 2, "queries": 3, "d_head": 5, "keys": 7}


def test_names_the_axis_both_tensors_and_both_sizes():
    with pytest.raises(ShapeError, match="axis 'keys' is 7 in key but 6 in value") as caught:
        check_shapes(key=(torch.zeros(2, 7, 8), "batch keys d_head"), value=(torch.zeros(2, 6, 8), "batch keys d_head"))
    assert "expected: key [batch keys d_head], value [batch keys d_head]" in str(caught.value)
    assert "key (2, 7, 8), value (2, 6, 8)" in str(caught.value)


def test_a_fixed_size_is_named_as_what_must_be():
    with pytest.raises(ShapeError, match="axis 'd_model' is 5 in query but must be 8"):
        check_shapes({"d_model": 8}, query=(torch.zeros(2, 3, 5), "batch queries d_model"))


@pytest.mark.parametrize("shape", [(3,), (2, 3, 5, 7)])
def test_too_few_and_too_many_axes(shape):
    with pytest.raises(ShapeError, match=rf"query must have 3 axes \[batch queries d_head\].* has {len(shape)}"):
        check_shapes(query=(torch.zeros(shape), "batch queries d_head"))


def test_open_leading_axes_are_not_compared():
    sizes = check_shapes(a=(torch.zeros(9, 2, 3), "... tokens width"), b=(torch.zeros(2, 3), "... tokens width"))
    assert sizes == {"tokens": 2, "width": 3}
    with pytest.raises(ShapeError, match="at least 2 axes"):
        check_shapes(a=(torch.zeros(3), "... tokens width"))


def test_axes_of_size_one_and_of_any_size():
    assert check_shapes(a=(torch.zeros(1, 4, 5), "1 _ _")) == {}
    with pytest.raises(ShapeError, match="axis '1' is 2 in a but must be 1"):
        check_shapes(a=(torch.zeros(2, 4), "1 _"))


@pytest.mark.usefixtures("as_readers_run_it")
def test_something_that_is_no_tensor():
    with pytest.raises(TypeError, match=r"query must be a torch.Tensor with axes \[tokens\], but came as list"):
        check_shapes(query=([1, 2], "tokens"))
