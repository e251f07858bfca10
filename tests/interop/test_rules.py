"""The rules by which tensors change sides: what they accept, what they refuse, and that nothing goes unseen."""

from __future__ import annotations

import json

import pytest
import torch
import transformers
from torch import nn

from ttutor.errors import FileError, SettingError
from ttutor.interop import from_huggingface, save_huggingface, to_huggingface
from ttutor.interop.folder import read_folder
from ttutor.interop.rules import copied, fixed, fused, linear, rearranged, to_ours, to_theirs
from ttutor.variants.gpt import GPT, GPTConfig

RULES = [
    *linear("a", "first"),
    rearranged("b", "second", "rows columns -> columns rows", "columns rows -> rows columns"),
    fused("c", ("third.x", "third.y"), "(parts rows) -> parts rows", "parts rows -> (parts rows)"),
    fixed("d", torch.tensor([1.0, 2.0])),
    copied("e", "second"),
]


@pytest.fixture
def ours():
    sizes = {"first.weight": (2, 3), "first.bias": (2,), "second": (4, 5), "third.x": (3,), "third.y": (3,)}
    return {name: torch.randn(size) for name, size in sizes.items()}


@pytest.fixture
def theirs(ours):
    return {
        "a.weight": ours["first.weight"],
        "a.bias": ours["first.bias"],
        "b": ours["second"].T,
        "c": torch.cat([ours["third.x"], ours["third.y"]]),
        "d": torch.tensor([1.0, 2.0]),
        "e": ours["second"],
    }


def equal(first, second):
    return set(first) == set(second) and all(torch.equal(first[name], second[name]) for name in first)


def test_there_and_back(ours, theirs):
    assert equal(to_ours(RULES, theirs, ours), ours)
    assert equal(to_theirs(RULES, ours), theirs)
    del theirs["e"]
    assert equal(to_theirs(RULES, ours, with_copies=False), theirs)


def test_what_repeats_something_may_be_missing(ours, theirs):
    del theirs["d"], theirs["e"]
    assert equal(to_ours(RULES, theirs, ours), ours)


def test_every_fault_is_listed_at_once(ours, theirs):
    del theirs["a.bias"]
    theirs |= {"b": torch.zeros(7, 4), "c": torch.zeros(2, 2), "z": torch.zeros(1), "e": torch.zeros(4, 5)}
    with pytest.raises(FileError) as caught:
        to_ours(RULES, theirs, ours)
    assert str(caught.value).splitlines() == [
        "these weights do not fit the model:",
        "  missing: a.bias",
        "  wrong size: b gives (4, 7) for second, which is (4, 5) by the config",
        "  wrong size: c (2, 2) cannot be read as third.x, third.y",
        "  two values: e should be what second has already, but differs",
        "  surplus: z",
    ]


@pytest.mark.parametrize("value", [torch.tensor([1.0, 2.1]), torch.tensor([1.0])])
def test_what_is_fixed_must_have_its_value(ours, theirs, value):
    with pytest.raises(FileError, match="d should hold fixed values"):
        to_ours(RULES, {**theirs, "d": value}, ours)


# Folders -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def model():
    return GPT(GPTConfig(vocab_size=11, d_model=8, n_heads=2, n_layers=1, d_ff=12, max_len=9)).eval()


@pytest.fixture
def folder(model, tmp_path):
    return save_huggingface(model, tmp_path / "model")


def test_a_folder_is_all_that_is_needed(model, folder):
    again = from_huggingface(folder)
    assert again.config == model.config.replace(dropout=again.config.dropout)
    assert equal(again.state_dict(), model.state_dict())
    assert not again.training


def test_a_folder_with_a_model_is_left_alone(model, folder):
    before = (folder / "model.safetensors").read_bytes()
    with pytest.raises(FileError, match=r"holds a model already \(config.json, model.safetensors\)"):
        save_huggingface(GPT(model.config), folder)
    assert (folder / "model.safetensors").read_bytes() == before


def test_a_pickle_is_never_read(model, folder):
    (folder / "model.safetensors").unlink()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(FileError, match=r"pytorch_model.bin is a pickle, which may run code when read"):
        from_huggingface(folder)


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("config.json", None, FileError, "has no config.json"),
        ("config.json", b"", FileError, "config.json is no JSON"),
        ("config.json", b"[]", FileError, "should hold a JSON object, but holds a list"),
        ("config.json", b"\xff\xfe", FileError, "config.json is no JSON"),
        ("config.json", b"{}", SettingError, r"model_type must be one of .*, but is None"),
        ("config.json", b'{"model_type": "gpt_neox"}', SettingError, "but is 'gpt_neox'"),
        ("config.json", b'{"model_type": "../gpt2"}', SettingError, "but is '../gpt2'"),
        ("config.json", b'{"model_type": ["gpt2"]}', SettingError, r"but is \['gpt2'\]"),
        ("config.json", b'{"model_type": "gpt2"}', FileError, "do not fit the model"),  # all at their defaults
        ("config.json", b'{"model_type": "gpt2", "n_embd": null}', SettingError, "says null for n_embd"),
        ("config.json", b'{"model_type": "gpt2", "n_layer": 1000000000}', FileError, "n_layer is 1,000,000,000, but"),
        ("config.json", b'{"model_type": "gpt2", "n_embd": "wide"}', SettingError, "describes no model that can be"),
        ("config.json", b'{"model_type": "gpt2", "n_wings": 2}', SettingError, "not known here .*: n_wings"),
        ("model.safetensors", b"", FileError, "model.safetensors is damaged"),
        ("model.safetensors", b"not a model at all", FileError, "model.safetensors is damaged"),
        ("model.safetensors", None, FileError, "neither model.safetensors nor model.safetensors.index.json"),
    ],
)
def test_damaged_folders_are_refused_with_their_fault(folder, name, content, error, message):
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    with pytest.raises(error, match=message):
        from_huggingface(folder)


def test_a_truncated_file_is_refused(folder):
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError, match="model.safetensors is damaged"):
        from_huggingface(folder)


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        ({"weight_map": {"x": "../outside.safetensors"}}, FileError, "names files outside its folder"),
        ({"weight_map": {"x": "not-there.safetensors"}}, FileError, "has no not-there.safetensors"),
        ({"files": []}, FileError, "should say in weight_map"),
        ({"weight_map": ["x"]}, FileError, "should say in weight_map"),
    ],
)
def test_a_bad_index_is_refused(folder, index, error, message):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(error, match=message):
        read_folder(folder)


def test_what_is_no_model_of_theirs_is_refused(tmp_path):
    with pytest.raises(TypeError, match="expected a model of transformers or a folder, but came Linear"):
        from_huggingface(nn.Linear(2, 2))
    with pytest.raises(FileError, match="fetch a published model first"):
        from_huggingface(tmp_path / "nowhere")
    with pytest.raises(SettingError, match="transformers has no counterpart of Linear"):
        to_huggingface(nn.Linear(2, 2))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_dtype_is_that_of_the_weights(model, tmp_path, dtype):
    folder = save_huggingface(model.to(dtype), tmp_path / "model")
    assert {parameter.dtype for parameter in from_huggingface(folder).parameters()} == {dtype}
    assert transformers.GPT2LMHeadModel.from_pretrained(folder).dtype == dtype


def test_quantised_tensors_are_refused(ours, theirs):
    theirs["a.weight"] = theirs["a.weight"].to(torch.int8)
    with pytest.raises(FileError, match=r"quantised, which our model cannot hold: a.weight \(torch.int8\)"):
        to_ours(RULES, theirs, ours)
