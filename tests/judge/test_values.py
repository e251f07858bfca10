"""Values on their way: what arrives is what was sent, or a name in its place; hostile values are refused."""

from __future__ import annotations

import json
import math
import struct

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st

from ttutor.grading.apart.framing import Malformed
from ttutor.grading.apart.packing import Other, Packer, TooMuch, Unpacker
from ttutor.grading.apart.tensors import DTYPES, pack, unpack

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5) | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)


def through(value, *, layout=False):
    """Send a value through JSON and bytes, and take it out again."""
    packer = Packer(lambda one: None, keep_layout=layout)
    spec = json.loads(json.dumps(packer.pack(value), allow_nan=False))
    return Unpacker(packer.body(), lambda number: None, layout=layout).unpack(spec)


@given(PLAIN)
def test_plain_values_arrive_as_they_are(value):
    assert repr(through(value)) == repr(value)


@pytest.mark.parametrize("dtype", [*DTYPES.values(), torch.complex64, torch.complex128])
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


def test_wishes_for_gradients_arrive_in_order():
    leaf = torch.randn(3, requires_grad=True)
    packer = Packer(lambda one: None, keep_layout=True)
    spec = packer.pack([torch.randn(2), leaf, {"x": leaf * 2}, torch.nn.Parameter(torch.randn(2))])
    source = Unpacker(packer.body(), lambda number: None, layout=True)
    plain, first, holder, parameter = source.unpack(spec)
    assert not plain.requires_grad
    assert (first.is_leaf, holder["x"].is_leaf) == (True, False)
    assert type(parameter) is torch.nn.Parameter
    assert [one.shape for one in source.leaves] == [one.shape for one in packer.traced] == [(3,), (3,), (2,)]


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
    packer = Packer(lambda one: None)
    assert packer.pack(value) == {"o": name}
    names = []
    came = Unpacker(packer.body(), lambda number: None, lambda name: names.append(name) or Other()).unpack({"o": name})
    assert isinstance(came, Other)
    assert names == [name]


def test_too_much_is_not_sent():
    endless: list = []
    endless.append(endless)
    for value in (endless, [1] * 30_000, torch.zeros(1).expand(10**12), "x" * 10**6):
        with pytest.raises(TooMuch):
            Packer(lambda one: None).pack(value)


@pytest.mark.parametrize(
    "spec",
    [
        1.5,
        {},
        {"x": 1},
        {"f": 1.5},
        {"f": "one"},
        {"f": "0x1p999999"},
        {"l": {}},
        {"t": "abc"},
        {"d": [[1]]},
        {"d": [[{"l": []}, 1]]},
        {"d": {"a": 1}},
        {"o": 7},
        {"o": "x" * 81},
        {"c": 0},
        {"c": True},
        {"T": 1},
        {"T": -1},
        {"T": True},
        {"T": "0"},
        {"T": 0, "g": 1},
        {"T": 0, "s": [1]},
        {"T": 0, "n": True},
        {"T": 0, "q": True},
        {"T": 0, "a": True, "g": True},
        {"T": 0, "z": True},
        {"l": [{"T": 0}, {"T": 0}]},
        {"f": "0x0p0", "l": []},
    ],
)
def test_what_no_packer_writes_is_refused(spec):
    with pytest.raises(Malformed):
        Unpacker(pack([torch.zeros(3)]), lambda number: None).unpack(spec)


def test_whole_numbers_cannot_ask_for_gradients():
    with pytest.raises(Malformed):
        Unpacker(pack([torch.zeros(3, dtype=torch.int64)]), lambda number: None).unpack({"T": 0, "g": True})


def test_deep_values_are_refused():
    spec: object = None
    for _ in range(100):
        spec = {"l": [spec]}
    with pytest.raises(Malformed):
        Unpacker(pack([]), lambda number: None).unpack(spec)


def test_tensors_are_safetensors():
    tensors = [torch.randn(2, 3), torch.arange(5), torch.tensor([True, False]), torch.randn(3).half()]
    read = safetensors.torch.load(pack(tensors))
    assert all(torch.equal(read[str(number)], tensor) for number, tensor in enumerate(tensors))
    written = safetensors.torch.save({"0": tensors[0]})
    assert torch.equal(unpack(written)[0], tensors[0])


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
        torn({"0": F32 | {"more": 1}}),
        torn({"0": F32}, bytes(9)),
        torn({"0": F32}, bytes(7)),
        torn({"0": F32, "1": F32}, bytes(16)),
        torn({"0": {"dtype": "BOOL", "shape": [8], "data_offsets": [0, 8]}}, b"\2" * 8),
        torn({str(n): {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for n in range(5000)}, b""),
    ],
)
def test_torn_tensors_are_refused(body):
    with pytest.raises(Malformed):
        unpack(body)
