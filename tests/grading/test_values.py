"""Values on their way: what arrives is what was sent, or a name in its place; hostile values are refused."""

from __future__ import annotations

import json
import math
import struct

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ttutor.grading.worker.framing import Malformed
from ttutor.grading.worker.values import DTYPES, Other, Packer, TooMuch, Unpacker

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**500), 2**500) | st.floats() | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5) | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)


def through(value, *, layout=False):
    """Send a value through JSON and bytes, and take it out again."""
    packer = Packer(from_judge=layout)
    spec = json.loads(json.dumps(packer.pack(value), allow_nan=False))
    return Unpacker(packer.body(), function=getattr if layout else None).unpack(spec)


def packed(*tensors):
    packer = Packer()
    packer.pack(list(tensors))
    return packer.body()


@given(PLAIN)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_plain_values_arrive_as_they_are(value):
    assert repr(through(value)) == repr(value)


@pytest.mark.parametrize("dtype", [*sorted(DTYPES, key=str), torch.complex64, torch.complex128])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 5), (2, 3, 5)])
def test_tensors_arrive_bit_by_bit(dtype, shape):
    tensor = (100 * torch.randn(shape)).to(dtype)
    came = through(tensor)
    assert type(came) is torch.Tensor
    assert (came.dtype, came.shape) == (tensor.dtype, tensor.shape)
    assert torch.equal(came, tensor)


def test_what_is_not_finite_arrives():
    tensor = torch.tensor([math.nan, math.inf, -math.inf, -0.0])
    assert repr(through([math.nan, math.inf, -math.inf, -0.0])) == "[nan, inf, -inf, -0.0]"
    assert str(through(tensor)) == str(tensor)


def test_views_and_conjugates_arrive_by_value():
    tensor = torch.randn(4, 6, dtype=torch.complex64)
    for view in (tensor.mT, tensor[::2, 1:4], tensor.conj(), tensor.imag, tensor[0, 0].expand(3, 2)):
        assert torch.equal(through(view), view)


def test_the_judge_also_sends_how_tensors_lie():
    for tensor in (torch.randn(3, 5).T, torch.randn(2, 1, 1, 5).expand(2, 3, 4, 5), torch.randn(4, 4)[:, :2]):
        came = through(tensor, layout=True)
        assert torch.equal(came, tensor)
        assert came.is_contiguous() == tensor.is_contiguous()
        assert not came.is_contiguous()


def test_wishes_for_gradients_arrive():
    leaf = torch.randn(3, requires_grad=True)
    given = [torch.randn(2), leaf, {"x": leaf * 2}, torch.nn.Parameter(torch.randn(2))]
    plain, first, holder, parameter = through(given, layout=True)
    assert not plain.requires_grad
    assert (first.is_leaf, holder["x"].is_leaf) == (True, False)
    assert type(parameter) is torch.nn.Parameter


def test_numbers_of_thousands_of_digits_do_not_arrive():
    assert isinstance(through(10**4000), Other)
    with pytest.raises(Malformed):
        Unpacker(packed()).unpack(10**4000)


def test_arrays_arrive_as_arrays():
    array = np.arange(6.0).reshape(2, 3)
    came = through(array)
    assert type(came) is np.ndarray
    assert (came == array).all()


class Strange(torch.Tensor):
    pass


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (object(), "object"),
        (torch.zeros(2).as_subclass(Strange), "Strange"),
        (torch.zeros(2, device="meta"), "Tensor_meta_float32"),
        (torch.eye(2).to_sparse(), "Tensor_cpu_float32"),
        (len, "builtin_function_or_method"),
        (np.array(["x"]), "ndarray"),
        (3j, "complex"),
        ({1, 2}, "set"),
    ],
)
def test_of_everything_else_only_the_name_arrives(value, name):
    packer = Packer()
    assert packer.pack(value) == {"other": name}
    names = []
    came = Unpacker(packer.body(), lambda name: names.append(name) or Other()).unpack({"other": name})
    assert isinstance(came, Other)
    assert names == [name]


def test_too_much_is_not_sent():
    endless: list = []
    endless.append(endless)
    for value in (endless, [1] * 30_000, torch.zeros(1).expand(10**12), "x" * 10**6, {torch.ones(1): 1}):
        with pytest.raises(TooMuch):
            Packer().pack(value)


@pytest.mark.parametrize(
    "spec",
    [
        1.5,
        {},
        {"x": 1},
        {"float": 1.5},
        {"float": "one"},
        {"float": "0x1p999999"},
        {"list": {}},
        {"tuple": "abc"},
        {"dict": [[1]]},
        {"dict": [[{"list": []}, 1]]},
        {"dict": {"a": 1}},
        {"other": 7},
        {"other": "x" * 81},
        {"function": ["os", "system"], "args": ["true"], "keywords": {}},
        {"dict": [[{"tensor": 0, "array": True}, 1]]},
        {"dict": [[1, 1], [1, 2]]},
        {"tensor": 1},
        {"tensor": -1},
        {"tensor": True},
        {"tensor": "0"},
        {"tensor": 0, "grad": 1},
        {"tensor": 0, "strides": [1]},
        {"tensor": 0, "no_leaf": True},
        {"tensor": 0, "q": True},
        {"tensor": 0, "array": True, "grad": True},
        {"tensor": 0, "complex": True},
        {"list": [{"tensor": 0}, {"tensor": 0}]},
        {"float": "0x0p0", "list": []},
    ],
)
def test_what_no_packer_writes_is_refused(spec):
    with pytest.raises(Malformed):
        Unpacker(packed(torch.zeros(3))).unpack(spec)


def test_whole_numbers_cannot_ask_for_gradients():
    with pytest.raises(Malformed):
        Unpacker(packed(torch.zeros(3, dtype=torch.int64))).unpack({"tensor": 0, "grad": True})


def test_deep_values_are_refused():
    spec: object = None
    for _ in range(100):
        spec = {"list": [spec]}
    with pytest.raises(Malformed):
        Unpacker(packed()).unpack(spec)


def torn(header: object, data: bytes = bytes(8)) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


F32 = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        bytes(7),
        b"\xff" * 8,
        struct.pack("<Q", 100) + b"{}",
        torn([]),
        torn({"1": F32}),
        torn({"0": []}),
        torn({"0": F32 | {"dtype": "F8"}}),
        torn({"0": F32 | {"dtype": ["F32"]}}),
        torn({"0": F32 | {"shape": [2.0]}}),
        torn({"0": F32 | {"shape": [-2]}}),
        torn({"0": F32 | {"shape": [True, 2]}}),
        torn({"0": F32 | {"shape": [2**30, 2**30]}}),
        torn({"0": F32 | {"shape": [0, 2**62], "data_offsets": [0, 0]}}),
        torn({"0": F32 | {"shape": [1] * 20}}),
        torn({"0": F32 | {"data_offsets": [4, 12]}}),
        torn({"0": F32 | {"data_offsets": [0, 4]}}),
        torn({"0": F32 | {"data_offsets": [0]}}),
        torn({"0": F32}, bytes(9)),
        torn({"0": F32}, bytes(7)),
        torn({"0": F32, "1": F32}, bytes(16)),
        torn({"0": {"dtype": "BOOL", "shape": [8], "data_offsets": [0, 8]}}, b"\2" * 8),
        torn({str(n): {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for n in range(5000)}, b""),
    ],
)
def test_torn_tensors_are_refused(body):
    with pytest.raises(Malformed):
        Unpacker(body)
