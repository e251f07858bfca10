"""Damaged and foreign files with the name of a GGUF file: opened and usable, or refused by an error that helps."""

from __future__ import annotations

import json
import random
import struct
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import gguf
import pytest
import torch

from ttutor.errors import FileError, SettingError, TtutorError
from ttutor.pretrained import load

SIZES = {"hidden_size": 8, "num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 1}
FIELDS = {
    "llama.embedding_length": 8,
    "llama.attention.head_count": 2,
    "llama.attention.head_count_kv": 1,
    "llama.block_count": 1,
    "llama.feed_forward_length": 8,
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file of a few kilobytes, half of them fields and names."""
    from tests.interop import gguf_writing
    from tests.interop.test_gguf import make

    model = make(**SIZES, intermediate_size=8, tie_word_embeddings=True)
    return gguf_writing.write(tmp_path_factory.mktemp("whole") / "a.gguf", model, fields=FIELDS).read_bytes()


def outcome(path: Path) -> str:
    """Open a file and use what it gives: "opened", or what an error of ours says."""
    try:
        chat = load(path)
        text = "THE" if chat.template is None else chat.template.render([{"role": "user", "content": "THE"}])
        with torch.inference_mode():
            assert chat.model(chat.ids(text[:50]) % 64).shape[-1] == 64
    except TtutorError as error:
        return str(error)
    return "opened"


def test_the_whole_file_opens(tmp_path: Path, whole: bytes) -> None:
    (tmp_path / "a.gguf").write_bytes(whole)
    assert outcome(tmp_path / "a.gguf") == "opened"
    assert len(whole) < 8000


@pytest.mark.parametrize("share", [part / 24 for part in range(24)])
def test_a_file_that_ends_too_early_is_refused(tmp_path: Path, whole: bytes, share: float) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(whole[: int(share * len(whole))])
    assert "a.gguf is no GGUF file, or is damaged" in outcome(path)


def flipped(whole: bytes, seed: int) -> bytes:
    """One to three bytes that are others; most of them where the fields stand."""
    draw, found = random.Random(seed), bytearray(whole)
    for _ in range(draw.choice([1, 1, 2, 3])):
        place = draw.randrange(len(whole) if draw.random() < 0.2 else len(whole) // 2)
        found[place] = draw.choice([0, 1, 255, found[place] ^ 1 << draw.randrange(8), draw.randrange(256)])
    return bytes(found)


def flip_all(path: Path, whole: bytes, seeds: range) -> list[str]:
    found = []
    for seed in seeds:
        path.write_bytes(flipped(whole, seed))
        found.append(outcome(path))
    of_template = "the model's chat template cannot be used"  # which is used as late as this
    nameless = [one for one in found if one != "opened" and path.name not in one and of_template not in one]
    assert nameless == []
    return found


def test_other_bytes_give_a_model_or_an_error_of_ours(tmp_path: Path, whole: bytes) -> None:
    found = flip_all(tmp_path / "a.gguf", whole, range(150))
    assert 20 < found.count("opened") < len(found) - 20, "the flips try one thing only"


@pytest.mark.soak
def test_many_other_bytes(tmp_path: Path, whole: bytes) -> None:
    assert "opened" in flip_all(tmp_path / "a.gguf", whole, range(150, 6000))


def zipped() -> bytes:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("model.bin", bytes(100))
    return packed.getvalue()


FOREIGN = {
    "empty": b"",
    "text": b"This is no model.",
    "a page that says not found": b"<!DOCTYPE html><html><title>404</title></html>",
    "safetensors": struct.pack("<Q", 2) + json.dumps({}).encode() + bytes(64),
    "zip, as PyTorch writes": zipped(),
    "the format before GGUF": b"tjgg" + struct.pack("<I", 3) + bytes(64),
    "version 1": b"GGUF" + struct.pack("<IQQ", 1, 0, 0),
    "a version to come": b"GGUF" + struct.pack("<IQQ", 9, 0, 0),
    "nothing in it": b"GGUF" + struct.pack("<IQQ", 3, 0, 0),
    "a list of 2^60 numbers": b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"a", 9, 4, 2**60),
    "2^60 fields": b"GGUF" + struct.pack("<IQQ", 3, 0, 2**60),
    "a text of 2^63 bytes": b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**63),
    "2^60 tensors": b"GGUF" + struct.pack("<IQQ", 3, 2**60, 0),
}


@pytest.mark.parametrize("body", FOREIGN.values(), ids=FOREIGN)
def test_foreign_files_are_refused(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(body)
    assert "a.gguf" in outcome(path)


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"llama.block_count": 2_000_000_000}, FileError, "says 2,000,000,000 layers, but has 11 tensors"),
        ({"llama.embedding_length": 2_000_000_000}, FileError, "token_embd.weight has the sizes"),
        ({"llama.attention.key_length": 2_000_000_000}, FileError, "blk.0.attn_q.weight has the sizes"),
        ({"llama.attention.head_count": "two"}, FileError, "head_count must be a whole number .*, but is 'two'"),
        ({"llama.attention.head_count": 0}, FileError, "attn_q.weight has the sizes"),
        ({"llama.attention.layer_norm_rms_epsilon": -1.0}, SettingError, "norm_eps must be"),
        ({"llama.attention.head_count_kv": 3}, SettingError, "n_heads must be a multiple of n_kv_heads"),
        ({"tokenizer.ggml.tokens": ["a", "b"]}, FileError, "its tokenizer has 2 pieces"),
        ({"tokenizer.ggml.merges": ["T H E"]}, FileError, "the merge .*'T', 'H', 'E'.* is not"),
        ({"tokenizer.ggml.token_type": [1, 1]}, FileError, "64 pieces, but 2 have a kind"),
        ({"tokenizer.ggml.bos_token_id": 64}, FileError, "token 64 is its bos, but it has 64 tokens"),
        ({"tokenizer.ggml.merges": 5}, FileError, "merges must be a list, but is 5"),
        ({"tokenizer.ggml.tokens": None}, SettingError, "no field tokenizer.ggml.tokens"),
    ],
)
def test_fields_that_cannot_be_are_named(
    tmp_path: Path, fields: dict, error: type[Exception], message: str, write_small: Callable
) -> None:
    with pytest.raises(error, match=message):
        load(write_small(tmp_path / "a.gguf", fields))


@pytest.fixture(scope="module")
def write_small() -> Callable[[Path, dict], Path]:
    """Writes the small file with some fields that are others."""
    from tests.interop import gguf_writing
    from tests.interop.test_gguf import make

    model = make(**SIZES, intermediate_size=8, tie_word_embeddings=True)
    return lambda path, fields: gguf_writing.write(path, model, fields={**FIELDS, **fields})


def test_a_file_that_may_not_be_read_is_no_damaged_one(
    tmp_path: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "a.gguf"
    path.write_bytes(whole)
    monkeypatch.setattr(gguf.gguf_reader.np, "memmap", refuse)
    with pytest.raises(FileError, match="a.gguf cannot be read: Permission denied"):
        load(path)
