"""Two values are compared by type, shape, dtype and numbers, with a tolerance that follows their magnitude."""

from __future__ import annotations

import math

import pytest
import torch

from ttutor.exercises.values import check_comparable, describe, differences, same

RTOL = 1e-5
pytestmark = pytest.mark.usefixtures("as_readers_run_it")


def kinds(expected, came) -> list[str]:
    return [difference.kind for difference in differences(expected, came, RTOL)]


@pytest.mark.parametrize("size", [1e-20, 1e-7, 1.0, 1e6, 1e30])
def test_the_tolerance_follows_the_magnitude(size: float) -> None:
    expected = torch.tensor([1.0, -0.5, 0.0]) * size
    assert same(expected, expected + 1e-6 * size, RTOL)
    assert kinds(expected, expected + 1e-4 * size) == ["value"]


def test_learning_rates_of_one_ten_millionth_are_told_apart() -> None:
    assert kinds(1e-7, 1.1e-7) == ["value"]
    assert kinds(torch.tensor([1e-7]), torch.tensor([1.1e-7])) == ["value"]
    assert same(1e-7, 1e-7 * (1 + 1e-6), RTOL)


def test_a_small_entry_beside_large_ones_is_measured_by_the_large_ones() -> None:
    assert same(torch.tensor([1000.0, 0.0]), torch.tensor([1000.0, 0.001]), RTOL)
    assert kinds(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 0.001])) == ["value"]


def test_an_empty_tensor_equals_an_empty_tensor() -> None:
    assert same(torch.zeros(0, 3), torch.zeros(0, 3), RTOL)
    assert kinds(torch.zeros(0, 3), torch.zeros(3, 0)) == ["shape"]


def test_infinities_must_be_where_they_should_be() -> None:
    expected = torch.tensor([-math.inf, 1.0, math.inf])
    assert same(expected, expected.clone(), RTOL)
    assert kinds(expected, torch.tensor([-1e9, 1.0, math.inf])) == ["value"]
    assert kinds(expected, torch.tensor([math.inf, 1.0, math.inf])) == ["value"]
    assert kinds(expected, torch.tensor([-math.inf, math.inf, math.inf])) == ["non_finite"]
    assert kinds(expected, torch.tensor([math.nan, 1.0, math.inf])) == ["value"]


def test_nan_is_like_nan_and_nothing_else() -> None:
    known = torch.tensor([math.nan, 1.0])
    assert same(known, torch.tensor([math.nan, 1.0]), RTOL)
    assert kinds(torch.tensor([0.0, 1.0]), known) == ["non_finite"]
    assert kinds(known, torch.tensor([0.0, 1.0])) == ["value"]
    assert same(math.nan, math.nan, RTOL)
    assert kinds(0.5, math.nan) == ["non_finite"]


def test_where_a_tensor_differs_is_told_and_what_it_should_be_is_not() -> None:
    expected = torch.tensor([[1.0, 2.0], [3.0, 4.5]])
    (difference,) = differences(expected, torch.tensor([[1.0, 2.25], [3.0, 3.5]]), RTOL)
    assert difference.text == "differs by up to 1, at (1, 1); 2 of 4 entries differ"
    (difference,) = differences(torch.tensor(7.0), torch.tensor(6.0), RTOL)
    assert difference.text == "differs by up to 1, at its only entry; 1 of 1 entries differ"


@pytest.mark.parametrize(
    ("expected", "came", "text"),
    [
        (torch.zeros(2, 3), torch.zeros(3, 2), "should have shape (2, 3), but came as (3, 2)"),
        (torch.zeros(2), torch.zeros(2).half(), "should be torch.float32, but came as torch.float16"),
        (torch.ones(2).bool(), torch.ones(2), "should be torch.bool, but came as torch.float32"),
        (torch.ones(2), torch.ones(2).to_sparse(), "should be torch.strided, but came as torch.sparse_coo"),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), "has 1 of 2 entries that are not what they should be"),
        (torch.tensor([True]), torch.tensor([False]), "has 1 of 1 entries that are the other way round"),
        ((1, 2), (1, 2, 3), "should be 2 values, but came as a tuple of 3"),
        ((1, torch.zeros(2)), (1, torch.zeros(3)), "(part 2 of 2) should have shape (2,), but came as (3,)"),
        ({"eval twice equal": True}, {"eval twice equal": False}, "(eval twice equal) is False, and it should not be"),
        ({"a": 1}, {"b": 1}, "should have the keys a, but has b"),
        ({"a": 1}, 1, "should be a dict, but came as int 1"),
        (1.0, "1.0", "should be a number, but came as str '1.0'"),
        (True, 1, "should be True or False, but came as int 1"),
        (1, True, "should be a whole number, but came as bool True"),
        (1, 1.0, "should be a whole number, but came as float 1.0"),
        (None, 1, "should be None, but came as int 1"),
        (1.0, None, "should be a number, but came as None (does it `return` something?)"),
        (torch.tensor(1.0), 1.0, "should be a plain torch.Tensor, but came as float 1.0"),
        ("left", "right", "is 'right', and it should not be"),
    ],
)
def test_what_differs_is_said_in_words(expected, came, text: str) -> None:
    assert text in differences(expected, came, RTOL)[0].text


@pytest.mark.parametrize("came", [1, 1.0, torch.tensor(1.0), torch.tensor(1.0, dtype=torch.float64)])
def test_a_number_may_come_as_a_tensor_without_axes(came) -> None:
    assert same(1.0, came, RTOL)


def test_tuples_and_lists_are_alike_and_keys_may_stand_in_any_order() -> None:
    assert same((1, [2.0, "x"]), [1, (2.0, "x")], RTOL)
    assert same({"a": 1, "b": 2}, {"b": 2, "a": 1}, RTOL)


def test_a_list_of_another_length_has_another_value_and_a_tuple_is_of_another_kind() -> None:
    assert kinds([1, 2], [1, 2, 3]) == ["value"]
    assert kinds((1, 2), (1, 2, 3)) == ["type"]
    assert kinds([1, 2], 1) == ["type"]


def test_the_worst_comes_first() -> None:
    expected = (torch.zeros(2), torch.zeros(2), torch.zeros(2), torch.zeros(2), 1)
    came = (torch.ones(2), torch.full((2,), math.nan), torch.zeros(2).double(), torch.zeros(3), None)
    assert kinds(expected, came) == ["type", "shape", "dtype", "non_finite", "value"]


def test_half_precision_and_complex_numbers_are_compared_as_numbers() -> None:
    assert kinds(torch.ones(2).half(), torch.ones(2).half() * 1.01) == ["value"]
    turned = torch.polar(torch.ones(2), torch.tensor([0.3, 0.4]))
    assert same(turned, turned * (1 + 1e-7), RTOL)
    assert kinds(turned, turned.conj().resolve_conj()) == ["value"]


def test_a_reference_gives_what_can_be_compared() -> None:
    check_comparable({"a": (torch.zeros(1), [1, 2.0, None, "x", True])})
    with pytest.raises(TypeError, match="its reference gave a Linear; let Exercise.observe return"):
        check_comparable((1, torch.nn.Linear(1, 1)))


def test_things_are_described_in_a_few_words() -> None:
    assert describe(torch.nn.Parameter(torch.zeros(2))) == "a Parameter of shape (2,)"
    assert describe({"a": 1}) == "a dict of 1"
    assert describe(object()) == "a object"
